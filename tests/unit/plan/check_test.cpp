// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <unit/plan/plan_cluster.hpp>
#include <unit/plan/plan_oracle.hpp>
#include <utility>
#include <vector>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/certify.hpp>
#include <topocoll/plan/check.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::plan;

using programs = std::vector<program>;

programs programs_of(const schedule& s) {
  programs all;
  for (std::uint32_t r = 0; r < s.ranks; ++r) all.push_back(lower(s, {r}).value());
  return all;
}
programs flat(collective_kind c, std::uint32_t n, algorithm how, std::uint32_t slices = 1) {
  return programs_of(flat_schedule(c, n, rank_id{n / 2}, how, {.slices = slices}).value());
}
check_report checked(const programs& all, check_options options = {}) {
  return check(std::span<const program>(all), options);
}

constexpr collective_kind collectives[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                           collective_kind::reduce_scatter, collective_kind::broadcast,
                                           collective_kind::reduce,         collective_kind::all_to_all,
                                           collective_kind::gather,         collective_kind::scatter};
constexpr algorithm algorithms[] = {algorithm::ring,     algorithm::recursive,   algorithm::doubling,
                                    algorithm::tree,     algorithm::double_tree, algorithm::direct,
                                    algorithm::one_shot, algorithm::bruck,       algorithm::pat};

void expect_refused(const programs& all, check_kind kind, const std::vector<std::string>& words,
                    check_options options = {}) {
  const check_report r = checked(all, options);
  ASSERT_FALSE(r.holds());
  EXPECT_EQ(r.failures[0].what, kind) << r.summary();
  for (const std::string& w : words)
    EXPECT_NE(r.failures[0].sentence.find(w), std::string::npos) << "'" << w << "' is not in: " << r.summary();
}

/// Two ranks, one chunk, written by hand.
struct by_hand {
  programs all = programs(2);

  explicit by_hand(collective_kind c = collective_kind::all_reduce, std::uint32_t scratch = 1) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      all[r].collective = c;
      all[r].ranks = 2;
      all[r].rank = {r};
      all[r].chunks = sharded(c) ? 2 : 1;
      all[r].scratch_cells = scratch;
      all[r].channels = 2;
      all[r].stages = {"by hand"};
    }
  }
  by_hand& step_of(std::uint32_t rank, std::vector<op> ops, std::vector<std::uint32_t> after = {},
                   std::uint32_t channel = 0) {
    program& p = all[rank];
    p.steps.push_back({channel, 0, static_cast<std::uint32_t>(p.ops.size()), static_cast<std::uint32_t>(ops.size()),
                       std::move(after)});
    p.ops.insert(p.ops.end(), ops.begin(), ops.end());
    return *this;
  }
};
constexpr slice in{buffer::input, 0, 1}, out{buffer::output, 0, 1}, cell{buffer::scratch, 0, 1};
op send(std::uint32_t peer, slice from) { return {op_kind::send, {peer}, from, {}, 0}; }
op receive(std::uint32_t peer, slice to) { return {op_kind::receive, {peer}, {}, to, 0}; }
op copy(slice from, slice to) { return {op_kind::copy, {}, from, to, 0}; }
op add(slice from, slice to) { return {op_kind::reduce, {}, from, to, 0}; }

/// An exchange of inputs: right apart and in place.
by_hand good() {
  by_hand h;
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {send(1 - r, in), receive(1 - r, cell)})
        .step_of(r, {copy(in, out)})
        .step_of(r, {add(cell, out)}, {0, 1});
  return h;
}

// ---- what is right

TEST(check, accepts_every_algorithm_for_every_small_number_of_ranks) {
  std::uint32_t plans = 0;
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 7U, 8U, 17U})
    for (const collective_kind c : collectives)
      for (const algorithm a : algorithms)
        for (const std::uint32_t slices : {1U, 3U}) {
          const auto made = flat_schedule(c, n, rank_id{n / 2}, a, {.slices = slices});
          if (!made) continue;
          ++plans;
          const check_report r = checked(programs_of(*made));
          EXPECT_TRUE(r.holds()) << to_string(c) << ' ' << to_string(a) << ' ' << n << ": " << r.summary();
          EXPECT_EQ(r.credits_needed, 0U);
        }
  EXPECT_GT(plans, 200U);
}

