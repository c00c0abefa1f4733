// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines and words of the tables that InfiniBand tools print.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read { namespace detail {

/// A text without a byte order mark and without terminal sequences (ESC [ … letter), which `kept` holds when there were any.
template <class = void>
[[nodiscard]] std::string_view plain_text(std::string_view text, std::string& kept) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  if (text.find('\x1b') == std::string_view::npos) return text;
  kept.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      kept += text[i];
      continue;
    }
    if (i + 1 >= text.size() || text[i + 1] != '[') continue;
    std::size_t end = i + 2;
    while (end < text.size() && end < i + 32 && text[end] >= ' ' && text[end] < '@') ++end;
    if (end < text.size() && text[end] >= '@' && text[end] <= '~') i = end;
  }
  return kept;
}

/// The lines of a text, without blanks and line ends at their ends.
class text_lines {
 public:
  explicit text_lines(std::string_view text) : rest_(text) {}
  /// False at the end.
  [[nodiscard]] bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  std::string_view rest_, line_;
  std::uint32_t number_ = 0;
};

/// Takes a line apart from its front. Every `take` skips blanks first and takes nothing when it does not find its kind.
class text_words {
 public:
  explicit text_words(std::string_view line) : rest_(line) {}
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool at_end() {
    skip();
    return rest_.empty();
  }
  [[nodiscard]] bool take(std::string_view word) {
    skip();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  /// Decimal digits, at most `most`.
  [[nodiscard]] std::optional<std::uint32_t> take_number(std::uint32_t most = INT32_MAX) {
    skip();
    std::size_t n = 0;
    while (n < rest_.size() && rest_[n] >= '0' && rest_[n] <= '9') ++n;
    const auto value = digits_of(rest_.substr(0, n), 10);
    if (!value || *value > most) return std::nullopt;
    rest_.remove_prefix(n);
    return static_cast<std::uint32_t>(*value);
  }
  /// Up to 16 hexadecimal digits, with or without 0x.
  [[nodiscard]] std::optional<std::uint64_t> take_guid() {
    skip();
    std::string_view text = rest_;
    if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") text.remove_prefix(2);
    std::uint64_t value = 0;
    std::size_t n = 0;
    for (; n < text.size(); ++n) {
      const auto digit = digits_of(text.substr(n, 1), 16);
      if (!digit) break;
      if (n == 16) return std::nullopt;
      value = value << 4U | *digit;
    }
    if (n == 0) return std::nullopt;
    rest_ = text.substr(n);
    return value;
  }
  /// Everything up to the next blank.
  [[nodiscard]] std::string_view take_word() {
    skip();
    std::size_t n = 0;
    while (n < rest_.size() && rest_[n] != ' ' && rest_[n] != '\t') ++n;
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  /// What stands between a quote and the next one.
  [[nodiscard]] std::optional<std::string_view> take_quoted(char quote = '"') {
    skip();
    if (rest_.empty() || rest_.front() != quote) return std::nullopt;
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }
  /// What stands between a quote and the last one of the line: descriptions may hold quotes.
  [[nodiscard]] std::optional<std::string_view> take_quoted_to_last(char quote = '"') {
    skip();
    if (rest_.empty() || rest_.front() != quote) return std::nullopt;
    const std::size_t end = rest_.rfind(quote);
    if (end == 0) return std::nullopt;
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

/// Lines that do not belong to a listing: banners, prompts, messages of the tool. Told as one finding.
class odd_lines {
 public:
  void add(std::uint32_t number, std::string_view line) {
    ++count_;
    if (count_ > 3) return;
    evidence_ += (count_ == 1 ? "line " : "; line ") + std::to_string(number) + ": " + std::string(line.substr(0, 80));
  }
  void report(std::string_view file, std::vector<finding>& out) const {
    if (count_ == 0) return;
    finding f{severity::note,
              std::string(file),
              std::to_string(count_) + (count_ == 1 ? " line is" : " lines are") +
                  " no part of the listing and passed over: banners, prompts, messages of the tool",
              evidence_ + (count_ > 3 ? "; …" : ""),
              {},
              1};
    out.push_back(std::move(f));
  }

 private:
  std::size_t count_ = 0;
  std::string evidence_;
};

/// "file line 7: what stands there is not what was expected".
template <class = void>
[[nodiscard]] failure bad_line(std::string_view file, std::uint32_t number, std::string_view line,
                               const std::string& expected) {
  return fail(errc::malformed_input, std::string(file) + " line " + std::to_string(number) + ": expected " + expected +
                                         ", found \"" + std::string(line.substr(0, 100)) + "\"");
}

}}}}  // namespace topocoll::v0::read::detail
