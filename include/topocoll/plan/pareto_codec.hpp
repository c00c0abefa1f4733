// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Pareto list as JSON (docs/formats/plan.md). Needs nlohmann-json.
#include <topocoll/io/json.hpp>
#include <topocoll/plan/pareto.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// The list as a JSON value: all numbers of the text, and sizes to the byte. Times are in seconds, rates in bytes per second.
/// Cost: O(lines).
template <class = void>
[[nodiscard]] io::json to_json_value(const pareto_list& list) {
  io::json o{{"collective", std::string(to_string(list.collective))},
             {"ranks", list.ranks},
             {"first", list.first.value},
             {"last", list.last.value}};
  const auto cost = [&](io::json& to, seconds latency, double seconds_per_byte) {
    to["latency"] = latency.value;
    to["seconds_per_byte"] = seconds_per_byte;
    if (const bytes_per_second busbw = list.busbw(seconds_per_byte); busbw.value > 0) to["busbw"] = busbw.value;
  };
  o["plans"] = io::json::array();
  for (const pareto_line& l : list.lines) {
    io::json line{{"name", l.name}};
    cost(line, l.latency, l.seconds_per_byte);
    line["rounds"] = {{"fewest", l.fewest_rounds}, {"most", l.most_rounds}};
    line["proved"] = l.proved;
    if (!l.unproved.empty()) line["unproved"] = l.unproved;
    line["ranges"] = io::json::array();
    for (const size_range& r : l.wins)
      line["ranges"].push_back({{"first", r.first.value},
                                {"last", r.last.value},
                                {"first_time", r.first_time.value},
                                {"last_time", r.last_time.value}});
    o["plans"].push_back(std::move(line));
  }
  o["bound"] = io::json::object();
  cost(o["bound"], list.bound_latency, list.bound_seconds_per_byte);
  o["others"] = io::json::array();
  for (const pareto_other& other : list.others) {
    io::json line{{"name", other.name}};
    if (other.factor > 0) {
      line["factor"] = other.factor;
      line["size"] = other.size.value;
    } else {
      line["why_not"] = other.why_not;
    }
    o["others"].push_back(std::move(line));
  }
  return o;
}

}}}  // namespace topocoll::v0::plan
