// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps whose messages go through two transports, and how a wait for them lets time pass.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sched.h>
#include <span>
#include <time.h>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/exec/detail/patience.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Which of the two transports.
enum class side : std::uint8_t { within_host, between_hosts };

/// Tickets of the two transports under one ticket of both.
class mixed_steps {
 public:
  [[nodiscard]] bool full() const { return free_.empty() && steps_.size() > 0xffffU; }
  /// Precondition: not full.
  [[nodiscard]] ticket take(std::optional<ticket> within, std::optional<ticket> between) {
    std::uint32_t at = static_cast<std::uint32_t>(steps_.size());
    if (free_.empty()) {
      steps_.push_back({});
    } else {
      at = free_.back();
      free_.pop_back();
    }
    step& s = steps_[at];
    s.parts = {within, between};
    s.given = true;
    return {(std::uint32_t{s.generation} << 16U) | at};
  }
  [[nodiscard]] bool known(ticket k) const {
    const std::uint32_t at = k.value & 0xffffU;
    return at < steps_.size() && steps_[at].given && steps_[at].generation == k.value >> 16U;
  }
  /// Precondition of this and what follows: the tickets are known.
  [[nodiscard]] std::optional<std::size_t> finished(std::span<const ticket> pending) const {
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const step& s = steps_[pending[i].value & 0xffffU];
      if (!s.parts[0] && !s.parts[1]) return i;
    }
    return std::nullopt;
  }
  void give_back(ticket k) {
    step& s = steps_[k.value & 0xffffU];
    s.given = false;
    ++s.generation;
    free_.push_back(k.value & 0xffffU);
  }

  /// Lists the parts of these steps that are open, for `open`.
  void list(std::span<const ticket> pending) {
    for (std::size_t i = 0; i < 2; ++i) {
      open_[i].clear();
      owners_[i].clear();
      for (const ticket k : pending) {
        const std::uint32_t at = k.value & 0xffffU;
        if (!steps_[at].parts[i]) continue;
        open_[i].push_back(*steps_[at].parts[i]);
        owners_[i].push_back(at);
      }
    }
  }
  [[nodiscard]] std::span<const ticket> open(side s) const { return open_[static_cast<std::size_t>(s)]; }
  /// The part at this place of the list is done.
  void finish(side s, std::size_t place) {
    const auto i = static_cast<std::size_t>(s);
    steps_[owners_[i][place]].parts[i].reset();
    open_[i][place] = open_[i].back();
    open_[i].pop_back();
    owners_[i][place] = owners_[i].back();
    owners_[i].pop_back();
  }

 private:
  struct step {
    std::array<std::optional<ticket>, 2> parts;  // by side; none when done
    std::uint16_t generation = 0;
    bool given = false;
  };
  std::vector<step> steps_;
  std::vector<std::uint32_t> free_;
  std::array<std::vector<ticket>, 2> open_;
  std::array<std::vector<std::uint32_t>, 2> owners_;  // steps, in the order of open_
};

/// A wait that has to look at two transports in turn: it can sleep on neither, so it sleeps shortly.
struct mixed_idle {
  // Spinning costs other ranks of the core their turn, and looking at a network a system call each time.
  static constexpr std::uint32_t spin_polls = 64;
  static constexpr seconds longest_yielding{1e-3};
  static constexpr seconds one_sleep{
      50e-6};  // a message may wait so long, and as long as the system is late to wake us
  static constexpr std::uint32_t sleeps_per_word = 16;

  std::uint32_t polls = 0;
  std::uint32_t sleeps = 0;
  seconds first{-1};  // look at the clock in this wait
  seconds since{-1};  // of this idle stretch

  void moved() {
    polls = 0;
    since = {-1};
  }
  [[nodiscard]] bool sleeping() const { return sleeps != 0; }
  [[nodiscard]] seconds waited() const { return first.value < 0 ? seconds{} : steady_clock::now() - first; }
  /// Whether time is up, for a wait that may never be idle.
  [[nodiscard]] bool late(deadline until) {
    const seconds now = steady_clock::now();
    if (first.value < 0) first = now;
    return now >= until.at;
  }
  /// Lets a little time pass. @param say  () -> void, called now and then, before a sleep. False when time is up.
  template <class Say>
  [[nodiscard]] bool pass(deadline until, const Say& say) {
    if (++polls <= spin_polls) {
      pause_briefly();
      return true;
    }
    const seconds now = steady_clock::now();
    if (first.value < 0) first = now;
    if (since.value < 0) since = now;
    if (now >= until.at) return false;
    if (now - since < longest_yielding) {
      ::sched_yield();
      return true;
    }
    if (sleeps++ % sleeps_per_word == 0) say();
    const timespec t{0, static_cast<long>(std::min(one_sleep, until.at - now).value * 1e9)};
    ::nanosleep(&t, nullptr);
    return true;
  }
};

}}}  // namespace topocoll::v0::detail
