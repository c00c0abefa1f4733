// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <unit/plan/svg_reading.hpp>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/overlay_svg.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>
#include <pugixml.hpp>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using topocoll::collective_kind;

namespace {

struct drawn {
  std::string text;
  plan::simulation price;
  pugi::xml_document d;
};

template <class Planner>
void draw(drawn& x, const std::string& spec, const Planner& planner, collective_kind kind = collective_kind::all_reduce,
          topocoll::bytes size = 64_MiB) {
  const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
  plan::problem p;
  p.graph = &g;
  p.collective = kind;
  p.size = size;
  p.ranks = g.all(topo::node_kind::gpu);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto made = planner.synthesize(p).value();
  x.price = prices.run(p, made).value();
  x.text = plan::overlay_svg(p, made, x.price, prices.cost());
  ASSERT_TRUE(x.d.load_string(x.text.c_str())) << spec;
}

/// Elements whose title holds a text.
std::size_t titled(const drawn& x, const char* element, const std::string& part) {
  std::size_t n = 0;
  for (const pugi::xml_node e : x.d.child("svg").children(element))
    n += std::string(e.child_value("title")).find(part) != std::string::npos ? 1 : 0;
  return n;
}

}  // namespace

TEST(overlay_svg, is_xml_whose_texts_do_not_meet) {
  const char* specs[] = {"dgx-h100",
                         "dgx-1v",
                         "pcie",
                         "dgx-h100:nodes=16,leaves=8,oversubscription=2",
                         "dgx-a100:nodes=2,leaves=8,slow=node0/nic3:0.5",
                         "gb200-nvl72:nodes=36",
                         "dgx-h100:nodes=64,pods=4,spines=16,cores=4,core_oversubscription=2",
                         "pcie:nodes=3,gpus=8,gpus_per_switch=0,leaves=1"};
  for (const char* spec : specs) {
    drawn x;
    draw(x, spec, plan::hierarchical{});
    const auto texts = svg_reading::texts_of(x.d);
    EXPECT_EQ(svg_reading::overlap(texts), "") << spec;
    EXPECT_EQ(svg_reading::outside(x.d, texts), "") << spec;
    EXPECT_FALSE(std::string(x.d.child("svg").child_value("desc")).empty());
    for (const char* bad : {"<script", "href", "url(", "nan", "inf"})
      EXPECT_EQ(x.text.find(bad), std::string::npos) << bad << " " << spec;
    EXPECT_LT(x.text.size(), 300'000U) << spec;
  }
}

TEST(overlay_svg, draws_what_every_gpu_sends_to_its_switch) {
  drawn x;
  draw(x, "dgx-h100", plan::hierarchical{.in_box = plan::algorithm::direct});
  const topocoll::bytes most = x.price.by_class[static_cast<std::size_t>(plan::link_class::gpu_link)].largest;
  ASSERT_GT(most.value, 0U);
  for (int k = 0; k < 8; ++k) {
    const std::string there =
        "GPU " + std::to_string(k) + " of node0 to NVSwitch of node0\n" + plan::detail::about(most);
    EXPECT_EQ(titled(x, "line", there), 1U) << there;
  }
  EXPECT_EQ(titled(x, "path", "rank 0 to rank 7"), 1U);
  // 28 pairs of ranks, each once, although stages repeat them.
  EXPECT_EQ(titled(x, "path", "rank "), 28U);
}

TEST(overlay_svg, colours_every_cable_by_its_load_and_writes_on_the_busiest) {
  const std::string spec = "dgx-a100:nodes=2,leaves=8,slow=node0/nic3:0.5";
  const topo::graph g = topo::graph::from(topocoll::describe(spec).value()).value();
  drawn x;
  draw(x, spec, plan::ring{});
  ASSERT_TRUE(x.price.limit);
  const auto time_on = [&](topocoll::link_id e) {
    return static_cast<double>(x.price.loads[e.value].value) / plan::alpha_beta{}.rate(g.at(e)).value;
  };
  const double busiest = time_on(*x.price.limit);
  EXPECT_GE(titled(x, "rect", plan::detail::about(x.price.loads[x.price.limit->value]) + " on the busiest link"), 1U);
  std::size_t cables = 0;
  for (std::uint32_t k = 0; k < g.link_count(); ++k) {
    const topo::link& l = g.at(topocoll::link_id{k});
    if (g.at(l.from).kind != topo::node_kind::nic_port || g.at(l.to).kind != topo::node_kind::leaf) continue;
    double share = time_on({k}) / busiest;  // of the busier direction
    for (const topocoll::link_id back : g.out_links(l.to))
      if (g.head(back) == l.from) share = std::max(share, time_on(back) / busiest);
    const std::string ends = g.at(l.from).host + " - " + g.at(l.to).name + "\n";
    for (const pugi::xml_node e : x.d.child("svg").children("line"))
      if (std::string(e.child_value("title")).starts_with(ends)) {
        EXPECT_STREQ(e.attribute("stroke").as_string(), plan::detail::style_of_share(share).colour) << ends << share;
        ++cables;
      }
  }
  EXPECT_EQ(cables, 16U);
}

TEST(overlay_svg, draws_the_heaviest_trees_of_a_packed_plan) {
  drawn x;
  draw(x, "dgx-1v", plan::packed{});
  EXPECT_NE(x.text.find("heaviest of"), std::string::npos);
  // Each tree is drawn with all its ranks; the row of ranks above has them once more.
  std::size_t discs = 0;
  for ([[maybe_unused]] const pugi::xml_node e : x.d.child("svg").children("circle")) ++discs;
  EXPECT_EQ(discs, 8U + 6U * 8U);
  EXPECT_NE(x.text.find("tree with root "), std::string::npos);
}

TEST(overlay_svg, draws_machines_without_anything_to_carry) {
  drawn x;
  draw(x, "dgx-a100", plan::ring{}, collective_kind::all_reduce, topocoll::bytes{0});
  EXPECT_EQ(x.text.find("on the busiest link"), std::string::npos);
  EXPECT_NE(x.text.find("Host node0"), std::string::npos);
}

TEST(overlay_svg, draws_processes_on_numa_domains_and_their_memory) {
  topo::fragment f;
  const auto add = [&](topo::node_kind kind, const std::string& name) {
    topo::node n;
    n.kind = kind;
    n.key = "here/" + name;
    n.name = name;
    n.host = "here";
    return f.add(n);
  };
  const auto join = [&](topocoll::node_id a, topocoll::node_id b, topo::link_kind kind, double rate) {
    topo::link l;
    l.from = a;
    l.to = b;
    l.kind = kind;
    l.capacity = {rate};
    f.join(l);
  };
  const auto a = add(topo::node_kind::cpu, "NUMA 0"), b = add(topo::node_kind::cpu, "NUMA 1");
  join(a, add(topo::node_kind::host_memory, "memory 0"), topo::link_kind::memory, 100e9);
  join(b, add(topo::node_kind::host_memory, "memory 1"), topo::link_kind::memory, 100e9);
  join(a, b, topo::link_kind::cpu, 400e9);
  const topo::graph g = topo::graph::from(f).value();
  plan::problem p;
  p.graph = &g;
  p.size = 1_MiB;
  p.ranks = {a, a, a, a, a, b, b};
  plan::simulator<plan::alpha_beta> prices(g, plan::alpha_beta::host());
  const auto made = plan::one_shot{}.synthesize(p).value();
  drawn x;
  x.price = prices.run(p, made).value();
  x.text = plan::overlay_svg(p, made, x.price, prices.cost());
  ASSERT_TRUE(x.d.load_string(x.text.c_str()));
  const auto texts = svg_reading::texts_of(x.d);
  EXPECT_EQ(svg_reading::overlap(texts), "");
  EXPECT_EQ(svg_reading::outside(x.d, texts), "");
  EXPECT_NE(x.text.find(">5 ranks<"), std::string::npos);
  EXPECT_EQ(titled(x, "line", "NUMA 0 of here to memory 0 of here"), 1U);
  EXPECT_EQ(titled(x, "rect", "on the busiest link"), 1U);
  std::size_t discs = 0;
  for (const pugi::xml_node c : x.d.child("svg").children("circle")) {
    EXPECT_GE(c.attribute("cx").as_double(), c.attribute("r").as_double());
    ++discs;
  }
  EXPECT_EQ(discs, 7U);
}

TEST(overlay_svg, sums_up_what_is_too_much) {
  drawn x;
  draw(x, "dgx-h100:nodes=64,leaves=8", plan::hierarchical{});
  EXPECT_NE(x.text.find("64 hosts"), std::string::npos);
  EXPECT_EQ(x.text.find("node63<"), std::string::npos);
  EXPECT_NE(x.text.find("Inside node"), std::string::npos);
}
