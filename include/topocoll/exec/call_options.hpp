// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a caller of collectives gives: ranges of elements, and options.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// Contiguous elements: std::span, std::vector, std::array of an `Element`.
template <class R>
concept ElementRange = requires(R& r) {
  std::data(r);
  { std::size(r) } -> std::convertible_to<std::size_t>;
}
&&Element<std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<R&>()))>>>;

/// What may differ from call to call.
struct call_options {
  reduce_op op = reduce_op::sum;  ///< for the collectives that reduce
  seconds timeout{30};            ///< from the start of this call; afterwards the group is broken
};

/// What holds for a communicator.
struct communicator_options {
  /// Large arrays are worked on in pieces of this size, all shards together, so that data are still in the caches when
  /// they are needed again; 0: whole. Must be equal on all ranks. 512 KiB was best or close to it from 4 to 64 MiB with
  /// 2 and 4 ranks, and a quarter faster than whole arrays.
  bytes window{512ULL << 10U};
  /// Most such pieces under way at a time, where a plan is run by messages: while one crosses a slow link, others use the
  /// faster ones. As many as the transport has channels for. Must be equal on all ranks.
  std::uint32_t in_flight = 4;
  /// all_reduce, reduce_scatter (and _v) and reduce give ((x0 ⊕ x1) ⊕ x2) ⊕ …, the operands in the order of the ranks, to the
  /// bit: on one host and across hosts, with any transport, adopted plan, window, count and place in memory. `avg` divides
  /// that, once; floats of 8 and 16 bits are combined in float and rounded once, at the end (so a memory space other than
  /// `host_memory` has no sum, prod or avg of them: `unsupported`). Only which of two NaN payloads survives is not said.
  ///
  /// Ranks of one host work so anyway. By messages, every rank gets a part of each operand from every other and passes the
  /// result on; plans adopted for these three collectives are not used. The traffic is that of a direct all-reduce, each rank
  /// to all others at once, and the scratch memory `in_flight` times `window`, or as large as the array if `window` is 0
  /// (for reduce_scatter_v: as its longest shard, once per rank), with up to 128 bytes more per rank and window. Must be equal
  /// on all ranks: one that differs is named in a `mismatch` before data are used. (Where no rank needs messages and nothing
  /// is adopted it makes no difference, and nobody asks.)
  bool deterministic = false;
};

}}  // namespace topocoll::v0
