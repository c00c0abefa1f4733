// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that a preflight found out, as one value, and the one line that sums it up.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/probe/exit_style.hpp>
#include <topocoll/probe/stats.hpp>
#include <topocoll/probe/verdict.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// What a path should carry, one direction, nobody else on it. Pairs of the same kind with the same answer share a line.
struct path_expectation {
  std::string from;  ///< "GPU", "CPU 0": a kind when the line stands for several pairs
  std::string to;
  std::size_t pairs = 1;
  topo::path_class distance = topo::path_class::DIS;
  std::optional<bytes_per_second> line_rate;  ///< capacity of the narrowest link; empty when no source tells
  std::optional<bytes_per_second> payload;    ///< what a transfer can reach of it; empty with `line_rate`
  std::uint32_t sharers = 1;                  ///< devices whose traffic to the host crosses the narrowest link
  trust how = trust::assumed;                 ///< of the narrowest link's capacity
  std::string reason;                         ///< which link and why: "PCIe gen 5 x16 above 0000:1b:00.0"
};

/// What one kernel reached on one set of cores.
struct memory_figure {
  std::string where;   ///< "core 0", "2 cores", "NUMA 1"
  std::string kernel;  ///< "copy", "read", "reduce"
  std::size_t cores = 1;
  bytes buffer{};  ///< of one core
  summary<bytes_per_second> rate;
  std::size_t passes = 0;
  std::size_t disturbed = 0;
  double core_share = 1;  ///< CPU time over wall time
};

/// What was planned and why.
struct plan_figure {
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};
  std::string chosen;                    ///< name of the plan: "ring", "recursive doubling"
  std::optional<seconds> predicted;      ///< by the planner's model on the graph
  std::optional<double> share_of_bound;  ///< bound over prediction: 1 is optimal
  std::string proof;                     ///< what the verifier proved; empty when it was not verified
  std::vector<std::string> reasons;
  std::optional<bytes_per_second> copy;  ///< measured copy rate that the prediction rests on
};

/// What a collective between local ranks reached.
struct collective_figure {
  collective_kind collective = collective_kind::all_reduce;
  bytes size{};
  std::uint32_t ranks = 0;
  std::string plan;          ///< name of the plan that ran
  summary<seconds> time;     ///< of one call, the slowest rank
  bytes_per_second algbw{};  ///< from the median time
  bytes_per_second busbw{};
  std::optional<seconds> expected;  ///< by the model below; empty when memory was not measured
  std::string formula;              ///< the model with its figures
  std::uint64_t checked = 0;        ///< elements that were compared with the right result
  std::uint64_t wrong = 0;          ///< of those, differing
};

/// Counts of what the machine holds, as far as sources tell.
struct machine_counts {
  std::size_t gpus = 0;
  std::size_t nics = 0;  ///< adapters with a PCI address or an RDMA device
  std::size_t nic_ports = 0;
  std::size_t numa_domains = 0;
  std::size_t cores = 0;  ///< that this process may use; 0 for a recorded machine
};

/// One preflight, from discovery to verdicts. Serialised as schema topocoll.report/1 (docs/formats/report.md).
struct report {
  std::string host;
  std::string started;  ///< UTC, "2026-03-01T08:15:00Z"
  std::string version;  ///< of topocoll
  std::string source;   ///< where the topology came from: "sysfs", a file
  bool live = true;     ///< false for a recorded machine: nothing could be run
  std::uint32_t ranks = 0;
  machine_counts machine;
  std::optional<bytes> last_level_cache;
  std::optional<double> load;  ///< runnable threads before we started, mean of a minute
  seconds took{};
  std::vector<path_expectation> paths;
  std::vector<memory_figure> memory;
  std::vector<plan_figure> plans;
  std::vector<collective_figure> collectives;
  std::vector<verdict> verdicts;
  std::vector<finding> findings;
};

/// "no GPU, one NUMA domain": the headlines of the checks in state `is`, each once, in order; at most `most`, then "3 more".
template <class = void>
[[nodiscard]] std::string headlines(const report& r, state is, std::size_t most = 6) {
  std::vector<std::string_view> shown;
  for (const verdict& v : r.verdicts) {
    if (v.is != is || v.headline.empty()) continue;
    bool known = false;
    for (const std::string_view s : shown) known = known || s == v.headline;
    if (!known) shown.push_back(v.headline);
  }
  std::string text;
  for (std::size_t i = 0; i < shown.size() && i < most; ++i) {
    if (i > 0) text += ", ";
    text += shown[i];
  }
  if (shown.size() > most) text += ", " + std::to_string(shown.size() - most) + " more";
  return text;
}

/// The one line at the end: "PASS: 7 checks passed, 0 failed, 5 not measured (no GPU, one NUMA domain) in 8.2 s".
///
/// A failure leads with what failed; suspects are counted when there are any. Never "PASS" unless data was moved.
template <class = void>
[[nodiscard]] std::string verdict_line(const report& r) {
  const tally t = count(r.verdicts);
  std::string line;
  switch (overall(t)) {
    case outcome::pass: line = "PASS: "; break;
    case outcome::not_measured: line = "NOT MEASURED: "; break;
    case outcome::fail: {
      std::string what = headlines(r, state::dead, 3);
      const std::string slow = headlines(r, state::degraded, 3);
      if (!what.empty() && !slow.empty()) what += ", ";
      line = "FAIL: " + what + slow + ": ";
      break;
    }
  }
  line += std::to_string(t.passed) + (t.passed == 1 ? " check passed, " : " checks passed, ") +
          std::to_string(t.failed) + " failed, ";
  if (t.suspect > 0) line += std::to_string(t.suspect) + " undecided (" + headlines(r, state::suspect) + "), ";
  line += std::to_string(t.not_measured) + " not measured";
  if (const std::string why = headlines(r, state::not_measured); !why.empty()) line += " (" + why + ")";
  char tail[32];
  std::snprintf(tail, sizeof tail, " in %.1f s", r.took.value);
  return line + tail;
}

/// The line for programs of other people: a reason of at most 80 bytes for npd, nagios and slurm, the verdict line for plain.
/// Empty for slurm unless something failed or could not be looked at, since a prolog is silent on success.
template <class = void>
[[nodiscard]] std::string status_line(const report& r, exit_style style) {
  const tally t = count(r.verdicts);
  const outcome all = overall(t);
  if (style == exit_style::plain) return verdict_line(r);
  if (style == exit_style::slurm && all == outcome::pass) return {};
  std::string line;
  if (all == outcome::fail) {
    std::string what = headlines(r, state::dead, 2);
    const std::string slow = headlines(r, state::degraded, 2);
    if (!what.empty() && !slow.empty()) what += ", ";
    line = what + slow;
  } else if (all == outcome::pass) {
    line = std::to_string(t.passed) + " checks passed";
    if (t.suspect > 0) line += ", undecided: " + headlines(r, state::suspect, 2);
  } else {
    line = "not measured: " + headlines(r, state::not_measured, 2);
  }
  if (style == exit_style::nagios) {
    constexpr const char* words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    line = std::string("TOPOCOLL ") + words[exit_code_of(t, style)] + " - " + line;
  } else {
    line = "topocoll: " + line;
  }
  return shortened(line, style == exit_style::slurm ? 79 : 80);
}

}}}  // namespace topocoll::v0::probe
