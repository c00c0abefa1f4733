// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/discover/generate.hpp>
#include <topocoll/topo/address.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

// With NVLink rates as a GPU has them: into the switch or to all peers, one direction.
struct expected_host {
  tc::host_model model;
  std::uint32_t gpus, nics, switches;
  double nvlink_gpu, nic, pcie;  // GB/s
};

// From data sheets, in GB/s of one direction; PCIe: GT/s * lanes * 128/130 / 8.
const std::vector<expected_host>& sheets() {
  static const std::vector<expected_host> all{
      {tc::models::dgx_1v, 8, 4, 4, 150, 12.5, 8.0 * 16 * 128 / 130 / 8},
      {tc::models::dgx_a100, 8, 8, 4, 300, 25, 16.0 * 16 * 128 / 130 / 8},
      {tc::models::hgx_h100, 8, 8, 8, 450, 50, 32.0 * 16 * 128 / 130 / 8},
      {tc::models::hgx_h200, 8, 8, 8, 450, 50, 32.0 * 16 * 128 / 130 / 8},
      {tc::models::hgx_b200, 8, 8, 8, 900, 50, 32.0 * 16 * 128 / 130 / 8},
      {tc::models::gb200_nvl72, 4, 4, 0, 900, 50, 32.0 * 16 * 128 / 130 / 8},
      {tc::models::pcie, 4, 2, 2, 0, 25, 16.0 * 16 * 128 / 130 / 8},
  };
  return all;
}

tc::topo::graph built(const tc::fabric_options& o) {
  auto f = tc::generate(o);
  EXPECT_TRUE(f) << f.error().message();
  auto g = tc::topo::graph::from(std::move(*f));
  EXPECT_TRUE(g) << g.error().message();
  return std::move(*g);
}

tc::topo::graph host(const tc::host_model& m, tc::host_detail level = tc::host_detail::full) {
  auto f = tc::single_host(m, "node0", level);
  EXPECT_TRUE(f) << f.error().message();
  auto g = tc::topo::graph::from(std::move(*f));
  EXPECT_TRUE(g) << g.error().message();
  return std::move(*g);
}

double sum(const tc::topo::graph& g, tc::node_id v, link_kind kind) {
  double total = 0;
  for (const tc::link_id e : g.out_links(v))
    if (g.at(e).kind == kind) total += g.capacity(e).value;
  return total;
}

// Nodes that `from` reaches over links that carry something.
std::size_t reached(const tc::topo::graph& g, tc::node_id from) {
  std::vector<bool> seen(g.node_count(), false);
  std::vector<tc::node_id> todo{from};
  seen[from.value] = true;
  std::size_t count = 0;
  while (!todo.empty()) {
    const tc::node_id v = todo.back();
    todo.pop_back();
    ++count;
    for (const tc::link_id e : g.out_links(v))
      if (g.capacity(e).value > 0 && !seen[g.head(e).value]) {
        seen[g.head(e).value] = true;
        todo.push_back(g.head(e));
      }
  }
  return count;
}

std::size_t count(const tc::topo::graph& g, node_kind kind) { return g.all(kind).size(); }

tc::fabric_options cluster(const tc::host_model& m, std::uint32_t nodes) {
  tc::fabric_options o;
  o.host = m;
  o.nodes = nodes;
  return o;
}

tc::planted_fault fault(tc::planted_fault::kind_t kind, tc::fabric_part part) {
  tc::planted_fault f;
  f.kind = kind;
  f.part = part;
  return f;
}
using part = tc::fabric_part::kind_t;
using what = tc::planted_fault::kind_t;

// The closed form for uniform clusters of P pods, H boxes, N GPUs (oracles, check 4), from figures of the options.
double inverse_rate(double n, double h, double p, double nvlink, double nic, double r) {
  return std::max({(n - 1) / (nvlink + nic), (h - 1) / nic, r * (p - 1) / nic});
}

// The same from what the graph says: capacities out of one GPU, one box and one pod, each by its cables.
double inverse_rate(const tc::topo::graph& g) {
  const auto gpus = g.all(node_kind::gpu);
  std::map<std::string, double> host_out, pod_out;
  std::map<std::string, std::string> pod_of_host;
  for (const tc::topo::link& l : g.links()) {
    const tc::topo::node& a = g.at(l.from);
    const tc::topo::node& b = g.at(l.to);
    if (a.kind == node_kind::nic_port && b.kind == node_kind::leaf) {
      host_out[a.host] += l.capacity.value;
      pod_of_host[a.host] = b.facts[0].second;
    }
    if (a.kind == node_kind::leaf && b.kind == node_kind::spine) pod_out[a.facts[0].second] += l.capacity.value;
  }
  std::map<std::string, double> hosts_in_pod;
  for (const auto& [name, pod] : pod_of_host) hosts_in_pod[pod] += 1;
  const double n = static_cast<double>(gpus.size());
  const double per_host = n / static_cast<double>(host_out.size());
  double worst = 0;
  for (const tc::node_id v : gpus) {
    const double nic = host_out[g.at(v).host] / per_host;
    worst = std::max(worst, (n - 1) / (sum(g, v, link_kind::nvlink) + nic));
  }
  for (const auto& [name, out] : host_out) worst = std::max(worst, (n - per_host) / out);
  for (const auto& [pod, out] : pod_out)
    if (hosts_in_pod.size() > 1) worst = std::max(worst, (n - per_host * hosts_in_pod[pod]) / out);
  return worst;
}

}  // namespace

