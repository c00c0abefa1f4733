// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changes between two plans as JSON (docs/formats/plan.md). Needs nlohmann-json.
#include <topocoll/io/json.hpp>
#include <topocoll/plan/replan.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// The change as a JSON value. Times are in seconds, amounts in bytes, rates in bytes per second. Cost: O(ranks).
template <class = void>
[[nodiscard]] io::json to_json_value(const plan_change& c) {
  io::json o{{"same", c.same}};
  if (c.before)
    o["time_before"] = c.before->value;
  else
    o["why_not"] = c.why_not;
  o["time_after"] = c.after.value;
  o["gain"] = c.gain();
  if (!c.reason.empty()) o["reason"] = c.reason;
  o["groups"] = {{"kept", c.groups_kept}, {"new", c.groups_new}, {"dropped", c.groups_dropped}};
  o["ranks"] = io::json::array();
  for (const rank_id r : c.ranks) o["ranks"].push_back(r.value);
  o["ways_lost"] = c.ways_lost;
  if (!c.lost.empty()) {
    o["lost"] = io::json::array();
    for (const lost_way& w : c.lost) o["lost"].push_back({{"from", w.from.value}, {"to", w.to.value}, {"why", w.why}});
  }
  o["links_busier"] = c.links_busier;
  if (!c.busier.empty()) {
    o["busier"] = io::json::array();
    for (const busier_link& b : c.busier) {
      io::json line{{"link", b.link.value},
                    {"name", b.name},
                    {"before", b.before.value},
                    {"after", b.after.value},
                    {"busy_before", b.busy_before.value},
                    {"busy_after", b.busy_after.value},
                    {"rate", b.rate.value}};
      if (b.current) line["current_rate"] = b.current->value;
      if (b.nominal) line["nominal_rate"] = b.nominal->value;
      o["busier"].push_back(std::move(line));
    }
  }
  o["words"] = c.words;
  return o;
}

}}}  // namespace topocoll::v0::plan
