// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/plan_origin.hpp>
#include <topocoll/plan/replan.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/plan/synth/ring.hpp>
#include <topocoll/topo/graph.hpp>
#include <gtest/gtest.h>

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
namespace io = topocoll::io;
using topocoll::errc;
using topocoll::link_id;
using topocoll::seconds;

struct wire_spec {
  std::uint32_t a = 0, b = 0;
};

/// Four GPUs, joined as told, in the order that is told.
topo::graph wired(const std::vector<wire_spec>& wires) {
  topo::fragment f;
  f.source = "wired";
  for (std::uint32_t v = 0; v < 4; ++v) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = "box/gpu:" + std::to_string(v);
    f.add(n);
  }
  for (const wire_spec& w : wires) {
    topo::link l;
    l.kind = topo::link_kind::nvlink;
    l.from = {w.a};
    l.to = {w.b};
    l.capacity = {20e9};
    f.join(l);
  }
  return topo::graph::from(std::move(f)).value();
}
plan::problem origin_problem(const topo::graph& g) {
  plan::problem p;
  p.graph = &g;
  p.collective = topocoll::collective_kind::all_gather;
  p.size = {std::uint64_t{1} << 28U};
  p.ranks = g.all(topo::node_kind::gpu);
  return p;
}
plan::schedule packed_on(const topo::graph& g) {
  plan::packed planner;
  planner.cost = plan::alpha_beta::ideal();
  return planner.synthesize(origin_problem(g)).value();
}

const std::vector<wire_spec> square = {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 1}};  // two wires between 0 and 1

TEST(plan_origin, comes_back_from_a_file_and_the_plan_with_it) {
  const topo::graph g = wired(square);
  const plan::problem p = origin_problem(g);
  const plan::schedule made = packed_on(g);
  ASSERT_FALSE(made.ways.empty());
  const auto origin = plan::origin_of(p, made, seconds{0.5});
  const std::string text = plan::to_json(made, origin);
  EXPECT_EQ(plan::schedule_from_json(text, "file").value(), made);
  const auto read = plan::origin_of(io::parse_json(text, "file").value(), "file").value();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->machine, "wired");
  EXPECT_EQ(read->size, p.size);
  EXPECT_EQ(read->time.value, 0.5);
  EXPECT_EQ(read->seats, origin.seats);
  EXPECT_EQ(read->seats[2], "box/gpu:2");
  ASSERT_EQ(read->wires.size(), origin.wires.size());
  for (std::size_t k = 0; k < origin.wires.size(); ++k) {
    EXPECT_EQ(read->wires[k].link, origin.wires[k].link);
    EXPECT_EQ(read->wires[k].from, origin.wires[k].from);
    EXPECT_EQ(read->wires[k].to, origin.wires[k].to);
    EXPECT_EQ(read->wires[k].ordinal, origin.wires[k].ordinal);
  }
}

TEST(plan_origin, finds_every_way_in_a_graph_whose_links_are_numbered_otherwise) {
  const topo::graph g = wired(square), other = wired({{3, 0}, {2, 3}, {0, 1}, {0, 1}, {1, 2}});
  const plan::schedule made = packed_on(g);
  const auto origin = plan::origin_of(origin_problem(g), made, {});
  std::size_t lost = 0;
  static_cast<void>(plan::with_ways_that_exist(made, origin_problem(other), lost));
  EXPECT_GT(lost, 0U) << "by number the ways lead nowhere";
  std::vector<plan::plan_origin::wire> gone;
  const auto there = plan::renumbered(made, origin, other, gone);
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(plan::with_ways_that_exist(there, origin_problem(other), lost), there);
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(digest(there), digest(made));
  for (std::size_t k = 0; k < made.ways.size(); ++k)
    for (std::size_t i = 0; i < made.ways[k].links.size(); ++i) {
      const link_id was = made.ways[k].links[i], is = there.ways[k].links[i];
      EXPECT_EQ(g.at(g.tail(was)).key, other.at(other.tail(is)).key);
      EXPECT_EQ(g.at(g.head(was)).key, other.at(other.head(is)).key);
    }
}

