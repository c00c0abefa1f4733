// SPDX-License-Identifier: Apache-2.0
#pragma once
// What switches of a network carry, and sets of switches that belong together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>
#include <topocoll/topo/detail/shape.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// What a switch of the network carries.
struct switch_load {
  double down = 0, up = 0;              ///< as it is, in bytes per second
  double meant_down = 0, meant_up = 0;  ///< as it would be without what was named as missing or slow
  std::uint32_t hosts = 0;              ///< hosts that plug in
  std::uint32_t uplinks = 0, missing_uplinks = 0;
  std::uint32_t part = no_place;  ///< which network of its own the switch belongs to
};

/// Sets of switches that joining makes one.
class joined_sets {
 public:
  explicit joined_sets(std::size_t n) : above_(n) {
    for (std::uint32_t v = 0; v < n; ++v) above_[v] = v;
  }
  [[nodiscard]] std::uint32_t of(std::uint32_t v) {
    while (above_[v] != v) v = above_[v] = above_[above_[v]];
    return v;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = of(a);
    b = of(b);
    if (a != b) above_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> above_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
