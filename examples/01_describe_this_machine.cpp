// SPDX-License-Identifier: Apache-2.0
// What is in this machine, how far apart its devices are, and what could not be seen.
#include <cstdio>
#include <topocoll/discover/discover.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/routes.hpp>
#include <topocoll/topo/summary.hpp>

namespace tc = topocoll;
namespace topo = tc::topo;

int main() {
  // [discover]
  const auto here = tc::discover({.host = "here"}, tc::sysfs{});
  if (!here) {
    std::printf("%s\n", here.error().message().c_str());
    return 1;
  }
  // [/discover]
  const topo::summary s = topo::summarize(here->graph);
  std::printf("%zu NUMA domains, %zu PCIe switches, %zu GPUs, %zu network ports\n", s.numa_domains, s.pcie_switches,
              s.gpus, s.nics);

  const auto nics = here->graph.all(topo::node_kind::nic);
  for (const tc::node_id gpu : here->graph.all(topo::node_kind::gpu)) {
    const topo::routes ways(here->graph, gpu);
    for (const tc::node_id nic : nics)
      std::printf("%s to %s: %s, %s\n", here->graph.at(gpu).name.c_str(), here->graph.at(nic).name.c_str(),
                  to_string(ways.kind(nic)), ways.rate(nic).why.c_str());
  }
  for (const tc::finding& f : here->findings) std::printf("%s: %s\n", f.where.c_str(), f.what.c_str());
}

// Printed on a virtual machine without GPUs:
// 1 NUMA domains, 0 PCIe switches, 0 GPUs, 1 network ports
// sysfs: interfaces without hardware are not counted as adapters
// sysfs: the NUMA domain is not told (-1); taken as the only one
// sysfs: the PCIe link is not told; taken as Gen3 x16
// sysfs: the driver of an interface tells no speed; it is assumed
