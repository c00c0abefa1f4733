// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the program's commands are called and what they say of themselves; who runs them is for the caller to say.
#include <array>
#include <span>
#include <string_view>
#include <topocoll/app/dispatch.hpp>
#include <topocoll/app/sink.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs a command on the words after its name.
using command_runner = int (*)(std::span<const std::string_view> args, sink out, sink err);

/// One for each command. A program may compile each in a source of its own: they are dear.
struct command_runners {
  command_runner topo, plan, export_files, order, preflight, bench, calibrate;
};

/// The commands in the order of the help.
[[nodiscard]] constexpr std::array<command, 7> command_table(const command_runners& run) {
  return {{
      {"topo",
       "shows what a machine, a file or a description holds, and how it is joined; 'topo diff' and 'topo check' "
       "compare",
       "topocoll topo --from machine.xml --json", run.topo},
      {"plan", "chooses, explains and checks a plan for a collective on a topology",
       "topocoll plan --fabric dgx-h100:nodes=16,leaves=16,oversubscription=2", run.plan},
      {"export", "writes plans and topologies as files that NCCL, MSCCL and MSCCL++ run",
       "topocoll export --format nccl-graph --from machine.xml -o rings.xml", run.export_files},
      {"order", "orders the hosts of a job so that it crosses its network least, as a launcher's file",
       "topocoll order --from topology.conf --hosts node[01-16] --format mpirun", run.order},
      {"preflight", "probes this machine and judges it: one verdict, and which part falls short",
       "topocoll preflight --json", run.preflight},
      {"bench", "measures collectives between processes of this host",
       "topocoll bench all_reduce --ranks 4 -b 8 -e 64M", run.bench},
      {"calibrate", "fits the model of GPU libraries to your measurements, or says how far off it is",
       "topocoll calibrate all_reduce.txt --from machine.xml --output model.json", run.calibrate},
  }};
}

}}}  // namespace topocoll::v0::app
