// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the structs of an NCCL topology become nodes and links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/gpu_class.hpp>
#include <topocoll/discover/detail/host.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/pci_links.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/nccl_graph.hpp>
#include <topocoll/topo/address.hpp>

namespace topocoll { inline namespace v0 {

namespace detail {

/// Whether a PCIe rate is written as Linux does: "8 GT/s" before 5.7, "8.0 GT/s PCIe" since.
[[nodiscard]] constexpr bool is_kernel_spelling(std::string_view speed) {
  const std::string_view unit = speed.substr(std::min(speed.find_first_not_of("0123456789."), speed.size()));
  return unit == " GT/s" || unit == " GT/s PCIe";
}

template <class = void>
class nccl_builder {
 public:
  nccl_builder(const read::nccl_topology& topology, const std::string& host, const std::string& file)
      : t_(topology), host_(host), file_(file) {}

  [[nodiscard]] result<topo::fragment> build() {
    out_.source = "nccl-xml " + file_;
    out_.findings = t_.findings;
    if (auto ok = add_cpus(); !ok) return ok.error();
    for (std::size_t i = 0; i < t_.cpus.size(); ++i) {
      for (const read::nccl_pci& p : t_.cpus[i].devices)
        if (auto ok = add_pci(p, i, no_function); !ok) return ok.error();
    }
    seq::sort(addresses_);
    const pci_links links(functions_);
    links.join(out_, tally_);
    for (const auto& [function, nets] : adapters_)
      add_ports(functions_[function].node, *nets, links.told(function) ? links.capacity(function) : bytes_per_second{});
    for (const bare& b : class_only_) add_unknown_port(b.node, links.capacity(b.function));
    for (std::size_t i = 0; i < t_.cpus.size(); ++i)
      for (const read::nccl_nic& n : t_.cpus[i].nics) add_bare_nic(n, i);
    add_pcilinks(links);
    collect_gpu_links();
    add_gpu_links();
    make_keys_unique(out_, lines_, tally_);
    tally_.report(file_, out_.findings);
    return std::move(out_);
  }

 private:
  struct gpu {
    node_id node;
    std::size_t cpu;
    topo::pci_address address;
    const read::nccl_gpu* says;  // null when only a class tells that it is one
  };
  struct bare {
    node_id node;
    std::size_t function;
  };
  struct host_of {
    std::string hash, name;
  };
  struct placed {
    std::size_t host;
    topo::pci_address address;
    std::size_t function;
    friend auto operator<=>(const placed&, const placed&) = default;
    friend bool operator==(const placed&, const placed&) = default;
  };
  /// Cables between two GPUs, a before b, as a and as b tell.
  struct pair_links {
    std::size_t a, b;
    topo::link_kind kind;
    std::uint32_t forth, back, line;
  };
  struct switch_links {
    std::size_t gpu;
    topo::link_kind kind;
    std::uint32_t count;
    std::uint32_t targets = 0;  // switches that are named by their addresses
  };

  [[nodiscard]] std::string line(std::uint32_t n) const { return "line " + std::to_string(n); }
  [[nodiscard]] std::string place(std::uint32_t n) const { return file_ + " line " + std::to_string(n); }
  void note(severity level, std::uint32_t at, std::string what, std::string evidence = {}, std::string next = {}) {
    out_.findings.push_back({level, place(at), std::move(what), std::move(evidence), std::move(next), 1});
  }
  /// Adds a node and remembers where the file tells of it.
  node_id add(topo::node n, std::uint32_t at) {
    lines_.resize(out_.nodes.size());
    lines_.push_back(at);
    return out_.add(std::move(n));
  }
  /// Position of the function with this address on host `h`.
  [[nodiscard]] std::size_t function_at(std::size_t h, const topo::pci_address& address) const {
    const auto it = std::lower_bound(addresses_.begin(), addresses_.end(), placed{h, address, 0});
    return it != addresses_.end() && it->host == h && it->address == address ? it->function : no_function;
  }
  [[nodiscard]] result<void> add_cpus();
  [[nodiscard]] result<void> add_pci(const read::nccl_pci& p, std::size_t cpu, std::size_t parent);
  void add_ports(node_id nic, const std::vector<read::nccl_nic>& nics, bytes_per_second limit);
  void add_port(const std::string& host, std::optional<std::uint32_t> numa, node_id nic, const read::nccl_net& n,
                bytes_per_second limit, const char* limit_name);
  void add_unknown_port(node_id nic, bytes_per_second limit);
  void add_bare_nic(const read::nccl_nic& n, std::size_t cpu);
  void add_pcilinks(const pci_links& figures);
  void collect_gpu_links();
  void add_gpu_links();
  void collect(std::size_t from, const read::nccl_link& l, topo::link_kind kind);
  [[nodiscard]] gpu_link_rate rate_of(const gpu& g, topo::link_kind kind) const {
    if (kind == topo::link_kind::xgmi) return xgmi_rate(g.says ? std::string_view(g.says->gcn) : std::string_view());
    // `sm` of an AMD GPU counts compute units.
    return nvlink_rate(g.says && g.says->gcn.empty() ? g.says->sm : std::nullopt);
  }
  [[nodiscard]] static topo::link gpu_link(topo::link_kind kind, const gpu_link_rate& rate, std::uint32_t count) {
    topo::link l;
    l.kind = kind;
    l.generation = rate.generation;
    l.lanes = count;
    if (rate.known) l.nominal = rate.line * count;
    l.capacity = rate.payload * count;
    l.how = rate.known ? trust::derived : trust::assumed;
    l.reason = std::to_string(count) + " × " + (kind == topo::link_kind::xgmi ? "XGMI" : "NVLink");
    l.reason += rate.known ? ", payload as in NCCL's model" : ", architecture not told, rate of a common one";
    return l;
  }

