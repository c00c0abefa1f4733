// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/order.hpp>
#include "commands.hpp"

int commands::order(words args, sink out, sink err) { return topocoll::app::run_order(args, out, err); }
