// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of measurements with a description of the machine in every line (docs/formats/measurements.md).
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/plan/calibrate.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// A table as observations, with what stands beside them.
struct measurement_table {
  std::vector<plan::observation> rows;
  std::vector<std::string> systems;      ///< names; `observation::system` counts in them
  std::vector<std::string> link_groups;  ///< per row: "NVLink4, InfiniBand"
  std::uint32_t without_time = 0;        ///< lines that give no time or no size
  std::uint32_t other_collectives = 0;   ///< lines of collectives that the model has no figures for
  std::uint32_t not_healthy = 0;         ///< lines that the table itself calls degraded, suspect or unknown
  std::uint32_t not_described = 0;       ///< lines whose machine is not described well enough
  std::vector<std::string> not_described_systems;
};

/// A line by the names of its columns.
class table_line {
 public:
  table_line(const std::vector<std::string_view>& names, std::vector<std::string_view> fields)
      : names_(&names), fields_(std::move(fields)) {}

  [[nodiscard]] std::string_view text(std::string_view name) const {
    for (std::size_t i = 0; i < names_->size() && i < fields_.size(); ++i)
      if ((*names_)[i] == name) return fields_[i];
    return {};
  }
  [[nodiscard]] bool has(std::string_view name, std::string_view word) const {
    return text(name).find(word) != std::string_view::npos;
  }
  /// Empty when there is no number.
  [[nodiscard]] std::optional<double> number(std::string_view name) const {
    const std::string_view t = text(name);
    double value = 0;
    const auto [end, code] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (code != std::errc{} || end != t.data() + t.size() || !(value >= 0)) return std::nullopt;
    return value;
  }

 private:
  const std::vector<std::string_view>* names_;
  std::vector<std::string_view> fields_;
};

template <class = void>
[[nodiscard]] std::vector<std::string_view> cut_at(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(mark);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// The number right after a word, as in "NVLink4" or "NVL72"; empty when there is none.
template <class = void>
[[nodiscard]] std::optional<std::uint32_t> number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    std::uint32_t value = 0;
    const char* first = text.data() + at + word.size();
    const auto [end, code] = std::from_chars(first, text.data() + text.size(), value);
    if (code == std::errc{}) return value;
  }
  return std::nullopt;
}
/// The number right before a word, as in "2 racks".
template <class = void>
[[nodiscard]] std::optional<std::uint32_t> number_before(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t first = at;
  while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data() + first, text.data() + at, value);
  if (code != std::errc{} || end != text.data() + at) return std::nullopt;
  return value;
}
/// The first product in a text, "18x50" in "NVLink5 18x50"; empty when there is none.
template <class = void>
[[nodiscard]] std::optional<double> product_in(std::string_view text) {
  for (std::size_t x = text.find('x'); x != std::string_view::npos; x = text.find('x', x + 1)) {
    std::size_t first = x;
    while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
    std::uint32_t count = 0;
    double rate = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data() + first, text.data() + x, count).ptr != text.data() + x || first == x) continue;
    if (std::from_chars(text.data() + x + 1, end, rate).ec != std::errc{}) continue;
    return count * rate;
  }
  return std::nullopt;
}

