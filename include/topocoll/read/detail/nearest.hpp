// SPDX-License-Identifier: Apache-2.0
#pragma once
// The name that a misspelt word was probably meant to be.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace topocoll { inline namespace v0 { namespace detail {

/// Least number of inserted, deleted, replaced or swapped neighbouring letters that turn `a` into `b`.
/// Cost: O(|a| |b|). Source: optimal string alignment, the restricted form of Damerau's distance (CACM 7(3), 1964).
template <class = void>
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

/// The first of `names` that is nearest to `word`; empty when none is within a third of the longer one's letters.
/// Words above 64 letters are not compared.
template <class = void>
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  if (word.size() > 64) return {};
  std::string_view best;
  std::size_t least = 0;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(word, name);
    if (3 * distance > std::max(word.size(), name.size())) continue;
    if (best.empty() || distance < least) {
      best = name;
      least = distance;
    }
  }
  return best;
}

}}}  // namespace topocoll::v0::detail
