// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON behind a few functions: parse with limits, write, and fetch typed fields with failures that name the place.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <nlohmann/json.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// A JSON value; objects keep the order in which their fields were written.
using json = nlohmann::ordered_json;

/// Deepest nesting that is read unless the caller says otherwise; no format of ours goes beyond ten.
inline constexpr std::size_t default_json_depth = 32;

/// Reads one JSON text (RFC 8259: no comments, UTF-8).
///
/// Strict where readers differ: a name may appear once in an object, numbers must be finite, nothing may follow.
/// @param where  what the text is, for failures: a path
/// @return `malformed_input` with line and column, or with the JSON pointer of a name that appears twice; `unsupported`
///         for more than `depth` nested arrays and objects. Cost: O(n log k) for objects of k fields.
template <class = void>
[[nodiscard]] result<json> parse_json(std::string_view text, std::string_view where,
                                      std::size_t depth = default_json_depth);

/// The value as text, a field a line, ending in a newline. Numbers read back as the same numbers. What is not UTF-8 in a
/// text becomes U+FFFD, because JSON has no way to write it.
template <class = void>
[[nodiscard]] std::string to_text(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

/// A place in a document, for failures: with `json_place top("a.json")` and `nodes = top / "nodes"`, the text of `nodes / 3`
/// is "a.json: /nodes/3".
///
/// A place refers to the one that it was made from, which must outlive it; hence it is not made from a temporary. Nothing
/// is written until `text` is called.
class json_place {
 public:
  explicit json_place(std::string_view document) : name_(document) {}
  [[nodiscard]] json_place operator/(std::string_view field) const& { return {this, field, none}; }
  [[nodiscard]] json_place operator/(std::size_t index) const& { return {this, {}, index}; }
  json_place operator/(std::string_view field) const&& = delete;
  json_place operator/(std::size_t index) const&& = delete;

  /// "document: /pointer", the pointer as in RFC 6901, or "document" for the whole.
  [[nodiscard]] std::string text() const {
    const std::string pointer = steps();
    const json_place* top = this;
    while (top->parent_ != nullptr) top = top->parent_;
    return pointer.empty() ? std::string(top->name_) : std::string(top->name_) + ": " + pointer;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  json_place(const json_place* parent, std::string_view name, std::size_t index)
      : parent_(parent), name_(name), index_(index) {}
  [[nodiscard]] std::string steps() const {
    if (parent_ == nullptr) return {};
    std::string step = parent_->steps() + '/';
    if (index_ != none) return step + std::to_string(index_);
    for (const char c : name_) step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return step;
  }

  const json_place* parent_ = nullptr;
  std::string_view name_;
  std::size_t index_ = none;
};

/// The field `name` of `object`, or null when `object` is not an object, has no such field, or the field is null.
template <class = void>
[[nodiscard]] const json* find_field(const json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  for (const auto& [key, value] : object.get_ref<const json::object_t&>())
    if (key == name) return value.is_null() ? nullptr : &value;
  return nullptr;
}

/// A value as `T`: bool, an integer, double, std::string. @return `malformed_input` when it is of another type or, for an
/// integer, does not fit
template <class T>
[[nodiscard]] result<T> read_value(const json& value, const json_place& at);

/// A field that must be there, as `T`; `*` of it is a copy. @return as `read_value`, also for an absent field
template <class T>
[[nodiscard]] result<T> read_field(const json& object, std::string_view name, const json_place& at);

/// A field that may be absent or null.
template <class T>
[[nodiscard]] result<std::optional<T>> read_optional(const json& object, std::string_view name, const json_place& at);

/// A field that must be an array. The pointer lives as long as `object`.
template <class = void>
[[nodiscard]] result<const json*> read_array(const json& object, std::string_view name, const json_place& at);

/// A field that must be an object.
template <class = void>
[[nodiscard]] result<const json*> read_object(const json& object, std::string_view name, const json_place& at);

/// Version N of a document whose "schema" is "<name>/N", 1 to `newest`.
/// @return `malformed_input` for another schema or none; `unsupported` for a newer version, with both numbers
template <class = void>
[[nodiscard]] result<std::uint32_t> read_schema(const json& document, std::string_view name, std::uint32_t newest,
                                                const json_place& at);

namespace detail {

/// Builds a value from the events of nlohmann's parser; stops at the first thing that is refused.
class json_builder {
 public:
  json_builder(std::string_view text, std::string_view where, std::size_t depth)
      : text_(text), where_(where), depth_(depth) {}

  [[nodiscard]] result<json> take() {
    if (!why_.what.empty()) return std::move(why_);
    return std::move(root_);
  }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool key(std::string& name) {
    name_ = std::move(name);
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool end_object() {
    std::vector<const std::string*> names;
    for (const auto& field : open_.back()->get_ref<const json::object_t&>()) names.push_back(&field.first);
    seq::sort_by(names, [](const std::string* name) -> const std::string& { return *name; });
    for (std::size_t i = 1; i < names.size(); ++i)
      if (*names[i] == *names[i - 1]) {
        why_ = fail(errc::malformed_input, place() + ": the name '" + *names[i] + "' appears twice in one object",
                    "keep one of the two");
        return false;
      }
    open_.pop_back();
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& last, const Exception& reason) {
    // `position` counts the bytes taken so far, so the offending one is before it.
    const std::size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto start = before.rfind('\n');
    const std::size_t column = at - (start == std::string_view::npos ? 0 : start + 1) + 1;
    std::string what = std::string(where_) + ':' + std::to_string(line) + ':' + std::to_string(column) + ": not JSON: ";
    if (at >= text_.size())
      what += text_.empty() ? "the text is empty" : "the text ends too early";
    else if (reason.id == 406)  // nlohmann's number for a number beyond double
      what += "the number " + printable(last) + " is too large";
    else
      what += "unexpected '" + printable(last) + "'";
    why_ = fail(errc::malformed_input, std::move(what), "check that the file is complete and is the one meant");
    return false;
  }

 private:
  template <class Value>
  bool put(Value&& value) {
    add(json(std::forward<Value>(value)));
    return true;
  }
  json* add(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    // emplace() of an ordered object searches first, which would be quadratic; end_object() looks for twins instead.
    auto& fields = static_cast<json::object_t::Container&>(open_.back()->get_ref<json::object_t&>());
    fields.emplace_back(std::move(name_), std::move(value));
    return &fields.back().second;
  }
  bool open(json value) {
    if (open_.size() == depth_) {
      why_ = fail(errc::unsupported,
                  place() + ": arrays and objects are nested more than " + std::to_string(depth_) + " deep",
                  "check that this is the right file");
      return false;
    }
    open_.push_back(add(std::move(value)));
    return true;
  }
  /// Where the innermost open value is. Each value of `open_` is the last of the one before it.
  [[nodiscard]] std::string place() const {
    std::string pointer;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      pointer += '/';
      if (open_[i]->is_array())
        pointer += std::to_string(open_[i]->size() - 1);
      else
        pointer += open_[i]->get_ref<const json::object_t&>().back().first;
    }
    return std::string(where_) + (pointer.empty() ? "" : ": " + pointer);
  }
  [[nodiscard]] static std::string printable(std::string_view token) {
    std::string shown;
    for (const char c : token.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
    return shown;
  }

  std::string_view text_, where_;
  std::size_t depth_;
  json root_;
  std::vector<json*> open_;  // the last item of a container does not move while it is open
  std::string name_;
  failure why_;
};

template <class T>
[[nodiscard]] constexpr const char* json_word() {
  if constexpr (std::same_as<T, bool>)
    return "true or false";
  else if constexpr (std::unsigned_integral<T>)
    return "a whole number that is not negative";
  else if constexpr (std::signed_integral<T>)
    return "a whole number";
  else if constexpr (std::floating_point<T>)
    return "a number";
  else
    return "a text";
}

template <class = void>
[[nodiscard]] failure wrong_type(const json& value, const char* wanted, const json_place& at) {
  return fail(errc::malformed_input,
              at.text() + " is " + (value.is_null() ? "null" : value.type_name()) + ", not " + wanted);
}

template <class = void>
[[nodiscard]] failure lacks_field(const json& object, std::string_view name, const json_place& at) {
  if (!object.is_object()) return wrong_type(object, "an object", at);
  return fail(errc::malformed_input, at.text() + " has no field '" + std::string(name) + "'");
}

}  // namespace detail

template <class>
result<json> parse_json(std::string_view text, std::string_view where, std::size_t depth) {
  detail::json_builder builder(text, where, depth);
  static_cast<void>(json::sax_parse(text.begin(), text.end(), &builder));
  return builder.take();
}

template <class T>
result<T> read_value(const json& value, const json_place& at) {
  if constexpr (std::same_as<T, bool>) {
    if (const auto* held = value.get_ptr<const json::boolean_t*>()) return *held;
  } else if constexpr (std::integral<T>) {
    if (const auto* held = value.get_ptr<const json::number_unsigned_t*>()) {
      if (*held <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(*held);
      return fail(errc::malformed_input, at.text() + " is " + std::to_string(*held) + ", more than " +
                                             std::to_string(std::numeric_limits<T>::max()));
    }
    if constexpr (std::signed_integral<T>)
      if (const auto* held = value.get_ptr<const json::number_integer_t*>())
        if (*held >= std::numeric_limits<T>::min() && *held <= std::numeric_limits<T>::max())
          return static_cast<T>(*held);
  } else if constexpr (std::floating_point<T>) {
    if (value.is_number()) return value.get<T>();
  } else {
    static_assert(std::same_as<T, std::string>, "JSON fields are bool, integers, double or std::string");
    if (const auto* held = value.get_ptr<const std::string*>()) return *held;
  }
  return detail::wrong_type(value, detail::json_word<T>(), at);
}

template <class T>
result<T> read_field(const json& object, std::string_view name, const json_place& at) {
  const json* value = find_field(object, name);
  if (value == nullptr) return detail::lacks_field(object, name, at);
  return read_value<T>(*value, at / name);
}

template <class T>
result<std::optional<T>> read_optional(const json& object, std::string_view name, const json_place& at) {
  const json* value = find_field(object, name);
  if (value == nullptr) return std::optional<T>{};
  auto read = read_value<T>(*value, at / name);
  if (!read) return std::move(read).error();
  return std::optional<T>{std::move(*read)};
}

template <class>
result<const json*> read_array(const json& object, std::string_view name, const json_place& at) {
  const json* value = find_field(object, name);
  if (value == nullptr) return detail::lacks_field(object, name, at);
  if (!value->is_array()) return detail::wrong_type(*value, "an array", at / name);
  return value;
}

template <class>
result<const json*> read_object(const json& object, std::string_view name, const json_place& at) {
  const json* value = find_field(object, name);
  if (value == nullptr) return detail::lacks_field(object, name, at);
  if (!value->is_object()) return detail::wrong_type(*value, "an object", at / name);
  return value;
}

template <class>
result<std::uint32_t> read_schema(const json& document, std::string_view name, std::uint32_t newest,
                                  const json_place& at) {
  auto schema = read_field<std::string>(document, "schema", at);
  if (!schema) return std::move(schema).error();
  const std::string prefix = std::string(name) + '/';
  const std::string_view number = std::string_view(*schema).substr(std::min(prefix.size(), schema->size()));
  const bool digits =
      !number.empty() && number.size() <= 9 && number.find_first_not_of("0123456789") == std::string_view::npos;
  if (schema->compare(0, prefix.size(), prefix) != 0 || !digits || number.front() == '0')
    return fail(errc::malformed_input,
                at.text() + ": the schema is '" + *schema + "', not '" + prefix + std::to_string(newest) + "'",
                "check that this is the right file");
  const auto version = static_cast<std::uint32_t>(std::stoul(std::string(number)));
  if (version > newest)
    return fail(errc::unsupported,
                at.text() + ": written in version " + std::to_string(version) + " of " + std::string(name) +
                    ", but this program reads up to version " + std::to_string(newest),
                "use a newer topocoll");
  return version;
}

}}}  // namespace topocoll::v0::io
