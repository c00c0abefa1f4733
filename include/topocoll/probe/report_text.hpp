// SPDX-License-Identifier: Apache-2.0
#pragma once
// A report as text for people, section by section, and as metrics for Prometheus.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/probe/detail/text_table.hpp>
#include <topocoll/probe/report.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// Table of what every path should carry; "not known" where no source tells. At most `most` lines, then how many more there are.
template <class = void>
[[nodiscard]] std::string paths_text(const report& r, std::size_t most = 40);
/// Table of memory bandwidth.
template <class = void>
[[nodiscard]] std::string memory_text(const report& r);
/// What was planned, and why.
template <class = void>
[[nodiscard]] std::string plans_text(const report& r);
/// Table of the collectives that ran, each beside what the model expects of memory.
template <class = void>
[[nodiscard]] std::string collectives_text(const report& r);
/// Every check with its answer: failures first, then undecided, passed, not measured.
template <class = void>
[[nodiscard]] std::string verdicts_text(const report& r);

/// Metrics in the text format of Prometheus, for the textfile collector of node_exporter: base units, one sample per label
/// set, no time stamps, a newline at the end.
template <class = void>
[[nodiscard]] std::string to_prometheus(const report& r, double unix_time);

namespace detail {

template <class = void>
[[nodiscard]] std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// "18.0 GB/s" in a column of GB/s: three significant digits, the unit is in the heading.
template <class = void>
[[nodiscard]] std::string gigabytes(bytes_per_second rate) {
  const double g = rate.value / 1e9;
  return fixed(g, g >= 99.95 ? 0 : (g >= 9.995 ? 1 : 2));
}

template <class = void>
[[nodiscard]] std::string percent(double share) {
  return fixed(100 * share, share < 0.0995 ? 1 : 0) + " %";
}

template <class = void>
[[nodiscard]] std::string_view word(trust t) {
  constexpr std::string_view words[] = {"measured", "reported", "derived", "assumed"};
  return words[static_cast<std::size_t>(t)];
}

/// A label value of Prometheus: backslash, quote and line end are escaped.
template <class = void>
[[nodiscard]] std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

/// Breaks a text at blanks into lines of at most `width` characters; every line but the first starts with `indent` blanks.
template <class = void>
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view piece = text.substr(0, end);
    if (column > indent && column + 1 + characters(piece) > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += piece;
    column += characters(piece);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return out;
}

}  // namespace detail

template <class>
std::string paths_text(const report& r, std::size_t most) {
  std::string text = "Expected bandwidth of every path (payload, one direction, nobody else on it)\n";
  if (r.paths.empty()) return text + "  no two devices are joined by a path\n";
  detail::text_table table(
      {"from", "to", ">pairs", "class", ">line GB/s", ">expect GB/s", ">shared by", "trust", "limited by"});
  std::size_t shown = 0;
  for (const path_expectation& p : r.paths) {
    if (shown++ == most) break;
    table.add({p.from, p.to, std::to_string(p.pairs), topo::to_string(p.distance),
               p.line_rate ? detail::gigabytes(*p.line_rate) : "",
               p.payload ? detail::gigabytes(*p.payload) : "not known", p.sharers > 1 ? std::to_string(p.sharers) : "",
               p.payload ? std::string(detail::word(p.how)) : "", p.reason});
  }
  text += table.text();
  if (r.paths.size() > most)
    text += "  ... and " + std::to_string(r.paths.size() - most) + " more lines; the JSON report has all\n";
  return text;
}

template <class>
std::string memory_text(const report& r) {
  std::string text = "Memory (payload: bytes of one buffer; beyond the last-level cache";
  if (r.last_level_cache) text += " of " + to_string(*r.last_level_cache);
  text += ")\n";
  if (r.memory.empty()) return text + "  not measured\n";
  detail::text_table table(
      {"where", "buffer", ">copy GB/s", ">read GB/s", ">reduce GB/s", ">spread", ">passes", ">disturbed"});
  std::vector<std::string> line;
  double noise = 0;
  std::size_t passes = 0;
  std::size_t disturbed = 0;
  const auto flush = [&] {
    if (line.empty()) return;
    line[5] = detail::percent(noise);
    line[6] = std::to_string(passes);
    line[7] = disturbed > 0 ? std::to_string(disturbed) : "";
    table.add(line);
  };
  for (const memory_figure& m : r.memory) {
    if (line.empty() || line[0] != m.where) {
      flush();
      line.assign(8, "");
      line[0] = m.where;
      line[1] = to_string(m.buffer) + (m.cores > 1 ? " each" : "");
      noise = 0;
      passes = disturbed = 0;
    }
    line[m.kernel == "copy" ? 2 : (m.kernel == "read" ? 3 : 4)] = detail::gigabytes(m.rate.median);
    noise = std::max(noise, m.rate.noise().value_or(0));
    passes += m.passes;
    disturbed += m.disturbed;
  }
  flush();
  text += table.text();
  std::size_t all = 0;
  std::size_t bad = 0;
  for (const memory_figure& m : r.memory) {
    all += m.passes;
    bad += m.disturbed;
  }
  if (5 * bad > all)
    text += "  other programs took the cores away in " + std::to_string(bad) + " of " + std::to_string(all) +
            " passes: figures are lower than when idle\n";
  return text;
}