/// GPUs of a domain, and how they are joined.
template <class = void>
void read_links(const table_line& l, std::uint32_t nodes, plan::machine_summary& m) {
  using plan::gpu_fabric;
  const std::string_view link = l.text("intra_link");
  const auto gpus_per_node = static_cast<std::uint32_t>(l.number("gpus_per_node").value_or(1));
  m.hosts = nodes;
  m.domains = nodes;
  std::uint32_t domain = gpus_per_node;
  if (link.find("rack domain") != std::string_view::npos && !l.has("nvls_sharp", "MNNVL off")) {
    // How large a domain is: "(72)" beside the link, the number of racks in the notes, or the name "NVL72".
    const auto size =
        number_after(link, "rack domain (") ? number_after(link, "rack domain (") : number_after(l.text("gpu"), "NVL");
    const auto racks = number_before(l.text("fabric_notes"), " rack");
    if (racks && *racks > 0 && *racks <= nodes)
      m.domains = *racks;
    else if (size && *size > 0)
      m.domains = (m.ranks + *size - 1) / *size;
    else
      m.domains = 1;
    domain = std::max(size.value_or(gpus_per_node), gpus_per_node);
  }
  m.domains = std::max(1U, std::min(m.domains, m.ranks));
  m.gpus_in_mesh = domain;
  const double peak = l.number("intra_peak_GBps").value_or(0);
  double rate = peak > 0 ? peak : product_in(link).value_or(0);
  m.xgmi = link.find("xGMI") != std::string_view::npos || link.find("XGMI") != std::string_view::npos;
  if (const auto generation = number_after(link, "NVLink");
      generation || link.find("NVLink") != std::string_view::npos) {
    m.generation = generation.value_or(3);
    if (link.find("no P2P NVLink") != std::string_view::npos) m.generation = 0;
  }
  const auto pcie = number_after(link, "PCIe");
  if (link.find("NVSwitch") != std::string_view::npos)
    m.fabric = gpu_fabric::nvswitch;
  else if (link.find("bridge") != std::string_view::npos && m.generation != 0)
    m.fabric = gpu_fabric::bridge;
  else if (m.xgmi || m.generation != 0)
    m.fabric = gpu_fabric::mesh;
  else if (pcie) {
    m.fabric = link.find("PIX") != std::string_view::npos || link.find("PCIe switch") != std::string_view::npos
                   ? gpu_fabric::pcie_switch
                   : gpu_fabric::pcie_host;
    m.generation = *pcie;
    if (!(rate > 0)) rate = pcie_line_rate(*pcie, 16).value / 1e9;
  }
  if (m.fabric == gpu_fabric::mesh && link.find("per pair") != std::string_view::npos) rate *= domain - 1;
  if (!(rate > 0)) {  // data sheets, as in discover/link_rates.hpp
    constexpr double by_generation[] = {0, 80, 150, 300, 450, 900};
    if (m.xgmi)
      rate = 7 * xgmi_rate("942").line.value / 1e9;
    else if (m.generation < 6)
      rate = by_generation[m.generation];
  }
  m.gpu_links = {rate * 1e9};
  if (m.ranks_per_domain() <= 1) m.fabric = gpu_fabric::none;
  m.multicast = m.fabric == gpu_fabric::nvswitch && m.generation >= 4 && !l.has("nvls_sharp", "NVLS off");
}

/// NICs of a domain that its ranks can use.
template <class = void>
void read_network(const table_line& l, plan::machine_summary& m) {
  using plan::network_kind;
  if (m.domains < 2) return;
  const std::string_view kind = l.text("nic_kind"), notes = l.text("fabric_notes");
  const std::string_view last = notes.substr(notes.rfind(';') == std::string_view::npos ? 0 : notes.rfind(';'));
  const auto in = [](std::string_view text, std::string_view word) {
    return text.find(word) != std::string_view::npos;
  };
  if (in(kind, "IB") || in(kind, "InfiniBand") || in(kind, "HDR") || in(kind, "NDR"))
    m.network = network_kind::infiniband;
  else if (in(kind, "EFA"))
    m.network = network_kind::efa;
  else if (in(kind, "TCPXO") || in(kind, "RoCE") || in(kind, "Slingshot") || in(kind, "Spectrum"))
    m.network = network_kind::roce;
  else if (in(kind, "TCPX"))
    m.network = network_kind::gpu_direct_tcp;
  else if (in(kind, "Ethernet") || in(kind, "TCP") || in(kind, "ENA") || in(kind, "gVNIC"))
    m.network = in(last, "RoCE enabled") ? network_kind::roce : network_kind::host_copies;
  // "no GDRCopy" is another matter: a library for small copies.
  if ((in(notes, "no GDR") && !in(notes, "no GDRCopy")) || in(notes, "GDR off") || in(notes, "host staging"))
    m.network = network_kind::host_copies;
  const auto gpus = static_cast<std::uint32_t>(l.number("gpus_per_node").value_or(1));
  double rate = l.number("nic_gbps").value_or(0);
  if (!(rate > 0))
    rate = in(kind, "XDR")      ? 800
           : in(kind, "NDR")    ? 400
           : in(kind, "HDR100") ? 100
           : in(kind, "HDR")    ? 200
           : in(kind, "EDR")    ? 100
           : in(kind, "FDR")    ? 56
                                : 0;
  const double nics = l.number("nic_count").value_or(gpus);  // a NIC for each GPU where the source does not say
  const double ranks = static_cast<double>(m.ranks) / m.hosts;
  const auto usable = static_cast<std::uint32_t>(std::max(1.0, nics * ranks / std::max(1U, gpus) + 0.5));
  m.nics = usable * std::max(1U, m.hosts / m.domains);
  m.nic_rate = {rate * 1.25e8};
  if (!(rate > 0)) m.network = network_kind::none;
}

/// What the library was told to do, where the line says.
template <class = void>
void read_run(const table_line& l, plan::run_conditions& run) {
  using plan::library_algorithm;
  const std::string_view algorithm = l.text("algo");
  const auto starts = [&](std::string_view word) { return algorithm.substr(0, word.size()) == word; };
  const bool several = l.has("algo", "then") || l.has("algo", "default");
  run.from_framework = l.has("tool", "torch");
  run.own_kernels = l.has("lib", "MSCCL");
  if (several || run.own_kernels) return;
  if (starts("NVLS"))
    run.only = library_algorithm::nvls;
  else if (starts("Ring"))
    run.only = library_algorithm::ring;
  else if (starts("Tree"))
    run.only = library_algorithm::tree;
}

