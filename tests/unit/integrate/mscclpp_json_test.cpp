// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <string>
#include <unit/integrate/export_plans.hpp>
#include <utility>
#include <vector>
#include <topocoll/integrate/mscclpp_json.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

mscclpp_options allowing_roots(bool in_place = true) {
  mscclpp_options o;
  o.one_root = true;
  o.in_place = in_place;
  return o;
}
using export_test::flat;
mscclpp_plan exported(const plan::schedule& s, const mscclpp_options& options = allowing_roots()) {
  return export_test::made(mscclpp_plan_of(s, options), s);
}

/// Writes, reads back, compares and proves; large plans are not written, which takes longest.
void expect_proved(const plan::schedule& s, const mscclpp_options& options) {
  const auto made = mscclpp_plan_of(s, options);
  ASSERT_TRUE(made) << s.name << ", " << to_string(s.collective) << ", " << s.ranks << " ranks: " << made.error().what;
  const auto back = s.ranks <= 5 || s.collective == collective_kind::all_gather
                        ? read_mscclpp_json(to_mscclpp_json(*made), "plan.json")
                        : made;
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, *made) << s.name;
  mscclpp_check_options check;
  check.root = s.root.value;
  check.seed = s.ranks;
  check.most_blocks = options.most_blocks;
  const auto proof = check_mscclpp_plan(*back, check);
  ASSERT_TRUE(proof) << s.name << ", " << s.ranks << " ranks: " << proof.error().what;
  EXPECT_LE(proof->most_operations, 64u);
}
void expect_refused(const mscclpp_plan& p, const std::string& words) {
  export_test::expect_refused(check_mscclpp_plan(p), words);
}

}  // namespace

class mscclpp_of_every_algorithm : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(ranks, mscclpp_of_every_algorithm, testing::Values(1, 2, 3, 4, 5, 7, 8, 16));

TEST_P(mscclpp_of_every_algorithm, computes_the_collective_in_every_order) {
  const std::uint32_t n = GetParam();
  for (const bool in_place : {true, false}) {
    mscclpp_options options = allowing_roots(in_place);
    for (std::uint32_t r = 0; r < n && !in_place; ++r) options.domain.push_back(r / 2);  // ports between pairs
    for (const collective_kind kind : export_test::collectives()) {
      if (kind == collective_kind::reduce) continue;
      for (const plan::schedule& s : export_test::flat(n, kind)) expect_proved(s, options);
    }
  }
}

TEST(mscclpp_json, of_every_planner_on_clusters_computes_the_collective) {
  for (const auto& pods : export_test::clusters())
    for (const collective_kind kind : export_test::collectives()) {
      if (kind == collective_kind::reduce) continue;
      const plan_test::cluster c = plan_test::build({pods, true, true, true});
      plan::problem p;
      p.graph = &c.graph;
      p.ranks = c.gpus;
      mscclpp_options options = allowing_roots();
      options.domain = memory_domains(p).value();
      for (const plan::schedule& s : export_test::planned(pods, kind)) expect_proved(s, options);
    }
}

TEST(mscclpp_json, uses_memory_within_a_domain_and_ports_between) {
  mscclpp_options options = allowing_roots();
  options.domain = {0, 0, 1, 1};
  const mscclpp_plan p = exported(flat(4, collective_kind::all_gather, plan::algorithm::ring), options);
  // The ring 0 1 2 3: each rank has one neighbour in its domain and one outside, a channel each.
  for (const mscclpp_gpu& g : p.gpus) {
    EXPECT_EQ(g.memory_peers.size(), 1u);
    EXPECT_EQ(g.port_peers.size(), 1u);
  }
  EXPECT_EQ(memory_domains({}).error().code, errc::invalid_argument);
}

