// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/preflight.hpp>
#include "commands.hpp"

int commands::preflight(words args, sink out, sink err) { return topocoll::app::run_preflight(args, out, err); }
