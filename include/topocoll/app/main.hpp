// SPDX-License-Identifier: Apache-2.0
#pragma once
// The whole program `topocoll` as one function, to be called from a main or from a test.
#include <array>
#include <span>
#include <string_view>
#include <topocoll/app/bench.hpp>
#include <topocoll/app/calibrate.hpp>
#include <topocoll/app/command_table.hpp>
#include <topocoll/app/dispatch.hpp>
#include <topocoll/app/export.hpp>
#include <topocoll/app/order.hpp>
#include <topocoll/app/plan.hpp>
#include <topocoll/app/preflight.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo_commands.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// The commands of the program, in the order of its help.
inline constexpr std::array<command, 7> commands =
    command_table({run_topo_commands, run_plan, run_export, run_order, run_preflight, run_bench, run_calibrate});

/// Runs a command line.
/// @param args  the words after the program's name
/// @return  the exit code, see `exit_code`
[[nodiscard]] inline int run(std::span<const std::string_view> args, sink out, sink err) {
  return dispatch(commands, args, out, err);
}

}}}  // namespace topocoll::v0::app
