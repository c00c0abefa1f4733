// SPDX-License-Identifier: Apache-2.0
// What real readers tell of one machine or cluster, merged: every device once, every cable where it belongs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/generate.hpp>
#include <topocoll/discover/hwloc_xml.hpp>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/discover/matrix_graph.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/topo/matrix.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/paths.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::fragment;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

template <class T>
T must(tc::result<T> r) {
  EXPECT_TRUE(r) << (r ? "" : r.error().message());
  return r ? std::move(*r) : T{};
}
tc::topo::graph merged(const std::vector<fragment>& parts) {
  auto joined = must(tc::topo::merge(parts));
  std::vector<fragment> turned(parts.rbegin(), parts.rend());
  const auto again = must(tc::topo::merge(turned));
  EXPECT_EQ(joined.nodes.size(), again.nodes.size());
  for (std::size_t i = 0; i < joined.nodes.size() && i < again.nodes.size(); ++i)
    EXPECT_EQ(joined.nodes[i].key, again.nodes[i].key) << "the order of the sources matters";
  EXPECT_EQ(joined.links.size(), again.links.size());
  EXPECT_EQ(joined.findings.size(), again.findings.size());
  return must(tc::topo::graph::from(std::move(joined)));
}
std::vector<std::string> contradictions(const tc::topo::graph& g) {
  std::vector<std::string> told;
  for (const tc::finding& f : g.findings())
    if (f.what.rfind("sources disagree", 0) == 0) told.push_back(f.what + ": " + f.evidence);
  return told;
}
bool tells(const tc::topo::graph& g, const std::string& words) {
  return std::any_of(g.findings().begin(), g.findings().end(), [&](const tc::finding& f) {
    return (f.what + ": " + f.evidence).find(words) != std::string::npos;
  });
}
/// Keys of the nodes at the other ends of links of one kind.
std::vector<std::string> neighbours(const tc::topo::graph& g, const std::string& key, link_kind kind) {
  std::vector<std::string> found;
  const auto v = g.find(key);
  EXPECT_TRUE(v) << key;
  if (!v) return found;
  for (const tc::link_id e : g.out_links(*v))
    if (g.at(e).kind == kind) found.push_back(g.at(g.head(e)).key);
  std::sort(found.begin(), found.end());
  return found;
}
/// Every PCIe function that a processor reaches has one link that leads nearer to a processor.
void expect_one_parent(const tc::topo::graph& g) {
  std::vector<std::uint32_t> depth(g.node_count(), UINT32_MAX), queue;
  for (const tc::node_id v : g.all(node_kind::cpu)) {
    depth[v.value] = 0;
    queue.push_back(v.value);
  }
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const tc::link_id e : g.out_links({queue[i]}))
      if (g.at(e).kind == link_kind::pcie && depth[g.head(e).value] == UINT32_MAX) {
        depth[g.head(e).value] = depth[queue[i]] + 1;
        queue.push_back(g.head(e).value);
      }
  for (const std::uint32_t v : queue) {
    if (depth[v] == 0) continue;
    int up = 0;
    for (const tc::link_id e : g.out_links({v}))
      up += g.at(e).kind == link_kind::pcie && depth[g.head(e).value] < depth[v];
    EXPECT_EQ(up, 1) << g.at(tc::node_id{v}).key;
  }
}
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A host of two domains, each with a PCIe switch above one GPU and one InfiniBand adapter. GUIDs end in `number`, rail and
// 0 for the adapter or 1 for its port.
std::string recording(const std::string& host, char number) {
  std::string t =
      "# topocoll recording 1\n" + (host.empty() ? "" : "# host " + host + "\n") +
      "/proc/cpuinfo\tprocessor\\t: 0\\nvendor_id\\t: GenuineIntel\\ncpu family\\t: 6\\nmodel\\t\\t: 143\\n\\n\n";
  for (const char rail : {'0', '1'}) {
    const std::string bus(1, rail == '0' ? '1' : '8');
    const std::string root = "pci0000:" + bus + "0/0000:" + bus + "0:01.0";
    const std::string up = root + "/0000:" + bus + "1:00.0";
    const std::string gpu_port = up + "/0000:" + bus + "2:00.0", nic_port = up + "/0000:" + bus + "2:01.0";
    const std::string gpu = gpu_port + "/0000:" + bus + "3:00.0", nic = nic_port + "/0000:" + bus + "4:00.0";
    const auto function = [&](const std::string& path, const std::string& code, const std::string& vendor) {
      t += "/sys/bus/pci/devices/" + path.substr(path.rfind('/') + 1) + "\t-> ../../../devices/" + path + "\n";
      const std::string at = "/sys/devices/" + path + "/";
      t += at + "class\t" + code + "\\n\n" + at + "vendor\t" + vendor + "\\n\n" + at + "numa_node\t" + rail + "\\n\n";
      for (const char* which : {"current", "max"})
        t += at + which + "_link_speed\t32.0 GT/s PCIe\\n\n" + at + which + "_link_width\t16\\n\n";
    };
    for (const std::string& bridge : {root, up, gpu_port, nic_port}) function(bridge, "0x060400", "0x1000");
    function(gpu, "0x030200", "0x10de");
    function(nic, "0x020700", "0x15b3");
    const std::string rdma = std::string("infiniband/mlx5_") + rail;
    t += "/sys/class/" + rdma + "\t-> ../../devices/" + nic + "/" + rdma + "\n";
    const std::string at = "/sys/devices/" + nic + "/" + rdma + "/";
    const std::string guid = std::string("0200:0000:0000:0") + number + rail;
    t += at + "node_guid\t" + guid + "0\\n\n" + at + "hca_type\tMT4129\\n\n" + at +
         "ports/1/link_layer\tInfiniBand\\n\n" + at + "ports/1/state\t4: ACTIVE\\n\n" + at +
         "ports/1/phys_state\t5: LinkUp\\n\n" + at + "ports/1/rate\t400 Gb/sec (4X NDR)\\n\n" + at +
         "ports/1/gids/0\tfe80:0000:0000:0000:" + guid + "1\\n\n";
    t += std::string("/sys/devices/system/node/node") + rail + "/cpulist\t" + (rail == '0' ? "0-31" : "32-63") +
         "\\n\n" + "/sys/devices/system/node/node" + rail + "/distance\t10 21\\n\n";
  }
  return t + "/sys/devices/system/cpu/online\t0-63\\n\n";
}
fragment recorded(const std::string& host, char number) {
  return must(tc::fragment_of_recording(recording(host, number), "host " + std::string(1, number), {}));
}

