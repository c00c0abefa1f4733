// SPDX-License-Identifier: Apache-2.0
// What every CostModel promises beside its signatures. Add your model to the list at the end.
#include <cmath>
#include <cstddef>
#include <vector>
#include <topocoll/plan/cost.hpp>
#include <gtest/gtest.h>

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using topocoll::bytes;
using topocoll::bytes_per_second;
using topocoll::seconds;
using topocoll::trust;

namespace {

struct gpu_cluster {
  static plan::alpha_beta make() { return {}; }
};
struct host {
  static plan::alpha_beta make() { return plan::alpha_beta::host(); }
};
struct bytes_only {
  static plan::alpha_beta make() { return plan::alpha_beta::ideal(); }
};

/// The smallest thing that satisfies the concept: every link carries half of its capacity.
struct halves {
  [[nodiscard]] bytes_per_second rate(const topo::link& l) const { return l.capacity / 2.0; }
  [[nodiscard]] seconds transfer(const topo::link& l, bytes b) const { return b.value == 0 ? seconds{} : b / rate(l); }
  [[nodiscard]] seconds latency(const topo::link&) const { return 1_us; }
  [[nodiscard]] seconds post() const { return {}; }
  [[nodiscard]] seconds launch() const { return {}; }
  [[nodiscard]] seconds reduce(bytes b) const { return b / 10.0_GBps; }
};
struct users_own {
  static halves make() { return {}; }
};

std::vector<topo::link> links() {
  std::vector<topo::link> all;
  for (int kind = 0; kind <= static_cast<int>(topo::link_kind::ethernet); ++kind)
    for (const double rate : {1e6, 25e9, 900e9})
      for (const int nominal : {0, 1, 2})
        for (const trust how : {trust::measured, trust::reported, trust::assumed}) {
          topo::link l;
          l.kind = static_cast<topo::link_kind>(kind);
          l.capacity = {rate};
          if (nominal > 0) l.nominal = bytes_per_second{rate * nominal};
          l.how = how;
          all.push_back(l);
        }
  return all;
}

template <class T>
class cost_model : public ::testing::Test {};
using models = ::testing::Types<gpu_cluster, host, bytes_only, users_own>;
TYPED_TEST_SUITE(cost_model, models);

}  // namespace

TYPED_TEST(cost_model, satisfies_the_concept) { plan::require_cost_model<decltype(TypeParam::make())>(); }

TYPED_TEST(cost_model, never_exceeds_the_capacity_of_a_link) {
  const auto m = TypeParam::make();
  for (const topo::link& l : links()) {
    EXPECT_GT(m.rate(l).value, 0);
    EXPECT_LE(m.rate(l), l.capacity);
  }
}

TYPED_TEST(cost_model, charges_bytes_in_proportion_and_without_latency) {
  const auto m = TypeParam::make();
  for (const topo::link& l : links()) {
    EXPECT_EQ(m.transfer(l, bytes{0}), seconds{});
    const double once = m.transfer(l, 1_MiB).value;
    EXPECT_NEAR(m.transfer(l, 3_MiB).value, 3 * once, 1e-9 * once);
    EXPECT_NEAR(once, (1_MiB / m.rate(l)).value, 1e-9 * once);
  }
}

TYPED_TEST(cost_model, gives_finite_times_that_are_not_negative) {
  const auto m = TypeParam::make();
  for (const topo::link& l : links()) {
    EXPECT_TRUE(std::isfinite(m.latency(l).value));
    EXPECT_GE(m.latency(l).value, 0);
  }
  for (const double t : {m.post().value, m.launch().value, m.reduce(bytes{0}).value, m.reduce(1_GiB).value}) {
    EXPECT_TRUE(std::isfinite(t));
    EXPECT_GE(t, 0);
  }
}
