// SPDX-License-Identifier: Apache-2.0
// NVML through dlopen, against the stand-in of tests/stand_in/nvml.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <topocoll/discover/discover.hpp>
#include <topocoll/discover/nvml.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

class nvml : public testing::Test {
 protected:
  void SetUp() override {
    const char* built = std::getenv("TOPOCOLL_STAND_INS");
    const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
    if (built == nullptr || source == nullptr)
      GTEST_SKIP() << "TOPOCOLL_STAND_INS names no folder of stand-in libraries";
    now = (fs::path(built) / "libnvidia-ml-stand-in.so").string();
    old = (fs::path(built) / "libnvidia-ml-stand-in-old.so").string();
    machines = fs::path(source) / "tests/stand_in/nvml";
    ASSERT_TRUE(fs::exists(now)) << now;
    ASSERT_TRUE(fs::exists(old)) << old;
  }
  void TearDown() override { ::unsetenv("TOPOCOLL_STAND_IN_MACHINE"); }

  tc::result<tc::topo::fragment> ask(const std::string& machine, const std::string& library,
                                     const tc::discover_options& options = {.host = "h"}) {
    const fs::path file = machines / (machine + ".txt");
    EXPECT_TRUE(fs::exists(file)) << file;
    ::setenv("TOPOCOLL_STAND_IN_MACHINE", file.c_str(), 1);
    return tc::nvml{.library = library}.read(options);
  }
  // The fragment and its graph of a machine that can be read.
  void load(const std::string& machine) { load(machine, now); }
  void load(const std::string& machine, const std::string& library) {
    auto f = ask(machine, library);
    ASSERT_TRUE(f) << f.error().message();
    fragment = *f;
    auto g = tc::topo::graph::from(std::move(*f));
    ASSERT_TRUE(g) << g.error().message();
    counts = tc::topo::summarize(*g);
    for (const auto& n : fragment.nodes) {
      EXPECT_TRUE(std::is_sorted(n.facts.begin(), n.facts.end())) << n.key;
      EXPECT_TRUE(n.how < tc::trust::derived || !n.reason.empty()) << n.key;
    }
    for (const auto& l : fragment.links) EXPECT_FALSE(l.reason.empty());
  }
  [[nodiscard]] std::string fact(const std::string& key, const std::string& name) const {
    for (const auto& n : fragment.nodes)
      if (n.key == key)
        for (const auto& f : n.facts)
          if (f.first == name) return f.second;
    return {};
  }
  [[nodiscard]] const tc::topo::link* link(const std::string& a, const std::string& b) const {
    for (const auto& l : fragment.links)
      if (fragment.nodes[l.from.value].key == a && fragment.nodes[l.to.value].key == b) return &l;
    return nullptr;
  }
  [[nodiscard]] bool says(tc::severity level, const std::string& what, const std::string& evidence = {}) const {
    return std::any_of(fragment.findings.begin(), fragment.findings.end(), [&](const tc::finding& f) {
      return f.level == level && f.what.find(what) != std::string::npos &&
             f.evidence.find(evidence) != std::string::npos;
    });
  }
  [[nodiscard]] std::ptrdiff_t above_note() const {
    return std::count_if(fragment.findings.begin(), fragment.findings.end(),
                         [](const tc::finding& f) { return f.level != tc::severity::note; });
  }

  fs::path machines;
  std::string now, old;
  tc::topo::fragment fragment;
  tc::topo::summary counts;
};

}  // namespace

TEST(nvml_source, without_the_library_says_which_file_is_missing) {
  const auto f = tc::nvml{.library = "libnvidia-ml-that-is-not-there.so.1"}.read({});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::unavailable);
  EXPECT_NE(f.error().what.find("libnvidia-ml-that-is-not-there.so.1"), std::string::npos);
  EXPECT_FALSE(f.error().next.empty());
}

TEST(nvml_source, refuses_a_library_that_is_another_one) {
  const auto f = tc::nvml{.library = "libm.so.6"}.read({});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::unavailable);
  EXPECT_NE(f.error().what.find("nvmlInit_v2"), std::string::npos);
}

TEST(nvml_source, missing_is_a_finding_beside_other_sources) {
  struct other {
    static std::string_view name() { return "other"; }
    static tc::result<tc::topo::fragment> read(const tc::discover_options&) {
      tc::topo::fragment f;
      f.source = "other";
      f.nodes.emplace_back().key = "h/numa:0";
      return f;
    }
  };
  const auto d = tc::discover({}, other{}, tc::nvml{.library = "libnvidia-ml-that-is-not-there.so.1"});
  ASSERT_TRUE(d);
  EXPECT_EQ(d->graph.node_count(), 1U);
  EXPECT_TRUE(std::any_of(d->findings.begin(), d->findings.end(), [](const auto& f) { return f.where == "nvml"; }));
}