TEST(check, tells_what_it_looked_at) {
  const check_report r = checked(good().all);
  ASSERT_TRUE(r.holds()) << r.summary();
  EXPECT_EQ(r.ranks, 2U);
  EXPECT_EQ(r.steps, 6U);
  EXPECT_EQ(r.messages, 2U);
  EXPECT_EQ(r.operations, 2 * (4 + 4U));
  EXPECT_NE(r.summary().find("2 messages of 2 ranks"), std::string::npos);
}

// ---- what is wrong, by hand

TEST(check, finds_a_send_that_nobody_receives) {
  by_hand h = good();
  h.step_of(0, {send(1, in)});
  expect_refused(h.all, check_kind::messages, {"rank 0 in step 3", "is met by no receive on channel 0"});
}

TEST(check, finds_a_contribution_counted_twice) {
  by_hand h = good();
  h.step_of(1, {add(cell, out)}, {2});
  expect_refused(h.all, check_kind::value, {"rank 1 in step 3", "rank 0 contributes to chunk 0 is counted twice"});
}

TEST(check, finds_what_is_lacking_at_the_end) {
  by_hand h;
  h.step_of(0, {copy(in, out)}).step_of(1, {copy(in, out)});
  expect_refused(h.all, check_kind::value, {"at the end rank 0 lacks what rank 1 contributes to chunk 0: 1 of 2"});
  by_hand b(collective_kind::broadcast);
  b.step_of(0, {copy(in, out)});
  expect_refused(b.all, check_kind::value, {"at the end rank 1 has nothing in chunk 0 of the output"});
}

TEST(check, finds_a_read_of_nothing) {
  by_hand g;
  g.step_of(0, {copy(cell, out)}).step_of(1, {copy(in, out)});
  expect_refused(g.all, check_kind::value, {"nobody has written cell 0 of scratch"});
}

TEST(check, finds_places_that_do_not_exist) {
  by_hand h = good();
  h.all[1].ops[1].to.first = 1;
  expect_refused(h.all, check_kind::shape, {"this rank has no cell 1 of scratch"});
  by_hand g(collective_kind::reduce);
  g.step_of(1, {copy(in, out)});
  expect_refused(g.all, check_kind::shape, {"this rank has no chunk 0 of the output"});
  by_hand w = good();
  w.all[0].ops[2] = copy(cell, in);
  expect_refused(w.all, check_kind::shape, {"overwrites the input"});
}

TEST(check, finds_races_that_show_only_in_place) {
  by_hand h;
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {send(1 - r, in), {op_kind::receive_reduce, {1 - r}, in, out, 0}});
  expect_refused(h.all, check_kind::race, {"(in place)", "chunk 0 of the output"});
}

TEST(check, refuses_to_reuse_what_a_send_may_still_read) {
  constexpr slice other{buffer::scratch, 1, 1};
  by_hand h(collective_kind::broadcast, 2);
  h.step_of(0, {copy(in, cell)})
      .step_of(0, {send(1, cell)}, {0})
      .step_of(0, {receive(1, other)}, {}, 1)
      .step_of(0, {copy(cell, out)}, {2}, 1);  // that the cell was written first follows from the two messages
  h.step_of(1, {receive(0, cell)}).step_of(1, {copy(cell, out)}, {0}).step_of(1, {send(0, cell)}, {0}, 1);
  ASSERT_TRUE(checked(h.all).holds()) << checked(h.all).summary();
  h.step_of(0, {copy(other, cell)}, {2, 3}, 1);
  expect_refused(h.all, check_kind::race, {"rank 0 in step 4", "cell 0 of scratch"});
}

TEST(check, refuses_slices_that_overlap_in_part) {
  by_hand h(collective_kind::all_gather, 3);
  h.step_of(0, {{op_kind::copy, {}, {buffer::scratch, 0, 2}, {buffer::scratch, 1, 2}, 0}});
  expect_refused(h.all, check_kind::shape, {"overlap in part"});
}

// ---- deadlock

