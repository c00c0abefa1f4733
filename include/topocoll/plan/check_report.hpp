// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the independent checker looks for, and what it tells.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What can be wrong.
enum class check_kind : std::uint8_t {
  shape,     ///< numbers out of range, places that do not exist
  messages,  ///< a send without a receive, or ends that move different chunks
  deadlock,  ///< ranks wait for each other
  race,      ///< unordered accesses to one place, one of them a write
  value,     ///< read before written, counted twice, wrong chunk, or not what the collective promises at the end
  route,     ///< a claimed route is no flow from rank to rank, or is missing
  load,      ///< a claimed load is not what the sends amount to
  bound,     ///< the claimed bound is not what the sets give
  gap        ///< the claimed gap is not what loads and bound give
};
[[nodiscard]] constexpr const char* to_string(check_kind k) {
  constexpr const char* words[] = {"shape", "messages", "deadlock", "race", "value", "route", "load", "bound", "gap"};
  return words[static_cast<std::size_t>(k)];
}

struct check_failure {
  check_kind what = check_kind::shape;
  std::string sentence;
};

struct check_options {
  /// Messages that a channel between two ranks holds: the k of a transport with bounded buffers. 0: a send ends only
  /// together with its receive.
  std::uint32_t credits = 0;
  std::size_t most_failures = 16;  ///< that are told
};

/// What was looked at, and what does not hold.
struct check_report {
  std::vector<check_failure> failures;  ///< empty: everything that was looked at holds
  std::uint32_t ranks = 0;
  std::uint64_t steps = 0;
  std::uint64_t operations = 0;  ///< executed on sets of contributions, apart and in place
  std::uint64_t messages = 0;
  /// Fewest credits per channel with which the plan cannot deadlock; empty: not even with unbounded buffers.
  std::optional<std::uint32_t> credits_needed;
  bool bound_checked = false, loads_checked = false, gap_checked = false;
  /// Time of the busiest link per byte of the array, from recomputed loads.
  std::optional<rational> busiest;

  [[nodiscard]] bool holds() const { return failures.empty(); }
  /// One line: what was looked at, or the first failure.
  template <class = void>
  [[nodiscard]] std::string summary() const;
};

template <class>
std::string check_report::summary() const {
  if (!failures.empty())
    return std::string(to_string(failures[0].what)) + ": " + failures[0].sentence +
           (failures.size() > 1 ? ", and " + std::to_string(failures.size() - 1) + " more" : "");
  std::string text = std::to_string(operations) + " operations and " + std::to_string(messages) + " messages of " +
                     std::to_string(ranks) + " ranks: no race, no deadlock, right results apart and in place";
  if (loads_checked) text += "; loads recomputed";
  if (bound_checked) text += "; bound recomputed";
  if (gap_checked) text += "; gap recomputed";
  return text;
}

}}}  // namespace topocoll::v0::plan
