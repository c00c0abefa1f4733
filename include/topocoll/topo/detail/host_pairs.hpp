// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which host of one graph is which of another.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/match.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/difference.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// Pairs hosts; the result has the position of the other host for each host of A, `no_place` for none.
/// Cost: O(n log n), colours included.
template <class = void>
class host_pairing {
 public:
  host_pairing(side& a, side& b, const diff_options& o)
      : a_(a), b_(b), of_a_(a.hosts.hosts.size(), no_place), taken_(b.hosts.hosts.size(), false) {
    by_name(o);
    if (left() != 0) by_identity();
    if (left() == 1 && open_b() == 1) {
      for (std::uint32_t h = 0; h < of_a_.size(); ++h)
        for (std::uint32_t k = 0; k < taken_.size(); ++k)
          if (of_a_[h] == no_place && !taken_[k]) pair(h, k);
      return;
    }
    if (left() == 0 || open_b() == 0) return;
    a_.paint();
    b_.paint();
    by_shape(&side::exact);
    by_shape(&side::structure);
    if (left() != open_b()) return;
    for (std::uint32_t h = 0, k = 0; h < of_a_.size(); ++h) {  // in their order, for want of better
      if (of_a_[h] != no_place) continue;
      while (taken_[k]) ++k;
      pair(h, k);
    }
  }
  [[nodiscard]] const std::vector<std::uint32_t>& of_a() const { return of_a_; }
  [[nodiscard]] bool taken(std::uint32_t host_of_b) const { return taken_[host_of_b]; }

 private:
  void pair(std::uint32_t h, std::uint32_t k) {
    of_a_[h] = k;
    taken_[k] = true;
  }
  [[nodiscard]] std::size_t left() const {
    std::size_t n = 0;
    for (const std::uint32_t k : of_a_) n += k == no_place ? 1 : 0;
    return n;
  }
  [[nodiscard]] std::size_t open_b() const {
    std::size_t n = 0;
    for (const bool t : taken_) n += t ? 0 : 1;
    return n;
  }

  void by_name(const diff_options& o) {
    std::vector<std::uint32_t> sorted(taken_.size());
    for (std::uint32_t k = 0; k < sorted.size(); ++k) sorted[k] = k;
    const auto name = [&](std::uint32_t k) -> const std::string& { return b_.hosts.hosts[k].name; };
    seq::sort_by(sorted, name);
    const auto join = [&](std::uint32_t h, const std::string& wanted) {
      const auto at = seq::lower_bound_by(sorted, wanted, name);
      if (at != sorted.end() && name(*at) == wanted && !taken_[*at] && of_a_[h] == no_place) pair(h, *at);
    };
    for (const auto& [from, to] : o.hosts)
      for (std::uint32_t h = 0; h < of_a_.size(); ++h)
        if (a_.hosts.hosts[h].name == from) join(h, to);
    for (std::uint32_t h = 0; h < of_a_.size(); ++h) join(h, a_.hosts.hosts[h].name);
  }

  /// A host is where its devices are: the first device known by GUID or serial number decides.
  void by_identity() {
    std::vector<identity> known;
    for (std::uint32_t v = 0; v < b_.g->node_count(); ++v)
      if (b_.hosts.host_of[v] != no_place && !taken_[b_.hosts.host_of[v]])
        for (const auto& [name, value] : b_.at(v).facts)
          if (is_identity_fact(name) && !value.empty()) known.push_back({name, value, v});
    if (known.empty()) return;
    seq::sort(known, [](const identity& x, const identity& y) { return x.before(y); });
    for (std::uint32_t h = 0; h < of_a_.size(); ++h) {
      if (of_a_[h] != no_place) continue;
      for (const node_id u : a_.hosts.hosts[h].nodes)
        for (const auto& [name, value] : a_.at(u.value).facts) {
          if (of_a_[h] != no_place || !is_identity_fact(name)) continue;
          const identity wanted{name, value, 0};
          const auto at = std::lower_bound(known.begin(), known.end(), wanted,
                                           [](const identity& x, const identity& y) { return x.before(y); });
          if (at == known.end() || wanted.before(*at)) continue;
          if (const std::uint32_t k = b_.hosts.host_of[at->node]; !taken_[k]) pair(h, k);
        }
    }
  }

  void by_shape(std::vector<std::uint64_t> side::*colours) {
    struct shaped {
      std::uint64_t shape;
      std::uint32_t host;
    };
    const auto shapes = [&](const side& s, const auto& is_open) {
      std::vector<shaped> all;
      for (std::uint32_t h = 0; h < s.hosts.hosts.size(); ++h)
        if (is_open(h)) all.push_back({sameness::shape_of(s.hosts.hosts[h], s.*colours), h});
      seq::sort(all, [](const shaped& x, const shaped& y) { return x.shape < y.shape; });
      return all;
    };
    const auto l = shapes(a_, [&](std::uint32_t h) { return of_a_[h] == no_place; });
    const auto r = shapes(b_, [&](std::uint32_t k) { return !taken_[k]; });
    for (std::size_t i = 0, j = 0; i < l.size() && j < r.size();) {
      if (l[i].shape != r[j].shape) {
        ++(l[i].shape < r[j].shape ? i : j);
        continue;
      }
      pair(l[i++].host, r[j++].host);
    }
  }

  side& a_;
  side& b_;
  std::vector<std::uint32_t> of_a_;
  std::vector<bool> taken_;
};

}}}}}  // namespace topocoll::v0::topo::detail::sameness
