// SPDX-License-Identifier: Apache-2.0
#pragma once
// Proves that a plan computes its collective, whatever the timing, or says in one sentence where it does not.
#include <cstdint>
#include <span>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/proof.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Proves the programs of all ranks; program r belongs to rank r. Takes nothing on trust but `program.hpp`.
///
/// Checked: numbers in range, slices that exist at that rank; every send meets a receive of the same chunks; no wait for
/// ever even if no message is buffered; no two unordered accesses to a place, one of them a write; nothing read before it
/// is written; no contribution counted twice; at the end every rank holds exactly what the collective promises. All of it
/// once with separate buffers and once in place.
/// Order is `after`, the order of a channel, and what messages imply.
/// @return the proof, or `bug` with a sentence that names rank, step, operation and chunk; `invalid_argument` when the
///         programs are not of one collective
/// Cost: time O(operations * ranks / 64) at worst, memory O(ranks * chunks) words.
template <class = void>
[[nodiscard]] result<proof> verify(std::span<const program> programs);

/// How far `verify` goes with exact proofs.
struct verify_options {
  /// Above so many messages the proof goes stage by stage. 2 million take a few seconds and a few hundred MiB.
  std::uint64_t exact_messages = 2'000'000;
};

/// Proves a schedule: lowers it for every rank and verifies the programs. Above `exact_messages` it does so with four of the
/// slices, which have data of their own and are lowered alike; where that is still too much, it goes by stage.
///
/// By stage: every distinct shape of a group (kind, algorithm, sizes of its parts) is lowered alone and proved exactly;
/// then the stages are composed, rank by rank and unit by unit, on the sets of ranks whose contributions a rank holds;
/// then the programs of up to 1,024 ranks are checked, each alone, for order between stages, again with four slices. What
/// this takes on trust is that groups of equal shape are lowered alike, which the tests check against exact proofs.
/// @return as above; `unsupported` when one group alone is too large for an exact proof
template <class = void>
[[nodiscard]] result<proof> verify(const schedule& compact, verify_options options = {});

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/verify_programs.hpp>
#include <topocoll/plan/detail/verify_schedule.hpp>
