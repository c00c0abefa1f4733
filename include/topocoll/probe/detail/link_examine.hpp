// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the checks of links need: which figure a PCIe link has lost, which ports there are, how to name a part.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/probe/verdict.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace probe { namespace detail {

template <class = void>
[[nodiscard]] std::string_view fact_of(const topo::node& n, std::string_view name) {
  for (const auto& [key, value] : n.facts)
    if (key == name) return value;
  return {};
}

template <class = void>
[[nodiscard]] verdict reported(std::string check, std::string where, state is, double confidence) {
  verdict v;
  v.check = std::move(check);
  v.where = std::move(where);
  v.is = is;
  v.how = trust::reported;
  v.confidence = confidence;
  return v;
}

/// "1 link", "3 links".
template <class = void>
[[nodiscard]] std::string counted(std::size_t n, std::string_view one) {
  return std::to_string(n) + ' ' + std::string(one) + (n == 1 ? "" : "s");
}

/// Which of its two figures a PCIe link has lost.
enum class deficit : unsigned char { none, width, speed, both, either };

struct pcie_state {
  deficit lost = deficit::none;
  std::uint32_t best_generation = 0;  ///< 0 when it cannot be told apart
  std::uint32_t best_lanes = 0;
};

/// Raw bytes per second of one lane by generation; the ratios matter, and they are those of the coded rates.
[[nodiscard]] constexpr double pcie_lane(std::uint32_t generation) {
  // 2.5 and 5 GT/s with 8b/10b; 8 to 32 GT/s with 128b/130b; 64 and 128 GT/s in flits, 242 of 256 bytes. PCIe base specifications.
  constexpr double rates[] = {0,
                              0.25e9,
                              0.5e9,
                              8e9 / 8 * 128 / 130,
                              16e9 / 8 * 128 / 130,
                              32e9 / 8 * 128 / 130,
                              64e9 / 8 * 242 / 256,
                              128e9 / 8 * 242 / 256};
  return generation <= 7 ? rates[generation] : 0;
}

/// The graph tells the trained generation and width, and both line rates; the best pair must explain the better rate.
template <class = void>
[[nodiscard]] pcie_state examine(const topo::link& l) {
  pcie_state s;
  if (!l.nominal || !l.current || l.current->value >= l.nominal->value * (1 - 1e-6)) return s;
  s.lost = deficit::either;
  std::size_t ways = 0;
  bool width = false;
  bool speed = false;
  for (std::uint32_t g = std::max(l.generation, 1U); g <= 7; ++g) {
    for (const std::uint32_t w : {1U, 2U, 4U, 8U, 12U, 16U}) {
      if (w < l.lanes || std::abs(pcie_lane(g) * w / l.nominal->value - 1) > 1e-3) continue;
      ++ways;
      width = w > l.lanes;
      speed = g > l.generation;
      s.best_generation = g;
      s.best_lanes = w;
    }
  }
  // A GPU's capacity is taken at its best generation and its present width, which tells the two apart. In units of the lowest
  // generation, payload doubles with each: discover/link_rates.hpp.
  if (ways > 1 && l.lanes > 0 && l.capacity.value > 0) {
    constexpr double payload_of_generation_1 = 0.1875e9;
    for (std::uint32_t g = std::max(l.generation, 1U); g <= 7; ++g) {
      const double payload = payload_of_generation_1 * static_cast<double>(1U << (g - 1)) * l.lanes;
      const double lanes = l.nominal->value / pcie_lane(g);
      if (l.how != trust::assumed || std::abs(payload / l.capacity.value - 1) > 1e-3 || lanes + 0.01 < l.lanes)
        continue;
      ways = 1;
      s.best_generation = g;
      s.best_lanes = static_cast<std::uint32_t>(lanes + 0.5);
      width = s.best_lanes > l.lanes;
      speed = g > l.generation;
    }
  }
  if (ways == 1) s.lost = width && speed ? deficit::both : (width ? deficit::width : deficit::speed);
  if (ways != 1) s.best_generation = s.best_lanes = 0;
  return s;
}

template <class = void>
[[nodiscard]] std::string trained(std::uint32_t generation, std::uint32_t lanes) {
  return "Gen" + std::to_string(generation) + " x" + std::to_string(lanes);
}

/// The end of a PCIe link that is farther from the processor.
template <class = void>
[[nodiscard]] node_id lower_end(const topo::graph& g, const topo::link& l) {
  if (g.at(l.from).kind == topo::node_kind::cpu) return l.to;
  if (g.at(l.to).kind == topo::node_kind::cpu) return l.from;
  if (topo::is_switch(g.at(l.from).kind) != topo::is_switch(g.at(l.to).kind))
    return topo::is_switch(g.at(l.from).kind) ? l.to : l.from;
  return l.from.value > l.to.value ? l.from : l.to;
}

/// "GPU 3 (0000:1b:00.0)": name and address, each once.
template <class = void>
[[nodiscard]] std::string place_of(const topo::graph& g, node_id v) {
  const topo::node& n = g.at(v);
  std::string name = topo::label_of(g, v, topo::has_several_hosts(g));
  const std::string_view address = topo::pci_part(n.key);
  if (!address.empty() && name.find(address) == std::string::npos) name += " (" + std::string(address) + ")";
  return name;
}

/// The value that more than half of the entries have.
template <class T>
[[nodiscard]] std::optional<T> majority(const std::vector<T>& values) {
  for (const T& v : values)
    if (2 * static_cast<std::size_t>(std::count(values.begin(), values.end(), v)) > values.size()) return v;
  return std::nullopt;
}

struct port_seen {
  node_id port;
  std::string kind;  ///< host, adapter model and port number: siblings have the same
  bool rdma = false;
  bool up = false;
  std::optional<bytes_per_second> rate;
  std::string state;
};

template <class = void>
[[nodiscard]] std::vector<port_seen> ports_of(const topo::graph& g) {
  std::vector<port_seen> ports;
  for (const topo::link& l : g.links()) {
    if (l.kind != topo::link_kind::internal || g.at(l.from).kind != topo::node_kind::nic ||
        g.at(l.to).kind != topo::node_kind::nic_port)
      continue;
    const topo::node& port = g.at(l.to);
    const topo::node& nic = g.at(l.from);
    port_seen p;
    p.port = l.to;
    const std::string_view number = std::string_view(port.key).substr(std::min(port.key.rfind('/'), port.key.size()));
    p.kind = port.host + '|' + std::string(fact_of(nic, "vendor")) + '|' + std::string(fact_of(nic, "device")) + '|' +
             std::string(number);
    p.rdma = !fact_of(port, "layer").empty() || !fact_of(port, "guid").empty();
    p.up = l.capacity.value > 0;
    p.state = l.reason;
    if (p.up && l.current && l.how == trust::reported) p.rate = l.current;
    ports.push_back(std::move(p));
  }
  return ports;
}

}}}}  // namespace topocoll::v0::probe::detail
