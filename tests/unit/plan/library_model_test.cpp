// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/detail/calibrate_text.hpp>
#include <topocoll/app/detail/measurement_table.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/library_model.hpp>
#include <gtest/gtest.h>

namespace plan = topocoll::plan;
namespace topo = topocoll::topo;
namespace tables = topocoll::app::detail;
using namespace topocoll::literals;
using plan::gpu_fabric;
using plan::library_algorithm;
using plan::library_protocol;
using plan::machine_summary;
using plan::network_kind;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;
using topocoll::node_id;

namespace {

/// Eight GPUs a host behind NVSwitches of generation 4, eight 400 Gb/s NICs.
machine_summary hopper(std::uint32_t hosts, std::uint32_t gpus = 8) {
  machine_summary m;
  m.ranks = hosts * gpus;
  m.domains = m.hosts = hosts;
  m.fabric = gpu_fabric::nvswitch;
  m.generation = 4;
  m.gpu_links = 450.0_GBps;
  m.gpus_in_mesh = 8;
  m.multicast = true;
  m.network = network_kind::infiniband;
  m.nics = 8;
  m.nic_rate = 400_Gbps;
  return m;
}

double busbw(const machine_summary& m, collective_kind c, bytes size, plan::run_conditions run = {}) {
  return plan::predict(m, c, size, run).value().busbw.value / 1e9;
}

plan::run_conditions only(library_algorithm a) {
  plan::run_conditions run;
  run.only = a;
  return run;
}

constexpr bytes huge{std::uint64_t{1} << 40U};  // every latency is nothing beside it

topo::graph described(const char* spec) { return topo::graph::from(topocoll::describe(spec).value()).value(); }
std::vector<node_id> gpus_of(const topo::graph& g) { return g.all(topo::node_kind::gpu); }

}  // namespace

TEST(predict, of_huge_rings_is_the_payload_of_the_narrowest_link) {
  const plan::model_constants k;
  const double link = 450 * k[plan::model_parameter::nvlink4];
  const double nic = 400 * k[plan::model_parameter::infiniband];
  for (const std::uint32_t hosts : {1U, 2U, 3U, 5U, 8U, 17U}) {
    const double expected = hosts == 1 ? link : std::min(link, nic);
    for (const collective_kind c : {collective_kind::all_reduce, collective_kind::reduce_scatter})
      EXPECT_NEAR(busbw(hopper(hosts), c, huge, only(library_algorithm::ring)), expected, 0.002 * expected) << hosts;
  }
}

TEST(predict, sends_each_byte_once_between_two_domains_and_twice_among_more) {
  // Switches that reduce: NICs carry the array once each way between two domains, inner nodes of the double tree twice.
  const plan::model_constants k;
  machine_summary m = hopper(2);
  m.nic_rate = 100_Gbps;  // far below what the switches do
  const double nics = 100 * k[plan::model_parameter::infiniband];
  const double two = plan::predict(m, collective_kind::all_reduce, huge, only(library_algorithm::nvls))->time.value;
  EXPECT_NEAR(static_cast<double>(huge.value) / two / 1e9, nics, 0.002 * nics);
  m = hopper(4);
  m.nic_rate = 100_Gbps;
  const double four = plan::predict(m, collective_kind::all_reduce, huge, only(library_algorithm::nvls))->time.value;
  EXPECT_NEAR(four / two, 2 / k[plan::model_parameter::tree_net], 0.01);
}

TEST(predict, takes_switches_that_reduce_from_five_gpus_on) {
  for (const std::uint32_t gpus : {2U, 3U, 4U, 5U, 7U, 8U}) {
    const auto p = plan::predict(hopper(1, gpus), collective_kind::all_reduce, 8_GiB).value();
    EXPECT_EQ(p.algorithm, gpus > 4 ? library_algorithm::nvls : library_algorithm::ring) << gpus;
  }
  machine_summary off = hopper(1);
  off.multicast = false;
  EXPECT_EQ(plan::predict(off, collective_kind::all_reduce, 8_GiB)->algorithm, library_algorithm::ring);
}

TEST(predict, never_gets_faster_with_size_nor_slower_with_better_links) {
  for (const std::uint32_t hosts : {1U, 2U, 4U, 16U})
    for (const collective_kind c :
         {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter}) {
      double before = 0;
      for (std::uint64_t size = 1; size <= huge.value; size *= 2) {
        const double t = plan::predict(hopper(hosts), c, {size})->time.value;
        EXPECT_GE(t, before);
        before = t;
        machine_summary better = hopper(hosts);
        better.gpu_links = better.gpu_links * 1.5;
        better.nic_rate = better.nic_rate * 1.5;
        EXPECT_LE(plan::predict(better, c, {size})->time.value, t);
      }
    }
}

