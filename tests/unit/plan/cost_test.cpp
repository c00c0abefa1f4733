// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>
#include <topocoll/plan/cost.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::bytes_per_second;
using topocoll::seconds;
using topocoll::trust;
using topocoll::plan::alpha_beta;
using topocoll::plan::library_protocol;
using topocoll::plan::model_constants;
using topocoll::plan::model_parameter;

namespace {

topo::link link_of(topo::link_kind kind, bytes_per_second capacity) {
  topo::link l;
  l.kind = kind;
  l.capacity = capacity;
  return l;
}

}  // namespace

TEST(alpha_beta, takes_payload_from_the_nominal_rate) {
  topo::link l = link_of(topo::link_kind::nvlink, 450.0_GBps);
  l.nominal = 450.0_GBps;
  EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 450e9 * 20.6 / 25);  // 370.8 GB/s, NCCL's figure for 18 Hopper links
}

TEST(alpha_beta, does_not_reduce_a_capacity_twice) {
  topo::link l = link_of(topo::link_kind::nvlink, 370.8_GBps);  // payload already
  l.nominal = 450.0_GBps;
  EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 370.8e9);
  l.nominal.reset();  // nothing is known of the line rate
  EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 370.8e9);
}

TEST(alpha_beta, believes_a_measured_capacity) {
  topo::link l = link_of(topo::link_kind::infiniband, 49.5_GBps);
  l.nominal = 50.0_GBps;
  l.how = trust::measured;
  EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 49.5e9);
}

TEST(alpha_beta, gives_a_degraded_link_its_own_rate) {
  topo::link l = link_of(topo::link_kind::infiniband, 25.0_GBps);
  l.nominal = 50.0_GBps;
  EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 25e9);
}

TEST(alpha_beta, gives_each_generation_of_nvlink_its_own_payload) {
  topo::link l = link_of(topo::link_kind::nvlink, 450.0_GBps);
  l.nominal = 450.0_GBps;
  for (const auto& [generation, p] : {std::pair<std::uint32_t, model_parameter>{1, model_parameter::nvlink1},
                                      {2, model_parameter::nvlink2},
                                      {3, model_parameter::nvlink3},
                                      {4, model_parameter::nvlink4},
                                      {5, model_parameter::nvlink5}}) {
    l.generation = generation;
    EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 450e9 * fact_of(p).value) << generation;
  }
  l.generation = 77;  // newer than the table: as a link that tells no generation
  EXPECT_DOUBLE_EQ(alpha_beta{}.rate(l).value, 450e9 * 20.6 / 25);
}

TEST(alpha_beta, sums_to_the_hops_of_the_library_model) {
  const alpha_beta m;
  const auto way = [&](int nvlinks, int pcie, int adapters, topo::link_kind cable, int cables) {
    return nvlinks * m.price(topo::link_kind::nvlink).latency.value +
           pcie * m.price(topo::link_kind::pcie).latency.value +
           adapters * m.price(topo::link_kind::internal).latency.value + cables * m.price(cable).latency.value;
  };
  const auto hop = [](model_parameter p) { return fact_of(p).value * 1e-6; };
  using enum topo::link_kind;
  EXPECT_NEAR(way(2, 0, 0, infiniband, 0), hop(model_parameter::nvlink_hop), 1e-12);
  EXPECT_NEAR(way(0, 4, 0, infiniband, 0), hop(model_parameter::pcie_hop), 1e-12);
  EXPECT_NEAR(way(0, 2, 2, infiniband, 2), hop(model_parameter::infiniband_hop), 1e-9);
  EXPECT_NEAR(way(0, 2, 2, ethernet, 2), hop(model_parameter::roce_hop), 0.4e-6);
}

TEST(alpha_beta, follows_a_calibrated_model) {
  model_constants k;
  k[model_parameter::nvlink4] = 0.5;
  k[model_parameter::roce] = 0.6;
  k[model_parameter::launch] = 20;
  const alpha_beta m = alpha_beta::from(k);
  topo::link l = link_of(topo::link_kind::nvlink, 450.0_GBps);
  l.nominal = 450.0_GBps;
  l.generation = 4;
  EXPECT_DOUBLE_EQ(m.rate(l).value, 225e9);
  EXPECT_DOUBLE_EQ(m.price(topo::link_kind::ethernet).efficiency, 0.6);
  EXPECT_DOUBLE_EQ(m.launch().value, 20e-6);
}

TEST(alpha_beta, pays_for_protocols_in_bandwidth_or_in_latency) {
  topo::link l = link_of(topo::link_kind::nvlink, 450.0_GBps);
  l.nominal = 450.0_GBps;
  l.generation = 4;
  const alpha_beta best;
  const alpha_beta ll = best.with(library_protocol::ll), ll128 = best.with(library_protocol::ll128);
  const alpha_beta simple = best.with(library_protocol::simple);
  EXPECT_EQ(ll.latency(l), best.latency(l));
  EXPECT_LT(ll.latency(l), ll128.latency(l));
  EXPECT_LT(ll128.latency(l), simple.latency(l));
  EXPECT_LT(ll.rate(l), ll128.rate(l));
  EXPECT_LT(ll128.rate(l), simple.rate(l));
  EXPECT_EQ(simple.rate(l), best.rate(l));
}

TEST(alpha_beta, charges_nics_for_every_message_and_wires_for_none) {
  const alpha_beta m;
  EXPECT_GT(m.message(link_of(topo::link_kind::internal, 50.0_GBps)), seconds{});
  EXPECT_EQ(m.message(link_of(topo::link_kind::infiniband, 50.0_GBps)), seconds{});
}

TEST(alpha_beta, ideal_prices_bytes_only) {
  const alpha_beta m = alpha_beta::ideal();
  topo::link l = link_of(topo::link_kind::nvlink, 100.0_GBps);
  l.nominal = 100.0_GBps;
  EXPECT_DOUBLE_EQ(m.rate(l).value, 100e9);
  EXPECT_EQ(m.latency(l), seconds{});
  EXPECT_EQ(m.post(), seconds{});
  EXPECT_EQ(m.launch(), seconds{});
  EXPECT_LT(m.reduce(1_GiB).value, 1e-200);
}

TEST(alpha_beta, of_a_host_reduces_slower_than_a_gpu) {
  EXPECT_GT(alpha_beta::host().reduce(1_GiB), alpha_beta{}.reduce(1_GiB));
}
