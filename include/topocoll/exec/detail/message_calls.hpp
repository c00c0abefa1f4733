// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls of a communicator whose data move by messages: by a plan, or in the order of the ranks.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/call_options.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/detail/host_call.hpp>
#include <topocoll/exec/detail/ordered_calls.hpp>
#include <topocoll/exec/detail/plan_store.hpp>
#include <topocoll/exec/executor.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <MemorySpace M>
class message_calls {
 public:
  message_calls(M memory, const communicator_options& options) : executor_(std::move(memory)), options_(options) {}

  [[nodiscard]] M& memory() { return executor_.memory(); }
  [[nodiscard]] plan_store& plans() { return plans_; }
  [[nodiscard]] const plan_store& plans() const { return plans_; }

  /// Whether calls of this collective combine in the order of the ranks, whatever was adopted.
  [[nodiscard]] bool in_rank_order(collective_kind kind) const { return options_.deterministic && reduces(kind); }
  /// Whether calls of this collective go by a plan that the caller chose.
  [[nodiscard]] bool by_adopted_plan(collective_kind kind, std::uint32_t root) const {
    return !in_rank_order(kind) && plans_.adopted(kind, root);
  }
  /// What can be said about a call on this rank alone, beside its buffers.
  [[nodiscard]] result<void> check(collective_kind kind, dtype type, reduce_op op) const {
    if (!in_rank_order(kind)) return {};
    return ordered_calls<>::check<M>(type, op);
  }

  /// Runs a call of one element at least that was checked.
  template <Transport T>
  [[nodiscard]] result<void> run(T& transport, const host_call& what, std::uint32_t number, deadline until) {
    const std::uint64_t width = size_of(what.type).value;
    std::uint64_t all = what.count * (plan::sharded(what.kind) ? transport.size() : 1);
    if (!what.counts.empty()) {
      all = 0;
      for (const std::uint64_t c : what.counts) all += c;
    }
    const plan_store::request asked{what.type, what.op, what.counts.empty() ? what.count : mark_of(what.counts),
                                    number};
    if (in_rank_order(what.kind)) {
      if (auto same = plans_.agree_on_order(transport, what.kind, what.root, order_mark(options_), asked, until); !same)
        return same;
      return ordered_.run(executor_, transport, what, number, options_, until);
    }
    auto plan = plans_.find(transport, what.kind, what.root, {width * all}, asked, until);
    if (!plan) return std::move(plan).error();
    call c;
    c.input = what.in;
    c.output = what.out;
    c.count = what.count;
    c.type = what.type;
    c.op = what.op;
    c.number = number;
    c.digest = (*plan)->digest;
    c.in_flight = options_.in_flight;
    c.counts = what.counts;
    if ((*plan)->windowable) c.window = window_of(what, all);
    return executor_.run(transport, (*plan)->program, c, until);
  }

 private:
  /// Elements of the buffer, or of the longest shard, so that the pieces of all shards together are not larger than a window.
  [[nodiscard]] std::uint64_t window_of(const host_call& what, std::uint64_t all) const {
    const std::uint64_t room = options_.window.value, width = size_of(what.type).value;
    if (what.counts.empty()) return room / width / (all / what.count);
    if (room == 0) return 0;
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(static_cast<double>(room) / static_cast<double>(width * all) *
                                      static_cast<double>(what.count)));
  }

  executor<M> executor_;
  communicator_options options_;
  plan_store plans_;
  ordered_calls<> ordered_;
};

}}}  // namespace topocoll::v0::detail
