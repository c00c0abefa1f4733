// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fits the constants of the library model to measurements, and says how far off a model is.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/library_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// One measured time.
struct observation {
  machine_summary machine;
  run_conditions conditions;
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};
  seconds time{};
  std::uint32_t system = 0;  ///< rows of one system share a number: they share its faults
};

/// Sizes that behave alike.
enum class size_band : std::uint8_t {
  to_64KiB,    ///< errors are those of time
  below_1MiB,  ///< errors from here on are those of bus bandwidth
  to_64MiB,
  below_1GiB,
  from_1GiB
};
inline constexpr std::size_t size_band_count = 5;
[[nodiscard]] constexpr size_band band_of(bytes size) { return static_cast<size_band>(detail::band_number(size)); }
[[nodiscard]] constexpr std::string_view to_string(size_band b) {
  constexpr std::string_view words[] = {"up to 64 KiB", "64 KiB to 1 MiB", "1 to 64 MiB", "64 MiB to 1 GiB",
                                        "from 1 GiB"};
  return words[static_cast<std::size_t>(b)];
}

/// What the fit says of one constant.
struct fitted_parameter {
  model_parameter what = model_parameter::launch;
  double value = 0;
  double centre = 0;  ///< where the fit started and was pulled to
  /// Standard deviation of the logarithm of `value`: by leaving out systems where there are five or more, else from the
  /// curvature of the fit.
  double spread = 0;
  std::uint32_t rows = 0;   ///< measurements whose prediction moves by a fiftieth or more of its relative change
  bool determined = false;  ///< the measurements say more than what was assumed before; else `value` is mostly `centre`
};

struct calibration_options {
  model_constants centre{};           ///< what the constants are believed to be without the measurements
  std::uint32_t sweeps = 150;         ///< at most, over all constants
  bool spread_by_leaving_out = true;  ///< one short fit for each system
};

struct calibration {
  model_constants constants;
  std::array<fitted_parameter, model_parameter_count> parameters{};
  double before = 0, after = 0;  ///< the figure that is made small, at the centre and at the constants found
  std::uint32_t rows = 0, systems = 0;
};

/// Constants that fit the measurements.
///
/// Least is the sum over measurements of w H(ln(predicted / measured) / d) + z^2 / 3 over constants: H is Huber's
/// function, d the scatter of healthy machines in a size band (15, 12, 10, 6, 3 %), w = n^-0.65 for a system with n
/// measurements in the band, times 1, 0.6, 1, 0.6, 1.6 by band, and z the distance of a constant from `centre` in units
/// of its `prior_spread`. So a system counts with the third root of its rows, a row that is off by factors pulls no more
/// than one that is off by some scatters, and a constant that no row depends on stays where it was. Constants stay within
/// three prior spreads, shares below 1. Minimised along one constant after the other, in logarithms.
/// @return `invalid_argument` without measurements, for a time that is not positive, or one that cannot be predicted
/// Cost: O(sweeps * constants * measurements); a second for 1,000 measurements, with spreads ten.
template <class = void>
[[nodiscard]] result<calibration> calibrate(std::span<const observation> measured,
                                            const calibration_options& options = {});

/// Errors in one band, of rows and of systems.
struct error_line {
  std::uint32_t rows = 0, systems = 0;
  double median = 0, ninth_decile = 0;  ///< of |predicted / measured - 1| over rows
  double median_of_systems = 0;         ///< of the medians of the systems
  double bias = 0;                      ///< median of predicted over measured time, less 1; below 0: predicted too fast
};

/// Errors by band: of time up to 64 KiB, of bus bandwidth above. Rows whose `predicted` is not positive are left out.
/// Precondition: both have the same length.
template <class = void>
[[nodiscard]] std::array<error_line, size_band_count> errors_of(std::span<const observation> measured,
                                                                std::span<const seconds> predicted);

/// Predictions of the model for each measurement; 0 where it has none.
template <class = void>
[[nodiscard]] std::vector<seconds> predictions_for(std::span<const observation> measured,
                                                   const model_constants& constants = {});

/// The same with each system predicted by constants that were fitted without it.
/// @param sweeps  of each fit, started at the constants fitted to all
template <class = void>
[[nodiscard]] result<std::vector<seconds>> predictions_left_out(std::span<const observation> measured,
                                                                const calibration_options& options,
                                                                const model_constants& fitted, std::uint32_t sweeps);

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/calibrate_search.hpp>
