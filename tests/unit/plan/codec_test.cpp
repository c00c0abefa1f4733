// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
namespace io = topocoll::io;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;

namespace {

constexpr collective_kind all_kinds[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                         collective_kind::reduce_scatter, collective_kind::broadcast,
                                         collective_kind::reduce,         collective_kind::all_to_all,
                                         collective_kind::gather,         collective_kind::scatter};

std::string ring_text() {
  return plan::to_json(plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::ring).value());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST(plan_json, gives_every_schedule_back) {
  const topo::graph g =
      topo::graph::from(topocoll::describe("dgx-h100:nodes=3,pods=3,oversubscription=2").value()).value();
  std::size_t plans = 0;
  for (const auto kind : all_kinds) {
    plan::problem p;
    p.graph = &g;
    p.collective = kind;
    p.size = 10_MiB;
    p.ranks = g.all(topo::node_kind::gpu);
    const auto again = [&](const auto& planner) {
      const auto made = planner.synthesize(p);
      if (!made) return;
      ++plans;
      const std::string text = plan::to_json(*made);
      const auto read = plan::schedule_from_json(text, "a.json");
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(*read, *made) << planner.name() << ' ' << to_string(kind);
      EXPECT_EQ(plan::to_json(*read), text);
      EXPECT_EQ(digest(*read), digest(*made));
    };
    plan::with_default_planners([&](const auto&... all) { (again(all), ...); });
  }
  EXPECT_GT(plans, 30U);
}

TEST(plan_json, is_pinned) {
  auto ring = plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::ring).value();
  ring.name = "the ring";
  ring.stages[0].label = "all \"three\"";
  EXPECT_EQ(replaced(plan::to_json(ring), plan::detail::hex_of(digest(ring)), "DIGEST"),
            "{\n"
            "  \"schema\": \"topocoll.plan/1\",\n"
            "  \"collective\": \"all_reduce\",\n"
            "  \"ranks\": 3,\n"
            "  \"root\": 0,\n"
            "  \"name\": \"the ring\",\n"
            "  \"units\": 3,\n"
            "  \"slices\": 1,\n"
            "  \"digest\": \"DIGEST\",\n"
            "  \"stages\": [\n"
            "    {\"kind\": \"all_reduce\", \"algorithm\": \"ring\", \"label\": \"all \\\"three\\\"\", \"offsets\": "
            "[0, 3], \"members\": [0, 1, 2], \"bounds\": [0, 1, 2, 3]}\n"
            "  ]\n"
            "}\n");
}

TEST(plan_json, passes_over_unknown_fields) {
  EXPECT_TRUE(
      plan::schedule_from_json(replaced(ring_text(), "\"ranks\"", "\"colour\": {\"deep\": [1]}, \"ranks\""), "a.json"));
}

TEST(plan_json, of_a_newer_schema_is_refused_with_both_versions) {
  const auto read = plan::schedule_from_json(replaced(ring_text(), "topocoll.plan/1", "topocoll.plan/7"), "a.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::unsupported);
  EXPECT_NE(read.error().what.find("version 7"), std::string::npos);
  EXPECT_NE(read.error().what.find("version 1"), std::string::npos);
}

TEST(plan_json, that_was_changed_does_not_match_its_digest) {
  const auto read =
      plan::schedule_from_json(replaced(ring_text(), "[0, 1, 2], \"bounds\"", "[0, 2, 1], \"bounds\""), "a.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::mismatch);
}

TEST(plan_json, that_is_broken_is_refused_with_the_place) {
  const struct {
    const char *from, *to, *place;
  } cases[] = {{"\"ranks\": 3", "\"ranks\": \"3\"", "/ranks"},
               {"\"ranks\": 3", "\"ranks\": -3", "/ranks"},
               {"\"ranks\": 3", "\"ranks\": 99999999999", "/ranks"},
               {"\"all_reduce\",\n", "\"all_redcue\",\n", "/collective"},
               {"\"kind\": \"all_reduce\"", "\"kind\": \"shuffle\"", "/stages/0/kind"},
               {"\"algorithm\": \"ring\"", "\"algorithm\": 5", "/stages/0/algorithm"},
               {"[0, 1, 2, 3]", "[0, 1, true, 3]", "/stages/0/bounds/2"},
               {"[0, 1, 2, 3]", "{}", "/stages/0/bounds"},
               {"[0, 1, 2, 3]", "[0, 1, 2, 3000]", "stage 0"},
               {"[0, 1, 2]", "[0, 1, 7]", "stage 0"},
               {"\"slices\": 1", "\"slices\": 0", ""},
               {"\"slices\": 1", "\"slices\": 4000000000", ""},
               {"\"units\": 3", "\"units\": 4294967295", ""},
               {"\"root\": 0", "\"root\": 3", ""},
               {"\"stages\": [", "\"stages\": 7, \"x\": [", "/stages"},
               {"topocoll.plan/1", "topocoll.topology/1", "schema"}};
  for (const auto& c : cases) {
    const auto read = plan::schedule_from_json(replaced(ring_text(), c.from, c.to), "a.json");
    ASSERT_FALSE(read) << c.to;
    EXPECT_EQ(read.error().code, errc::malformed_input) << c.to << ": " << read.error().what;
    EXPECT_EQ(read.error().what.find("a.json"), 0U) << read.error().what;
    EXPECT_NE(read.error().what.find(c.place), std::string::npos) << read.error().what;
  }
  for (const char* text : {"", "[]", "{}", "null", "{\"schema\": \"topocoll.plan/1\"}"})
    EXPECT_FALSE(plan::schedule_from_json(text, "a.json")) << text;
}

TEST(explanation_json, says_the_same_as_the_text) {
  const topo::graph g =
      topo::graph::from(topocoll::describe("dgx-h100:nodes=4,pods=2,oversubscription=2").value()).value();
  plan::problem p;
  p.graph = &g;
  p.size = 16_MiB;
  p.ranks = g.all(topo::node_kind::gpu);
  plan::simulator<plan::alpha_beta> prices(g, {});
  const auto made = plan::choose(prices, p, {}, plan::hierarchical{}, plan::ring{}, plan::one_shot{}).value();
  const std::vector<bytes> sizes{1_KiB, 1_GiB};
  const auto map = plan::crossovers(prices, p, made.limit, sizes, {}, plan::hierarchical{}, plan::ring{}).value();
  const auto e = plan::explain(prices, p, made, map).value();
  const auto j = io::parse_json(plan::to_json(e), "e").value();
  EXPECT_EQ(j.at("schema"), "topocoll.explanation/1");
  EXPECT_EQ(j.at("size"), 16U << 20U);
  EXPECT_EQ(j.at("ranks"), 32);
  EXPECT_EQ(j.at("plan").at("time").get<double>(), e.price.time.value);
  EXPECT_EQ(j.at("plan").at("name"), e.chosen);
  EXPECT_EQ(j.at("bound").at("time").get<double>(), e.limit.time.value);
  EXPECT_EQ(j.at("bound").at("method"), "best_partition");
  EXPECT_EQ(j.at("stages").size(), e.stages.size());
  EXPECT_EQ(j.at("others").size(), 2U);
  EXPECT_EQ(j.at("spine").at(0).at("up"), e.spine[0].up.value);
  EXPECT_EQ(j.at("sizes").size(), e.sizes.size());
  double sum = 0;
  for (const auto& part : j.at("plan").at("parts_of_time")) sum += part.get<double>();
  EXPECT_NEAR(sum, e.price.time.value, 1e-12);
}
