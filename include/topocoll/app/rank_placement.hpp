// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks of a plan sit: on GPUs in a named order, or on the NUMA domains of a machine without any.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Where the ranks of a plan sit.
struct rank_placement {
  std::optional<std::uint32_t> ranks;  ///< how many; all GPUs, or four processes where there is none
  std::string order;  ///< packed, scattered, round_robin, random:SEED; empty: as the source says, else packed
};

/// Nodes of the ranks: GPUs in the wished order, or, on a machine without GPUs, NUMA domains, each with its share of the
/// processes.
/// @return `invalid_argument` for an unknown order or more ranks than GPUs; `not_found` when there is nothing to sit on
template <class = void>
[[nodiscard]] result<std::vector<node_id>> place_ranks(const topo::graph& g, const rank_placement& wish);

namespace detail {

/// "packed", "random:7": the order that a word names.
template <class = void>
[[nodiscard]] result<rank_order> order_of(const std::string& word) {
  using kind = rank_order::kind_t;
  if (word == "packed") return rank_order{kind::packed, 0};
  if (word == "scattered") return rank_order{kind::scattered, 0};
  if (word == "round_robin") return rank_order{kind::round_robin, 0};
  constexpr std::string_view random = "random:";
  if (word.starts_with(random) && word.size() > random.size() && word.size() < random.size() + 19 &&
      word.find_first_not_of("0123456789", random.size()) == std::string::npos)
    return rank_order{kind::shuffled, std::stoull(word.substr(random.size()))};
  return fail(errc::invalid_argument, "'" + word + "' is not an order of ranks",
              "write packed, scattered, round_robin or random:SEED with a number");
}

}  // namespace detail

template <class>
result<std::vector<node_id>> place_ranks(const topo::graph& g, const rank_placement& wish) {
  if (wish.ranks && *wish.ranks == 0)
    return fail(errc::invalid_argument, "a plan needs at least one rank", "give --ranks a number above 0");
  std::optional<rank_order> order;
  if (!wish.order.empty()) {
    const auto named = detail::order_of(wish.order);
    if (!named) return named.error();
    order = *named;
  }
  std::vector<node_id> gpus = order ? ranks_in_order(g, *order) : ranks_in_order(g);
  if (!gpus.empty()) {
    if (wish.ranks && *wish.ranks > gpus.size())
      return fail(errc::invalid_argument,
                  std::to_string(*wish.ranks) + " ranks were asked for, but there are only " +
                      std::to_string(gpus.size()) + " GPUs",
                  "ask for fewer --ranks");
    if (wish.ranks) gpus.resize(*wish.ranks);
    return gpus;
  }
  const std::vector<node_id> domains = g.all(topo::node_kind::cpu);
  if (domains.empty())
    return fail(errc::not_found, "the topology has neither GPUs nor NUMA domains that ranks could sit on",
                "give a topology of hosts: one of switches alone says nothing about ranks");
  const std::uint64_t n = wish.ranks.value_or(4);
  std::vector<node_id> seats;
  for (std::uint64_t r = 0; r < n; ++r) seats.push_back(domains[r * domains.size() / n]);
  return seats;
}

}}}  // namespace topocoll::v0::app
