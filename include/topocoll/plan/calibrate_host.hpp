// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fits the prices of processes in shared memory (`alpha_beta::host`) to measured collectives of one host.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/cost.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/traffic.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// One measured collective between processes of one host.
struct host_observation {
  collective_kind collective = collective_kind::all_reduce;
  /// Nothing: no plan, but every rank combined its part of all inputs into all outputs, in memory that all see.
  std::optional<algorithm> how = algorithm::ring;
  std::uint32_t ranks = 1;
  bytes size{};
  seconds time{};
};

/// What the fit found: T = launch + rounds * hop + bytes / rate, bytes as the busiest rank sends them.
struct host_calibration {
  seconds launch{}, hop{};
  bytes_per_second rate{};
  double median_error = 0;  ///< of |predicted / measured - 1|
  std::uint32_t rows = 0;
  /// Whether the measurements tell launch from hop (they do when plans with different numbers of rounds were run), and
  /// whether any was large enough to tell a rate.
  bool hop_determined = false, rate_determined = false;

  /// The model with these figures: hop is split over the two links through a memory, reduction runs at `rate`.
  [[nodiscard]] alpha_beta model() const {
    alpha_beta m = alpha_beta::host();
    m.launch_time = launch;
    m.price(topo::link_kind::memory).latency = hop / 2;
    m.reduce_rate = rate;
    return m;
  }
};

/// Fits three figures by robust least squares on logarithms, starting at `alpha_beta::host()`.
/// @return `invalid_argument` without measurements, for a time that is not positive or a plan that does not exist
/// Cost: O(measurements) after one walk through the traffic of each.
template <class = void>
[[nodiscard]] result<host_calibration> calibrate_host(std::span<const host_observation> measured);

namespace detail {

/// Rounds and bytes of the busiest rank of a flat plan; without a plan, two meetings and what a rank writes.
struct host_load {
  double rounds = 0, sent = 0;
};

template <class = void>
[[nodiscard]] result<host_load> host_load_of(const host_observation& o) {
  if (!o.how) {
    const bool one_output = o.collective == collective_kind::reduce_scatter ||
                            o.collective == collective_kind::reduce || o.collective == collective_kind::gather ||
                            o.collective == collective_kind::scatter;
    return host_load{2, static_cast<double>(o.size.value) / (one_output ? o.ranks : 1)};
  }
  const auto plan = flat_schedule(o.collective, o.ranks, rank_id{}, *o.how);
  if (!plan) return plan.error();
  host_load load;
  const double chunk = static_cast<double>(o.size.value) / plan->chunks();
  std::vector<double> out(o.ranks, 0);
  for (const traffic_round& r : traffic(*plan)) {
    load.rounds += r.repeat;
    for (const transfer& t : r.moves)
      out[t.from.value] += static_cast<double>(r.repeat) * static_cast<double>(t.chunks) * chunk;
  }
  for (const double bytes_out : out) load.sent = bytes_out > load.sent ? bytes_out : load.sent;
  return load;
}

}  // namespace detail

template <class>
result<host_calibration> calibrate_host(std::span<const host_observation> measured) {
  if (measured.empty()) return fail(errc::invalid_argument, "a calibration needs measurements");
  std::vector<detail::host_load> loads;
  double fewest = 1e300, most = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (!(measured[i].time.value > 0))
      return fail(errc::invalid_argument, "measurement " + std::to_string(i) + " took no time");
    const auto load = detail::host_load_of(measured[i]);
    if (!load) return load.error();
    fewest = load->rounds < fewest ? load->rounds : fewest;
    most = load->rounds > most ? load->rounds : most;
    loads.push_back(*load);
  }
  const alpha_beta start = alpha_beta::host();
  std::array<double, 3> k{start.launch_time.value, 2 * start.price(topo::link_kind::memory).latency.value,
                          1 / start.reduce_rate.value};
  const auto time = [&](const std::array<double, 3>& x, const detail::host_load& l) {
    return x[0] + l.rounds * x[1] + l.sent * x[2];
  };
  const std::array<double, 3> centre = k;
  const auto loss = [&](const std::array<double, 3>& x) {
    double sum = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const double z = __builtin_fabs(__builtin_log(time(x, loads[i]) / measured[i].time.value)) / 0.2;
      sum += z < 1 ? z * z / 2 : z - 0.5;
    }
    for (std::size_t j = 0; j < 3; ++j) {  // a weak pull, for what the measurements do not tell
      const double z = __builtin_log(x[j] / centre[j]) / 3;
      sum += z * z / 2;
    }
    return sum;
  };
  std::array<double, 3> step{0.5, 0.5, 0.5};
  double least = loss(k);
  for (int sweep = 0; sweep < 400; ++sweep)
    for (std::size_t j = 0; j < 3; ++j) {
      bool better = false;
      for (const double sign : {1.0, -1.0}) {
        auto moved = k;
        moved[j] *= __builtin_exp(sign * step[j]);
        const double now = loss(moved);
        if (!(now < least)) continue;
        least = now;
        k = moved;
        better = true;
        break;
      }
      step[j] = better ? step[j] * 1.5 : (step[j] > 2e-4 ? step[j] / 2 : 1e-4);
    }
  host_calibration c;
  c.launch = {k[0]};
  c.hop = {k[1]};
  c.rate = {1 / k[2]};
  c.rows = static_cast<std::uint32_t>(measured.size());
  c.hop_determined = most > 1.5 * fewest;
  std::vector<double> errors;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const double t = time(k, loads[i]);
    errors.push_back(__builtin_fabs(t / measured[i].time.value - 1));
    c.rate_determined = c.rate_determined || loads[i].sent * k[2] > t / 2;
  }
  seq::sort(errors);
  c.median_error = errors[errors.size() / 2];
  return c;
}

}}}  // namespace topocoll::v0::plan