TEST(predict, takes_low_latency_protocols_for_small_sizes) {
  const auto small = plan::predict(hopper(2), collective_kind::all_gather, 1_KiB).value();
  EXPECT_EQ(small.protocol, library_protocol::ll);
  EXPECT_EQ(small.limit, plan::model_limit::latency);
  const auto large = plan::predict(hopper(2), collective_kind::all_gather, 8_GiB).value();
  EXPECT_EQ(large.protocol, library_protocol::simple);
  EXPECT_EQ(large.limit, plan::model_limit::gpu_links);  // eight NICs of 400 Gb/s carry more than a Hopper ring
  machine_summary slow = hopper(2);
  slow.nic_rate = 200_Gbps;
  EXPECT_EQ(plan::predict(slow, collective_kind::all_gather, 8_GiB)->limit, plan::model_limit::network);
  EXPECT_EQ(plan::predict(hopper(1), collective_kind::all_reduce, 8_GiB)->limit, plan::model_limit::switch_reduction);
  EXPECT_GT(small.spread, large.spread);
}

TEST(predict, of_zero_bytes_and_of_one_rank_is_the_start_alone) {
  machine_summary one;
  one.ranks = one.domains = one.hosts = 1;
  const double launch = plan::predict(one, collective_kind::all_reduce, 1_GiB)->time.value;
  EXPECT_DOUBLE_EQ(launch, plan::model_constants{}[plan::model_parameter::launch] * 1e-6);
  const double nothing = plan::predict(hopper(2), collective_kind::all_reduce, 0_B)->time.value;
  EXPECT_GT(nothing, launch);
  EXPECT_TRUE(std::isfinite(nothing));
}

TEST(predict, knows_how_the_library_was_launched) {
  const auto at = [&](plan::launch_mode mode) {
    plan::run_conditions run;
    run.launch = mode;
    return plan::predict(hopper(1), collective_kind::all_reduce, 8_B, run)->time.value;
  };
  EXPECT_LT(at(plan::launch_mode::process_per_gpu), at(plan::launch_mode::unknown));
  EXPECT_LT(at(plan::launch_mode::unknown), at(plan::launch_mode::one_process));
}

TEST(predict, divides_a_mesh_among_its_gpus) {
  machine_summary m;
  m.fabric = gpu_fabric::mesh;
  m.xgmi = true;
  m.gpus_in_mesh = 8;
  m.gpu_links = 448.0_GBps;  // seven links of 64
  m.hosts = m.domains = 1;
  const double share = plan::model_constants{}[plan::model_parameter::xgmi];
  for (const std::uint32_t n : {2U, 3U, 5U, 8U}) {
    m.ranks = n;
    EXPECT_NEAR(busbw(m, collective_kind::all_reduce, huge), 64.0 * (n - 1) * share, 0.5) << n;
  }
}

TEST(predict, refuses_what_it_has_no_figures_for) {
  EXPECT_EQ(plan::predict(hopper(1), collective_kind::broadcast, 1_MiB).error().code, errc::unsupported);
  machine_summary m = hopper(2);
  m.network = network_kind::none;
  EXPECT_EQ(plan::predict(m, collective_kind::all_reduce, 1_MiB).error().code, errc::unsupported);
  m = hopper(2);
  m.domains = 17;
  EXPECT_EQ(plan::predict(m, collective_kind::all_reduce, 1_MiB).error().code, errc::invalid_argument);
  m.ranks = 0;
  EXPECT_EQ(plan::predict(m, collective_kind::all_reduce, 1_MiB).error().code, errc::invalid_argument);
  m = hopper(1);
  m.gpu_links = {};
  EXPECT_EQ(plan::predict(m, collective_kind::all_reduce, 1_MiB).error().code, errc::unsupported);
  EXPECT_EQ(plan::predict(hopper(1), collective_kind::all_gather, 1_MiB, only(library_algorithm::nvls)).error().code,
            errc::unsupported);
}

TEST(predict_all, has_the_cheapest_first_and_each_way_once) {
  const auto all = plan::predict_all(hopper(4), collective_kind::all_reduce, 64_MiB).value();
  EXPECT_EQ(all.size(), 7U);  // ring and tree with three protocols each, and the tree of NVLS
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LE(all[i - 1].time, all[i].time);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(all[i].algorithm == all[j].algorithm && all[i].protocol == all[j].protocol);
  }
}

TEST(machine_summary_of, reads_a_described_cluster) {
  const topo::graph g = described("dgx-h100:nodes=4,leaves=8");
  const auto m = plan::machine_summary_of(g, gpus_of(g)).value();
  EXPECT_EQ(m.ranks, 32U);
  EXPECT_EQ(m.domains, 4U);
  EXPECT_EQ(m.hosts, 4U);
  EXPECT_EQ(m.fabric, gpu_fabric::nvswitch);
  EXPECT_EQ(m.generation, 4U);
  EXPECT_DOUBLE_EQ(m.gpu_links.value, 450e9);
  EXPECT_TRUE(m.multicast);
  EXPECT_EQ(m.network, network_kind::infiniband);
  EXPECT_EQ(m.nics, 8U);
  EXPECT_DOUBLE_EQ(m.nic_rate.value, 50e9);
  EXPECT_DOUBLE_EQ(plan::predict(m, collective_kind::all_reduce, 1_GiB)->time.value,
                   plan::predict(hopper(4), collective_kind::all_reduce, 1_GiB)->time.value);
}

