// SPDX-License-Identifier: Apache-2.0
#pragma once
// How an explanation is put together and written.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/choose_search.hpp>
#include <topocoll/plan/detail/words.hpp>
#include <topocoll/plan/explain.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Rows of cells in columns that are as wide as they must be; columns in `right` are aligned to the right.
template <class = void>
class columns {
 public:
  explicit columns(std::string_view right) : right_(right) {}  // 'r' or 'l' per column
  void add(std::vector<std::string> cells) {
    if (width_.size() < cells.size()) width_.resize(cells.size(), 0);
    for (std::size_t i = 0; i + 1 < cells.size() || (i < cells.size() && right_at(i)); ++i)
      width_[i] = std::max(width_[i], cells[i].size());
    rows_.push_back(std::move(cells));
  }
  void write(std::string& to, std::string_view indent = "") const {
    for (const auto& cells : rows_) {
      std::string line(indent);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string space(width_[i] > cells[i].size() ? width_[i] - cells[i].size() : 0, ' ');
        line +=
            (i == 0 ? "" : "  ") + (right_at(i) ? space + cells[i] : cells[i] + (i + 1 < cells.size() ? space : ""));
      }
      line.erase(line.find_last_not_of(' ') + 1);
      to += line + '\n';
    }
  }

 private:
  [[nodiscard]] bool right_at(std::size_t i) const { return i < right_.size() && right_[i] == 'r'; }
  std::string_view right_;
  std::vector<std::size_t> width_;
  std::vector<std::vector<std::string>> rows_;
};

/// "23 %", "0.4 %".
template <class = void>
[[nodiscard]] std::string percent(double share) {
  const double value = share * 100;
  if (value >= 9.95) return std::to_string(static_cast<std::int64_t>(value + 0.5)) + " %";
  const auto tenths = static_cast<std::int64_t>(value * 10 + 0.5);
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " %";
}

/// An amount to three digits, for columns: "15.9 MiB", "896 MiB".
template <class = void>
[[nodiscard]] std::string about(bytes amount) {
  constexpr const char* names[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(amount.value);
  while (unit < 6 && value >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  return (unit == 0 ? std::to_string(amount.value) : topocoll::detail::three_digits(value)) + names[unit];
}

template <class = void>
[[nodiscard]] const char* in_words(link_class c) {
  constexpr const char* words[] = {"between GPUs", "PCIe",        "between sockets", "host memory",   "inside NICs",
                                   "NIC to leaf",  "leaf to NIC", "leaf to spine",   "spine to leaf", "spine to core"};
  return words[static_cast<std::size_t>(c)];
}

template <class = void>
[[nodiscard]] std::vector<std::vector<std::uint32_t>> ranks_by_box(const levels& at) {
  std::vector<std::vector<std::uint32_t>> box(at.boxes);
  for (std::uint32_t r = 0; r < at.box.size(); ++r) box[at.box[r]].push_back(r);
  for (auto& members : box) seq::sort_by(members, [&](std::uint32_t r) { return at.rail[r]; });
  return box;
}

/// Boxes in turn from each pod: neighbours of the order are in different pods wherever that is possible.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> scattered_boxes(const levels& at) {
  std::vector<std::uint32_t> pod(at.boxes, 0), turn(at.boxes, 0), next(at.pods, 0), order(at.boxes);
  for (std::uint32_t r = 0; r < at.box.size(); ++r) pod[at.box[r]] = at.pod[r];
  for (std::uint32_t b = 0; b < at.boxes; ++b) {
    order[b] = b;
    turn[b] = next[pod[b]]++;
  }
  seq::sort(order,
            [&](std::uint32_t a, std::uint32_t b) { return turn[a] != turn[b] ? turn[a] < turn[b] : pod[a] < pod[b]; });
  return order;
}
/// Boxes pod after pod.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> packed_boxes(const levels& at) {
  std::vector<std::uint32_t> pod(at.boxes, 0), order(at.boxes);
  for (std::uint32_t r = 0; r < at.box.size(); ++r) pod[at.box[r]] = at.pod[r];
  for (std::uint32_t b = 0; b < at.boxes; ++b) order[b] = b;
  seq::sort_by(order, [&](std::uint32_t b) { return pod[b]; });
  return order;
}

