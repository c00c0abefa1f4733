// SPDX-License-Identifier: Apache-2.0
// What an explanation says about slow NICs, beside what crosses their cables in the plan.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sanitized.hpp>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/plan/detail/explain_loads.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/planners.hpp>
#include <gtest/gtest.h>

namespace {

namespace topo = topocoll::topo;
namespace plan = topocoll::plan;
using namespace topocoll::literals;
using topocoll::bytes;

/// What crosses the cables of the NIC with this name.
struct cables {
  double out = 0, in = 0, rate = 0;

  [[nodiscard]] double both() const { return out + in; }
  [[nodiscard]] double busy() const { return std::max(out, in) / rate; }
};
cables cables_of(const topo::graph& g, const std::vector<bytes>& loads, const std::string& host,
                 const std::string& nic) {
  cables found;
  for (std::uint32_t k = 0; k < g.link_count(); ++k) {
    const topo::link& l = g.at(topocoll::link_id{k});
    if (l.kind != topo::link_kind::infiniband && l.kind != topo::link_kind::ethernet) continue;
    const auto is = [&](topocoll::node_id v) {  // a NIC, or a port of it: "mlx5_3/1"
      const topo::node& n = g.at(v);
      return n.host == host && n.name.substr(0, n.name.find('/')) == nic;
    };
    if (is(l.from)) {
      found.out += static_cast<double>(loads[k].value);
      found.rate += l.capacity.value;
    }
    if (is(l.to)) found.in += static_cast<double>(loads[k].value);
  }
  return found;
}

struct told {
  topo::graph g;
  std::vector<bytes> loads;
  std::vector<std::string> remarks;

