// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/plan.hpp>
#include "commands.hpp"

int commands::plan(words args, sink out, sink err) { return topocoll::app::run_plan(args, out, err); }
