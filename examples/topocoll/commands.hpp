// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands, compiled in a few sources: together they take a compiler minutes and gigabytes.
#include <span>
#include <string_view>
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

}  // namespace commands
