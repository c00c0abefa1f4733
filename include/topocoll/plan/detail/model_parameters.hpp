// SPDX-License-Identifier: Apache-2.0
#pragma once
// The constants of links and protocols that the cost models share: value, origin, and how far to trust it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace plan {

/// NCCL's protocols: flags in every 8 bytes, flags in every 128 bytes, flags beside whole pieces.
enum class library_protocol : std::uint8_t { ll, ll128, simple };
[[nodiscard]] constexpr std::string_view to_string(library_protocol p) {
  constexpr std::string_view words[] = {"ll", "ll128", "simple"};
  return words[static_cast<std::size_t>(p)];
}

/// Names of the constants. Those of links, networks and protocols only: none belongs to a product or to a system.
enum class model_parameter : std::uint8_t {
  launch,           ///< one collective, launched by one process per GPU
  framework_call,   ///< added when a framework calls the library in a loop of its own
  group_launch,     ///< added per further GPU that the same process launches on
  network_start,    ///< added when any data leaves the domain
  nvlink_hop,       ///< GPU to GPU over NVLink, low-latency protocol
  pcie_hop,         ///< GPU to GPU over PCIe, low-latency protocol
  xgmi_exchange,    ///< one exchange of all with all over a mesh of XGMI
  ll128_hop,        ///< LL128 over LL, inside a domain
  simple_hop,       ///< Simple over LL, inside a domain
  infiniband_hop,   ///< GPU to GPU over two NICs, low-latency protocol
  roce_hop,         ///< the same over Ethernet with RDMA
  efa_hop,          ///< the same over EFA's reliable datagrams
  tcpx_hop,         ///< the same over TCP that writes into GPU memory
  socket_hop,       ///< the same where the host copies every byte
  ll128_net_hop,    ///< LL128 over LL, across the network
  simple_net_hop,   ///< Simple over LL, across the network
  nvls_start,       ///< synchronisation of a reduction in NVSwitches
  nvls_per_gpu,     ///< the same, per GPU of the domain
  nvls_tree_start,  ///< start of a reduction in NVSwitches that goes on over the network
  fill_nvlink,      ///< overhead of a piece of a pipeline inside a domain
  fill_xgmi,        ///< the same in a mesh of XGMI
  fill_nvls4,       ///< the same for a reduction in NVSwitches of generation 4, for eight GPUs
  fill_nvls5,       ///< the same for generation 5
  fill_tree_net,    ///< overhead of a piece of a tree across the network, in network hops
  fill_ring_net,    ///< overhead of a piece of a ring across the network, in network hops
  fill_limit,       ///< transfer time beyond which pieces do not grow, so that their overhead is a share of it
  nvlink1,          ///< payload of a ring over the line rate of NVLink of generation 1
  nvlink2,
  nvlink3,
  nvlink4,
  nvlink5,
  xgmi,            ///< the same for XGMI
  nvlink_bridge,   ///< the same for NVLink bridges between PCIe cards
  pcie_switch,     ///< the same for PCIe below one switch
  pcie_host,       ///< the same for PCIe through the host
  nvls_link,       ///< what a reduction in NVSwitches gets of the line rate, both shares of a GPU's data counted
  nvls5_switch,    ///< all-reduced bytes over line rate that NVSwitches of generation 5 do not exceed
  nvls_across,     ///< the same reduction when it goes on over the network, relative
  tree,            ///< tree over ring
  ll_share,        ///< bandwidth of LL over Simple, inside a domain
  ll128_share,     ///< bandwidth of LL128 over Simple
  ll_net_share,    ///< bandwidth of LL over Simple, across the network
  infiniband,      ///< payload of a ring over the line rate of the NICs: InfiniBand
  roce,            ///< Ethernet with RDMA
  efa,             ///< EFA
  tcpx,            ///< TCP that writes into GPU memory
  socket_net,      ///< host copies
  single_nic,      ///< one GPU that drives NICs alone, relative
  tree_net,        ///< inner nodes of a tree, which hear from two children and a parent, relative
  domain_network,  ///< what the library gets through all NICs of a domain of several hosts, in GB/s
  local_copy,      ///< rate of a copy inside GPU memory over the line rate of the GPU's links
  kernel_start     ///< one exchange by a kernel that is written for it, launch included
};
inline constexpr std::size_t model_parameter_count = 52;