struct cabled {
  std::string description;  ///< of the adapter
  char number, rail;        ///< in its GUIDs
  int leaf;
};
// Two leaves and a spine in the dialect of ibnetdiscover.
std::string fabric(const std::vector<cabled>& adapters) {
  const std::string leaf[] = {"0a10000000000000", "0a10000000000100"}, spine = "0a20000000000000";
  const auto guid = [](const cabled& a) { return std::string("20000000000") + "0" + a.number + a.rail; };
  std::string t = "#\n# Topology file: generated on Thu Jan  1 00:00:00 1970\n#\n";
  const auto begin = [&](const std::string& id, const std::string& name) {
    t += "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x" + id.substr(1) + "\nswitchguid=0x" + id.substr(1) + "(" +
         id.substr(1) + ")\nSwitch\t64 \"S-" + id + "\"\t\t# \"" + name + "\" enhanced port 0 lid 1 lmc 0\n";
  };
  const auto place = [&](std::size_t i) { return std::to_string(i + 1); };
  for (const int l : {0, 1}) {
    begin(leaf[l], "leaf" + std::to_string(l));
    for (std::size_t i = 0; i < adapters.size(); ++i)
      if (adapters[i].leaf == l)
        t += "[" + place(i) + "]\t\"H-0" + guid(adapters[i]) + "0\"[1](" + guid(adapters[i]) + "1) \t\t# \"" +
             adapters[i].description + "\" lid 7 4xNDR\n";
    t += "[64]\t\"S-" + spine + "\"[" + std::to_string(l + 1) + "]\t\t# \"spine\" lid 3 4xNDR\n";
  }
  begin(spine, "spine");
  for (const int l : {0, 1})
    t += "[" + std::to_string(l + 1) + "]\t\"S-" + leaf[l] + "\"[64]\t\t# \"leaf\" lid 1 4xNDR\n";
  for (std::size_t i = 0; i < adapters.size(); ++i)
    t += "\nvendid=0x2c9\ndevid=0x1021\ncaguid=0x" + guid(adapters[i]) + "0\nCa\t1 \"H-0" + guid(adapters[i]) +
         "0\"\t\t# \"" + adapters[i].description + "\"\n[1](" + guid(adapters[i]) + "1) \t\"S-" +
         leaf[adapters[i].leaf] + "\"[" + place(i) + "]\t\t# lid 7 lmc 0 \"leaf\" lid 1 4xNDR\n";
  return t;
}
fragment discovered(const std::vector<cabled>& adapters) {
  return must(tc::fragment_of(must(tc::read::parse_ibnetdiscover(fabric(adapters), "fabric")), {}, "fabric"));
}
const std::string leaf0 = "switch:0x0a10000000000000", leaf1 = "switch:0x0a10000000000100";

}  // namespace

