// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who am I: rank, world and place on the host, as the launcher that started this process says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>

namespace topocoll { inline namespace v0 {

/// What a launcher told this process. What it did not tell is empty, never guessed.
struct launch {
  std::string launcher;  ///< "torchrun", "Open MPI", "MVAPICH", "PMI", "PALS", "Flux", "Slurm", or "none"
  rank_id rank{};
  std::uint32_t size = 1;
  std::optional<std::uint32_t> local_rank;  ///< among the processes of this job on this host
  std::optional<std::uint32_t> local_size;
  std::optional<std::uint32_t> node;      ///< index of this host in the job
  std::optional<std::string> job;         ///< of use as a name for shared memory, together with the restart count
  std::optional<std::string> address;     ///< where rank 0 can be met: MASTER_ADDR, or the first host of Slurm's list
  std::optional<std::uint16_t> port;      ///< MASTER_PORT
  std::optional<std::uint32_t> restarts;  ///< how often the launcher has started this job again
  std::vector<finding> findings;          ///< what looks wrong without being a contradiction
};

/// A view of an environment: the value of a variable, or nothing. Whatever is callable as
/// `std::optional<std::string>(std::string_view)`.
template <class L>
concept VariableLookup = requires(const L& look, std::string_view name) {
  { look(name) } -> std::convertible_to<std::optional<std::string>>;
};

namespace detail {
struct variable_source {
  const void* context;
  std::optional<std::string> (*look)(const void* context, std::string_view name);
};
template <class = void>
[[nodiscard]] result<launch> launch_from_source(const variable_source& variables);
}  // namespace detail

/// Reads the variables of the launchers, first found first: torchrun (RANK and WORLD_SIZE), Open MPI, MVAPICH, PMI
/// (MPICH, Intel MPI), PALS, Flux, Slurm. docs/environment.md lists them.
///
/// - No launcher at all: rank 0 of 1, launcher "none".
/// - Two launchers that disagree on rank or size (mpirun inside an allocation is fine: the allocation's batch script is
///   not a task): `mismatch`, both named with variables and values.
/// - Half of what one launcher sets, a number that is not one, a rank that is not below the size: `malformed_input`,
///   variable named.
/// - Slurm counts only inside a step (SLURM_STEP_ID or SLURM_STEPID, with SLURM_LOCALID): a batch script carries
///   SLURM_PROCID=0 and SLURM_NTASKS=n without being a task.
/// - A launcher that says "rank 0 of 1" is believed, with a finding: n processes that each believe so are n groups of
///   one.
template <VariableLookup L>
[[nodiscard]] result<launch> launch_from(const L& variables) {
  const auto look = [](const void* context, std::string_view name) -> std::optional<std::string> {
    return (*static_cast<const L*>(context))(name);
  };
  return detail::launch_from_source({&variables, look});
}

/// `launch_from` on the environment of this process. Not while another thread changes it.
template <class = void>
[[nodiscard]] result<launch> launch_from_environment() {
  return launch_from([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  });
}

}}  // namespace topocoll::v0

#include <topocoll/exec/detail/launch_variables.hpp>
