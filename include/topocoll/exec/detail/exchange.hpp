// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step in which every rank sends every other an amount of its own: all_to_all_v.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/agreement.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// What one rank sends and gets. Parts lie one after the other in the order of the ranks.
struct exchange {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::span<const std::uint64_t> sends;     ///< elements for each rank
  std::span<const std::uint64_t> receives;  ///< elements from each rank
  dtype type = dtype::float32;
  std::uint32_t number = 0;  ///< of this call in its communicator
};

/// What can be said about such a call on this rank alone.
template <class = void>
[[nodiscard]] result<void> check_exchange(std::uint32_t rank, std::uint32_t ranks, const void* in, const void* out,
                                          std::span<const std::uint64_t> sends, std::span<const std::uint64_t> receives,
                                          dtype type) {
  const std::string name = "all_to_all_v on rank " + std::to_string(rank);
  if (sends.size() != ranks || receives.size() != ranks)
    return fail(errc::invalid_argument, name + " was given " + std::to_string(sends.size()) + " counts to send and " +
                                            std::to_string(receives.size()) + " to receive for " +
                                            std::to_string(ranks) + " ranks");
  const std::uint64_t width = size_of(type).value;
  std::uint64_t in_size = 0, out_size = 0;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (sends[r] > (UINT64_MAX - in_size) / width || receives[r] > (UINT64_MAX - out_size) / width)
      return fail(errc::invalid_argument, name + ": the counts are more elements than there are addresses");
    in_size += sends[r] * width;
    out_size += receives[r] * width;
  }
  if (sends[rank] != receives[rank])
    return fail(errc::invalid_argument, name + " sends itself " + std::to_string(sends[rank]) +
                                            " elements and expects " + std::to_string(receives[rank]));
  if (in_size != 0 && in == nullptr) return fail(errc::invalid_argument, name + " has no input");
  if (out_size != 0 && out == nullptr) return fail(errc::invalid_argument, name + " has no output");
  if (overlap(in, in_size, out, out_size))
    return fail(errc::invalid_argument, name + ": input and output overlap; it has no form in place");
  return {};
}

/// Sends and receives everything at once. A pair that has nothing to exchange exchanges an empty message all the same, so
/// that a rank that expects another amount than its peer sends learns it from the tag, before its data are used.
/// @return what the transport reports, with the call added; the group is broken then
template <MemorySpace M, Transport T>
[[nodiscard]] result<void> run_exchange(M& memory, T& transport, const exchange& what, deadline until) {
  const std::uint32_t n = transport.size(), me = transport.rank().value;
  const std::uint64_t width = size_of(what.type).value;
  const auto tag_of = [&](std::uint64_t count) {
    return make_tag(
        {what.number, call_identity::step::data, collective_kind::all_to_all, what.type, reduce_op::sum, 0, count, 0});
  };
  std::vector<std::uint64_t> from(n + 1, 0), to(n + 1, 0);
  for (std::uint32_t r = 0; r < n; ++r) {
    from[r + 1] = from[r] + what.sends[r] * width;
    to[r + 1] = to[r] + what.receives[r] * width;
  }
  std::vector<outgoing> out;
  std::vector<incoming> in;
  for (std::uint32_t d = 1; d < n; ++d) {  // everybody begins with another peer
    const std::uint32_t there = (me + d) % n, here = (me + n - d) % n;
    out.push_back({{there}, 0, tag_of(what.sends[there]), {what.input + from[there], from[there + 1] - from[there]}});
    in.push_back({{here}, 0, tag_of(what.receives[here]), {what.output + to[here], to[here + 1] - to[here]}, {}});
  }
  result<void> own = memory.copy(what.output + to[me], what.input + from[me], bytes{to[me + 1] - to[me]});
  if (!own) {
    transport.abort(own.error().what);
    return own;
  }
  if (n == 1) return {};
  auto posted = transport.post(out, in);
  result<std::size_t> done = posted ? transport.wait_any({&*posted, 1}, until) : result<std::size_t>(posted.error());
  if (done) return {};
  failure why = std::move(done).error();
  add_context(why, me, "all_to_all_v call " + std::to_string(what.number));
  return why;
}

}}}  // namespace topocoll::v0::detail
