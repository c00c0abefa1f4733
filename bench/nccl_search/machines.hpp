// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machines behind the rows of a table of NCCL's search: files, what was added to them, and what was changed.
//
// A row names a machine. Most are files; files that list PCI devices alone are completed with what NVML and the network
// plug-in would add; the others are made from these by taking links, GPUs or NICs away. NCCL's figures were made in the
// same way, so this table is a description of that experiment, not of products.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/nccl_topology.hpp>

namespace bench {

namespace tc = topocoll;
using tc::read::nccl_pci;
using tc::read::nccl_topology;

/// What is added to every GPU and every adapter of a file that has only PCI devices.
struct completion {
  std::uint32_t sm = 0;        ///< 0: the file is whole
  std::uint32_t nvlinks = 0;   ///< to NVSwitches; 0: none
  bool cube_mesh = false;      ///< eight GPUs in the hybrid cube mesh of a DGX-1V
  std::int64_t net_speed = 0;  ///< Mbit/s of each adapter
};

/// A machine that is a file, or was made from one.
struct recipe {
  std::string_view name;
  std::string_view file;
  completion add{};
  std::string_view remark{};
};

inline constexpr completion ndv5{90, 18, false, 400000};
inline constexpr std::string_view ndv5_file = "superbench_ndv5_h100.xml";
inline constexpr std::string_view ndv5_remark =
    "from the file of SuperBench, which differs from Azure's in CPU masks only";
inline constexpr std::string_view removed = "the last GPUs were removed";

inline constexpr recipe recipes[] = {
    {"azure-ncv4-a100x4", "azure_ncv4_a100_pcie.xml"},
    {"azure-ndv2-v100x8", "azure_ndv2_v100.xml", {70, 0, true, 100000}},
    {"azure-ndv4-a100x8", "azure_ndv4_a100.xml", {80, 12, false, 200000}},
    {"azure-ndv5-h100x8", ndv5_file, ndv5, ndv5_remark},
    {"aws-p4d-a100x8", "aws_p4d_24xl.xml", {80, 12, false, 100000}},
    {"aws-p4de-a100x8",
     "aws_p4d_24xl.xml",
     {80, 12, false, 100000},
     "from the file of p4d, which differs in device numbers only"},
    {"oci-a100x8-flat-b4", "oci_a100_b4_flattened.xml", {80, 12, false, 100000}},
    {"oci-h100x8-16nic", "oci_h100.xml"},
    {"oci-h100x8-k8s",
     "oci_h100.xml",
     {},
     "oci-h100x8-16nic with ports of 200 Gbit/s and all PCIe at Gen5, as its own file says"},
    {"x-a100pcie-x8", "azure_ndv4_a100.xml", {80, 0, false, 200000}, "ndv4 without NVLink"},
    {"x-b200x8-400G", ndv5_file, {100, 18, false, 400000}, "ndv5 with another GPU"},
    {"x-b300x8-800G", ndv5_file, {103, 18, false, 800000}, "ndv5 with another GPU and PCIe Gen6"},
    {"x-h100x7", ndv5_file, ndv5, removed},
    {"x-h100x6", ndv5_file, ndv5, removed},
    {"x-h100x8-gpu2-gen4", ndv5_file, ndv5},
    {"x-h100x8-gpu5-16nvl", ndv5_file, ndv5},
    {"x-h100x8-gpu5-9nvl", ndv5_file, ndv5},
    {"x-h100x8-nic3-100G", ndv5_file, ndv5},
    {"x-h100x8-nic3-200G", ndv5_file, ndv5},
    {"x-h100x8-nic3-down", ndv5_file, ndv5},
    {"x-h100x8-nic35-down", ndv5_file, ndv5},
    {"x-v100x7", "azure_ndv2_v100.xml", {70, 0, true, 100000}, removed},
    {"x-v100x8-link03-half", "azure_ndv2_v100.xml", {70, 0, true, 100000}},
    {"x-v100x8-link03-lost", "azure_ndv2_v100.xml", {70, 0, true, 100000}},
    {"x-v100x8-link04-lost", "azure_ndv2_v100.xml", {70, 0, true, 100000}},
    {"x-a100x8-1gpu1nic-400G", ndv5_file, {80, 12, false, 400000}, "ndv5 with another GPU"},
    {"x-a100x8-1gpu1nic-200G", ndv5_file, {80, 12, false, 200000}, "ndv5 with another GPU"},
};

/// Calls `use` with every PCI function, parents first, in the order of the file.
inline void for_each_pci(std::vector<nccl_pci>& list, const std::function<void(nccl_pci&)>& use) {
  for (nccl_pci& p : list) {
    use(p);
    for_each_pci(p.children, use);
  }
}
inline std::vector<nccl_pci*> all_pci(nccl_topology& t, const std::function<bool(const nccl_pci&)>& wanted) {
  std::vector<nccl_pci*> found;
  for (auto& c : t.cpus)
    for_each_pci(c.devices, [&](nccl_pci& p) {
      if (wanted(p)) found.push_back(&p);
    });
  return found;
}
inline std::vector<nccl_pci*> gpus_of(nccl_topology& t) {
  return all_pci(t, [](const nccl_pci& p) {
    return !p.gpus.empty() || (p.class_code && tc::read::pci_subclass(*p.class_code) == tc::read::pci_class_3d);
  });
}
inline std::vector<nccl_pci*> nics_of(nccl_topology& t) {
  return all_pci(t, [](const nccl_pci& p) {
    const auto sub = p.class_code ? tc::read::pci_subclass(*p.class_code) : 0;
    return !p.nics.empty() || sub == tc::read::pci_class_ethernet || sub == tc::read::pci_class_infiniband;
  });
}

inline constexpr std::uint32_t nvswitch_class = 0x068000, gpu_class = 0x030200;

inline tc::read::nccl_link nvlink_to(std::string target, std::uint32_t count, std::uint32_t class_code) {
  return {std::move(target), count, class_code, 0};
}

/// Links of the hybrid cube mesh, as `nvidia-smi topo -m` prints them on a DGX-1V: six of each GPU.
inline constexpr std::array<std::array<std::uint32_t, 8>, 8> cube_mesh = {{{0, 1, 1, 2, 2, 0, 0, 0},
                                                                           {1, 0, 2, 1, 0, 2, 0, 0},
                                                                           {1, 2, 0, 2, 0, 0, 1, 0},
                                                                           {2, 1, 2, 0, 0, 0, 0, 1},
                                                                           {2, 0, 0, 0, 0, 1, 1, 2},
                                                                           {0, 2, 0, 0, 1, 0, 2, 1},
                                                                           {0, 0, 1, 0, 1, 2, 0, 2},
                                                                           {0, 0, 0, 1, 2, 1, 2, 0}}};

inline void complete(nccl_topology& t, const completion& add) {
  if (add.sm == 0) return;
  const auto gpus = gpus_of(t), nics = nics_of(t);
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    tc::read::nccl_gpu g;
    g.dev = g.rank = i;
    g.sm = add.sm;
    if (add.nvlinks > 0) g.nvlinks.push_back(nvlink_to("ffffffff:ffff:ff", add.nvlinks, nvswitch_class));
    for (std::uint32_t k = 0; add.cube_mesh && k < gpus.size() && k < 8; ++k)
      if (cube_mesh[i][k] > 0) g.nvlinks.push_back(nvlink_to(gpus[k]->busid, cube_mesh[i][k], gpu_class));
    gpus[i]->gpus = {std::move(g)};
  }
  for (std::uint32_t i = 0; i < nics.size(); ++i) {
    tc::read::nccl_net n;
    n.name = "net" + std::to_string(i);
    n.dev = i;
    n.port = 1;
    n.speed = add.net_speed;
    nics[i]->nics = {{{std::move(n)}, 0}};
  }
}

