// SPDX-License-Identifier: Apache-2.0
#pragma once
// How what NVML tells becomes nodes and links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/nvml_ask.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class = void>
class nvml_builder {
 public:
  nvml_builder(const nvml_machine& machine, const std::string& host)
      : m_(machine), host_(host), tally_(machine.remarks) {}

  [[nodiscard]] topo::fragment build() {
    out_.source = "nvml";
    for (std::size_t i = 0; i < m_.gpus.size(); ++i) add_gpu(i);
    for (std::size_t i = 0; i < m_.gpus.size(); ++i) {
      count_links(i);
      judge_pcie(i);
      judge_mig(i);
      judge_fabric(i);
    }
    for (std::size_t i = 0; i < m_.gpus.size(); ++i) judge_links(i);
    add_pairs();
    add_plane();
    for (std::size_t i = 0; i < m_.gpus.size(); ++i) add_c2c(i);
    for (topo::node& n : out_.nodes) seq::sort(n.facts);
    make_keys_unique(out_, {}, tally_);
    tally_.report(host_, out_.findings);
    return std::move(out_);
  }

 private:
  struct ends {
    std::vector<std::uint32_t> to_gpu;  ///< active links to each GPU
    std::uint32_t to_switch = 0, to_cpu = 0, elsewhere = 0, hidden = 0, active = 0;
    std::uint32_t best = 0;            ///< active links of the GPU of the same device that has most
    const char* out_of_use = nullptr;  ///< why NVLinks carry nothing although they are up
    std::string dead;                  ///< numbers of the links that are not active
  };

  [[nodiscard]] std::string name(std::size_t i) const { return "GPU " + std::to_string(m_.gpus[i].index); }
  [[nodiscard]] topo::node& node(std::size_t i) { return out_.nodes[i]; }
  void fact(std::size_t i, const char* what, std::string value) {
    if (!value.empty()) node(i).facts.emplace_back(what, std::move(value));
  }
  void say(severity level, std::size_t i, std::string what, std::string evidence, std::string next) {
    out_.findings.push_back({level, host_ + " " + name(i), std::move(what), std::move(evidence), std::move(next), 1});
  }
  /// "0x10de" from the lower half, "0x2330" from the upper.
  [[nodiscard]] static std::string hex(std::uint32_t id) {
    std::string text = "0x";
    for (int shift = 12; shift >= 0; shift -= 4) text += "0123456789abcdef"[id >> static_cast<unsigned>(shift) & 15U];
    return text;
  }

  void add_gpu(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = host_ + (g.address ? "/pci:" + to_string(*g.address) : "/gpu:" + std::to_string(g.index));
    n.name = name(i);
    n.host = host_;
    n.index = g.index;
    n.numa = g.numa;
    out_.add(std::move(n));
    if (g.device_id != 0) {
      fact(i, "vendor", hex(g.device_id & 0xffffU));
      fact(i, "device", hex(g.device_id >> 16U));
    }
    if (g.subsystem_id != 0) {
      fact(i, "subsystem_vendor", hex(g.subsystem_id & 0xffffU));
      fact(i, "subsystem_device", hex(g.subsystem_id >> 16U));
    }
    fact(i, "driver", m_.driver);
    fact(i, "model", g.name);
    fact(i, "uuid", g.uuid);
    if (g.sm) fact(i, "sm", std::to_string(*g.sm));
    if (!g.address)
      tally_.add(severity::warning, "the driver tells no PCI address of a GPU, so other sources cannot recognise it",
                 name(i));
  }

  void count_links(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    ends e;
    e.to_gpu.resize(m_.gpus.size());
    std::string versions;
    for (const nvml_link_seen& l : g.links) {
      if (!l.active) {
        e.dead += (e.dead.empty() ? "" : ", ") + std::to_string(l.number);
        continue;
      }
      ++e.active;
      std::size_t peer = m_.gpus.size();
      for (std::size_t p = 0; p < m_.gpus.size() && l.remote; ++p)
        if (m_.gpus[p].address == l.remote) peer = p;
      if (l.end == nvml_end_switch)
        ++e.to_switch;
      else if (l.end == nvml_end_cpu)
        ++e.to_cpu;
      else if (peer < m_.gpus.size() && peer != i)
        ++e.to_gpu[peer];
      else if (l.end == nvml_end_gpu)
        ++e.elsewhere;
      else
        ++e.hidden;
      if (l.version != 0) versions = std::to_string(l.version);
    }
    if (!g.links.empty())
      fact(i, "nvlinks", std::to_string(e.active) + " of " + std::to_string(g.links.size()) + " active");
    fact(i, "nvlinks_down", e.dead);
    fact(i, "nvlink_version", versions);
    if (e.to_cpu > 0) fact(i, "nvlinks_to_cpu", std::to_string(e.to_cpu));
    if (e.elsewhere > 0) {
      fact(i, "nvlinks_elsewhere", std::to_string(e.elsewhere));
      tally_.add(
          severity::note,
          "NVLinks lead to GPUs that are not visible here, as in a container that has only some; no link is made",
          name(i) + ": " + std::to_string(e.elsewhere));
    }
    if (e.hidden > 0)
      tally_.add(
          severity::note,
          "the driver does not tell what stands at the other end of active NVLinks, as in virtual machines; taken as "
          "NVSwitch",
          name(i) + ": " + std::to_string(e.hidden));
    links_.push_back(std::move(e));
  }

