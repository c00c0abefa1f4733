// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns, shares and amounts as an explanation writes them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Rows of cells in columns that are as wide as they must be; columns in `right` are aligned to the right.
template <class = void>
class columns {
 public:
  explicit columns(std::string_view right) : right_(right) {}  // 'r' or 'l' per column
  void add(std::vector<std::string> cells) {
    if (width_.size() < cells.size()) width_.resize(cells.size(), 0);
    for (std::size_t i = 0; i + 1 < cells.size() || (i < cells.size() && right_at(i)); ++i)
      width_[i] = std::max(width_[i], cells[i].size());
    rows_.push_back(std::move(cells));
  }
  void write(std::string& to, std::string_view indent = "") const {
    for (const auto& cells : rows_) {
      std::string line(indent);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string space(width_[i] > cells[i].size() ? width_[i] - cells[i].size() : 0, ' ');
        line +=
            (i == 0 ? "" : "  ") + (right_at(i) ? space + cells[i] : cells[i] + (i + 1 < cells.size() ? space : ""));
      }
      line.erase(line.find_last_not_of(' ') + 1);
      to += line + '\n';
    }
  }

 private:
  [[nodiscard]] bool right_at(std::size_t i) const { return i < right_.size() && right_[i] == 'r'; }
  std::string_view right_;
  std::vector<std::size_t> width_;
  std::vector<std::vector<std::string>> rows_;
};

/// "23 %", "0.4 %".
template <class = void>
[[nodiscard]] std::string percent(double share) {
  const double value = share * 100;
  if (value >= 9.95) return std::to_string(static_cast<std::int64_t>(value + 0.5)) + " %";
  const auto tenths = static_cast<std::int64_t>(value * 10 + 0.5);
  if (tenths == 0 && value > 1e-6) return "below 0.1 %";
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " %";
}

/// An amount to three digits, for columns: "15.9 MiB", "896 MiB".
template <class = void>
[[nodiscard]] std::string about(bytes amount) {
  constexpr const char* names[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(amount.value);
  while (unit < 6 && value >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  return (unit == 0 ? std::to_string(amount.value) : topocoll::detail::three_digits(value)) + names[unit];
}

template <class = void>
[[nodiscard]] const char* in_words(link_class c) {
  constexpr const char* words[] = {"between GPUs", "PCIe",        "between sockets", "host memory",   "inside NICs",
                                   "NIC to leaf",  "leaf to NIC", "leaf to spine",   "spine to leaf", "spine to core"};
  return words[static_cast<std::size_t>(c)];
}

}}}}  // namespace topocoll::v0::plan::detail