TEST(single_host, has_the_devices_of_its_data_sheet) {
  for (const expected_host& want : sheets()) {
    SCOPED_TRACE(want.model.name);
    const auto g = host(want.model);
    EXPECT_EQ(count(g, node_kind::gpu), want.gpus);
    EXPECT_EQ(count(g, node_kind::nic), want.nics);
    EXPECT_EQ(count(g, node_kind::nic_port), want.nics);
    EXPECT_EQ(count(g, node_kind::pcie_switch), want.switches);
    EXPECT_EQ(count(g, node_kind::cpu), 2U);
    EXPECT_EQ(count(g, node_kind::host_memory), 2U);
    EXPECT_EQ(count(g, node_kind::nvswitch), want.model.has_nvswitch() ? 1U : 0U);
    EXPECT_EQ(reached(g, g.all(node_kind::gpu)[0]), g.node_count());
  }
}

TEST(single_host, gives_every_gpu_the_nvlink_rate_of_its_data_sheet) {
  for (const expected_host& want : sheets()) {
    SCOPED_TRACE(want.model.name);
    const auto g = host(want.model);
    for (const tc::node_id gpu : g.all(node_kind::gpu))
      EXPECT_DOUBLE_EQ(sum(g, gpu, link_kind::nvlink), want.nvlink_gpu * 1e9);
  }
}

TEST(single_host, does_not_hold_a_nic_below_its_line_rate) {
  for (const expected_host& want : sheets()) {
    SCOPED_TRACE(want.model.name);
    ASSERT_GE(want.pcie, want.nic);
    for (const auto level : {tc::host_detail::full, tc::host_detail::fabric}) {
      if (level == tc::host_detail::fabric && !tc::joined_without_pcie(want.model)) continue;
      const auto g = host(want.model, level);
      for (const tc::node_id nic : g.all(node_kind::nic)) {
        EXPECT_GE(sum(g, nic, link_kind::pcie), want.pcie * 1e9 * (1 - 1e-12));
        EXPECT_DOUBLE_EQ(sum(g, nic, link_kind::internal), want.nic * 1e9);
      }
    }
  }
}

// NVIDIA's picture of the DGX A100: two GPUs and two NICs share the way of their switch to the socket.
TEST(single_host, of_dgx_a100_shares_switches_in_pairs) {
  const auto g = host(tc::models::dgx_a100);
  for (const tc::node_id s : g.all(node_kind::pcie_switch)) {
    std::map<node_kind, int> below;
    for (const tc::link_id e : g.out_links(s)) ++below[g.at(g.head(e)).kind];
    EXPECT_EQ(below[node_kind::gpu], 2);
    EXPECT_EQ(below[node_kind::nic], 2);
    EXPECT_EQ(below[node_kind::cpu], 1);
  }
}

TEST(single_host, of_dgx_1v_is_the_hybrid_cube_mesh) {
  const auto g = host(tc::models::dgx_1v);
  const auto gpus = g.all(node_kind::gpu);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> links;
  for (const tc::topo::link& l : g.links())
    if (l.kind == link_kind::nvlink) links[{*g.at(l.from).index, *g.at(l.to).index}] = l.lanes;
  EXPECT_EQ(links.size(), 32U);
  // "nvidia-smi topo -m" of a DGX-1V, row of GPU 0 and of GPU 5 (X, NV1, NV2, PHB or SYS).
  const std::vector<std::uint32_t> row0{0, 1, 1, 2, 2, 0, 0, 0};
  const std::vector<std::uint32_t> row5{0, 2, 0, 0, 1, 0, 2, 1};
  for (std::uint32_t j = 0; j < 8; ++j) {
    EXPECT_EQ((links.contains({0, j}) ? links[{0, j}] : 0), row0[j]) << j;
    EXPECT_EQ((links.contains({5, j}) ? links[{5, j}] : 0), row5[j]) << j;
  }
  for (const auto& [pair, n] : links) EXPECT_EQ((links[{pair.second, pair.first}]), n);
}

TEST(single_host, keys_are_the_same_at_both_levels) {
  for (const expected_host& want : sheets()) {
    if (!tc::joined_without_pcie(want.model)) continue;
    const auto full = host(want.model);
    const auto fabric = host(want.model, tc::host_detail::fabric);
    for (const tc::topo::node& n : fabric.nodes()) {
      const auto same = full.find(n.key);
      ASSERT_TRUE(same) << n.key;
      EXPECT_EQ(full.at(*same).kind, n.kind);
      EXPECT_EQ(full.at(*same).name, n.name);
    }
  }
}

TEST(single_host, keys_hold_well_formed_pci_addresses) {
  tc::host_model big = tc::models::pcie;  // more devices than one PCI domain has buses
  big.gpus = 300;
  big.gpus_per_switch = 7;
  big.nics = 17;
  const auto g = host(big);
  for (const tc::topo::node& n : g.nodes()) {
    ASSERT_TRUE(n.key.starts_with("node0/")) << n.key;
    if (n.kind != node_kind::gpu && n.kind != node_kind::nic && n.kind != node_kind::pcie_switch) continue;
    ASSERT_TRUE(n.key.starts_with("node0/pci:")) << n.key;
    const auto address = tc::topo::pci_address::parse(n.key.substr(10));
    ASSERT_TRUE(address) << n.key;
    EXPECT_EQ("node0/pci:" + to_string(*address), n.key);
  }
}

