// SPDX-License-Identifier: Apache-2.0
// What the collectives compute, against a serial recomputation, on every transport whose ranks can be threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstdint>
#include <cstring>
#include <sanitized.hpp>
#include <string>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/float16.hpp>
#include <topocoll/exec/float8.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;

bool is_unsigned(dtype t) { return t == dtype::uint8 || t == dtype::uint32 || t == dtype::uint64; }
// Small whole numbers, so that every order of additions and multiplications gives the same exact result in every type.
int value(reduce_op op, dtype t, std::uint32_t rank, std::uint64_t i) {
  const std::uint64_t h = rank * 2654435761U + i * 40503U + (i >> 3U);
  if (op == reduce_op::prod)
    return (h >> 4U) % 11 == 0 && rank < 6 ? 2 : ((h >> 4U) % 3 == 0 && !is_unsigned(t) ? -1 : 1);
  // Beyond 8, float8_e5m2 does not have every whole number.
  if (size_of(t).value == 1 && !is_integer(t) && rank >= 2) return 0;
  const int small = static_cast<int>((h >> 4U) % 7);
  return is_unsigned(t) ? small : small - 3;
}

void put(std::vector<std::byte>& buffer, dtype t, std::uint64_t i, double x) {
  std::byte* at = buffer.data() + i * size_of(t).value;
  const auto store = [at](auto v) { std::memcpy(at, &v, sizeof v); };
  switch (t) {
    case dtype::int8: store(static_cast<std::int8_t>(x)); break;
    case dtype::uint8: store(static_cast<std::uint8_t>(x)); break;
    case dtype::int32: store(static_cast<std::int32_t>(x)); break;
    case dtype::uint32: store(static_cast<std::uint32_t>(x)); break;
    case dtype::int64: store(static_cast<std::int64_t>(x)); break;
    case dtype::uint64: store(static_cast<std::uint64_t>(x)); break;
    case dtype::float16: store(to_half(static_cast<float>(x)).bits); break;
    case dtype::float32: store(static_cast<float>(x)); break;
    case dtype::float64: store(x); break;
    case dtype::bfloat16: store(to_bfloat16(static_cast<float>(x)).bits); break;
    case dtype::float8_e4m3: store(to_float8_e4m3(static_cast<float>(x)).bits); break;
    case dtype::float8_e5m2: store(to_float8_e5m2(static_cast<float>(x)).bits); break;
  }
}

/// Element i of the reduction over n ranks, as a number that `put` stores exactly as the library must.
double reduced(reduce_op op, dtype t, std::uint32_t n, std::uint64_t i) {
  double r = value(op, t, 0, i);
  for (std::uint32_t rank = 1; rank < n; ++rank) {
    const double x = value(op, t, rank, i);
    switch (op) {
      case reduce_op::prod: r *= x; break;
      case reduce_op::min: r = std::fmin(r, x); break;
      case reduce_op::max: r = std::fmax(r, x); break;
      default: r += x; break;
    }
  }
  if (op != reduce_op::avg) return r;
  if (is_integer(t)) return std::trunc(r / n);
  return t == dtype::float64 ? r / n : static_cast<double>(static_cast<float>(r) / static_cast<float>(n));
}

template <class C>
std::string check(C& comm, collective_kind kind, std::uint32_t root, std::uint64_t count, dtype t, reduce_op op,
                  bool in_place) {
  const std::uint32_t n = comm.size(), me = comm.rank().value;
  const std::uint64_t size = size_of(t).value;
  const bool to_root = kind == collective_kind::gather, from_root = kind == collective_kind::scatter;
  const bool gathers = kind == collective_kind::all_gather || to_root,
             scatters = kind == collective_kind::reduce_scatter, swaps = kind == collective_kind::all_to_all;
  const bool many_in = scatters || swaps || (from_root && me == root);
  const bool many_out = kind == collective_kind::all_gather || swaps || (to_root && me == root);
  const std::uint64_t ins = (many_in ? n : 1) * count, outs = (many_out ? n : 1) * count;
  std::vector<std::byte> in(ins * size), out(outs * size, std::byte{0xee}), want(outs * size, std::byte{0xee});
  const auto own = [&](std::uint32_t rank, std::uint64_t i) { return value(op, t, rank, i); };
  for (std::uint64_t i = 0; i < ins; ++i) put(in, t, i, own(me, i));
  if ((kind == collective_kind::broadcast || from_root) && me != root)
    in.assign(in.size(), std::byte{0x55});  // must not be read
  const bool has_output = (kind != collective_kind::reduce && !to_root) || me == root;
  for (std::uint64_t i = 0; i < outs && has_output; ++i) {
    double x = 0;
    if (gathers)
      x = own(static_cast<std::uint32_t>(i / count), i % count);
    else if (swaps)
      x = own(static_cast<std::uint32_t>(i / count), me * count + i % count);
    else if (scatters)
      x = reduced(op, t, n, me * count + i);
    else if (kind == collective_kind::broadcast)
      x = own(root, i);
    else if (from_root)
      x = own(root, me * count + i);
    else
      x = reduced(op, t, n, i);
    put(want, t, i, x);
  }
  const std::vector<std::byte> before = in;
  const void* from = in.data();
  void* to = out.data();
  if (in_place && (to_root || from_root) && me != root) {
    // In place is a matter of the root alone: the others have one buffer anyway.
  } else if (in_place && gathers) {
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(me * count * size));
    from = out.data() + me * count * size;
  } else if (in_place && (scatters || from_root)) {
    to = in.data() + me * count * size;
  } else if (in_place) {
    from = to = in.data();
  }
  const auto done = comm.run(kind, {root}, from, to, count, t, {.op = op});
  if (!done) return done.error().message();
  const std::string name = std::string(to_string(kind)) + " of " + std::to_string(count) + " " +
                           std::string(to_string(t)) + " " + std::string(to_string(op)) + (in_place ? " in place" : "");
  if ((!in_place || to_root || from_root) && in != before) return name + " changed its input";
  if (in_place && !has_output) return "";
  const auto* got = static_cast<const std::byte*>(to);
  for (std::uint64_t i = 0; i < outs; ++i)
    if (std::memcmp(got + i * size, want.data() + i * size, size) != 0)
      return name + " is wrong at " + std::to_string(i);
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
class collective_contract : public ::testing::Test {};
using kinds = ::testing::Types<groups::inproc, groups::shm_in_threads, groups::faulty_inproc, groups::mixed_halves>;
TYPED_TEST_SUITE(collective_contract, kinds);

