// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the nodes and links of a host become the elements of an NCCL topology file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/address.hpp>
#include <topocoll/topo/detail/nccl_xml_element.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/nccl_xml_text.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class = void>
class nccl_writer {
 public:
  nccl_writer(const graph& g, const nccl_xml_options& options) : g_(g), o_(options) {}

  [[nodiscard]] result<nccl_xml_document> write() {
    if (auto ok = choose_hosts(); !ok) return ok.error();
    if (auto ok = lay_tree(); !ok) return ok.error();
    nccl_element system{"system", {}, {}};
    for (const node_id cpu : cpus_) {
      auto e = cpu_element(cpu);
      if (!e) return e.error();
      system.children.push_back(std::move(*e));
    }
    put(system, "version", std::to_string(o_.version.value_or(is_amd_ ? 2 : 1)));
    if (const std::size_t all = count_elements(system); all > o_.most_elements || has_crowd(system)) {
      const std::size_t dropped = trim(system);
      if (dropped > 0)
        note(severity::note,
             "what leads to no GPU and no adapter is left out to stay within NCCL's limits, as NCCL does itself",
             std::to_string(dropped) + " of " + std::to_string(all) + " elements");
      if (all - dropped > o_.most_elements)
        return fail(errc::unsupported,
                    "the file would have " + std::to_string(all - dropped) + " elements; NCCL reads " +
                        std::to_string(o_.most_elements),
                    hosts_.size() > 1 ? "write one host, or allow more elements for programs that take them"
                                      : "allow more elements for programs that take them");
    }
    nccl_xml_document out;
    if (auto ok = write_element(system, 0, out.text); !ok) return ok.error();
    out.findings = std::move(findings_);
    return out;
  }

 private:
  using facts = std::vector<std::pair<std::string, std::string>>;
  static constexpr std::uint32_t none = UINT32_MAX;

  /// What is noted about several devices is one finding with their names.
  void note(severity level, const std::string& what, const std::string& who, const std::string& next = {}) {
    constexpr std::size_t long_enough = 160;
    for (finding& f : findings_)
      if (f.what == what) {
        if (f.evidence.size() < long_enough)
          f.evidence += ", " + who;
        else if (f.evidence.substr(f.evidence.size() - 3) != "…")
          f.evidence += ", …";
        return;
      }
    findings_.push_back({level, hosts_.empty() ? std::string() : hosts_.front(), what, who, next, 1});
  }
  [[nodiscard]] std::string name_of(node_id v) const { return label_of(g_, v, hosts_.size() > 1); }
  [[nodiscard]] static const std::string* fact(const node& n, std::string_view name) {
    for (const auto& f : n.facts)
      if (f.first == name) return &f.second;
    return nullptr;
  }
  [[nodiscard]] bool is_here(node_id v) const { return here_[v.value]; }

  [[nodiscard]] result<void> choose_hosts();

  /// What a link between PCIe switches beside the tree says; written as `<pcilink>`, see discover/detail/nccl_links.hpp.
  [[nodiscard]] static bool is_further(const link& l) {
    return l.reason.rfind("a further link between PCIe switches", 0) == 0;
  }

  /// Finds what stands above every device: breadth first from the NUMA domains, over PCIe, then over what is left.
  [[nodiscard]] result<void> lay_tree();
  /// A GPU or adapter that no link joins to a NUMA domain goes below the domain that it names.
  [[nodiscard]] result<void> adopt(node_id v);

  [[nodiscard]] static bool has_text(const node& n, std::string_view name) {
    const std::string* value = fact(n, name);
    return value != nullptr && !value->empty();
  }
  /// A GPU that shares its PCI function with others: "…/pci:0000:03:00.0/gpu:1".
  [[nodiscard]] bool is_partition(node_id v) const {
    return seq::any_of(g_.out_links(v), [&](link_id e) {
      return g_.at(e).kind == link_kind::internal && g_.at(g_.head(e)).kind == node_kind::pcie_switch;
    });
  }
  /// Whether rows of other GPUs can lead to this one: they name a PCI function, which stands for the first of its GPUs.
  [[nodiscard]] bool is_nameable(node_id v) const {
    if (g_.at(v).key.find('#', g_.at(v).host.size()) != std::string::npos)
      return false;  // a second one of this address
    for (const link_id e : g_.out_links(v))
      if (g_.at(e).kind == link_kind::internal && g_.at(g_.head(e)).kind == node_kind::pcie_switch)
        return partitions_of(g_.head(e)).front() == v;
    return true;
  }
  [[nodiscard]] std::vector<node_id> partitions_of(node_id v) const {
    std::vector<node_id> parts;
    for (const link_id e : g_.out_links(v))
      if (g_.at(e).kind == link_kind::internal && g_.at(g_.head(e)).kind == node_kind::gpu) parts.push_back(g_.head(e));
    seq::sort(parts);
    return parts;
  }
  /// The PCI address in a node's key; empty when there is none.
  [[nodiscard]] std::string address_of(node_id v) const {
    std::string_view text = pci_part(g_.at(v).key);
    text = text.substr(0, text.find_first_of("#/"));
    const auto address = pci_address::parse(text);
    return address ? to_string(*address) : std::string();
  }

