// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands as functions of their own, each compiled in its own file: the program then builds on all cores.
#include <span>
#include <string_view>
#include <topocoll/app/sink.hpp>

int topo_command(std::span<const std::string_view> args, topocoll::app::sink out, topocoll::app::sink err);
int plan_command(std::span<const std::string_view> args, topocoll::app::sink out, topocoll::app::sink err);
int preflight_command(std::span<const std::string_view> args, topocoll::app::sink out, topocoll::app::sink err);
int bench_command(std::span<const std::string_view> args, topocoll::app::sink out, topocoll::app::sink err);
