// SPDX-License-Identifier: Apache-2.0
#pragma once
// Folds the messages of all groups of a stage into rounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/bundles.hpp>
#include <topocoll/plan/detail/group_actions.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/traffic.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// What units of a plan count: one each, or by the share of the rank whose shard they are in.
template <class = void>
class unit_weights {
 public:
  unit_weights(const schedule& plan, std::span<const std::uint64_t> shares) : plan_(plan) {
    if (shares.empty() || !sharded(plan.collective)) return;
    per_shard_ = plan.units / plan.ranks;
    std::uint64_t common = 0;
    for (std::uint64_t s : shares)
      while (s != 0) common = std::exchange(s, common % s);
    before_.assign(1, 0);
    for (std::uint32_t v = 0; v < plan.ranks; ++v)
      before_.push_back(before_.back() +
                        shares[plan.order.empty() ? v : plan.order[v].value] / (common == 0 ? 1 : common));
  }
  [[nodiscard]] bool even() const { return before_.empty(); }
  [[nodiscard]] std::uint64_t of(std::uint32_t lo, std::uint32_t hi) const {
    return even() ? hi - lo : until(hi) - until(lo);
  }
  /// Messages that units lo to hi-1 travel in: chunk by chunk where sizes differ.
  [[nodiscard]] std::uint32_t messages(std::uint32_t lo, std::uint32_t hi) const {
    std::uint32_t runs = 0;
    if (even())
      for (std::uint32_t u = lo; u < hi; u += run_length(plan_, u, hi)) ++runs;
    else
      for (std::uint32_t u = lo; u < hi; ++u) runs += of(u, u + 1) != 0 ? 1 : 0;
    return runs;
  }

 private:
  [[nodiscard]] std::uint64_t until(std::uint32_t u) const {
    const std::uint32_t v = u / per_shard_, rest = u % per_shard_;
    return before_[v] * per_shard_ + (rest == 0 ? 0 : rest * (before_[v + 1] - before_[v]));
  }
  const schedule& plan_;
  std::uint32_t per_shard_ = 1;
  std::vector<std::uint64_t> before_{};  ///< sum of the shares at all positions before each; empty: equal shares
};

/// Way that a message from member `from` to member `to` of a tree takes; 0 where routing decides.
template <class = void>
[[nodiscard]] std::uint32_t way_of(const stage& st, const group_view& group, std::uint32_t from, std::uint32_t to) {
  if (group.parents.empty()) return 0;
  const auto first = static_cast<std::size_t>(group.members.data() - st.members.data());
  const bool down = to != 0 && group.parents[to] == from;
  const std::vector<std::uint32_t>& ways = down ? st.ways_down : st.ways_up;
  return ways.empty() ? 0 : ways[first + (down ? to : from)];
}

/// Neighbours send the same amount in every step: one round, repeated.
template <class = void>
[[nodiscard]] std::vector<traffic_round> ring_rounds(const schedule& plan, const unit_weights<>& weights,
                                                     const stage& st, const group_view& group) {
  const std::uint32_t k = group.size(), part = group.bounds[1] - group.bounds[0];
  std::vector<traffic_round> rounds;
  if (part == 0) return rounds;
  traffic_round r;
  r.repeat = st.kind == stage_kind::all_reduce ? 2 * (k - 1) : k - 1;
  std::uint32_t messages = 1;
  for (std::uint32_t j = 0; j < k; ++j)
    messages = std::max(messages, weights.messages(group.bounds[j], group.bounds[j + 1]));
  for (std::uint32_t i = 0; i < k; ++i)
    r.moves.push_back({group.members[i], group.members[(i + 1) % k], std::uint64_t{part} * plan.slices, messages});
  rounds.push_back(std::move(r));
  return rounds;
}

