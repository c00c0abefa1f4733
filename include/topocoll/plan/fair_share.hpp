// SPDX-License-Identifier: Apache-2.0
#pragma once
// Max-min fair rates of flows that share places (links, engines), kept up to date as flows come and go.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace topocoll { inline namespace v0 { namespace plan {

/// What one flow of a way loads a place with, per byte that it moves: 1 on a link that it takes whole, 1/3 where it is
/// split over three, more than 1 where it stands for several equal flows that all pass the place.
struct fair_use {
  std::uint32_t place = 0;
  double share = 0;
};

/// Max-min fair rates by progressive filling, only where something changed.
///
/// Flows are known by their way, the places that they use and in what shares: all flows of one way have equal rates,
/// however many there are. Rates are max-min fair when every flow has a bottleneck: a place that is full and on which no
/// flow is faster. That is checked for what a change may have touched; whoever lost his bottleneck is filled again
/// together with those that changed, until everybody has one. So a change costs what depends on it, not all flows.
/// Source: Bertsekas and Gallager, "Data Networks", 2nd edition, 6.5.2.
template <class = void>
class fair_share {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  /// A place that gives so many bytes per second; at 0 its flows stand still.
  std::uint32_t add_place(double bytes_per_second);
  /// A way; `uses` name each place once, with shares above 0. A way without places is never slowed down.
  std::uint32_t add_way(std::span<const fair_use> uses);
  [[nodiscard]] std::size_t place_count() const { return places_.size(); }
  [[nodiscard]] std::size_t way_count() const { return ways_.size(); }
  [[nodiscard]] std::span<const fair_use> uses(std::uint32_t w) const {
    return {uses_.data() + ways_[w].first_use, uses_.data() + ways_[w].last_use};
  }

  /// One flow more on a way. Takes effect with `settle`. Precondition: the way came from `add_way`. Cost: O(places of it).
  void start(std::uint32_t w);
  /// One flow less. Precondition: there is one.
  void stop(std::uint32_t w);
  [[nodiscard]] std::uint32_t flows(std::uint32_t w) const { return ways_[w].flows; }

  /// Brings the rates up to date and says which ways that have flows got another rate.
  /// Cost: O(places of the ways that are filled again, and of their neighbours, times log).
  std::span<const std::uint32_t> settle();
  /// Bytes per second of each flow of the way, as of the last `settle`; infinite for a way without places.
  [[nodiscard]] double rate(std::uint32_t w) const { return ways_[w].rate; }
  /// The full place that sets the rate; `none` for a way without places or without flows.
  [[nodiscard]] std::uint32_t bottleneck(std::uint32_t w) const { return ways_[w].bottleneck; }

  /// Ways filled by all calls of `settle` so far: the work done.
  [[nodiscard]] std::uint64_t filled() const { return filled_; }

 private:
  struct way_state {
    std::size_t first_use = 0, last_use = 0;
    double rate = 0;
    std::uint32_t flows = 0, bottleneck = none;
    bool touched = false, chosen = false, open = false;
  };
  /// One use of a place by a way that has flows.
  struct member {
    std::uint32_t way;
    std::uint32_t use;  // position in uses_
  };
  struct place_state {
    double capacity = 0;
    std::vector<member> members{};
    // while filling:
    double rest = 0,
           wanted = 0;  // capacity for the chosen ways that are not frozen, and what they load it with per rate
    bool seen = false;
    double top = 0;  // fastest way on it
  };

  void choose_way(std::uint32_t w);
  void choose_first();
  void fill();
  bool choose_more();
  void see(std::uint32_t p);

  std::vector<place_state> places_;
  std::vector<way_state> ways_;
  std::vector<fair_use> uses_;
  std::vector<std::uint32_t> slot_;     // per use: its position among the members of its place
  std::vector<std::uint32_t> touched_;  // ways with other numbers of flows since the last settle
  std::vector<std::uint32_t> chosen_;   // ways that are filled again
  std::vector<std::uint32_t> seen_;     // places of the chosen and the touched
  std::vector<std::uint32_t> changed_;
  std::vector<double> before_;  // rates of the chosen ways before the change
  std::vector<std::pair<double, std::uint32_t>> heap_;
  std::uint64_t filled_ = 0;
};

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/fair_fill.hpp>