// Numbers that do not divide: every device still has exactly one way up, and all of them are used.
TEST(single_host, spreads_devices_evenly) {
  for (const std::uint32_t gpus : {1U, 2U, 3U, 5U, 7U, 8U, 17U})
    for (const std::uint32_t nics : {0U, 1U, 2U, 3U, 5U, 7U, 17U})
      for (const std::uint32_t per : {0U, 1U, 2U, 3U})
        for (const std::uint32_t sockets : {1U, 2U, 3U}) {
          tc::host_model m = tc::models::pcie;
          m.gpus = gpus;
          m.nics = nics;
          m.gpus_per_switch = std::min(per, gpus);
          m.sockets = sockets;
          const auto g = host(m);
          ASSERT_EQ(count(g, node_kind::gpu), gpus);
          ASSERT_EQ(count(g, node_kind::nic), nics);
          ASSERT_EQ(reached(g, {0}), g.node_count());
          std::map<std::uint32_t, std::uint32_t> below;
          for (const tc::node_id v : g.all(node_kind::nic)) {
            ASSERT_EQ(g.out_links(v).size(), 2U);  // up and to its port
            for (const tc::link_id e : g.out_links(v))
              if (g.at(e).kind == link_kind::pcie) ++below[g.head(e).value];
          }
          std::uint32_t least = nics, most = 0;
          const std::size_t places = m.switches() > 0 ? m.switches() : sockets;
          for (const auto& [place, n] : below) {
            least = std::min(least, n);
            most = std::max(most, n);
          }
          if (below.size() < places) least = 0;
          ASSERT_LE(most, least + 1) << gpus << " GPUs " << nics << " NICs " << per << " per switch " << sockets
                                     << " sockets";
        }
}

TEST(single_host, at_fabric_level_gives_every_gpu_its_share_of_nics) {
  for (const std::uint32_t gpus : {1U, 2U, 3U, 5U, 8U})
    for (const std::uint32_t nics : {1U, 2U, 3U, 4U, 8U, 16U}) {
      tc::host_model m = tc::models::hgx_h100;
      m.gpus = gpus;
      m.nics = nics;
      const auto g = host(m, tc::host_detail::fabric);
      for (const tc::node_id v : g.all(node_kind::gpu)) {
        std::size_t own = 0;
        for (const tc::link_id e : g.out_links(v)) own += g.at(g.head(e)).kind == node_kind::nic ? 1 : 0;
        EXPECT_GE(own, nics >= gpus ? nics / gpus : 1U) << gpus << ' ' << nics;
        EXPECT_LE(own, nics >= gpus ? (nics + gpus - 1) / gpus : 1U) << gpus << ' ' << nics;
      }
      EXPECT_EQ(reached(g, {0}), g.node_count());
    }
}

TEST(single_host, says_how_its_facts_are_known) {
  const auto g = host(tc::models::hgx_h100);
  for (const tc::topo::link& l : g.links()) {
    if (l.kind == link_kind::cpu) {
      EXPECT_EQ(l.how, tc::trust::assumed);
      EXPECT_FALSE(l.nominal);
    } else {
      EXPECT_EQ(l.how, tc::trust::derived);
      EXPECT_EQ(l.nominal, l.capacity);
    }
    EXPECT_FALSE(l.current);  // nobody has looked
    EXPECT_FALSE(l.reason.empty());
  }
}

TEST(single_host, refuses_models_that_contradict_themselves) {
  const auto refused = [](auto change, const char* word) {
    tc::host_model m = tc::models::hgx_h100;
    change(m);
    const auto f = tc::single_host(m);
    ASSERT_FALSE(f) << word;
    EXPECT_EQ(f.error().code, tc::errc::invalid_argument);
    EXPECT_NE(f.error().what.find(word), std::string::npos) << f.error().what;
  };
  refused([](tc::host_model& m) { m.gpus = 0; }, "0 GPUs");
  refused([](tc::host_model& m) { m.gpus = 5000; }, "5000 GPUs");
  refused([](tc::host_model& m) { m.nics = 5000; }, "5000 NICs");
  refused([](tc::host_model& m) { m.sockets = 0; }, "0 sockets");
  refused([](tc::host_model& m) { m.gpus_per_switch = 9; }, "9 GPUs under each PCIe switch");
  refused([](tc::host_model& m) { m.nvlink_rate = {}; }, "NVLinks without a rate");
  refused([](tc::host_model& m) { m.nvlink_rate = {std::nan("")}; }, "NVLinks without a rate");
  refused([](tc::host_model& m) { m.pcie_generation = 9; }, "generation 9");
  refused([](tc::host_model& m) { m.pcie_lanes = 0; }, "0 lanes");
  refused([](tc::host_model& m) { m.nic_rate = {-1}; }, "NICs whose rate");
  refused([](tc::host_model& m) { m.memory_rate = {}; }, "memory whose rate");
  refused([](tc::host_model& m) { m.socket_rate = {}; }, "sockets joined");
  refused([](tc::host_model& m) { m.domain_hosts = 0; }, "0 hosts");
  static constexpr tc::peer_link loop[] = {{2, 2, 1}};
  refused([](tc::host_model& m) { m.mesh = loop; }, "GPU 2 to GPU 2");
  EXPECT_FALSE(tc::single_host(tc::models::hgx_h100, ""));
  EXPECT_FALSE(tc::single_host(tc::models::pcie, "node0", tc::host_detail::fabric));
}

TEST(generate, of_one_host_is_that_host) {
  for (const tc::host_model& m : tc::models::all) {
    if (m.domain_hosts > 1) continue;
    const auto a = host(m);
    const auto b = built(cluster(m, 1));
    ASSERT_EQ(a.node_count(), b.node_count());
    ASSERT_EQ(a.link_count(), b.link_count());
    for (std::uint32_t v = 0; v < a.node_count(); ++v) EXPECT_EQ(a.nodes()[v].key, b.nodes()[v].key);
  }
}

