// SPDX-License-Identifier: Apache-2.0
#pragma once
// Paths from every rank to one, as fast as the cuts between them allow: a flow, taken apart.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/pack_flow.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A part of one rank's shard and the arcs that it takes, in order.
struct gather_path {
  std::uint32_t rank = 0;
  std::int64_t weight = 0;
  std::vector<std::uint32_t> arcs{};
};

/// Paths to rank `root` along which every other rank sends `weight` shards in the least time.
///
/// The least time is the worst cut's (`worst_gather_cut`), a maximum flow with one source reaches it, and the flow falls
/// apart into at most one path per arc and rank. Weights of a rank's paths add up to its weight times one and the same
/// number, with no common divisor. Ranks with weight 0 get no path.
/// @param weight  one per rank, 0 or more; the root's own does not count
/// @return `unavailable` when some rank has no way to the root; `unsupported` for more than 4096 nodes, or figures that do
///         not fit into 62 bits. Equal input gives equal paths on all machines.
/// Cost: one maximum flow and a breadth-first search per path.
template <class = void>
class gather_flow {
 public:
  gather_flow(const exact_network& net, std::span<const std::uint32_t> node_of, std::span<const std::int64_t> weight,
              std::uint32_t root)
      : net_(net), node_of_(node_of), weight_(weight), root_(root) {}

  [[nodiscard]] result<std::vector<gather_path>> run() {
    if (net_.nodes >= 4096)
      return fail(errc::unsupported,
                  "a graph of " + std::to_string(net_.nodes) + " nodes is too large for packed paths");
    std::vector<std::int64_t> born(net_.nodes, 0);
    int128 all = 0;
    for (std::size_t r = 0; r < node_of_.size(); ++r) {
      if (r == root_) continue;
      born[node_of_[r]] = weight_[r];
      all += weight_[r];
    }
    if (all == 0) return std::vector<gather_path>{};
    const std::uint32_t sink = node_of_[root_];
    const std::uint32_t receivers[] = {sink};
    const auto cut = worst_gather_cut(net_, born, {.receivers = receivers});
    if (!cut) return cut.error();
    const std::int64_t common = common_divisor(cut->exit, cut->weight);
    const std::int64_t sent = cut->exit / common, times = cut->weight / common;  // per shard; per unit of capacity
    int128 most = all * sent;
    for (const exact_network::arc& a : net_.arcs) most += int128{a.units} * times;
    if (most >= int128{1} << 62U) return fail(errc::unsupported, "the capacities and shares do not fit into 62 bits");

    const std::uint32_t source = net_.nodes;
    matrix_flow<> flow(net_.nodes + 1);
    for (const exact_network::arc& a : net_.arcs)
      if (a.to != a.from) flow.add(a.from, a.to, a.units * times);
    for (std::uint32_t v = 0; v < net_.nodes; ++v)
      if (born[v] > 0) flow.add(source, v, born[v] * sent);
    const matrix_flow<> before = flow;
    const auto wanted = static_cast<std::int64_t>(all) * sent;
    if (flow.run(source, sink, wanted) != wanted)
      return fail(errc::bug, "a flow to one rank falls short of the cut that limits it");

    // What flows over each arc: parallel arcs share the flow of their pair, first come, first served.
    used_.assign(net_.arcs.size(), 0);
    out_.assign(net_.nodes, {});
    for (std::uint32_t e = 0; e < net_.arcs.size(); ++e) {
      const exact_network::arc& a = net_.arcs[e];
      if (a.to == a.from) continue;
      std::int64_t left = before.capacity(a.from, a.to) - flow.capacity(a.from, a.to);
      for (const std::uint32_t other : out_[a.from])
        if (net_.arcs[other].to == a.to) left -= used_[other];
      used_[e] = std::clamp<std::int64_t>(left, 0, a.units * times);
      if (used_[e] > 0) out_[a.from].push_back(e);
    }
    std::vector<gather_path> paths;
    std::int64_t divisor = 0;
    for (std::uint32_t r = 0; r < node_of_.size(); ++r) {
      std::int64_t left = r == root_ ? 0 : weight_[r] * sent;
      while (left > 0) {
        gather_path p = shortest(r, sink, left);
        if (p.arcs.empty()) return fail(errc::bug, "a flow to one rank cannot be taken apart");
        left -= p.weight;
        divisor = common_divisor(divisor, p.weight);
        paths.push_back(std::move(p));
      }
    }
    for (gather_path& p : paths) p.weight /= divisor;
    return paths;
  }

 private:
  /// A path with the fewest arcs on which something flows, taken out of the flow.
  [[nodiscard]] gather_path shortest(std::uint32_t rank, std::uint32_t sink, std::int64_t most) {
    constexpr std::uint32_t none = UINT32_MAX;
    const std::uint32_t from = node_of_[rank];
    std::vector<std::uint32_t> by(net_.nodes, none), queue{from};
    for (std::size_t i = 0; i < queue.size() && by[sink] == none; ++i)
      for (const std::uint32_t e : out_[queue[i]]) {
        const std::uint32_t to = net_.arcs[e].to;
        if (used_[e] == 0 || by[to] != none || to == from) continue;
        by[to] = e;
        queue.push_back(to);
      }
    gather_path p{rank, most, {}};
    if (by[sink] == none) return p;
    for (std::uint32_t v = sink; v != from; v = net_.arcs[by[v]].from) {
      p.arcs.push_back(by[v]);
      p.weight = std::min(p.weight, used_[by[v]]);
    }
    std::reverse(p.arcs.begin(), p.arcs.end());
    for (const std::uint32_t e : p.arcs) used_[e] -= p.weight;
    return p;
  }

  const exact_network& net_;
  std::span<const std::uint32_t> node_of_;
  std::span<const std::int64_t> weight_;
  std::uint32_t root_;
  std::vector<std::int64_t> used_{};               ///< per arc
  std::vector<std::vector<std::uint32_t>> out_{};  ///< per node: arcs with flow
};

}}}}  // namespace topocoll::v0::plan::detail
