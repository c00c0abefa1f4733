// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a command's topology comes from: files, descriptions and this machine, merged into one graph.
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/files.hpp>
#include <topocoll/discover/live.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/visible.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Where a topology comes from. Several places are merged: the same key is the same device.
struct topology_input {
  std::vector<std::string> from;    ///< files, or "live" for this machine
  std::vector<std::string> fabric;  ///< descriptions such as "dgx-h100:nodes=16"
  std::string root = "/";           ///< file system of the live machine
  std::optional<std::string> gpus;  ///< only these GPUs, as CUDA_VISIBLE_DEVICES lists them
  std::string host;  ///< name of hosts that their file does not name; empty: this machine's name when live
};

/// Reads, merges and checks. Nothing named at all means this machine.
/// @return what the sources refuse, with the file or the position; `malformed_input` when the parts do not make a graph
template <class = void>
[[nodiscard]] result<topo::graph> read_topology(const topology_input& input);

namespace detail {

template <class = void>
[[nodiscard]] std::string name_of_this_host() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace detail

template <class>
result<topo::graph> read_topology(const topology_input& input) {
  std::vector<topo::fragment> parts;
  std::vector<std::string> from = input.from;
  if (from.empty() && input.fabric.empty()) from.emplace_back("live");
  for (const std::string& place : from) {
    discover_options options;
    options.host = !input.host.empty() ? input.host : place == "live" ? detail::name_of_this_host() : options.host;
    auto part = place == "live" ? live_machine{input.root}.read(options) : from_file(place, options);
    if (!part) return std::move(part).error();
    parts.push_back(std::move(*part));
  }
  for (const std::string& spec : input.fabric) {
    auto part = describe(spec);
    if (!part) return std::move(part).error();
    parts.push_back(std::move(*part));
  }
  auto whole = parts.size() == 1 ? result<topo::fragment>(std::move(parts[0])) : topo::merge(parts);
  if (!whole) return std::move(whole).error();
  auto g = topo::graph::from(std::move(*whole));
  if (!g || !input.gpus) return g;
  auto some = topo::with_visible_gpus(*g, *input.gpus);
  if (!some) return std::move(some).error();
  return topo::graph::from(std::move(*some));
}

}}}  // namespace topocoll::v0::app