TEST(mscclpp_json, of_a_ring_needs_no_leave_but_the_first) {
  // What goes round the ring has passed everybody before it overwrites anything.
  const mscclpp_plan p = exported(flat(8, collective_kind::all_reduce, plan::algorithm::ring));
  for (const mscclpp_gpu& g : p.gpus) {
    std::size_t signalled = 0, puts = 0;
    for (const auto& b : g.blocks)
      for (const auto& o : b.operations) {
        signalled += o.name == mscclpp_op::signal ? 1 : 0;
        puts += o.name == mscclpp_op::put ? 1 : 0;
      }
    EXPECT_EQ(puts, 14u);
    EXPECT_EQ(signalled, puts + g.memory_peers.size() / 2);  // one "I run" for each incoming stream
  }
}

TEST(mscclpp_json, flushes_ports_before_the_kernel_ends) {
  mscclpp_options options = allowing_roots();
  options.domain = {0, 1};
  mscclpp_plan p = exported(flat(2, collective_kind::all_gather, plan::algorithm::ring), options);
  ASSERT_TRUE(check_mscclpp_plan(p));
  for (auto& b : p.gpus[0].blocks)
    std::erase_if(b.operations, [](const mscclpp_operation& o) { return o.name == mscclpp_op::flush; });
  expect_refused(p, "GPU 0's end use");
}

TEST(mscclpp_json, tells_the_largest_size_that_32_bits_reach) {
  const mscclpp_plan p = exported(flat(4, collective_kind::all_reduce, plan::algorithm::ring));
  EXPECT_EQ(p.max_bytes, std::uint64_t{1} << 32U);  // 4 chunks, 3 of them staged in scratch
  mscclpp_options options = allowing_roots();
  options.max_size = bytes{4096};
  EXPECT_EQ(exported(flat(4, collective_kind::all_reduce, plan::algorithm::ring), options).max_bytes, 4096u);
}

TEST(mscclpp_json, refuses_what_the_format_cannot_say) {
  EXPECT_EQ(mscclpp_plan_of(flat(4, collective_kind::reduce, plan::algorithm::tree), allowing_roots()).error().code,
            errc::unsupported);
  EXPECT_EQ(mscclpp_plan_of(flat(4, collective_kind::broadcast, plan::algorithm::tree)).error().code,
            errc::unsupported);
  mscclpp_options options;
  options.domain = {0, 1};
  EXPECT_EQ(mscclpp_plan_of(flat(4, collective_kind::all_reduce, plan::algorithm::ring), options).error().code,
            errc::invalid_argument);
  EXPECT_EQ(mscclpp_plan_of(std::span<const plan::program>{}).error().code, errc::invalid_argument);
  options = {};
  options.most_blocks = 3;
  const auto many = mscclpp_plan_of(flat(40, collective_kind::all_to_all, plan::algorithm::direct), options);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, errc::unsupported);
  EXPECT_NE(many.error().what.find("thread blocks of GPU"), std::string::npos) << many.error().what;
}

TEST(mscclpp_json, fits_many_streams_into_few_thread_blocks) {
  mscclpp_options options = allowing_roots();
  options.most_blocks = 12;
  const mscclpp_plan p = exported(flat(16, collective_kind::all_gather, plan::algorithm::direct), options);
  for (const auto& g : p.gpus) EXPECT_LE(g.blocks.size(), 12u);
}

TEST(mscclpp_check, finds_every_missing_nop_signal_and_semaphore) {
  const mscclpp_plan good = exported(flat(4, collective_kind::all_reduce, plan::algorithm::recursive));
  ASSERT_TRUE(check_mscclpp_plan(good));
  std::size_t removed = 0, found = 0;
  for (std::size_t g = 0; g < good.gpus.size(); ++g)
    for (std::size_t b = 0; b < good.gpus[g].blocks.size(); ++b)
      for (std::size_t i = 0; i < good.gpus[g].blocks[b].operations.size(); ++i) {
        const mscclpp_op name = good.gpus[g].blocks[b].operations[i].name;
        if (name == mscclpp_op::put || name == mscclpp_op::copy) continue;
        mscclpp_plan bad = good;
        auto& list = bad.gpus[g].blocks[b].operations;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        ++removed;
        found += check_mscclpp_plan(bad) ? 0 : 1;
      }
  EXPECT_GT(removed, 100u);
  EXPECT_EQ(found, removed);
}

