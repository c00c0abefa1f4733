// SPDX-License-Identifier: Apache-2.0
// What the smallest types promise by their shape: cheap to copy, exact size, no way from one to another.
#include <cstdint>
#include <type_traits>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>

namespace tc = topocoll;
using namespace tc::literals;

template <class T>
constexpr bool cheap = std::is_trivially_copyable_v<T>&& std::is_standard_layout_v<T>;

static_assert(cheap<tc::bytes> && sizeof(tc::bytes) == 8);
static_assert(cheap<tc::seconds> && sizeof(tc::seconds) == 8);
static_assert(cheap<tc::bytes_per_second> && sizeof(tc::bytes_per_second) == 8);
static_assert(cheap<tc::rank_id> && sizeof(tc::rank_id) == 4);
static_assert(cheap<tc::node_id> && cheap<tc::link_id>);

static_assert(!std::is_convertible_v<tc::rank_id, tc::node_id> && !std::is_constructible_v<tc::rank_id, tc::node_id>);
static_assert(!std::is_convertible_v<tc::bytes, std::uint64_t> && !std::is_convertible_v<tc::seconds, double>);
static_assert(!std::is_constructible_v<tc::bytes, tc::seconds> && !std::is_constructible_v<tc::seconds, tc::bytes>);

// Units: the powers are exact, and division gives the unit that it should.
static_assert(1_KiB == tc::bytes{1024} && 1_MiB == 1024 * 1_KiB && 1_GiB == 1024 * 1_MiB);
static_assert(400_Gbps == 50_GBps && 1_GBps == tc::bytes_per_second{1e9});
static_assert(std::is_same_v<decltype(1_B / 1_s), tc::bytes_per_second>);
static_assert(std::is_same_v<decltype(1_B / 1_GBps), tc::seconds>);
static_assert(std::is_same_v<decltype(1_B / 1_B), double> && 3_KiB / 2_KiB == 1.5);

// A rational is exact, or visibly invalid.
static_assert(tc::rational(1, 3) + tc::rational(1, 6) == tc::rational(1, 2));
static_assert(!(tc::rational(1) / tc::rational(0)).valid());
static_assert(!(tc::rational(INT64_MAX) + tc::rational(1)).valid());

// A result is not silently a value.
static_assert(!std::is_convertible_v<tc::result<int>, int> && !std::is_convertible_v<tc::result<int>, bool>);
static_assert(std::is_nothrow_move_constructible_v<tc::failure>);
