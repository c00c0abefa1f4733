// SPDX-License-Identifier: Apache-2.0
#pragma once
// Families of disjoint node sets that limit all-reduce: the best one for small graphs, one per level for large ones.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/bound_flow.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/topo/flow.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

inline constexpr std::uint32_t no_part = std::numeric_limits<std::uint32_t>::max();

/// Node sets, each with a rank, that hold all ranks together and have no rank in common. Switches may be in none, and
/// where capacities differ by direction in several: a message is counted where it leaves the set of its sender, or enters
/// that of its receiver, and other sets do not matter for that.
struct partition {
  std::vector<std::uint32_t> part_of;  ///< per node; `no_part` for nodes left out
  std::uint32_t parts = 0;
  std::int64_t out = 0;                                         ///< units that leave the parts, summed over the parts
  std::int64_t in = 0;                                          ///< units that enter the parts, summed over the parts
  std::vector<std::pair<std::uint32_t, std::uint32_t>> also{};  ///< (node, set) beyond `part_of`, by node
  bool proved = true;  ///< no family asks for more; false when the effort did not suffice to show it

  [[nodiscard]] std::int64_t narrow() const { return out < in ? out : in; }
  /// True when 2 (parts - 1) / narrow, the time of an all-reduce per unit of data, is more than that of `o`.
  [[nodiscard]] bool tighter_than(const partition& o) const {
    if (parts < 2) return false;
    return o.parts < 2 || int128{parts - 1} * o.narrow() > int128{o.parts - 1} * narrow();
  }
};

/// Numbers 0, 1, 2, … (<numeric> costs 2,000 lines).
template <class = void>
void count_up(std::vector<std::uint32_t>& v) {
  for (std::uint32_t i = 0; i < v.size(); ++i) v[i] = i;
}

/// Adds up what leaves and enters each set: calls `out(set, units)` and `in(set, units)`. Cost: O(arcs).
template <class Out, class In>
void each_crossing(const exact_network& net, const partition& p, Out out, In in) {
  const auto each_set = [&](std::uint32_t v, auto use) {
    if (p.part_of[v] != no_part) use(p.part_of[v]);
    for (auto i = seq::lower_bound_by(p.also, v, &std::pair<std::uint32_t, std::uint32_t>::first);
         i != p.also.end() && i->first == v; ++i)
      use(i->second);
  };
  const auto within = [&](std::uint32_t v, std::uint32_t set) {
    bool found = false;
    each_set(v, [&](std::uint32_t k) { found = found || k == set; });
    return found;
  };
  for (const exact_network::arc& a : net.arcs) {
    const std::uint32_t from = p.part_of[a.from], to = p.part_of[a.to];
    if (p.also.empty()) {
      if (from == to) continue;
      if (from != no_part) out(from, a.units);
      if (to != no_part) in(to, a.units);
      continue;
    }
    each_set(a.from, [&](std::uint32_t k) {
      if (!within(a.to, k)) out(k, a.units);
    });
    each_set(a.to, [&](std::uint32_t k) {
      if (!within(a.from, k)) in(k, a.units);
    });
  }
}

/// Adds up what leaves and enters the parts; false when it does not fit into 64 bits.
template <class = void>
[[nodiscard]] bool add_up(const exact_network& net, partition& p) {
  int128 out = 0, in = 0;
  each_crossing(
      net, p, [&](std::uint32_t, std::int64_t units) { out += units; },
      [&](std::uint32_t, std::int64_t units) { in += units; });
  p.out = static_cast<std::int64_t>(out);
  p.in = static_cast<std::int64_t>(in);
  return out <= INT64_MAX && in <= INT64_MAX;
}

/// What a search for the best family may be told beside the network.
struct partition_search {
  const partition* start = nullptr;   ///< a family to begin with; nothing: each rank with what belongs to it
  std::uint64_t effort = UINT64_MAX;  ///< steps after which the search ends unproved
  bool inward = false;                ///< count what enters the parts, not what leaves them
};

