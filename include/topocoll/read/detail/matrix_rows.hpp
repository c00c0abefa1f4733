// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the header, the rows and the legend of a topology matrix are read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/nvidia_smi_topo.hpp>

namespace topocoll { inline namespace v0 { namespace read {

namespace detail {

/// Number of an accelerator's label: 3 of "GPU3" and of "PPU3". Empty for anything else.
[[nodiscard]] constexpr std::optional<std::uint32_t> accelerator_number(std::string_view label) {
  if (label.size() < 4 || label.size() > 8) return std::nullopt;
  const std::string_view maker = label.substr(0, 3);
  if (maker != "GPU" && maker != "PPU" && maker != "DCU" && maker != "NPU" && maker != "XPU") return std::nullopt;
  const auto number = digits_of(label.substr(3), 10);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

/// A list of numbers and ranges, "0-23,48-71": digits, commas, dashes.
[[nodiscard]] constexpr bool is_list(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  return text.find_first_not_of("0123456789,-") == std::string_view::npos;
}

enum class side_column : std::uint8_t { processors, numa, gpu_numa, other };

/// What a header names.
struct matrix_header {
  std::vector<std::string_view> labels;
  std::vector<side_column> side;         // the columns after the cells
  std::vector<std::size_t> side_starts;  // where they are shown
};

/// Reads a header; no labels when the row is none.
template <class = void>
[[nodiscard]] matrix_header header_of(std::string_view row) {
  matrix_header h;
  if (row.find("PU") == std::string_view::npos) return h;
  const std::vector<word> words = words_of(row);
  std::size_t at = 0;
  while (at < words.size() && !accelerator_number(without_quotes(words[at].text))) ++at;
  if (at == words.size()) return h;
  if (at + 1 < words.size() && matrix_cell_of(words[at + 1].text)) return h;  // a row of the matrix
  h.labels.push_back(without_quotes(words[at].text));
  for (++at; at < words.size(); ++at) {
    const std::string_view w = words[at].text;
    if (w == "CPU" || w == "NUMA" || w == "Node" || w == "GPU") break;
    h.labels.push_back(w);
  }
  const auto is = [&](std::size_t i, std::string_view text) {
    return i < words.size() && words[i].text.substr(0, text.size()) == text;
  };
  while (at < words.size()) {
    h.side_starts.push_back(words[at].column);
    if (is(at, "CPU") && is(at + 1, "Affinity")) {
      h.side.push_back(side_column::processors);
      at += 2;
    } else if ((is(at, "NUMA") || is(at, "Node")) && is(at + 1, "Affinity")) {
      h.side.push_back(side_column::numa);
      at += 2;
    } else if (is(at, "GPU") && is(at + 1, "NUMA") && is(at + 2, "ID")) {
      h.side.push_back(side_column::gpu_numa);
      at += 3;
    } else {
      h.side.push_back(side_column::other);
      ++at;
    }
  }
  return h;
}

/// Position of the label that a row begins with; npos when it begins with none.
[[nodiscard]] inline std::size_t row_of(const std::vector<matrix_device>& devices, std::string_view label) {
  label = without_quotes(label);
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].label == label) return i;
  return std::string_view::npos;
}

/// Takes away what stands before the label of a row: quotation marks, the number of a task that printed it. At most three
/// words, and only before a label that a cell follows.
template <class IsLabel>
void drop_prefix(std::vector<word>& words, const IsLabel& is_label) {
  for (std::size_t k = 0; k < 4 && k + 1 < words.size(); ++k) {
    if (!is_label(words[k].text) || !matrix_cell_of(words[k + 1].text)) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(k));
    return;
  }
}

template <class = void>
class matrix_reader {
 public:
  matrix_reader(std::string_view text, std::string_view file) : rows_(text), file_(file) {}

  [[nodiscard]] result<nvidia_smi_topo> read() {
    if (auto ok = find_header(); !ok) return ok.error();
    while (rows_.next()) {
      const std::string_view row = rows_.row();
      const std::string_view text = trimmed(row);
      if (text == "Legend:" || text == "NIC Legend:") {
        in_legend_ = true;
        continue;
      }
      if (in_legend_) {
        legend(text);
        continue;
      }
      if (auto ok = matrix_row(row); !ok) return ok.error();
    }
    if (auto ok = complete(); !ok) return ok.error();
    return std::move(m_);
  }

