// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where ranks that are threads of one process meet: their parts under one lock.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/bootstrap_stream.hpp>
#include <topocoll/exec/detail/waiting_room.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

class thread_meeting {
 public:
  using parts = std::vector<std::vector<std::byte>>;

  explicit thread_meeting(std::uint32_t ranks) : parts_(ranks), here_(ranks) {}

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(here_.size()); }

  template <class = void>
  [[nodiscard]] result<parts> gather(std::uint32_t rank, gather_kind kind, std::span<const std::byte> mine,
                                     deadline until) {
    waiting_room::visit alone(room_);
    if (!over_ && gone_) (void)end(fail(errc::peer_lost, "rank " + std::to_string(*gone_) + " is gone"));
    if (over_) return *over_;
    const std::uint64_t call = sequence_;
    if (present_ == 0) kind_ = kind;
    if (kind != kind_)
      return end(fail(errc::mismatch,
                      "rank " + std::to_string(rank) + " is in " + word(kind) + ", while others are in " + word(kind_),
                      "make the same calls in the same order on all ranks"));
    parts_[rank].assign(mine.begin(), mine.end());
    here_[rank] = true;
    if (++present_ == ranks()) {
      done_ = std::exchange(parts_, parts(ranks()));
      here_.assign(ranks(), false);
      present_ = 0;
      ++sequence_;
      room_.tell_news();
    }
    while (sequence_ == call && !over_) {
      if (until.passed()) {
        std::vector<std::uint32_t> absent;
        for (std::uint32_t r = 0; r < ranks(); ++r)
          if (!here_[r]) absent.push_back(r);
        return end(fail(errc::timed_out, ranks_in_words(absent, ranks()) + " did not come to " + word(kind)));
      }
      alone.wait(until);
    }
    if (sequence_ == call) return *over_;
    return result<parts>(*done_);  // of this call: the next one cannot end without this rank
  }

  template <class = void>
  void abort(std::uint32_t rank, std::string_view why) {
    const waiting_room::visit alone(room_);
    if (!over_) (void)end(fail(errc::aborted, "rank " + std::to_string(rank) + " aborted: " + std::string(why)));
  }
  template <class = void>
  void leave(std::uint32_t rank) {
    const waiting_room::visit alone(room_);
    if (!gone_) gone_ = rank;
    if (!over_ && present_ > 0) (void)end(fail(errc::peer_lost, "rank " + std::to_string(rank) + " is gone"));
  }

 private:
  [[nodiscard]] static std::string word(gather_kind k) { return k == gather_kind::barrier ? "barrier" : "all_gather"; }
  [[nodiscard]] failure end(failure why) {
    over_ = std::move(why);
    room_.tell_news();
    return *over_;
  }

  waiting_room room_;
  parts parts_;
  std::vector<bool> here_;
  std::uint32_t present_ = 0;
  gather_kind kind_ = gather_kind::all_gather;
  std::uint64_t sequence_ = 0;
  std::optional<parts> done_;
  std::optional<std::uint32_t> gone_;
  std::optional<failure> over_;
};

}}}  // namespace topocoll::v0::detail
