// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a schedule costs on a graph: its traffic put on the links, round by round, and priced.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/routes.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/traffic.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Kinds of places that a plan loads, as people ask for them.
enum class link_class : std::uint8_t {
  gpu_link,   ///< NVLink, XGMI: between GPUs, to NVSwitches
  pcie,       ///< PCIe and chip-to-chip links
  cpu,        ///< between NUMA domains
  memory,     ///< between a NUMA domain and its memory: data that ranks of one domain hand over
  adapter,    ///< inside a NIC, between its PCIe function and its port
  nic_out,    ///< cable from a NIC to its leaf, or to another NIC
  nic_in,     ///< cable from a leaf to a NIC
  leaf_up,    ///< leaf to spine: enters the spine
  leaf_down,  ///< spine to leaf: leaves the spine
  core        ///< between spines and core switches, both ways
};
inline constexpr std::size_t link_class_count = 10;
[[nodiscard]] constexpr const char* to_string(link_class c) {
  constexpr const char* words[] = {"gpu_link", "pcie",   "cpu",     "memory",    "adapter",
                                   "nic_out",  "nic_in", "leaf_up", "leaf_down", "core"};
  return words[static_cast<std::size_t>(c)];
}
/// Class of a link; decided by what it joins. Cost: O(1).
template <class = void>
[[nodiscard]] link_class class_of(const topo::graph& g, link_id e);

/// What all links of a class carry in one collective, slices and rounds together.
struct class_load {
  std::size_t links = 0;  ///< of this class in the graph, dead ones left out
  std::size_t used = 0;   ///< that carry anything
  bytes total{};          ///< added over links; data that cross two links of a class count twice
  bytes largest{};        ///< on one link
};

/// Where the time of a stage goes. Times are those of all slices together, one after the other.
struct stage_time {
  std::uint32_t rounds = 0;
  seconds transfer{};            ///< the slowest link (or reduction) of each round, added over the rounds
  seconds latency{};             ///< the longest way of each round, added over the rounds
  std::optional<link_id> limit;  ///< link that set the pace of most of `transfer`; empty when reduction did
};

/// A slice follows another no sooner than after `wait` + its part of `busy`: a rank posts its messages, a step of the plan
/// waits until the same step of a slice before is through.
struct slice_hold {
  seconds wait{};
  seconds busy{};  ///< of all slices together, at the size that was priced
};

/// The price of one schedule for one size.
struct simulation {
  seconds time{};
  seconds launch{};   ///< part of `time`: once per collective
  seconds latency{};  ///< part of `time`: of all rounds
  seconds posting{};  ///< part of `time`: what further slices wait for, beside the busiest link; see `simulator`
  /// What can hold slices up longer than the busiest link does, the longest wait first.
  std::vector<slice_hold> holds;
  slice_hold span;  ///< rounds of the rank that takes part for longest: a slice keeps its channel so long
  /// Rest of `time`: the busiest link when stages overlap perfectly, and what is left for want of slices.
  seconds busiest{};
  seconds unhidden{};
  std::uint32_t slices = 1;
  std::uint32_t together = 1;  ///< slices that count as one: of a double tree two
  std::uint32_t rounds = 0;
  std::vector<stage_time> stages;
  std::vector<bytes> loads;               ///< per link of the graph, rounded up
  class_load by_class[link_class_count];  ///< indexed by `link_class`
  std::optional<link_id> limit;  ///< link with the longest time for its load; empty when reduction takes longer
  double share = 0;              ///< of `time` in which that link is busy
  /// Most ranks that send to one rank over Ethernet in a round. Where they meet, switches drop what their buffers cannot
  /// take, and TCP waits; the time does not know that. InfiniBand and NVLink stop senders before that happens.
  std::uint32_t incast = 0;
  std::vector<std::string> notes;  ///< what was not priced, and why
  bytes size{};                    ///< of the whole array, as in the problem

  /// The same plan cut into another number of slices. Precondition: a multiple of `together`.
  void cut_into(std::uint32_t other) {
    unhidden = unhidden * (static_cast<double>(slices) / other);
    slices = other;
    posting = held(1);
    time = launch + latency + posting + busiest + unhidden;
    share = time.value > 0 ? busiest / time : 0;
  }

  /// Time for another size, with the same plan: latency stays, what links carry is proportional. Cost: O(holds).
  [[nodiscard]] seconds at(bytes other) const {
    if (size.value == 0) return time;
    const double factor = other / size;
    return launch + latency + held(factor) + (busiest + unhidden) * factor;
  }

