// SPDX-License-Identifier: Apache-2.0
#pragma once
// How what a machine tells becomes nodes and links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/acs.hpp>
#include <topocoll/discover/detail/gpu_class.hpp>
#include <topocoll/discover/detail/host.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/pci_links.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/sysfs_graph.hpp>
#include <topocoll/topo/address.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

template <class = void>
class sysfs_builder {
 public:
  sysfs_builder(const read::sysfs_machine& machine, const std::string& host, const std::string& source)
      : m_(machine), host_(host) {
    out_.source = source;
    out_.findings = m_.findings;
  }

  [[nodiscard]] topo::fragment build() {
    add_domains();
    order_functions();
    add_functions();
    const pci_links links(functions_);
    const std::size_t first = out_.links.size();
    links.join(out_, tally_);
    for (std::size_t i = 0; i < functions_.size(); ++i) tell_guesses(i, first + 2 * i);
    add_ports(links);
    add_xgmi();
    add_access_control();
    make_keys_unique(out_, {}, tally_);
    tally_.report(out_.source, out_.findings);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t none = no_function;

  /// What is known of one of `m_.functions` while the tree is made.
  struct seen {
    std::optional<topo::pci_address> address;
    std::size_t above = none;  // nearest function above that was read
    bool has_port = false;     // an interface or an RDMA device belongs to it
    bool kept = false;         // becomes a node, or carries one
    read::pcie_port port = read::pcie_port::unknown;
    std::size_t function = none;  // position in functions_; of the switch for its downstream ports
    std::size_t adapter = none;   // for functions 1 to 7 of a card: the function that stands for the card
  };

  [[nodiscard]] static std::uint32_t subclass(const read::sysfs_pci& f) { return read::pci_subclass(f.class_code); }
  [[nodiscard]] static bool is_bridge(const read::sysfs_pci& f) { return subclass(f) == read::pci_class_bridge; }
  /// Wireless adapters are of class 0280 or 0d; they carry no cable.
  [[nodiscard]] static bool is_wireless(const read::sysfs_pci& f) {
    return subclass(f) == 0x0280 || f.class_code >> 16U == 0x0d;
  }
  /// By class, or because it has a port. Bridges and accelerators stay what they are.
  [[nodiscard]] bool is_nic(std::size_t i) const {
    const read::sysfs_pci& f = m_.functions[i];
    if (is_wireless(f) || is_bridge(f)) return false;
    return f.class_code >> 16U == 0x02 || (s_[i].has_port && !is_gpu_class(f.class_code, f.vendor));
  }
  [[nodiscard]] bool is_gpu(std::size_t i) const {
    const read::sysfs_pci& f = m_.functions[i];
    if (!is_gpu_class(f.class_code, f.vendor)) return false;
    // The display inside an Intel processor sits on its root bus and has no PCIe link.
    const bool inside = s_[i].above == none && read::pcie_width(f.width).value_or(0) == 0 &&
                        read::pcie_width(f.max_width).value_or(0) == 0;
    return !(subclass(f) == read::pci_class_vga && f.vendor == "0x8086" && inside);
  }

  void add_domains();
  void order_functions();
  void add_functions();
  void add_function(std::size_t i);
  void tell_ends(std::size_t i, std::size_t port_above, const pci_function& p);
  void add_access_control();
  /// "0x001d"
  [[nodiscard]] static std::string hex_of(std::uint16_t bits) {
    std::string text = "0x0000";
    for (std::size_t digit = 0; digit < 4; ++digit) text[5 - digit] = "0123456789abcdef"[bits >> (4 * digit) & 15U];
    return text;
  }
  void tell_guesses(std::size_t function, std::size_t link);
  void add_ports(const pci_links& links);
  void add_xgmi();
  /// An adapter that shows no PCI function, at the first NUMA domain because nothing tells another.
  [[nodiscard]] node_id add_adapter(const std::string& name);
  node_id add_port(node_id nic, const std::string& key, const std::string& name, topo::link l,
                   std::vector<std::pair<std::string, std::string>> facts);
  [[nodiscard]] std::optional<std::size_t> domain_of(std::size_t i, std::string& reason) const;
  [[nodiscard]] std::size_t nearest_with_cpus(std::size_t domain) const;
  [[nodiscard]] static topo::link unknown_rate(bool told, bytes_per_second pcie, const std::string& why);
  [[nodiscard]] std::size_t position(const std::string& address) const {
    const auto it = std::lower_bound(by_name_.begin(), by_name_.end(), address,
                                     [&](std::size_t i, const std::string& a) { return m_.functions[i].address < a; });
    return it != by_name_.end() && m_.functions[*it].address == address ? *it : none;
  }

  const read::sysfs_machine& m_;
  std::string host_;
  topo::fragment out_;
  tally tally_;
  std::vector<std::optional<node_id>> cpu_of_domain_;  // beside m_.domains; empty for domains of memory alone
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> cpus_of_domain_;  // ranges of processor numbers
  std::vector<node_id> cpus_;
  std::vector<std::size_t> by_name_;
  std::vector<seen> s_;  // beside m_.functions
  std::vector<pci_function> functions_;
  std::vector<std::size_t> placeless_;  // links up from adapters without a PCI function; each has its mirror behind it
  std::vector<std::string> guess_;      // beside functions_: why the NUMA domain is a guess
};

template <class Deferred>
std::size_t sysfs_builder<Deferred>::nearest_with_cpus(std::size_t domain) const {
  std::size_t best = none;
  for (std::size_t d = 0; d < m_.domains.size(); ++d) {
    if (!cpu_of_domain_[d]) continue;
    const auto& far = m_.domains[domain].distances;
    if (best == none || (d < far.size() && best < far.size() && far[d] < far[best])) best = d;
  }
  return best;
}

template <class Deferred>
void sysfs_builder<Deferred>::add_domains() {
  const read::processor_text& p = m_.processor;
  const processor sockets{p.arch, p.vendor, p.family, p.model};
  const auto add_cpu = [&](std::uint32_t number, const std::string& cpus) {
    topo::node n;
    n.kind = topo::node_kind::cpu;
    n.key = host_ + "/numa:" + std::to_string(number);
    n.name = "NUMA " + std::to_string(number);
    n.host = host_;
    n.index = n.numa = number;
    const auto fact = [&](const char* name, const std::string& value) {
      if (!value.empty()) n.facts.emplace_back(name, value);
    };
    fact("arch", p.arch);
    fact("cpus", cpus);
    if (p.family) fact("familyid", std::to_string(*p.family));
    fact("model_name", p.model_name);
    if (p.model) fact("modelid", std::to_string(*p.model));
    fact("vendor", p.vendor);
    return n;
  };
  cpu_of_domain_.resize(m_.domains.size());
  for (const read::sysfs_numa& d : m_.domains) cpus_of_domain_.push_back(read::number_list(d.cpus));
  for (std::size_t d = 0; d < m_.domains.size(); ++d) {
    const read::sysfs_numa& domain = m_.domains[d];
    if (domain.cpus.empty()) continue;
    topo::node n = add_cpu(domain.number, domain.cpus);
    std::string distances;
    for (const std::uint32_t far : domain.distances) distances += (distances.empty() ? "" : " ") + std::to_string(far);
    if (!distances.empty()) n.facts.emplace_back("distances", distances);
    if (domain.memory) n.facts.emplace_back("memory_bytes", std::to_string(domain.memory->value));
    seq::sort(n.facts);
    cpu_of_domain_[d] = out_.add(std::move(n));
    cpus_.push_back(*cpu_of_domain_[d]);
    if (!domain.memory || domain.memory->value > 0)
      add_memory(out_, cpus_.back(), host_ + "/memory:" + std::to_string(domain.number),
                 "memory " + std::to_string(domain.number));
  }
  if (cpus_.empty()) {
    topo::node n = add_cpu(0, m_.online);
    n.how = trust::assumed;
    n.reason = "the kernel shows no NUMA domains; the machine is taken as one";
    cpus_.push_back(out_.add(std::move(n)));
    add_memory(out_, cpus_.back(), host_ + "/memory:0", "memory 0");
  }
  // The kernel can have 1024 domains; a mesh of all is only made where machines are that small.
  if (cpus_.size() <= 128)
    for (std::size_t a = 0; a < cpus_.size(); ++a)
      for (std::size_t b = a + 1; b < cpus_.size(); ++b) join_domains(out_, cpus_[a], sockets, cpus_[b], sockets);
  else
    for (std::size_t a = 0; a + 1 < cpus_.size(); ++a) join_domains(out_, cpus_[a], sockets, cpus_[a + 1], sockets);

  for (std::size_t d = 0; d < m_.domains.size(); ++d) {
    const read::sysfs_numa& domain = m_.domains[d];
    if (cpu_of_domain_[d]) continue;
    const std::string name = "NUMA domain " + std::to_string(domain.number);
    if (domain.of_gpu) {
      tally_.add(severity::note, "a NUMA domain without processors is the memory of a GPU; nothing is placed on it",
                 name);
      continue;
    }
    const std::size_t near = nearest_with_cpus(d);
    if (near == none || (domain.memory && domain.memory->value == 0)) {
      tally_.add(severity::note, "a NUMA domain has neither processors nor memory; it is passed over", name);
      continue;
    }
    add_memory(out_, *cpu_of_domain_[near], host_ + "/memory:" + std::to_string(domain.number),
               "memory " + std::to_string(domain.number));
    for (topo::node& n : out_.nodes)
      if (n.key == host_ + "/memory:" + std::to_string(domain.number)) n.numa = domain.number;
    tally_.add(severity::note,
               "a NUMA domain has memory but no processors; its memory is joined to the nearest domain with processors",
               name);
  }
}

template <class Deferred>
void sysfs_builder<Deferred>::order_functions() {
  const auto& all = m_.functions;
  s_.resize(all.size());
  by_name_.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) by_name_[i] = i;
  seq::sort(by_name_, [&](std::size_t a, std::size_t b) { return all[a].address < all[b].address; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    s_[i].address = topo::pci_address::parse(all[i].address);
    s_[i].port = all[i].port;
    for (std::size_t k = all[i].above.size(); k-- > 0 && s_[i].above == none;) {
      const std::size_t up = position(all[i].above[k]);
      if (up != none && up != i && is_bridge(all[up])) s_[i].above = up;
    }
  }
  // What is written above a function comes from its path, so no circle is possible in a real tree; a recording may lie.
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t steps = 0;
    for (std::size_t up = s_[i].above; up != none; up = s_[up].above)
      if (++steps > all[i].above.size()) {
        s_[i].above = none;
        break;
      }
  }
  for (const read::sysfs_net& n : m_.interfaces)
    if (const std::size_t i = position(n.pci); i != none) s_[i].has_port = true;
  for (const read::sysfs_rdma& r : m_.rdma)
    if (const std::size_t i = position(r.pci); i != none) s_[i].has_port = true;
  std::size_t card = none;  // the last network card seen
  for (const std::size_t i : by_name_) {
    const read::sysfs_pci& f = all[i];
    if (!s_[i].address) {
      tally_.add(severity::note, "the name of a PCI function is no PCI address; it is passed over", f.address);
      continue;
    }
    if (is_bridge(f) || is_wireless(f)) continue;
    if (const std::size_t physical = f.physical.empty() ? none : position(f.physical); physical != none) {
      tally_.add(severity::note, "virtual functions are counted with their physical function", f.address);
      continue;
    }
    if (is_nic(i)) {
      // Functions of one card follow each other in this order.
      topo::pci_address slot = card != none ? *s_[card].address : topo::pci_address{};
      slot.function = s_[i].address->function;
      if (card != none && slot == *s_[i].address) {
        s_[i].adapter = card;
        continue;
      }
      card = i;
    }
    for (std::size_t up = i; up != none && !s_[up].kept; up = s_[up].above) s_[up].kept = true;
  }
}

