// SPDX-License-Identifier: Apache-2.0
#pragma once
// How topo/routes.hpp finds ways, classes and reasons.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

namespace detail {

[[nodiscard]] constexpr bool is_network(link_kind k) { return k == link_kind::infiniband || k == link_kind::ethernet; }
[[nodiscard]] constexpr bool is_gpu_link(link_kind k) { return k == link_kind::nvlink || k == link_kind::xgmi; }
[[nodiscard]] constexpr bool is_fabric_switch(node_kind k) {
  return k == node_kind::leaf || k == node_kind::spine || k == node_kind::core_switch;
}
/// Nodes that data ends at but does not pass.
[[nodiscard]] constexpr bool is_end(node_kind k) {
  return k == node_kind::gpu || k == node_kind::host_memory || k == node_kind::pcie_device;
}

/// True when `a`, which crosses no CPU, is better: fewer hops, then wider.
template <class = void>
[[nodiscard]] bool better(const path& a, const path& b) {
  return a.links.size() != b.links.size() ? a.links.size() < b.links.size() : b.rate < a.rate;
}

template <class = void>
[[nodiscard]] path joined(const graph& g, const path& first, const path& second) {
  std::vector<link_id> links = first.links;
  links.insert(links.end(), second.links.begin(), second.links.end());
  return measured_path(g, std::move(links));
}

}  // namespace detail

template <class>
path_class class_of(const graph& g, const path& way, node_id from) {
  if (way.links.empty()) return path_class::LOC;
  std::size_t cpus = g.at(from).kind == node_kind::cpu ? 1 : 0;
  std::size_t switches = 0;
  std::size_t relays = 0;
  bool pcie = false, c2c = false, gpu_link = false, network = false;
  for (std::size_t i = 0; i < way.links.size(); ++i) {
    const link& l = g.at(way.links[i]);
    const node_kind head = g.at(l.to).kind;
    pcie = pcie || l.kind == link_kind::pcie;
    c2c = c2c || l.kind == link_kind::c2c;
    gpu_link = gpu_link || detail::is_gpu_link(l.kind);
    network = network || detail::is_network(l.kind);
    cpus += head == node_kind::cpu ? 1 : 0;
    switches += head == node_kind::pcie_switch && i + 1 < way.links.size() ? 1 : 0;
    relays += head == node_kind::gpu && i + 1 < way.links.size() ? 1 : 0;
  }
  const node_kind first = g.at(from).kind;
  const node_kind last = g.at(g.head(way.links.back())).kind;
  const auto is_nic = [](node_kind k) { return k == node_kind::nic || k == node_kind::nic_port; };
  if (network) return path_class::NET;
  if (cpus >= 2) return path_class::SYS;
  if (gpu_link) return pcie || c2c || cpus > 0 ? path_class::PXN : (relays > 0 ? path_class::NVB : path_class::NVL);
  if (c2c && !pcie) return path_class::C2C;
  if (c2c && (is_nic(first) || is_nic(last))) return path_class::P2C;
  if (cpus > 0 && pcie) return path_class::PHB;
  if (!pcie) return path_class::LOC;
  return switches <= 1 ? path_class::PIX : path_class::PXB;
}

inline routes::routes(const graph& g, node_id from, route_options options, std::optional<node_id> only)
    : g_(&g), from_(from), options_(options), marks_(g.node_count()) {
  marks_.start(from);
  const auto pay = [&](node_id v) {
    if (v == from) return detail::step::hop;
    const node_kind kind = g.at(v).kind;
    return detail::is_end(kind)     ? detail::step::closed
           : kind == node_kind::cpu ? detail::step::crossing
                                    : detail::step::hop;
  };
  // First without the network: a way within the host is never left for one through a switch and back.
  const auto inside = detail::spread(
      g, marks_, {from},
      [&](node_id v, link_id e) { return detail::is_network(g.at(e).kind) ? detail::step::closed : pay(v); }, only);
  if (only && marks_.reached(*only)) return;
  // Then on from there through the network. A way that has come out of it into a host does not go back.
  std::vector<std::uint8_t> is_inside(g.node_count(), 0);
  for (const node_id v : inside) is_inside[v.value] = 1;
  detail::spread(
      g, marks_, inside,
      [&](node_id v, link_id e) {
        const bool network = detail::is_network(g.at(e).kind);
        const bool wants_network = is_inside[v.value] != 0 || detail::is_fabric_switch(g.at(v).kind);
        return is_inside[g.head(e).value] != 0 || network != wants_network ? detail::step::closed : pay(v);
      },
      only);
}

