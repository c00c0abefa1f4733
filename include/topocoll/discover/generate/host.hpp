// SPDX-License-Identifier: Apache-2.0
#pragma once
// One host of a model as a fragment of the topology graph.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/discover/generate/model.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/address.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// How much of a host is generated.
enum class host_detail : std::uint8_t {
  automatic,  ///< `fabric` for several hosts whose GPUs are all joined by links of their own, else `full`
  full,       ///< NUMA domains, memories, PCIe switches, GPUs, NVSwitch, NICs, ports
  fabric      ///< GPUs, NVSwitch, NICs, ports; each GPU joined to its own NICs directly, at the PCIe rate
};

/// One host of a model, complete: its NIC ports are there but nothing is plugged in.
///
/// Keys start with `host` and a slash. PCI addresses are made up, in the order of the tree, and do not depend on `level`.
/// Every node and link says `trust::derived`, reason "described", but the links between sockets, which are assumed.
/// @return  `invalid_argument` when the model contradicts itself, or when `fabric` would leave GPUs without a way to
///          each other
/// Cost: O(nodes + links). A model whose hosts share an NVSwitch plane gives one host with a plane of its own.
template <class = void>
[[nodiscard]] result<topo::fragment> single_host(const host_model& model, std::string_view host = "node0",
                                                 host_detail level = host_detail::full);

/// Whether a model can be built, and a sentence with the parameter that forbids it.
template <class = void>
[[nodiscard]] result<void> check(const host_model& model);

/// True when links between GPUs alone join all GPUs of a host, so that PCIe can be left out of its picture.
template <class = void>
[[nodiscard]] bool joined_without_pcie(const host_model& model);

namespace detail {

/// Where the parts of one generated host lie: positions relative to its first node.
struct host_layout {
  std::uint32_t gpu = 0, nic = 0, port = 0;  ///< first of each; the others follow
  std::optional<std::uint32_t> nvswitch;     ///< absent when the plane is shared between hosts
  std::uint32_t nodes = 0;
};

/// Which of `wholes` equal parts item `i` of `count` belongs to, in order.
[[nodiscard]] constexpr std::uint32_t part_of(std::uint32_t i, std::uint32_t count, std::uint32_t wholes) {
  return static_cast<std::uint32_t>(std::uint64_t{i} * wholes / count);
}

/// The n-th bus that generated hosts use: 0x10 to 0xff in each domain.
[[nodiscard]] constexpr topo::pci_address bus(std::uint32_t n) {
  return {n / 240, static_cast<std::uint8_t>(0x10 + n % 240), 0, 0};
}

/// Builds hosts of one model; the keys of its nodes lack the host's name.
template <class = void>
class host_builder {
 public:
  host_builder(const host_model& model, host_detail level, bool own_plane)
      : m_(model), full_(level == host_detail::full) {
    const std::uint32_t switches = m_.switches();
    if (full_) {
      for (std::uint32_t s = 0; s < m_.sockets; ++s)
        add(topo::node_kind::cpu, "numa:" + std::to_string(s), "NUMA ", s, s);
      for (std::uint32_t s = 0; s < m_.sockets; ++s)
        add(topo::node_kind::host_memory, "memory:" + std::to_string(s), "memory ", s, s);
      for (std::uint32_t s = 0; s < switches; ++s)
        add(topo::node_kind::pcie_switch, pci_key(bus_of_switch(s)), "PCIe switch ", s, socket_of_switch(s));
    }
    layout_.gpu = count();
    for (std::uint32_t g = 0; g < m_.gpus; ++g) {
      add(topo::node_kind::gpu, pci_key(bus_of_gpu(g)), "GPU ", g, socket_of_gpu(g));
      if (m_.sm != 0) host_.nodes.back().facts.emplace_back("sm", std::to_string(m_.sm));
    }
    layout_.nic = count();
    for (std::uint32_t i = 0; i < m_.nics; ++i)
      add(topo::node_kind::nic, pci_key(bus_of_nic(i)), "mlx5_", i, socket_of_nic(i));
    layout_.port = count();
    for (std::uint32_t i = 0; i < m_.nics; ++i)
      add(topo::node_kind::nic_port, "net:mlx5_" + std::to_string(i) + "/1", "mlx5_", i, socket_of_nic(i));
    for (std::uint32_t i = 0; i < m_.nics; ++i) host_.nodes[layout_.port + i].name += "/1";
    if (m_.has_nvswitch() && own_plane) {
      layout_.nvswitch = count();
      add(topo::node_kind::nvswitch, "nvswitch", "NVSwitch", std::nullopt, std::nullopt);
    }
    layout_.nodes = count();

    if (full_)
      join_tree();
    else
      join_rails();
    for (std::uint32_t i = 0; i < m_.nics; ++i)
      join(layout_.nic + i, layout_.port + i, topo::link_kind::internal, m_.nic_rate);
    if (layout_.nvswitch)
      for (std::uint32_t g = 0; g < m_.gpus; ++g) join_plane(host_, layout_.gpu + g, *layout_.nvswitch);
    for (const peer_link& p : m_.mesh)
      if (p.a < m_.gpus && p.b < m_.gpus) {
        topo::link l = wire(layout_.gpu + p.a, layout_.gpu + p.b, m_.peer_kind, m_.nvlink_rate * p.links);
        l.generation = m_.nvlink_generation;
        l.lanes = p.links;
        host_.join(l);
      }
  }

