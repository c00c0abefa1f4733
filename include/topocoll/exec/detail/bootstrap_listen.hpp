// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the root of a group forms it: every connection is a stranger until it has proved the token, and none of them can
// make the others wait.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/bootstrap_options.hpp>
#include <topocoll/exec/detail/bootstrap_place.hpp>
#include <topocoll/exec/detail/bootstrap_strangers.hpp>
#include <topocoll/exec/detail/bootstrap_stream.hpp>
#include <topocoll/exec/detail/bootstrap_wire.hpp>
#include <topocoll/io/socket.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

class group_forming {
 public:
  group_forming(io::tcp_listener listener, const bootstrap_options& o, deadline until)
      : listener_(std::move(listener)), options_(o), until_(until), at_(listener_.local()) {
    group_.rank = group_.root = o.rank.value;
    group_.places.resize(o.size);
    group_.links.resize(o.size);
    group_.places[o.rank.value] = own_place(o);
    group_.largest_piece = o.largest_piece;
  }

  template <class = void>
  [[nodiscard]] result<formed_group> run() {
    const seconds started = steady_clock::now();
    while (present_ + 1 < options_.size) {
      if (wake_up().passed()) return fail_all(missing(steady_clock::now() - started));
      if (auto ready = wait(); !ready) return fail_all(std::move(ready).error());
      if (auto here = hear_members(); !here) return fail_all(std::move(here).error());
      if (auto heard = hear_newcomers(); !heard) return fail_all(std::move(heard).error());
      if (auto taken = take_connections(); !taken) return fail_all(std::move(taken).error());
    }
    listener_.close();
    const auto start = std::make_shared<const std::vector<std::byte>>(encode_start(group_.places));
    for (framed_stream& s : group_.links)
      if (s.is_open()) s.push(start);
    flush_all(group_.links, until_);
    for (std::uint32_t r = 0; r < options_.size; ++r)
      if (r != options_.rank.value && (!group_.links[r].is_open() || group_.links[r].has_unsent()))
        return fail_all(
            fail(errc::peer_lost, rank_in_words(r, group_.places[r]) + " left before all ranks had joined"));
    group_.findings = strangers_.findings(at_.text());
    return result<formed_group>(std::move(group_));
  }

 private:
  struct newcomer {
    framed_stream stream;
    deadline until;
    std::optional<hello> said;
    std::uint16_t version = 0;
    std::vector<std::byte> greeting;  ///< hello and challenge, which the proof covers
  };
  // Beyond the ranks: as many strangers may be waiting, each with a kilobyte and a deadline of its own.
  static constexpr std::size_t most_strangers = 256;

  /// Until when to wait for ranks: our own deadline, or that of the first rank here that will give up.
  [[nodiscard]] deadline wake_up() const { return sooner(until_, patience_); }

  template <class = void>
  [[nodiscard]] failure missing(seconds waited) const {
    std::vector<std::uint32_t> absent;
    for (std::uint32_t r = 0; r < options_.size; ++r)
      if (r != options_.rank.value && !group_.links[r].is_open()) absent.push_back(r);
    failure f = fail(errc::timed_out, ranks_in_words(absent, options_.size) + " did not join at " + at_.text() +
                                          " within " + seconds_in_words(waited) + strangers_.in_words());
    f.next = at_.is_loopback()
                 ? "check that they run on this host, since " + at_.host() + " is reached from nowhere else"
                 : "check that they run, and that their hosts reach this address";
    return f;
  }

  /// Ends the forming: whoever has proved the token hears why. So do, for half a second, ranks that come late: they
  /// would look for this root until their deadlines.
  template <class = void>
  [[nodiscard]] failure fail_all(failure why) {
    broken_.reset();
    over_ = why;
    tell_all(group_.links, {why, options_.rank.value});
    for (framed_stream& s : group_.links) {
      if (s.is_open()) ++told_;
      s.close();
    }
    const deadline end = sooner(until_, deadline::in(farewell));
    patience_ = end;
    while (why.code != errc::system && told_ + 1 < options_.size && !end.passed())
      if (!wait() || !hear_newcomers() || !take_connections()) break;
    return why;
  }

  template <class = void>
  [[nodiscard]] result<void> wait() {
    watched_.clear();
    watched_.push_back({listener_.fd(), POLLIN, 0});
    deadline first = wake_up();
    for (const newcomer& n : newcomers_) {
      watched_.push_back({n.stream.stream().fd(), events_of(n.stream), 0});
      first = sooner(first, n.until);
    }
    for (const framed_stream& s : group_.links)
      if (s.is_open()) watched_.push_back({s.stream().fd(), events_of(s), 0});
    auto ready = io::wait_until_ready(watched_, first);
    if (!ready) return std::move(ready).error();
    return {};
  }
  [[nodiscard]] static short events_of(const framed_stream& s) {
    return static_cast<short>(POLLIN | (s.has_unsent() ? POLLOUT : 0));
  }

