// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what scheduler files say (Slurm topologies, host maps, topograph models, MPI host files) into graph fragments.
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/host_map.hpp>
#include <topocoll/read/hostfile.hpp>
#include <topocoll/read/slurm_topology.hpp>
#include <topocoll/read/topograph_model.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Switches ("switch:<name>") and hosts of one Slurm topology.
///
/// Schedulers know hosts by name only, so a host has one adapter with one port ("<host>/net:?/1", fact "stand_in") for
/// each leaf that it hangs on; several leaves are several rails. Switches without switches below are leaves, those above
/// leaves spines, all others core switches. Ports given by GUID become "port:0x…" with the fact "port_guid". Blocks are
/// leaves ("block:<name>") of hosts that no switch has, and a fact "block" of the others. Neighbours in rings and tori
/// (x counts fastest) are joined directly.
///
/// Rates: LinkSpeed where it has a unit, for all links below its switch, derived; else 10 Gbit/s for hosts, and above them
/// as much as hangs below, spread evenly over the parents (no oversubscription), assumed. Findings say so.
/// @param file  name for findings and `fragment::source`. Precondition: the topology was checked, as parsers do.
/// Cost: O(n log n).
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::slurm_topology& topology, const discover_options& options,
                                                 const std::string& file);
/// One of several topologies: the cluster's default, unless it is flat and another is not; a finding names the others.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const std::vector<read::slurm_topology>& topologies,
                                                 const discover_options& options, const std::string& file);
/// Ports of hosts ("<host>/net:?/<n>", fact "port_guid"), or hosts in NVLink domains (an nvswitch "nvswitch:<domain>" and a
/// stand-in "<host>/nvlink:?" for the GPUs of each host).
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::host_map& map, const discover_options& options,
                                                 const std::string& file);
/// The switches of the model, and its NVLink domains as for host maps.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::topograph_model& model, const discover_options& options,
                                                 const std::string& file);
/// Hosts and nothing else: "<host>/?" with the fact "slots".
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::hostfile& hosts, const discover_options& options,
                                                 const std::string& file);

/// Puts hosts in the place of their ports: what a topology with port GUIDs and the map of the same fabric say together.
/// Ports that the map lacks are dropped, and told. A topology with hosts comes back as it is.
template <class = void>
[[nodiscard]] read::slurm_topology with_hosts(read::slurm_topology topology, const read::host_map& map);

/// A topology.conf: `discover({}, slurm_topology_file{"topology.conf"})`.
struct slurm_topology_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "slurm-topology"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto topology = read::parse_slurm_topology(*text, path);
    if (!topology) return topology.error();
    return fragment_of(*topology, options, path);
  }
};
static_assert(TopologySource<slurm_topology_file>);

/// A list of "host: port GUID" or "host: domain".
struct host_map_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "host-map"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto map = read::parse_host_map(*text, path);
    if (!map) return map.error();
    return fragment_of(*map, options, path);
  }
};
static_assert(TopologySource<host_map_file>);

/// A host file of an MPI launcher, bare names too.
struct mpi_hostfile {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "hostfile"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    const auto hosts = read::parse_hostfile(*text, path);
    if (!hosts) return hosts.error();
    return fragment_of(*hosts, options, path);
  }
};
static_assert(TopologySource<mpi_hostfile>);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/host_list_build.hpp>
#include <topocoll/discover/detail/slurm_build.hpp>
