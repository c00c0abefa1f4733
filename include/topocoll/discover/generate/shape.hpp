// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses what a cluster's options leave open, and says what cannot be built.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/generate/options.hpp>

namespace topocoll { inline namespace v0 {

/// Completes the options.
///
/// - No network is built for hosts that one NVSwitch plane joins anyway (a single host, one NVL72 rack), unless leaves,
///   pods, spines or core switches are asked for.
/// - Rail-optimised unless said otherwise, with one pod; `leaves` alone means `leaves / NICs per host` pods. Leaves that
///   are not a multiple of the NICs per host are not rail-optimised.
/// - Spines: as many as the largest leaf has uplinks of NIC rate, at most 16 (links to them are then bundles); none for a
///   single leaf. Under core switches this many for each pod.
/// @return  `invalid_argument` for counts that contradict each other or cannot be built, naming both; `unsupported` for
///          more than 2^25 nodes and links. Cost: O(pods or leaves)
template <class = void>
[[nodiscard]] result<fabric_shape> shape_of(const fabric_options& options);

namespace detail {

/// About 6 GB of memory: a million GPUs with their network.
inline constexpr std::uint64_t most_nodes_and_links = std::uint64_t{1} << 25U;

template <class = void>
std::string counted(std::uint64_t n, const char* one, const char* many) {
  return std::to_string(n) + ' ' + (n == 1 ? one : many);
}

/// `nodes` over `groups`, as even as can be, larger groups first.
template <class = void>
std::vector<std::uint32_t> even_split(std::uint32_t nodes, std::uint32_t groups) {
  std::vector<std::uint32_t> split(groups, nodes / groups);
  for (std::uint32_t g = 0; g < nodes % groups; ++g) ++split[g];
  return split;
}

/// Decides on rails, pods and leaves.
template <class = void>
result<void> choose_leaves(const fabric_options& o, fabric_shape& s) {
  if (s.rails == 0)
    return fail(errc::invalid_argument, counted(s.nodes, "host", "hosts") + " cannot be joined: none has a NIC");
  if (o.pods && *o.pods == 0)
    return fail(errc::invalid_argument, "a network with pods=0 has no place for hosts", "give it at least one pod");
  if (o.rail_optimised)
    s.rail_optimised = *o.rail_optimised;
  else if (o.leaves && o.pods)
    s.rail_optimised = *o.leaves == std::uint64_t{*o.pods} * s.rails;
  else
    s.rail_optimised = !o.leaves || *o.leaves % s.rails == 0;
  // Without other counts, hosts that are listed by groups say how many groups there are; one pod or leaf otherwise.
  const std::uint32_t groups = o.split.empty() ? 1 : static_cast<std::uint32_t>(o.split.size());

  if (s.rail_optimised) {
    if (o.leaves && *o.leaves % s.rails != 0)
      return fail(errc::invalid_argument,
                  "a rail-optimised pod has one leaf for each of " + counted(s.rails, "NIC", "NICs") +
                      " of a host, and leaves=" + std::to_string(*o.leaves) + " is not a multiple of that",
                  "change leaves, or give rails=no");
    s.pods = o.pods ? *o.pods : (o.leaves ? *o.leaves / s.rails : groups);
    const std::uint64_t leaves = std::uint64_t{s.pods} * s.rails;
    if (o.leaves && *o.leaves != leaves)
      return fail(errc::invalid_argument,
                  counted(s.pods, "rail-optimised pod", "rail-optimised pods") + " of " +
                      counted(s.rails, "rail", "rails") + " need " + std::to_string(leaves) + " leaves, not " +
                      std::to_string(*o.leaves),
                  "leave out one of pods and leaves, or give rails=no");
    if (s.pods > s.nodes)
      return fail(errc::invalid_argument,
                  counted(s.pods, "pod", "pods") + " cannot be filled by " + counted(s.nodes, "host", "hosts"),
                  "give at most as many pods as hosts");
    if (leaves > most_nodes_and_links)
      return fail(errc::unsupported, std::to_string(leaves) + " leaves are more than can be generated");
    s.leaves = static_cast<std::uint32_t>(leaves);
    return {};
  }
  s.leaves = o.leaves ? *o.leaves : (o.pods && o.cores == 0 ? *o.pods : groups);
  s.pods = o.cores == 0 ? s.leaves : (o.pods ? *o.pods : 0);
  if (s.leaves > s.nodes)
    return fail(
        errc::invalid_argument,
        counted(s.leaves, "leaf", "leaves") + " that each serve whole hosts cannot be filled by " +
            counted(s.nodes, "host", "hosts"),
        "give at most as many leaves as hosts, or a multiple of the " + counted(s.rails, "NIC", "NICs") + " of a host");
  if (o.cores > 0 && s.pods == 0)
    return fail(errc::invalid_argument, "core switches join pods, and the number of pods is not given", "give pods");
  if (o.cores > 0 && s.leaves % s.pods != 0)
    return fail(errc::invalid_argument,
                counted(s.leaves, "leaf", "leaves") + " cannot be shared evenly by " + counted(s.pods, "pod", "pods"));
  if (o.cores == 0 && o.pods && *o.pods != s.leaves)
    return fail(errc::invalid_argument,
                "pods=" + std::to_string(*o.pods) + " has no meaning for leaves=" + std::to_string(s.leaves) +
                    " that are not rail-optimised: without core switches every leaf reaches every spine",
                "leave out pods, or give cores");
  return {};
}

/// Decides on spines and core switches.
template <class = void>
result<void> choose_spines(const fabric_options& o, fabric_shape& s) {
  s.cores = o.cores;
  if (s.cores > 0 && s.pods < 2)
    return fail(errc::invalid_argument, "core switches join pods, and there is one pod",
                "give pods=2 or more, or leave out cores");
  const bool alone = s.leaves == 1;
  if (o.spines) {
    s.spines = *o.spines;
  } else if (!alone) {
    std::uint32_t most = 0;
    for (const std::uint32_t hosts : s.split) most = hosts > most ? hosts : most;
    const double down = static_cast<double>(most) * (s.rail_optimised ? 1 : s.rails);
    const double up = down / o.oversubscription.to_double();
    const std::uint32_t each = up >= 16 ? 16 : (up <= 1 ? 1 : static_cast<std::uint32_t>(up + 0.999999));
    s.spines = s.cores > 0 ? each * s.pods : each;  // pods <= hosts, checked before
  }
  if (s.spines == 0 && s.split.size() > 1)
    return fail(errc::invalid_argument,
                counted(s.split.size(), s.rail_optimised ? "pod" : "leaf", s.rail_optimised ? "pods" : "leaves") +
                    " cannot reach each other without spines",
                "leave out spines, or give at least one");
  if (s.cores > 0 && s.spines % s.pods != 0)
    return fail(errc::invalid_argument,
                counted(s.spines, "spine", "spines") + " cannot be shared evenly by " + counted(s.pods, "pod", "pods"),
                "spines counts those of all pods");
  return {};
}

/// Refuses what would not fit into memory on an ordinary machine.
template <class = void>
result<void> check_size(const fabric_options& o, const fabric_shape& s) {
  const host_model& m = o.host;
  const std::uint64_t pairs =
      m.mesh.size() + (s.detail == host_detail::full ? std::uint64_t{m.sockets} * m.sockets : 0);
  const std::uint64_t parts = 2 * (m.sockets + m.switches() + m.gpus + m.nics);
  const std::uint64_t host = parts + 2 * (pairs + 2 * (std::uint64_t{m.gpus} + m.nics) + m.switches() + m.sockets);
  const std::uint64_t up = 2 * (std::uint64_t{s.leaves} * s.spines_per_leaf() + std::uint64_t{s.spines} * s.cores);
  constexpr std::uint64_t most = most_nodes_and_links;
  if (s.nodes > most / host || s.leaves > most || s.spines > most || s.cores > most || s.nodes * host + up > most)
    return fail(errc::unsupported, "the described cluster has more than " + std::to_string(most) + " nodes and links",
                "describe a smaller one: a million GPUs fit");
  return {};
}

}  // namespace detail

template <class>
result<fabric_shape> shape_of(const fabric_options& o) {
  if (auto ok = check(o.host); !ok) return ok.error();
  fabric_shape s;
  s.nodes = o.nodes;
  s.rails = o.host.nics;
  if (o.nodes == 0)
    return fail(errc::invalid_argument, "a cluster of 0 hosts has nothing to describe", "give at least one host");
  if (o.nodes > detail::most_nodes_and_links)
    return fail(errc::unsupported, std::to_string(o.nodes) + " hosts are more than can be generated");
  for (const auto& [name, r] :
       {std::pair{"oversubscription", o.oversubscription}, std::pair{"core_oversubscription", o.core_oversubscription}})
    if (!r.valid() || r <= rational{0} || r > rational{1000000})
      return fail(errc::invalid_argument, std::string(name) + " is not a ratio above 0 and up to 1000000",
                  "write for example 2, 1.5 or 3:1");
  if (o.network != topo::link_kind::infiniband && o.network != topo::link_kind::ethernet)
    return fail(errc::invalid_argument, std::string("a network of ") + to_string(o.network) + " links cannot be built",
                "infiniband and ethernet can");
  const auto detail_level = detail::settled(o.host, o.detail, o.nodes);
  if (!detail_level) return detail_level.error();
  s.detail = *detail_level;

  const bool joined_anyway = o.nodes <= o.host.domain_hosts;
  const bool asked =
      o.pods || (o.spines && *o.spines > 0) || o.cores > 0 || (o.leaves && *o.leaves > 0) || !o.split.empty();
  if (o.leaves && *o.leaves == 0) {
    if (!joined_anyway)
      return fail(errc::invalid_argument,
                  detail::counted(o.nodes, "host", "hosts") + " cannot reach each other without leaves");
    if (o.pods || (o.spines && *o.spines > 0) || o.cores > 0)
      return fail(errc::invalid_argument, "a network without leaves cannot have pods, spines or core switches");
  } else if (asked || !joined_anyway) {
    if (auto ok = detail::choose_leaves(o, s); !ok) return ok.error();
    const std::uint32_t groups = s.rail_optimised ? s.pods : s.leaves;
    if (o.split.empty()) {
      s.split = detail::even_split(o.nodes, groups);
    } else {
      s.split = o.split;
      std::uint64_t sum = 0;
      for (const std::uint32_t hosts : s.split) {
        sum += hosts;
        if (hosts == 0) return fail(errc::invalid_argument, "a pod or leaf with 0 hosts has nothing to serve");
      }
      if (sum != o.nodes || s.split.size() != groups)
        return fail(
            errc::invalid_argument,
            "hosts are given for " + std::to_string(s.split.size()) + " groups, " + std::to_string(sum) +
                " in all, but there are " +
                detail::counted(groups, s.rail_optimised ? "pod" : "leaf", s.rail_optimised ? "pods" : "leaves") +
                " and " + detail::counted(o.nodes, "host", "hosts"),
            s.rail_optimised ? "give pods= that many pods" : "give leaves= that many leaves");
    }
    if (auto ok = detail::choose_spines(o, s); !ok) return ok.error();
  }
  if (auto ok = detail::check_size(o, s); !ok) return ok.error();
  return s;
}

}}  // namespace topocoll::v0
