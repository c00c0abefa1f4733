// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan in compact form: stages, each an algorithm that runs in disjoint groups of ranks.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What a stage does to the units of each of its groups. "Part j" is what member j owns: units bounds[j] to bounds[j+1]-1.
enum class stage_kind : std::uint8_t {
  reduce_scatter,  ///< every member has all units; then member j has the sum of part j
  all_gather,      ///< member j has part j; then every member has all units
  all_reduce,      ///< every member has all units; then every member has the sums
  broadcast,       ///< member 0 has all units; then every member has
  reduce,          ///< every member has all units; then member 0 has the sums
  scatter,         ///< member 0 has all units; then member j has part j
  gather,          ///< member j has part j; then member 0 has all units
  all_to_all       ///< member j has one part for each member; then it has one part from each
};

/// How a group does it. k members, m bytes in all units of the group.
enum class algorithm : std::uint8_t {
  ring,  ///< neighbours only: k-1 steps of m/k per phase; broadcast and reduce are pipelined chains of single units
  recursive,    ///< halving and doubling: ceil(log2 k) steps per phase, m(k-1)/k in all; any k
  doubling,     ///< all_reduce of whole vectors in floor(log2 k) steps, two more when k is not a power of two
  tree,         ///< binomial tree, whole vectors: ceil(log2 k) steps per phase
  double_tree,  ///< two complementary binary trees; slices take them in turn, so bandwidth needs two or more slices
  direct,       ///< every pair at once: one step per phase, m(k-1)/k per member
  one_shot,     ///< all_reduce in one step: every member sends its whole vector to every other
  packed,       ///< along the tree that `stage::parents` draws: as many rounds as it is deep, twice that for all_reduce
  /// all_to_all in ceil(log2 k) steps of one message, any k; parts travel up to log2 k times, about m/2 log2 k in all.
  /// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
  /// message-passing systems", IEEE TPDS 8 (1997). Their all-gather is `recursive`: as many steps and bytes, any k.
  bruck,
  /// all_gather and reduce_scatter in ceil(log2 k) steps of one message, any k, m(k-1)/k in all, as `recursive`; but the
  /// farther a step reaches along the group, the less it carries: one part over the longest distance, k/2 to the neighbour.
  /// See `pat` in plan/synth/pat.hpp for when that is better.
  pat,
  /// The switch that all members hang on adds up what they send and multiplies what they hand out (NVLS, SHARP): a member
  /// sends m and receives its part in a reduction, and the other way round in a distribution. Operations are those of
  /// `direct`, which do the same where wires cannot; prices and flows count on the switch.
  in_switch
};
inline constexpr std::size_t algorithm_count = 11;

[[nodiscard]] constexpr std::string_view to_string(stage_kind k) {
  constexpr std::string_view words[] = {"reduce_scatter", "all_gather", "all_reduce", "broadcast",
                                        "reduce",         "scatter",    "gather",     "all_to_all"};
  return words[static_cast<std::size_t>(k)];
}
[[nodiscard]] constexpr std::string_view to_string(algorithm a) {
  constexpr std::string_view words[] = {"ring",     "recursive", "doubling", "tree", "double_tree", "direct",
                                        "one_shot", "packed",    "bruck",    "pat",  "in_switch"};
  return words[static_cast<std::size_t>(a)];
}
[[nodiscard]] constexpr std::optional<stage_kind> parse_stage_kind(std::string_view word) {
  for (int k = 0; k <= static_cast<int>(stage_kind::all_to_all); ++k)
    if (to_string(static_cast<stage_kind>(k)) == word) return static_cast<stage_kind>(k);
  return std::nullopt;
}
[[nodiscard]] constexpr std::optional<algorithm> parse_algorithm(std::string_view word) {
  for (std::size_t a = 0; a < algorithm_count; ++a)
    if (to_string(static_cast<algorithm>(a)) == word) return static_cast<algorithm>(a);
  return std::nullopt;
}

/// True when a stage of this kind can run by this algorithm.
[[nodiscard]] constexpr bool supports(stage_kind kind, algorithm how) {
  switch (kind) {
    case stage_kind::reduce_scatter:
    case stage_kind::all_gather:
      return how == algorithm::ring || how == algorithm::recursive || how == algorithm::direct ||
             how == algorithm::pat || how == algorithm::in_switch;
    case stage_kind::all_reduce: return how <= algorithm::packed || how == algorithm::in_switch;
    case stage_kind::broadcast:
    case stage_kind::reduce:
      return (how <= algorithm::packed && how != algorithm::doubling && how != algorithm::one_shot) ||
             how == algorithm::in_switch;
    case stage_kind::scatter:
    case stage_kind::gather: return how == algorithm::recursive || how == algorithm::direct;
    case stage_kind::all_to_all: return how == algorithm::direct || how == algorithm::bruck;
  }
  return false;
}