/// Both send `ahead` messages before they receive: needs as many credits.
by_hand eager(std::uint32_t ahead) {
  by_hand h(collective_kind::all_reduce, ahead);
  for (const std::uint32_t r : {0U, 1U}) {
    std::uint32_t k = 0;
    for (; k < ahead; ++k)
      h.step_of(r, {send(1 - r, in)}, k == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{k - 1});
    for (; k < 2 * ahead; ++k) h.step_of(r, {receive(1 - r, {buffer::scratch, k - ahead, 1})}, {k - 1});
    h.step_of(r, {copy(in, out)}, {k - 1}).step_of(r, {add(cell, out)}, {k});
  }
  return h;
}

TEST(check, knows_how_many_credits_a_plan_needs) {
  for (const std::uint32_t ahead : {1U, 2U, 3U, 7U}) {
    for (std::uint32_t credits = 0; credits <= ahead + 1; ++credits) {
      const check_report r = checked(eager(ahead).all, {.credits = credits});
      EXPECT_EQ(r.holds(), credits >= ahead) << ahead << " ahead, " << credits << " credits: " << r.summary();
      EXPECT_EQ(r.credits_needed, ahead);
      if (!r.holds()) {
        EXPECT_EQ(r.failures[0].what, check_kind::deadlock);
      }
    }
  }
}

TEST(check, tells_the_circle_in_words) {
  expect_refused(eager(1).all, check_kind::deadlock,
                 {"with 0 credits the ranks wait for each other", "rank 0 in step 1", "rank 1 in step 1",
                  "events in a circle", "with 1 credits per channel it would end"});
}

TEST(check, knows_when_no_credits_help) {
  by_hand h;
  for (const std::uint32_t r : {0U, 1U})
    h.step_of(r, {receive(1 - r, cell)})
        .step_of(r, {send(1 - r, in)}, {0})
        .step_of(r, {copy(in, out)}, {1})
        .step_of(r, {add(cell, out)}, {2});
  expect_refused(h.all, check_kind::deadlock, {"no number of credits helps"}, {.credits = 1000});
  EXPECT_FALSE(checked(h.all).credits_needed);
}

// ---- mutants

/// Takes operation `i` out of a program.
void drop(program& p, std::size_t i) {
  for (step& s : p.steps) {
    if (s.first_op <= i && i < s.first_op + s.op_count)
      --s.op_count;
    else if (s.first_op > i)
      --s.first_op;
  }
  p.ops.erase(p.ops.begin() + static_cast<long>(i));
}
bool is_message(const op& o) { return o.kind != op_kind::copy && o.kind != op_kind::reduce; }

std::vector<std::pair<std::string, programs>> samples() {
  std::vector<std::pair<std::string, programs>> all;
  for (const std::uint32_t n : {2U, 3U, 5U, 8U})
    for (const collective_kind c : collectives)
      for (const algorithm a : algorithms) {
        const auto made = flat_schedule(c, n, rank_id{1}, a, {.slices = a == algorithm::double_tree ? 2U : 1U});
        if (made) all.push_back({std::string(to_string(c)) + " " + std::string(to_string(a)), programs_of(*made)});
      }
  return all;
}

// No operation of these plans is superfluous: without a send or receive the other end is alone; copies and reductions make
// what the output lacks without them.
TEST(check, catches_every_dropped_operation) {
  std::uint32_t mutants = 0;
  for (const auto& [name, whole] : samples())
    for (std::size_t r = 0; r < whole.size(); ++r)
      for (std::size_t i = 0; i < whole[r].ops.size(); ++i) {
        programs all = whole;
        drop(all[r], i);
        ++mutants;
        EXPECT_FALSE(checked(all).holds()) << name << ", rank " << r << ", operation " << i;
      }
  EXPECT_GT(mutants, 3000U);
  RecordProperty("mutants", static_cast<int>(mutants));
}

