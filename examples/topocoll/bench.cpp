// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/bench.hpp>
#include "commands.hpp"

int commands::bench(words args, sink out, sink err) { return topocoll::app::run_bench(args, out, err); }
