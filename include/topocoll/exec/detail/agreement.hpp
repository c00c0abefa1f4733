// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small exchanges between all ranks: a barrier, and the comparison of one number.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class = void>
void add_context(failure& why, std::uint32_t rank, const std::string& where) {
  why.what += " [rank " + std::to_string(rank) + ", " + where + "]";
}

/// Dissemination barrier: in round k every rank hears from the one 2^k before it, so after ceil(log2 n) rounds from
/// all. Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", IJPP 1988.
template <Transport T>
[[nodiscard]] result<void> barrier(T& transport, std::uint32_t number, deadline until) {
  const std::uint32_t n = transport.size();
  const std::uint32_t me = transport.rank().value;
  const std::uint64_t tag = make_tag({.number = number, .part = call_identity::step::barrier});
  for (std::uint64_t distance = 1; distance < n; distance *= 2) {
    const auto step = static_cast<std::uint32_t>(distance);
    const outgoing out{{(me + step) % n}, 0, tag, {}};
    const incoming in{{(me + n - step) % n}, 0, tag, {}, {}};
    auto t = transport.post({&out, 1}, {&in, 1});
    result<std::size_t> done = t ? transport.wait_any({&*t, 1}, until) : result<std::size_t>(t.error());
    if (!done) {
      failure why = std::move(done).error();
      add_context(why, me, "barrier, call " + std::to_string(number));
      return why;
    }
  }
  return {};
}

/// The value that most ranks have, the smaller one in a tie; and in a sentence, which ranks have another.
template <class = void>
[[nodiscard]] std::string who_differs(const std::vector<std::uint64_t>& values, const std::string& of_what) {
  std::vector<std::uint64_t> sorted = values;
  seq::sort(sorted);
  std::uint64_t common = sorted.front();
  std::ptrdiff_t most = 0;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto end = std::upper_bound(at, sorted.end(), *at);
    if (end - at > most) {
      most = end - at;
      common = *at;
    }
    at = end;
  }
  std::string odd, rest;
  std::size_t odd_count = 0;
  for (std::size_t r = 0; r < values.size(); ++r) {
    std::string& list = values[r] == common ? rest : odd;
    odd_count += values[r] != common;
    if (list.size() < 60)
      list += (list.empty() ? "" : ", ") + std::to_string(r);
    else if (!list.ends_with("…"))
      list += ", …";
  }
  return (odd_count == 1 ? "rank " : "ranks ") + odd + (odd_count == 1 ? " has" : " have") + " another " + of_what +
         " than " + (values.size() - odd_count == 1 ? "rank " : "ranks ") + rest;
}

/// Succeeds when all ranks bring the same value. Every rank learns all values, so all of them fail alike if they
/// differ, and the group stays whole. Cost: one message of 8 bytes from every rank to every other.
template <Transport T>
[[nodiscard]] result<void> agree(T& transport, call_identity about, std::uint64_t value, const std::string& of_what,
                                 deadline until) {
  const std::uint32_t n = transport.size();
  const std::uint32_t me = transport.rank().value;
  if (n == 1) return {};
  about.part = call_identity::step::agreement;
  about.digest = 0;  // that is what the message is about: a difference must reach the comparison below
  const std::uint64_t tag = make_tag(about);
  const auto mine = std::as_bytes(std::span(&value, 1));
  std::vector<std::uint64_t> values(n, value);
  std::vector<outgoing> out;
  std::vector<incoming> in;
  for (std::uint32_t r = 0; r < n; ++r) {
    if (r == me) continue;
    out.push_back({{r}, 0, tag, mine});
    in.push_back({{r}, 0, tag, std::as_writable_bytes(std::span(&values[r], 1)), {}});
  }
  auto t = transport.post(out, in);
  result<std::size_t> done = t ? transport.wait_any({&*t, 1}, until) : result<std::size_t>(t.error());
  if (!done) {
    failure why = std::move(done).error();
    add_context(why, me, "agreement on the " + of_what + ", call " + std::to_string(about.number));
    return why;
  }
  for (const std::uint64_t v : values)
    if (v != value)
      return fail(errc::mismatch, who_differs(values, of_what),
                  "run the same program with the same inputs on all ranks");
  return {};
}

/// True when two ranges of memory have a byte in common.
[[nodiscard]] inline bool overlap(const void* a, std::uint64_t a_size, const void* b, std::uint64_t b_size) {
  const auto i = reinterpret_cast<std::uintptr_t>(a), o = reinterpret_cast<std::uintptr_t>(b);
  return a_size != 0 && b_size != 0 && i + a_size > o && o + b_size > i;
}

