// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::node_kind;

namespace {

// A machine in the making: lines of a recording.
class machine {
 public:
  machine& numa(unsigned n, const std::string& cpus, const std::string& distances = "10") {
    const std::string at = "/sys/devices/system/node/node" + std::to_string(n);
    return file(at + "/cpulist", cpus).file(at + "/distance", distances);
  }
  // `path` below /sys/devices, from the root bus to the function itself.
  machine& pci(const std::string& path, const std::string& code, const std::string& vendor = "0x15b3") {
    const std::string name = path.substr(path.rfind('/') + 1);
    text_ += "/sys/bus/pci/devices/" + name + "\t-> ../../../devices/" + path + "\n";
    return file("/sys/devices/" + path + "/class", code).file("/sys/devices/" + path + "/vendor", vendor);
  }
  machine& link(const std::string& path, const std::string& speed, const std::string& width, const char* which) {
    return file("/sys/devices/" + path + "/" + which + "_link_speed", speed)
        .file("/sys/devices/" + path + "/" + which + "_link_width", width);
  }
  machine& net(const std::string& path, const std::string& name, const std::string& speed, const std::string& state) {
    text_ += "/sys/class/net/" + name + "\t-> ../../devices/" + path + "/net/" + name + "\n";
    const std::string at = "/sys/devices/" + path + "/net/" + name;
    if (!speed.empty()) file(at + "/speed", speed);
    return file(at + "/operstate", state);
  }
  machine& rdma(const std::string& path, const std::string& name, const std::string& state, const std::string& rate) {
    text_ += "/sys/class/infiniband/" + name + "\t-> ../../devices/" + path + "/infiniband/" + name + "\n";
    const std::string at = "/sys/devices/" + path + "/infiniband/" + name;
    return file(at + "/ports/1/state", state).file(at + "/ports/1/rate", rate);
  }
  machine& file(const std::string& path, const std::string& value) {
    text_ += path + "\t" + value + "\\n\n";
    return *this;
  }
  [[nodiscard]] tc::topo::graph graph() const {
    auto fragment = tc::fragment_of_recording(text_, "m.txt", {.host = "h"});
    EXPECT_TRUE(fragment) << (fragment ? "" : fragment.error().message());
    auto made = fragment ? tc::topo::graph::from(std::move(*fragment)) : tc::result<tc::topo::graph>(tc::topo::graph{});
    EXPECT_TRUE(made) << (made ? "" : made.error().message());
    return made ? std::move(*made) : tc::topo::graph{};
  }

 private:
  std::string text_;
};

const tc::topo::link* link(const tc::topo::graph& g, const std::string& from, const std::string& to) {
  for (const tc::topo::link& l : g.links())
    if (g.at(l.from).key == "h/" + from && g.at(l.to).key == "h/" + to) return &l;
  return nullptr;
}
const tc::topo::node* node(const tc::topo::graph& g, const std::string& key) {
  const auto v = g.find("h/" + key);
  return v ? &g.at(*v) : nullptr;
}
std::string fact(const tc::topo::node* n, const std::string& name) {
  if (n != nullptr)
    for (const auto& [k, v] : n->facts)
      if (k == name) return v;
  return "";
}
bool says(const tc::topo::graph& g, const std::string& text) {
  return std::any_of(g.findings().begin(), g.findings().end(),
                     [&](const tc::finding& f) { return f.what.find(text) != std::string::npos; });
}

constexpr const char* g5 = "32.0 GT/s PCIe";

}  // namespace

TEST(sysfs, sees_this_machine) {
  const auto f = tc::sysfs{}.read({.host = "h"});
  ASSERT_TRUE(f) << f.error().message();
  const auto g = tc::topo::graph::from(*f);
  ASSERT_TRUE(g) << g.error().message();
  EXPECT_GE(g->all(node_kind::cpu).size(), 1U);
  EXPECT_GE(g->all(node_kind::host_memory).size(), 1U);
}

TEST(sysfs, sees_no_machine_where_there_is_no_sys) {
  const auto f = tc::sysfs{.root = "/nonexistent"}.read({});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::not_found);
}

