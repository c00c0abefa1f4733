// SPDX-License-Identifier: Apache-2.0
#pragma once
// How ranks meet before there is a transport: over TCP with a shared token, or as threads of one process.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/bootstrap_options.hpp>
#include <topocoll/exec/detail/bootstrap_dial.hpp>
#include <topocoll/exec/detail/bootstrap_listen.hpp>
#include <topocoll/exec/detail/bootstrap_place.hpp>
#include <topocoll/exec/detail/bootstrap_star.hpp>
#include <topocoll/exec/detail/bootstrap_threads.hpp>
#include <topocoll/io/socket.hpp>

namespace topocoll { inline namespace v0 {

/// What ranks use to exchange a few bytes before they have a transport: addresses, digests, what each has found.
///
/// Laws that no compiler checks:
/// - all ranks make the same calls in the same order; who does not gets `mismatch`, and so do the others;
/// - `all_gather` gives every rank the same parts, by rank, of any lengths; `barrier` returns when all ranks came;
/// - a call that fails ends the group for all ranks, and each of them gets the first cause: `timed_out` lists the ranks
///   that did not come, `peer_lost` names the one that is gone, `aborted` says who aborted and why. Later calls give
///   that cause again. Only `invalid_argument` leaves the group as it was;
/// - a rank hears of it while it is in a call, or in its next one. Where messages pass through a root, the others hear of
///   what happened to a member once the root is in a call. One thread at a time uses an object.
template <class B>
concept Bootstrap = std::movable<B> &&
    requires(B& b, const B& cb, std::span<const std::byte> mine, std::string_view why, deadline d) {
  { cb.rank() } -> std::same_as<rank_id>;
  { cb.size() } -> std::same_as<std::uint32_t>;
  { b.all_gather(mine, d) } -> std::same_as<result<std::vector<std::vector<std::byte>>>>;
  { b.barrier(d) } -> std::same_as<result<void>>;
  { b.abort(why) } -> std::same_as<void>;
};

/// Says in words what keeps `B` from being a `Bootstrap`.
template <class B>
constexpr void require_bootstrap() {
  static_assert(std::movable<B>, "a Bootstrap can be moved");
  static_assert(
      requires(const B& b) {
        { b.rank() } -> std::same_as<rank_id>;
      },
      "a Bootstrap has rank() const returning rank_id");
  static_assert(
      requires(const B& b) {
        { b.size() } -> std::same_as<std::uint32_t>;
      },
      "a Bootstrap has size() const returning std::uint32_t");
  static_assert(
      requires(B & b, std::span<const std::byte> mine, deadline d) {
        { b.all_gather(mine, d) } -> std::same_as<result<std::vector<std::vector<std::byte>>>>;
      },
      "a Bootstrap has all_gather(span<const byte>, deadline) returning result<vector<vector<byte>>>");
  static_assert(
      requires(B & b, deadline d) {
        { b.barrier(d) } -> std::same_as<result<void>>;
      },
      "a Bootstrap has barrier(deadline) returning result<void>");
  static_assert(
      requires(B & b, std::string_view why) {
        { b.abort(why) } -> std::same_as<void>;
      },
      "a Bootstrap has abort(string_view)");
  static_assert(Bootstrap<B>);
}

/// The listener of the root, for a caller that tells its port to the others: `listener.local().port()`. Connections
/// wait in it until `tcp_bootstrap::form` takes them.
/// @return `invalid_argument` for options that contradict themselves, for a loopback address when ranks are on several
///         hosts, and for any other address when there is no token; else as `io::resolve` and `io::tcp_listener::open`
template <class = void>
[[nodiscard]] result<io::tcp_listener> open_bootstrap_listener(const bootstrap_options& o) {
  if (auto good = check_options(o); !good) return std::move(good).error();
  auto at = detail::listening_address(o);
  if (!at) return std::move(at).error();
  return io::tcp_listener::open(*at, static_cast<int>(o.size < 3968 ? o.size + 128 : 4096));
}

/// One rank of a group that met over TCP. The root listens, the others connect to it; what is gathered goes through the
/// root, so this is for kilobytes and for up to some thousand ranks, not for the data of a program.
///
/// Root and members prove to one another that they know the token (HMAC-SHA-256 over both ends' random bytes, role,
/// rank, size and job) before either believes anything. Nothing is encrypted, and what follows the greeting carries no
/// proof: who can change packets between the hosts can change what is gathered.
///
/// Destroying it closes its connections; ranks that wait for it then fail with `peer_lost`.
class tcp_bootstrap {
 public:
  /// Meets the other ranks. A group of one needs no socket.
  ///
  /// The root takes any number of connections at a time. One that does not greet and prove the token within
  /// `options.handshake`, sends anything else or more than a kilobyte is dropped without delay for the others, and told
  /// of in `findings()`. The others try again until the deadline.
  ///
  /// @return `timed_out` with the ranks that are missing, or with what kept this rank from the root: at each rank that
  ///         got through, the root tells the former shortly before that rank gives up; `mismatch`, with both ends, for
  ///         two claims for one rank, other sizes, roots, versions or jobs; `permission` for another token;
  ///         `peer_lost` for a rank that left before all were there; `invalid_argument` for options that contradict
  ///         themselves, for hosts that differ while the address is a loopback one, and for no token with an address
  ///         that other hosts reach; at the root also what `open_bootstrap_listener` gives
  template <class = void>
  [[nodiscard]] static result<tcp_bootstrap> form(const bootstrap_options& options, deadline until) {
    if (auto good = check_options(options); !good) return std::move(good).error();
    if (options.size > 1 && options.rank == options.root) {
      auto listener = open_bootstrap_listener(options);
      if (!listener) return std::move(listener).error();
      return form(*std::move(listener), options, until);
    }
    if (options.size > 1) return of(detail::group_joining(options, until).run());
    detail::formed_group alone;
    alone.places.push_back(detail::own_place(options));
    alone.links.resize(1);
    alone.largest_piece = options.largest_piece;
    return of(std::move(alone));
  }
  /// The same for the root, with a listener that is open already; address, port and interface of the options then only
  /// tell the others, by `port_file`.
  template <class = void>
  [[nodiscard]] static result<tcp_bootstrap> form(io::tcp_listener listener, const bootstrap_options& options,
                                                  deadline until) {
    if (auto good = check_options(options); !good) return std::move(good).error();
    if (options.rank != options.root)
      return fail(
          errc::invalid_argument,
          detail::rank_text(options.rank) + " has a listener, but the root is " + detail::rank_text(options.root),
          "give the listener to the root only");
    return of(detail::form_as_root(std::move(listener), options, until));
  }

