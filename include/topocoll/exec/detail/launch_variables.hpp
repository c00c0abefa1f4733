// SPDX-License-Identifier: Apache-2.0
#pragma once
// The variables of each launcher, and what they mean together.
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/exec/launch.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// What a launcher calls things. Empty: it does not say.
struct launcher_variables {
  std::string_view launcher;
  std::string_view rank;
  std::array<std::string_view, 2> size;  ///< the first that is set
  std::array<std::string_view, 3> local_rank;
  std::array<std::string_view, 2> local_size;
  std::string_view node;
  std::array<std::string_view, 2> job;
  std::string_view restarts;
};

// In the order in which they are asked. Slurm comes last because every other launcher may run inside its allocations.
inline constexpr std::array<launcher_variables, 7> known_launchers{{
    {"torchrun",
     "RANK",
     {"WORLD_SIZE", ""},
     {"LOCAL_RANK", "", ""},
     {"LOCAL_WORLD_SIZE", ""},
     "GROUP_RANK",
     {"TORCHELASTIC_RUN_ID", ""},
     "TORCHELASTIC_RESTART_COUNT"},
    // OMPI_COMM_WORLD_NODE_RANK is the rank within the node, not the number of the node.
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE", ""},
     {"OMPI_COMM_WORLD_LOCAL_RANK", "", ""},
     {"OMPI_COMM_WORLD_LOCAL_SIZE", ""},
     "",
     {"PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid"},
     ""},
    {"MVAPICH",
     "MV2_COMM_WORLD_RANK",
     {"MV2_COMM_WORLD_SIZE", ""},
     {"MV2_COMM_WORLD_LOCAL_RANK", "", ""},
     {"MV2_COMM_WORLD_LOCAL_SIZE", ""},
     "",
     {"", ""},
     ""},
    {"PMI",
     "PMI_RANK",
     {"PMI_SIZE", ""},
     {"MPI_LOCALRANKID", "", ""},
     {"MPI_LOCALNRANKS", ""},
     "",
     {"PMI_JOBID", ""},
     ""},
    // PALS says the size only through PMI; with PMI_RANK set the row above has answered already.
    {"PALS",
     "PALS_RANKID",
     {"PMI_SIZE", ""},
     {"PALS_LOCAL_RANKID", "", ""},
     {"", ""},
     "PALS_NODEID",
     {"PALS_APID", ""},
     ""},
    {"Flux",
     "FLUX_TASK_RANK",
     {"FLUX_JOB_SIZE", ""},
     {"FLUX_TASK_LOCAL_ID", "", ""},
     {"", ""},
     "",
     {"FLUX_JOB_ID", ""},
     ""},
    {"Slurm",
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     {"SLURM_LOCALID", "", ""},
     {"", ""},
     "SLURM_NODEID",
     {"", ""},
     "SLURM_RESTART_COUNT"},
}};

/// The variables of one environment, and the first thing that is wrong with them.
class variable_reader {
 public:
  explicit variable_reader(const variable_source& source) : source_(source) {}

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const {
    if (name.empty()) return std::nullopt;
    auto value = source_.look(source_.context, name);
    if (value && value->empty()) return std::nullopt;  // "unset" in many shells' scripts
    return value;
  }
  [[nodiscard]] std::optional<std::uint32_t> number(std::string_view name) {
    const auto value = text(name);
    if (!value) return std::nullopt;
    if (const auto n = exact_number<std::uint32_t>(*value)) return n;
    if (!wrong_)
      wrong_ =
          fail(errc::malformed_input, std::string(name) + " is \"" + *value + "\", which is not a number of a process");
    return std::nullopt;
  }
  template <std::size_t N>
  [[nodiscard]] std::pair<std::optional<std::uint32_t>, std::string_view> first_number(
      const std::array<std::string_view, N>& names) {
    for (const std::string_view name : names)
      if (text(name)) return {number(name), name};
    return {std::nullopt, {}};
  }
  [[nodiscard]] const std::optional<failure>& wrong() const { return wrong_; }

