// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns that line up, for reports.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace topocoll { inline namespace v0 { namespace probe { namespace detail {

/// Number of characters of a UTF-8 text, for padding.
template <class = void>
[[nodiscard]] std::size_t characters(std::string_view text) {
  std::size_t n = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++n;
  return n;
}

/// A table of texts. Columns whose heading starts with '>' are aligned to the right; the last one is never padded.
class text_table {
 public:
  explicit text_table(std::vector<std::string> headings) : headings_(std::move(headings)) {
    for (std::string& h : headings_) {
      right_.push_back(!h.empty() && h.front() == '>');
      if (right_.back()) h.erase(0, 1);
    }
  }
  void add(std::vector<std::string> row) {
    row.resize(headings_.size());
    rows_.push_back(std::move(row));
  }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Every line starts with `indent`; columns are two blanks apart. Columns without any content are left out.
  [[nodiscard]] std::string text(std::string_view indent = "  ") const {
    std::vector<std::size_t> width(headings_.size(), 0);
    for (std::size_t c = 0; c < headings_.size(); ++c)
      for (const auto& row : rows_) width[c] = std::max(width[c], characters(row[c]));
    for (std::size_t c = 0; c < headings_.size(); ++c)
      if (width[c] > 0) width[c] = std::max(width[c], characters(headings_[c]));
    std::string out;
    const auto line = [&](const std::vector<std::string>& cells) {
      std::string one(indent);
      for (std::size_t c = 0; c < cells.size(); ++c) {
        if (width[c] == 0) continue;
        const std::string padding(width[c] - characters(cells[c]), ' ');
        one += right_[c] ? padding + cells[c] : cells[c] + padding;
        one += "  ";
      }
      while (!one.empty() && one.back() == ' ') one.pop_back();
      out += one + '\n';
    };
    line(headings_);
    for (const auto& row : rows_) line(row);
    return out;
  }

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}}}}  // namespace topocoll::v0::probe::detail