  const read::nccl_topology& t_;
  std::string host_;
  std::string file_;
  topo::fragment out_;
  tally tally_;
  std::vector<std::uint32_t> lines_;  // of each node
  std::vector<node_id> cpus_;
  std::vector<std::size_t> host_index_;  // of each cpu
  std::vector<host_of> hosts_;
  std::vector<topo::pci_address> above_;  // the functions that contain the one being read
  std::vector<pci_function> functions_;
  std::vector<std::size_t> host_of_function_;
  std::vector<std::pair<std::size_t, const std::vector<read::nccl_nic>*>> adapters_;
  std::vector<bare> class_only_;
  std::vector<std::pair<std::size_t, const std::vector<read::nccl_link>*>> pcilinks_;
  std::vector<gpu> gpus_;
  std::vector<placed> addresses_;             // sorted once all functions are known
  std::vector<std::size_t> gpu_of_function_;  // no_function where it is none
  std::vector<pair_links> pairs_;
  std::vector<switch_links> to_switch_;
  std::vector<switch_links> to_cpu_;  // of GPUs whose NVLinks end in their processor, as on POWER9
};

template <class Deferred>
result<void> nccl_builder<Deferred>::add_cpus() {
  // Every two domains of a host are joined, so the numbers are kept to what machines can have.
  constexpr std::size_t most_domains = 4096;
  constexpr std::size_t most_of_a_host = 128;
  if (t_.cpus.size() > most_domains)
    return fail(errc::unsupported,
                place(t_.cpus[most_domains].line) + ": more than " + std::to_string(most_domains) + " NUMA domains");
  for (const read::nccl_cpu& c : t_.cpus) {
    std::size_t h = 0;
    while (h < hosts_.size() && hosts_[h].hash != c.host_hash) ++h;
    if (h == hosts_.size()) hosts_.push_back({c.host_hash, h == 0 ? host_ : host_ + "#" + std::to_string(h + 1)});
    host_index_.push_back(h);
  }
  if (hosts_.size() > 1)
    note(severity::note, t_.cpus.front().line,
         "the file joins " + std::to_string(hosts_.size()) + " hosts, by their host_hash");

  std::vector<std::vector<std::size_t>> members(hosts_.size());
  for (std::size_t i = 0; i < t_.cpus.size(); ++i) members[host_index_[i]].push_back(i);
  for (const auto& m : members)
    if (m.size() > most_of_a_host)
      return fail(errc::unsupported, place(t_.cpus[m[most_of_a_host]].line) + ": more than " +
                                         std::to_string(most_of_a_host) + " NUMA domains in one host");

  std::vector<std::uint32_t> number(t_.cpus.size());
  for (const auto& m : members) {
    std::vector<std::uint32_t> taken;
    for (const std::size_t i : m)
      if (t_.cpus[i].numaid) taken.push_back(*t_.cpus[i].numaid);
    for (const std::size_t i : m) {
      std::uint32_t n = t_.cpus[i].numaid.value_or(0);
      while (!t_.cpus[i].numaid && std::find(taken.begin(), taken.end(), n) != taken.end()) ++n;
      if (!t_.cpus[i].numaid) taken.push_back(n);
      number[i] = n;
    }
  }
  for (std::size_t i = 0; i < t_.cpus.size(); ++i) {
    const read::nccl_cpu& c = t_.cpus[i];
    const std::string& host = hosts_[host_index_[i]].name;
    topo::node n;
    n.kind = topo::node_kind::cpu;
    n.key = host + "/numa:" + std::to_string(number[i]);
    n.name = "NUMA " + std::to_string(number[i]);
    n.host = host;
    n.index = number[i];
    n.facts = c.facts;
    if (c.numaid) {
      n.numa = number[i];
    } else {
      n.how = trust::assumed;
      n.reason = "NUMA domain not told; numbered " + std::to_string(number[i]) + " here";
      // With one domain there is nothing to confuse it with.
      if (members[host_index_[i]].size() == 1) n.numa = number[i];
      note(severity::note, c.line, "<cpu> tells no numaid; numbered " + std::to_string(number[i]));
    }
    if (c.arch.empty() && c.vendor.empty())
      tally_.add(severity::note,
                 "<cpu> tells neither arch nor vendor; the link between sockets is taken at NCCL's least figure",
                 line(c.line));
    cpus_.push_back(add(std::move(n), c.line));
    add_memory(out_, cpus_.back(), host + "/memory:" + std::to_string(number[i]),
               "memory " + std::to_string(number[i]));
  }
  for (const auto& m : members) {
    bool shared = m.size() > 1;
    for (const std::size_t i : m)
      if (m.size() > 1 && t_.cpus[i].affinity.empty())
        tally_.add(severity::note, "<cpu> tells no affinity mask, so the file does not tell which cores are near",
                   line(t_.cpus[i].line), "bind processes by the NUMA domains that the kernel reports");
    for (const std::size_t i : m)
      shared = shared && !t_.cpus[i].affinity.empty() && t_.cpus[i].affinity == t_.cpus[m[0]].affinity;
    if (shared)
      note(severity::warning, t_.cpus[m[0]].line,
           "all " + std::to_string(m.size()) +
               " <cpu> have the same affinity mask, so the masks do not tell which cores are near",
           "affinity=\"" + t_.cpus[m[0]].affinity + "\"", "bind processes by the NUMA domains that the kernel reports");
    for (std::size_t a = 0; a < m.size(); ++a)
      for (std::size_t b = a + 1; b < m.size(); ++b) {
        const read::nccl_cpu& x = t_.cpus[m[a]];
        const read::nccl_cpu& y = t_.cpus[m[b]];
        join_domains(out_, cpus_[m[a]], {x.arch, x.vendor, x.familyid, x.modelid}, cpus_[m[b]],
                     {y.arch, y.vendor, y.familyid, y.modelid});
      }
  }
  return {};
}

template <class Deferred>
result<void> nccl_builder<Deferred>::add_pci(const read::nccl_pci& p, std::size_t cpu, std::size_t parent) {
  const auto address = topo::pci_address::parse(read::trimmed(p.busid));
  if (!address)
    return fail(errc::malformed_input, place(p.line) + ": busid \"" + p.busid + "\" is not a PCI address",
                "write it as 0000:1b:00.0");
  if (std::find(above_.begin(), above_.end(), *address) != above_.end())
    return fail(errc::malformed_input, place(p.line) + ": busid " + to_string(*address) + " lies below itself");
  const std::string& host = hosts_[host_index_[cpu]].name;

  std::string vendor;
  for (const auto& [name, value] : p.facts)
    if (name == "vendor") vendor = value;
  const bool names_nic = !p.nics.empty();
  const bool stated_nic =
      std::any_of(p.nics.begin(), p.nics.end(), [](const read::nccl_nic& x) { return !x.nets.empty(); });
  const std::uint32_t subclass = p.class_code ? read::pci_subclass(*p.class_code) : 0;
  const bool by_class_gpu = p.class_code && is_gpu_class(*p.class_code, vendor);
  const bool by_class_nic = subclass == read::pci_class_ethernet || subclass == read::pci_class_infiniband;

  topo::node n;
  n.key = host + "/pci:" + to_string(*address);
  n.host = host;
  n.numa = out_.nodes[cpus_[cpu].value].numa;
  n.facts = p.facts;
  const std::string short_name = to_string(*address);
  const bool partitions = p.gpus.size() > 1;
  if (!p.gpus.empty() && !partitions) {
    const read::nccl_gpu& g = p.gpus.front();
    n.kind = topo::node_kind::gpu;
    n.name = "GPU " + (g.dev ? std::to_string(*g.dev) : short_name);
    n.index = g.dev;
    n.global_rank = g.rank;
    for (const auto& fact : g.facts) n.facts.push_back(fact);
  } else if (partitions) {
    n.kind = topo::node_kind::pcie_switch;
    n.name = "GPU package " + short_name;
  } else if (stated_nic || (by_class_nic && !names_nic && p.children.empty())) {
    n.kind = topo::node_kind::nic;
    n.name = "NIC " + short_name;
    for (auto nic = p.nics.rbegin(); nic != p.nics.rend(); ++nic)
      if (!nic->nets.empty() && !nic->nets.front().name.empty()) n.name = nic->nets.front().name;
  } else if (by_class_gpu && !names_nic && p.children.empty()) {
    n.kind = topo::node_kind::gpu;
    n.name = "GPU " + short_name;
  } else if (subclass == read::pci_class_bridge || !p.children.empty()) {
    n.kind = topo::node_kind::pcie_switch;
    n.name = "PCIe switch " + short_name;
  } else {
    n.kind = topo::node_kind::pcie_device;
    n.name = "device " + short_name;
    if (names_nic)
      tally_.add(severity::warning, "<nic> has no <net>, so the device has no port and does not count as an adapter",
                 short_name + " (" + line(p.line) + ")");
    else if (!p.class_code)
      tally_.add(severity::warning,
                 "the file does not tell what the device is: neither a class nor a <gpu> or <nic>; it counts as "
                 "neither GPU nor NIC",
                 short_name, "complete the file, or merge it with what the machine tells");
  }
  seq::sort(n.facts);
  const topo::node_kind kind = n.kind;
  const std::string key = n.key;
  const node_id id = add(std::move(n), p.line);

  pci_function f;
  f.node = id;
  f.above = parent == no_function ? cpus_[cpu] : functions_[parent].node;
  f.parent = parent;
  f.bridge = kind == topo::node_kind::pcie_switch;
  f.gpu = kind == topo::node_kind::gpu || partitions;
  f.nic = kind == topo::node_kind::nic;
  f.who = short_name + " (" + line(p.line) + ")";
  f.best.generation = read::pcie_generation(p.link_speed).value_or(0);
  f.best.lanes = read::pcie_width(p.link_width).value_or(0);
  const std::string_view speed = read::trimmed(p.link_speed);
  if (f.best.generation == 0 && !speed.empty() && speed.substr(0, 7) != "Unknown")
    note(severity::warning, p.line,
         "link_speed=\"" + p.link_speed + "\" of " + short_name + " is no PCIe rate; taken as not told");
  else if (f.best.generation != 0 && !is_kernel_spelling(speed))
    tally_.add(severity::note,
               "the speed \"" + std::string(speed) + "\" is not spelt as any kernel does; its number is believed",
               f.who);
  const std::string_view width = read::trimmed(p.link_width);
  if (f.best.lanes == 0 && !width.empty() && width != "0")
    note(severity::warning, p.line,
         "link_width=\"" + p.link_width + "\" of " + short_name + " is no PCIe width; taken as not told");
  const std::size_t self = functions_.size();
  functions_.push_back(std::move(f));
  host_of_function_.push_back(host_index_[cpu]);
  gpu_of_function_.push_back(no_function);
  addresses_.push_back({host_index_[cpu], *address, self});

  if (stated_nic) adapters_.emplace_back(self, &p.nics);
  if (kind == topo::node_kind::nic && !names_nic) class_only_.push_back({id, self});
  if (!p.pcilinks.empty()) pcilinks_.emplace_back(self, &p.pcilinks);
  if (kind == topo::node_kind::gpu) {
    gpu_of_function_[self] = gpus_.size();
    gpus_.push_back({id, cpu, *address, p.gpus.empty() ? nullptr : &p.gpus.front()});
  }
  if (partitions)
    for (std::size_t i = 0; i < p.gpus.size(); ++i) {
      const read::nccl_gpu& g = p.gpus[i];
      topo::node part;
      part.kind = topo::node_kind::gpu;
      part.key = key + "/gpu:" + std::to_string(i);
      part.name = "GPU " + (g.dev ? std::to_string(*g.dev) : short_name + "/" + std::to_string(i));
      part.host = host;
      part.index = g.dev;
      part.global_rank = g.rank;
      part.numa = out_.nodes[id.value].numa;
      part.facts = g.facts;
      topo::link l;
      l.from = id;
      l.to = add(std::move(part), g.line);
      l.kind = topo::link_kind::internal;
      l.capacity = pcie_payload_rate(5, 16);
      l.how = trust::assumed;
      l.reason = "inside one package; the PCIe link of the package is shared by its " + std::to_string(p.gpus.size()) +
                 " GPUs";
      out_.join(l);
      if (i == 0) gpu_of_function_[self] = gpus_.size();
      gpus_.push_back({l.to, cpu, *address, &g});
    }

  above_.push_back(*address);
  for (const read::nccl_pci& child : p.children)
    if (auto ok = add_pci(child, cpu, self); !ok) return ok.error();
  above_.pop_back();
  return {};
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::nccl_topology& topology, const std::string& host,
                                   const std::string& file) {
  return detail::nccl_builder(topology, host, file).build();
}

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/nccl_links.hpp>
