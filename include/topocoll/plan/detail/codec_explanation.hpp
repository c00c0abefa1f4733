// SPDX-License-Identifier: Apache-2.0
#pragma once
// How explanations become JSON.
#include <cstddef>
#include <string>
#include <utility>
#include <topocoll/core/rational.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/detail/codec_words.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

template <class = void>
[[nodiscard]] std::string fraction_text(rational r) {
  return std::to_string(r.numerator()) + '/' + std::to_string(r.denominator());
}

template <class = void>
[[nodiscard]] io::json json_of(const bound& b) {
  io::json o{{"time", b.time.value},
             {"bandwidth_time", b.bandwidth_time.value},
             {"latency_time", b.latency_time.value},
             {"method", to_string(b.method)}};
  if (b.seconds_per_byte) o["seconds_per_byte"] = fraction_text(*b.seconds_per_byte);
  o["crossing"] = b.crossing.value;
  o["sets"] = b.parts;
  o["cut"] = b.cut;
  return o;
}

template <class = void>
[[nodiscard]] io::json json_of(const library_line& l) {
  io::json o{{"model", l.model}, {"measured", false}};
  if (!l.time) {
    o["why_not"] = l.why_not;
    return o;
  }
  o["time"] = l.time->value;
  o["algorithm"] = l.algorithm;
  o["protocol"] = l.protocol;
  if (!l.limit.empty()) o["limit"] = l.limit;
  if (l.spread > 0) o["spread"] = l.spread;
  return o;
}

/// Who carries what: NICs, rails, leaves, trees.
template <class = void>
void add_carriers(const explanation& e, io::json& o) {
  const auto list = [&](const char* name) -> io::json& { return o[name] = io::json::array(); };
  if (!e.nics.empty()) {
    io::json& all = list("nics");
    for (const nic_line& l : e.nics)
      all.push_back({{"which", l.which},
                     {"nics", l.nics},
                     {"rate", l.rate.value},
                     {"out", l.out.value},
                     {"in", l.in.value},
                     {"slow", l.slow}});
    if (e.nic_kinds > e.nics.size()) o["nic_kinds"] = e.nic_kinds;
  }
  if (!e.rails.empty()) {
    io::json& all = list("rails");
    for (const rail_line& l : e.rails)
      all.push_back({{"rail", l.rail},
                     {"nics", l.nics},
                     {"out", l.out.value},
                     {"in", l.in.value},
                     {"out_largest", l.out_largest.value},
                     {"in_largest", l.in_largest.value}});
  }
  if (!e.leaves.empty()) {
    io::json& all = list("leaves");
    for (const leaf_line& l : e.leaves)
      all.push_back({{"which", l.which},
                     {"leaves", l.leaves},
                     {"uplinks", l.uplinks},
                     {"from_hosts", l.from_hosts.value},
                     {"to_hosts", l.to_hosts.value},
                     {"up", l.up.value},
                     {"down", l.down.value},
                     {"up_largest", l.up_largest.value},
                     {"down_largest", l.down_largest.value}});
  }
  if (e.trees) {
    o["trees"] = {{"trees", e.trees->trees},
                  {"depth", e.trees->depth},
                  {"mean_depth", e.trees->mean_depth},
                  {"spared_ranks", e.trees->spared_ranks}};
    if (e.trees->spared_ranks > 0) o["trees"]["spared"] = e.trees->spared;
  }
  if (!e.remarks.empty()) o["remarks"] = e.remarks;
}

}  // namespace detail