/// The family of least (sum of exits) / (parts - 1): Dilworth truncation, with Newton steps on the rate.
///
/// For a rate a / b it looks for numbers y, one per rank, with y(P) <= b * exit(P) - a for every set P with a rank, and as
/// large a sum as can be. Where the sum reaches -a, no family has a smaller rate: summing up the inequalities of its parts
/// gives b * (sum of exits) >= a * (parts - 1). Otherwise the sets where equality holds, merged where they overlap, are a
/// family of smaller rate. First every y is raised to at most 0, later ranks being open sources, so that flows stay
/// nearby; only if that does not suffice, ranks that no set holds back (hubs) are raised further, with flows through the
/// whole network. Every family that is returned is checked to be disjoint and added up from the arcs, so the bound holds
/// whatever happened on the way. Cost: two or three times (ranks + parts) flows.
/// Sources: Cunningham, "Optimal attack and reinforcement of a network", JACM 1985; Dilworth truncation as in
/// Frank, "Connections in combinatorial optimization", 2011.
template <class Int>
class family_search {
 public:
  family_search(const exact_network& net, std::span<const std::int64_t> weight, const partition_search& search)
      : net_(net), search_(search), flow_(net, !search.inward) {
    index_.assign(net.nodes, no_part);
    for (std::uint32_t v = 0; v < net.nodes; ++v)
      if (weight[v] > 0) {
        index_[v] = static_cast<std::uint32_t>(ranks_.size());
        ranks_.push_back(v);
      }
  }

