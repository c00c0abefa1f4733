// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a GPU library (NCCL, RCCL) takes for a collective when nothing is wrong, from links and protocols alone.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/detail/model_parameters.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// How the GPUs of a domain reach each other. A domain is a host, or all hosts that one NVLink switch joins.
enum class gpu_fabric : std::uint8_t {
  none,         ///< one GPU in each domain
  nvswitch,     ///< any GPU reaches any other with all its NVLinks
  mesh,         ///< links run between pairs of GPUs: XGMI, NVLink without switches
  bridge,       ///< NVLink bridges between pairs of PCIe cards
  pcie_switch,  ///< PCIe, all below one switch
  pcie_host     ///< PCIe through the host
};

/// What joins the domains.
enum class network_kind : std::uint8_t {
  none,            ///< nothing, or not told
  infiniband,      ///< with RDMA into GPU memory
  roce,            ///< Ethernet with RDMA into GPU memory
  efa,             ///< AWS's reliable datagrams, with RDMA into GPU memory
  gpu_direct_tcp,  ///< TCP whose receiver writes into GPU memory
  host_copies      ///< anything whose data passes through host memory
};

/// A machine as the model sees it: regular, all domains alike, the ranks spread evenly.
struct machine_summary {
  std::uint32_t ranks = 1;
  std::uint32_t domains = 1;
  std::uint32_t hosts = 1;
  gpu_fabric fabric = gpu_fabric::none;
  bool xgmi = false;               ///< the links of a mesh are AMD's
  std::uint32_t generation = 0;    ///< of NVLink or PCIe; 0 for XGMI and where nobody tells
  bytes_per_second gpu_links{};    ///< line rate, one direction, of all links of one GPU that lead to others
  std::uint32_t gpus_in_mesh = 0;  ///< GPUs of a whole domain, ranks or not: the links of a mesh are divided among them
  bool multicast = false;          ///< NVSwitches that reduce and multicast are there and not switched off
  network_kind network = network_kind::none;
  std::uint32_t nics = 0;         ///< of a domain, that its ranks can use
  bytes_per_second nic_rate{};    ///< line rate of one, or of the PCIe link that it hangs on when that is slower
  std::vector<finding> findings;  ///< what was assumed

  [[nodiscard]] double ranks_per_domain() const { return static_cast<double>(ranks) / domains; }
};

enum class library_algorithm : std::uint8_t { ring, tree, nvls, nvls_tree, direct };
/// What most of the predicted time is spent on.
enum class model_limit : std::uint8_t { latency, gpu_links, network, switch_reduction };
enum class launch_mode : std::uint8_t { unknown, process_per_gpu, one_process };

[[nodiscard]] constexpr std::string_view to_string(library_algorithm a) {
  constexpr std::string_view words[] = {"ring", "tree", "nvls", "nvls_tree", "direct"};
  return words[static_cast<std::size_t>(a)];
}
[[nodiscard]] constexpr std::string_view to_string(model_limit l) {
  constexpr std::string_view words[] = {"latency", "gpu links", "network", "reduction in switches"};
  return words[static_cast<std::size_t>(l)];
}
[[nodiscard]] constexpr std::string_view to_string(gpu_fabric f) {
  constexpr std::string_view words[] = {"none", "nvswitch", "mesh", "bridge", "pcie_switch", "pcie_host"};
  return words[static_cast<std::size_t>(f)];
}
[[nodiscard]] constexpr std::string_view to_string(network_kind n) {
  constexpr std::string_view words[] = {"none", "infiniband", "roce", "efa", "gpu_direct_tcp", "host_copies"};
  return words[static_cast<std::size_t>(n)];
}

/// Facts about a run that change its time and are no property of the machine.
struct run_conditions {
  launch_mode launch = launch_mode::unknown;        ///< unknown: half of what one process for all GPUs costs
  bool from_framework = false;                      ///< timed in a loop of a framework, call by call
  bool own_kernels = false;                         ///< kernels written for the collective (MSCCL++), not NCCL's
  std::optional<library_algorithm> only{};          ///< the library was told, or printed, which algorithm
  std::optional<library_protocol> only_protocol{};  ///< the same for the protocol
};

/// One way to run the collective, priced.
struct prediction {
  seconds time{};
  library_algorithm algorithm = library_algorithm::ring;
  library_protocol protocol = library_protocol::simple;
  model_limit limit = model_limit::latency;
  bytes_per_second busbw{};  ///< as nccl-tests counts it
  /// The middle half of healthy machines lies within time / (1 + spread) and time * (1 + spread); from residuals over
  /// published measurements, see docs/models/calibration.md.
  double spread = 0;
};

/// The cheapest way, as a well-run library takes it.
///
/// T = launch + hops + bytes / rate + fill for each algorithm and protocol; the least wins. Bytes are those of the busiest
/// link: 2(n-1)/n of the array for a ring (all-gather and reduce-scatter half of that), twice the array for a tree, (1 +
/// 1/g) for NVLS in a domain of g GPUs, and across the network the array once between two domains, twice from three on
/// (inner nodes of the double tree). Fill = 2 sqrt(o x), x the transfer time and o the overhead of a piece: the least time
/// that a pipeline of pieces loses when their number is free (van de Geijn, 1994); pieces grow until x reaches a limit.
/// @return `invalid_argument` for no ranks or more domains than ranks; `unsupported` for collectives other than
///         all_reduce, all_gather and reduce_scatter, when several domains have no network, and when nothing is left of
///         what `conditions` allow. Cost: O(1).
template <class = void>
[[nodiscard]] result<prediction> predict(const machine_summary& machine, collective_kind collective, bytes size,
                                         const run_conditions& conditions = {}, const model_constants& constants = {});

/// All ways, cheapest first; same failures.
template <class = void>
[[nodiscard]] result<std::vector<prediction>> predict_all(const machine_summary& machine, collective_kind collective,
                                                          bytes size, const run_conditions& conditions = {},
                                                          const model_constants& constants = {});

/// The summary of a graph for given ranks (GPUs; rank r sits on ranks[r]).
///
/// Domains are NVLink islands and, for GPUs without such links, hosts. Where domains differ, the weakest counts and a
/// finding says so: a library runs at the pace of the slowest. A NIC counts with the slower of its port and its PCIe link;
/// a domain's NICs are shared evenly by all its GPUs, ranks or not.
/// @return `invalid_argument` for no ranks or a rank that is no GPU. Cost: O(nodes + links).
template <class = void>
[[nodiscard]] result<machine_summary> machine_summary_of(const topo::graph& graph, std::span<const node_id> ranks);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/model_predict.hpp>
#include <topocoll/plan/detail/model_summary.hpp>
