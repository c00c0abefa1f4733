// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a plan was chosen, in words and numbers: for people as text, for programs as a plain struct.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/simulate.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// One stage of the chosen plan.
struct stage_line {
  std::string what;  ///< label, kind and algorithm
  std::size_t groups = 0;
  std::size_t members = 0;  ///< of the largest group
  std::uint32_t rounds = 0;
  seconds transfer{};
  seconds latency{};
  std::string limit;  ///< what sets the pace, in words
};

/// What a plan sends over the spine, and how long it takes: a line to compare with.
struct spine_line {
  std::string name;
  bytes up{};          ///< from leaves into spines, all uplinks together
  bytes up_largest{};  ///< on one uplink
  bytes down{};        ///< from spines into leaves
  bytes down_largest{};
  bytes nic_largest{};  ///< out of one NIC
  seconds time{};
};

/// A plan that was not chosen.
struct other_line {
  std::string name;
  std::optional<seconds> time;  ///< empty when it has no price
  std::string reason;
};

/// Sizes for which one plan is the cheapest.
struct size_range {
  bytes first{}, last{};
  std::string name;
  seconds first_time{}, last_time{};
  seconds first_bound{}, last_bound{};
};

/// Everything that speaks for a plan. Refers to nothing: may outlive graph and problem.
struct explanation {
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};
  std::string machine;  ///< source of the graph
  std::uint32_t ranks = 0, boxes = 0, pods = 0;
  std::string chosen;
  std::uint32_t slices = 1;
  std::uint64_t digest = 0;
  bound limit;                   ///< by the rates of the cost model
  std::optional<bound> nominal;  ///< bandwidth only, by the capacities of the graph
  double gap = 0;
  simulation price;        ///< loads per link left out; see `loads`
  std::string bottleneck;  ///< busiest link in words
  std::vector<stage_line> stages;
  std::array<class_load, link_class_count> loads{};
  std::vector<spine_line> spine;  ///< this plan first, then rings; empty when nothing could cross a spine
  std::vector<other_line> others;
  std::vector<size_range> sizes;
  std::optional<proof> proved;
  std::string unproved;

  [[nodiscard]] bytes_per_second algbw() const { return size / price.time; }
  [[nodiscard]] bytes_per_second busbw() const { return algbw() * busbw_factor(collective, ranks); }
};

/// A ring as NCCL builds it, in a given order of boxes: one ring per rank of a box, each on its own rail, entering and
/// leaving every box by it (boxes are passed up and down in turn), or one ring when boxes differ. For all_reduce,
/// all_gather and reduce_scatter; other collectives give an empty workload.
/// @param boxes  numbers of boxes in the order of the ring
template <class = void>
[[nodiscard]] workload ring_workload(const problem& p, const levels& at, std::span<const std::uint32_t> boxes);

/// Explains a choice. `map` (from `crossovers`) may be empty.
/// Cost: up to three simulations of rings, and one bound.
/// @return as `levels_of`
template <CostModel M>
[[nodiscard]] result<explanation> explain(simulator<M>& prices, const problem& p, const choice& made,
                                          std::span<const selection> map);

/// As text of about forty lines; `brief` keeps the first block. Ends in a newline.
template <class = void>
[[nodiscard]] std::string to_text(const explanation& e, bool brief = false);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/explain_text.hpp>
