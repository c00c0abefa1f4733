// SPDX-License-Identifier: Apache-2.0
// Cluster files: whatever is read becomes a graph with reasons, and whatever is refused is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/cluster_toml.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(tc::read::looks_like_cluster_file(text));
  const auto root = tc::io::parse_toml(text, "c.toml");
  if (!root) {
    demand(root.error().what.rfind("c.toml", 0) == 0);
    return 0;
  }
  const auto cluster = tc::read::cluster_file_of(*root, "c.toml");
  if (!cluster) {
    demand(cluster.error().what.rfind("c.toml", 0) == 0);
    return 0;
  }
  // What a small file can ask for is bounded at millions of nodes; that bound has its own test.
  std::size_t parts = 0;
  for (const auto& h : cluster->hosts) {
    parts += h.names.size() * (1 + h.nics.value_or(0) + h.nic_names.size() + h.leaves.size());
    if (!h.model.empty() && (h.names.size() > 40 || h.model.size() > 12)) return 0;
  }
  for (const auto& s : cluster->switches) parts += s.names.size() * (1 + s.up.size() * s.cables.value_or(1));
  if (parts > 5000) return 0;
  auto fragment = tc::fragment_of(*cluster, {}, "c.toml");
  if (!fragment) {
    demand(fragment.error().what.rfind("c.toml", 0) == 0);
    return 0;
  }
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0);
    demand(l.how < tc::trust::derived || !l.reason.empty());
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("cluster_file", try_input);