/// What is known of a constant.
struct parameter_fact {
  model_parameter what;
  std::string_view name;  ///< as in model files
  std::string_view unit;  ///< "us", "share", "factor", "hops", "GB/s"
  double prior;           ///< what it was taken for before anything was fitted
  double prior_spread;    ///< standard deviation of its logarithm that goes with it
  double value;           ///< fitted on published measurements, or the prior where they say nothing
  double spread;          ///< standard deviation of the logarithm of `value`, by leaving out systems
  std::uint32_t rows;     ///< measurements that depend on it; 0: not fitted
  std::string_view source;
};

namespace detail {
/// The table below is in the order of `model_parameter`.
template <std::size_t N>
[[nodiscard]] constexpr bool in_order(const std::array<parameter_fact, N>& all) {
  for (std::size_t i = 0; i < N; ++i)
    if (static_cast<std::size_t>(all[i].what) != i) return false;
  return true;
}
}  // namespace detail

/// All constants. Prior: NCCL 2.28, src/graph/tuning.cc and topo.h, or data sheets, as `source` says. Value, spread and
/// rows: `topocoll calibrate` over 906 published measurements of 38 systems (docs/models/calibration.md).
inline constexpr std::array<parameter_fact, model_parameter_count> model_parameters{{
    {model_parameter::launch, "launch", "us", 10.0, 0.5, 9.277, 0.478, 583,
     "process start of a kernel: NCCL books 6.6 for LL rings"},
    {model_parameter::framework_call, "framework_call", "us", 18.0, 0.3, 18.08, 0.22, 13,
     "difference between torch loops and nccl-tests on one kind of node"},
    {model_parameter::group_launch, "group_launch", "us", 2.0, 0.5, 2.184, 0.606, 192,
     "one process drives 8 GPUs: 34 us, one process per GPU: 17 us"},
    {model_parameter::network_start, "network_start", "us", 5.0, 0.5, 5.573, 0.549, 313,
     "NCCL's proxy thread; assumed"},
    {model_parameter::nvlink_hop, "nvlink_hop", "us", 0.7, 0.07, 0.7937, 0.026, 432, "NCCL: 0.6, LL over NVLink"},
    {model_parameter::pcie_hop, "pcie_hop", "us", 1.0, 0.4, 1.0, 0.4, 0, "NCCL: 1.0, LL over PCIe"},
    {model_parameter::xgmi_exchange, "xgmi_exchange", "us", 6.0, 0.5, 8.122, 0.792, 33, "assumed"},
    {model_parameter::ll128_hop, "ll128_hop", "factor", 2.0, 0.4, 3.156, 0.249, 106, "NCCL: 1.25 / 0.6 to 1.9 / 0.6"},
    {model_parameter::simple_hop, "simple_hop", "factor", 5.0, 0.4, 6.999, 0.29, 68, "NCCL: 3.4 / 0.6"},
    {model_parameter::infiniband_hop, "infiniband_hop", "us", 4.5, 0.4, 4.393, 0.239, 168,
     "NCCL: 2.7 to 5.0 and the NIC"},
    {model_parameter::roce_hop, "roce_hop", "us", 5.0, 0.4, 7.776, 0.199, 155, "as InfiniBand"},
    {model_parameter::efa_hop, "efa_hop", "us", 20.0, 0.4, 18.15, 0.095, 61, "assumed"},
    {model_parameter::tcpx_hop, "tcpx_hop", "us", 40.0, 0.7, 326.6, 2.045, 10, "assumed"},
    {model_parameter::socket_hop, "socket_hop", "us", 25.0, 0.5, 21.23, 0.189, 23, "assumed"},
    {model_parameter::ll128_net_hop, "ll128_net_hop", "factor", 1.5, 0.4, 1.666, 0.225, 70,
     "NCCL: 4.0 / 2.7 to 8.5 / 5.0"},
    {model_parameter::simple_net_hop, "simple_net_hop", "factor", 3.0, 0.4, 1.377, 0.198, 130, "NCCL: 14 / 5.0"},
    {model_parameter::nvls_start, "nvls_start", "us", 15.0, 0.5, 6.232, 0.427, 80, "NCCL: 25 with launch"},
    {model_parameter::nvls_per_gpu, "nvls_per_gpu", "us", 0.8, 0.5, 0.3693, 0.206, 95, "assumed"},
    {model_parameter::nvls_tree_start, "nvls_tree_start", "us", 30.0, 0.5, 21.74, 0.503, 60, "NCCL: 25 with launch"},
    {model_parameter::fill_nvlink, "fill_nvlink", "us", 1.5, 0.5, 2.355, 0.477, 154, "assumed"},
    {model_parameter::fill_xgmi, "fill_xgmi", "us", 1.5, 0.5, 1.304, 0.172, 8, "assumed"},
    {model_parameter::fill_nvls4, "fill_nvls4", "us", 4.0, 0.5, 3.882, 0.218, 51, "assumed"},
    {model_parameter::fill_nvls5, "fill_nvls5", "us", 10.0, 0.5, 16.95, 0.262, 87, "assumed"},
    {model_parameter::fill_tree_net, "fill_tree_net", "hops", 2.0, 0.5, 4.046, 0.386, 180,
     "depth of a tree of two nodes"},
    {model_parameter::fill_ring_net, "fill_ring_net", "hops", 1.0, 0.7, 0.4811, 0.507, 124, "assumed"},
    {model_parameter::fill_limit, "fill_limit", "us", 1000.0, 1.0, 806.7, 0.458, 106, "assumed"},
    {model_parameter::nvlink1, "nvlink1", "share", 0.9, 0.1, 0.9, 0.1, 0, "NCCL: 18 of 20 GB/s a link"},
    {model_parameter::nvlink2, "nvlink2", "share", 0.85, 0.1, 0.9125, 0.069, 1, "NCCL: 20 of 25 GB/s a link"},
    {model_parameter::nvlink3, "nvlink3", "share", 0.79, 0.1, 0.7801, 0.003, 118, "NCCL: 20 of 25 GB/s a link"},
    {model_parameter::nvlink4, "nvlink4", "share", 0.82, 0.1, 0.8063, 0.027, 42, "NCCL: 20.6 of 25 GB/s a link"},
    {model_parameter::nvlink5, "nvlink5", "share", 0.78, 0.1, 0.7655, 0.01, 71, "NCCL: 40.1 of 50 GB/s a link"},
    {model_parameter::xgmi, "xgmi", "share", 0.72, 0.1, 0.7079, 0.006, 72, "RCCL: 48 of 64 GB/s a link"},
    {model_parameter::nvlink_bridge, "nvlink_bridge", "share", 0.6, 0.3, 0.6, 0.3, 0, "assumed"},
    {model_parameter::pcie_switch, "pcie_switch", "share", 0.76, 0.1, 0.76, 0.1, 0,
     "NCCL: 24 of 31.5 GB/s, x16 of generation 4"},
    {model_parameter::pcie_host, "pcie_host", "share", 0.4, 0.15, 0.4756, 0.297, 4,
     "NCCL: 12 GB/s where a socket is crossed"},
    {model_parameter::nvls_link, "nvls_link", "share", 0.69, 0.1, 0.6865, 0.003, 152, "NCCL: 0.85 of 20.6 of 25 GB/s"},
    {model_parameter::nvls5_switch, "nvls5_switch", "share", 0.535, 0.05, 0.5309, 0.008, 115,
     "NCCL: 0.74 of 40.1 of 50 GB/s"},
    {model_parameter::nvls_across, "nvls_across", "share", 0.93, 0.05, 0.9299, 0.009, 83, "assumed"},
    {model_parameter::tree, "tree", "share", 0.85, 0.1, 0.7378, 0.1, 130, "NCCL: 0.92, 0.85 for its TREE pattern"},
    {model_parameter::ll_share, "ll_share", "share", 0.35, 0.4, 0.2306, 0.474, 74,
     "half of the bytes are flags; NCCL caps it below"},
    {model_parameter::ll128_share, "ll128_share", "share", 0.9, 0.05, 0.8679, 0.046, 296,
     "120 of 128 bytes, NCCL: 0.92"},
    {model_parameter::ll_net_share, "ll_net_share", "share", 0.3, 0.5, 0.1452, 0.38, 108, "as ll_share"},
    {model_parameter::infiniband, "infiniband", "share", 0.94, 0.04, 0.9612, 0.056, 131,
     "maintainers quote 46 to 49 of 50 GB/s"},
    {model_parameter::roce, "roce", "share", 0.92, 0.04, 0.9392, 0.005, 165, "RDMA write 369 of 400 Gb/s"},
    {model_parameter::efa, "efa", "share", 0.92, 0.04, 0.9142, 0.019, 14, "as RoCE"},
    {model_parameter::tcpx, "tcpx", "share", 0.72, 0.2, 0.9083, 0.227, 10, "71 % reported"},
    {model_parameter::socket_net, "socket_net", "share", 0.26, 0.4, 0.3621, 0.358, 25, "25 % reported"},
    {model_parameter::single_nic, "single_nic", "share", 0.85, 0.2, 0.686, 0.161, 75, "assumed"},
    {model_parameter::tree_net, "tree_net", "share", 0.85, 0.1, 1.0, 0.1, 32, "assumed"},
    {model_parameter::domain_network, "domain_network", "GB/s", 430.0, 0.3, 383.3, 0.038, 14, "assumed"},
    {model_parameter::local_copy, "local_copy", "factor", 3.5, 0.5, 1.863, 0.185, 28,
     "half of HBM's rate over the links': 1675 of 450, 4000 of 900"},
    {model_parameter::kernel_start, "kernel_start", "us", 6.0, 0.5, 6.76, 0.115, 11, "assumed"},
}};
static_assert(detail::in_order(model_parameters));

