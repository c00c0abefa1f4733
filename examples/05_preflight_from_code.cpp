// SPDX-License-Identifier: Apache-2.0
// A health check inside a program of yours: probes this machine for some seconds and says what falls short.
#include <cstdio>

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
  options.budget = 8_s;
  options.sizes = {64_KiB, 4_MiB};
  const auto ignore = [](tc::probe::section, const tc::probe::report&) {};  // progress, if you show any
  const tc::probe::report report = tc::probe::preflight(here->graph, options, ignore);

  for (const tc::probe::verdict& v : report.verdicts)
    if (v.is != tc::probe::state::healthy) std::printf("%s, %s: %s\n", to_string(v.is), v.where.c_str(), v.sentence.c_str());
  std::printf("%s\n", tc::probe::verdict_line(report).c_str());
  // [/preflight]
}