TEST(generate, joins_every_device_of_several_hosts) {
  for (const tc::host_model& m : tc::models::all)
    for (const std::uint32_t nodes : {2U, 3U, 5U, 7U, 8U, 17U, 37U}) {
      const auto g = built(cluster(m, nodes));
      EXPECT_EQ(count(g, node_kind::gpu), std::size_t{nodes} * m.gpus);
      EXPECT_EQ(reached(g, {0}), g.node_count()) << m.name << ' ' << nodes;
    }
}

TEST(generate, gives_rail_optimised_pods_one_leaf_per_rail) {
  auto o = cluster(tc::models::hgx_h100, 16);
  o.leaves = 16;
  o.spines = 4;
  o.oversubscription = {3};
  const auto g = built(o);
  EXPECT_EQ(count(g, node_kind::leaf), 16U);
  EXPECT_EQ(count(g, node_kind::spine), 4U);
  for (const tc::topo::link& l : g.links()) {
    const tc::topo::node& a = g.at(l.from);
    const tc::topo::node& b = g.at(l.to);
    if (a.kind == node_kind::nic_port && b.kind == node_kind::leaf) {
      const std::uint32_t h = static_cast<std::uint32_t>(std::stoul(a.host.substr(4)));
      EXPECT_EQ(*b.index, h / 8 * 8 + *a.index);
      EXPECT_EQ(b.facts[0], (std::pair<std::string, std::string>{"pod", std::to_string(h / 8)}));
      EXPECT_EQ(b.facts[1], (std::pair<std::string, std::string>{"rail", std::to_string(*a.index)}));
    }
  }
  for (const tc::node_id leaf : g.all(node_kind::leaf)) {
    double down = 0, up = 0;
    std::size_t ups = 0;
    for (const tc::link_id e : g.out_links(leaf)) {
      const bool spine = g.at(g.head(e)).kind == node_kind::spine;
      (spine ? up : down) += g.capacity(e).value;
      ups += spine ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(down, 8 * 50e9);
    EXPECT_NEAR(up, down / 3, 1);
    EXPECT_EQ(ups, 4U);
  }
}

TEST(generate, gives_other_leaves_whole_hosts) {
  auto o = cluster(tc::models::dgx_a100, 15);
  o.leaves = 2;
  const auto g = built(o);
  std::map<std::string, std::set<std::uint32_t>> leaves_of_host;
  std::map<std::uint32_t, double> down, up;
  for (const tc::topo::link& l : g.links()) {
    if (g.at(l.to).kind != node_kind::leaf) continue;
    if (g.at(l.from).kind == node_kind::spine) {
      up[*g.at(l.to).index] += l.capacity.value;
    } else {
      leaves_of_host[g.at(l.from).host].insert(*g.at(l.to).index);
      down[*g.at(l.to).index] += l.capacity.value;
    }
  }
  ASSERT_EQ(leaves_of_host.size(), 15U);
  for (const auto& [name, leaves] : leaves_of_host) EXPECT_EQ(leaves.size(), 1U) << name;
  EXPECT_DOUBLE_EQ(down[0], 8 * 8 * 25e9);
  EXPECT_DOUBLE_EQ(down[1], 7 * 8 * 25e9);
  EXPECT_NEAR(up[0], down[0], 1);
  EXPECT_NEAR(up[1], down[1], 1);
}

TEST(generate, honours_uneven_pods) {
  auto o = cluster(tc::models::hgx_h100, 15);
  o.split = {7, 8};
  const auto g = built(o);
  EXPECT_EQ(count(g, node_kind::leaf), 16U);
  std::map<std::string, std::set<std::string>> hosts;
  for (const tc::topo::link& l : g.links())
    if (g.at(l.to).kind == node_kind::leaf && g.at(l.from).kind == node_kind::nic_port)
      hosts[g.at(l.to).facts[0].second].insert(g.at(l.from).host);
  EXPECT_EQ(hosts["0"].size(), 7U);
  EXPECT_EQ(hosts["1"].size(), 8U);
}

TEST(generate, joins_pods_by_core_switches) {
  auto o = cluster(tc::models::hgx_h100, 12);
  o.pods = 3;
  o.spines = 6;
  o.cores = 5;
  o.oversubscription = {2};
  o.core_oversubscription = {3, 2};
  const auto g = built(o);
  EXPECT_EQ(count(g, node_kind::core_switch), 5U);
  EXPECT_EQ(reached(g, {0}), g.node_count());
  for (const tc::node_id spine : g.all(node_kind::spine)) {
    double down = 0, up = 0;
    for (const tc::link_id e : g.out_links(spine)) {
      const tc::topo::node& other = g.at(g.head(e));
      if (other.kind == node_kind::leaf) {
        EXPECT_EQ(*other.index / 8, *g.at(spine).index / 2) << "a spine serves its own pod only";
        down += g.capacity(e).value;
      } else {
        up += g.capacity(e).value;
      }
    }
    EXPECT_NEAR(down, 8 * 4 * 50e9 / 2 / 2, 1);  // 8 leaves of 4 cables, 2:1, two spines
    EXPECT_NEAR(up, down * 2 / 3, 1);
  }
}

TEST(generate, shares_one_nvswitch_plane_among_the_trays_of_a_rack) {
  const auto rack = built(cluster(tc::models::gb200_nvl72, 18));
  EXPECT_EQ(count(rack, node_kind::gpu), 72U);
  EXPECT_EQ(count(rack, node_kind::nvswitch), 1U);
  EXPECT_EQ(count(rack, node_kind::leaf), 0U);
  EXPECT_EQ(rack.out_links(rack.all(node_kind::nvswitch)[0]).size(), 72U);

  const auto three = built(cluster(tc::models::gb200_nvl72, 40));  // two racks and four trays
  ASSERT_EQ(count(three, node_kind::nvswitch), 3U);
  EXPECT_EQ(three.out_links(three.all(node_kind::nvswitch)[2]).size(), 16U);
  EXPECT_EQ(count(three, node_kind::leaf), 4U);
  EXPECT_EQ(reached(three, {0}), three.node_count());

  auto full = cluster(tc::models::gb200_nvl72, 18);
  full.detail = tc::host_detail::full;
  const auto g = built(full);
  EXPECT_EQ(count(g, node_kind::cpu), 36U);
  for (const tc::node_id gpu : g.all(node_kind::gpu)) EXPECT_DOUBLE_EQ(sum(g, gpu, link_kind::c2c), 225e9);
}

TEST(generate, meets_the_closed_form_of_uniform_clusters) {
  for (const std::uint32_t nodes : {2U, 3U, 4U, 16U, 24U})
    for (const std::uint32_t pods : {1U, 2U, 3U, 8U})
      for (const std::uint32_t r : {1U, 2U, 3U, 7U}) {
        if (nodes % pods != 0 || nodes / pods < 2) continue;
        auto o = cluster(tc::models::hgx_h100, nodes);
        o.pods = pods;
        o.oversubscription = {r};
        const double want = inverse_rate(8.0 * nodes, nodes, pods, 450e9, 50e9, r);
        EXPECT_NEAR(inverse_rate(built(o)) / want, 1, 1e-12) << nodes << " hosts " << pods << " pods " << r << ":1";
      }
}

TEST(generate, is_the_same_every_time) {
  auto o = cluster(tc::models::dgx_a100, 5);
  o.order = tc::rank_order{tc::rank_order::kind_t::shuffled, 9};
  const auto faulty = tc::with_faults(o, 6, 42);
  ASSERT_TRUE(faulty);
  const auto a = built(*faulty);
  const auto b = built(*faulty);
  ASSERT_EQ(a.node_count(), b.node_count());
  ASSERT_EQ(a.link_count(), b.link_count());
  for (std::uint32_t v = 0; v < a.node_count(); ++v) {
    EXPECT_EQ(a.nodes()[v].key, b.nodes()[v].key);
    EXPECT_EQ(a.nodes()[v].global_rank, b.nodes()[v].global_rank);
  }
  for (std::uint32_t e = 0; e < a.link_count(); ++e) EXPECT_EQ(a.links()[e].capacity, b.links()[e].capacity);
}

TEST(generate, warns_of_nics_that_their_slots_cannot_feed) {
  tc::host_model m = tc::models::hgx_h100;
  m.nic_rate = {100e9};
  const auto f = tc::generate(cluster(m, 2));
  ASSERT_TRUE(f);
  ASSERT_EQ(f->findings.size(), 1U);
  EXPECT_EQ(f->findings[0].level, tc::severity::warning);
  EXPECT_NE(f->findings[0].what.find("63.0 GB/s"), std::string::npos) << f->findings[0].what;
}

TEST(shape_of, chooses_what_is_left_open) {
  auto o = cluster(tc::models::hgx_h100, 128);
  o.leaves = 64;
  o.oversubscription = {2};
  auto s = tc::shape_of(o);
  ASSERT_TRUE(s);
  EXPECT_TRUE(s->rail_optimised);
  EXPECT_EQ(s->pods, 8U);
  EXPECT_EQ(s->split, std::vector<std::uint32_t>(8, 16));
  EXPECT_EQ(s->spines, 8U);  // 16 cables at 2:1
  EXPECT_EQ(s->detail, tc::host_detail::fabric);

  o.leaves = 12;  // not a multiple of 8 NICs
  s = tc::shape_of(o);
  ASSERT_TRUE(s);
  EXPECT_FALSE(s->rail_optimised);
  EXPECT_EQ(s->spines, 16U);
  EXPECT_EQ(s->split[0], 11U);
  EXPECT_EQ(s->split[11], 10U);

  s = tc::shape_of(cluster(tc::models::hgx_h100, 1));
  ASSERT_TRUE(s);
  EXPECT_EQ(s->leaves, 0U);
  EXPECT_EQ(s->detail, tc::host_detail::full);
  s = tc::shape_of(cluster(tc::models::pcie, 2));
  ASSERT_TRUE(s);
  EXPECT_EQ(s->detail, tc::host_detail::full) << "PCIe is the only way between its GPUs";
}

TEST(shape_of, refuses_what_cannot_be_built) {
  const auto refused = [](auto change, const char* words) {
    auto o = cluster(tc::models::hgx_h100, 4);
    change(o);
    const auto s = tc::shape_of(o);
    ASSERT_FALSE(s) << words;
    EXPECT_NE(s.error().what.find(words), std::string::npos) << s.error().what;
  };
  refused([](auto& o) { o.nodes = 0; }, "0 hosts");
  refused([](auto& o) { o.nodes = 4000000000U; }, "more than can be generated");
  refused([](auto& o) { o.nodes = 2000000; }, "more than 33554432 nodes and links");
  refused([](auto& o) { o.leaves = 0; }, "without leaves");
  refused([](auto& o) { o.leaves = 64; }, "8 pods cannot be filled by 4 hosts");
  refused([](auto& o) { o.leaves = 7; }, "7 leaves that each serve whole hosts cannot be filled by 4 hosts");
  refused([](auto& o) { o.leaves = 7, o.rail_optimised = true; }, "leaves=7 is not a multiple");
  refused([](auto& o) { o.leaves = 16, o.pods = 1, o.rail_optimised = true; }, "need 8 leaves, not 16");
  refused([](auto& o) { o.leaves = 4, o.pods = 2; }, "has no meaning");
  refused([](auto& o) { o.pods = 0; }, "pods=0");
  refused([](auto& o) { o.pods = 2, o.spines = 0; }, "2 pods cannot reach each other");
  refused([](auto& o) { o.cores = 2; }, "there is one pod");
  refused([](auto& o) { o.cores = 2, o.pods = 2, o.spines = 3; }, "3 spines cannot be shared evenly by 2 pods");
  refused([](auto& o) { o.cores = 2, o.rail_optimised = false, o.leaves = 4; }, "number of pods is not given");
  refused([](auto& o) { o.cores = 2, o.rail_optimised = false, o.leaves = 3, o.pods = 2; },
          "3 leaves cannot be shared evenly");
  refused([](auto& o) { o.oversubscription = {0}; }, "oversubscription");
  refused([](auto& o) { o.oversubscription = tc::rational{1, 0}; }, "oversubscription");
  refused([](auto& o) { o.core_oversubscription = {-1}; }, "core_oversubscription");
  refused([](auto& o) { o.network = link_kind::nvlink; }, "nvlink");
  refused([](auto& o) { o.host.nics = 0; }, "none has a NIC");
  refused([](auto& o) { o.split = {1, 2}; }, "3 in all");
  refused([](auto& o) { o.split = {2, 2}, o.pods = 4; }, "2 groups");
  refused([](auto& o) { o.split = {4, 0}; }, "0 hosts");
  refused([](auto& o) { o.host = tc::models::pcie, o.detail = tc::host_detail::fabric; }, "through PCIe only");
  refused([](auto& o) { o.nodes = 1, o.leaves = 0, o.pods = 1; }, "without leaves");
}

TEST(generate, can_leave_rails_apart) {
  auto o = cluster(tc::models::hgx_h100, 4);
  o.spines = 0;
  const auto g = built(o);
  EXPECT_EQ(count(g, node_kind::spine), 0U);
  EXPECT_EQ(reached(g, {0}), g.node_count()) << "through the hosts";
}

TEST(planted_faults, take_away_nics_cables_and_uplinks) {
  auto o = cluster(tc::models::hgx_h100, 4);
  o.spines = 2;
  const auto healthy = built(o);
  o.faults = {fault(what::missing, {part::nic, 3, 2}), fault(what::unplugged, {part::nic, 1, 5}),
              fault(what::missing, {part::leaf_uplink, 1, 0})};
  const auto g = built(o);
  EXPECT_EQ(g.node_count(), healthy.node_count() - 2);
  // NIC: to its GPU, port, leaf; cable; uplink: one connection each, two links
  EXPECT_EQ(g.link_count(), healthy.link_count() - 2 * (3 + 1 + 1));
  EXPECT_FALSE(g.find("node3/net:mlx5_2/1"));
  const auto port = g.find("node1/net:mlx5_5/1");
  ASSERT_TRUE(port);
  ASSERT_EQ(g.out_links(*port).size(), 1U);
  EXPECT_EQ(g.at(g.out_links(*port)[0]).kind, link_kind::internal);
  EXPECT_EQ(g.out_links(*g.find("leaf:1")).size(), 4U + 1U);
  ASSERT_EQ(g.findings().size(), 3U);
  EXPECT_EQ(g.findings()[0].what, "node3/nic2 is missing");
  EXPECT_EQ(g.findings()[0].level, tc::severity::fault);
}

TEST(planted_faults, slow_both_directions_of_a_nic) {
  auto o = cluster(tc::models::hgx_h100, 4);
  tc::planted_fault f = fault(what::slow, {part::nic, 2, 5});
  f.share = {1, 2};
  o.faults = {f};
  const auto g = built(o);
  std::size_t slow = 0;
  for (const tc::topo::link& l : g.links()) {
    const bool of_nic = g.at(l.from).key == "node2/net:mlx5_5/1" || g.at(l.to).key == "node2/net:mlx5_5/1";
    if (!of_nic) {
      EXPECT_EQ(l.nominal, l.capacity);
      continue;
    }
    ++slow;
    EXPECT_DOUBLE_EQ(l.capacity.value, 25e9);
    EXPECT_DOUBLE_EQ(l.nominal->value, 50e9);
    EXPECT_EQ(l.current, l.capacity);
    EXPECT_EQ(l.reason, "planted fault");
  }
  EXPECT_EQ(slow, 4U);
}

TEST(planted_faults, slow_uplinks_and_pcie) {
  auto o = cluster(tc::models::hgx_h100, 4);
  o.pods = 2;
  o.spines = 2;
  tc::planted_fault uplink = fault(what::slow, {part::leaf_uplink, 9, 1});
  uplink.share = {1, 4};
  tc::planted_fault slot = fault(what::slow, {part::gpu, 0, 2});
  slot.share = {1, 2};
  o.faults = {uplink, slot};
  const auto g = built(o);
  std::size_t changed = 0;
  for (const tc::topo::link& l : g.links()) {
    if (l.capacity == *l.nominal) continue;
    ++changed;
    const std::string a = g.at(l.from).key, b = g.at(l.to).key;
    if (l.kind == link_kind::infiniband) {
      EXPECT_EQ(std::min(a, b) + '-' + std::max(a, b), "leaf:9-spine:1");
      EXPECT_DOUBLE_EQ(l.capacity.value, 2 * 50e9 / 2 / 4);
    } else {
      EXPECT_EQ(l.kind, link_kind::pcie);
      EXPECT_TRUE(g.at(l.from).name == "GPU 2" || g.at(l.to).name == "GPU 2");
    }
  }
  EXPECT_EQ(changed, 4U);
}

TEST(planted_faults, take_nvlinks_down) {
  auto o = cluster(tc::models::hgx_h100, 2);
  tc::planted_fault f = fault(what::nvlinks_down, {part::gpu, 1, 5});
  f.links = 9;
  o.faults = {f};
  const auto g = built(o);
  for (const tc::node_id gpu : g.all(node_kind::gpu)) {
    const bool hit = g.at(gpu).host == "node1" && g.at(gpu).index == 5U;
    EXPECT_DOUBLE_EQ(sum(g, gpu, link_kind::nvlink), hit ? 225e9 : 450e9);
  }

  auto mesh = cluster(tc::models::dgx_1v, 1);
  f.part = {part::gpu, 0, 0};
  f.links = 3;
  mesh.faults = {f};
  const auto v = built(mesh);
  double in = 0;
  for (const tc::topo::link& l : v.links())
    if (l.kind == link_kind::nvlink && v.at(l.to).name == "GPU 0") in += l.capacity.value;
  EXPECT_DOUBLE_EQ(sum(v, v.all(node_kind::gpu)[0], link_kind::nvlink), 75e9);
  EXPECT_DOUBLE_EQ(in, 75e9);

  f.links = 6;  // all of them: dead links stay visible
  mesh.faults = {f};
  const auto dead = built(mesh);
  EXPECT_EQ(dead.link_count(), v.link_count());
  EXPECT_EQ(sum(dead, dead.all(node_kind::gpu)[0], link_kind::nvlink), 0);
}

TEST(planted_faults, take_away_whole_hosts_and_switches) {
  auto o = cluster(tc::models::dgx_a100, 3);
  o.pods = 3;
  o.spines = 2;
  o.faults = {fault(what::missing, {part::host, 1, 0}), fault(what::missing, {part::spine, 0, 0}),
              fault(what::missing, {part::leaf, 0, 0}), fault(what::missing, {part::gpu, 2, 7})};
  const auto g = built(o);
  EXPECT_EQ(count(g, node_kind::gpu), 15U);
  EXPECT_EQ(count(g, node_kind::spine), 1U);
  EXPECT_EQ(count(g, node_kind::leaf), 23U);
  for (const tc::topo::node& n : g.nodes()) EXPECT_NE(n.host, "node1");
}

TEST(planted_faults, must_be_of_parts_that_are_there) {
  const auto refused = [](const tc::planted_fault& f, const char* words) {
    auto o = cluster(tc::models::hgx_h100, 4);
    o.spines = 2;
    o.faults = {f};
    const auto r = tc::generate(o);
    ASSERT_FALSE(r) << words;
    EXPECT_NE(r.error().what.find(words), std::string::npos) << r.error().what;
  };
  refused(fault(what::missing, {part::host, 4, 0}), "no node4");
  refused(fault(what::missing, {part::nic, 0, 8}), "no node0/nic8");
  refused(fault(what::missing, {part::gpu, 0, 8}), "no node0/gpu8");
  refused(fault(what::missing, {part::leaf_uplink, 8, 0}), "no leaf8/spine0");
  refused(fault(what::missing, {part::core, 0, 0}), "no core0");
  refused(fault(what::unplugged, {part::gpu, 0, 0}), "no cable");
  refused(fault(what::slow, {part::host, 0, 0}), "as a whole");
  refused(fault(what::slow, {part::nic, 0, 0}), "share between 0 and 1");
  refused(fault(what::nvlinks_down, {part::gpu, 0, 0}), "0 NVLinks down");
  auto too_many = fault(what::nvlinks_down, {part::gpu, 0, 0});
  too_many.links = 19;
  refused(too_many, "19 NVLinks down: it has 18");
}

TEST(with_faults, draws_as_many_as_asked_at_different_places) {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 17U}) {
    SCOPED_TRACE(seed);
    auto o = cluster(tc::models::hgx_h100, 4);
    o.pods = 2;
    const auto a = tc::with_faults(o, 20, seed);
    const auto b = tc::with_faults(o, 20, seed);
    ASSERT_TRUE(a);
    ASSERT_TRUE(b);
    EXPECT_EQ(a->faults, b->faults);
    ASSERT_EQ(a->faults.size(), 20U);
    std::set<std::string> places;
    for (const tc::planted_fault& f : a->faults) places.insert(to_string(f.part));
    EXPECT_EQ(places.size(), 20U);
    const auto f = tc::generate(*a);
    ASSERT_TRUE(f) << f.error().message();
    EXPECT_EQ(f->findings.size(), 20U);
  }
  const auto one = tc::with_faults(cluster(tc::models::hgx_h100, 4), 8, 1);
  const auto two = tc::with_faults(cluster(tc::models::hgx_h100, 4), 8, 2);
  EXPECT_NE(one->faults, two->faults);
}

