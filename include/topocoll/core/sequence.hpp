// SPDX-License-Identifier: Apache-2.0
#pragma once
// Searching and sorting of whole containers, cheap to compile.
//
// One call of an algorithm in std::ranges costs a compiler 8 to 20 ms for its concepts, one std::sort of a new element type
// 5 ms (g++ 12, -O0); with some hundred calls in headers that is most of what a user waits for. The searches here are plain
// loops, and all sorts share one std::stable_sort of positions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace topocoll { inline namespace v0 { namespace seq {

namespace detail {

/// `key` of `x`: a data member or a function.
template <class T, class Key>
[[nodiscard]] constexpr decltype(auto) key_of(const T& x, const Key& key) {
  if constexpr (std::is_member_object_pointer_v<Key>)
    return (x.*key);
  else
    return key(x);
}

/// A comparison of two positions without its type.
struct before_at {
  const void* what;
  bool (*call)(const void*, std::uint32_t, std::uint32_t);

  bool operator()(std::uint32_t a, std::uint32_t b) const { return call(what, a, b); }
};

/// The positions 0 to n-1 in the order that the comparison wants, equal ones as they were.
[[nodiscard]] inline std::vector<std::uint32_t> positions_in_order(std::size_t n, before_at before) {
  std::vector<std::uint32_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
  bool sorted = true;  // as lists that were made in order are
  for (std::size_t i = 1; i < n && sorted; ++i) sorted = !before(order[i], order[i - 1]);
  if (sorted) return order;
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

}  // namespace detail

/// Position of the first element that `wanted` says yes to, else the end. Linear.
template <class Range, class Predicate>
[[nodiscard]] constexpr auto find_if(Range&& all, const Predicate& wanted) {
  auto at = all.begin();
  const auto end = all.end();
  while (at != end && !wanted(*at)) ++at;
  return at;
}
/// Position of the first element equal to `value`, else the end. Linear.
template <class Range, class Value>
[[nodiscard]] constexpr auto find(Range&& all, const Value& value) {
  auto at = all.begin();
  const auto end = all.end();
  while (at != end && !(*at == value)) ++at;
  return at;
}
/// Position of the first element whose key equals `value`, else the end; the key is a data member or a function. Linear.
template <class Range, class Value, class Key>
[[nodiscard]] constexpr auto find_by(Range&& all, const Value& value, const Key& key) {
  auto at = all.begin();
  const auto end = all.end();
  while (at != end && !(detail::key_of(*at, key) == value)) ++at;
  return at;
}
template <class Range, class Value>
[[nodiscard]] constexpr bool contains(const Range& all, const Value& value) {
  return seq::find(all, value) != all.end();
}
template <class Range, class Predicate>
[[nodiscard]] constexpr bool any_of(const Range& all, const Predicate& holds) {
  return seq::find_if(all, holds) != all.end();
}
template <class Range, class Predicate>
[[nodiscard]] constexpr bool all_of(const Range& all, const Predicate& holds) {
  for (const auto& x : all)
    if (!holds(x)) return false;
  return true;
}
template <class Range, class Predicate>
[[nodiscard]] constexpr bool none_of(const Range& all, const Predicate& holds) {
  return !seq::any_of(all, holds);
}

/// First position whose key is not less than `value`. Precondition: the keys ascend. Logarithmic.
template <class Range, class Value, class Key>
[[nodiscard]] constexpr auto lower_bound_by(Range&& all, const Value& value, const Key& key) {
  auto first = all.begin();
  auto n = all.end() - first;
  while (n > 0) {
    const auto half = n / 2;
    if (detail::key_of(first[half], key) < value) {
      first += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return first;
}

/// Sorts a vector; equal elements keep their order. At most 2^32 - 1 elements, n log n comparisons of an indirect call each,
/// and one move of every element: where millions are sorted, std::sort is faster.
template <class T, class Less>
void sort(std::vector<T>& all, const Less& less) {
  const auto compare = [&](std::uint32_t a, std::uint32_t b) -> bool { return less(all[a], all[b]); };
  using comparison = decltype(compare);
  const auto order = detail::positions_in_order(
      all.size(), {&compare, [](const void* what, std::uint32_t a, std::uint32_t b) {
                     return (*static_cast<const std::remove_reference_t<comparison>*>(what))(a, b);
                   }});
  std::vector<T> sorted;
  sorted.reserve(all.size());
  for (const std::uint32_t i : order) sorted.push_back(std::move(all[i]));
  all = std::move(sorted);
}
/// Sorts by `<`.
template <class T>
void sort(std::vector<T>& all) {
  seq::sort(all, [](const T& a, const T& b) { return a < b; });
}
/// Sorts by a key, a data member or a function of an element.
template <class T, class Key>
void sort_by(std::vector<T>& all, const Key& key) {
  seq::sort(all, [&](const T& a, const T& b) { return detail::key_of(a, key) < detail::key_of(b, key); });
}
/// Sorts by `<` and drops what is equal to its neighbour.
template <class T>
void sort_unique(std::vector<T>& all) {
  seq::sort(all);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i == 0 || !(all[i] == all[kept - 1])) {
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
}

}}}  // namespace topocoll::v0::seq
