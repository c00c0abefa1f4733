// SPDX-License-Identifier: Apache-2.0
#pragma once
// An XML text as plain elements: names, attributes in order, children, and the line that each began on.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topocoll { inline namespace v0 { namespace io {

/// One name="value" of an element; the value has its entities replaced.
struct xml_attribute {
  std::string name;
  std::string value;
};

/// One element. Comments, processing instructions and blanks between elements are not kept.
struct xml_element {
  std::string name;
  std::uint32_t line = 0;  ///< line of the opening tag, from 1; 0 when the element was not read from a text
  std::vector<xml_attribute> attributes;  ///< in the order of the text; names are unique
  std::vector<xml_element> children;
  std::string text{};  ///< character data directly inside, pieces between child elements joined

  /// Value of the attribute `wanted`, or null. Cost: O(attributes).
  [[nodiscard]] const std::string* find(std::string_view wanted) const {
    for (const xml_attribute& a : attributes)
      if (a.name == wanted) return &a.value;
    return nullptr;
  }
};

}}}  // namespace topocoll::v0::io
