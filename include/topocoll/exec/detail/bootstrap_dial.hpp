// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a rank finds the root of its group, proves the token to it, and waits until all are there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/bootstrap_options.hpp>
#include <topocoll/exec/detail/bootstrap_place.hpp>
#include <topocoll/exec/detail/bootstrap_stream.hpp>
#include <topocoll/exec/detail/bootstrap_wire.hpp>
#include <topocoll/io/socket.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

class group_joining {
 public:
  group_joining(const bootstrap_options& o, deadline until) : options_(o), until_(until) {}

  template <class = void>
  [[nodiscard]] result<formed_group> run() {
    const seconds started = steady_clock::now();
    failure last = fail(errc::timed_out, "no time was left to try");
    bool tried = false;
    double pause = 0.005;
    for (;;) {
      auto targets = where_is_the_root();
      if (!targets) {
        if (targets.error().code == errc::invalid_argument) return std::move(targets).error();
        last = std::move(targets).error();
      } else {
        for (const io::socket_address& to : *targets) {
          attempt a = try_at(to);
          if (a.joined) return result<formed_group>(std::move(*a.joined));
          if (a.final) return std::move(a.why);
          // What ended with the deadline says less than what an earlier try was told.
          if (tried && until_.passed() && a.why.code == errc::timed_out) continue;
          last = std::move(a.why);
          tried = true;
        }
      }
      if (until_.passed()) break;
      // Ranks that start together and find nobody must not come back all at once.
      const double spread = 1 + 0.5 * (options_.rank.value % 16) / 16;
      (void)io::wait_until_ready({}, sooner(until_, deadline::in({pause * spread})));
      pause = std::min(pause * 2, 0.2);
    }
    return fail(errc::timed_out,
                rank_text(options_.rank) + " did not reach " + rank_text(options_.root) + " within " +
                    seconds_in_words(steady_clock::now() - started) + ": " + last.what,
                last.next);
  }

 private:
  struct attempt {
    std::optional<formed_group> joined;
    failure why;
    bool final = false;  ///< another try would not help
  };
  // A connection attempt to a host that drops packets; the next try may find a new address in the file.
  static constexpr seconds longest_connect{5};

  template <class = void>
  [[nodiscard]] result<std::vector<io::socket_address>> where_is_the_root() {
    std::string address = options_.address;
    std::uint16_t port = options_.port;
    if (!options_.port_file.empty()) {
      auto told = read_port_file(options_);
      if (!told) return std::move(told).error();
      address = told->first;
      port = told->second;
    }
    auto found = io::resolve(address, port);
    if (!found) return std::move(found).error();
    for (const io::socket_address& a : *found) {
      if (options_.spans_hosts && a.is_loopback()) return loopback_failure(address);
      if (options_.token.empty() && !a.is_loopback()) return no_token_failure(a.host());
    }
    return found;
  }

  /// The address of the named interface that `to` can be reached from; none when no interface is named.
  template <class = void>
  [[nodiscard]] result<io::socket_address> source_for(const io::socket_address& to) const {
    if (options_.interface_name.empty()) return io::socket_address{};
    auto all = io::interface_addresses();
    if (!all) return std::move(all).error();
    for (const io::interface_address& i : *all)
      if (i.name == options_.interface_name && i.address.family() == to.family()) return i.address;
    auto any = io::address_of_interface(options_.interface_name, 0);  // for its sentence
    if (!any) return std::move(any).error();
    return fail(errc::invalid_argument, "interface " + options_.interface_name + " has no address of the kind of " +
                                            to.host() + ", where " + rank_text(options_.root) + " is met");
  }

  [[nodiscard]] attempt again(failure why) const { return {std::nullopt, std::move(why), false}; }
  [[nodiscard]] attempt give_up(failure why) const { return {std::nullopt, std::move(why), true}; }