/// One group of a stage: k members in order, and k+1 unit numbers that do not fall.
struct group_view {
  std::span<const rank_id> members;
  std::span<const std::uint32_t> bounds;
  std::span<const std::uint32_t> parents{};  ///< `packed` only: position of each member's parent

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }
  [[nodiscard]] std::uint32_t first() const { return bounds.front(); }
  [[nodiscard]] std::uint32_t last() const { return bounds.back(); }  ///< one past the end
};

/// One algorithm at work in many groups at once. A rank may be in several groups of a stage if their units are disjoint.
struct stage {
  stage_kind kind = stage_kind::all_reduce;
  algorithm how = algorithm::ring;
  std::string label;                   ///< for people: "reduce-scatter in the box"; not part of the digest
  std::vector<rank_id> members;        ///< of all groups, one after the other
  std::vector<std::uint32_t> offsets;  ///< group g is members[offsets[g]] to members[offsets[g+1]-1]; starts with 0
  std::vector<std::uint32_t>
      bounds;  ///< of all groups: those of g start at offsets[g]+g and are one more than its members
  /// `packed` only, one for each of `members`: position of its parent in its group, which stands before it; 0 for the first,
  /// the root. All units of such a group are the part of the root.
  std::vector<std::uint32_t> parents;
  /// `packed` only, one for each of `members` or none: which of `schedule::ways` leads from its parent, and which to it.
  /// 0 is the way that routing takes, k is ways[k-1]. Not part of the digest.
  std::vector<std::uint32_t> ways_down, ways_up;
  /// Stands for groups that are not written down: all ranks whose coordinates differ only along this axis of
  /// `schedule::shape`. Then the lists above are empty; see `expanded`.
  std::optional<std::uint32_t> axis;

  [[nodiscard]] std::size_t group_count() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  /// Precondition: g < group_count().
  [[nodiscard]] group_view group(std::size_t g) const {
    const std::size_t first = offsets[g], k = offsets[g + 1] - first;
    return {std::span(members).subspan(first, k), std::span(bounds).subspan(first + g, k + 1),
            parents.empty() ? std::span<const std::uint32_t>{} : std::span(parents).subspan(first, k)};
  }
  /// Appends a group; `parts` has one entry more than `ranks`.
  void add(std::span<const rank_id> ranks, std::span<const std::uint32_t> parts) {
    if (offsets.empty()) offsets.push_back(0);
    members.insert(members.end(), ranks.begin(), ranks.end());
    bounds.insert(bounds.end(), parts.begin(), parts.end());
    offsets.push_back(static_cast<std::uint32_t>(members.size()));
  }
  /// Appends a tree that carries units `lo` to `hi - 1`: its members, parents before children, and where their parents are.
  void add_tree(std::span<const rank_id> ranks, std::span<const std::uint32_t> parent_at, std::uint32_t lo,
                std::uint32_t hi) {
    if (offsets.empty()) offsets.push_back(0);
    members.insert(members.end(), ranks.begin(), ranks.end());
    parents.insert(parents.end(), parent_at.begin(), parent_at.end());
    bounds.push_back(lo);
    bounds.insert(bounds.end(), ranks.size(), hi);
    offsets.push_back(static_cast<std::uint32_t>(members.size()));
  }

  friend bool operator==(const stage&, const stage&) = default;
};

/// A way through the graph that the plan was made for: links in order, from one rank's node to another's.
struct way {
  std::vector<link_id> links;

  friend bool operator==(const way&, const way&) = default;
};

/// A plan for every rank and every size of data; `lower` gives the operations of one rank. A stage takes O(ranks) memory,
/// or O(1) when it runs along an axis of `shape`.
///
/// The array is cut into `slices` that flow through the stages independently, each on its own channel, so that stages
/// overlap. Every slice is cut into `units`; the bounds of all groups are in units and the same for all slices.
/// Which part of the array is unit u of slice s: see `chunk_of`.
struct schedule {
  collective_kind collective = collective_kind::all_reduce;
  std::uint32_t ranks = 1;
  rank_id root{};           ///< for the rooted collectives
  std::string name;         ///< planner and variant, for people; not part of the digest
  std::uint32_t units = 1;  ///< per slice; a multiple of `ranks` for the sharded collectives
  /// 1 to max_slices. They follow one another through the stages like work in a pipeline; slice s runs on channel
  /// s % max_channels.
  std::uint32_t slices = 1;
  /// For the sharded collectives: units v*q to v*q+q-1 belong to the shard of rank order[v], q = units / ranks.
  /// Empty means order[v] = v. Lets groups that follow the hardware work on consecutive units.
  /// With a `shape` also for all_reduce: rank order[v] stands at position v.
  std::vector<rank_id> order;
  /// Ranks on a lattice, for stages with an axis: position v has coordinates (v / (s1 s2 …), …, v mod s_last) in mixed radix,
  /// the first axis being the most significant. Empty when no stage has an axis.
  std::vector<std::uint32_t> shape;
  std::vector<stage> stages;
  std::vector<way> ways;  ///< that stages refer to; for prices and pictures, not part of the digest

