// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one rank does, as data: steps of sends, receives, reductions and copies on pieces of buffers.
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Which buffer a piece lies in. In an in-place call `input` is a part of `output` (see `chunk_grid`).
enum class buffer : std::uint8_t { input, output, scratch };

/// Chunks `first` to `first + count - 1` of a buffer, on the grid of the whole array.
///
/// `input` and `output` are both addressed on the grid of the whole array (`chunk_grid`), even where a rank holds only
/// its own shard of it: rank r's input of an all-gather is chunks r*k to r*k+k-1, and nothing else of `input` exists.
/// `scratch` has cells of its own, each as large as the largest chunk: cell i starts at element i * chunk_grid::largest().
/// Where an operation's data starts and how long it is: `extent_of`.
struct slice {
  buffer where = buffer::output;
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend constexpr bool operator==(const slice&, const slice&) = default;
};

enum class op_kind : std::uint8_t {
  send,            ///< `from` goes to `peer`
  receive,         ///< `to` := what `peer` sends
  receive_reduce,  ///< `to` := what `peer` sends ⊕ `from`; `from` and `to` may be the same slice
  copy,            ///< `to` := `from`, on this rank
  reduce           ///< `to` := `to` ⊕ `from`, on this rank
};

/// One operation. The k-th send from a to b on a channel meets the k-th receive from a at b on that channel; both move
/// the same chunks. Operations of one step touch disjoint memory, so their order does not matter.
///
/// A copy from `input` to the same chunks of `output` does nothing in an in-place call, where both are the same memory:
/// whoever runs the program skips it when the addresses are equal.
struct op {
  op_kind kind = op_kind::copy;
  rank_id peer{};  ///< for send, receive, receive_reduce
  slice from{};
  slice to{};
  /// The data are chunks `chunk` to `chunk + count - 1` of the whole array, wherever they lie: this tells their size, also
  /// when both slices are in scratch. A slice of `input` or `output` has `first == chunk` (all_to_all apart, where chunks
  /// move between shards and sizes are equal). Never more than one unit of the grid (`chunk_grid`) if units have several chunks.
  std::uint32_t chunk = 0;
  /// Where it is not 1, the data are chunks `chunk`, `chunk + stride`, `chunk + 2 stride`, … modulo the chunks of the array,
  /// side by side in scratch. Only where every chunk is a whole shard, because those are all of one size.
  std::uint32_t stride = 1;

  /// The i-th of the chunks, of an array of `chunks`. Precondition: 0 < stride < chunks, or stride is 1.
  [[nodiscard]] constexpr std::uint32_t chunk_at(std::uint32_t i, std::uint32_t chunks) const {
    if (stride == 1) return chunk + i;
    return static_cast<std::uint32_t>((chunk + std::uint64_t{i} * stride) % chunks);
  }
};

/// Operations that are started together: it is finished when all of them are.
///
/// Steps of one channel are started in the order of their index; a step starts when every step in `after` has finished.
/// There is no other order. Indices in `after` are smaller than the step's own, so a single rank cannot wait for itself.
struct step {
  std::uint32_t channel = 0;
  std::uint32_t stage = 0;  ///< index into `program::stages`, for messages to people
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 0;
  std::vector<std::uint32_t> after;
};

/// Everything one rank does in one collective. The size of the data is not part of it: a program fits every count.
struct program {
  collective_kind collective = collective_kind::all_reduce;
  std::uint32_t ranks = 1;
  rank_id rank{};
  rank_id root{};                   ///< for broadcast, reduce, gather and scatter
  std::uint32_t chunks = 1;         ///< of the whole array; a multiple of `ranks` for the sharded collectives
  std::uint32_t scratch_cells = 0;  ///< each as large as the largest chunk
  std::uint32_t channels = 1;
  std::vector<std::string> stages;  ///< "reduce-scatter in the box", …
  std::vector<step> steps;
  std::vector<op> ops;
};

/// How an array of `count` elements is cut into the chunks of a program.
///
/// All-reduce, broadcast and reduce: the array is the buffer, one unit. The sharded collectives (`sharded`): the
/// array is the concatenation of `ranks` shards, each a unit, and chunk c lies in shard c / (chunks / ranks). In every
/// unit all chunks have ceil(elements / chunks) elements until the unit is used up: one chunk may be shorter and those
/// after it are empty. So where shards are of equal count, chunks that follow each other in scratch cells of size
/// `largest()` are contiguous there too. Where they are not, a cell may be longer than what lies in it, so operations on
/// several chunks are carried out chunk by chunk (see `piece_of`), each chunk a message of its own.
struct chunk_grid {
  std::uint64_t elements_per_unit = 0;  ///< of the largest unit
  std::uint32_t chunks_per_unit = 1;
  /// First element of every unit, and the number of elements in the whole array; borrowed. Empty: units are equal.
  std::span<const std::uint64_t> starts{};

