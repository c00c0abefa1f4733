// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arithmetic of the library model: one candidate for each algorithm and protocol.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/library_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Sizes that behave alike: up to 64 KiB, below 1 MiB, to 64 MiB, below 1 GiB, from 1 GiB.
[[nodiscard]] constexpr std::size_t band_number(bytes size) {
  const std::uint64_t b = size.value;
  return b <= (std::uint64_t{1} << 16U)   ? 0
         : b < (std::uint64_t{1} << 20U)  ? 1
         : b <= (std::uint64_t{1} << 26U) ? 2
         : b < (std::uint64_t{1} << 30U)  ? 3
                                          : 4;
}

/// Medians of |predicted / measured - 1| (time up to 64 KiB, bus bandwidth above) over published healthy measurements, each
/// system predicted by constants fitted without it: docs/results/model-error.md. Where fewer than three systems speak, the
/// figure of all.
struct spread_row {
  double share[5];  ///< by `band_number`
};
inline constexpr spread_row any_spread{{0.20, 0.19, 0.17, 0.053, 0.019}};
// Inside a domain.
inline constexpr spread_row nvlink3_spread{{0.33, 0.17, 0.17, 0.014, 0.007}};
inline constexpr spread_row nvlink4_spread{{0.83, 0.07, 0.07, 0.011, 0.006}};
inline constexpr spread_row nvlink5_spread{{0.23, 0.12, 0.093, 0.058, 0.025}};
inline constexpr spread_row xgmi_spread{{0.44, 0.42, 0.18, 0.015, 0.009}};
/// PCIe through the host: the machines of which anything is known lie between half and twice the model.
inline constexpr spread_row pcie_spread{{0.5, 0.5, 0.5, 0.56, 0.56}};
// Across a network.
inline constexpr spread_row infiniband_spread{{0.10, 0.16, 0.15, 0.08, 0.05}};
inline constexpr spread_row roce_spread{{0.38, 0.20, 0.16, 0.06, 0.03}};
inline constexpr spread_row tcp_spread{{0.5, 0.5, 1.96, 0.29, 0.28}};
inline constexpr spread_row alone_spread{{0.53, 0.26, 0.27, 0.17, 0.19}};

template <class = void>
[[nodiscard]] double spread_of(const machine_summary& m, bytes size) {
  const spread_row* row = &any_spread;
  if (m.domains > 1) {
    switch (m.network) {
      case network_kind::infiniband: row = &infiniband_spread; break;
      case network_kind::roce: row = &roce_spread; break;
      case network_kind::gpu_direct_tcp:
      case network_kind::host_copies: row = &tcp_spread; break;
      case network_kind::efa:
      case network_kind::none: break;
    }
    if (m.ranks == m.domains && row != &tcp_spread) row = &alone_spread;
  } else if (m.fabric == gpu_fabric::pcie_host || m.fabric == gpu_fabric::pcie_switch) {
    row = &pcie_spread;
  } else if (m.xgmi) {
    row = &xgmi_spread;
  } else if (m.generation == 3) {
    row = &nvlink3_spread;
  } else if (m.generation == 4) {
    row = &nvlink4_spread;
  } else if (m.generation == 5) {
    row = &nvlink5_spread;
  }
  return row->share[band_number(size)];
}

/// Rates and hops of one machine with one set of constants. Times in microseconds, rates in bytes per microsecond.
struct model_terms {
  using p = model_parameter;

  double ranks = 1, domains = 1, local = 1;  ///< local: ranks of a domain
  double line = 0;                           ///< line rate of a GPU's links
  std::array<double, 3> link{}, net{};       ///< ring payload of a GPU's links, of a domain's NICs; by protocol
  std::array<double, 3> hop{}, net_hop{};    ///< by protocol
  double start = 0;                          ///< launch, and the network's if there is one
  double fill_link = 0, fill_tree = 0, fill_ring = 0, fill_limit = 1;

  /// What a pipeline loses to its pieces. (<cmath> would cost 6,000 lines.)
  [[nodiscard]] double fill(double overhead, double transfer) const {
    return 2 * __builtin_sqrt(overhead * transfer * fill_limit / (transfer + fill_limit));
  }
};