TEST(sysfs, stops_at_the_deadline_and_says_so) {
  const auto f = tc::sysfs{}.read({.host = "h", .until = tc::deadline::in({-1})});
  ASSERT_TRUE(f);  // partial truth
  const bool said = std::any_of(f->findings.begin(), f->findings.end(), [](const tc::finding& x) {
    return x.what.find("deadline passed") != std::string::npos;
  });
  EXPECT_TRUE(said || !std::filesystem::exists("/sys/class/net"));
}

TEST(sysfs, folds_a_switch_into_one_node_with_the_address_of_its_upstream_port) {
  const std::string root = "pci0000:00/0000:00:01.0";
  const std::string up = root + "/0000:01:00.0";
  const std::string a = up + "/0000:02:00.0/0000:03:00.0";
  const std::string b = up + "/0000:02:01.0/0000:04:00.0";
  machine m;
  m.numa(0, "0-7")
      .pci(root, "0x060400")
      .pci(up, "0x060400")
      .pci(up + "/0000:02:00.0", "0x060400")
      .pci(up + "/0000:02:01.0", "0x060400");
  m.pci(a, "0x030200", "0x10de").pci(b, "0x020700");
  for (const std::string& p : {root, up, up + "/0000:02:00.0", up + "/0000:02:01.0", a, b})
    m.link(p, g5, "16", "max").link(p, g5, "16", "current");
  const auto g = m.graph();
  EXPECT_EQ(g.all(node_kind::pcie_switch).size(), 1U);
  EXPECT_EQ(fact(node(g, "pci:0000:01:00.0"), "root_port"), "0000:00:01.0");
  EXPECT_NE(link(g, "numa:0", "pci:0000:01:00.0"), nullptr);
  EXPECT_NE(link(g, "pci:0000:01:00.0", "pci:0000:03:00.0"), nullptr);
  EXPECT_NE(link(g, "pci:0000:01:00.0", "pci:0000:04:00.0"), nullptr);
  EXPECT_EQ(node(g, "pci:0000:02:00.0"), nullptr);
}

TEST(sysfs, tells_two_levels_of_switches_apart) {
  std::string path = "pci0000:00/0000:00:01.0";
  machine m;
  m.numa(0, "0-7").pci(path, "0x060400");
  for (int level = 1; level <= 4; ++level) {
    path += "/0000:0" + std::to_string(level) + ":00.0";
    m.pci(path, "0x060400");
  }
  m.pci(path + "/0000:09:00.0", "0x030200", "0x10de");
  const auto g = m.graph();
  EXPECT_EQ(g.all(node_kind::pcie_switch).size(), 2U);
  EXPECT_NE(link(g, "pci:0000:01:00.0", "pci:0000:03:00.0"), nullptr);
  EXPECT_NE(link(g, "pci:0000:03:00.0", "pci:0000:09:00.0"), nullptr);
}

TEST(sysfs, takes_the_lesser_of_both_ends_as_best_and_the_trained_figure_as_current) {
  const std::string root = "pci0000:00/0000:00:01.0";
  const std::string nic = root + "/0000:01:00.0";
  machine m;
  m.numa(0, "0-7").pci(root, "0x060400").pci(nic, "0x020000");
  m.link(root, "16.0 GT/s PCIe", "8", "max")
      .link(nic, g5, "16", "max")
      .link(root, "8.0 GT/s PCIe", "4", "current")
      .link(nic, "8.0 GT/s PCIe", "4", "current");
  const auto g = m.graph();
  const auto* l = link(g, "numa:0", "pci:0000:01:00.0");
  ASSERT_NE(l, nullptr);
  EXPECT_NEAR(l->nominal->value, 15.754e9, 1e6);  // Gen4 x8: what both can
  EXPECT_NEAR(l->current->value, 3.938e9, 1e6);   // Gen3 x4: what it trained to
  EXPECT_EQ(l->capacity.value, 3e9);
  EXPECT_EQ(l->generation, 3U);
  EXPECT_EQ(l->lanes, 4U);
  EXPECT_TRUE(says(g, "runs slower than both ends can"));
  EXPECT_TRUE(says(g, "runs narrower than both ends can"));
}

