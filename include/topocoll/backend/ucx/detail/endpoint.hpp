// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank over UCX: posts steps, waits for them, finds out why nothing comes, and tells the others when it gives up.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sched.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/detail/cells.hpp>
#include <topocoll/backend/ucx/detail/core.hpp>
#include <topocoll/backend/ucx/detail/outbox.hpp>
#include <topocoll/backend/ucx/detail/wire.hpp>
#include <topocoll/backend/ucx/detail/worker.hpp>
#include <topocoll/backend/ucx/options.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace backend::detail {

/// Implements `Transport`. Not movable: UCX and other threads hold its address.
class ucx_endpoint : public ucx_core {
 public:
  ucx_endpoint(ucx_options options, ucx_group group) : ucx_core(std::move(options), std::move(group)) {}
  ~ucx_endpoint() {
    if (outbox_) leave();
  }

  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    for (const outgoing& o : out)
      if (auto ok = check_peer(o.to, o.channel); !ok) return std::move(ok).error();
    for (const incoming& i : in) {
      if (auto ok = check_peer(i.from, i.channel); !ok) return std::move(ok).error();
      if (i.with && (i.into.size() % size_of(i.with->type).value != 0 || (i.with->other == nullptr && !i.into.empty())))
        return fail(errc::invalid_argument, "a message of " + std::to_string(i.into.size()) +
                                                " bytes cannot be combined as " + std::string(to_string(i.with->type)) +
                                                " elements");
    }
    const turn mine(*this);
    if (look_for_end()) return cause_;
    if (steps_.full())
      return fail(errc::unavailable,
                  "rank " + std::to_string(group_.rank) + " has 65536 steps in flight, which is all that have a name");
    const std::uint32_t step = steps_.take(out.size() + in.size());
    for (const incoming& i : in) inbox_->receive(step, i);
    for (const outgoing& o : out) outbox_->send(step, o);
    if (!out.empty()) (void)outbox_->push();
    return steps_.name_of(step);
  }

  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    if (pending.empty())
      return fail(errc::invalid_argument, "rank " + std::to_string(group_.rank) + " waits for no ticket");
    const turn mine(*this);
    if (auto ok = check_tickets(pending); !ok) return std::move(ok).error();
    // A rank whose steps are always finished when it asks has to hear of the others, too.
    if (++calls_ % 8 == 0 && !broken_) (void)move();
    wait w{pending};
    for (;;) {
      if (const auto done = take_finished(pending)) return *done;
      if (look_for_end()) return cause_;
      if (move())
        w.idle_since = {-1};
      else if (!steps_.finished(pending))
        idle(w, until);
      // A group that never rests, but moves nothing for us, has to be looked at too.
      if (++w.polls % 1024 == 0 && until.passed()) idle(w, until);
    }
  }

  // See `PollableTransport`.
  [[nodiscard]] result<polled> poll_any(std::span<const ticket> pending) {
    const turn mine(*this);
    if (auto ok = check_tickets(pending); !ok) return std::move(ok).error();
    bool moved = ++calls_ % 8 == 0 && !broken_ && move();
    auto done = take_finished(pending);
    if (!done) {
      if (look_for_end()) return cause_;
      moved = move() || moved;
      done = take_finished(pending);
    }
    if (done)
      polling_ = wait{};
    else if (moved)
      polling_.idle_since = {-1};
    else if (++polling_.polls % 16 == 0)  // reading the clock costs something, too
      watch(polling_, steady_clock::now());
    return polled{done, moved || done};
  }
  void also_waits_for(std::span<const rank_id> others) {
    const turn mine(*this);
    elsewhere_.clear();
    for (const rank_id r : others) elsewhere_.push_back(r.value);
  }
  [[nodiscard]] std::vector<std::uint32_t> awaited_ranks() {
    const turn mine(*this);
    return missing();
  }
  [[nodiscard]] failure give_up(seconds waited) {
    const turn mine(*this);
    if (!look_for_end()) give_up({}, waited);
    (void)look_for_end();
    return cause_;
  }
  [[nodiscard]] failure end(const failure& cause) {
    const turn mine(*this);
    if (!look_for_end()) end_group(cause, true);
    return cause_;
  }

  void abort(const std::string& why) noexcept {
    int unsaid = 0;
    if (!abort_said_.compare_exchange_strong(unsaid, 1)) return;
    abort_size_ = std::min(why.size(), sizeof abort_why_);
    std::memcpy(abort_why_, why.data(), abort_size_);
    abort_said_.store(2);
    if (!in_use_.exchange(true)) {  // nobody is in a call who would tell the others
      (void)look_for_end();
      in_use_.store(false);
    } else {
      worker_.wake();
    }
  }

 private:
  // A failed connection waits this long for the cause, which may be on its way from somebody else.
  static constexpr seconds wait_for_cause{0.25};
  static constexpr seconds longest_sleep{0.05};
  static constexpr seconds nudge_after{2e-3};
  static constexpr seconds look_at_peers_every{0.1};
  static constexpr seconds farewell_patience{0.02};

  struct wait {
    std::span<const ticket> pending;
    seconds since{-1};       // of the first idle moment
    seconds idle_since{-1};  // of this one
    seconds last_look{};
    std::uint64_t polls = 0;
  };

  /// The right to use UCX and all of this: one thread at a time, and `abort` where no other has it.
  class turn {
   public:
    explicit turn(ucx_endpoint& e) : end_(e) {
      while (end_.in_use_.exchange(true)) ::sched_yield();
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
      end_.in_use_.store(false);
      // An abort that came just now has found us in a call, and left the telling to us.
      if (end_.abort_said_.load() == 2 && !end_.abort_heard_.load() && !end_.in_use_.exchange(true)) {
        (void)end_.look_for_end();
        end_.in_use_.store(false);
      }
    }

   private:
    ucx_endpoint& end_;
  };

  [[nodiscard]] result<void> check_peer(rank_id peer, std::uint32_t channel) const {
    if (peer.value >= group_.ranks())
      return fail(errc::invalid_argument, "there is no rank " + std::to_string(peer.value) + " in a group of " +
                                              std::to_string(group_.ranks()));
    if (peer.value == group_.rank)
      return fail(errc::invalid_argument, "rank " + std::to_string(group_.rank) + " has no lane to itself");
    if (channel >= options_.channels)
      return fail(
          errc::invalid_argument,
          "there is no channel " + std::to_string(channel) + ", the transport has " + std::to_string(options_.channels),
          "ask for more with ucx_options.channels");
    return {};
  }

  [[nodiscard]] result<void> check_tickets(std::span<const ticket> pending) const {
    for (const ticket k : pending)
      if (!steps_.known(k))
        return fail(errc::invalid_argument,
                    "ticket " + std::to_string(k.value) + " was never given out, or was given back");
    return {};
  }
  [[nodiscard]] std::optional<std::size_t> take_finished(std::span<const ticket> pending) {
    const auto done = steps_.finished(pending);
    if (!done) return std::nullopt;
    steps_.give_back(pending[*done]);
    if (steps_.none() && !broken_) {
      inbox_->list_rooms();
      tell_rooms();
    }
    return done;
  }

  void idle(wait& w, deadline until) {
    const seconds now = steady_clock::now();
    if (w.since.value < 0) w.since = w.last_look = now;
    if (w.idle_since.value < 0) w.idle_since = now;
    if (now >= until.at) return give_up(w.pending, now - w.since);
    const seconds idle_for = now - w.idle_since;
    if (idle_for < options_.spin) return;
    if (!watch(w, now)) return;
    seconds longest = std::min(longest_sleep, until.at - now);
    if (idle_for < nudge_after) longest = std::min(longest, nudge_after);
    worker_.sleep(longest);
  }

  /// Makes connections whose end can be noticed, and now and then looks whether peers live. False if one is seen dead.
  bool watch(wait& w, seconds now) {
    if (w.since.value < 0) w.since = w.last_look = now;
    if (w.idle_since.value < 0) w.idle_since = now;
    const bool look_now = now - w.last_look >= look_at_peers_every;
    if (look_now) w.last_look = now;
    if (!look_now && now - w.idle_since < nudge_after) return true;
    for (const std::uint32_t peer : missing()) {
      if (!outbox_->connected(peer)) say(peer, {ucx_word::nudge, group_.rank, 0, 0, 0, 0, 0, 0});
      if (!look_now || !dead(peer)) continue;
      for (bool more = true; more;) more = move();  // what it sent before it died still counts
      if (!awaited(peer)) continue;
      outbox_->note_death(peer);
      return false;
    }
    return true;
  }
  /// Whether the group is broken, by whatever has been noticed up to now.
  bool look_for_end() {
    if (abort_said_.load() == 2 && !abort_heard_.load()) {
      if (!broken_)
        end_group(fail(errc::aborted, "rank " + std::to_string(group_.rank) +
                                          " aborted the group: " + std::string(abort_why_, abort_size_)),
                  true);
      abort_heard_.store(true);
    }
    if (broken_) return true;
    if (heard_) {
      end_group(*heard_, false);
    } else if (inbox_->trouble()) {
      end_group(*inbox_->trouble(), true);
    } else if (outbox_->some_gone()) {
      std::uint32_t first = no_cell;  // the others may have gone because of it
      for (std::uint32_t r = 0; r < group_.ranks(); ++r)
        if (outbox_->state(r) != ucx_peer::present && awaited(r) &&
            (first == no_cell || outbox_->gone_at(r) < outbox_->gone_at(first)))
          first = r;
      if (first != no_cell) look_after(first, steady_clock::now());
    }
    return broken_;
  }
  [[nodiscard]] bool dead(std::uint32_t peer) const {
    return group_.state_of(peer).life == topocoll::detail::process_life::dead;
  }
  /// A peer that is gone and that something is awaited from.
  void look_after(std::uint32_t peer, seconds now) {
    const std::string waiting = " while rank " + std::to_string(group_.rank) + " waited for it";
    if (outbox_->state(peer) == ucx_peer::left) {
      // What it sent before may still be on its way, past its goodbye.
      if (now - outbox_->gone_at(peer) < farewell_patience) return;
      return end_group(fail(errc::peer_lost, group_.name_of(peer) + " left the group" + waiting,
                            "look at what that rank says about it"),
                       true);
    }
    const ucs_status_t status = outbox_->status(peer);
    const std::string said = status == UCS_OK ? "" : std::string(" (UCX: ") + ucs_status_string(status) + ")";
    const bool died = dead(peer);
    if (!died && now - outbox_->gone_at(peer) < wait_for_cause) return;
    if (died)
      return end_group(fail(errc::peer_lost, group_.name_of(peer) + " died" + waiting + said,
                            "look at that rank's own output, and in the kernel log for an out-of-memory kill"),
                       true);
    end_group(fail(errc::peer_lost, "the connection to " + group_.name_of(peer) + " is gone" + waiting + said,
                   "look whether that process and its host live, and at the network between the hosts"),
              true);
  }

  /// Time is up: ends the group, unless what is waited for comes after all.
  void give_up(std::span<const ticket> pending, seconds waited) {
    std::vector<std::uint32_t> peers = missing();
    peers.insert(peers.end(), elsewhere_.begin(), elsewhere_.end());
    seq::sort_unique(peers);
    for (const std::uint32_t peer : peers) {
      if (dead(peer)) outbox_->note_death(peer);
      if (outbox_->state(peer) != ucx_peer::present) return look_after(peer, steady_clock::now() + wait_for_cause);
    }
    std::string text =
        "rank " + std::to_string(group_.rank) + " waited " + topocoll::detail::span_in_words(waited) + " for ";
    if (peers.empty()) text += "its own steps";
    constexpr std::size_t most_named = 8;  // a sentence, not a list of thousands
    // All at once: one that is silent must not use up the time of those that would answer.
    for (std::size_t i = 0; i < peers.size() && i < most_named; ++i) ask(peers[i]);
    const deadline answers = deadline::in({0.1});
    std::vector<std::uint32_t> told;
    for (std::size_t i = 0; i < peers.size() && i < most_named; ++i)
      text += (i == 0 ? "" : "; ") + way_from(peers[i], answers, told);
    if (peers.size() > most_named) text += " and " + std::to_string(peers.size() - most_named) + " more";
    if (heard_ || steps_.finished(pending)) return;  // while we asked
    end_group(fail(errc::timed_out, text, "find out what that rank is doing, or allow more time"), true);
  }
  void ask(std::uint32_t peer) {
    last_words_[peer].waits_for = unasked;
    say(peer, {ucx_word::ask, group_.rank, 0, 0, 0, 0, 0, 0});
  }
  /// "rank 1, which waits for rank 0: rank 0 (pid 12 on host a) is silent": peers that wait themselves answer when
  /// asked. Precondition: the first one was.
  [[nodiscard]] std::string way_from(std::uint32_t at, deadline answers, std::vector<std::uint32_t>& told) {
    std::string text = "rank " + std::to_string(at);
    std::vector<std::uint32_t> seen{group_.rank, at};
    for (;;) {
      while (last_words_[at].waits_for == unasked && outbox_->state(at) == ucx_peer::present && !answers.passed())
        if (!move()) worker_.sleep(std::min(answers.left(), seconds{0.01}));
      const std::uint32_t next = last_words_[at].waits_for;
      if (next == unasked) break;
      if (next >= group_.ranks()) return text + ", which is in a call and waits for nobody";
      text += ", which waits for rank " + std::to_string(next);
      if (std::find(seen.begin(), seen.end(), next) != seen.end())
        return text + " (they wait for each other: not all ranks make the same calls in the same order)";
      seen.push_back(next);
      at = next;
      ask(at);
      answers = std::max(answers, deadline::in({0.02}));
    }
    if (std::find(told.begin(), told.end(), at) != told.end()) return text;
    told.push_back(at);
    text += ": " + group_.name_of(at);
    if (group_.same_process(at)) return text + " is a thread of this process, and silent";
    const topocoll::detail::process_state is = group_.state_of(at);
    if (is.life == topocoll::detail::process_life::alive)
      return text + " is alive but silent, " + std::string(topocoll::detail::state_in_words(is.letter));
    if (is.life == topocoll::detail::process_life::dead) return text + " is dead";
    return text + " is silent, and whether it lives cannot be seen from here";
  }

  /// Says goodbye, waits a while for those that have not taken everything yet, and closes.
  void leave() {
    (void)look_for_end();
    if (!broken_) {
      inbox_->drop();
      outbox_->drop();
      // Whoever waits for us may have knocked meanwhile.
      for (int quiet = 0; quiet < 3;) quiet = move() ? 0 : quiet + 1;
      for (std::uint32_t r = 0; r < group_.ranks(); ++r)
        if (r != group_.rank && outbox_->state(r) == ucx_peer::present && in_touch(r))
          say(r, {ucx_word::goodbye, group_.rank, 0, 0, 0, 0, 0, 0});
      const seconds start = steady_clock::now();
      run_until(deadline::in(options_.linger), [&] {
        bool open = outbox_->data_under_way() != 0, owed = open;
        open = open || outbox_->words_under_way() != 0;
        for (std::uint32_t r = 0; r < group_.ranks(); ++r) {
          if (r == group_.rank || outbox_->state(r) != ucx_peer::present || !in_touch(r)) continue;
          if (last_words_[r].farewell) continue;
          open = true;
          owed = owed || outbox_->owed(r);
        }
        return heard_.has_value() || !open || (!owed && steady_clock::now() - start > farewell_patience);
      });
    } else {
      run_until(deadline::in(longest_telling), [&] { return outbox_->words_under_way() == 0; });
    }
    outbox_->close_all(false);
    run_until(deadline::in(longest_closing), [&] {
      return outbox_->closes_under_way() == 0 && outbox_->data_under_way() == 0 && outbox_->words_under_way() == 0;
    });
    inbox_->forget();
  }

  std::uint64_t calls_ = 0;
  wait polling_;  // since `poll_any` found something last
  std::atomic<bool> in_use_{false};
  std::atomic<int> abort_said_{0};  // 0 no, 1 being written, 2 yes
  std::atomic<bool> abort_heard_{false};
  char abort_why_[512];
  std::size_t abort_size_ = 0;
};

}}}  // namespace topocoll::v0::backend::detail