// A message that neither side knows of: nothing is left unmatched, only the data are missing.
TEST(check, catches_every_dropped_message) {
  std::uint32_t mutants = 0;
  for (const auto& [name, whole] : samples())
    for (std::size_t r = 0; r < whole.size(); ++r)
      for (std::size_t i = 0; i < whole[r].ops.size(); ++i) {
        if (whole[r].ops[i].kind != op_kind::send) continue;
        const std::uint32_t to = whole[r].ops[i].peer.value;
        std::size_t before = 0;  // sends to the same rank; one channel, or channels that differ in the chunk
        for (std::size_t k = 0; k < i; ++k)
          before += whole[r].ops[k].kind == op_kind::send && whole[r].ops[k].peer.value == to &&
                            whole[r].ops[k].chunk == whole[r].ops[i].chunk
                        ? 1
                        : 0;
        programs all = whole;
        drop(all[r], i);
        for (std::size_t k = 0; k < all[to].ops.size(); ++k) {
          const op& o = all[to].ops[k];
          if (!is_message(o) || o.kind == op_kind::send || o.peer.value != r || o.chunk != whole[r].ops[i].chunk)
            continue;
          if (before-- != 0) continue;
          drop(all[to], k);
          break;
        }
        ++mutants;
        const check_report found = checked(all);
        if (found.holds()) {
          // A broadcast that scatters and gathers sends some ranks what they hold already: nothing is lost with that.
          ASSERT_EQ(name, "broadcast recursive") << "rank " << r << ", operation " << i;
          ASSERT_EQ(plan_test::second_opinion(all, 2 * std::uint64_t{all[0].chunks} + 1, mutants), "");
        }
      }
  EXPECT_GT(mutants, 1000U);
  RecordProperty("mutants", static_cast<int>(mutants));
}

// The mutants below change what a rank does in a way that cannot be harmless: another peer leaves a message unmatched;
// another chunk mismatches its other end, or its slice; a reduction for a copy (or a receive) meets what is not there or
// counts twice, and the other way round loses what was there; an operation twice leaves an end unmatched, counts twice, or
// (a copy) races with itself; a wait on itself or a later step is no program.
TEST(check, catches_every_wrong_peer_chunk_kind_and_repetition) {
  std::uint32_t mutants = 0;
  for (const auto& sample : samples()) {
    const std::string& name = sample.first;  // clang 14 captures no structured bindings
    const programs& whole = sample.second;
    for (std::size_t r = 0; r < whole.size(); ++r)
      for (std::size_t i = 0; i < whole[r].ops.size(); ++i) {
        const op& o = whole[r].ops[i];
        const auto expect_caught = [&](const char* what, const std::function<void(program&)>& change) {
          programs all = whole;
          change(all[r]);
          ++mutants;
          EXPECT_FALSE(checked(all).holds()) << name << ": " << what << ", rank " << r << ", operation " << i;
        };
        if (is_message(o) && whole.size() > 2)
          expect_caught("another peer", [&](program& p) {
            do p.ops[i].peer = {(p.ops[i].peer.value + 1) % p.ranks};
            while (p.ops[i].peer == p.rank);
          });
        // Chunks of an all_to_all are all of one size, and a copy is about nothing else.
        if (whole[r].chunks > 1 && (is_message(o) || whole[r].collective != collective_kind::all_to_all))
          expect_caught("another chunk", [&](program& p) { p.ops[i].chunk = (o.chunk + 1) % p.chunks; });
        if (o.kind == op_kind::receive_reduce)
          expect_caught("no reduction", [&](program& p) { p.ops[i].kind = op_kind::receive; });
        if (o.kind == op_kind::reduce) expect_caught("a copy", [&](program& p) { p.ops[i].kind = op_kind::copy; });
        if (o.kind == op_kind::copy) expect_caught("a reduction", [&](program& p) { p.ops[i].kind = op_kind::reduce; });
        if (is_message(o) || o.kind == op_kind::reduce)
          expect_caught("twice", [&](program& p) {
            p.steps.push_back({0, 0, static_cast<std::uint32_t>(p.ops.size()), 1, {}});
            for (std::uint32_t s = 0; s + 1 < p.steps.size(); ++s) p.steps.back().after.push_back(s);
            p.ops.push_back(p.ops[i]);
          });
      }
  }
  EXPECT_GT(mutants, 5000U);
  RecordProperty("mutants", static_cast<int>(mutants));
}

