// SPDX-License-Identifier: Apache-2.0
// Deterministic communicators: the bits of a scalar chain in the order of the ranks, by every way and however cut.
#include <cmath>
#include <contract/groups.hpp>
#include <contract/mixed_transport_groups.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <sanitized.hpp>
#include <string>
#include <type_traits>
#include <unit/plan/plan_cluster.hpp>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/float16.hpp>
#include <topocoll/exec/float8.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;
using namespace topocoll::literals;
using array = std::vector<std::byte>;
using counts_list = std::vector<std::uint64_t>;

// Elements, one at a time.

template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16> ||
                                  std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>;

template <class T>
T at(const array& a, std::uint64_t i) {
  T x;
  std::memcpy(&x, a.data() + i * sizeof(T), sizeof(T));
  return x;
}
template <class T>
void put(array& a, std::uint64_t i, T x) {
  std::memcpy(a.data() + i * sizeof(T), &x, sizeof(T));
}
template <class T>
auto wide(T x) {
  if constexpr (is_narrow<T>)
    return to_float(x);
  else
    return x;
}
template <class T, class W>
T narrow(W x) {
  if constexpr (std::is_same_v<T, half>)
    return to_half(x);
  else if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(x);
  else if constexpr (std::is_same_v<T, float8_e4m3>)
    return to_float8_e4m3(x);
  else if constexpr (std::is_same_v<T, float8_e5m2>)
    return to_float8_e5m2(x);
  else
    return static_cast<T>(x);
}
template <class W>
W combined(reduce_op op, W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    using bits = std::make_unsigned_t<W>;  // wraps
    if (op == reduce_op::sum || op == reduce_op::avg)
      return static_cast<W>(static_cast<bits>(static_cast<bits>(a) + static_cast<bits>(b)));
    if (op == reduce_op::prod)
      return static_cast<W>(static_cast<bits>(std::uint64_t{static_cast<bits>(a)} * static_cast<bits>(b)));
    return (op == reduce_op::min) == (a < b) ? a : b;
  } else {
    if (op == reduce_op::sum || op == reduce_op::avg) return a + b;
    if (op == reduce_op::prod) return a * b;
    if (a == b) return (op == reduce_op::min) == std::signbit(a) ? a : b;  // -0 is smaller than +0
    return (op == reduce_op::min) == (a < b) ? a : b;
  }
}

/// Calls `f` with a value of the element type.
template <class F>
void with_type(dtype t, F f) {
  switch (t) {
    case dtype::int8: return f(std::int8_t{});
    case dtype::uint8: return f(std::uint8_t{});
    case dtype::int32: return f(std::int32_t{});
    case dtype::uint32: return f(std::uint32_t{});
    case dtype::int64: return f(std::int64_t{});
    case dtype::uint64: return f(std::uint64_t{});
    case dtype::float16: return f(half{});
    case dtype::float32: return f(float{});
    case dtype::float64: return f(double{});
    case dtype::bfloat16: return f(bfloat16{});
    case dtype::float8_e4m3: return f(float8_e4m3{});
    case dtype::float8_e5m2: return f(float8_e5m2{});
  }
}

/// ((x0 ⊕ x1) ⊕ x2) ⊕ …, computed in float for narrow floats, divided once, rounded once.
array chain(dtype t, reduce_op op, const std::vector<array>& inputs) {
  array out(inputs[0].size());
  with_type(t, [&](auto kind) {
    using T = decltype(kind);
    for (std::uint64_t i = 0; i < out.size() / sizeof(T); ++i) {
      auto x = wide(at<T>(inputs[0], i));
      for (std::size_t r = 1; r < inputs.size(); ++r) x = combined(op, x, wide(at<T>(inputs[r], i)));
      using W = decltype(x);
      if (op == reduce_op::avg && inputs.size() > 1) {
        if constexpr (std::is_floating_point_v<W>)
          x = x / static_cast<W>(inputs.size());
        else if constexpr (std::is_signed_v<W>)
          x = static_cast<W>(std::int64_t{x} / static_cast<std::int64_t>(inputs.size()));
        else
          x = static_cast<W>(std::uint64_t{x} / inputs.size());
      }
      put<T>(out, i, narrow<T>(x));
    }
  });
  return out;
}

