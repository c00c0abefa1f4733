// SPDX-License-Identifier: Apache-2.0
// Collectives whose shards differ in size, against a serial recomputation, on every transport whose ranks can be threads.
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using counts_list = std::vector<std::uint64_t>;

constexpr collective_kind with_counts[] = {collective_kind::all_gather, collective_kind::reduce_scatter,
                                           collective_kind::gather, collective_kind::scatter};

/// Small whole numbers: sums of them are exact in any order.
std::int32_t value(std::uint32_t rank, std::uint64_t i) {
  return static_cast<std::int32_t>((rank * 2654435761U + i * 40503U + (i >> 5U)) >> 7U) % 1000;
}

std::uint64_t sum_of(const counts_list& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t c : counts) all += c;
  return all;
}

/// Equal numbers on every platform.
counts_list draw(std::mt19937& random, std::uint32_t ranks, std::uint32_t most) {
  counts_list counts(ranks);
  for (std::uint64_t& c : counts) c = random() % 4 == 0 ? 0 : random() % (most + 1);
  return counts;
}

/// "" or what is wrong with one call on one rank.
template <class C>
std::string check(C& comm, collective_kind kind, std::uint32_t root, const counts_list& counts, bool in_place) {
  const std::uint32_t n = comm.size(), me = comm.rank().value;
  const std::uint64_t all = sum_of(counts);
  std::uint64_t ahead = 0;
  for (std::uint32_t r = 0; r < me; ++r) ahead += counts[r];
  const bool whole_in = kind == collective_kind::reduce_scatter || (kind == collective_kind::scatter && me == root);
  const bool whole_out = kind == collective_kind::all_gather || (kind == collective_kind::gather && me == root);
  const bool any_in = kind != collective_kind::scatter || me == root;
  const bool any_out = kind != collective_kind::gather || me == root;
  std::vector<std::int32_t> in(!any_in    ? 0
                               : whole_in ? all
                                          : counts[me]),
      out(!any_out    ? 0
          : whole_out ? all
                      : counts[me],
          -1);
  for (std::uint64_t i = 0; i < in.size(); ++i) in[i] = value(me, i);
  std::vector<std::int32_t> want;
  if (whole_out) {
    for (std::uint32_t r = 0; r < n; ++r)
      for (std::uint64_t i = 0; i < counts[r]; ++i) want.push_back(value(r, i));
  } else if (any_out) {
    for (std::uint64_t i = 0; i < counts[me]; ++i) {
      std::int32_t x = kind == collective_kind::scatter ? value(root, ahead + i) : 0;
      for (std::uint32_t r = 0; r < n && kind == collective_kind::reduce_scatter; ++r) x += value(r, ahead + i);
      want.push_back(x);
    }
  }
  const auto before = in;
  std::int32_t *from = in.data(), *to = out.data();
  if (in_place && whole_out) {
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(ahead));
    from = out.data() + ahead;
  } else if (in_place && whole_in) {
    to = in.data() + ahead;
  }
  const auto done = comm.run_v(kind, {root}, from, to, counts, dtype::int32);
  const std::string name = std::string(to_string(kind)) + " of " + testing::PrintToString(counts) + " root " +
                           std::to_string(root) + (in_place ? " in place" : "");
  if (!done) return name + ": " + done.error().message();
  if ((!in_place || kind == collective_kind::scatter) && in != before) return name + " changed its input";
  for (std::uint64_t i = 0; i < want.size(); ++i)
    if (to[i] != want[i]) return name + " is wrong at " + std::to_string(i);
  return "";
}

template <class T, class F>
std::vector<std::string> on_communicators(std::vector<T> group, const communicator_options& options, F f) {
  return groups::on_all(std::move(group), [&](T& t) -> std::string {
    auto comm = communicator<T>::create(std::move(t), options);
    if (!comm) return comm.error().message();
    return f(*comm);
  });
}

void expect_no_complaints(const std::vector<std::string>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r)
    EXPECT_EQ(answers[r], "") << "rank " << r << " of " << answers.size();
}

template <class G>
class uneven_contract : public ::testing::Test {};
using kinds = ::testing::Types<groups::inproc, groups::shm_in_threads, groups::faulty_inproc, groups::mixed_halves>;
TYPED_TEST_SUITE(uneven_contract, kinds);