/// Functions above come first, so that each finds what it hangs on.
template <class Deferred>
void sysfs_builder<Deferred>::add_functions() {
  for (const std::size_t i : by_name_) {
    std::vector<std::size_t> todo;
    for (std::size_t up = i; up != none && s_[up].kept && s_[up].function == none; up = s_[up].above)
      todo.push_back(up);
    while (!todo.empty()) {
      add_function(todo.back());
      todo.pop_back();
    }
  }
}

template <class Deferred>
std::optional<std::size_t> sysfs_builder<Deferred>::domain_of(std::size_t i, std::string& reason) const {
  const auto find = [&](std::uint32_t number) {
    const auto it = std::lower_bound(m_.domains.begin(), m_.domains.end(), number,
                                     [](const read::sysfs_numa& d, std::uint32_t n) { return d.number < n; });
    return it != m_.domains.end() && it->number == number ? static_cast<std::size_t>(it - m_.domains.begin()) : none;
  };
  for (std::size_t at = i; at != none; at = s_[at].above)
    if (const auto numa = m_.functions[at].numa)
      if (const std::size_t d = find(*numa); d != none) return d;
  // The processors that the kernel calls near name a domain when they all lie in one.
  for (std::size_t at = i; at != none; at = s_[at].above) {
    const auto& near = m_.functions[at].local_cpus;
    if (near.empty()) continue;
    std::size_t only = none;
    std::size_t touched = 0;
    for (std::size_t d = 0; d < m_.domains.size(); ++d)
      for (const auto& own : cpus_of_domain_[d])
        if (std::any_of(near.begin(), near.end(),
                        [&](const auto& r) { return r.first <= own.second && own.first <= r.second; })) {
          touched += only != d ? 1U : 0U;
          only = d;
        }
    if (touched == 1 && cpus_.size() > 1) {
      reason = "NUMA domain not told; derived from the processors that the kernel calls near";
      return only;
    }
    break;
  }
  return std::nullopt;
}

