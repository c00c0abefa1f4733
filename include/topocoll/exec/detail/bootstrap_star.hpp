// SPDX-License-Identifier: Apache-2.0
#pragma once
// All-gather and barrier of a formed group: all parts go to the root, which sends them to all.
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
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/bootstrap_stream.hpp>
#include <topocoll/exec/detail/bootstrap_wire.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

class bootstrap_star {
 public:
  using parts = std::vector<std::vector<std::byte>>;

  explicit bootstrap_star(formed_group g) : group_(std::move(g)) {}

  [[nodiscard]] const formed_group& group() const { return group_; }

  template <class = void>
  [[nodiscard]] result<parts> gather(gather_kind kind, std::span<const std::byte> mine, deadline until) {
    if (over_) return *over_;
    if (mine.size() > group_.largest_piece.value)
      return fail(errc::invalid_argument,
                  "the part of rank " + std::to_string(group_.rank) + " has " + std::to_string(mine.size()) +
                      " bytes, more than the largest piece of " + std::to_string(group_.largest_piece.value),
                  "send less, or raise largest_piece on all ranks");
    started_ = steady_clock::now();
    auto all = is_root() ? gather_at_root(kind, mine, until) : gather_at_member(kind, mine, until);
    if (!all) return std::move(all).error();
    ++sequence_;
    return all;
  }

  /// Ends the group for all, unless it is over already.
  template <class = void>
  void abort(std::string_view why) {
    if (over_) return;
    (void)end(fail(errc::aborted, "rank " + std::to_string(group_.rank) + " aborted: " + std::string(why)));
  }