/// Every unit passes every link of the chain.
template <class = void>
[[nodiscard]] std::vector<traffic_round> chain_rounds(const schedule& plan, const stage& st, const group_view& group) {
  std::vector<traffic_round> rounds;
  const std::uint32_t k = group.size(), pieces = group.last() - group.first();
  if (pieces == 0) return rounds;
  traffic_round r;
  r.repeat = pieces;
  r.fill = k - 2;
  for (std::uint32_t i = 0; i + 1 < k; ++i) {
    const rank_id near = group.members[i], far = group.members[i + 1];
    const bool outward = st.kind == stage_kind::broadcast;
    r.moves.push_back({outward ? near : far, outward ? far : near, plan.slices, 1});
  }
  rounds.push_back(std::move(r));
  return rounds;
}

/// Adds what a member says that it sends in a slice like slice `s`, of which there are `alike`.
template <class = void>
void add_moves(const schedule& plan, const unit_weights<>& weights, const stage& st, const group_view& group,
               std::uint32_t member, std::uint32_t s, std::uint32_t alike, std::vector<traffic_round>& rounds) {
  const member_actions mine = actions_of(st, group, member, s);
  rounds.resize(std::max<std::size_t>(rounds.size(), mine.rounds));
  for (std::size_t j = 0; j < mine.list.size();) {
    const action& a = mine.list[j];
    const std::uint32_t together = bundle_at(plan, mine, j).count;
    std::uint64_t amount = 0;
    std::uint32_t messages = 0;
    for (const std::size_t end = j + together; j < end; ++j) {
      if (!sends(a.what)) continue;
      amount += weights.of(mine.list[j].lo, mine.list[j].hi);
      messages += weights.messages(mine.list[j].lo, mine.list[j].hi);
    }
    if (together > 1 && weights.even()) messages = 1;
    if (amount != 0)
      rounds[a.round].moves.push_back(
          {group.members[member], group.members[a.peer], amount * alike, messages, way_of(st, group, member, a.peer)});
  }
}

/// Any algorithm: what its members say they send.
template <class = void>
[[nodiscard]] std::vector<traffic_round> walked_rounds(const schedule& plan, const unit_weights<>& weights,
                                                       const stage& st, const group_view& group) {
  std::vector<traffic_round> rounds;
  const std::uint32_t kinds = st.how == algorithm::double_tree && plan.slices > 1 ? 2 : 1;  // slices that differ
  for (std::uint32_t s = 0; s < kinds; ++s) {
    const std::uint32_t alike = kinds == 1 ? plan.slices : (plan.slices + 1 - s) / 2;
    for (std::uint32_t i = 0; i < group.size(); ++i) add_moves(plan, weights, st, group, i, s, alike, rounds);
  }
  std::erase_if(rounds, [](const traffic_round& r) { return r.moves.empty(); });
  return rounds;
}

/// Sorts by a number below `end`, equal ones as they were. Cost: O(moves + end).
template <class Number>
void sort_by_number(std::vector<transfer>& moves, std::uint32_t end, const Number& number) {
  std::vector<std::uint32_t> first(std::size_t{end} + 1, 0);
  for (const transfer& t : moves) ++first[number(t) + 1];
  for (std::size_t k = 1; k < first.size(); ++k) first[k] += first[k - 1];
  std::vector<transfer> sorted(moves.size());
  for (const transfer& t : moves) sorted[first[number(t)]++] = t;
  moves = std::move(sorted);
}

/// Sorts by sender, receiver and way. There may be millions, most of the time of pricing a plan of 100,000 ranks.
template <class = void>
void sort_moves(std::vector<transfer>& moves) {
  std::uint32_t last_rank = 0, last_way = 0;
  for (const transfer& t : moves) {
    last_rank = std::max({last_rank, t.from.value, t.to.value});
    last_way = std::max(last_way, t.way);
  }
  if (last_way != 0 || moves.size() < last_rank / 8) {
    seq::sort_by(moves,
                 [](const transfer& t) { return std::pair(std::uint64_t{t.from.value} << 32U | t.to.value, t.way); });
    return;
  }
  sort_by_number(moves, last_rank + 1, [](const transfer& t) { return t.to.value; });
  sort_by_number(moves, last_rank + 1, [](const transfer& t) { return t.from.value; });
}

