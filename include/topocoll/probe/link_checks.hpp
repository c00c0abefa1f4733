// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks that need no traffic: links trained below what both ends can do, ports that are down, parts unlike their siblings.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/probe/detail/link_examine.hpp>
#include <topocoll/probe/verdict.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace probe {

/// PCIe links: what each has trained to against what both its ends can do.
///
/// A lost lane is a fault even when idle (`degraded`). A low speed may be power saving, and is only `suspect` until it is seen
/// under load. A deficit that may be either, because the graph tells rates and not both widths, is `suspect` too.
/// Links that do not tell both figures are `not_measured`; the answer says how many there are.
template <class = void>
[[nodiscard]] std::vector<verdict> check_pcie_links(const topo::graph& g);

/// Network ports: up, and as fast as the same port of the same kind of adapter in the same host.
///
/// An RDMA port that is down is `degraded` when most of its siblings are up, else `suspect` (perhaps nobody plugged it in).
/// A plain interface that is down is nobody's fault. A rate below that of most siblings is `degraded`.
template <class = void>
[[nodiscard]] std::vector<verdict> check_ports(const topo::graph& g);

/// NVLink and XGMI: every GPU of a host has as many links as most of its siblings. Fewer but some is `degraded`; none while
/// others have some is `suspect`, since bridges between pairs of cards leave others without by design.
template <class = void>
[[nodiscard]] std::vector<verdict> check_gpu_links(const topo::graph& g);

/// GPUs and NICs say in which NUMA domain they sit, where there are several.
template <class = void>
[[nodiscard]] std::vector<verdict> check_numa(const topo::graph& g);

/// All of the above. Cost: O(n + m), and O(siblings²) inside one host.
template <class = void>
[[nodiscard]] std::vector<verdict> check_links(const topo::graph& g) {
  std::vector<verdict> all = check_pcie_links(g);
  for (auto* check : {&check_ports<>, &check_gpu_links<>, &check_numa<>}) {
    std::vector<verdict> more = (*check)(g);
    for (verdict& v : more) all.push_back(std::move(v));
  }
  return all;
}

template <class>
std::vector<verdict> check_pcie_links(const topo::graph& g) {
  std::vector<verdict> said;
  std::size_t whole = 0;
  std::size_t silent = 0;
  for (std::uint32_t e = 0; e < g.link_count(); ++e) {
    const topo::link& l = g.at(link_id{e});
    const node_id low = detail::lower_end(g, l);
    if (l.kind != topo::link_kind::pcie || low != l.to) continue;  // each connection once
    if (!l.nominal || !l.current) {
      ++silent;
      continue;
    }
    const detail::pcie_state s = detail::examine(l);
    if (s.lost == detail::deficit::none) {
      ++whole;
      continue;
    }
    const std::string where = detail::place_of(g, low);
    const bool wide = s.lost == detail::deficit::width || s.lost == detail::deficit::both;
    verdict v = detail::reported(wide ? "pcie/width" : "pcie/speed", where, wide ? state::degraded : state::suspect,
                                 wide ? 0.95 : 0.5);
    const std::string now = detail::trained(l.generation, l.lanes);
    v.measured = l.current;
    v.expected = l.nominal;
    v.evidence = "trained to " + now + ", " + to_string(*l.current) + "; both ends can " +
                 (s.best_lanes > 0 ? detail::trained(s.best_generation, s.best_lanes) + ", " : "") +
                 to_string(*l.nominal) + " (as the devices report)";
    const std::string best =
        s.best_lanes > 0 ? detail::trained(s.best_generation, s.best_lanes) : to_string(*l.nominal);
    if (wide) {
      v.why = cause::fault;
      v.headline = "PCIe x" + std::to_string(l.lanes) + " of x" + std::to_string(s.best_lanes) + " at " + where;
      v.sentence = where + " runs on " + std::to_string(l.lanes) + " of " + std::to_string(s.best_lanes) +
                   " PCIe lanes (" + now + " of " + best + "): " + to_string(*l.current) + " instead of " +
                   to_string(*l.nominal) + ", also when idle";
      v.next_step = "reseat the card or its riser and read the width again; if it stays, replace them";
    } else if (s.lost == detail::deficit::speed) {
      v.headline = "PCIe speed of " + where;
      v.sentence = where + " runs at PCIe " + now + " although both ends can " + best +
                   "; an idle device may do so to save power";
      v.next_step = "re-check under load: read current_link_speed while data move to the device";
    } else {
      v.headline = "PCIe link of " + where;
      v.sentence = where + " runs at PCIe " + now + ", " + to_string(*l.current) + ", although both ends can " +
                   to_string(*l.nominal) + "; whether lanes or speed are missing is not told";
      v.next_step =
          "compare current_link_width with max_link_width of the device and of the port above; fewer lanes are a fault";
    }
    said.push_back(std::move(v));
  }
  if (whole > 0) {
    verdict v = detail::reported("pcie/links", g.source(), state::healthy, 0.95);
    v.sentence =
        detail::counted(whole, "PCIe link") + (whole == 1 ? " runs" : " run") + " as wide and fast as both ends can";
    if (silent > 0) v.sentence += "; " + std::to_string(silent) + " more do not tell";
    said.push_back(std::move(v));
  } else if (said.empty()) {
    verdict v;
    v.check = "pcie/links";
    v.where = g.source();
    v.headline = silent > 0 ? "PCIe link state not told" : "no PCIe device";
    v.sentence = silent > 0 ? "PCIe links: none of " + std::to_string(silent) +
                                  " tells both what it runs at and what it could, as is usual in virtual machines"
                            : "PCIe links: no PCIe device is seen";
    said.push_back(std::move(v));
  }
  return said;
}