  void judge_pcie(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    const auto text = [](std::optional<unsigned> generation, std::optional<unsigned> width) {
      std::string both = generation ? "Gen" + std::to_string(*generation) : std::string();
      if (width) both += (both.empty() ? "x" : " x") + std::to_string(*width);
      return both;
    };
    const std::string now = text(g.pcie_generation, g.pcie_width);
    const std::string best = text(g.pcie_most_generation, g.pcie_most_width);
    fact(i, "pcie_current", now);
    fact(i, "pcie_best", best);
    if (g.pcie_generation && g.pcie_most_generation && *g.pcie_generation < *g.pcie_most_generation)
      tally_.add(severity::note,
                 "the PCIe link of a GPU runs below its best speed, which an idle GPU does to save power",
                 name(i) + ": " + now + " of " + best, "look again under load");
    if (g.pcie_width && g.pcie_most_width && *g.pcie_width < *g.pcie_most_width)
      tally_.add(severity::warning, "the PCIe link of a GPU runs narrower than GPU and slot can",
                 name(i) + ": " + now + " of " + best, "reseat the card; compare with hosts of the same kind");
  }

  void judge_mig(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    if (!g.mig) return;
    if (*g.mig || *g.mig_pending) fact(i, "mig", *g.mig ? "on" : "off, on after a reset");
    if (*g.mig) {
      fact(i, "mig_devices", std::to_string(g.mig_devices));
      tally_.add(
          severity::warning, "MIG is on: the GPU is split, and its parts reach other GPUs neither by NVLink nor by P2P",
          name(i) + ": " + std::to_string(g.mig_devices) + " parts", "turn it off for collectives: nvidia-smi -mig 0");
      // NVIDIA Multi-Instance GPU User Guide, "Application Considerations": no GPU-to-GPU P2P, neither PCIe nor NVLink.
      links_[i].out_of_use = "MIG is on, and its instances do not use NVLink";
    }
    if (*g.mig != *g.mig_pending)
      tally_.add(severity::note, "the MIG mode of a GPU changes at the next reset", name(i));
  }

  void judge_fabric(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    if (!g.fabric || g.fabric->state == nvml_fabric_not_supported) return;
    const nvml_fabric_seen& f = *g.fabric;
    constexpr const char* words[] = {"not supported", "not started", "in progress", "completed"};
    fact(i, "fabric_state", f.state < 4 ? words[f.state] : std::to_string(f.state));
    fact(i, "fabric_cluster", f.cluster);
    if (!f.cluster.empty()) fact(i, "fabric_clique", std::to_string(f.clique));
    if (f.state != nvml_fabric_completed) {
      tally_.add(severity::fault,
                 "the NVLink fabric has not been set up, so GPUs cannot reach each other through NVSwitch",
                 name(i) + ": " + (f.state < 4 ? words[f.state] : "state " + std::to_string(f.state)),
                 "look at the fabric manager: systemctl status nvidia-fabricmanager");
      links_[i].out_of_use = "the NVLink fabric has not been set up";
    } else if (f.status != nvml_success) {
      tally_.add(severity::fault, "a GPU failed to join the NVLink fabric",
                 name(i) + ": status " + std::to_string(f.status), "look at the log of the fabric manager");
      links_[i].out_of_use = "the GPU failed to join the NVLink fabric";
    }
    const auto is_true = [&](unsigned shift) { return f.health && (*f.health >> shift & 3U) == 1; };
    if (is_true(nvml_fabric_degraded))
      tally_.add(severity::warning, "the NVLink fabric gives a GPU less than its full bandwidth", name(i),
                 "look at nvidia-smi -q, Fabric, Health");
    if (is_true(nvml_fabric_route_recovery) || is_true(nvml_fabric_route_unhealthy))
      tally_.add(severity::warning, "a route of the NVLink fabric to a GPU is not healthy", name(i),
                 "look at nvidia-smi -q, Fabric, Health");
  }

