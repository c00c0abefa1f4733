// SPDX-License-Identifier: Apache-2.0
#pragma once
// NCCL's own tuning model, version 2.28.9: what it predicts for a collective, and the channels that it would search for.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/library_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// The generations that NCCL's tables tell apart.
enum class nccl_arch : std::uint8_t { volta, ampere, hopper, blackwell };
/// By compute capability times ten: 70, 80, 90, 100. Older than 80 counts as Volta.
[[nodiscard]] constexpr nccl_arch nccl_arch_of(std::uint32_t sm) {
  return sm >= 100  ? nccl_arch::blackwell
         : sm >= 90 ? nccl_arch::hopper
         : sm >= 80 ? nccl_arch::ampere
                    : nccl_arch::volta;
}

/// What a channel search found. Rates of one channel in GB/s as NCCL writes them.
struct nccl_channels {
  std::uint32_t count = 0;    ///< channels, or heads for NVLS; 0: not found
  double intra = 0;           ///< inside a node
  double inter = 0;           ///< between nodes
  bool over_nvlink = true;    ///< the worst path between GPUs is NVLink, directly or through NVSwitch
  bool ll128 = true;          ///< path classes allow LL128: GPUs at most NVB, NICs at most PXB (PXN from Hopper on)
  bool tree_pattern = false;  ///< NCCL's pattern 3, which costs a tree 15 %
};

/// The input of NCCL's model. A node is a host, or all hosts of one NVLink domain.
struct nccl_machine {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  nccl_arch arch = nccl_arch::ampere;
  bool amd_cpu = false;   ///< AMD hosts have other limits for LL
  seconds nic_latency{};  ///< as the network plug-in reports it
  nccl_channels ring, tree, nvls;
};

enum class nccl_algorithm : std::uint8_t { tree, ring, nvls, nvls_tree };
[[nodiscard]] constexpr std::string_view to_string(nccl_algorithm a) {
  constexpr std::string_view words[] = {"tree", "ring", "nvls", "nvls_tree"};
  return words[static_cast<std::size_t>(a)];
}

struct nccl_prediction {
  seconds time{};
  nccl_algorithm algorithm = nccl_algorithm::ring;
  library_protocol protocol = library_protocol::simple;
};

/// NCCL's predicted time, the least over its algorithms and protocols.
///
/// All-reduce: tree, ring, NVLS, NVLS tree; all-gather and reduce-scatter: ring (PAT is off by default where a node has
/// several GPUs, NVLS and CollNet are never the least in its tables). Not modelled: CollNet, PAT, groups of several calls.
/// Source: NCCL 2.28.9, src/graph/tuning.cc: latencies, limits and formulas.
/// @return `invalid_argument` for fewer than two ranks, no ring, or nodes that do not divide the ranks; `unsupported`
///         for other collectives. Cost: O(1).
template <class = void>
[[nodiscard]] result<nccl_prediction> nccl_predict(const nccl_machine& machine, collective_kind collective, bytes size);

/// What NCCL's search finds on a regular machine, by its speed tables and the payload of its link constants.
///
/// Rings: the speed of the table and the number of channels whose product is largest, within the NVLinks of a GPU and,
/// across nodes, the NICs. NVLS: one head for each GPU, at most 32. Not a search: irregular machines need NCCL's.
/// @return `unsupported` when the summary does not say what joins GPUs or nodes
template <class = void>
[[nodiscard]] result<nccl_machine> nccl_machine_of(const machine_summary& machine);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/nccl_model_tables.hpp>