inline void remove_gpu(nccl_topology& t, std::size_t which) {
  nccl_pci* const victim = gpus_of(t)[which];
  const std::string busid = victim->busid;
  victim->gpus.clear();
  victim->class_code = 0x088000;  // still there, but no GPU
  for (nccl_pci* p : gpus_of(t))
    for (auto& g : p->gpus) std::erase_if(g.nvlinks, [&](const auto& l) { return l.target == busid; });
}
inline void remove_nic(nccl_topology& t, std::size_t which) {
  nccl_pci* const victim = nics_of(t)[which];
  victim->nics.clear();
  victim->class_code = 0x088000;
}
inline void set_links(nccl_topology& t, std::size_t a, std::size_t b, std::uint32_t count) {
  const auto gpus = gpus_of(t);
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
    for (auto& g : gpus[from]->gpus) {
      if (count == 0) std::erase_if(g.nvlinks, [&, end = to](const auto& l) { return l.target == gpus[end]->busid; });
      for (auto& l : g.nvlinks)
        if (l.target == gpus[to]->busid) l.count = count;
    }
}

/// What makes a variant of its base.
inline void vary(nccl_topology& t, std::string_view name) {
  const auto is = [&](std::string_view end) { return name.ends_with(end); };
  if (is("-nic3-200G")) nics_of(t)[3]->nics[0].nets[0].speed = 200000;
  if (is("-nic3-100G")) nics_of(t)[3]->nics[0].nets[0].speed = 100000;
  if (is("-nic35-down")) remove_nic(t, 5);
  if (is("-nic3-down") || is("-nic35-down")) remove_nic(t, 3);
  if (is("-gpu5-16nvl")) gpus_of(t)[5]->gpus[0].nvlinks[0].count = 16;
  if (is("-gpu5-9nvl")) gpus_of(t)[5]->gpus[0].nvlinks[0].count = 9;
  if (is("-gpu2-gen4")) gpus_of(t)[2]->link_speed = "16.0 GT/s PCIe";
  if (is("x-b300x8-800G") || is("oci-h100x8-k8s"))
    for (nccl_pci* p : all_pci(t, [](const nccl_pci&) { return true; }))
      p->link_speed = is("k8s") ? "32.0 GT/s PCIe" : "64.0 GT/s PCIe";
  if (is("oci-h100x8-k8s"))
    for (nccl_pci* p : nics_of(t))
      for (auto& nic : p->nics)
        for (auto& n : nic.nets) n.speed = 200000;
  if (is("x-h100x7") || is("x-h100x6") || is("x-v100x7")) remove_gpu(t, 7);
  if (is("x-h100x6")) remove_gpu(t, 6);
  if (is("-link03-half")) set_links(t, 0, 3, 1);
  if (is("-link03-lost")) set_links(t, 0, 3, 0);
  if (is("-link04-lost")) set_links(t, 0, 4, 0);
}

