// SPDX-License-Identifier: Apache-2.0
#pragma once
// How topo/merge.hpp decides between sources.
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/recognise.hpp>
#include <topocoll/topo/merge.hpp>

namespace topocoll { inline namespace v0 { namespace topo {
namespace detail {

// An order on what two fragments say, so that the order in which they come does not matter. It has no other meaning.

template <class = void>
[[nodiscard]] std::strong_ordering order_of(double a, double b) {
  return a < b ? std::strong_ordering::less : b < a ? std::strong_ordering::greater : std::strong_ordering::equal;
}
template <class = void>
[[nodiscard]] std::strong_ordering order_of(const std::optional<bytes_per_second>& a,
                                            const std::optional<bytes_per_second>& b) {
  if (a.has_value() != b.has_value()) return a.has_value() <=> b.has_value();
  return a ? order_of(a->value, b->value) : std::strong_ordering::equal;
}
template <class = void>
[[nodiscard]] std::strong_ordering order_of(const node& a, const node& b) {
  if (const auto o = a.key <=> b.key; o != 0) return o;
  if (const auto o = a.kind <=> b.kind; o != 0) return o;
  if (const auto o = a.how <=> b.how; o != 0) return o;
  if (const auto o = a.name <=> b.name; o != 0) return o;
  if (const auto o = a.host <=> b.host; o != 0) return o;
  if (const auto o = a.index <=> b.index; o != 0) return o;
  if (const auto o = a.global_rank <=> b.global_rank; o != 0) return o;
  if (const auto o = a.numa <=> b.numa; o != 0) return o;
  if (const auto o = a.reason <=> b.reason; o != 0) return o;
  return a.facts <=> b.facts;
}
/// Wider links come first. The ends are not looked at.
template <class = void>
[[nodiscard]] std::strong_ordering order_of(const link& a, const link& b) {
  if (const auto o = order_of(b.capacity.value, a.capacity.value); o != 0) return o;
  if (const auto o = a.kind <=> b.kind; o != 0) return o;
  if (const auto o = a.how <=> b.how; o != 0) return o;
  if (const auto o = a.generation <=> b.generation; o != 0) return o;
  if (const auto o = a.lanes <=> b.lanes; o != 0) return o;
  if (const auto o = order_of(a.nominal, b.nominal); o != 0) return o;
  if (const auto o = order_of(a.current, b.current); o != 0) return o;
  return a.reason <=> b.reason;
}
template <class = void>
[[nodiscard]] std::strong_ordering order_of(const finding& a, const finding& b) {
  if (const auto o = a.where <=> b.where; o != 0) return o;
  if (const auto o = a.what <=> b.what; o != 0) return o;
  if (const auto o = a.evidence <=> b.evidence; o != 0) return o;
  if (const auto o = a.next_step <=> b.next_step; o != 0) return o;
  if (const auto o = a.level <=> b.level; o != 0) return o;
  return order_of(a.confidence, b.confidence);
}
template <class = void>
[[nodiscard]] std::strong_ordering order_of(const fragment& a, const fragment& b) {
  if (const auto o = a.source <=> b.source; o != 0) return o;
  if (const auto o = a.nodes.size() <=> b.nodes.size(); o != 0) return o;
  if (const auto o = a.links.size() <=> b.links.size(); o != 0) return o;
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (const auto o = order_of(a.nodes[i], b.nodes[i]); o != 0) return o;
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    if (const auto o = a.links[i].from <=> b.links[i].from; o != 0) return o;
    if (const auto o = a.links[i].to <=> b.links[i].to; o != 0) return o;
    if (const auto o = order_of(a.links[i], b.links[i]); o != 0) return o;
  }
  if (const auto o = a.findings.size() <=> b.findings.size(); o != 0) return o;
  for (std::size_t i = 0; i < a.findings.size(); ++i)
    if (const auto o = order_of(a.findings[i], b.findings[i]); o != 0) return o;
  return std::strong_ordering::equal;
}

/// Refuses a fragment that makes no sense by itself.
template <class = void>
[[nodiscard]] result<void> check(const fragment& f) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < f.nodes.size(); ++v) order.push_back(v);
  seq::sort_by(order, [&](std::uint32_t v) -> const std::string& { return f.nodes[v].key; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (f.nodes[order[i]].key == f.nodes[order[i - 1]].key)
      return fail(errc::malformed_input, f.source + ": two nodes share the key '" + f.nodes[order[i]].key + "'",
                  "give every device its own address");
  for (const link& l : f.links)
    if (l.from.value >= f.nodes.size() || l.to.value >= f.nodes.size())
      return fail(errc::malformed_input, f.source + ": a link joins node " + std::to_string(l.from.value) +
                                             " to node " + std::to_string(l.to.value) + ", but there are only " +
                                             std::to_string(f.nodes.size()));
  return {};
}

/// Builds the joined fragment from sound fragments in their canonical order.
template <class = void>
class merger {
 public:
  /// @param noticed  findings about the parts together
  merger(std::vector<const fragment*> parts, std::vector<finding> noticed)
      : parts_(std::move(parts)), contradictions_(std::move(noticed)) {}

  [[nodiscard]] fragment run() {
    for (const fragment* part : parts_) {
      if (joined_.source.empty() || part->source != last_source_)
        joined_.source += (joined_.source.empty() ? "" : ", ") + part->source;
      last_source_ = part->source;
    }
    place_nodes();
    place_links();
    place_findings();
    joined_.findings.insert(joined_.findings.end(), contradictions_.begin(), contradictions_.end());
    return std::move(joined_);
  }

 private:
  struct origin {
    std::uint32_t part = 0;
    std::uint32_t position = 0;
  };

  /// All findings of the parts; what several parts say in the same words is said once.
  void place_findings() {
    std::vector<const finding*> all;
    for (const fragment* part : parts_)
      for (const finding& f : part->findings) all.push_back(&f);
    std::vector<std::size_t> sorted(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) sorted[i] = i;
    seq::sort(sorted, [&](std::size_t a, std::size_t b) { return order_of(*all[a], *all[b]) < 0; });
    for (std::size_t first = 0, last = 1; last < sorted.size(); ++last)
      if (order_of(*all[sorted[first]], *all[sorted[last]]) == 0)
        all[sorted[last]] = nullptr;
      else
        first = last;
    for (const finding* f : all)
      if (f != nullptr) joined_.findings.push_back(*f);
  }
  [[nodiscard]] const node& node_at(origin o) const { return parts_[o.part]->nodes[o.position]; }
  [[nodiscard]] const link& link_at(origin o) const { return parts_[o.part]->links[o.position]; }
  [[nodiscard]] const std::string& source_of(origin o) const { return parts_[o.part]->source; }

  void contradict(std::string where, std::string what, std::string evidence) {
    contradictions_.push_back({severity::warning, std::move(where), std::move(what), std::move(evidence),
                               "find out which source is right; the better-trusted one is used until then", 1});
  }

  /// Groups the nodes of all parts by key, in order of first appearance, and joins each group.
  void place_nodes() {
    std::vector<origin> all;
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      for (std::uint32_t i = 0; i < parts_[p]->nodes.size(); ++i) all.push_back({p, i});
      placed_.emplace_back(parts_[p]->nodes.size());
    }
    std::vector<origin> by_key = all;
    seq::sort_by(by_key, [&](origin o) -> const std::string& { return node_at(o).key; });
    // The first of each group stands for it; `group_of` leads from there to the others.
    std::vector<std::vector<std::size_t>> start(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) start[p].assign(parts_[p]->nodes.size(), by_key.size());
    for (std::size_t i = 0; i < by_key.size(); ++i) {
      const bool first = i == 0 || node_at(by_key[i]).key != node_at(by_key[i - 1]).key;
      if (first) start[by_key[i].part][by_key[i].position] = i;
    }
    for (const origin o : all) {
      const std::size_t first = start[o.part][o.position];
      if (first == by_key.size()) continue;
      std::size_t last = first + 1;
      while (last < by_key.size() && node_at(by_key[last]).key == node_at(o).key) ++last;
      const node_id at = joined_.add(joined_node({by_key.data() + first, last - first}));
      for (std::size_t i = first; i < last; ++i) placed_[by_key[i].part][by_key[i].position] = at;
    }
  }

  /// One node from all that say something about it, which come in canonical order of their parts.
  [[nodiscard]] node joined_node(std::span<const origin> group) {
    std::vector<origin> order(group.begin(), group.end());
    if (order.size() == 1) return node_at(order[0]);
    seq::sort_by(order, [&](origin o) { return node_at(o).how; });
    node n = node_at(order[0]);
    origin of_kind = order[0], of_host = order[0], of_index = order[0], of_rank = order[0], of_numa = order[0];
    for (std::size_t i = 1; i < order.size(); ++i) {
      const node& other = node_at(order[i]);
      if (other.kind != n.kind && n.kind == node_kind::pcie_device) {
        // Whoever sees a bare PCIe function does not deny that it is a GPU.
        n.kind = other.kind;
        n.how = other.how;
        n.reason = other.reason;
        if (!other.name.empty()) n.name = other.name;
        of_kind = order[i];
      } else if (other.kind != n.kind && other.kind != node_kind::pcie_device) {
        disagree(n.key, "kind", of_kind, to_string(n.kind), order[i], to_string(other.kind));
      }
      if (n.name.empty()) n.name = other.name;
      if (n.host.empty() && !other.host.empty()) {
        n.host = other.host;
        of_host = order[i];
      } else if (!other.host.empty() && n.host != other.host) {
        disagree(n.key, "host", of_host, n.host, order[i], other.host);
      }
      join_number(n.key, "index", n.index, of_index, other.index, order[i]);
      join_number(n.key, "rank", n.global_rank, of_rank, other.global_rank, order[i]);
      join_number(n.key, "NUMA domain", n.numa, of_numa, other.numa, order[i]);
      for (const auto& fact : other.facts) {
        const auto it =
            seq::lower_bound_by(n.facts, fact.first, [](const auto& f) -> const std::string& { return f.first; });
        if (it == n.facts.end() || it->first != fact.first)
          n.facts.insert(it, fact);
        else if (it->second != fact.second && is_identity(fact.first))
          disagree(n.key, fact.first.c_str(), order[0], it->second, order[i], fact.second);
      }
    }
    return n;
  }

  void disagree(const std::string& key, const char* what, origin best, const std::string& mine, origin from,
                const std::string& other) {
    contradict(key, std::string("sources disagree on the ") + what + " of '" + key + "'",
               source_of(best) + ": " + mine + "; " + source_of(from) + ": " + other);
  }
  void join_number(const std::string& key, const char* what, std::optional<std::uint32_t>& mine, origin& best,
                   const std::optional<std::uint32_t>& other, origin from) {
    if (!other) return;
    if (!mine) {
      mine = other;
      best = from;
    } else if (*mine != *other) {
      disagree(key, what, best, std::to_string(*mine), from, std::to_string(*other));
    }
  }

  struct placed_link {
    node_id from, to;
    link_kind kind = link_kind::pcie;
    origin where;
    std::uint32_t seen = 0;  ///< position over all parts, in canonical order
  };

  void place_links() {
    std::vector<placed_link> all;
    for (std::uint32_t p = 0; p < parts_.size(); ++p)
      for (std::uint32_t i = 0; i < parts_[p]->links.size(); ++i) {
        const link& l = parts_[p]->links[i];
        all.push_back(
            {placed_[p][l.from.value], placed_[p][l.to.value], l.kind, {p, i}, static_cast<std::uint32_t>(all.size())});
      }
    seq::sort(all, [&](const placed_link& a, const placed_link& b) {
      if (a.from != b.from) return a.from < b.from;
      if (a.to != b.to) return a.to < b.to;
      if (a.kind != b.kind) return a.kind < b.kind;
      if (a.where.part != b.where.part) return a.where.part < b.where.part;
      if (const auto o = order_of(link_at(a.where), link_at(b.where)); o != 0) return o < 0;
      return a.seen < b.seen;
    });
    std::vector<std::pair<std::uint32_t, link>> kept;  // with the position that it takes in the result
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
      while (last < all.size() && all[last].from == all[first].from && all[last].to == all[first].to &&
             all[last].kind == all[first].kind)
        ++last;
      join_links({all.data() + first, last - first}, kept);
    }
    seq::sort_by(kept, [](const auto& k) { return k.first; });
    for (auto& [seen, l] : kept) joined_.links.push_back(std::move(l));
  }