 private:
  const variable_source& source_;
  std::optional<failure> wrong_;
};

/// "SLURM_TASKS_PER_NODE" holds "8(x2),7": tasks of each node, with repeats. The number for node `index`, if it says.
template <class = void>
[[nodiscard]] std::optional<std::uint32_t> tasks_on_node(std::string_view text, std::uint32_t index) {
  const auto take = [&]() -> std::optional<std::uint32_t> {
    std::uint32_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return n;
  };
  std::uint64_t past = 0;
  while (!text.empty()) {
    const auto tasks = take();
    if (!tasks) return std::nullopt;
    std::uint32_t repeats = 1;
    if (text.starts_with("(x")) {
      text.remove_prefix(2);
      const auto n = take();
      if (!n || !text.starts_with(")")) return std::nullopt;
      text.remove_prefix(1);
      repeats = *n;
    }
    past += repeats;
    if (index < past) return tasks;
    if (text.starts_with(","))
      text.remove_prefix(1);
    else if (!text.empty())
      return std::nullopt;
  }
  return std::nullopt;
}

/// First host of a Slurm list: "node7", "gpu[03-05,9],login1" -> "gpu03". Nothing for what is not understood.
template <class = void>
[[nodiscard]] std::optional<std::string> first_host(std::string_view list) {
  const std::size_t end = list.find_first_of(",[");
  std::string name(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',') return name.empty() ? std::nullopt : std::optional(name);
  const std::size_t close = list.find(']', end);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = list.substr(end + 1, close - end - 1);
  const std::size_t digits = inside.find_first_of(",-");
  name += inside.substr(0, digits);
  const std::string_view rest = list.substr(close + 1);
  if (rest.find('[') < rest.find(',')) return std::nullopt;  // a second bracket in one name: rare, and not guessed
  name += rest.substr(0, rest.find(','));
  return name;
}

struct launch_claim {
  launch told;
  std::string rank_variable;
  std::string size_variable;
};

/// What one launcher says, if it started this process.
template <class = void>
[[nodiscard]] result<std::optional<launch_claim>> claim_of(const launcher_variables& names, variable_reader& read) {
  const bool slurm = names.launcher == "Slurm";
  if (slurm && !((read.text("SLURM_STEP_ID") || read.text("SLURM_STEPID")) && read.text("SLURM_LOCALID")))
    return std::optional<launch_claim>();
  const auto rank = read.number(names.rank);
  const auto [size, size_name] = read.first_number(names.size);
  if (read.wrong()) return *read.wrong();
  if (!rank) {
    // Only torchrun's own names are so common that half of them is worth a word: WORLD_SIZE without RANK, and the
    // reverse.
    if (names.launcher == "torchrun" && size)
      return fail(errc::malformed_input, "WORLD_SIZE is set to " + std::to_string(*size) + " and RANK is not",
                  "set both, or neither");
    return std::optional<launch_claim>();
  }
  if (!size)
    return fail(errc::malformed_input,
                std::string(names.rank) + " is set to " + std::to_string(*rank) + " and " + std::string(names.size[0]) +
                    " is not",
                "set both, or neither");
  if (*rank >= *size)
    return fail(errc::malformed_input, std::string(names.rank) + " is " + std::to_string(*rank) +
                                           ", which is not below " + std::string(size_name) + ", " +
                                           std::to_string(*size));
  launch_claim c;
  c.rank_variable = names.rank;
  c.size_variable = size_name;
  launch& l = c.told;
  l.launcher = names.launcher;
  l.rank = {*rank};
  l.size = *size;
  const auto [local_rank, local_rank_name] = read.first_number(names.local_rank);
  const auto [local_size, local_size_name] = read.first_number(names.local_size);
  l.local_rank = local_rank;
  l.local_size = local_size;
  l.node = read.number(names.node);
  l.restarts = read.number(names.restarts);
  l.job = read.text(names.job[0]);
  if (!l.job) l.job = read.text(names.job[1]);
  if (slurm) {
    if (const auto job = read.text("SLURM_JOB_ID"))
      l.job = *job + "." + read.text("SLURM_STEP_ID").value_or(read.text("SLURM_STEPID").value_or(""));
    for (const std::string_view per_node : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
      const auto text = read.text(per_node);
      if (!l.local_size && text && l.node) l.local_size = tasks_on_node(*text, *l.node);
    }
    for (const std::string_view list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
      const auto text = read.text(list);
      if (!l.address && text) l.address = first_host(*text);
    }
  }
  if (read.wrong()) return *read.wrong();
  if (l.local_rank && l.local_size && *l.local_rank >= *l.local_size)
    return fail(errc::malformed_input, std::string(local_rank_name) + " is " + std::to_string(*l.local_rank) +
                                           ", which is not below the " + std::to_string(*l.local_size) +
                                           " processes on this host");
  return std::optional<launch_claim>(std::move(c));
}

