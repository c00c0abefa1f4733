// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the rounds of a schedule are put on links and added up.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/rank_network.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

template <class>
link_class class_of(const topo::graph& g, link_id e) {
  const topo::link& l = g.at(e);
  const topo::node_kind from = g.at(l.from).kind, to = g.at(l.to).kind;
  switch (l.kind) {
    case topo::link_kind::nvlink:
    case topo::link_kind::xgmi: return link_class::gpu_link;
    case topo::link_kind::c2c:
    case topo::link_kind::pcie: return link_class::pcie;
    case topo::link_kind::cpu: return link_class::cpu;
    case topo::link_kind::memory: return link_class::memory;
    case topo::link_kind::internal: return link_class::adapter;
    case topo::link_kind::infiniband:
    case topo::link_kind::ethernet: break;
  }
  if (from == topo::node_kind::core_switch || to == topo::node_kind::core_switch) return link_class::core;
  if (to == topo::node_kind::spine) return link_class::leaf_up;
  if (from == topo::node_kind::spine) return link_class::leaf_down;
  return topo::is_switch(from) ? link_class::nic_in : link_class::nic_out;
}

namespace detail {

/// Part of what a rank receives in a stage that it must reduce: half where the results come back by the same way.
[[nodiscard]] constexpr double reduced_share(stage_kind kind, algorithm how) {
  if (how == algorithm::in_switch) return 0;
  switch (kind) {
    case stage_kind::reduce_scatter:
    case stage_kind::reduce: return 1;
    case stage_kind::all_reduce: return how == algorithm::doubling || how == algorithm::one_shot ? 1 : 0.5;
    default: return 0;
  }
}

/// Rounds with the very same moves: priced once. A halving and the doubling that mirrors it are such, and so are the
/// stages on the way into and out of a box.
struct round_group {
  std::vector<std::size_t> members;  ///< positions among the rounds
  double repeats = 0;                ///< added over the members
};
template <class = void>
[[nodiscard]] std::vector<round_group> equal_rounds(const std::vector<traffic_round>& rounds) {
  std::vector<round_group> groups;
  number_map by_hash;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const transfer& t : rounds[k].moves)
      hash = (hash ^ (std::uint64_t{t.from.value} << 32U | t.to.value) ^ t.chunks << 13U) * 0x100000001b3U;
    const std::uint32_t known = by_hash.find(hash);
    if (known != number_map::absent && rounds[groups[known].members.front()].moves == rounds[k].moves) {
      groups[known].members.push_back(k);
      groups[known].repeats += rounds[k].repeat;
      continue;
    }
    if (known == number_map::absent) by_hash.insert(hash, static_cast<std::uint32_t>(groups.size()));
    groups.push_back({{k}, static_cast<double>(rounds[k].repeat)});
  }
  return groups;
}

/// Leaves those that are the longest for some size and number of slices, and longer than the busiest link.
template <class = void>
void keep_longest(std::vector<slice_hold>& holds, seconds busiest) {
  seq::sort(holds, [](const slice_hold& a, const slice_hold& b) {
    return a.wait != b.wait ? b.wait < a.wait : b.busy < a.busy;
  });
  // Lines wait + x busy, x from 0 on: the upper ones, by rising slope; the last to be beaten is that of the busiest link.
  holds.push_back({seconds{0}, busiest});
  std::vector<slice_hold> kept;
  for (const slice_hold& h : holds) {
    if (!kept.empty() && h.busy <= kept.back().busy) continue;
    const auto meet = [&](const slice_hold& other) { return (other.wait - h.wait) / (h.busy - other.busy); };
    while (kept.size() > 1 && meet(kept[kept.size() - 2]) <= (kept[kept.size() - 2].wait - kept.back().wait) /
                                                                 (kept.back().busy - kept[kept.size() - 2].busy))
      kept.pop_back();
    kept.push_back(h);
  }
  if (!kept.empty() && kept.back().wait.value <= 0) kept.pop_back();
  holds = std::move(kept);
}

template <class = void>
[[nodiscard]] bytes whole_bytes(double amount) {
  return {static_cast<std::uint64_t>(amount * (1 - 1e-12) + 0.999999)};
}

}  // namespace detail