// Every wait of a ring is there for a reason: without it two accesses to one place are unordered.
TEST(check, catches_every_slot_of_a_ring_that_is_used_too_early) {
  std::uint32_t mutants = 0;
  for (const std::uint32_t slices : {1U, 2U}) {
    const programs whole = flat(collective_kind::all_reduce, 5, algorithm::ring, slices);
    for (std::size_t r = 0; r < whole.size(); ++r)
      for (std::size_t s = 0; s < whole[r].steps.size(); ++s)
        for (std::size_t a = 0; a < whole[r].steps[s].after.size(); ++a) {
          programs all = whole;
          // Waits for another slice are about pace alone.
          if (all[r].steps[all[r].steps[s].after[a]].channel != all[r].steps[s].channel) continue;
          all[r].steps[s].after.erase(all[r].steps[s].after.begin() + static_cast<long>(a));
          ++mutants;
          const check_report found = checked(all);
          ASSERT_FALSE(found.holds());
          EXPECT_EQ(found.failures[0].what, check_kind::race) << found.summary();
        }
  }
  EXPECT_GT(mutants, 50U);
  RecordProperty("mutants", static_cast<int>(mutants));
}

// Where a step sends and receives, it now receives first and then sends: in a ring everybody waits for his neighbour.
TEST(check, catches_waits_in_a_circle) {
  for (const std::uint32_t n : {2U, 3U, 8U, 17U}) {
    programs all = flat(collective_kind::all_gather, n, algorithm::ring);
    for (program& p : all) {
      program turned = p;
      turned.steps.clear();
      turned.ops.clear();
      std::vector<std::uint32_t> last(p.steps.size());  // where the end of a step is now
      for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
        step next = p.steps[s];
        for (std::uint32_t& a : next.after) a = last[a];
        for (const bool receives : {true, false}) {
          next.first_op = static_cast<std::uint32_t>(turned.ops.size());
          for (std::uint32_t i = p.steps[s].first_op; i < p.steps[s].first_op + p.steps[s].op_count; ++i)
            if ((p.ops[i].kind == op_kind::receive) == receives) turned.ops.push_back(p.ops[i]);
          next.op_count = static_cast<std::uint32_t>(turned.ops.size()) - next.first_op;
          turned.steps.push_back(next);
          last[s] = static_cast<std::uint32_t>(turned.steps.size() - 1);
          next.after = {last[s]};
        }
      }
      p = turned;
    }
    expect_refused(all, check_kind::deadlock, {"the ranks wait for each other", "no number of credits helps"});
    expect_refused(all, check_kind::deadlock, {"the ranks wait for each other"}, {.credits = 1000});
  }
}

/// One random change; "" when it would change nothing.
std::string damage(programs& all, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  program& p = all[below(all.size())];
  if (p.ops.empty()) return "";
  const std::size_t i = below(p.ops.size());
  op& o = p.ops[i];
  const std::string where = " at rank " + std::to_string(p.rank.value) + ", operation " + std::to_string(i);
  const auto used = [&]() -> slice& {
    if (o.kind == op_kind::send) return o.from;
    if (o.kind == op_kind::receive) return o.to;
    return below(2) == 0 ? o.from : o.to;
  };
  switch (below(12)) {
    case 0: drop(p, i); return "dropped" + where;
    case 1:
      if (!is_message(o)) return "";
      o.peer = {(o.peer.value + 1 + below(p.ranks - 1)) % p.ranks};
      return "another peer" + where;
    case 2: used().first += 1; return "slice moved on" + where;
    case 3: {
      slice& s = used();
      s.where = static_cast<buffer>((static_cast<std::uint32_t>(s.where) + 1 + below(2)) % 3);
      return "another buffer" + where;
    }
    case 4:
      o.kind = static_cast<op_kind>((static_cast<std::uint32_t>(o.kind) + 1 + below(4)) % 5);
      return "another kind" + where;
    case 5:
      for (std::size_t k = 0; k < p.steps.size(); ++k) {
        step& s = p.steps[(i + k) % p.steps.size()];
        if (s.after.empty()) continue;
        s.after.erase(s.after.begin() + static_cast<long>(below(s.after.size())));
        return "a wait removed at rank " + std::to_string(p.rank.value) + ", step " +
               std::to_string((i + k) % p.steps.size());
      }
      return "";
    case 6:
      ++p.steps.back().op_count;
      p.ops.push_back(op(o));
      return "once more at the end" + where;
    case 7: o.chunk = (o.chunk + 1) % p.chunks; return "another chunk" + where;
    case 8: {
      op& other = p.ops[below(p.ops.size())];
      if (&other == &o) return "";
      std::swap(o, other);
      return "swapped" + where;
    }
    case 9: {
      step& s = p.steps[below(p.steps.size())];
      s.channel = (s.channel + 1) % (p.channels + 1);
      return "another channel" + where;
    }
    case 10:
      if (p.steps.size() < 2) return "";
      p.steps[1 + below(p.steps.size() - 1)].after = {0};
      return "waits replaced" + where;
    default: used().count += 1; return "a longer slice" + where;
  }
}