  [[nodiscard]] static std::string name_of_node(const node& n) { return n.name.empty() ? n.key : n.name; }
  /// NCCL reads these by strtol, for which a word is 0.
  [[nodiscard]] static bool is_number_where_needed(const std::pair<std::string, std::string>& fact) {
    for (const std::string_view name : {"familyid", "modelid", "sm", "gdr", "maxconn", "coll"})
      if (fact.first == name) return plain_number(fact.second).has_value();
    return true;
  }
  /// Facts that are told otherwise, or mean something else to NCCL.
  static void mark(const node& n, std::vector<bool>& used, std::initializer_list<std::string_view> names) {
    for (std::size_t i = 0; i < n.facts.size(); ++i)
      for (const std::string_view name : names)
        if (n.facts[i].first == name) used[i] = true;
  }
  /// Appends the facts that are named, in this order, then what is left of all if wanted. `used` tells which are gone;
  /// what does not fit stays unless this is the last element that could take it.
  void add_facts(nccl_element& e, const node& n, std::initializer_list<std::string_view> first, bool rest,
                 std::vector<bool>& used, bool last = true) {
    const auto has = [&](std::string_view name) {
      return seq::any_of(e.attributes, [&](const auto& a) { return a.first == name; });
    };
    for (const std::string_view name : first)
      for (std::size_t i = 0; i < n.facts.size(); ++i)
        if (!used[i] && n.facts[i].first == name && !has(name)) {
          used[i] = true;
          if (!is_number_where_needed(n.facts[i]))
            note(severity::warning, "what NCCL takes for a number is none; it is left out",
                 name_of_node(n) + ' ' + n.facts[i].first + "=\"" + n.facts[i].second + '"');
          else
            e.attributes.push_back(n.facts[i]);
          break;
        }
    for (std::size_t i = 0; rest && o_.every_fact && i < n.facts.size(); ++i) {
      const auto& [name, value] = n.facts[i];
      if (used[i] || (has(name) && !last)) continue;
      const bool fits =
          e.attributes.size() < nccl_attributes && is_nccl_name(name) && is_nccl_value(value) && !has(name);
      used[i] = fits || last;
      if (fits)
        e.attributes.emplace_back(name, value);
      else if (last)
        note(severity::note, "facts that NCCL does not know and that do not fit are left out",
             name + " of " + name_of_node(n));
    }
  }
  static void put(nccl_element& e, const char* name, std::string value) {
    e.attributes.emplace_back(name, std::move(value));
  }

  [[nodiscard]] result<nccl_element> cpu_element(node_id v) {
    const node& n = g_.at(v);
    nccl_element e{"cpu", {}, {}};
    std::vector<bool> used(n.facts.size(), false);
    add_facts(e, n, {"host_hash"}, false, used);
    if (hosts_.size() > 1 && e.attributes.empty()) put(e, "host_hash", hash_of(n.host));
    // NCCL refuses a <cpu> without numaid. -1 is what the kernel and NCCL write for a domain that is not known; with two of
    // those only the numbers given here tell them apart.
    std::size_t unnumbered = 0;
    for (const node_id c : cpus_) unnumbered += is_unnumbered(g_.at(c)) ? 1 : 0;
    std::string number = n.key.substr(n.key.rfind(':') + 1);
    number = number.substr(0, number.find('#'));
    if (!plain_number(number)) number = std::to_string(n.index.value_or(n.numa.value_or(0)));
    if (is_unnumbered(n) && unnumbered > 1)
      note(severity::note, "the number of the NUMA domain is made up; the format cannot say so", n.name);
    put(e, "numaid", is_unnumbered(n) && unnumbered == 1 ? "-1" : number);
    mark(n, used, {"numaid"});
    add_facts(e, n, {"affinity"}, false, used);
    if (const std::string* list = fact(n, "cpus"); list != nullptr && fact(n, "affinity") == nullptr)
      if (std::string mask = mask_of(*list); !mask.empty()) put(e, "affinity", std::move(mask));
    add_facts(e, n, {"arch", "vendor", "familyid", "modelid"}, true, used);
    return with_devices(std::move(e), v);
  }
  [[nodiscard]] static bool is_unnumbered(const node& n) {
    return n.how == trust::assumed && n.reason.find("not told") != std::string::npos;
  }

