// SPDX-License-Identifier: Apache-2.0
#pragma once
// How read/ibnetdiscover.hpp tells the forms of a listing apart.
#include <string>
#include <string_view>
#include <topocoll/read/detail/ib_text.hpp>
#include <topocoll/read/detail/ibnetdiscover_list.hpp>
#include <topocoll/read/detail/ibnetdiscover_records.hpp>
#include <topocoll/read/ibnetdiscover.hpp>

namespace topocoll { inline namespace v0 { namespace read {

template <class>
bool looks_like_ibnetdiscover(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  detail::text_lines lines(text);
  for (int looked = 0; looked < 400 && lines.next();) {
    const std::string_view line = lines.line();
    if (line.empty() || line.front() == '#') continue;
    ++looked;
    if (detail::ib_record_start_of(line) || detail::ib_listed_port(line) || detail::ib_listed_node(line)) return true;
  }
  return false;
}

template <class>
result<ib_fabric> parse_ibnetdiscover(std::string_view text, std::string_view file) {
  std::string kept;
  text = detail::plain_text(text, kept);
  detail::text_lines lines(text);
  while (lines.next())
    if (detail::ib_listed_port(lines.line()))
      return detail::read_port_list(text, file);
    else if (detail::ib_record_start_of(lines.line()))
      break;
  return detail::ibnetdiscover_reader<>(file).read(text);
}

}}}  // namespace topocoll::v0::read