/// One transfer per pair of ranks and way.
template <class = void>
void join_moves(std::vector<transfer>& moves) {
  sort_moves(moves);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (kept > 0 && moves[kept - 1].from == moves[i].from && moves[kept - 1].to == moves[i].to &&
        moves[kept - 1].way == moves[i].way) {
      moves[kept - 1].chunks += moves[i].chunks;
      moves[kept - 1].messages += moves[i].messages;
      if (moves[i].arrives != transfer::as_sent) moves[kept - 1].arrives += moves[i].arrives;
    } else {
      moves[kept++] = moves[i];
    }
  }
  moves.resize(kept);
}

/// Sorts by sender only: who goes through many transfers finds neighbours near each other in memory.
template <class = void>
void sort_by_sender(std::vector<transfer>& moves, std::uint32_t ranks) {
  bool sorted = true;
  for (std::size_t i = 1; i < moves.size(); ++i) sorted = sorted && moves[i - 1].from <= moves[i].from;
  if (sorted) return;
  if (moves.size() < ranks / 8)
    seq::sort_by(moves, &transfer::from);
  else
    sort_by_number(moves, ranks, [](const transfer& t) { return t.from.value; });
}

/// True when member i is rank i and has unit i.
template <class = void>
[[nodiscard]] bool numbered(const group_view& group) {
  for (std::uint32_t i = 0; i < group.size(); ++i)
    if (group.members[i].value != i || group.bounds[i] != i) return false;
  return true;
}

/// `bruck` and `pat` among all ranks in the order of their numbers: all do the same, each from its own place on.
template <class = void>
[[nodiscard]] std::vector<traffic_round> turned_rounds(const schedule& plan, const unit_weights<>& weights,
                                                       const stage& st, const group_view& group) {
  std::vector<traffic_round> first;
  add_moves(plan, weights, st, group, 0, 0, plan.slices, first);
  const std::uint32_t k = group.size();
  for (traffic_round& r : first) {
    join_moves(r.moves);  // one, as all goes to one peer
    const transfer sent = r.moves.front();
    for (std::uint32_t i = 1; i < k; ++i) {
      transfer same = sent;
      same.from = {i};
      same.to = {(sent.to.value + i) % k};
      r.moves.push_back(same);
    }
  }
  return first;
}

/// A switch works for the group: what leaves each member and what reaches it, its own data too, as they go through the
/// switch with all others. Each move is from one member's link to the next one's.
template <class = void>
[[nodiscard]] std::vector<traffic_round> switched_rounds(const schedule& plan, const unit_weights<>& weights,
                                                         const stage& st, const group_view& group) {
  const std::uint32_t k = group.size();
  const auto amount = [&](std::uint32_t lo, std::uint32_t hi) { return weights.of(lo, hi) * plan.slices; };
  const auto part = [&](std::uint32_t j) { return amount(group.bounds[j], group.bounds[j + 1]); };
  const std::uint64_t all = amount(group.first(), group.last());
  std::vector<traffic_round> rounds;
  if (all == 0) return rounds;
  const auto add = [&](bool sums, const auto& sent, const auto& received) {
    traffic_round r;
    r.switched = k;
    r.sums = sums;
    for (std::uint32_t i = 0; i < k; ++i) {
      transfer t;
      t.from = group.members[i];
      t.to = group.members[(i + 1) % k];
      t.chunks = sent(i);
      t.arrives = received((i + 1) % k);
      r.moves.push_back(t);
    }
    rounds.push_back(std::move(r));
  };
  const auto everything = [&](std::uint32_t) { return all; };
  const auto of_first = [&](std::uint32_t j) { return j == 0 ? all : 0; };
  switch (st.kind) {
    case stage_kind::reduce_scatter: add(true, everything, part); break;
    case stage_kind::all_gather: add(false, part, everything); break;
    case stage_kind::all_reduce:
      add(true, everything, part);
      add(false, part, everything);
      break;
    case stage_kind::reduce: add(true, everything, of_first); break;
    case stage_kind::broadcast: add(false, of_first, everything); break;
    case stage_kind::scatter:
    case stage_kind::gather:
    case stage_kind::all_to_all: break;  // there is no such stage, see `supports`
  }
  return rounds;
}

