// SPDX-License-Identifier: Apache-2.0
#pragma once
// The whole program `topocoll` as one function, to be called from a main or from a test.
#include <array>
#include <span>
#include <string_view>
#include <topocoll/app/bench.hpp>
#include <topocoll/app/commands.hpp>
#include <topocoll/app/dispatch.hpp>
#include <topocoll/app/plan.hpp>
#include <topocoll/app/preflight.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// The commands of the program, in the order of its help.
inline constexpr std::array<command, 4> commands =
    command_table({.topo = run_topo, .plan = run_plan, .preflight = run_preflight, .bench = run_bench});

/// Runs a command line.
/// @param args  the words after the program's name
/// @return  the exit code, see `exit_code`
[[nodiscard]] inline int run(std::span<const std::string_view> args, sink out, sink err) {
  return dispatch(commands, args, out, err);
}

}}}  // namespace topocoll::v0::app