TEST(sysfs, does_not_call_a_sleeping_gpu_slow) {
  const std::string gpu = "pci0000:00/0000:00:01.0/0000:01:00.0";
  machine m;
  m.numa(0, "0-7").pci("pci0000:00/0000:00:01.0", "0x060400").pci(gpu, "0x030200", "0x10de");
  m.link(gpu, g5, "16", "max").link(gpu, "2.5 GT/s PCIe", "16", "current");
  const auto g = m.graph();
  EXPECT_EQ(link(g, "numa:0", "pci:0000:01:00.0")->capacity.value, 48e9);
  EXPECT_EQ(link(g, "numa:0", "pci:0000:01:00.0")->how, tc::trust::assumed);
  EXPECT_TRUE(std::none_of(g.findings().begin(), g.findings().end(), [](const tc::finding& f) {
    return f.level > tc::severity::note && f.what.find("Gen1") != std::string::npos;
  }));
}

TEST(sysfs, sees_the_lost_width_of_a_sleeping_gpu) {
  const std::string gpu = "pci0000:00/0000:00:01.0/0000:01:00.0";
  machine m;
  m.numa(0, "0-7").pci("pci0000:00/0000:00:01.0", "0x060400").pci(gpu, "0x030200", "0x10de");
  m.link(gpu, g5, "16", "max").link(gpu, "2.5 GT/s PCIe", "4", "current");
  const auto g = m.graph();
  EXPECT_EQ(link(g, "numa:0", "pci:0000:01:00.0")->capacity.value, 12e9);
  EXPECT_TRUE(says(g, "runs narrower"));
}

TEST(sysfs, takes_the_only_numa_domain_when_a_device_tells_none) {
  machine m;
  m.numa(0, "0-7")
      .pci("pci0000:00/0000:00:03.0", "0x020000")
      .file("/sys/devices/pci0000:00/0000:00:03.0/numa_node", "-1");
  const auto g = m.graph();
  EXPECT_EQ(node(g, "pci:0000:00:03.0")->numa, 0U);
  EXPECT_NE(node(g, "pci:0000:00:03.0")->reason, "");
}

TEST(sysfs, leaves_the_numa_domain_open_when_there_are_several) {
  machine m;
  m.numa(0, "0-7", "10 20")
      .numa(1, "8-15", "20 10")
      .pci("pci0000:00/0000:00:03.0", "0x020000")
      .file("/sys/devices/pci0000:00/0000:00:03.0/numa_node", "-1");
  const auto g = m.graph();
  EXPECT_FALSE(node(g, "pci:0000:00:03.0")->numa);
  EXPECT_EQ(link(g, "numa:0", "pci:0000:00:03.0")->how, tc::trust::assumed);
  EXPECT_TRUE(says(g, "tells its NUMA domain"));
}

TEST(sysfs, derives_the_numa_domain_from_the_processors_that_are_near) {
  machine m;
  m.numa(0, "0-7", "10 20")
      .numa(1, "8-15", "20 10")
      .pci("pci0000:00/0000:00:03.0", "0x020000")
      .file("/sys/devices/pci0000:00/0000:00:03.0/local_cpus", "0000ff00");
  const auto g = m.graph();
  EXPECT_EQ(node(g, "pci:0000:00:03.0")->numa, 1U);
  EXPECT_EQ(node(g, "pci:0000:00:03.0")->how, tc::trust::derived);
  EXPECT_NE(link(g, "numa:1", "pci:0000:00:03.0"), nullptr);
}

TEST(sysfs, takes_the_numa_domain_of_the_bridge_above) {
  machine m;
  m.numa(0, "0-7", "10 20")
      .numa(1, "8-15", "20 10")
      .pci("pci0000:80/0000:80:01.0", "0x060400")
      .file("/sys/devices/pci0000:80/0000:80:01.0/numa_node", "1");
  m.pci("pci0000:80/0000:80:01.0/0000:81:00.0", "0x030200", "0x10de")
      .file("/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/numa_node", "-1");
  EXPECT_EQ(node(m.graph(), "pci:0000:81:00.0")->numa, 1U);
}

