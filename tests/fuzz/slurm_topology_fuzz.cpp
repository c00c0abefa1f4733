// SPDX-License-Identifier: Apache-2.0
// topology.conf and host maps: what is read becomes a graph, comes back from what we write, and is refused in words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/integrate/slurm_topology.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}

std::size_t names_in(const topocoll::read::slurm_topology& t) {
  std::size_t names = 0;
  for (const auto& s : t.switches) names += s.nodes.size() + s.children.size();
  for (const auto& b : t.blocks) names += b.nodes.size();
  for (const auto& r : t.rings) names += r.nodes.size();
  return names;
}

void check_graph(topocoll::result<topocoll::topo::fragment> fragment) {
  namespace tc = topocoll;
  demand(static_cast<bool>(fragment));
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0);
    demand(l.how < tc::trust::derived || !l.reason.empty());
  }
  const auto g = tc::topo::graph::from(std::move(*fragment));
  demand(static_cast<bool>(g));
  if (const auto tree = tc::slurm_tree_of(*g)) {
    const auto text = tc::to_topology_conf(*tree);
    demand(text && static_cast<bool>(tc::read::parse_slurm_topology(*text, "back")));
  }
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  namespace rd = topocoll::read;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(rd::looks_like_slurm_topology(text));
  if (const auto t = rd::parse_slurm_topology(text, "t.conf")) {
    demand(names_in(*t) <= rd::most_hosts);
    if (names_in(*t) > 2000) return 0;
    demand(rd::slurm_tiers(*t).size() == t->switches.size());
    if (const auto written = tc::to_topology_conf(*t)) {
      const auto back = rd::parse_slurm_topology(*written, "back");
      demand(back && back->switches.size() == t->switches.size() && back->blocks.size() == t->blocks.size());
      for (std::size_t i = 0; i < t->switches.size(); ++i)
        demand(back->switches[i].nodes == t->switches[i].nodes &&
               back->switches[i].children == t->switches[i].children);
    }
    check_graph(tc::fragment_of(*t, {}, "t.conf"));
  } else {
    demand(t.error().what.rfind("t.conf", 0) == 0);
  }
  static_cast<void>(rd::looks_like_host_map(text));
  if (const auto m = rd::parse_host_map(text, "m.txt"))
    check_graph(tc::fragment_of(*m, {}, "m.txt"));
  else
    demand(m.error().what.rfind("m.txt", 0) == 0);
  return 0;
}

static const fuzz::target known("slurm_topology", try_input);