template <class = void>
[[nodiscard]] model_parameter payload_of(const machine_summary& m) {
  using p = model_parameter;
  switch (m.fabric) {
    case gpu_fabric::bridge: return p::nvlink_bridge;
    case gpu_fabric::pcie_switch: return p::pcie_switch;
    case gpu_fabric::none:
    case gpu_fabric::pcie_host: return p::pcie_host;
    case gpu_fabric::mesh:
    case gpu_fabric::nvswitch: break;
  }
  if (m.xgmi) return p::xgmi;
  constexpr p by_generation[] = {p::nvlink3, p::nvlink1, p::nvlink2, p::nvlink3, p::nvlink4, p::nvlink5};
  return by_generation[m.generation < 6 ? m.generation : 5];
}

/// Payload share and hop of a network.
struct network_terms {
  model_parameter share, hop;
};
[[nodiscard]] inline network_terms terms_of(network_kind n) {
  using p = model_parameter;
  switch (n) {
    case network_kind::infiniband: return {p::infiniband, p::infiniband_hop};
    case network_kind::efa: return {p::efa, p::efa_hop};
    case network_kind::gpu_direct_tcp: return {p::tcpx, p::tcpx_hop};
    case network_kind::host_copies: return {p::socket_net, p::socket_hop};
    case network_kind::none:
    case network_kind::roce: break;
  }
  return {p::roce, p::roce_hop};
}

template <class = void>
[[nodiscard]] model_terms terms_of(const machine_summary& m, const run_conditions& run, const model_constants& k) {
  using p = model_parameter;
  model_terms t;
  t.ranks = m.ranks;
  t.domains = m.domains;
  t.local = m.ranks_per_domain();
  t.line = m.gpu_links.value / 1e6;
  const bool alone = m.fabric == gpu_fabric::none || t.local <= 1;
  const bool pcie = m.fabric == gpu_fabric::pcie_switch || m.fabric == gpu_fabric::pcie_host;
  if (alone) {
    t.link = {1e30, 1e30, 1e30};
  } else {
    double line = t.line;
    if (m.fabric == gpu_fabric::mesh && m.gpus_in_mesh > 2 && m.gpus_in_mesh <= 8) {
      // Rings over n of N GPUs: n - 1 links of each are in use; one more ring fits when each is cut open at a NIC.
      const double open = m.domains > 1 && t.local > 2 ? 1 : 0;
      line *= (t.local - 1 + open) / (m.gpus_in_mesh - 1);
    }
    const double rate = line * k[payload_of(m)];
    t.link = {rate * k[p::ll_share], rate * k[p::ll128_share], rate};
    const double hop = k[pcie ? p::pcie_hop : p::nvlink_hop];
    t.hop = {hop, hop * k[p::ll128_hop], hop * k[p::simple_hop]};
    t.fill_link = k[p::fill_nvlink];
  }
  t.start = k[p::launch];
  if (run.from_framework)
    t.start += k[p::framework_call];
  else if (m.domains == 1 && !m.xgmi) {
    // A process for all GPUs of a host launches on one after the other; nobody does that across hosts.
    const double others = std::min(t.local, 8.0) - 1;
    const double share = run.launch == launch_mode::one_process       ? 1
                         : run.launch == launch_mode::process_per_gpu ? 0
                                                                      : 0.5;
    t.start += share * k[p::group_launch] * others;
  }
  if (m.domains > 1) {
    const network_terms n = terms_of(m.network);
    double rate = m.nics * m.nic_rate.value / 1e6 * k[n.share];
    if (alone) rate *= k[p::single_nic];
    if (m.hosts > m.domains) rate = std::min(rate, k[p::domain_network] * 1e3);
    t.net = {rate * k[p::ll_net_share], rate * k[p::ll128_share], rate};
    const double hop = k[n.hop];
    t.net_hop = {hop, hop * k[p::ll128_net_hop], hop * k[p::simple_net_hop]};
    t.fill_tree = k[p::fill_tree_net] * hop;
    t.fill_ring = k[p::fill_ring_net] * hop;
    t.start += k[p::network_start];
  } else {
    t.net = {1e30, 1e30, 1e30};
  }
  t.fill_limit = k[p::fill_limit];
  return t;
}

