// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an NCCL or RCCL topology XML says, as plain structs; what it cannot mean becomes a finding.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/io/xml_tree.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Attributes as written, sorted by name.
using attributes = std::vector<std::pair<std::string, std::string>>;

/// `<nvlink>` or `<xgmi>`: cables of one GPU to one other end.
struct nccl_link {
  std::string target;                       ///< PCI address of the other end, as written
  std::optional<std::uint32_t> count;       ///< cables; empty when not told or nonsense
  std::optional<std::uint32_t> class_code;  ///< `tclass`: PCI class of the other end
  std::uint32_t line = 0;
};
/// `<c2c>`: coherent links of one GPU to its CPU.
struct nccl_c2c {
  std::optional<std::uint32_t> megabytes_per_second;  ///< of one link, one direction
  std::optional<std::uint32_t> count;
  std::uint32_t line = 0;
};
struct nccl_gpu {
  std::optional<std::uint32_t> dev, rank, sm;
  std::string
      gcn;  ///< AMD architecture, "908" or "gfx942"; empty for NVIDIA, where `sm` is compute capability times ten
  attributes facts;
  std::vector<nccl_link> nvlinks, xgmis;
  std::vector<nccl_c2c> c2cs;
  std::uint32_t line = 0;
};
/// `<net>`: one port of a network adapter.
struct nccl_net {
  std::string name;  ///< empty when not told
  std::optional<std::uint32_t> dev, port;
  std::optional<std::int64_t> speed;  ///< Mbit/s as written, so possibly 0, negative or absurd; empty when not told
  attributes facts;
  std::uint32_t line = 0;
};
/// `<nic>`: one adapter; its ports may be none.
struct nccl_nic {
  std::vector<nccl_net> nets;
  std::uint32_t line = 0;
};
/// `<pci>`: one PCI function and the link between it and what stands above it.
struct nccl_pci {
  std::string busid;
  std::optional<std::uint32_t> class_code;
  std::string link_speed, link_width;  ///< as written
  attributes facts;
  std::vector<nccl_gpu> gpus;
  std::vector<nccl_nic> nics;
  std::vector<nccl_link> pcilinks;  ///< further PCIe connections to other switches; only `target` has a meaning
  std::vector<nccl_pci> children;
  std::uint32_t line = 0;
};
/// `<cpu>`: one NUMA domain.
struct nccl_cpu {
  std::optional<std::uint32_t> numaid;  ///< empty when not told, -1 or nonsense
  std::string arch, vendor, affinity, host_hash;
  std::optional<std::uint32_t> familyid, modelid;
  attributes facts;
  std::vector<nccl_pci> devices;
  std::vector<nccl_nic> nics;  ///< adapters that hang on the CPU without a PCI address
  std::uint32_t line = 0;
};
struct nccl_topology {
  std::string version;
  std::vector<nccl_cpu> cpus;
  std::vector<finding> findings;
};

/// Understands the element `<system>` of a topology file.
///
/// Unknown elements and attributes are kept apart and reported; numbers that are none become empty and are reported.
/// @param file  name for failures and findings
/// @return `malformed_input` when the root is not `<system>`, when there is no `<cpu>`, or for a `<pci>` without busid
template <class = void>
[[nodiscard]] result<nccl_topology> nccl_topology_of(const io::xml_element& root, std::string_view file);

