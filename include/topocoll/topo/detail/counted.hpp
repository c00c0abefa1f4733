// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of devices and lists of names in words.
#include <cstddef>
#include <string>
#include <vector>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// "3 GPUs", "1 GPU".
template <class = void>
[[nodiscard]] std::string counted_devices(std::size_t n, node_kind kind) {
  std::string word = word_of(kind);
  if (n == 1) return "1 " + word;
  const bool hisses = word.size() > 1 && (word.back() == 'h' || word.back() == 's');
  if (kind == node_kind::leaf) return std::to_string(n) + " leaves";
  if (kind == node_kind::host_memory) return std::to_string(n) + " memories";
  return std::to_string(n) + ' ' + word + (hisses ? "es" : "s");
}

/// Joins texts by commas; after `most` of them "and n more".
template <class = void>
[[nodiscard]] std::string listed(const std::vector<std::string>& all, std::size_t most = 16) {
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + all[i];
  if (all.size() > most) text += " and " + std::to_string(all.size() - most) + " more";
  return text;
}

}}}}}  // namespace topocoll::v0::topo::detail::sameness
