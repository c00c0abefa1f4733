// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the topology of a described cluster: hosts, leaves, spines, core switches, planted faults.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/detail/lay_ranks.hpp>
#include <topocoll/discover/generate/faults.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/discover/generate/shape.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Builds a cluster.
///
/// Nodes come host by host, then shared NVSwitch planes ("nvswitch:0"), leaves ("leaf:0"), spines ("spine:0") and core
/// switches ("core:0"). Leaves carry the facts "pod" and, if rail-optimised, "rail"; spines under core switches "pod".
/// Everything says `trust::derived`, reason "described"; planted faults say "planted fault" and are listed as findings.
/// @return  what `shape_of` refuses; `not_found` for a fault of a part that is not there
/// Cost: O(nodes + links), about 0.3 kB of memory for each.
template <class = void>
[[nodiscard]] result<topo::fragment> generate(const fabric_options& options);

namespace detail {

template <class = void>
topo::node network_switch(topo::node_kind kind, const char* word, std::uint32_t index) {
  topo::node n;
  n.kind = kind;
  n.key = std::string(word) + ':' + std::to_string(index);
  n.name = std::string(word) + ' ' + std::to_string(index);
  n.index = index;
  n.how = trust::derived;
  n.reason = "described";
  return n;
}

/// `rate * count / by / parts`; one rounding, in the division, as long as the products fit into 53 bits.
template <class = void>
bytes_per_second shared_rate(bytes_per_second rate, std::uint64_t count, rational by, double parts) {
  return {rate.value * static_cast<double>(count) * static_cast<double>(by.denominator()) /
          (static_cast<double>(by.numerator()) * parts)};
}

/// Adds leaves, spines and core switches, and plugs the hosts in.
template <class = void>
void add_network(topo::fragment& f, const fabric_options& o, const fabric_shape& s, const host_layout& host,
                 const fabric_layout& at) {
  for (std::uint32_t l = 0; l < s.leaves; ++l) {
    topo::node n = network_switch(topo::node_kind::leaf, "leaf", l);
    n.facts.emplace_back("pod", std::to_string(l / s.leaves_per_pod()));
    if (s.rail_optimised) n.facts.emplace_back("rail", std::to_string(l % s.rails));
    f.add(std::move(n));
  }
  for (std::uint32_t p = 0; p < s.spines; ++p) {
    topo::node n = network_switch(topo::node_kind::spine, "spine", p);
    if (s.cores > 0) n.facts.emplace_back("pod", std::to_string(p / s.spines_per_leaf()));
    f.add(std::move(n));
  }
  for (std::uint32_t c = 0; c < s.cores; ++c) f.add(network_switch(topo::node_kind::core_switch, "core", c));

  const auto plug = [&](std::uint32_t a, std::uint32_t b, bytes_per_second rate) {
    f.join(host_builder<>::wire(a, b, o.network, rate));
  };
  std::uint32_t first_host = 0;
  for (std::uint32_t g = 0; g < s.split.size(); ++g) {
    for (std::uint32_t h = first_host; h < first_host + s.split[g]; ++h)
      for (std::uint32_t i = 0; i < s.rails; ++i)
        plug(h * host.nodes + host.port + i, at.leaf + (s.rail_optimised ? g * s.rails + i : g), o.host.nic_rate);
    first_host += s.split[g];
  }
  if (s.spines == 0) return;
  const std::uint32_t reached = s.spines_per_leaf();
  for (std::uint32_t l = 0; l < s.leaves; ++l) {
    const std::uint64_t cables = s.rail_optimised ? s.split[l / s.rails] : std::uint64_t{s.split[l]} * s.rails;
    const bytes_per_second up = shared_rate(o.host.nic_rate, cables, o.oversubscription, reached);
    const std::uint32_t first = s.cores == 0 ? 0 : l / s.leaves_per_pod() * reached;
    for (std::uint32_t p = first; p < first + reached; ++p) plug(at.leaf + l, at.spine + p, up);
  }
  if (s.cores == 0) return;
  for (std::uint32_t p = 0; p < s.spines; ++p) {
    const std::uint32_t pod = p / reached;
    std::uint64_t cables = 0;  // below the pod's leaves
    for (std::uint32_t l = pod * s.leaves_per_pod(); l < (pod + 1) * s.leaves_per_pod(); ++l)
      cables += s.rail_optimised ? s.split[l / s.rails] : std::uint64_t{s.split[l]} * s.rails;
    const bytes_per_second down = shared_rate(o.host.nic_rate, cables, o.oversubscription, reached);
    const bytes_per_second up = shared_rate(down, 1, o.core_oversubscription, s.cores);
    for (std::uint32_t c = 0; c < s.cores; ++c) plug(at.spine + p, at.core + c, up);
  }
}

/// A NIC that its PCIe slot cannot feed is worth a word: the network's figures cannot be reached.
template <class = void>
void note_slow_slots(topo::fragment& f, const host_model& m) {
  const bytes_per_second slot = pcie_line_rate(m.pcie_generation, m.pcie_lanes);
  if (m.nics == 0 || slot >= m.nic_rate) return;
  finding n;
  n.level = severity::warning;
  n.where = "every NIC";
  n.what = "NICs of " + to_string(m.nic_rate) + " sit in PCIe slots of " + to_string(slot);
  n.evidence = "PCIe generation " + std::to_string(m.pcie_generation) + ", " + std::to_string(m.pcie_lanes) + " lanes";
  n.next_step = "raise pcie or lanes, or lower nic_rate, if the machine is better than that";
  f.findings.push_back(std::move(n));
}

}  // namespace detail

