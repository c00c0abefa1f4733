// SPDX-License-Identifier: Apache-2.0
#pragma once
// The search for constants: robust least squares along one coordinate after the other.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/detail/model_predict.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Time of the cheapest way in microseconds; infinite when there is none. The input was checked.
[[nodiscard]] inline double least_time(const observation& o, const model_constants& k) {
  if (o.machine.ranks == 1) return k[model_parameter::launch];
  double best = __builtin_huge_val();
  each_way(o.machine, o.collective, static_cast<double>(o.size.value), o.conditions, k,
           [&](library_algorithm a, library_protocol p, double us, double, double, double) {
             if (us < best && allowed(o.conditions, a, p)) best = us;
           });
  return best;
}

/// One fit over some of the rows.
class model_fit {
 public:
  model_fit(std::span<const observation> all, const model_constants& centre, std::uint32_t left_out) : centre_(centre) {
    std::vector<std::uint32_t> count;
    for (const observation& o : all) {
      const std::size_t at = o.system * size_band_count + band_number(o.size);
      if (at >= count.size()) count.resize(at + 1, 0);
      ++count[at];
    }
    constexpr double by_band[] = {1, 0.6, 1, 0.6, 1.6};
    for (const observation& o : all) {
      if (o.system == left_out) continue;
      const std::size_t band = band_number(o.size);
      const double n = count[o.system * size_band_count + band];
      rows_.push_back({&o, __builtin_log(o.time.value * 1e6), by_band[band] * __builtin_pow(n, -0.65), band, 0});
    }
  }

  /// Fits, starting at `k`; returns the least found.
  double run(model_constants& k, std::uint32_t sweeps) {
    find_dependents(k);
    // What no row speaks of is what it was believed to be, wherever the search starts.
    for (std::size_t j = 0; j < model_parameter_count; ++j)
      if (dependents_[j].empty()) k.values[j] = centre_.values[j];
    std::array<double, model_parameter_count> step{};
    step.fill(0.15);
    double now = evaluate(k);
    for (std::uint32_t s = 0; s < sweeps; ++s) {
      const double before = now;
      for (std::size_t j = 0; j < model_parameter_count; ++j) {
        if (dependents_[j].empty()) continue;
        bool better = false;
        for (const double sign : {1.0, -1.0}) {
          const double moved = clamp(j, k.values[j] * __builtin_exp(sign * step[j]));
          if (moved == k.values[j]) continue;
          const double gain = change(k, j, moved);
          if (gain < 0) {
            commit(k, j, moved);
            now += gain;
            step[j] *= 1.5;
            better = true;
            break;
          }
        }
        if (!better) step[j] = std::max(step[j] * 0.5, 1e-3);
      }
      if (before - now < 1e-4 * before && s > 25) break;
    }
    return now;
  }

  /// The whole figure; keeps the share of each row.
  double evaluate(const model_constants& k) {
    double sum = 0;
    for (row& r : rows_) sum += r.loss = loss_of(r, k);
    for (std::size_t j = 0; j < model_parameter_count; ++j) sum += pull(j, k.values[j]);
    return sum;
  }

  /// Second derivative along the logarithm of constant j: of the measurements' part, by central differences.
  double curvature(model_constants k, std::size_t j) const {
    constexpr double h = 0.03;
    const double at = k.values[j];
    double sum = 0;
    for (const std::uint32_t i : dependents_[j]) {
      double f[3];
      for (int s = -1; s <= 1; ++s) {
        k.values[j] = at * __builtin_exp(s * h);
        f[s + 1] = loss_of(rows_[i], k);
      }
      sum += (f[0] - 2 * f[1] + f[2]) / (h * h);
    }
    return sum;
  }
  [[nodiscard]] std::uint32_t dependents(std::size_t j) const {
    return static_cast<std::uint32_t>(dependents_[j].size());
  }
  /// Curvature of the pull towards the centre.
  [[nodiscard]] static double pull_curvature(std::size_t j) {
    const double s = model_parameters[j].prior_spread;
    return 2.0 / 3 / (s * s);
  }
  /// Rows whose prediction moves by a fiftieth or more of the relative change of a constant.
  void find_dependents(const model_constants& k) {
    std::vector<double> now;
    for (const row& r : rows_) now.push_back(least_time(*r.what, k));
    for (std::size_t j = 0; j < model_parameter_count; ++j) {
      dependents_[j].clear();
      model_constants more = k, less = k;
      // A quarter either way, so that a protocol that the constant could bring into play counts too.
      more.values[j] *= 1.25;
      less.values[j] /= 1.25;
      for (std::uint32_t i = 0; i < rows_.size(); ++i) {
        const double up = least_time(*rows_[i].what, more) / now[i], down = least_time(*rows_[i].what, less) / now[i];
        if (__builtin_fabs(up - 1) > 0.005 || __builtin_fabs(down - 1) > 0.005) dependents_[j].push_back(i);
      }
    }
  }

