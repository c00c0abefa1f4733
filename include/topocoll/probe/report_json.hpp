// SPDX-License-Identifier: Apache-2.0
#pragma once
// A report as JSON, schema topocoll.report/1 (docs/formats/report.md). Opt-in: needs nlohmann-json.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/io/json.hpp>
#include <topocoll/probe/report.hpp>
#include <topocoll/probe/report_text.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// The whole report. Rates are bytes per second, times seconds, amounts bytes; what is not known is null, never 0.
template <class = void>
[[nodiscard]] io::json to_json(const report& r);

namespace detail {

template <class = void>
[[nodiscard]] io::json rate_json(const std::optional<bytes_per_second>& rate) {
  return rate ? io::json(rate->value) : io::json(nullptr);
}
template <Quantity Q>
[[nodiscard]] io::json summary_json(const summary<Q>& s) {
  io::json j;
  j["median"] = number_in(s.median);
  j["mad"] = s.mad ? io::json(number_in(*s.mad)) : io::json(nullptr);
  j["low_95"] = s.range ? io::json(number_in(s.range->low)) : io::json(nullptr);
  j["high_95"] = s.range ? io::json(number_in(s.range->high)) : io::json(nullptr);
  j["least"] = number_in(s.least);
  j["most"] = number_in(s.most);
  j["count"] = s.count;
  return j;
}
template <class = void>
[[nodiscard]] std::string_view word(severity s) {
  constexpr std::string_view words[] = {"note", "warning", "fault"};
  return words[static_cast<std::size_t>(s)];
}

}  // namespace detail

template <class>
io::json to_json(const report& r) {
  using io::json;
  json j;
  j["schema"] = "topocoll.report/1";
  j["topocoll_version"] = r.version;
  j["host"] = r.host;
  j["started"] = r.started;
  j["took_seconds"] = r.took.value;
  const tally t = count(r.verdicts);
  j["outcome"] = std::string(to_string(overall(t)));
  j["summary"] = verdict_line(r);
  j["counts"] = {{"passed", t.passed}, {"failed", t.failed}, {"suspect", t.suspect}, {"not_measured", t.not_measured}};
  j["source"] = r.source;
  j["live"] = r.live;
  j["ranks"] = r.ranks;
  j["machine"] = {{"gpus", r.machine.gpus},
                  {"nics", r.machine.nics},
                  {"nic_ports", r.machine.nic_ports},
                  {"numa_domains", r.machine.numa_domains},
                  {"usable_cores", r.live ? json(r.machine.cores) : json(nullptr)}};
  j["last_level_cache_bytes"] = r.last_level_cache ? json(r.last_level_cache->value) : json(nullptr);
  j["load_before"] = r.load ? json(*r.load) : json(nullptr);

  j["checks"] = json::array();
  for (const verdict& v : r.verdicts) {
    json c;
    c["check"] = v.check;
    c["where"] = v.where;
    c["state"] = std::string(to_string(v.is));
    c["outcome"] = std::string(to_string(outcome_of(v.is)));
    c["cause"] = std::string(to_string(v.why));
    c["known"] = v.is == state::not_measured ? json(nullptr) : json(std::string(detail::word(v.how)));
    c["headline"] = v.headline;
    c["sentence"] = v.sentence;
    c["evidence"] = v.evidence;
    c["next_step"] = v.next_step;
    c["measured_bytes_per_second"] = detail::rate_json(v.measured);
    c["expected_bytes_per_second"] = detail::rate_json(v.expected);
    c["confidence"] = v.confidence;
    j["checks"].push_back(std::move(c));
  }

  j["paths"] = json::array();
  for (const path_expectation& p : r.paths)
    j["paths"].push_back({{"from", p.from},
                          {"to", p.to},
                          {"pairs", p.pairs},
                          {"class", topo::to_string(p.distance)},
                          {"line_bytes_per_second", detail::rate_json(p.line_rate)},
                          {"payload_bytes_per_second", detail::rate_json(p.payload)},
                          {"sharers", p.sharers},
                          {"known", p.payload ? json(std::string(detail::word(p.how))) : json(nullptr)},
                          {"limited_by", p.reason}});

  j["memory"] = json::array();
  for (const memory_figure& m : r.memory)
    j["memory"].push_back({{"where", m.where},
                           {"kernel", m.kernel},
                           {"cores", m.cores},
                           {"buffer_bytes", m.buffer.value},
                           {"bytes_per_second", detail::summary_json(m.rate)},
                           {"passes", m.passes},
                           {"disturbed", m.disturbed},
                           {"core_share", m.core_share}});

  j["plans"] = json::array();
  for (const plan_figure& p : r.plans)
    j["plans"].push_back({{"collective", std::string(to_string(p.collective))},
                          {"size_bytes", p.size.value},
                          {"plan", p.chosen},
                          {"predicted_seconds", p.predicted ? json(p.predicted->value) : json(nullptr)},
                          {"share_of_bound", p.share_of_bound ? json(*p.share_of_bound) : json(nullptr)},
                          {"proof", p.proof.empty() ? json(nullptr) : json(p.proof)},
                          {"reasons", p.reasons},
                          {"copy_bytes_per_second", detail::rate_json(p.copy)}});

  j["collectives"] = json::array();
  for (const collective_figure& c : r.collectives)
    j["collectives"].push_back({{"collective", std::string(to_string(c.collective))},
                                {"size_bytes", c.size.value},
                                {"ranks", c.ranks},
                                {"plan", c.plan},
                                {"seconds", detail::summary_json(c.time)},
                                {"algbw_bytes_per_second", c.algbw.value},
                                {"busbw_bytes_per_second", c.busbw.value},
                                {"expected_seconds", c.expected ? json(c.expected->value) : json(nullptr)},
                                {"model", c.formula},
                                {"checked_elements", c.checked},
                                {"wrong_elements", c.wrong}});

  j["findings"] = json::array();
  for (const finding& f : r.findings)
    j["findings"].push_back({{"severity", std::string(detail::word(f.level))},
                             {"where", f.where},
                             {"what", f.what},
                             {"evidence", f.evidence},
                             {"next_step", f.next_step},
                             {"confidence", f.confidence}});
  return j;
}

}}}  // namespace topocoll::v0::probe
