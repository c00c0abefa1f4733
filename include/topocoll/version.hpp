// SPDX-License-Identifier: Apache-2.0
#pragma once
// Version of the library, for the preprocessor and for programs.

/// Version of the release as three numbers. While major is 0, a new minor may break callers; see the change log.
#define TOPOCOLL_VERSION_MAJOR 0
#define TOPOCOLL_VERSION_MINOR 1
#define TOPOCOLL_VERSION_PATCH 0
/// The three numbers as one that can be compared: 10000 * major + 100 * minor + patch.
#define TOPOCOLL_VERSION (10000 * TOPOCOLL_VERSION_MAJOR + 100 * TOPOCOLL_VERSION_MINOR + TOPOCOLL_VERSION_PATCH)

namespace topocoll { inline namespace v0 {

/// `TOPOCOLL_VERSION` as a constant.
inline constexpr int version_number = TOPOCOLL_VERSION;
/// The version as people write it.
inline constexpr const char* version_text = "0.1.0";

}}  // namespace topocoll::v0
