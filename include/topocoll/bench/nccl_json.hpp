// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows in the JSON form of nccl-tests, version 3, without the process environment. Opt-in: needs nlohmann-json.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/bench/nccl_style.hpp>
#include <topocoll/bench/row.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/version.hpp>

namespace topocoll { inline namespace v0 { namespace bench {

/// What belongs to a run beside its rows.
struct run_facts {
  std::string start_time;  ///< UTC, "2026-03-01T08:15:00Z"
  std::string end_time;
  std::vector<std::string> arguments;  ///< the command line
  std::vector<rank_line> ranks;
  std::vector<std::string> errors;  ///< sentences; a run without any is complete
};

/// The document that nccl-tests writes with -J: same fields, times in us, bandwidths in GB/s, booleans as the texts "true" and
/// "false", wrong counts as text ("N/A" when nothing was checked). Left out: `env`, because secrets leak through it, and
/// `nccl_version`. Added: `topocoll_version`, and in each result `plan` and, when known, `bound_bus_bw`.
template <class = void>
[[nodiscard]] io::json to_json(const sweep_config& config, std::span<const row> rows, const run_facts& facts) {
  using io::json;
  json j;
  j["version"] = 3;
  j["start_time"] = facts.start_time;
  j["args"] = facts.arguments;
  j["topocoll_version"] = version_text;
  json c;
  c["nthreads"] = 1;
  c["ngpus"] = 0;
  c["minimum_bytes"] = config.range.first.value;
  c["maximum_bytes"] = config.range.last.value;
  if (config.range.factor)
    c["step_factor"] = *config.range.factor;
  else
    c["step_bytes"] = config.range.step.value;
  c["warmup_iters"] = config.warm_up;
  c["iterations"] = config.iterations;
  c["aggregated_iterations"] = 1;
  c["validation"] = config.checked;
  c["graph"] = 0;
  j["config"] = std::move(c);
  j["devices"] = json::array();
  for (const rank_line& r : facts.ranks) {
    json d;
    d["rank"] = r.rank;
    d["group"] = 0;
    d["pid"] = r.pid;
    d["hostname"] = r.host;
    d["device"] = r.core ? json(*r.core) : json(nullptr);
    d["device_hex"] = nullptr;
    d["device_info"] = "host memory";
    j["devices"].push_back(std::move(d));
  }
  j["results"] = json::array();
  for (const row& r : rows) {
    json one;
    one["size"] = r.size.value;
    one["count"] = r.count;
    one["type"] = std::string(to_string(r.type));
    one["redop"] = reduces(r.collective) ? std::string(to_string(r.op)) : "none";
    one["root"] = r.root ? static_cast<int>(r.root->value) : -1;
    one["actual_iterations"] = r.iterations;
    one["experiment_name"] = std::string(to_string(r.collective));
    one["plan"] = r.plan;
    if (r.bound) one["bound_bus_bw"] = r.bound->value / 1e9;
    for (const auto& [name, half] : {std::pair{"out_of_place", &r.out_of_place}, {"in_place", &r.in_place}}) {
      json h;
      h["time"] = half->time.value * 1e6;
      h["alg_bw"] = r.algbw(*half).value / 1e9;
      h["bus_bw"] = r.busbw(*half).value / 1e9;
      h["nwrong"] = half->wrong ? std::to_string(*half->wrong) : "N/A";
      one[name] = std::move(h);
    }
    j["results"].push_back(std::move(one));
  }
  const totals t = total(rows);
  j["out_of_bounds"] = {{"count", t.wrong},
                        {"okay", !t.checked ? json(nullptr) : json(t.wrong == 0 ? "true" : "false")}};
  j["average_bus_bandwidth"] = {{"bandwidth", t.average_busbw.value / 1e9}, {"okay", "true"}};
  j["errors"] = facts.errors;
  j["end_time"] = facts.end_time;
  return j;
}

}}}  // namespace topocoll::v0::bench