TEST(machine_summary_of, gives_some_ranks_their_share_of_the_nics) {
  const topo::graph g = described("dgx-h100:nodes=2,leaves=8");
  std::vector<node_id> ranks;
  for (const node_id v : gpus_of(g))
    if (*g.at(v).index < 4) ranks.push_back(v);
  const auto m = plan::machine_summary_of(g, ranks).value();
  EXPECT_EQ(m.ranks, 8U);
  EXPECT_EQ(m.nics, 4U);
  const auto one = plan::machine_summary_of(g, std::vector<node_id>{gpus_of(g).front()}).value();
  EXPECT_EQ(one.ranks, 1U);
  EXPECT_EQ(one.domains, 1U);
}

TEST(machine_summary_of, refuses_what_is_no_gpu) {
  const topo::graph g = described("dgx-h100:nodes=1");
  EXPECT_EQ(plan::machine_summary_of(g, {}).error().code, errc::invalid_argument);
  const std::vector<node_id> nics = g.all(topo::node_kind::nic);
  EXPECT_EQ(plan::machine_summary_of(g, nics).error().code, errc::invalid_argument);
}

TEST(machine_summary_of, sees_the_slowest_gpu_and_says_that_they_differ) {
  topo::fragment f = topocoll::describe("dgx-h100:nodes=1").value();
  std::uint32_t gpu = UINT32_MAX;
  for (topo::link& l : f.links) {
    if (l.kind != topo::link_kind::nvlink) continue;
    const std::uint32_t end = f.nodes[l.from.value].kind == topo::node_kind::gpu ? l.from.value : l.to.value;
    if (gpu == UINT32_MAX) gpu = end;
    if (end == gpu) l.current = *l.nominal / 2.0;
  }
  const topo::graph g = topo::graph::from(f).value();
  const auto m = plan::machine_summary_of(g, gpus_of(g)).value();
  EXPECT_DOUBLE_EQ(m.gpu_links.value, 225e9);
  EXPECT_FALSE(m.findings.empty());
}

// The judged errors: constants of links and protocols against everything that was published, each system also predicted by
// constants fitted without it. NCCL's own model stands beside them.
TEST(library_model, is_as_close_to_published_measurements_as_is_promised) {
  const char* corpus = std::getenv("TOPOCOLL_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set";
  const auto text = topocoll::io::read_file(std::string(corpus) + "/measurements/published.tsv");
  if (!text) GTEST_SKIP() << text.error().what;
  const auto t = tables::parse_measurement_table(*text, "published.tsv").value();
  ASSERT_GT(t.rows.size(), 800U);
  ASSERT_GT(t.systems.size(), 30U);
  const auto model = plan::errors_of(t.rows, plan::predictions_for(t.rows));
  const auto nccl = plan::errors_of(t.rows, tables::nccl_predictions(t.rows));
  plan::calibration_options how;
  how.centre = plan::model_constants::priors();
  const auto left =
      plan::errors_of(t.rows, plan::predictions_left_out(t.rows, how, plan::model_constants{}, 8).value());
  const auto show = [](const char* who, const std::array<plan::error_line, plan::size_band_count>& e) {
    for (std::size_t b = 0; b < plan::size_band_count; ++b)
      std::printf(
          "%-18s %-16s %3u rows %2u systems: median %5.1f %%, nine in ten %6.1f %%, median of systems %5.1f %%\n", who,
          std::string(to_string(static_cast<plan::size_band>(b))).c_str(), e[b].rows, e[b].systems, 100 * e[b].median,
          100 * e[b].ninth_decile, 100 * e[b].median_of_systems);
  };
  show("model", model);
  show("system left out", left);
  show("NCCL's model", nccl);
  constexpr std::size_t small = 0, middle = 2, large = 4;
  for (const auto* e : {&model, &left}) {
    EXPECT_LE((*e)[small].median, 0.30);
    EXPECT_LE((*e)[middle].median, 0.20);
    EXPECT_LE((*e)[large].median, 0.06);
    EXPECT_LE((*e)[small].median_of_systems, 0.30);
    EXPECT_LE((*e)[middle].median_of_systems, 0.20);
    EXPECT_LE((*e)[large].median_of_systems, 0.06);
    for (const std::size_t b : {small, middle, large}) EXPECT_LT((*e)[b].median, nccl[b].median);
  }
}