// Verdicts against a brute-force execution: what is accepted must run right, in every mode and order.
TEST(check, agrees_with_brute_force_on_random_mutants) {
  std::uint32_t refused = 0, accepted = 0;
  for (std::uint32_t seed = 1; seed <= 5000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t n = 2 + below(6);
    const collective_kind c = collectives[below(8)];
    const auto made =
        flat_schedule(c, n, rank_id{below(n)}, algorithms[below(std::size(algorithms))], {.slices = 1 + below(2)});
    if (!made) continue;
    programs all = programs_of(*made);
    const std::string change = damage(all, random);
    if (change.empty()) continue;
    const check_report found = checked(all);
    if (!found.holds()) {
      ++refused;
      EXPECT_NE(found.failures[0].sentence.find("rank"), std::string::npos) << found.summary();
      continue;
    }
    ++accepted;
    for (std::uint32_t run = 0; run < 4; ++run)
      ASSERT_EQ(plan_test::second_opinion(all, 3 * std::uint64_t{made->chunks()} + 1, seed * 100 + run), "")
          << made->name << ", seed " << seed << ": " << change;
  }
  EXPECT_GT(refused, 1700U);
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("accepted", static_cast<int>(accepted));
  EXPECT_GT(refused, 8 * accepted);  // most of these lost a wait that is about pace alone
}

TEST(check, survives_nonsense) {
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937 random(seed);
    programs all = flat(collectives[seed % 6], 3, seed % 6 == 5 ? algorithm::direct : algorithm::ring);
    for (int k = 0; k < 4; ++k) {
      program& p = all[random() % 3];
      const std::uint32_t wild =
          random() % 3 == 0 ? static_cast<std::uint32_t>(random()) : static_cast<std::uint32_t>(random() % 5);
      switch (random() % 14) {
        case 0: p.ranks = wild; break;
        case 1: p.rank = {wild}; break;
        case 2: p.root = {wild}; break;
        case 3: p.chunks = wild % 1000; break;
        case 4: p.scratch_cells = wild % 1000; break;
        case 5: p.channels = wild; break;
        case 6: p.steps[random() % p.steps.size()].first_op = wild; break;
        case 7: p.steps[random() % p.steps.size()].op_count = wild; break;
        case 8: p.steps[random() % p.steps.size()].after.push_back(wild); break;
        case 9: p.ops[random() % p.ops.size()].from = {static_cast<buffer>(wild % 4), wild, wild}; break;
        case 10: p.ops[random() % p.ops.size()].to.count = wild; break;
        case 11: p.ops[random() % p.ops.size()].kind = static_cast<op_kind>(wild % 256); break;
        case 12: p.ops[random() % p.ops.size()].chunk = wild; break;
        default: p.steps[random() % p.steps.size()].channel = wild; break;
      }
    }
    (void)checked(all).summary();
  }
}

// ---- certificates

struct certified {
  plan_test::cluster c;
  problem q;
  programs all;
  certificate claims;

  explicit certified(collective_kind kind, plan_test::cluster_shape shape = plan_test::even(2, 2, 3))
      : c(plan_test::build(shape)), q(plan_test::on(c, kind, bytes{1U << 20U})) {
    const schedule made = hierarchical{}.synthesize(q).value();
    all = programs_of(made);
    claims = certify(q, made, lower_bound(q).value(), alpha_beta::ideal()).value();
  }
  [[nodiscard]] check_report judged() const {
    return check(std::span<const program>(all), c.graph, std::span<const node_id>(q.ranks), claims);
  }
};

constexpr collective_kind hierarchical_kinds[] = {collective_kind::all_reduce, collective_kind::all_gather,
                                                  collective_kind::reduce_scatter, collective_kind::broadcast,
                                                  collective_kind::reduce};

