// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program as one function: the commands as it has them, compiled with it.
#include <span>
#include <string_view>
#include <vector>
#include <topocoll/app/sink.hpp>
#include "../../../examples/topocoll/commands.hpp"

namespace whole_program {

/// `topocoll <command> <args>`.
inline int run(std::vector<std::string_view> command, const std::vector<std::string_view>& args,
               topocoll::app::sink out, topocoll::app::sink err) {
  command.insert(command.end(), args.begin(), args.end());
  return commands::run(std::span<const std::string_view>(command), out, err);
}

}  // namespace whole_program