/// Numbers of very different sizes and both signs, so that the order of operands matters; sums of the 16-bit and 8-bit
/// floats leave their range on the way and, some, in the end. No NaN, and no infinity that could make one.
array draw(dtype t, reduce_op op, std::uint64_t count, std::uint32_t seed) {
  array a(count * size_of(t).value);
  std::mt19937 random(seed);
  with_type(t, [&](auto kind) {
    using T = decltype(kind);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = (std::uint64_t{random()} << 32U) | random();
      if constexpr (std::is_integral_v<T>) {
        put<T>(a, i, static_cast<T>(bits));
      } else {
        const double fraction = 1.0 + static_cast<double>(bits & 0xfffffU) / 0x1p20;
        const double sign = (bits >> 20U) % 2 == 0 ? 1 : -1;
        const int range = sizeof(T) == 1 ? 6 : std::is_same_v<T, half> ? 12 : 24;
        int exponent = static_cast<int>((bits >> 21U) % (2 * static_cast<unsigned>(range))) - range;
        if (op == reduce_op::prod) exponent = exponent % 3;
        double x = sign * std::ldexp(fraction, exponent);
        if (op != reduce_op::prod && (bits >> 52U) % 8 == 0) {  // at the edge of the range
          if (std::is_same_v<T, half>) x = sign * 65504;
          if (std::is_same_v<T, bfloat16>) x = sign * 0x1.fep121;
          if (std::is_same_v<T, float8_e4m3>) x = sign * 448;
          if (std::is_same_v<T, float8_e5m2>) x = sign * 57344;
        }
        if ((bits >> 52U) % 64 == 1) x = sign * 0.0;
        if constexpr (std::is_same_v<T, double>)
          put<T>(a, i, x);
        else
          put<T>(a, i, narrow<T>(static_cast<float>(x)));
      }
    }
  });
  return a;
}

/// "" or the first element that differs: where, both values in hex.
std::string first_difference(dtype t, const std::byte* got, const std::byte* want, std::uint64_t count,
                             std::uint32_t rank) {
  const std::uint64_t width = size_of(t).value;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (std::memcmp(got + i * width, want + i * width, width) == 0) continue;
    std::uint64_t g = 0, w = 0;
    std::memcpy(&g, got + i * width, width);
    std::memcpy(&w, want + i * width, width);
    char text[160];
    std::snprintf(text, sizeof text, "rank %u: element %llu of %llu is 0x%0*llx, in the order of the ranks 0x%0*llx",
                  rank, static_cast<unsigned long long>(i), static_cast<unsigned long long>(count),
                  static_cast<int>(2 * width), static_cast<unsigned long long>(g), static_cast<int>(2 * width),
                  static_cast<unsigned long long>(w));
    return text;
  }
  return "";
}

// Groups.

/// No fault: what the wrapper hides is that ranks see memory of one another, so everything goes by messages.
struct by_messages {
  using transport = faulty<inproc_transport>;
  static constexpr const char* runs = "ordered";
  static std::vector<transport> make(std::uint32_t ranks) {
    std::vector<transport> all;
    for (inproc_transport& t : make_inproc_group(ranks).value()) all.emplace_back(std::move(t), fault_plan{});
    return all;
  }
};
struct between_hosts : groups::mixed_halves {
  static constexpr const char* runs = "ordered";
};
struct with_late_messages : groups::faulty_inproc {
  static constexpr const char* runs = "ordered";
};
struct directly : groups::inproc {
  static constexpr const char* runs = "shared";
};

template <class T, class F>
void on_communicators(std::vector<T> group, const communicator_options& options, F f) {
  const auto answers = groups::on_all(std::move(group), [&](T& t) -> std::string {
    auto comm = communicator<T>::create(std::move(t), options);
    if (!comm) return comm.error().message();
    return f(*comm);
  });
  for (std::size_t r = 0; r < answers.size(); ++r)
    EXPECT_EQ(answers[r], "") << "rank " << r << " of " << answers.size();
}