TEST(with_faults, refuses_more_than_there_are_places) {
  EXPECT_TRUE(tc::with_faults(cluster(tc::models::hgx_h100, 1), 16, 1));  // 8 NICs, 8 GPUs
  EXPECT_FALSE(tc::with_faults(cluster(tc::models::hgx_h100, 1), 17, 1));
  EXPECT_FALSE(tc::with_faults(cluster(tc::models::hgx_h100, 1000), 5000, 1));
  EXPECT_FALSE(tc::with_faults(cluster(tc::models::hgx_h100, 0), 1, 1));
}

namespace {
std::vector<std::string> sequence(const tc::topo::graph& g, const std::vector<tc::node_id>& ranks) {
  std::vector<std::string> out;
  for (const tc::node_id v : ranks) out.push_back(g.at(v).host.substr(4) + '.' + std::to_string(*g.at(v).index));
  return out;
}
}  // namespace

TEST(ranks_in_order, lays_ranks_as_asked) {
  auto o = cluster(tc::models::hgx_h100, 4);
  o.host.gpus = 2;
  o.host.nics = 2;
  o.pods = 2;  // hosts 0 and 1, hosts 2 and 3
  const auto g = built(o);
  using kind = tc::rank_order::kind_t;
  EXPECT_EQ(sequence(g, tc::ranks_in_order(g, {kind::packed})),
            (std::vector<std::string>{"0.0", "0.1", "1.0", "1.1", "2.0", "2.1", "3.0", "3.1"}));
  EXPECT_EQ(sequence(g, tc::ranks_in_order(g, {kind::scattered})),
            (std::vector<std::string>{"0.0", "0.1", "2.0", "2.1", "1.0", "1.1", "3.0", "3.1"}));
  EXPECT_EQ(sequence(g, tc::ranks_in_order(g, {kind::round_robin})),
            (std::vector<std::string>{"0.0", "1.0", "2.0", "3.0", "0.1", "1.1", "2.1", "3.1"}));
  EXPECT_EQ(sequence(g, tc::ranks_in_order(g)), sequence(g, tc::ranks_in_order(g, {kind::packed})));
}

