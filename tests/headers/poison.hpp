// SPDX-License-Identifier: Apache-2.0
// Names that other headers are known to define as macros. The header check includes this after all standard and system
// headers and before ours: a header of ours that uses such a name for something of its own then does not compile, and
// the text in the error says where a user would meet the macro. (No #pragma once: included where it is wanted.)

// Function-like ones
#undef major
#undef minor
#undef makedev
#define major(...) "poisoned: macro of <sys/sysmacros.h>, which old <sys/types.h> includes"
#define minor(...) "poisoned: macro of <sys/sysmacros.h>, which old <sys/types.h> includes"
#define makedev(...) "poisoned: macro of <sys/sysmacros.h>, which old <sys/types.h> includes"
#undef howmany
#undef roundup
#define howmany(...) "poisoned: macro of <sys/param.h>"
#define roundup(...) "poisoned: macro of <sys/param.h>"
#define timeout(...) "poisoned: macro of <curses.h>"
#define CHECK(...) "poisoned: macro of <glog/logging.h>"
#define LOG(...) "poisoned: macro of <glog/logging.h>"
#define EXPECT(...) "poisoned: macro of test libraries"
#define fail_if(...) "poisoned: macro of <check.h>"

// Object-like ones
#undef linux
#undef unix
#define linux "poisoned: macro of the compilers in their GNU modes"
#define unix "poisoned: macro of the compilers in their GNU modes"
#undef I
#define I "poisoned: macro of <complex.h>"
#undef B0
#define B0 "poisoned: macro of <termios.h>"
#define None "poisoned: macro of <X11/X.h>"
#define Bool "poisoned: macro of <X11/Xlib.h>"
#define Status "poisoned: macro of <X11/Xlib.h>"
#define Success "poisoned: macro of <X11/X.h>"
#define small "poisoned: macro of <rpcndr.h>"
#define interface "poisoned: macro of <objbase.h>"
#define ERROR "poisoned: macro of <wingdi.h>"
#define DEBUG "poisoned: macro of many build systems"
#define slots "poisoned: macro of <qobjectdefs.h>"
#define signals "poisoned: macro of <qobjectdefs.h>"
#define emit "poisoned: macro of <qobjectdefs.h>"