template <class = void>
[[nodiscard]] std::vector<traffic_round> group_rounds(const schedule& plan, const unit_weights<>& weights,
                                                      const stage& st, const group_view& group) {
  if (group.size() < 2) return {};
  if (st.how == algorithm::in_switch) return switched_rounds(plan, weights, st, group);
  if (st.how == algorithm::ring && weights.even()) {
    if (st.kind == stage_kind::broadcast || st.kind == stage_kind::reduce) return chain_rounds(plan, st, group);
    bool even = true;
    for (std::uint32_t j = 0; j < group.size(); ++j)
      even = even && group.bounds[j + 1] - group.bounds[j] == group.bounds[1] - group.bounds[0];
    if (even) return ring_rounds(plan, weights, st, group);
  }
  if ((st.how == algorithm::bruck || st.how == algorithm::pat) && weights.even() && plan.order.empty() &&
      plan.units == plan.ranks && group.size() == plan.ranks && numbered(group))
    return turned_rounds(plan, weights, st, group);
  return walked_rounds(plan, weights, st, group);
}

/// Rounds of one group that are not used up yet.
struct group_progress {
  const std::vector<traffic_round>* rounds;
  std::span<const rank_id> members;  ///< whom the moves' places stand for; empty: they name ranks
  std::size_t next = 0;
  std::uint32_t left = 0;  ///< repeats of the next round
};

/// Rounds of groups of a stage. Most groups are cut like another one before, and do the same with other ranks.
template <class = void>
class stage_traffic {
 public:
  stage_traffic(const schedule& plan, const unit_weights<>& weights, const stage& st)
      : plan_(plan), weights_(weights), stage_(st) {
    known_.reserve(most_shapes);  // others keep references
    own_.reserve(st.group_count());
    std::vector<bool> seen(plan.ranks, false);
    for (const rank_id r : st.members) {
      disjoint_ = disjoint_ && !seen[r.value];
      seen[r.value] = true;
    }
  }

  /// No rank is in two groups: moves of several groups have nothing to be joined.
  [[nodiscard]] bool disjoint() const { return disjoint_; }

  /// One transfer per pair and way in each round. The rounds live as long as this object.
  [[nodiscard]] group_progress of(const group_view& group) {
    const bool by_rank = stage_.how == algorithm::bruck || stage_.how == algorithm::pat || !plan_.ways.empty();
    if (by_rank || group.size() < 2) return own(group);
    const shape* like = nullptr;
    for (const shape& s : known_)
      if (alike(s.bounds, group.bounds) && same(s.parents, group.parents)) like = &s;
    if (like == nullptr) {
      if (known_.size() == most_shapes) return own(group);
      while (places_.size() < group.size()) places_.push_back({static_cast<std::uint32_t>(places_.size())});
      const group_view by_place{std::span(places_).first(group.size()), group.bounds, group.parents};
      known_.push_back({group.bounds, group.parents, rounds_of(by_place)});
      like = &known_.back();
    }
    return {&like->rounds, group.members};
  }

 private:
  using numbers = std::span<const std::uint32_t>;
  struct shape {
    numbers bounds, parents;
    std::vector<traffic_round> rounds;  ///< between places in the group
  };
  static constexpr std::size_t most_shapes = 32;

