// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport around another one that fails on purpose: slow, silent or corrupting links, a rank that dies. For tests.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <time.h>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

/// What is wrong with the way from one rank to another. Messages of a link are counted from 0, over all channels.
struct link_fault {
  static constexpr std::uint64_t never = UINT64_MAX;

  rank_id from{};
  rank_id to{};
  /// Each message is handed on after a delay drawn from 0 to this. The sending rank's thread sleeps meanwhile, so a
  /// slow link slows its sender.
  seconds longest_delay{};
  double loss_share = 0;              ///< share of messages that are lost, drawn one by one
  std::uint64_t silent_from = never;  ///< this message and all after it are lost
  std::uint64_t corrupt_at = never;   ///< this message arrives with a bit of its tag turned over
};

/// What goes wrong on one rank. The same plan gives the same faults in every run: all draws come from the seed.
struct fault_plan {
  std::uint64_t seed = 0;
  std::vector<link_fault> links;  ///< those whose `from` is another rank have no effect here
  std::uint64_t die_at_post =
      link_fault::never;  ///< at this call of `post`, counted from 0, the rank destroys its transport
};

/// Wraps a transport. A lost message counts as sent; whoever should receive it waits until the deadline.
///
/// A rank that died as planned gets `peer_lost` from every call; the others see whatever the wrapped transport makes of
/// a rank that left.
template <Transport T>
class faulty {
 public:
  faulty(T inner, fault_plan plan)
      : inner_(std::move(inner)),
        plan_(std::move(plan)),
        rank_(inner_->rank()),
        size_(inner_->size()),
        channels_(inner_->channels()) {
    counts_.resize(plan_.links.size());
  }

  [[nodiscard]] rank_id rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t channels() const { return channels_; }

  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    if (inner_ && posts_++ == plan_.die_at_post) inner_.reset();
    if (!inner_) return dead();
    kept_.clear();
    for (outgoing o : out) {
      bool lost = false;
      for (std::size_t i = 0; i < plan_.links.size(); ++i) {
        const link_fault& f = plan_.links[i];
        if (f.from != rank_ || f.to != o.to) continue;
        const std::uint64_t k = counts_[i]++;
        const std::uint64_t draw = detail::mixed(detail::mixed(plan_.seed + i) + k);
        const double share = static_cast<double>(draw >> 11U) * 0x1p-53;  // 53 bits: uniform in [0, 1)
        if (f.longest_delay.value > 0) pause(f.longest_delay * share);
        lost = lost || k >= f.silent_from || static_cast<double>(detail::mixed(draw) >> 11U) * 0x1p-53 < f.loss_share;
        if (k == f.corrupt_at) o.tag ^= std::uint64_t{1} << (draw % 64);
      }
      if (!lost) kept_.push_back(o);
    }
    return inner_->post(kept_, in);
  }
  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    if (!inner_) return dead();
    return inner_->wait_any(pending, until);
  }
  void abort(const std::string& why) noexcept {
    if (inner_) inner_->abort(why);
  }

  // See `PollableTransport`.
  [[nodiscard]] result<polled> poll_any(std::span<const ticket> pending) requires PollableTransport<T> {
    if (!inner_) return dead();
    return inner_->poll_any(pending);
  }
  [[nodiscard]] std::vector<rank_id> missing() const requires PollableTransport<T> {
    return inner_ ? inner_->missing() : std::vector<rank_id>();
  }
  void also_waits_for(std::span<const rank_id> others) requires PollableTransport<T> {
    if (inner_) inner_->also_waits_for(others);
  }
  [[nodiscard]] failure give_up(seconds waited) requires PollableTransport<T> {
    return inner_ ? inner_->give_up(waited) : dead();
  }
  [[nodiscard]] failure end(const failure& cause) requires PollableTransport<T> {
    return inner_ ? inner_->end(cause) : dead();
  }
  void call_ranks(std::vector<rank_id> numbers) requires requires(T& t) { t.call_ranks(numbers); }
  {
    if (inner_) inner_->call_ranks(std::move(numbers));
  }

 private:
  [[nodiscard]] failure dead() const {
    return fail(errc::peer_lost, "rank " + std::to_string(rank_.value) + " died at post " +
                                     std::to_string(plan_.die_at_post) + ", as planned");
  }
  static void pause(seconds s) noexcept {
    const auto whole = static_cast<time_t>(s.value);
    const timespec t{whole, static_cast<long>((s.value - static_cast<double>(whole)) * 1e9)};
    ::nanosleep(&t, nullptr);
  }

  std::optional<T> inner_;
  fault_plan plan_;
  rank_id rank_;
  std::uint32_t size_;
  std::uint32_t channels_;
  std::uint64_t posts_ = 0;
  std::vector<std::uint64_t> counts_;  // messages so far, by link
  std::vector<outgoing> kept_;
};
static_assert(PollableTransport<faulty<inproc_transport>>);

}}  // namespace topocoll::v0