  /// Joins the links of all parts that have the same ends and kind: sorted by part, within a part from wide to narrow.
  void join_links(std::span<const placed_link> group, std::vector<std::pair<std::uint32_t, link>>& kept) {
    std::vector<std::span<const placed_link>> sets;
    for (std::size_t first = 0, last = 0; first < group.size(); first = last) {
      while (last < group.size() && group[last].where.part == group[first].where.part) ++last;
      sets.push_back(group.subspan(first, last - first));
    }
    // A set is as trustworthy as its worst link.
    const auto trust_of = [&](std::span<const placed_link> set) {
      trust worst = trust::measured;
      for (const placed_link& p : set) worst = std::max(worst, link_at(p.where).how);
      return worst;
    };
    seq::sort_by(sets, trust_of);
    const auto best = sets[0];
    for (std::size_t i = 1; i < sets.size(); ++i)
      if (sets[i].size() != best.size()) compare_sums(best, sets[i]);
    for (std::size_t i = 0; i < best.size(); ++i) {
      std::vector<placed_link> same{best[i]};
      for (std::size_t s = 1; s < sets.size(); ++s)
        if (sets[s].size() == best.size()) same.push_back(sets[s][i]);
      kept.emplace_back(best[i].seen, joined_link(same));
    }
  }