 private:
  [[nodiscard]] std::string at(std::uint32_t line) const { return file_ + " line " + std::to_string(line) + ": "; }
  void note(severity level, std::uint32_t line, std::string what, std::string evidence = {}, std::string next = {}) {
    m_.findings.push_back({level, line == 0 ? file_ : file_ + " line " + std::to_string(line), std::move(what),
                           std::move(evidence), std::move(next), 1});
  }

  [[nodiscard]] result<void> find_header();
  [[nodiscard]] result<void> matrix_row(std::string_view row);
  void side_values(matrix_device& d, std::string_view rest, const std::vector<word>& values);
  void set_side(matrix_device& d, std::size_t column, std::string_view value);
  void legend(std::string_view row);
  [[nodiscard]] result<void> complete();

  text_rows rows_;
  std::string file_;
  nvidia_smi_topo m_;
  std::vector<side_column> side_;
  std::vector<std::size_t> side_starts_;
  std::vector<std::pair<std::string, std::uint32_t>> strange_;  // words of cells, and where they were first seen
  std::size_t understood_ = 0;
  bool in_legend_ = false;
  bool second_ = false;  // another matrix follows; it was reported
};

template <class Deferred>
result<void> matrix_reader<Deferred>::find_header() {
  while (rows_.next()) {
    const matrix_header h = header_of(rows_.row());
    if (h.labels.empty()) continue;
    if (h.labels.size() > most_matrix_devices)
      return fail(errc::unsupported, at(rows_.number()) + "the matrix has " + std::to_string(h.labels.size()) +
                                         " columns, more than the " + std::to_string(most_matrix_devices) +
                                         " that are read");
    for (const std::string_view label : h.labels) {
      if (row_of(m_.devices, label) != std::string_view::npos)
        return fail(errc::malformed_input,
                    at(rows_.number()) + "the label " + std::string(label) + " heads two columns");
      matrix_device d;
      d.label = std::string(label);
      d.index = accelerator_number(label);
      d.gpu = d.index.has_value();
      if (!d.gpu && label.substr(0, 3) == "NIC") d.index = small_number(label.substr(3));
      if (!d.gpu && !d.index) d.name = d.label;
      m_.devices.push_back(std::move(d));
    }
    side_ = h.side;
    side_starts_ = h.side_starts;
    return {};
  }
  return fail(errc::malformed_input, file_ + ": there is no row of GPU labels (GPU0, GPU1, …), so no matrix",
              "name the output of nvidia-smi topo -m");
}

template <class Deferred>
result<void> matrix_reader<Deferred>::matrix_row(std::string_view row) {
  std::vector<word> words = words_of(row);
  drop_prefix(words, [&](std::string_view label) { return row_of(m_.devices, label) != std::string_view::npos; });
  if (words.empty() || second_) return {};
  const std::size_t self = row_of(m_.devices, words.front().text);
  if (self == std::string_view::npos) {
    if (words.size() > 1 && matrix_cell_of(words[1].text) && matrix_cell_of(words.back().text))
      note(severity::note, rows_.number(),
           "the row " + std::string(words.front().text) + " has no column of its own; it is passed over");
    return {};
  }
  if (!header_of(row).labels.empty() && (words.size() < 2 || !matrix_cell_of(words[1].text))) {
    second_ = true;
    note(severity::note, rows_.number(), "another matrix follows; only the first one is read", {},
         "give each matrix a file of its own");
    return {};
  }
  matrix_device& d = m_.devices[self];
  const std::size_t n = m_.devices.size();
  if (d.has_row)
    return fail(errc::malformed_input,
                at(rows_.number()) + "a second row of " + d.label + "; the first is line " + std::to_string(d.line));
  const bool whole = words.size() > n;
  if (!whole && !rows_.last())
    return fail(errc::malformed_input, at(rows_.number()) + "the row of " + d.label + " has " +
                                           std::to_string(words.size() - 1) + " cells where the header names " +
                                           std::to_string(n) + " columns");
  d.has_row = true;
  d.line = rows_.number();
  for (std::size_t i = 0; i < n && i + 1 < words.size(); ++i) {
    const std::string_view text = words[i + 1].text;
    auto cell = matrix_cell_of(text);
    // The last word of a text that was cut off may be half a word.
    if (!cell && rows_.last() && i + 2 == words.size()) break;
    if (cell && (cell->word == matrix_word::self) != (i == self))
      return fail(errc::malformed_input,
                  at(rows_.number()) + "the row of " + d.label + " has " + std::string(text) + " under " +
                      m_.devices[i].label +
                      (i == self ? " where X is expected" : ", but X stands only on the diagonal") +
                      ": the columns have shifted");
    if (cell && i != self) understood_ += cell->word != matrix_word::untold ? 1U : 0U;
    if (cell && cell->word == matrix_word::gpu_link && m_.gpu_link_word.empty())
      m_.gpu_link_word = std::string(text.substr(0, text.find_first_of("0123456789")));
    if (!cell) {
      const auto known = seq::find_if(strange_, [&](const auto& s) { return s.first == text; });
      if (known == strange_.end() && strange_.size() < 16) strange_.emplace_back(std::string(text), rows_.number());
    }
    d.cells.push_back(cell.value_or(matrix_cell{}));
  }
  if (d.cells.size() < n)
    note(severity::warning, rows_.number(),
         "the row of " + d.label + " is cut off after " + std::to_string(d.cells.size()) + " of " + std::to_string(n) +
             " cells",
         {}, "name the whole output");
  if (whole && words.size() > n + 1) {
    const std::size_t rest = static_cast<std::size_t>(words[n].text.data() - row.data()) + words[n].text.size();
    side_values(d, row.substr(rest),
                std::vector<word>(words.begin() + static_cast<std::ptrdiff_t>(n) + 1, words.end()));
  }
  return {};
}

/// Gives the values behind the cells to their columns. An empty one shows only as a double tab or a gap.
template <class Deferred>
void matrix_reader<Deferred>::side_values(matrix_device& d, std::string_view rest, const std::vector<word>& values) {
  if (values.size() == side_.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) set_side(d, i, values[i].text);
  } else if (values.size() > side_.size()) {
    note(severity::note, rows_.number(),
         "the row of " + d.label + " has " + std::to_string(values.size()) +
             " values behind its cells, but the header " + std::to_string(side_.size()) +
             " columns; the values are passed over");
  } else if (rest.find('\t') != std::string_view::npos) {
    std::vector<std::string_view> fields;
    for (std::size_t start = rest.find('\t'); start != std::string_view::npos;) {
      const std::size_t end = rest.find('\t', start + 1);
      fields.push_back(trimmed(rest.substr(start + 1, end == std::string_view::npos ? end : end - start - 1)));
      start = end;
    }
    // nvidia-smi sets one tab more before the GPU NUMA ID.
    if (fields.size() == side_.size() + 1 && side_.back() == side_column::gpu_numa && fields[fields.size() - 2].empty())
      fields.erase(fields.end() - 2);
    for (std::size_t i = 0; i < fields.size() && i < side_.size(); ++i) set_side(d, i, fields[i]);
  } else {
    std::size_t from = 0;
    for (const word& value : values) {
      std::size_t best = from;
      const auto off = [&](std::size_t i) {
        return side_starts_[i] > value.column ? side_starts_[i] - value.column : value.column - side_starts_[i];
      };
      for (std::size_t i = from; i < side_.size(); ++i)
        if (off(i) < off(best)) best = i;
      if (best >= side_.size()) break;
      set_side(d, best, value.text);
      from = best + 1;
    }
  }
}

template <class Deferred>
void matrix_reader<Deferred>::set_side(matrix_device& d, std::size_t column, std::string_view value) {
  if (value.empty() || value == "N/A" || side_[column] == side_column::other) return;
  if (!is_list(value)) {
    note(severity::note, rows_.number(),
         "\"" + std::string(value) + "\" in an affinity column of " + d.label + " is no list of numbers; passed over");
    return;
  }
  std::string& to = side_[column] == side_column::processors ? d.cpu_affinity
                    : side_[column] == side_column::numa     ? d.numa_affinity
                                                             : d.gpu_numa_id;
  to = std::string(value);
}

/// "NIC0: mlx5_0"
template <class Deferred>
void matrix_reader<Deferred>::legend(std::string_view row) {
  const std::size_t colon = row.find(':');
  if (colon == std::string_view::npos) return;
  const std::size_t which = row_of(m_.devices, trimmed(row.substr(0, colon)));
  const std::string_view name = trimmed(row.substr(colon + 1));
  if (which == std::string_view::npos || m_.devices[which].gpu || name.empty() ||
      name.find_first_of(" \t/") != std::string_view::npos)
    return;
  m_.devices[which].name = std::string(name);
}

template <class Deferred>
result<void> matrix_reader<Deferred>::complete() {
  std::string gpus, nics, unnamed;
  const auto add = [](std::string& list, const std::string& label) { list += (list.empty() ? "" : ", ") + label; };
  std::size_t rows = 0;
  for (const matrix_device& d : m_.devices) {
    rows += d.has_row ? 1U : 0U;
    if (!d.has_row) add(d.gpu ? gpus : nics, d.label);
    if (!d.gpu && d.name.empty()) add(unnamed, d.label);
    for (const matrix_cell& c : d.cells) m_.peers = m_.peers || c.word >= matrix_word::ok;
  }
  if (rows == 0)
    return fail(errc::malformed_input, file_ + ": the header of a matrix is there, but none of its rows",
                "name the whole output of nvidia-smi topo -m");
  if (understood_ == 0 && !strange_.empty())
    return fail(errc::malformed_input,
                at(strange_.front().second) + "\"" + strange_.front().first +
                    "\" is no class of a path, and no other cell is understood",
                "name the output of nvidia-smi topo -m; classes are NV#, PIX, PXB, PHB, NODE, SYS");
  for (const auto& [text, line] : strange_)
    note(severity::warning, line, "\"" + text + "\" is a class of a path that is not known; taken as not told", {},
         "tell what it means, or look at the PCIe tree with lspci -tv");
  if (!gpus.empty())
    note(severity::warning, 0, "the rows of some GPUs are missing; their cells are taken from the rows of the others",
         gpus, "name the whole output");
  if (!nics.empty())
    note(severity::warning, 0,
         "the rows of some adapters are missing; what the GPUs say of them holds both ways, what lies between them is "
         "not told",
         nics);
  if (!unnamed.empty())
    note(severity::note, 0, "the legend does not name some adapters, so they have only numbers", unnamed);
  return {};
}

}  // namespace detail

