// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tag of a collective's messages: enough of the call to notice, and to say, that two ranks do not run the same one.
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// What a rank believes it is running. Ranks that agree on everything make equal tags.
struct call_identity {
  enum class step : std::uint8_t { data, agreement, barrier };  ///< of what the message is a part

  std::uint32_t number = 0;  ///< of the call in its communicator; 16 bits travel
  step part = step::data;
  collective_kind collective = collective_kind::all_reduce;
  dtype type = dtype::float32;
  reduce_op op = reduce_op::sum;
  std::uint32_t root = 0;    ///< 8 bits travel
  std::uint64_t count = 0;   ///< elements; 12 bits of a hash travel
  std::uint64_t digest = 0;  ///< of the plan; 12 bits travel
};

// Bits: 63..60 mark, 59..44 number, 43..42 part, 41..39 collective, 38..35 type, 34..32 op, 31..24 root, 23..12 count,
// 11..0 digest.
inline constexpr std::uint64_t call_tag_mark = 0xcULL << 60U;
/// Messages outside the collectives: 59..28 the caller's tag, 27..24 type, 23..0 count.
inline constexpr std::uint64_t message_tag_mark = 0xdULL << 60U;

[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64 (Steele, Lea, Flood 2014)
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

[[nodiscard]] constexpr std::uint64_t make_tag(const call_identity& c) {
  return call_tag_mark | (std::uint64_t{c.number & 0xffffU} << 44U) | (static_cast<std::uint64_t>(c.part) << 42U) |
         (static_cast<std::uint64_t>(c.collective) << 39U) | (static_cast<std::uint64_t>(c.type) << 35U) |
         (static_cast<std::uint64_t>(c.op) << 32U) | (std::uint64_t{c.root & 0xffU} << 24U) |
         ((mixed(c.count) & 0xfffU) << 12U) | (mixed(c.digest) & 0xfffU);
}

/// What stands for a list of counts where a tag or an agreement has room for one number: FNV-1a over 64-bit numbers.
template <class = void>
[[nodiscard]] constexpr std::uint64_t mark_of(std::span<const std::uint64_t> counts) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint64_t c : counts) hash = (hash ^ mixed(c)) * 0x100000001b3ULL;
  return hash;
}

/// The tag in words: "call 12, all_reduce of float (sum), plan 3f2, count mark 9a1"; "tag 0x…" for tags that are not
/// ours.
template <class = void>
[[nodiscard]] std::string describe_tag(std::uint64_t tag) {
  constexpr char digits[] = "0123456789abcdef";
  const auto hex = [&](std::uint64_t value, int width) {
    std::string s;
    for (int i = width - 1; i >= 0; --i) s += digits[(value >> (4 * i)) & 15U];
    return s;
  };
  const std::uint64_t message_type = (tag >> 24U) & 15U;
  if ((tag & (0xfULL << 60U)) == message_tag_mark && message_type < std::size(all_dtypes))
    return "message with tag " + std::to_string((tag >> 28U) & 0xffffffffU) + " of " +
           std::string(to_string(static_cast<dtype>(message_type))) + ", count mark " + hex(tag & 0xffffffU, 6);
  const std::uint64_t kind = (tag >> 39U) & 7U;
  const std::uint64_t type = (tag >> 35U) & 15U;
  const std::uint64_t op = (tag >> 32U) & 7U;
  if ((tag & (0xfULL << 60U)) != call_tag_mark || type >= std::size(all_dtypes) || op > 4)
    return "tag 0x" + hex(tag, 16);
  const std::string call = "call " + std::to_string((tag >> 44U) & 0xffffU);
  const auto part = static_cast<call_identity::step>((tag >> 42U) & 3U);
  if (part == call_identity::step::barrier) return call + ", barrier";
  const auto collective = static_cast<collective_kind>(kind);
  std::string text = call + ", " + (part == call_identity::step::agreement ? "agreement on the plan of " : "") +
                     std::string(to_string(collective)) + " of " + std::string(to_string(static_cast<dtype>(type)));
  if (reduces(collective)) text += " (" + std::string(to_string(static_cast<reduce_op>(op))) + ")";
  if (rooted(collective)) text += ", root " + std::to_string((tag >> 24U) & 0xffU);
  return text + ", count mark " + hex((tag >> 12U) & 0xfffU, 3) + ", plan mark " + hex(tag & 0xfffU, 3);
}

}}}  // namespace topocoll::v0::detail