  [[nodiscard]] std::string ends_of(const placed_link& p) const {
    return joined_.nodes[p.from.value].key + " -> " + joined_.nodes[p.to.value].key;
  }
  [[nodiscard]] static bool differ(double a, double b) {
    return (a > b ? a - b : b - a) > contradiction_share * (a > b ? a : b);
  }

  /// Different numbers of parallel links: only what they carry together can be compared.
  void compare_sums(std::span<const placed_link> best, std::span<const placed_link> other) {
    const auto sum = [&](std::span<const placed_link> set, trust& worst) {
      bytes_per_second all{};
      for (const placed_link& p : set) {
        all += link_at(p.where).capacity;
        worst = std::max(worst, link_at(p.where).how);
      }
      return all;
    };
    trust how_best = trust::measured;
    trust how_other = trust::measured;
    const bytes_per_second a = sum(best, how_best);
    const bytes_per_second b = sum(other, how_other);
    if (how_other == trust::assumed || !differ(a.value, b.value)) return;
    contradict(ends_of(best[0]),
               std::string("sources disagree on the ") + to_string(best[0].kind) + " links of " + ends_of(best[0]),
               source_of(best[0].where) + ": " + std::to_string(best.size()) + " with " + to_string(a) + " together; " +
                   source_of(other[0].where) + ": " + std::to_string(other.size()) + " with " + to_string(b));
  }

