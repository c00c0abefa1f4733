// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recomputes what a packing of trees says about itself.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/pack.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

namespace detail {

/// Finds the first contradiction in a packing.
template <class Int = std::int64_t>
class packing_checker {
 public:
  packing_checker(const packing& p, const exact_network& net, std::span<const std::uint32_t> node_of,
                  std::span<const std::int64_t> weight)
      : p_(p), net_(net), node_of_(node_of), weight_(weight) {}

  [[nodiscard]] result<void> run() {
    const std::size_t n = node_of_.size();
    if (p_.weight_per_rank < 1) return wrong("it has no pieces");
    std::vector<Int> down(n, 0), up(n, 0);
    std::uint32_t deepest = 0;
    for (std::size_t t = 0; t < p_.trees.size(); ++t) {
      const packed_tree& tree = p_.trees[t];
      if (tree.weight < 1 || tree.root >= n) return wrong("tree " + std::to_string(t) + " has no weight or no root");
      if (auto fine = look_at(t, deepest); !fine) return fine;
      if (tree.use != tree_use::up) down[tree.root] += tree.weight;
      if (tree.use != tree_use::down) up[tree.root] += tree.weight;
    }
    Int all = 0;
    for (std::size_t r = 0; r < n; ++r) {
      all += down[r];
      const Int owed = (weight_.empty() ? 1 : weight_[r]) * p_.weight_per_rank;
      const bool fine = p_.kind == pack_kind::gather ? down[r] == owed && up[r] == 0 : down[r] == up[r];
      if (!fine)
        return wrong("the trees of root " + std::to_string(r) + " weigh " + std::to_string(down[r]) +
                     " downwards and " + std::to_string(up[r]) + " upwards");
    }
    if (p_.kind == pack_kind::spanning && all != p_.weight_per_rank)
      return wrong("its trees weigh " + std::to_string(all) + ", not " + std::to_string(p_.weight_per_rank));
    if (deepest != p_.depth) return wrong("its depth is " + std::to_string(deepest));
    rational least{1, 0};
    const auto load = loads_of(p_, net_);
    for (std::size_t a = 0; a < load.size(); ++a) {
      if (load[a] == 0) continue;
      const rational here{net_.arcs[a].units, load[a]};
      if (!least.valid() || here < least) least = here;
    }
    if (!(least * rational{p_.weight_per_rank} == p_.rate)) return wrong("its rate does not follow from its loads");
    if (p_.rate > p_.limit) return wrong("its rate exceeds the limit");
    return {};
  }

 private:
  [[nodiscard]] failure wrong(const std::string& what) const {
    return fail(errc::bug, "the packing of trees contradicts itself: " + what);
  }
  /// Every rank but the root is the child of one edge whose parent came before; routes lead where they should.
  [[nodiscard]] result<void> look_at(std::size_t t, std::uint32_t& deepest) const {
    const std::size_t n = node_of_.size();
    const packed_tree& tree = p_.trees[t];
    const std::string name = "tree " + std::to_string(t);
    if (tree.edge_count + 1 != n || std::size_t{tree.first_edge} + tree.edge_count > p_.edges.size())
      return wrong(name + " does not have an edge for every rank but its root");
    constexpr std::uint32_t absent = UINT32_MAX;
    std::vector<std::uint32_t> level(n, absent);
    level[tree.root] = 0;
    for (std::uint32_t k = tree.first_edge; k < tree.first_edge + tree.edge_count; ++k) {
      const packed_edge& e = p_.edges[k];
      if (e.from >= n || e.to >= n || level[e.from] == absent || level[e.to] != absent)
        return wrong(name + " has an edge from a rank that it has not reached or to one that it has");
      level[e.to] = level[e.from] + 1;
      if (level[e.to] > deepest) deepest = level[e.to];
      if ((tree.use == tree_use::up) != (e.arc_count == 0) || (tree.use == tree_use::down) != (e.back_count == 0) ||
          !leads(e.first_arc, e.arc_count, e.from, e.to) || !leads(e.first_back, e.back_count, e.to, e.from))
        return wrong(name + " has no route between ranks " + std::to_string(e.from) + " and " + std::to_string(e.to));
    }
    return {};
  }
  [[nodiscard]] bool leads(std::uint32_t first, std::uint32_t count, std::uint32_t from, std::uint32_t to) const {
    if (count == 0) return true;
    if (std::size_t{first} + count > p_.arcs.size()) return false;
    std::uint32_t at = node_of_[from];
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (p_.arcs[i] >= net_.arcs.size() || net_.arcs[p_.arcs[i]].from != at) return false;
      at = net_.arcs[p_.arcs[i]].to;
    }
    return at == node_of_[to];
  }

  const packing& p_;
  const exact_network& net_;
  std::span<const std::uint32_t> node_of_;
  std::span<const std::int64_t> weight_;
};

}  // namespace detail

template <class>
result<void> check(const packing& trees, const detail::exact_network& net, std::span<const std::uint32_t> node_of,
                   std::span<const std::int64_t> weight) {
  return detail::packing_checker<>(trees, net, node_of, weight).run();
}

}}}  // namespace topocoll::v0::plan
