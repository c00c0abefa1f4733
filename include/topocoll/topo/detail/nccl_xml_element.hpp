// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements of an NCCL topology file, and what NCCL's parser can take.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

// Limits of NCCL 2.28, graph/xml.h: MAX_STR_LEN, MAX_ATTR_COUNT, MAX_SUBS. Its parser does not check the length of values.
inline constexpr std::size_t nccl_text_length = 255;
inline constexpr std::size_t nccl_attributes = 16;
inline constexpr std::size_t nccl_children = 128;

struct nccl_element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<nccl_element> children;
  bool kept = false;  ///< a GPU or an adapter: NCCL keeps it and what is above it
};

/// Whether NCCL reads the value as it is written. It ends at the quote, entities are not replaced, and XML wants '<' and '&'
/// replaced.
[[nodiscard]] constexpr bool is_nccl_value(std::string_view value) {
  if (value.size() > nccl_text_length) return false;
  for (const char c : value)
    if (c == '"' || c == '<' || c == '&' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return true;
}
/// Letters, digits, '_', '-' and '.', first a letter or '_'.
[[nodiscard]] constexpr bool is_nccl_name(std::string_view name) {
  if (name.empty() || name.size() > nccl_text_length) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.') return false;
  }
  return !(name.front() >= '0' && name.front() <= '9') && name.front() != '-' && name.front() != '.';
}

/// The number that `text` consists of, decimal or with 0x, after an optional sign, as strtol reads it; empty for anything
/// else and for more than 15 digits.
[[nodiscard]] constexpr std::optional<std::int64_t> plain_number(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  if (hex) text.remove_prefix(2);
  if (text.empty() || text.size() > 15) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    const char low = static_cast<char>(c | 0x20);
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(hex && low >= 'a' && low <= 'f')) return std::nullopt;
    value = value * (hex ? 16 : 10) + (digit ? c - '0' : low - 'a' + 10);
  }
  return negative ? -value : value;
}

/// PCIe generation of a link speed in the spellings of kernels, clouds and NCCL: "8 GT/s", "8.0 GT/s PCIe"; 0 for others.
[[nodiscard]] constexpr std::uint32_t generation_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
  text = text.substr(0, end);
  if (text.find('.') != std::string_view::npos) {
    while (text.back() == '0') text.remove_suffix(1);
    if (text.back() == '.') text.remove_suffix(1);
  }
  constexpr std::string_view rates[] = {"2.5", "5", "8", "16", "32", "64", "128"};
  for (std::uint32_t i = 0; i < 7; ++i)
    if (text == rates[i]) return i + 1;
  return 0;
}
/// As Linux 5 writes it and NCCL's table (graph/topo.cc, kvDictPciGen) has it. Generation 1 to 7.
[[nodiscard]] constexpr const char* speed_of(std::uint32_t generation) {
  constexpr const char* texts[] = {"",
                                   "2.5 GT/s PCIe",
                                   "5.0 GT/s PCIe",
                                   "8.0 GT/s PCIe",
                                   "16.0 GT/s PCIe",
                                   "32.0 GT/s PCIe",
                                   "64.0 GT/s PCIe",
                                   "128.0 GT/s PCIe"};
  return texts[generation <= 7 ? generation : 0];
}
/// Raw rate of one lane in bytes per second, as `pcie_line_rate` of discover/link_rates.hpp.
[[nodiscard]] constexpr double lane_rate(std::uint32_t generation) {
  constexpr double rates[] = {0,
                              2.5e9 / 10,
                              5e9 / 10,
                              8e9 / 8 * 128 / 130,
                              16e9 / 8 * 128 / 130,
                              32e9 / 8 * 128 / 130,
                              64e9 / 8 * 242 / 256,
                              128e9 / 8 * 242 / 256};
  return rates[generation <= 7 ? generation : 0];
}