  /// One link from all that say something about it, in canonical order of their parts.
  [[nodiscard]] link joined_link(std::vector<placed_link> same) {
    seq::sort_by(same, [&](const placed_link& p) { return link_at(p.where).how; });
    link l = link_at(same[0].where);
    l.from = same[0].from;
    l.to = same[0].to;
    for (std::size_t i = 1; i < same.size(); ++i) {
      const link& other = link_at(same[i].where);
      const auto figure = [&](const char* what, double mine, double theirs, const std::string& a,
                              const std::string& b) {
        if (other.how == trust::assumed || !differ(mine, theirs)) return;
        contradict(ends_of(same[0]),
                   std::string("sources disagree on the ") + what + " of the " + to_string(l.kind) + " link " +
                       ends_of(same[0]),
                   source_of(same[0].where) + " (" + to_string(l.how) + "): " + a + "; " + source_of(same[i].where) +
                       " (" + to_string(other.how) + "): " + b);
      };
      figure("capacity", l.capacity.value, other.capacity.value, to_string(l.capacity), to_string(other.capacity));
      if (l.nominal && other.nominal)
        figure("nominal rate", l.nominal->value, other.nominal->value, to_string(*l.nominal),
               to_string(*other.nominal));
      if (l.current && other.current)
        figure("current rate", l.current->value, other.current->value, to_string(*l.current),
               to_string(*other.current));
      if (l.generation != 0 && other.generation != 0)
        figure("generation", l.generation, other.generation, std::to_string(l.generation),
               std::to_string(other.generation));
      if (l.lanes != 0 && other.lanes != 0)
        figure("width", l.lanes, other.lanes, std::to_string(l.lanes), std::to_string(other.lanes));
      if (l.generation == 0) l.generation = other.generation;
      if (l.lanes == 0) l.lanes = other.lanes;
      if (!l.nominal) l.nominal = other.nominal;
      if (!l.current) l.current = other.current;
    }
    return l;
  }

  std::vector<const fragment*> parts_;
  std::vector<std::vector<node_id>> placed_;  ///< for each part, where its nodes went
  fragment joined_;
  std::vector<finding> contradictions_;
  std::string last_source_;
};

}  // namespace detail

template <class>
result<fragment> merge(std::span<const fragment> fragments) {
  if (fragments.empty()) return fail(errc::invalid_argument, "there is nothing to merge", "give at least one fragment");
  std::vector<const fragment*> order;
  for (const fragment& f : fragments) order.push_back(&f);
  seq::sort(order, [](const fragment* a, const fragment* b) { return detail::order_of(*a, *b) < 0; });
  for (const fragment* part : order)
    if (auto sound = detail::check(*part); !sound) return std::move(sound).error();
  if (order.size() == 1) return detail::merger(std::move(order), {}).run();
  detail::copied_parts seen = detail::recognised(order);
  for (std::size_t p = 0; p < order.size(); ++p) order[p] = &seen.parts[p];
  return detail::merger(std::move(order), std::move(seen.findings)).run();
}

}}}  // namespace topocoll::v0::topo
