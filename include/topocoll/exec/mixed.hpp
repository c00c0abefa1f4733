// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport made of two: one for the ranks of the same host, one that reaches all ranks.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/mixed_steps.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

/// A `PollableTransport` whose sentences can call its ranks by the numbers of a larger group: `call_ranks` takes these, by
/// rank, before the first call. Implemented by `inproc_transport` and `shm_transport`.
template <class T>
concept NearTransport = PollableTransport<T> && requires(T& t, std::vector<rank_id> numbers) {
  { t.call_ranks(std::move(numbers)) } -> std::same_as<void>;
};

/// Bytes of the messages that a rank has posted for others, by the way they go.
struct mixed_traffic {
  bytes within_host{};
  bytes between_hosts{};
};

/// One rank of a group on several hosts: messages to ranks of its host go through `Near`, all others through `Far`.
///
/// A step is done when its messages on both sides are. Ranks are those of `Far`, and sentences name no others. Whatever
/// ends one side ends both: the group of `Far`, which all ranks are in, decides which cause came first, and all ranks of
/// all hosts fail with that one. Who is late is found out through `Far` as well; a rank of the same host that dies or
/// leaves is noticed by the means of either side.
///
/// A wait looks at both sides in turn. While nothing moves it spins for some microseconds, yields for a millisecond, and
/// then sleeps 50 us between looks: it takes some percent of a core, and messages that end a long wait come up to
/// 0.1 ms later than on either side alone. A moved-from object may only be destroyed or assigned to.
template <NearTransport Near, PollableTransport Far>
class mixed_transport {
 public:
  /// @param within      this host's group: rank k of it is rank `host_ranks[k]` of the whole
  /// @param between     the whole group
  /// @param host_ranks  the ranks of this host, as many as `within` has, this one at its own place
  /// @return `invalid_argument` for a list that does not fit
  [[nodiscard]] static result<mixed_transport> make(Near within, Far between, std::vector<rank_id> host_ranks) {
    const std::string me = "rank " + std::to_string(between.rank().value);
    if (host_ranks.size() != within.size())
      return fail(errc::invalid_argument, me + " has a list of " + std::to_string(host_ranks.size()) +
                                              " ranks of its host, whose group has " + std::to_string(within.size()));
    if (host_ranks[within.rank().value] != between.rank())
      return fail(errc::invalid_argument,
                  me + " is rank " + std::to_string(host_ranks[within.rank().value].value) + " by its host's list");
    std::vector<std::uint32_t> places(between.size(), outside);
    for (std::uint32_t k = 0; k < host_ranks.size(); ++k) {
      const std::uint32_t r = host_ranks[k].value;
      if (r >= places.size() || places[r] != outside)
        return fail(errc::invalid_argument, "the list of ranks of a host names rank " + std::to_string(r) +
                                                (r < places.size() ? " twice" : ", which there is not"));
      places[r] = k;
    }
    return mixed_transport(std::move(within), std::move(between), std::move(host_ranks), std::move(places));
  }

  [[nodiscard]] rank_id rank() const { return far_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return far_.size(); }
  [[nodiscard]] std::uint32_t channels() const { return std::min(near_.channels(), far_.channels()); }
  /// The ranks of this host, this one included.
  [[nodiscard]] const std::vector<rank_id>& host_ranks() const { return host_ranks_; }
  [[nodiscard]] mixed_traffic sent() const { return sent_; }
  [[nodiscard]] const Near& within_host() const { return near_; }
  [[nodiscard]] const Far& between_hosts() const { return far_; }

  [[nodiscard]] result<ticket> post(std::span<const outgoing> out, std::span<const incoming> in) {
    if (auto ok = check(out, in); !ok) return std::move(ok).error();
    if (cause_) return *cause_;
    if (steps_.full())
      return fail(errc::unavailable,
                  "rank " + std::to_string(rank().value) + " has 65536 steps in flight, which is all that have a name");
    sort(out, in);
    std::optional<ticket> within, between;
    const bool some_near = !near_out_.empty() || !near_in_.empty(), some_far = !far_out_.empty() || !far_in_.empty();
    if (some_near) {
      auto posted = near_.post(near_out_, near_in_);
      if (!posted) return ended(std::move(posted).error());
      within = *posted;
    }
    if (some_far) {
      auto posted = far_.post(far_out_, far_in_);
      if (!posted) return ended(std::move(posted).error());
      between = *posted;
    }
    if (!some_near && !some_far) {  // it tells whether the group still lives, as any other
      if (auto seen = near_.poll_any({}); !seen) return ended(std::move(seen).error());
      if (auto seen = far_.poll_any({}); !seen) return ended(std::move(seen).error());
    }
    return steps_.take(within, between);
  }

