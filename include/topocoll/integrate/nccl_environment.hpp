// SPDX-License-Identifier: Apache-2.0
#pragma once
// Variables for NCCL that a topology or a plan justifies, each with its reason; none is set without one.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// One variable.
struct nccl_variable {
  std::string name, value;
  std::string why;           ///< one sentence
  std::string config_field;  ///< of ncclConfig_t, where a communicator can be told the same; empty where it cannot

  friend bool operator==(const nccl_variable&, const nccl_variable&) = default;
};
struct nccl_environment {
  std::vector<nccl_variable> variables;  ///< sorted by name
  std::vector<finding> findings;         ///< what speaks for a change that no variable makes

  [[nodiscard]] const nccl_variable* find(std::string_view name) const {
    for (const nccl_variable& v : variables)
      if (v.name == name) return &v;
    return nullptr;
  }
};

struct nccl_environment_options {
  std::string host;        ///< whose adapters are meant; empty: the only host with GPUs, or the first of equal ones
  std::string graph_file;  ///< where `graphs` is written, if it is
  const nccl_graph_file* graphs = nullptr;  ///< borrowed: its rings, for NCCL_GRAPH_FILE and what follows from them
  std::string topology_file;                ///< NCCL_TOPO_FILE that tells what NCCL cannot see by itself
  std::string tuner_file;                   ///< CSV of the example tuner plug-in
  std::optional<std::uint32_t>
      most_channels;  ///< so many thread blocks for NCCL at most; the rest stays with the program
  /// Cheapest of NCCL's algorithms by size, from the planner; for NCCL_ALGO where one of them always wins clearly.
  std::span<const plan::selection> map;
  collective_kind collective = collective_kind::all_reduce;  ///< of the map
};

/// Looks for what NCCL would decide otherwise, or cannot know.
///
/// - NCCL_IB_HCA: the rails in order, when other RDMA ports of the host must be left out: down, slower than the rails, or
///   with no GPU near.
/// - NCCL_SOCKET_IFNAME: leaves out interfaces that the host made up (bridges, containers), when there are such.
/// - NCCL_CROSS_NIC: 0 where a rail's leaves serve that rail alone, so that other rails are reached over the spine only; 2
///   where the graph file changes adapters in pairs.
/// - NCCL_PXN_DISABLE: 1 for GPUs before sm90 with NVLink and one adapter for each GPU, without a graph file: NCCL 2.28 then
///   finds no tree and drops the ring to one channel (NVIDIA/nccl pull request 1952).
/// - NCCL_NVLS_ENABLE: 0 when some GPU of the host has no live NVLink to the NVSwitch of the others.
/// - NCCL_GRAPH_FILE, NCCL_TOPO_FILE, NCCL_TUNER_CONFIG_FILE: as given. NCCL_MAX_CTAS: as asked for.
/// - NCCL_ALGO: only when the map has one winner at all sizes, by a tenth everywhere; otherwise a tuner file is the place.
/// @return `invalid_argument` for a host that does not exist; `not_found` without GPUs
/// Cost: as `topo::affinity_of` of the host and `topo::rails` of the graph.
template <class = void>
[[nodiscard]] result<nccl_environment> nccl_environment_of(const topo::graph& g,
                                                           const nccl_environment_options& options = {});

/// "export NAME=value" for a shell, reasons as comments.
template <class = void>
[[nodiscard]] std::string to_export_lines(const nccl_environment& e);
/// "NAME=value" for env files of containers and services (and /etc/nccl.conf), reasons as comments.
template <class = void>
[[nodiscard]] std::string to_env_file(const nccl_environment& e);
/// "-x NAME=value" for Open MPI's mpirun, in one line.
template <class = void>
[[nodiscard]] std::string to_mpirun_options(const nccl_environment& e);
/// Assignments to an ncclConfig_t for what a communicator can be told itself, and which variables must stay in the environment.
template <class = void>
[[nodiscard]] std::string to_config_notes(const nccl_environment& e);

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/nccl_environment_rules.hpp>
#include <topocoll/integrate/detail/nccl_environment_text.hpp>
