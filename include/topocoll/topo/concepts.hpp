// SPDX-License-Identifier: Apache-2.0
#pragma once
// What graph algorithms ask of a graph: no more than these four questions.
#include <concepts>
#include <cstddef>
#include <span>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// A directed graph with capacities. Implemented by `graph` and by cheap views on it.
///
/// Laws that the compiler cannot check: ids are 0 to count-1; every link appears in `out_links` of exactly one node;
/// answers do not change while the object lives; capacities are finite and not negative.
template <class G>
concept LinkGraph = requires(const G& g, node_id v, link_id e) {
  { g.node_count() } -> std::same_as<std::size_t>;
  { g.link_count() } -> std::same_as<std::size_t>;
  { g.out_links(v) } -> std::same_as<std::span<const link_id>>;
  { g.head(e) } -> std::same_as<node_id>;
  { g.capacity(e) } -> std::same_as<bytes_per_second>;
};

/// Says in words what keeps `G` from being a `LinkGraph`.
template <class G>
constexpr void require_link_graph() {
  static_assert(
      requires(const G& g) {
        { g.node_count() } -> std::same_as<std::size_t>;
      },
      "a LinkGraph has node_count() const returning std::size_t");
  static_assert(
      requires(const G& g) {
        { g.link_count() } -> std::same_as<std::size_t>;
      },
      "a LinkGraph has link_count() const returning std::size_t");
  static_assert(
      requires(const G& g, node_id v) {
        { g.out_links(v) } -> std::same_as<std::span<const link_id>>;
      },
      "a LinkGraph has out_links(node_id) const returning std::span<const link_id>");
  static_assert(
      requires(const G& g, link_id e) {
        { g.head(e) } -> std::same_as<node_id>;
      },
      "a LinkGraph has head(link_id) const returning node_id");
  static_assert(
      requires(const G& g, link_id e) {
        { g.capacity(e) } -> std::same_as<bytes_per_second>;
      },
      "a LinkGraph has capacity(link_id) const returning bytes_per_second");
  static_assert(LinkGraph<G>);
}

}}}  // namespace topocoll::v0::topo