[[nodiscard]] constexpr const parameter_fact& fact_of(model_parameter p) {
  return model_parameters[static_cast<std::size_t>(p)];
}

/// One value for each constant, in the units of the table. Starts with the fitted values.
struct model_constants {
  std::array<double, model_parameter_count> values = [] {
    std::array<double, model_parameter_count> all{};
    for (std::size_t i = 0; i < model_parameter_count; ++i) all[i] = model_parameters[i].value;
    return all;
  }();

  [[nodiscard]] constexpr double operator[](model_parameter p) const { return values[static_cast<std::size_t>(p)]; }
  [[nodiscard]] constexpr double& operator[](model_parameter p) { return values[static_cast<std::size_t>(p)]; }

  /// The same before anything was fitted.
  [[nodiscard]] static constexpr model_constants priors() {
    model_constants all;
    for (std::size_t i = 0; i < model_parameter_count; ++i) all.values[i] = model_parameters[i].prior;
    return all;
  }
};

/// Constant with this name; its number is `model_parameter_count` when there is none.
[[nodiscard]] constexpr std::size_t parameter_named(std::string_view name) {
  for (std::size_t i = 0; i < model_parameter_count; ++i)
    if (model_parameters[i].name == name) return i;
  return model_parameter_count;
}

}}}  // namespace topocoll::v0::plan
