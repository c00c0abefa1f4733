// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the objects of hwloc become nodes and links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/cable_rates.hpp>
#include <topocoll/discover/detail/gpu_class.hpp>
#include <topocoll/discover/detail/host.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/hwloc_graph.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>
#include <topocoll/topo/address.hpp>

namespace topocoll { inline namespace v0 {

namespace detail {

template <class = void>
class hwloc_builder {
 public:
  hwloc_builder(const read::hwloc_topology& topology, const std::string& host, const std::string& file)
      : t_(topology), host_(topology.host_name.empty() ? host : topology.host_name), file_(file) {}

  [[nodiscard]] result<topo::fragment> build() {
    out_.source = "hwloc " + file_;
    out_.findings = t_.findings;
    add_domains();
    if (auto ok = sort_functions(); !ok) return ok.error();
    for (std::size_t i = 0; i < t_.functions.size(); ++i)
      if (s_[i].kept) add_function(i);
    const cable_rates rates(cables_);
    const std::size_t first = out_.links.size();
    rates.join(out_, tally_);
    for (const auto& [cable, guess] : guesses_)
      for (std::size_t side = first + 2 * cable; side < first + 2 * cable + 2; ++side) {
        out_.links[side].how = trust::assumed;
        out_.links[side].reason += "; " + guess;
      }
    add_ports(rates);
    if (t_.functions.empty() && t_.os_devices.empty())
      out_.findings.push_back({severity::note,
                               file_,
                               "hwloc tells no I/O devices here, so neither GPUs nor adapters",
                               {},
                               "write the file with I/O devices: lstopo without --no-io",
                               1});
    add_gpu_links();
    for (topo::node& n : out_.nodes) seq::sort(n.facts);
    lines_.resize(out_.nodes.size());
    make_keys_unique(out_, lines_, tally_);
    tally_.report(file_, out_.findings);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t none = read::hwloc_none;
  enum class port_end : std::uint8_t { endpoint, root, upstream, downstream };

  /// What is known of one of `t_.functions` while the tree is made.
  struct seen {
    topo::pci_address address;
    std::vector<std::size_t> names;  // positions in t_.os_devices
    bool gpu = false, nic = false, kept = false;
    std::size_t card = none;  // of functions of a network card that another one stands for: that one
    port_end port = port_end::endpoint;
    std::size_t cable = none;  // position in cables_; of the switch for its downstream ports
  };
  struct domain {
    bool own_processors = false;
    std::size_t near = none;  // for those without: a domain with processors
    node_id node;
  };
  /// A PCI function by the number that matrices use for it or for an OS device of it.
  struct named {
    std::uint64_t index;
    std::size_t function;
  };
  [[nodiscard]] static bool before(const named& a, const named& b) { return a.index < b.index; }
  /// Links between two functions by a matrix, a before b.
  struct gpu_pair {
    std::size_t a, b;
    double forth, back;
    topo::link_kind kind;
  };

  [[nodiscard]] std::string place(std::uint32_t line) const { return file_ + " line " + std::to_string(line); }
  void note(severity level, std::uint32_t line, std::string what, std::string evidence = {}, std::string next = {}) {
    out_.findings.push_back({level, place(line), std::move(what), std::move(evidence), std::move(next), 1});
  }
  node_id add(topo::node n, std::uint32_t line) {
    lines_.resize(out_.nodes.size());
    lines_.push_back(line);
    return out_.add(std::move(n));
  }
  [[nodiscard]] static std::uint32_t subclass(const read::hwloc_pci& f) {
    return f.class_code ? read::pci_subclass(*f.class_code) : 0;
  }
  /// Wireless adapters are of class 0280 or 0d; they carry no cable.
  [[nodiscard]] static bool is_wireless(const read::hwloc_pci& f) {
    return subclass(f) == 0x0280 || subclass(f) >> 8U == 0x0d;
  }
  [[nodiscard]] static bool is_nvswitch(const read::hwloc_pci& f) {
    return f.subtype == "NVSwitch" || (subclass(f) == read::pci_class_other_bridge && f.vendor == "0x10de");
  }
  static void fact(topo::node& n, const char* name, std::string value) {
    if (!value.empty()) n.facts.emplace_back(name, std::move(value));
  }
  [[nodiscard]] static std::string info_of(const read::hwloc_infos& infos, std::string_view name) {
    const std::string* value = read::find_info(infos, name);
    return value ? std::string(read::trimmed(*value)) : std::string();
  }
  [[nodiscard]] static bool overlap(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
    for (std::size_t w = 0; w < a.size() && w < b.size(); ++w)
      if ((a[w] & b[w]) != 0) return true;
    return false;
  }
  [[nodiscard]] static std::string list_of(const std::vector<std::uint32_t>& words);

  void add_domains();
  void find_owners();
  [[nodiscard]] std::string memory_of(std::size_t d) const;
  void add_distances();
  [[nodiscard]] result<void> sort_functions();
  [[nodiscard]] bool is_gpu(std::size_t i) const;
  [[nodiscard]] std::size_t domain_of(std::size_t i, bool& told) const;
  void add_function(std::size_t i);
  void describe_gpu(std::size_t i, topo::node& n);
  void add_ports(const cable_rates<>& rates);
  void add_rdma_ports(std::size_t card, const std::vector<std::size_t>& devices, const cable_rates<>& rates);
  void add_interface(std::size_t card, const read::hwloc_os_device& d, const cable_rates<>& rates);
  void add_loose_adapter(const read::hwloc_os_device& d);
  void add_port(std::size_t card, topo::node port, topo::link l, std::uint32_t line);
  [[nodiscard]] topo::link port_link(std::size_t card, const cable_rates<>& rates, const std::string& state,
                                     const std::string& label);
  void add_gpu_links();
  void collect(const read::hwloc_matrix& m, topo::link_kind kind);
  void collect_peers();
  void add_pair(const gpu_pair& p);
  [[nodiscard]] static topo::link gpu_link(topo::link_kind kind, double megabytes);

  const read::hwloc_topology& t_;
  std::string host_;
  std::string file_;
  topo::fragment out_;
  tally tally_;
  std::vector<std::uint32_t> lines_;                              // of each node
  std::vector<domain> domains_;                                   // beside t_.numas
  std::vector<std::pair<std::uint32_t, std::size_t>> by_number_;  // NUMA numbers, sorted, and their positions
  std::vector<node_id> cpus_;                                     // with processors
  std::vector<seen> s_;                                           // beside t_.functions
  std::vector<pcie_cable> cables_;
  std::vector<std::pair<std::size_t, std::string>> guesses_;  // cables whose NUMA domain is a guess, and why
  std::vector<named> devices_, indexed_;                      // sorted
  std::vector<gpu_pair> pairs_;
};

/// Class alone does not tell a GPU from the display of a board controller.
template <class Deferred>
bool hwloc_builder<Deferred>::is_gpu(std::size_t i) const {
  const read::hwloc_pci& f = t_.functions[i];
  if (f.bridge || !f.class_code || !is_gpu_class(*f.class_code, f.vendor)) return false;
  bool computes = false, renders = false, displays = false;
  for (const std::size_t n : s_[i].names) {
    const read::hwloc_os_device& d = t_.os_devices[n];
    computes = computes || (d.kinds & read::hwloc_coprocessor) != 0 || d.name.rfind("nvml", 0) == 0 ||
               d.name.rfind("rsmi", 0) == 0;
    renders = renders || d.name.rfind("renderD", 0) == 0;
    displays = displays || d.name.rfind("card", 0) == 0 || d.name.rfind("controlD", 0) == 0;
  }
  if (computes || renders) return true;
  const bool on_root_bus = f.parent == none && !f.link;
  if (f.vendor == "0x8086" && on_root_bus) return false;  // inside the processor
  if (subclass(f) != read::pci_class_vga) return true;
  // A PCIe port has one device below it, number 0 (PCI Express Base Specification, 7.3.1): others are on a conventional bus.
  const bool conventional = f.parent != none && s_[i].address.device != 0;
  return !conventional && !displays;
}

template <class Deferred>
result<void> hwloc_builder<Deferred>::sort_functions() {
  const auto& all = t_.functions;
  s_.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto address = topo::pci_address::parse(read::trimmed(all[i].address));
    if (!address)
      return fail(errc::malformed_input,
                  place(all[i].line) + ": pci_busid \"" + all[i].address + "\" is not a PCI address",
                  "hwloc writes it as 0000:1b:00.0");
    s_[i].address = *address;
  }
  for (std::size_t n = 0; n < t_.os_devices.size(); ++n)
    if (const std::size_t f = t_.os_devices[n].function; f != none) s_[f].names.push_back(n);