template <class = void>
[[nodiscard]] spine_line spine_line_of(std::string name, const simulation& s) {
  const class_load& up = s.by_class[static_cast<std::size_t>(link_class::leaf_up)];
  const class_load& down = s.by_class[static_cast<std::size_t>(link_class::leaf_down)];
  return {std::move(name), up.total,     up.largest,
          down.total,      down.largest, s.by_class[static_cast<std::size_t>(link_class::nic_out)].largest,
          s.time};
}

template <class = void>
[[nodiscard]] std::string limit_in_words(const topo::graph& g, const std::optional<link_id>& limit) {
  return limit ? link_in_words(g, *limit) : std::string("reduction");
}

/// Everything of an explanation but the lines of rings.
template <class = void>
[[nodiscard]] explanation describe_choice(const problem& p, const levels& at, const choice& made,
                                          std::span<const selection> map) {
  const topo::graph& g = *p.graph;
  const schedule& plan = made.best();
  explanation e;
  e.collective = p.collective;
  e.size = p.size;
  e.machine = g.source();
  e.ranks = p.rank_count();
  e.boxes = at.boxes;
  e.pods = at.pods;
  e.chosen = made.candidates.front().name;
  e.slices = plan.slices;
  e.digest = digest(plan);
  e.limit = made.limit;
  e.gap = made.gap;
  e.price = made.price();
  std::copy(std::begin(e.price.by_class), std::end(e.price.by_class), e.loads.begin());
  e.proved = made.candidates.front().proved;
  e.unproved = made.candidates.front().unproved;
  if (e.price.limit) {
    const link_id busiest = *e.price.limit;
    e.bottleneck = link_in_words(g, busiest) + " carries " + about(e.price.loads[busiest.value]) + " and is busy for " +
                   to_string(e.price.busiest) + ", " + percent(e.price.share) + " of the time";
  } else if (e.price.busiest.value > 0) {
    e.bottleneck =
        "one rank reduces for " + to_string(e.price.busiest) + ", " + percent(e.price.share) + " of the time";
  }
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    const stage& s = plan.stages[k];
    const stage_time& t = e.price.stages[k];
    std::size_t members = s.axis ? plan.shape[*s.axis] : 0;
    for (std::size_t group = 0; group < s.group_count(); ++group)
      members = std::max<std::size_t>(members, s.group(group).size());
    const std::size_t groups = s.axis ? plan.ranks / members : s.group_count();
    std::string what = s.label.empty() ? std::string(to_string(s.kind)) : s.label;
    const std::string how(to_string(s.how));
    if (what.find(how) == std::string::npos) what += ", " + how;
    e.stages.push_back({std::move(what), groups, members, t.rounds, t.transfer, t.latency, limit_in_words(g, t.limit)});
  }
  for (std::size_t k = 1; k < made.candidates.size(); ++k) {
    const candidate& c = made.candidates[k];
    e.others.push_back(
        {c.name, c.price && !c.why_not ? std::optional<seconds>{c.price->time} : std::nullopt, c.reason});
  }
  for (const selection& s : map) {
    if (e.sizes.empty() || e.sizes.back().name != s.name)
      e.sizes.push_back({s.size, s.size, s.name, s.time, s.time, s.bound_time, s.bound_time});
    e.sizes.back().last = s.size;
    e.sizes.back().last_time = s.time;
    e.sizes.back().last_bound = s.bound_time;
  }
  e.price.loads.clear();
  e.price.loads.shrink_to_fit();
  return e;
}

}  // namespace detail