/// "NVLink4, InfiniBand": what a line was measured on, for tables of errors.
template <class = void>
[[nodiscard]] std::string link_group_of(const plan::machine_summary& m) {
  using plan::gpu_fabric;
  using plan::network_kind;
  std::string name;
  switch (m.fabric) {
    case gpu_fabric::none: name = "one GPU a host"; break;
    case gpu_fabric::pcie_host:
    case gpu_fabric::pcie_switch: name = "PCIe" + std::to_string(m.generation); break;
    case gpu_fabric::bridge:
    case gpu_fabric::mesh:
    case gpu_fabric::nvswitch: name = m.xgmi ? "XGMI" : "NVLink" + std::to_string(m.generation); break;
  }
  if (m.domains == 1) return name;
  switch (m.network) {
    case network_kind::infiniband: return name + ", InfiniBand";
    case network_kind::roce: return name + ", RoCE";
    case network_kind::efa: return name + ", EFA";
    case network_kind::gpu_direct_tcp: return name + ", TCP into GPU memory";
    case network_kind::host_copies: return name + ", host copies";
    case network_kind::none: break;
  }
  return name;
}

/// True for the first line of such a table.
template <class = void>
[[nodiscard]] bool looks_like_measurement_table(std::string_view text) {
  return text.substr(0, 10) == "system_id\t" &&
         text.substr(0, text.find('\n')).find("\tbytes\t") != std::string_view::npos;
}

/// Reads the healthy all-reduce, all-gather and reduce-scatter lines of a table.
/// @return `malformed_input` when a column is missing or a line has no ranks
template <class = void>
[[nodiscard]] result<measurement_table> parse_measurement_table(std::string_view text, std::string_view file) {
  measurement_table t;
  std::vector<std::string_view> names;
  std::size_t number = 0;
  for (std::string_view line : cut_at(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    const auto where = [&] { return std::string(file) + ":" + std::to_string(number) + ": "; };
    if (names.empty()) {
      names = cut_at(line, '\t');
      for (const std::string_view needed :
           {"system_id", "gpus_per_node", "intra_link", "nodes", "nranks", "op", "bytes", "time_us", "health"})
        if (!seq::contains(names, needed))
          return fail(errc::malformed_input, where() + "the table has no column '" + std::string(needed) + "'");
      continue;
    }
    const table_line l(names, cut_at(line, '\t'));
    const auto collective = parse_collective(l.text("op"));
    if (!collective || (*collective != collective_kind::all_reduce && *collective != collective_kind::all_gather)) {
      ++t.other_collectives;
      continue;
    }
    if (l.text("health") != "healthy") {
      ++t.not_healthy;
      continue;
    }
    const auto ranks = l.number("nranks"), nodes = l.number("nodes");
    if (!ranks || !nodes || *ranks < 1 || *nodes < 1 || *nodes > *ranks || *ranks > 1e7)
      return fail(errc::malformed_input, where() + "'" + std::string(l.text("nranks")) + "' ranks on '" +
                                             std::string(l.text("nodes")) + "' nodes make no machine");
    const auto size = l.number("bytes"), out = l.number("time_us"), in = l.number("time_ip_us");
    if (!size || !out || !(*out > 0)) {
      ++t.without_time;
      continue;
    }
    plan::observation o;
    o.collective = *collective;
    o.size = {static_cast<std::uint64_t>(*size)};
    // The first sizes of a run often carry its start: the lesser half is the better measurement there.
    const bool half_counts = plan::band_of(o.size) == plan::size_band::to_64KiB;
    o.time = {(half_counts && in && *in > 0 ? std::min(*out, *in) : *out) * 1e-6};
    o.machine.ranks = static_cast<std::uint32_t>(*ranks);
    read_links(l, static_cast<std::uint32_t>(*nodes), o.machine);
    read_network(l, o.machine);
    read_run(l, o.conditions);
    const std::string name(l.text("system_id"));
    if (!plan::predict(o.machine, o.collective, o.size, o.conditions)) {
      ++t.not_described;
      if (!seq::contains(t.not_described_systems, name)) t.not_described_systems.push_back(name);
      continue;
    }
    const auto at = seq::find(t.systems, name);
    o.system = static_cast<std::uint32_t>(at - t.systems.begin());
    if (at == t.systems.end()) t.systems.push_back(name);
    t.link_groups.push_back(link_group_of(o.machine));
    t.rows.push_back(std::move(o));
  }
  if (names.empty()) return fail(errc::malformed_input, std::string(file) + " is empty");
  return t;
}

}}}}  // namespace topocoll::v0::app::detail