/// Calls `offer(algorithm, protocol, time, on links, on network, in switches)` for each way; times in microseconds.
template <class Offer>
void each_way(const machine_summary& m, collective_kind collective, double size, const run_conditions& run,
              const model_constants& k, const Offer& offer) {
  using p = model_parameter;
  using a = library_algorithm;
  const model_terms t = terms_of(m, run, k);
  const bool sum = collective == collective_kind::all_reduce;
  const bool across = m.domains > 1;
  const double passes = sum ? 2 : 1;
  const double ring_bytes = passes * (t.ranks - 1) / t.ranks * size;
  const double tree_up = m.domains == 2 ? size : 2 * size;  // out of the busiest domain
  const double levels = across ? __builtin_log2(t.domains) : 0;

  if (run.own_kernels) {
    const double once = k[p::kernel_start];
    const double rate = t.link[2];
    const double parts = sum ? 1 : 1 / t.ranks;
    const double sent = (t.ranks - 1) * parts * size;
    if (!across) {
      offer(a::direct, library_protocol::ll, once + sent / rate, sent / rate, 0, 0);
      offer(a::direct, library_protocol::simple, 2 * once + ring_bytes / rate, ring_bytes / rate, 0, 0);
    } else {
      const double out = (t.domains - 1) / t.domains * passes * size / t.net[2];
      const double first = sent / t.net[2];
      offer(a::direct, library_protocol::ll, once + 2 * t.net_hop[0] + first, 0, first, 0);
      offer(a::direct, library_protocol::simple, 3 * once + t.net_hop[2] + std::max(ring_bytes / rate, out),
            ring_bytes / rate, out, 0);
    }
    return;
  }

  for (std::size_t i = 0; i < 3; ++i) {
    const auto protocol = static_cast<library_protocol>(i);
    {
      const double on_links = ring_bytes / t.link[i], on_net = ring_bytes / t.net[i];
      const double transfer = std::max(on_links, on_net);
      const double net_steps = across ? passes * (t.domains - 1) : 0;
      const double hops = (passes * (t.ranks - 1) - net_steps) * t.hop[i] + net_steps * t.net_hop[i];
      // The own part of an all-gather is copied inside GPU memory.
      const double copy =
          collective == collective_kind::all_gather && t.line > 0 ? size / t.ranks / (t.line * k[p::local_copy]) : 0;
      offer(a::ring, protocol, t.start + hops + transfer + t.fill(t.fill_link + t.fill_ring, transfer) + copy, on_links,
            on_net, 0);
    }
    if (sum) {
      const double on_links = 2 * (t.ranks - 1) / t.ranks * size / (t.link[i] * k[p::tree]);
      const double on_net = across ? tree_up / (t.net[i] * k[p::tree]) : 0;
      const double transfer = std::max(on_links, on_net);
      const double hops = 2 * ((t.local - 1) * t.hop[i] + levels * t.net_hop[i]);
      offer(a::tree, protocol, t.start + hops + transfer + t.fill(t.fill_link + t.fill_tree, transfer), on_links,
            on_net, 0);
    }
  }
  // NCCL takes NVLS from five GPUs of a domain on: by its own model the ring is faster with four.
  if (sum && m.multicast && m.fabric == gpu_fabric::nvswitch && t.local > 4) {
    double in_switch = size * (1 + 1 / t.local) / (t.line * k[p::nvls_link]);
    if (m.generation >= 5) in_switch = std::max(in_switch, size / (t.line * k[p::nvls5_switch]));
    const double piece = k[m.generation >= 5 ? p::fill_nvls5 : p::fill_nvls4] * t.local / 8;
    const double gather = k[p::nvls_per_gpu] * t.local;
    if (!across) {
      offer(a::nvls, library_protocol::simple,
            t.start + k[p::nvls_start] + gather + in_switch + t.fill(piece, in_switch), 0, 0, in_switch);
    } else {
      in_switch /= k[p::nvls_across];
      const double on_net = tree_up / (m.domains == 2 ? 1 : k[p::tree_net]) / t.net[2];
      const double transfer = std::max(in_switch, on_net);
      const double hops = k[p::nvls_tree_start] + gather + 2 * levels * t.net_hop[2];
      offer(a::nvls_tree, library_protocol::simple, t.start + hops + transfer + t.fill(piece + t.fill_tree, transfer),
            0, on_net, in_switch);
    }
  }
  if (sum && m.xgmi && !across && m.fabric == gpu_fabric::mesh) {  // RCCL's kernels that read from all peers at once
    const double start = t.start, rate = t.link[2];
    const double one = (t.ranks - 1) * size / rate, two = ring_bytes / rate;
    offer(a::direct, library_protocol::ll, start + k[p::xgmi_exchange] + one, one, 0, 0);
    offer(a::direct, library_protocol::simple, start + 2 * k[p::xgmi_exchange] + two + t.fill(k[p::fill_xgmi], two),
          two, 0, 0);
  }
}

