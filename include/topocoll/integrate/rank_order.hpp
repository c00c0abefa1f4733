// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of hosts in which rings and trees cross the upper switches least, and launchers' files that bring it about.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/read/hostfile.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A host of a job with its processes; 0 when not told.
struct job_host {
  std::string name;
  std::uint32_t slot_count = 0;

  friend bool operator==(const job_host&, const job_host&) = default;
};

/// Reads hosts from a host file of MPI ("a slots=8", "a:8"), lines of names, or one list ("node[01-16],login1").
/// @return as `read::parse_hostfile`
template <class = void>
[[nodiscard]] result<std::vector<job_host>> read_job_hosts(std::string_view text, std::string_view file);

/// All hosts of a graph that could run ranks (those with GPUs, or all where none has), as `slots` their GPUs.
template <class = void>
[[nodiscard]] std::vector<job_host> job_hosts_of(const topo::graph& g);

/// How often neighbours lie in different groups of one tier.
struct order_score {
  std::string tier;          ///< "NVLink domain", "leaf", "tier 2", …: below which the groups are joined
  std::uint32_t groups = 0;  ///< that the job has hosts in
  std::uint32_t ring = 0;    ///< hops of the ring over all hosts that leave a group; `groups` is the least (0 for one)
  std::uint32_t tree = 0;    ///< edges of NCCL's two trees over all hosts that do
};

/// Hosts in their new order.
struct ordered_hosts {
  std::vector<job_host> hosts;
  std::uint32_t known = 0;                 ///< so many first hosts are in the fabric
  std::vector<order_score> before, after;  ///< by tier, from the innermost
  std::vector<finding> findings;

  /// True when the new order crosses less at some tier (and it never crosses more in the ring).
  [[nodiscard]] bool gains() const {
    for (std::size_t t = 0; t < before.size(); ++t)
      if (after[t].ring < before[t].ring) return true;
    return false;
  }
  [[nodiscard]] std::uint32_t ranks() const {
    std::uint32_t all = 0;
    for (const job_host& h : hosts) all += h.slot_count == 0 ? 1 : h.slot_count;
    return all;
  }
};

/// Puts hosts of an NVLink domain side by side, then those of a leaf (or of a pod of leaves), then leaves under the same
/// switches, tier by tier.
///
/// Groups of tier t are what switches up to t steps above the hosts join, so any depth of fabric works, rails and Slurm's
/// trees too. The first host stays first; groups and hosts keep the order in which the list names them otherwise. The ring
/// then leaves each group once, which no order can beat. Hosts that the fabric does not know (by name, or by the part
/// before the first dot where that is unique) stay together at the end, with a finding; a host named several times counts
/// once with all its slots.
/// @return `invalid_argument` for no hosts, and for names with blanks; `not_found` when the graph knows none of them, with both names
/// Cost: O((nodes + links) * tiers + hosts log hosts).
template <class = void>
[[nodiscard]] result<ordered_hosts> order_hosts(const topo::graph& g, std::span<const job_host> hosts);

/// Bytes of one ring all-reduce of `size` per rank that leave groups of a tier: hops times 2 (n - 1) / n * size, n ranks.
/// Source: Patarasuk and Yuan, JPDC 2009.
[[nodiscard]] constexpr double ring_bytes_across(const order_score& s, std::uint32_t ranks, bytes size) {
  return ranks < 2 ? 0 : s.ring * 2.0 * (ranks - 1) / ranks * static_cast<double>(size.value);
}

/// What the new order brings, for people: a line a tier, or that nothing can be gained.
template <class = void>
[[nodiscard]] std::string to_text(const ordered_hosts& order);

/// Open MPI's host file: "node3 slots=8".
template <class = void>
[[nodiscard]] std::string to_mpirun_hostfile(const ordered_hosts& order);
/// Open MPI's rank file: "rank 0=node3 slot=0". It also binds: rank i of a host to its i-th core.
template <class = void>
[[nodiscard]] std::string to_rankfile(const ordered_hosts& order);
/// Host file of MPICH, Intel MPI and others with Hydra: "node3:8".
template <class = void>
[[nodiscard]] std::string to_hydra_hostfile(const ordered_hosts& order);
/// A file for SLURM_HOSTFILE with `srun --distribution=arbitrary`: the host of each task, a line each.
template <class = void>
[[nodiscard]] std::string to_slurm_hostfile(const ordered_hosts& order);
/// The hosts as Slurm writes lists, for --nodelist. Slurm sorts such a list, so the order needs the file above.
template <class = void>
[[nodiscard]] std::string to_slurm_nodelist(const ordered_hosts& order);
/// The arguments of torchrun on each host, one a line behind the host's name; the first host is the rendezvous.
template <class = void>
[[nodiscard]] std::string to_torchrun_table(const ordered_hosts& order, std::uint32_t port = 29500);
/// The same as a shell file to be sourced on every host: sets NNODES, NODE_RANK, NPROC_PER_NODE, MASTER_ADDR, MASTER_PORT.
template <class = void>
[[nodiscard]] std::string to_torchrun_environment(const ordered_hosts& order, std::uint32_t port = 29500);
/// Bare names.
template <class = void>
[[nodiscard]] std::string to_host_names(const ordered_hosts& order);

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/rank_order_search.hpp>
#include <topocoll/integrate/detail/rank_order_text.hpp>
