// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who holds what before and after a collective, on the buffers of other people's formats; for validators.
#include <cstdint>
#include <optional>
#include <string_view>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Buffers of each rank, in chunks of equal size: `input` and `output` have as many as the rank's own part of the array.
struct collective_ends {
  collective_kind kind = collective_kind::all_reduce;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  std::uint32_t chunks = 1;  ///< of the whole array

  [[nodiscard]] std::uint32_t share() const { return chunks / ranks; }
  [[nodiscard]] std::uint32_t input_chunks() const { return kind == collective_kind::all_gather ? share() : chunks; }
  [[nodiscard]] std::uint32_t output_chunks() const {
    return kind == collective_kind::reduce_scatter ? share() : chunks;
  }
  /// Whether the rank brings data; only the root of a broadcast does.
  [[nodiscard]] bool brings(std::uint32_t rank) const { return kind != collective_kind::broadcast || rank == root; }
  [[nodiscard]] bool gets(std::uint32_t rank) const { return kind != collective_kind::reduce || rank == root; }
  /// Number of the data in chunk `c` of the input of `rank`; data that are summed have equal numbers.
  [[nodiscard]] std::uint32_t brought(std::uint32_t rank, std::uint32_t c) const {
    if (kind == collective_kind::all_gather) return rank * share() + c;
    return kind == collective_kind::all_to_all ? rank * chunks + c : c;
  }
  /// Number of the data that must be in chunk `c` of the output of `rank`.
  [[nodiscard]] std::uint32_t wanted(std::uint32_t rank, std::uint32_t c) const {
    if (kind == collective_kind::reduce_scatter) return rank * share() + c;
    return kind == collective_kind::all_to_all ? c / share() * chunks + rank * share() + c % share() : c;
  }
  /// The one rank whose data these are; none where they are sums of all.
  [[nodiscard]] std::optional<std::uint32_t> giver(std::uint32_t c) const {
    if (reduces(kind)) return std::nullopt;
    return kind == collective_kind::broadcast ? root : c / share();
  }
  /// Where chunk `c` of the input lies in the output when both are one buffer, and the other way round.
  [[nodiscard]] std::uint32_t input_in_output(std::uint32_t rank, std::uint32_t c) const {
    return kind == collective_kind::all_gather ? rank * share() + c : c;
  }
  [[nodiscard]] std::uint32_t output_in_input(std::uint32_t rank, std::uint32_t c) const {
    return kind == collective_kind::reduce_scatter ? rank * share() + c : c;
  }
};

}}}  // namespace topocoll::v0::detail