template <CostModel M>
simulator<M>::simulator(const topo::graph& g, M cost) : g_(&g), cost_(std::move(cost)), router_(g) {
  links_.reserve(g.link_count());
  for (const topo::link& l : g.links()) {
    const double rate = cost_.rate(l).value;
    links_.push_back({rate > 0 ? 1 / rate : 0, cost_.latency(l).value, l.kind == topo::link_kind::ethernet});
  }
  load_.assign(g.link_count(), 0);
}

template <CostModel M>
result<simulation> simulator<M>::run(const problem& p, const schedule& plan) {
  if (p.ranks.size() != plan.ranks || p.collective != plan.collective)
    return fail(errc::invalid_argument, "a plan of " + std::string(to_string(plan.collective)) + " for " +
                                            std::to_string(plan.ranks) + " ranks was priced for " +
                                            std::string(to_string(p.collective)) + " of " +
                                            std::to_string(p.ranks.size()));
  // k ranks that all talk to each other at once are k (k-1) transfers, and posting them alone takes k times `post`.
  constexpr std::uint32_t most_pairs = 512;
  for (const stage& st : plan.stages) {
    if (st.how != algorithm::direct && st.how != algorithm::one_shot) continue;
    std::size_t largest = st.axis ? plan.shape[*st.axis] : 0;
    for (std::size_t k = 0; k < st.group_count(); ++k) largest = std::max<std::size_t>(largest, st.group(k).size());
    if (largest > most_pairs)
      return fail(errc::unsupported, std::to_string(largest) +
                                         " ranks that all send to each other at once are not priced; " +
                                         std::to_string(most_pairs) + " are the most");
  }
  if (auto fits = check_shares(p); !fits) return fits.error();
  const std::uint64_t chunks = traffic_unit(plan, p.shares);
  if (chunks == 0) return fail(errc::unsupported, "the shares of the ranks are too long to be counted with 63 bits");
  workload work{traffic(plan, p.shares), chunks, plan.slices, {}, {}, 1, plan.ways};
  for (const stage& st : plan.stages) {
    work.reduced.push_back(detail::reduced_share(st.kind, st.how));
    work.at_once.push_back(slices_at_once(st));
  }
  if (plan.slices > 1) work.together = slice_kinds(plan);
  return run(p, work);
}