/// One reduction: inputs of all ranks, and what comes out.
struct reduction {
  dtype type;
  reduce_op op;
  std::uint64_t count;  // of the whole array
  std::vector<array> inputs;
  array wanted;
};
reduction make_reduction(dtype t, reduce_op op, std::uint64_t count, std::uint32_t ranks) {
  reduction r{t, op, count, {}, {}};
  for (std::uint32_t k = 0; k < ranks; ++k)
    r.inputs.push_back(draw(t, op, count, 977 * k + static_cast<std::uint32_t>(count) + 7));
  r.wanted = chain(t, op, r.inputs);
  return r;
}
std::string title(const char* call, const reduction& r, bool in_place) {
  return std::string(call) + " of " + std::to_string(r.count) + " " + std::string(to_string(r.type)) + " (" +
         std::string(to_string(r.op)) + ")" + (in_place ? " in place: " : ": ");
}

template <class C>
std::string check_all_reduce(C& comm, const reduction& r, bool in_place) {
  array in = r.inputs[comm.rank().value], out(in.size());
  array& to = in_place ? in : out;
  if (auto ok = comm.all_reduce(in.data(), to.data(), r.count, r.type, {.op = r.op}); !ok)
    return title("all_reduce", r, in_place) + ok.error().message();
  if (!in_place && in != r.inputs[comm.rank().value]) return title("all_reduce", r, in_place) + "its input changed";
  const std::string bad = first_difference(r.type, to.data(), r.wanted.data(), r.count, comm.rank().value);
  return bad.empty() ? "" : title("all_reduce", r, in_place) + bad;
}
template <class C>
std::string check_reduce(C& comm, const reduction& r, std::uint32_t root, bool in_place) {
  const std::uint32_t me = comm.rank().value;
  array in = r.inputs[me], out(me == root ? in.size() : 0);
  std::byte* const to = in_place ? in.data() : out.data();
  if (auto ok = comm.reduce(in.data(), to, r.count, r.type, {root}, {.op = r.op}); !ok)
    return title("reduce", r, in_place) + ok.error().message();
  if ((me != root || !in_place) && in != r.inputs[me]) return title("reduce", r, in_place) + "its input changed";
  if (me != root) return "";
  const std::string bad = first_difference(r.type, to, r.wanted.data(), r.count, me);
  return bad.empty() ? "" : title("reduce", r, in_place) + bad;
}
/// Shards of `counts` elements, all together `r.count`.
template <class C>
std::string check_reduce_scatter(C& comm, const reduction& r, const counts_list& counts, bool uneven, bool in_place) {
  const std::uint32_t me = comm.rank().value;
  const std::uint64_t width = size_of(r.type).value;
  std::uint64_t ahead = 0;
  for (std::uint32_t k = 0; k < me; ++k) ahead += counts[k];
  array in = r.inputs[me], out(counts[me] * width);
  std::byte* const to = in_place ? in.data() + ahead * width : out.data();
  auto ok = uneven ? comm.run_v(collective_kind::reduce_scatter, {}, in.data(), to, counts, r.type, {.op = r.op})
                   : comm.reduce_scatter(in.data(), to, counts[me], r.type, {.op = r.op});
  if (!ok) return title("reduce_scatter", r, in_place) + ok.error().message();
  if (!in_place && in != r.inputs[me]) return title("reduce_scatter", r, in_place) + "its input changed";
  const std::string bad = first_difference(r.type, to, r.wanted.data() + ahead * width, counts[me], me);
  return bad.empty() ? "" : title("reduce_scatter", r, in_place) + bad;
}

/// All of them on one set of inputs.
template <class C>
std::string check_all(C& comm, const reduction& r) {
  const std::uint32_t n = comm.size();
  for (const bool in_place : {false, true}) {
    if (auto bad = check_all_reduce(comm, r, in_place); !bad.empty()) return bad;
    if (auto bad = check_reduce(comm, r, n / 2, in_place); !bad.empty()) return bad;
    counts_list counts(n, r.count / n);
    if (r.count % n == 0)
      if (auto bad = check_reduce_scatter(comm, r, counts, false, in_place); !bad.empty()) return bad;
    counts[n - 1] += r.count % n;
    if (n > 2) counts[0] += std::exchange(counts[1], 0);  // one rank has nothing
    if (auto bad = check_reduce_scatter(comm, r, counts, true, in_place); !bad.empty()) return bad;
  }
  return "";
}

