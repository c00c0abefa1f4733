// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <unit/integrate/export_plans.hpp>
#include <utility>
#include <vector>
#include <topocoll/integrate/msccl_xml.hpp>
#include <topocoll/io/xml.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

msccl_options allowing_roots() {
  msccl_options o;
  o.one_root = true;
  return o;
}

msccl_plan exported(const plan::schedule& s, const msccl_options& options = allowing_roots()) {
  return export_test::made(msccl_plan_of(s, options), s);
}

plan::schedule ring(std::uint32_t ranks, collective_kind kind = collective_kind::all_reduce, std::uint32_t slices = 1) {
  return export_test::flat(ranks, kind, plan::algorithm::ring, slices);
}

/// Writes, parses back, compares and proves.
void expect_proved(const plan::schedule& s, const msccl_options& options) {
  const auto made = msccl_plan_of(s, options);
  ASSERT_TRUE(made) << s.name << ", " << s.ranks << " ranks: " << made.error().what;
  const std::string text = to_msccl_xml(*made);
  const auto root = io::parse_xml(text, "plan.xml");
  ASSERT_TRUE(root) << root.error().what;
  const auto back = read_msccl_xml(*root, "plan.xml", options.reader);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, *made) << s.name;
  msccl_check_options check;
  check.root = s.root.value;
  check.seed = s.ranks;
  const auto proof = check_msccl_xml(*root, "plan.xml", options.reader, check);
  ASSERT_TRUE(proof) << s.name << ", " << s.ranks << " ranks: " << proof.error().what;
  EXPECT_EQ(proof->ranks, s.ranks);
}

/// The count of steps of a type.
std::size_t count_of(const msccl_plan& p, msccl_op type) {
  std::size_t n = 0;
  for (const auto& g : p.gpus)
    for (const auto& b : g.blocks)
      for (const auto& s : b.steps) n += s.type == type ? 1 : 0;
  return n;
}

void expect_refused(const msccl_plan& p, const std::string& words) {
  export_test::expect_refused(check_msccl_plan(p), words);
}

}  // namespace

class msccl_of_every_algorithm : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(ranks, msccl_of_every_algorithm, testing::Values(1, 2, 3, 4, 5, 7, 8, 16));

TEST_P(msccl_of_every_algorithm, computes_the_collective_in_every_order) {
  for (const collective_kind kind : export_test::collectives())
    for (const plan::schedule& s : export_test::flat(GetParam(), kind)) expect_proved(s, allowing_roots());
}

TEST_P(msccl_of_every_algorithm, is_right_for_the_fork_too) {
  for (const bool in_place : {false, true}) {
    msccl_options options = allowing_roots();
    options.reader = msccl_reader::fork;
    options.in_place = in_place;
    options.protocol = "LL";
    for (const collective_kind kind : export_test::collectives())
      for (const plan::schedule& s : export_test::flat(GetParam(), kind))
        if (s.slices == 1) expect_proved(s, options);
  }
}

TEST(msccl_xml, of_every_planner_on_clusters_computes_the_collective) {
  for (const auto& pods : export_test::clusters())
    for (const collective_kind kind : export_test::collectives())
      for (const plan::schedule& s : export_test::planned(pods, kind)) expect_proved(s, allowing_roots());
}

TEST(msccl_xml, of_a_ring_is_one_block_of_fused_steps) {
  const msccl_plan p = exported(ring(8));
  for (const auto& gpu : p.gpus) {
    ASSERT_EQ(gpu.blocks.size(), 1u);
    ASSERT_EQ(gpu.blocks[0].steps.size(), 15u);  // one to start, 13 in between, and one to end: 2 (8 - 1) + 1
    EXPECT_EQ(gpu.blocks[0].steps.front().type, msccl_op::s);
    EXPECT_EQ(gpu.blocks[0].steps.back().type, msccl_op::r);
    EXPECT_EQ(gpu.scratch, 0u);
  }
  // 6 partial sums pass through each rank unneeded there, the last one stays; then 6 results are passed on.
  EXPECT_EQ(count_of(p, msccl_op::rrs), 8u * 6);
  EXPECT_EQ(count_of(p, msccl_op::rrcs), 8u);
  EXPECT_EQ(count_of(p, msccl_op::rcs), 8u * 6);
}