  template <class = void>
  [[nodiscard]] result<void> take_connections() {
    // Bounded, so that a flood of connections does not keep those from being heard that are here.
    for (std::size_t taken = 0; taken < most_strangers; ++taken) {
      auto one = listener_.accept_now();
      if (!one) {
        if (newcomers_.empty()) return std::move(one).error();
        turn_away(newcomers_.front(), "was dropped because too many files were open");
        newcomers_.erase(newcomers_.begin());
        continue;
      }
      if (!*one) return {};
      if (newcomers_.size() >= most_strangers + options_.size) {
        turn_away(newcomers_.front(), "was dropped because too many connections were waiting");
        newcomers_.erase(newcomers_.begin());
      }
      newcomers_.push_back({framed_stream(std::move(**one)), deadline::in(options_.handshake), {}, 0, {}});
    }
    return {};
  }

  void turn_away(newcomer& n, std::string_view did) {
    strangers_.add(n.stream.stream().peer(), did);
    n.stream.close();
  }

  template <class = void>
  [[nodiscard]] result<void> hear_newcomers() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < newcomers_.size(); ++i) {
      const bool quiet = watched_[1 + i].revents == 0 && !newcomers_[i].until.passed();
      const bool stays = broken_ || quiet || hear(newcomers_[i]);
      if (!stays) continue;
      if (kept != i) newcomers_[kept] = std::move(newcomers_[i]);
      ++kept;
    }
    newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(kept), newcomers_.end());
    if (broken_) return *std::move(broken_);
    return {};
  }

  /// Hears what a newcomer has to say. @return whether it is still one
  template <class = void>
  [[nodiscard]] bool hear(newcomer& n) {
    if (!n.stream.flush()) return turn_away(n, "left while it was answered"), false;
    for (;;) {
      auto got = n.stream.next(longest_greeting);
      if (!got) {
        const auto arrived = n.stream.arrived();
        turn_away(n, got.error().code == errc::malformed_input ? foreign_in_words(arrived)
                     : n.said                                  ? "left before it had proved the token"
                     : arrived.empty()                         ? "connected and left without a word"
                                                               : "left in the middle of its greeting");
        return false;
      }
      if (!*got) break;
      const bool keep = n.said ? check_proof(n, **got) : answer_hello(n, **got);
      if (!keep || broken_) return false;
    }
    if (!n.until.passed()) return true;
    return turn_away(n, n.said                       ? "did not prove the token in time"
                        : n.stream.arrived().empty() ? "connected and said nothing"
                                                     : "was too slow with its greeting"),
           false;
  }

  template <class = void>
  [[nodiscard]] bool answer_hello(newcomer& n, const frame& f) {
    if (f.kind == frame_kind::hello) n.said = decode_hello(f.body());
    if (!n.said) return turn_away(n, "sent a greeting that is none"), false;
    nonce challenge{};
    if (auto drawn = fill_at_random(challenge); !drawn) {
      broken_ = std::move(drawn).error();
      return false;
    }
    n.version = f.version;
    std::vector<std::byte> answer = encode_code(frame_kind::challenge, challenge);
    n.greeting = f.whole;
    n.greeting.insert(n.greeting.end(), answer.begin(), answer.end());
    n.stream.push(std::move(answer));
    if (!n.stream.flush()) return turn_away(n, "left while it was answered"), false;
    return true;
  }

  template <class = void>
  [[nodiscard]] bool check_proof(newcomer& n, const frame& f) {
    io::sha256_digest code{};
    const bool formed = f.kind == frame_kind::proof && f.body().size() == code.size();
    if (formed) std::copy(f.body().begin(), f.body().end(), code.begin());
    if (!formed || !io::same_digest(code, proof_of(options_.token, "member", n.greeting))) {
      // Whoever has another token cannot read the code under this refusal either, and knows by that what is wrong.
      refuse(n, fail(errc::permission, "the token is another one"));
      return turn_away(n, "did not prove the token"), false;
    }
    if (n.said->job != options_.job) {
      refuse(n, fail(errc::mismatch,
                     "at " + at_.text() + " meets job \"" + options_.job + "\", not job \"" + n.said->job + '"',
                     "check the address and the port of this job"));
      return turn_away(n, "belongs to job \"" + n.said->job + '"'), false;
    }
    if (over_) {
      refuse(n, *over_);
      ++told_;
      return false;
    }
    if (auto fits = check_claim(n); !fits) {
      refuse(n, fits.error());
      ++told_;
      broken_ = std::move(fits).error();
      return false;
    }
    const hello& h = *n.said;
    ++present_;
    group_.places[h.rank] = h.place;
    patience_ = sooner(patience_, answer_before(h.patience_ms));
    frame_writer w(frame_kind::welcome);
    const rank_place& mine = group_.places[options_.rank.value];
    w.text(mine.host, longest_word);
    w.number(mine.pid, 4);
    n.stream.push(sealed(std::move(w), options_.token, "welcome", n.greeting));
    n.stream.watch_for_silence(options_.silence);
    (void)n.stream.flush();  // a member that is gone is noticed like any other
    group_.links[h.rank] = std::move(n.stream);
    return false;
  }

  void refuse(newcomer& n, const failure& why) {
    frame_writer w(frame_kind::refusal);
    write_notice(w, {why, options_.rank.value}, longest_refusal);
    n.stream.push(sealed(std::move(w), options_.token, "refusal", n.greeting));
    (void)n.stream.flush();
  }

  /// Whether somebody who knows the token can have the place that it asks for. If not, the group cannot form.
  template <class = void>
  [[nodiscard]] result<void> check_claim(const newcomer& n) const {
    const hello& h = *n.said;
    const rank_place& mine = group_.places[options_.rank.value];
    const std::string who = rank_in_words(h.rank, h.place) + " at " + n.stream.stream().peer().text();
    const std::string me = rank_in_words(options_.rank.value, mine);
    if (n.version != frame_version)
      return fail(errc::mismatch,
                  who + " speaks version " + std::to_string(n.version) + " of the protocol, " + me + " version " +
                      std::to_string(frame_version),
                  "start all ranks with the same version of topocoll");
    if (h.size != options_.size)
      return fail(errc::mismatch,
                  who + " was started for " + std::to_string(h.size) + " ranks, " + me + " for " +
                      std::to_string(options_.size),
                  "start all ranks with the same size");
    if (h.root != options_.rank.value)
      return fail(errc::mismatch, who + " takes rank " + std::to_string(h.root) + " for the root, " + me + " itself",
                  "name the same root on all ranks");
    if (h.rank >= options_.size) return fail(errc::mismatch, who + " claims a rank that the group has not");
    if (h.rank == options_.rank.value)
      return fail(errc::mismatch, "two processes claim to be " + who + " and " + me, "give each process its own rank");
    if (group_.links[h.rank].is_open())
      return fail(errc::mismatch,
                  "two processes claim to be " + rank_in_words(h.rank, group_.places[h.rank]) + " at " +
                      group_.links[h.rank].stream().peer().text() + " and " + who,
                  "give each process its own rank");
    if (at_.is_loopback() && h.place.host != mine.host)
      return fail(
          errc::invalid_argument,
          who + " and " + me + " are on different hosts, but meet at " + at_.text() + ", which reaches no other host",
          "give an address of the root's host that the others reach");
    return {};
  }

  /// A member says nothing until all are here, unless it gives up or dies.
  template <class = void>
  [[nodiscard]] result<void> hear_members() {
    std::size_t at = 1 + newcomers_.size();  // in watched_, which lists them after the newcomers
    for (std::uint32_t r = 0; r < options_.size; ++r) {
      framed_stream& s = group_.links[r];
      if (!s.is_open() || watched_[at++].revents == 0) continue;
      const std::string who = rank_in_words(r, group_.places[r]);
      auto sent = s.flush();
      auto got = s.next(longest_abort);
      if (sent && got && !*got) continue;
      s.close();
      if (got && *got)
        if (auto told = decode_abort((*got)->body()); told && (*got)->kind == frame_kind::abort) return told->why;
      return fail(errc::peer_lost, who + " left before all ranks had joined: " +
                                       (got && sent ? "it sent something out of turn"
                                        : got       ? sent.error().what
                                                    : got.error().what));
    }
    return {};
  }

  io::tcp_listener listener_;
  const bootstrap_options& options_;
  deadline until_;
  deadline patience_ = deadline::in(seconds{1e9});
  io::socket_address at_;
  std::vector<newcomer> newcomers_;
  std::vector<pollfd> watched_;
  std::uint32_t present_ = 0;
  std::optional<failure> broken_;
  std::optional<failure> over_;
  std::uint32_t told_ = 0;  ///< ranks that know why it is over
  stranger_list strangers_;
  formed_group group_;
};

template <class = void>
[[nodiscard]] result<formed_group> form_as_root(io::tcp_listener listener, const bootstrap_options& o, deadline until) {
  const io::socket_address at = listener.local();
  if (o.spans_hosts && at.is_loopback()) return loopback_failure(at.host());
  if (o.token.empty() && !at.is_loopback()) return no_token_failure(at.host());
  if (auto told = write_port_file(o, at); !told) return std::move(told).error();
  return group_forming(std::move(listener), o, until).run();
}

}}}  // namespace topocoll::v0::detail