constexpr collective_kind all_kinds[] = {collective_kind::all_reduce,     collective_kind::all_gather,
                                         collective_kind::reduce_scatter, collective_kind::broadcast,
                                         collective_kind::reduce,         collective_kind::all_to_all,
                                         collective_kind::gather,         collective_kind::scatter};

TYPED_TEST(collective_contract, computes_for_every_number_of_ranks_and_odd_counts) {
  for (std::uint32_t n = 1; n <= (topocoll_test::sanitized ? 9 : 17); ++n) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {}, [&](auto& comm) -> std::string {
      for (const collective_kind kind : all_kinds) {
        for (const std::uint64_t count : {0, 1, 2, 3, 5, 7, 8, 17, 1000}) {
          for (const bool in_place : {false, true}) {
            if (in_place && kind == collective_kind::all_to_all) continue;
            const std::uint32_t root = static_cast<std::uint32_t>(count) % n;
            if (const std::string bad = check(comm, kind, root, count, dtype::float32, reduce_op::sum, in_place);
                !bad.empty())
              return bad;
          }
        }
      }
      return "";
    }));
  }
}

TYPED_TEST(collective_contract, computes_every_type_and_operation) {
  for (const std::uint32_t n : {2U, 3U, 8U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {}, [&](auto& comm) -> std::string {
      for (const collective_kind kind : all_kinds) {
        for (const dtype t : all_dtypes) {
          for (const reduce_op op : all_reduce_ops) {
            if (op != reduce_op::sum && !reduces(kind)) continue;
            for (const std::uint64_t count : {7, 61})
              if (const std::string bad = check(comm, kind, n - 1, count, t, op, false); !bad.empty()) return bad;
          }
        }
      }
      return "";
    }));
  }
}

TYPED_TEST(collective_contract, computes_large_buffers_in_windows) {
  for (const std::uint32_t n : {2U, 3U, 5U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {.window = 64_KiB}, [&](auto& comm) -> std::string {
      for (const collective_kind kind : all_kinds)
        for (const bool in_place : {false, true}) {
          if (in_place && kind == collective_kind::all_to_all) continue;
          // Several windows, also of each rank's share.
          const std::uint64_t many = topocoll_test::sanitized ? 50'003 : 100'003;
          if (const std::string bad = check(comm, kind, 1, many, dtype::float32, reduce_op::sum, in_place);
              !bad.empty())
            return bad;
          if (const std::string bad = check(comm, kind, 0, 70'001, dtype::int8, reduce_op::avg, in_place); !bad.empty())
            return bad;
        }
      return "";
    }));
  }
}

TYPED_TEST(collective_contract, runs_every_flat_algorithm_that_is_adopted) {
  for (const std::uint32_t n : {1U, 2U, 4U, 7U}) {
    expect_no_complaints(on_communicators(TypeParam::make(n), {.window = 16_KiB}, [&](auto& comm) -> std::string {
      for (const collective_kind kind : all_kinds) {
        for (std::size_t a = 0; a < plan::algorithm_count; ++a) {
          for (const std::uint32_t slices : {1U, 3U}) {
            const auto plan =
                plan::flat_schedule(kind, n, {n - 1}, static_cast<plan::algorithm>(a), {.slices = slices});
            if (!plan) continue;
            if (const auto taken = comm.adopt(*plan); !taken) return taken.error().message();
            for (const std::uint64_t count :
                 {1, 17, topocoll_test::sanitized ? 9'001 : 20'011})  // three windows or more
              for (const bool in_place : {false, true}) {
                if (in_place && kind == collective_kind::all_to_all) continue;
                const std::string bad = check(comm, kind, n - 1, count, dtype::int32, reduce_op::sum, in_place);
                if (!bad.empty()) return std::string(plan::to_string(static_cast<plan::algorithm>(a))) + ": " + bad;
              }
          }
        }
      }
      return "";
    }));
  }
}

TYPED_TEST(collective_contract, gives_the_same_bits_on_all_ranks_where_rounding_depends_on_the_order) {
  for (const std::uint32_t n : {3U, 5U, 8U}) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{3000}, std::size_t{50'000}}) {
      std::vector<std::vector<float>> results(n);
      expect_no_complaints(on_communicators(TypeParam::make(n), {}, [&](auto& comm) -> std::string {
        const std::uint32_t me = comm.rank().value;
        std::vector<float> x(count);
        for (std::size_t i = 0; i < count; ++i)
          x[i] = std::ldexp(1.0F + static_cast<float>(i % 97) / 97.0F, static_cast<int>((i + me * 5) % 24));
        if (auto ok = comm.all_reduce(x); !ok) return ok.error().message();
        results[me] = x;
        return "";
      }));
      for (std::uint32_t r = 1; r < n; ++r)
        EXPECT_EQ(std::memcmp(results[r].data(), results[0].data(), count * sizeof(float)), 0)
            << "rank " << r << " of " << n << ", " << count;
    }
  }
}