template <CostModel M>
result<simulation> simulator<M>::run(const problem& p, const workload& work) {
  if (p.graph != g_) return fail(errc::invalid_argument, "the problem is about another graph than the simulator");
  for (const way& w : work.ways)
    for (const link_id e : w.links)
      if (e.value >= g_->link_count())
        return fail(errc::invalid_argument,
                    "a way of the plan takes link " + std::to_string(e.value) + ", but the graph has only " +
                        std::to_string(g_->link_count()),
                    "price a plan on the graph that it was made for");
  for (const node_id v : p.ranks)
    if (v.value >= g_->node_count())
      return fail(errc::invalid_argument, "a rank sits on node " + std::to_string(v.value) +
                                              ", but the graph has only " + std::to_string(g_->node_count()) +
                                              " nodes");
  const std::size_t ranks = p.ranks.size(), stages = work.reduced.size();
  simulation s;
  s.size = p.size;
  s.slices = work.slices;
  s.together = work.together;
  s.stages.resize(stages);
  s.launch = cost_.launch();
  whole_.assign(g_->link_count(), 0);
  slowed_.assign(g_->link_count(), 0);
  std::vector<double> received(ranks, 0), reduced(ranks, 0);
  std::vector<std::uint32_t> sends(ranks, 0), receives(ranks, 0), meeting(ranks, 0);
  std::vector<double> posts_out(ranks, 0), posts_in(ranks, 0);  // messages of a rank in one slice
  std::vector<double> paced(stages, 0);                         // transfer time that the stage's limit set
  const double chunk = static_cast<double>(p.size.value) / static_cast<double>(work.chunks);
  const double per_reduced = cost_.reduce(bytes{std::uint64_t{1} << 40U}).value / 0x1p40;
  double serial = 0;                                              // all round times, one after the other
  std::vector<double> own_latency(ranks, 0), own_time(ranks, 0);  // the same of the rounds in which a rank takes part
  std::vector<std::uint32_t> last_round(ranks, 0);
  std::uint32_t group_number = 0;
  bool unpriced = false;

  for (const detail::round_group& group : detail::equal_rounds(work.rounds)) {
    const traffic_round& like = work.rounds[group.members.front()];
    const std::vector<transfer>& moves = like.moves;
    double longest = 0;
    bool beyond = false;  // a route goes on between switches
    std::uint32_t most = 0;
    for (const transfer& t : moves) {
      const double amount = static_cast<double>(t.chunks) * chunk;
      const double arriving = like.switched == 0 ? amount : static_cast<double>(t.arrives) * chunk;
      const node_id from = p.ranks[t.from.value], to = p.ranks[t.to.value];
      double latency = 0;
      bool ethernet = false;
      const auto put = [&](link_id e, double share) {
        if (load_[e.value] == 0) touched_.push_back(e.value);
        if (like.switched == 0) {
          load_[e.value] += amount * share;
        } else {
          const bool leaves = g_->tail(e) == from;
          load_[e.value] += (leaves ? amount : arriving) * share;
          beyond = beyond || (!leaves && g_->head(e) != to);
        }
        latency += links_[e.value].latency * share;
        ethernet = ethernet || links_[e.value].ethernet;
      };
      const auto put_bundle = [&](std::uint32_t number, double share) {
        beyond = true;
        if (number >= bundle_load_.size()) {
          bundle_load_.resize(number + 1, 0);
          bundle_latency_.resize(number + 1, -1);
        }
        if (bundle_latency_[number] < 0) {
          double way = 0;
          router_.open_bundle(number, [&](link_id e, double part) { way += links_[e.value].latency * part; });
          bundle_latency_[number] = way;
        }
        if (bundle_load_[number] == 0) touched_bundles_.push_back(number);
        bundle_load_[number] += amount * share;
        latency += bundle_latency_[number] * share;
      };
      if (from == to) {
        const auto towards = detail::memory_link(*g_, from);
        const auto back = towards ? detail::mirror(*g_, *towards) : std::nullopt;
        if (towards && back) {
          put(*towards, 1);
          put(*back, 1);
        } else {
          unpriced = unpriced || t.from != t.to;
        }
      } else if (t.way != 0) {
        for (const link_id e : work.ways[t.way - 1].links) put(e, 1);
      } else if (!router_.route(from, to, put, put_bundle)) {
        return fail(errc::unavailable, "there is no way from rank " + std::to_string(t.from.value) + " to rank " +
                                           std::to_string(t.to.value) + " of the plan");
      }
      longest = std::max(longest, latency);
      if (ethernet) s.incast = std::max(s.incast, ++meeting[t.to.value]);
      if (like.switched != 0 && beyond)
        return fail(errc::unsupported, "sums in switches are priced where one switch joins all members, and rank " +
                                           std::to_string(t.from.value) + " reaches rank " +
                                           std::to_string(t.to.value) + " through several");
      received[t.to.value] += arriving;
      most = std::max({most, sends[t.from.value] += t.messages, receives[t.to.value] += t.messages});
      posts_out[t.from.value] += t.messages * group.repeats;
      posts_in[t.to.value] += t.messages * group.repeats;
    }
    for (const std::uint32_t number : touched_bundles_) {
      const double amount = bundle_load_[number];
      router_.open_bundle(number, [&](link_id e, double share) {
        if (load_[e.value] == 0) touched_.push_back(e.value);
        load_[e.value] += amount * share;
      });
      bundle_load_[number] = 0;
    }
    touched_bundles_.clear();
    double on_links = 0, most_received = 0;
    std::uint32_t pacer = UINT32_MAX;
    for (const std::uint32_t e : touched_) {
      double time = load_[e] * links_[e].seconds_per_byte;
      if (like.switched != 0) {
        const double plain = std::exchange(time, load_[e] * seconds_per_byte(e, like.sums));
        slowed_[e] += (time - plain) * group.repeats;
      }
      if (time > on_links) {
        on_links = time;
        pacer = e;
      }
      whole_[e] += load_[e] * group.repeats;
      load_[e] = 0;
    }
    touched_.clear();
    double reductions = 0;  // per byte received
    for (const std::size_t k : group.members) reductions += work.reduced[work.rounds[k].stage] * work.rounds[k].repeat;
    for (const transfer& t : moves) {
      double& in = received[t.to.value];
      most_received = std::max(most_received, in);
      reduced[t.to.value] += in * reductions;
      in = 0;
      sends[t.from.value] = 0;
      receives[t.to.value] = 0;
      meeting[t.to.value] = 0;
    }
    if (like.switched != 0) longest += switch_start(like.switched);
    const double step_latency = longest + (most > 1 ? (most - 1) * cost_.post().value : 0);
    ++group_number;
    for (const transfer& t : moves)
      for (const rank_id r : {t.from, t.to}) {
        if (std::exchange(last_round[r.value], group_number) == group_number) continue;
        own_latency[r.value] += step_latency * group.repeats;
        own_time[r.value] += on_links * group.repeats;
      }
    for (const std::size_t k : group.members) {
      const traffic_round& r = work.rounds[k];
      const double on_rank = most_received * work.reduced[r.stage] * per_reduced;
      const double times = static_cast<double>(r.repeat) + r.fill, slowest = std::max(on_links, on_rank);
      stage_time& out = s.stages[r.stage];
      out.rounds += r.repeat + r.fill;
      out.transfer += seconds{slowest * times};
      out.latency += seconds{step_latency * times};
      if (slowest * times > paced[r.stage]) {
        paced[r.stage] = slowest * times;
        out.limit = on_rank > on_links || pacer == UINT32_MAX ? std::optional<link_id>{} : link_id{pacer};
      }
      serial += slowest * times;
      // Slices of different kinds that go at once are one here.
      const double at_once = work.at_once.empty() ? 1 : std::max(work.at_once[r.stage] / work.together, 1U);
      s.holds.push_back({seconds{step_latency / at_once}, seconds{slowest / at_once}});
    }
  }

  double busiest = 0;
  s.loads.resize(g_->link_count());
  for (std::uint32_t e = 0; e < whole_.size(); ++e) {
    if (links_[e].seconds_per_byte <= 0) continue;
    class_load& c = s.by_class[static_cast<std::size_t>(class_of(*g_, {e}))];
    ++c.links;
    if (whole_[e] <= 0) continue;
    s.loads[e] = detail::whole_bytes(whole_[e]);
    ++c.used;
    c.total += s.loads[e];
    c.largest = std::max(c.largest, s.loads[e]);
    const double time = whole_[e] * links_[e].seconds_per_byte + slowed_[e];
    if (time > busiest) {
      busiest = time;
      s.limit = link_id{e};
    }
  }
  for (const double in : reduced)
    if (in * per_reduced > busiest) {
      busiest = in * per_reduced;
      s.limit.reset();
    }
  for (const stage_time& t : s.stages) {
    s.rounds += t.rounds;
    s.latency += t.latency;
  }
  s.busiest = seconds{busiest};
  s.unhidden = seconds{std::max(0.0, serial - busiest) * work.together / work.slices};
  double messages = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    messages = std::max({messages, posts_out[r], posts_in[r]});
    if (own_latency[r] + own_time[r] > (s.span.wait + s.span.busy).value)
      s.span = {seconds{own_latency[r]}, seconds{own_time[r]}};
  }
  s.holds.push_back({cost_.post() * messages, seconds{0}});
  detail::keep_longest(s.holds, s.busiest);
  s.posting = s.held(1);
  s.time = s.launch + s.latency + s.posting + s.busiest + s.unhidden;
  s.share = s.time.value > 0 ? s.busiest / s.time : 0;
  if (unpriced)
    s.notes.push_back("some ranks share a device whose memory rate nobody states: what they hand over is not priced");
  return s;
}

}}}  // namespace topocoll::v0::plan