inline std::optional<path> routes::by_gpu(node_id to) const {
  std::optional<path> best;
  for (const link_id first : g_->out_links(from_)) {
    const node_id relay = g_->head(first);
    if (!detail::is_gpu_link(g_->at(first).kind) || g_->at(relay).kind != node_kind::gpu || relay == to) continue;
    for (const link_id second : g_->out_links(relay)) {
      if (!detail::is_gpu_link(g_->at(second).kind) || g_->head(second) != to) continue;
      path way = detail::measured_path(*g_, {first, second});
      if (way.rate.value > 0 && (!best || detail::better(way, *best))) best = std::move(way);
    }
  }
  return best;
}

inline std::optional<path> routes::by_peer_nic(node_id to, const std::optional<path>& direct) const {
  // GPUs that NVLink reaches without another GPU's help.
  std::vector<node_id> peers;
  const auto add_peers = [&](node_id at) {
    for (const link_id e : g_->out_links(at)) {
      const node_id w = g_->head(e);
      if (detail::is_gpu_link(g_->at(e).kind) && g_->at(w).kind == node_kind::gpu && w != from_ &&
          g_->at(w).host == g_->at(to).host)
        peers.push_back(w);
    }
  };
  add_peers(from_);
  for (const link_id e : g_->out_links(from_))
    if (g_->at(g_->head(e)).kind == node_kind::nvswitch) add_peers(g_->head(e));
  std::optional<path> best;
  for (const node_id peer : peers) {
    const auto near_part = route(*g_, from_, peer, {});
    const auto nic_part = route(*g_, peer, to, {});
    if (!near_part || !nic_part || class_of(*g_, *near_part, from_) != path_class::NVL ||
        class_of(*g_, *nic_part, peer) > path_class::PXB)
      continue;
    path way = detail::joined(*g_, *near_part, *nic_part);
    const bool wins =
        !best || best->rate < way.rate || (best->rate == way.rate && way.links.size() < best->links.size());
    if (wins) best = std::move(way);
  }
  // As in NCCL: when it is faster, or when the direct way would go through a CPU or the network.
  if (best && direct && !(direct->rate < best->rate) && class_of(*g_, *direct, from_) <= path_class::PXB)
    return std::nullopt;
  return best;
}

inline std::optional<path> routes::to(node_id to) const {
  auto direct = detail::path_from_marks(marks_, to);
  if (g_->at(from_).kind != node_kind::gpu || to == from_) return direct;
  const node_kind target = g_->at(to).kind;
  if (options_.nvb && target == node_kind::gpu) {
    auto helped = by_gpu(to);
    if (helped && (!direct || detail::better(*helped, *direct))) return helped;
  }
  if (options_.pxn && (target == node_kind::nic || target == node_kind::nic_port))
    if (auto helped = by_peer_nic(to, direct)) return helped;
  return direct;
}

inline std::optional<path> route(const graph& g, node_id from, node_id to, route_options options) {
  return routes(g, from, options, to).to(to);
}

inline path_rate expected_rate(const graph& g, node_id from, node_id to, route_options options) {
  return rate_of(g, route(g, from, to, options), from, to);
}

inline path_rate routes::rate(node_id to) const { return rate_of(*g_, this->to(to), from_, to); }

template <class>
path_rate rate_of(const graph& g, const std::optional<path>& way, node_id from, node_id to) {
  path_rate expected;
  const bool several = has_several_hosts(g);
  if (!way) {
    expected.why = "no path from " + label_of(g, from, several) + " to " + label_of(g, to, several);
    return expected;
  }
  expected.rate = way->rate;
  expected.limit = way->limit;
  expected.kind = class_of(g, *way, from);
  if (!way->limit) {
    expected.how = trust::derived;
    expected.why = "the same device: no link limits it";
    return expected;
  }
  expected.how = trust::measured;
  for (const link_id e : way->links)
    if (g.at(e).how > expected.how) expected.how = g.at(e).how;
  const link& limit = g.at(*way->limit);
  expected.why = to_string(way->rate) + ", limited by " + describe(g, *way->limit, several);
  if (limit.nominal && limit.current && limit.current->value < 0.99 * limit.nominal->value)
    expected.why += ", which runs at " + to_string(*limit.current) + " of " + to_string(*limit.nominal);
  for (const link_id e : way->links) {
    if (g.at(e).how != trust::assumed) continue;
    const bool is_limit = e == *way->limit;
    if (!expected.doubt.empty()) expected.doubt += "; ";
    expected.doubt += is_limit ? "this figure is assumed" : "the figure of " + describe(g, e, several) + " is assumed";
    if (!g.at(e).reason.empty()) expected.doubt += " (" + g.at(e).reason + ")";
  }
  if (!expected.doubt.empty()) expected.why += "; " + expected.doubt;
  return expected;
}

}}}  // namespace topocoll::v0::topo
