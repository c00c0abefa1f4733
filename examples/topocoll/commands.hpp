// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands, compiled in a few sources: together they take a compiler minutes and gigabytes.
#include <array>
#include <span>
#include <string_view>
#include <topocoll/app/command_table.hpp>
#include <topocoll/app/dispatch.hpp>
#include <topocoll/app/sink.hpp>

namespace commands {

using words = std::span<const std::string_view>;
using topocoll::app::sink;

int topo(words args, sink out, sink err);
int plan(words args, sink out, sink err);
int export_files(words args, sink out, sink err);
int order(words args, sink out, sink err);
int preflight(words args, sink out, sink err);
int bench(words args, sink out, sink err);
int calibrate(words args, sink out, sink err);

/// All of them, in the order of the program's help.
inline constexpr std::array<topocoll::app::command, 7> all =
    topocoll::app::command_table({topo, plan, export_files, order, preflight, bench, calibrate});

/// Runs a command line: the words after the program's name. @return the exit code
inline int run(words args, sink out, sink err) { return topocoll::app::dispatch(all, args, out, err); }

}  // namespace commands