TEST(msccl_xml, counts_chunks_of_shards_from_the_rank) {
  const msccl_plan gather = exported(ring(3, collective_kind::all_gather, 2));
  EXPECT_EQ(gather.chunks, 6u);
  EXPECT_EQ(gather.gpus[2].input, 2u);
  EXPECT_EQ(gather.gpus[2].output, 6u);
  const msccl_plan scatter = exported(ring(3, collective_kind::reduce_scatter, 2));
  EXPECT_EQ(scatter.gpus[2].input, 6u);
  EXPECT_EQ(scatter.gpus[2].output, 2u);
}

TEST(msccl_xml, names_collectives_as_each_reader_does) {
  const msccl_plan p = exported(ring(2, collective_kind::reduce_scatter));
  EXPECT_NE(to_msccl_xml(p).find("coll=\"reducescatter\""), std::string::npos);
  EXPECT_NE(to_msccl_xml(p).find("inplace=\"1\" outofplace=\"1\""), std::string::npos);
  msccl_options fork;
  fork.reader = msccl_reader::fork;
  fork.in_place = false;
  const std::string text = to_msccl_xml(exported(ring(2, collective_kind::reduce_scatter), fork));
  EXPECT_NE(text.find("coll=\"reduce_scatter\" inplace=\"0\""), std::string::npos) << text;
  EXPECT_EQ(text.find("outofplace"), std::string::npos);
}

TEST(msccl_xml, refuses_roots_that_the_format_cannot_name) {
  for (const collective_kind kind : {collective_kind::broadcast, collective_kind::reduce}) {
    const auto made = msccl_plan_of(ring(4, kind));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, errc::unsupported);
    EXPECT_NE(made.error().what.find("root"), std::string::npos);
  }
}

TEST(msccl_xml, refuses_unknown_protocols_and_programs_that_do_not_belong_together) {
  msccl_options options;
  options.protocol = "ll";
  EXPECT_EQ(msccl_plan_of(ring(2), options).error().code, errc::invalid_argument);
  EXPECT_EQ(msccl_plan_of(std::span<const plan::program>{}).error().code, errc::invalid_argument);
  std::vector<plan::program> strangers{plan::lower(ring(2), {0}).value(), plan::lower(ring(3), {1}).value()};
  EXPECT_EQ(msccl_plan_of(std::span<const plan::program>(strangers)).error().code, errc::invalid_argument);
}

TEST(msccl_xml, spreads_long_rings_over_channels) {
  const msccl_plan p = exported(ring(40));  // 79 steps in one block; the executor takes 64
  EXPECT_EQ(p.channels, 2u);
  for (const auto& g : p.gpus)
    for (const auto& b : g.blocks) EXPECT_LE(b.steps.size(), 64u);
  msccl_options fork;
  fork.reader = msccl_reader::fork;
  EXPECT_EQ(exported(ring(40), fork).channels, 1u);
}

TEST(msccl_xml, says_which_limit_a_plan_passes) {
  const auto direct = export_test::flat(80, collective_kind::all_to_all, plan::algorithm::direct);
  const auto made = msccl_plan_of(direct);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::unsupported);
  EXPECT_NE(made.error().what.find("peers of GPU 0 on a channel"), std::string::npos) << made.error().what;
}

TEST(msccl_check, finds_every_missing_wait_for_data) {
  // Without the wait of a step that reads what another block writes, the two race.
  for (const plan::algorithm how : {plan::algorithm::recursive, plan::algorithm::tree, plan::algorithm::direct}) {
    const msccl_plan good = exported(export_test::flat(5, collective_kind::all_reduce, how));
    std::size_t removed = 0;
    for (std::size_t g = 0; g < good.gpus.size(); ++g)
      for (std::size_t b = 0; b < good.gpus[g].blocks.size(); ++b)
        for (std::size_t i = 0; i < good.gpus[g].blocks[b].steps.size(); ++i) {
          const msccl_step& s = good.gpus[g].blocks[b].steps[i];
          const bool nops = i > 0 && good.gpus[g].blocks[b].steps[i - 1].type == msccl_op::nop;
          if (s.dep_block < 0 || s.type != msccl_op::s || nops) continue;
          const msccl_step& of =
              good.gpus[g].blocks[static_cast<std::size_t>(s.dep_block)].steps[static_cast<std::size_t>(s.dep_step)];
          if (of.type == msccl_op::s || of.dst != s.src || of.dst_offset != s.src_offset) continue;
          msccl_plan bad = good;
          bad.gpus[g].blocks[b].steps[i].dep_block = bad.gpus[g].blocks[b].steps[i].dep_step = -1;
          expect_refused(bad, "neither waits for the other");
          ++removed;
        }
    EXPECT_GT(removed, 0u) << to_string(how);
  }
}

