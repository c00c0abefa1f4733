// SPDX-License-Identifier: Apache-2.0
#pragma once
// The time of day for reports.
#include <ctime>
#include <string>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// Now, in UTC: "2026-03-01T08:15:00Z" (RFC 3339).
[[nodiscard]] inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

}}}}  // namespace topocoll::v0::app::detail
