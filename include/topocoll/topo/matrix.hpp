// SPDX-License-Identifier: Apache-2.0
#pragma once
// The devices of one host as a matrix of path classes, in the form of `nvidia-smi topo -m`.
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
#include <topocoll/topo/detail/one_host.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/routes.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Writes the GPUs and network interfaces of a host: one row and one column each, then CPU affinity, NUMA domain and the
/// legends. `read::parse_nvidia_smi_topo` reads it back to the same classes, unless there is no GPU at all.
///
/// NV# is the number of bonded links (of the narrower side of an NVSwitch); NV alone when the graph does not tell it, XGMI
/// for AMD's links. NODE instead of PHB where the host bridges are known to differ; PHB also stands for a path that begins
/// with a chip-to-chip link (P2C). Two ports of one adapter are PIX. N/A is no path.
/// @param host  may be empty when the graph has one host
/// @return `not_found` for a host that is not in the graph, `invalid_argument` when none is named and there are several.
/// Cost: O(d * (nodes + links of the host) + d^2) for d devices.
template <class = void>
[[nodiscard]] result<std::string> matrix_text(const graph& g, std::string_view host = {});

namespace detail {

/// Bonded GPU links from `a` to `b`; empty without any, 0 when one does not tell its number.
template <class = void>
[[nodiscard]] std::optional<std::uint32_t> bonded_links(const graph& g, node_id a, node_id b) {
  std::optional<std::uint32_t> sum;
  for (const link_id e : g.out_links(a)) {
    const link& l = g.at(e);
    if (l.to != b || (l.kind != link_kind::nvlink && l.kind != link_kind::xgmi) || l.capacity.value <= 0) continue;
    if (l.lanes == 0 || (sum && *sum == 0))
      sum = 0;
    else
      sum = sum.value_or(0) + l.lanes;
  }
  return sum;
}

/// "NV4" for the links that a path between two GPUs takes.
template <class = void>
[[nodiscard]] std::string gpu_link_cell(const graph& g, const path& way, node_id from) {
  if (g.at(way.links.front()).kind == link_kind::xgmi) return "XGMI";
  std::uint32_t least = UINT32_MAX;
  node_id at = from;
  for (const link_id e : way.links) {
    least = std::min(least, bonded_links(g, at, g.head(e)).value_or(0));
    at = g.head(e);
  }
  return least == 0 ? "NV" : "NV" + std::to_string(least);
}

template <class = void>
[[nodiscard]] std::string matrix_cell_text(const graph& g, const std::optional<path>& way, node_id from,
                                           bool same_bridge) {
  if (!way) return "N/A";
  switch (class_of(g, *way, from)) {
    case path_class::NVL:
    case path_class::NVB: return gpu_link_cell(g, *way, from);
    case path_class::C2C: return "C2C";
    case path_class::LOC:
    case path_class::PIX: return "PIX";
    case path_class::PXB: return "PXB";
    case path_class::P2C:
    case path_class::PXN:
    case path_class::PHB: return same_bridge ? "PHB" : "NODE";
    case path_class::SYS: return "SYS";
    case path_class::NET:
    case path_class::DIS: break;
  }
  return "N/A";
}

/// "0-3,8" of the mask "10f": comma-separated 32-bit hexadecimal words, the most significant first. Empty for anything else.
template <class = void>
[[nodiscard]] std::string processors_of_mask(std::string_view mask) {
  std::vector<std::uint32_t> words{0};
  for (const char c : mask) {
    const std::uint32_t digit = c >= '0' && c <= '9'   ? static_cast<std::uint32_t>(c - '0')
                                : c >= 'a' && c <= 'f' ? static_cast<std::uint32_t>(c - 'a') + 10
                                : c >= 'A' && c <= 'F' ? static_cast<std::uint32_t>(c - 'A') + 10
                                                       : 16;
    if (c == ',')
      words.push_back(0);
    else if (digit == 16 || words.back() >> 28U != 0)
      return {};
    else
      words.back() = words.back() << 4U | digit;
  }
  std::string list;
  const std::size_t bits = 32 * words.size();
  const auto set = [&](std::size_t bit) {
    return bit < bits && (words[words.size() - 1 - bit / 32] >> (bit % 32) & 1U) != 0;
  };
  for (std::size_t bit = 0; bit < bits; ++bit) {
    if (!set(bit)) continue;
    const std::size_t first = bit;
    while (set(bit + 1)) ++bit;
    list += (list.empty() ? "" : ",") + std::to_string(first);
    if (bit > first) list += "-" + std::to_string(bit);
  }
  return list;
}

/// Processors near a GPU: what is said of it, else of its NUMA domain, as a list or as a mask.
template <class = void>
[[nodiscard]] std::string processors_near(const graph& g, node_id gpu) {
  for (const auto& [name, value] : g.at(gpu).facts)
    if (name == "cpu_affinity") return value;
  const auto numa = g.at(gpu).numa;
  std::string masked;
  for (const node& n : g.nodes())
    if (numa && n.kind == node_kind::cpu && n.numa == numa)
      for (const auto& [name, value] : n.facts) {
        if (name == "cpus") return value;
        if (name == "affinity") masked = processors_of_mask(value);
      }
  return masked;
}

}  // namespace detail