/// RCCL's model files are read as NVLink machines with compute capability 8.0, as NCCL was made to.
inline void as_nvlink_machine(nccl_topology& t) {
  for (nccl_pci* p : gpus_of(t))
    for (auto& g : p->gpus) {
      for (auto& l : g.xgmis) g.nvlinks.push_back(std::move(l));
      g.xgmis.clear();
      g.gcn.clear();
      g.sm = 80;
    }
}

inline nccl_pci function(std::string busid, std::uint32_t class_code, const char* speed) {
  nccl_pci p;
  p.busid = std::move(busid);
  p.class_code = class_code;
  p.link_speed = speed;
  p.link_width = "16";
  return p;
}
inline std::string bus(std::uint32_t domain, std::uint32_t number) {
  constexpr char hex[] = "0123456789abcdef";
  std::string s = "0000:00:00.0";
  for (int k = 0; k < 4; ++k) s[static_cast<std::size_t>(k)] = hex[(domain >> (12 - 4 * k)) & 15U];
  s[5] = hex[(number >> 4U) & 15U];
  s[6] = hex[number & 15U];
  return s;
}

/// Sixteen V100 with six NVLinks each to NVSwitches; eight PCIe Gen3 switches with two GPUs and an adapter each.
inline nccl_topology dgx2() {
  nccl_topology t;
  for (std::uint32_t c = 0; c < 2; ++c) {
    tc::read::nccl_cpu cpu;
    cpu.numaid = c;
    cpu.arch = "x86_64";
    cpu.vendor = "GenuineIntel";
    cpu.familyid = 6;
    cpu.modelid = 85;
    for (std::uint32_t s = 0; s < 4; ++s) {
      nccl_pci sw = function(bus(c, 0x10 * (s + 1)), 0x060400, "8 GT/s");
      for (std::uint32_t k = 1; k <= 2; ++k)
        sw.children.push_back(function(bus(c, 0x10 * (s + 1) + k), gpu_class, "8 GT/s"));
      sw.children.push_back(function(bus(c, 0x10 * (s + 1) + 3), 0x020700, "8 GT/s"));
      cpu.devices.push_back(std::move(sw));
    }
    t.cpus.push_back(std::move(cpu));
  }
  complete(t, {70, 6, false, 100000});
  return t;
}