TEST(sysfs, counts_a_dual_port_card_as_one_adapter_with_two_ports) {
  const std::string root = "pci0000:00/0000:00:02.0";
  machine m;
  m.numa(0, "0-7").pci(root, "0x060400");
  for (const char* f : {"0", "1"}) {
    const std::string path = root + "/0000:01:00." + f;
    m.pci(path, "0x020000")
        .rdma(path, std::string("mlx5_") + f, "4: ACTIVE", "100 Gb/sec (4X EDR)")
        .net(path, std::string("eth") + f, "100000", "up");
  }
  const auto g = m.graph();
  EXPECT_EQ(g.all(node_kind::nic).size(), 1U);
  EXPECT_EQ(tc::topo::summarize(g).nics, 2U);
  EXPECT_EQ(fact(node(g, "net:mlx5_1/1"), "interface"), "eth1");  // one port seen twice
  EXPECT_EQ(link(g, "pci:0000:01:00.0", "net:mlx5_1/1")->capacity.value, 12.5e9);
}

TEST(sysfs, counts_virtual_functions_with_their_physical_one) {
  machine m;
  m.numa(0, "0-7").pci("pci0000:00/0000:01:00.0", "0x020000").net("pci0000:00/0000:01:00.0", "eth0", "25000", "up");
  for (const char* f : {"1", "2", "3"}) {
    const std::string path = std::string("pci0000:00/0000:01:00.") + f;
    m.pci(path, "0x020000").net(path, std::string("eth0v") + f, "25000", "up");
  }
  EXPECT_EQ(tc::topo::summarize(m.graph()).nics, 4U);  // four functions of one card
  const auto with = tc::fragment_of_recording(
      "/sys/devices/system/node/node0/cpulist\t0\n/sys/bus/pci/devices/0000:01:00.0\t-> "
      "../../../devices/pci0000:00/0000:01:00.0\n/sys/devices/pci0000:00/0000:01:00.0/class\t0x020000\n"
      "/sys/bus/pci/devices/0000:01:00.1\t-> "
      "../../../devices/pci0000:00/0000:01:00.1\n/sys/devices/pci0000:00/0000:01:00.1/class\t0x020000\n/sys/devices/"
      "pci0000:00/0000:01:00.1/physfn\t-> ../0000:01:00.0\n",
      "m.txt", {});
  ASSERT_TRUE(with);
  EXPECT_EQ(std::count_if(with->nodes.begin(), with->nodes.end(),
                          [](const tc::topo::node& n) { return n.kind == node_kind::nic; }),
            1);
}

TEST(sysfs, gives_a_port_that_is_down_no_rate_and_no_capacity) {
  machine m;
  m.numa(0, "0-7")
      .pci("pci0000:00/0000:01:00.0", "0x020700")
      .rdma("pci0000:00/0000:01:00.0", "mlx5_0", "1: DOWN", "10 Gb/sec (4X SDR)");
  m.pci("pci0000:00/0000:02:00.0", "0x020000").net("pci0000:00/0000:02:00.0", "eth0", "1000", "down");
  const auto g = m.graph();
  for (const auto* l : {link(g, "pci:0000:01:00.0", "net:mlx5_0/1"), link(g, "pci:0000:02:00.0", "net:eth0/0")}) {
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->capacity.value, 0);
    EXPECT_FALSE(l->current);
    EXPECT_NE(l->reason, "");
  }
}

TEST(sysfs, says_when_an_error_counter_can_grow_no_more) {
  const auto of = [](const std::string& counter, const std::string& count) {
    machine m;
    m.numa(0, "0-7")
        .pci("pci0000:00/0000:01:00.0", "0x020700")
        .rdma("pci0000:00/0000:01:00.0", "mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)")
        .file("/sys/devices/pci0000:00/0000:01:00.0/infiniband/mlx5_0/ports/1/counters/" + counter, count);
    return m.graph();
  };
  for (const auto& [counter, ceiling] : {std::pair<const char*, const char*>{"link_downed", "255"},
                                         {"excessive_buffer_overrun_errors", "15"},
                                         {"symbol_error", "65535"}}) {
    EXPECT_TRUE(says(of(counter, ceiling), "stands at its ceiling")) << counter;
    EXPECT_FALSE(says(of(counter, "7"), "stands at its ceiling")) << counter;
  }
  EXPECT_FALSE(says(of("symbol_error", "255"), "stands at its ceiling")) << "sixteen bits hold more";
  EXPECT_FALSE(says(of("port_rcv_data", "255"), "stands at its ceiling")) << "not an error";
}

