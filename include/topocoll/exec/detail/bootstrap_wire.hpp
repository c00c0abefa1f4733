// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages by which ranks meet over TCP, as bytes: frames, what stands in them, and the proof of the token.
//
// A frame is the word "topocoll", version and kind (2 bytes each), the length of the rest (8 bytes), and the rest.
// Numbers have the high byte first. The head of a frame, hello, challenge, proof and refusal keep this layout in every
// version: two versions must be able to tell one another that they differ.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/io/hmac.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

inline constexpr std::string_view frame_magic = "topocoll";
inline constexpr std::uint16_t frame_version = 1;
inline constexpr std::size_t frame_head_size = 20;
/// Longest hello, challenge, proof and refusal: all that is read from whoever has not yet proved anything.
inline constexpr std::uint64_t longest_greeting = 1024;
inline constexpr std::uint64_t longest_abort = 4096;
inline constexpr std::size_t longest_word = 255;       // of a job or a host
inline constexpr std::size_t longest_sentence = 1500;  // of a failure; two of them fit an abort

enum class frame_kind : std::uint16_t {
  hello = 1,      ///< member to root: who I say I am, and a nonce
  challenge = 2,  ///< root to member: another nonce
  proof = 3,      ///< member to root: the token's code over both
  welcome = 4,    ///< root to member: its own code over the same; your place is yours
  refusal = 5,    ///< root to member: you are not of this group, and why
  start = 6,      ///< root to members: all are here, and who they are
  piece = 7,      ///< member to root: my part of an all-gather or barrier
  pieces = 8,     ///< root to members: all parts
  abort = 9       ///< either way: the group is over, and why
};

/// Appends numbers and texts to bytes.
class frame_writer {
 public:
  explicit frame_writer(frame_kind kind, std::uint16_t version = frame_version) {
    raw(frame_magic);
    number(version, 2);
    number(static_cast<std::uint64_t>(kind), 2);
    number(0, 8);
  }
  void number(std::uint64_t value, std::size_t width) {
    for (std::size_t i = width; i-- > 0;) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void raw(std::span<const std::byte> data) { bytes_.insert(bytes_.end(), data.begin(), data.end()); }
  void raw(std::string_view data) { raw(std::as_bytes(std::span(data.data(), data.size()))); }
  /// A text of at most `longest` bytes; what is beyond is left out.
  void text(std::string_view t, std::size_t longest) {
    t = t.substr(0, longest);
    number(t.size(), 2);
    raw(t);
  }
  /// The frame, its length written in.
  [[nodiscard]] std::vector<std::byte> finish() && {
    const std::uint64_t length = bytes_.size() - frame_head_size;
    for (std::size_t i = 0; i < 8; ++i) bytes_[12 + i] = static_cast<std::byte>(length >> (8 * (7 - i)));
    return std::move(bytes_);
  }
  [[nodiscard]] std::span<const std::byte> body() const { return std::span(bytes_).subspan(frame_head_size); }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes numbers and texts from bytes. What is not there reads as nothing, and `whole()` is then false.
class frame_reader {
 public:
  explicit frame_reader(std::span<const std::byte> rest) : rest_(rest) {}

  [[nodiscard]] std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (const std::byte b : take(width)) value = value << 8U | std::to_integer<std::uint64_t>(b);
    return value;
  }
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) {
      short_ = true;
      rest_ = {};
    }
    const auto taken = rest_.first(short_ ? 0 : static_cast<std::size_t>(count));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <std::size_t N>
  [[nodiscard]] std::array<std::byte, N> array() {
    std::array<std::byte, N> a{};
    const auto taken = take(N);
    if (!taken.empty()) std::memcpy(a.data(), taken.data(), taken.size());
    return a;
  }
  [[nodiscard]] std::string text(std::size_t longest) {
    const std::uint64_t length = number(2);
    if (length > longest) short_ = true;
    const auto taken = take(length);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }
  /// Everything asked for was there, and nothing is left.
  [[nodiscard]] bool whole() const { return !short_ && rest_.empty(); }
  [[nodiscard]] bool enough() const { return !short_; }

 private:
  std::span<const std::byte> rest_;
  bool short_ = false;
};

/// What stands at the front of received bytes.
struct frame_reading {
  enum class state : std::uint8_t { incomplete, complete, foreign, too_long };
  state is = state::incomplete;
  std::uint16_t version = 0;
  frame_kind kind{};
  std::size_t size = 0;  ///< of the whole frame; 0 until its head is complete
};