namespace detail {

/// One pass over the elements; collects findings on the way.
template <class = void>
class nccl_reader {
 public:
  explicit nccl_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<nccl_topology> system(const io::xml_element& root) {
    if (root.name != "system") {
      std::string what = at(root) + "the root element is <" + root.name + ">, but an NCCL topology has <system>";
      if (root.name == "graphs") what += "; <graphs> holds NCCL's search results";
      if (root.name == "topology") what += "; <topology> is what hwloc writes";
      return fail(errc::malformed_input, std::move(what),
                  "name a file that NCCL_TOPO_DUMP_FILE wrote or NCCL_TOPO_FILE may read");
    }
    nccl_topology t;
    if (const std::string* version = root.find("version")) t.version = *version;
    std::vector<const io::xml_element*> homeless;
    for (const io::xml_element& e : root.children) {
      if (e.name == "cpu") {
        auto c = cpu(e);
        if (!c) return c.error();
        t.cpus.push_back(std::move(*c));
      } else if (e.name == "pci" || e.name == "nic" || e.name == "net") {
        homeless.push_back(&e);
      } else {
        unknown(e, root);
      }
    }
    if (t.cpus.empty())
      return fail(errc::malformed_input, at(root) + "<system> has no <cpu>, so nothing in it can be placed");
    if (!homeless.empty()) {
      note(severity::warning, *homeless.front(),
           std::to_string(homeless.size()) +
               " devices stand outside every <cpu>; they are taken as devices of the first");
      for (const io::xml_element* e : homeless)
        if (auto ok = cpu_child(*e, root, t.cpus.front()); !ok) return ok.error();
    }
    for (unseen& u : unknown_) {
      note(severity::note, *u.first,
           "the element <" + u.first->name + "> inside <" + u.parent + "> is unknown and was passed over");
      if (u.count > 1) findings_.back().evidence = std::to_string(u.count) + " such elements";
    }
    t.findings = std::move(findings_);
    return t;
  }

 private:
  struct unseen {
    std::string parent;
    const io::xml_element* first;
    std::size_t count;
  };

  [[nodiscard]] std::string place(const io::xml_element& e) const { return file_ + " line " + std::to_string(e.line); }
  [[nodiscard]] std::string at(const io::xml_element& e) const { return place(e) + ": "; }
  void note(severity level, const io::xml_element& e, std::string what, std::string evidence = {}) {
    findings_.push_back({level, place(e), std::move(what), std::move(evidence), {}, 1});
  }
  void unknown(const io::xml_element& e, const io::xml_element& parent) {
    for (unseen& u : unknown_)
      if (u.first->name == e.name && u.parent == parent.name) {
        ++u.count;
        return;
      }
    if (unknown_.size() < 32) unknown_.push_back({parent.name, &e, 1});
  }

  [[nodiscard]] static std::string text(const io::xml_element& e, std::string_view name) {
    const std::string* value = e.find(name);
    return value ? *value : std::string();
  }
  /// The number in an attribute; a text that is none is reported. -1 is how the kernel says "not known".
  [[nodiscard]] std::optional<std::uint32_t> number(const io::xml_element& e, std::string_view name,
                                                    std::uint32_t most = INT32_MAX) {
    const std::string* value = e.find(name);
    if (!value) return std::nullopt;
    const auto found = small_number(*value, most);
    if (!found && trimmed(*value) != "-1")
      note(severity::warning, e,
           "<" + e.name + "> has " + std::string(name) + "=\"" + *value + "\", which is not a number from 0 to " +
               std::to_string(most) + "; taken as not told");
    return found;
  }
  [[nodiscard]] std::optional<std::uint32_t> class_code(const io::xml_element& e, std::string_view name) {
    const std::string* value = e.find(name);
    if (!value || trimmed(*value).empty()) return std::nullopt;
    const auto code = pci_class_code(*value);
    if (!code)
      note(severity::warning, e,
           "<" + e.name + "> has " + std::string(name) + "=\"" + *value +
               "\", which is not a PCI class; taken as not told");
    return code;
  }
  /// All attributes that are not told elsewhere in the struct.
  [[nodiscard]] static attributes rest(const io::xml_element& e, std::initializer_list<std::string_view> known) {
    attributes out;
    for (const io::xml_attribute& a : e.attributes)
      if (std::find(known.begin(), known.end(), a.name) == known.end()) out.emplace_back(a.name, a.value);
    seq::sort(out);
    return out;
  }