  template <class = void>
  [[nodiscard]] attempt try_at(const io::socket_address& to) {
    auto from = source_for(to);
    if (!from) return give_up(std::move(from).error());
    auto connected = io::tcp_stream::connect(to, sooner(until_, deadline::in(longest_connect)), *from);
    if (!connected) {
      failure f = std::move(connected).error();
      if (to.is_loopback()) f.next += ", on this host: " + to.host() + " reaches no other";
      const bool hopeless = f.code == errc::invalid_argument || f.code == errc::permission;
      return {std::nullopt, std::move(f), hopeless};
    }
    return greet(framed_stream(*std::move(connected)));
  }

  template <class = void>
  [[nodiscard]] attempt greet(framed_stream s) {
    const std::string there = s.stream().peer().text();
    // The root may come to its listener late; and what is no root must not hold us for good.
    const deadline soon = sooner(until_, deadline::in({options_.handshake.value * 5}));
    hello h{options_.rank.value, options_.size,      options_.root.value, patience_ms(until_), {},
            options_.job,        own_place(options_)};
    if (auto drawn = fill_at_random(h.challenge); !drawn) return give_up(std::move(drawn).error());
    std::vector<std::byte> greeting = encode(h);
    s.push(greeting);
    auto challenge = s.exchange(longest_greeting, soon);
    if (!challenge) return again(std::move(challenge).error());
    if (challenge->kind != frame_kind::challenge || challenge->body().size() != nonce{}.size())
      return again(fail(errc::malformed_input, there + " answered something else than a root does"));
    greeting.insert(greeting.end(), challenge->whole.begin(), challenge->whole.end());
    s.push(encode_code(frame_kind::proof, proof_of(options_.token, "member", greeting)));
    // Not only until `soon`: a root that was slow would take who left with the proof on its way for a rank that died.
    auto answer = s.exchange(longest_greeting, until_);
    if (!answer) return again(std::move(answer).error());
    const bool refused = answer->kind == frame_kind::refusal;
    const auto said = unsealed(answer->body(), options_.token, refused ? "refusal" : "welcome", greeting);
    if (!said && refused)
      return give_up(fail(errc::permission,
                          "the root at " + there + " has another token than " + rank_text(options_.rank),
                          "give all ranks the same token"));
    if (!said) return again(fail(errc::permission, there + " did not prove that it knows the token"));
    frame_reader r(*said);
    if (refused) {
      auto why = read_notice(r, longest_refusal);
      if (!why) return again(fail(errc::malformed_input, there + " refused without a reason"));
      return give_up(std::move(why->why));
    }
    rank_place root{r.text(longest_word), static_cast<std::uint32_t>(r.number(4))};
    if (answer->kind != frame_kind::welcome || !r.whole())
      return again(fail(errc::malformed_input, there + " answered something else than a root does"));
    s.watch_for_silence(options_.silence);
    return wait_for_start(std::move(s), root);
  }

  template <class = void>
  [[nodiscard]] attempt wait_for_start(framed_stream s, const rank_place& root) {
    const std::string who = rank_in_words(options_.root.value, root);
    auto start =
        s.exchange(std::max<std::uint64_t>(longest_abort, std::uint64_t{options_.size} * (longest_word + 6)), until_);
    if (!start) {
      const failure f = std::move(start).error();
      if (f.code == errc::timed_out)
        return give_up(fail(errc::timed_out, who + " did not say before the deadline that all ranks had joined"));
      return give_up(fail(f.code, who + " left before all ranks had joined: " + f.what));
    }
    if (start->kind == frame_kind::abort)
      if (auto told = decode_abort(start->body())) return give_up(std::move(told->why));
    auto places = start->kind == frame_kind::start && start->version == frame_version
                      ? decode_start(start->body(), options_.size)
                      : std::nullopt;
    if (!places) return give_up(fail(errc::malformed_input, who + " sent something else than the list of ranks"));
    formed_group g;
    g.rank = options_.rank.value;
    g.root = options_.root.value;
    g.places = *std::move(places);
    g.links.push_back(std::move(s));
    g.largest_piece = options_.largest_piece;
    return {std::move(g), {}, false};
  }

  const bootstrap_options& options_;
  deadline until_;
};

}}}  // namespace topocoll::v0::detail
