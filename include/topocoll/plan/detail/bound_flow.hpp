// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flow from many fed nodes into one node after another, at a cost that depends on what the flow crosses, not on the network.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/bound_pairs.hpp>
#include <topocoll/plan/detail/exact_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Maximum flows that share one source and differ in their sink.
///
/// The source feeds every node v with up to `feed(v)`, or without limit (`open(v)`). `flow_into` looks backwards from the
/// sink, stops as soon as enough is found, and undoes what it touched: with open nodes nearby, a question costs a few
/// dozen steps in a network of any size.
/// Method: shortest augmenting paths towards open nodes along distances that are kept from question to question (Ahuja and
/// Orlin's distance labels; kept up to date as in Even and Shiloach, JACM 1981). Where these do not suffice, Dinic's
/// layers from the sink finish the flow, so that the worst case is Dinic's.
/// `Int` is int64 or int128; capacities are the units of the network times a factor, and `scale` refuses a factor for
/// which some sum might not fit.
template <class Int>
class sink_flow {
 public:
  /// @param turned  use every arc against its direction
  /// Cost: O(nodes + arcs); parallel and opposite arcs between two nodes become one pair.
  explicit sink_flow(const exact_network& net, bool turned = false) { build(net, turned); }

  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  static constexpr Int most() { return static_cast<Int>((((Int(1) << (sizeof(Int) * 8 - 2)) - 1) << 1) + 1); }
  /// Sum of the capacities of all arcs, in units; -1 when parallel arcs do not fit into 63 bits: `scale` refuses them.
  [[nodiscard]] int128 total() const { return total_; }

  /// Sets all capacities to units * `factor`. False, and nothing changed, when they might not fit beside flows of up to
  /// `beside`. Precondition: factor >= 1. Cost: O(arcs).
  [[nodiscard]] bool scale(Int factor, Int beside) {
    const Int room = most() / 4;
    if (total_ < 0 || beside > room || (widest_ > 0 && factor > room / static_cast<Int>(widest_))) return false;
    factor_ = factor;
    for (half& h : halves_) h.rest = static_cast<Int>(h.units) * factor;
    return true;
  }
  /// The source feeds `node` with up to `amount`. Precondition: 0 <= amount, within the room that `scale` granted.
  void feed(std::uint32_t node, Int amount) {
    const bool was_open = is_open(node);
    fed_[node] = rest_[node] = amount;
    if (was_open && measured_) recede(node);
  }
  /// The source feeds `node` without limit: from now on it is on the source's side of every cut.
  void open(std::uint32_t node) {
    fed_[node] = rest_[node] = most();
    if (measured_) approach(node);
  }
  [[nodiscard]] bool is_open(std::uint32_t node) const { return fed_[node] == most(); }
  /// Opens or closes many nodes: `open` and `feed` update distances one by one, after this they are measured anew.
  void forget_distances() { measured_ = false; }
  /// Takes the feed of an open node away for one question.
  void pause(std::uint32_t node) { fed_[node] = rest_[node] = Int(0); }
  void resume(std::uint32_t node) { fed_[node] = rest_[node] = most(); }

  /// Flow from the source into `sink`, stopping at `wanted`. When it stays below, `reached()` is the smallest set of nodes
  /// around the sink that lets no more in; and the flow has been undone either way.
  [[nodiscard]] Int flow_into(std::uint32_t sink, Int wanted) { return flow_into(&sink, 1, wanted); }
  /// The same into several nodes taken together. Precondition: none of them is open.
  [[nodiscard]] Int flow_into(const std::uint32_t* sinks, std::size_t count, Int wanted) {
    if (!measured_) measure();
    Int value = 0;
    for (std::size_t i = 0; i < count && value < wanted; ++i) {  // what the sinks are fed themselves
      const Int own = rest_[sinks[i]];
      value = own < wanted - value ? value + own : wanted;
    }
    reached_.clear();
    if (++question_ == 0) {
      asked_.assign(asked_.size(), 0);
      question_ = 1;
    }
    for (std::size_t i = 0; i < count; ++i) ask(sinks[i]);
    for (std::size_t i = 0; i < count && value < wanted; ++i) value += fetch(sinks[i], wanted - value);
    for (std::size_t k = raised_.size(); k-- > 0;) distance_[raised_[k].first] = raised_[k].second;
    raised_.clear();
    while (value < wanted && layer(sinks, count))
      for (std::size_t i = 0; i < count && value < wanted; ++i) value += push_into(sinks[i], wanted - value);
    if (!keep_) undo();
    return value;
  }
  /// Lets `amount` flow into `sink` for good: later questions are about what can flow beside it. False, and nothing kept,
  /// when it does not fit. Until the next `scale`.
  [[nodiscard]] bool drain(std::uint32_t sink, Int amount) {
    keep_ = true;
    const bool fits = flow_into(sink, amount) >= amount;
    keep_ = false;
    if (!fits) undo();
    touched_.clear();
    drawn_.clear();
    return fits;
  }
  /// See `flow_into`: the sinks first.
  [[nodiscard]] const std::vector<std::uint32_t>& reached() const { return reached_; }
  [[nodiscard]] bool was_reached(std::uint32_t node) const { return seen_[node] == stamp_; }
  /// Units that lead into `reached()` from outside, and out of it.
  struct both_ways {
    int128 in = 0, out = 0;
  };
  [[nodiscard]] both_ways units_around_reached() const {
    both_ways sum;
    for (const std::uint32_t v : reached_)
      for (std::uint32_t h = first_[v]; h < first_[v + 1]; ++h)
        if (seen_[halves_[h].peer] != stamp_) {
          sum.in += halves_[h].units;
          sum.out += halves_[halves_[h].mate].units;
        }
    return sum;
  }
  /// Units that lead into one node.
  [[nodiscard]] int128 units_into(std::uint32_t v) const {
    int128 sum = 0;
    for (std::uint32_t h = first_[v]; h < first_[v + 1]; ++h) sum += halves_[h].units;
    return sum;
  }
  /// Steps taken so far: half-arcs looked at.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  /// One direction of a pair, kept at the node that it leads into.
  struct half {
    std::uint32_t peer;  // where it comes from
    std::uint32_t mate;  // the other direction
    std::int64_t units;
    Int rest;  // residual capacity
  };
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint8_t far = 60;      // distances beyond are not kept
  static constexpr std::uint8_t detour = 8;    // arcs beyond the shortest way, and
  static constexpr std::size_t raisings = 64;  // raised distances, after which layers take over