TEST(check, accepts_certificates_of_all_collectives) {
  for (const collective_kind kind : hierarchical_kinds)
    for (const plan_test::cluster_shape& shape :
         {plan_test::even(2, 2, 3), plan_test::even(1, 3, 2), plan_test::cluster_shape{.pods = {{3, 2}, {1, 4, 2}}}}) {
      const certified x(kind, shape);
      const check_report r = x.judged();
      EXPECT_TRUE(r.holds()) << to_string(kind) << ": " << r.summary();
      EXPECT_TRUE(r.bound_checked && r.loads_checked && r.gap_checked) << to_string(kind);
      ASSERT_TRUE(x.claims.gap);
      EXPECT_GE(*x.claims.gap, rational{0});
    }
}

void expect_claims_refused(const certified& x, check_kind kind, const std::string& words) {
  const check_report r = x.judged();
  ASSERT_FALSE(r.holds()) << words;
  EXPECT_EQ(r.failures[0].what, kind) << r.summary();
  EXPECT_NE(r.failures[0].sentence.find(words), std::string::npos) << "'" << words << "' is not in " << r.summary();
}

TEST(check, catches_wrong_claims) {
  for (const collective_kind kind : hierarchical_kinds) {
    const certified right(kind);
    certified x = right;
    x.c.graph = right.c.graph;
    x.claims.seconds_per_byte = *x.claims.seconds_per_byte * rational{1000, 1001};
    expect_claims_refused(x, check_kind::bound, "the sets give a bound of");
    x.claims = right.claims;
    x.claims.sets.clear();
    expect_claims_refused(x, check_kind::bound, "without a set");
    x.claims = right.claims;
    x.claims.gap = *x.claims.gap + rational{1, 1000};
    expect_claims_refused(x, check_kind::gap, "give a gap of");
    x.claims = right.claims;
    x.claims.loads[0].chunks = x.claims.loads[0].chunks + rational{1, 3};
    expect_claims_refused(x, check_kind::load, "carries");
    x.claims = right.claims;
    x.claims.loads.pop_back();
    expect_claims_refused(x, check_kind::load, "claimed are 0");
    x.claims = right.claims;
    x.claims.routes[0].links.pop_back();
    expect_claims_refused(x, check_kind::route, "of a message remain at");
    x.claims = right.claims;
    x.claims.routes[0].links[0].share = x.claims.routes[0].links[0].share * rational{1, 2};
    expect_claims_refused(x, check_kind::route, "of a message remain at");
    x.claims = right.claims;
    x.claims.routes.pop_back();
    expect_claims_refused(x, check_kind::route, "no route is claimed");
    x.claims = right.claims;
    x.claims.routes[0].links[0].link = {9999};
    expect_claims_refused(x, check_kind::route, "link 9999, which is not there");
  }
}

