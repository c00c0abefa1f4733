// SPDX-License-Identifier: Apache-2.0
// A health check inside a program of yours: probes this machine for some seconds and says what falls short.
#include <cstdio>
#include <topocoll/core/deadline.hpp>
#include <topocoll/discover/discover.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/probe/preflight.hpp>
#include <topocoll/probe/report.hpp>

namespace tc = topocoll;
using namespace tc::literals;

int main() {
  // [preflight]
  const auto here = tc::discover({.host = "here"}, tc::sysfs{});
  if (!here) {
    std::printf("%s\n", here.error().message().c_str());
    return 2;
  }
  tc::probe::preflight_options options;
  options.ranks = 2;
  options.sizes = {64_KiB, 4_MiB};
  const auto ignore = [](tc::probe::section, const tc::probe::report&) {};  // progress, if you show any
  const tc::seconds start = tc::steady_clock::now();
  tc::probe::report report = tc::probe::preflight(here->graph, options, ignore);
  report.took = tc::steady_clock::now() - start;

  for (const tc::probe::verdict& v : report.verdicts)
    if (v.is != tc::probe::state::healthy) std::printf("%s\n", v.sentence.c_str());
  std::printf("%s\n", tc::probe::verdict_line(report).c_str());
  // [/preflight]
}

// Printed on a virtual machine with two cores:
// PCIe links: none of 2 tells both what it runs at and what it could, as is usual in virtual machines
// RDMA ports: none is seen, and 1 plain interface does not tell a speed
// GPUs: none is seen
// NUMA domains: not compared, there is only one
// PASS: 7 checks passed, 0 failed, 4 not measured (PCIe link state not told, no RDMA port, no GPU, one NUMA domain) in 3.9 s
