// SPDX-License-Identifier: Apache-2.0
// A topology source of your own: a list of cables, as a site might keep it.
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/discover.hpp>
#include <topocoll/discover/source.hpp>

namespace tc = topocoll;
namespace topo = tc::topo;

// Lines "host gpu leaf rate". What cannot be read is a finding in a good answer, not a failure.
struct cable_list {
  std::string text;

  [[nodiscard]] static std::string_view name() { return "cable list"; }
  [[nodiscard]] tc::result<topo::fragment> read(const tc::discover_options&) const {
    topo::fragment f;
    f.source = name();
    std::istringstream lines(text);
    for (std::string host, gpu, leaf, speed; lines >> host >> gpu >> leaf >> speed;) {
      topo::link cable;
      cable.from = place(f, topo::node_kind::gpu, host + "/gpu:" + gpu, host);
      cable.to = place(f, topo::node_kind::leaf, "leaf:" + leaf, "");
      cable.kind = topo::link_kind::ethernet;
      if (const auto rate = tc::parse_rate(speed)) {
        cable.capacity = *rate;
        f.join(cable);
      } else {
        f.findings.push_back({tc::severity::warning, host, "the cable of GPU " + gpu + " has no speed", speed, ""});
      }
    }
    return f;
  }

  // The node with this key, added if it is new.
  static tc::node_id place(topo::fragment& f, topo::node_kind kind, const std::string& key, const std::string& host) {
    for (std::uint32_t v = 0; v < f.nodes.size(); ++v)
      if (f.nodes[v].key == key) return {v};
    topo::node n;
    n.kind = kind;
    n.key = n.name = key;
    n.host = host;
    return f.add(std::move(n));
  }
};

int main() {
  const auto found = tc::discover({}, cable_list{"a 0 1 100Gb/s\na 1 2 100Gb/s\nb 0 1 ?\n"}).value();
  std::printf("%zu nodes, %zu links\n", found.graph.node_count(), found.graph.link_count());
  for (const tc::finding& f : found.findings) std::printf("%s: %s\n", f.where.c_str(), f.what.c_str());
}

// Prints:
// 5 nodes, 4 links
// b: the cable of GPU 0 has no speed
