// SPDX-License-Identifier: Apache-2.0
#pragma once
// Something worth knowing in an otherwise good answer: missing, contradictory, implausible or broken parts.
#include <cstddef>
#include <cstdint>
#include <string>

namespace topocoll { inline namespace v0 {

/// How a fact is known. Earlier is better; merging prefers the smaller value.
enum class trust : std::uint8_t {
  measured,  ///< observed by moving data
  reported,  ///< the device, the system or a file says so, and nothing speaks against it
  derived,   ///< computed from reported facts
  assumed    ///< nobody says so, or what is said cannot be true; the reason is kept beside it
};

/// How bad a finding is.
enum class severity : std::uint8_t {
  note,     ///< good to know
  warning,  ///< may cost performance, or part of the truth is missing
  fault     ///< something is broken
};

[[nodiscard]] constexpr const char* to_string(trust t) {
  constexpr const char* words[] = {"measured", "reported", "derived", "assumed"};
  return words[static_cast<std::size_t>(t)];
}
[[nodiscard]] constexpr const char* to_string(severity s) {
  constexpr const char* words[] = {"note", "warning", "fault"};
  return words[static_cast<std::size_t>(s)];
}

/// One observation with everything a reader needs to act on it.
struct finding {
  severity level = severity::note;
  std::string where;      ///< host, device, link, file and line: what it is about
  std::string what;       ///< one sentence, the subject first
  std::string evidence;   ///< the figures or texts that it rests on
  std::string next_step;  ///< what to do about it; empty when nothing needs doing
  double confidence = 1;  ///< 0 to 1
};

}}  // namespace topocoll::v0
