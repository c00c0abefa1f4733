// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which PCIe bridges send peer traffic of GPUs up to the processor, and what can be done about it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/read/acs.hpp>

namespace topocoll { inline namespace v0 {

/// A PCI function as this question needs it.
struct acs_function {
  std::string address;
  std::size_t above = static_cast<std::size_t>(-1);  ///< position of the bridge above, if any
  bool bridge = false;
  bool gpu = false;
  read::acs_state state;  ///< of bridges
};

/// One bridge with something below it.
struct acs_bridge {
  std::string address;
  std::optional<std::uint16_t> control;  ///< the register; empty without the capability or when nobody could look
  std::optional<bool> redirects;         ///< empty when it is not known
  std::vector<std::string> below;        ///< addresses of the functions below that are no bridges
};

enum class acs_verdict : std::uint8_t {
  clean,   ///< no bridge above a GPU redirects
  warn,    ///< one does
  unknown  ///< nobody with the right to look has looked at all of them, or there is no GPU
};
[[nodiscard]] constexpr const char* to_string(acs_verdict v) {
  constexpr const char* words[] = {"clean", "warn", "unknown"};
  return words[static_cast<std::size_t>(v)];
}

struct acs_report {
  std::vector<acs_bridge> bridges;
  acs_verdict verdict = acs_verdict::unknown;
  std::vector<std::string> gpus_affected;  ///< addresses
  std::vector<std::string> advice_keys;    ///< short names of what can be done; empty unless the verdict is warn
};

/// Judges the bridges of one machine.
///
/// In a virtual machine the advice is another one: there the services keep guests apart and must stay on.
/// @param functions  every `above` is the position of another function; circles are cut
/// @param guest      the machine is known to be virtual
/// Cost: O(n * depth).
template <class = void>
[[nodiscard]] acs_report acs_report_of(const std::vector<acs_function>& functions, bool guest) {
  acs_report report;
  std::vector<std::size_t> place(functions.size(), functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!functions[i].bridge) continue;
    place[i] = report.bridges.size();
    report.bridges.push_back({functions[i].address, functions[i].state.control, functions[i].state.redirects(), {}});
  }
  bool any_gpu = false;
  bool all_known = true;
  for (const acs_function& f : functions) {
    if (f.bridge) continue;
    bool affected = false;
    std::size_t steps = 0;
    for (std::size_t up = f.above; up < functions.size() && steps <= functions.size();
         up = functions[up].above, ++steps) {
      if (place[up] == functions.size()) continue;
      acs_bridge& b = report.bridges[place[up]];
      if (b.below.empty() || b.below.back() != f.address) b.below.push_back(f.address);
      affected = affected || b.redirects.value_or(false);
      if (f.gpu && !b.redirects) all_known = false;
    }
    any_gpu = any_gpu || f.gpu;
    if (f.gpu && affected) report.gpus_affected.push_back(f.address);
  }
  std::erase_if(report.bridges, [](const acs_bridge& b) { return b.below.empty(); });
  report.verdict = !report.gpus_affected.empty()                     ? acs_verdict::warn
                   : any_gpu && all_known && !report.bridges.empty() ? acs_verdict::clean
                                                                     : acs_verdict::unknown;
  if (report.verdict == acs_verdict::warn && guest)
    report.advice_keys = {"keep_acs_in_guest", "enable_ats_on_nic"};
  else if (report.verdict == acs_verdict::warn)
    report.advice_keys = {"disable_acs_bios_or_kernel", "or_disable_p2p"};
  return report;
}

/// The report as at most one finding.
template <class = void>
void tell_acs(const acs_report& report, const std::string& where, const std::string& guest_of,
              std::vector<finding>& out) {
  const auto list = [](const std::vector<std::string>& names) {
    constexpr std::size_t spelt = 8;
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < spelt; ++i) text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > spelt ? text + ", …" : text;
  };
  if (report.verdict == acs_verdict::clean) return;
  finding f;
  f.where = where;
  std::vector<std::string> bridges;
  for (const acs_bridge& b : report.bridges)
    if (report.verdict == acs_verdict::warn ? b.redirects.value_or(false) : !b.redirects) bridges.push_back(b.address);
  if (report.verdict == acs_verdict::warn) {
    f.level = severity::warning;
    f.what = "access control services (ACS) of PCIe bridges send peer traffic of " +
             std::to_string(report.gpus_affected.size()) + " GPUs up to the processor";
    f.evidence = "GPUs " + list(report.gpus_affected) + "; bridges " + list(bridges);
    f.next_step =
        guest_of.empty()
            ? "switch ACS off in the BIOS or with the kernel's pci=disable_acs_redir=, or let NCCL do without "
              "peer access (NCCL_P2P_DISABLE=1)"
            : "this is a virtual machine (" + guest_of +
                  "), where ACS must stay on: let the host enable ATS on the adapter";
  } else {
    if (bridges.empty()) return;
    f.level = severity::note;
    f.what = "it is not known whether PCIe bridges redirect peer traffic (ACS)";
    f.evidence = std::to_string(bridges.size()) + " bridges: " + list(bridges);
    f.next_step = "look again as root: only root may read it";
  }
  out.push_back(std::move(f));
}

}}  // namespace topocoll::v0