  /// Whether as many links are active as on other GPUs of the same device.
  void judge_links(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    ends& e = links_[i];
    std::size_t equals = 0;
    e.best = e.active;
    std::size_t short_of = 0;  // GPUs of the same device with fewer active links than the best
    std::size_t other = i;
    for (std::size_t p = 0; p < m_.gpus.size(); ++p)
      if (m_.gpus[p].device_id == g.device_id) {
        ++equals;
        e.best = std::max(e.best, links_[p].active);
      }
    for (std::size_t p = 0; p < m_.gpus.size(); ++p)
      if (m_.gpus[p].device_id == g.device_id && links_[p].active < e.best) {
        ++short_of;
        if (p != i) other = p;
      }
    if (g.links.empty() || e.dead.empty()) return;
    if (e.best == 0) {
      tally_.add(severity::note, "no NVLink of a GPU is active: there is no bridge, or the fabric manager does not run",
                 name(i));
      return;
    }
    const std::string next = "compare nvidia-smi nvlink -s -i " + std::to_string(g.index) +
                             " with the other GPUs; look for Xid 74 in dmesg; reset, then reseat or replace";
    const std::string evidence = "active " + std::to_string(e.active) + " of " + std::to_string(g.links.size()) +
                                 "; links that are down: " + e.dead;
    if (e.active < e.best) {
      std::string far = "; the other end is not told";
      if (e.to_switch > 0)
        far = "; the other end is an NVSwitch";
      else if (short_of == 2 && other != i)
        far = "; " + name(other) + " has a link down as well and is likely the other end";
      say(severity::fault, i,
          name(i) + " has " + std::to_string(e.active) + " NVLinks active, others of its kind " +
              std::to_string(e.best) + far,
          evidence, next);
    } else if (equals > 1) {
      tally_.add(severity::note, "all GPUs of a kind leave some of their NVLinks unused, as boards and bridges do",
                 name(i) + ": " + std::to_string(e.active) + " of " + std::to_string(g.links.size()));
    } else {
      say(severity::warning, i,
          name(i) + " has NVLinks that are not active, and no other GPU of its kind to compare with", evidence, next);
    }
  }

  /// Rate of one NVLink of a GPU: the line rate that the driver tells, else the data sheet's.
  [[nodiscard]] gpu_link_rate rate_of(std::size_t i) const {
    gpu_link_rate r = nvlink_rate(m_.gpus[i].sm);
    for (const nvml_link_seen& l : m_.gpus[i].links)
      if (l.active && l.megabytes) {
        r.line = bytes_per_second{*l.megabytes * 1e6};
        break;
      }
    return r;
  }

  /// A bundle of `count` links, of which `best` would be up on a healthy GPU.
  [[nodiscard]] topo::link bundle(const gpu_link_rate& rate, std::uint32_t count, std::uint32_t best,
                                  const char* out_of_use, const std::string& who) {
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.generation = rate.generation;
    l.lanes = count;
    l.nominal = rate.line * std::max(count, best);
    l.current = rate.line * count;
    l.capacity = rate.payload * count;
    l.how = rate.known ? trust::derived : trust::assumed;
    l.reason = std::to_string(count) + " × NVLink";
    if (best > count) l.reason += " of " + std::to_string(best);
    l.reason += rate.known ? ", payload as in NCCL's model" : ", architecture not known, rate of a common one";
    if (!rate.known)
      tally_.add(severity::warning,
                 "the rate of the GPU links is assumed, because the architecture of the GPU is not told or unknown",
                 who);
    if (out_of_use != nullptr) {
      l.capacity = {};
      l.reason += std::string("; ") + out_of_use;
    }
    return l;
  }

  void add_pairs() {
    for (std::size_t a = 0; a < m_.gpus.size(); ++a)
      for (std::size_t b = a + 1; b < m_.gpus.size(); ++b) {
        const std::uint32_t forth = links_[a].to_gpu[b];
        const std::uint32_t back = links_[b].to_gpu[a];
        if (forth == 0 && back == 0) continue;
        const gpu_link_rate ra = rate_of(a);
        const gpu_link_rate rb = rate_of(b);
        gpu_link_rate rate = rb.payload < ra.payload ? rb : ra;
        rate.line = std::min(ra.line, rb.line);
        rate.known = ra.known && rb.known;
        const std::uint32_t told = std::min(forth, back) != 0 ? std::min(forth, back) : std::max(forth, back);
        const char* unused = links_[a].out_of_use != nullptr ? links_[a].out_of_use : links_[b].out_of_use;
        const std::string who = name(a) + " and " + name(b);
        topo::link l = bundle(rate, told, std::max(forth, back), unused, who);
        if (forth != back) {
          l.how = trust::assumed;
          l.reason += std::min(forth, back) != 0 ? "; the two ends tell different counts, the smaller is taken"
                                                 : "; only one end tells it";
          tally_.add(severity::warning, "two GPUs tell different numbers of NVLinks between them",
                     who + ": " + std::to_string(forth) + " and " + std::to_string(back),
                     "look for a link that is down: nvidia-smi nvlink -s");
        }
        l.from = {static_cast<std::uint32_t>(a)};
        l.to = {static_cast<std::uint32_t>(b)};
        out_.join(l);
      }
  }

