// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <topocoll/backend/hwloc/source.hpp>
#include <topocoll/discover/discover.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>
#include <hwloc.h>

namespace tc = topocoll;

namespace {

tc::topo::summary counts(const tc::topo::fragment& f) {
  const auto g = tc::topo::graph::from(f);
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? tc::topo::summarize(*g) : tc::topo::summary{};
}

std::string fact(const tc::topo::fragment& f, const std::string& key, const std::string& name) {
  for (const auto& n : f.nodes)
    if (n.key == key)
      for (const auto& x : n.facts)
        if (x.first == name) return x.second;
  return {};
}

// The library itself as oracle.
class loaded {
 public:
  loaded() {
    hwloc_topology_init(&topology);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_load(topology);
  }
  loaded(const loaded&) = delete;
  loaded& operator=(const loaded&) = delete;
  ~loaded() { hwloc_topology_destroy(topology); }
  hwloc_topology_t topology = nullptr;
};

}  // namespace

TEST(hwloc_source, of_this_machine_has_the_numa_nodes_that_the_library_counts) {
  const auto f = tc::hwloc{}.read({.host = "here"});
  ASSERT_TRUE(f) << f.error().message();
  const loaded oracle;
  EXPECT_EQ(counts(*f).numa_domains,
            static_cast<std::size_t>(hwloc_get_nbobjs_by_type(oracle.topology, HWLOC_OBJ_NUMANODE)));
  for (const auto& n : f->nodes) EXPECT_EQ(n.key.rfind("here/", 0), 0U) << n.key;
  for (hwloc_obj_t d = nullptr; (d = hwloc_get_next_pcidev(oracle.topology, d)) != nullptr;) {
    if (d->attr->pcidev.class_id != 0x0200 || d->attr->pcidev.func != 0) continue;
    const bool found = std::any_of(f->nodes.begin(), f->nodes.end(), [&](const auto& n) {
      return n.kind == tc::topo::node_kind::nic && n.key.find("/pci:") != std::string::npos;
    });
    EXPECT_TRUE(found);
  }
}

TEST(hwloc_source, joins_with_sysfs) {
  const auto both = tc::discover({}, tc::sysfs{}, tc::hwloc{});
  const auto alone = tc::discover({}, tc::sysfs{});
  ASSERT_TRUE(both) << both.error().message();
  ASSERT_TRUE(alone) << alone.error().message();
  EXPECT_EQ(tc::topo::summarize(both->graph).numa_domains, tc::topo::summarize(alone->graph).numa_domains);
  EXPECT_EQ(tc::topo::summarize(both->graph).hosts, 1U);
}

TEST(hwloc_source, of_a_synthetic_description_has_what_it_describes) {
  struct made {
    const char* description;
    std::size_t domains;
  };
  for (const made& m :
       {made{"pack:1 core:1 pu:1", 1}, made{"pack:2 numa:1 core:8 pu:2", 2}, made{"pack:2 numa:2 core:3 pu:1", 4},
        made{"numa:7 core:1 pu:1", 7}, made{"numa:17 core:2 pu:1", 17}}) {
    const auto f = tc::hwloc{.synthetic = m.description}.read({});
    ASSERT_TRUE(f) << f.error().message();
    const auto s = counts(*f);
    EXPECT_EQ(s.numa_domains, m.domains) << m.description;
    EXPECT_EQ(s.hosts, 1U);
    EXPECT_EQ(s.gpus, 0U);
    // A mesh of the domains and one memory for each.
    EXPECT_EQ(s.links, m.domains * (m.domains - 1) / 2 + m.domains) << m.description;
  }
}

