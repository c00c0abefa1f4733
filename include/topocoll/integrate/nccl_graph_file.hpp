// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rings and trees of one host as the file of NCCL_GRAPH_FILE, which NCCL takes in place of its own search.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/xml_tree.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 {

/// Which of NCCL's graphs it is: the number in the file.
enum class nccl_graph_id : std::uint8_t { ring = 0, tree = 1, collnet_chain = 2, nvls = 3, collnet_direct = 4 };
/// How channels are used. Tree: the first GPU talks to parent and children on other nodes; in a balanced tree the second
/// GPU talks to one of the children.
enum class nccl_pattern : std::uint8_t {
  balanced_tree = 1,
  split_tree = 2,
  tree = 3,
  ring = 4,
  nvls = 5,
  collnet_direct = 6
};

/// One channel: the GPUs in order, and the adapters by which data enter and leave the node.
struct nccl_channel {
  std::optional<std::uint32_t> net_in,
      net_out;                      ///< numbers of the network plug-in; both or none where the check is passed
  std::vector<std::uint32_t> gpus;  ///< NVML's numbers

  friend bool operator==(const nccl_channel&, const nccl_channel&) = default;
};

struct nccl_graph {
  nccl_graph_id id = nccl_graph_id::ring;
  nccl_pattern pattern = nccl_pattern::ring;
  std::uint32_t cross_nic = 0;  ///< 2: channels go in pairs, and leave by the adapter that the other one enters by
  bytes_per_second speed_intra{}, speed_inter{};  ///< of each channel; NCCL predicts its times from them
  seconds latency_inter{};                        ///< of the network plug-in; the file has microseconds
  topo::path_class type_intra = topo::path_class::LOC, type_inter = topo::path_class::LOC;  ///< worst that is used
  bool same_channels = false;  ///< all channels have the same order
  std::vector<nccl_channel> channels;

  friend bool operator==(const nccl_graph&, const nccl_graph&) = default;
};

/// A file. One host (nodes of a job that differ need a file each).
struct nccl_graph_file {
  std::vector<nccl_graph> graphs;
  std::vector<finding> findings;  ///< what was assumed; not part of the file

  [[nodiscard]] const nccl_graph* find(nccl_graph_id id) const {
    for (const nccl_graph& g : graphs)
      if (g.id == id) return &g;
    return nullptr;
  }
};

struct nccl_graph_options {
  std::string host;           ///< empty: the only one
  bool between_nodes = true;  ///< for jobs on several nodes: channels enter and leave by adapters
  bool nvls = false;          ///< also heads for NVLS, where GPUs of sm90 and later hang on NVSwitch
  /// NCCL_CROSS_NIC: 0 leaves by the adapter that it came in by; 2 also tries pairs of channels that change adapters.
  std::uint32_t cross_nic = 2;
  std::uint32_t most_channels = 32;  ///< as many as NCCL searches
};

/// Searches rings on a host's links, with NCCL's own figures for them, and trees along the same channels.
///
/// Every channel visits all GPUs. Channels share links as far as their rates allow, all at one speed, as the file demands;
/// the speed is not taken from a table, so that links are filled to the brim. Between nodes a channel enters at a GPU near
/// its adapter and leaves by the same (or, in pairs, by another), over NVLink to a GPU near it (PXN) where that is better.
/// Trees always fit, because only their first GPU needs an adapter: so NCCL keeps all channels of the ring.
/// @return `invalid_argument` for a host that is not in the graph or none named among several; `not_found` for a host
///         without GPUs, or `between_nodes` without adapters; `unsupported` for more than 64 GPUs, or GPUs that no order connects.
/// Cost: bounded: at most 160,000 steps of search.
template <class = void>
[[nodiscard]] result<nccl_graph_file> nccl_graphs_of(const topo::graph& g, const nccl_graph_options& options = {});

/// The rings of a plan as they pass through one host: a file that makes NCCL run this order.
/// @return as above; `unsupported` when the plan is not made of rings (every rank sends to one other on each channel), or a
///         ring leaves and enters the host more than once
template <class = void>
[[nodiscard]] result<nccl_graph_file> nccl_graphs_of(const plan::problem& p, const plan::schedule& schedule,
                                                     const nccl_graph_options& options = {});

/// The text of the file.
template <class = void>
[[nodiscard]] std::string to_nccl_graph_xml(const nccl_graph_file& file);

/// Reads a file of NCCL_GRAPH_FILE or NCCL_GRAPH_DUMP_FILE.
/// @return `malformed_input` with file and line for attributes that are missing or no numbers, words that NCCL does not know
///         (it knows LOC NVL NVB PIX PXB P2C PXN PHB SYS), and an nchannels that is not the number of channels
/// Speeds and latencies are rounded to 32-bit floats, which NCCL keeps them in.
template <class = void>
[[nodiscard]] result<nccl_graph_file> read_nccl_graph_xml(const io::xml_element& root, std::string_view file);

/// What was looked at.
struct nccl_graph_proof {
  std::uint32_t gpus = 0, channels = 0;
  bytes_per_second ring{}, tree{};  ///< all channels together
};

/// Checks a file against the host that it is for.
///
/// Patterns fit their graphs; ring and tree have equally many channels (NCCL takes the smaller number for both); every channel
/// visits every GPU once (NVLS: one); GPUs and adapters exist; adapters stand at both ends of every channel or of none, and
/// change as `cross_nic` says; types are the worst that is used; and no link carries more than NCCL books for it, which NCCL
/// itself does not check.
/// @return `malformed_input` with graph and channel
template <class = void>
[[nodiscard]] result<nccl_graph_proof> check_nccl_graphs(const nccl_graph_file& file, const topo::graph& g,
                                                         const std::string& host = {});

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/nccl_graph_build.hpp>
#include <topocoll/integrate/detail/nccl_graph_check.hpp>
#include <topocoll/integrate/detail/nccl_graph_text.hpp>
