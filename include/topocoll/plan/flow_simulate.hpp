// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the programs of all ranks on a graph, message by message, links shared max-min fairly: when everything ends, and why.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/detail/flow_model.hpp>
#include <topocoll/plan/flow_options.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// What one link did.
struct link_work {
  bytes carried{};  ///< rounded up
  seconds busy{};   ///< time in which it carried anything
};

/// A piece of the critical path: one message, or one operation on a rank, from when it could begin to its end.
struct flow_leg {
  rank_id from{}, to{};     ///< equal for an operation on one rank
  std::uint32_t step = 0;   ///< of `from`
  std::uint32_t stage = 0;  ///< index into `flow_simulation::stages`
  bytes amount{};
  seconds start{};                 ///< when both ends had started their steps
  seconds posting{};               ///< waiting for earlier messages of its ranks to be posted
  seconds latency{};               ///< until the first byte
  seconds transfer{};              ///< until the last
  std::optional<link_id> limit{};  ///< link that set its rate most of the time; empty when a rank's own work did
};

struct stage_end {
  std::string label;
  seconds time{};  ///< when its last step ends
};

/// What came out.
struct flow_simulation {
  seconds time{};
  seconds launch{};              ///< part of `time`: once per collective
  seconds ceiling{};             ///< what `time` cannot exceed, found without simulation: see `flow_simulator::ceiling`
  std::vector<link_work> links;  ///< per link of the graph
  std::vector<stage_end> stages;
  std::vector<flow_leg>
      critical;                ///< each begins where the one before it ended; their times and `launch` add up to `time`
  std::string critical_path;   ///< the same in words
  std::uint64_t messages = 0;  ///< of all ranks; empty ones are not sent
  std::uint64_t flows = 0;     ///< messages and operations that were simulated: one for each class
  std::uint64_t events = 0;
  std::uint64_t filled = 0;        ///< rates that were computed
  std::uint32_t rank_classes = 0;  ///< ranks of a class do the same at the same time on links that are as busy
  std::vector<std::string> notes;  ///< what was not priced, and why
};

/// Times of one plan when connections are hashed to paths.
struct path_spread {
  seconds ideal{};  ///< evenly split
  seconds best{}, median{}, worst{};
  std::vector<seconds> times;  ///< per seed, in order
};

/// Simulates programs on one graph; keeps what it learns about routes, so use one for many plans.
///
/// The model. A step starts when the one before it on its channel has started and those in `after` have ended. A message is
/// ready when both its steps have started (nothing is buffered). A rank posts its sends, and its receives, `post()` apart,
/// in the order in which they become ready. Then the latency of the route passes; then bytes flow at the max-min fair rate
/// of all flows on all links (`fair_share`). Reduction takes place on arrival and shares the rank's reduction rate; a local
/// `reduce` takes that rate alone, a `copy` moves two bytes through memory where a reduction moves three. Empty messages are
/// not sent. Ranks of one node hand data over through its memory, once in and once out.
///
/// Grouping. Ranks, connections and links are partitioned so that equals meet equals equally often (the coarsest equitable
/// partition, by colour refinement). By induction over events, ranks of a class are in the same state at all times: equal
/// states give equal max-min rates, because those are unique. So one rank of each class is simulated. Signatures of 128 bits
/// are compared, not the neighbourhoods themselves.
///
/// Every event ends something, so their number is bounded by that of steps, messages and operations: a plan that cannot go
/// on is reported, never waited for.
/// Sources: fluid model of flows as in SimGrid (Velho et al., ACM TOMACS 2013); partition: Hopcroft 1971, here by rounds.
template <CostModel M>
class flow_simulator {
 public:
  /// The graph must outlive the simulator. Cost: O(nodes + links).
  flow_simulator(const topo::graph& g, M cost);

  /// Runs programs; program r belongs to rank r.
  /// @return `invalid_argument` when programs and problem differ or numbers are out of range; `unavailable` when there is
  ///         no way between two ranks or a message gets no bandwidth; `bug` when the plan hangs, naming ranks and steps
  /// Cost: O(operations of all ranks + routes) to group, then events of one rank per class, each with the rates it changes.
  [[nodiscard]] result<flow_simulation> run(const problem& p, std::span<const program> programs,
                                            const flow_options& options = {});
  /// The same for a schedule, lowered rank by rank: memory for the programs of one rank per class. Trees whose ways are
  /// written down (`schedule::ways`) take these, whatever `paths` says.
  [[nodiscard]] result<flow_simulation> run(const problem& p, const schedule& plan, const flow_options& options = {});

  /// Upper bound on the simulated time, in closed form: the longest path through the programs when every message and
  /// operation is as slow as max-min fairness allows.
  ///
  /// A flow of max-min fair rates gets at least capacity / (load per rate of all flows that can be active with it) of its
  /// worst place. Which flows can be active together follows from `after`: on one channel of one rank those of the steps
  /// from the first that need not have ended to the latest; channels and ranks are added up. See docs/models/simulation.md.
  /// @return as `run`
  [[nodiscard]] result<seconds> ceiling(const problem& p, const schedule& plan, const flow_options& options = {});

  /// Time with ideally split paths and with paths hashed by seeds 1 to `seeds`. Cost: `seeds` + 1 runs.
  [[nodiscard]] result<path_spread> spread(const problem& p, const schedule& plan, std::uint32_t seeds,
                                           flow_options options = {});

  [[nodiscard]] const M& cost() const { return cost_; }

 private:
  template <class Programs>
  [[nodiscard]] result<flow_simulation> run_all(const problem& p, Programs& programs, const flow_options& options,
                                                bool only_ceiling);

  const topo::graph* g_;
  M cost_;
  detail::router<> router_;
  detail::flow_prices prices_;
};

/// Simulates one schedule. Cost: as `flow_simulator`, built and used once.
template <CostModel M>
[[nodiscard]] result<flow_simulation> simulate_flows(const problem& p, const schedule& plan, const M& cost,
                                                     const flow_options& options = {}) {
  if (p.graph == nullptr) return fail(errc::invalid_argument, "a simulation needs a graph");
  return flow_simulator<M>(*p.graph, cost).run(p, plan, options);
}

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/flow_run.hpp>