 private:
  struct row {
    const observation* what = nullptr;
    double log_time = 0;
    double weight = 0;
    std::size_t band = 0;
    double loss = 0;
  };

  [[nodiscard]] static double loss_of(const row& r, const model_constants& k) {
    constexpr double scatter[] = {0.15, 0.12, 0.10, 0.06, 0.03};
    const double z = __builtin_fabs(__builtin_log(least_time(*r.what, k)) - r.log_time) / scatter[r.band];
    return r.weight * (z < 1 ? z * z / 2 : z - 0.5);
  }
  [[nodiscard]] double pull(std::size_t j, double value) const {
    const double z = __builtin_log(value / centre_.values[j]) / model_parameters[j].prior_spread;
    return z * z / 3;
  }
  [[nodiscard]] double clamp(std::size_t j, double value) const {
    const double range = __builtin_exp(3 * model_parameters[j].prior_spread);
    const double most =
        model_parameters[j].unit == "share" ? std::min(1.0, centre_.values[j] * range) : centre_.values[j] * range;
    return std::min(std::max(value, centre_.values[j] / range), most);
  }
  [[nodiscard]] double change(const model_constants& k, std::size_t j, double value) const {
    model_constants moved = k;
    moved.values[j] = value;
    double sum = pull(j, value) - pull(j, k.values[j]);
    for (const std::uint32_t i : dependents_[j]) sum += loss_of(rows_[i], moved) - rows_[i].loss;
    return sum;
  }
  void commit(model_constants& k, std::size_t j, double value) {
    k.values[j] = value;
    for (const std::uint32_t i : dependents_[j]) rows_[i].loss = loss_of(rows_[i], k);
  }

  model_constants centre_;
  std::vector<row> rows_;
  std::array<std::vector<std::uint32_t>, model_parameter_count> dependents_;
};

/// Median of some numbers; 0 for none.
[[nodiscard]] inline double median_of(std::vector<double> all) {
  if (all.empty()) return 0;
  seq::sort(all);
  const std::size_t n = all.size();
  return n % 2 == 1 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
}

inline constexpr std::uint32_t no_system = UINT32_MAX;

template <class = void>
[[nodiscard]] result<std::uint32_t> check_observations(std::span<const observation> all) {
  std::uint32_t systems = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto fine = predict(all[i].machine, all[i].collective, all[i].size, all[i].conditions);
    if (!fine)
      return fail(errc::invalid_argument,
                  "measurement " + std::to_string(i) + " cannot be predicted: " + fine.error().what);
    if (!(all[i].time.value > 0))
      return fail(errc::invalid_argument, "measurement " + std::to_string(i) + " took no time");
    systems = std::max(systems, all[i].system + 1);
  }
  if (all.empty()) return fail(errc::invalid_argument, "a calibration needs measurements");
  return systems;
}

}  // namespace detail

