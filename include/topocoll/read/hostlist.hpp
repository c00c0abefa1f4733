// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host lists as Slurm and MPI launchers write them, "node[001-016],login[1,3-4]-ib": to names and back.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Names that one list may stand for. Sixteen times the hosts of the largest machine on the Top500 list (under 2^16 in
/// 2026), and about 64 MB of memory: a list such as "n[0-999999999]" is a few bytes long.
inline constexpr std::size_t most_hosts = std::size_t{1} << 20U;
/// Letters of one name. Source: RFC 1035, section 2.3.4: 255 octets with their lengths, so 253 letters.
inline constexpr std::size_t longest_host_name = 253;

/// One piece of a list: "node[001-016]" has the prefix "node".
struct hostlist_piece {
  std::string_view text;    ///< as written
  std::string_view prefix;  ///< before the first bracket; the whole text when there is none
};

/// The pieces of a list: what commas outside brackets separate. Blanks around pieces and empty pieces do not matter.
/// @return `malformed_input` for a bracket that is not closed, opened twice, or closed without being open. Linear.
template <class = void>
[[nodiscard]] result<std::vector<hostlist_piece>> hostlist_pieces(std::string_view list);

/// The names that a list stands for, in its order; names given twice come twice.
///
/// A bracket holds numbers and ranges separated by commas; numbers keep the width of the lower end ("[08-11]" is 08 to 11).
/// A name may have several brackets; the last one counts fastest. Brackets may be followed by text.
/// @param limit  names that may come out; the rest is refused before anything is built
/// @return `malformed_input` with the piece and the reason; `unsupported` beyond `limit`, `longest_host_name`, or 16
///         brackets in one name. Cost: linear in what is written and what comes out.
template <class = void>
[[nodiscard]] result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t limit = most_hosts);

/// The shortest usual list that stands for these names in this order: neighbours that differ in their last number share a
/// bracket, numbers that follow each other become a range. `expand_hostlist` gives the names back, as long as names of
/// hosts can look like that. Sort them by `host_order` first when their order does not matter. Linear.
template <class = void>
[[nodiscard]] std::string compress_hostlist(std::span<const std::string> names);

/// True when `a` comes before `b` as people count: numbers inside names by their value, so "n2" before "n10".
template <class = void>
[[nodiscard]] bool host_order(std::string_view a, std::string_view b);

namespace detail {

/// What names of hosts, switches and adapters are made of. ':' is for addresses, '+' for adapters that work as one.
[[nodiscard]] constexpr bool is_name_letter(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
         c == ':' || c == '+' || c == '%' || c == '@';
}

/// One range of a bracket; the names are `first` to `last`, at least `width` digits each.
struct number_range {
  std::uint64_t first = 0, last = 0;
  std::size_t width = 0;
};

/// A number with leading zeros up to `width`.
inline void append_padded(std::string& to, std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  if (digits.size() < width) to.append(width - digits.size(), '0');
  to += digits;
}

/// A piece taken apart: text, bracket, text, bracket, …, text.
struct hostlist_pattern {
  std::vector<std::string_view> texts;  // one more than brackets
  std::vector<std::vector<number_range>> brackets;
  std::size_t names = 1;
};

[[nodiscard]] inline failure bad_piece(std::string_view piece, const std::string& why) {
  return fail(errc::malformed_input, "the host list '" + std::string(piece.substr(0, 80)) + "' " + why,
              "write for example node[01-16],login[1,3]");
}

template <class = void>
[[nodiscard]] result<number_range> range_of(std::string_view text, std::string_view piece) {
  text = trimmed(text);
  const std::size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : text.substr(dash + 1);
  constexpr std::size_t most_digits = 18;  // fits into 63 bits
  const auto first = low.size() <= most_digits ? digits_of(low, 10) : std::nullopt;
  const auto last = high.size() <= most_digits ? digits_of(high, 10) : std::nullopt;
  if (!first || !last)
    return bad_piece(piece, "has '" + std::string(text.substr(0, 40)) +
                                "' in brackets, which is neither a number nor a range of up to 18 digits");
  if (*first > *last) return bad_piece(piece, "has a range that runs backwards: '" + std::string(text) + "'");
  if (high.size() > low.size() && high[0] == '0')
    return bad_piece(piece, "has a range whose ends are padded differently: '" + std::string(text) + "'");
  return number_range{*first, *last, low.size()};
}

template <class = void>
[[nodiscard]] result<hostlist_pattern> pattern_of(std::string_view piece, std::size_t limit) {
  hostlist_pattern p;
  std::string_view rest = piece;
  for (;;) {
    const std::size_t open = rest.find('[');
    p.texts.push_back(rest.substr(0, open));
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find(']', open);
    std::string_view inside = rest.substr(open + 1, close - open - 1);
    rest.remove_prefix(close + 1);
    if (p.brackets.size() == 16)
      return fail(errc::unsupported,
                  "the host list '" + std::string(piece.substr(0, 80)) + "' has more than 16 brackets in one name");
    p.brackets.emplace_back();
    std::uint64_t count = 0;
    for (;;) {
      const std::size_t comma = inside.find(',');
      auto range = range_of(inside.substr(0, comma), piece);
      if (!range) return std::move(range).error();
      p.brackets.back().push_back(*range);
      const std::uint64_t more = range->last - range->first;
      if (more >= limit || (count += more + 1) > limit) {
        count = limit + 1;
        break;
      }
      if (comma == std::string_view::npos) break;
      inside.remove_prefix(comma + 1);
    }
    if (count > limit || p.names * count > limit)  // both are at most 2^20 or what the caller chose
      return fail(errc::unsupported,
                  "the host list '" + std::string(piece.substr(0, 80)) + "' stands for more than " +
                      std::to_string(limit) + " names",
                  "check the range");
    p.names *= static_cast<std::size_t>(count);
  }
  for (const std::string_view text : p.texts)
    for (const char c : text)
      if (!is_name_letter(c))
        return bad_piece(piece,
                         c == ' ' || c == '\t' ? "has a blank inside a name" : "has a character that no host name has");
  return p;
}

/// A name cut at its last number: "rack1-node07.ib" is "rack1-node", "07", ".ib".
struct numbered_name {
  std::string_view prefix, digits, suffix;
};
[[nodiscard]] inline numbered_name last_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1]) && end - begin < 18) --begin;
  if (begin == end) return {name, {}, {}};
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

