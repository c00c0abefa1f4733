// SPDX-License-Identifier: Apache-2.0
#pragma once
// A point in time after which a wait gives up.
#include <compare>
#include <concepts>
#include <ctime>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 {

/// A clock: `now()` gives seconds since a fixed but unknown start and never goes back.
template <class C>
concept Clock = requires {
  { C::now() } -> std::same_as<seconds>;
};

/// The system's monotonic clock.
struct steady_clock {
  [[nodiscard]] static seconds now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return {static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9};
  }
};
static_assert(Clock<steady_clock>);

/// When to give up waiting, on `steady_clock`. Every wait of the library takes one.
struct deadline {
  seconds at{};

  /// `span` from now; a negative span has already passed.
  [[nodiscard]] static deadline in(seconds span) noexcept { return {steady_clock::now() + span}; }
  [[nodiscard]] bool passed() const noexcept { return steady_clock::now() >= at; }
  /// Time left, never negative.
  [[nodiscard]] seconds left() const noexcept {
    const seconds rest = at - steady_clock::now();
    return rest.value > 0 ? rest : seconds{};
  }
  friend constexpr auto operator<=>(deadline, deadline) = default;
  friend constexpr bool operator==(deadline, deadline) = default;
};

/// The earlier of two deadlines.
[[nodiscard]] constexpr deadline sooner(deadline a, deadline b) noexcept { return a.at <= b.at ? a : b; }

}}  // namespace topocoll::v0