TEST(mscclpp_check, finds_a_peer_that_writes_before_the_kernel_runs) {
  mscclpp_plan p = exported(flat(2, collective_kind::all_gather, plan::algorithm::ring));
  // Take the first wait of the sender and the signal that it waits for away together: counts are right, order is not.
  for (auto& g : p.gpus)
    for (auto& b : g.blocks) {
      const auto first = [&](mscclpp_op name) {
        for (auto it = b.operations.begin(); it != b.operations.end(); ++it)
          if (it->name == name) {
            b.operations.erase(it);
            return;
          }
      };
      bool sends = false, receives = false;
      for (const auto& o : b.operations) {
        sends = sends || o.name == mscclpp_op::put;
        receives = receives || (o.name == mscclpp_op::wait && !sends);
      }
      if (sends) first(mscclpp_op::wait);
      if (!sends && receives) first(mscclpp_op::signal);
    }
  expect_refused(p, "begin and GPU");
}

TEST(mscclpp_check, keeps_the_rules_of_the_format) {
  mscclpp_options options = allowing_roots();
  options.domain = {0, 0, 1};
  const mscclpp_plan good = exported(flat(3, collective_kind::all_reduce, plan::algorithm::tree), options);
  const auto changed = [&](const std::function<void(mscclpp_plan&)>& change, const std::string& words) {
    mscclpp_plan bad = good;
    change(bad);
    expect_refused(bad, words);
  };
  const auto first = [](mscclpp_plan& p, mscclpp_op name) -> mscclpp_operation& {
    for (auto& g : p.gpus)
      for (auto& b : g.blocks)
        for (auto& o : b.operations)
          if (o.name == name) return o;
    throw std::runtime_error("not there");
  };
  using o = mscclpp_op;
  changed([](mscclpp_plan& p) { p.gpus.clear(); }, "no GPU");
  changed([](mscclpp_plan& p) { p.gpus[1].input += 1; }, "has input_chunks");
  changed([](mscclpp_plan& p) { p.gpus[1].memory_peers.push_back(0); }, "memory channels to GPU");
  changed([](mscclpp_plan& p) { p.gpus[0].memory_peers[0] = 0; }, "has a memory channel to rank 0");
  changed([&](mscclpp_plan& p) { first(p, o::signal).channels = {9}; }, "has no channel 9");
  changed([&](mscclpp_plan& p) { first(p, o::signal).channels.clear(); }, "names no channel");
  changed([&](mscclpp_plan& p) { first(p, o::put).src[0].index = 90; }, "of a buffer of");
  changed([&](mscclpp_plan& p) { first(p, o::put).dst[0].buffer = 'o'; }, "local one where a remote belongs");
  changed(
      [&](mscclpp_plan& p) {
        first(p, o::flush).type = mscclpp_channel::memory;
        first(p, o::flush).channels = {0};
      },
      "is for ports only");
  changed([](mscclpp_plan& p) { p.gpus[0].remotes[0].buffer = 's'; }, "");
  changed([](mscclpp_plan& p) { p.gpus[0].blocks.push_back(p.gpus[0].blocks[0]); }, "shares");
  changed([](mscclpp_plan& p) { p.gpus[0].blocks[0].operations.resize(65); }, "65 operations");
  changed(
      [](mscclpp_plan& p) {
        p.min_bytes = 2;
        p.max_bytes = 1;
      },
      "least size");
}

