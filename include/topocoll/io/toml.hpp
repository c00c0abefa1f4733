// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a TOML text into plain values by means of toml++; failures name file, line and reason.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/io/value_tree.hpp>

#if !__has_include(<toml++/toml.h>)
#error "topocoll/io/toml.hpp needs toml++ (Debian: libtomlplusplus-dev)"
#endif
#include <toml++/toml.h>

namespace topocoll { inline namespace v0 { namespace io {

/// What a text may cost: far above any file written by hand.
struct toml_limits {
  std::size_t text_bytes = std::size_t{4} << 20U;
  std::uint32_t dots_of_a_key = 16;  ///< each dot of a.b.c is one level of nesting
  std::uint32_t depth = 64;
};

/// Parses a UTF-8 text (TOML 1.0). Tables become maps whose entries stand in the order of the text, arrays become lists,
/// dates become texts.
/// @param origin  name of the file, for failures
/// @return `malformed_input` with the line for what is not TOML; `unsupported` beyond a limit or for an infinite number.
///         Cost: O(n log n). Works with TOML_EXCEPTIONS 0 and 1.
template <class = void>
[[nodiscard]] result<value> parse_toml(std::string_view text, std::string_view origin, const toml_limits& limits = {});

namespace detail {

/// Walks over a text before toml++ sees it: stops what nests too deep (toml++ recurses, and 3.3 counts no dots), and what 3.3
/// answers with an assertion: table headers that begin with no name, brackets that do not match. The rest is for toml++.
class toml_screen {
 public:
  toml_screen(std::string_view text, const std::string& file, const toml_limits& limits)
      : text_(text), file_(file), limits_(limits) {}

  [[nodiscard]] result<void> run() {
    while (at_ < text_.size()) {
      if (blank(text_[at_])) {
        ++at_;
        continue;
      }
      if (text_[at_] == '\n') {
        ++line_;
        ++at_;
        continue;
      }
      open_.clear();
      if (text_[at_] == '[')
        if (auto ok = header(); !ok) return ok;
      if (auto ok = statement(); !ok) return ok;
    }
    return {};
  }

 private:
  [[nodiscard]] static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  [[nodiscard]] static bool in_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  [[nodiscard]] std::string place() const { return file_ + " line " + std::to_string(line_); }

  [[nodiscard]] result<void> header() {
    for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] == '['; ++i, ++at_) open_ += '[';
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (in_key(c) || c == '"' || c == '\'' || c == ']') return {};
    return fail(errc::malformed_input, place() + ": not TOML: a table header has no name after its '['");
  }

