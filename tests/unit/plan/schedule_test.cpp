// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include <topocoll/plan/schedule.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

schedule ring_of(std::uint32_t n) { return flat_schedule(collective_kind::all_reduce, n, {}, algorithm::ring).value(); }

TEST(names, are_read_back) {
  for (int k = 0; k <= static_cast<int>(stage_kind::all_to_all); ++k)
    EXPECT_EQ(parse_stage_kind(to_string(static_cast<stage_kind>(k))), static_cast<stage_kind>(k));
  for (std::size_t a = 0; a < algorithm_count; ++a)
    EXPECT_EQ(parse_algorithm(to_string(static_cast<algorithm>(a))), static_cast<algorithm>(a));
  EXPECT_FALSE(parse_algorithm("bucket"));
  EXPECT_FALSE(parse_stage_kind(""));
}

TEST(chunk_of, reaches_every_chunk_once) {
  for (const collective_kind c : {collective_kind::all_reduce, collective_kind::all_gather})
    for (const std::uint32_t n : {1U, 2U, 3U, 5U, 7U, 8U, 17U})
      for (const std::uint32_t per_shard : {1U, 3U})
        for (const std::uint32_t slices : {1U, 2U, 5U}) {
          schedule s;
          s.collective = c;
          s.ranks = n;
          s.units = n * per_shard;
          s.slices = slices;
          if (c == collective_kind::all_gather)
            for (std::uint32_t v = 0; v < n; ++v)
              s.order.push_back({(v * 3 + 1) % n});  // a permutation unless 3 divides n
          if (n % 3 == 0) s.order.clear();
          std::vector<std::uint32_t> hits(s.chunks(), 0);
          for (std::uint32_t i = 0; i < slices; ++i)
            for (std::uint32_t u = 0; u < s.units; ++u) ++hits.at(chunk_of(s, i, u));
          EXPECT_EQ(hits, std::vector<std::uint32_t>(s.chunks(), 1)) << to_string(c) << " " << n;
        }
}

TEST(chunk_of, keeps_slices_of_a_buffer_and_shards_of_a_gather_together) {
  schedule s;
  s.ranks = 4;
  s.units = 4;
  s.slices = 2;
  EXPECT_EQ(chunk_of(s, 1, 2), 6U);  // second half of the buffer
  s.collective = collective_kind::all_gather;
  EXPECT_EQ(chunk_of(s, 1, 2), 5U);  // second half of shard 2
  s.order = {{3}, {1}, {0}, {2}};
  EXPECT_EQ(chunk_of(s, 1, 2), 1U);  // second half of shard 0, which is third
}

TEST(run_length, ends_where_the_array_jumps) {
  schedule s;
  s.collective = collective_kind::all_gather;
  s.ranks = 4;
  s.units = 4;
  s.order = {{2}, {3}, {0}, {1}};
  EXPECT_EQ(run_length(s, 0, 4), 2U);
  EXPECT_EQ(run_length(s, 1, 4), 1U);
  EXPECT_EQ(run_length(s, 2, 3), 1U);
  s.slices = 2;  // a shard is now two chunks, and the last may be short
  EXPECT_EQ(run_length(s, 0, 4), 1U);
  s.collective = collective_kind::all_reduce;
  s.order.clear();
  EXPECT_EQ(run_length(s, 1, 4), 3U);
}

TEST(flat_schedule, has_one_stage_over_all_ranks) {
  const schedule s = ring_of(8);
  ASSERT_EQ(s.stages.size(), 1U);
  ASSERT_EQ(s.stages[0].group_count(), 1U);
  EXPECT_EQ(s.stages[0].group(0).size(), 8U);
  EXPECT_EQ(s.units, 8U);
  EXPECT_TRUE(ring_of(1).stages.empty());
}

TEST(flat_schedule, starts_rooted_collectives_at_the_root) {
  const schedule s = flat_schedule(collective_kind::broadcast, 5, {3}, algorithm::tree).value();
  const std::vector<rank_id> expected{{3}, {4}, {0}, {1}, {2}};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), s.stages[0].group(0).members.begin()));
  EXPECT_EQ(s.root, rank_id{3});
}

TEST(flat_schedule, refuses_what_cannot_be) {
  EXPECT_EQ(flat_schedule(collective_kind::all_reduce, 0, {}, algorithm::ring).error().code, errc::invalid_argument);
  EXPECT_EQ(flat_schedule(collective_kind::broadcast, 3, {3}, algorithm::ring).error().code, errc::invalid_argument);
  EXPECT_EQ(flat_schedule(collective_kind::all_gather, 3, {}, algorithm::tree).error().code, errc::unsupported);
  EXPECT_EQ(flat_schedule(collective_kind::all_reduce, 3, {}, algorithm::ring, {.slices = 9}).error().code,
            errc::invalid_argument);
  const std::vector<rank_id> twice{{0}, {1}, {1}};
  EXPECT_FALSE(flat_schedule(collective_kind::all_reduce, std::span<const rank_id>(twice), {}, algorithm::ring));
  EXPECT_FALSE(flat_schedule(collective_kind::all_gather, std::span<const rank_id>(twice), {}, algorithm::ring));
  const std::vector<rank_id> far{{0}, {7}};
  EXPECT_FALSE(flat_schedule(collective_kind::broadcast, std::span<const rank_id>(far), {1}, algorithm::ring));
}