/// Judges the first bytes already: what does not begin like a frame is foreign, however little of it has arrived.
template <class = void>
[[nodiscard]] frame_reading read_frame(std::span<const std::byte> received, std::uint64_t longest) {
  frame_reading r;
  for (std::size_t i = 0; i < received.size() && i < frame_magic.size(); ++i)
    if (received[i] != static_cast<std::byte>(frame_magic[i])) {
      r.is = frame_reading::state::foreign;
      return r;
    }
  if (received.size() < frame_head_size) return r;
  frame_reader head(received.subspan(frame_magic.size(), frame_head_size - frame_magic.size()));
  r.version = static_cast<std::uint16_t>(head.number(2));
  const std::uint64_t kind = head.number(2);
  const std::uint64_t length = head.number(8);
  r.kind = static_cast<frame_kind>(kind);
  if (kind < 1 || kind > static_cast<std::uint64_t>(frame_kind::abort))
    r.is = frame_reading::state::foreign;
  else if (length > longest)
    r.is = frame_reading::state::too_long;
  else if (r.size = frame_head_size + static_cast<std::size_t>(length); r.size <= received.size())
    r.is = frame_reading::state::complete;
  return r;
}

using nonce = std::array<std::byte, 32>;

/// A process, as others are to speak of it.
struct rank_place {
  std::string host;
  std::uint32_t pid = 0;
};

/// What a member says of itself.
struct hello {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t root = 0;
  std::uint32_t patience_ms = 0;  ///< until it will give up
  nonce challenge{};
  std::string job;
  rank_place place;
};

template <class = void>
[[nodiscard]] std::vector<std::byte> encode(const hello& h, std::uint16_t version = frame_version) {
  frame_writer w(frame_kind::hello, version);
  for (const std::uint32_t n : {h.rank, h.size, h.root, h.patience_ms}) w.number(n, 4);
  w.raw(h.challenge);
  w.text(h.job, longest_word);
  w.text(h.place.host, longest_word);
  w.number(h.place.pid, 4);
  return std::move(w).finish();
}
template <class = void>
[[nodiscard]] std::optional<hello> decode_hello(std::span<const std::byte> body) {
  frame_reader r(body);
  hello h;
  for (std::uint32_t* n : {&h.rank, &h.size, &h.root, &h.patience_ms}) *n = static_cast<std::uint32_t>(r.number(4));
  h.challenge = r.array<32>();
  h.job = r.text(longest_word);
  h.place.host = r.text(longest_word);
  h.place.pid = static_cast<std::uint32_t>(r.number(4));
  if (!r.whole()) return std::nullopt;
  return h;
}

/// Code of `role` over hello, challenge and what is said on top of them. The role keeps a proof from being sent back to
/// whoever made it.
template <class = void>
[[nodiscard]] io::sha256_digest proof_of(std::string_view token, std::string_view role,
                                         std::span<const std::byte> greeting, std::span<const std::byte> said = {}) {
  io::hmac_sha256 code(token);
  code.update("topocoll bootstrap, ").update(role).update(std::string_view("\0", 1));
  frame_writer lengths(frame_kind::proof);  // so that no byte can be moved from one part to the other
  lengths.number(greeting.size(), 8);
  code.update(lengths.body()).update(greeting).update(said);
  return code.finish();
}

/// A frame that carries only `code`, or a nonce.
template <class = void>
[[nodiscard]] std::vector<std::byte> encode_code(frame_kind kind, std::span<const std::byte> code) {
  frame_writer w(kind);
  w.raw(code);
  return std::move(w).finish();
}

/// The group is over: `why`, and the rank that was the first to know.
struct abort_notice {
  failure why;
  std::uint32_t by = 0;
};

template <class = void>
void write_notice(frame_writer& w, const abort_notice& a, std::size_t longest) {
  w.number(static_cast<std::uint64_t>(a.why.code), 1);
  w.number(a.by, 4);
  w.text(a.why.what, longest);
  w.text(a.why.next, longest);
}
template <class = void>
[[nodiscard]] std::optional<abort_notice> read_notice(frame_reader& r, std::size_t longest) {
  abort_notice a;
  const std::uint64_t code = r.number(1);
  a.by = static_cast<std::uint32_t>(r.number(4));
  a.why.what = r.text(longest);
  a.why.next = r.text(longest);
  if (!r.enough() || code > static_cast<std::uint64_t>(errc::bug)) return std::nullopt;
  a.why.code = static_cast<errc>(code);
  return a;
}
template <class = void>
[[nodiscard]] std::vector<std::byte> encode(const abort_notice& a) {
  frame_writer w(frame_kind::abort);
  write_notice(w, a, longest_sentence);
  return std::move(w).finish();
}
template <class = void>
[[nodiscard]] std::optional<abort_notice> decode_abort(std::span<const std::byte> body) {
  frame_reader r(body);
  auto a = read_notice(r, longest_sentence);
  if (!r.whole()) return std::nullopt;
  return a;
}