template <class G>
class deterministic : public ::testing::Test {};
using ways = ::testing::Types<directly, by_messages, with_late_messages, between_hosts>;
TYPED_TEST_SUITE(deterministic, ways);

TYPED_TEST(deterministic, goes_the_way_that_this_suite_means) {
  on_communicators(TypeParam::make(2), {.deterministic = true}, [](auto& comm) -> std::string {
    for (const std::uint64_t count : {1U, 1000000U})
      for (const collective_kind kind :
           {collective_kind::all_reduce, collective_kind::reduce_scatter, collective_kind::reduce})
        if (const std::string got = comm.plan_for(kind, {}, count, dtype::float32); got != TypeParam::runs) return got;
    return "";
  });
}

TYPED_TEST(deterministic, has_the_bits_of_a_chain_for_every_type_and_operation) {
  for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U}) {
    if (topocoll_test::sanitized && n > 3) continue;
    std::vector<reduction> all;
    for (const dtype t : all_dtypes)
      for (const reduce_op op : all_reduce_ops)
        for (const std::uint64_t count : {0U, 1U, 7U, 1000U}) all.push_back(make_reduction(t, op, count, n));
    on_communicators(TypeParam::make(n), {.window = 1_KiB, .deterministic = true}, [&](auto& comm) -> std::string {
      for (const reduction& r : all)
        if (auto bad = check_all(comm, r); !bad.empty()) return bad;
      return "";
    });
  }
}

TYPED_TEST(deterministic, has_the_same_bits_for_every_window_and_number_of_windows_under_way) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U}) {
    if (topocoll_test::sanitized && n > 3) continue;
    std::vector<reduction> all;
    for (const dtype t : {dtype::float32, dtype::float16, dtype::float8_e5m2, dtype::int64})
      all.push_back(make_reduction(t, reduce_op::avg, 65537, n));
    for (const communicator_options& o :
         {communicator_options{.deterministic = true},
          communicator_options{.window = {0}, .in_flight = 1, .deterministic = true},
          communicator_options{.window = 4_KiB, .in_flight = 1, .deterministic = true},
          communicator_options{.window = 24_KiB, .in_flight = 9, .deterministic = true}})
      on_communicators(TypeParam::make(n), o, [&](auto& comm) -> std::string {
        for (const reduction& r : all)
          if (auto bad = check_all(comm, r); !bad.empty()) return bad;
        return "";
      });
  }
}

TYPED_TEST(deterministic, works_in_windows_of_less_than_an_element) {
  const reduction r = make_reduction(dtype::float64, reduce_op::sum, 1400, 3);
  on_communicators(TypeParam::make(3), {.window = {1}, .deterministic = true},
                   [&](auto& comm) { return check_all(comm, r); });
}

/// A ring, and a hierarchical plan for two boxes of two GPUs where there are four ranks.
std::vector<plan::schedule> plans_for(collective_kind kind, std::uint32_t ranks) {
  std::vector<plan::schedule> plans{plan::flat_schedule(kind, ranks, {}, plan::algorithm::ring).value()};
  if (ranks == 4) {
    const plan_test::cluster boxes = plan_test::build({.pods = {{2, 2}}});
    plans.push_back(plan::hierarchical{.slices = 2}.synthesize(plan_test::on(boxes, kind, 1_MiB)).value());
  }
  return plans;
}