template <class>
std::optional<matrix_cell> matrix_cell_of(std::string_view text) {
  struct spelling {
    std::string_view text;
    matrix_word word;
  };
  constexpr spelling spellings[] = {
      {"X", matrix_word::self},       {"PIX", matrix_word::pix},      {"PXB", matrix_word::pxb},
      {"PHB", matrix_word::phb},      {"NODE", matrix_word::node},    {"SYS", matrix_word::sys},
      {"SOC", matrix_word::soc},      {"C2C", matrix_word::c2c},      {"NV", matrix_word::gpu_link},
      {"MX", matrix_word::gpu_link},  {"ICN", matrix_word::gpu_link}, {"XGMI", matrix_word::gpu_link},
      {"OK", matrix_word::ok},        {"CNS", matrix_word::chipset},  {"GNS", matrix_word::gpu},
      {"TNS", matrix_word::topology}, {"NS", matrix_word::no},        {"DR", matrix_word::disabled},
      {"U", matrix_word::unknown},    {"N/A", matrix_word::untold},   {"NA", matrix_word::untold}};
  for (const spelling& s : spellings)
    if (s.text == text) return matrix_cell{s.word, 0};
  for (const std::string_view start : {std::string_view("NV"), std::string_view("MX"), std::string_view("ICN")})
    if (text.size() > start.size() && text.substr(0, start.size()) == start) {
      const auto links = digits_of(text.substr(start.size()), 10);
      if (links && *links > 0 && *links <= 1024)
        return matrix_cell{matrix_word::gpu_link, static_cast<std::uint32_t>(*links)};
    }
  return std::nullopt;
}

template <class>
bool looks_like_nvidia_smi_topo(std::string_view text) {
  detail::text_rows rows(text);
  // Labels are copied: a row with colours lives only until the next one.
  std::vector<std::string> labels;
  int tries = 0;
  while (rows.next()) {
    if (!labels.empty() && tries++ < 4) {
      auto words = detail::words_of(rows.row());
      detail::drop_prefix(words, [&](std::string_view label) {
        return seq::contains(labels, std::string(detail::without_quotes(label)));
      });
      if (words.empty()) continue;
      const auto row = seq::find(labels, detail::without_quotes(words.front().text));
      const std::size_t self = static_cast<std::size_t>(row - labels.begin());
      if (row != labels.end() && self + 1 < words.size() && words[self + 1].text == "X") return true;
    }
    const detail::matrix_header h = detail::header_of(rows.row());
    if (h.labels.empty() || h.labels.size() > most_matrix_devices) continue;
    labels.assign(h.labels.begin(), h.labels.end());
    tries = 0;
  }
  return false;
}

template <class>
result<nvidia_smi_topo> parse_nvidia_smi_topo(std::string_view text, std::string_view file) {
  return detail::matrix_reader<>(text, file).read();
}

}}}  // namespace topocoll::v0::read