/// A welcome or a refusal ends with the root's code over the greeting and all that stands before the code.
inline constexpr std::size_t longest_refusal = 400;  // of each of its two sentences

template <class = void>
[[nodiscard]] std::vector<std::byte> sealed(frame_writer w, std::string_view token, std::string_view role,
                                            std::span<const std::byte> greeting) {
  const io::sha256_digest code = proof_of(token, role, greeting, w.body());
  w.raw(code);
  return std::move(w).finish();
}
/// What stands before the code, if the code is right.
template <class = void>
[[nodiscard]] std::optional<std::span<const std::byte>> unsealed(std::span<const std::byte> body,
                                                                 std::string_view token, std::string_view role,
                                                                 std::span<const std::byte> greeting) {
  io::sha256_digest code{};
  if (body.size() < code.size()) return std::nullopt;
  const auto said = body.first(body.size() - code.size());
  std::memcpy(code.data(), body.data() + said.size(), code.size());
  if (!io::same_digest(code, proof_of(token, role, greeting, said))) return std::nullopt;
  return said;
}

/// What a collective call is, so that a barrier never answers an all-gather.
enum class gather_kind : std::uint8_t { all_gather = 0, barrier = 1 };

struct gather_piece {
  gather_kind kind = gather_kind::all_gather;
  std::uint64_t sequence = 0;     ///< number of the call, from 0
  std::uint32_t patience_ms = 0;  ///< until the sender gives up
  std::span<const std::byte> data;
};

template <class = void>
[[nodiscard]] std::vector<std::byte> encode(const gather_piece& p) {
  frame_writer w(frame_kind::piece);
  w.number(static_cast<std::uint64_t>(p.kind), 1);
  w.number(p.sequence, 8);
  w.number(p.patience_ms, 4);
  w.raw(p.data);
  return std::move(w).finish();
}
template <class = void>
[[nodiscard]] std::optional<gather_piece> decode_piece(std::span<const std::byte> body) {
  frame_reader r(body);
  gather_piece p;
  const std::uint64_t kind = r.number(1);
  p.sequence = r.number(8);
  p.patience_ms = static_cast<std::uint32_t>(r.number(4));
  if (!r.enough() || kind > 1) return std::nullopt;
  p.kind = static_cast<gather_kind>(kind);
  p.data = r.rest();
  return p;
}
inline constexpr std::uint64_t piece_head_size = 13;

/// All parts of the call `sequence`, by rank.
template <class = void>
[[nodiscard]] std::vector<std::byte> encode_pieces(std::uint64_t sequence,
                                                   std::span<const std::vector<std::byte>> parts) {
  frame_writer w(frame_kind::pieces);
  w.number(sequence, 8);
  for (const std::vector<std::byte>& p : parts) {
    w.number(p.size(), 8);
    w.raw(p);
  }
  return std::move(w).finish();
}
template <class = void>
[[nodiscard]] std::optional<std::vector<std::vector<std::byte>>> decode_pieces(std::span<const std::byte> body,
                                                                               std::uint64_t sequence,
                                                                               std::uint32_t ranks) {
  frame_reader r(body);
  if (r.number(8) != sequence || body.size() / 8 < ranks) return std::nullopt;  // before anything is allocated
  std::vector<std::vector<std::byte>> parts(ranks);
  for (std::vector<std::byte>& p : parts) {
    const auto data = r.take(r.number(8));
    p.assign(data.begin(), data.end());
  }
  if (!r.whole()) return std::nullopt;
  return parts;
}

/// Who is where, by rank.
template <class = void>
[[nodiscard]] std::vector<std::byte> encode_start(std::span<const rank_place> places) {
  frame_writer w(frame_kind::start);
  for (const rank_place& p : places) {
    w.text(p.host, longest_word);
    w.number(p.pid, 4);
  }
  return std::move(w).finish();
}
template <class = void>
[[nodiscard]] std::optional<std::vector<rank_place>> decode_start(std::span<const std::byte> body,
                                                                  std::uint32_t ranks) {
  if (body.size() / 6 < ranks) return std::nullopt;
  frame_reader r(body);
  std::vector<rank_place> places(ranks);
  for (rank_place& p : places) {
    p.host = r.text(longest_word);
    p.pid = static_cast<std::uint32_t>(r.number(4));
  }
  if (!r.whole()) return std::nullopt;
  return places;
}

}}}  // namespace topocoll::v0::detail