  [[nodiscard]] std::vector<traffic_round> rounds_of(const group_view& group) const {
    std::vector<traffic_round> rounds = group_rounds(plan_, weights_, stage_, group);
    for (traffic_round& r : rounds) join_moves(r.moves);
    return rounds;
  }
  [[nodiscard]] group_progress own(const group_view& group) {
    own_.push_back(rounds_of(group));
    return {&own_.back(), {}};
  }
  [[nodiscard]] static bool same(numbers a, numbers b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i]) return false;
    return true;
  }
  /// Cut into the same parts. Where shards decide in how many pieces units travel, also at the same place.
  [[nodiscard]] bool alike(numbers a, numbers b) const {
    if (sharded(plan_.collective)) return same(a, b);
    if (a.size() != b.size()) return false;
    for (std::size_t i = 1; i < a.size(); ++i)
      if (a[i] - a[0] != b[i] - b[0]) return false;
    return true;
  }

  const schedule& plan_;
  const unit_weights<>& weights_;
  const stage& stage_;
  bool disjoint_ = true;
  std::vector<rank_id> places_;
  std::vector<shape> known_;
  std::vector<std::vector<traffic_round>> own_;
};

}  // namespace detail

template <class>
std::vector<traffic_round> traffic(const schedule& compact, std::span<const std::uint64_t> shares) {
  const bool written = seq::none_of(compact.stages, [](const stage& st) { return st.axis.has_value(); });
  const schedule copy = written ? schedule{} : expanded(compact);
  const schedule& plan = written ? compact : copy;
  const detail::unit_weights<> weights(plan, shares);
  std::vector<traffic_round> all;
  for (std::uint32_t index = 0; index < plan.stages.size(); ++index) {
    const stage& st = plan.stages[index];
    std::vector<detail::group_progress> groups;
    detail::stage_traffic<> traffic_of(plan, weights, st);
    for (std::size_t g = 0; g < st.group_count(); ++g) {
      groups.push_back(traffic_of.of(st.group(g)));
      if (groups.back().rounds->empty())
        groups.pop_back();
      else
        groups.back().left = groups.back().rounds->front().repeat;
    }
    // Groups go side by side; where one repeats a round more often than another, the round is cut.
    while (true) {
      std::uint32_t repeat = 0;
      std::size_t moves = 0;
      for (const detail::group_progress& g : groups) {
        if (g.next == g.rounds->size()) continue;
        repeat = repeat == 0 ? g.left : std::min(repeat, g.left);
        moves += (*g.rounds)[g.next].moves.size();
      }
      if (repeat == 0) break;
      traffic_round r;
      r.stage = index;
      r.repeat = repeat;
      r.moves.reserve(moves);
      for (detail::group_progress& g : groups) {
        if (g.next == g.rounds->size()) continue;
        const traffic_round& theirs = (*g.rounds)[g.next];
        r.switched = std::max(r.switched, theirs.switched);
        r.sums = r.sums || theirs.sums;
        for (transfer t : theirs.moves) {
          if (!g.members.empty()) {
            t.from = g.members[t.from.value];
            t.to = g.members[t.to.value];
          }
          r.moves.push_back(t);
        }
        g.left -= repeat;
        if (g.left == 0) {
          r.fill = std::max(r.fill, theirs.fill);
          if (++g.next < g.rounds->size()) g.left = (*g.rounds)[g.next].repeat;
        }
      }
      if (traffic_of.disjoint())
        detail::sort_by_sender(r.moves, plan.ranks);
      else
        detail::join_moves(r.moves);
      all.push_back(std::move(r));
    }
  }
  return all;
}

template <class>
std::uint64_t traffic_unit(const schedule& plan, std::span<const std::uint64_t> shares) {
  if (shares.empty() || !sharded(plan.collective)) return plan.chunks();
  std::uint64_t common = 0, sum = 0;
  for (std::uint64_t s : shares)
    while (s != 0) common = std::exchange(s, common % s);
  const std::uint64_t chunks = plan.chunks() / plan.ranks;  // per shard
  for (const std::uint64_t s : shares) {
    const std::uint64_t part = common == 0 ? 0 : s / common;
    if (part > (INT64_MAX / chunks) - sum) return 0;
    sum += part;
  }
  return sum * chunks;
}

}}}  // namespace topocoll::v0::plan