template <class>
std::string plans_text(const report& r) {
  std::string text = "Plans for " + std::to_string(r.ranks) + " ranks on this machine\n";
  if (r.plans.empty()) return text + "  none\n";
  detail::text_table table({"collective", ">size", ">copy GB/s", "plan", ">predicted", ">of bound", "proved", "why"});
  for (const plan_figure& p : r.plans)
    table.add({std::string(to_string(p.collective)), to_string(p.size), p.copy ? detail::gigabytes(*p.copy) : "",
               p.chosen, p.predicted ? to_string(*p.predicted) : "not known",
               p.share_of_bound ? detail::percent(*p.share_of_bound) : "not known", p.proof.empty() ? "no" : p.proof,
               p.reasons.empty() ? "" : p.reasons.front()});
  text += table.text();
  return text + "  copy: measured at this working set, on the cores that the ranks share\n";
}

template <class>
std::string collectives_text(const report& r) {
  std::string text =
      "Collectives between " + std::to_string(r.ranks) + " ranks (processes, shared memory, float sum, data checked)\n";
  if (r.collectives.empty()) return text + "  not measured\n";
  detail::text_table table({"collective", ">size", "plan", ">time", ">spread", ">algbw GB/s", ">busbw GB/s",
                            ">expect GB/s", ">reached", ">samples", ">wrong"});
  for (const collective_figure& c : r.collectives) {
    const auto expected =
        c.expected ? std::optional((c.size / *c.expected) * busbw_factor(c.collective, c.ranks)) : std::nullopt;
    table.add({std::string(to_string(c.collective)), to_string(c.size), c.plan, to_string(c.time.median),
               detail::percent(c.time.noise().value_or(0)), detail::gigabytes(c.algbw), detail::gigabytes(c.busbw),
               expected ? detail::gigabytes(*expected) : "not known",
               expected ? detail::percent(c.busbw / *expected) : "", std::to_string(c.time.count),
               std::to_string(c.wrong)});
  }
  text += table.text();
  if (!r.collectives.front().formula.empty())
    text += "  expected: " + detail::wrapped(r.collectives.front().formula, 4, 110) + "\n";
  return text;
}

template <class>
std::string verdicts_text(const report& r) {
  std::string text = "Checks\n";
  constexpr state order[] = {state::dead, state::degraded, state::suspect, state::healthy, state::not_measured};
  constexpr const char* words[] = {"FAIL", "FAIL", "undecided", "pass", "not measured"};
  for (std::size_t i = 0; i < 5; ++i) {
    for (const verdict& v : r.verdicts) {
      if (v.is != order[i]) continue;
      std::string head = std::string("  ") + words[i];
      head.resize(16, ' ');
      text += head + detail::wrapped(v.sentence, 16, 118) + "\n";
      if (v.is == state::healthy || v.is == state::not_measured) continue;
      if (!v.evidence.empty())
        text += std::string(16, ' ') + detail::wrapped("evidence: " + v.evidence, 16, 118) + "\n";
      if (!v.next_step.empty()) text += std::string(16, ' ') + detail::wrapped("next: " + v.next_step, 16, 118) + "\n";
      text += std::string(16, ' ') + "confidence " + detail::percent(v.confidence) + "\n";
    }
  }
  return text;
}

template <class>
std::string to_prometheus(const report& r, double unix_time) {
  std::string text;
  const auto metric = [&](std::string_view name, std::string_view help) {
    text += "# HELP topocoll_preflight_" + std::string(name) + ' ' + std::string(help) +
            "\n# TYPE topocoll_preflight_" + std::string(name) + " gauge\n";
  };
  const auto sample = [&](std::string_view name, const std::string& labels, const std::string& value) {
    text += "topocoll_preflight_" + std::string(name) + (labels.empty() ? "" : "{" + labels + "}") + ' ' + value + "\n";
  };
  const auto number = [](double value) {
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    return std::string(digits);
  };
  const tally t = count(r.verdicts);
  metric("success", "1 when the last run passed, 0 when it failed or could not measure.");
  sample("success", "", overall(t) == outcome::pass ? "1" : "0");
  metric("last_run_timestamp_seconds", "When the last run ended.");
  sample("last_run_timestamp_seconds", "", number(unix_time));
  metric("duration_seconds", "How long the last run took.");
  sample("duration_seconds", "", number(r.took.value));
  metric("checks", "Checks of the last run by outcome.");
  sample("checks", "outcome=\"pass\"", std::to_string(t.passed));
  sample("checks", "outcome=\"fail\"", std::to_string(t.failed));
  sample("checks", "outcome=\"undecided\"", std::to_string(t.suspect));
  sample("checks", "outcome=\"not_measured\"", std::to_string(t.not_measured));
  if (!r.memory.empty()) {
    metric("memory_bandwidth_bytes_per_second", "Memory bandwidth, bytes of one buffer.");
    for (const memory_figure& m : r.memory)
      sample("memory_bandwidth_bytes_per_second",
             "where=\"" + detail::label(m.where) + "\",kernel=\"" + m.kernel + "\"", number(m.rate.median.value));
  }
  if (!r.collectives.empty()) {
    metric("collective_busbw_bytes_per_second", "Bus bandwidth of a collective between local ranks.");
    for (const collective_figure& c : r.collectives)
      sample("collective_busbw_bytes_per_second",
             "collective=\"" + std::string(to_string(c.collective)) + "\",size_bytes=\"" +
                 std::to_string(c.size.value) + "\"",
             number(c.busbw.value));
  }
  metric("check_state", "State of each check: 0 not measured, 1 healthy, 2 suspect, 3 degraded, 4 dead.");
  std::vector<std::string> seen;
  for (const verdict& v : r.verdicts) {
    const std::string labels = "check=\"" + detail::label(v.check) + "\",where=\"" + detail::label(v.where) + "\"";
    bool twice = false;
    for (const std::string& s : seen) twice = twice || s == labels;
    if (twice) continue;
    seen.push_back(labels);
    sample("check_state", labels, std::to_string(static_cast<int>(v.is)));
  }
  return text;
}

}}}  // namespace topocoll::v0::probe
