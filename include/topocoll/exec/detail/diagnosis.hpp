// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a peer does not answer, in sentences: gone, stopped, busy, or itself waiting for someone else.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/group_memory.hpp>
#include <topocoll/exec/detail/process.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// "2.5 s", "340 ms": three digits are enough for a sentence.
template <class = void>
[[nodiscard]] std::string span_in_words(seconds s) {
  const bool short_span = s.value < 1;
  const auto tenths = static_cast<std::uint64_t>((s.value < 0 ? 0 : s.value) * (short_span ? 1e4 : 10) + 0.5);
  return std::to_string(tenths / 10) + (short_span || tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) +
         (short_span ? " ms" : " s");
}

/// `peer_lost` if `peer` died or left, as seen by rank `by`, which waits for it; nothing if it may still answer.
/// Without `ask_system` only by what the shared memory says, which costs one load.
template <class = void>
[[nodiscard]] std::optional<failure> why_gone(const group_memory& group, std::uint32_t peer, std::uint32_t by,
                                              const process_identity& me, bool ask_system) {
  const rank_record& it = group.record(peer);
  const presence state = it.state.load(std::memory_order_acquire);
  if (state == presence::absent || (state == presence::present && !ask_system)) return std::nullopt;
  const std::string waiting = " while rank " + std::to_string(by) + " waited for it";
  switch (state) {
    case presence::dead: return fail(errc::peer_lost, group.name_of(peer) + " " + it.fate + waiting);
    case presence::left:
      return fail(errc::peer_lost, group.name_of(peer) + " left the group" + waiting,
                  "look at what that rank says about it");
    case presence::absent: return std::nullopt;
    case presence::present: break;
  }
  const process_identity who = group.identity(peer);
  if (who.pid == me.pid || state_of(who, me).life != process_life::dead) return std::nullopt;
  return fail(errc::peer_lost, group.name_of(peer) + " died" + waiting,
              "look at that rank's own output, and in the kernel log for an out-of-memory kill");
}

/// `timed_out`, naming the ranks at the root: whoever waits is only named on the way to the one that it waits for.
template <class = void>
[[nodiscard]] failure why_late(const group_memory& group, const std::vector<std::uint32_t>& peers, std::uint32_t by,
                               const process_identity& me, seconds waited, seconds now) {
  constexpr std::size_t most_named = 8;  // a sentence, not a list of thousands
  std::string text = "rank " + std::to_string(by) + " waited " + span_in_words(waited) + " for ";
  if (peers.empty()) return fail(errc::timed_out, text + "its own steps");
  std::vector<std::uint32_t> roots;
  std::size_t named = 0;
  for (const std::uint32_t peer : peers) {
    if (named == most_named) {
      text += " and " + std::to_string(peers.size() - named) + " more";
      break;
    }
    if (named++ != 0) text += "; ";
    std::uint32_t at = peer;
    std::string way = "rank " + std::to_string(at);
    std::vector<std::uint32_t> seen{by, at};
    bool circle = false;
    for (;;) {
      const rank_record& it = group.record(at);
      const std::uint32_t next = it.waits_for.load(std::memory_order_relaxed);
      const double age = now.value - static_cast<double>(it.said_at.load(std::memory_order_relaxed)) * 1e-9;
      // A waiting rank says so every 50 ms; one that has not for half a second is stopped or starved itself.
      if (next >= group.shape().ranks || age > 0.5) break;
      way += ", which waits for rank " + std::to_string(next);
      circle = false;
      for (const std::uint32_t s : seen) circle = circle || s == next;
      if (circle) break;
      seen.push_back(next);
      at = next;
    }
    text += way;
    if (circle) {
      text += " (they wait for each other: not all ranks make the same calls in the same order)";
      continue;
    }
    bool told = false;
    for (const std::uint32_t r : roots) told = told || r == at;
    if (told) continue;
    roots.push_back(at);
    const rank_record& it = group.record(at);
    const presence state = it.state.load(std::memory_order_acquire);
    if (state == presence::absent) {
      text += ": it never attached to the group";
    } else if (state == presence::present) {
      const process_identity who = group.identity(at);
      if (who.pid == me.pid) {
        text += ": " + group.name_of(at) + " is a thread of this process, and silent";
      } else {
        const process_state is = state_of(who, me);
        text += ": " + group.name_of(at);
        if (is.life == process_life::alive)
          text += " is alive but silent, " + std::string(state_in_words(is.letter));
        else if (is.life == process_life::dead)
          text += " is dead";
        else
          text += " is silent, and whether it lives cannot be seen from here";
      }
    } else {
      text += state == presence::dead ? ": " + group.name_of(at) + " " + it.fate
                                      : ": " + group.name_of(at) + " left the group";
    }
  }
  return fail(errc::timed_out, text, "find out what that rank is doing, or allow more time");
}

/// Breaks the group in the name of rank `by`.
template <class = void>
void abort_group(group_memory& group, std::uint32_t by, std::string_view why) noexcept {
  // No allocation: this may run where memory is the problem.
  char text[512];
  std::size_t n = 0;
  const auto add = [&](std::string_view s) {
    for (const char c : s)
      if (n < sizeof text) text[n++] = c;
  };
  char digits[12];
  std::size_t d = 0;
  std::uint32_t rest = by;
  do digits[d++] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) != 0);
  add("rank ");
  while (d != 0) add({&digits[--d], 1});
  add(" aborted the group: ");
  add(why);
  group.break_group(errc::aborted, {text, n}, {});
}

}}}  // namespace topocoll::v0::detail