  [[nodiscard]] result<partition> run() {
    const std::size_t n = ranks_.size();
    if (n < 2) return fail(errc::invalid_argument, "a partition needs ranks on two nodes at least");
    leader_.resize(n);
    y_.resize(n);
    partition best;
    if (search_.start != nullptr && search_.start->parts > 1) {
      best = *search_.start;
    } else {
      std::vector<std::uint32_t> group(n);
      count_up(group);
      auto first = close(group, static_cast<std::uint32_t>(n));
      if (!first) return first.error();
      best = std::move(*first);
    }
    best.proved = true;
    while (crossing_of(best) > 0) {
      const std::int64_t common = common_divisor(crossing_of(best), std::int64_t{best.parts} - 1);
      const std::int64_t a = crossing_of(best) / common, b = (std::int64_t{best.parts} - 1) / common;
      if (shown_by_even_shares(best, a, b)) break;
      if (a > INT64_MAX / 4) return too_long();
      if (!flow_.scale(static_cast<Int>(b), static_cast<Int>(a))) return too_long();
      const auto verdict = raise(static_cast<Int>(a), static_cast<Int>(b));
      if (!verdict) return verdict.error();
      if (*verdict == outcome::out_of_effort) best.proved = false;
      if (*verdict != outcome::better) break;
      std::vector<std::uint32_t> number(n, no_part), group(n);
      std::uint32_t groups = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        std::uint32_t& g = number[find(i)];
        if (g == no_part) g = groups++;
        group[i] = g;
      }
      if (groups < 2) break;
      auto next = close(group, groups);
      if (!next) return next.error();
      if (int128{crossing_of(*next)} * (best.parts - 1) >= int128{crossing_of(best)} * (next->parts - 1))
        return fail(errc::bug, "a Newton step of the family bound did not find a better family");
      best = std::move(*next);
    }
    return best;
  }

 private:
  enum class outcome : std::uint8_t { none_better, better, out_of_effort };

  static failure too_long() { return fail(errc::unsupported, "the scaled capacities do not fit"); }
  [[nodiscard]] std::int64_t crossing_of(const partition& p) const { return search_.inward ? p.in : p.out; }
  std::uint32_t find(std::uint32_t i) {
    while (leader_[i] != i) i = leader_[i] = leader_[leader_[i]];
    return i;
  }

  void open_all() {
    flow_.forget_distances();
    for (const std::uint32_t v : ranks_) flow_.open(v);
  }

  /// The parts for a grouping of the ranks: the smallest set around each group that has the least exit.
  [[nodiscard]] result<partition> close(const std::vector<std::uint32_t>& group, std::uint32_t groups) {
    partition p{std::vector<std::uint32_t>(net_.nodes, no_part), groups};
    if (!flow_.scale(Int(1), Int(0))) return too_long();
    std::vector<std::uint32_t> first(groups + 1, 0), members(ranks_.size());
    for (const std::uint32_t g : group) ++first[g + 1];
    for (std::uint32_t g = 0; g < groups; ++g) first[g + 1] += first[g];
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      members[next[group[i]]++] = ranks_[i];
    }
    open_all();
    for (std::uint32_t g = 0; g < groups; ++g) {
      const std::uint32_t* const mine = members.data() + first[g];
      const std::size_t size = first[g + 1] - first[g];
      for (std::size_t i = 0; i < size; ++i) flow_.pause(mine[i]);
      (void)flow_.flow_into(mine, size, sink_flow<Int>::most());
      // Where capacities are alike both ways, smallest sets have no switch in common.
      for (const std::uint32_t v : flow_.reached()) {
        if (p.part_of[v] == no_part)
          p.part_of[v] = g;
        else
          p.also.push_back({v, g});
      }
      for (std::size_t i = 0; i < size; ++i) flow_.resume(mine[i]);
    }
    seq::sort(p.also);
    if (!add_up(net_, p)) return too_long();
    return p;
  }

  /// The quick way to see that no family beats `p`, which has the rate a / b: y that makes the inequality of each part an
  /// equation, and among the ranks of a part the same but for what the way into each of them asks for. A rank that was
  /// shown to be in no set that violates its inequality joins the source, as in `worst_gather_cut`. False says nothing.
  [[nodiscard]] bool shown_by_even_shares(const partition& p, std::int64_t a, std::int64_t b) {
    constexpr std::int64_t many = 1'000'000'000;
    std::vector<std::int64_t> size(p.parts, 0), around(p.parts, 0);
    for (const std::uint32_t v : ranks_) ++size[p.part_of[v]];
    each_crossing(
        net_, p, [&](std::uint32_t k, std::int64_t units) { around[k] += search_.inward ? 0 : units; },
        [&](std::uint32_t k, std::int64_t units) { around[k] += search_.inward ? units : 0; });
    std::int64_t whole = 1;  // a multiple of all sizes
    for (const std::int64_t k : size) {
      if (whole % k != 0) whole = whole / common_divisor(whole, k) * k;
      if (whole > many) return false;
    }
    if (int128{a} * whole > sink_flow<Int>::most() / 4 || int128{b} * whole > sink_flow<Int>::most()) return false;
    const Int wanted = static_cast<Int>(a) * static_cast<Int>(whole);
    if (!flow_.scale(static_cast<Int>(b) * static_cast<Int>(whole), wanted)) return false;
    std::vector<Int> left(p.parts);  // of the sum of -y in a part
    for (std::uint32_t k = 0; k < p.parts; ++k) {
      const int128 share = int128{a} - int128{b} * around[k];
      if (-share > sink_flow<Int>::most() / 4 / whole) return false;
      left[k] = static_cast<Int>(share) * static_cast<Int>(whole);
    }
    open_all();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (flow_.steps() + steps_ > search_.effort) return false;
      flow_.pause(ranks_[i]);
      const Int value = flow_.flow_into(ranks_[i], wanted);
      flow_.resume(ranks_[i]);
      y_[i] = value < wanted ? value - wanted : Int(0);
      left[p.part_of[ranks_[i]]] += y_[i];
      if (y_[i] < 0) --size[p.part_of[ranks_[i]]];
    }
    // What is left goes to the ranks whose ways in ask for nothing, as feed or, below 0, as drain.
    std::vector<std::uint32_t> drains;
    flow_.forget_distances();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::uint32_t k = p.part_of[ranks_[i]];
      if (y_[i] == 0) {
        y_[i] = -(left[k] / static_cast<Int>(size[k]--));
        left[k] += y_[i];
      }
      if (y_[i] > 0) drains.push_back(static_cast<std::uint32_t>(i));
      flow_.feed(ranks_[i], y_[i] > 0 ? Int(0) : -y_[i]);
    }
    for (const Int rest : left)
      if (rest < 0) return false;  // too much was given away, and nobody to take it back
    for (const std::uint32_t i : drains)
      if (flow_.steps() + steps_ > search_.effort || !flow_.drain(ranks_[i], y_[i])) return false;
    for (const std::uint32_t v : ranks_) {
      if (flow_.steps() + steps_ > search_.effort || flow_.flow_into(v, wanted) < wanted) return false;
      flow_.open(v);
    }
    return true;
  }

  /// Raises y as far as it goes for the rate a / b, and merges the sets that hold it back.
  [[nodiscard]] result<outcome> raise(Int a, Int b) {
    const std::size_t n = ranks_.size();
    count_up(leader_);
    covered_.assign(n, false);
    open_all();
    Int total = 0;
    for (std::uint32_t j = 0; j < n; ++j) {
      if (flow_.steps() + steps_ > search_.effort) return outcome::out_of_effort;
      flow_.feed(ranks_[j], Int(0));
      const Int value = flow_.flow_into(ranks_[j], a);
      y_[j] = value < a ? value - a : Int(0);
      total += y_[j];
      if (value < a)
        for (const std::uint32_t v : flow_.reached()) hold(v, j);
      flow_.feed(ranks_[j], -y_[j]);
    }
    if (total + a >= 0) return outcome::none_better;
    if (seq::contains(covered_, false)) return raise_hubs(a, b, total);
    return outcome::better;
  }
  /// Node v is in a set that holds rank j back.
  void hold(std::uint32_t v, std::uint32_t j) {
    if (index_[v] == no_part) return;
    leader_[find(index_[v])] = find(j);
    covered_[index_[v]] = true;
  }

  /// Raises those that nothing holds back above 0: what they gain is a reward for the sets around others.
  [[nodiscard]] result<outcome> raise_hubs(Int a, Int b, Int total) {
    const auto n = static_cast<std::uint32_t>(ranks_.size());
    const std::uint32_t source = net_.nodes, sink = net_.nodes + 1;
    topo::flow_network<Int> flow(net_.nodes + 2);
    for (const exact_network::arc& e : net_.arcs)
      flow.add({search_.inward ? e.to : e.from}, {search_.inward ? e.from : e.to}, static_cast<Int>(e.units) * b);
    const int128 most = topo::flow_network<Int>::most(), sum = flow_.total() * static_cast<int128>(b);
    // More than any cut that matters; it appears once, beside rewards and prices of at most as much together.
    const int128 never = 2 * (sum + static_cast<int128>(a) * n) + 1;
    if (sum > most / 8 || static_cast<int128>(a) * n > most / 16) return too_long();
    std::vector<std::uint32_t> feed(n), drain(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      feed[i] = flow.add({source}, {ranks_[i]}, Int(0));
      drain[i] = flow.add({ranks_[i]}, {sink}, -y_[i]);
    }
    for (std::uint32_t j = 0; j < n; ++j) {
      if (covered_[j]) continue;
      steps_ += 4 * net_.arcs.size();
      if (flow_.steps() + steps_ > search_.effort) return outcome::out_of_effort;
      Int paid = 0;
      for (std::uint32_t i = 0; i < n; ++i) paid += y_[i] > 0 ? y_[i] : Int(0);
      flow.set(feed[j], static_cast<Int>(never));
      const auto value = flow.maximum_flow({source}, {sink});
      if (!value) return value.error();
      y_[j] = *value - a - paid;  // nothing was gained or paid for j before: it stood at 0
      total += y_[j];
      flow.set(feed[j], y_[j] > 0 ? y_[j] : Int(0));
      if (total + a >= 0) return outcome::none_better;
      for (std::uint32_t i = 0; i < n; ++i)
        if (flow.on_source_side({ranks_[i]})) hold(ranks_[i], j);
    }
    return outcome::better;
  }

  const exact_network& net_;
  partition_search search_;
  sink_flow<Int> flow_;
  std::vector<std::uint32_t> ranks_{}, index_{};  // nodes with ranks, and back
  std::vector<Int> y_{};
  std::vector<std::uint32_t> leader_{};  // of the ranks that are held back together
  std::vector<bool> covered_{};          // by a set that holds some rank back
  std::uint64_t steps_ = 0;
};