template <class>
io::json to_json_value(const explanation& e) {
  io::json o{{"schema", std::string(explanation_schema) + '/' + std::to_string(explanation_schema_version)},
             {"collective", std::string(to_string(e.collective))},
             {"size", e.size.value},
             {"machine", e.machine},
             {"ranks", e.ranks},
             {"boxes", e.boxes},
             {"pods", e.pods}};
  if (!e.shares.empty()) o["shares"] = e.shares;
  io::json plan{
      {"name", e.chosen}, {"slices", e.slices}, {"digest", detail::hex_of(e.digest)}, {"time", e.price.time.value}};
  if (e.size.value > 0 && e.ranks > 1) {
    plan["algbw"] = e.algbw().value;
    plan["busbw"] = e.busbw().value;
  }
  plan["gap"] = e.gap;
  plan["bandwidth_gap"] = e.bandwidth_gap;
  if (e.bandwidth_ratio) plan["bandwidth_ratio"] = detail::fraction_text(*e.bandwidth_ratio);
  if (!e.remedy.empty()) plan["remedy"] = e.remedy;
  plan["rounds"] = e.price.rounds;
  plan["parts_of_time"] = {{"launch", e.price.launch.value},
                           {"latency", e.price.latency.value},
                           {"slices", e.price.posting.value},
                           {"busiest", e.price.busiest.value},
                           {"not_overlapped", e.price.unhidden.value}};
  if (!e.bottleneck.empty()) plan["busiest"] = e.bottleneck;
  if (!e.price.notes.empty()) plan["notes"] = e.price.notes;
  if (e.proved)
    plan["proof"] = {
        {"method", to_string(e.proved->method)}, {"ranks", e.proved->ranks},       {"steps", e.proved->steps},
        {"operations", e.proved->operations},    {"messages", e.proved->messages}, {"summary", e.proved->summary}};
  else if (!e.unproved.empty())
    plan["unproved"] = e.unproved;
  o["plan"] = std::move(plan);
  o["bound"] = detail::json_of(e.limit);
  if (e.nominal) o["nominal_bound"] = detail::json_of(*e.nominal);
  if (!e.libraries.empty()) {
    o["libraries"] = io::json::array();
    for (const library_line& l : e.libraries) o["libraries"].push_back(detail::json_of(l));
  }
  o["stages"] = io::json::array();
  for (const stage_line& s : e.stages)
    o["stages"].push_back({{"what", s.what},
                           {"groups", s.groups},
                           {"members", s.members},
                           {"rounds", s.rounds},
                           {"transfer", s.transfer.value},
                           {"latency", s.latency.value},
                           {"slowest", s.limit}});
  o["loads"] = io::json::array();
  for (std::size_t c = 0; c < link_class_count; ++c)
    if (e.loads[c].links > 0)
      o["loads"].push_back({{"class", to_string(static_cast<link_class>(c))},
                            {"links", e.loads[c].links},
                            {"used", e.loads[c].used},
                            {"full", e.full[c]},
                            {"bytes", e.loads[c].total.value},
                            {"largest", e.loads[c].largest.value}});
  detail::add_carriers(e, o);
  if (!e.spine.empty()) {
    o["spine"] = io::json::array();
    for (const spine_line& s : e.spine)
      o["spine"].push_back({{"name", s.name},
                            {"up", s.up.value},
                            {"up_largest", s.up_largest.value},
                            {"down", s.down.value},
                            {"down_largest", s.down_largest.value},
                            {"nic_largest", s.nic_largest.value},
                            {"time", s.time.value}});
  }
  o["others"] = io::json::array();
  for (const other_line& other : e.others) {
    io::json line{{"name", other.name}};
    if (other.time) line["time"] = other.time->value;
    line["reason"] = other.reason;
    o["others"].push_back(std::move(line));
  }
  if (!e.sizes.empty()) {
    o["sizes"] = io::json::array();
    for (const size_range& r : e.sizes)
      o["sizes"].push_back({{"first", r.first.value},
                            {"last", r.last.value},
                            {"name", r.name},
                            {"first_time", r.first_time.value},
                            {"last_time", r.last_time.value},
                            {"first_bound", r.first_bound.value},
                            {"last_bound", r.last_bound.value}});
  }
  if (!e.curves.empty()) {
    o["curves"] = io::json::array();
    for (const plan_curve& c : e.curves) {
      io::json line{{"name", c.name}, {"cuts", io::json::array()}};
      for (const plan_curve::cut& cut : c.cuts) {
        io::json slopes = io::json::array();
        for (const plan_curve::slope& part : cut.slopes)
          slopes.push_back({{"fixed", part.fixed.value}, {"per_byte", part.per_byte}});
        line["cuts"].push_back({{"slices", cut.slices}, {"slopes", std::move(slopes)}});
      }
      o["curves"].push_back(std::move(line));
    }
  }
  return o;
}

}}}  // namespace topocoll::v0::plan