  [[nodiscard]] const host_layout& layout() const { return layout_; }
  [[nodiscard]] const topo::fragment& host() const { return host_; }

  /// Joins a GPU to an NVSwitch plane, in any fragment.
  void join_plane(topo::fragment& f, std::uint32_t gpu, std::uint32_t plane) const {
    topo::link l = wire(gpu, plane, topo::link_kind::nvlink, m_.nvlink_rate * m_.nvlinks);
    l.generation = m_.nvlink_generation;
    l.lanes = m_.nvlinks;
    f.join(l);
  }

  /// A connection with all that generated links have in common.
  [[nodiscard]] static topo::link wire(std::uint32_t from, std::uint32_t to, topo::link_kind kind,
                                       bytes_per_second rate) {
    topo::link l;
    l.from = {from};
    l.to = {to};
    l.kind = kind;
    l.nominal = rate;
    l.capacity = rate;
    l.how = trust::derived;
    l.reason = "described";
    return l;
  }

 private:
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(host_.nodes.size()); }

  void add(topo::node_kind kind, std::string key, std::string name, std::optional<std::uint32_t> index,
           std::optional<std::uint32_t> numa) {
    topo::node n;
    n.kind = kind;
    n.key = std::move(key);
    n.name = std::move(name);
    if (index) n.name += std::to_string(*index);
    n.index = index;
    n.numa = numa;
    n.how = trust::derived;
    n.reason = "described";
    host_.add(std::move(n));
  }

  void join(std::uint32_t a, std::uint32_t b, topo::link_kind kind, bytes_per_second rate) {
    host_.join(wire(a, b, kind, rate));
  }

  void join_pcie(std::uint32_t a, std::uint32_t b) {
    topo::link l = wire(a, b, topo::link_kind::pcie, pcie_line_rate(m_.pcie_generation, m_.pcie_lanes));
    l.generation = m_.pcie_generation;
    l.lanes = m_.pcie_lanes;
    host_.join(l);
  }

  /// The whole tree: memories, sockets, PCIe.
  void join_tree() {
    const std::uint32_t first_switch = 2 * m_.sockets;
    for (std::uint32_t s = 0; s < m_.sockets; ++s) join(s, m_.sockets + s, topo::link_kind::memory, m_.memory_rate);
    for (std::uint32_t a = 0; a < m_.sockets; ++a)
      for (std::uint32_t b = a + 1; b < m_.sockets; ++b) {
        topo::link l = wire(a, b, topo::link_kind::cpu, m_.socket_rate);
        l.nominal.reset();
        l.how = trust::assumed;
        l.reason = "what peer traffic between sockets is taken to reach";
        host_.join(l);
      }
    for (std::uint32_t s = 0; s < m_.switches(); ++s) join_pcie(first_switch + s, socket_of_switch(s));
    for (std::uint32_t g = 0; g < m_.gpus; ++g) {
      if (m_.c2c_rate.value > 0)
        join(layout_.gpu + g, socket_of_gpu(g), topo::link_kind::c2c, m_.c2c_rate);
      else
        join_pcie(layout_.gpu + g, m_.switches() > 0 ? first_switch + switch_of_gpu(g) : socket_of_gpu(g));
    }
    for (std::uint32_t i = 0; i < m_.nics; ++i)
      join_pcie(layout_.nic + i, m_.switches() > 0 ? first_switch + switch_of_nic(i) : socket_of_nic(i));
  }