TEST(plan_origin, leaves_a_plan_as_it_is_in_the_graph_that_it_was_made_for) {
  const topo::graph g = wired({{0, 1}, {0, 1}, {0, 1}, {1, 2}, {2, 3}, {3, 0}});  // three equal wires
  const plan::schedule made = packed_on(g);
  auto origin = plan::origin_of(origin_problem(g), made, {});
  std::vector<plan::plan_origin::wire> gone;
  EXPECT_EQ(plan::renumbered(made, origin, g, gone), made);
  EXPECT_TRUE(gone.empty());
  for (const auto& w : origin.wires) {  // the first link between two nodes is number 0 of them
    std::uint32_t before = 0;
    for (std::uint32_t e = 0; e < w.link; ++e)
      before += g.at(g.tail({e})).key == w.from && g.at(g.head({e})).key == w.to ? 1 : 0;
    EXPECT_EQ(w.ordinal, before);
  }
  // What a file does not tell the ends of leads nowhere, whatever its number.
  origin.wires.clear();
  std::size_t lost = 0;
  static_cast<void>(plan::with_ways_that_exist(plan::renumbered(made, origin, g, gone), origin_problem(g), lost));
  EXPECT_EQ(lost, made.ways.size());
  origin = plan::origin_of(origin_problem(g), made, {});
  origin.wires.erase(origin.wires.begin());
  static_cast<void>(plan::with_ways_that_exist(plan::renumbered(made, origin, g, gone), origin_problem(g), lost));
  EXPECT_GT(lost, 0U);
}

TEST(plan_origin, names_the_links_that_are_gone_and_keeps_the_other_ways) {
  const topo::graph g = wired(square), cut = wired({{0, 1}, {1, 2}, {3, 0}, {0, 1}}),
                    single = wired({{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  const plan::schedule made = packed_on(g);
  const auto origin = plan::origin_of(origin_problem(g), made, {});
  std::vector<plan::plan_origin::wire> gone;
  std::size_t lost = 0;
  const auto after_cut = plan::renumbered(made, origin, cut, gone);
  ASSERT_FALSE(gone.empty());
  for (const auto& w : gone)
    EXPECT_TRUE((w.from == "box/gpu:2" && w.to == "box/gpu:3") || (w.from == "box/gpu:3" && w.to == "box/gpu:2"));
  std::size_t over = 0;  // ways over the link that is gone, counted by hand
  for (const plan::way& w : made.ways) {
    bool there = true;
    for (const link_id e : w.links) {
      const std::uint32_t a = g.tail(e).value, b = g.head(e).value;
      there = there && !((a == 2 && b == 3) || (a == 3 && b == 2));
    }
    over += there ? 0 : 1;
  }
  static_cast<void>(plan::with_ways_that_exist(after_cut, origin_problem(cut), lost));
  EXPECT_EQ(lost, over);
  EXPECT_LT(lost, made.ways.size());
  // One of two equal links is gone: the second is.
  static_cast<void>(plan::renumbered(made, origin, single, gone));
  for (const auto& w : gone) EXPECT_EQ(w.ordinal, 1U);
}

TEST(plan_origin, is_not_told_by_plans_without_one) {
  const auto made = plan::ring{}.synthesize(origin_problem(wired(square))).value();
  EXPECT_FALSE(plan::origin_of(io::parse_json(plan::to_json(made), "file").value(), "file").value());
}

TEST(plan_origin, refuses_what_is_not_one) {
  for (
      const char* text :
      {R"({"origin": 5})", R"({"origin": {"size": 1, "time": 1}})",
       R"({"origin": {"size": -1, "time": 1, "seats": []}})", R"({"origin": {"size": 1, "time": "1", "seats": []}})",
       R"({"origin": {"size": 1, "time": 1, "seats": [7]}})",
       R"({"origin": {"size": 1, "time": 1, "seats": [], "links": [{}]}})",
       R"({"origin": {"size": 1, "time": 1, "seats": [], "links": [{"link": 1, "from": "a", "to": "b", "ordinal": -1}]}})"}) {
    const auto read = plan::origin_of(io::parse_json(text, "file").value(), "file");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, errc::malformed_input) << text;
    EXPECT_NE(read.error().what.find("/origin"), std::string::npos) << read.error().what;
  }
}

}  // namespace
