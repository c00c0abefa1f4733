// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/integrate/rank_order.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/traffic.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using names = std::vector<std::string>;

topo::graph described(const std::string& spec) { return topo::graph::from(describe(spec).value()).value(); }
topo::graph slurm(const std::string& conf) {
  const auto t = read::parse_slurm_topology(conf, "topology.conf");
  EXPECT_TRUE(t) << (t ? "" : t.error().what);
  return topo::graph::from(fragment_of(*t, {}, "topology.conf").value()).value();
}
/// Three leaves of four hosts; two of the leaves hang at one spine, the third at another.
topo::graph uneven() {
  return slurm(
      "SwitchName=l0 Nodes=n[0-3]\nSwitchName=l1 Nodes=n[4-7]\nSwitchName=l2 Nodes=n[8-11]\n"
      "SwitchName=s0 Switches=l[0,2]\nSwitchName=s1 Switches=l1\nSwitchName=top Switches=s[0-1]\n");
}
std::vector<job_host> jobs(const names& list, std::uint32_t slot_count = 8) {
  std::vector<job_host> hosts;
  for (const std::string& n : list) hosts.push_back({n, slot_count});
  return hosts;
}
names names_of(const ordered_hosts& o) {
  names list;
  for (const job_host& h : o.hosts) list.push_back(h.name);
  return list;
}
ordered_hosts ordered(const topo::graph& g, const std::vector<job_host>& hosts) {
  auto o = order_hosts(g, hosts);
  EXPECT_TRUE(o) << (o ? "" : o.error().what);
  return o ? std::move(*o) : ordered_hosts{};
}

}  // namespace

TEST(rank_order, puts_hosts_of_a_leaf_and_leaves_of_a_spine_side_by_side) {
  const auto o = ordered(uneven(), jobs({"n8", "n0", "n4", "n1", "n9", "n5"}));
  EXPECT_EQ(names_of(o), (names{"n8", "n9", "n0", "n1", "n4", "n5"}));  // l2 and l0 share a spine
  ASSERT_EQ(o.before.size(), 3u);
  EXPECT_EQ(o.after[0].tier, "leaf");
  EXPECT_EQ(o.after[0].groups, 3u);
  EXPECT_EQ(o.before[0].ring, 6u);
  EXPECT_EQ(o.after[0].ring, 3u);
  EXPECT_EQ(o.before[1].ring, 4u);
  EXPECT_EQ(o.after[1].ring, 2u);
  EXPECT_EQ(o.after[2].ring, 0u);  // all hang at the top
  EXPECT_TRUE(o.gains());
  EXPECT_TRUE(o.findings.empty());
  const std::string text = to_text(o);
  EXPECT_NE(text.find("leaf: 3 groups; the ring leaves one 6 times, 3 in the new order (the least)"), std::string::npos)
      << text;
}

TEST(rank_order, says_when_nothing_can_be_gained) {
  const auto o = ordered(uneven(), jobs({"n0", "n1", "n8", "n4", "n5"}));
  EXPECT_EQ(names_of(o), (names{"n0", "n1", "n8", "n4", "n5"}));
  EXPECT_FALSE(o.gains());
  EXPECT_NE(to_text(o).find("nothing can be gained"), std::string::npos);
}

