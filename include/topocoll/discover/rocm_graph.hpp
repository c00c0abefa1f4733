// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what `rocm-smi --showtopo` prints into a fragment of the topology graph.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/host.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/rocm_smi_topo.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Nodes and links of one listing.
///
/// A gpu for each column ("host/gpu:0"), a cpu for each NUMA node, XGMI links between GPUs that are one hop apart, and a PCIe
/// link from each GPU to its cpu. The number of XGMI links, their rate and that of PCIe are not told and therefore assumed.
/// Pairs that XGMI joins over several hops have no link of their own. GPUs without a NUMA node (-1 in guests) share one
/// assumed domain.
/// @param file  name for failures, findings and `fragment::source`
/// Cost: O(n^2) for n GPUs.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::rocm_smi_topo& listing, const discover_options& options,
                                                 const std::string& file);

namespace detail {

/// The NUMA domains of a listing as cpus with memories, joined; the domain of each GPU beside.
template <class = void>
[[nodiscard]] std::vector<node_id> add_rocm_domains(const read::rocm_smi_topo& listing, const std::string& host,
                                                    topo::fragment& out, tally& tally) {
  std::vector<std::optional<std::uint32_t>> numbers;
  for (const read::rocm_gpu& g : listing.gpus) numbers.push_back(g.numa);
  seq::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<node_id> cpus;
  for (const auto& number : numbers) {
    topo::node n;
    n.kind = topo::node_kind::cpu;
    n.host = host;
    const std::string text = number ? std::to_string(*number) : "of-GPUs";
    n.key = host + "/numa:" + text;
    n.name = number ? "NUMA " + text : "NUMA of GPUs";
    n.index = n.numa = number;
    if (!number) {
      n.how = trust::assumed;
      n.reason = "no NUMA node is told for some GPUs; they are taken to share one";
    }
    cpus.push_back(out.add(std::move(n)));
    add_memory(out, cpus.back(), host + "/memory:" + text, "memory " + text);
  }
  for (std::size_t a = 0; a < cpus.size(); ++a)
    for (std::size_t b = a + 1; b < cpus.size(); ++b) join_domains(out, cpus[a], {}, cpus[b], {});
  std::vector<node_id> home;
  for (const read::rocm_gpu& g : listing.gpus) {
    home.push_back(
        cpus[static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), g.numa) - numbers.begin())]);
    if (!g.numa)
      tally.add(severity::note, "the NUMA node of a GPU is not told; such GPUs are taken to share one",
                "GPU " + std::to_string(g.index), "ask the host");
  }
  return home;
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::rocm_smi_topo& listing, const discover_options& options,
                                   const std::string& file) {
  topo::fragment out;
  detail::tally tally;
  out.source = "rocm-smi-topo " + file;
  out.findings = listing.findings;
  const std::vector<node_id> home = detail::add_rocm_domains(listing, options.host, out, tally);
  std::vector<node_id> gpus;
  for (std::size_t i = 0; i < listing.gpus.size(); ++i) {
    const read::rocm_gpu& g = listing.gpus[i];
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = options.host + "/gpu:" + std::to_string(g.index);
    n.name = "GPU " + std::to_string(g.index);
    n.host = options.host;
    n.index = g.index;
    n.numa = g.numa;
    if (g.numa_affinity && g.numa_affinity != g.numa)
      n.facts.emplace_back("numa_affinity", std::to_string(*g.numa_affinity));
    gpus.push_back(out.add(std::move(n)));
    topo::link l;
    l.from = home[i];
    l.to = gpus.back();
    l.kind = topo::link_kind::pcie;
    l.capacity = pcie_payload_rate(3, 16);
    l.how = trust::assumed;
    l.reason = "link not told, taken as Gen3 x16";
    out.join(l);
  }
  tally.add(severity::note, "the listing tells no PCIe speeds; every PCIe link is taken as Gen3 x16",
            std::to_string(gpus.size()) + " GPUs", "merge with what sysfs or a topology of RCCL tells");
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const read::rocm_pair& there = listing.gpus[i].to[j];
      const read::rocm_pair& back = listing.gpus[j].to[i];
      const std::string who =
          "GPU " + std::to_string(listing.gpus[i].index) + " and " + std::to_string(listing.gpus[j].index);
      if (there.kind != back.kind || there.hops != back.hops || there.weight != back.weight)
        tally.add(severity::warning, "the two rows of a pair tell different things; the nearer is taken", who,
                  "print the listing again");
      const bool xgmi = there.kind == "XGMI" || back.kind == "XGMI";
      if (!xgmi) {
        if (there.kind.empty() && back.kind.empty())
          tally.add(severity::note, "the kind of the link between two GPUs is not told; no XGMI is taken to be there",
                    who);
        continue;
      }
      const std::uint32_t hops = std::min(there.hops.value_or(1), back.hops.value_or(1));
      if (hops > 1) {
        tally.add(severity::note, "XGMI joins two GPUs only by way of others; they have no link of their own", who);
        continue;
      }
      topo::link l;
      l.from = gpus[i];
      l.to = gpus[j];
      l.kind = topo::link_kind::xgmi;
      l.capacity = xgmi_rate({}).payload;
      l.how = trust::assumed;
      l.reason = "XGMI; neither the number of links nor the architecture is told, rate of one link of the slowest";
      out.join(l);
    }
  tally.report(file, out.findings);
  return out;
}

}}  // namespace topocoll::v0