template <class>
result<topo::fragment> generate(const fabric_options& o) {
  const auto shape = shape_of(o);
  if (!shape) return shape.error();
  const fabric_shape& s = *shape;
  const detail::host_builder<> builder(o.host, s.detail, o.host.domain_hosts == 1);
  const detail::host_layout& host = builder.layout();
  const std::uint32_t planes = o.host.domain_hosts == 1 ? 0 : (s.nodes + o.host.domain_hosts - 1) / o.host.domain_hosts;
  detail::fabric_layout at;
  at.plane = s.nodes * host.nodes;
  at.leaf = at.plane + planes;
  at.spine = at.leaf + s.leaves;
  at.core = at.spine + s.spines;
  if (auto ok = detail::check_faults(o, s); !ok) return ok.error();

  topo::fragment f;
  f.source = "generated " + std::to_string(s.nodes) + " x " + std::string(o.host.name);
  f.nodes.reserve(std::size_t{at.core} + s.cores);
  f.links.reserve(std::size_t{s.nodes} *
                      (builder.host().links.size() + 2 * s.rails + (planes > 0 ? 2 * o.host.gpus : 0)) +
                  2 * (std::size_t{s.leaves} * s.spines_per_leaf() + std::size_t{s.spines} * s.cores));
  for (std::uint32_t h = 0; h < s.nodes; ++h) detail::append_host(f, builder, "node" + std::to_string(h));
  for (std::uint32_t p = 0; p < planes; ++p) f.add(detail::network_switch(topo::node_kind::nvswitch, "nvswitch", p));
  if (planes > 0)
    for (std::uint32_t h = 0; h < s.nodes; ++h)
      for (std::uint32_t g = 0; g < o.host.gpus; ++g)
        builder.join_plane(f, h * host.nodes + host.gpu + g, at.plane + h / o.host.domain_hosts);
  if (s.leaves > 0) detail::add_network(f, o, s, host, at);
  detail::note_slow_slots(f, o.host);
  if (o.order) detail::write_ranks(f, o, s, host);
  if (!o.faults.empty()) detail::apply_faults(f, o, host, at);
  if (o.order && !o.faults.empty()) detail::close_gaps(f);
  return f;
}

}}  // namespace topocoll::v0
