// SPDX-License-Identifier: Apache-2.0
#pragma once
// A levelled cluster as a small network: units that nothing tells apart are one node.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/levelled_cluster.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Units that nothing tells apart: their parents are alike, and so are they.
struct unit_class {
  static constexpr std::uint32_t none = UINT32_MAX;
  std::uint32_t level = 0;      ///< 0 the cluster, then one per tier, boxes, GPUs
  std::uint32_t parent = none;  ///< position of the class of its parents
  std::uint32_t first = 0;      ///< number of the first of them in its parent
  std::uint64_t in_parent = 1;  ///< how many in one parent
  bool named = false;           ///< alone, because something names it
  std::uint64_t count = 1;      ///< how many in all
  std::uint64_t gpus = 0;       ///< in one of them
  std::uint32_t node = none;    ///< GPUs: their node in the network
  int128 out = 0, in = 0;       ///< units of capacity that leave and enter one of them
};

/// The quotient of a cluster with some GPUs set apart.
struct level_quotient {
  exact_network net{};
  std::vector<std::int64_t> weight{};  ///< per node: GPUs
  std::vector<unit_class> classes{};   ///< parents before children
  std::vector<std::uint32_t> apart{};  ///< classes of the GPUs that were set apart, each of one GPU
};

/// Builds quotients of one cluster.
class level_builder {
 public:
  explicit level_builder(const levelled_cluster& c) : c_(c), pod_(static_cast<std::uint32_t>(c.tiers.size())) {}

  /// Checks the description and counts its rates. Cost: O(levels + exceptions).
  template <class = void>
  [[nodiscard]] result<void> prepare() {
    std::vector<double> rates{0};
    const auto add = [&](const two_way& r) {
      rates.push_back(r.up.value);
      rates.push_back(r.down.value);
      alike_ = alike_ && r.up == r.down;
    };
    bool sound = c_.boxes > 0 && c_.gpus > 0;
    for (std::uint32_t k = 0; k < pod_; ++k) {
      const fabric_tier& t = c_.tiers[k];
      sound = sound && t.units > 0;
      if (t.how == joint::in_pairs && k > 0)
        return fail(errc::unsupported, "tier " + std::to_string(k) + " joins units in pairs; only the outermost can");
      add(t.uplink);
    }
    if (!sound) return fail(errc::invalid_argument, "a level of the cluster has no units");
    add(c_.nic);
    add(c_.nvlink);
    for (const level_exception& e : c_.exceptions) {
      for (const auto* r : {&e.nic, &e.nvlink, &e.uplink})
        if (*r) add(**r);
      if (auto failure = flaw(e); !failure.empty())
        return fail(errc::invalid_argument, "exception " + std::to_string(&e - c_.exceptions.data()) + ": " + failure);
    }
    for (const double r : rates)
      if (!(r >= 0) || r > 9e15)
        return fail(errc::invalid_argument,
                    "a rate of " + std::to_string(r) + " bytes per second is none that can be counted");
    seq::sort_unique(rates);
    rates_ = count_rates(std::move(rates));
    return {};
  }
  [[nodiscard]] const counted_rates& rates() const { return rates_; }
  [[nodiscard]] bool both_ways_alike() const { return alike_; }

  /// The network in which the GPUs at the given places (numbers from the outside in) are apart from all others.
  /// @return `unsupported` when GPUs or capacities of a class do not fit into 63 bits
  template <class = void>
  [[nodiscard]] result<level_quotient> quotient(std::span<const std::vector<std::uint32_t>> apart) {
    q_ = level_quotient{};
    apart_ = apart;
    q_.apart.assign(apart.size(), unit_class::none);
    fits_ = true;
    find_rails();
    std::vector<std::uint32_t> all(c_.exceptions.size() + apart.size());
    for (std::uint32_t k = 0; k < all.size(); ++k) all[k] = k;
    unit_class cluster;
    q_.classes.push_back(cluster);
    (void)build(0, all, {c_.nic, c_.nvlink});
    if (!fits_)
      return fail(errc::unsupported, "the GPUs or capacities of the cluster add up to more than 62 bits hold");
    return std::move(q_);
  }
  [[nodiscard]] std::uint32_t depth() const { return pod_ + 2; }
  /// For each place in a box the first place that is like it, in the last quotient.
  template <class = void>
  [[nodiscard]] std::vector<std::uint32_t> places() const {
    std::vector<std::uint32_t> like(c_.gpus, unit_class::none);
    for (const std::uint32_t first : rail_first_) like[first] = first;
    for (std::uint32_t i = 0; i < c_.gpus; ++i)
      if (like[i] == unit_class::none) like[i] = stretch_[i];
    return like;
  }

