// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the program of one rank on a transport and a memory space, for any number of elements.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 {

namespace detail {
class program_run;
}  // namespace detail

/// A program with what its execution needs, worked out once: who waits for whom, and room for the state of a run.
///
/// It is a plan as data, from whatever source: `of` checks that it can be run without touching memory that is not
/// there; that it computes its collective is for `plan::verify` to say.
class prepared_program {
 public:
  /// @return `invalid_argument`, naming the step, for a program whose numbers are out of range
  /// Cost: O(steps + operations), once.
  [[nodiscard]] static inline result<prepared_program> of(plan::program given);

  [[nodiscard]] const plan::program& program() const { return program_; }
  /// True when no operation moves chunks of several units at once, so that a call can be cut into windows.
  [[nodiscard]] bool windowable() const { return windowable_; }

 private:
  friend class detail::program_run;

  explicit prepared_program(plan::program p) : program_(std::move(p)) {}

  plan::program program_;
  bool windowable_ = true;
  std::vector<std::uint32_t> waits_for_;       // per step: how many others it waits for
  std::vector<std::uint32_t> first_follower_;  // steps that wait for step s are followers_[first_follower_[s]...]
  std::vector<std::uint32_t> followers_;
  std::vector<std::uint32_t>
      first_of_channel_;  // steps of channel c, in order, are by_channel_[first_of_channel_[c]...]
  std::vector<std::uint32_t> by_channel_;
  // State of a run, kept so that a call allocates nothing.
  std::vector<std::uint32_t> open_;  // per step: how many are still to finish before it
  std::vector<std::uint32_t> next_in_channel_;
  std::vector<ticket> tickets_;           // of the steps under way
  std::vector<std::uint32_t> under_way_;  // their steps
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  std::vector<std::uint32_t> finished_;
  std::vector<std::uint64_t> starts_, window_starts_;  // of unequal shards: in the whole array, and in one window of it
};

/// One call of a collective on one rank.
struct call {
  const std::byte* input =
      nullptr;  ///< what this rank brings, `input_of`: its shard for all_gather and gather; unused where it is nothing
  std::byte* output = nullptr;  ///< what this rank gets, `output_of`: its shard for reduce_scatter and scatter
  std::uint64_t count = 0;      ///< elements of the buffer, or per rank for the sharded collectives
  dtype type = dtype::float32;
  reduce_op op = reduce_op::sum;
  std::uint32_t number = 0;  ///< of this call among all of the group: ranks must agree
  std::uint64_t digest = 0;  ///< of the plan: ranks must agree
  /// Most elements of the buffer (or of a shard) that are worked on at once; 0 for all. Pieces of a large buffer stay
  /// in the caches from the first read to the last write. Ranks must agree, and all their programs be `windowable`.
  std::uint64_t window = 0;
  /// Elements of every rank's shard where they differ; then `count` is the largest of them. Empty: all are `count`. Only
  /// for the sharded collectives, but not for all_to_all. Ranks must agree. Borrowed.
  std::span<const std::uint64_t> counts{};
};

/// Runs programs, and owns the scratch memory that they need, which grows and is kept.
template <MemorySpace M>
class executor {
 public:
  explicit executor(M memory = M()) : memory_(std::move(memory)) {}
  executor(executor&& o) noexcept : memory_(std::move(o.memory_)), scratch_(std::exchange(o.scratch_, {})) {}
  executor& operator=(executor&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(scratch_, o.scratch_);
    return *this;
  }
  ~executor() { memory_.release(scratch_); }

  /// Runs the program until its last step has finished. On failure the transport's group is broken, and the output is
  /// unspecified.
  ///
  /// Channels go on independently: a step starts as soon as the steps that it waits for have finished and its channel
  /// has started those before it.
  /// @return `invalid_argument` if program, transport or counts do not belong together, `unsupported` if the program needs
  ///          more channels than the transport has, or what the transport reports, with step, stage and call added
  template <Transport T>
  [[nodiscard]] result<void> run(T& transport, prepared_program& prepared, const call& what, deadline until);

  [[nodiscard]] M& memory() { return memory_; }

 private:
  [[nodiscard]] result<std::byte*> scratch_of(std::uint64_t size) {
    if (scratch_.size() < size) {
      memory_.release(std::exchange(scratch_, {}));
      auto more = memory_.allocate({size});
      if (!more) return std::move(more).error();
      scratch_ = *more;
    }
    return scratch_.data();
  }

  M memory_;
  std::span<std::byte> scratch_;
};

}}  // namespace topocoll::v0

#include <topocoll/exec/detail/program_run.hpp>
