// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that speaks for a plan, as a plain struct: loads, gaps, alternatives, and who wins at which size.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/proof.hpp>
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

/// What one plan takes at any size, cut into as many slices as are best for that size.
struct plan_curve {
  /// What does not depend on the size, and what each byte of it adds.
  struct slope {
    seconds fixed{};
    double per_byte = 0;

    [[nodiscard]] double at(double size) const { return fixed.value + per_byte * size; }
  };
  /// One number of slices: the steepest of what may hold it up counts.
  struct cut {
    std::uint32_t slices = 1;
    std::vector<slope> slopes;

    /// Slope that takes longest at a size. Precondition: there are some.
    [[nodiscard]] const slope& steepest(double size) const {
      const slope* most = &slopes.front();
      for (const slope& s : slopes)
        if (s.at(size) > most->at(size)) most = &s;
      return *most;
    }
  };
  std::string name;
  std::vector<cut> cuts;

  /// Line on which the curve lies at a size. Cost: O(slopes of all cuts). Precondition: there are some.
  [[nodiscard]] const slope& line_at(double size) const {
    const slope* least = &cuts.front().steepest(size);
    for (const cut& c : cuts)
      if (const slope& other = c.steepest(size); other.at(size) < least->at(size)) least = &other;
    return *least;
  }
  [[nodiscard]] seconds at(bytes size) const {
    const auto amount = static_cast<double>(size.value);
    return {line_at(amount).at(amount)};
  }
};

/// Who wins at which size.
struct size_map {
  std::vector<size_range> ranges;  ///< one after the other, without gaps; neighbours have different names
  std::vector<plan_curve> curves;  ///< of every name in `ranges`, in the order in which they first win
};

/// What a GPU library takes, by a model: never a measurement.
struct library_line {
  std::string model;            ///< whose
  std::optional<seconds> time;  ///< empty when the model does not apply
  std::string algorithm, protocol, limit;
  /// The middle half of healthy machines lies within time / (1 + spread) and time * (1 + spread); 0: not stated.
  double spread = 0;
  std::string why_not;
};

/// NICs that carry the same, to half a percent, at the same rate.
struct nic_line {
  std::string which;  ///< by name, the first and the last of many
  std::size_t nics = 0;
  bytes_per_second rate{};  ///< the narrower of its PCIe link and its cables
  bytes out{}, in{};        ///< of the one that sends most, that receives most
  bool slow = false;        ///< more than 1 % below the fastest
};
/// NICs that are nearest to the ranks of one rail.
struct rail_line {
  std::uint32_t rail = 0;
  std::size_t nics = 0;
  bytes out{}, in{};  ///< of all
  bytes out_largest{}, in_largest{};
};
/// Leaf switches that carry the same, to half a percent.
struct leaf_line {
  std::string which;
  std::size_t leaves = 0, uplinks = 0;  ///< uplinks of one leaf
  bytes from_hosts{}, to_hosts{};       ///< of the leaf that carries most
  bytes up{}, down{};
  bytes up_largest{}, down_largest{};  ///< on one uplink
};
/// Trees of a packed plan.
struct tree_summary {
  std::size_t trees = 0;
  std::uint32_t depth = 0;       ///< of the deepest
  double mean_depth = 0;         ///< by what the trees carry
  std::string spared;            ///< ranks that are leaves everywhere, in words; empty when there is none
  std::size_t spared_ranks = 0;  ///< how many these are
};

/// Everything that speaks for a plan. Refers to nothing: may outlive graph and problem.
struct explanation {
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};
  std::string machine;  ///< source of the graph
  std::uint32_t ranks = 0, boxes = 0, pods = 0;
  std::vector<std::uint64_t> shares;  ///< of the problem; empty for equal shards
  std::string chosen;
  std::uint32_t slices = 1;
  std::uint64_t digest = 0;
  bound limit;                   ///< by the rates of the cost model
  std::optional<bound> nominal;  ///< bandwidth only, by the capacities of the graph
  double gap = 0;
  /// The busiest link over what the bound's cut asks for, less 1: the gap of very large arrays whose stages overlap.
  double bandwidth_gap = 0;
  /// The same plus 1 as a fraction, where bound and load are fractions that fit.
  std::optional<rational> bandwidth_ratio;
  std::string remedy;                   ///< what makes up most of the gap, and what would remove it
  std::vector<library_line> libraries;  ///< the library model, then NCCL's own; empty without GPUs
  simulation price;                     ///< loads per link left out; see `loads`
  std::string bottleneck;               ///< busiest link in words
  std::vector<stage_line> stages;
  std::array<class_load, link_class_count> loads{};
  std::array<std::size_t, link_class_count> full{};  ///< links that are busy for at least 99 % of what the busiest is
  std::vector<nic_line> nics;                        ///< most NICs first; empty where none has a cable
  std::size_t nic_kinds = 0;                         ///< lines that `nics` would have if none were left out
  std::vector<rail_line> rails;                      ///< empty for one rail
  std::vector<leaf_line> leaves;
  std::optional<tree_summary> trees;
  std::vector<std::string> remarks;  ///< on slow parts and on what is left out, one sentence each
  std::vector<spine_line> spine;     ///< this plan first, then rings; empty when nothing could cross a spine
  std::vector<other_line> others;
  std::vector<size_range> sizes;
  std::vector<plan_curve> curves;
  std::optional<proof> proved;
  std::string unproved;

  [[nodiscard]] bytes_per_second algbw() const { return size / price.time; }
  [[nodiscard]] bytes_per_second busbw() const { return algbw() * busbw_factor(collective, ranks); }
};

}}}  // namespace topocoll::v0::plan
