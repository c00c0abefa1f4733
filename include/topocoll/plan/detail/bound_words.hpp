// SPDX-License-Identifier: Apache-2.0
#pragma once
// The certificate of a bound, and how it is told.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/bound_method.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A cut or a family with the ratio that it proves: bandwidth_time = size * amount / (per * units * unit).
struct certificate {
  bound_method method = bound_method::nothing;
  std::vector<std::uint32_t> side{};     ///< nodes of the network: one side of a cut, or the first part
  std::vector<std::uint32_t> part_of{};  ///< of a family: see `partition`
  std::vector<std::pair<std::uint32_t, std::uint32_t>> also{};
  std::uint32_t parts = 0;
  std::int64_t amount = 0, per = 1, units = 1;
  bool inward = false;  ///< what is counted flows into the side

  /// Precondition: both count per the same.
  [[nodiscard]] bool tighter_than(const certificate& o) const {
    return o.parts == 0 ? parts > 0 : int128{amount} * o.units > int128{o.amount} * units;
  }
};

/// What must cross the side of a cut, as the start of a sentence: "112 of 128 shards must reach ".
template <class = void>
[[nodiscard]] std::string demand_in_words(collective_kind kind, const certificate& c, bool even) {
  const std::string way = c.inward ? " must reach " : " must leave ";
  if (kind == collective_kind::all_to_all)
    return c.inward ? "what others send must reach " : "what goes to others must leave ";
  if (kind == collective_kind::all_reduce || kind == collective_kind::broadcast || kind == collective_kind::reduce)
    return "everything" + way;
  const bool sums = kind == collective_kind::reduce_scatter;
  if (even)
    return (sums ? "sums for " : "") + std::to_string(c.amount) + " of " + std::to_string(c.per) + " shards" + way;
  const double percent = 100.0 * static_cast<double>(c.amount) / static_cast<double>(c.per);
  std::string text = std::to_string(static_cast<int>(percent * 10 + 0.5));
  if (text.size() == 1) text.insert(0, "0");
  text.insert(text.size() - 1, ".");
  return text + (sums ? " % of all sums" : " % of all shards") + way;
}

template <class = void>
[[nodiscard]] std::string tell(const problem& q, const rank_network& r, const certificate& c, bytes_per_second crossing,
                               bool even) {
  const topo::graph& g = *q.graph;
  if (c.method == bound_method::shared_memory)
    return plural(q.ranks.size(), "rank") + " on " + name_of(g, q.ranks[0]) + " take over " + std::to_string(c.amount) +
           (c.per == 1 ? std::string(" times the array") : " parts of " + std::to_string(c.per)) +
           " from each other, through memory at " + to_string(crossing);
  std::vector<bool> inside(r.net.nodes, false);
  for (const std::uint32_t v : c.side) inside[v] = true;
  std::vector<std::uint32_t> members;
  for (std::uint32_t k = 0; k < q.ranks.size(); ++k)
    if (inside[r.node_of[k]]) members.push_back(k);
  const std::string side = ranks_in_words(g, q.ranks, members);
  if (c.parts > 1)
    return "each byte crosses " + std::to_string(2 * (c.parts - 1)) + " times between " + std::to_string(c.parts) +
           " sets (" + side + ", and so on); " + to_string(crossing) + (c.inward ? " lead into" : " leave") +
           " them together";
  std::size_t links = 0;
  const char* kind = nullptr;
  for (const topo::link& l : g.links())
    if (l.capacity.value > 0 && inside[l.from.value] != inside[l.to.value] && inside[l.to.value] == c.inward) {
      ++links;
      kind = kind == nullptr || kind == topo::to_string(l.kind) ? topo::to_string(l.kind) : "";
    }
  const std::string through =
      links == 0 ? std::string(" through memory at ")
                 : " through " + (kind[0] == 0 ? "" : std::string(kind) + ' ').insert(0, std::to_string(links) + ' ') +
                       (links == 1 ? "link of " : "links of ");
  return demand_in_words(q.collective, c, even) + side + through + to_string(crossing) + (links > 1 ? " together" : "");
}

}}}}  // namespace topocoll::v0::plan::detail