/// Trays of two Arm sockets, each with two GPUs on C2C and two adapters of 400 Gbit/s; all GPUs on one NVLink domain.
inline nccl_topology gb200(std::uint32_t trays) {
  nccl_topology t;
  for (std::uint32_t c = 0; c < 2 * trays; ++c) {
    tc::read::nccl_cpu cpu;
    cpu.numaid = c % 2;
    cpu.arch = "arm64";
    cpu.host_hash = "0x" + std::to_string(c / 2 + 1);
    for (std::uint32_t k = 1; k <= 2; ++k) {
      const std::uint32_t domain = 0x10 * c + k;
      nccl_pci gpu = function(bus(domain, 1), gpu_class, "32.0 GT/s PCIe");
      tc::read::nccl_gpu g;
      g.dev = g.rank = 2 * (c % 2) + k - 1;
      g.sm = 100;
      g.nvlinks.push_back(nvlink_to("ffffffff:ffff:ff", 18, nvswitch_class));
      // 225 GB/s each way. Source: NVIDIA's GB200 data sheet, 900 GB/s both ways for a Grace, which two GPUs share.
      g.c2cs.push_back({45000, 5, 0});
      gpu.gpus.push_back(std::move(g));
      cpu.devices.push_back(std::move(gpu));
      nccl_pci nic = function(bus(domain, 2), 0x020700, "32.0 GT/s PCIe");
      tc::read::nccl_net n;
      n.name = "net" + std::to_string(2 * c + k - 1);
      n.dev = 2 * c + k - 1;
      n.port = 1;
      n.speed = 400000;
      nic.nics.push_back({{std::move(n)}, 0});
      cpu.devices.push_back(std::move(nic));
    }
    t.cpus.push_back(std::move(cpu));
  }
  return t;
}

/// A port that tells no speed has 10 Gbit/s in NCCL; a speed beyond any port is believed.
inline void as_nccl_reads_ports(nccl_topology& t) {
  for (nccl_pci* p : nics_of(t))
    for (auto& nic : p->nics)
      for (auto& n : nic.nets) {
        if (!n.speed || *n.speed <= 0) n.speed = 10000;
        n.speed = std::min<std::int64_t>(*n.speed, 3200000);  // the graph believes no more; PCIe binds long before
      }
}

/// One part of a row: a machine and how often it occurs.
struct machine {
  std::string name, remark;
  nccl_topology topology;
  std::uint32_t copies = 1;  ///< in a row of unequal machines; 0: as often as the row has nodes
};

/// The machine with this name. @return `not_found` when the folder lacks its file or nothing tells how it was made
inline tc::result<machine> machine_named(const std::string& folder, const std::string& name) {
  machine m{name, {}, {}, 0};
  if (name == "x-dgx2-v100x16") {
    m.topology = dgx2();
    m.remark = "no file: as its user guide describes it";
    return m;
  }
  if (name.starts_with("x-gb200-tray4")) {
    const std::size_t star = name.find('*');
    m.topology = gb200(star == std::string::npos ? 1 : static_cast<std::uint32_t>(std::stoul(name.substr(star + 1))));
    m.remark = "no file: made from its description";
    return m;
  }
  std::string file;
  completion add{};
  constexpr std::string_view rccl = "rccl-topo_";
  if (name.starts_with(rccl)) {  // under a collector's name, or RCCL's own
    file = "rccl_" + name.substr(rccl.size()) + ".xml";
    if (!tc::io::read_file(folder + "/" + file)) file = name.substr(rccl.find('-') + 1) + ".xml";
  }
  for (const recipe& r : recipes)
    if (r.name == name) {
      file = r.file;
      add = r.add;
      m.remark = r.remark;
    }
  if (file.empty()) return tc::fail(tc::errc::not_found, "nothing tells how the machine was made");
  const auto text = tc::io::read_file(folder + "/" + file);
  if (!text) return tc::fail(tc::errc::not_found, "the folder has no " + file);
  const auto root = tc::io::parse_xml(*text, file);
  if (!root) return root.error();
  auto topology = tc::read::nccl_topology_of(*root, file);
  if (!topology) return topology.error();
  m.topology = std::move(*topology);
  complete(m.topology, add);
  vary(m.topology, name);
  if (name.starts_with(rccl)) as_nvlink_machine(m.topology);
  as_nccl_reads_ports(m.topology);
  return m;
}

/// The machines of a row: "A", or "A x3 + B x1".
inline tc::result<std::vector<machine>> machines_of(const std::string& folder, const std::string& row) {
  std::vector<machine> found;
  for (std::size_t at = 0; at <= row.size();) {
    const std::size_t plus = std::min(row.find(" + ", at), row.size());
    std::string part = row.substr(at, plus - at);
    at = plus + 3;
    std::uint32_t copies = 0;
    if (const std::size_t x = part.rfind(" x"); x != std::string::npos) {
      copies = static_cast<std::uint32_t>(std::stoul(part.substr(x + 2)));
      part.resize(x);
    }
    auto m = machine_named(folder, part);
    if (!m) return m.error();
    m->copies = copies;
    found.push_back(std::move(*m));
  }
  return found;
}

}  // namespace bench
