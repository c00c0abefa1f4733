// SPDX-License-Identifier: Apache-2.0
#pragma once
// How read/iblinkinfo.hpp understands its rows.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/read/detail/ib_rows.hpp>
#include <topocoll/read/detail/ib_text.hpp>
#include <topocoll/read/iblinkinfo.hpp>

namespace topocoll { inline namespace v0 { namespace read {
namespace detail {

[[nodiscard]] constexpr ib_state ib_state_named(std::string_view word) {
  if (word.substr(0, 4) == "Down") return ib_state::down;
  if (word.substr(0, 4) == "Init") return ib_state::initialize;
  if (word.substr(0, 3) == "Arm") return ib_state::armed;
  if (word.substr(0, 3) == "Act") return ib_state::active;
  return ib_state::unknown;
}

/// "12X" and "25.78125 Gbps" of "Could be 12X Could be 25.78125 Gbps", or the name of a speed.
template <class = void>
void read_could_be(std::string_view remark, ib_port& p) {
  constexpr std::string_view words = "Could be ";
  for (std::size_t at = remark.find(words); at != std::string_view::npos; at = remark.find(words, at + 1)) {
    const std::string_view what = remark.substr(at + words.size());
    std::size_t n = 0;
    while (n < what.size() && is_digit(what[n])) ++n;
    if (n > 0 && n < what.size() && (what[n] == 'X' || what[n] == 'x')) {
      p.best_width = digits_of(what.substr(0, n), 10).value_or(0) <= 64
                         ? static_cast<std::uint32_t>(digits_of(what.substr(0, n), 10).value_or(0))
                         : 0;
      continue;
    }
    const std::size_t end = what.find(' ');
    p.best_speed = ib_speed_named(what.substr(0, end));
    if (p.best_speed == ib_speed::unknown) p.best_speed = ib_speed_of_lane(leading_number(what).value_or(0));
  }
}

/// What stands between `==(` and `)==>`: ` 4X 53.125 Gbps Active/  LinkUp`, ` Down/ Polling`, with `(FDR10)` after the rate
/// of that speed, and with what -p appends in a second pair of parentheses. False when there is no state.
template <class = void>
[[nodiscard]] bool read_link_state(std::string_view text, ib_port& p) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view before = trimmed(text.substr(0, slash));
  std::string_view after = trimmed(text.substr(slash + 1));
  if (const std::size_t end = after.find_first_of(") \t"); end != std::string_view::npos) after = after.substr(0, end);
  p.physical = std::string(after);
  const std::size_t blank = before.find_last_of(" \t)");
  p.state = ib_state_named(before.substr(blank == std::string_view::npos ? 0 : blank + 1));
  if (p.state == ib_state::unknown) return false;
  text_words words(before);
  if (const auto width = words.take_number(64); width && (words.take("X") || words.take("x"))) {
    p.width = *width;
    const std::string_view rest = words.rest();
    p.speed = rest.find("FDR10") != std::string_view::npos ? ib_speed::fdr10 : ib_speed_named(words.take_word());
    if (p.speed == ib_speed::unknown) p.speed = ib_speed_of_lane(leading_number(rest).value_or(0));
  }
  return true;
}

/// `12 7[ext]`: LID, port, and the number printed on the box, if it has another. False when it breaks off.
template <class = void>
[[nodiscard]] bool read_lid_and_port(text_words& words, ib_row_end& end) {
  const auto lid = words.take_number(65535);
  const auto port = words.take_number(255);
  if (!lid || !port || !words.take("[")) return false;
  end.lid = *lid;
  end.port = *port;
  (void)words.take_number();
  return words.take("]");
}

/// Where the row's device is named: in the row itself or in the heading above it.
struct link_heading {
  ib_kind kind = ib_kind::unknown;
  std::optional<std::uint64_t> guid;
  std::string_view name;
  std::uint32_t line = 0;
};

/// `Switch: 0x… name:` or `CA: name:`.
template <class = void>
[[nodiscard]] std::optional<link_heading> link_heading_of(std::string_view line) {
  text_words words(line);
  link_heading h;
  if (words.take("Switch:"))
    h.kind = ib_kind::switch_device;
  else if (words.take("CA:"))
    h.kind = ib_kind::channel_adapter;
  else if (words.take("Router:") || words.take("RT:"))
    h.kind = ib_kind::router;
  else
    return std::nullopt;
  if (!words.at_end() && words.rest().substr(0, 2) == "0x") h.guid = words.take_guid();
  h.name = trimmed(words.rest());
  if (!h.name.empty() && h.name.back() == ':') h.name = trimmed(h.name.substr(0, h.name.size() - 1));
  return h;
}

/// A row, or nothing when it breaks off. `under` becomes none for rows that name their own device.
template <class = void>
[[nodiscard]] std::optional<ib_row> link_row_of(std::string_view line, const link_heading& under) {
  const std::size_t open = line.find("==(");
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = line.find(")==>", open);
  if (close == std::string_view::npos) return std::nullopt;
  ib_row row;
  ib_row_end& here = row.here;
  text_words words(line.substr(0, open));
  here.kind = under.kind;
  here.name = under.name;
  here.guid = under.guid;
  if (!words.at_end() && words.rest().substr(0, 2) == "0x") {
    here.guid = words.take_guid();
    if (!here.guid) return std::nullopt;
    if (!words.at_end() && words.rest().front() == '"') {
      const auto name = words.take_quoted_to_last();
      if (!name) return std::nullopt;
      here.name = trimmed(*name);
      here.kind = ib_kind::unknown;
    }
  }
  if (!read_lid_and_port(words, here) || !words.at_end()) return std::nullopt;
  if (!read_link_state(line.substr(open + 3, close - open - 3), row.port)) return std::nullopt;

  text_words far(line.substr(close + 4));
  if (!far.at_end() && far.rest().substr(0, 2) == "0x") {
    row.there.guid = far.take_guid();
    if (!row.there.guid) return std::nullopt;
  }
  if (!far.take("[")) {
    if (!read_lid_and_port(far, row.there)) return std::nullopt;
    row.cabled = true;
  } else {
    (void)far.take_number();
    if (!far.take("]")) return std::nullopt;
  }
  if (far.at_end()) return row;
  // The description ends where the remark in parentheses begins; both may hold quotes and parentheses.
  const std::string_view rest = far.rest();
  if (rest.front() != '"') return std::nullopt;
  std::size_t end = rest.rfind("\" (");
  if (end == std::string_view::npos) end = rest.rfind('"');
  if (end == 0) return std::nullopt;
  row.there.name = trimmed(rest.substr(1, end - 1));
  std::string_view remark = trimmed(rest.substr(end + 1));
  if (!remark.empty() && remark.front() == '(') remark.remove_prefix(1);
  if (!remark.empty() && remark.back() == ')') remark.remove_suffix(1);
  remark = trimmed(remark);
  row.port.remark = std::string(remark);
  read_could_be(remark, row.port);
  return row;
}

}  // namespace detail

template <class>
bool looks_like_iblinkinfo(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  std::string kept;
  text = detail::plain_text(text.substr(0, std::size_t{1} << 16U), kept);
  detail::text_lines lines(text);
  for (int looked = 0; looked < 400 && lines.next(); ++looked) {
    const std::string_view line = lines.line();
    if (line.find("==(") != std::string_view::npos && detail::link_row_of(line, {})) return true;
  }
  return false;
}

template <class>
result<ib_fabric> parse_iblinkinfo(std::string_view text, std::string_view file) {
  std::string kept;
  text = detail::plain_text(text, kept);
  std::vector<detail::ib_row> rows;
  detail::odd_lines odd;
  detail::link_heading under;
  detail::text_lines lines(text);
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (line.empty() || line.front() == '#') continue;
    const auto broken = [&] {
      return detail::bad_line(file, lines.number(), line,
                              "a row such as 12 1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==> 7 3[  ] \"leaf1\" ( )");
    };
    if (line.find("==(") == std::string_view::npos) {
      if (auto heading = detail::link_heading_of(line)) {
        under = *heading;
        under.line = lines.number();
      } else if (line.find("[  ]") != std::string_view::npos) {
        return broken();
      } else {
        odd.add(lines.number(), line);
      }
      continue;
    }
    auto row = detail::link_row_of(line, under);
    if (!row) return broken();
    row->port.line = lines.number();
    if (!row->here.guid && row->here.lid == 0)
      return detail::bad_line(file, lines.number(), line, "a heading, a GUID or a LID that tells whose port this is");
    if (row->here.name.data() != under.name.data()) under = {};
    if (row->here.port != 0) rows.push_back(std::move(*row));
  }
  if (rows.empty())
    return fail(errc::malformed_input, std::string(file) + ": no row of a port in it", "give what `iblinkinfo` prints");
  ib_fabric f = detail::ib_row_fabric<>(rows).run(file);
  odd.report(file, f.findings);
  // Where the tool has nothing to remark, a link that is up runs at the best that both ends can.
  for (ib_device& d : f.devices)
    for (ib_port& p : d.ports) {
      if (!p.told || !p.peer || p.width == 0 || p.speed == ib_speed::unknown) continue;
      if (p.best_width == 0) p.best_width = p.width;
      if (p.best_speed == ib_speed::unknown) p.best_speed = p.speed;
    }
  return f;
}

}}}  // namespace topocoll::v0::read
