// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statistics that survive outliers: median, median absolute deviation, quantiles, intervals; empty when samples are too few.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// What can be summarised: a plain ratio, or a quantity of core/units.hpp that holds a double.
template <class Q>
concept Quantity = std::same_as<Q, double> ||(std::is_aggregate_v<Q>&& requires(Q q) {
  { q.value } -> std::same_as<double&>;
});

/// The number inside a quantity, in its own unit.
template <Quantity Q>
[[nodiscard]] constexpr double number_in(Q q) {
  if constexpr (std::same_as<Q, double>)
    return q;
  else
    return q.value;
}

/// MAD times this estimates the standard deviation of normally distributed samples: 1 / quantile(3/4) of the standard
/// normal distribution. Source: Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", JASA 1993.
inline constexpr double mad_to_deviation = 1.4826;

/// Median; the mean of the two middle samples when their number is even. Empty without samples.
/// Cost: O(n log n). Samples that are not numbers must be left out by the caller.
template <Quantity Q>
[[nodiscard]] std::optional<Q> median(std::span<const Q> samples);

/// Median absolute deviation from the median, not scaled. Empty below 3 samples: two always lie equally far from the middle.
template <Quantity Q>
[[nodiscard]] std::optional<Q> mad(std::span<const Q> samples);

/// The value below which `share` of the samples lie, interpolated between neighbours (definition 7 of Hyndman and Fan, 1996).
///
/// Empty when fewer than 1 / min(share, 1 - share) samples exist: no sample can then stand for the tail (p99 needs 100), and
/// for a share outside 0 to 1. The extremes themselves, share 0 and 1, need one sample.
template <Quantity Q>
[[nodiscard]] std::optional<Q> quantile(std::span<const Q> samples, double share);

/// Bounds between which the true median lies.
template <Quantity Q>
struct interval {
  Q low{};
  Q high{};
  double confidence = 0;  ///< what the bounds really give, at least what was asked for
};

/// Interval of the median from order statistics: no assumption on the distribution, nothing is drawn at random.
///
/// The k-th smallest and k-th largest of n samples enclose the median with probability 1 - 2 P(B < k), B binomial(n, 1/2);
/// the largest such k is taken. Empty when even the extremes do not reach `confidence` (95 % needs 6 samples).
/// Source: David and Nagaraja, "Order Statistics", section 7.1. Precondition: samples are independent. Cost: O(n log n).
template <Quantity Q>
[[nodiscard]] std::optional<interval<Q>> median_interval(std::span<const Q> samples, double confidence = 0.95);

/// The figures that a report shows of a set of samples.
template <Quantity Q>
struct summary {
  std::size_t count = 0;
  Q median{};  ///< meaningless when `count` is 0
  Q least{};
  Q most{};
  std::optional<Q> mad;              ///< from 3 samples on
  std::optional<interval<Q>> range;  ///< of the median at 95 %, from 6 samples on

  /// Scaled MAD as a share of the median: 0.02 is a quiet machine. Empty below 3 samples and for a median of 0.
  [[nodiscard]] std::optional<double> noise() const {
    if (!mad || number_in(median) == 0) return std::nullopt;
    return mad_to_deviation * number_in(*mad) / std::abs(number_in(median));
  }
};

/// All of the above for one set; empty without samples.
template <Quantity Q>
[[nodiscard]] std::optional<summary<Q>> summarise(std::span<const Q> samples);

template <Quantity Q>
[[nodiscard]] std::optional<summary<Q>> summarise(const std::vector<Q>& samples) {
  return summarise(std::span<const Q>(samples));
}

/// What `odd_one` says of one sibling.
enum class sibling : unsigned char {
  alike,       ///< not lower than the others by more than allowed
  odd,         ///< lower than the others by more than allowed, and the figures are precise enough to say so
  cannot_tell  ///< lower, but the noise is as large as the difference, or there is no majority to compare with
};

/// Compares equal parts (cores, NUMA domains, rails) by what they reached: which one is slower than its siblings?
///
/// Sibling i is `odd` when its median lies more than `allowed` under the median of all, its interval ends below that mark, and
/// at least half of the siblings are alike. Of two siblings neither has a majority, so a difference is `cannot_tell` for the
/// lower one. One sibling alone is `alike`: nothing to compare with.
/// @param allowed  share, for example 0.2: a core at 79 % of its siblings is looked at
template <Quantity Q>
[[nodiscard]] std::vector<sibling> odd_ones(std::span<const summary<Q>> parts, double allowed);