TYPED_TEST(uneven_contract, computes_for_every_number_of_ranks_and_all_kinds_of_counts) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 7U, 8U, 17U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {}, [&](auto& comm) -> std::string {
      std::mt19937 random(n);
      std::vector<counts_list> lists{counts_list(n, 0), counts_list(n, 5)};
      lists.push_back(counts_list(n, 0));
      lists.back()[n - 1] = 17;  // one rank has everything
      lists.push_back(counts_list(n, 13));
      lists.back()[0] = 0;  // one has nothing
      for (const std::uint32_t most : {1U, 3U, 8U, 101U, 2000U}) lists.push_back(draw(random, n, most));
      for (const collective_kind kind : with_counts)
        for (const counts_list& counts : lists)
          for (const bool in_place : {false, true})
            if (const std::string bad = check(comm, kind, n / 2, counts, in_place); !bad.empty()) return bad;
      return "";
    }));
  }
}

TYPED_TEST(uneven_contract, computes_large_shards_in_windows) {
  for (const std::uint32_t n : {2U, 3U, 5U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {.window = 64_KiB}, [&](auto& comm) -> std::string {
      std::mt19937 random(n);
      for (const collective_kind kind : with_counts)
        for (std::uint32_t i = 0; i < 3; ++i) {
          const counts_list counts = draw(random, n, 100'000);
          for (const bool in_place : {false, true})
            if (const std::string bad = check(comm, kind, 1, counts, in_place); !bad.empty()) return bad;
        }
      return "";
    }));
  }
}

TYPED_TEST(uneven_contract, runs_every_flat_algorithm_that_is_adopted) {
  for (const std::uint32_t n : {1U, 3U, 4U, 7U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {.window = 16_KiB}, [&](auto& comm) -> std::string {
      std::mt19937 random(n);
      for (const collective_kind kind : with_counts)
        for (const plan::algorithm how :
             {plan::algorithm::ring, plan::algorithm::recursive, plan::algorithm::direct, plan::algorithm::pat})
          for (const std::uint32_t slices : {1U, 3U}) {
            const auto plan = plan::flat_schedule(kind, n, {n - 1}, how, {.slices = slices});
            if (!plan) continue;
            if (const auto taken = comm.adopt(*plan); !taken) return taken.error().message();
            for (const std::uint32_t most : {2U, 300U, 20'000U}) {
              const counts_list counts = draw(random, n, most);
              for (const bool in_place : {false, true})
                if (const std::string bad = check(comm, kind, n - 1, counts, in_place); !bad.empty())
                  return std::string(plan::to_string(how)) + ": " + bad;
            }
          }
      return "";
    }));
  }
}

TYPED_TEST(uneven_contract, divides_averages_by_the_ranks_in_every_window) {
  expect_no_complaints(on_communicators(TypeParam::make(3), {.window = 4_KiB}, [&](auto& comm) -> std::string {
    const counts_list counts{5000, 0, 700};
    std::vector<float> in(5700, 3.0F * static_cast<float>(comm.rank().value)), out(counts[comm.rank().value], -1.0F);
    if (auto done = comm.reduce_scatter_v(in, out, counts, {.op = reduce_op::avg}); !done)
      return done.error().message();
    return out == std::vector<float>(out.size(), 3.0F) ? "" : "the average of 0, 3 and 6 is not 3";
  }));
}

TYPED_TEST(uneven_contract, exchanges_amounts_of_every_pair) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U, 17U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {}, [&](auto& comm) -> std::string {
      const std::uint32_t me = comm.rank().value;
      std::mt19937 random(n);  // all ranks draw the whole matrix, and use their row and column of it
      for (const std::uint32_t most : {0U, 1U, 9U, 5000U}) {
        std::vector<counts_list> matrix;
        for (std::uint32_t r = 0; r < n; ++r) matrix.push_back(draw(random, n, most));
        counts_list receives;
        std::vector<std::int32_t> in, want;
        for (std::uint32_t r = 0; r < n; ++r) {
          receives.push_back(matrix[r][me]);
          for (std::uint64_t i = 0; i < matrix[me][r]; ++i) in.push_back(value(me * n + r, i));
          for (std::uint64_t i = 0; i < matrix[r][me]; ++i) want.push_back(value(r * n + me, i));
        }
        std::vector<std::int32_t> out(want.size(), -1);
        const auto before = in;
        if (auto done = comm.all_to_all_v(in, out, matrix[me], receives); !done) return done.error().message();
        if (out != want) return "wrong for parts up to " + std::to_string(most);
        if (in != before) return "it changed its input";
      }
      return "";
    }));
  }
}

