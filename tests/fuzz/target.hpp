// SPDX-License-Identifier: Apache-2.0
#pragma once
// All fuzz targets are one program, so that what they include is compiled once. TOPOCOLL_FUZZ_TARGET says which one runs.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fuzz {

using function = int (*)(const std::uint8_t* data, std::size_t size);

/// Makes a target known; to be defined once per source, with static storage.
struct target {
  target(std::string_view name, function run);
};

}  // namespace fuzz
