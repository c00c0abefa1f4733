// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an explanation is written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/explain_words.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/explain.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

namespace detail {

/// Plan, bound and models as lines of one table.
template <class = void>
void head_to_text(const explanation& e, std::string& text) {
  columns<> head("lrrr");
  const bool rated = e.size.value > 0 && e.ranks > 1;
  const auto add = [&](const char* name, seconds time, std::string what) {
    const bytes_per_second algbw = e.size / time;
    head.add({name, to_string(time), rated ? "algbw " + to_string(algbw) : "",
              rated ? "busbw " + to_string(algbw * busbw_factor(e.collective, e.ranks)) : "", std::move(what)});
  };
  add("plan", e.price.time, e.chosen + (e.slices > 1 ? ", " + std::to_string(e.slices) + " slices" : ""));
  add("bound", e.limit.time,
      "no plan is faster on these links; this one " +
          (e.gap < 5e-4 ? std::string("meets it") : "takes " + percent(e.gap) + " longer"));
  if (e.nominal && rated && e.nominal->bandwidth_time < e.limit.bandwidth_time * 0.995 &&
      e.nominal->bandwidth_time.value > 0)
    add("", e.nominal->bandwidth_time, "the same at nominal link rates and without latency");
  for (const library_line& l : e.libraries) {
    if (!l.time) continue;
    std::string what = l.model + " (not measured): " + l.algorithm + ", " + l.protocol;
    if (l.spread > 0)
      what += ", half of healthy runs within " + to_string(*l.time / (1 + l.spread)) + " to " +
              to_string(*l.time * (1 + l.spread));
    add("model", *l.time, std::move(what));
  }
  head.write(text);
}

template <class = void>
void gap_to_text(const explanation& e, std::string& text) {
  if (e.limit.bandwidth_time.value <= 0) return;
  text += "gap:     " + percent(e.gap) + " in time; in bandwidth alone ";
  if (e.bandwidth_ratio && *e.bandwidth_ratio == rational{1})
    text += "exactly none";
  else
    text += percent(e.bandwidth_gap);
  constexpr std::int64_t readable = 99999;  // longer fractions are in the JSON
  if (e.bandwidth_ratio && !(*e.bandwidth_ratio == rational{1}) && e.bandwidth_ratio->denominator() <= readable)
    text += " (exactly " + std::to_string(e.bandwidth_ratio->numerator()) + '/' +
            std::to_string(e.bandwidth_ratio->denominator()) + " of the bound)";
  text += "; " + e.remedy + '\n';
}

/// Links by class, then NICs, rails and leaves.
template <class = void>
void loads_to_text(const explanation& e, std::string& text) {
  text += '\n';
  columns<> loads("lrrrr");
  loads.add({"links", "used", "full", "bytes in all", "most on one"});
  for (std::size_t c = 0; c < link_class_count; ++c)
    if (e.loads[c].links > 0 && c != static_cast<std::size_t>(link_class::adapter))
      loads.add({in_words(static_cast<link_class>(c)),
                 std::to_string(e.loads[c].used) + " of " + std::to_string(e.loads[c].links), std::to_string(e.full[c]),
                 about(e.loads[c].total), about(e.loads[c].largest)});
  loads.write(text);

  if (!e.nics.empty()) {
    constexpr std::size_t shown = 8;
    text += '\n';
    columns<> t("lrrr");
    t.add({"NICs", "rate", "out of one", "into one"});
    for (std::size_t k = 0; k < e.nics.size() && k < shown; ++k)
      t.add({e.nics[k].which, to_string(e.nics[k].rate), about(e.nics[k].out), about(e.nics[k].in)});
    t.write(text);
    if (e.nic_kinds > shown)
      text += "and " + std::to_string(e.nic_kinds - shown) + " further sets of NICs that carry other amounts\n";
  }
  if (!e.rails.empty()) {
    const rail_line& first = e.rails.front();
    bool same = true;
    for (const rail_line& r : e.rails)
      same = same && about(r.out) == about(first.out) && about(r.in) == about(first.in);
    if (same) {
      text += "rails: all " + std::to_string(e.rails.size()) + " carry the same, " + about(first.out) + " out of and " +
              about(first.in) + " into " + plural(first.nics, "NIC") + '\n';
    } else {
      text += '\n';
      columns<> t("lrrrrr");
      t.add({"rails", "NICs", "out", "most of one", "in", "most into one"});
      for (const rail_line& r : e.rails)
        t.add({std::to_string(r.rail), std::to_string(r.nics), about(r.out), about(r.out_largest), about(r.in),
               about(r.in_largest)});
      t.write(text);
    }
  }
  if (!e.leaves.empty()) {
    text += '\n';
    columns<> t("lrrrrrr");
    t.add({"leaves", "from hosts", "to hosts", "uplinks", "up", "most on one", "down"});
    for (const leaf_line& l : e.leaves)
      t.add({l.which, about(l.from_hosts), about(l.to_hosts), std::to_string(l.uplinks), about(l.up),
             about(l.up_largest), about(l.down)});
    t.write(text);
  }
}

/// "8 MiB, 16 MiB, 0 B and 40 MiB, from rank 0 on"; of many ranks the smallest and the largest.
template <class = void>
[[nodiscard]] std::string shards_in_words(const explanation& e) {
  double all = 0;
  for (const std::uint64_t s : e.shares) all += static_cast<double>(s);
  const auto amount = [&](std::size_t rank) {
    return about(
        {static_cast<std::uint64_t>(static_cast<double>(e.size.value) * (static_cast<double>(e.shares[rank]) / all))});
  };
  constexpr std::size_t few = 16;
  if (e.shares.size() <= few) {
    std::string text;
    for (std::size_t r = 0; r < e.shares.size(); ++r)
      text += (r == 0 ? "" : r + 1 == e.shares.size() ? " and " : ", ") + amount(r);
    return text + (e.shares.size() == 1 ? " of rank 0" : ", from rank 0 on");
  }
  std::size_t least = 0, most = 0, without = 0;
  for (std::size_t r = 0; r < e.shares.size(); ++r) {
    if (e.shares[r] < e.shares[least]) least = r;
    if (e.shares[r] > e.shares[most]) most = r;
    without += e.shares[r] == 0 ? 1 : 0;
  }
  const std::string largest = " to " + amount(most) + " of rank " + std::to_string(most);
  if (without == 0) return "from " + amount(least) + " of rank " + std::to_string(least) + largest;
  return "from nothing of " + plural(without, "rank") + largest;
}

template <class = void>
void sizes_to_text(const explanation& e, std::string& text) {
  if (e.sizes.empty()) return;
  constexpr std::size_t shown = 10;
  // The ranges that span the most doublings are kept when there are many.
  std::vector<std::uint32_t> kept;
  for (std::uint32_t k = 0; k < e.sizes.size(); ++k) kept.push_back(k);
  if (kept.size() > shown) {
    seq::sort(kept, [&](std::uint32_t a, std::uint32_t b) {
      return e.sizes[a].last / e.sizes[a].first > e.sizes[b].last / e.sizes[b].first;
    });
    kept.resize(shown);
    seq::sort(kept);
  }
  text += '\n';
  columns<> t("lrrrl");
  t.add({"sizes", "time", "bound", "gap", "cheapest plan"});
  for (const std::uint32_t k : kept) {
    const size_range& r = e.sizes[k];
    const bool one = r.first == r.last;
    const auto span = [&](const std::string& a, const std::string& b) { return one || a == b ? a : a + " to " + b; };
    // Where one plan takes over from the one before, to three digits; the exact byte is in the JSON.
    t.add({span(k == 0 ? to_string(r.first) : about(r.first),
                k + 1 == e.sizes.size() ? to_string(r.last) : about(r.last)),
           span(to_string(r.first_time), to_string(r.last_time)),
           span(to_string(r.first_bound), to_string(r.last_bound)),
           span(percent(r.first_time / r.first_bound - 1), percent(r.last_time / r.last_bound - 1)), r.name});
  }
  t.write(text);
  if (e.sizes.size() > kept.size())
    text += "and " + std::to_string(e.sizes.size() - kept.size()) + " short ranges between these\n";
}

}  // namespace detail