 private:
  [[nodiscard]] bool is_root() const { return group_.rank == group_.root; }
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(group_.places.size()); }
  [[nodiscard]] std::string name_of(std::uint32_t r) const { return rank_in_words(r, group_.places[r]); }
  [[nodiscard]] std::string call(gather_kind kind) const {
    return (kind == gather_kind::barrier ? "barrier, call " : "all_gather, call ") + std::to_string(sequence_);
  }

  /// The group is over here; the others are told.
  template <class = void>
  [[nodiscard]] failure end(failure why) {
    over_ = why;
    tell_all(group_.links, {std::move(why), group_.rank});
    for (framed_stream& s : group_.links) s.close();
    return *over_;
  }

  template <class = void>
  [[nodiscard]] failure lost(std::uint32_t r, const failure& how) {
    if (how.code != errc::peer_lost) return fail(how.code, name_of(r) + " is not understood: " + how.what, how.next);
    return fail(errc::peer_lost, name_of(r) + " is gone: " + how.what);
  }

  template <class = void>
  [[nodiscard]] result<parts> gather_at_root(gather_kind kind, std::span<const std::byte> mine, deadline until) {
    parts all(ranks());
    std::vector<bool> here(ranks());
    all[group_.rank].assign(mine.begin(), mine.end());
    here[group_.rank] = true;
    deadline give_up = until;
    std::vector<pollfd> watched;
    std::vector<std::uint32_t> watched_rank;
    for (std::uint32_t present = 1; present < ranks();) {
      watched.clear();
      watched_rank.clear();
      for (std::uint32_t r = 0; r < ranks(); ++r) {
        if (r == group_.rank) continue;
        watched.push_back({group_.links[r].stream().fd(), POLLIN, 0});
        watched_rank.push_back(r);
      }
      const auto ready = io::wait_until_ready(watched, give_up);
      if (!ready) return end(ready.error());
      for (std::size_t i = 0; i < watched.size(); ++i) {
        if (watched[i].revents == 0) continue;
        const std::uint32_t r = watched_rank[i];
        auto got = group_.links[r].next(group_.largest_piece.value + piece_head_size + longest_abort);
        if (!got) return end(lost(r, got.error()));
        if (!*got) continue;
        if ((*got)->kind == frame_kind::abort)
          if (auto told = decode_abort((*got)->body())) return end(std::move(told->why));
        const auto piece = (*got)->kind == frame_kind::piece ? decode_piece((*got)->body()) : std::nullopt;
        if (!piece || here[r]) return end(fail(errc::malformed_input, name_of(r) + " sent something out of turn"));
        if (piece->kind != kind || piece->sequence != sequence_)
          return end(fail(errc::mismatch,
                          name_of(r) + " is in " + (piece->kind == gather_kind::barrier ? "barrier" : "all_gather") +
                              ", call " + std::to_string(piece->sequence) + ", while " + name_of(group_.rank) +
                              " is in " + call(kind),
                          "make the same calls in the same order on all ranks"));
        all[r].assign(piece->data.begin(), piece->data.end());
        give_up = sooner(give_up, answer_before(piece->patience_ms));
        here[r] = true;
        ++present;
      }
      if (*ready > 0) continue;
      std::vector<std::uint32_t> absent;
      for (std::uint32_t r = 0; r < ranks(); ++r)
        if (!here[r]) absent.push_back(r);
      return end(fail(errc::timed_out, ranks_in_words(absent, ranks()) + " did not come to " + call(kind) +
                                           ", within " + seconds_in_words(steady_clock::now() - started_) +
                                           (absent.size() == 1 ? " (" + name_of(absent[0]) + ')' : "")));
    }
    const auto whole = std::make_shared<const std::vector<std::byte>>(encode_pieces(sequence_, all));
    for (framed_stream& s : group_.links)
      if (s.is_open()) s.push(whole);
    if (auto sent = send_to_all(kind, until); !sent) return std::move(sent).error();
    return result<parts>(std::move(all));
  }

  template <class = void>
  [[nodiscard]] result<void> send_to_all(gather_kind kind, deadline until) {
    std::vector<pollfd> watched;
    for (;;) {
      watched.clear();
      std::vector<std::uint32_t> behind;
      for (std::uint32_t r = 0; r < ranks(); ++r) {
        framed_stream& s = group_.links[r];
        if (!s.has_unsent()) continue;
        if (auto sent = s.flush(); !sent) return end(lost(r, sent.error()));
        if (!s.has_unsent()) continue;
        behind.push_back(r);
        watched.push_back({s.stream().fd(), POLLOUT, 0});
      }
      if (behind.empty()) return {};
      const auto ready = io::wait_until_ready(watched, until);
      if (!ready) return end(ready.error());
      if (*ready == 0)
        return end(fail(errc::timed_out, ranks_in_words(behind, ranks()) + " did not take the result of " + call(kind) +
                                             ", within " + seconds_in_words(steady_clock::now() - started_)));
    }
  }

  template <class = void>
  [[nodiscard]] result<parts> gather_at_member(gather_kind kind, std::span<const std::byte> mine, deadline until) {
    framed_stream& s = group_.links.front();
    s.push(encode(gather_piece{kind, sequence_, patience_ms(until), mine}));
    const std::uint64_t longest = (group_.largest_piece.value + 8) * ranks() + 8 + longest_abort;
    for (;;) {
      auto sent = s.flush();
      auto got = s.next(longest);  // first: a root that closed its end may have said why
      if (!got) return end(lost(group_.root, got.error()));
      if (*got) return answer_of(**got, kind);
      if (!sent) return end(lost(group_.root, sent.error()));
      pollfd one{s.stream().fd(), static_cast<short>(POLLIN | (s.has_unsent() ? POLLOUT : 0)), 0};
      const auto ready = io::wait_until_ready(std::span(&one, 1), until);
      if (!ready) return end(ready.error());
      if (*ready == 0)
        return end(fail(errc::timed_out, name_of(group_.root) + " did not answer " + name_of(group_.rank) + " in " +
                                             call(kind) + ", within " +
                                             seconds_in_words(steady_clock::now() - started_)));
    }
  }

  template <class = void>
  [[nodiscard]] result<parts> answer_of(const frame& f, gather_kind kind) {
    if (f.kind == frame_kind::abort)
      if (auto told = decode_abort(f.body())) {
        over_ = std::move(told->why);
        group_.links.front().close();
        return *over_;
      }
    auto all = f.kind == frame_kind::pieces ? decode_pieces(f.body(), sequence_, ranks()) : std::nullopt;
    if (!all)
      return end(
          fail(errc::malformed_input, name_of(group_.root) + " sent something else than the result of " + call(kind)));
    return result<parts>(*std::move(all));
  }

  formed_group group_;
  std::uint64_t sequence_ = 0;
  seconds started_{};
  std::optional<failure> over_;
};

}}}  // namespace topocoll::v0::detail
