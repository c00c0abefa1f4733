// SPDX-License-Identifier: Apache-2.0
#pragma once
// The whole program `topocoll` as one function, to be called from a main or from a test.
#include <array>
#include <span>
#include <string_view>
#include <topocoll/app/bench.hpp>
#include <topocoll/app/dispatch.hpp>
#include <topocoll/app/plan.hpp>
#include <topocoll/app/preflight.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// The commands of the program, in the order of its help.
inline constexpr std::array<command, 4> commands{{
    {"topo", "shows what a machine, a file or a description holds, and how it is joined",
     "topocoll topo --from machine.xml --json", run_topo},
    {"plan", "chooses, explains and checks a plan for a collective on a topology",
     "topocoll plan --fabric dgx-h100:nodes=16,leaves=16,oversubscription=2", run_plan},
    {"preflight", "probes this machine and judges it: one verdict, and which part falls short",
     "topocoll preflight --json", run_preflight},
    {"bench", "measures collectives between processes of this host", "topocoll bench all_reduce --ranks 4 -b 8 -e 64M",
     run_bench},
}};

/// Runs a command line.
/// @param args  the words after the program's name
/// @return  the exit code, see `exit_code`
[[nodiscard]] inline int run(std::span<const std::string_view> args, sink out, sink err) {
  return dispatch(commands, args, out, err);
}

}}}  // namespace topocoll::v0::app
