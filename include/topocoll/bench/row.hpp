// SPDX-License-Identifier: Apache-2.0
#pragma once
// One line of a collective benchmark: what was run, how long it took, at which bandwidth, and whether the data was right.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 { namespace bench {

/// One half of a line: out of place or in place.
struct timing {
  seconds time{};                      ///< of one call, averaged over iterations and then over ranks as asked
  std::optional<std::uint64_t> wrong;  ///< wrong elements on all ranks together; empty when nothing was checked
};

/// One line. Bandwidths follow from size, time and ranks, so they are functions and cannot contradict them.
struct row {
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};             ///< of the whole array: for the sharded collectives the sum of all ranks' parts
  std::uint64_t count = 0;  ///< elements: of the buffer, or per rank for the sharded collectives
  dtype type = dtype::float32;
  reduce_op op = reduce_op::sum;
  std::optional<rank_id> root;  ///< for the rooted collectives
  std::uint32_t ranks = 1;
  std::uint64_t iterations = 0;
  std::string plan;  ///< name of the plan that ran
  timing out_of_place;
  timing in_place;
  std::optional<bytes_per_second> bound;  ///< busbw that the machine's limits allow; empty when they are not known

  /// size / time; 0 when no time passed.
  [[nodiscard]] bytes_per_second algbw(const timing& half) const {
    return half.time.value > 0 ? size / half.time : bytes_per_second{};
  }
  /// algbw times the factor of the collective: comparable with link speed whatever the number of ranks.
  [[nodiscard]] bytes_per_second busbw(const timing& half) const {
    return algbw(half) * busbw_factor(collective, ranks);
  }
};

/// Element count of a size, as nccl-tests takes it: the whole array is cut into equal parts for the collectives that have one
/// part per rank, and what does not divide is left off.
[[nodiscard]] constexpr std::uint64_t count_of(collective_kind k, bytes size, dtype type, std::uint32_t ranks) {
  const std::uint64_t elements = size.value / size_of(type).value;
  return plan::sharded(k) && ranks > 0 ? elements / ranks : elements;
}

/// The size that `count` elements really have: count_of's inverse, without what was left off.
[[nodiscard]] constexpr bytes size_of_count(collective_kind k, std::uint64_t count, dtype type, std::uint32_t ranks) {
  return {count * size_of(type).value * (plan::sharded(k) ? ranks : 1)};
}

/// How sizes go from the first to the last.
struct size_range {
  bytes first = 32_MiB;
  bytes last = 32_MiB;
  std::optional<std::uint64_t> factor{};  ///< multiply; wins over `step`
  bytes step = 1_MiB;                     ///< add
};

/// The sizes of a range: `first`, then multiplied or increased while not above `last`. At most 10,000; a first size of 0 with a
/// factor gives one size. Precondition: factor >= 2 or step > 0, first <= last.
template <class = void>
[[nodiscard]] std::vector<bytes> sizes(const size_range& range) {
  std::vector<bytes> all;
  for (bytes size = range.first; size <= range.last && all.size() < 10000;) {
    all.push_back(size);
    const bytes next = range.factor ? size * *range.factor : size + range.step;
    if (next <= size) break;  // 0 * factor, or past 2^64
    size = next;
  }
  return all;
}

/// What the footer says of a sweep.
struct totals {
  std::uint64_t wrong = 0;
  bool checked = false;            ///< at least one half was checked
  bytes_per_second average_busbw;  ///< mean over all halves, as nccl-tests computes it
};

template <class = void>
[[nodiscard]] totals total(std::span<const row> rows) {
  totals t;
  for (const row& r : rows) {
    for (const timing* half : {&r.out_of_place, &r.in_place}) {
      t.wrong += half->wrong.value_or(0);
      t.checked = t.checked || half->wrong.has_value();
      t.average_busbw += r.busbw(*half);
    }
  }
  if (!rows.empty()) t.average_busbw = t.average_busbw / (2.0 * static_cast<double>(rows.size()));
  return t;
}

}}}  // namespace topocoll::v0::bench