TEST(ranks_in_order, is_a_permutation_that_a_seed_decides) {
  auto o = cluster(tc::models::dgx_a100, 17);
  o.leaves = 3;
  const auto g = built(o);
  const auto gpus = g.all(node_kind::gpu);
  using kind = tc::rank_order::kind_t;
  for (const tc::rank_order order : {tc::rank_order{kind::packed},
                                     {kind::scattered},
                                     {kind::round_robin},
                                     {kind::shuffled, 1},
                                     {kind::shuffled, 2}}) {
    auto ranks = tc::ranks_in_order(g, order);
    std::sort(ranks.begin(), ranks.end());
    EXPECT_EQ(ranks, gpus);
  }
  EXPECT_EQ(tc::ranks_in_order(g, {kind::shuffled, 1}), tc::ranks_in_order(g, {kind::shuffled, 1}));
  EXPECT_NE(tc::ranks_in_order(g, {kind::shuffled, 1}), tc::ranks_in_order(g, {kind::shuffled, 2}));
}

TEST(ranks_in_order, agrees_with_the_ranks_that_generate_writes) {
  using kind = tc::rank_order::kind_t;
  for (const tc::rank_order order :
       {tc::rank_order{kind::packed}, {kind::scattered}, {kind::round_robin}, {kind::shuffled, 5}})
    for (const std::uint32_t pods : {1U, 2U, 3U}) {
      auto o = cluster(tc::models::hgx_h100, 7);
      o.pods = pods;
      o.order = order;
      const auto g = built(o);
      EXPECT_EQ(tc::ranks_in_order(g), tc::ranks_in_order(g, order)) << static_cast<int>(order.kind) << ' ' << pods;
    }
}

