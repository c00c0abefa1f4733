// SPDX-License-Identifier: Apache-2.0
#pragma once
// A call of a collective between the ranks of one host: what the ranks compare, which parts it has, and the loops that do
// its work where memory of others can be read and written.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/reduce.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// One call on one rank. Buffers as in `communicator::run`; counts differ or not.
struct host_call {
  collective_kind kind = collective_kind::all_reduce;
  dtype type = dtype::float32;
  reduce_op op = reduce_op::sum;
  std::uint32_t root = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;                  ///< elements of the buffer, or of every shard, or of the largest
  std::span<const std::uint64_t> counts{};  ///< elements of every rank's shard where they differ
};

[[nodiscard]] inline host_call host_call_of(collective_kind kind, std::uint32_t root, const void* in, void* out,
                                            std::uint64_t count, dtype type, reduce_op op) {
  return {kind,  type, op, rooted(kind) ? root : 0, static_cast<const std::byte*>(in), static_cast<std::byte*>(out),
          count, {}};
}

/// What else a rank may announce.
enum class call_form : std::uint8_t { collective, with_counts, barrier, exchange, by_messages, agreement };

// Bits of the mark: 63..56 form, 55..48 collective, 47..40 type, 39..32 operation, 31..0 root.
[[nodiscard]] constexpr std::uint64_t call_mark(call_form form, collective_kind kind, dtype type, reduce_op op,
                                                std::uint32_t root) {
  return (static_cast<std::uint64_t>(form) << 56U) | (static_cast<std::uint64_t>(kind) << 48U) |
         (static_cast<std::uint64_t>(type) << 40U) |
         (static_cast<std::uint64_t>(reduces(kind) ? op : reduce_op::sum) << 32U) | (rooted(kind) ? root : 0);
}

template <class = void>
[[nodiscard]] std::string name_of_call(std::uint64_t mark) {
  const auto form = static_cast<call_form>(mark >> 56U);
  if (form == call_form::barrier) return "barrier";
  if (form == call_form::exchange) return "all_to_all_v";
  return std::string(to_string(static_cast<collective_kind>((mark >> 48U) & 0xffU))) +
         (form == call_form::with_counts ? "_v" : "");
}

/// In the form with lists, `count` stands for a list, and says nothing to people. "all_reduce of 12 float (sum)", "broadcast of 7 double from rank 2", "barrier".
template <class = void>
[[nodiscard]] std::string call_in_words(std::uint64_t mark, std::uint64_t count) {
  const auto form = static_cast<call_form>(mark >> 56U);
  std::string text = name_of_call(mark);
  if (form == call_form::barrier || form == call_form::exchange) return text;
  const auto kind = static_cast<collective_kind>((mark >> 48U) & 0xffU);
  text += form == call_form::with_counts ? " of" : " of " + std::to_string(count);
  text += " " + std::string(to_string(static_cast<dtype>((mark >> 40U) & 0xffU)));
  if (reduces(kind)) text += " (" + std::string(to_string(static_cast<reduce_op>((mark >> 32U) & 0xffU))) + ")";
  if (rooted(kind))
    text += (kind == collective_kind::broadcast || kind == collective_kind::scatter ? " from rank " : " to rank ") +
            std::to_string(mark & 0xffffffffU);
  if (form == call_form::by_messages) text += " by an adopted plan";
  return text;
}

/// A stretch of elements.
struct stretch {
  std::uint64_t from = 0;
  std::uint64_t count = 0;
};

/// Part `r` of `n` of `count` elements, cut where cache lines end if the array begins at one.
[[nodiscard]] constexpr stretch part_of(std::uint64_t count, std::uint32_t r, std::uint32_t n, std::uint64_t width) {
  const std::uint64_t line = 64 / width;
  const std::uint64_t each = ((count + n - 1) / n + line - 1) / line * line;
  const std::uint64_t from = std::min(count, r * each);
  return {from, std::min(each, count - from)};
}

/// The same of one `window` elements long piece that begins at `at`.
[[nodiscard]] constexpr stretch clipped(std::uint64_t count, std::uint64_t at, std::uint64_t window) {
  return at >= count ? stretch{at, 0} : stretch{at, std::min(window, count - at)};
}

/// A call, and where all ranks have what it is about.
template <class = void>
class host_job {
 public:
  explicit host_job(std::uint32_t rank, std::uint32_t ranks)
      : me(rank), n(ranks), ins(ranks), outs(ranks), level_(best_vector_level()) {
    sources.reserve(ranks);
    targets.reserve(ranks + 1);
    starts_.resize(std::size_t{ranks} + 1);
  }

