// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `topocoll calibrate` prints: constants, and errors by size and by link, as tables that Markdown shows too.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/detail/measurement_table.hpp>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/nccl_model.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// Predictions by one model, one for each row.
struct named_predictions {
  std::string name;
  std::vector<seconds> times;
};

/// NCCL's own model on the same rows; 0 where it has none.
template <class = void>
[[nodiscard]] std::vector<seconds> nccl_predictions(std::span<const plan::observation> rows) {
  std::vector<seconds> all;
  for (const plan::observation& o : rows) {
    const auto m = plan::nccl_machine_of(o.machine);
    const auto p = m ? plan::nccl_predict(*m, o.collective, o.size) : result<plan::nccl_prediction>(m.error());
    all.push_back(p ? p->time : seconds{});
  }
  return all;
}

template <class... Values>
[[nodiscard]] std::string formatted(const char* format, Values... values) {
  char line[256];
  const int n = std::snprintf(line, sizeof line, format, values...);
  return {line, n < 0 ? 0 : n < static_cast<int>(sizeof line) ? static_cast<std::size_t>(n) : sizeof line - 1};
}
template <class = void>
[[nodiscard]] std::string percent(double share) {
  return formatted(share < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share);
}

/// Errors by size.
template <class = void>
[[nodiscard]] std::string error_table(std::span<const plan::observation> rows,
                                      std::span<const named_predictions> models) {
  std::string text = "| size | rows | systems |", rule = "|---|---|---|";
  for (const named_predictions& m : models) {
    text += " " + m.name + ": median | nine in ten | median of systems | bias |";
    rule += "---|---|---|---|";
  }
  text += "\n" + rule + "\n";
  std::vector<std::array<plan::error_line, plan::size_band_count>> lines;
  for (const named_predictions& m : models) lines.push_back(plan::errors_of(rows, m.times));
  for (std::size_t b = 0; b < plan::size_band_count; ++b) {
    const plan::error_line& first = lines.front()[b];
    if (first.rows == 0) continue;
    text += "| " + std::string(to_string(static_cast<plan::size_band>(b))) + " | " + std::to_string(first.rows) +
            " | " + std::to_string(first.systems) + " |";
    for (const auto& l : lines)
      text += " " + percent(l[b].median) + " | " + percent(l[b].ninth_decile) + " | " +
              percent(l[b].median_of_systems) + " | " + formatted("%+.0f %%", 100 * l[b].bias) + " |";
    text += "\n";
  }
  return text;
}

/// Medians by link generation and size, of one model.
template <class = void>
[[nodiscard]] std::string link_table(const measurement_table& t, const named_predictions& model) {
  std::vector<std::string> groups;
  for (const std::string& g : t.link_groups)
    if (!seq::contains(groups, g)) groups.push_back(g);
  seq::sort(groups);
  std::string text = "| links | systems |";
  for (std::size_t b = 0; b < plan::size_band_count; ++b)
    text += " " + std::string(to_string(static_cast<plan::size_band>(b))) + " |";
  text += "\n|---|---|---|---|---|---|---|\n";
  for (const std::string& g : groups) {
    std::vector<plan::observation> rows;
    std::vector<seconds> times;
    std::vector<std::uint32_t> systems;
    for (std::size_t i = 0; i < t.rows.size(); ++i) {
      if (t.link_groups[i] != g) continue;
      rows.push_back(t.rows[i]);
      times.push_back(model.times[i]);
      systems.push_back(t.rows[i].system);
    }
    seq::sort_unique(systems);
    text += "| " + g + " | " + std::to_string(systems.size()) + " |";
    for (const plan::error_line& l : plan::errors_of(rows, times))
      text += l.rows == 0 ? " |" : " " + percent(l.median) + " (" + std::to_string(l.rows) + ") |";
    text += "\n";
  }
  return text;
}

/// Medians by system and size, of one model.
template <class = void>
[[nodiscard]] std::string system_table(const measurement_table& t, const named_predictions& model) {
  measurement_table by_system = t;
  for (std::size_t i = 0; i < t.rows.size(); ++i) by_system.link_groups[i] = t.systems[t.rows[i].system];
  std::string text = link_table(by_system, model);
  text.replace(0, text.find('\n'), [&] {
    std::string head = text.substr(0, text.find('\n'));
    head.replace(head.find("links"), 5, "system");
    return head;
  }());
  return text;
}

/// The constants of a fit.
template <class = void>
[[nodiscard]] std::string constant_table(const plan::calibration& c) {
  std::string text = "| constant | value | unit | started at | spread | rows | |\n|---|---|---|---|---|---|---|\n";
  for (const plan::fitted_parameter& p : c.parameters) {
    const plan::parameter_fact& fact = plan::fact_of(p.what);
    text += "| " + std::string(fact.name) + " | " + formatted("%.4g", p.value) + " | " + std::string(fact.unit) +
            " | " + formatted("%.4g", p.centre) + " | " + percent(p.spread) + " | " + std::to_string(p.rows) + " | " +
            (p.rows == 0    ? "not in these measurements"
             : p.determined ? ""
                            : "hardly determined") +
            " |\n";
  }
  return text;
}

/// A line for each row: what was measured, what was predicted. Apart from the constants, as a table with tabs.
template <class = void>
[[nodiscard]] std::string residual_table(const measurement_table& t, const plan::model_constants& k) {
  std::string text = "system\tlinks\tcollective\tranks\tbytes\tmeasured_us\tpredicted_us\tratio\talgorithm\tprotocol\n";
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    const plan::observation& o = t.rows[i];
    const auto p = plan::predict(o.machine, o.collective, o.size, o.conditions, k);
    text += t.systems[o.system] + "\t" + t.link_groups[i] + "\t" + std::string(to_string(o.collective)) + "\t" +
            std::to_string(o.machine.ranks) + "\t" + std::to_string(o.size.value) + "\t" +
            formatted("%.2f", o.time.value * 1e6) + "\t";
    text += p ? formatted("%.2f\t%.3f\t", p->time.value * 1e6, p->time / o.time) +
                    std::string(to_string(p->algorithm)) + "\t" + std::string(to_string(p->protocol)) + "\n"
              : std::string("\t\t\t\n");
  }
  return text;
}

}}}}  // namespace topocoll::v0::app::detail
