// SPDX-License-Identifier: Apache-2.0
#include <topocoll/plan/cost.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::bytes_per_second;
using topocoll::seconds;
using topocoll::trust;
using topocoll::plan::alpha_beta;

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

TEST(alpha_beta, sums_to_the_latencies_of_nccl) {
  const alpha_beta m;
  const auto way = [&](int nvlinks, int pcie, int adapters, int cables) {
    return nvlinks * m.price(topo::link_kind::nvlink).latency.value +
           pcie * m.price(topo::link_kind::pcie).latency.value +
           adapters * m.price(topo::link_kind::internal).latency.value +
           cables * m.price(topo::link_kind::infiniband).latency.value;
  };
  EXPECT_NEAR(way(2, 0, 0, 0), 0.6e-6, 1e-12);  // ring over NVLink, LL
  EXPECT_NEAR(way(0, 4, 0, 0), 1.0e-6, 1e-12);  // ring over PCIe, LL
  EXPECT_GE(way(0, 2, 2, 2), 2.7e-6);           // ring over the network, LL, plus what the NIC says
  EXPECT_LE(way(0, 2, 2, 2), 4.0e-6);
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
