// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checker of certificates: routes, loads, cuts, families and the gap, recomputed in exact fractions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/certificate.hpp>
#include <topocoll/plan/detail/check_parts.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

template <class = void>
class claim_check {
 public:
  claim_check(std::span<const program> programs, const topo::graph& g, std::span<const node_id> ranks,
              const plan::certificate& claims, std::span<const bytes_per_second> rates, check_log& log)
      : all_(programs), g_(g), ranks_(ranks), claims_(claims), rates_(rates), log_(log) {}

  void run() {
    if (ranks_.size() != all_.size() || (!rates_.empty() && rates_.size() != g_.link_count())) {
      log_.add(check_kind::shape, std::to_string(ranks_.size()) + " nodes and " + std::to_string(rates_.size()) +
                                      " rates were given for " + std::to_string(all_.size()) + " programs and " +
                                      std::to_string(g_.link_count()) + " links");
      return;
    }
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].value >= g_.node_count()) {
        log_.add(check_kind::shape, "rank " + std::to_string(r) + " sits on node " + std::to_string(ranks_[r].value) +
                                        " of a graph with " + std::to_string(g_.node_count()));
        return;
      }
    const std::optional<rational> bound = claims_.seconds_per_byte ? check_bound() : std::nullopt;
    if (!claims_.routes.empty() || !claims_.loads.empty()) check_loads();
    check_gap(bound);
  }

 private:
  [[nodiscard]] static std::string text(rational x) {
    if (!x.valid()) return "a number that does not fit in 64 bits";
    return std::to_string(x.numerator()) + (x.denominator() == 1 ? "" : "/" + std::to_string(x.denominator()));
  }
  [[nodiscard]] std::string name(link_id e) const {
    return "link " + std::to_string(e.value) + " (" + g_.at(g_.tail(e)).key + " to " + g_.at(g_.head(e)).key + ")";
  }
  [[nodiscard]] double rate(link_id e) const { return rates_.empty() ? g_.capacity(e).value : rates_[e.value].value; }
  /// The rate as a fraction; invalid when it is none with a denominator up to 64.
  [[nodiscard]] rational exact_rate(link_id e) const {
    const double value = rate(e);
    for (std::int64_t part = 1; part <= 64; ++part) {
      const double scaled = value * static_cast<double>(part);
      if (!(scaled >= 0) || scaled >= 9e15) break;
      const auto whole = static_cast<std::int64_t>(scaled + 0.5);
      const double off = static_cast<double>(whole) - scaled;
      if (off < scaled * 0x1p-50 && -off < scaled * 0x1p-50) return {whole, part};
      if (off == 0) return {whole, part};
    }
    return rational{1} / rational{0};
  }

  // ---- the bound

  struct around {
    rational out{}, in{};
    std::int64_t ranks = 0;
  };
  /// Capacity that leaves and enters a set of nodes, and the ranks there.
  [[nodiscard]] around measure(const std::vector<node_id>& set) {
    inside_.assign(g_.node_count(), false);
    for (const node_id v : set) inside_[v.value] = true;
    around a;
    for (std::uint32_t e = 0; e < g_.link_count(); ++e) {
      const bool from = inside_[g_.tail(link_id{e}).value], to = inside_[g_.head(link_id{e}).value];
      if (from == to) continue;
      (from ? a.out : a.in) = (from ? a.out : a.in) + exact_rate(link_id{e});
    }
    for (const node_id v : ranks_) a.ranks += inside_[v.value] ? 1 : 0;
    return a;
  }
  [[nodiscard]] static rational less(rational a, rational b) { return b < a ? b : a; }
  [[nodiscard]] static rational more(rational a, rational b) { return a < b ? b : a; }

  std::optional<rational> check_bound() {
    log_.report.bound_checked = true;
    const auto wrong = [&](const std::string& what) -> std::optional<rational> {
      log_.add(check_kind::bound, what);
      return std::nullopt;
    };
    if (claims_.sets.empty()) return wrong("a bound is claimed without a set of nodes that causes it");
    for (std::uint32_t k = 0; k < claims_.sets.size(); ++k)
      for (const node_id v : claims_.sets[k])
        if (v.value >= g_.node_count()) return wrong("set " + std::to_string(k) + " has a node that is not there");
    const program& p = all_[0];
    const auto n = static_cast<std::int64_t>(ranks_.size());
    rational wanted{};
    if (claims_.sets.size() > 1) {
      if (p.collective != collective_kind::all_reduce) return wrong("a family of sets bounds all_reduce only");
      rational out{}, in{};
      std::int64_t inside = 0;
      std::vector<std::uint32_t> set_of(ranks_.size(), UINT32_MAX);
      for (std::uint32_t k = 0; k < claims_.sets.size(); ++k) {
        const around part = measure(claims_.sets[k]);
        if (part.ranks == 0) return wrong("set " + std::to_string(k) + " of the family has no rank");
        for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
          if (!inside_[ranks_[r].value]) continue;
          if (set_of[r] != UINT32_MAX)
            return wrong("rank " + std::to_string(r) + " is in sets " + std::to_string(set_of[r]) + " and " +
                         std::to_string(k));
          set_of[r] = k;
        }
        inside += part.ranks;
        out = out + part.out;
        in = in + part.in;
      }
      if (inside != n)
        return wrong("the family holds " + std::to_string(inside) + " of " + std::to_string(n) + " ranks");
      wanted = rational{2 * (static_cast<std::int64_t>(claims_.sets.size()) - 1)} / less(out, in);
    } else {
      const around s = measure(claims_.sets[0]);
      if (s.ranks == 0 || s.ranks == n)
        return wrong("the set has " + std::to_string(s.ranks) + " of " + std::to_string(n) +
                     " ranks, so nothing must cross its border");
      const bool root_inside = inside_[ranks_[p.root.value].value];
      switch (p.collective) {
        case collective_kind::all_gather:
          wanted = more(rational{s.ranks, n} / s.out, rational{n - s.ranks, n} / s.in);
          break;
        case collective_kind::reduce_scatter:
          wanted = more(rational{s.ranks, n} / s.in, rational{n - s.ranks, n} / s.out);
          break;
        case collective_kind::all_reduce: wanted = rational{1} / less(s.out, s.in); break;
        case collective_kind::broadcast: wanted = rational{1} / (root_inside ? s.out : s.in); break;
        case collective_kind::reduce: wanted = rational{1} / (root_inside ? s.in : s.out); break;
        case collective_kind::gather:  // the shards on the far side of the root
          wanted = root_inside ? rational{n - s.ranks, n} / s.in : rational{s.ranks, n} / s.out;
          break;
        case collective_kind::scatter:
          wanted = root_inside ? rational{n - s.ranks, n} / s.out : rational{s.ranks, n} / s.in;
          break;
        case collective_kind::all_to_all: wanted = rational{s.ranks * (n - s.ranks), n} / less(s.out, s.in); break;
      }
    }
    if (!wanted.valid()) return wrong("the capacities around the sets cannot be counted exactly, or are nothing");
    if (wanted != *claims_.seconds_per_byte)
      return wrong("the sets give a bound of " + text(wanted) + " seconds per byte, claimed are " +
                   text(*claims_.seconds_per_byte));
    return wanted;
  }

  // ---- routes and loads

  /// Whether a claimed route carries one message, whole, from the one node to the other.
  [[nodiscard]] bool check_route(const claimed_route& c) {
    const auto wrong = [&](const std::string& what) {
      log_.add(check_kind::route, "the route from rank " + std::to_string(c.from.value) + " to rank " +
                                      std::to_string(c.to.value) + " " + what);
      return false;
    };
    if (c.from.value >= ranks_.size() || c.to.value >= ranks_.size())
      return wrong("is between ranks that are not there");
    if (balance_.empty()) balance_.resize(g_.node_count());
    for (const claimed_share& x : c.links) {
      if (x.link.value >= g_.link_count())
        return wrong("uses link " + std::to_string(x.link.value) + ", which is not there");
      if (!(rate(x.link) > 0)) return wrong("uses " + name(x.link) + ", which is dead");
      if (!(x.share > rational{0})) return wrong("uses " + name(x.link) + " with a share of " + text(x.share));
      balance_[g_.tail(x.link).value] = balance_[g_.tail(x.link).value] - x.share;
      balance_[g_.head(x.link).value] = balance_[g_.head(x.link).value] + x.share;
    }
    const node_id from = ranks_[c.from.value], to = ranks_[c.to.value];
    std::string found;
    const auto look = [&](node_id v) {
      const rational wanted{(v == to ? 1 : 0) - (v == from ? 1 : 0)};
      if (balance_[v.value] != wanted && found.empty())
        found = "lets " + text(balance_[v.value]) + " of a message remain at " + g_.at(v).key + " where " +
                text(wanted) + " should";
    };
    look(from);
    look(to);
    for (const claimed_share& x : c.links) {
      look(g_.tail(x.link));
      look(g_.head(x.link));
    }
    for (const claimed_share& x : c.links) balance_[g_.tail(x.link).value] = balance_[g_.head(x.link).value] = {};
    return found.empty() || wrong(found);
  }

  void check_loads() {
    log_.report.loads_checked = true;
    std::vector<std::uint32_t> order;
    for (std::uint32_t k = 0; k < claims_.routes.size(); ++k) {
      if (!check_route(claims_.routes[k])) return;
      order.push_back(k);
    }
    const auto key = [&](std::uint32_t k) {
      return std::uint64_t{claims_.routes[k].from.value} << 32U | claims_.routes[k].to.value;
    };
    seq::sort_by(order, key);
    std::vector<std::int64_t> chunks(claims_.routes.size(), 0);
    for (std::uint32_t r = 0; r < all_.size(); ++r)
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s) {
        const step& st = all_[r].steps[s];
        for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
          const op& x = all_[r].ops[o];
          if (!check_reader::sends(x)) continue;
          const std::uint64_t pair = std::uint64_t{r} << 32U | x.peer.value;
          std::uint32_t taken = UINT32_MAX;
          for (auto it = seq::lower_bound_by(order, pair, key); it != order.end() && key(*it) == pair; ++it) {
            const claimed_route& c = claims_.routes[*it];
            if ((c.stage && *c.stage != st.stage) || x.chunk < c.first_chunk || x.chunk >= c.last_chunk) continue;
            if (taken == UINT32_MAX || c.stage) taken = *it;
            if (c.stage) break;
          }
          const bool found = taken != UINT32_MAX || ranks_[r] == ranks_[x.peer.value];
          if (taken != UINT32_MAX) chunks[taken] += x.from.count;
          if (!found) {
            log_.add(check_kind::route, check_reader{all_[r]}.op_name(s, o) + ": no route is claimed for it");
            return;
          }
        }
      }
    loads_.assign(g_.link_count(), {});
    for (std::uint32_t k = 0; k < claims_.routes.size(); ++k)
      for (const claimed_share& x : claims_.routes[k].links)
        if (chunks[k] != 0) loads_[x.link.value] = loads_[x.link.value] + rational{chunks[k]} * x.share;
    std::vector<rational> claimed(g_.link_count());
    for (const claimed_load& c : claims_.loads) {
      if (c.link.value >= g_.link_count()) {
        log_.add(check_kind::load,
                 "a load is claimed for link " + std::to_string(c.link.value) + ", which is not there");
        return;
      }
      claimed[c.link.value] = claimed[c.link.value] + c.chunks;
    }
    rational busiest{};
    for (std::uint32_t e = 0; e < loads_.size(); ++e) {
      if (claimed[e] != loads_[e])
        log_.add(check_kind::load,
                 name(link_id{e}) + " carries " + text(loads_[e]) + " chunks, claimed are " + text(claimed[e]));
      if (loads_[e] == rational{0}) continue;
      const rational time = loads_[e] / (rational{all_[0].chunks} * exact_rate(link_id{e}));
      busiest = !time.valid() || !busiest.valid() ? rational{1} / rational{0} : busiest < time ? time : busiest;
    }
    if (busiest.valid()) log_.report.busiest = busiest;
  }

  void check_gap(std::optional<rational> bound) {
    const std::optional<rational>& busiest = log_.report.busiest;
    if (bound && busiest && *busiest < *bound)
      log_.add(check_kind::bound, "the busiest link takes " + text(*busiest) +
                                      " seconds per byte, less than the bound of " + text(*bound) +
                                      ": the plan moves less than it must");
    if (!claims_.gap) return;
    log_.report.gap_checked = true;
    if (!bound || !busiest) {
      log_.add(check_kind::gap, "a gap is claimed, but bound or loads are missing or wrong");
      return;
    }
    const rational gap = *busiest / *bound - rational{1};
    if (gap != *claims_.gap)
      log_.add(check_kind::gap, "loads and bound give a gap of " + text(gap) + ", claimed is " + text(*claims_.gap));
  }

  std::span<const program> all_;
  const topo::graph& g_;
  std::span<const node_id> ranks_;
  const plan::certificate& claims_;
  std::span<const bytes_per_second> rates_;
  check_log& log_;
  std::vector<rational> balance_, loads_;
  std::vector<bool> inside_;  // of the set that was measured last
};

}}}}  // namespace topocoll::v0::plan::detail
