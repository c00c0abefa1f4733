// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program as one function, compiled once: with all its readers it takes a minute.
#include <span>
#include <string_view>
#include <vector>
#include <topocoll/app/sink.hpp>

namespace whole_program {

/// `topocoll <command> <args>`. Defined in main_test.cpp.
int run(std::span<const std::string_view> args, topocoll::app::sink out, topocoll::app::sink err);

inline int run(std::vector<std::string_view> command, const std::vector<std::string_view>& args,
               topocoll::app::sink out, topocoll::app::sink err) {
  command.insert(command.end(), args.begin(), args.end());
  return run(std::span<const std::string_view>(command), out, err);
}

}  // namespace whole_program
