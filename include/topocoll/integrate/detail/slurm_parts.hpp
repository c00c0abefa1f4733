// SPDX-License-Identifier: Apache-2.0
#pragma once
// What trees and blocks share: sets of nodes that are joined, names that Slurm takes, facts of nodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Sets that only grow together. Source: Tarjan, "Efficiency of a good but not linear set union algorithm", JACM 22(2), 1975.
class joined_sets {
 public:
  explicit joined_sets(std::size_t n) : above_(n) {
    for (std::uint32_t i = 0; i < n; ++i) above_[i] = i;
  }
  [[nodiscard]] std::uint32_t of(std::uint32_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = of(a);
    b = of(b);
    (a < b ? above_[b] : above_[a]) = a < b ? a : b;  // the first member stands for the set
  }

 private:
  std::vector<std::uint32_t> above_;
};

[[nodiscard]] inline result<void> takes_host(const std::string& name) {
  const auto back = read::expand_hostlist(name, 1);
  if (back && back->size() == 1 && back->front() == name) return {};
  return fail(errc::unsupported, "Slurm does not take '" + name + "' as the name of a host", "rename the host");
}

[[nodiscard]] inline std::string fact_of(const topo::node& n, std::string_view name) {
  for (const auto& [fact, value] : n.facts)
    if (fact == name) return value;
  return {};
}

}}}  // namespace topocoll::v0::detail
