// SPDX-License-Identifier: Apache-2.0
#pragma once
// A YAML or TOML text as plain values: scalars, lists, maps, and the line that each began on.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topocoll { inline namespace v0 { namespace io {

/// What a value is. A plain YAML scalar has no type of its own, so numbers there are `text` that is not `quoted`.
enum class value_kind : std::uint8_t { none, text, number, boolean, list, map };

/// One value; entries of a map carry their key.
struct value {
  value_kind kind = value_kind::none;
  std::string key;           ///< under which it stands in a map; empty elsewhere
  std::string text;          ///< of text, numbers ("3", "0.5") and booleans ("true", "false")
  bool quoted = false;       ///< a text that was written in quotes or as a block
  std::uint32_t line = 0;    ///< from 1, of the key if there is one; 0 when it was not read from a text
  std::vector<value> items;  ///< of lists and maps, in the order of the text; keys are unique

  /// The entry `wanted` of a map, or null. Cost: O(entries).
  [[nodiscard]] const value* find(std::string_view wanted) const {
    if (kind == value_kind::map)
      for (const value& v : items)
        if (v.key == wanted) return &v;
    return nullptr;
  }
};

/// "a list", "a text", … for failures.
[[nodiscard]] constexpr const char* to_string(value_kind k) {
  switch (k) {
    case value_kind::none: return "nothing";
    case value_kind::text: return "a text";
    case value_kind::number: return "a number";
    case value_kind::boolean: return "true or false";
    case value_kind::list: return "a list";
    case value_kind::map: return "a map";
  }
  return "";
}

}}}  // namespace topocoll::v0::io