  /// GPUs and their own NICs, nothing between: GPU g has the NICs of its share, or shares one with its neighbours.
  void join_rails() {
    for (std::uint32_t k = 0; k < (m_.nics == 0 ? 0 : (m_.gpus > m_.nics ? m_.gpus : m_.nics)); ++k) {
      const std::uint32_t g = m_.gpus > m_.nics ? k : part_of(k, m_.nics, m_.gpus);
      const std::uint32_t i = m_.gpus > m_.nics ? part_of(k, m_.gpus, m_.nics) : k;
      join_pcie(layout_.gpu + g, layout_.nic + i);
    }
  }

  [[nodiscard]] std::uint32_t switch_of_gpu(std::uint32_t g) const { return g / m_.gpus_per_switch; }
  [[nodiscard]] std::uint32_t switch_of_nic(std::uint32_t i) const { return part_of(i, m_.nics, m_.switches()); }
  [[nodiscard]] std::uint32_t socket_of_switch(std::uint32_t s) const { return part_of(s, m_.switches(), m_.sockets); }
  [[nodiscard]] std::uint32_t socket_of_gpu(std::uint32_t g) const {
    return m_.switches() > 0 ? socket_of_switch(switch_of_gpu(g)) : part_of(g, m_.gpus, m_.sockets);
  }
  [[nodiscard]] std::uint32_t socket_of_nic(std::uint32_t i) const {
    return m_.switches() > 0 ? socket_of_switch(switch_of_nic(i)) : part_of(i, m_.nics, m_.sockets);
  }

  // Buses: for each switch its own, then those of its GPUs, then those of its NICs.
  [[nodiscard]] std::uint32_t nics_before_switch(std::uint32_t s) const {
    const std::uint32_t n = m_.switches();
    return static_cast<std::uint32_t>((std::uint64_t{s} * m_.nics + n - 1) / n);
  }
  [[nodiscard]] std::uint32_t bus_of_switch(std::uint32_t s) const {
    return s * (1 + m_.gpus_per_switch) + nics_before_switch(s);
  }
  [[nodiscard]] std::uint32_t bus_of_gpu(std::uint32_t g) const {
    if (m_.switches() == 0) return g;
    return bus_of_switch(switch_of_gpu(g)) + 1 + g % m_.gpus_per_switch;
  }
  [[nodiscard]] std::uint32_t bus_of_nic(std::uint32_t i) const {
    if (m_.switches() == 0) return m_.gpus + i;
    const std::uint32_t s = switch_of_nic(i);
    return bus_of_switch(s) + 1 + m_.gpus_per_switch + i - nics_before_switch(s);
  }
  [[nodiscard]] static std::string pci_key(std::uint32_t n) { return "pci:" + to_string(bus(n)); }

  host_model m_;
  bool full_;
  host_layout layout_;
  topo::fragment host_;
};

/// Appends one host; gives the position of its first node.
template <class = void>
std::uint32_t append_host(topo::fragment& to, const host_builder<>& builder, const std::string& host) {
  const auto first = static_cast<std::uint32_t>(to.nodes.size());
  for (const topo::node& part : builder.host().nodes) {
    topo::node& n = to.nodes.emplace_back(part);
    n.host = host;
    n.key.reserve(host.size() + 1 + part.key.size());
    n.key.assign(host).append(1, '/').append(part.key);
  }
  for (const topo::link& wire : builder.host().links) {
    topo::link& l = to.links.emplace_back(wire);
    l.from.value += first;
    l.to.value += first;
  }
  return first;
}

}  // namespace detail