TEST(rank_order, no_order_crosses_less) {
  const topo::graph g = uneven();
  for (const names& start : {names{"n0", "n4", "n1", "n8", "n5", "n9", "n2"}, names{"n4", "n0", "n8", "n5", "n6", "n1"},
                             names{"n11", "n3", "n10", "n7", "n2", "n6", "n9"}}) {
    const auto best = ordered(g, jobs(start));
    names order = start;
    std::sort(order.begin(), order.end());
    do {
      const auto other = ordered(g, jobs(order));
      for (std::size_t t = 0; t < best.after.size(); ++t)
        ASSERT_LE(best.after[t].ring, other.before[t].ring) << order.front();
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(rank_order, leaves_each_group_once_in_large_fabrics) {
  const topo::graph g = described("dgx-h100:nodes=64,pods=4,cores=2,spines=8");
  auto hosts = job_hosts_of(g);
  ASSERT_EQ(hosts.size(), 64u);
  EXPECT_EQ(hosts[0].slot_count, 8u);
  std::mt19937 draw(7);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(hosts.begin(), hosts.end(), draw);
    const auto o = ordered(g, hosts);
    EXPECT_EQ(o.known, 64u);
    EXPECT_EQ(o.hosts.front(), hosts.front());  // rank 0 stays where it was
    EXPECT_TRUE(std::is_permutation(o.hosts.begin(), o.hosts.end(), hosts.begin()));
    bool pods = false;
    for (const order_score& s : o.after) {
      EXPECT_EQ(s.ring, s.groups > 1 ? s.groups : 0) << s.tier;
      pods = pods || s.groups == 4;
    }
    EXPECT_TRUE(pods);
    EXPECT_TRUE(o.gains());
    // What is ordered stays so.
    const auto again = ordered(g, o.hosts);
    EXPECT_EQ(again.hosts, o.hosts);
    EXPECT_FALSE(again.gains());
  }
}

TEST(rank_order, counts_what_a_planned_ring_takes_across) {
  // The same hosts as a graph for the planner: a ring over one GPU each, in the new order.
  const topo::graph g = described("dgx-h100:nodes=16,pods=4");
  auto hosts = job_hosts_of(g);
  std::mt19937 draw(3);
  std::shuffle(hosts.begin(), hosts.end(), draw);
  for (job_host& h : hosts) h.slot_count = 1;
  const auto o = ordered(g, hosts);
  const order_score* pods = nullptr;
  const order_score* mixed = nullptr;
  for (std::size_t t = 0; t < o.after.size(); ++t)
    if (o.after[t].groups == 4) {
      pods = &o.after[t];
      mixed = &o.before[t];
    }
  ASSERT_NE(pods, nullptr);
  const auto pod_of = [&](const std::string& name) { return std::stoul(name.substr(4)) / 4; };  // node0 to node15
  const auto bytes_between = [&](const std::vector<job_host>& order) {
    std::vector<rank_id> ranks;
    for (std::uint32_t r = 0; r < order.size(); ++r) ranks.push_back({r});
    const auto ring = plan::flat_schedule(collective_kind::all_reduce, ranks, {}, plan::algorithm::ring).value();
    std::uint64_t chunks = 0;
    for (const plan::traffic_round& r : plan::traffic(ring))
      for (const plan::transfer& m : r.moves)
        if (pod_of(order[m.from.value].name) != pod_of(order[m.to.value].name)) chunks += m.chunks * r.repeat;
    return static_cast<double>(chunks) / static_cast<double>(ring.chunks());
  };
  EXPECT_NEAR(bytes_between(o.hosts), ring_bytes_across(*pods, 16, bytes{1}), 1e-9);
  EXPECT_NEAR(bytes_between(hosts), ring_bytes_across(*mixed, 16, bytes{1}), 1e-9);
  EXPECT_LT(bytes_between(o.hosts), bytes_between(hosts));
}

TEST(rank_order, keeps_strangers_together_at_the_end) {
  const auto o = ordered(uneven(), jobs({"login", "n4", "n0", "gone7", "n5"}));
  EXPECT_EQ(names_of(o), (names{"n4", "n5", "n0", "login", "gone7"}));
  EXPECT_EQ(o.known, 3u);
  ASSERT_EQ(o.findings.size(), 1u);
  EXPECT_EQ(o.findings[0].what, "hosts are not in the topology; they stay together at the end");
  EXPECT_EQ(o.findings[0].evidence, "login,gone7");
  const auto none = order_hosts(uneven(), jobs({"a", "b"}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::not_found);
  EXPECT_EQ(none.error().what, "the topology knows none of the 2 hosts, the first is 'a'; it has hosts such as 'n0'");
  EXPECT_EQ(order_hosts(uneven(), {}).error().code, errc::invalid_argument);
  EXPECT_EQ(order_hosts(uneven(), jobs({"n0", "n 1"})).error().code, errc::invalid_argument);
}

TEST(rank_order, counts_a_host_that_is_named_twice_once) {
  const auto o = ordered(uneven(), {{"n4", 2}, {"n0", 4}, {"n4", 2}, {"n5", 0}, {"n5", 0}});
  EXPECT_EQ(o.hosts, (std::vector<job_host>{{"n4", 4}, {"n5", 2}, {"n0", 4}}));
  ASSERT_EQ(o.findings.size(), 1u);
  EXPECT_EQ(o.findings[0].level, severity::note);
  EXPECT_EQ(o.ranks(), 10u);
}

TEST(rank_order, knows_hosts_by_the_part_before_the_first_dot) {
  const auto o = ordered(uneven(), jobs({"n0.cluster.example", "n4.cluster.example", "n1"}));
  EXPECT_EQ(names_of(o), (names{"n0.cluster.example", "n1", "n4.cluster.example"}));
  EXPECT_TRUE(o.findings.empty());
  const topo::graph twins = slurm("SwitchName=l0 Nodes=n0.a,n0.b,n1.a\n");
  const auto unsure = ordered(twins, jobs({"n1", "n0"}));  // which n0?
  EXPECT_EQ(unsure.known, 1u);
}

TEST(rank_order, tells_of_a_network_that_is_unknown) {
  const auto nothing = ordered(described("dgx-h100"), jobs({"node0"}));
  EXPECT_EQ(names_of(nothing), (names{"node0"}));
  EXPECT_FALSE(nothing.gains());
}

TEST(rank_order, nvlink_domains_come_before_leaves) {
  const topo::graph g = described("gb200-nvl72:nodes=36");
  auto hosts = job_hosts_of(g);
  std::mt19937 draw(5);
  std::shuffle(hosts.begin(), hosts.end(), draw);
  const auto o = ordered(g, hosts);
  ASSERT_FALSE(o.after.empty());
  EXPECT_EQ(o.after[0].tier, "NVLink domain");
  for (const order_score& s : o.after) EXPECT_EQ(s.ring, s.groups > 1 ? s.groups : 0) << s.tier;
}

TEST(rank_order, reads_host_files_and_lists) {
  EXPECT_EQ(read_job_hosts("a slots=8\nb:4\n# c\n", "h").value(), (std::vector<job_host>{{"a", 8}, {"b", 4}}));
  EXPECT_EQ(read_job_hosts("node[09-11]\n", "h").value(), jobs({"node09", "node10", "node11"}, 0));
  EXPECT_FALSE(read_job_hosts("a slots=many\n", "h"));
}

TEST(rank_order, writes_what_launchers_read) {
  const auto o = ordered(uneven(), {{"n4", 2}, {"n0", 1}, {"n5", 2}});
  EXPECT_EQ(to_mpirun_hostfile(o), "n4 slots=2\nn5 slots=2\nn0 slots=1\n");
  EXPECT_EQ(to_rankfile(o),
            "rank 0=n4 slot=0\nrank 1=n4 slot=1\nrank 2=n5 slot=0\nrank 3=n5 slot=1\nrank 4=n0 slot=0\n");
  EXPECT_EQ(to_hydra_hostfile(o), "n4:2\nn5:2\nn0:1\n");
  EXPECT_EQ(to_slurm_hostfile(o), "n4\nn4\nn5\nn5\nn0\n");
  EXPECT_EQ(to_slurm_nodelist(o), "n[0,4-5]");
  EXPECT_EQ(to_host_names(o), "n4\nn5\nn0\n");
  EXPECT_EQ(to_torchrun_table(o),
            "n4 --nnodes=3 --nproc-per-node=2 --node-rank=0 --master-addr=n4 --master-port=29500\n"
            "n5 --nnodes=3 --nproc-per-node=2 --node-rank=1 --master-addr=n4 --master-port=29500\n"
            "n0 --nnodes=3 --nproc-per-node=1 --node-rank=2 --master-addr=n4 --master-port=29500\n");
  const std::string shell = to_torchrun_environment(o, 1234);
  EXPECT_NE(shell.find("export NNODES=3 MASTER_ADDR=n4 MASTER_PORT=1234\n"), std::string::npos) << shell;
  EXPECT_NE(shell.find("  n5|n5|n5.*) export NODE_RANK=1 NPROC_PER_NODE=2 ;;\n"), std::string::npos) << shell;
  // Host files are read back as the same job.
  EXPECT_EQ(read_job_hosts(to_mpirun_hostfile(o), "m").value(), o.hosts);
  EXPECT_EQ(read_job_hosts(to_hydra_hostfile(o), "m").value(), o.hosts);
}

TEST(rank_order, names_cannot_become_commands) {
  const topo::graph g = slurm("SwitchName=l0 Nodes=n0,n1\n");
  const auto o = ordered(g, jobs({"$(reboot)", "n0", "a;b"}));
  const std::string shell = to_torchrun_environment(o);
  EXPECT_NE(shell.find("'$(reboot)'|'$(reboot)'|"), std::string::npos) << shell;
  EXPECT_NE(shell.find("'a;b'|"), std::string::npos) << shell;
}