template <class>
std::vector<verdict> check_ports(const topo::graph& g) {
  std::vector<verdict> said;
  const std::vector<detail::port_seen> ports = detail::ports_of(g);
  std::size_t rdma = 0;
  std::size_t good = 0;
  std::size_t unknown = 0;
  for (const detail::port_seen& p : ports) {
    if (p.rdma) ++rdma;
    const std::string where = detail::place_of(g, p.port);
    std::vector<bool> up;
    std::vector<double> rates;
    for (const detail::port_seen& other : ports) {
      if (other.kind != p.kind || other.rdma != p.rdma) continue;
      up.push_back(other.up);
      if (other.rate) rates.push_back(other.rate->value);
    }
    if (!p.up) {
      if (!p.rdma) continue;  // interfaces for management are often left unplugged
      const bool others_up = detail::majority(up).value_or(false);
      verdict v =
          detail::reported("nic/port", where, others_up ? state::degraded : state::suspect, others_up ? 0.9 : 0.4);
      v.headline = where + " is down";
      v.sentence = "port " + where + " is down" +
                   (others_up ? " while most ports of its kind in this host are up"
                              : "; no majority of its siblings tells whether it should be up");
      v.evidence = p.state;
      v.why = others_up ? cause::fault : cause::unknown;
      v.next_step = "check cable, transceiver and switch port, then ibstat or ethtool";
      said.push_back(std::move(v));
      continue;
    }
    if (!p.rate) {
      ++unknown;
      continue;
    }
    const auto usual = detail::majority(rates);
    if (usual && p.rate->value < *usual * 0.99) {
      verdict v = detail::reported("nic/rate", where, state::degraded, 0.9);
      v.why = cause::fault;
      v.measured = p.rate;
      v.expected = bytes_per_second{*usual};
      v.headline = where + " at " + topo::bits_text(*p.rate) + " of " + topo::bits_text({*usual});
      v.sentence = "port " + where + " runs at " + topo::bits_text(*p.rate) +
                   " while most ports of its kind in this host run at " + topo::bits_text({*usual});
      v.evidence = detail::counted(rates.size(), "port") + " compared, as the driver reports";
      v.next_step = "check cable and transceiver, and the speed set at the switch port";
      said.push_back(std::move(v));
      continue;
    }
    ++good;
  }
  if (good > 0) {
    verdict v = detail::reported("nic/ports", g.source(), state::healthy, 0.8);
    v.sentence =
        detail::counted(good, "network port") + (good == 1 ? " is" : " are") + " up, none slower than its siblings";
    said.push_back(std::move(v));
  }
  if (rdma == 0 || (good == 0 && said.empty())) {
    verdict v;
    v.check = "nic/ports";
    v.where = g.source();
    v.headline = rdma == 0 ? "no RDMA port" : "port rates not told";
    v.sentence = rdma == 0 ? "RDMA ports: none is seen" : "network ports: none tells its rate";
    if (rdma == 0 && unknown > 0)
      v.sentence += ", and " + detail::counted(unknown, "plain interface") + (unknown == 1 ? " does" : " do") +
                    " not tell a speed";
    said.push_back(std::move(v));
  }
  return said;
}

