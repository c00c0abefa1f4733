// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands of the program, in the order of its help, without what they need to be compiled.
#include <array>
#include <topocoll/app/dispatch.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// What runs each command.
struct command_functions {
  command::function topo = nullptr, plan = nullptr, preflight = nullptr, bench = nullptr;
};

/// The table that `dispatch` takes.
[[nodiscard]] constexpr std::array<command, 4> command_table(const command_functions& f) {
  return {{
      {"topo", "shows what a machine, a file or a description holds, and how it is joined",
       "topocoll topo --from machine.xml --json", f.topo},
      {"plan", "chooses, explains and checks a plan for a collective on a topology",
       "topocoll plan --fabric dgx-h100:nodes=16,leaves=16,oversubscription=2", f.plan},
      {"preflight", "probes this machine and judges it: one verdict, and which part falls short",
       "topocoll preflight --json", f.preflight},
      {"bench", "measures collectives between processes of this host",
       "topocoll bench all_reduce --ranks 4 -b 8 -e 64M", f.bench},
  }};
}

}}}  // namespace topocoll::v0::app
