// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the traffic of a box is spread over its ways into the network where these are not equally fast.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/level_groups.hpp>
#include <topocoll/plan/levels.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Entry rates of the members of a box, by rail.
template <class = void>
[[nodiscard]] std::vector<double> entries_of(const levels& at, const std::vector<rank_id>& members) {
  std::vector<double> rates;
  for (const rank_id r : members) rates.push_back(r.value < at.entry.size() ? at.entry[r.value] : 0);
  return rates;
}
template <class = void>
[[nodiscard]] double sum_of(std::span<const double> values) {
  double all = 0;
  for (const double v : values) all += v;
  return all;
}
/// True when some member gets in more than one percent slower than another: no source states rates more exactly.
template <class = void>
[[nodiscard]] bool uneven_rates(std::span<const double> rates) {
  double least = 1e300, most = 0;
  for (const double r : rates) {
    least = std::min(least, r);
    most = std::max(most, r);
  }
  return most > 0 && least < most * 0.99;
}

/// Whole numbers that add up to `all` and are as the weights are, each to within 1. Precondition: some weight is above 0.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> whole_shares(std::uint32_t all, std::span<const double> weights) {
  std::vector<std::uint32_t> shares;
  const double sum = sum_of(weights);
  double before = 0;
  std::uint32_t given = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    before += weights[j];
    const auto until = j + 1 == weights.size() ? all : static_cast<std::uint32_t>(all * (before / sum) + 0.5);
    shares.push_back(until - given);
    given = until;
  }
  return shares;
}

/// Which member of a box takes each unit into and out of the box. `home[u]` is the member that would do it if all entries
/// were equal; a value beyond the members means any. Members keep what their entry can bear; the rest goes to the others.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> spread_over_entries(std::span<const double> rates,
                                                             std::vector<std::uint32_t> home) {
  const std::vector<std::uint32_t> quota = whole_shares(static_cast<std::uint32_t>(home.size()), rates);
  std::vector<std::uint32_t> used(rates.size(), 0);
  for (std::uint32_t& m : home) {
    if (m < used.size() && used[m] < quota[m])
      ++used[m];
    else
      m = 0xffffffffU;
  }
  std::uint32_t next = 0;
  for (std::uint32_t& m : home) {
    if (m != 0xffffffffU) continue;
    while (next + 1 < used.size() && used[next] >= quota[next]) ++next;
    m = next;
    ++used[next];
  }
  return home;
}

/// One unit of a box that stays out of the exchange between boxes.
struct hand_over {
  std::uint32_t unit = 0;
  std::uint32_t member = 0;   ///< of the box, by rail; hands over and takes back
  std::uint32_t partner = 0;  ///< box whose member on the same rail takes its part along
};

/// What a box with slow entries does in an all-reduce, where every unit that a box takes part in crosses its entries twice
/// each way.
struct weak_box {
  std::uint32_t box = 0;
  std::vector<std::uint32_t> member;  ///< per unit: who holds it after the reduction in the box
  std::vector<hand_over> leaf;        ///< units that cross the entries once each way only, in order
};

/// Boxes whose entries are slower than those of most, and how much each hands over to another box.
///
/// A box that takes part in the exchange of a unit sends and receives it about twice; one that hands it over to a partner
/// and takes the sum back, once. With 2y + x = time * rate and y + x = 1 the slow box keeps up; the partners' extra work is
/// spread over all boxes of full rate. The common time is where both sides end together, found by bisection.
/// Nothing is returned when boxes differ in size, when fewer than two have full rate, or when all rates are equal.
template <class = void>
[[nodiscard]] std::vector<weak_box> weak_boxes(const levels& at, const roster& who, std::uint32_t units) {
  std::vector<weak_box> weak;
  if (who.box.size() < 3) return weak;
  const std::size_t g = who.box[0].size();
  std::vector<double> totals;
  for (const auto& members : who.box) {
    if (members.size() != g) return weak;
    totals.push_back(sum_of(entries_of(at, members)));
  }
  std::vector<double> sorted = totals;
  seq::sort(sorted);
  const double typical = sorted[sorted.size() / 2];
  if (!(typical > 0)) return weak;
  std::vector<std::uint32_t> strong;
  for (std::uint32_t b = 0; b < totals.size(); ++b) {
    if (totals[b] < typical * 0.99) {
      weak.emplace_back();
      weak.back().box = b;
    } else {
      strong.push_back(b);
    }
  }
  if (weak.empty() || strong.size() < 2 || weak.size() > strong.size()) return {};

  const auto leaf_share = [&](const weak_box& w, double time) {
    return std::clamp(2 - time * 2 * totals[w.box] / typical, 0.0, 1.0);
  };
  double low = 1, high = 2;
  for (int step = 0; step < 40; ++step) {
    const double time = (low + high) / 2;
    double handed = 0;
    for (const weak_box& w : weak) handed += leaf_share(w, time);
    (handed > static_cast<double>(strong.size()) * (2 * time - 2) ? low : high) = time;
  }

  std::uint32_t ordinal = 0;
  for (weak_box& w : weak) {
    const std::vector<double> rates = entries_of(at, who.box[w.box]);
    const double ring = (1 - leaf_share(w, high)) * units, all = sum_of(rates);
    std::vector<std::uint32_t> kept(g);
    std::vector<double> left(g);  // capacity for units that are handed over
    for (std::size_t j = 0; j < g; ++j) {
      const double share = std::min(ring * rates[j] / all, static_cast<double>(units) / static_cast<double>(g));
      kept[j] = static_cast<std::uint32_t>(share + 0.5);
      left[j] = std::max(0.0, high * 2 * rates[j] / typical * units - 2 * share);
    }
    std::vector<std::uint32_t> home;  // of the units that are handed over
    for (std::uint32_t j = 0; j < g; ++j) {
      const auto lo = static_cast<std::uint32_t>(std::uint64_t{units} * j / g);
      const auto hi = static_cast<std::uint32_t>(std::uint64_t{units} * (j + 1) / g);
      for (std::uint32_t u = lo; u < hi; ++u) {
        w.member.push_back(j);
        if (u - lo < kept[j]) continue;
        w.leaf.push_back({u, j, 0});
        home.push_back(j);
      }
    }
    if (!home.empty() && sum_of(left) > 0) home = spread_over_entries(left, std::move(home));
    // In the same pod if it has enough boxes of full rate to share the work; neighbours in the list differ between weak boxes.
    std::vector<std::uint32_t> near;
    for (const std::uint32_t b : strong)
      if (who.pod_of_box[b] == who.pod_of_box[w.box]) near.push_back(b);
    const std::vector<std::uint32_t>& partners = near.size() >= 64 ? near : strong;
    for (std::size_t k = 0; k < w.leaf.size(); ++k) {
      hand_over& h = w.leaf[k];
      h.member = home[k];
      h.partner = partners[(h.unit + ordinal) % partners.size()];
      w.member[h.unit] = h.member;
    }
    ++ordinal;
  }
  return weak;
}

}}}}  // namespace topocoll::v0::plan::detail
