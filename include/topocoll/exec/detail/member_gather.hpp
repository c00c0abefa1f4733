// SPDX-License-Identifier: Apache-2.0
#pragma once
// How some ranks of a transport meet by its messages, to make a group of their own.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/bootstrap_lent.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A `BlockGather` among members of a transport: one message from each to each. The transport outlives it, and is used for
/// nothing else on these ranks meanwhile.
template <Transport T>
class member_gather {
 public:
  /// @param members  ranks of the transport, this one among them; the same list on all of them
  /// @param number   of the call that this is about, as `call_identity::number`
  member_gather(T& transport, std::vector<std::uint32_t> members, std::uint32_t number)
      : transport_(&transport), members_(std::move(members)), number_(number) {}

  [[nodiscard]] result<void> operator()(std::span<const std::byte> mine, std::span<std::byte> all, deadline until) {
    const std::uint32_t me = transport_->rank().value;
    const std::uint64_t tag = make_tag({.number = number_, .part = call_identity::step::agreement, .count = ++round_});
    std::vector<outgoing> out;
    std::vector<incoming> in;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const std::span<std::byte> place = all.subspan(m * mine.size(), mine.size());
      if (members_[m] == me) {
        if (!mine.empty()) std::memcpy(place.data(), mine.data(), mine.size());
        continue;
      }
      out.push_back({{members_[m]}, 0, tag, mine});
      in.push_back({{members_[m]}, 0, tag, place, {}});
    }
    if (out.empty()) return {};
    auto posted = transport_->post(out, in);
    result<std::size_t> done =
        posted ? transport_->wait_any({&*posted, 1}, until) : result<std::size_t>(posted.error());
    if (done) return {};
    failure why = std::move(done).error();
    why.what += " [rank " + std::to_string(me) + ", while a part of the group met]";
    return why;
  }

 private:
  T* transport_;
  std::vector<std::uint32_t> members_;
  std::uint32_t number_;
  std::uint64_t round_ = 0;
};

/// How members meet.
template <Transport T>
[[nodiscard]] result<lent_bootstrap<member_gather<T>>> meeting_of(T& transport, std::vector<std::uint32_t> members,
                                                                  std::uint32_t place, std::uint32_t number) {
  const auto ranks = static_cast<std::uint32_t>(members.size());
  return lent_bootstrap<member_gather<T>>::make({place}, ranks, {transport, std::move(members), number});
}

}}}  // namespace topocoll::v0::detail
