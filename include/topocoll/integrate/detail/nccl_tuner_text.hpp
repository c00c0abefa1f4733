// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/nccl_tuner_csv.hpp makes, writes and reads rows.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/integrate/nccl_tuner_csv.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// The plug-in's words for the collectives, in the order of `collective_kind`; it does not know all_to_all, gather and scatter.
[[nodiscard]] constexpr std::string_view tuner_word(collective_kind k) {
  constexpr std::string_view words[] = {"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "", "", ""};
  return words[static_cast<std::size_t>(k)];
}
[[nodiscard]] inline std::string any_or(const std::optional<std::uint32_t>& value) {
  return value ? std::to_string(*value) : "-1";
}
[[nodiscard]] constexpr std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace detail

template <class>
tuner_protocol tuner_protocol_for(collective_kind collective, tuner_algorithm algorithm,
                                  const plan::nccl_machine& machine, bytes size) {
  plan::nccl_machine only = machine;
  only.nvls.count = 0;
  if (algorithm == tuner_algorithm::ring)
    only.tree.count = 0;
  else if (algorithm == tuner_algorithm::tree)
    only.ring.intra = only.ring.inter = 1e-6;  // GB/s: the model asks for a ring, but never takes one so slow
  else
    return tuner_protocol::simple;
  const auto found = plan::nccl_predict(only, collective, size);
  if (!found || to_string(found->algorithm) != to_string(algorithm)) return tuner_protocol::simple;
  switch (found->protocol) {
    case plan::library_protocol::ll: return tuner_protocol::ll;
    case plan::library_protocol::ll128: return tuner_protocol::ll128;
    default: return tuner_protocol::simple;
  }
}

template <class>
result<std::vector<tuner_row>> tuner_rows(collective_kind collective, std::span<const tuner_choice> choices,
                                          std::uint32_t nodes, std::uint32_t ranks) {
  if (detail::tuner_word(collective).empty())
    return fail(errc::unsupported, "NCCL's tuner does not choose for " + std::string(to_string(collective)));
  std::vector<tuner_row> rows;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0 && !(choices[i - 1].size < choices[i].size))
      return fail(errc::invalid_argument, "sizes of the choices do not ascend");
    tuner_row row;
    row.collective = collective;
    row.min_bytes = i == 0 ? 0 : choices[i].size.value;
    row.algorithm = choices[i].algorithm;
    row.protocol = choices[i].protocol;
    row.nodes = nodes;
    row.ranks = ranks;
    if (!rows.empty() && rows.back().algorithm == row.algorithm && rows.back().protocol == row.protocol) continue;
    if (!rows.empty()) rows.back().max_bytes = row.min_bytes - 1;
    rows.push_back(row);
  }
  return rows;
}

template <class>
std::string to_tuner_csv(std::span<const tuner_row> rows) {
  std::string text =
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  for (const tuner_row& r : rows)
    text += std::string(detail::tuner_word(r.collective)) + ',' + std::to_string(r.min_bytes) + ',' +
            std::to_string(r.max_bytes) + ',' + std::string(to_string(r.algorithm)) + ',' +
            std::string(to_string(r.protocol)) + ',' + detail::any_or(r.channels) + ',' + detail::any_or(r.nodes) +
            ',' + detail::any_or(r.ranks) + ',' + detail::any_or(r.pipe_ops) + ',' +
            (r.registered ? (*r.registered ? "1" : "0") : "-1") + '\n';
  return text;
}

template <class>
result<std::vector<tuner_row>> read_tuner_csv(std::string_view text, std::string_view file) {
  std::vector<tuner_row> rows;
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view row = detail::without_blanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.empty() || row.front() == '#') continue;
    const auto refuse = [&](const std::string& why) {
      return fail(errc::malformed_input, std::string(file) + " line " + std::to_string(line) + ": " + why);
    };
    if (row.size() > 254) return refuse("the line is longer than the plug-in's 255 characters");
    std::vector<std::string_view> cells;
    for (std::string_view rest = row;;) {
      const std::size_t comma = rest.find(',');
      cells.push_back(detail::without_blanks(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (cells.size() < 8 || cells.size() > 10)
      return refuse("there are " + std::to_string(cells.size()) + " columns instead of 8 to 10");
    tuner_row r;
    bool known = false;
    for (int k = 0; k < static_cast<int>(collective_kind::all_to_all); ++k)
      if (detail::tuner_word(static_cast<collective_kind>(k)) == cells[0]) {
        r.collective = static_cast<collective_kind>(k);
        known = true;
      }
    if (!known) return refuse("'" + std::string(cells[0]) + "' is not a collective of the plug-in");
    const auto low = detail::exact_number<std::uint64_t>(cells[1]),
               high = detail::exact_number<std::uint64_t>(cells[2]);
    if (!low || !high || *low > *high)
      return refuse("'" + std::string(cells[1]) + "' to '" + std::string(cells[2]) + "' is no range of bytes");
    r.min_bytes = *low;
    r.max_bytes = *high;
    known = false;
    for (int a = 0; a <= static_cast<int>(tuner_algorithm::pat); ++a)
      if (to_string(static_cast<tuner_algorithm>(a)) == cells[3]) {
        r.algorithm = static_cast<tuner_algorithm>(a);
        known = true;
      }
    if (!known) return refuse("'" + std::string(cells[3]) + "' is not an algorithm, and the plug-in would take ring");
    known = false;
    for (int p = 0; p <= static_cast<int>(tuner_protocol::simple); ++p)
      if (to_string(static_cast<tuner_protocol>(p)) == cells[4]) {
        r.protocol = static_cast<tuner_protocol>(p);
        known = true;
      }
    if (!known) return refuse("'" + std::string(cells[4]) + "' is not a protocol, and the plug-in would take simple");
    std::optional<std::uint32_t>* const numbers[] = {&r.channels, &r.nodes, &r.ranks, &r.pipe_ops};
    for (std::size_t c = 5; c < cells.size(); ++c) {
      if (cells[c] == "-1") continue;
      const auto n = detail::exact_number<std::uint32_t>(cells[c]);
      if (!n || (c == 9 && *n > 1))
        return refuse("'" + std::string(cells[c]) + "' in column " + std::to_string(c + 1) +
                      " is neither a number nor -1");
      if (c == 9)
        r.registered = *n == 1;
      else
        *numbers[c - 5] = *n;
    }
    rows.push_back(r);
  }
  return rows;
}

}}  // namespace topocoll::v0