namespace detail {

/// Rounds of `rings` rings among all ranks, each working on its share; still without moves. Empty for other collectives.
template <class = void>
[[nodiscard]] workload ring_rounds(const problem& p, std::size_t rings) {
  workload w;
  const bool both = p.collective == collective_kind::all_reduce;
  if ((!both && p.collective != collective_kind::all_gather && p.collective != collective_kind::reduce_scatter) ||
      p.ranks.size() < 2)
    return w;
  w.chunks = std::uint64_t{p.ranks.size()} * rings;
  w.reduced = {both ? 0.5 : (p.collective == collective_kind::reduce_scatter ? 1.0 : 0.0)};
  round r;
  r.repeat = (both ? 2 : 1) * (p.rank_count() - 1);
  w.rounds.push_back(std::move(r));
  return w;
}
/// Adds the moves of one ring. They are posted by threads of their own: no further message of a rank.
template <class = void>
void add_ring(workload& w, std::span<const std::uint32_t> order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    w.rounds[0].moves.push_back({{order[i]}, {order[(i + 1) % order.size()]}, 1, 0});
}
template <class = void>
[[nodiscard]] workload one_ring(const problem& p, std::span<const std::uint32_t> order) {
  workload w = ring_rounds(p, 1);
  if (!w.rounds.empty()) add_ring(w, order);
  return w;
}
/// A step through n ranks that visits all of them and keeps neighbours of the ring far apart: near n by the golden ratio.
template <class = void>
[[nodiscard]] std::uint32_t scattering_stride(std::uint32_t n) {
  auto stride = static_cast<std::uint32_t>(n * 0.618);
  while (stride > 1 && common_divisor(n, stride) != 1) --stride;
  return stride == 0 ? 1 : stride;
}

}  // namespace detail

template <class>
workload ring_workload(const problem& p, const levels& at, std::span<const std::uint32_t> boxes) {
  const auto members = detail::ranks_by_box(at);
  std::size_t rings = members.empty() ? 1 : members[0].size();
  for (const auto& m : members) rings = m.size() == members[0].size() ? rings : 1;
  workload w = detail::ring_rounds(p, rings);
  if (w.rounds.empty()) return w;
  for (std::size_t c = 0; c < rings; ++c) {
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const auto& m = members[boxes[i]];
      for (std::size_t j = 0; j < m.size(); ++j)
        order.push_back(i % 2 == 0 ? m[(c + j) % m.size()] : m[(c + 2 * m.size() - 1 - j) % m.size()]);
    }
    detail::add_ring(w, order);
  }
  return w;
}

template <CostModel M>
result<explanation> explain(simulator<M>& prices, const problem& p, const choice& made,
                            std::span<const selection> map) {
  const auto at = levels_of(p);
  if (!at) return at.error();
  explanation e = detail::describe_choice(p, *at, made, map);
  constexpr std::size_t large = 16384;  // ranks above which these comparisons would take longer than the plan
  if (p.ranks.size() <= large)
    if (auto nominal = lower_bound(p); nominal) e.nominal = std::move(*nominal);
  const class_load& up = made.price().by_class[static_cast<std::size_t>(link_class::leaf_up)];
  if (up.links == 0 || p.ranks.size() > large) return e;
  e.spine.push_back(detail::spine_line_of("this plan", made.price()));
  const auto compare = [&](const char* name, const workload& w) {
    if (w.rounds.empty()) return;
    if (const auto s = prices.run(p, w)) e.spine.push_back(detail::spine_line_of(name, *s));
  };
  std::vector<std::uint32_t> by_rank(at->boxes), in_order(p.ranks.size()), spread(p.ranks.size());
  for (std::uint32_t b = 0; b < at->boxes; ++b) by_rank[b] = b;
  const auto packed = detail::packed_boxes(*at), scattered = detail::scattered_boxes(*at);
  compare(by_rank == packed ? "rings in rank order (pod by pod)" : "rings in rank order",
          ring_workload(p, *at, by_rank));
  if (by_rank != packed) compare("rings pod by pod", ring_workload(p, *at, packed));
  if (by_rank != scattered && at->pods > 1)
    compare("rings in scattered order (hosts in turn from each pod)", ring_workload(p, *at, scattered));
  for (std::uint32_t r = 0; r < in_order.size(); ++r) in_order[r] = r;
  compare("one ring in rank order", detail::one_ring(p, in_order));
  const std::uint32_t stride = detail::scattering_stride(p.rank_count());
  for (std::uint32_t r = 0; r < spread.size(); ++r)
    spread[r] = static_cast<std::uint32_t>(std::uint64_t{r} * stride % p.ranks.size());
  compare("one ring in scattered rank order", detail::one_ring(p, spread));
  return e;
}

