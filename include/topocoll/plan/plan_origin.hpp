// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a plan in a file was made for: seats of its ranks and ends of its links, which outlive the numbers of a graph. Needs nlohmann-json.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Where a plan comes from. Nodes are told by their keys, which are the same in every graph of a machine.
struct plan_origin {
  /// A link that ways of the plan take.
  struct wire {
    std::uint32_t link = 0;     ///< its number in the plan
    std::string from, to;       ///< keys of its ends
    std::uint32_t ordinal = 0;  ///< among the links between these ends, in the order of the graph
  };
  std::string machine;             ///< source of the graph
  bytes size{};                    ///< that the plan was chosen for
  seconds time{};                  ///< that it was predicted to take
  std::vector<std::string> seats;  ///< by rank
  std::vector<wire> wires;         ///< by number
};

namespace detail {

/// Which of the links between its ends a link is, counted from 0.
template <class = void>
[[nodiscard]] std::uint32_t ordinal_of(const topo::graph& g, link_id link) {
  std::uint32_t before = 0;
  for (const link_id e : g.out_links(g.tail(link)))
    if (g.head(e) == g.head(link) && e < link) ++before;
  return before;
}

/// The link with these ends in a graph.
template <class = void>
[[nodiscard]] std::optional<link_id> link_between(const topo::graph& g, const plan_origin::wire& w) {
  const auto from = g.find(w.from), to = g.find(w.to);
  if (!from || !to) return std::nullopt;
  std::vector<link_id> between;
  for (const link_id e : g.out_links(*from))
    if (g.head(e) == *to) between.push_back(e);
  seq::sort(between);
  return w.ordinal < between.size() ? std::optional<link_id>{between[w.ordinal]} : std::nullopt;
}

}  // namespace detail

/// Origin of a plan that was made for a problem. Precondition: ways of the plan are of the problem's graph.
/// Cost: O(ranks + links of ways, sorted).
template <class = void>
[[nodiscard]] plan_origin origin_of(const problem& p, const schedule& plan, seconds time) {
  const topo::graph& g = *p.graph;
  plan_origin o;
  o.machine = g.source();
  o.size = p.size;
  o.time = time;
  for (const node_id seat : p.ranks) o.seats.push_back(g.at(seat).key);
  std::vector<link_id> used;
  for (const way& w : plan.ways) used.insert(used.end(), w.links.begin(), w.links.end());
  seq::sort_unique(used);
  for (const link_id e : used)
    o.wires.push_back({e.value, g.at(g.tail(e)).key, g.at(g.head(e)).key, detail::ordinal_of(g, e)});
  return o;
}

/// A plan as JSON text with its origin in the member `origin`; otherwise as `to_json(plan)`. `schedule_from_json` reads it.
template <class = void>
[[nodiscard]] std::string to_json(const schedule& plan, const plan_origin& o) {
  io::json member{{"machine", o.machine}, {"size", o.size.value}, {"time", o.time.value}, {"seats", o.seats}};
  if (!o.wires.empty()) {
    io::json& links = member["links"] = io::json::array();
    for (const plan_origin::wire& w : o.wires)
      links.push_back({{"link", w.link}, {"from", w.from}, {"to", w.to}, {"ordinal", w.ordinal}});
  }
  std::string text = to_json(plan);
  text.erase(text.rfind("\n}"));
  return text + ",\n  \"origin\": " + member.dump(-1, ' ', false, io::json::error_handler_t::replace) + "\n}\n";
}

/// The origin that a plan's JSON tells of; empty when it tells of none.
/// @return `malformed_input` with the JSON pointer for what is missing or of a wrong type
template <class = void>
[[nodiscard]] result<std::optional<plan_origin>> origin_of(const io::json& document, std::string_view where) {
  const io::json* const member = io::find_field(document, "origin");
  if (member == nullptr) return std::optional<plan_origin>{};
  const io::json_place top(where), at = top / "origin";
  plan_origin o;
  const auto machine = io::read_optional<std::string>(*member, "machine", at);
  if (!machine) return machine.error();
  o.machine = machine->value_or("");
  const auto size = io::read_field<std::uint64_t>(*member, "size", at);
  if (!size) return size.error();
  o.size = {*size};
  const auto time = io::read_field<double>(*member, "time", at);
  if (!time) return time.error();
  o.time = {*time};
  const auto seats = io::read_array(*member, "seats", at);
  if (!seats) return seats.error();
  const io::json_place seats_at = at / "seats";
  for (const io::json& value : **seats) {
    auto seat = io::read_value<std::string>(value, seats_at / o.seats.size());
    if (!seat) return std::move(seat).error();
    o.seats.push_back(std::move(*seat));
  }
  if (io::find_field(*member, "links") == nullptr) return std::optional<plan_origin>{std::move(o)};
  const auto links = io::read_array(*member, "links", at);
  if (!links) return links.error();
  const io::json_place links_at = at / "links";
  for (const io::json& value : **links) {
    const io::json_place here = links_at / o.wires.size();
    const auto link = io::read_field<std::uint32_t>(value, "link", here);
    if (!link) return link.error();
    auto from = io::read_field<std::string>(value, "from", here);
    if (!from) return std::move(from).error();
    auto to = io::read_field<std::string>(value, "to", here);
    if (!to) return std::move(to).error();
    const auto ordinal = io::read_field<std::uint32_t>(value, "ordinal", here);
    if (!ordinal) return ordinal.error();
    o.wires.push_back({*link, std::move(*from), std::move(*to), *ordinal});
  }
  return std::optional<plan_origin>{std::move(o)};
}

/// The plan with its ways in the numbers of another graph of the same machine. Links that this graph does not have get a
/// number that no link has; `with_ways_that_exist` leaves such ways to routing.
/// @param gone  becomes the wires of the origin that the graph does not have
/// Cost: O(links of ways), each sought among the links of its node.
template <class = void>
[[nodiscard]] schedule renumbered(schedule plan, const plan_origin& o, const topo::graph& g,
                                  std::vector<plan_origin::wire>& gone) {
  const link_id nowhere{static_cast<std::uint32_t>(g.link_count())};
  std::vector<std::pair<std::uint32_t, link_id>> now;
  gone.clear();
  for (const plan_origin::wire& w : o.wires) {
    const auto link = detail::link_between(g, w);
    if (!link) gone.push_back(w);
    now.emplace_back(w.link, link.value_or(nowhere));
  }
  seq::sort(now);
  for (way& w : plan.ways)
    for (link_id& e : w.links) {
      const auto it = seq::lower_bound_by(now, e.value, &std::pair<std::uint32_t, link_id>::first);
      e = it == now.end() || it->first != e.value ? nowhere : it->second;
    }
  return plan;
}

}}}  // namespace topocoll::v0::plan
