// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maximum flow and minimum cut in exact integers, on a network of arcs or on any LinkGraph.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/topo/concepts.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// A directed network with integer capacities that answers many flow questions: capacities may change between them.
///
/// `Int` is a signed integer, 64 bits or wider (`__int128` works). Exact: the sum of all capacities must fit into `Int`,
/// then no intermediate value can overflow; `maximum_flow` checks this and refuses otherwise.
/// Method: Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970;
/// O(V² E) at worst, in practice a few passes over the arcs between source and sink.
template <class Int = std::int64_t>
class flow_network {
  static_assert(sizeof(Int) >= 8 && Int(-1) < Int(0), "a flow needs a signed integer of at least 64 bits");

 public:
  explicit flow_network(std::size_t nodes) : first_(nodes, none) {}

  /// Most that fits into `Int`: the capacity of an arc that never binds may be at most this, less the other capacities.
  static constexpr Int most() {
    // numeric_limits knows __int128 only in GNU mode.
    return static_cast<Int>((((Int(1) << (sizeof(Int) * 8 - 2)) - 1) << 1) + 1);
  }

  [[nodiscard]] std::size_t node_count() const { return first_.size(); }
  [[nodiscard]] std::size_t arc_count() const { return arcs_.size() / 2; }

  /// Adds an arc and returns its number, counted from 0. Preconditions: both nodes exist, capacity >= 0.
  std::uint32_t add(node_id from, node_id to, Int capacity) {
    const auto number = static_cast<std::uint32_t>(arcs_.size());
    arcs_.push_back({to.value, first_[from.value], 0});
    first_[from.value] = number;
    arcs_.push_back({from.value, first_[to.value], 0});
    first_[to.value] = number + 1;
    capacity_.push_back(capacity);
    return number / 2;
  }
  /// Changes a capacity. Precondition: `arc` came from `add`, capacity >= 0.
  void set(std::uint32_t arc, Int capacity) { capacity_[arc] = capacity; }
  [[nodiscard]] Int capacity(std::uint32_t arc) const { return capacity_[arc]; }
  /// Flow on an arc after `maximum_flow`.
  [[nodiscard]] Int flow(std::uint32_t arc) const { return arcs_[2 * arc + 1].rest; }
  [[nodiscard]] node_id tail(std::uint32_t arc) const { return {arcs_[2 * arc + 1].to}; }
  [[nodiscard]] node_id head(std::uint32_t arc) const { return {arcs_[2 * arc].to}; }

  /// Value of a maximum flow; earlier flow is forgotten. The search stops early once the value reaches `enough`.
  /// @return `invalid_argument` for a node that is not there or source = sink; `unsupported` when the capacities add up
  ///         to more than `Int` holds
  [[nodiscard]] result<Int> maximum_flow(node_id source, node_id sink, Int enough = most()) {
    if (source.value >= first_.size() || sink.value >= first_.size() || source == sink)
      return fail(errc::invalid_argument, "a flow needs two different nodes of its network of " +
                                              std::to_string(first_.size()) + "; it was asked for node " +
                                              std::to_string(source.value) + " to node " + std::to_string(sink.value));
    Int sum = 0;
    for (std::uint32_t a = 0; a < capacity_.size(); ++a) {
      if (capacity_[a] > most() - sum)
        return fail(errc::unsupported, "the capacities of " + std::to_string(capacity_.size()) +
                                           " arcs add up to more than " + std::to_string(sizeof(Int) * 8) +
                                           " bits hold");
      sum += capacity_[a];
      arcs_[2 * a].rest = capacity_[a];
      arcs_[2 * a + 1].rest = 0;
    }
    Int value = 0;
    while (value < enough && layer(source.value, sink.value)) {
      current_ = first_;
      Int more = 0;
      do {
        more = augment(source.value, sink.value, enough - value);
        value += more;
      } while (more != 0 && value < enough);
    }
    return value;  // when the loop ended for want of a path, `depth_` marks the source side of the smallest minimum cut
  }