  [[nodiscard]] result<std::size_t> wait_any(std::span<const ticket> pending, deadline until) {
    if (pending.empty())
      return fail(errc::invalid_argument, "rank " + std::to_string(rank().value) + " waits for no ticket");
    for (const ticket k : pending)
      if (!steps_.known(k))
        return fail(errc::invalid_argument,
                    "ticket " + std::to_string(k.value) + " was never given out, or was given back");
    if (cause_) return *cause_;
    steps_.list(pending);
    detail::mixed_idle idle;
    // A rank whose messages stay within its host must hear of the others, too, but a look at a network costs more than
    // many at the memory of the host.
    for (std::uint32_t polls = ++calls_ % 8 == 0 ? 0 : 1;; ++polls) {
      auto near_moved = look(near_, detail::side::within_host);
      if (!near_moved) return ended(std::move(near_moved).error());
      bool moved = *near_moved;
      if (!steps_.open(detail::side::between_hosts).empty() || polls % 16 == 0 || idle.sleeping()) {
        auto far_moved = look(far_, detail::side::between_hosts);
        if (!far_moved) return ended(std::move(far_moved).error());
        moved = moved || *far_moved;
      }
      if (const auto done = steps_.finished(pending)) {
        if (idle.sleeping()) far_.also_waits_for({});
        steps_.give_back(pending[*done]);
        return *done;
      }
      bool in_time = true;
      if (moved)
        idle.moved();
      else
        in_time = idle.pass(until, [&] { say_whom(); });
      // A group that never rests, but moves nothing for us, has to be looked at too.
      if (!in_time || (polls % 1024 == 1023 && idle.late(until))) {
        say_whom();
        return ended(far_.give_up(idle.waited()));
      }
    }
  }

  /// Tells both sides at once. Takes as long as the longer of the two.
  void abort(const std::string& why) noexcept {
    near_.abort(why);
    far_.abort(why);
  }

 private:
  static constexpr std::uint32_t outside = UINT32_MAX;

  mixed_transport(Near within, Far between, std::vector<rank_id> host_ranks, std::vector<std::uint32_t> places)
      : far_(std::move(between)),
        near_(std::move(within)),
        host_ranks_(std::move(host_ranks)),
        places_(std::move(places)) {
    near_.call_ranks(host_ranks_);
  }

  [[nodiscard]] result<void> check_peer(rank_id peer, std::uint32_t channel) const {
    if (peer.value >= size())
      return fail(errc::invalid_argument,
                  "there is no rank " + std::to_string(peer.value) + " in a group of " + std::to_string(size()));
    if (peer == rank())
      return fail(errc::invalid_argument, "rank " + std::to_string(rank().value) + " has no lane to itself");
    if (channel >= channels())
      return fail(
          errc::invalid_argument,
          "there is no channel " + std::to_string(channel) + ", the transport has " + std::to_string(channels()),
          "ask for more channels on both sides when the group is made");
    return {};
  }
  /// All of a step before any of it is posted.
  [[nodiscard]] result<void> check(std::span<const outgoing> out, std::span<const incoming> in) const {
    for (const outgoing& o : out)
      if (auto ok = check_peer(o.to, o.channel); !ok) return ok;
    for (const incoming& i : in) {
      if (auto ok = check_peer(i.from, i.channel); !ok) return ok;
      if (i.with && (i.into.size() % size_of(i.with->type).value != 0 || (i.with->other == nullptr && !i.into.empty())))
        return fail(errc::invalid_argument, "a message of " + std::to_string(i.into.size()) +
                                                " bytes cannot be combined as " + std::string(to_string(i.with->type)) +
                                                " elements");
    }
    return {};
  }
  /// Each message to its side.
  void sort(std::span<const outgoing> out, std::span<const incoming> in) {
    near_out_.clear();
    far_out_.clear();
    near_in_.clear();
    far_in_.clear();
    for (const outgoing& o : out) {
      const std::uint32_t place = places_[o.to.value];
      auto& its = place == outside ? far_out_ : near_out_;
      (place == outside ? sent_.between_hosts : sent_.within_host) += bytes{o.data.size()};
      its.push_back(o);
      if (place != outside) its.back().to = {place};
    }
    for (const incoming& i : in) {
      const std::uint32_t place = places_[i.from.value];
      auto& its = place == outside ? far_in_ : near_in_;
      its.push_back(i);
      if (place != outside) its.back().from = {place};
    }
  }

  /// Looks at one side. Whether anything moved there.
  template <class T>
  [[nodiscard]] result<bool> look(T& transport, detail::side s) {
    auto seen = transport.poll_any(steps_.open(s));
    if (!seen) return std::move(seen).error();
    if (seen->done) steps_.finish(s, *seen->done);
    return seen->moved || seen->done.has_value();
  }
  /// Tells the far side, which answers for this rank, whom it waits for on this host.
  void say_whom() {
    std::vector<rank_id> others = near_.missing();
    for (rank_id& r : others) r = host_ranks_[r.value];
    far_.also_waits_for(others);
  }
  /// One side has failed: ends both. What all ranks are told.
  [[nodiscard]] failure ended(const failure& found) {
    cause_ = far_.end(found);
    (void)near_.end(*cause_);
    return *cause_;
  }

  Far far_;
  Near near_;                        // goes first: who waits for this rank on its host need not wait for its farewells
  std::vector<rank_id> host_ranks_;  // by rank within the host
  std::vector<std::uint32_t> places_;  // rank within the host, by rank; `outside` for those of other hosts
  detail::mixed_steps steps_;
  std::optional<failure> cause_;
  mixed_traffic sent_;
  std::uint64_t calls_ = 0;
  std::vector<outgoing> near_out_, far_out_;  // of the step that is being posted
  std::vector<incoming> near_in_, far_in_;
};
static_assert(Transport<mixed_transport<inproc_transport, inproc_transport>>);

}}  // namespace topocoll::v0