  [[nodiscard]] constexpr bool even() const { return starts.empty(); }
  /// Elements of a full chunk of the largest unit.
  [[nodiscard]] constexpr std::uint64_t largest() const { return full_chunk(elements_per_unit); }
  /// First element of chunk c; `begin(chunks)` is the number of elements in the whole array.
  [[nodiscard]] constexpr std::uint64_t begin(std::uint32_t c) const {
    const std::uint64_t unit = c / chunks_per_unit;
    if (!even()) {
      if (unit + 1 >= starts.size()) return starts.back();
      const std::uint64_t size = starts[unit + 1] - starts[unit], before = c % chunks_per_unit * full_chunk(size);
      return starts[unit] + (before < size ? before : size);
    }
    const std::uint64_t ahead = c % chunks_per_unit * largest();
    return unit * elements_per_unit + (ahead < elements_per_unit ? ahead : elements_per_unit);
  }

 private:
  [[nodiscard]] constexpr std::uint64_t full_chunk(std::uint64_t unit) const {
    return unit / chunks_per_unit + (unit % chunks_per_unit != 0 ? 1 : 0);
  }
};

/// Elements `first` to `first + count - 1` of a buffer.
struct extent {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  friend constexpr bool operator==(const extent&, const extent&) = default;
};

/// Where slice `s` of operation `o` (its `from` or its `to`) lies in its buffer. `first` counts from the start of the
/// whole array for input and output, also on a rank that holds only its own shard; from the start of scratch for scratch.
/// Both ends of a message get the same `count`; it is 0 when the data have fewer elements than chunks.
/// Precondition: the slice has one chunk, or the grid is even.
[[nodiscard]] constexpr extent extent_of(const chunk_grid& grid, const op& o, const slice& s) {
  const std::uint64_t count = grid.begin(o.chunk + s.count) - grid.begin(o.chunk);
  return {s.where == buffer::scratch ? s.first * grid.largest() : grid.begin(s.first), count};
}

/// In how many pieces an operation on `count` chunks is carried out: one, or one per chunk where units are unequal.
[[nodiscard]] constexpr std::uint32_t pieces_of(const chunk_grid& grid, const op& o) {
  if (grid.even()) return 1;
  return o.kind == op_kind::receive ? o.to.count : o.from.count;
}
/// Piece i of an operation: the operation itself, or its i-th chunk. Precondition: i < pieces_of(grid, o).
[[nodiscard]] constexpr op piece_of(const chunk_grid& grid, op o, std::uint32_t i) {
  if (grid.even()) return o;
  o.chunk = o.chunk_at(i, static_cast<std::uint32_t>(grid.starts.size() - 1) * grid.chunks_per_unit);
  o.stride = 1;
  for (slice* s : {&o.from, &o.to}) {
    s->first += i;
    s->count = s->count == 0 ? 0 : 1;
  }
  return o;
}

/// True when the array of this collective is a concatenation of one shard per rank.
[[nodiscard]] constexpr bool sharded(collective_kind k) {
  return k == collective_kind::all_gather || k == collective_kind::reduce_scatter || k == collective_kind::all_to_all ||
         k == collective_kind::gather || k == collective_kind::scatter;
}

/// True when the `count` chunks that an operation is about exist, and lie as its `stride` demands.
[[nodiscard]] constexpr bool names_chunks(const program& p, const op& o, std::uint32_t count) {
  if (count > p.chunks || o.chunk > p.chunks) return false;
  if (o.stride == 1) return o.chunk <= p.chunks - count;
  const bool in_scratch = (o.kind == op_kind::receive || o.from.where == buffer::scratch) &&
                          (o.kind == op_kind::send || o.to.where == buffer::scratch);
  return in_scratch && sharded(p.collective) && p.chunks == p.ranks && o.chunk < p.chunks && o.stride > 0 &&
         o.stride < p.chunks;
}

/// Grid of a program for `elements` elements: of the buffer, or per rank for the sharded collectives.
[[nodiscard]] constexpr chunk_grid grid_of(collective_kind k, std::uint32_t ranks, std::uint32_t chunks,
                                           std::uint64_t elements) {
  return {elements, sharded(k) ? chunks / ranks : chunks};
}
/// The same for shards of unequal size; only for the sharded collectives, but not for all_to_all, whose pairs differ.
/// @param starts  first element of every rank's shard, ascending, and the number of elements of all; borrowed
template <class = void>
[[nodiscard]] constexpr chunk_grid grid_of(std::uint32_t chunks, std::span<const std::uint64_t> starts) {
  const auto ranks = static_cast<std::uint32_t>(starts.size() - 1);
  std::uint64_t largest = 0;
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (starts[r + 1] - starts[r] > largest) largest = starts[r + 1] - starts[r];
  return {largest, chunks / ranks, starts};
}

}}}  // namespace topocoll::v0::plan
