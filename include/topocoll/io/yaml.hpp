// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a YAML text into plain values by means of libyaml; failures name file, line and reason.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/io/value_tree.hpp>

#if !__has_include(<yaml.h>)
#error "topocoll/io/yaml.hpp needs libyaml (Debian: libyaml-dev)"
#endif
#include <yaml.h>

namespace topocoll { inline namespace v0 { namespace io {

/// What a text may cost. `values` counts what aliases repeat, so a small text cannot grow without bound.
struct yaml_limits {
  std::size_t text_bytes = std::size_t{32} << 20U;
  std::size_t values = 2000000;
  std::uint32_t depth = 64;
};

/// Parses a text that holds one YAML document. Keys are scalars and unique; aliases are replaced by what they stand for;
/// tags are not interpreted.
/// @param origin  name of the file, for failures
/// @return `malformed_input` for a text that is empty, not YAML, holds a second document, a key that is no scalar or that
///         appears twice, or an alias of what is not there yet; `unsupported` beyond a limit.
///         Cost: O(n log n); memory about twenty times the text.
[[nodiscard]] result<value> parse_yaml(std::string_view text, std::string_view origin, const yaml_limits& limits = {});

namespace detail {

/// libyaml's parser, and the event that it gave last.
class yaml_events {
 public:
  explicit yaml_events(std::string_view text) {
    good_ = yaml_parser_initialize(&parser_) != 0;
    const char* first = text.data() != nullptr ? text.data() : "";  // libyaml asserts that there is a text
    if (good_) yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(first), text.size());
  }
  yaml_events(const yaml_events&) = delete;
  yaml_events& operator=(const yaml_events&) = delete;
  ~yaml_events() {
    drop();
    if (good_) yaml_parser_delete(&parser_);
  }

  /// False when there is no next event because the text is not YAML.
  [[nodiscard]] bool next() {
    drop();
    full_ = good_ && yaml_parser_parse(&parser_, &event_) != 0;
    return full_;
  }
  [[nodiscard]] const yaml_event_t& event() const { return event_; }
  [[nodiscard]] std::uint32_t line() const { return static_cast<std::uint32_t>(event_.start_mark.line) + 1; }
  [[nodiscard]] std::uint32_t problem_line() const {
    const std::size_t line = parser_.problem != nullptr ? parser_.problem_mark.line : parser_.mark.line;
    return static_cast<std::uint32_t>(line) + 1;
  }
  [[nodiscard]] std::string problem() const {
    if (!good_ || parser_.error == YAML_MEMORY_ERROR) return "it does not fit into memory";
    return parser_.problem != nullptr ? parser_.problem : "it cannot be read";
  }

 private:
  void drop() {
    if (full_) yaml_event_delete(&event_);
    full_ = false;
  }

  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool good_ = false;
  bool full_ = false;
};

/// A scalar as libyaml gives it.
[[nodiscard]] inline std::string yaml_text(const unsigned char* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

/// Builds the value from the events, without recursion.
class yaml_builder {
 public:
  yaml_builder(std::string_view text, std::string_view origin, const yaml_limits& limits)
      : events_(text), file_(origin), limits_(limits) {}

  [[nodiscard]] result<value> run() {
    bool done = false;
    for (;;) {
      if (!events_.next())
        return fail(errc::malformed_input,
                    file_ + " line " + std::to_string(events_.problem_line()) + ": not YAML: " + events_.problem());
      const yaml_event_t& e = events_.event();
      result<void> ok;
      switch (e.type) {
        case YAML_STREAM_END_EVENT:
          if (!done) return fail(errc::malformed_input, file_ + " is empty", "give a file that holds a YAML document");
          return std::move(root_);
        case YAML_DOCUMENT_START_EVENT:
          if (done) return refuse("a second document begins, but the file may hold one");
          break;
        case YAML_DOCUMENT_END_EVENT: done = true; break;
        case YAML_SCALAR_EVENT: ok = scalar(e); break;
        case YAML_ALIAS_EVENT: ok = alias(e); break;
        case YAML_SEQUENCE_START_EVENT: ok = open(value_kind::list, e.data.sequence_start.anchor); break;
        case YAML_MAPPING_START_EVENT: ok = open(value_kind::map, e.data.mapping_start.anchor); break;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT: ok = close(); break;
        case YAML_STREAM_START_EVENT:
        case YAML_NO_EVENT: break;
      }
      if (!ok) return std::move(ok).error();
    }
  }

 private:
  /// A value that is being built, or was: how many values it holds with itself, and how deep it goes.
  struct part {
    value made;
    std::string anchor;
    std::size_t values = 1;
    std::uint32_t depth = 1;
    bool has_key = false;  ///< of an open map: `key` waits for its value
    std::string key;
    std::uint32_t key_line = 0;
    bool copied = false;  ///< stands for an alias
  };

  [[nodiscard]] failure refuse(const std::string& why) const {
    return fail(errc::malformed_input, file_ + " line " + std::to_string(events_.line()) + ": " + why);
  }
  [[nodiscard]] static std::string text_of(const unsigned char* name) {
    return name == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(name));
  }

  [[nodiscard]] result<void> scalar(const yaml_event_t& e) {
    std::string text = yaml_text(e.data.scalar.value, e.data.scalar.length);
    const bool plain = e.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!open_.empty() && open_.back().made.kind == value_kind::map && !open_.back().has_key) {
      if (e.data.scalar.anchor != nullptr) return refuse("the key '" + text + "' has an anchor");
      open_.back().has_key = true;
      open_.back().key = std::move(text);
      open_.back().key_line = events_.line();
      return {};
    }
    part p;
    p.made.line = events_.line();
    p.made.quoted = !plain;
    p.made.kind = plain && (text.empty() || text == "~" || text == "null") ? value_kind::none : value_kind::text;
    if (p.made.kind == value_kind::text) p.made.text = std::move(text);
    p.anchor = text_of(e.data.scalar.anchor);
    return add(std::move(p));
  }

