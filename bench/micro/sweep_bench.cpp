// SPDX-License-Identifier: Apache-2.0
// exec/all_reduce/float/<bytes>/<ranks>: calls between threads of this process; 8 bytes show the round trip, large sizes the copies.
#include <topocoll/bench/google.hpp>
#include <topocoll/core/units.hpp>

namespace {

using namespace topocoll::literals;

[[maybe_unused]] const bool registered = [] {
  topocoll::bench::sweep_config config;
  config.range = {8_B, 4_MiB, 64, 1_B};
  topocoll::bench::register_sweep(config, 2);
  return true;
}();

}  // namespace