template <class>
std::string to_text(const explanation& e, bool brief) {
  using detail::percent;
  std::string text =
      std::string(to_string(e.collective)) + " of " + to_string(e.size) + " among " + detail::plural(e.ranks, "rank");
  if (e.boxes > 1) text += " in " + std::to_string(e.boxes) + " boxes";
  if (e.pods > 1) text += " in " + detail::plural(e.pods, "pod");
  if (!e.machine.empty()) text += "; " + e.machine;
  text += "\n\n";
  detail::head_to_text(e, text);
  text += "\ncut:     " + e.limit.cut + '\n';
  if (!e.bottleneck.empty()) text += "busiest: " + e.bottleneck + '\n';
  detail::gap_to_text(e, text);
  if (!e.shares.empty()) text += "shards:  " + detail::shards_in_words(e) + '\n';
  text += "time:    " + to_string(e.price.launch) + " launch + " + to_string(e.price.latency) + " latency of " +
          detail::plural(e.price.rounds, "round") +
          (e.price.posting.value > 0 ? " + " + to_string(e.price.posting) + " for slices" : "") + " + " +
          to_string(e.price.busiest) + " busiest link + " + to_string(e.price.unhidden) + " not overlapped\n";
  if (e.trees) {
    const tree_summary& t = *e.trees;
    text += "trees:   " + detail::plural(t.trees, "tree") + ", " + detail::plural(t.depth, "hop") + " deep at most, " +
            topocoll::detail::three_digits(t.mean_depth) + " on average";
    text += t.spared_ranks == 0 ? std::string("; every rank passes something on")
                                : "; leaves in all of them, so that they pass nothing on: " + t.spared;
    text += '\n';
  }
  for (const std::string& remark : e.remarks) text += "note:    " + remark + '\n';
  for (const std::string& note : e.price.notes) text += "note:    " + note + '\n';
  for (const library_line& l : e.libraries)
    if (!l.time) text += "note:    the " + l.model + " has no figure: " + l.why_not + '\n';
  if (e.proved)
    text += "proof:   " + e.proved->summary + '\n';
  else if (!e.unproved.empty())
    text += "proof:   none: " + e.unproved + '\n';
  if (brief) return text;

  if (!e.stages.empty()) {
    text += '\n';
    detail::columns<> t("lrrrrl");
    t.add({"stage", "groups", "rounds", "transfer", "latency", "slowest link"});
    for (const stage_line& s : e.stages)
      t.add({s.what, std::to_string(s.groups) + " x " + std::to_string(s.members), std::to_string(s.rounds),
             to_string(s.transfer), to_string(s.latency), s.limit});
    t.write(text);
  }

  detail::loads_to_text(e, text);

  if (!e.spine.empty()) {
    text += '\n';
    detail::columns<> t("lrrrrrr");
    t.add({"bytes over the spine", "leaf to spine", "", "most on one", "spine to leaf", "most on one", "time"});
    const double own = static_cast<double>(e.spine.front().up.value);
    for (const spine_line& s : e.spine)
      t.add({s.name, detail::about(s.up),
             own > 0 ? topocoll::detail::three_digits(static_cast<double>(s.up.value) / own) + " x" : "",
             detail::about(s.up_largest), detail::about(s.down), detail::about(s.down_largest), to_string(s.time)});
    t.write(text);
  }

  if (!e.others.empty()) {
    text += '\n';
    detail::columns<> t("lrrl");
    t.add({"other plans", "time", "", "why not"});
    for (const other_line& o : e.others)
      t.add({o.name, o.time ? to_string(*o.time) : "-",
             o.time ? topocoll::detail::three_digits(*o.time / e.price.time) + " x" : "", o.reason});
    t.write(text);
  }

  detail::sizes_to_text(e, text);
  return text;
}

}}}  // namespace topocoll::v0::plan