template <class>
result<void> check(const host_model& m) {
  const std::string subject = "the host model '" + std::string(m.name) + "' ";
  const auto rate = [](bytes_per_second r) {
    return r.value > 0 && r.value < 1e15;
  };  // a petabyte per second is a typing mistake
  if (m.gpus == 0 || m.gpus > 1024)
    return fail(errc::invalid_argument, subject + "has " + std::to_string(m.gpus) + " GPUs", "give it 1 to 1024");
  if (m.nics > 1024)
    return fail(errc::invalid_argument, subject + "has " + std::to_string(m.nics) + " NICs", "give it 0 to 1024");
  if (m.sockets == 0 || m.sockets > 64)
    return fail(errc::invalid_argument, subject + "has " + std::to_string(m.sockets) + " sockets", "give it 1 to 64");
  if (m.gpus_per_switch > m.gpus)
    return fail(errc::invalid_argument, subject + "has " + std::to_string(m.gpus_per_switch) +
                                            " GPUs under each PCIe switch, but only " + std::to_string(m.gpus) +
                                            " GPUs");
  if (m.nvlinks > 1024)
    return fail(errc::invalid_argument, subject + "has " + std::to_string(m.nvlinks) + " NVLinks per GPU",
                "give it 0 to 1024");
  if ((m.nvlinks > 0 || !m.mesh.empty()) && !rate(m.nvlink_rate))
    return fail(errc::invalid_argument, subject + "has NVLinks without a rate between 0 and 1 PB/s");
  for (const peer_link& p : m.mesh)
    if (p.a == p.b || p.links == 0)
      return fail(errc::invalid_argument, subject + "wires GPU " + std::to_string(p.a) + " to GPU " +
                                              std::to_string(p.b) + " by " + std::to_string(p.links) + " links");
  if (m.domain_hosts == 0 || (m.domain_hosts > 1 && !m.has_nvswitch()))
    return fail(errc::invalid_argument, subject + "shares an NVSwitch plane between " + std::to_string(m.domain_hosts) +
                                            " hosts" +
                                            (m.domain_hosts > 0 ? ", but its GPUs have no links into one" : ""));
  if (pcie_line_rate(m.pcie_generation, m.pcie_lanes).value <= 0 || m.pcie_lanes > 32)
    return fail(errc::invalid_argument,
                subject + "has PCIe of generation " + std::to_string(m.pcie_generation) + " with " +
                    std::to_string(m.pcie_lanes) + " lanes",
                "generations are 1 to 7, lanes 1 to 32");
  if (m.c2c_rate.value != 0 && !rate(m.c2c_rate))
    return fail(errc::invalid_argument, subject + "has chip-to-chip links whose rate is not between 0 and 1 PB/s");
  if (m.sockets > 1 && !rate(m.socket_rate))
    return fail(errc::invalid_argument, subject + "has sockets joined at a rate that is not between 0 and 1 PB/s");
  if (!rate(m.memory_rate))
    return fail(errc::invalid_argument, subject + "has memory whose rate is not between 0 and 1 PB/s");
  if (m.nics > 0 && !rate(m.nic_rate))
    return fail(errc::invalid_argument, subject + "has NICs whose rate is not between 0 and 1 PB/s");
  return {};
}

template <class>
bool joined_without_pcie(const host_model& m) {
  if (m.gpus == 1 || m.has_nvswitch()) return true;
  std::vector<bool> reached(m.gpus, false);
  reached[0] = true;
  for (bool grew = true; grew;) {
    grew = false;
    for (const peer_link& p : m.mesh)
      if (p.a < m.gpus && p.b < m.gpus && reached[p.a] != reached[p.b]) reached[p.a] = reached[p.b] = grew = true;
  }
  for (const bool r : reached)
    if (!r) return false;
  return true;
}

namespace detail {

/// The level that is built; a failure where it would take GPUs apart.
template <class = void>
result<host_detail> settled(const host_model& m, host_detail level, std::uint32_t hosts) {
  const bool joined = joined_without_pcie(m);
  if (level == host_detail::automatic) return hosts > 1 && joined ? host_detail::fabric : host_detail::full;
  if (level == host_detail::fabric && !joined)
    return fail(errc::invalid_argument,
                "the GPUs of the host model '" + std::string(m.name) +
                    "' reach each other through PCIe only, which detail=fabric leaves out",
                "use detail=full");
  return level;
}

}  // namespace detail

template <class>
result<topo::fragment> single_host(const host_model& model, std::string_view host, host_detail level) {
  if (auto ok = check(model); !ok) return ok.error();
  if (host.empty()) return fail(errc::invalid_argument, "a generated host needs a name");
  const auto settled = detail::settled(model, level, 1);
  if (!settled) return settled.error();
  topo::fragment f;
  f.source = "generated " + std::string(model.name);
  const detail::host_builder<> builder(model, *settled, true);
  detail::append_host(f, builder, std::string(host));
  return f;
}

}}  // namespace topocoll::v0