TEST(msccl_check, finds_wrong_chunks_and_double_counts) {
  const msccl_plan good = exported(ring(4));
  msccl_plan bad = good;
  bad.gpus[1].blocks[0].steps[2].src_offset = bad.gpus[1].blocks[0].steps[1].src_offset;
  expect_refused(bad, "GPU 1, thread block 0, step 2 (rrs) adds up different chunks");
  // A reduction of what is in already.
  bad = good;
  bad.in_place = false;
  msccl_step again;
  again.type = msccl_op::re;
  again.count = 1;
  again.src_offset = again.dst_offset = bad.gpus[0].blocks[0].steps[3].dst_offset;
  bad.gpus[0].blocks[0].steps.insert(bad.gpus[0].blocks[0].steps.begin() + 4, again);
  expect_refused(bad, "GPU 0, thread block 0, step 4 (re) counts a contribution twice");
}

TEST(msccl_check, finds_an_output_that_is_not_written) {
  msccl_plan bad = exported(ring(3, collective_kind::all_gather));
  for (auto& g : bad.gpus)
    for (auto& b : g.blocks) std::erase_if(b.steps, [](const msccl_step& s) { return s.type == msccl_op::cpy; });
  bad.in_place = false;
  expect_refused(bad, "at the end chunk");
}

TEST(msccl_check, finds_fused_steps_that_block) {
  // Everybody first passes on what only arrives when somebody else passes on: no message ever starts.
  msccl_plan p;
  p.name = "circle";
  p.chunks = 1;
  for (std::int32_t g = 0; g < 3; ++g) {
    msccl_gpu gpu{1, 1, 0, {}};
    msccl_block b;
    b.send = (g + 1) % 3;
    b.recv = (g + 2) % 3;
    msccl_step s;
    s.type = msccl_op::rrcs;
    s.src_offset = s.dst_offset = 0;
    s.count = 1;
    b.steps.push_back(s);
    gpu.blocks.push_back(b);
    p.gpus.push_back(gpu);
  }
  expect_refused(p, "can block for ever");
}

TEST(msccl_check, knows_how_few_messages_fit_into_a_connection) {
  // Both send three messages before they receive any: two fit with Simple, eight with LL.
  msccl_plan p;
  p.name = "eager";
  p.collective = collective_kind::all_to_all;
  p.chunks = 8;
  p.in_place = false;
  for (std::int32_t g = 0; g < 2; ++g) {
    msccl_gpu gpu{8, 8, 0, {}};
    msccl_block b;
    b.send = b.recv = 1 - g;
    const std::int32_t mine = g * 4, theirs = 4 - mine;
    msccl_step own;
    own.type = msccl_op::cpy;
    own.src_offset = own.dst_offset = mine;
    own.count = 4;
    b.steps.push_back(own);
    for (const bool sends : {true, false})
      for (std::int32_t m = 0; m < 4; ++m) {
        msccl_step s;
        s.type = sends ? msccl_op::s : msccl_op::r;
        s.src_offset = s.dst_offset = theirs + m;
        s.count = 1;
        b.steps.push_back(s);
      }
    gpu.blocks.push_back(b);
    p.gpus.push_back(gpu);
  }
  expect_refused(p, "can block for ever with 2 messages in flight");
  p.protocol = "LL128";
  const auto proof = check_msccl_plan(p);
  ASSERT_TRUE(proof) << proof.error().what;
  // One step of four chunks may be moved chunk by chunk: no better than four messages.
  for (auto& g : p.gpus) {
    auto& steps = g.blocks[0].steps;
    steps = {steps[0], steps[1], steps[5]};
    steps[1].count = steps[2].count = 4;
  }
  EXPECT_TRUE(check_msccl_plan(p));
  p.protocol = "Simple";
  expect_refused(p, "can block for ever");
}

