// SPDX-License-Identifier: Apache-2.0
#pragma once
// Link capacities as whole multiples of one unit, so that cuts can be compared without rounding.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/concepts.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

__extension__ using int128 = __int128;

/// Greatest common divisor; 0 divides into everything. (<numeric> and <cmath> would cost 8,000 lines.)
[[nodiscard]] constexpr int128 common_divisor_128(int128 a, int128 b) {
  while (b != 0) {
    const int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
[[nodiscard]] constexpr std::int64_t common_divisor(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
/// Least whole number that is not less than `value`. Precondition: 0 <= value < 2^62.
[[nodiscard]] constexpr std::int64_t round_up(double value) {
  const auto down = static_cast<std::int64_t>(value);
  return static_cast<double>(down) < value ? down + 1 : down;
}

/// The directed arcs of a graph with capacities in `unit`s.
struct exact_network {
  struct arc {
    std::uint32_t from, to;
    std::int64_t units;
  };
  std::uint32_t nodes = 0;
  std::vector<arc> arcs;  ///< of capacity above zero, in link order
  rational unit{1};       ///< bytes per second of one unit
  bool exact = true;      ///< false: some capacities were rounded up to whole bytes per second
};

/// The fraction with a denominator of at most 64 that `value` is the rounded form of, or an invalid one.
///
/// Four units in the last place are granted: 2 * 50e9 / 3 and 100e9 / 3 are the same capacity.
template <class = void>
[[nodiscard]] rational as_fraction(double value) {
  const double slack = value * 0x1p-50;
  for (std::int64_t den = 1; den <= 64; ++den) {
    const double times = value * static_cast<double>(den);
    if (times > 9e15) break;
    const auto num = static_cast<std::int64_t>(times + 0.5);
    const double off = static_cast<double>(num) / static_cast<double>(den) - value;
    if (off <= slack && -off <= slack) return {num, den};
  }
  return {1, 0};
}

template <class = void>
void drop_copies(std::vector<double>& values) {
  seq::sort_unique(values);
}

/// Different rates as whole multiples of one unit.
struct counted_rates {
  struct counted {
    double value;
    std::int64_t units;
  };
  std::vector<counted> table{};  ///< by value
  rational unit{1};              ///< bytes per second of one unit
  bool exact = true;             ///< false: some rates were rounded up to whole bytes per second

  /// Precondition: `value` was counted.
  [[nodiscard]] std::int64_t of(double value) const {
    return seq::lower_bound_by(table, value, &counted::value)->units;
  }
};
/// Precondition: 0 <= each of `values` <= 9e15, ascending, no two alike.
template <class = void>
[[nodiscard]] counted_rates count_rates(std::vector<double> values) {
  counted_rates r;
  std::vector<rational> fractions;
  std::int64_t common = 1;  // least common denominator
  for (const double value : values) {
    fractions.push_back(as_fraction(value));
    const rational& f = fractions.back();
    common = f.valid() && common <= 1'000'000 ? common / common_divisor(common, f.denominator()) * f.denominator()
                                              : INT64_MAX;
  }
  r.exact = common <= 1'000'000;
  for (std::size_t k = 0; k < values.size() && r.exact; ++k) {
    const int128 units = int128{fractions[k].numerator()} * (common / fractions[k].denominator());
    r.exact = units <= INT64_MAX / 2;  // exact, but too long: give up exactness
    r.table.push_back({values[k], static_cast<std::int64_t>(units)});
  }
  if (!r.exact) {
    r.table.clear();
    for (const double value : values) r.table.push_back({value, round_up(value)});
  }
  std::int64_t divisor = 0;
  for (const auto& c : r.table) divisor = common_divisor(divisor, c.units);
  if (divisor == 0) divisor = 1;
  for (auto& c : r.table) c.units /= divisor;
  r.unit = rational{divisor, r.exact ? common : 1};
  return r;
}

/// Counts the capacities `rate(link)` of a graph, exactly when they are fractions with small denominators.
///
/// Otherwise they are rounded up to whole bytes per second, so that a cut never looks narrower than it is.
/// @return `unsupported` for a capacity of 9e15 bytes per second or more. Cost: O(links log links).
template <topo::LinkGraph G, class Rate>
[[nodiscard]] result<exact_network> count_capacities(const G& graph, Rate rate) {
  exact_network net;
  net.nodes = static_cast<std::uint32_t>(graph.node_count());
  std::vector<double> capacity(graph.link_count()), distinct;
  std::size_t crowded = 4096;
  for (std::uint32_t e = 0; e < capacity.size(); ++e) {
    const double c = capacity[e] = rate(link_id{e}).value;
    if (!(c >= 0) || c > 9e15)
      return fail(errc::unsupported, "link " + std::to_string(e) + " has a capacity of " + std::to_string(c) +
                                         " bytes per second, which cannot be counted exactly");
    // Most graphs have few different capacities, and neighbours have the same.
    if (e == 0 || c != capacity[e - 1]) distinct.push_back(c);
    if (distinct.size() >= crowded) {
      drop_copies(distinct);
      crowded = 2 * distinct.size() + 4096;
    }
  }
  drop_copies(distinct);

  const counted_rates table = count_rates(std::move(distinct));
  net.unit = table.unit;
  net.exact = table.exact;
  for (std::uint32_t v = 0; v < net.nodes; ++v)
    for (const link_id e : graph.out_links({v})) {
      const std::int64_t units = table.of(capacity[e.value]);
      if (units > 0) net.arcs.push_back({v, graph.head(e).value, units});
    }
  return net;
}

/// Arcs turned round: what gathers in one is scattered in the other.
template <class = void>
[[nodiscard]] exact_network reversed(exact_network net) {
  for (exact_network::arc& a : net.arcs) std::swap(a.from, a.to);
  return net;
}

/// Capacity that leaves and enters a node set, in units; -1 when it does not fit.
struct crossing {
  std::int64_t out = 0, in = 0;
};
template <class = void>
[[nodiscard]] crossing crossing_of(const exact_network& net, const std::vector<bool>& inside) {
  int128 out = 0, in = 0;
  for (const exact_network::arc& a : net.arcs) {
    if (inside[a.from] == inside[a.to]) continue;
    (inside[a.from] ? out : in) += a.units;
  }
  return {out > INT64_MAX ? -1 : static_cast<std::int64_t>(out), in > INT64_MAX ? -1 : static_cast<std::int64_t>(in)};
}

}}}}  // namespace topocoll::v0::plan::detail