TEST(hwloc_source, of_a_synthetic_description_tells_processors_and_memory) {
  const auto f = tc::hwloc{.synthetic = "pack:2 [numa(memory=64GB)] core:4 pu:2"}.read({.host = "m"});
  ASSERT_TRUE(f) << f.error().message();
  EXPECT_EQ(fact(*f, "m/numa:0", "cpus"), "0-7");
  EXPECT_EQ(fact(*f, "m/numa:1", "cpus"), "8-15");
  EXPECT_EQ(fact(*f, "m/memory:1", "memory_bytes"), std::to_string(64000000000ULL));
}

// Two memories beside the same cores: only one of them is where the processors are.
TEST(hwloc_source, of_a_synthetic_description_with_two_memories_marks_the_second) {
  const auto f = tc::hwloc{.synthetic = "[numa] pack:1 [numa] core:4 pu:1"}.read({.host = "m"});
  ASSERT_TRUE(f) << f.error().message();
  EXPECT_EQ(counts(*f).numa_domains, 2U);
  const bool first = !fact(*f, "m/numa:0", "memory_of").empty();
  const bool second = !fact(*f, "m/numa:1", "memory_of").empty();
  EXPECT_NE(first, second);
}

// The library writes the schemas of versions 1 and 2 for one machine: both must read as the same machine.
TEST(hwloc_source, reads_the_old_schema_as_it_reads_the_new_one) {
  for (const char* description :
       {"pack:1 core:1 pu:1", "numa:2 pack:1 core:8 pu:2", "pack:2 numa:2 core:3 pu:2", "numa:5 core:2 pu:1"}) {
    hwloc_topology_t made = nullptr;
    ASSERT_EQ(hwloc_topology_init(&made), 0);
    const tc::backend::detail::hwloc_handle topology(made);
    ASSERT_EQ(hwloc_topology_set_synthetic(made, description), 0);
    ASSERT_EQ(hwloc_topology_load(made), 0);
    const auto told = [&](unsigned long flags) {
      char* text = nullptr;
      int length = 0;
      EXPECT_EQ(hwloc_topology_export_xmlbuffer(made, &text, &length, flags), 0);
      const std::string copy(text, static_cast<std::size_t>(length - 1));
      hwloc_free_xmlbuffer(made, text);
      EXPECT_TRUE(tc::read::looks_like_hwloc_topology(copy));
      const auto root = tc::io::parse_xml(copy, "x.xml");
      EXPECT_TRUE(root);
      auto t = tc::read::hwloc_topology_of(*root, "x.xml");
      EXPECT_TRUE(t) << t.error().message();
      EXPECT_EQ(t->version, flags == 0 ? 2U : 1U);
      EXPECT_EQ(t->processing_units, static_cast<std::size_t>(hwloc_get_nbobjs_by_type(made, HWLOC_OBJ_PU)));
      EXPECT_EQ(t->cores, static_cast<std::size_t>(hwloc_get_nbobjs_by_type(made, HWLOC_OBJ_CORE)));
      EXPECT_EQ(t->packages.size(), static_cast<std::size_t>(hwloc_get_nbobjs_by_type(made, HWLOC_OBJ_PACKAGE)));
      const auto f = tc::fragment_of(*t, {.host = "m"}, "x.xml");
      EXPECT_TRUE(f);
      std::string shape;
      for (const auto& n : f->nodes)
        shape += n.key + " " + fact(*f, n.key, "cpus") + " " + fact(*f, n.key, "memory_bytes") + "\n";
      for (const auto& l : f->links) shape += f->nodes[l.from.value].key + " - " + f->nodes[l.to.value].key + "\n";
      return shape;
    };
    EXPECT_EQ(told(0), told(HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V1)) << description;
  }
}

TEST(hwloc_source, refuses_a_description_that_makes_no_sense) {
  const auto f = tc::hwloc{.synthetic = "pack:none"}.read({});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::invalid_argument);
  EXPECT_NE(f.error().what.find("pack:none"), std::string::npos);
}

TEST(hwloc_source, does_not_begin_after_the_deadline) {
  const auto f = tc::hwloc{}.read({.until = tc::deadline::in({-1})});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::timed_out);
}
