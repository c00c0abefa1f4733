// SPDX-License-Identifier: Apache-2.0
// topology.yaml and topograph models: what is read becomes a graph or comes back from what we write, and is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/discover/slurm_yaml.hpp>
#include <topocoll/integrate/slurm_topology.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}

void check_graph(topocoll::result<topocoll::topo::fragment> fragment) {
  namespace tc = topocoll;
  demand(static_cast<bool>(fragment));
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0);
    demand(l.how < tc::trust::derived || !l.reason.empty());
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
}
std::size_t names_in(const topocoll::read::slurm_topology& t) {
  std::size_t names = 0;
  for (const auto& s : t.switches) names += s.nodes.size() + s.children.size();
  for (const auto& b : t.blocks) names += b.nodes.size();
  for (const auto& r : t.rings) names += r.nodes.size();
  for (const auto& o : t.toruses) names += o.nodes.size();
  return names;
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  namespace rd = topocoll::read;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(rd::looks_like_slurm_yaml(text));
  static_cast<void>(rd::looks_like_topograph_model(text));
  const auto root = tc::io::parse_yaml(text, "f.yaml", {.values = 20000});
  if (!root) {
    demand(root.error().what.rfind("f.yaml", 0) == 0);
    return 0;
  }
  if (const auto all = rd::slurm_yaml_of(*root, "f.yaml")) {
    for (const rd::slurm_topology& t : *all)
      if (names_in(t) <= 2000) {
        if (const auto written = tc::to_topology_yaml({t})) {
          const auto again = tc::io::parse_yaml(*written, "back");
          demand(again && static_cast<bool>(rd::slurm_yaml_of(*again, "back")));
        }
        check_graph(tc::fragment_of(t, {}, "f.yaml"));
      }
  } else {
    demand(all.error().what.rfind("f.yaml", 0) == 0);
  }
  if (const auto m = rd::topograph_model_of(*root, "f.yaml")) {
    if (names_in(m->tree) <= 2000) check_graph(tc::fragment_of(*m, {}, "f.yaml"));
  } else {
    demand(m.error().what.rfind("f.yaml", 0) == 0);
  }
  return 0;
}

static const fuzz::target known("slurm_yaml", try_input);
