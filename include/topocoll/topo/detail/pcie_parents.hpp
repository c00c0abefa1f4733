// SPDX-License-Identifier: Apache-2.0
#pragma once
// A PCIe function has one link upwards: which one stays where fragments tell different ones.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/identify.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class = void>
class parent_chooser {
 public:
  explicit parent_chooser(copied_parts& c) : c_(c) {}

  void run() {
    std::size_t telling = 0;
    for (const fragment& f : c_.parts)
      telling += seq::any_of(f.links, [](const link& l) { return l.kind == link_kind::pcie; }) ? 1U : 0U;
    if (telling < 2) return;
    number_keys();
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p) walk(p);
    if (!disagree()) return;
    choose();
    remove_losers();
    remove_childless();
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  /// What one part says stands above a node.
  struct claim {
    std::uint32_t child, parent;  ///< numbers of keys
    std::uint32_t node;           ///< the child in its part
    std::uint32_t above;          ///< the parent in its part
    std::uint32_t depth;          ///< of the parent, in links from the processor
    trust how;
    bool invented;  ///< the parent is a stand-in
    bool untold;    ///< generation or width is not told
  };

  [[nodiscard]] bool here(std::uint32_t g) const { return c_.into[g] == g; }

  void number_keys() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (here(g)) order.push_back(g);
    seq::sort_by(order, [&](std::uint32_t g) -> const std::string& { return c_.at(g).key; });
    key_of_.assign(c_.size(), none);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && c_.at(order[i]).key != c_.at(order[i - 1]).key) ++keys_;
      key_of_[order[i]] = keys_;
    }
    keys_ += order.empty() ? 0U : 1U;
  }

  /// Parents by the distance from processors.
  void walk(std::uint32_t p) {
    const fragment& f = c_.parts[p];
    std::vector<std::uint32_t> first(f.nodes.size() + 1);
    const auto counts = [&](const link& l) {
      return l.kind == link_kind::pcie && here(c_.number(p, l.from)) && here(c_.number(p, l.to));
    };
    for (const link& l : f.links)
      if (counts(l)) ++first[l.from.value + 1];
    for (std::size_t v = 0; v < f.nodes.size(); ++v) first[v + 1] += first[v];
    std::vector<std::uint32_t> out(first.back()), next(first.begin(), first.end() - 1);
    for (std::uint32_t e = 0; e < f.links.size(); ++e)
      if (counts(f.links[e])) out[next[f.links[e].from.value]++] = e;
    std::vector<std::uint32_t> depth(f.nodes.size(), none), queue;
    for (std::uint32_t v = 0; v < f.nodes.size(); ++v)
      if (f.nodes[v].kind == node_kind::cpu && here(c_.first[p] + v)) {
        depth[v] = 0;
        queue.push_back(v);
      }
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t up = queue[i];
      for (std::uint32_t k = first[up]; k < first[up + 1]; ++k) {
        const link& l = f.links[out[k]];
        const std::uint32_t v = l.to.value;
        if (depth[v] != none) continue;
        depth[v] = depth[up] + 1;
        queue.push_back(v);
        const std::uint32_t child = c_.first[p] + v, above = c_.first[p] + up;
        if (key_of_[child] == key_of_[above]) continue;
        claims_.push_back({key_of_[child], key_of_[above], child, above, depth[up], l.how, is_stand_in(f.nodes[up]),
                           l.generation == 0 || l.lanes == 0});
      }
    }
  }

  [[nodiscard]] bool disagree() {
    std::vector<std::uint32_t> parent(keys_, none);
    for (const claim& x : claims_) {
      if (parent[x.child] != none && parent[x.child] != x.parent) return true;
      parent[x.child] = x.parent;
    }
    return false;
  }

  [[nodiscard]] std::uint32_t top(std::uint32_t k) {
    while (up_[k] != k) k = up_[k] = up_[up_[k]];
    return k;
  }
  /// Takes claims from the best to the worst, each unless the child has a parent or would stand above itself.
  void choose() {
    seq::sort(claims_, [&](const claim& a, const claim& b) {
      if (a.how != b.how) return a.how < b.how;
      if (a.invented != b.invented) return b.invented;
      if (a.untold != b.untold) return b.untold;
      // Who leaves a switch out does not deny it.
      if (a.depth != b.depth) return a.depth > b.depth;
      if (c_.part_of[a.node] != c_.part_of[b.node]) return c_.part_of[a.node] < c_.part_of[b.node];
      return a.child != b.child ? a.child < b.child : a.parent < b.parent;
    });
    for (std::uint32_t k = 0; k < keys_; ++k) up_.push_back(k);
    chosen_.assign(keys_, none);
    for (std::uint32_t i = 0; i < claims_.size(); ++i) {
      const claim& x = claims_[i];
      if (chosen_[x.child] != none || top(x.child) == top(x.parent)) continue;
      chosen_[x.child] = i;
      up_[top(x.child)] = top(x.parent);
    }
  }
  [[nodiscard]] std::uint32_t parent_of(std::uint32_t key) const {
    return chosen_[key] == none ? none : claims_[chosen_[key]].parent;
  }
  [[nodiscard]] bool stands_above(std::uint32_t above, std::uint32_t key) const {
    while (key != none && key != above) key = parent_of(key);
    return key == above;
  }

  /// Links upwards that were not chosen go. Between nodes that would be cut off, because the sources go round in a circle,
  /// all stay.
  void remove_losers() {
    std::vector<std::uint32_t> cut_off(keys_), lost(c_.size(), none);
    for (const claim& x : claims_)
      if (chosen_[x.child] == none && cut_off[top(x.child)]++ == 0)
        c_.tell(severity::warning, c_.at(x.node).key,
                "sources go round in a circle about what stands above a PCIe device",
                c_.source_of(x.node) + ": below '" + c_.at(x.above).key + "'", "find out which source is right");
    std::vector<std::uint32_t> told(keys_, none);  // the parent that was told last as a contradiction
    for (const claim& x : claims_) {
      if (chosen_[x.child] == none || parent_of(x.child) == x.parent || cut_off[top(x.child)] != 0) continue;
      lost[x.node] = x.above;
      if (x.how == trust::assumed || x.invented || told[x.child] == x.parent || stands_above(x.parent, x.child))
        continue;
      told[x.child] = x.parent;
      const claim& best = claims_[chosen_[x.child]];
      c_.tell(severity::warning, c_.at(x.node).key, "sources disagree on what stands above '" + c_.at(x.node).key + "'",
              c_.source_of(best.node) + ": '" + c_.at(best.above).key + "'; " + c_.source_of(x.node) + ": '" +
                  c_.at(x.above).key + "'",
              "find out which source is right; the better-trusted one is used until then");
    }
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p)
      for (std::uint32_t e = 0; e < c_.parts[p].links.size(); ++e) {
        const link& l = c_.parts[p].links[e];
        const std::uint32_t a = c_.number(p, l.from), b = c_.number(p, l.to);
        if (l.kind == link_kind::pcie && (lost[a] == b || lost[b] == a)) c_.link_gone[c_.first_link[p] + e] = 1;
      }
  }

  /// Invented switches and domains that have nothing below them any more go, with their memories.
  void remove_childless() {
    std::vector<std::uint32_t> children(keys_), known(keys_), real(keys_), empty;
    for (const claim& x : claims_) {
      known[x.parent] = 1;
      if (chosen_[x.child] == none) ++children[x.parent];
    }
    for (std::uint32_t k = 0; k < keys_; ++k)
      if (chosen_[k] != none) ++children[parent_of(k)];
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (here(g) && !is_stand_in(c_.at(g))) real[key_of_[g]] = 1;
    for (std::uint32_t k = 0; k < keys_; ++k)
      if (known[k] != 0 && children[k] == 0 && real[k] == 0) empty.push_back(k);
    std::vector<std::uint32_t> goes(keys_);
    for (std::size_t i = 0; i < empty.size(); ++i) {
      goes[empty[i]] = 1;
      const std::uint32_t up = parent_of(empty[i]);
      if (up != none && --children[up] == 0 && real[up] == 0) empty.push_back(up);
    }
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p)
      for (const link& l : c_.parts[p].links) {
        const std::uint32_t a = c_.number(p, l.from), b = c_.number(p, l.to);
        if (l.kind == link_kind::memory && key_of_[a] != none && goes[key_of_[a]] != 0 && is_stand_in(c_.at(b)))
          c_.into[b] = copied_parts::gone;
      }
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (here(g) && goes[key_of_[g]] != 0) c_.into[g] = copied_parts::gone;
  }

  copied_parts& c_;
  std::vector<std::uint32_t> key_of_;  ///< number of each node's key; none for nodes that are gone
  std::uint32_t keys_ = 0;
  std::vector<claim> claims_;
  std::vector<std::uint32_t> up_, chosen_;  ///< of each key; `chosen_` is a position in `claims_`
};

}}}}  // namespace topocoll::v0::topo::detail