  std::vector<std::size_t> nics;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const read::hwloc_pci& f = all[i];
    if (f.bridge || is_wireless(f)) continue;
    const bool has_port = seq::any_of(s_[i].names, [&](std::size_t n) {
      return (t_.os_devices[n].kinds & (read::hwloc_network | read::hwloc_openfabrics)) != 0;
    });
    s_[i].gpu = is_gpu(i);
    const bool gpu_class = f.class_code && is_gpu_class(*f.class_code, f.vendor);
    s_[i].nic = subclass(f) >> 8U == 0x02 || (has_port && !gpu_class);
    if (s_[i].nic && s_[i].names.empty() &&
        info_of(f.infos, "PCIDevice").find("Virtual Function") != std::string::npos) {
      tally_.add(severity::note, "virtual functions are counted with their physical function",
                 to_string(s_[i].address));
      s_[i].nic = false;
      continue;
    }
    if (s_[i].nic) nics.push_back(i);
    s_[i].kept = true;
  }
  seq::sort(nics, [&](std::size_t a, std::size_t b) {
    return s_[a].address != s_[b].address ? s_[a].address < s_[b].address : a < b;
  });
  for (std::size_t n = 1; n < nics.size(); ++n) {
    const std::size_t before = s_[nics[n - 1]].card != none ? s_[nics[n - 1]].card : nics[n - 1];
    topo::pci_address slot = s_[before].address;
    slot.function = s_[nics[n]].address.function;
    // The same address twice is no second function: both stay, and are told.
    if (slot != s_[nics[n]].address || s_[before].address == slot) continue;
    s_[nics[n]].card = before;
    s_[nics[n]].kept = false;
    if (s_[nics[n]].names.empty())
      tally_.add(severity::note, "functions of an adapter without an interface of their own are counted with its first",
                 to_string(s_[nics[n]].address));
  }
  for (std::size_t i = all.size(); i-- > 0;)
    if (s_[i].kept && all[i].parent != none) s_[all[i].parent].kept = true;
  return {};
}

/// Position of the domain that a function is in. `told` is whether anybody says so.
template <class Deferred>
std::size_t hwloc_builder<Deferred>::domain_of(std::size_t i, bool& told) const {
  std::size_t first = none;
  std::size_t with_processors = 0;
  for (const std::uint32_t number : t_.functions[i].near) {
    const auto at =
        std::lower_bound(by_number_.begin(), by_number_.end(), std::pair<std::uint32_t, std::size_t>(number, 0));
    if (at == by_number_.end() || at->first != number) continue;
    const std::size_t d = domains_[at->second].own_processors ? at->second : domains_[at->second].near;
    if (d == first) continue;
    if (first == none) first = d;
    ++with_processors;
  }
  told = with_processors == 1;
  return first;
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::hwloc_topology& topology, const discover_options& options,
                                   const std::string& file) {
  return detail::hwloc_builder(topology, options.host, file).build();
}

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/hwloc_devices.hpp>
#include <topocoll/discover/detail/hwloc_domains.hpp>
#include <topocoll/discover/detail/hwloc_links.hpp>
#include <topocoll/discover/detail/hwloc_ports.hpp>