/// "0-2,5" as "27": a list of CPUs as the mask that the kernel and NCCL write, words of 32 bits, most significant first.
/// Empty for a list that is none, or reaches beyond 2048 CPUs, whose mask NCCL could not read.
template <class = void>
[[nodiscard]] std::string mask_of(std::string_view list) {
  constexpr std::size_t most = 2048;
  std::vector<std::uint32_t> words;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    const std::size_t dash = range.find('-', 1);
    const auto first = plain_number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : plain_number(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= static_cast<std::int64_t>(most)) return {};
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) {
      const auto word = static_cast<std::size_t>(cpu / 32);
      if (words.size() <= word) words.resize(word + 1, 0);
      words[word] |= 1U << static_cast<unsigned>(cpu % 32);
    }
  }
  std::string mask;
  for (std::size_t w = words.size(); w-- > 0;) {
    if (!mask.empty()) mask += ',';
    for (int shift = 28; shift >= 0; shift -= 4) mask += "0123456789abcdef"[words[w] >> shift & 15U];
  }
  return mask;
}

/// "248a:0703:00f8:d2c0" as "0x248a070300f8d2c0", which NCCL's strtoull reads; other texts as they are.
template <class = void>
[[nodiscard]] std::string guid_number(std::string_view text) {
  if (text.size() != 19 || text[4] != ':' || text[9] != ':' || text[14] != ':') return std::string(text);
  std::string guid = "0x";
  for (const char c : text)
    if (c != ':') guid += c;
  return guid;
}

/// FNV-1a, 64 bits, of a host's name, as NCCL writes a `host_hash`.
template <class = void>
[[nodiscard]] std::string hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // offset basis and prime: draft-eastlake-fnv
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15U];
  return text;
}

template <class = void>
[[nodiscard]] std::size_t count_elements(const nccl_element& e) {
  std::size_t n = 1;
  for (const nccl_element& child : e.children) n += count_elements(child);
  return n;
}
/// Drops `<pci>` and `<nic>` that lead to no GPU and no adapter; gives how many elements that were.
template <class = void>
std::size_t trim(nccl_element& e) {
  std::size_t dropped = 0;
  std::vector<nccl_element> left;
  const auto is_branch = [](const nccl_element& c) { return c.name == "pci" || c.name == "nic"; };
  for (nccl_element& child : e.children) {
    dropped += trim(child);
    bool leads = child.kept || !is_branch(child);
    for (const nccl_element& below : child.children) leads = leads || is_branch(below);  // those that are left do
    if (leads)
      left.push_back(std::move(child));
    else
      dropped += count_elements(child);
  }
  e.children = std::move(left);
  return dropped;
}

/// Appends an element with all below it; `unsupported` for what NCCL could not read.
template <class = void>
[[nodiscard]] result<void> write_element(const nccl_element& e, std::size_t depth, std::string& text) {
  const auto who = [&] {
    std::string name = "<" + e.name;
    if (!e.attributes.empty()) name += ' ' + e.attributes.front().first + "=\"" + e.attributes.front().second + '"';
    return name + ">";
  };
  if (e.children.size() > nccl_children)
    return fail(errc::unsupported, who() + " would have " + std::to_string(e.children.size()) +
                                       " elements inside; NCCL reads " + std::to_string(nccl_children));
  text.append(2 * depth, ' ').append(1, '<').append(e.name);
  for (const auto& [name, value] : e.attributes) {
    if (!is_nccl_value(value))
      return fail(
          errc::unsupported,
          name + " of " + who() + " cannot be written: " +
              (value.size() > nccl_text_length
                   ? "it has " + std::to_string(value.size()) + " characters, NCCL reads " +
                         std::to_string(nccl_text_length)
                   : std::string("it holds a quote, '<', '&' or a control character, and NCCL reads no entities")));
    text.append(1, ' ').append(name).append("=\"").append(value).append(1, '"');
  }
  if (e.children.empty()) {
    text += "/>\n";
    return {};
  }
  text += ">\n";
  for (const nccl_element& child : e.children)
    if (auto ok = write_element(child, depth + 1, text); !ok) return ok.error();
  text.append(2 * depth, ' ').append("</").append(e.name).append(">\n");
  return {};
}

}}}}  // namespace topocoll::v0::topo::detail
