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

struct call;
class prepared_program;
namespace detail {
class program_run;
struct window_shape;
template <MemorySpace M, Transport T>
[[nodiscard]] result<void> run_windows(M& memory, T& transport, prepared_program& prepared, const call& what,
                                       std::byte* scratch, const window_shape& shape, deadline until);
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
  // State of the runs under way, kept so that a call allocates nothing.
  struct run_state {
    std::vector<std::uint32_t> open;  // per step: how many are still to finish before it
    std::vector<std::uint32_t> next_in_channel;
    std::vector<std::uint64_t> starts, window_starts;  // of unequal shards: in the whole array, and in one window of it
  };
  struct step_under_way {
    std::uint32_t run;
    std::uint32_t step;
  };
  // For `detail::run_windows`.
  [[nodiscard]] std::span<const ticket> tickets() const { return tickets_; }
  void begin(std::uint32_t places) {
    if (states_.size() < places) states_.resize(places);
    tickets_.clear();
    under_way_.clear();
  }
  /// The step of the i-th ticket, which was given back.
  step_under_way take(std::size_t i) {
    const step_under_way it = under_way_[i];
    under_way_[i] = under_way_.back();
    under_way_.pop_back();
    tickets_[i] = tickets_.back();
    tickets_.pop_back();
    return it;
  }
  [[nodiscard]] std::uint32_t first_under_way() const { return under_way_.empty() ? 0 : under_way_.front().run; }
  template <MemorySpace M, Transport T>
  friend result<void> detail::run_windows(M& memory, T& transport, prepared_program& prepared, const call& what,
                                          std::byte* scratch, const detail::window_shape& shape, deadline until);

  std::vector<run_state> states_;
  std::vector<ticket> tickets_;            // of the steps under way, of all runs
  std::vector<step_under_way> under_way_;  // which these are
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
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
  /// Most windows under way at a time, as far as the transport has channels: while one waits for a slow link, others use
  /// the rest. Ranks must agree. At least 1.
  std::uint32_t in_flight = 1;
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
  /// has started those before it. Windows under way at the same time have channels of their own.
  /// @return `invalid_argument` if program, transport or counts do not belong together, `unsupported` if the program needs
  ///          more channels than the transport has, or what the transport reports, with step, stage and call added
  template <Transport T>
  [[nodiscard]] result<void> run(T& transport, prepared_program& prepared, const call& what, deadline until);

  [[nodiscard]] M& memory() { return memory_; }
  /// Scratch memory of `size` bytes at least, contents unspecified, until the next call of this or of `run`.
  [[nodiscard]] result<std::byte*> scratch_of(std::uint64_t size) {
    if (scratch_.size() < size) {
      memory_.release(std::exchange(scratch_, {}));
      auto more = memory_.allocate({size});
      if (!more) return std::move(more).error();
      scratch_ = *more;
    }
    return scratch_.data();
  }

 private:
  M memory_;
  std::span<std::byte> scratch_;
};

}}  // namespace topocoll::v0

#include <topocoll/exec/detail/program_run.hpp>
