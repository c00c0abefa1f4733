// SPDX-License-Identifier: Apache-2.0
#pragma once
// Findings as an answer: text that begins with one sentence, or JSON of the schema topocoll.findings/1.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/generate/model.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/version.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// True for a description that begins with a known model; a file of that name wins.
template <class = void>
[[nodiscard]] bool is_description(const std::string& place) {
  struct ::stat about {};
  return find_model(std::string_view(place).substr(0, place.find(':'))) != nullptr &&
         ::stat(place.c_str(), &about) != 0;
}

/// A topology named by one word: "live", a description, else a file or a directory.
template <class = void>
[[nodiscard]] result<topo::graph> read_place(const std::string& place, const std::string& root,
                                             const std::string& host) {
  topology_input input;
  input.root = root;
  input.host = host;
  (is_description(place) ? input.fabric : input.from).push_back(place);
  return read_topology(input);
}

/// How many of each severity.
struct severity_counts {
  std::size_t of[3] = {0, 0, 0};

  explicit severity_counts(std::span<const finding> all) {
    for (const finding& f : all) ++of[static_cast<std::size_t>(f.level)];
  }
  [[nodiscard]] std::size_t notes() const { return of[0]; }
  [[nodiscard]] std::size_t warnings() const { return of[1]; }
  [[nodiscard]] std::size_t faults() const { return of[2]; }
  [[nodiscard]] bool bad() const { return warnings() + faults() > 0; }
  /// "2 faults, 1 warning and 3 notes".
  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    for (std::size_t s = 3; s-- > 0;)
      if (of[s] != 0)
        parts.push_back(std::to_string(of[s]) + ' ' + to_string(static_cast<severity>(s)) + (of[s] == 1 ? "" : "s"));
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i)
      text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    return text;
  }
};

/// The worst first, those of one severity in their order.
/// @param most  how many of each severity; what is beyond is counted
template <class = void>
[[nodiscard]] std::string findings_text(std::string_view sentence, std::span<const finding> all, std::size_t most) {
  std::string text = std::string(sentence) + '\n';
  for (const severity level : {severity::fault, severity::warning, severity::note}) {
    std::size_t n = 0;
    for (const finding& f : all) {
      if (f.level != level || ++n > most) continue;
      const std::string word = to_string(level);
      text += '\n' + word + std::string(9 - word.size(), ' ') + f.what + '\n';
      text += "         at " + f.where + '\n';
      if (!f.evidence.empty()) text += "         " + f.evidence + '\n';
      if (!f.next_step.empty()) text += "         next: " + f.next_step + '\n';
    }
    if (n > most)
      text += "\n         and " + std::to_string(n - most) + " more " + to_string(level) + "s; --all shows them\n";
  }
  return text;
}

/// The fields that all answers of the schema share.
template <class = void>
[[nodiscard]] io::json findings_json(std::string_view command, std::string_view outcome, std::string_view sentence,
                                     std::span<const finding> all) {
  io::json j;
  j["schema"] = "topocoll.findings/1";
  j["topocoll_version"] = std::string(version_text);
  j["command"] = std::string(command);
  j["outcome"] = std::string(outcome);
  j["summary"] = std::string(sentence);
  const severity_counts counts(all);
  j["counts"] = {{"faults", counts.faults()}, {"warnings", counts.warnings()}, {"notes", counts.notes()}};
  j["findings"] = io::json::array();
  for (const finding& f : all)
    j["findings"].push_back({{"severity", to_string(f.level)},
                             {"where", f.where},
                             {"what", f.what},
                             {"evidence", f.evidence},
                             {"next_step", f.next_step},
                             {"confidence", f.confidence}});
  return j;
}

}}}}  // namespace topocoll::v0::app::detail
