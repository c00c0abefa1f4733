// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers that name things: a rank is not a node, a node is not a link.
#include <compare>
#include <cstdint>

namespace topocoll { inline namespace v0 {

/// A 32-bit number that only mixes with itself. `Tag` is any type, used only for its name.
template <class Tag>
struct strong_id {
  std::uint32_t value = 0;

  friend constexpr auto operator<=>(strong_id, strong_id) = default;
  friend constexpr bool operator==(strong_id, strong_id) = default;
};

/// Position of a process in a communicator: 0 to size-1.
using rank_id = strong_id<struct rank_tag>;
/// Position of a node in one graph. Says nothing in another graph: hardware is known by its address.
using node_id = strong_id<struct node_tag>;
/// Position of a directed link in one graph.
using link_id = strong_id<struct link_tag>;

}}  // namespace topocoll::v0