template <class>
result<calibration> calibrate(std::span<const observation> measured, const calibration_options& options) {
  const auto systems = detail::check_observations(measured);
  if (!systems) return systems.error();
  calibration c;
  c.constants = options.centre;
  c.rows = static_cast<std::uint32_t>(measured.size());
  detail::model_fit fit(measured, options.centre, detail::no_system);
  c.before = fit.evaluate(c.constants);
  c.after = fit.run(c.constants, options.sweeps);
  // The dependents were found at the start; constants far from it may have brought other rows into play.
  c.after = fit.run(c.constants, options.sweeps);
  fit.find_dependents(c.constants);
  std::vector<bool> seen(*systems, false);
  for (const observation& o : measured) seen[o.system] = true;
  std::vector<model_constants> others;
  for (std::uint32_t s = 0; s < *systems; ++s) {
    if (!seen[s]) continue;
    ++c.systems;
    if (!options.spread_by_leaving_out) continue;
    model_constants k = c.constants;
    detail::model_fit(measured, options.centre, s).run(k, 30);
    others.push_back(k);
  }
  for (std::size_t j = 0; j < model_parameter_count; ++j) {
    fitted_parameter& p = c.parameters[j];
    p.what = static_cast<model_parameter>(j);
    p.value = c.constants.values[j];
    p.centre = options.centre.values[j];
    p.rows = fit.dependents(j);
    const double data = std::max(fit.curvature(c.constants, j), 0.0), pull = detail::model_fit::pull_curvature(j);
    p.determined = p.rows > 0 && data > pull;
    const double by_curvature = __builtin_sqrt(1 / (data + pull));
    p.spread = by_curvature;
    if (others.size() >= 5 && p.rows > 0) {
      double mean = 0, sum = 0;
      for (const model_constants& k : others) mean += __builtin_log(k.values[j]) / static_cast<double>(others.size());
      for (const model_constants& k : others) {
        const double d = __builtin_log(k.values[j]) - mean;
        sum += d * d;
      }
      const double n = static_cast<double>(others.size());
      const double jackknife = __builtin_sqrt(sum * (n - 1) / n);
      // Below the resolution of the search it says nothing.
      if (jackknife > 2e-3) p.spread = jackknife;
    }
  }
  return c;
}

template <class>
std::array<error_line, size_band_count> errors_of(std::span<const observation> measured,
                                                  std::span<const seconds> predicted) {
  std::array<error_line, size_band_count> lines{};
  for (std::size_t b = 0; b < size_band_count; ++b) {
    std::vector<double> errors, ratios;
    std::vector<std::vector<double>> by_system;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (detail::band_number(measured[i].size) != b || !(predicted[i].value > 0)) continue;
      const double ratio = predicted[i] / measured[i].time;
      const double error = __builtin_fabs((b == 0 ? ratio : 1 / ratio) - 1);
      errors.push_back(error);
      ratios.push_back(ratio - 1);
      if (measured[i].system >= by_system.size()) by_system.resize(measured[i].system + 1);
      by_system[measured[i].system].push_back(error);
    }
    std::vector<double> medians;
    for (const auto& s : by_system)
      if (!s.empty()) medians.push_back(detail::median_of(s));
    error_line& line = lines[b];
    line.rows = static_cast<std::uint32_t>(errors.size());
    line.systems = static_cast<std::uint32_t>(medians.size());
    line.median = detail::median_of(errors);
    line.bias = detail::median_of(ratios);
    line.median_of_systems = detail::median_of(medians);
    seq::sort(errors);
    if (!errors.empty()) line.ninth_decile = errors[errors.size() * 9 / 10];
  }
  return lines;
}

template <class>
std::vector<seconds> predictions_for(std::span<const observation> measured, const model_constants& constants) {
  std::vector<seconds> all;
  for (const observation& o : measured) {
    const auto p = predict(o.machine, o.collective, o.size, o.conditions, constants);
    all.push_back(p ? p->time : seconds{});
  }
  return all;
}

template <class>
result<std::vector<seconds>> predictions_left_out(std::span<const observation> measured,
                                                  const calibration_options& options, const model_constants& fitted,
                                                  std::uint32_t sweeps) {
  const auto systems = detail::check_observations(measured);
  if (!systems) return systems.error();
  std::vector<seconds> all(measured.size());
  for (std::uint32_t s = 0; s < *systems; ++s) {
    bool any = false;
    for (const observation& o : measured) any = any || o.system == s;
    if (!any) continue;
    model_constants k = fitted;
    detail::model_fit(measured, options.centre, s).run(k, sweeps);
    for (std::size_t i = 0; i < measured.size(); ++i)
      if (measured[i].system == s) all[i] = {detail::least_time(measured[i], k) * 1e-6};
  }
  return all;
}

}}}  // namespace topocoll::v0::plan
