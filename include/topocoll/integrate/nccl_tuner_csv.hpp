// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which algorithm and protocol NCCL should take at which size, as the file of its example tuner plug-in.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/nccl_model.hpp>

namespace topocoll { inline namespace v0 {

/// Algorithms and protocols in the order of NCCL's numbers. Source: NCCL 2.28,
/// src/include/plugin/nccl_tuner.h.
enum class tuner_algorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class tuner_protocol : std::uint8_t { ll, ll128, simple };
[[nodiscard]] constexpr std::string_view to_string(tuner_algorithm a) {
  constexpr std::string_view words[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
  return words[static_cast<std::size_t>(a)];
}
[[nodiscard]] constexpr std::string_view to_string(tuner_protocol p) {
  constexpr std::string_view words[] = {"ll", "ll128", "simple"};
  return words[static_cast<std::size_t>(p)];
}

/// One row: the first that matches a call is taken. What is empty matches everything, or leaves it to NCCL.
///
/// Columns and words: NCCL 2.28, ext-tuner/example/README.md and plugin.c:
/// collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff, -1 for "any". The
/// plug-in takes an unknown algorithm for ring and an unknown protocol for simple, without a word, so rows name both.
struct tuner_row {
  collective_kind collective = collective_kind::all_reduce;
  std::uint64_t min_bytes = 0, max_bytes = UINT64_MAX;  ///< of the whole array, both inclusive
  tuner_algorithm algorithm = tuner_algorithm::ring;
  tuner_protocol protocol = tuner_protocol::simple;
  std::optional<std::uint32_t> channels, nodes, ranks, pipe_ops;
  std::optional<bool> registered;  ///< buffers

  friend bool operator==(const tuner_row&, const tuner_row&) = default;
};

/// The protocol that NCCL's own model finds fastest for an algorithm; simple where the model knows nothing.
///
/// Algorithms come from prices on the graph, which know the network but no protocols; protocols from `plan::nccl_predict`,
/// asked about this algorithm alone (ring, or tree for all-reduce).
template <class = void>
[[nodiscard]] tuner_protocol tuner_protocol_for(collective_kind collective, tuner_algorithm algorithm,
                                                const plan::nccl_machine& machine, bytes size);

/// NCCL's algorithm of a planner's name ("ring", "ring-hardware", "tree"); empty for plans that NCCL has nothing like.
[[nodiscard]] constexpr std::optional<tuner_algorithm> tuner_algorithm_of(std::string_view planner) {
  if (planner.substr(0, 4) == "ring") return tuner_algorithm::ring;
  if (planner == "tree" || planner.substr(0, 5) == "tree ") return tuner_algorithm::tree;
  return std::nullopt;
}

/// The winner at one size.
struct tuner_choice {
  bytes size{};
  tuner_algorithm algorithm = tuner_algorithm::ring;
  tuner_protocol protocol = tuner_protocol::simple;
};

/// Rows from choices at ascending sizes: each holds from its size to just below the next, the first from 0, the last to the
/// end; equal neighbours become one.
/// @return `invalid_argument` for sizes that do not ascend; `unsupported` for all_to_all, which the plug-in does not know
template <class = void>
[[nodiscard]] result<std::vector<tuner_row>> tuner_rows(collective_kind collective,
                                                        std::span<const tuner_choice> choices, std::uint32_t nodes,
                                                        std::uint32_t ranks);

/// The file: a comment with the columns, then the rows.
template <class = void>
[[nodiscard]] std::string to_tuner_csv(std::span<const tuner_row> rows);

/// Reads such a file as the plug-in does, but strictly: `#` begins a comment line; 8 to 10 columns.
/// @return `malformed_input` with file and line for words, numbers and columns that the plug-in would misread
template <class = void>
[[nodiscard]] result<std::vector<tuner_row>> read_tuner_csv(std::string_view text, std::string_view file);

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/nccl_tuner_text.hpp>