template <class Deferred>
void sysfs_builder<Deferred>::add_function(std::size_t i) {
  const read::sysfs_pci& f = m_.functions[i];
  const topo::pci_address& address = *s_[i].address;
  const std::size_t up = s_[i].above;
  // Which end of a switch a bridge is, where the capability cannot be read: below the processor stands a root port, below
  // a root or downstream port the upstream end of a switch, below that its downstream ports.
  read::pcie_port& port = s_[i].port;
  if (is_bridge(f) && (port == read::pcie_port::unknown || port == read::pcie_port::endpoint)) {
    if (up == none)
      port = read::pcie_port::root;
    else
      port = s_[up].port == read::pcie_port::upstream ? read::pcie_port::downstream : read::pcie_port::upstream;
  }
  const bool on_root = up != none && s_[up].port == read::pcie_port::root && s_[up].function == none;
  const std::size_t parent = up == none || on_root ? none : s_[up].function;
  if (is_bridge(f) && up == none && port == read::pcie_port::root)
    return;  // the cable below it is the link; it is no node
  if (is_bridge(f) && port == read::pcie_port::downstream && parent != none) {
    s_[i].function = parent;  // part of the switch
    return;
  }

  std::string reason;
  auto domain = domain_of(i, reason);
  std::optional<std::uint32_t> numa;
  if (domain) numa = m_.domains[*domain].number;
  if (domain && !cpu_of_domain_[*domain]) {
    domain = nearest_with_cpus(*domain);
    if (*domain == none) domain.reset();
  }
  std::string guess;
  if (!domain && cpus_.size() == 1) {
    numa = out_.nodes[cpus_[0].value].numa;
    reason = "NUMA domain not told; taken as the only one";
  } else if (!domain) {
    guess = "NUMA domain not told; attached to " + out_.nodes[cpus_[0].value].name + " so that it has a path";
  }

  topo::node n;
  n.key = host_ + "/pci:" + to_string(address);
  n.host = host_;
  n.numa = numa;
  n.how = reason.empty() ? trust::reported : trust::derived;
  n.reason = reason;
  std::string code = "0x000000";
  for (std::size_t digit = 0; digit < 6; ++digit)
    code[7 - digit] = "0123456789abcdef"[f.class_code >> (4 * digit) & 15U];
  n.facts.emplace_back("class", code);
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty()) n.facts.emplace_back(name, value);
  };
  fact("device", f.device);
  if (on_root) fact("root_port", m_.functions[up].address);
  fact("subsystem_device", f.subsystem_device);
  fact("subsystem_vendor", f.subsystem_vendor);
  fact("vendor", f.vendor);
  const std::string name = to_string(address);
  if (is_bridge(f)) {
    n.kind = topo::node_kind::pcie_switch;
    n.name = "PCIe switch " + name;
  } else if (is_gpu(i)) {
    n.kind = topo::node_kind::gpu;
    n.name = "GPU " + name;
  } else if (is_nic(i)) {
    n.kind = topo::node_kind::nic;
    n.name = "NIC " + name;
  } else {
    n.kind = topo::node_kind::pcie_device;
    n.name = (f.class_code >> 8U == 0x0108  ? "NVMe "
              : f.class_code >> 16U == 0x01 ? "storage "
              : f.class_code >> 16U == 0x03 ? "display "
                                            : "device ") +
             name;
    if (subclass(f) == read::pci_class_other_bridge && f.vendor == "0x10de") {
      n.name = "NVSwitch " + name;
      fact("role", "nvswitch");
    }
  }
  if (!guess.empty())
    tally_.add(severity::warning,
               "neither the device nor a bridge above tells its NUMA domain; it is attached to the first one so that "
               "it has a path",
               name, "ask the host, or measure");
  if (!reason.empty() && cpus_.size() == 1)
    tally_.add(severity::note, "the NUMA domain is not told (-1); taken as the only one", name);
  seq::sort(n.facts);

  pci_function p;
  p.bridge = n.kind == topo::node_kind::pcie_switch;
  p.gpu = n.kind == topo::node_kind::gpu;
  p.nic = n.kind == topo::node_kind::nic;
  p.who = name;
  p.parent = parent;
  p.node = out_.add(std::move(n));
  p.above = parent != none ? functions_[parent].node : domain ? *cpu_of_domain_[*domain] : cpus_[0];
  // The port above tells about the same cable: the best of a link is the lesser of what its two ends can.
  const bool port_above = up != none && is_bridge(m_.functions[up]) && s_[up].port != read::pcie_port::upstream &&
                          s_[up].port != read::pcie_port::to_pci;
  const auto lesser = [](std::uint32_t a, std::uint32_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); };
  const auto generation = [](const std::string& text) { return read::pcie_generation(text).value_or(0); };
  const auto lanes = [](const std::string& text) { return read::pcie_width(text).value_or(0); };
  p.best = {generation(f.max_speed), lanes(f.max_width)};
  p.now = {generation(f.speed), lanes(f.width)};
  if (port_above) {
    const read::sysfs_pci& above = m_.functions[up];
    const pcie_figure best{generation(above.max_speed), lanes(above.max_width)};
    const pcie_figure now{generation(above.speed), lanes(above.width)};
    // Both ends of a real cable train to the same speed. An emulated port says 2.5 GT/s x1 whatever stands below it.
    const bool disagrees = (now.generation != 0 && p.now.generation != 0 && now.generation != p.now.generation) ||
                           (now.lanes != 0 && p.now.lanes != 0 && now.lanes != p.now.lanes);
    const bool emulated =
        (p.gpu || p.nic) && best.generation <= 1 && best.lanes <= 1 && now.generation <= 1 && now.lanes <= 1;
    if (disagrees && !emulated)
      tally_.add(severity::note, "the two ends of a PCIe link tell different speeds; the device is believed", name);
    if (!disagrees && !emulated) {
      p.best = {lesser(p.best.generation, best.generation), lesser(p.best.lanes, best.lanes)};
      if (p.now.generation == 0) p.now.generation = now.generation;
      if (p.now.lanes == 0) p.now.lanes = now.lanes;
    }
  }
  p.emulated = m_.processor.guest && p.best.generation == 1 && p.best.lanes == 1 && p.now.generation <= 1 &&
               p.now.lanes <= 1 && !p.bridge;
  tell_ends(i, port_above ? up : none, p);
  s_[i].function = functions_.size();
  functions_.push_back(std::move(p));
  guess_.push_back(std::move(guess));
}