TEST(nvml_source, does_not_begin_after_the_deadline) {
  const auto f = tc::nvml{}.read({.until = tc::deadline::in({-1})});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::timed_out);
}

TEST_F(nvml, joins_gpus_to_the_plane_of_switches) {
  load("hgx-h100");
  EXPECT_EQ(counts.gpus, 8U);
  EXPECT_EQ(counts.nvswitches, 1U);
  EXPECT_EQ(counts.links, 8U);
  const auto* l = link("h/pci:0000:1b:00.0", "h/nvswitch");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->lanes, 18U);
  EXPECT_EQ(l->generation, 4U);
  EXPECT_NEAR(l->nominal->value, 18 * 26.562e9, 1);
  EXPECT_NEAR(l->capacity.value, 18 * 20.6e9, 1);
  EXPECT_EQ(l->how, tc::trust::derived);
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "nvlinks"), "18 of 18 active");
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "sm"), "90");
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "vendor"), "0x10de");
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "device"), "0x2330");
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "fabric_state"), "completed");
  EXPECT_EQ(fragment.nodes[4].numa, 1U);
  EXPECT_EQ(fragment.nodes[4].index, 4U);
  EXPECT_TRUE(fragment.findings.empty());
}

TEST_F(nvml, marks_idle_gpus_as_idle_not_as_degraded) {
  load("dgx-a100");
  EXPECT_EQ(counts.gpus, 8U);
  EXPECT_EQ(fact("h/pci:0000:07:00.0", "pcie_current"), "Gen1 x16");
  EXPECT_EQ(fact("h/pci:0000:07:00.0", "pcie_best"), "Gen4 x16");
  EXPECT_TRUE(says(tc::severity::note, "idle GPU", "8: GPU 0: Gen1 x16 of Gen4 x16"));
  EXPECT_EQ(above_note(), 0);
  EXPECT_EQ(link("h/pci:0000:bd:00.0", "h/nvswitch")->lanes, 12U);
  EXPECT_NEAR(link("h/pci:0000:bd:00.0", "h/nvswitch")->capacity.value, 12 * 20e9, 1);
}

TEST_F(nvml, names_the_link_that_is_down) {
  load("hgx-h100-link-down");
  const auto* l = link("h/pci:0000:61:00.0", "h/nvswitch");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->lanes, 17U);
  EXPECT_NEAR(l->nominal->value, 18 * 26.562e9, 1);
  EXPECT_NEAR(l->current->value, 17 * 26.562e9, 1);
  EXPECT_NEAR(l->capacity.value, 17 * 20.6e9, 1);
  EXPECT_EQ(fact("h/pci:0000:61:00.0", "nvlinks_down"), "5");
  EXPECT_TRUE(says(tc::severity::fault,
                   "GPU 3 has 17 NVLinks active, others of its kind 18; the other end is an NVSwitch",
                   "links that are down: 5"));
  EXPECT_EQ(above_note(), 1);
}

TEST_F(nvml, keeps_a_gpu_whose_links_are_all_down_before_its_switch) {
  load("hgx-h100-no-links");
  const auto* l = link("h/pci:0000:d1:00.0", "h/nvswitch");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->lanes, 0U);
  EXPECT_EQ(l->capacity.value, 0);
  EXPECT_TRUE(says(tc::severity::fault, "GPU 6 has 0 NVLinks active, others of its kind 18"));
}

TEST_F(nvml, takes_links_out_of_use_while_the_fabric_is_not_set_up) {
  load("hgx-h100-fabric-in-progress");
  EXPECT_EQ(link("h/pci:0000:1b:00.0", "h/nvswitch")->capacity.value, 0);
  EXPECT_NE(link("h/pci:0000:1b:00.0", "h/nvswitch")->reason.find("fabric"), std::string::npos);
  EXPECT_NEAR(link("h/pci:0000:1b:00.0", "h/nvswitch")->current->value, 18 * 26.562e9, 1);
  EXPECT_TRUE(says(tc::severity::fault, "the NVLink fabric has not been set up", "8: GPU 0: in progress"));
}

TEST_F(nvml, tells_of_mig) {
  load("hgx-h100-mig");
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "mig"), "on");
  EXPECT_EQ(fact("h/pci:0000:1b:00.0", "mig_devices"), "7");
  EXPECT_EQ(link("h/pci:0000:1b:00.0", "h/nvswitch")->capacity.value, 0);
  EXPECT_TRUE(says(tc::severity::warning, "MIG is on", "GPU 0: 7 parts"));
  EXPECT_TRUE(says(tc::severity::note, "MIG mode of a GPU changes", "GPU 1"));
  EXPECT_GT(link("h/pci:0000:43:00.0", "h/nvswitch")->capacity.value, 0);
  EXPECT_EQ(fact("h/pci:0000:52:00.0", "mig"), "");
}