TEST(msccl_check, keeps_the_rules_of_the_format) {
  const msccl_plan good = exported(export_test::flat(5, collective_kind::all_reduce, plan::algorithm::recursive));
  const auto changed = [&](const std::function<void(msccl_plan&)>& change, const std::string& words) {
    msccl_plan bad = good;
    change(bad);
    expect_refused(bad, words);
  };
  changed([](msccl_plan& p) { p.gpus.clear(); }, "no GPU");
  changed([](msccl_plan& p) { p.channels = 33; }, "33 channels");
  changed([](msccl_plan& p) { p.chunks += 1; }, "i_chunks");
  changed([](msccl_plan& p) { p.name = std::string(64, 'x'); }, "64 letters");
  changed([](msccl_plan& p) { p.protocol = "ll"; }, "Simple, LL or LL128");
  changed([](msccl_plan& p) { p.gpus[0].blocks[0].channel = 7; }, "channel 7 of 1");
  changed([](msccl_plan& p) { p.gpus[2].blocks[0].send = 2; }, "has the peer 2");
  changed(
      [](msccl_plan& p) {
        p.min_bytes = 2;
        p.max_bytes = 1;
      },
      "minBytes");
  changed([](msccl_plan& p) { p.gpus[1].blocks.push_back(p.gpus[1].blocks[0]); }, "shares its connection");
  changed([](msccl_plan& p) { p.gpus[1].blocks[0].steps[0].count = 72; }, "moves 72 chunks");
  changed([](msccl_plan& p) { p.gpus[1].blocks[0].steps[0].count = 0; }, "moves 0 chunks");
  changed(
      [](msccl_plan& p) {
        for (auto& b : p.gpus[1].blocks)
          for (auto& s : b.steps) s.src_offset = 100;
      },
      "beyond the end");
  // Waits.
  const auto waiting = [](msccl_plan& p) -> msccl_step& {
    for (auto& g : p.gpus)
      for (auto& b : g.blocks)
        for (auto& s : b.steps)
          if (s.dep_block >= 0) return s;
    throw std::runtime_error("no wait");
  };
  changed([&](msccl_plan& p) { waiting(p).dep_step = 60; }, "does not exist");
  changed([&](msccl_plan& p) { waiting(p).dep_step = -1; }, "but not both");
  changed(
      [&](msccl_plan& p) {
        for (auto& g : p.gpus)
          for (auto& b : g.blocks)
            for (auto& s : b.steps) s.has_dep = false;
      },
      "hasdep=0");
}

TEST(msccl_check, keeps_the_rules_of_nops) {
  const msccl_plan good = exported(export_test::flat(8, collective_kind::all_reduce, plan::algorithm::one_shot));
  ASSERT_GT(count_of(good, msccl_op::nop), 0u);
  const auto first_nop = [](msccl_plan& p) -> std::pair<msccl_block*, std::size_t> {
    for (auto& g : p.gpus)
      for (auto& b : g.blocks)
        for (std::size_t i = 0; i < b.steps.size(); ++i)
          if (b.steps[i].type == msccl_op::nop) return {&b, i};
    return {nullptr, 0};
  };
  msccl_plan bad = good;
  auto [block, i] = first_nop(bad);
  block->steps[i].has_dep = true;
  expect_refused(bad, "nops tell nobody");
  bad = good;
  std::tie(block, i) = first_nop(bad);
  while (block->steps[i].type == msccl_op::nop) ++i;
  block->steps[i].dep_block = block->steps[i].dep_step = -1;
  expect_refused(bad, "follows nops, but waits for nothing itself");
}