template <class>
std::vector<verdict> check_gpu_links(const topo::graph& g) {
  std::vector<verdict> said;
  const std::vector<node_id> gpus = g.all(topo::node_kind::gpu);
  std::vector<std::size_t> lanes(gpus.size(), 0);
  std::size_t linked = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (const link_id e : g.out_links(gpus[i])) {
      const topo::link& l = g.at(e);
      if (l.kind != topo::link_kind::nvlink && l.kind != topo::link_kind::xgmi) continue;
      if (l.capacity.value > 0) lanes[i] += std::max(l.lanes, 1U);
    }
    if (lanes[i] > 0) ++linked;
  }
  if (linked == 0) return said;
  std::size_t alike = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    std::vector<std::size_t> siblings;
    for (std::size_t k = 0; k < gpus.size(); ++k)
      if (g.at(gpus[k]).host == g.at(gpus[i]).host) siblings.push_back(lanes[k]);
    const auto usual = detail::majority(siblings);
    if (!usual || lanes[i] >= *usual) {
      ++alike;
      continue;
    }
    const std::string where = detail::place_of(g, gpus[i]);
    verdict v =
        detail::reported("gpu/links", where, lanes[i] > 0 ? state::degraded : state::suspect, lanes[i] > 0 ? 0.9 : 0.6);
    v.why = lanes[i] > 0 ? cause::fault : cause::unknown;
    v.headline = where + " has " + std::to_string(lanes[i]) + " of " + std::to_string(*usual) + " GPU links";
    v.sentence = where + " has " + detail::counted(lanes[i], "NVLink or XGMI link") +
                 " while most GPUs of this host have " + std::to_string(*usual);
    v.evidence = "links that carry data, as the topology source reports them";
    v.next_step = "nvidia-smi nvlink --status (or rocm-smi --showtopo) for the missing links; kernel log for Xid 74";
    said.push_back(std::move(v));
  }
  if (alike == gpus.size()) {
    verdict v = detail::reported("gpu/links", g.source(), state::healthy, 0.9);
    v.sentence =
        "NVLink or XGMI: " + detail::counted(gpus.size(), "GPU") + ", none with fewer links than most of its siblings";
    said.push_back(std::move(v));
  }
  return said;
}

template <class>
std::vector<verdict> check_numa(const topo::graph& g) {
  std::vector<verdict> said;
  std::size_t devices = 0;
  std::vector<std::string> lost;
  for (std::uint32_t n = 0; n < g.node_count(); ++n) {
    const topo::node& v = g.at(node_id{n});
    if (v.kind != topo::node_kind::gpu && v.kind != topo::node_kind::nic) continue;
    ++devices;
    if (!v.numa) lost.push_back(detail::place_of(g, node_id{n}));
  }
  if (g.all(topo::node_kind::cpu).size() < 2) return said;  // with one domain there is nothing to be told
  if (devices == 0) return said;
  if (lost.empty()) {
    verdict v = detail::reported("numa/devices", g.source(), state::healthy, 0.9);
    v.sentence = "NUMA: each of " + detail::counted(devices, "device") + " (GPUs and NICs) tells its domain";
    said.push_back(std::move(v));
    return said;
  }
  verdict v;
  v.check = "numa/devices";
  v.where = lost.front();
  v.headline = "NUMA domain of " + lost.front() + (lost.size() > 1 ? " and others" : "") + " not told";
  v.sentence = "NUMA: " + std::to_string(lost.size()) + " of " + detail::counted(devices, "device") +
               " do not tell their domain (" + lost.front() + (lost.size() > 1 ? ", ..." : "") +
               "), so what they should reach is uncertain";
  v.next_step = "look for the domain in the firmware's settings; ask the hypervisor to pass it on";
  said.push_back(std::move(v));
  return said;
}

}}}  // namespace topocoll::v0::probe
