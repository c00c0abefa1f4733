// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll topo` with those that hang on it: `topo diff` and `topo check`.
#include <span>
#include <string_view>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo.hpp>
#include <topocoll/app/topo_check.hpp>
#include <topocoll/app/topo_diff.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// `topocoll topo`, `topocoll topo diff` and `topocoll topo check`.
template <class = void>
[[nodiscard]] int run_topo_commands(std::span<const std::string_view> args, sink out, sink err) {
  if (!args.empty() && args[0] == "diff") return run_topo_diff(args.subspan(1), out, err);
  if (!args.empty() && args[0] == "check") return run_topo_check(args.subspan(1), out, err);
  return run_topo(args, out, err);
}

}}}  // namespace topocoll::v0::app