TEST(sysfs, takes_minus_one_and_absurd_speeds_as_not_known) {
  for (const char* speed : {"-1", "4294967295", "", "0", "Unknown"}) {
    machine m;
    m.numa(0, "0-7").pci("pci0000:00/0000:01:00.0", "0x020000").net("pci0000:00/0000:01:00.0", "eth0", speed, "up");
    const auto g = m.graph();
    const auto* l = link(g, "pci:0000:01:00.0", "net:eth0/0");
    EXPECT_FALSE(l->current) << speed;
    EXPECT_EQ(l->how, tc::trust::assumed) << speed;
    EXPECT_EQ(l->capacity.value, 1.25e9) << speed;
  }
}

TEST(sysfs, knows_an_adapter_by_its_port_whatever_its_class) {
  machine m;
  m.numa(0, "0-7")
      .pci("pci0000:00/0000:01:00.0", "0x0c0600")
      .rdma("pci0000:00/0000:01:00.0", "qib0", "4: ACTIVE", "40 Gb/sec (4X QDR)");
  EXPECT_EQ(m.graph().all(node_kind::nic).size(), 1U);
}

TEST(sysfs, counts_neither_displays_of_processors_nor_of_board_controllers_as_gpus) {
  machine m;
  m.numa(0, "0-7")
      .pci("pci0000:00/0000:00:02.0", "0x030000", "0x8086")
      .pci("pci0000:00/0000:03:00.0", "0x030000", "0x1a03")
      .pci("pci0000:00/0000:04:00.0", "0x030000", "0x1234");
  m.pci("pci0000:00/0000:00:01.0", "0x060400").pci("pci0000:00/0000:00:01.0/0000:05:00.0", "0x030000", "0x10de");
  const auto g = m.graph();
  EXPECT_EQ(g.all(node_kind::gpu).size(), 1U);
  EXPECT_EQ(g.all(node_kind::pcie_device).size(), 3U);
}

TEST(sysfs, places_an_adapter_whose_path_has_no_pci_parents) {
  machine m;
  m.numa(0, "0-7").pci("LNXSYSTM:00/VMBUS:01/47505500-0001/pci0101:00/0101:00:00.0", "0x020700");
  EXPECT_NE(link(m.graph(), "numa:0", "pci:0101:00:00.0"), nullptr);
}

TEST(sysfs, does_not_count_interfaces_without_hardware) {
  machine m;
  m.numa(0, "0-7").net("virtual", "docker0", "10000", "up").net("virtual", "lo", "", "unknown");
  const auto g = m.graph();
  EXPECT_EQ(tc::topo::summarize(g).nics, 0U);
  EXPECT_TRUE(says(g, "interfaces without hardware"));
}

TEST(sysfs, says_when_no_pci_devices_can_be_seen) {
  machine m;
  m.numa(0, "0-7");
  const auto g = m.graph();
  EXPECT_EQ(g.node_count(), 2U);
  EXPECT_TRUE(says(g, "no PCI devices can be seen"));
}

TEST(sysfs, survives_a_recording_whose_paths_lie) {
  // Each function claims to lie below the other.
  const std::string text =
      "/sys/bus/pci/devices/0000:01:00.0\t-> "
      "../../../devices/pci0000:00/0000:02:00.0/0000:01:00.0\n/sys/bus/pci/devices/0000:02:00.0\t-> "
      "../../../devices/pci0000:00/0000:01:00.0/0000:02:00.0\n"
      "/sys/devices/pci0000:00/0000:02:00.0/0000:01:00.0/class\t0x060400\n/sys/devices/pci0000:00/0000:01:00.0/"
      "0000:02:00.0/class\t0x060400\n";
  const auto f = tc::fragment_of_recording(text, "m.txt", {});
  ASSERT_TRUE(f) << f.error().message();
  EXPECT_TRUE(tc::topo::graph::from(*f));
}