TYPED_TEST(deterministic, has_the_same_bits_when_a_plan_was_adopted) {
  for (const std::uint32_t n : {2U, 3U, 4U, 5U}) {
    std::vector<reduction> all;
    for (const std::uint64_t count : {7U, 1000U, 65537U})
      for (const dtype t : {dtype::float32, dtype::bfloat16})
        all.push_back(make_reduction(t, reduce_op::sum, count, n));
    on_communicators(TypeParam::make(n), {.window = 16_KiB, .deterministic = true}, [&](auto& comm) -> std::string {
      for (const collective_kind kind :
           {collective_kind::all_reduce, collective_kind::reduce_scatter, collective_kind::reduce})
        for (const plan::schedule& p : plans_for(kind, n)) {
          if (auto ok = comm.adopt(p); !ok) return ok.error().message();
          for (const reduction& r : all)
            if (auto bad = check_all(comm, r); !bad.empty()) return bad;
        }
      return "";
    });
  }
}

TYPED_TEST(deterministic, leaves_other_collectives_to_their_plans) {
  on_communicators(TypeParam::make(3), {.deterministic = true}, [](auto& comm) -> std::string {
    const auto ring = plan::flat_schedule(collective_kind::all_gather, 3, {}, plan::algorithm::ring).value();
    if (auto ok = comm.adopt(ring); !ok) return ok.error().message();
    if (comm.plan_for(collective_kind::all_gather, {}, 5, dtype::int32) != ring.name) return "another plan";
    std::vector<std::int32_t> in(5, static_cast<std::int32_t>(comm.rank().value)), out(15, -1);
    if (auto ok = comm.all_gather(in, out); !ok) return ok.error().message();
    return out[0] == 0 && out[5] == 1 && out[14] == 2 ? "" : "wrong";
  });
}

// That the tests above can fail: the same checks, without the option.
TEST(a_ring, does_not_have_the_bits_of_the_chain) {
  const reduction r = make_reduction(dtype::float32, reduce_op::sum, 1000, 5);
  const auto answers = groups::on_all(by_messages::make(5), [&](auto& t) -> std::string {
    auto comm = communicator<faulty<inproc_transport>>::create(std::move(t)).value();
    const auto ring = plan::flat_schedule(collective_kind::all_reduce, 5, {}, plan::algorithm::ring).value();
    if (auto ok = comm.adopt(ring); !ok) return ok.error().message();
    return check_all_reduce(comm, r, false);
  });
  for (const std::string& a : answers) EXPECT_NE(a.find(" in the order of the ranks 0x"), std::string::npos) << a;
}

TEST(deterministic_calls, move_their_data_by_messages) {
  std::vector<faulty<inproc_transport>> group;
  for (inproc_transport& t : make_inproc_group(2).value())
    group.emplace_back(std::move(t), fault_plan{.links = {{.from = {1}, .to = {0}, .corrupt_at = 2}}});
  const auto answers = groups::on_all(std::move(group), [&](auto& t) -> std::string {
    auto comm = communicator<faulty<inproc_transport>>::create(std::move(t), {.deterministic = true}).value();
    std::vector<float> x(10);
    for (int i = 0; i < 2; ++i)  // message 0 is the agreement
      if (auto ok = comm.all_reduce(x, {.timeout = 5_s}); !ok) return std::to_string(i) + ": " + ok.error().message();
    return "";
  });
  EXPECT_EQ(answers[0].substr(0, 2), "1:") << answers[0];
  EXPECT_NE(answers[0].find("in the order of the ranks"), std::string::npos) << answers[0];
}

/// What ranks of a group say to a reduction, where rank 1 has other options.
template <class G>
std::vector<result<void>> with_another_rank(const communicator_options& all, const communicator_options& odd,
                                            bool adopted, const char* call) {
  return groups::on_all(G::make(3), [&](auto& t) -> result<void> {
    using transport = std::remove_reference_t<decltype(t)>;
    const bool is_odd = t.rank().value == 1;
    auto comm = communicator<transport>::create(std::move(t), is_odd ? odd : all).value();
    if (adopted)
      if (auto ok = comm.adopt(plan::flat_schedule(collective_kind::all_reduce, 3, {}, plan::algorithm::ring).value());
          !ok)
        return ok;
    std::vector<float> in(300, 1.0F), out(100);
    const call_options options{.timeout = 5_s};
    auto ok = std::string(call) == "all_reduce" ? comm.all_reduce(in, options)
              : std::string(call) == "reduce"   ? comm.reduce(in, in, {2}, options)
                                                : comm.reduce_scatter(in, out, options);
    if (ok || adopted) return ok;
    std::vector<float> three(3, 2.0F);
    auto whole = comm.broadcast(three, {0}, options);
    if (!whole) return whole.error().code == errc::mismatch ? fail(errc::bug, "the group is broken") : whole;
    return ok;
  });
}