/// Whether `digits` is what follows `number` in a range whose lower end has `width` digits.
[[nodiscard]] inline bool follows(std::uint64_t number, std::size_t width, std::string_view digits) {
  std::string wanted;
  append_padded(wanted, number + 1, width);
  return wanted == digits;
}

}  // namespace detail

template <class>
result<std::vector<hostlist_piece>> hostlist_pieces(std::string_view list) {
  std::vector<hostlist_piece> pieces;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    const bool last = i == list.size();
    if (c == '[') {
      if (inside) return detail::bad_piece(list.substr(begin), "has a bracket inside a bracket");
      inside = true;
    } else if (c == ']') {
      if (!inside) return detail::bad_piece(list.substr(begin), "closes a bracket that is not open");
      inside = false;
    } else if (c == ',' && (!inside || last)) {
      if (inside) return detail::bad_piece(list.substr(begin), "has a bracket that is not closed");
      const std::string_view text = trimmed(list.substr(begin, i - begin));
      if (!text.empty()) pieces.push_back({text, text.substr(0, text.find('['))});
      begin = i + 1;
    }
  }
  return pieces;
}

template <class>
result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t limit) {
  const auto pieces = hostlist_pieces(list);
  if (!pieces) return pieces.error();
  std::vector<std::string> names;
  for (const hostlist_piece& piece : *pieces) {
    const auto pattern = detail::pattern_of(piece.text, limit);
    if (!pattern) return pattern.error();
    if (pattern->names > limit - names.size())
      return fail(errc::unsupported,
                  "the host list '" + std::string(list.substr(0, 80)) + "' stands for more than " +
                      std::to_string(limit) + " names",
                  "check its ranges");
    // An odometer: the range and the number that each bracket stands at.
    std::vector<std::pair<std::size_t, std::uint64_t>> at;
    for (const auto& bracket : pattern->brackets) at.emplace_back(0, bracket[0].first);
    for (;;) {
      std::string& name = names.emplace_back(pattern->texts[0]);
      for (std::size_t b = 0; b < at.size(); ++b) {
        detail::append_padded(name, at[b].second, pattern->brackets[b][at[b].first].width);
        name += pattern->texts[b + 1];
      }
      if (name.size() > longest_host_name)
        return fail(errc::unsupported, "the host list '" + std::string(piece.text.substr(0, 80)) +
                                           "' has a name of more than " + std::to_string(longest_host_name) +
                                           " letters");
      std::size_t b = at.size();
      while (b > 0) {
        const auto& bracket = pattern->brackets[b - 1];
        auto& [range, number] = at[b - 1];
        if (number < bracket[range].last) {
          ++number;
          break;
        }
        if (range + 1 < bracket.size()) {
          number = bracket[++range].first;
          break;
        }
        range = 0;
        number = bracket[0].first;
        --b;
      }
      if (b == 0) break;
    }
  }
  return names;
}

template <class>
std::string compress_hostlist(std::span<const std::string> names) {
  std::string list;
  for (std::size_t first = 0; first < names.size();) {
    const detail::numbered_name like = detail::last_number(names[first]);
    std::string inside;
    std::size_t end = first;
    while (end < names.size()) {
      const detail::numbered_name low = detail::last_number(names[end]);
      if (end > first && (low.digits.empty() || low.prefix != like.prefix || low.suffix != like.suffix)) break;
      std::uint64_t number = digits_of(low.digits, 10).value_or(0);
      std::size_t last = end;
      while (!low.digits.empty() && last + 1 < names.size()) {
        const detail::numbered_name next = detail::last_number(names[last + 1]);
        if (next.prefix != like.prefix || next.suffix != like.suffix ||
            !detail::follows(number, low.digits.size(), next.digits))
          break;
        ++number;
        ++last;
      }
      if (!inside.empty()) inside += ',';
      inside += low.digits;
      if (last > end) inside.append(1, '-').append(detail::last_number(names[last]).digits);
      end = last + 1;
      if (low.digits.empty()) break;
    }
    if (!list.empty()) list += ',';
    if (end == first + 1)
      list += names[first];
    else
      list.append(like.prefix).append(1, '[').append(inside).append(1, ']').append(like.suffix);
    first = end;
  }
  return list;
}

template <class>
bool host_order(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto number = [](std::string_view text, std::size_t& at) {
    while (at < text.size() && text[at] == '0') ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = number(a, i);
      const std::string_view y = number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
    ++i;
    ++j;
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;  // equal but for zeros in front of numbers
}

}}}  // namespace topocoll::v0::read