TEST_F(nvml, joins_a_rack_tray_to_hidden_switches_and_to_its_cpus) {
  load("rack-tray");
  EXPECT_EQ(counts.gpus, 4U);
  EXPECT_EQ(counts.numa_domains, 2U);
  const auto* l = link("h/pci:0008:01:00.0", "h/nvswitch");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->how, tc::trust::assumed);
  EXPECT_NE(l->reason.find("not told"), std::string::npos);
  EXPECT_NEAR(l->nominal->value, 18 * 53.125e9, 1);
  EXPECT_EQ(fact("h/nvswitch", "fabric_cluster"), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(fact("h/nvswitch", "fabric_clique"), "3");
  const auto* c = link("h/pci:0018:01:00.0", "h/numa:1");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->kind, link_kind::c2c);
  EXPECT_EQ(c->lanes, 10U);
  EXPECT_NEAR(c->capacity.value, 450e9, 1);
  EXPECT_TRUE(says(tc::severity::note, "the other end of active NVLinks"));
}

TEST_F(nvml, joins_gpus_of_a_mesh_to_each_other_and_finds_both_ends_of_a_dead_link) {
  load("mesh-v100");
  EXPECT_EQ(counts.nvswitches, 0U);
  const auto* l = link("h/pci:0000:06:00.0", "h/pci:0000:07:00.0");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->lanes, 2U);
  EXPECT_NEAR(l->capacity.value, 40e9, 1);
  EXPECT_EQ(link("h/pci:0000:06:00.0", "h/pci:0000:0a:00.0")->lanes, 1U);
  EXPECT_EQ(link("h/pci:0000:06:00.0", "h/pci:0000:0b:00.0"), nullptr);
  EXPECT_TRUE(says(tc::severity::fault,
                   "GPU 0 has 3 NVLinks active, others of its kind 4; GPU 3 has a link down as well",
                   "links that are down: 3"));
  EXPECT_TRUE(
      says(tc::severity::fault, "GPU 3 has 3 NVLinks active, others of its kind 4; GPU 0 has a link down as well"));
}

TEST_F(nvml, does_not_call_links_dead_that_no_card_of_the_kind_uses) {
  load("cards-with-bridge");
  EXPECT_EQ(link("h/pci:0000:3b:00.0", "h/pci:0000:5e:00.0")->lanes, 12U);
  EXPECT_TRUE(says(tc::severity::note, "leave some of their NVLinks unused", "2: GPU 0: 12 of 18"));
  EXPECT_TRUE(says(tc::severity::note, "there is no bridge", "2: GPU 2, GPU 3"));
  EXPECT_TRUE(says(tc::severity::warning, "narrower", "GPU 1: Gen5 x8 of Gen5 x16"));
  EXPECT_EQ(above_note(), 1);
}

TEST_F(nvml, tells_what_it_can_of_a_subset_of_gpus) {
  load("subset");
  EXPECT_EQ(counts.gpus, 2U);
  EXPECT_EQ(link("h/pci:0000:06:00.0", "h/pci:0000:07:00.0")->lanes, 2U);
  EXPECT_EQ(fact("h/pci:0000:06:00.0", "nvlinks_elsewhere"), "4");
  EXPECT_TRUE(says(tc::severity::note, "GPUs that are not visible here", "2: GPU 0: 4"));
  EXPECT_TRUE(says(tc::severity::note, "no handle of a GPU", "GPU 2"));
  EXPECT_TRUE(says(tc::severity::fault, "fallen off the bus", "GPU 3"));
}

TEST_F(nvml, keeps_what_is_told_when_some_calls_are_refused) {
  load("few-rights");
  EXPECT_EQ(counts.gpus, 1U);
  EXPECT_EQ(fragment.nodes[0].key, "h/gpu:0");  // the address is not told
  EXPECT_EQ(fact("h/gpu:0", "model"), "NVIDIA L4");
  EXPECT_EQ(fact("h/gpu:0", "sm"), "89");
  EXPECT_EQ(fact("h/gpu:0", "mig"), "");
  EXPECT_EQ(fact("h/gpu:0", "pcie_best"), "Gen4 x16");
  EXPECT_TRUE(says(tc::severity::note, "its MIG mode for lack of rights", "GPU 0"));
  EXPECT_TRUE(says(tc::severity::warning, "its PCI address: Unknown Error (999)", "GPU 0"));
  EXPECT_TRUE(says(tc::severity::warning, "no PCI address", "GPU 0"));
  for (const auto& f : fragment.findings)
    if (f.what.find("fallen off the bus") != std::string::npos) {
      EXPECT_EQ(f.evidence, "GPU 0");  // once, not for every call
    }
}