  [[nodiscard]] result<nccl_cpu> cpu(const io::xml_element& e) {
    nccl_cpu c;
    c.line = e.line;
    c.numaid = number(e, "numaid", 65535);
    c.arch = text(e, "arch");
    c.vendor = text(e, "vendor");
    c.affinity = text(e, "affinity");
    c.host_hash = text(e, "host_hash");
    c.familyid = number(e, "familyid");
    c.modelid = number(e, "modelid");
    c.facts = rest(e, {"numaid"});
    for (const io::xml_element& child : e.children)
      if (auto ok = cpu_child(child, e, c); !ok) return ok.error();
    return c;
  }
  [[nodiscard]] result<void> cpu_child(const io::xml_element& child, const io::xml_element& parent, nccl_cpu& c) {
    if (child.name == "pci") {
      auto p = pci(child);
      if (!p) return p.error();
      c.devices.push_back(std::move(*p));
    } else if (child.name == "nic") {
      c.nics.push_back(nic(child));
    } else if (child.name == "net") {
      c.nics.push_back({{net(child)}, child.line});
    } else {
      unknown(child, parent);
    }
    return {};
  }
  [[nodiscard]] result<nccl_pci> pci(const io::xml_element& e) {
    nccl_pci p;
    p.line = e.line;
    p.busid = text(e, "busid");
    if (p.busid.empty())
      return fail(errc::malformed_input, at(e) + "<pci> has no busid, so the device cannot be told from others");
    p.class_code = class_code(e, "class");
    p.link_speed = text(e, "link_speed");
    p.link_width = text(e, "link_width");
    p.facts = rest(e, {"busid"});
    for (const io::xml_element& child : e.children) {
      if (child.name == "pci") {
        auto below = pci(child);
        if (!below) return below.error();
        p.children.push_back(std::move(*below));
      } else if (child.name == "gpu") {
        p.gpus.push_back(gpu(child));
      } else if (child.name == "nic") {
        p.nics.push_back(nic(child));
      } else if (child.name == "net") {
        p.nics.push_back({{net(child)}, child.line});
      } else if (child.name == "pcilink") {
        p.pcilinks.push_back({text(child, "target"), std::nullopt, std::nullopt, child.line});
      } else {
        unknown(child, e);
      }
    }
    return p;
  }
  [[nodiscard]] nccl_gpu gpu(const io::xml_element& e) {
    nccl_gpu g;
    g.line = e.line;
    g.dev = number(e, "dev");
    g.rank = number(e, "rank");
    g.sm = number(e, "sm");
    g.gcn = text(e, "gcn");
    g.facts = rest(e, {"dev", "rank"});
    for (const io::xml_element& child : e.children) {
      if (child.name == "nvlink" || child.name == "xgmi")
        (child.name == "xgmi" ? g.xgmis : g.nvlinks)
            .push_back({text(child, "target"), number(child, "count", 256), class_code(child, "tclass"), child.line});
      else if (child.name == "c2c")
        g.c2cs.push_back({number(child, "bw"), number(child, "count", 256), child.line});
      else
        unknown(child, e);
    }
    return g;
  }
  [[nodiscard]] nccl_nic nic(const io::xml_element& e) {
    nccl_nic n;
    n.line = e.line;
    for (const io::xml_element& child : e.children)
      if (child.name == "net")
        n.nets.push_back(net(child));
      else
        unknown(child, e);
    return n;
  }
  [[nodiscard]] nccl_net net(const io::xml_element& e) {
    nccl_net n;
    n.line = e.line;
    n.name = text(e, "name");
    n.dev = number(e, "dev");
    n.port = number(e, "port");
    if (const std::string* speed = e.find("speed")) {
      n.speed = whole_number(*speed);
      if (!n.speed && !trimmed(*speed).empty())
        note(severity::warning, e,
             "<net> has speed=\"" + *speed + "\", which is not a number of Mbit/s; taken as not told");
    }
    n.facts = rest(e, {"name", "dev", "port"});
    for (const io::xml_element& child : e.children) unknown(child, e);
    return n;
  }

  std::string file_;
  std::vector<finding> findings_;
  std::vector<unseen> unknown_;
};

}  // namespace detail

template <class>
result<nccl_topology> nccl_topology_of(const io::xml_element& root, std::string_view file) {
  return detail::nccl_reader(file).system(root);
}

}}}  // namespace topocoll::v0::read