// Any set is a bound, if not the best one: the checker must find the same ratio as sums of doubles, which are exact here.
TEST(check, recomputes_the_bound_of_any_set) {
  std::mt19937 random(7);
  std::uint32_t sets = 0;
  for (const collective_kind kind : collectives) {
    const plan_test::cluster c = plan_test::build(plan_test::even(2, 2, 3));
    const problem q = plan_test::on(c, kind, bytes{1U << 20U}, {5});
    const programs all =
        flat(kind, 12, supports(plan::detail::stage_of(kind), algorithm::ring) ? algorithm::ring : algorithm::direct);
    for (std::uint32_t k = 0; k < 30; ++k) {
      certificate claims;
      claims.sets.resize(1);
      std::vector<bool> inside(c.graph.node_count());
      const std::uint32_t one_in = 2 + k % 5;
      for (std::uint32_t v = 0; v < inside.size(); ++v)
        if (random() % one_in == 0) {
          inside[v] = true;
          claims.sets[0].push_back(node_id{v});
        }
      double leaves = 0, enters = 0;
      for (const topo::link& l : c.graph.links()) {
        if (inside[l.from.value] && !inside[l.to.value]) leaves += l.capacity.value;
        if (!inside[l.from.value] && inside[l.to.value]) enters += l.capacity.value;
      }
      std::int64_t in_it = 0;
      for (const node_id v : q.ranks) in_it += inside[v.value] ? 1 : 0;
      if (in_it == 0 || in_it == 12) continue;
      ++sets;
      const auto over = [&](std::int64_t amount, double rate) {
        return rational{amount, 12} / rational{static_cast<std::int64_t>(rate)};
      };
      const auto larger = [](rational a, rational b) { return a < b ? b : a; };
      const double narrow = std::min(leaves, enters);
      const bool root_in = inside[q.ranks[6].value];
      rational wanted{};
      switch (kind) {
        case collective_kind::all_gather: wanted = larger(over(in_it, leaves), over(12 - in_it, enters)); break;
        case collective_kind::reduce_scatter: wanted = larger(over(in_it, enters), over(12 - in_it, leaves)); break;
        case collective_kind::all_reduce: wanted = over(12, narrow); break;
        case collective_kind::broadcast: wanted = over(12, root_in ? leaves : enters); break;
        case collective_kind::reduce: wanted = over(12, root_in ? enters : leaves); break;
        case collective_kind::gather: wanted = root_in ? over(12 - in_it, enters) : over(in_it, leaves); break;
        case collective_kind::scatter: wanted = root_in ? over(12 - in_it, leaves) : over(in_it, enters); break;
        case collective_kind::all_to_all: wanted = over(in_it * (12 - in_it), narrow); break;
      }
      const auto judged = [&](rational claimed) {
        claims.seconds_per_byte = claimed;
        return check(std::span<const program>(all), c.graph, std::span<const node_id>(q.ranks), claims);
      };
      EXPECT_TRUE(judged(wanted).holds()) << to_string(kind) << ": " << judged(wanted).summary();
      EXPECT_FALSE(judged(wanted * rational{1'000'001, 1'000'000}).holds()) << to_string(kind);
      EXPECT_FALSE(judged(wanted * rational{999'999, 1'000'000}).holds()) << to_string(kind);
    }
  }
  EXPECT_GT(sets, 120U);
}

TEST(check, refuses_families_that_are_none) {
  const certified right(collective_kind::all_reduce);
  certified x = right;
  x.claims.gap.reset();
  x.claims.sets.assign(12, {});
  for (std::uint32_t r = 0; r < 12; ++r) x.claims.sets[r] = {x.q.ranks[r]};
  // Each GPU alone: 500 GB/s leave it. 2 * 11 / (12 * 500 GB/s)
  x.claims.seconds_per_byte = rational{22, 12} / rational{500'000'000'000};
  EXPECT_TRUE(x.judged().holds()) << x.judged().summary();
  x.claims.sets[3].push_back(x.q.ranks[4]);
  expect_claims_refused(x, check_kind::bound, "is in sets");
  x.claims.sets[3].pop_back();
  x.claims.sets.pop_back();
  expect_claims_refused(x, check_kind::bound, "the family holds 11 of 12 ranks");
  x.claims.sets.push_back({});
  expect_claims_refused(x, check_kind::bound, "has no rank");
  certified gather(collective_kind::all_gather);
  gather.claims.sets.push_back({});
  expect_claims_refused(gather, check_kind::bound, "bounds all_reduce only");
}

TEST(check, counts_with_the_rates_that_it_is_given) {
  certified x(collective_kind::all_gather);
  std::vector<bytes_per_second> rates;
  for (const topo::link& l : x.c.graph.links()) rates.push_back(l.capacity * 2);
  const auto judged = [&] {
    return check(std::span<const program>(x.all), x.c.graph, std::span<const node_id>(x.q.ranks), x.claims,
                 std::span<const bytes_per_second>(rates));
  };
  EXPECT_FALSE(judged().holds());
  x.claims.seconds_per_byte = *x.claims.seconds_per_byte / rational{2};
  EXPECT_TRUE(judged().holds()) << judged().summary();  // the gap is a ratio
  rates.pop_back();
  EXPECT_FALSE(judged().holds());
}

TEST(check, counts_claims_only_for_the_right_numbers_of_ranks_and_rates) {
  certified x(collective_kind::all_reduce);
  x.q.ranks.pop_back();
  EXPECT_FALSE(x.judged().holds());
  x.q.ranks.push_back(node_id{99999});
  EXPECT_FALSE(x.judged().holds());
}

}  // namespace