  /// The only remark that names the NIC as the first.
  [[nodiscard]] std::string about(const std::string& nic, const std::string& host) const {
    std::string found;
    for (const std::string& r : remarks)
      if (r.find(nic + " of " + host) < r.find(" run")) found += found.empty() ? r : "; twice";
    return found;
  }
};

enum class planner { hierarchical, packed, one_shot };

told explained(const std::string& spec, planner which) {
  told t;
  t.g = topo::graph::from(topocoll::describe(spec).value()).value();
  plan::problem p;
  p.graph = &t.g;
  p.size = 64_MiB;
  p.ranks = t.g.all(topo::node_kind::gpu);
  plan::simulator<plan::alpha_beta> prices(t.g, {});
  using a = plan::algorithm;
  plan::choose_options quick;
  quick.effort.effort = 1000;
  const auto made = which == planner::packed ? plan::choose(prices, p, quick, plan::packed{})
                    : which == planner::one_shot
                        ? plan::choose(prices, p, quick, plan::one_shot{})
                        : plan::choose(prices, p, quick,
                                       plan::hierarchical{.in_box = a::ring, .on_rail = a::ring, .across = a::ring});
  EXPECT_TRUE(made) << (made ? "" : made.error().what);
  if (!made) return t;
  t.loads = made->price().loads;
  plan::explain_options o;
  o.nominal.effort = 1000;
  t.remarks = plan::explain(prices, p, *made, plan::size_map{}, o).value().remarks;
  return t;
}

/// The remark says of the NIC what the cables of its host say.
void expect_true(const told& t, const std::string& host, std::size_t slow, std::size_t nics) {
  const std::string nic = "mlx5_" + std::to_string(slow);
  const std::string remark = t.about(nic, host);
  const cables mine = cables_of(t.g, t.loads, host, nic);
  double both = 0, busy = 0, rate = 0, others = 0;
  for (std::size_t k = 0; k < nics; ++k) {
    const cables c = cables_of(t.g, t.loads, host, "mlx5_" + std::to_string(k));
    if (c.rate <= mine.rate * 1.01) continue;  // the slow one, or another that is no faster
    both += c.both();
    busy += c.busy();
    rate = std::max(rate, c.rate);
    ++others;
  }
  ASSERT_GT(others, 0);
  ASSERT_GT(both, 0);
  const double share = mine.both() / (both / others), times = mine.busy() / (busy / others);
  EXPECT_NE(remark.find("at " + to_string(topocoll::bytes_per_second{mine.rate}) + ", the others of"),
            std::string::npos)
      << remark;
  const char* verdict = share >= 0.98 ? "; not spared: " : times > 1.02 ? "; spared in part: " : "; spared: ";
  EXPECT_NE(remark.find(verdict), std::string::npos) << share << " of the load, " << times << " times busy: " << remark;
  if (mine.both() > 0) {
    EXPECT_NE(remark.find("carries " + plan::detail::percent(share) + " of what"), std::string::npos)
        << share << ": " << remark;
  } else {
    EXPECT_NE(remark.find("carries nothing"), std::string::npos) << remark;
  }
}

TEST(explain_slow_nics, says_what_crosses_their_cables_wherever_they_are) {
  std::size_t cases = 0, spared = 0, loaded = 0;
  const auto look = [&](const char* nodes, planner which, std::size_t at, const char* factor) {
    const std::string host = at == 1 ? "node1" : "node0";
    const std::string spec = std::string("dgx-a100:nodes=") + nodes + ",gpus=4,nics=4,leaves=4,slow=" + host + "/nic" +
                             std::to_string(at) + ":" + factor;
    SCOPED_TRACE(spec + ", planner " + std::to_string(static_cast<int>(which)));
    const told t = explained(spec, which);
    expect_true(t, host, at, 4);
    const std::string remark = t.about("mlx5_" + std::to_string(at), host);
    ++cases;
    spared += remark.find("; spared") != std::string::npos ? 1 : 0;
    loaded += remark.find("; not spared: ") != std::string::npos ? 1 : 0;
  };
  for (const std::size_t at : {0U, 1U, 3U})
    for (const char* factor : {"0.25", "0.5", "0.9"}) {
      look("2", planner::one_shot, at, factor);
      if (at == 3 && !topocoll_test::sanitized) look("2", planner::hierarchical, at, factor);
    }
  look("2", planner::hierarchical, 1, "0.5");
  look("2", planner::packed, 1, "0.5");
  EXPECT_EQ(spared + loaded, cases);
  EXPECT_GE(spared, 2U);
  EXPECT_GE(loaded, 9U);  // one_shot knows no NICs
}

TEST(explain_slow_nics, tells_several_apart) {
  // One that is almost whole may carry its full part while the others are spared: an average would hide it.
  const told t = explained("dgx-a100:nodes=3,gpus=4,nics=4,leaves=4,slow=node0/nic3:0.5+node1/nic2:0.9+node2/nic1:0.25",
                           planner::hierarchical);
  expect_true(t, "node0", 3, 4);
  expect_true(t, "node1", 2, 4);
  expect_true(t, "node2", 1, 4);
  EXPECT_EQ(t.remarks.size(), 3U);
}

TEST(explain_slow_nics, says_nothing_of_nics_that_are_all_alike) {
  EXPECT_TRUE(explained("dgx-h100:nodes=2,gpus=4,nics=4,leaves=4", planner::hierarchical).remarks.empty());
}

/// NICs of one host, straight into the words.
std::vector<std::string> remarks_on(const std::vector<plan::detail::carried>& nics, const topo::graph& g) {
  plan::explanation e;
  plan::detail::explain_nics(g, nics, e);
  return e.remarks;
}

TEST(explain_slow_nics, are_spared_or_not_by_how_long_they_are_busy) {
  topo::fragment f;
  for (int k = 0; k < 4; ++k) {
    topo::node n;
    n.kind = topo::node_kind::nic;
    n.host = k < 3 ? "a" : "b";
    n.name = "nic" + std::to_string(k);
    n.key = n.host + "/" + n.name;
    f.add(n);
  }
  const topo::graph g = topo::graph::from(f).value();
  std::vector<plan::detail::carried> nics(4);
  for (std::uint32_t k = 0; k < 4; ++k) nics[k] = {{k}, 20e9, 1000, 1000};
  EXPECT_TRUE(remarks_on(nics, g).empty());
  nics[1].rate = 10e9;
  const auto one = [&](std::uint64_t out, std::uint64_t in) {
    nics[1].out = out;
    nics[1].in = in;
    const auto all = remarks_on(nics, g);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? std::string() : all[0];
  };
  const std::string start = "nic1 of a runs at 10.0 GB/s, the others of its host at 20.0 GB/s; ";
  const std::string of = " of what one of them carries on average, and is busy ";
  EXPECT_EQ(one(1000, 1000), start + "not spared: it carries 100 %" + of + "2.00 times as long");
  EXPECT_EQ(one(750, 750), start + "spared in part: it carries 75 %" + of + "1.50 times as long");
  EXPECT_EQ(one(500, 500), start + "spared: it carries 50 %" + of + "no longer than they");
  EXPECT_EQ(one(1000, 0), start + "spared in part: it carries 50 %" + of + "2.00 times as long");  // all of it one way
  EXPECT_EQ(one(0, 0), start + "spared: it carries nothing, each of them 1.95 KiB on average");
  for (auto& c : nics) c.out = c.in = 0;
  EXPECT_EQ(one(0, 0), start.substr(0, start.size() - 2));  // nothing crosses any NIC
  EXPECT_EQ(one(5, 0), start + "not spared: it carries 5 B, they carry nothing");
  // The only NIC of its host is compared with those of the others.
  for (auto& c : nics) c = {c.v, 20e9, 1000, 1000};
  nics[3].rate = 5e9;
  const auto alone = remarks_on(nics, g);
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0], "nic3 of b runs at 5.00 GB/s, the fastest at 20.0 GB/s; not spared: it carries 100 %" + of +
                          "4.00 times as long");
}

}  // namespace