/// What each end of the cable can do by itself, as facts of the device.
template <class Deferred>
void sysfs_builder<Deferred>::tell_ends(std::size_t i, std::size_t port_above, const pci_function& p) {
  const auto figure = [](const std::string& speed, const std::string& width) {
    return pcie_figure{read::pcie_generation(speed).value_or(0), read::pcie_width(width).value_or(0)};
  };
  const read::sysfs_pci& f = m_.functions[i];
  const pcie_figure own = figure(f.max_speed, f.max_width);
  auto& facts = out_.nodes[p.node.value].facts;
  if (!own.none()) facts.emplace_back("pcie_max", to_text(own));
  if (port_above != none) {
    const read::sysfs_pci& above = m_.functions[port_above];
    const pcie_figure port = figure(above.max_speed, above.max_width);
    if (!port.none()) facts.emplace_back("port_pcie_max", to_text(port));
    if (above.acs.control && s_[port_above].function == none)
      facts.emplace_back("root_port_acs", hex_of(*above.acs.control));
    if (own.whole() && port.whole() && (port.generation > own.generation || port.lanes > own.lanes))
      tally_.add(severity::note, "the PCIe port above can do more than the device in it",
                 p.who + " " + to_text(own) + " of " + to_text(port));
  }
  seq::sort(facts);
}