TEST(validate, names_stage_and_group) {
  struct damage {
    const char* says;
    std::function<void(schedule&)> change;
  };
  const damage all[] = {
      {"no ranks", [](schedule& s) { s.ranks = 0; }},
      {"root", [](schedule& s) { s.root = {4}; }},
      {"slices", [](schedule& s) { s.slices = 0; }},
      {"slices", [](schedule& s) { s.slices = max_slices + 1; }},
      {"units", [](schedule& s) { s.units = 0; }},
      {"31-bit",
       [](schedule& s) {
         s.units = 0x7fffffffU;
         s.slices = 2;
       }},
      {"orders shards",
       [](schedule& s) {
         s.order = {{0}, {1}, {2}, {3}};
       }},
      {"stage 0", [](schedule& s) { s.stages[0].members[2] = {4}; }},
      {"twice at work", [](schedule& s) { s.stages[0].members[2] = {1}; }},
      {"bounds of group 0", [](schedule& s) { s.stages[0].bounds[4] = 5; }},
      {"bounds of group 0", [](schedule& s) { s.stages[0].bounds[2] = 0; }},
      {"do not fit", [](schedule& s) { s.stages[0].bounds.pop_back(); }},
      {"do not fit",
       [](schedule& s) {
         s.stages[0].offsets = {0, 3};
       }},
      {"do not fit", [](schedule& s) { s.stages[0].offsets.clear(); }},
      {"no members",
       [](schedule& s) {
         s.stages[0].offsets = {0, 0, 4};
         s.stages[0].bounds.push_back(4);
       }},
      {"no scatter by ring", [](schedule& s) { s.stages[0].kind = stage_kind::scatter; }},
  };
  for (const damage& d : all) {
    schedule s = ring_of(4);
    ASSERT_TRUE(validate(s));
    d.change(s);
    const auto found = validate(s);
    ASSERT_FALSE(found) << d.says;
    EXPECT_EQ(found.error().code, errc::invalid_argument);
    EXPECT_NE(found.error().what.find(d.says), std::string::npos) << found.error().what;
  }
  schedule gather = flat_schedule(collective_kind::all_gather, 4, {}, algorithm::ring).value();
  gather.units = 6;
  EXPECT_NE(validate(gather).error().what.find("4 shards"), std::string::npos);
  gather.units = 4;
  gather.order = {{0}, {0}, {1}, {2}};
  EXPECT_NE(validate(gather).error().what.find("every rank once"), std::string::npos);
}

TEST(validate, allows_a_rank_in_two_groups_on_different_units) {
  schedule s = ring_of(3);
  s.units = 4;
  s.stages[0] = {};
  const std::vector<rank_id> left{{0}, {1}}, right{{0}, {2}};
  const std::vector<std::uint32_t> low{0, 1, 2}, high{2, 3, 4}, middle{1, 2, 3};
  s.stages[0].add(left, low);
  s.stages[0].add(right, high);
  EXPECT_TRUE(validate(s));
  s.stages[0] = {};
  s.stages[0].add(left, low);
  s.stages[0].add(right, middle);
  EXPECT_FALSE(validate(s));
}

/// FNV-1a over bytes, written from its definition.
std::uint64_t fnv(const std::string& text) {
  std::uint64_t h = 14695981039346656037U;
  for (const char c : text) {
    h ^= static_cast<unsigned char>(c);
    h *= 1099511628211U;
  }
  return h;
}

TEST(digest, is_fnv_over_the_fields_as_documented) {
  const schedule s = flat_schedule(collective_kind::reduce, 2, {1}, algorithm::tree).value();
  std::string text;
  for (const std::uint32_t v : {4U, 2U, 1U, 1U, 1U,                       // reduce, ranks, root, units, slices
                                0U,                                       // order
                                1U, 4U, 3U,                               // one stage: reduce by tree
                                2U, 1U, 0U, 2U, 0U, 2U, 3U, 0U, 0U, 1U})  // members 1 0; offsets 0 2; bounds 0 0 1
    for (int i = 0; i < 4; ++i) text += static_cast<char>(v >> (8 * i));
  EXPECT_EQ(digest(s), fnv(text));
}

TEST(digest, sees_every_field_that_counts_and_no_text) {
  const schedule s = flat_schedule(collective_kind::all_gather, 4, {}, algorithm::ring).value();
  const std::function<void(schedule&)> changes[] = {
      [](schedule& x) { x.collective = collective_kind::all_to_all; },
      [](schedule& x) { x.ranks = 5; },
      [](schedule& x) { x.root = {1}; },
      [](schedule& x) { x.units = 8; },
      [](schedule& x) { x.slices = 2; },
      [](schedule& x) {
        x.order = {{1}, {0}, {2}, {3}};
      },
      [](schedule& x) { x.stages[0].kind = stage_kind::all_reduce; },
      [](schedule& x) { x.stages[0].how = algorithm::direct; },
      [](schedule& x) { std::swap(x.stages[0].members[0], x.stages[0].members[1]); },
      [](schedule& x) { x.stages[0].bounds[1] = 0; },
      [](schedule& x) { x.stages.push_back(x.stages[0]); },
      [](schedule& x) { x.stages.clear(); }};
  std::vector<std::uint64_t> seen{digest(s)};
  for (const auto& change : changes) {
    schedule other = s;
    change(other);
    seen.push_back(digest(other));
  }
  std::ranges::sort(seen);
  EXPECT_TRUE(std::ranges::adjacent_find(seen) == seen.end());
  schedule renamed = s;
  renamed.name = "another name";
  renamed.stages[0].label = "another label";
  EXPECT_EQ(digest(renamed), digest(s));
}

}  // namespace
