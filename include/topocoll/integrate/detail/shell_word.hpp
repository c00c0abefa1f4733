// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts of strangers in shell files.
#include <string>
#include <string_view>

namespace topocoll { inline namespace v0 { namespace detail {

/// As a word of a shell: in single quotes where the shell would read more into it.
[[nodiscard]] inline std::string shell_word(std::string_view value) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  if (!value.empty() && value.find_first_not_of(plain) == std::string_view::npos) return std::string(value);
  std::string word = "'";
  for (const char c : value) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

/// On one line, for comments.
[[nodiscard]] inline std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return line;
}

}}}  // namespace topocoll::v0::detail
