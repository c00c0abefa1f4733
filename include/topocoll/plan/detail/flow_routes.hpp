// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which links each connection of the flow simulator uses: routes that are split evenly, ways of trees, or one hashed path.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/flow_model.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/flow_options.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Adds the routes of a model, each once.
template <class = void>
class flow_routes {
 public:
  flow_routes(const topo::graph& g, const flow_prices& prices, router<>& routes, const problem& p,
              std::span<const way> ways, std::span<const switch_way> switch_ways, const flow_options& options,
              flow_model& m)
      : g_(g),
        prices_(prices),
        router_(routes),
        p_(p),
        ways_(ways),
        switch_ways_(switch_ways),
        options_(options),
        m_(m) {}

  /// Finds the route of a connection.
  [[nodiscard]] result<void> find(flow_connection& c) {
    const node_id from = p_.ranks[c.from], to = p_.ranks[c.to];
    if (c.way > ways_.size() && from != to) return find_switched(c);
    const bool own_way = c.way != 0 && from != to;
    const std::uint64_t key = own_way ? std::uint64_t{c.way} : std::uint64_t{from.value} << 32U | to.value;
    number_map& known = own_way ? by_way_ : by_nodes_;
    std::uint32_t at = known.find(key);
    if (at == number_map::absent) {
      flow_route made;
      if (own_way) {
        for (const link_id e : ways_[c.way - 1].links) put(made, e.value, 1);
      } else if (from == to) {
        const auto towards = memory_link(g_, from);
        const auto back = towards ? mirror(g_, *towards) : std::nullopt;
        made.unpriced = !towards || !back;
        if (towards && back) {
          put(made, towards->value, 1);
          put(made, back->value, 1);
        }
      } else if (!router_.route(from, to, [&](link_id e, double share) { put(made, e.value, share); })) {
        return fail(errc::unavailable, "there is no way from rank " + std::to_string(c.from) + " to rank " +
                                           std::to_string(c.to) + " of the plan");
      }
      close(made);
      at = static_cast<std::uint32_t>(m_.routes.size());
      m_.routes.push_back(std::move(made));
      known.insert(key, at);
    }
    c.route = at;
    m_.unpriced = m_.unpriced || m_.routes[at].unpriced;
    if (options_.paths == path_choice::hashed && !own_way && from != to) {
      flow_route one = drawn(m_.routes[at], from.value, to.value, c);
      c.route = static_cast<std::uint32_t>(m_.routes.size());
      m_.routes.push_back(std::move(one));
    }
    return {};
  }

 private:
  /// A message by a switch: its share of what the links of both members carry.
  [[nodiscard]] result<void> find_switched(flow_connection& c) {
    const switch_way& w = switch_ways_[c.way - ways_.size() - 1];
    const node_id from = p_.ranks[c.from], to = p_.ranks[c.to];
    const std::uint64_t key = (std::uint64_t{c.from} << 24U | c.to) << 16U | (c.way - ways_.size() - 1);
    std::uint32_t at = by_switch_.find(key);
    if (at == number_map::absent) {
      flow_route made, plain;
      bool beyond = false;
      const std::vector<double>& drag = w.sums ? prices_.drag_sums : prices_.drag_copies;
      if (!router_.route(from, to, [&](link_id e, double share) { put(plain, e.value, share); }))
        return fail(errc::unavailable, "there is no way from rank " + std::to_string(c.from) + " to rank " +
                                           std::to_string(c.to) + " of the plan");
      close(plain);
      for (const flow_route::part& x : plain.parts) {
        const bool leaves = g_.tail(link_id{x.link}) == from;
        beyond = beyond || (!leaves && g_.head(link_id{x.link}) != to);
        if (!drag.empty()) made.drag = drag[x.link] > made.drag ? drag[x.link] : made.drag;
        made.parts.push_back({x.link, x.share * (leaves ? w.out : w.in)});
      }
      if (beyond)
        return fail(errc::unsupported, "sums in switches are simulated where one switch joins all members, and rank " +
                                           std::to_string(c.from) + " reaches rank " + std::to_string(c.to) +
                                           " through several");
      for (flow_route::part& x : made.parts) x.share *= made.drag;
      made.switched = true;
      made.latency = plain.latency + prices_.switch_start + prices_.switch_member * w.members;
      at = static_cast<std::uint32_t>(m_.routes.size());
      m_.routes.push_back(std::move(made));
      by_switch_.insert(key, at);
    }
    c.route = at;
    return {};
  }
  void put(flow_route& r, std::uint32_t link, double share) {
    if (slot_.empty()) slot_.assign(g_.link_count(), flow_none);
    if (slot_[link] == flow_none) {
      slot_[link] = static_cast<std::uint32_t>(r.parts.size());
      r.parts.push_back({link, 0});
    }
    r.parts[slot_[link]].share += share;
  }
  void close(flow_route& r) {
    for (const flow_route::part& x : r.parts) {
      slot_[x.link] = flow_none;
      r.latency += x.share * prices_.latency[x.link];
    }
  }
  /// One path of a split route: at every node one of the links that lead on, drawn in proportion to what they carry.
  [[nodiscard]] flow_route drawn(const flow_route& split, std::uint32_t from, std::uint32_t to,
                                 const flow_connection& c) {
    std::uint64_t hash =
        mixed(options_.seed ^ mixed(std::uint64_t{c.from} << 40U ^ std::uint64_t{c.to} << 16U ^ c.channel));
    flow_route one;
    for (std::uint32_t at = from; at != to;) {
      double all = 0;
      for (const flow_route::part& x : split.parts)
        if (g_.tail(link_id{x.link}).value == at) all += x.share;
      hash = mixed(hash);
      double left = all * (static_cast<double>(hash >> 11U) * 0x1p-53);
      const flow_route::part* taken = nullptr;
      for (const flow_route::part& x : split.parts) {
        if (g_.tail(link_id{x.link}).value != at) continue;
        taken = &x;
        left -= x.share;
        if (left < 0) break;
      }
      if (taken == nullptr || one.parts.size() > split.parts.size()) break;  // no route of the router ends before `to`
      put(one, taken->link, 1);
      at = g_.head(link_id{taken->link}).value;
    }
    close(one);
    return one;
  }

  const topo::graph& g_;
  const flow_prices& prices_;
  router<>& router_;
  const problem& p_;
  std::span<const way> ways_;
  std::span<const switch_way> switch_ways_;
  const flow_options& options_;
  flow_model& m_;
  number_map by_nodes_, by_way_, by_switch_;
  std::vector<std::uint32_t> slot_;  // per link: position in the route that is being made
};

}}}}  // namespace topocoll::v0::plan::detail
