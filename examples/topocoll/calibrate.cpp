// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/calibrate.hpp>
#include "commands.hpp"

int commands::calibrate(words args, sink out, sink err) { return topocoll::app::run_calibrate(args, out, err); }
