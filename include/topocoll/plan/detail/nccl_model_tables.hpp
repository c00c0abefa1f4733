// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables and formulas of NCCL's tuning model, and its speed tables.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <topocoll/plan/nccl_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

// Order of protocols: LL, LL128, Simple. Microseconds and GB/s. Source: NCCL 2.28.9, src/graph/tuning.cc.
inline constexpr double nccl_tree_base[] = {6.8, 14.0, 8.4};
inline constexpr double nccl_ring_base[] = {6.6, 14.0, 8.4};
inline constexpr double nccl_tree_hop[][3] = {{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}};  // NVLink, PCI, NET
inline constexpr double nccl_ring_hop[][3] = {{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}};
inline constexpr double nccl_nvls_hop = 25, nccl_nvls_tree_net_hop = 20.9;
// Columns: 1, 2, 4 or more nodes; rows: Volta, Ampere, Hopper, Blackwell.
inline constexpr double nccl_ll_most[][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
inline constexpr double nccl_ring_ll128[][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}};
inline constexpr double nccl_tree_ll128[][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
inline constexpr double nccl_tree_most[][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
inline constexpr double nccl_nvls_tree_most[][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}};
/// What is left of a tree's bandwidth, by log2(bytes / 64).
inline constexpr double nccl_tree_correction[][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

// Speeds of a channel that the search tries, GB/s. Source: src/graph/search.cc.
inline constexpr double nccl_speeds_intra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
inline constexpr double nccl_speeds_intra_90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
inline constexpr double nccl_speeds_intra_100[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
inline constexpr double nccl_speeds_inter[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                               7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
inline constexpr double nccl_speeds_inter_90[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                                  15, 12, 6,  3,  2.4, 1.2, .24, .12};
inline constexpr double nccl_speeds_inter_100[] = {96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                                   17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12};

[[nodiscard]] inline std::span<const double> nccl_speeds(nccl_arch arch, bool inter) {
  switch (arch) {
    case nccl_arch::blackwell:
      return inter ? std::span<const double>(nccl_speeds_inter_100) : std::span<const double>(nccl_speeds_intra_100);
    case nccl_arch::hopper:
      return inter ? std::span<const double>(nccl_speeds_inter_90) : std::span<const double>(nccl_speeds_intra_90);
    case nccl_arch::ampere:
    case nccl_arch::volta: break;
  }
  return inter ? std::span<const double>(nccl_speeds_inter) : std::span<const double>(nccl_speeds_intra);
}

[[nodiscard]] constexpr std::uint32_t floor_log2(std::uint64_t x) {
  std::uint32_t n = 0;
  while (x >>= 1U) ++n;
  return n;
}

/// The input with what its formulas share.
struct nccl_terms {
  const nccl_machine& m;
  double ranks, nodes;
  std::size_t arch, scale, ll_row;
  std::uint32_t channels;  ///< NCCL takes the least over its graphs

  explicit nccl_terms(const nccl_machine& machine)
      : m(machine),
        ranks(machine.ranks),
        nodes(machine.nodes),
        arch(static_cast<std::size_t>(machine.arch)),
        scale(machine.nodes <= 2 ? machine.nodes - 1 : 2),
        ll_row(machine.nodes == 1 ? arch
               : machine.amd_cpu  ? 1
                                  : 0),
        channels(machine.tree.count > 0 ? std::min(machine.ring.count, machine.tree.count) : machine.ring.count) {}

  [[nodiscard]] double bus(const nccl_channels& c) const { return channels * (m.nodes <= 2 ? c.intra : c.inter); }
  [[nodiscard]] double nic(std::size_t p) const { return m.nic_latency.value * 1e6 * (p == 2 ? 2 : 1); }

  [[nodiscard]] double ring(bool sum, std::size_t p, double size) const {
    const double all = bus(m.ring);
    const double rate = p == 0   ? std::min(nccl_ll_most[ll_row][scale], all / 2)
                        : p == 1 ? std::min(0.92 * all, channels * nccl_ring_ll128[arch][scale])
                                 : all;
    const double steps = (sum ? 2 : 1) * (ranks - 1), across = nodes > 1 ? (sum ? 2 : 1) * (nodes - 1) : 0;
    const double overhead = nodes > 1 ? (m.amd_cpu ? 2.0 : 1.0) * (p == 2 ? 3 : 1) : 0;
    // One GPU in each node: the tree's latency of the network.
    const double net = (m.ranks == m.nodes ? nccl_tree_hop[2][p] : nccl_ring_hop[2][p]) + nic(p);
    double latency = nccl_ring_base[p] +
                     (steps - across) * std::max(nccl_ring_hop[m.ring.over_nvlink ? 0 : 1][p], overhead) + across * net;
    if (sum && p == 2 && nodes > 1 && size / (channels * ranks) >= 64)
      latency *= m.arch == nccl_arch::volta ? 1.9 : 1.4;
    return latency + size / (1e3 * rate * ranks / steps);
  }

  [[nodiscard]] double tree(std::size_t p, double size) const {
    const double all = bus(m.tree);
    double rate = std::min(0.92 * all, channels * nccl_tree_most[arch][scale]);
    if (p == 0) rate = std::min(rate / 3.8, nccl_ll_most[ll_row][scale]);
    if (p == 1) rate = std::min(rate * (m.nodes == 1 ? 7.0 / 9 : 120.0 / 128), channels * nccl_tree_ll128[arch][scale]);
    if (m.tree.tree_pattern) rate *= 0.85;
    const std::uint32_t place = floor_log2(static_cast<std::uint64_t>(size) / 64);
    const double left = place < 23 ? nccl_tree_correction[p][place] : 1;
    const double latency =
        nccl_tree_base[p] + 2 * ((m.ranks / m.nodes - 1) * nccl_tree_hop[m.tree.over_nvlink ? 0 : 1][p] +
                                 floor_log2(m.nodes) * (nccl_tree_hop[2][p] + nic(p)));
    return latency + size / (1e3 * rate * 0.5 * left);
  }

  /// NVLS in one node, NVLS tree across several.
  [[nodiscard]] double nvls(double size) const {
    const double heads = m.nvls.count;
    const double efficiency = m.arch == nccl_arch::blackwell ? 0.74 : 0.85;
    const double intra = m.nvls.intra * efficiency * (heads - 1) / heads * 2;
    double head = std::min(intra, m.nvls.inter * (m.nodes == 2 ? 2 : 1));
    double latency = nccl_nvls_hop;
    if (m.nodes > 1) {
      head = std::min(head, nccl_nvls_tree_most[arch][scale]);
      latency += 2 * floor_log2(m.nodes) * (nccl_nvls_tree_net_hop + nic(2));
    }
    return latency + size / (1e3 * heads * head * ranks / (2 * (ranks - 1)));
  }
};

}  // namespace detail

template <class>
result<nccl_prediction> nccl_predict(const nccl_machine& machine, collective_kind collective, bytes size) {
  if (machine.ranks < 2 || machine.nodes == 0 || machine.nodes > machine.ranks)
    return fail(errc::invalid_argument, "NCCL's model needs at least two ranks, and a rank in each node");
  if (machine.ring.count == 0 || !(machine.ring.intra > 0))
    return fail(errc::invalid_argument, "NCCL's model needs the channels of a ring");
  const bool sum = collective == collective_kind::all_reduce;
  if (!sum && collective != collective_kind::all_gather && collective != collective_kind::reduce_scatter)
    return fail(errc::unsupported, "NCCL's model is not kept for " + std::string(to_string(collective)));
  const detail::nccl_terms t(machine);
  const double bytes_in = static_cast<double>(size.value);
  nccl_prediction best;
  double least = __builtin_huge_val();
  const auto offer = [&](double us, nccl_algorithm a, std::size_t p) {
    if (!(us < least)) return;
    least = us;
    best = {{us * 1e-6}, a, static_cast<library_protocol>(p)};
  };
  for (std::size_t p = 0; p < 3; ++p) {
    if (p != 1 || machine.ring.ll128) offer(t.ring(sum, p, bytes_in), nccl_algorithm::ring, p);
    if (sum && machine.tree.count > 0 && (p != 1 || machine.tree.ll128))
      offer(t.tree(p, bytes_in), nccl_algorithm::tree, p);
  }
  if (sum && machine.nvls.count > 1 && machine.arch >= nccl_arch::hopper)
    offer(t.nvls(bytes_in), machine.nodes > 1 ? nccl_algorithm::nvls_tree : nccl_algorithm::nvls, 2);
  return best;
}

template <class>
result<nccl_machine> nccl_machine_of(const machine_summary& machine) {
  if (const auto ok = detail::check_model_input(machine, collective_kind::all_reduce); !ok) return ok.error();
  nccl_machine n;
  n.ranks = machine.ranks;
  n.nodes = machine.domains;
  const bool pcie = machine.fabric == gpu_fabric::pcie_host || machine.fabric == gpu_fabric::pcie_switch;
  n.arch = machine.xgmi || pcie      ? nccl_arch::ampere
           : machine.generation >= 5 ? nccl_arch::blackwell
           : machine.generation == 4 ? nccl_arch::hopper
           : machine.generation == 3 ? nccl_arch::ampere
           : machine.generation == 0 ? nccl_arch::ampere
                                     : nccl_arch::volta;
  const double local = machine.ranks_per_domain();
  // Payload over line rate: 18 of 20, 20 of 25, 20 of 25, 20.6 of 25, 40.1 of 50; XGMI 48 of 64; PCIe 24 of 31.5, half
  // of it where every byte passes the host twice. Source: src/graph/topo.h; RCCL for XGMI.
  constexpr double share[] = {0.8, 0.9, 0.8, 0.8, 20.6 / 25, 40.1 / 50};
  double links = machine.gpu_links.value / 1e9;
  if (machine.fabric == gpu_fabric::mesh && machine.gpus_in_mesh > 2 && machine.gpus_in_mesh <= 8)
    links *= (local - 1) / (machine.gpus_in_mesh - 1);
  links *= machine.xgmi                                ? 48.0 / 64
           : machine.fabric == gpu_fabric::pcie_host   ? 12 / 31.5
           : machine.fabric == gpu_fabric::pcie_switch ? 24 / 31.5
                                                       : share[machine.generation < 6 ? machine.generation : 5];
  const bool alone = machine.fabric == gpu_fabric::none || local <= 1;
  const bool across = machine.domains > 1;
  // A ring that leaves the node at a NIC is open: it crosses one pair of GPUs less.
  if (across && local > 1) links *= local / (local - 1);
  const double nic = machine.nic_rate.value / 1e9;
  double best = 0;
  constexpr double rounding = 1e-9;
  for (const double speed : detail::nccl_speeds(n.arch, across)) {
    if (across && speed < 0.49 * std::min(nic, detail::nccl_speeds(n.arch, true).front())) break;  // as the search
    double fit = alone ? 32 : links / speed + rounding;
    if (across)
      fit = std::min(fit, machine.nics * static_cast<double>(static_cast<std::uint32_t>(nic / speed + rounding)));
    const auto count = static_cast<std::uint32_t>(std::min(fit, 32.0));
    if (count * speed <= best + rounding) continue;
    best = count * speed;
    n.ring.count = count;
    n.ring.intra = n.ring.inter = speed;
  }
  if (n.ring.count == 0)
    return fail(errc::unsupported, "the links are slower than the slowest channel that NCCL tries");
  if (!across && n.ring.intra >= 25 && n.ring.count <= 16 &&
      (n.arch < nccl_arch::hopper || n.ring.intra >= 50 || n.ring.count <= 4)) {
    n.ring.count *= 2;
    n.ring.intra /= 2;
    n.ring.inter = n.ring.intra;
  }
  n.ring.over_nvlink = !pcie;
  n.ring.ll128 = !pcie && !machine.xgmi;
  n.tree = n.ring;
  if (machine.multicast && machine.fabric == gpu_fabric::nvswitch) {
    const auto heads = static_cast<std::uint32_t>(std::min(local, 32.0));
    const double line = machine.gpu_links.value / 1e9 * share[machine.generation < 6 ? machine.generation : 5];
    for (const double speed : detail::nccl_speeds(n.arch, across)) {
      if (across ? speed > nic + rounding || heads * speed * (local - 1) / local > line : speed * (heads + 1) > line)
        continue;
      n.nvls.count = heads;
      n.nvls.intra = speed;
      n.nvls.inter = across ? speed : std::min(2 * speed, detail::nccl_speeds(n.arch, false).front());
      break;
    }
  }
  return n;
}

}}}  // namespace topocoll::v0::plan
