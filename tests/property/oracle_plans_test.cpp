// SPDX-License-Identifier: Apache-2.0
// Plans for graphs whose exact bounds somebody else worked out: an optional folder of inputs.
#include <cstdlib>
#include <string>
#include <vector>
#include <topocoll/discover/capacity_json.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

/// "7/300" or "3" as a number.
double fraction(const std::string& text) {
  const auto bar = text.find('/');
  const double above = std::stod(text.substr(0, bar));
  return bar == std::string::npos ? above : above / std::stod(text.substr(bar + 1));
}

/// Seconds per byte that the plan of `packed` needs on its busiest link.
double busiest_of(const topo::graph& g, collective_kind c, const std::string& name) {
  plan::problem p;
  p.graph = &g;
  p.collective = c;
  p.size = {std::uint64_t{1} << 40U};
  p.ranks = g.all(topo::node_kind::gpu);
  plan::packed planner;
  planner.cost = plan::alpha_beta::ideal();
  const auto made = planner.synthesize(p);
  EXPECT_TRUE(made) << name << ": " << made.error().what;
  const auto proved = plan::verify(*made);
  EXPECT_TRUE(proved) << name << ": " << proved.error().what;
  const auto price = plan::simulate(p, *made, plan::alpha_beta::ideal());
  EXPECT_TRUE(price) << name << ": " << price.error().what;
  return price->busiest.value / static_cast<double>(p.size.value);
}

TEST(plans_of_oracle_graphs, are_on_their_bounds) {
  const char* folder = std::getenv("TOPOCOLL_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder of inputs";
  const auto text = io::read_file(std::string(folder) + "/oracles/cut-bounds.json");
  if (!text) GTEST_SKIP() << text.error().what;
  const auto document = io::parse_json(*text, "cut-bounds.json");
  ASSERT_TRUE(document);
  for (const io::json& t : (*document)["topologies"]) {
    const auto name = t["name"].get<std::string>();
    const auto read = fragment_of_capacity_graph(t.dump(), name);
    ASSERT_TRUE(read) << name << ": " << read.error().what;
    const topo::graph g = topo::graph::from(*read).value();
    const double ranks = t["n_compute"].get<double>();
    const io::json& want = t["expected"];
    // Rates are in GB/s per shard of the array; plans are in seconds per byte of the whole array.
    const double gather = fraction(want["inv_rate_allgather"].get<std::string>()) / ranks / 1e9;
    const double scatter = fraction(want["inv_rate_reducescatter"].get<std::string>()) / ranks / 1e9;
    const bool copies_needed = !want["balanced_switches"].get<bool>();
    if (!copies_needed) {
      EXPECT_NEAR(busiest_of(g, collective_kind::all_gather, name) / gather, 1, 1e-6) << name;
      EXPECT_NEAR(busiest_of(g, collective_kind::reduce_scatter, name) / scatter, 1, 1e-6) << name;
    }
    if (want.contains("allreduce_rate_GBps") && want["allreduce_rate_GBps"].is_string()) {
      const double reduce = 1 / fraction(want["allreduce_rate_GBps"].get<std::string>()) / 1e9;
      EXPECT_NEAR(busiest_of(g, collective_kind::all_reduce, name) / reduce, 1, 1e-6) << name;
    }
  }
}

}  // namespace