  [[nodiscard]] result<nccl_element> with_devices(nccl_element e, node_id v) {
    for (const node_id w : below_[v.value]) {
      const std::string address = address_of(w);
      const node_kind kind = g_.at(w).kind;
      if (!address.empty()) {
        auto p = pci_element(w, address);
        if (!p) return p.error();
        e.children.push_back(std::move(*p));
      } else if (kind == node_kind::nic) {
        auto n = nic_element(w);
        if (!n) return n.error();
        if (e.name != "cpu") {
          note(severity::warning, "an adapter without PCI address is written below its NUMA domain, not where it is",
               name_of(w));
          bare_.push_back(std::move(*n));
        } else if (n->kept) {
          e.children.push_back(std::move(*n));
        }
      } else if (kind == node_kind::gpu) {
        return fail(errc::unsupported, name_of(w) + " has no PCI address, and NCCL knows GPUs by nothing else",
                    "merge the graph with what the machine or its driver tells");
      } else if (below_[w.value].empty()) {
        note(severity::note, "a device without PCI address is left out", name_of(w));
      } else {
        // An id that no machine has, as clouds write it into their files for switches that they invent.
        auto p = pci_element(w, to_string(pci_address{0xffff, 0xff, static_cast<std::uint8_t>(made_up_ / 8 % 32),
                                                      static_cast<std::uint8_t>(made_up_ % 8)}));
        if (++made_up_ > 256) return fail(errc::unsupported, "more than 256 PCIe switches have no address");
        if (!p) return p.error();
        note(severity::note, "a switch without PCI address gets an invented one", name_of(w));
        e.children.push_back(std::move(*p));
      }
    }
    if (e.name == "cpu") {
      for (nccl_element& n : bare_)
        if (n.kept) e.children.push_back(std::move(n));
      bare_.clear();
    }
    return e;
  }

  [[nodiscard]] static std::uint32_t subclass_of(const node& n) {
    const std::string* code = fact(n, "class");
    if (code == nullptr) return 0;
    std::string_view text = *code;
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") text.remove_prefix(2);
    if (text.size() < 4) return 0;
    std::uint32_t value = 0;
    for (const char c : text.substr(0, 4)) {
      const bool digit = c >= '0' && c <= '9';
      const char low = static_cast<char>(c | 0x20);
      if (!digit && !(low >= 'a' && low <= 'f')) return 0;
      value = value * 16 + static_cast<std::uint32_t>(digit ? c - '0' : low - 'a' + 10);
    }
    return value;
  }
  /// Whether the class alone makes readers take the device for a GPU or an adapter. PCI Code and ID Assignment.
  [[nodiscard]] static bool is_gpu_by_class(const node& n) {
    const std::uint32_t c = subclass_of(n);
    if (c == 0x0302 || c == 0x0380 || c == 0x1200) return true;
    if (c != 0x0300) return false;
    const std::string* vendor = fact(n, "vendor");
    return vendor == nullptr || vendor->empty() || vendor->find("10de") != std::string::npos ||
           vendor->find("10DE") != std::string::npos || vendor->find("1002") != std::string::npos ||
           vendor->find("8086") != std::string::npos;
  }
  [[nodiscard]] static bool is_nic_by_class(const node& n) {
    return subclass_of(n) == 0x0200 || subclass_of(n) == 0x0207;
  }

  [[nodiscard]] result<nccl_element> pci_element(node_id v, const std::string& address);
  void put_link(nccl_element& e, node_id v, std::vector<bool>& used);
  [[nodiscard]] nccl_element gpu_element(node_id v, std::vector<bool>& used);
  void put_gpu_links(nccl_element& e, node_id v);
  [[nodiscard]] result<nccl_element> nic_element(node_id v);
  [[nodiscard]] nccl_element net_element(node_id port, const link& l);
  [[nodiscard]] bool is_infiniband(node_id nic) const;
  [[nodiscard]] bool is_class_alone(node_id nic) const;
  [[nodiscard]] bool has_crowd(const nccl_element& e) const {
    return e.children.size() > nccl_children ||
           seq::any_of(e.children, [&](const nccl_element& c) { return has_crowd(c); });
  }

  const graph& g_;
  const nccl_xml_options& o_;
  std::vector<std::string> hosts_;
  std::vector<bool> here_;  // of each node: whether it belongs to these hosts
  std::vector<node_id> cpus_;
  std::vector<std::uint32_t> above_, uplink_;  // of each node: the node and the link; its own number for a NUMA domain
  std::vector<std::vector<node_id>> below_;
  std::vector<nccl_element> bare_;  // adapters that wait for their NUMA domain
  std::uint32_t made_up_ = 0;
  bool is_amd_ = false;
  std::vector<finding> findings_;
};

}}}}  // namespace topocoll::v0::topo::detail

#include <topocoll/topo/detail/nccl_xml_devices.hpp>
#include <topocoll/topo/detail/nccl_xml_tree.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

template <class>
result<nccl_xml_document> nccl_xml_of(const graph& g, const nccl_xml_options& options) {
  return detail::nccl_writer(g, options).write();
}

template <class>
result<std::string> to_nccl_xml(const graph& g, const nccl_xml_options& options) {
  auto document = nccl_xml_of(g, options);
  if (!document) return document.error();
  return std::move(document->text);
}

}}}  // namespace topocoll::v0::topo