  /// Takes up a new call, which stays where it is until the next one. It is not copied: a caller has just written its fields
  /// one by one, and a wide load of narrow stores waits until all stores before it have left the core.
  void begin(const host_call& c) {
    call_ = &c;
    width = size_of(c.type).value;
    sharded_ = plan::sharded(c.kind);
    if (sharded_) {
      starts_[0] = 0;
      for (std::uint32_t r = 0; r < n; ++r) starts_[r + 1] = starts_[r] + count_of(r);
    }
  }
  [[nodiscard]] const host_call& call() const { return *call_; }
  [[nodiscard]] std::uint64_t total() const { return sharded_ ? starts_[n] : call_->count; }
  [[nodiscard]] std::uint64_t start_of(std::uint32_t r) const { return starts_[r]; }
  [[nodiscard]] std::uint64_t count_of(std::uint32_t r) const {
    return call_->counts.empty() ? call_->count : call_->counts[r];
  }
  [[nodiscard]] region input_of(std::uint32_t r) const { return v0::input_of(call_->kind, r == call_->root); }
  [[nodiscard]] region output_of(std::uint32_t r) const { return v0::output_of(call_->kind, r == call_->root); }
  [[nodiscard]] std::uint64_t size_in(region part, std::uint32_t r) const {
    return part == region::nothing ? 0 : (part == region::whole ? total() : count_of(r)) * width;
  }
  /// Bytes of the longest input of any rank.
  [[nodiscard]] std::uint64_t longest_input() const {
    const bool shards = call_->kind == collective_kind::all_gather || call_->kind == collective_kind::gather;
    return (shards ? call_->count : total()) * width;
  }
  [[nodiscard]] bool has_output(std::uint32_t r) const { return output_of(r) != region::nothing; }

  /// Combines the sources, or copies the only one, into all targets.
  void combine(std::uint64_t count, bool past_caches) {
    if (count == 0 || targets.empty()) return;
    const bool brief = count * width <= 64 && (is_integer(call_->type) || width >= 4);
    reduce_kernel_of(call_->type, call_->op, brief ? vector_level::baseline : level_)(
        targets, sources, count, {.streaming_stores = past_caches, .divide_by = call_->op == reduce_op::avg ? n : 1});
  }
  void spread(const std::byte* from, std::uint64_t size, bool past_caches) {
    std::erase_if(targets, [&](const std::byte* t) { return t == from; });
    if (size == 0 || targets.empty()) return;
    if (targets.size() == 1 && !past_caches) {
      std::memcpy(targets[0], from, size);
      return;
    }
    reduce_kernel_of(dtype::uint8, reduce_op::sum, level_)(targets, {&from, 1}, size,
                                                           {.streaming_stores = past_caches});
  }
  static void copy(std::byte* to, const std::byte* from, std::uint64_t size) {
    if (size != 0 && to != from) std::memcpy(to, from, size);
  }

  /// This rank's share of the call, straight from the inputs into the outputs. Precondition: `ins` and `outs` of all.
  void work(bool past_caches) {
    switch (call_->kind) {
      case collective_kind::all_reduce:
      case collective_kind::reduce: {
        const stretch s = part_of(call_->count, me, n, width);
        sources.clear();
        targets.clear();
        for (std::uint32_t r = 0; r < n; ++r) {
          sources.push_back(ins[r] + s.from * width);
          if (has_output(r)) targets.push_back(outs[r] + s.from * width);
        }
        return combine(s.count, past_caches);
      }
      case collective_kind::reduce_scatter: {
        sources.clear();
        for (std::uint32_t r = 0; r < n; ++r) sources.push_back(ins[r] + start_of(me) * width);
        targets.assign(1, outs[me]);
        return combine(count_of(me), past_caches);
      }
      case collective_kind::broadcast: {
        const stretch s = part_of(call_->count, me, n, width);
        targets.clear();
        for (std::uint32_t r = 0; r < n; ++r) targets.push_back(outs[r] + s.from * width);
        return spread(ins[call_->root] + s.from * width, s.count * width, past_caches);
      }
      case collective_kind::all_gather:
      case collective_kind::gather:
        targets.clear();
        for (std::uint32_t r = 0; r < n; ++r)
          if (has_output(r)) targets.push_back(outs[r] + start_of(me) * width);
        return spread(ins[me], count_of(me) * width, past_caches);
      case collective_kind::scatter:
        targets.assign(1, outs[me]);
        return spread(ins[call_->root] + start_of(me) * width, count_of(me) * width, past_caches);
      case collective_kind::all_to_all:
        for (std::uint32_t d = 0; d < n; ++d) {
          const std::uint32_t r = (me + d) % n;
          targets.assign(1, outs[r] + start_of(me) * width);
          spread(ins[me] + start_of(r) * width, call_->count * width, past_caches);
        }
        return;
    }
  }

  std::uint32_t me;
  std::uint32_t n;
  std::uint64_t width = 1;
  std::vector<const std::byte*> ins;  // of all ranks, where this one sees them
  std::vector<std::byte*> outs;

  std::vector<const std::byte*> sources;  // of the next `combine`
  std::vector<std::byte*> targets;        // of the next `combine` or `spread`

 private:
  const host_call* call_ = nullptr;
  vector_level level_;
  bool sharded_ = false;
  std::vector<std::uint64_t> starts_;  // of the shards, in elements
};

}}}  // namespace topocoll::v0::detail