TEST(msccl_xml, reading_names_line_and_attribute) {
  const std::string text = to_msccl_xml(exported(ring(2)));
  const auto read = [](const std::string& changed) {
    return read_msccl_xml(io::parse_xml(changed, "p.xml").value(), "p.xml");
  };
  const auto refused = [&](const std::string& old, const std::string& now) {
    return export_test::refused_with(text, old, now, read);
  };
  EXPECT_EQ(read("<graphs/>").error().what, "p.xml line 1: <graphs> is not the root of an MSCCL plan, which is <algo>");
  EXPECT_EQ(refused(" nchannels=\"1\"", ""), "p.xml line 1: <algo> lacks the attribute nchannels");
  EXPECT_NE(refused("nchannels=\"1\"", "nchannels=\"x\"").find("nchannels=\"x\""), std::string::npos);
  EXPECT_NE(refused("coll=\"allreduce\"", "coll=\"sum\"").find("coll=\"sum\""), std::string::npos);
  EXPECT_NE(refused("ngpus=\"2\"", "ngpus=\"3\"").find("ngpus is 3, but 2"), std::string::npos);
  EXPECT_NE(refused("type=\"s\"", "type=\"send\"").find("line 4: <step> has type=\"send\""), std::string::npos);
  EXPECT_NE(refused("srcbuf=\"i\"", "srcbuf=\"x\"").find("instead of i, o or s"), std::string::npos);
  EXPECT_NE(refused("<tb id=\"0\"", "<tb id=\"1\"").find("where 0 is due"), std::string::npos);
  EXPECT_NE(refused("<step s=\"1\"", "<step s=\"2\"").find("where step 1 is due"), std::string::npos);
}

TEST(msccl_xml, names_with_marks_of_xml_come_back) {
  for (const char* name : {"a\"b", "<algo>", "&amp;", "tab\tand\nline", "\xc3\xa9t\xc3\xa9 'x'"}) {
    msccl_options options = allowing_roots();
    options.name = name;
    const msccl_plan p = exported(ring(2), options);
    const auto root = io::parse_xml(to_msccl_xml(p), "p.xml");
    ASSERT_TRUE(root) << name << ": " << root.error().what;
    EXPECT_EQ(read_msccl_xml(*root, "p.xml").value(), p) << name;
  }
}

TEST(msccl_xml, reads_every_limit_of_sizes_that_64_bits_hold) {
  for (const char* most : {"0", "1048576", "9223372036854775807"}) {
    std::string text = to_msccl_xml(exported(ring(2)));
    const std::string old = "maxBytes=\"0\"";
    ASSERT_NE(text.find(old), std::string::npos);
    text.replace(text.find(old), old.size(), std::string("maxBytes=\"") + most + "\"");
    const auto read = read_msccl_xml(io::parse_xml(text, "p.xml").value(), "p.xml");
    ASSERT_TRUE(read) << most << ": " << read.error().what;
    EXPECT_EQ(std::to_string(read->max_bytes), most);
  }
}

TEST(msccl_check, believes_no_size_that_no_step_uses) {
  // As many chunks as offsets can name, on hundreds of GPUs: seconds and gigabytes, were they all looked at.
  msccl_plan p;
  p.name = "hollow";
  p.chunks = 32767;
  for (int g = 0; g < 500; ++g) p.gpus.push_back({32767, 32767, 32767, {}});
  expect_refused(p, "GPU 0: at the end chunk 0 of the output");
  p.collective = collective_kind::reduce;  // only the root gets anything
  expect_refused(p, "GPU 0: at the end chunk 0 of the output");
  // The root of a broadcast has it all, another rank has nothing.
  p.collective = collective_kind::broadcast;
  p.out_of_place = false;
  expect_refused(p, "GPU 1: at the end chunk 0 of the output");
  p.gpus.resize(1);
  EXPECT_TRUE(check_msccl_plan(p));  // alone, in place: nothing to do
  p.out_of_place = true;
  p.in_place = false;
  expect_refused(p, "GPU 0: at the end chunk 0 of the output");
  // Own shards lie where they belong in place, and nothing else does.
  p.in_place = true;
  p.out_of_place = false;
  for (const collective_kind kind : {collective_kind::all_gather, collective_kind::all_to_all}) {
    p.collective = kind;
    p.chunks = 6;
    p.gpus.assign(3, {kind == collective_kind::all_gather ? 2U : 6U, 6, 0, {}});
    expect_refused(p, "GPU 0: at the end chunk 2 of the output");
  }
  p.collective = collective_kind::gather;
  expect_refused(p, "knows no gather");
}
