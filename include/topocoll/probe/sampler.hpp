// SPDX-License-Identifier: Apache-2.0
#pragma once
// Repeats a measurement until a named rule says that the samples suffice, or time is up.
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/probe/stats.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// Decides when samples suffice. Implemented by the four rules below.
///
/// Laws that the compiler cannot check: `enough` is a pure function; once true it stays true when samples are added that
/// equal the median; `name` says the rule with its figures, since reports print it.
template <class R>
concept StoppingRule = requires(const R& rule, std::span<const seconds> taken, seconds spent) {
  { rule.enough(taken, spent) } -> std::same_as<bool>;
  { rule.name() } -> std::same_as<std::string>;
};

/// Says in words what keeps `R` from being a `StoppingRule`.
template <class R>
constexpr void require_stopping_rule() {
  static_assert(
      requires(const R& r, std::span<const seconds> t, seconds s) {
        { r.enough(t, s) } -> std::same_as<bool>;
      },
      "a StoppingRule has enough(span<const seconds>, seconds) const returning bool");
  static_assert(
      requires(const R& r) {
        { r.name() } -> std::same_as<std::string>;
      },
      "a StoppingRule has name() const returning std::string");
  static_assert(StoppingRule<R>);
}

/// A fixed number of samples.
struct fixed_count {
  std::size_t count = 9;

  [[nodiscard]] bool enough(std::span<const seconds> taken, seconds) const { return taken.size() >= count; }
  [[nodiscard]] std::string name() const { return "after " + std::to_string(count) + " samples"; }
};

/// Until the 95 % interval of the median is narrow: its half width at most `share` of the median.
struct relative_spread {
  double share = 0.05;
  std::size_t least = 6;   ///< fewer samples have no such interval
  std::size_t most = 100;  ///< gives up then: the machine is too noisy for `share`

  [[nodiscard]] bool enough(std::span<const seconds> taken, seconds) const {
    if (taken.size() >= most) return true;
    if (taken.size() < least) return false;
    const auto s = summarise(taken);
    return s && s->range && s->range->high.value - s->range->low.value <= 2 * share * s->median.value;
  }
  [[nodiscard]] std::string name() const {
    return "median known to " + std::to_string(static_cast<int>(100 * share + 0.5)) + " %, at most " +
           std::to_string(most) + " samples";
  }
};

/// Until an amount of time has been spent, but never before `least` samples.
struct time_budget {
  seconds span{0.1};
  std::size_t least = 3;

  [[nodiscard]] bool enough(std::span<const seconds> taken, seconds spent) const {
    return taken.size() >= least && spent >= span;
  }
  [[nodiscard]] std::string name() const {
    return "after " + std::to_string(static_cast<int>(span.value * 1e3 + 0.5)) + " ms";
  }
};

/// Whichever of two rules is satisfied first.
template <StoppingRule A, StoppingRule B>
struct either {
  A first;
  B second;

  [[nodiscard]] bool enough(std::span<const seconds> taken, seconds spent) const {
    return first.enough(taken, spent) || second.enough(taken, spent);
  }
  [[nodiscard]] std::string name() const { return first.name() + " or " + second.name(); }
};
template <class A, class B>
either(A, B) -> either<A, B>;

/// What a sampler brings back.
struct sampled {
  std::vector<seconds> times;
  seconds spent{};         ///< from the first timed sample to the last
  bool cut_short = false;  ///< the deadline came before the rule was satisfied; the samples are still good
  std::string rule;
};

/// Calls `once` for `warm_up` samples that are thrown away, then until `rule` is satisfied or `until` has passed.
///
/// @param once  () -> result<seconds>: one measurement; its failure ends everything and is passed on
/// @return `timed_out` when the deadline left no time for a single sample
template <StoppingRule Rule, class Once>
[[nodiscard]] result<sampled> sample(Once&& once, const Rule& rule, std::size_t warm_up, deadline until) {
  for (std::size_t i = 0; i < warm_up; ++i) {
    if (until.passed()) return fail(errc::timed_out, "the time for this measurement was over during its warm-up");
    if (result<seconds> thrown_away = once(); !thrown_away) return std::move(thrown_away).error();
  }
  sampled got;
  got.rule = rule.name();
  const seconds start = steady_clock::now();
  while (true) {
    if (until.passed()) {
      if (got.times.empty())
        return fail(errc::timed_out, "the time for this measurement was over before its first sample");
      got.cut_short = true;
      break;
    }
    result<seconds> one = once();
    if (!one) return std::move(one).error();
    got.times.push_back(*one);
    got.spent = steady_clock::now() - start;
    if (rule.enough(got.times, got.spent)) break;
  }
  return got;
}

static_assert(StoppingRule<fixed_count> && StoppingRule<relative_spread> && StoppingRule<time_budget>);
static_assert(StoppingRule<either<fixed_count, time_budget>>);

}}}  // namespace topocoll::v0::probe