/// The family of least rate, with 64 bits where they suffice and 128 where they do not: see `family_search`.
template <class = void>
[[nodiscard]] result<partition> best_partition(const exact_network& net, std::span<const std::int64_t> weight,
                                               const partition_search& search = {}) {
  auto found = family_search<std::int64_t>(net, weight, search).run();
  if (!found && found.error().code == errc::unsupported) return family_search<int128>(net, weight, search).run();
  return found;
}

/// The parts into which the graph falls without some of its arcs and nodes; parts without a rank are left out.
///
/// `keep_node(v)` and `keep_arc(index)` say what stays. Cost: O(arcs).
template <class KeepNode, class KeepArc>
[[nodiscard]] partition components(const exact_network& net, std::span<const std::int64_t> weight, KeepNode keep_node,
                                   KeepArc keep_arc) {
  std::vector<std::uint32_t> leader(net.nodes);
  count_up(leader);
  const auto find = [&](std::uint32_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (std::uint32_t k = 0; k < net.arcs.size(); ++k) {
    const exact_network::arc& a = net.arcs[k];
    if (keep_node(a.from) && keep_node(a.to) && keep_arc(k)) leader[find(a.from)] = find(a.to);
  }
  partition p{std::vector<std::uint32_t>(net.nodes, no_part)};
  std::vector<std::uint32_t> number(net.nodes, no_part);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (weight[v] == 0) continue;
    std::uint32_t& g = number[find(v)];
    if (g == no_part) g = p.parts++;
  }
  for (std::uint32_t v = 0; v < net.nodes; ++v) p.part_of[v] = number[find(v)];
  return p;
}

}}}}  // namespace topocoll::v0::plan::detail