/// Access control of the bridges: a fact of each, and a finding when it turns peer traffic of GPUs aside.
template <class Deferred>
void sysfs_builder<Deferred>::add_access_control() {
  std::vector<acs_function> functions(m_.functions.size());
  bool any_gpu = false;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const read::sysfs_pci& f = m_.functions[i];
    functions[i] = {f.address, s_[i].above, is_bridge(f), s_[i].address && is_gpu(i), f.acs};
    any_gpu = any_gpu || functions[i].gpu;
    if (!f.acs.control || s_[i].function == none) continue;
    auto& facts = out_.nodes[functions_[s_[i].function].node.value].facts;
    const auto known = seq::find_by(facts, "acs", &std::pair<std::string, std::string>::first);
    const std::string told = f.address + "=" + hex_of(*f.acs.control);
    if (known != facts.end())
      known->second += ", " + told;
    else
      facts.emplace_back("acs", told);
    seq::sort(facts);
  }
  if (any_gpu)
    tell_acs(acs_report_of(functions, m_.processor.guest), out_.source,
             m_.processor.guest ? "its processor names a hypervisor" : "", out_.findings);
}

template <class Deferred>
void sysfs_builder<Deferred>::tell_guesses(std::size_t function, std::size_t link) {
  if (guess_[function].empty() || functions_[function].parent != none) return;
  for (const std::size_t side : {link, link + 1}) {
    topo::link& l = out_.links[side];
    l.how = trust::assumed;
    l.reason += (l.reason.empty() ? "" : "; ") + guess_[function];
  }
}

}  // namespace detail

template <class>
topo::fragment fragment_of(const read::sysfs_machine& machine, const std::string& host, const std::string& source) {
  return detail::sysfs_builder(machine, host, source).build();
}

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/sysfs_ports.hpp>