TEST(ranks_in_order, has_no_gaps_where_gpus_are_missing) {
  auto o = cluster(tc::models::hgx_h100, 3);
  o.order = tc::rank_order{tc::rank_order::kind_t::round_robin};
  o.faults = {fault(what::missing, {part::gpu, 1, 3})};
  const auto g = built(o);
  const auto ranks = tc::ranks_in_order(g);
  ASSERT_EQ(ranks.size(), 23U);
  for (std::uint32_t r = 0; r < 23; ++r) EXPECT_EQ(g.at(ranks[r]).global_rank, r);
  EXPECT_EQ(*g.at(ranks[1]).index, 0U);
}

TEST(ranks_in_order, works_on_graphs_from_elsewhere) {
  tc::topo::fragment f;  // GPUs of two hosts in turn, without indices, no network
  for (const char* key : {"b/pci:0000:01:00.0", "a/pci:0000:01:00.0", "b/pci:0000:02:00.0", "a/pci:0000:02:00.0"}) {
    tc::topo::node n;
    n.kind = node_kind::gpu;
    n.key = key;
    n.host = n.key.substr(0, 1);
    f.add(n);
  }
  const auto g = tc::topo::graph::from(std::move(f));
  ASSERT_TRUE(g);
  EXPECT_EQ(tc::ranks_in_order(*g), (std::vector<tc::node_id>{{0}, {2}, {1}, {3}}));
  EXPECT_TRUE(tc::ranks_in_order(tc::topo::graph{}).empty());

  tc::topo::fragment h;  // one host that lists its GPUs out of order, one of them without an index
  for (const std::uint32_t index : {2U, 9U, 0U, 1U}) {
    tc::topo::node n;
    n.kind = node_kind::gpu;
    n.key = "a/gpu:" + std::to_string(index);
    n.host = "a";
    if (index != 9) n.index = index;
    h.add(n);
  }
  const auto one = tc::topo::graph::from(std::move(h));
  ASSERT_TRUE(one);
  EXPECT_EQ(tc::ranks_in_order(*one), (std::vector<tc::node_id>{{2}, {3}, {0}, {1}}));
}

// 32,768 GPUs. The limit is two orders of magnitude above what an idle machine needs; it catches quadratic behaviour.
TEST(generate, of_4096_hosts_takes_seconds_at_most) {
  auto o = cluster(tc::models::hgx_h100, 4096);
  o.leaves = 2048;
  o.oversubscription = {2};
  const auto before = tc::steady_clock::now();
  const auto g = built(o);
  const auto took = tc::steady_clock::now() - before;
  EXPECT_EQ(count(g, node_kind::gpu), 32768U);
  EXPECT_EQ(count(g, node_kind::leaf), 2048U);
  EXPECT_EQ(g.at(g.all(node_kind::leaf).back()).facts[0].second, "255");
  EXPECT_LT(took.value, 20.0);
}