TYPED_TEST(collective_contract, does_not_let_a_rank_through_a_barrier_before_the_last_has_come) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U, 17U}) {
    std::atomic<std::uint32_t> arrived{0};
    expect_no_complaints(on_communicators(TypeParam::make(n), {}, [&](auto& comm) -> std::string {
      for (std::uint32_t round = 1; round <= 20; ++round) {
        ++arrived;
        if (auto ok = comm.barrier(); !ok) return ok.error().message();
        if (arrived.load() < round * n) return "through before all had come";
        if (auto ok = comm.barrier(); !ok) return ok.error().message();
      }
      return "";
    }));
  }
}

TYPED_TEST(collective_contract, names_the_rank_that_makes_another_call) {
  const auto told = groups::on_all(TypeParam::make(2), [&](auto& t) -> failure {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    std::vector<float> x(100, 1.0F);
    if (auto ok = comm.all_reduce(x); !ok) return ok.error();
    const auto before = x;
    auto done = comm.rank().value == 0 ? comm.all_reduce(x) : comm.all_reduce(x, {.op = reduce_op::max});
    if (done) return fail(errc::bug, "it succeeded");
    if (x != before) return fail(errc::bug, "data of another call were used");
    return done.error();
  });
  for (const failure& f : told) {
    EXPECT_EQ(f.code, errc::mismatch) << f.what;
    EXPECT_NE(f.what.find("(sum)"), std::string::npos) << f.what;
    EXPECT_NE(f.what.find("(max)"), std::string::npos) << f.what;
  }
}

/// A rank that needs nothing from the others may have finished before they differ: then its next call tells (`by_next`).
template <class G, class First, class Second>
void expect_mismatch(First first, Second second, bool by_next = false) {
  const auto told = groups::on_all(G::make(3), [&](auto& t) -> failure {
    auto comm = communicator<std::remove_reference_t<decltype(t)>>::create(std::move(t)).value();
    result<void> done = comm.rank().value != 1 ? first(comm) : second(comm);
    if (done && by_next) done = comm.barrier();
    return done ? fail(errc::bug, "it succeeded") : done.error();
  });
  for (const failure& f : told) {
    EXPECT_EQ(f.code, errc::mismatch) << f.what;
    EXPECT_NE(f.what.find("rank 1"), std::string::npos) << f.what;
  }
}

TYPED_TEST(collective_contract, notices_every_way_in_which_calls_can_differ) {
  const auto reduce_of = [](std::size_t count) {
    return [count](auto& comm) { return comm.all_reduce(std::vector<float>(count, 1.0F)); };
  };
  expect_mismatch<TypeParam>(reduce_of(100), reduce_of(101));        // count, same plan
  expect_mismatch<TypeParam>(reduce_of(100), reduce_of(1'000'000));  // count, another plan
  expect_mismatch<TypeParam>(reduce_of(100),
                             [](auto& comm) { return comm.all_reduce(std::vector<std::int32_t>(100)); });
  expect_mismatch<TypeParam>(reduce_of(100), [](auto& comm) { return comm.barrier(); });
  expect_mismatch<TypeParam>(reduce_of(100), [](auto& comm) { return comm.broadcast(std::vector<float>(100), {0}); });
  expect_mismatch<TypeParam>([](auto& comm) { return comm.broadcast(std::vector<float>(100), {0}); },
                             [](auto& comm) { return comm.broadcast(std::vector<float>(100), {2}); }, true);
  expect_mismatch<TypeParam>(
      [](auto& comm) {
        return comm.adopt(plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::ring).value());
      },
      [](auto& comm) {
        return comm.adopt(plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::direct).value());
      });
}

}  // namespace
