// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the flow simulator may assume about paths, elements and buffers.
#include <cstdint>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// How a message uses links where several ways are equally good.
enum class path_choice : std::uint8_t {
  ideal,  ///< evenly over all of them, as `simulate` takes it: what adaptive routing and packet spraying come near
  hashed  ///< one way per pair of ranks and channel, drawn by a hash: what ECMP does with a connection
};

struct flow_options {
  /// Size of an element: chunks are whole numbers of these. A size that does not divide is rounded up, shard by shard.
  bytes element{1};
  bool in_place = false;  ///< input and output are one: copies from one to the same place of the other are nothing
  path_choice paths = path_choice::ideal;
  std::uint64_t seed = 1;  ///< of the hash
  /// Simulate ranks that stay alike together. The answer is the same; see `flow_simulation::rank_classes`.
  bool group = true;
};

}}}  // namespace topocoll::v0::plan