  void build(const exact_network& net, bool turned) {
    const std::uint32_t n = net.nodes;
    total_ = pair_arcs(net, turned, first_, halves_);
    for (half& h : halves_) {
      const std::int64_t both = h.units / 2 + halves_[h.mate].units / 2 + 1;
      if (both > widest_) widest_ = both;
    }
    fed_.assign(n, Int(0));
    rest_.assign(n, Int(0));
    seen_.assign(n, 0);
    depth_.resize(n);
    asked_.assign(n, 0);
    distance_.assign(n, far);
    support_.resize(n);
    current_.resize(n);
  }

  /// Distance of every node from the open ones, in arcs whatever their direction: flow that is kept can open either.
  void measure() {
    measured_ = true;
    distance_.assign(distance_.size(), far);
    queue_.clear();
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      support_[v] = first_[v];
      if (!is_open(v)) continue;
      distance_[v] = 0;
      queue_.push_back(v);
    }
    spread();
  }
  /// Passes distances on from the nodes in the queue to those that are farther than they need be.
  void spread() {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::uint32_t v = queue_[i];
      const auto next = static_cast<std::uint8_t>(distance_[v] + 1);
      if (next >= far) continue;
      for (std::uint32_t k = first_[v]; k < first_[v + 1]; ++k) {
        ++steps_;
        const half& in = halves_[k];
        if (distance_[in.peer] <= next) continue;
        distance_[in.peer] = next;
        support_[in.peer] = first_[in.peer];
        queue_.push_back(in.peer);
      }
    }
  }
  void approach(std::uint32_t opened) {
    distance_[opened] = 0;
    queue_.assign(1, opened);
    spread();
  }
  /// Distances grow where the shortest way came from a node that is no longer open. `support_[v]` is where the search for
  /// a peer that is one nearer than v goes on: peers before it are no nearer, since distances only grow meanwhile.
  void recede(std::uint32_t closed) {
    queue_.assign(1, closed);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::uint32_t v = queue_[i];
      const std::uint8_t before = distance_[v];
      if (is_open(v) || before == far) continue;
      if (before == 0) {
        distance_[v] = 1;
        support_[v] = first_[v];
      }
      while (distance_[v] < far) {
        std::uint32_t& k = support_[v];
        while (k < first_[v + 1] && distance_[halves_[k].peer] + 1 > distance_[v]) {
          ++k;
          ++steps_;
        }
        if (k < first_[v + 1]) break;
        ++distance_[v];
        k = first_[v];
      }
      if (distance_[v] == before) continue;
      for (std::uint32_t k = first_[v]; k < first_[v + 1]; ++k) {
        ++steps_;
        const half& in = halves_[k];
        if (distance_[in.peer] == before + 1) queue_.push_back(in.peer);
      }
    }
  }

  void ask(std::uint32_t v) {
    asked_[v] = question_;
    current_[v] = first_[v];
  }
  /// Augments along shortest ways from open nodes, raising distances where arcs are full; what it found.
  Int fetch(std::uint32_t sink, Int need) {
    const std::uint32_t limit = distance_[sink] + detour;
    Int found = 0;
    path_.clear();
    std::uint32_t v = sink;
    while (found < need && distance_[sink] < far && distance_[sink] <= limit && raised_.size() < raisings) {
      if (v != sink && rest_[v] > 0) {
        const Int width = augment(v, need - found);
        found += width;
        v = back_;
        continue;
      }
      std::uint32_t& k = current_[v];
      while (k < first_[v + 1] && (halves_[k].rest <= 0 || distance_[halves_[k].peer] + 1 != distance_[v])) {
        ++k;
        ++steps_;
      }
      if (k < first_[v + 1]) {
        path_.push_back(k);
        v = halves_[k].peer;
        if (asked_[v] != question_) ask(v);
        continue;
      }
      std::uint32_t nearest = far;
      for (k = first_[v]; k < first_[v + 1]; ++k) {
        ++steps_;
        const half& h = halves_[k];
        if (h.rest > 0 && distance_[h.peer] + 1U < nearest) nearest = distance_[h.peer] + 1U;
      }
      k = first_[v];
      raised_.push_back({v, distance_[v]});
      distance_[v] = static_cast<std::uint8_t>(nearest);
      if (v == sink) continue;
      v = halves_[halves_[path_.back()].mate].peer;
      path_.pop_back();
    }
    return found;
  }
  /// Pushes up to `need` along `path_` from the fed node v; `back_` is where the path is open again.
  Int augment(std::uint32_t v, Int need) {
    Int width = need < rest_[v] ? need : rest_[v];
    for (const std::uint32_t k : path_)
      if (halves_[k].rest < width) width = halves_[k].rest;
    std::size_t full = path_.size() - 1;
    for (std::size_t i = path_.size(); i-- > 0;) {
      half& h = halves_[path_[i]];
      h.rest -= width;
      halves_[h.mate].rest += width;
      touched_.push_back({path_[i], width});
      if (h.rest == 0) full = i;
    }
    if (fed_[v] != most()) {
      drawn_.push_back({v, width});
      rest_[v] -= width;
    }
    back_ = halves_[halves_[path_[full]].mate].peer;
    path_.resize(full);
    return width;
  }

  /// Layers of nodes by distance to the sinks over residual arcs, up to the nearest that are fed; false when none is.
  bool layer(const std::uint32_t* sinks, std::size_t count) {
    if (++stamp_ == 0) {
      seen_.assign(seen_.size(), 0);
      stamp_ = 1;
    }
    reached_.clear();
    const auto meet = [&](std::uint32_t v, std::uint32_t depth) {
      seen_[v] = stamp_;
      depth_[v] = depth;
      current_[v] = first_[v];
      reached_.push_back(v);
    };
    for (std::size_t i = 0; i < count; ++i) meet(sinks[i], 0);
    nearest_ = none;
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const std::uint32_t v = reached_[i], below = depth_[v] + 1;
      if (below > nearest_) break;
      for (std::uint32_t k = first_[v]; k < first_[v + 1]; ++k) {
        const half& h = halves_[k];
        ++steps_;
        if (h.rest <= 0 || seen_[h.peer] == stamp_) continue;
        meet(h.peer, below);
        if (rest_[h.peer] > 0) nearest_ = below;
      }
    }
    return nearest_ != none;
  }

  /// Pushes along the layers until they are blocked; what it pushed.
  Int push_into(std::uint32_t sink, Int need) {
    Int pushed = 0;
    path_.clear();
    std::uint32_t v = sink;
    while (pushed < need) {
      if (depth_[v] == nearest_ && rest_[v] > 0) {
        pushed += augment(v, need - pushed);
        v = back_;
        continue;
      }
      std::uint32_t& k = current_[v];
      const std::uint32_t end = depth_[v] < nearest_ ? first_[v + 1] : 0;
      while (k < end &&
             (halves_[k].rest <= 0 || seen_[halves_[k].peer] != stamp_ || depth_[halves_[k].peer] != depth_[v] + 1)) {
        ++k;
        ++steps_;
      }
      if (k < end) {
        path_.push_back(k);
        v = halves_[k].peer;
        continue;
      }
      if (path_.empty()) break;
      v = halves_[halves_[path_.back()].mate].peer;
      path_.pop_back();
      ++current_[v];
    }
    return pushed;
  }

  void undo() {
    for (const auto& [k, width] : touched_) {
      halves_[k].rest += width;
      halves_[halves_[k].mate].rest -= width;
    }
    for (const auto& [v, width] : drawn_) rest_[v] += width;
    touched_.clear();
    drawn_.clear();
  }

  std::vector<std::uint32_t> first_{};  // halves that lead into node v: first_[v] to first_[v + 1], by peer
  std::vector<half> halves_{};
  std::vector<Int> fed_{}, rest_{};
  std::vector<std::uint8_t> distance_{};  // from the nearest open node, or less
  std::vector<std::uint32_t> support_{}, queue_{};
  std::vector<std::uint32_t> seen_{}, asked_{}, depth_{}, current_{}, reached_{}, path_{};
  std::vector<std::pair<std::uint32_t, Int>> touched_{}, drawn_{};  // arcs and feeds with the flow of this question
  std::vector<std::pair<std::uint32_t, std::uint8_t>> raised_{};    // nodes whose distance grew, and what it was
  int128 total_ = 0;
  std::int64_t widest_ = 0;
  Int factor_ = 1;
  std::uint32_t stamp_ = 0, question_ = 0, nearest_ = none, back_ = 0;
  bool measured_ = false, keep_ = false;
  std::uint64_t steps_ = 0;
};

}}}}  // namespace topocoll::v0::plan::detail