  /// Up to the end of the line on which every bracket is closed.
  [[nodiscard]] result<void> statement() {
    std::uint32_t dots = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        if (open_.empty()) return {};
        ++line_;
      } else if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c == '"' || c == '\'') {
        skip_text(c);
        continue;
      } else if (c == '[' || c == '{') {
        open_ += c;
        if (open_.size() > limits_.depth)
          return fail(errc::unsupported,
                      place() + ": tables and arrays nest deeper than " + std::to_string(limits_.depth));
      } else if (c == ']' || c == '}') {
        if (open_.empty() || open_.back() != (c == ']' ? '[' : '{'))
          return fail(errc::malformed_input, place() + ": not TOML: a '" + std::string(1, c) + "' that closes nothing");
        open_.pop_back();
      } else if (c == '.') {
        if (++dots > limits_.dots_of_a_key)
          return fail(errc::unsupported,
                      place() + ": a key has more than " + std::to_string(limits_.dots_of_a_key) + " dots");
        continue;
      }
      if (!in_key(c) && !blank(c)) dots = 0;
    }
    return {};
  }

  /// Leaves `at_` on the last quote of a text, or of what is not closed.
  void skip_text(char quote) {
    const bool block = text_.size() - at_ >= 3 && text_[at_ + 1] == quote && text_[at_ + 2] == quote;
    for (at_ += block ? 3 : 1; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        if (!block) {
          --at_;  // toml++ says that the text is not closed
          return;
        }
        ++line_;
      }
      if (c == '\\' && quote == '"') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
        continue;
      }
      if (c != quote) continue;
      if (!block) return;
      if (text_.size() - at_ >= 3 && text_[at_ + 1] == quote && text_[at_ + 2] == quote) {
        at_ += 2;
        // Up to two quotes may stand before the closing three.
        while (at_ + 1 < text_.size() && text_[at_ + 1] == quote) ++at_;
        return;
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  toml_limits limits_;
  std::string open_;  ///< brackets that are open
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

/// Shortest text that reads back as the same number.
[[nodiscard]] inline std::string toml_number(double number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  return {digits, static_cast<std::size_t>(end.ptr - digits)};
}

/// One toml++ node as a value without its items.
template <class = void>
[[nodiscard]] result<value> toml_scalar(const toml::node& n, const std::string& file) {
  value v;
  v.line = static_cast<std::uint32_t>(n.source().begin.line);
  switch (n.type()) {
    case toml::node_type::table: v.kind = value_kind::map; break;
    case toml::node_type::array: v.kind = value_kind::list; break;
    case toml::node_type::string:
      v.kind = value_kind::text;
      v.quoted = true;
      v.text = n.as_string()->get();
      break;
    case toml::node_type::integer:
      v.kind = value_kind::number;
      v.text = std::to_string(n.as_integer()->get());
      break;
    case toml::node_type::floating_point: {
      const double number = n.as_floating_point()->get();
      if (!(number - number == 0))
        return fail(errc::unsupported, file + " line " + std::to_string(v.line) + ": a number is not finite");
      v.kind = value_kind::number;
      v.text = toml_number(number);
      break;
    }
    case toml::node_type::boolean:
      v.kind = value_kind::boolean;
      v.text = n.as_boolean()->get() ? "true" : "false";
      break;
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      v.kind = value_kind::text;
      v.text = "a date or time";
      break;
    case toml::node_type::none: break;
  }
  return v;
}

/// The whole document, at most `depth` levels of it.
template <class = void>
[[nodiscard]] result<value> toml_value(const toml::node& n, const std::string& file, std::uint32_t depth) {
  auto made = toml_scalar(n, file);
  if (!made) return made;
  if (depth == 0 && made->kind >= value_kind::list)
    return fail(errc::unsupported, file + " line " + std::to_string(made->line) + ": tables and arrays nest too deep");
  if (const toml::table* table = n.as_table()) {
    for (const auto& [key, child] : *table) {
      auto item = toml_value(child, file, depth - 1);
      if (!item) return item;
      item->key = std::string(key.str());
      if (key.source().begin.line != 0) item->line = static_cast<std::uint32_t>(key.source().begin.line);
      made->items.push_back(std::move(*item));
    }
    // toml++ sorts keys; people wrote them in an order.
    seq::sort_by(made->items, &value::line);
  } else if (const toml::array* array = n.as_array()) {
    for (const toml::node& child : *array) {
      auto item = toml_value(child, file, depth - 1);
      if (!item) return item;
      made->items.push_back(std::move(*item));
    }
  }
  return made;
}

[[nodiscard]] inline failure not_toml(const toml::parse_error& why, const std::string& file) {
  return fail(errc::malformed_input, file + " line " + std::to_string(why.source().begin.line) +
                                         ": not TOML: " + std::string(why.description()));
}

}  // namespace detail

template <class>
result<value> parse_toml(std::string_view text, std::string_view origin, const toml_limits& limits) {
  const std::string file(origin);
  if (text.size() > limits.text_bytes)
    return fail(errc::unsupported, file + " has " + std::to_string(text.size()) + " bytes; a TOML text may have " +
                                       std::to_string(limits.text_bytes));
  std::string_view body = text;
  if (body.substr(0, 3) == "\xef\xbb\xbf") body.remove_prefix(3);
  if (auto ok = detail::toml_screen(body, file, limits).run(); !ok) return std::move(ok).error();
#if TOML_EXCEPTIONS
  try {
    const toml::table table = toml::parse(text, origin);
    return detail::toml_value(table, file, limits.depth);
  } catch (const toml::parse_error& why) {
    return detail::not_toml(why, file);
  }
#else
  const toml::parse_result parsed = toml::parse(text, origin);
  if (!parsed) return detail::not_toml(parsed.error(), file);
  return detail::toml_value(parsed.table(), file, limits.depth);
#endif
}

}}}  // namespace topocoll::v0::io
