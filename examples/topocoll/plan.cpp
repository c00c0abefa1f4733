// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <topocoll/app/plan.hpp>

int plan_command(std::span<const std::string_view> args, topocoll::app::sink out, topocoll::app::sink err) {
  return topocoll::app::run_plan(args, out, err);
}
