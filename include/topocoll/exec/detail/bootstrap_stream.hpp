// SPDX-License-Identifier: Apache-2.0
#pragma once
// Frames over one TCP connection, and what the ranks of a group know of one another once they have met.
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
#include <topocoll/exec/detail/bootstrap_wire.hpp>
#include <topocoll/io/socket.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A frame as it was received.
struct frame {
  std::uint16_t version = 0;
  frame_kind kind{};
  std::vector<std::byte> whole;

  [[nodiscard]] std::span<const std::byte> body() const { return std::span(whole).subspan(frame_head_size); }
};

/// Bytes that several connections send, kept once.
using shared_bytes = std::shared_ptr<const std::vector<std::byte>>;

class framed_stream {
 public:
  framed_stream() = default;
  explicit framed_stream(io::tcp_stream s) : stream_(std::move(s)) {}

  [[nodiscard]] const io::tcp_stream& stream() const { return stream_; }
  [[nodiscard]] bool is_open() const { return stream_.is_open(); }
  [[nodiscard]] std::span<const std::byte> arrived() const { return std::span(in_).first(filled_); }
  [[nodiscard]] bool has_unsent() const { return !out_.empty(); }
  void close() { stream_.close(); }
  void watch_for_silence(seconds silence) { stream_.watch_for_silence(silence); }

  void push(std::vector<std::byte> whole) { push(std::make_shared<const std::vector<std::byte>>(std::move(whole))); }
  void push(shared_bytes whole) { out_.push_back(std::move(whole)); }

  /// Sends what goes without waiting.
  template <class = void>
  [[nodiscard]] result<void> flush() {
    while (!out_.empty()) {
      auto sent = stream_.send_some(std::span(*out_.front()).subspan(sent_));
      if (!sent) return std::move(sent).error();
      sent_ += *sent;
      if (sent_ < out_.front()->size()) return {};
      out_.erase(out_.begin());
      sent_ = 0;
    }
    return {};
  }

  /// The next frame, or nothing yet. Never takes a byte beyond it, so that a poll shows whether more is there.
  /// @return `peer_lost` at the end of the connection, `malformed_input` for what is no frame or longer than `longest`
  template <class = void>
  [[nodiscard]] result<std::optional<frame>> next(std::uint64_t longest) {
    constexpr std::size_t step = 256U << 10U;  // memory grows with what has arrived, not with what is announced
    for (;;) {
      const frame_reading r = read_frame(arrived(), longest);
      if (r.is == frame_reading::state::foreign)
        return fail(errc::malformed_input, stream_.peer().text() + " sent something else than a bootstrap message");
      if (r.is == frame_reading::state::too_long)
        return fail(errc::malformed_input,
                    stream_.peer().text() + " announced a message longer than " + std::to_string(longest) + " bytes");
      if (r.is == frame_reading::state::complete) {
        in_.resize(filled_);
        filled_ = 0;
        return std::optional(frame{r.version, r.kind, std::exchange(in_, {})});
      }
      const std::size_t wanted = r.size == 0 ? frame_head_size : r.size;
      in_.resize(filled_ + std::min(wanted - filled_, step));
      auto got = stream_.receive_some(std::span(in_).subspan(filled_));
      if (!got) return std::move(got).error();
      if (got->ended)
        return fail(errc::peer_lost, "the connection to " + stream_.peer().text() + " was closed by the other side");
      filled_ += got->count;
      if (got->count == 0) return std::optional<frame>();
    }
  }

  /// Sends all that is pushed, and waits for a frame.
  template <class = void>
  [[nodiscard]] result<frame> exchange(std::uint64_t longest, deadline until) {
    for (;;) {
      if (auto sent = flush(); !sent) return std::move(sent).error();
      auto got = next(longest);
      if (!got) return std::move(got).error();
      if (*got) return std::move(**got);
      pollfd one{stream_.fd(), static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0)), 0};
      auto ready = io::wait_until_ready(std::span(&one, 1), until);
      if (!ready) return std::move(ready).error();
      if (*ready == 0) return fail(errc::timed_out, stream_.peer().text() + " did not answer before the deadline");
    }
  }

 private:
  io::tcp_stream stream_;
  std::vector<std::byte> in_;
  std::size_t filled_ = 0;
  std::vector<shared_bytes> out_;
  std::size_t sent_ = 0;
};

/// The ranks after they have met.
struct formed_group {
  std::uint32_t rank = 0;
  std::uint32_t root = 0;
  std::vector<rank_place> places;    ///< by rank
  std::vector<framed_stream> links;  ///< at the root by rank, its own not open; elsewhere one, to the root
  std::vector<finding> findings;
  bytes largest_piece;
};

[[nodiscard]] inline std::string rank_in_words(std::uint32_t rank, const rank_place& p) {
  return "rank " + std::to_string(rank) + " (process " + std::to_string(p.pid) + " on " + p.host + ')';
}

/// "rank 3" or "ranks 1, 4-9, 12" of `of`; at most a dozen stretches are written.
template <class = void>
[[nodiscard]] std::string ranks_in_words(const std::vector<std::uint32_t>& ranks, std::size_t of) {
  std::string text;
  std::size_t stretches = 0;
  for (std::size_t i = 0; i < ranks.size(); ++stretches) {
    if (stretches == 12) {
      text += " and " + std::to_string(ranks.size() - i) + " more";
      break;
    }
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (last == i + 1) text += ", " + std::to_string(ranks[last]);
    if (last > i + 1) text += '-' + std::to_string(ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text + " of " + std::to_string(of);
}

[[nodiscard]] inline std::string seconds_in_words(seconds s) {
  const auto tenths = static_cast<std::uint64_t>((s.value > 0 ? s.value : 0) * 10 + 0.5);
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " s";
}

/// What is left of a deadline, to be told to another process.
[[nodiscard]] inline std::uint32_t patience_ms(deadline until) {
  const double ms = until.left().value * 1e3;
  return ms < 4e9 ? static_cast<std::uint32_t>(ms) : 4'000'000'000U;
}
/// When to answer a process that gives up after `ms`: a little before, so that it hears from us who is missing.
[[nodiscard]] inline deadline answer_before(std::uint32_t ms) {
  const double left = ms * 1e-3;
  return deadline::in({left - std::clamp(left * 0.1, 0.01, 0.25)});
}

/// Sends what is pushed, to each that takes it, until the deadline. Whoever is gone gets nothing.
template <class = void>
void flush_all(std::span<framed_stream> streams, deadline until) {
  for (;;) {
    std::vector<pollfd> watched;
    for (framed_stream& s : streams) {
      if (!s.is_open() || !s.has_unsent()) continue;
      if (!s.flush()) s.close();
      if (s.is_open() && s.has_unsent()) watched.push_back({s.stream().fd(), POLLOUT, 0});
    }
    if (watched.empty()) return;
    const auto ready = io::wait_until_ready(watched, until);
    if (!ready || *ready == 0) return;
  }
}

/// How long a group that is over may take to tell its ranks why.
inline constexpr seconds farewell{0.5};

template <class = void>
void tell_all(std::span<framed_stream> streams, const abort_notice& notice) {
  const auto whole = std::make_shared<const std::vector<std::byte>>(encode(notice));
  for (framed_stream& s : streams)
    if (s.is_open()) s.push(whole);
  flush_all(streams, deadline::in(farewell));
}

}}}  // namespace topocoll::v0::detail