TEST(mscclpp_json, reading_names_the_place) {
  const std::string text = to_mscclpp_json(exported(flat(2, collective_kind::all_reduce, plan::algorithm::ring)));
  const auto refused = [&](const std::string& old, const std::string& now) {
    return export_test::refused_with(text, old, now,
                                     [](const std::string& changed) { return read_mscclpp_json(changed, "p.json"); });
  };
  EXPECT_NE(refused("\"put\"", "\"pws\"").find("p.json: /gpus/0/threadblocks/0/ops/"), std::string::npos);
  EXPECT_NE(refused("{\"id\": 0", "{\"id\": 7").find("/gpus/0"), std::string::npos);
  EXPECT_NE(refused("\"Simple\"", "\"LL\"").find("'LL'"), std::string::npos);
  EXPECT_NE(refused("\"allreduce\"", "\"sum\"").find("'sum'"), std::string::npos);
  EXPECT_NE(refused("\"input_chunks\": 2", "\"input_chunks\": \"2\"").find("/gpus/0/input_chunks"), std::string::npos);
  EXPECT_NE(refused("\"type\":\"i\"", "\"type\":\"x\"").find("instead of i, o or s"), std::string::npos);
}

TEST(mscclpp_json, reads_no_operation_that_does_something_else) {
  const std::string text = to_mscclpp_json(exported(flat(2, collective_kind::all_reduce, plan::algorithm::ring)));
  const auto read = [](const std::string& changed) { return read_mscclpp_json(changed, "p.json"); };
  const auto refused = [&](const std::string& old, const std::string& now) {
    return export_test::refused_with(text, old, now, read);
  };
  EXPECT_NE(refused("\"sum\"", "\"min\"").find("reduces by 'min'; only sums are proved"), std::string::npos);
  // Thread blocks that share an operation do a part of it each.
  EXPECT_NE(refused("\"name\":\"put\"", "\"name\":\"put\",\"tbg_info\":{\"tb_id\":0,\"tbg_size\":2}")
                .find("has the field 'tbg_info'"),
            std::string::npos);
  EXPECT_TRUE(read(text));
}

TEST(mscclpp_check, believes_no_size_that_no_operation_uses) {
  constexpr std::uint32_t most = 0xffffffffU;
  mscclpp_plan p = exported(flat(2, collective_kind::all_reduce, plan::algorithm::ring));
  for (auto& g : p.gpus) g.scratch = most;  // never looked at
  EXPECT_TRUE(check_mscclpp_plan(p));
  for (auto& g : p.gpus) g.input = g.output = most / 2;  // 34 GB of marks, were they all kept
  expect_refused(p, "GPU 0: at the end chunk 2 of the output");
  for (auto& g : p.gpus) g.input = g.output = most;
  expect_refused(p, "have too many of them");
  // A short file that copies billions of chunks.
  p = {};
  p.gpus.push_back({2, 2, most, {}, {}, {}, 0, {}});
  mscclpp_operation copy;
  copy.name = mscclpp_op::copy;
  copy.src = copy.dst = {{'s', 0, 0, most}};
  p.gpus[0].blocks.push_back({{copy}, {}, {}, {}, {}});
  export_test::expect_refused(check_mscclpp_plan(p), "are proved at most", errc::unsupported);
  p.gpus[0].blocks[0].operations[0].src = p.gpus[0].blocks[0].operations[0].dst = {{'o', 0, 0, 2}};
  EXPECT_TRUE(check_mscclpp_plan(p));
}

TEST(mscclpp_check, matches_the_channels_of_two_ranks_in_their_order) {
  // Three channels each way between the same two; the second has no wait at the other end.
  mscclpp_plan p = exported(flat(2, collective_kind::all_gather, plan::algorithm::ring));
  for (auto& g : p.gpus) g.memory_peers.insert(g.memory_peers.end(), 3, g.memory_peers[0]);
  EXPECT_TRUE(check_mscclpp_plan(p));
  p.gpus[1].memory_peers.pop_back();
  expect_refused(p, "memory channels to GPU 1, which has");
}