namespace detail {

template <Quantity Q>
[[nodiscard]] constexpr Q quantity_of(double number) {
  if constexpr (std::same_as<Q, double>)
    return number;
  else
    return Q{number};
}

template <Quantity Q>
[[nodiscard]] std::vector<double> sorted_numbers(std::span<const Q> samples) {
  std::vector<double> numbers;
  numbers.reserve(samples.size());
  for (const Q& q : samples) numbers.push_back(number_in(q));
  seq::sort(numbers);
  return numbers;
}

template <class = void>
[[nodiscard]] double middle_of_sorted(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
}

template <class = void>
[[nodiscard]] double mad_of_sorted(std::span<const double> sorted) {
  const double center = middle_of_sorted(sorted);
  std::vector<double> away;
  away.reserve(sorted.size());
  for (const double x : sorted) away.push_back(std::abs(x - center));
  seq::sort(away);
  return middle_of_sorted(away);
}

struct ranks_of_interval {
  std::size_t skip = 0;  ///< order statistics left out on either side
  double confidence = 0;
};

/// Probabilities of binomial(n, 1/2) relative to the middle one, so that nothing underflows where it matters.
template <class = void>
[[nodiscard]] std::optional<ranks_of_interval> interval_ranks(std::size_t n, double confidence) {
  if (n < 2 || !(confidence > 0) || !(confidence < 1)) return std::nullopt;
  std::vector<double> weight(n + 1, 0.0);
  weight[n / 2] = 1;
  for (std::size_t j = n / 2; j > 0; --j)
    weight[j - 1] = weight[j] * static_cast<double>(j) / static_cast<double>(n - j + 1);
  for (std::size_t j = n / 2; j < n; ++j)
    weight[j + 1] = weight[j] * static_cast<double>(n - j) / static_cast<double>(j + 1);
  double total = 0;
  for (const double w : weight) total += w;
  std::optional<ranks_of_interval> best;
  double tail = 0;
  for (std::size_t skip = 0; 2 * skip + 1 < n; ++skip) {
    tail += weight[skip] / total;
    const double reached = 1 - 2 * tail;
    if (reached < confidence) break;
    best = ranks_of_interval{skip, reached};
  }
  return best;
}

}  // namespace detail

template <Quantity Q>
std::optional<Q> median(std::span<const Q> samples) {
  if (samples.empty()) return std::nullopt;
  return detail::quantity_of<Q>(detail::middle_of_sorted(detail::sorted_numbers(samples)));
}

template <Quantity Q>
std::optional<Q> mad(std::span<const Q> samples) {
  if (samples.size() < 3) return std::nullopt;
  return detail::quantity_of<Q>(detail::mad_of_sorted(detail::sorted_numbers(samples)));
}

template <Quantity Q>
std::optional<Q> quantile(std::span<const Q> samples, double share) {
  if (!(share >= 0) || !(share <= 1) || samples.empty()) return std::nullopt;
  const double tail = std::min(share, 1 - share);
  // 1e-9: 1 - 0.99 is a little more than 0.01 in binary.
  if (tail > 0 && static_cast<double>(samples.size()) * tail < 1 - 1e-9) return std::nullopt;
  const std::vector<double> sorted = detail::sorted_numbers(samples);
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return detail::quantity_of<Q>(sorted[below] + part * (sorted[above] - sorted[below]));
}

template <Quantity Q>
std::optional<interval<Q>> median_interval(std::span<const Q> samples, double confidence) {
  const auto ranks = detail::interval_ranks(samples.size(), confidence);
  if (!ranks) return std::nullopt;
  const std::vector<double> sorted = detail::sorted_numbers(samples);
  return interval<Q>{detail::quantity_of<Q>(sorted[ranks->skip]),
                     detail::quantity_of<Q>(sorted[sorted.size() - 1 - ranks->skip]), ranks->confidence};
}

template <Quantity Q>
std::optional<summary<Q>> summarise(std::span<const Q> samples) {
  if (samples.empty()) return std::nullopt;
  const std::vector<double> sorted = detail::sorted_numbers(samples);
  summary<Q> s;
  s.count = sorted.size();
  s.median = detail::quantity_of<Q>(detail::middle_of_sorted(sorted));
  s.least = detail::quantity_of<Q>(sorted.front());
  s.most = detail::quantity_of<Q>(sorted.back());
  if (sorted.size() >= 3) s.mad = detail::quantity_of<Q>(detail::mad_of_sorted(sorted));
  if (const auto ranks = detail::interval_ranks(sorted.size(), 0.95))
    s.range = interval<Q>{detail::quantity_of<Q>(sorted[ranks->skip]),
                          detail::quantity_of<Q>(sorted[sorted.size() - 1 - ranks->skip]), ranks->confidence};
  return s;
}

template <Quantity Q>
std::vector<sibling> odd_ones(std::span<const summary<Q>> parts, double allowed) {
  std::vector<sibling> said(parts.size(), sibling::alike);
  if (parts.size() < 2) return said;
  std::vector<double> medians;
  for (const summary<Q>& p : parts) medians.push_back(number_in(p.median));
  // Of two, the better one is the reference; of more, the middle one.
  const double reference = parts.size() == 2
                               ? std::max(medians[0], medians[1])
                               : detail::middle_of_sorted(detail::sorted_numbers(std::span<const double>(medians)));
  const double mark = (1 - allowed) * reference;
  std::size_t alike = 0;
  for (const double m : medians)
    if (m >= mark) ++alike;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (medians[i] >= mark) continue;
    const bool precise = parts[i].range && number_in(parts[i].range->high) < mark;
    said[i] = parts.size() > 2 && precise && 2 * alike >= parts.size() ? sibling::odd : sibling::cannot_tell;
  }
  return said;
}

}}}  // namespace topocoll::v0::probe
