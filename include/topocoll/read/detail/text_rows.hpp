// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows and words of tables that programs print for people: tabs or blanks, colours, any line ends.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topocoll { inline namespace v0 { namespace read { namespace detail {

/// Gives the lines of a text one after the other, without line ends and terminal colours. Cost: O(text) in all.
class text_rows {
 public:
  explicit text_rows(std::string_view text) : rest_(text) {
    if (rest_.substr(0, 3) == "\xef\xbb\xbf") rest_.remove_prefix(3);
  }
  /// The next line, or false at the end.
  [[nodiscard]] bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    row_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    while (!row_.empty() && row_.back() == '\r') row_.remove_suffix(1);
    ++number_;
    if (row_.find('\x1b') != std::string_view::npos) {
      plain_ = without_colours(row_);
      row_ = plain_;
    }
    return true;
  }
  /// Valid until the next call of `next`.
  [[nodiscard]] std::string_view row() const { return row_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// True when nothing but blanks and empty lines follows.
  [[nodiscard]] bool last() const { return rest_.find_first_not_of(" \t\r\n") == std::string_view::npos; }

 private:
  /// Leaves out what ECMA-48 calls control sequences: ESC [, parameters, one letter.
  [[nodiscard]] static std::string without_colours(std::string_view row) {
    std::string out;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] != '\x1b') {
        out += row[i];
        continue;
      }
      if (i + 1 < row.size() && row[i + 1] == '[')
        for (i += 2; i < row.size() && (row[i] < '@' || row[i] > '~'); ++i) {
        }
    }
    return out;
  }

  std::string_view rest_, row_;
  std::string plain_;
  std::uint32_t number_ = 0;
};

/// A word of a row, and the column in which a terminal shows it (tab stops every eight).
struct word {
  std::string_view text;
  std::size_t column = 0;
};

/// Words between blanks and tabs. Cost: O(row).
template <class = void>
[[nodiscard]] std::vector<word> words_of(std::string_view row) {
  std::vector<word> words;
  std::size_t column = 0;
  std::size_t start = std::string_view::npos;
  std::size_t start_column = 0;
  for (std::size_t i = 0; i <= row.size(); ++i) {
    const bool blank = i == row.size() || row[i] == ' ' || row[i] == '\t';
    if (blank && start != std::string_view::npos) {
      words.push_back({row.substr(start, i - start), start_column});
      start = std::string_view::npos;
    } else if (!blank && start == std::string_view::npos) {
      start = i;
      start_column = column;
    }
    column = i < row.size() && row[i] == '\t' ? column / 8 * 8 + 8 : column + 1;
  }
  return words;
}

/// `text` without the marks that stand before a quoted row: quotes, comment signs, prompts.
[[nodiscard]] constexpr std::string_view without_quotes(std::string_view text) {
  while (!text.empty() && (text.front() == '\'' || text.front() == '"' || text.front() == '`' || text.front() == '#' ||
                           text.front() == '>' || text.front() == '|'))
    text.remove_prefix(1);
  return text;
}

}}}}  // namespace topocoll::v0::read::detail