template <class>
std::string to_text(const explanation& e, bool brief) {
  using detail::percent;
  std::string text =
      std::string(to_string(e.collective)) + " of " + to_string(e.size) + " among " + detail::plural(e.ranks, "rank");
  if (e.boxes > 1) text += " in " + std::to_string(e.boxes) + " boxes";
  if (e.pods > 1) text += " in " + detail::plural(e.pods, "pod");
  if (!e.machine.empty()) text += "; " + e.machine;
  text += "\n\n";

  detail::columns<> head("lrrr");
  const auto rates = [&](bytes_per_second algbw) {
    return std::pair{"algbw " + to_string(algbw), "busbw " + to_string(algbw * busbw_factor(e.collective, e.ranks))};
  };
  const auto mine = rates(e.algbw()), best = rates(e.size / e.limit.time);
  const bool rated = e.size.value > 0 && e.ranks > 1;
  head.add({"plan", to_string(e.price.time), rated ? mine.first : "", rated ? mine.second : "",
            e.chosen + (e.slices > 1 ? ", " + std::to_string(e.slices) + " slices" : "")});
  head.add({"bound", to_string(e.limit.time), rated ? best.first : "", rated ? best.second : "",
            "no plan is faster on these links; this one " +
                (e.gap < 5e-4 ? std::string("meets it") : "takes " + percent(e.gap) + " longer")});
  if (e.nominal && rated && e.nominal->bandwidth_time < e.limit.bandwidth_time * 0.995 &&
      e.nominal->bandwidth_time.value > 0) {
    const auto nominal = rates(e.size / e.nominal->bandwidth_time);
    head.add({"", to_string(e.nominal->bandwidth_time), nominal.first, nominal.second,
              "the same at nominal link rates and without latency"});
  }
  head.write(text);
  text += "\ncut:     " + e.limit.cut + '\n';
  if (!e.bottleneck.empty()) text += "busiest: " + e.bottleneck + '\n';
  text += "time:    " + to_string(e.price.launch) + " launch + " + to_string(e.price.latency) + " latency of " +
          detail::plural(e.price.rounds, "round") +
          (e.price.posting.value > 0 ? " + " + to_string(e.price.posting) + " for slices" : "") + " + " +
          to_string(e.price.busiest) + " busiest link + " + to_string(e.price.unhidden) + " not overlapped\n";
  for (const std::string& note : e.price.notes) text += "note:    " + note + '\n';
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

  text += '\n';
  detail::columns<> loads("lrrr");
  loads.add({"links", "used", "bytes in all", "most on one link"});
  for (std::size_t c = 0; c < link_class_count; ++c)
    if (e.loads[c].links > 0 && c != static_cast<std::size_t>(link_class::adapter))
      loads.add({detail::in_words(static_cast<link_class>(c)),
                 std::to_string(e.loads[c].used) + " of " + std::to_string(e.loads[c].links),
                 detail::about(e.loads[c].total), detail::about(e.loads[c].largest)});
  loads.write(text);

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

  if (!e.sizes.empty()) {
    text += '\n';
    detail::columns<> t("lrrrl");
    t.add({"sizes", "time", "bound", "gap", "cheapest plan"});
    for (const size_range& r : e.sizes) {
      const bool one = r.first == r.last;
      const auto span = [&](const std::string& a, const std::string& b) { return one ? a : a + " to " + b; };
      t.add({span(to_string(r.first), to_string(r.last)), span(to_string(r.first_time), to_string(r.last_time)),
             span(to_string(r.first_bound), to_string(r.last_bound)),
             span(percent(r.first_time / r.first_bound - 1), percent(r.last_time / r.last_bound - 1)), r.name});
    }
    t.write(text);
  }
  return text;
}

}}}  // namespace topocoll::v0::plan