  /// Chunks of the whole array, as in `program::chunks`.
  [[nodiscard]] std::uint32_t chunks() const { return units * slices; }

  friend bool operator==(const schedule&, const schedule&) = default;
};

/// Of n slices all but 1/n of the shorter stages is hidden; beyond these the price of more messages is what counts.
inline constexpr std::uint32_t max_slices = 64;
/// Numbers of slices that are tried beside one.
inline constexpr std::uint32_t slice_counts[] = {2, 4, 8, 16, 32, max_slices};
/// Transports offer a few channels.
inline constexpr std::uint32_t max_channels = 8;

/// Slices that go through a stage at the same time: each step waits for the same step of so many slices before. If all
/// went at once they would share the links of a stage and end together, and no stage would overlap the next; if one did,
/// every latency would be waited for. Trees from or to one root are as fast as its links: two slices at once would only slow
/// each other down, and what lies deep in the tree most.
template <class = void>
[[nodiscard]] std::uint32_t slices_at_once(const stage& st) {
  if (st.how != algorithm::packed) return 2;
  for (std::size_t g = 1; g < st.group_count(); ++g)
    if (st.group(g).members[0] != st.group(0).members[0]) return 2;
  return 1;
}
/// Slices that take different ways and belong together: two where double trees are, whose slices take them in turn.
template <class = void>
[[nodiscard]] std::uint32_t slice_kinds(const schedule& plan) {
  for (const stage& st : plan.stages)
    if (st.how == algorithm::double_tree) return 2;
  return 1;
}

/// Chunk of the whole array that is unit `u` of slice `s`.
///
/// Slices of a whole buffer follow each other; shards are cut into slices one by one, because every shard has its own
/// place. Preconditions: u < units, s < slices, the schedule passes `validate`.
template <class = void>
[[nodiscard]] std::uint32_t chunk_of(const schedule& plan, std::uint32_t s, std::uint32_t u);

/// Units after `u`, up to `end`, whose chunks follow each other in the array, `u` included: they travel as one message.
template <class = void>
[[nodiscard]] std::uint32_t run_length(const schedule& plan, std::uint32_t u, std::uint32_t end);

/// Whether a schedule makes sense on its face: members are ranks, groups of a stage do not share a rank's units, bounds
/// lie on the grid, every algorithm exists for its kind. That it computes the collective is for `verify` to say.
/// @return `invalid_argument` naming the stage and the group. Cost: O(size of the schedule, sorted).
template <class = void>
[[nodiscard]] result<void> validate(const schedule& plan);

/// Hash of everything that decides what the ranks do; names, labels and ways are left out. Equal on all machines: FNV-1a
/// with 64 bits over the fields in order of declaration, every number as 32 bits, least significant byte first, every list
/// preceded by its length; shape, parents and axis only where there are any. Ranks compare it before data moves.
template <class = void>
[[nodiscard]] std::uint64_t digest(const schedule& plan);

/// The same plan with every group written down. Cost: O(ranks) per stage.
/// Precondition: the schedule passes `validate`.
template <class = void>
[[nodiscard]] schedule expanded(const schedule& plan);

/// What concerns one rank: the same plan, but stages along an axis have just the group of `rank`. It lowers to the same
/// program for that rank. Cost: O(ranks of its groups), and O(ranks) where `order` has to be searched.
/// Precondition: the schedule passes `validate` and has the rank.
template <class = void>
[[nodiscard]] schedule part_of(const schedule& plan, rank_id rank);

/// How `flat_schedule` cuts the data; 0 lets it choose.
struct flat_options {
  std::uint32_t slices = 1;  ///< 1 to max_slices
  /// Units in which the chains of broadcast and reduce by ring pass the data on, per slice; 0 takes as many as ranks,
  /// but not fewer than 8 nor more than 64.
  std::uint32_t pieces = 0;
};

/// One stage over all ranks in the order of their numbers (rooted collectives start at the root): needs no graph.
/// @return `invalid_argument` for no ranks, a root that is no rank, or too many slices; `unsupported` when the
///         collective has no such algorithm (see `supports`)
template <class = void>
[[nodiscard]] result<schedule> flat_schedule(collective_kind collective, std::uint32_t ranks, rank_id root,
                                             algorithm how, flat_options options = {});

/// As above, with the ranks in the order `members`, a permutation of 0 to members.size()-1; a root may stand anywhere,
/// the order is turned to start with it.
template <class = void>
[[nodiscard]] result<schedule> flat_schedule(collective_kind collective, std::span<const rank_id> members, rank_id root,
                                             algorithm how, flat_options options = {});

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/schedule_flat.hpp>
#include <topocoll/plan/detail/schedule_shape.hpp>