template <class = void>
[[nodiscard]] result<void*> check_model_input(const machine_summary& m, collective_kind collective) {
  if (m.ranks == 0) return fail(errc::invalid_argument, "a prediction needs at least one rank");
  if (m.domains == 0 || m.domains > m.ranks)
    return fail(errc::invalid_argument,
                std::to_string(m.ranks) + " ranks cannot be spread over " + std::to_string(m.domains) + " domains");
  if (collective != collective_kind::all_reduce && collective != collective_kind::all_gather &&
      collective != collective_kind::reduce_scatter)
    return fail(errc::unsupported, "the library model has no figures for " + std::string(to_string(collective)),
                "ask for all_reduce, all_gather or reduce_scatter");
  if (m.domains > 1 && (m.network == network_kind::none || m.nics == 0 || !(m.nic_rate.value > 0)))
    return fail(errc::unsupported,
                "the machine has " + std::to_string(m.domains) + " domains, but nobody tells what joins them",
                "describe kind, number and rate of the NICs");
  if (m.domains < m.ranks && (m.fabric == gpu_fabric::none || !(m.gpu_links.value > 0)))
    return fail(errc::unsupported, "nobody tells what joins the GPUs of a domain",
                "describe kind and rate of the links between GPUs");
  return static_cast<void*>(nullptr);
}

[[nodiscard]] inline bool allowed(const run_conditions& run, library_algorithm a, library_protocol p) {
  if (run.only_protocol && *run.only_protocol != p) return false;
  if (!run.only || *run.only == a) return true;
  // "NVLS" in a log of several nodes is the tree of them.
  return *run.only == library_algorithm::nvls && a == library_algorithm::nvls_tree;
}

[[nodiscard]] inline model_limit limit_of(double time, double links, double net, double in_switch) {
  const double most = std::max(links, std::max(net, in_switch));
  if (2 * most < time) return model_limit::latency;
  return most == links ? model_limit::gpu_links : most == net ? model_limit::network : model_limit::switch_reduction;
}

}  // namespace detail

template <class>
result<std::vector<prediction>> predict_all(const machine_summary& machine, collective_kind collective, bytes size,
                                            const run_conditions& conditions, const model_constants& constants) {
  if (const auto ok = detail::check_model_input(machine, collective); !ok) return ok.error();
  std::vector<prediction> all;
  const auto add = [&](library_algorithm a, library_protocol p, double us, double links, double net, double switches) {
    if (!detail::allowed(conditions, a, p)) return;
    prediction x;
    x.time = {us * 1e-6};
    x.algorithm = a;
    x.protocol = p;
    x.limit = detail::limit_of(us, links, net, switches);
    x.busbw = size / x.time * busbw_factor(collective, machine.ranks);
    x.spread = detail::spread_of(machine, size);
    all.push_back(x);
  };
  if (machine.ranks == 1)
    add(library_algorithm::ring, library_protocol::simple, constants[model_parameter::launch], 0, 0, 0);
  else
    detail::each_way(machine, collective, static_cast<double>(size.value), conditions, constants, add);
  if (all.empty())
    return fail(errc::unsupported, "no algorithm that this machine can run is among those that are allowed");
  seq::sort(all, [](const prediction& a, const prediction& b) { return a.time < b.time; });
  return all;
}

template <class>
result<prediction> predict(const machine_summary& machine, collective_kind collective, bytes size,
                           const run_conditions& conditions, const model_constants& constants) {
  auto all = predict_all(machine, collective, size, conditions, constants);
  if (!all) return all.error();
  return all->front();
}

}}}  // namespace topocoll::v0::plan