TEST(deterministic_calls, name_the_rank_that_does_not_ask_for_the_same_and_leave_the_group_whole) {
  const communicator_options with{.deterministic = true}, without{};
  for (const char* call : {"all_reduce", "reduce", "reduce_scatter"})
    for (const bool most_ask : {true, false}) {
      const auto answers =
          with_another_rank<by_messages>(most_ask ? with : without, most_ask ? without : with, false, call);
      for (const auto& a : answers) {
        ASSERT_FALSE(a) << call;
        EXPECT_EQ(a.error().code, errc::mismatch) << a.error().message();
        EXPECT_NE(a.error().what.find("rank 1 has another plan for " + std::string(call)), std::string::npos)
            << a.error().message();
      }
    }
}

TEST(deterministic_calls, name_the_rank_that_cuts_arrays_in_another_way) {
  const communicator_options with{.deterministic = true}, other{.window = 1_KiB, .deterministic = true},
      fewer{.in_flight = 3, .deterministic = true};
  for (const communicator_options& odd : {other, fewer})
    for (const auto& a : with_another_rank<by_messages>(with, odd, false, "all_reduce")) {
      ASSERT_FALSE(a);
      EXPECT_NE(a.error().what.find("rank 1 has another plan for all_reduce (deterministic, window or in_flight)"),
                std::string::npos)
          << a.error().message();
    }
}

TEST(deterministic_calls, never_meet_an_adopted_plan_of_another_rank) {
  const communicator_options with{.deterministic = true};
  for (const bool most_ask : {true, false}) {
    for (const auto& a : with_another_rank<by_messages>(most_ask ? with : communicator_options{},
                                                        most_ask ? communicator_options{} : with, true, "all_reduce")) {
      ASSERT_FALSE(a);
      EXPECT_EQ(a.error().code, errc::mismatch) << a.error().message();
      EXPECT_NE(a.error().what.find("rank "), std::string::npos) << a.error().message();
    }
    for (const auto& a : with_another_rank<directly>(most_ask ? with : communicator_options{},
                                                     most_ask ? communicator_options{} : with, true, "all_reduce")) {
      ASSERT_FALSE(a);
      EXPECT_EQ(a.error().code, errc::mismatch) << a.error().message();
    }
  }
}

/// Memory of which the library knows no more than the concept says.
struct plain_memory : host_memory {};
static_assert(MemorySpace<plain_memory>);

TEST(deterministic_calls, combine_operand_by_operand_in_other_memory_spaces) {
  for (const std::uint32_t n : {1U, 2U, 5U}) {
    std::vector<reduction> all;
    for (const dtype t : {dtype::float32, dtype::float64, dtype::int8})
      for (const reduce_op op : all_reduce_ops)
        for (const std::uint64_t count : {7U, 20001U}) all.push_back(make_reduction(t, op, count, n));
    all.push_back(make_reduction(dtype::float16, reduce_op::max, 1000, n));
    const auto answers = groups::on_all(groups::inproc::make(n), [&](inproc_transport& t) -> std::string {
      auto comm =
          communicator<inproc_transport, plain_memory>::create(std::move(t), {.window = 8_KiB, .deterministic = true})
              .value();
      for (const reduction& r : all)
        if (auto bad = check_all(comm, r); !bad.empty()) return bad;
      std::vector<half> narrow_ones(3);
      auto ok = comm.all_reduce(narrow_ones);
      if (ok || ok.error().code != errc::unsupported) return "half was not refused";
      std::vector<float> x(3, 1.0F);  // the group is whole
      return comm.all_reduce(x) ? "" : "broken";
    });
    for (const std::string& a : answers) EXPECT_EQ(a, "");
  }
}

}  // namespace