  /// `posting` for `factor` times the size.
  [[nodiscard]] seconds held(double factor) const {
    const double parts = std::max(slices / together, 1U), channels = double{max_channels} / together;
    double longest = 0;
    for (const slice_hold& h : holds)
      longest = std::max(longest, h.wait.value - factor * (busiest - h.busy).value / parts);
    longest *= parts - 1;
    if (parts > channels) {
      const seconds one = span.wait + span.busy * (factor / parts), hidden = busiest * (factor * (parts - 1) / parts);
      longest = std::max(longest, (one * (parts / channels - 1) - hidden).value);
    }
    return {longest};
  }
};

/// Traffic to be priced that need not come from a schedule.
struct workload {
  std::vector<traffic_round> rounds;
  std::uint64_t chunks = 1;  ///< in which `transfer::chunks` counts
  std::uint32_t slices = 1;
  std::vector<double> reduced{};         ///< per stage: share of what a rank receives that it must reduce
  std::vector<std::uint32_t> at_once{};  ///< per stage: `slices_at_once`; empty: one everywhere
  std::uint32_t together = 1;            ///< `slice_kinds`
  std::vector<way> ways{};               ///< that `transfer::way` counts, from 1
};

/// Prices schedules on one graph; keeps what it learns about routes, so use one for many schedules.
///
/// The model. A transfer takes the routes of `detail::router`, split as an ideal ECMP splits; ranks of one NUMA domain
/// hand data over through its memory. A round takes max over links of load / rate, or the reduction of the busiest rank
/// if that is longer, plus the longest latency of its transfers and `post()` for each further message of a rank. With
/// c slices, stages overlap: the first goes through all rounds, and each further one follows after the longest of: B / c,
/// where B is the busiest link over the whole plan; the posts of the rank with the most messages in a slice; the latency
/// and 1/c of the time of any round, as steps of `slices_at_once` slices are under way at the same time. Nor are more than
/// `max_channels` slices at one rank, as those of one channel go through its steps one after the other. Thus
/// T = launch + sum of latencies + (sum of round times) / c + (c - 1) times that, never below B, nor a bound on the graph.
/// Where a switch adds up or multiplies (`algorithm::in_switch`), links of its members carry what enters and leaves the
/// switch, at the rate and after the start that the cost model says (`SwitchPrices`).
/// Not modelled: hash collisions of ECMP, protocol thresholds, other traffic.
/// Source of the overlap term: pipelining of stages in c pieces, as in van de Geijn, "On global combine operations", 1994.
template <CostModel M>
class simulator {
 public:
  /// The graph must outlive the simulator. Cost: O(nodes + links).
  simulator(const topo::graph& g, M cost);

  /// @return `invalid_argument` when plan and problem differ in graph, ranks or collective; `unavailable` when there is
  ///         no way between two ranks; `unsupported` when more than 512 ranks all send to each other at once
  /// Cost: O(transfers in distinct rounds), each as many steps as its route has links.
  [[nodiscard]] result<simulation> run(const problem& p, const schedule& plan);
  [[nodiscard]] result<simulation> run(const problem& p, const workload& work);
  [[nodiscard]] const M& cost() const { return cost_; }

 private:
  struct bearer {
    double seconds_per_byte = 0;
    double latency = 0;
    bool ethernet = false;
  };
  /// The same at a switch that works for the round.
  [[nodiscard]] double seconds_per_byte(std::uint32_t e, bool sums) const {
    if constexpr (SwitchPrices<M>) {
      const double rate = cost_.rate_in_switch(g_->at(link_id{e}), sums).value;
      return rate > 0 ? 1 / rate : 0;
    } else {
      return links_[e].seconds_per_byte;
    }
  }
  [[nodiscard]] double switch_start(std::uint32_t members) const {
    if constexpr (SwitchPrices<M>)
      return cost_.switch_start(members).value;
    else
      return 0;
  }
  const topo::graph* g_;
  M cost_;
  detail::router<> router_;
  std::vector<bearer> links_;
  std::vector<double> load_, whole_;    // bytes per link: of a round, of the plan
  std::vector<double> slowed_;          // seconds per link that switches at work add to the time of its bytes
  std::vector<std::uint32_t> touched_;  // links with a load in this round
  /// The same for bundles of links between switches, and the latency of each (below 0: not known yet).
  std::vector<double> bundle_load_, bundle_latency_;
  std::vector<std::uint32_t> touched_bundles_;
};

/// Prices one schedule. Cost: as `simulator`, built and used once.
template <CostModel M>
[[nodiscard]] result<simulation> simulate(const problem& p, const schedule& plan, const M& cost) {
  if (p.graph == nullptr) return fail(errc::invalid_argument, "a simulation needs a graph");
  return simulator<M>(*p.graph, cost).run(p, plan);
}

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/simulate_rounds.hpp>
