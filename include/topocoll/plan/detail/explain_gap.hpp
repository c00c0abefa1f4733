// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a plan is from its bound, what makes up the distance, and what would remove it.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/explanation.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// The fraction with a denominator of at most 64 that is within a millionth of a millionth of `value`: sums of whole chunks
/// and of the shares in which ECMP splits them are such fractions; an invalid one where there is none.
template <class = void>
[[nodiscard]] rational near_fraction(double value) {
  for (std::int64_t den = 1; den <= 64; ++den) {
    const double times = value * static_cast<double>(den);
    if (!(times < 9e15)) break;
    const auto num = static_cast<std::int64_t>(times + 0.5);
    const double off = static_cast<double>(num) - times;
    if (off <= times * 1e-12 && -off <= times * 1e-12) return {num, den};
  }
  return {1, 0};
}

/// Time on the busiest link over what the bound asks for, exactly. Empty when a figure is no small fraction.
template <class = void>
[[nodiscard]] std::optional<rational> ratio_to_bound(const simulation& s, const schedule& plan, const bound& limit,
                                                     bytes_per_second rate) {
  if (!limit.seconds_per_byte || s.size.value == 0) return std::nullopt;
  const double chunk = static_cast<double>(s.size.value) / plan.chunks();
  const rational chunks = near_fraction(s.busiest.value * rate.value / chunk), per_second = as_fraction(rate.value);
  // One after the other, so that common factors leave before the numbers grow.
  const rational ratio = chunks / rational{plan.chunks()} / (per_second * *limit.seconds_per_byte);
  if (!ratio.valid()) return std::nullopt;
  const double check = s.busiest / limit.bandwidth_time, off = ratio.to_double() / check - 1;
  return off < 1e-9 && off > -1e-9 ? std::optional<rational>{ratio} : std::nullopt;
}

/// True when a link leads out of, into or between the sets of the bound's certificate.
template <class = void>
[[nodiscard]] bool crosses_cut(const topo::graph& g, const bound& limit, link_id e) {
  const node_id a = g.tail(e), b = g.head(e);
  if (!limit.set_of.empty()) return limit.set_of[a.value] != limit.set_of[b.value];
  return seq::contains(limit.side, a) != seq::contains(limit.side, b);
}

/// True for a link to an NVSwitch that adds up or multiplies in some stage.
template <class = void>
[[nodiscard]] bool serves_switch(const topo::graph& g, const schedule& plan, link_id e) {
  const bool ends =
      g.at(g.tail(e)).kind == topo::node_kind::nvswitch || g.at(g.head(e)).kind == topo::node_kind::nvswitch;
  return ends && seq::any_of(plan.stages, [](const stage& st) { return st.how == algorithm::in_switch; });
}

/// Least doubling of `size` from which on the plan stays within one percent of the bound; empty when it never does.
template <class = void>
[[nodiscard]] std::optional<bytes> close_from(const simulation& s, const bound& limit) {
  constexpr std::uint64_t most = std::uint64_t{1} << 50U;
  std::optional<bytes> from;
  for (bytes size = s.size; size.value > 0 && size.value <= most; size = size * 2) {
    const bool close = s.at(size).value <= 1.01 * limit.at(size).value;
    if (close && !from) from = size;
    if (!close) from.reset();
  }
  return from;
}

template <class Rate>
void explain_gap(const problem& p, const choice& made, const Rate& rate, explanation& e) {
  const simulation& s = made.price();
  const bound& limit = made.limit;
  const topo::graph& g = *p.graph;
  if (limit.bandwidth_time.value <= 0 || s.size.value == 0) return;
  e.bandwidth_gap = s.busiest / limit.bandwidth_time - 1;
  if (e.bandwidth_gap < 0 && e.bandwidth_gap > -1e-9) e.bandwidth_gap = 0;
  if (s.limit) e.bandwidth_ratio = ratio_to_bound(s, made.best(), limit, rate(g.at(*s.limit)));
  const seconds beyond = s.time - limit.time;
  if (e.gap < 5e-4) {
    e.remedy = "nothing is left to gain on these links";
    return;
  }
  const seconds on_link = s.busiest - limit.bandwidth_time,
                in_rounds = s.latency + s.posting - (limit.time - limit.launch - limit.bandwidth_time);
  const auto share = [&](seconds part) {
    const double of_all = part / beyond;
    return percent(of_all > 1 ? 1 : of_all);
  };
  if (in_rounds >= on_link && in_rounds >= s.unhidden) {
    e.remedy = share(in_rounds) + " of it is latency of " + plural(s.rounds, "round") +
               ": larger arrays or fewer rounds would remove it";
  } else if (s.unhidden >= on_link) {
    e.remedy = share(s.unhidden) + " of it is stages that wait for one another: more slices would overlap them, ";
    e.remedy += s.slices < max_slices ? "at the price of more messages"
                                      : "but " + std::to_string(s.slices) + " are the most that there are";
  } else if (!s.limit) {
    e.remedy = share(on_link) + " of it is reduction in one rank: spreading sums over more ranks would remove it";
  } else if (serves_switch(g, made.best(), *s.limit)) {
    e.remedy = share(on_link) + " of it is what NVSwitches that add up and multiply ask of " +
               link_in_words(g, *s.limit) + ": it carries the rank's own part as well, and less than its plain rate";
  } else if (crosses_cut(g, limit, *s.limit)) {
    e.remedy = share(on_link) + " of it is an uneven use of the cut: " + link_in_words(g, *s.limit) +
               " carries more than its share, and an even split over the links of the cut would remove it";
  } else {
    e.remedy = share(on_link) + " of it is a detour: " + link_in_words(g, *s.limit) +
               " is not in the cut of the bound, and sending less over it would remove it";
  }
  if (const auto from = close_from(s, limit); from && *from > s.size)
    e.remedy += "; this plan is within 1 % from " + to_string(*from) + " on";
}

}}}}  // namespace topocoll::v0::plan::detail
