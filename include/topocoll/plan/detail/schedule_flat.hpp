// SPDX-License-Identifier: Apache-2.0
#pragma once
// Grid, checks, digest and the one-stage plans of schedule.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

template <class>
std::uint32_t chunk_of(const schedule& plan, std::uint32_t s, std::uint32_t u) {
  if (!sharded(plan.collective)) return s * plan.units + u;
  const std::uint32_t per_shard = plan.units / plan.ranks;
  const std::uint32_t shard = plan.order.empty() ? u / per_shard : plan.order[u / per_shard].value;
  return (shard * plan.slices + s) * per_shard + u % per_shard;
}

template <class>
std::uint32_t run_length(const schedule& plan, std::uint32_t u, std::uint32_t end) {
  if (!sharded(plan.collective)) return end - u;
  const std::uint32_t per_shard = plan.units / plan.ranks;
  // A short chunk ends every shard that has several chunks, so a run must not cross into the next shard.
  if (per_shard * plan.slices > 1) return std::min(end, (u / per_shard + 1) * per_shard) - u;
  if (plan.order.empty()) return end - u;
  std::uint32_t n = 1;
  while (u + n < end && plan.order[u + n].value == plan.order[u].value + n) ++n;
  return n;
}

namespace detail {

template <class = void>
[[nodiscard]] std::string stage_name(const schedule& plan, std::size_t index) {
  const stage& st = plan.stages[index];
  return "stage " + std::to_string(index) + " (" + (st.label.empty() ? std::string(to_string(st.kind)) : st.label) +
         ")";
}

/// What keeps a stage from running along its axis, or null.
template <class = void>
[[nodiscard]] const char* axis_stage_fault(const schedule& plan, const stage& st) {
  if (*st.axis >= plan.shape.size()) return "it runs along an axis that the shape of the plan does not have";
  if (!st.members.empty() || !st.offsets.empty() || !st.bounds.empty() || !st.parents.empty())
    return "it runs along an axis, but has groups of its own";
  if (st.how == algorithm::packed) return "trees do not run along an axis";
  if (st.how == algorithm::in_switch) return "the groups of a switch do not run along an axis";
  if (st.kind != stage_kind::reduce_scatter && st.kind != stage_kind::all_gather && st.kind != stage_kind::all_reduce)
    return "only reduce_scatter, all_gather and all_reduce run along an axis";
  return nullptr;
}

/// True when the lists that trees need are there for every member or not at all. Before this holds, groups have no views.
template <class = void>
[[nodiscard]] bool tree_lists_fit(const stage& st) {
  const auto fits = [&](const std::vector<std::uint32_t>& list) {
    return list.empty() || (st.how == algorithm::packed && list.size() == st.members.size());
  };
  return fits(st.parents) && fits(st.ways_down) && fits(st.ways_up);
}

/// What keeps group `g` of a stage by trees from being one, or null. Stages by other algorithms have no trees.
/// Precondition: the lists of the stage fit its members.
template <class = void>
[[nodiscard]] const char* tree_fault(const schedule& plan, const stage& st, std::size_t g) {
  if (st.how != algorithm::packed) return nullptr;
  const group_view group = st.group(g);
  if (group.parents.size() != group.members.size()) return " has no tree";
  if (group.parents[0] != 0) return " has a tree whose first member is not the root";
  for (std::uint32_t j = 1; j < group.size(); ++j) {
    if (group.parents[j] >= j) return " has a tree in which a member stands before its parent";
    if (group.bounds[j] != group.last()) return " has a tree whose units are not all of the root";
  }
  for (std::size_t j = st.offsets[g]; j < st.offsets[g + 1]; ++j)
    if ((!st.ways_down.empty() && st.ways_down[j] > plan.ways.size()) ||
        (!st.ways_up.empty() && st.ways_up[j] > plan.ways.size()))
      return " takes a way that the plan does not have";
  return nullptr;
}

template <class = void>
[[nodiscard]] result<void> validate_stage(const schedule& plan, std::size_t index) {
  const stage& st = plan.stages[index];
  const auto bad = [&](std::string what) {
    return fail(errc::invalid_argument, stage_name(plan, index) + ": " + std::move(what));
  };
  if (!supports(st.kind, st.how))
    return bad("there is no " + std::string(to_string(st.kind)) + " by " + std::string(to_string(st.how)));
  if (st.axis) {
    if (const char* wrong = axis_stage_fault(plan, st)) return bad(wrong);
    return {};
  }
  if (st.offsets.empty() || st.offsets.front() != 0 || st.offsets.back() != st.members.size() ||
      st.bounds.size() != st.members.size() + st.group_count() || !std::is_sorted(st.offsets.begin(), st.offsets.end()))
    return bad("the offsets, members and bounds of its groups do not fit together");
  if (!tree_lists_fit(st)) return bad("its list of parents or ways does not fit its members");

  struct claim {
    std::uint32_t rank, first, last;
    auto operator<=>(const claim&) const = default;
  };
  std::vector<claim> claims;
  claims.reserve(st.members.size());
  for (std::size_t g = 0; g < st.group_count(); ++g) {
    const group_view group = st.group(g);
    if (group.members.empty()) return bad("group " + std::to_string(g) + " has no members");
    if (const char* wrong = tree_fault(plan, st, g)) return bad("group " + std::to_string(g) + wrong);
    if (!std::is_sorted(group.bounds.begin(), group.bounds.end()) || group.last() > plan.units)
      return bad("the bounds of group " + std::to_string(g) + " leave the " + std::to_string(plan.units) +
                 " units of a slice");
    if (st.how == algorithm::bruck)  // parts take each other's places
      for (std::uint32_t j = 0; j < group.size(); ++j)
        if (group.bounds[j + 1] - group.bounds[j] != group.bounds[1] - group.bounds[0])
          return bad("parts 0 and " + std::to_string(j) + " of group " + std::to_string(g) +
                     " differ in length, which they must not by bruck");
    for (const rank_id r : group.members) {
      if (r.value >= plan.ranks)
        return bad("rank " + std::to_string(r.value) + " in group " + std::to_string(g) + " is not one of the " +
                   std::to_string(plan.ranks) + " ranks");
      claims.push_back({r.value, group.first(), group.last()});
    }
  }
  seq::sort(claims);
  for (std::size_t i = 1; i < claims.size(); ++i)
    if (claims[i].rank == claims[i - 1].rank && (claims[i].first < claims[i - 1].last || claims[i] == claims[i - 1]))
      return bad("rank " + std::to_string(claims[i].rank) + " is twice at work on unit " +
                 std::to_string(claims[i].first));
  return {};
}

/// FNV-1a, 64 bits: offset basis and prime as published by Fowler, Noll and Vo.
class fnv1a {
 public:
  void add(std::uint32_t value) {
    for (int byte = 0; byte < 4; ++byte) {
      state_ = (state_ ^ (value & 0xffU)) * 0x100000001b3U;
      value >>= 8U;
    }
  }
  void add(std::span<const std::uint32_t> list) {
    add(static_cast<std::uint32_t>(list.size()));
    for (const std::uint32_t v : list) add(v);
  }
  void add(std::span<const rank_id> list) {
    add(static_cast<std::uint32_t>(list.size()));
    for (const rank_id r : list) add(r.value);
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

[[nodiscard]] constexpr stage_kind stage_of(collective_kind k) {
  switch (k) {
    case collective_kind::all_reduce: return stage_kind::all_reduce;
    case collective_kind::all_gather: return stage_kind::all_gather;
    case collective_kind::reduce_scatter: return stage_kind::reduce_scatter;
    case collective_kind::broadcast: return stage_kind::broadcast;
    case collective_kind::reduce: return stage_kind::reduce;
    case collective_kind::all_to_all: return stage_kind::all_to_all;
    case collective_kind::gather: return stage_kind::gather;
    case collective_kind::scatter: return stage_kind::scatter;
  }
  return stage_kind::all_reduce;
}

/// True when the algorithm cuts the group's units into one part per member.
[[nodiscard]] constexpr bool cuts_into_parts(algorithm how) {
  return how == algorithm::ring || how == algorithm::recursive || how == algorithm::direct || how == algorithm::pat ||
         how == algorithm::in_switch;
}

}  // namespace detail

template <class>
result<void> validate(const schedule& plan) {
  const auto bad = [&](std::string what) {
    return fail(errc::invalid_argument, "schedule '" + plan.name + "': " + std::move(what));
  };
  if (plan.ranks == 0) return bad("it has no ranks");
  if (plan.root.value >= plan.ranks)
    return bad("its root " + std::to_string(plan.root.value) + " is not one of its " + std::to_string(plan.ranks) +
               " ranks");
  if (plan.slices == 0 || plan.slices > max_slices)
    return bad("it has " + std::to_string(plan.slices) + " slices, 1 to " + std::to_string(max_slices) +
               " are possible");
  if (plan.units == 0) return bad("it cuts a slice into no units");
  if (static_cast<std::uint64_t>(plan.units) * plan.slices > 0x7fffffffU)
    return bad("it has more chunks than a 31-bit number can count");
  if (sharded(plan.collective) && plan.units % plan.ranks != 0)
    return bad(std::to_string(plan.units) + " units cannot be shared by " + std::to_string(plan.ranks) + " shards");
  if (!plan.shape.empty()) {
    std::uint64_t positions = 1;
    for (const std::uint32_t s : plan.shape) positions = s == 0 || positions > plan.ranks ? 0 : positions * s;
    if (positions != plan.ranks) return bad("its shape does not hold its " + std::to_string(plan.ranks) + " ranks");
    if (plan.units % plan.ranks != 0)
      return bad(std::to_string(plan.units) + " units cannot be shared by the " + std::to_string(plan.ranks) +
                 " ranks of its shape");
  }
  if (!plan.order.empty()) {
    if (!sharded(plan.collective) && plan.shape.empty())
      return bad("it orders shards, but " + std::string(to_string(plan.collective)) + " has none");
    std::vector<rank_id> sorted = plan.order;
    seq::sort(sorted);
    bool all = sorted.size() == plan.ranks;
    for (std::uint32_t r = 0; all && r < plan.ranks; ++r) all = sorted[r].value == r;
    if (!all) return bad("its order does not name every rank once");
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    if (auto fits = detail::validate_stage(plan, i); !fits) return bad(fits.error().what);
  return {};
}

template <class>
std::uint64_t digest(const schedule& plan) {
  detail::fnv1a hash;
  hash.add(static_cast<std::uint32_t>(plan.collective));
  hash.add(plan.ranks);
  hash.add(plan.root.value);
  hash.add(plan.units);
  hash.add(plan.slices);
  hash.add(plan.order);
  if (!plan.shape.empty()) hash.add(plan.shape);
  hash.add(static_cast<std::uint32_t>(plan.stages.size()));
  for (const stage& st : plan.stages) {
    hash.add(static_cast<std::uint32_t>(st.kind));
    hash.add(static_cast<std::uint32_t>(st.how));
    hash.add(st.members);
    hash.add(st.offsets);
    hash.add(st.bounds);
    if (!st.parents.empty()) hash.add(st.parents);
    if (st.axis) hash.add(*st.axis);
  }
  return hash.value();
}

template <class>
result<schedule> flat_schedule(collective_kind collective, std::span<const rank_id> members, rank_id root,
                               algorithm how, flat_options options) {
  const auto n = static_cast<std::uint32_t>(members.size());
  const std::string wanted = std::string(to_string(collective)) + " by " + std::string(to_string(how));
  if (n == 0) return fail(errc::invalid_argument, wanted + " needs at least one rank");
  if (rooted(collective) && root.value >= n)
    return fail(errc::invalid_argument, wanted + ": the root " + std::to_string(root.value) + " is not one of the " +
                                            std::to_string(n) + " ranks");
  const stage_kind kind = detail::stage_of(collective);
  if (!supports(kind, how))
    return fail(errc::unsupported, "there is no " + wanted,
                "ring and direct exist for nearly every collective; gather and scatter have recursive and direct, "
                "all_to_all has direct and bruck");

  schedule plan;
  plan.collective = collective;
  plan.ranks = n;
  plan.root = rooted(collective) ? root : rank_id{0};
  plan.name = to_string(how);
  plan.slices = options.slices == 0 ? 1 : options.slices;
  std::vector<rank_id> order(members.begin(), members.end());
  if (rooted(collective)) {
    const auto at = seq::find(order, root);
    if (at == order.end())
      return fail(errc::invalid_argument, wanted + ": the order of the ranks does not name the root");
    std::rotate(order.begin(), at, order.end());
  }
  if (rooted(collective) && !sharded(collective)) {
    const std::uint32_t pieces = options.pieces != 0 ? options.pieces : std::clamp(n, 8U, 64U);
    plan.units = how == algorithm::ring ? pieces : how == algorithm::recursive ? n : 1;
  } else if (sharded(collective) || detail::cuts_into_parts(how)) {
    plan.units = n;
  }
  bool numbered = true;
  for (std::uint32_t i = 0; i < n; ++i) numbered = numbered && order[i].value == i;
  if (sharded(collective) && !numbered) plan.order = order;

  std::vector<std::uint32_t> bounds(n + 1);
  for (std::uint32_t j = 0; j <= n; ++j)
    bounds[j] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(plan.units) * j / n);
  if (n > 1) {
    stage all;
    all.kind = kind;
    all.how = how;
    all.label = std::string(to_string(kind)) + " by " + std::string(to_string(how)) + " among all ranks";
    all.add(order, bounds);
    plan.stages.push_back(std::move(all));
  }
  if (auto fits = validate(plan); !fits) return fits.error();
  return plan;
}

template <class>
result<schedule> flat_schedule(collective_kind collective, std::uint32_t ranks, rank_id root, algorithm how,
                               flat_options options) {
  std::vector<rank_id> members(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) members[r] = {r};
  return flat_schedule(collective, std::span<const rank_id>(members), root, how, options);
}

}}}  // namespace topocoll::v0::plan