  void add_plane() {
    std::optional<node_id> plane;
    for (std::size_t i = 0; i < m_.gpus.size(); ++i) {
      const ends& e = links_[i];
      const std::uint32_t count = e.to_switch + e.hidden;
      // A GPU whose links are all down still stands before the switch that its equals are joined to.
      bool others = false;
      for (std::size_t p = 0; p < m_.gpus.size(); ++p)
        others = others || (m_.gpus[p].device_id == m_.gpus[i].device_id && links_[p].to_switch + links_[p].hidden > 0);
      if (count == 0 && !(others && e.active == 0 && !m_.gpus[i].links.empty())) continue;
      if (!plane) {
        topo::node n;
        n.kind = topo::node_kind::nvswitch;
        n.key = host_ + "/nvswitch";
        n.name = "NVSwitch";
        n.host = host_;
        n.how = trust::derived;
        n.reason = "all switches that GPUs are joined to, taken as one";
        if (const auto& f = m_.gpus[i].fabric; f && !f->cluster.empty()) {
          n.facts.emplace_back("fabric_cluster", f->cluster);
          n.facts.emplace_back("fabric_clique", std::to_string(f->clique));
        }
        plane = out_.add(std::move(n));
      }
      topo::link l = bundle(rate_of(i), count, e.best, e.out_of_use, name(i));
      if (count == 0) l.reason += "; all are down";
      if (e.hidden > 0) {
        l.how = trust::assumed;
        l.reason += "; the other end is not told, taken as NVSwitch";
      }
      l.from = {static_cast<std::uint32_t>(i)};
      l.to = *plane;
      out_.join(l);
    }
  }

  void add_c2c(std::size_t i) {
    const nvml_gpu_seen& g = m_.gpus[i];
    if (g.c2c_links == 0) return;
    fact(i, "c2c_links", std::to_string(g.c2c_active) + " of " + std::to_string(g.c2c_links) + " active");
    if (g.c2c_active < g.c2c_links)
      tally_.add(severity::fault, "chip-to-chip links between a GPU and its CPU are down",
                 name(i) + ": " + std::to_string(g.c2c_active) + " of " + std::to_string(g.c2c_links) + " active",
                 "compare nvidia-smi c2c -s with hosts of the same kind");
    if (!g.numa || !g.c2c_megabytes) {
      tally_.add(severity::note,
                 "a GPU has chip-to-chip links, but the driver does not tell their rate or its NUMA domain", name(i));
      return;
    }
    const std::string key = host_ + "/numa:" + std::to_string(*g.numa);
    std::uint32_t cpu = 0;
    while (cpu < out_.nodes.size() && out_.nodes[cpu].key != key) ++cpu;
    if (cpu == out_.nodes.size()) {
      topo::node n;
      n.kind = topo::node_kind::cpu;
      n.key = key;
      n.name = "NUMA " + std::to_string(*g.numa);
      n.host = host_;
      n.index = n.numa = g.numa;
      out_.add(std::move(n));
    }
    topo::link l;
    l.from = {static_cast<std::uint32_t>(i)};
    l.to = {cpu};
    l.kind = topo::link_kind::c2c;
    l.lanes = g.c2c_active;
    l.nominal = bytes_per_second{*g.c2c_megabytes * 1e6} * g.c2c_links;
    l.current = l.capacity = bytes_per_second{*g.c2c_megabytes * 1e6} * g.c2c_active;
    l.how = trust::derived;
    l.reason =
        std::to_string(g.c2c_active) + " links of " + std::to_string(*g.c2c_megabytes) + " MB/s as the driver tells";
    out_.join(l);
  }

  const nvml_machine& m_;
  std::string host_;
  topo::fragment out_;
  tally tally_;
  std::vector<ends> links_;  // beside m_.gpus
};

}}}  // namespace topocoll::v0::detail