/// What can be said about a call on this rank alone. Not a template: every communicator shares it.
template <class = void>
[[nodiscard]] result<void> check_buffers(collective_kind kind, std::uint32_t rank, std::uint32_t ranks,
                                         std::uint32_t root, const void* in, const void* out, std::uint64_t count,
                                         dtype type) {
  const auto name = [&] { return std::string(to_string(kind)) + " on rank " + std::to_string(rank); };
  const std::uint64_t size = size_of(type).value;
  if (root >= ranks)
    return fail(errc::invalid_argument,
                name() + " has root " + std::to_string(root) + " in a group of " + std::to_string(ranks));
  if (count > UINT64_MAX / size / ranks)
    return fail(errc::invalid_argument,
                name() + ": " + std::to_string(count) + " elements are more than there are addresses");
  if (count == 0) return {};
  const region before = input_of(kind, rank == root), after = output_of(kind, rank == root);
  const bool reads = before != region::nothing, writes = after != region::nothing;
  const std::uint64_t shard = count * size, whole = plan::sharded(kind) ? shard * ranks : shard;
  const std::uint64_t in_size = before == region::whole ? whole : shard;
  const std::uint64_t out_size = after == region::whole ? whole : shard;
  if (reads && in == nullptr) return fail(errc::invalid_argument, name() + " has no input");
  if (writes && out == nullptr) return fail(errc::invalid_argument, name() + " has no output");
  if (!reads || !writes) return {};
  const auto i = reinterpret_cast<std::uintptr_t>(in);
  const auto o = reinterpret_cast<std::uintptr_t>(out);
  if (i + in_size <= o || o + out_size <= i) return {};
  const std::uintptr_t own = rank * shard;
  const bool in_place = before == region::own_shard  ? i == o + own
                        : after == region::own_shard ? o == i + own
                                                     : i == o && kind != collective_kind::all_to_all;
  if (in_place) return {};
  return fail(errc::invalid_argument, name() + ": input and output overlap, and not as a call in place does",
              before == region::own_shard  ? "in place, the input is the rank's own shard of the output"
              : after == region::own_shard ? "in place, the output is the rank's own shard of the input"
                                           : "");
}

/// The same for shards of unequal size. @param counts  elements of every rank's shard
template <class = void>
[[nodiscard]] result<void> check_buffers(collective_kind kind, std::uint32_t rank, std::uint32_t ranks,
                                         std::uint32_t root, const void* in, const void* out,
                                         std::span<const std::uint64_t> counts, dtype type) {
  const std::string name = std::string(to_string(kind)) + "_v on rank " + std::to_string(rank);
  if (counts.size() != ranks)
    return fail(errc::invalid_argument, name + " was given " + std::to_string(counts.size()) + " counts for " +
                                            std::to_string(ranks) + " ranks");
  if (root >= ranks)
    return fail(errc::invalid_argument,
                name + " has root " + std::to_string(root) + " in a group of " + std::to_string(ranks));
  std::uint64_t whole = 0, ahead = 0;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (r == rank) ahead = whole;
    if (counts[r] > (UINT64_MAX - whole) / size_of(type).value)
      return fail(errc::invalid_argument, name + ": the counts are more elements than there are addresses");
    whole += counts[r] * size_of(type).value;
  }
  const std::uint64_t shard = counts[rank] * size_of(type).value;
  const region before = input_of(kind, rank == root), after = output_of(kind, rank == root);
  const std::uint64_t in_size = before == region::whole ? whole : before == region::own_shard ? shard : 0;
  const std::uint64_t out_size = after == region::whole ? whole : after == region::own_shard ? shard : 0;
  if (in_size != 0 && in == nullptr) return fail(errc::invalid_argument, name + " has no input");
  if (out_size != 0 && out == nullptr) return fail(errc::invalid_argument, name + " has no output");
  if (!overlap(in, in_size, out, out_size)) return {};
  const auto i = reinterpret_cast<std::uintptr_t>(in), o = reinterpret_cast<std::uintptr_t>(out);
  if (before == region::own_shard ? i == o + ahead : o == i + ahead) return {};
  return fail(errc::invalid_argument, name + ": input and output overlap, and not as a call in place does",
              before == region::own_shard ? "in place, the input is the rank's own shard of the output"
                                          : "in place, the output is the rank's own shard of the input");
}

/// For ranges whose sizes do not fit one another.
template <class = void>
[[nodiscard]] failure sizes_differ(std::string_view call, std::uint32_t rank, std::uint32_t ranks, std::size_t in,
                                   std::size_t out) {
  return fail(errc::invalid_argument, std::string(call) + " on rank " + std::to_string(rank) + " of " +
                                          std::to_string(ranks) + " was given " + std::to_string(in) +
                                          " elements in and " + std::to_string(out) +
                                          " out, which do not belong together");
}
/// Whether ranges of so many elements can be those of a call with unequal shards. Another number of counts than ranks is
/// for `check_buffers` to tell.
template <class = void>
[[nodiscard]] bool sizes_fit(collective_kind kind, std::uint32_t rank, std::uint32_t ranks, std::uint32_t root,
                             std::size_t in, std::size_t out, std::span<const std::uint64_t> counts) {
  if (counts.size() != ranks) return true;
  std::uint64_t all = 0;
  for (const std::uint64_t c : counts) all += c;
  const auto fits = [&](region part, std::size_t given) {
    return part == region::nothing || given == (part == region::whole ? all : counts[rank]);
  };
  return fits(input_of(kind, rank == root), in) && fits(output_of(kind, rank == root), out);
}

}}}  // namespace topocoll::v0::detail