TEST_F(nvml, of_an_old_driver_tells_what_it_can_and_what_it_lacks) {
  load("hgx-h100", old);
  EXPECT_EQ(counts.gpus, 8U);
  EXPECT_TRUE(says(tc::severity::note, "older and lacks calls", "nvmlDeviceGetC2cModeInfoV"));
  // The kind of the other end is not told, and its address is none of the GPUs'.
  const auto* l = link("h/pci:0000:1b:00.0", "h/nvswitch");
  ASSERT_NE(l, nullptr);
  EXPECT_EQ(l->how, tc::trust::assumed);
  EXPECT_EQ(l->lanes, 18U);
  EXPECT_NEAR(l->nominal->value, 18 * 26.562e9, 1);
  EXPECT_FALSE(fragment.nodes[0].numa);
  load("mesh-v100", old);  // here the addresses of the other ends are enough
  EXPECT_EQ(link("h/pci:0000:06:00.0", "h/pci:0000:07:00.0")->lanes, 2U);
  EXPECT_EQ(counts.nvswitches, 0U);
}

TEST_F(nvml, fails_with_one_sentence_when_the_driver_does_not_answer) {
  struct row {
    const char *machine, *word;
    tc::errc code;
  };
  for (const row& r :
       {row{"driver-missing", "not loaded", tc::errc::unavailable},
        row{"driver-mismatch", "different versions", tc::errc::mismatch},
        row{"no-permission", "refuses", tc::errc::permission}, row{"no-gpu", "no GPU", tc::errc::not_found}}) {
    const auto f = ask(r.machine, now);
    ASSERT_FALSE(f) << r.machine;
    EXPECT_EQ(f.error().code, r.code) << r.machine;
    EXPECT_NE(f.error().what.find(r.word), std::string::npos) << f.error().what;
    EXPECT_FALSE(f.error().next.empty()) << r.machine;
  }
}

TEST_F(nvml, gives_the_same_answer_twice_and_closes_what_it_opened) {
  load("mesh-v100");
  const std::size_t links = fragment.links.size();
  load("mesh-v100");
  EXPECT_EQ(fragment.links.size(), links);
  void* still = ::dlopen(now.c_str(), RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(still, nullptr);
}

TEST_F(nvml, joins_with_what_the_pci_tree_tells_by_address) {
  struct tree {
    static std::string_view name() { return "sysfs"; }
    static tc::result<tc::topo::fragment> read(const tc::discover_options& options) {
      tc::topo::fragment f;
      f.source = "sysfs";
      tc::topo::node n;
      n.kind = node_kind::gpu;
      n.key = options.host + "/pci:0000:1b:00.0";
      n.host = options.host;
      n.facts = {{"device", "0x2330"}, {"vendor", "0x10de"}};
      f.add(n);
      return f;
    }
  };
  ::setenv("TOPOCOLL_STAND_IN_MACHINE", (machines / "hgx-h100.txt").c_str(), 1);
  const auto d = tc::discover({.host = "h"}, tree{}, tc::nvml{.library = now});
  ASSERT_TRUE(d) << d.error().message();
  EXPECT_EQ(d->graph.all(node_kind::gpu).size(), 8U);
  EXPECT_TRUE(d->findings.empty());
}

// Layout of the structures by NVIDIA's reference for release 550; NVML fills memory by these offsets.
TEST(nvml_structures, have_the_documented_sizes_and_offsets) {
  using namespace tc::detail;
  EXPECT_EQ(offsetof(nvml_pci_info, domain), 16U);
  EXPECT_EQ(offsetof(nvml_pci_info, device_id), 28U);
  EXPECT_EQ(offsetof(nvml_pci_info, bus_id), 36U);
  EXPECT_EQ(sizeof(nvml_pci_info), 68U);
  EXPECT_EQ(offsetof(nvml_field, scope), 4U);
  EXPECT_EQ(offsetof(nvml_field, type), 24U);
  EXPECT_EQ(offsetof(nvml_field, outcome), 28U);
  EXPECT_EQ(offsetof(nvml_field, value), 32U);
  EXPECT_EQ(sizeof(nvml_field), 40U);
  EXPECT_EQ(offsetof(nvml_fabric_info, status), 16U);
  EXPECT_EQ(offsetof(nvml_fabric_info, state), 24U);
  EXPECT_EQ(sizeof(nvml_fabric_info), 28U);
  EXPECT_EQ(offsetof(nvml_fabric_info_v2, cluster), 4U);
  EXPECT_EQ(offsetof(nvml_fabric_info_v2, clique), 24U);
  EXPECT_EQ(offsetof(nvml_fabric_info_v2, state), 28U);
  EXPECT_EQ(offsetof(nvml_fabric_info_v2, health), 32U);
  EXPECT_EQ(sizeof(nvml_fabric_info_v2), 36U);
}