template <class>
[[nodiscard]] result<launch> launch_from_source(const variable_source& variables) {
  variable_reader read(variables);
  std::optional<launch_claim> first;
  for (const launcher_variables& names : known_launchers) {
    auto claim = claim_of(names, read);
    if (!claim) return std::move(claim).error();
    if (!*claim) continue;
    if (!first) {
      first = *std::move(claim);
      continue;
    }
    const launch_claim& other = **claim;
    // One process per host under srun that starts torchrun, or mpirun under a scheduler's step of its own: the inner
    // launcher has more processes than the outer one, which then counts hosts. Anything else is two launchers for one
    // process.
    if (other.told.rank == first->told.rank && other.told.size == first->told.size) continue;
    if (other.told.launcher == "Slurm" && other.told.size < first->told.size) {
      if (!first->told.node) first->told.node = other.told.node;
      continue;
    }
    return fail(errc::mismatch,
                first->told.launcher + " says rank " + std::to_string(first->told.rank.value) + " of " +
                    std::to_string(first->told.size) + " (" + first->rank_variable + ", " + first->size_variable +
                    "), " + other.told.launcher + " says rank " + std::to_string(other.told.rank.value) + " of " +
                    std::to_string(other.told.size) + " (" + other.rank_variable + ", " + other.size_variable + ")",
                "start the program with one launcher, or unset the variables of the other");
  }
  launch l;
  if (first)
    l = std::move(first->told);
  else
    l.launcher = "none";
  if (const auto address = read.text("MASTER_ADDR")) l.address = *address;
  if (const auto port = read.number("MASTER_PORT")) {
    if (*port == 0 || *port > 65535)
      return fail(errc::malformed_input, "MASTER_PORT is " + std::to_string(*port) + ", which is no port");
    l.port = static_cast<std::uint16_t>(*port);
  }
  if (read.wrong()) return *read.wrong();
  if (first && l.size == 1) {
    l.findings.push_back(
        {severity::warning, first->size_variable, l.launcher + " says that this process is the only one of its job",
         first->rank_variable + "=0, " + first->size_variable + "=1",
         "if several were started, each is a group of its own: check that launcher and program belong together", 0.5});
  }
  if (!first) {
    const bool batch = read.text("SLURM_PROCID") && read.text("SLURM_JOB_ID");
    if (batch)
      l.findings.push_back(
          {severity::note, "SLURM_PROCID", "this is the batch script of a Slurm job, not one of its tasks",
           "SLURM_PROCID is set, SLURM_STEP_ID with SLURM_LOCALID is not", "start the ranks with srun", 0.9});
    else if (read.text("PMIX_RANK"))
      l.findings.push_back(
          {severity::warning, "PMIX_RANK", "a PMIx launcher started this process and does not say how many there are",
           "PMIX_RANK is set, no size is", "set RANK and WORLD_SIZE, or start with torchrun, mpirun or srun", 0.9});
  }
  return l;
}

}}}  // namespace topocoll::v0::detail
