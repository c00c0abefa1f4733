// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ranks over UCX say to each other: the head of every message, and what each tells of itself beforehand.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/process.hpp>

namespace topocoll { inline namespace v0 { namespace backend::detail {

/// What a message is for.
enum class ucx_word : std::uint32_t {
  piece,     ///< of a message of a program
  credit,    ///< `size`: cost of all that was taken on the channel so far
  nudge,     ///< makes a connection, so that its end can be noticed
  goodbye,   ///< the sender leaves
  farewell,  ///< answers a goodbye or a cause: it, and all that came before it, has arrived
  ask,       ///< whom do you wait for?
  answer,    ///< `channel`: the rank that is waited for
  cause      ///< the group is broken: code and sentences
};

/// Travels as the header of every active message.
struct ucx_head {
  ucx_word word = ucx_word::piece;
  std::uint32_t from = 0;
  std::uint32_t channel = 0;
  std::uint32_t code = 0;
  std::uint64_t sequence = 0;  ///< of the piece on its channel
  std::uint64_t tag = 0;
  std::uint64_t size = 0;    ///< of the whole message
  std::uint64_t offset = 0;  ///< of the piece in it
};
static_assert(sizeof(ucx_head) == 48 && std::is_trivially_copyable_v<ucx_head>);

/// What each piece counts beyond its bytes, so that pieces without bytes are limited too.
inline constexpr std::uint64_t ucx_piece_cost = 128;

/// Up to this much a receiver may have taken without saying so when a rank leaves: sockets hold it, it is not lost.
inline constexpr std::uint64_t ucx_unsaid = 64U << 10U;

/// What all ranks have to agree on. The mark tells versions and byte orders apart.
struct ucx_terms {
  static constexpr std::uint64_t this_version = 0x746f'7063'7563'7801ULL;
  std::uint64_t mark = this_version;
  std::uint64_t channels = 0;
  std::uint64_t piece = 0;
  std::uint64_t window = 0;
};

/// What a rank tells of itself.
struct ucx_place {
  topocoll::detail::process_identity process;
  std::string host;
  std::string boot;     ///< names the running system: two hosts may have one name
  std::string address;  ///< of its UCX worker
};

/// The group as a rank knows it.
struct ucx_group {
  std::uint32_t rank = 0;
  ucx_terms terms;
  std::vector<ucx_place> places;

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(places.size()); }
  /// "rank 2 (pid 4711 on host node17)".
  [[nodiscard]] std::string name_of(std::uint32_t r) const {
    return "rank " + std::to_string(r) + " (pid " + std::to_string(places[r].process.pid) + " on host " +
           places[r].host + ")";
  }
  /// What its process is doing, as far as that can be seen from here.
  [[nodiscard]] topocoll::detail::process_state state_of(std::uint32_t r) const {
    const ucx_place& it = places[r];
    const ucx_place& me = places[rank];
    if (it.boot.empty() || it.boot != me.boot || it.process.pid == me.process.pid) return {};
    return topocoll::detail::state_of(it.process, me.process);
  }
  [[nodiscard]] bool same_process(std::uint32_t r) const {
    const ucx_place& it = places[r];
    const ucx_place& me = places[rank];
    return it.boot == me.boot && it.host == me.host && it.process.pid == me.process.pid &&
           it.process.namespace_id == me.process.namespace_id;
  }
};

/// A text that differs for every start of a system; empty if it cannot be read.
template <class = void>
[[nodiscard]] std::string boot_mark() {
  const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[64];
  const ssize_t got = ::read(file, text, sizeof text);
  ::close(file);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

template <class = void>
[[nodiscard]] std::vector<std::byte> pack(const ucx_terms& terms, const ucx_place& place) {
  std::vector<std::byte> out;
  const auto add = [&](const void* data, std::size_t size) {
    const auto* at = static_cast<const std::byte*>(data);
    out.insert(out.end(), at, at + size);
  };
  const auto number = [&](std::uint64_t n) { add(&n, sizeof n); };
  for (const std::uint64_t n :
       {terms.mark, terms.channels, terms.piece, terms.window, static_cast<std::uint64_t>(place.process.pid),
        place.process.started, place.process.namespace_id})
    number(n);
  for (const std::string* text : {&place.host, &place.boot, &place.address}) {
    number(text->size());
    add(text->data(), text->size());
  }
  return out;
}

/// Reads what rank `r` packed. @return `mismatch` naming the rank for another version of this, and for other terms
template <class = void>
[[nodiscard]] result<ucx_place> unpack(std::span<const std::byte> in, std::uint32_t r, const ucx_terms& mine) {
  bool whole = true;
  const auto take = [&](void* into, std::size_t size) {
    whole = whole && size <= in.size();
    if (!whole) return;
    if (size != 0) std::memcpy(into, in.data(), size);
    in = in.subspan(size);
  };
  const auto number = [&] {
    std::uint64_t n = 0;
    take(&n, sizeof n);
    return n;
  };
  const std::string who = "rank " + std::to_string(r);
  const auto differs = [&](const std::string& what, std::uint64_t theirs, std::uint64_t ours) {
    return fail(errc::mismatch,
                who + " has " + what + " " + std::to_string(theirs) + ", this rank has " + std::to_string(ours),
                "give the same ucx_options on all ranks");
  };
  if (number() != mine.mark)
    return fail(errc::mismatch, who + " has another version of the UCX transport, or another byte order",
                "use one build on all ranks");
  if (const std::uint64_t n = number(); n != mine.channels) return differs("channels", n, mine.channels);
  if (const std::uint64_t n = number(); n != mine.piece) return differs("a piece size in bytes of", n, mine.piece);
  if (const std::uint64_t n = number(); n != mine.window) return differs("a window in bytes of", n, mine.window);
  ucx_place place;
  place.process.pid = static_cast<std::int32_t>(number());
  place.process.started = number();
  place.process.namespace_id = number();
  for (std::string* text : {&place.host, &place.boot, &place.address}) {
    const std::uint64_t size = number();
    whole = whole && size <= in.size();
    if (!whole) break;
    text->resize(static_cast<std::size_t>(size));
    take(text->data(), text->size());
  }
  if (!whole) return fail(errc::mismatch, "what " + who + " told of itself is cut off");
  return place;
}

}}}  // namespace topocoll::v0::backend::detail