 private:
  struct defaults {
    two_way nic, nvlink;
  };
  /// The switches at the top of a class of units: one per class of rails, or one.
  using tops = std::vector<std::uint32_t>;

  [[nodiscard]] std::uint32_t units_at(std::uint32_t level) const {
    return level < pod_ ? c_.tiers[level].units : (level == pod_ ? c_.boxes : c_.gpus);
  }
  template <class = void>
  [[nodiscard]] std::string flaw(const level_exception& e) const {
    if (e.unit.size() > depth()) return "the cluster has " + std::to_string(depth()) + " levels";
    for (std::uint32_t k = 0; k < e.unit.size(); ++k)
      if (e.unit[k] >= units_at(k))
        return "unit " + std::to_string(e.unit[k]) + " of " + std::to_string(units_at(k)) + " does not exist";
    if (e.units &&
        (e.unit.size() == depth() || *e.units == 0 || *e.units > units_at(static_cast<std::uint32_t>(e.unit.size()))))
      return "that many units are not to be had";
    if (e.rail && *e.rail >= c_.gpus) return "there is no such rail";
    if (e.rail && !rails_apart(static_cast<std::uint32_t>(e.unit.size()))) return "its switches carry all rails";
    if (e.uplink && (e.unit.empty() || e.unit.size() > pod_ || c_.tiers[e.unit.size() - 1].how == joint::in_pairs))
      return "the unit has no uplinks through switches";
    if (e.nvlink && c_.inside == joint::in_pairs) return "boxes without NVSwitches have one rate for all their links";
    return {};
  }
  /// True when a unit of this level has switches of their own for the rails at its top.
  [[nodiscard]] bool rails_apart(std::uint32_t level) const {
    bool apart = c_.rails;
    for (std::uint32_t k = level; k < pod_; ++k) apart = apart && !c_.tiers[k].joins_rails;
    return apart;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& path(std::uint32_t mark) const {
    return mark < c_.exceptions.size() ? c_.exceptions[mark].unit : apart_[mark - c_.exceptions.size()];
  }

  /// Classes of rails, or of the places of GPUs in a box: those that an exception or a mark names are alone.
  template <class = void>
  void find_rails() {
    std::vector<std::uint32_t> alone, from;  // alone; where a box with fewer GPUs ends
    for (std::uint32_t k = 0; k < c_.exceptions.size() + apart_.size(); ++k) {
      if (path(k).size() == depth()) alone.push_back(path(k).back());
      if (k >= c_.exceptions.size()) continue;
      const level_exception& e = c_.exceptions[k];
      if (e.rail && e.uplink) alone.push_back(*e.rail);
      if (e.units && e.unit.size() + 1 == depth()) from.push_back(*e.units);
    }
    std::vector<std::uint32_t> limits = std::move(from);
    for (const std::uint32_t i : alone) {
      limits.push_back(i);
      limits.push_back(i + 1);
    }
    limits.push_back(0);
    limits.push_back(c_.gpus);
    seq::sort_unique(limits);
    // Neighbouring ranges that nothing tells apart but a lonely place between them are one class.
    rail_first_.clear();
    rail_count_.clear();
    stretch_.assign(c_.gpus, 0);
    std::vector<std::uint32_t> ends;  // of boxes with fewer GPUs, to tell ranges apart
    for (const level_exception& e : c_.exceptions)
      if (e.units && e.unit.size() + 1 == depth()) ends.push_back(*e.units);
    seq::sort_unique(ends);
    std::uint32_t open = unit_class::none;  // class of the current stretch between two ends
    std::size_t end = 0;
    for (std::size_t k = 0; k + 1 < limits.size(); ++k) {
      const std::uint32_t at = limits[k], size = limits[k + 1] - at;
      while (end < ends.size() && ends[end] <= at) {
        ++end;
        open = unit_class::none;
      }
      if (seq::contains(alone, at)) {
        rail_first_.push_back(at);
        rail_count_.push_back(1);
      } else if (open == unit_class::none) {
        open = static_cast<std::uint32_t>(rail_first_.size());
        rail_first_.push_back(at);
        rail_count_.push_back(size);
      } else {
        rail_count_[open] += size;
      }
      if (open != unit_class::none)
        for (std::uint32_t i = at; i < at + size; ++i) stretch_[i] = rail_first_[open];
    }
  }

  std::uint32_t node(std::uint64_t gpus) {
    q_.weight.push_back(static_cast<std::int64_t>(gpus));
    fits_ = fits_ && gpus <= INT64_MAX / 4;
    return q_.net.nodes++;
  }
  /// Arcs between two classes: `pairs` connections of `rate`.
  void join(std::uint32_t lower, std::uint32_t upper, std::uint64_t pairs, const two_way& rate) {
    const int128 up = int128{rates_.of(rate.up.value)} * static_cast<int128>(pairs);
    const int128 down = int128{rates_.of(rate.down.value)} * static_cast<int128>(pairs);
    total_ += up + down;
    fits_ = fits_ && up < INT64_MAX / 2 && down < INT64_MAX / 2;
    if (up > 0) q_.net.arcs.push_back({lower, upper, static_cast<std::int64_t>(up)});
    if (down > 0) q_.net.arcs.push_back({upper, lower, static_cast<std::int64_t>(down)});
  }
  void leave(unit_class& u, std::uint64_t connections, const two_way& rate) const {
    u.out += int128{rates_.of(rate.up.value)} * static_cast<int128>(connections);
    u.in += int128{rates_.of(rate.down.value)} * static_cast<int128>(connections);
  }

  /// Splits the children of a unit into those that some mark names, one by one, and the others; `use` gets the number of
  /// the first, how many, and the marks that go on below.
  template <class Use>
  void each_group(std::uint32_t level, const std::vector<std::uint32_t>& marks, std::uint32_t units, Use use) {
    std::vector<std::uint32_t> named;
    for (const std::uint32_t m : marks)
      if (path(m).size() > level && path(m)[level] < units) named.push_back(path(m)[level]);
    seq::sort_unique(named);
    std::uint32_t unnamed = 0;
    while (unnamed < named.size() && named[unnamed] == unnamed) ++unnamed;
    for (const std::uint32_t i : named) {
      std::vector<std::uint32_t> below;
      for (const std::uint32_t m : marks)
        if (path(m).size() > level && path(m)[level] == i) below.push_back(m);
      use(i, std::uint64_t{1}, below, true);
    }
    if (named.size() < units) use(unnamed, std::uint64_t{units} - named.size(), std::vector<std::uint32_t>{}, false);
  }

  /// Builds what is inside the class at position `self`, and returns the switches at its top.
  template <class = void>
  tops build(std::uint32_t self, const std::vector<std::uint32_t>& marks, defaults d) {
    const std::uint32_t level = q_.classes[self].level;
    const std::uint64_t count = q_.classes[self].count;
    std::uint32_t units = units_at(level);
    for (const std::uint32_t m : marks) {
      if (m >= c_.exceptions.size() || path(m).size() != level) continue;
      const level_exception& e = c_.exceptions[m];
      if (e.nic) d.nic = *e.nic;
      if (e.nvlink) d.nvlink = *e.nvlink;
      if (e.units) units = *e.units;
    }
    if (level == pod_ + 1) return build_box(self, marks, d, units);

    const bool pod = level == pod_;
    const fabric_tier* tier = pod ? nullptr : &c_.tiers[level];
    const bool paired = tier != nullptr && tier->how == joint::in_pairs;
    tops mine;
    std::vector<std::pair<std::uint64_t, tops>> groups;
    each_group(level, marks, units,
               [&](std::uint32_t first, std::uint64_t like, const std::vector<std::uint32_t>& below, bool named) {
                 const std::uint32_t child = add_class(self, first, like);
                 q_.classes[child].named = named;
                 const tops theirs = build(child, below, d);
                 q_.classes[self].gpus += like * q_.classes[child].gpus;
                 if (pod) return mount(child, theirs, mine, d, below);
                 const bool apart = rails_apart(level + 1);
                 if (paired) {
                   // Rails stay apart. Those of this group among themselves are inside one node; with the groups before:
                   const two_way pair = two_way::both(tier->uplink.up);
                   for (std::size_t r = 0; r < theirs.size(); ++r)
                     leave(q_.classes[child], (units - 1) * (apart ? rail_count_[r] : std::uint64_t{1}), pair);
                   for (const auto& [others, theirs_too] : groups)
                     for (std::size_t r = 0; r < theirs.size(); ++r)
                       join(theirs[r], theirs_too[r],
                            count * like * others * (apart ? rail_count_[r] : std::uint64_t{1}), pair);
                   groups.push_back({like, theirs});
                   return;
                 }
                 const std::size_t wide = apart && !tier->joins_rails ? theirs.size() : 1;
                 while (mine.size() < wide) mine.push_back(node(0));
                 for (std::size_t r = 0; r < theirs.size(); ++r) {
                   const std::uint64_t like_rails = apart ? rail_count_[r] : 1;
                   two_way rate = tier->uplink;
                   for (const std::uint32_t m : below) {
                     if (m >= c_.exceptions.size() || path(m).size() != level + 1) continue;
                     const level_exception& e = c_.exceptions[m];
                     if (e.uplink && (!e.rail || !apart || *e.rail == rail_first_[r])) rate = *e.uplink;
                   }
                   join(theirs[r], mine[apart && !tier->joins_rails ? r : 0], count * like * like_rails, rate);
                   leave(q_.classes[child], like_rails, rate);
                 }
               });
    return mine;
  }

  std::uint32_t add_class(std::uint32_t parent, std::uint32_t first, std::uint64_t like) {
    unit_class u;
    u.level = q_.classes[parent].level + 1;
    u.parent = parent;
    u.first = first;
    u.in_parent = like;
    u.count = q_.classes[parent].count * like;
    fits_ = fits_ &&
            int128{static_cast<std::int64_t>(q_.classes[parent].count)} * static_cast<int128>(like) < INT64_MAX / 4;
    q_.classes.push_back(u);
    return static_cast<std::uint32_t>(q_.classes.size() - 1);
  }

  /// The GPUs of a class of boxes and what joins them; its tops are the GPUs themselves, by class of rails.
  template <class = void>
  tops build_box(std::uint32_t self, const std::vector<std::uint32_t>& marks, const defaults& d, std::uint32_t units) {
    const std::uint64_t count = q_.classes[self].count;
    tops gpus(rail_first_.size(), unit_class::none);
    const bool paired = c_.inside == joint::in_pairs;
    const std::uint32_t plane = paired ? unit_class::none : node(0);
    for (std::size_t r = 0; r < rail_first_.size(); ++r) {
      if (rail_first_[r] >= units) continue;
      const std::uint32_t child = add_class(self, rail_first_[r], rail_count_[r]);
      unit_class& u = q_.classes[child];
      u.gpus = 1;
      u.node = gpus[r] = node(u.count);
      q_.classes[self].gpus += rail_count_[r];
      const two_way link = rates_of(marks, rail_first_[r], d).nvlink;
      if (paired) {
        const two_way pair = two_way::both(d.nvlink.up);
        leave(u, units - 1, pair);
        for (std::size_t s = 0; s < r; ++s)
          if (gpus[s] != unit_class::none) join(gpus[r], gpus[s], count * rail_count_[r] * rail_count_[s], pair);
      } else {
        join(gpus[r], plane, u.count, link);
        leave(u, 1, link);
      }
      for (const std::uint32_t m : marks)
        if (m >= c_.exceptions.size() && path(m).back() == rail_first_[r]) q_.apart[m - c_.exceptions.size()] = child;
    }
    return gpus;
  }
  [[nodiscard]] defaults rates_of(const std::vector<std::uint32_t>& marks, std::uint32_t gpu, defaults d) const {
    for (const std::uint32_t m : marks) {
      if (m >= c_.exceptions.size() || path(m).size() != depth() || path(m).back() != gpu) continue;
      const level_exception& e = c_.exceptions[m];
      if (e.nic) d.nic = *e.nic;
      if (e.nvlink) d.nvlink = *e.nvlink;
    }
    return d;
  }

  /// Plugs a class of boxes into the leaves of its class of pods.
  template <class = void>
  void mount(std::uint32_t boxes, const tops& gpus, tops& leaves, defaults d, const std::vector<std::uint32_t>& marks) {
    for (const std::uint32_t m : marks) {
      if (m >= c_.exceptions.size() || path(m).size() != pod_ + 1) continue;
      if (c_.exceptions[m].nic) d.nic = *c_.exceptions[m].nic;
    }
    const std::size_t wide = c_.rails ? rail_first_.size() : 1;
    while (leaves.size() < wide) leaves.push_back(node(0));
    for (std::uint32_t k = boxes + 1; k < q_.classes.size(); ++k) {
      unit_class& u = q_.classes[k];
      if (u.parent != boxes) continue;
      const std::size_t r = static_cast<std::size_t>(seq::find(rail_first_, u.first) - rail_first_.begin());
      const two_way nic = rates_of(marks, u.first, d).nic;
      join(gpus[r], leaves[c_.rails ? r : 0], u.count, nic);
      leave(u, 1, nic);
      leave(q_.classes[boxes], u.in_parent, nic);
    }
  }

  const levelled_cluster& c_;
  std::uint32_t pod_;
  counted_rates rates_{};
  level_quotient q_{};
  std::span<const std::vector<std::uint32_t>> apart_{};
  std::vector<std::uint32_t> rail_first_{}, rail_count_{}, stretch_{};
  int128 total_ = 0;
  bool fits_ = true, alike_ = true;
};

}}}}  // namespace topocoll::v0::plan::detail
