// SPDX-License-Identifier: Apache-2.0
#pragma once
// What was looked at when a plan was proved.
#include <cstdint>
#include <string>

namespace topocoll { inline namespace v0 { namespace plan {

/// How a proof was done.
enum class proof_method : std::uint8_t {
  exact,    ///< every operation of every rank was executed on sets of contributions
  by_stage  ///< each distinct group of a stage was executed exactly, alone, and the stages were composed on sets of ranks
};

[[nodiscard]] constexpr const char* to_string(proof_method m) {
  return m == proof_method::exact ? "exact" : "by stage";
}

/// What was looked at when a plan was proved.
struct proof {
  proof_method method = proof_method::exact;
  std::uint32_t ranks = 0;
  std::uint64_t steps = 0;         ///< checked for order and deadlock
  std::uint64_t operations = 0;    ///< executed symbolically
  std::uint64_t messages = 0;      ///< matched, each with its two ends
  std::uint64_t group_shapes = 0;  ///< by_stage only: distinct groups that were executed
  /// True when the plan also ends if every rank runs the steps of a channel one after the other (as one NCCL stream would).
  bool one_step_at_a_time = false;
  std::string summary;  ///< one sentence for people
};

}}}  // namespace topocoll::v0::plan