TEST(merge_sources, make_one_cluster_of_a_fabric_and_what_its_hosts_tell) {
  // nodeB has its cables swapped; nodeC was not recorded.
  const fragment ib = discovered({{"nodeA mlx5_0", 'a', '0', 0},
                                  {"nodeA mlx5_1", 'a', '1', 1},
                                  {"nodeB mlx5_0", 'b', '0', 1},
                                  {"nodeB mlx5_1", 'b', '1', 0},
                                  {"nodeC mlx5_0", 'c', '0', 0},
                                  {"nodeC mlx5_1", 'c', '1', 1}});
  const auto g = merged({ib, recorded("nodeA", 'a'), recorded("nodeB", 'b')});
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.hosts, 3U);
  EXPECT_EQ(s.gpus, 4U);
  EXPECT_EQ(s.nics, 6U);
  EXPECT_EQ(g.all(node_kind::nic_port).size(), 6U);
  EXPECT_EQ(neighbours(g, "nodeA/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{leaf0});
  EXPECT_EQ(neighbours(g, "nodeA/net:mlx5_1/1", link_kind::infiniband), std::vector<std::string>{leaf1});
  EXPECT_EQ(neighbours(g, "nodeB/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{leaf1});
  EXPECT_EQ(neighbours(g, "nodeB/net:mlx5_1/1", link_kind::infiniband), std::vector<std::string>{leaf0});
  EXPECT_EQ(neighbours(g, "nodeC/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{leaf0});
  EXPECT_EQ(neighbours(g, "nodeB/pci:0000:14:00.0", link_kind::internal),
            std::vector<std::string>{"nodeB/net:mlx5_0/1"});
  EXPECT_EQ(contradictions(g), std::vector<std::string>{});
  const auto way = tc::topo::shortest_widest(g, *g.find("nodeA/pci:0000:13:00.0"), *g.find("nodeB/pci:0000:83:00.0"));
  ASSERT_TRUE(way);
}

TEST(merge_sources, take_hosts_for_one_by_their_adapters) {
  const std::vector<cabled> full{{"nodeA.example.com HCA-1", 'a', '0', 0},
                                 {"nodeA.example.com HCA-2", 'a', '1', 1},
                                 {"MT4129 ConnectX7   Mellanox Technologies", 'b', '0', 0},
                                 {"MT4129 ConnectX7   Mellanox Technologies", 'b', '1', 1},
                                 {"login mlx5_0", 'd', '0', 0}};
  const auto g = merged({discovered(full), recorded("nodeA", 'a'), recorded("", 'b')});
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.hosts, 3U) << "nodeA, the one without a name, and login";
  EXPECT_EQ(s.nics, 5U);
  EXPECT_TRUE(g.find("nodeA/net:mlx5_1/1"));
  EXPECT_TRUE(g.find("localhost/net:mlx5_1/1"));
  EXPECT_EQ(neighbours(g, "localhost/net:mlx5_1/1", link_kind::infiniband), std::vector<std::string>{leaf1});
  EXPECT_TRUE(tells(g, "other names in other sources"));
  EXPECT_EQ(contradictions(g), std::vector<std::string>{});

  // The fabric knows the name that the recording lacks; recordings of two such hosts are kept apart.
  const auto two = merged({discovered({{"nodeA mlx5_0", 'a', '0', 0}, {"nodeB mlx5_0", 'b', '0', 1}}),
                           recorded("", 'a'), recorded("", 'b')});
  EXPECT_EQ(tc::topo::summarize(two).hosts, 2U);
  EXPECT_EQ(tc::topo::summarize(two).nics, 4U);
  EXPECT_EQ(neighbours(two, "nodeB/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{leaf1});
  EXPECT_TRUE(neighbours(two, "nodeB/net:mlx5_1/1", link_kind::infiniband).empty());
}

TEST(merge_sources, believe_guids_where_descriptions_name_the_wrong_host) {
  // Somebody gave nodeA's adapters nodeB's description and the other way round.
  const auto swapped = merged({discovered({{"nodeB mlx5_0", 'a', '0', 0}, {"nodeA mlx5_0", 'b', '0', 1}}),
                               recorded("nodeA", 'a'), recorded("nodeB", 'b')});
  EXPECT_EQ(tc::topo::summarize(swapped).hosts, 2U);
  EXPECT_EQ(tc::topo::summarize(swapped).nics, 4U);
  EXPECT_EQ(neighbours(swapped, "nodeA/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{leaf0});
  EXPECT_EQ(neighbours(swapped, "nodeB/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{leaf1});

  // One adapter of nodeA is described as nodeB's: the hosts are not renamed, but the cable is where its GUID is.
  const auto one =
      merged({discovered({{"nodeA mlx5_0", 'a', '0', 0}, {"nodeB mlx5_3", 'a', '1', 1}, {"nodeB mlx5_0", 'b', '0', 1}}),
              recorded("nodeA", 'a'), recorded("nodeB", 'b')});
  EXPECT_EQ(tc::topo::summarize(one).hosts, 2U);
  EXPECT_EQ(tc::topo::summarize(one).nics, 4U);
  EXPECT_EQ(neighbours(one, "nodeA/net:mlx5_1/1", link_kind::infiniband), std::vector<std::string>{leaf1});
  EXPECT_TRUE(tells(one, "the devices of host 'nodeB' are in several hosts of other sources"));
}

TEST(merge_sources, give_cables_of_slurm_to_the_ports_of_hosts) {
  std::vector<fragment> parts;
  for (const char* host : {"node0", "node1", "node2"})
    parts.push_back(must(tc::single_host(tc::models::dgx_a100, host, tc::host_detail::full)));
  std::string conf;
  for (int r = 0; r < 8; ++r) conf += "SwitchName=rail" + std::to_string(r) + " Nodes=node[0-3]\n";
  conf += "SwitchName=top Switches=rail[0-7]\n";
  parts.push_back(
      must(tc::fragment_of(must(tc::read::parse_slurm_topology(conf, "topology.conf")), {}, "topology.conf")));
  const auto g = merged(parts);
  const auto s = tc::topo::summarize(g);
  EXPECT_EQ(s.hosts, 4U);
  EXPECT_EQ(s.nics, 3U * 8 + 8) << "node3 is known by name only";
  EXPECT_TRUE(g.find("node3/net:?/1"));
  EXPECT_FALSE(g.find("node0/net:?/1"));
  for (const tc::node_id port : g.all(node_kind::nic_port)) {
    const auto far = neighbours(g, g.at(port).key, link_kind::infiniband);
    ASSERT_EQ(far.size(), 1U) << g.at(port).key;
    if (g.at(port).host == "node3") continue;
    EXPECT_EQ(far[0], "switch:rail" + g.at(port).key.substr(15, 1)) << g.at(port).key;
  }
  EXPECT_EQ(contradictions(g), std::vector<std::string>{});
  EXPECT_TRUE(tells(g, "cables are given to ports in the order of their names"));
}

TEST(merge_sources, find_the_hosts_of_ports_that_a_scheduler_knows_by_guid) {
  const std::string conf =
      "SwitchName=x Nodes=0x200000000000a01,0x200000000000a11\nSwitchName=y Nodes=0x200000000000b01,0x200000000000c01\n"
      "SwitchName=top Switches=x,y\n";
  const fragment slurm = must(tc::fragment_of(must(tc::read::parse_slurm_topology(conf, "t")), {}, "t"));
  ASSERT_EQ(std::count_if(slurm.nodes.begin(), slurm.nodes.end(),
                          [](const auto& n) { return n.key.rfind("port:0x", 0) == 0; }),
            4);
  const auto g = merged({slurm, recorded("nodeA", 'a'), recorded("nodeB", 'b')});
  EXPECT_EQ(tc::topo::summarize(g).hosts, 2U);
  EXPECT_EQ(tc::topo::summarize(g).nics, 5U) << "two of each host, and the one of the port that no host has";
  EXPECT_EQ(neighbours(g, "nodeA/net:mlx5_1/1", link_kind::infiniband), std::vector<std::string>{"switch:x"});
  EXPECT_EQ(neighbours(g, "nodeB/net:mlx5_0/1", link_kind::infiniband), std::vector<std::string>{"switch:y"});
  EXPECT_EQ(contradictions(g), std::vector<std::string>{});
}

// Two sockets; GPUs and adapters below switches; NVSwitch.
const std::string nccl_text = R"(<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:15:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
        <pci busid="0000:18:00.0" class="0x030200" vendor="0x10de" link_speed="32.0 GT/s PCIe" link_width="16">
          <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:05:00.0" count="18" tclass="0x068000"/></gpu></pci>
        <pci busid="0000:19:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
          <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" gdr="1"/></nic></pci>
      </pci>
      <pci busid="0000:27:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
        <pci busid="0000:28:00.0" class="0x030200" vendor="0x10de" link_speed="32.0 GT/s PCIe" link_width="16">
          <gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:05:00.0" count="18" tclass="0x068000"/></gpu></pci>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:98:00.0" class="0x030200" vendor="0x10de" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="90" rank="2" gdr="1"><nvlink target="0000:05:00.0" count="18" tclass="0x068000"/></gpu></pci>
    <pci busid="0000:99:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_1" dev="1" speed="400000" port="1" guid="0x2" gdr="1"/></nic></pci>
  </cpu>
</system>
)";

namespace {

fragment nccl_of(const std::string& text) {
  const auto root = must(tc::io::parse_xml(text, "nccl"));
  return must(tc::fragment_of(must(tc::read::nccl_topology_of(root, "nccl")), "box", "nccl"));
}
/// What nvidia-smi topo -m would print for a graph.
fragment matrix_of(const tc::topo::graph& g) {
  const std::string text = must(tc::topo::matrix_text(g));
  return must(tc::fragment_of(must(tc::read::parse_nvidia_smi_topo(text, "matrix")),
                              tc::discover_options{.host = "box"}, "matrix"));
}
/// What NVML would tell of the GPUs of a graph, and nvidia-smi nvlink, which only numbers them.
fragment nvml_of(const tc::topo::graph& g, bool numbers) {
  fragment f;
  f.source = numbers ? "numbers" : "nvml";
  for (const tc::node_id v : g.all(node_kind::gpu)) {
    tc::topo::node n;
    n.kind = node_kind::gpu;
    n.host = g.at(v).host;
    n.key = numbers ? n.host + "/gpu:" + std::to_string(g.at(v).index.value_or(0)) : g.at(v).key;
    n.index = g.at(v).index;
    n.facts = {{numbers ? "model" : "driver", "x"}, {"uuid", "GPU-" + std::to_string(v.value)}};
    f.add(std::move(n));
  }
  return f;
}
/// The nodes and links of `a` must be those of `b`; nodes may have more facts.
void expect_same(const tc::topo::graph& a, const tc::topo::graph& b) {
  std::vector<std::string> x, y;
  for (const auto& [g, all] : {std::pair(&a, &x), std::pair(&b, &y)}) {
    for (const tc::topo::node& n : g->nodes()) all->push_back(n.key + " " + to_string(n.kind));
    for (const tc::topo::link& l : g->links())
      all->push_back(g->at(l.from).key + " > " + g->at(l.to).key + " " + to_string(l.kind) + " " +
                     std::to_string(l.capacity.value) + " " + std::to_string(l.lanes));
    std::sort(all->begin(), all->end());
  }
  std::vector<std::string> only_x, only_y;
  std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(only_x));
  std::set_difference(y.begin(), y.end(), x.begin(), x.end(), std::back_inserter(only_y));
  EXPECT_EQ(only_x, std::vector<std::string>{});
  EXPECT_EQ(only_y, std::vector<std::string>{});
}

}  // namespace

TEST(merge_sources, of_one_box_are_the_best_of_them_and_facts_of_the_others) {
  const fragment nccl = nccl_of(nccl_text);
  const auto alone = must(tc::topo::graph::from(nccl));
  const auto g = merged({matrix_of(alone), nvml_of(alone, false), nvml_of(alone, true), nccl});
  expect_same(g, alone);
  expect_one_parent(g);
  EXPECT_EQ(must(tc::topo::matrix_text(g)), must(tc::topo::matrix_text(alone)));
  EXPECT_EQ(contradictions(g), std::vector<std::string>{});
  const tc::topo::node& gpu = g.at(*g.find("box/pci:0000:18:00.0"));
  std::string names;
  for (const auto& fact : gpu.facts) names += fact.first + " ";
  for (const char* name : {"driver", "model", "uuid", "cpu_affinity"})
    EXPECT_NE(names.find(name), std::string::npos) << names;
  const auto numbered = merged({matrix_of(alone), nccl});
  expect_same(numbered, alone);
  EXPECT_TRUE(tells(numbered, "GPUs are matched by number"));
}

TEST(merge_sources, have_one_parent_where_they_leave_out_different_switches) {
  // NCCL's file names the downstream ports, leaves out a switch, or hangs a GPU at the other processor.
  const fragment kernel = recorded("box", 'a');
  const auto alone = must(tc::topo::graph::from(kernel));
  const std::string gpu =
      R"( class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90"/></pci>)";
  const std::string bridge = R"( class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">)";
  const std::string cpu = R"(<cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">)";
  const auto file = [&](const std::string& inside) { return "<system version=\"1\">" + inside + "</system>"; };
  const std::string same =
      file(cpu + "<pci busid=\"0000:11:00.0\"" + bridge + "<pci busid=\"0000:13:00.0\"" + gpu + "</pci></cpu>");
  const std::string ports = file(cpu + "<pci busid=\"0000:11:00.0\"" + bridge + "<pci busid=\"0000:12:00.0\"" + bridge +
                                 "<pci busid=\"0000:13:00.0\"" + gpu + "</pci></pci></cpu>");
  const std::string none = file(cpu + "<pci busid=\"0000:13:00.0\"" + gpu + "</cpu>");
  const std::string wrong = file(R"(<cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">)"
                                 "<pci busid=\"0000:13:00.0\"" +
                                 gpu + "</cpu>");
  const auto with = [&](const std::string& text) { return merged({kernel, nccl_of(text)}); };
  expect_same(with(same), alone);
  expect_same(with(none), alone);
  EXPECT_EQ(contradictions(with(none)), std::vector<std::string>{}) << "to leave out a switch is not to deny it";
  const auto deeper = with(ports);
  expect_one_parent(deeper);
  EXPECT_EQ(neighbours(deeper, "box/pci:0000:13:00.0", link_kind::pcie),
            std::vector<std::string>{"box/pci:0000:12:00.0"});
  EXPECT_EQ(neighbours(deeper, "box/pci:0000:14:00.0", link_kind::pcie),
            std::vector<std::string>{"box/pci:0000:11:00.0"});
  EXPECT_EQ(contradictions(deeper), std::vector<std::string>{});
  const auto denied = with(wrong);
  expect_one_parent(denied);
  EXPECT_EQ(neighbours(denied, "box/pci:0000:13:00.0", link_kind::pcie),
            std::vector<std::string>{"box/pci:0000:11:00.0"});
  ASSERT_EQ(contradictions(denied).size(), 2U);
  EXPECT_EQ(contradictions(denied)[0],
            "sources disagree on what stands above 'box/pci:0000:13:00.0': sysfs host a: "
            "'box/pci:0000:11:00.0'; nccl-xml nccl: 'box/numa:1'");
  EXPECT_NE(contradictions(denied)[1].find("NUMA domain"), std::string::npos);
}

TEST(merge_sources, keep_gpus_apart_that_cannot_be_told_to_be_the_same) {
  const auto alone = must(tc::topo::graph::from(nccl_of(nccl_text)));
  fragment container = nvml_of(alone, true);
  container.nodes.pop_back();
  for (auto& n : container.nodes) std::erase_if(n.facts, [](const auto& fact) { return fact.first == "uuid"; });
  const auto g = merged({container, nccl_of(nccl_text)});
  EXPECT_EQ(g.all(node_kind::gpu).size(), 5U);
  EXPECT_TRUE(tells(g, "numbers has 2, nccl-xml nccl has 3"));
}

TEST(merge_sources, of_captured_boxes_keep_the_graph_of_nccl) {
  const char* corpus = std::getenv("TOPOCOLL_CORPUS");
  const fs::path folder = fs::path(corpus ? corpus : "") / "corpus/nccl-xml";
  if (corpus == nullptr || !fs::is_directory(folder))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nccl-xml";
  int read = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const auto root = tc::io::parse_xml(text_of(entry.path()), "nccl");
    if (!root) continue;
    const auto topology = tc::read::nccl_topology_of(*root, "nccl");
    if (!topology) continue;
    const fragment nccl = must(tc::fragment_of(*topology, "box", "nccl"));
    const auto alone = must(tc::topo::graph::from(nccl));
    const auto text = tc::topo::matrix_text(alone);
    // Where NCCL numbers no GPUs or names no ports, nothing tells which is which.
    const bool told = std::all_of(alone.nodes().begin(), alone.nodes().end(), [](const tc::topo::node& n) {
      return n.kind == node_kind::gpu ? n.index.has_value()
                                      : n.kind != node_kind::nic_port || n.key.find(':') == n.key.rfind(':');
    });
    if (!text || !told || alone.all(node_kind::gpu).empty()) continue;
    const auto matrix = tc::read::parse_nvidia_smi_topo(*text, "matrix");
    if (!matrix) continue;
    const auto g = merged({must(tc::fragment_of(*matrix, tc::discover_options{.host = "box"}, "matrix")), nccl});
    expect_same(g, alone);
    EXPECT_EQ(must(tc::topo::matrix_text(g)), *text);
    ++read;
  }
  EXPECT_GT(read, 20);
}

TEST(merge_sources, hwloc_and_the_kernel_tell_one_captured_box) {
  const char* corpus = std::getenv("TOPOCOLL_CORPUS");
  const fs::path folder = fs::path(corpus ? corpus : "") / "corpus";
  if (corpus == nullptr || !fs::is_directory(folder / "other"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/other";
  const fragment kernel = must(
      tc::fragment_of_recording(text_of(folder / "other/sysfs_skylake_2x2numa_pci_locality.flat.txt"), "sysfs", {}));
  const auto root = must(tc::io::parse_xml(text_of(folder / "hwloc-xml/hwloc_40intel64_pcilocality.xml"), "hwloc"));
  const fragment hwloc =
      must(tc::fragment_of(must(tc::read::hwloc_topology_of(root, "hwloc")), tc::discover_options{}, "hwloc"));
  const auto alone = must(tc::topo::graph::from(kernel));
  const auto g = merged({kernel, hwloc});
  const auto s = tc::topo::summarize(g), was = tc::topo::summarize(alone);
  EXPECT_EQ(s.hosts, 1U);
  EXPECT_EQ(s.gpus, was.gpus);
  EXPECT_EQ(s.nics, was.nics);
  EXPECT_EQ(g.all(node_kind::nic_port).size(), alone.all(node_kind::nic_port).size());
  for (const tc::topo::node& n : alone.nodes()) EXPECT_TRUE(g.find(n.key)) << n.key;
  expect_one_parent(g);
  // The kernel tells the NUMA domain of this adapter, hwloc only guesses it.
  EXPECT_EQ(neighbours(g, "localhost/pci:0000:43:00.0", link_kind::pcie), std::vector<std::string>{"localhost/numa:2"});
  EXPECT_EQ(contradictions(g), std::vector<std::string>{});
}