template <class>
result<std::string> matrix_text(const graph& g, std::string_view host) {
  const std::vector<group> all = hosts(g);
  if (host.empty() && all.size() != 1)
    return fail(errc::invalid_argument,
                "the graph has " + std::to_string(all.size()) + " hosts, and a matrix shows one",
                all.empty() ? "" : "name one of them, such as " + all.front().name);
  const std::string name = host.empty() ? all.front().name : std::string(host);
  const auto which = seq::find_by(all, name, &group::name);
  if (which == all.end()) return fail(errc::not_found, "the graph has no host " + name);

  const detail::one_host cut = detail::host_cutter<>(g).cut(which->nodes);
  const graph& h = cut.local;
  std::vector<node_id> gpus;
  for (const node_id v : h.all(node_kind::gpu))
    if (h.at(v).host == name) gpus.push_back(v);
  std::vector<std::uint32_t> numbers;
  for (const node_id v : gpus) numbers.push_back(h.at(v).index.value_or(UINT32_MAX));
  seq::sort(numbers);
  const bool numbered = std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end() &&
                        (numbers.empty() || numbers.back() != UINT32_MAX);
  if (numbered) seq::sort(gpus, [&](node_id a, node_id b) { return *h.at(a).index < *h.at(b).index; });
  std::vector<node_id> devices = gpus;
  const std::vector<node_id> nics = detail::interfaces(h);
  devices.insert(devices.end(), nics.begin(), nics.end());

  std::vector<std::string> labels, bridges;
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool gpu = i < gpus.size();
    labels.push_back(gpu ? "GPU" + std::to_string(numbered ? *h.at(devices[i]).index : i)
                         : "NIC" + std::to_string(i - gpus.size()));
    bridges.push_back(detail::host_bridge_of(h, devices[i]));
    text += '\t' + labels.back();
  }
  text += "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += labels[i];
    const routes ways(h, devices[i]);
    for (std::size_t j = 0; j < devices.size(); ++j) {
      const bool same = bridges[i].empty() || bridges[j].empty() || bridges[i] == bridges[j];
      text += '\t';
      text += i == j ? " X " : detail::matrix_cell_text(h, ways.to(devices[j]), devices[i], same);
    }
    if (i < gpus.size()) {
      const auto numa = h.at(devices[i]).numa;
      text += '\t' + detail::processors_near(h, devices[i]) + '\t' + (numa ? std::to_string(*numa) : "N/A") + "\t\tN/A";
    }
    text += '\n';
  }
  text +=
      "\nLegend:\n\n"
      "  X    = the device itself\n"
      "  SYS  = between NUMA domains\n"
      "  NODE = between host bridges of one NUMA domain\n"
      "  PHB  = through one host bridge\n"
      "  PXB  = through several PCIe bridges\n"
      "  PIX  = through one PCIe bridge at most\n"
      "  NV#  = over # bonded NVLinks\n";
  if (!nics.empty()) text += "\nNIC Legend:\n\n";
  for (std::size_t i = 0; i < nics.size(); ++i) {
    std::string called = h.at(nics[i]).name;
    for (char& c : called)
      if (c == ' ' || c == '\t' || c == '/') c = '_';
    if (!called.empty()) text += "  NIC" + std::to_string(i) + ": " + called + '\n';
  }
  return text;
}

}}}  // namespace topocoll::v0::topo
