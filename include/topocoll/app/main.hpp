// SPDX-License-Identifier: Apache-2.0
#pragma once
// The whole program `topocoll` as one function, to be called from a main or from a test.
#include <array>
#include <span>
#include <string_view>
#include <topocoll/app/bench.hpp>
#include <topocoll/app/calibrate.hpp>
#include <topocoll/app/dispatch.hpp>
#include <topocoll/app/export.hpp>
#include <topocoll/app/order.hpp>
#include <topocoll/app/plan.hpp>
#include <topocoll/app/preflight.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo.hpp>
#include <topocoll/app/topo_check.hpp>
#include <topocoll/app/topo_diff.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// `topocoll topo`, `topocoll topo diff` and `topocoll topo check`.
[[nodiscard]] inline int run_topo_commands(std::span<const std::string_view> args, sink out, sink err) {
  if (!args.empty() && args[0] == "diff") return run_topo_diff(args.subspan(1), out, err);
  if (!args.empty() && args[0] == "check") return run_topo_check(args.subspan(1), out, err);
  return run_topo(args, out, err);
}

/// The commands of the program, in the order of its help.
inline constexpr std::array<command, 7> commands{{
    {"topo",
     "shows what a machine, a file or a description holds, and how it is joined; 'topo diff' and 'topo check' compare",
     "topocoll topo --from machine.xml --json", run_topo_commands},
    {"plan", "chooses, explains and checks a plan for a collective on a topology",
     "topocoll plan --fabric dgx-h100:nodes=16,leaves=16,oversubscription=2", run_plan},
    {"export", "writes plans and topologies as files that NCCL, MSCCL and MSCCL++ run",
     "topocoll export --format nccl-graph --from machine.xml -o rings.xml", run_export},
    {"order", "orders the hosts of a job so that it crosses its network least, as a launcher's file",
     "topocoll order --from topology.conf --hosts node[01-16] --format mpirun", run_order},
    {"preflight", "probes this machine and judges it: one verdict, and which part falls short",
     "topocoll preflight --json", run_preflight},
    {"bench", "measures collectives between processes of this host", "topocoll bench all_reduce --ranks 4 -b 8 -e 64M",
     run_bench},
    {"calibrate", "fits the model of GPU libraries to your measurements, or says how far off it is",
     "topocoll calibrate all_reduce.txt --from machine.xml --output model.json", run_calibrate},
}};

/// Runs a command line.
/// @param args  the words after the program's name
/// @return  the exit code, see `exit_code`
[[nodiscard]] inline int run(std::span<const std::string_view> args, sink out, sink err) {
  return dispatch(commands, args, out, err);
}

}}}  // namespace topocoll::v0::app
