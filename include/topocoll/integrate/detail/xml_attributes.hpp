// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attributes of XML elements: fetched with failures that name file and line, and written so that they read back.
#include <optional>
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/io/xml_tree.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Fetches attributes of one element; the first that is missing or wrong is kept as the failure.
class xml_attributes {
 public:
  xml_attributes(const io::xml_element& element, std::string_view file) : element_(element), file_(file) {}

  /// The text of an attribute; null, with a complaint, where there is none.
  [[nodiscard]] const std::string* text(std::string_view name) {
    const std::string* value = element_.find(name);
    if (value == nullptr) complain("lacks the attribute " + std::string(name));
    return value;
  }
  [[nodiscard]] std::string_view word(std::string_view name) {
    const std::string* value = text(name);
    return value == nullptr ? std::string_view{} : std::string_view(*value);
  }
  [[nodiscard]] bool has(std::string_view name) const { return element_.find(name) != nullptr; }
  void complain(const std::string& what) {
    if (wrong_) return;
    wrong_ = fail(errc::malformed_input,
                  std::string(file_) + " line " + std::to_string(element_.line) + ": <" + element_.name + "> " + what);
  }
  /// Complains of a value, which is cut to a readable length.
  void complain_of(std::string_view name, std::string_view value, const std::string& what) {
    complain("has " + std::string(name) + "=\"" + std::string(value.substr(0, 40)) + "\"" + what);
  }
  [[nodiscard]] const std::optional<failure>& wrong() const { return wrong_; }

 private:
  const io::xml_element& element_;
  std::string_view file_;
  std::optional<failure> wrong_;
};

/// ` name="value"`. What a reader would take for markup or turn into a blank is written as a reference.
[[nodiscard]] inline std::string xml_attribute(const char* name, std::string_view value) {
  std::string text = std::string(" ") + name + "=\"";
  for (const char c : value) {
    if (c == '&' || c == '<' || c == '"' || c == '\t' || c == '\n' || c == '\r')
      text += "&#" + std::to_string(static_cast<int>(c)) + ';';
    else
      text += c;
  }
  return text + '"';
}

}}}  // namespace topocoll::v0::detail
