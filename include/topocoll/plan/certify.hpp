// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes the certificate of a plan: its bound, the routes that prices assume, and what the links carry.
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/certificate.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/flow_model.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/detail/routes.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

namespace detail {

/// The fraction with the least denominator, up to a million, that rounds to `share`. Shares are products of 1/fan.
template <class = void>
[[nodiscard]] rational fraction_of(double share) {
  // Convergents of the continued fraction: p/q of consecutive quotients.
  std::int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  double rest = share;
  for (int k = 0; k < 40; ++k) {
    const auto whole = static_cast<std::int64_t>(rest);
    const std::int64_t p2 = whole * p1 + p0, q2 = whole * q1 + q0;
    if (q2 > 1'000'000 || p2 < 0) break;
    p0 = std::exchange(p1, p2);
    q0 = std::exchange(q1, q2);
    const double off = static_cast<double>(p1) / static_cast<double>(q1) - share;
    if (off < share * 1e-13 && -off < share * 1e-13) return {p1, q1};
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return {1, 0};
}

}  // namespace detail

/// The certificate of a plan for a problem. `limit` is the bound of the same problem without latencies
/// (`lower_bound(p)`, or by a cost model with `rate` alone).
///
/// Routes are those of `simulate`: split evenly over equal ways, or the ways of the plan's trees. Claims that cannot be
/// exact are left out: the bound when its capacities are no small fractions, ranks share a node or shards differ, loads
/// when a split has a denominator above a million or switches add up, the gap when either is missing.
/// @return `unavailable` when there is no way between two ranks; as `lower`
/// Cost: O(operations of all ranks + routes).
template <CostModel M>
[[nodiscard]] result<certificate> certify(const problem& p, const schedule& plan, const bound& limit, const M& cost) {
  if (p.graph == nullptr || p.rank_count() != plan.ranks)
    return fail(errc::invalid_argument, "a certificate needs a graph and a plan for as many ranks as the problem has");
  if (auto valid = validate(plan); !valid) return valid.error();
  const topo::graph& g = *p.graph;
  certificate made;
  bool shared = false;
  std::vector<bool> taken(g.node_count(), false);
  for (const node_id v : p.ranks) {
    if (v.value >= g.node_count()) return fail(errc::invalid_argument, "a rank sits on a node that is not there");
    shared = shared || taken[v.value];
    taken[v.value] = true;
  }
  if (limit.seconds_per_byte && limit.parts != 0 && !shared && p.shares.empty()) {
    made.seconds_per_byte = limit.seconds_per_byte;
    made.sets.resize(limit.parts);
    if (limit.parts == 1) made.sets[0] = limit.side;
    for (std::uint32_t v = 0; v < limit.set_of.size(); ++v)
      if (limit.set_of[v] < made.sets.size()) made.sets[limit.set_of[v]].push_back(node_id{v});
    for (const auto& [v, set] : limit.also_in)
      if (set < made.sets.size()) made.sets[set].push_back(v);
  }

  // Every pair of ranks has one route; messages in trees with ways of their own have one each.
  detail::router<> router(g);
  detail::lowered_programs<> programs(plan);
  detail::number_map known, known_ways;
  std::vector<rational> load(g.link_count());
  // What switches do is not what the programs send: loads of such plans are not claimed.
  const bool switched = seq::any_of(plan.stages, [](const stage& st) { return st.how == algorithm::in_switch; });
  bool exact = !switched;
  for (std::uint32_t r = 0; !switched && r < plan.ranks; ++r) {
    const auto given = programs.at(r);
    if (!given) return given.error();
    for (const step& st : (*given)->steps)
      for (std::uint32_t i = st.first_op; i < st.first_op + st.op_count; ++i) {
        const op& o = (*given)->ops[i];
        if (o.kind != op_kind::send) continue;
        const node_id from = p.ranks[r], to = p.ranks[o.peer.value];
        const std::uint32_t own = from == to ? 0 : programs.way_of(r, st, o);
        const std::uint64_t key = own == 0
                                      ? std::uint64_t{r} << 32U | o.peer.value
                                      : std::uint64_t{own} << 44U | std::uint64_t{st.stage & 0xfffU} << 32U | o.chunk;
        detail::number_map& numbers = own == 0 ? known : known_ways;
        std::uint32_t at = numbers.find(key);
        if (at == detail::number_map::absent) {
          at = static_cast<std::uint32_t>(made.routes.size());
          numbers.insert(key, at);
          claimed_route c;
          c.from = rank_id{r};
          c.to = o.peer;
          const auto put = [&](link_id e, double share) {
            const rational part = detail::fraction_of(share);
            exact = exact && part.valid();
            const auto same = seq::find_by(c.links, e, &claimed_share::link);
            if (same == c.links.end())
              c.links.push_back({e, part});
            else
              same->share = same->share + part;
          };
          if (own != 0) {
            c.stage = st.stage;
            c.first_chunk = o.chunk;
            c.last_chunk = o.chunk + 1;
            for (const link_id e : plan.ways[own - 1].links) put(e, 1);
          } else if (from == to) {
            const auto towards = detail::memory_link(g, from);
            const auto back = towards ? detail::mirror(g, *towards) : std::nullopt;
            if (towards && back) {
              put(*towards, 1);
              put(*back, 1);
            }
          } else if (!router.route(from, to, put)) {
            return fail(errc::unavailable, "there is no way from rank " + std::to_string(r) + " to rank " +
                                               std::to_string(o.peer.value) + " of the plan");
          }
          made.routes.push_back(std::move(c));
        }
        for (const claimed_share& x : made.routes[at].links)
          load[x.link.value] = load[x.link.value] + rational{o.from.count} * x.share;
      }
  }
  rational busiest{};
  for (std::uint32_t e = 0; e < load.size(); ++e) {
    exact = exact && load[e].valid();
    if (load[e] == rational{0}) continue;
    made.loads.push_back({link_id{e}, load[e]});
    const rational time = load[e] / (rational{plan.chunks()} * detail::as_fraction(cost.rate(g.at(link_id{e})).value));
    busiest = !busiest.valid() || !time.valid() ? rational{1, 0} : busiest < time ? time : busiest;
  }
  if (!exact) {
    made.routes.clear();
    made.loads.clear();
  } else if (made.seconds_per_byte && busiest.valid()) {
    const rational gap = busiest / *made.seconds_per_byte - rational{1};
    if (gap.valid()) made.gap = gap;
  }
  return made;
}

}}}  // namespace topocoll::v0::plan
