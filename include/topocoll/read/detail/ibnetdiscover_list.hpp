// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of the lists of ibnetdiscover: of ports (-p), with both ends of each cable, and of nodes (-l).
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/read/detail/ib_rows.hpp>
#include <topocoll/read/detail/ib_text.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read { namespace detail {

inline constexpr std::uint32_t most_port_number = 255;  // a port number has 8 bits in every management packet

/// A row of `ibnetdiscover -l`: `Switch : 0x… ports 36 devid 0xcb20 vendid 0x2c9 "description"`.
template <class = void>
[[nodiscard]] std::optional<ib_device> ib_listed_node(std::string_view line) {
  text_words words(line);
  const std::string_view word = words.take_word();
  ib_device d;
  if (word == "Switch")
    d.kind = ib_kind::switch_device;
  else if (word == "Ca")
    d.kind = ib_kind::channel_adapter;
  else if (word == "Rt" || word == "Router")
    d.kind = ib_kind::router;
  else
    return std::nullopt;
  if (!words.take(":")) return std::nullopt;
  d.guid = words.take_guid();
  if (!d.guid || !words.take("ports")) return std::nullopt;
  d.port_count = words.take_number(65535);
  if (!d.port_count || !words.take("devid")) return std::nullopt;
  const auto product = words.take_guid();
  if (!product || !words.take("vendid")) return std::nullopt;
  const auto vendor = words.take_guid();
  const auto description = words.take_quoted_to_last();
  if (!vendor || !description) return std::nullopt;
  d.product = static_cast<std::uint32_t>(*product & 0xffffffffU);
  d.vendor = static_cast<std::uint32_t>(*vendor & 0xffffffffU);
  d.description = std::string(trimmed(*description));
  return d;
}

/// "4xHDR", or "4x" and "HDR" in a row of the port list. Leaves the port as it is when there is none.
template <class = void>
void read_ib_rate(text_words& words, ib_port& port) {
  text_words look = words;
  const auto width = look.take_number(64);
  if (!width || look.rest().empty() || look.rest().front() != 'x') return;
  if (!look.take("x")) return;
  port.width = *width;
  words = look;
  const std::string_view word = look.take_word();
  if (const ib_speed speed = ib_speed_named(word); speed != ib_speed::unknown) port.speed = speed;
  if (port.speed != ib_speed::unknown || word.substr(0, 1) == "?") words = look;
}

/// A row of `ibnetdiscover -p`: kind, LID, port, GUID, width, speed, and the same of the far end before both descriptions.
template <class = void>
[[nodiscard]] bool read_listed_end(text_words& words, ib_row_end& end) {
  const std::string_view kind = words.take_word();
  if (kind == "CA")
    end.kind = ib_kind::channel_adapter;
  else if (kind == "SW")
    end.kind = ib_kind::switch_device;
  else if (kind == "RT")
    end.kind = ib_kind::router;
  else
    return false;
  const auto lid = words.take_number(65535);
  const auto port = words.take_number(most_port_number);
  if (!lid || !port || words.at_end() || words.rest().substr(0, 2) != "0x") return false;
  end.lid = *lid;
  end.port = *port;
  end.guid = words.take_guid();
  return end.guid.has_value();
}
template <class = void>
[[nodiscard]] std::optional<ib_row> ib_listed_port(std::string_view line) {
  text_words words(line);
  ib_row row;
  if (!read_listed_end(words, row.here)) return std::nullopt;
  const std::size_t before = words.rest().size();
  read_ib_rate(words, row.port);
  if (words.rest().size() == before) {  // "??" for a width that the tool does not know
    if (!words.take("?")) return std::nullopt;
    (void)words.take_word();
    (void)words.take_word();
  }
  if (words.take("-")) {
    row.cabled = true;
    if (!read_listed_end(words, row.there) || !words.take("(")) return std::nullopt;
    const std::string_view names = words.rest();
    const std::size_t first = names.find('\'');
    const std::size_t middle = names.find("' - '");
    const std::size_t last = names.rfind('\'');
    if (first == std::string_view::npos || middle == std::string_view::npos || middle < first || last < middle + 5)
      return std::nullopt;
    row.here.name = trimmed(names.substr(first + 1, middle - first - 1));
    row.there.name = trimmed(names.substr(middle + 5, last - middle - 5));
    return row;
  }
  const auto name = words.take_quoted_to_last('\'');
  if (!name) return std::nullopt;
  row.here.name = trimmed(*name);
  return row;
}

template <class = void>
[[nodiscard]] result<ib_fabric> read_port_list(std::string_view text, std::string_view file) {
  std::vector<ib_row> rows;
  odd_lines odd;
  text_lines lines(text);
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (line.empty() || line.front() == '#') continue;
    auto row = ib_listed_port(line);
    if (row) {
      row->port.line = lines.number();
      if (row->here.port != 0) rows.push_back(std::move(*row));
      continue;
    }
    const std::string_view kind = line.substr(0, 3);
    if (kind == "CA " || kind == "SW " || kind == "RT ")
      return bad_line(file, lines.number(), line,
                      "a port such as SW 12 3 0x0002c903000a1b2c 4x EDR - CA 7 1 0x… ( 'a' - 'b' )");
    odd.add(lines.number(), line);
  }
  ib_fabric f = ib_row_fabric<>(rows).run(file);
  odd.report(file, f.findings);
  return f;
}

}}}}  // namespace topocoll::v0::read::detail