  [[nodiscard]] result<void> open(value_kind kind, const unsigned char* anchor) {
    if (!open_.empty() && open_.back().made.kind == value_kind::map && !open_.back().has_key)
      return refuse("a key is " + std::string(to_string(kind)) + ", not a name");
    if (open_.size() + 1 > limits_.depth) return too_deep();
    part p;
    p.made.kind = kind;
    p.made.line = events_.line();
    p.anchor = text_of(anchor);
    open_.push_back(std::move(p));
    return {};
  }

  [[nodiscard]] result<void> close() {
    part p = std::move(open_.back());
    open_.pop_back();
    if (p.made.kind == value_kind::map) {
      std::vector<std::uint32_t> order(p.made.items.size());
      for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      const std::vector<value>& items = p.made.items;
      seq::sort(order, [&](std::uint32_t a, std::uint32_t b) { return items[a].key < items[b].key; });
      for (std::size_t i = 1; i < order.size(); ++i)
        if (items[order[i]].key == items[order[i - 1]].key)
          return fail(errc::malformed_input, file_ + " line " + std::to_string(items[order[i]].line) + ": the key '" +
                                                 items[order[i]].key + "' appears twice, first on line " +
                                                 std::to_string(items[order[i - 1]].line));
    }
    return add(std::move(p));
  }

  [[nodiscard]] result<void> alias(const yaml_event_t& e) {
    const std::string name = text_of(e.data.alias.anchor);
    if (!open_.empty() && open_.back().made.kind == value_kind::map && !open_.back().has_key)
      return refuse("a key is the alias '*" + name + "', not a name");
    // The last one of a name counts.
    for (std::size_t i = anchored_.size(); i > 0; --i)
      if (anchored_[i - 1].anchor == name) {
        if (anchored_[i - 1].values > limits_.values - total_) return too_many();
        part p = anchored_[i - 1];
        p.anchor.clear();
        p.copied = true;
        p.made.line = events_.line();
        return add(std::move(p));
      }
    return refuse("the alias '*" + name + "' stands for nothing that came before");
  }

  /// A finished value goes into the one that is open.
  [[nodiscard]] result<void> add(part p) {
    total_ += p.copied ? p.values : 1;  // of others, what they hold was counted when it came
    if (total_ > limits_.values) return too_many();
    if (open_.size() + p.depth > limits_.depth + std::size_t{1}) return too_deep();
    if (!p.anchor.empty()) {
      if (anchored_.size() >= 1024)  // keeps the search for aliases short
        return fail(errc::unsupported, file_ + " has more than 1024 anchors");
      if (p.values > limits_.values - total_) return too_many();
      total_ += p.values;  // the copy that is kept
      anchored_.push_back(p);
    }
    if (open_.empty()) {
      root_ = std::move(p.made);
      return {};
    }
    part& above = open_.back();
    above.values += p.values;
    if (p.depth + 1 > above.depth) above.depth = p.depth + 1;
    if (above.made.kind == value_kind::map) {
      p.made.key = std::move(above.key);
      p.made.line = above.key_line;
      above.has_key = false;
    }
    above.made.items.push_back(std::move(p.made));
    return {};
  }

  [[nodiscard]] failure too_deep() const {
    return fail(errc::unsupported, file_ + " line " + std::to_string(events_.line()) +
                                       ": lists and maps nest deeper than " + std::to_string(limits_.depth));
  }
  [[nodiscard]] failure too_many() const {
    return fail(errc::unsupported, file_ + " holds more than " + std::to_string(limits_.values) + " values");
  }

  yaml_events events_;
  std::string file_;
  yaml_limits limits_;
  value root_;
  std::vector<part> open_, anchored_;
  std::size_t total_ = 0;
};

}  // namespace detail

inline result<value> parse_yaml(std::string_view text, std::string_view origin, const yaml_limits& limits) {
  if (text.size() > limits.text_bytes)
    return fail(errc::unsupported, std::string(origin) + " has " + std::to_string(text.size()) +
                                       " bytes; a YAML text may have " + std::to_string(limits.text_bytes));
  return detail::yaml_builder(text, origin, limits).run();
}

}}}  // namespace topocoll::v0::io