  /// After a `maximum_flow` that gave less than `enough`: true for the nodes on the source side of the smallest minimum cut.
  [[nodiscard]] bool on_source_side(node_id v) const { return depth_[v.value] != none; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct half {
    std::uint32_t to;
    std::uint32_t next;  // next half-arc that leaves the same node
    Int rest;            // residual capacity
  };

  /// Breadth-first distances over residual arcs; true when the sink is reached.
  bool layer(std::uint32_t source, std::uint32_t sink) {
    depth_.assign(first_.size(), none);
    queue_.clear();
    queue_.push_back(source);
    depth_[source] = 0;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::uint32_t v = queue_[i];
      if (v == sink) return true;
      for (std::uint32_t a = first_[v]; a != none; a = arcs_[a].next)
        if (arcs_[a].rest > 0 && depth_[arcs_[a].to] == none) {
          depth_[arcs_[a].to] = depth_[v] + 1;
          queue_.push_back(arcs_[a].to);
        }
    }
    return false;
  }

  /// One augmenting path in the layered network, without recursion; 0 when it is blocked.
  Int augment(std::uint32_t source, std::uint32_t sink, Int limit) {
    path_.clear();
    std::uint32_t v = source;
    while (v != sink) {
      std::uint32_t& a = current_[v];
      while (a != none && (arcs_[a].rest <= 0 || depth_[arcs_[a].to] != depth_[v] + 1)) a = arcs_[a].next;
      if (a != none) {
        path_.push_back(a);
        v = arcs_[a].to;
        continue;
      }
      if (path_.empty()) return 0;
      const std::uint32_t back = path_.back();
      path_.pop_back();
      v = arcs_[back ^ 1U].to;
      current_[v] = arcs_[back].next;
    }
    Int width = limit;
    for (const std::uint32_t a : path_) width = arcs_[a].rest < width ? arcs_[a].rest : width;
    for (const std::uint32_t a : path_) {
      arcs_[a].rest -= width;
      arcs_[a ^ 1U].rest += width;
    }
    return width;
  }

  std::vector<half> arcs_;  // arc k is half-arcs 2k (forward) and 2k+1 (backward)
  std::vector<Int> capacity_;
  std::vector<std::uint32_t> first_, current_, depth_, queue_, path_;
};

/// A cut: what leaves `side` (true = with the source), in the units of the capacities given.
template <class Int>
struct cut {
  Int capacity = 0;
  std::vector<bool> side;
};

/// Minimum cut between two nodes of a LinkGraph, in whole multiples of `unit`.
///
/// Capacities that are not multiples are rounded down, so that the result never exceeds the true cut; give a unit that
/// divides them for an exact answer. Cost: one maximum flow.
/// @return `invalid_argument` for a unit that is not positive, a capacity that is negative, not finite or too large to
///         count in `Int`, and as `flow_network::maximum_flow`
template <class Int = std::int64_t, LinkGraph G>
[[nodiscard]] result<cut<Int>> minimum_cut(const G& graph, node_id source, node_id sink,
                                           bytes_per_second unit = bytes_per_second{1}) {
  if (!(unit.value > 0))
    return fail(errc::invalid_argument, "a cut counts capacities in a unit above 0 bytes per second");
  flow_network<Int> net(graph.node_count());
  for (std::uint32_t v = 0; v < graph.node_count(); ++v)
    for (const link_id e : graph.out_links({v})) {
      const double units = graph.capacity(e) / unit;
      if (!(units >= 0) || units >= static_cast<double>(flow_network<Int>::most()))
        return fail(errc::invalid_argument, "link " + std::to_string(e.value) + " has a capacity of " +
                                                std::to_string(graph.capacity(e).value) +
                                                " bytes per second, which cannot be counted exactly");
      net.add({v}, graph.head(e), static_cast<Int>(units));
    }
  auto value = net.maximum_flow(source, sink);
  if (!value) return value.error();
  cut<Int> found{*value, std::vector<bool>(graph.node_count())};
  for (std::uint32_t v = 0; v < graph.node_count(); ++v) found.side[v] = net.on_source_side({v});
  return found;
}

}}}  // namespace topocoll::v0::topo
