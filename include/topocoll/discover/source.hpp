// SPDX-License-Identifier: Apache-2.0
#pragma once
// The seam where machines and files become topology: anything that can give a fragment is a source.
#include <concepts>
#include <string>
#include <string_view>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// What every source obeys.
struct discover_options {
  std::string host = "localhost";  ///< name that host-local keys start with; files that name their host override it
  deadline until = deadline::in({20.0});  ///< no source works past this
};

/// Something that knows about a machine or a fabric.
///
/// Laws that the compiler cannot check: `read` never throws and never waits past `options.until`; what cannot be read is
/// a finding in a good answer; a failure means that nothing at all could be told; the same input gives the same fragment.
template <class S>
concept TopologySource = std::movable<S> && requires(S& s, const discover_options& o) {
  { s.name() } -> std::convertible_to<std::string_view>;
  { s.read(o) } -> std::same_as<result<topo::fragment>>;
};

/// Says in words what keeps `S` from being a `TopologySource`.
template <class S>
constexpr void require_topology_source() {
  static_assert(std::movable<S>, "a TopologySource can be moved");
  static_assert(
      requires(S & s) {
        { s.name() } -> std::convertible_to<std::string_view>;
      },
      "a TopologySource has name() giving a text");
  static_assert(
      requires(S & s, const discover_options& o) {
        { s.read(o) } -> std::same_as<result<topo::fragment>>;
      },
      "a TopologySource has read(const discover_options&) returning result<topo::fragment>");
  static_assert(TopologySource<S>);
}

}}  // namespace topocoll::v0