TYPED_TEST(uneven_contract, names_the_rank_with_other_counts_and_goes_on) {
  const auto told = groups::on_all(TypeParam::make(3), [&](auto& t) -> std::string {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    const std::uint32_t me = comm.rank().value;
    counts_list counts{4, 2, 3};
    std::vector<std::int32_t> in(counts[me], 1), out(9, 7);
    if (me == 1) std::swap(counts[0], counts[2]);
    const auto done = comm.all_gather_v(in, out, counts);
    if (done) return "it succeeded";
    if (done.error().code != errc::mismatch) return "it failed with " + done.error().what;
    if (done.error().what.find("rank 1 has another list of counts than ranks 0, 2") == std::string::npos)
      return done.error().what;
    if (out != std::vector<std::int32_t>(9, 7)) return "data of another call were used";
    return check(comm, collective_kind::all_gather, 0, {4, 2, 3}, false);  // the group is whole
  });
  expect_no_complaints(told);
}

TYPED_TEST(uneven_contract, notices_a_part_that_is_not_what_its_receiver_expects) {
  const auto told = groups::on_all(TypeParam::make(2), [&](auto& t) -> failure {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    // Rank 0 sends three elements, rank 1 expects none.
    const counts_list sends = comm.rank().value == 0 ? counts_list{1, 3} : counts_list{2, 1};
    const counts_list receives = comm.rank().value == 0 ? counts_list{1, 2} : counts_list{0, 1};
    std::vector<std::int32_t> in(sum_of(sends)), out(sum_of(receives), 7);
    const auto done = comm.all_to_all_v(in, out, sends, receives, {.timeout = seconds{5}});
    return done ? fail(errc::bug, "it succeeded") : done.error();
  });
  EXPECT_EQ(told[1].code, errc::mismatch) << told[1].what;
  EXPECT_NE(told[1].what.find("rank 0"), std::string::npos) << told[1].what;
  // The sender may have had all that it expected before its peer noticed.
}

TYPED_TEST(uneven_contract, tells_misuse_on_the_rank_that_makes_it_in_one_sentence) {
  expect_no_complaints(on_communicators(TypeParam::make(1), {}, [&](auto& comm) -> std::string {
    std::vector<std::int32_t> four(4), six(6);
    const auto says = [](const result<void>& done, const std::string& part) -> std::string {
      if (done) return "accepted where it should say '" + part + "'";
      if (done.error().code != errc::invalid_argument) return "another code for: " + done.error().what;
      if (done.error().what.find(part) == std::string::npos) return done.error().what;
      return "";
    };
    const std::string found[] = {
        says(comm.all_gather_v(four, four, counts_list{4, 2}), "was given 2 counts for 1 ranks"),
        says(comm.all_gather_v(four, six, counts_list{4}), "which do not belong together"),
        says(comm.gather_v(four, four, counts_list{4}, {3}), "has root 3 in a group of 1"),
        says(comm.gather(four, four, {1}), "has root 1 in a group of 1"),
        says(comm.scatter(four, four, {9}), "has root 9 in a group of 1"),
        says(comm.scatter_v(six, four, counts_list{4}, {0}), "which do not belong together"),
        says(comm.run_v(collective_kind::all_reduce, {}, four.data(), six.data(), counts_list{4}, dtype::int32),
             "no shards"),
        says(comm.run_v(collective_kind::all_gather, {}, four.data() + 1, four.data(), counts_list{3}, dtype::int32),
             "overlap"),
        says(comm.run_v(collective_kind::all_gather, {}, four.data(), six.data(), counts_list{UINT64_MAX / 2},
                        dtype::int32),
             "more elements than there are addresses"),
        says(comm.run_v(collective_kind::all_gather, {}, nullptr, six.data(), counts_list{4}, dtype::int32),
             "no input"),
        says(comm.all_to_all_v(four, six, counts_list{4}, counts_list{6}), "sends itself 4 elements and expects 6"),
        says(comm.all_to_all_v(four, four, counts_list{4}, counts_list{4}), "no form in place"),
        says(comm.all_to_all_v(four, six, counts_list{4, 0}, counts_list{6}), "2 counts to send and 1 to receive"),
    };
    for (const std::string& s : found)
      if (!s.empty()) return s;
    return "";
  }));
}

}  // namespace
