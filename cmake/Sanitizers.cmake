# SPDX-License-Identifier: Apache-2.0
# TOPOCOLL_SANITIZE="address;undefined" (a comma will do) or "thread": flags for our own targets. The first report ends the program.
include_guard()

set(topocoll_sanitizer_flags "")
if(TOPOCOLL_SANITIZE)
  string(REPLACE ";" "," topocoll_sanitizers "${TOPOCOLL_SANITIZE}")
  set(topocoll_sanitizer_flags -fsanitize=${topocoll_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
endif()