  [[nodiscard]] rank_id rank() const { return {star_->group().rank}; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(star_->group().places.size()); }
  /// Host of a rank, as the rank itself reported it. Precondition: `r` is below `size()`.
  [[nodiscard]] const std::string& host(rank_id r) const { return star_->group().places[r.value].host; }
  /// At the root: connections that did not belong to the group while it formed. Empty elsewhere.
  [[nodiscard]] const std::vector<finding>& findings() const { return star_->group().findings; }

  /// @return the parts by rank; also `invalid_argument` for more than `largest_piece`. Cost: the root receives each
  ///         part once and sends all parts to every rank
  template <class = void>
  [[nodiscard]] result<std::vector<std::vector<std::byte>>> all_gather(std::span<const std::byte> mine,
                                                                       deadline until) {
    return star_->gather(detail::gather_kind::all_gather, mine, until);
  }
  template <class = void>
  [[nodiscard]] result<void> barrier(deadline until) {
    auto all = star_->gather(detail::gather_kind::barrier, {}, until);
    if (!all) return std::move(all).error();
    return {};
  }
  /// Ends the group: the others fail with `aborted`, this rank and `why`. A cause that came before stays the cause.
  /// Takes at most half a second.
  template <class = void>
  void abort(std::string_view why) {
    star_->abort(why);
  }

 private:
  explicit tcp_bootstrap(detail::formed_group g) : star_(std::make_unique<detail::bootstrap_star>(std::move(g))) {}
  template <class = void>
  [[nodiscard]] static result<tcp_bootstrap> of(result<detail::formed_group> g) {
    if (!g) return std::move(g).error();
    return tcp_bootstrap(*std::move(g));
  }

  std::unique_ptr<detail::bootstrap_star> star_;
};
static_assert(Bootstrap<tcp_bootstrap>);

/// One rank of a group of threads. Give each thread its own; destroying it leaves the group.
class thread_bootstrap {
 public:
  /// The ranks of a new group. @return `invalid_argument` for no ranks
  template <class = void>
  [[nodiscard]] static result<std::vector<thread_bootstrap>> make_group(std::uint32_t ranks) {
    if (ranks == 0) return fail(errc::invalid_argument, "a group has at least one rank");
    const auto meeting = std::make_shared<detail::thread_meeting>(ranks);
    std::vector<thread_bootstrap> group;
    group.reserve(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) group.push_back(thread_bootstrap(meeting, r));
    return result<std::vector<thread_bootstrap>>(std::move(group));  // nvcc 13 would copy a plain name
  }
  thread_bootstrap(thread_bootstrap&&) noexcept = default;
  thread_bootstrap& operator=(thread_bootstrap&& other) noexcept {
    std::swap(meeting_, other.meeting_);
    std::swap(rank_, other.rank_);
    return *this;
  }
  ~thread_bootstrap() {
    if (meeting_) meeting_->leave(rank_);
  }

  [[nodiscard]] rank_id rank() const { return {rank_}; }
  [[nodiscard]] std::uint32_t size() const { return meeting_->ranks(); }
  template <class = void>
  [[nodiscard]] result<std::vector<std::vector<std::byte>>> all_gather(std::span<const std::byte> mine,
                                                                       deadline until) {
    return meeting_->gather(rank_, detail::gather_kind::all_gather, mine, until);
  }
  template <class = void>
  [[nodiscard]] result<void> barrier(deadline until) {
    auto all = meeting_->gather(rank_, detail::gather_kind::barrier, {}, until);
    if (!all) return std::move(all).error();
    return {};
  }
  template <class = void>
  void abort(std::string_view why) {
    meeting_->abort(rank_, why);
  }

 private:
  thread_bootstrap(std::shared_ptr<detail::thread_meeting> meeting, std::uint32_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  std::shared_ptr<detail::thread_meeting> meeting_;
  std::uint32_t rank_;
};
static_assert(Bootstrap<thread_bootstrap>);

}}  // namespace topocoll::v0
