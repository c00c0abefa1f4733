// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a check says: a state, why, how sure, on what evidence, and what to do next. "Not measured" is a state of its own.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// What is known about the thing that was checked. The default is that nobody looked.
enum class state : std::uint8_t {
  not_measured,  ///< nobody could look, or there is nothing of this kind
  healthy,       ///< looked, and it is as it should be
  suspect,       ///< something speaks against it, but not enough to blame it: noise, idle power saving, no majority
  degraded,      ///< works, but worse than it should
  dead           ///< does not work, or gives wrong data
};

/// Why it is so; tells who has to act.
enum class cause : std::uint8_t {
  unknown,        ///< the evidence does not tell
  fault,          ///< a part is broken: replace or reseat
  configuration,  ///< a setting is wrong: change it
  by_design,      ///< the board or the plan is built so
  limit           ///< the measurement is at its own limit: a busy machine, a small memory
};

/// The three answers that a check can give, and that an exit code can carry.
enum class outcome : std::uint8_t { pass, fail, not_measured };

[[nodiscard]] constexpr std::string_view to_string(state s) {
  constexpr std::string_view words[] = {"not_measured", "healthy", "suspect", "degraded", "dead"};
  return words[static_cast<std::size_t>(s)];
}
[[nodiscard]] constexpr std::string_view to_string(cause c) {
  constexpr std::string_view words[] = {"unknown", "fault", "configuration", "by_design", "limit"};
  return words[static_cast<std::size_t>(c)];
}
[[nodiscard]] constexpr std::string_view to_string(outcome o) {
  constexpr std::string_view words[] = {"pass", "fail", "not_measured"};
  return words[static_cast<std::size_t>(o)];
}

/// Healthy passes, degraded and dead fail. A suspect does neither: it is not blamed, and it does not count as looked at.
[[nodiscard]] constexpr outcome outcome_of(state s) {
  switch (s) {
    case state::healthy: return outcome::pass;
    case state::degraded:
    case state::dead: return outcome::fail;
    case state::not_measured:
    case state::suspect: break;
  }
  return outcome::not_measured;
}

/// The answer of one check.
struct verdict {
  std::string check;  ///< stable name: "pcie/width", "memory/cores", "collective/all_reduce"
  std::string where;  ///< the part that it is about: "0000:1b:00.0", "core 3", "4 ranks"
  state is = state::not_measured;
  cause why = cause::unknown;
  trust how =
      trust::reported;    ///< `measured` when data was moved to find out, `reported` when a device or file was asked
  std::string headline;   ///< a few words for one-line answers: "no GPU", "PCIe x8 of x16 at 0000:1b:00.0"
  std::string sentence;   ///< one sentence with the figures, the subject first
  std::string evidence;   ///< what it rests on: counts, spread, files; empty when the sentence says it all
  std::string next_step;  ///< what to do; empty when nothing needs doing
  std::optional<bytes_per_second> measured;  ///< empty when no rate was measured
  std::optional<bytes_per_second> expected;  ///< empty when nothing tells what to expect
  double confidence = 0;                     ///< 0 to 1: how sure `is` is; 0 for not_measured
};

/// How many checks said what. `measured` counts the passes that moved data.
struct tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t suspect = 0;
  std::size_t not_measured = 0;
  std::size_t measured = 0;

  [[nodiscard]] std::size_t checks() const { return passed + failed + suspect + not_measured; }
};

template <class = void>
[[nodiscard]] tally count(std::span<const verdict> verdicts) {
  tally t;
  for (const verdict& v : verdicts) {
    switch (v.is) {
      case state::healthy:
        ++t.passed;
        if (v.how == trust::measured) ++t.measured;
        break;
      case state::suspect: ++t.suspect; break;
      case state::degraded:
      case state::dead: ++t.failed; break;
      case state::not_measured: ++t.not_measured; break;
    }
  }
  return t;
}

/// One answer for all checks: any failure fails; a pass needs at least one check that moved data and found it good.
///
/// Reading what devices report about themselves is not enough to pass: no checks at all, or only such checks, give
/// `not_measured`.
template <class = void>
[[nodiscard]] outcome overall(const tally& t) {
  if (t.failed > 0) return outcome::fail;
  return t.measured > 0 ? outcome::pass : outcome::not_measured;
}

/// Figures of a rate check, compared by `judge`.
struct comparison {
  bytes_per_second measured{};  ///< median
  bytes_per_second upper{};  ///< upper end of its 95 % interval; infinite when too few samples were taken to have one
  bytes_per_second expected{};  ///< what the model says is possible, > 0
  double fail_below = 0.5;      ///< share of `expected`
  double suspect_below = 0.5;   ///< share of `expected`, at least `fail_below`
  double noise = 0;             ///< scaled MAD as a share of the median
  double noise_limit = 0.5;     ///< above it a low figure proves nothing
};

/// Compares a measured rate with its floor: fails only when the whole interval lies under it and the noise is small enough.
/// @return healthy, suspect or degraded; never more, since a slow part is not a dead one
[[nodiscard]] constexpr state judge(const comparison& c) {
  const double floor = c.fail_below * c.expected.value;
  const double mark = c.suspect_below * c.expected.value;
  if (c.measured.value >= mark) return state::healthy;
  if (c.measured.value >= floor) return state::suspect;
  return c.upper.value < floor && c.noise <= c.noise_limit ? state::degraded : state::suspect;
}

}}}  // namespace topocoll::v0::probe
