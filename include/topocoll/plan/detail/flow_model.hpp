// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the flow simulator works on: programs, their connections and the links of these.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/routes.hpp>
#include <topocoll/plan/fair_share.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

inline constexpr std::uint32_t flow_none = UINT32_MAX;

/// The cost model as numbers.
struct flow_prices {
  std::vector<double> rate, latency;  ///< per link: bytes per second, seconds
  /// Per link: how much longer bytes take when a switch multiplies or adds up what passes; empty: as long as others.
  std::vector<double> drag_copies, drag_sums;
  double switch_start = 0, switch_member = 0;  ///< seconds before a switch works, and for each member more
  double post = 0, launch = 0;                 ///< seconds
  double reduce_rate = 0;                      ///< bytes per second of a rank; 0: reduction takes no time
};

/// Spreads the bits of `x` (the finalizer of splitmix64, Steele et al. 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// Messages from one rank to another on one channel by one way, in order.
struct flow_connection {
  std::uint32_t from = 0, to = 0, channel = 0;
  std::uint32_t way = 0;    ///< 0: as routing says; k: the k-th way of the schedule, or of those by switches after them
  std::uint32_t route = 0;  ///< position among the routes
  std::uint32_t sends = 0, receives = 0;
  std::uint64_t send_mark = 0, receive_mark = 0;  ///< hash of which operations these are, and how large
};

/// Links that a connection uses, in what shares.
struct flow_route {
  struct part {
    std::uint32_t link;
    double share;
  };
  std::vector<part> parts{};
  double latency = 0;
  double drag = 1;        ///< `share` is so many times what the link carries: a switch at work is slower than its links
  bool switched = false;  ///< the switch adds up, not the receiver
  bool unpriced = false;  ///< through a memory whose rate nobody states
};

/// What a message between two members stands for when a switch works for the group: so many of its bytes leave the sender
/// and reach the receiver. All messages of a member together are what its link carries.
struct switch_way {
  double out = 1, in = 1;
  bool sums = false;
  std::uint32_t members = 0;

  friend bool operator==(const switch_way&, const switch_way&) = default;
};

/// A message as one rank of a class sends it and one of another class receives it.
struct flow_message {
  std::uint32_t send_step = flow_none, receive_step = flow_none;  ///< `flow_none`: there is no such end
  std::uint32_t connection = flow_none;                           ///< class of connections
  std::uint32_t way = flow_none;                                  ///< of `fair_share`
  std::uint32_t send_op = 0, receive_op = 0;                      ///< in the programs
  double amount = 0, latency = 0;
  rank_id from{}, to{};
  bool reduces = false;
};

/// A copy or a reduction on one rank.
struct flow_local {
  std::uint32_t step = 0, way = 0, op = 0;
  double amount = 0;
};

/// Everything that is simulated: one rank of each class.
struct flow_model {
  std::vector<flow_connection> connections{};
  std::vector<flow_route> routes{};
  std::vector<std::uint32_t> rank_class{}, connection_class{},
      link_class{};                                                  ///< `flow_none` for links that nobody uses
  std::vector<std::uint32_t> rank_of{}, connection_of{}, link_of{};  ///< an example of each class
  std::vector<std::uint64_t> class_size{};                           ///< ranks
  std::vector<const program*> programs{};                            ///< of the examples

  // Steps of all examples are numbered through.
  std::vector<std::uint32_t> first_step{};  ///< per class of ranks, and one more
  std::vector<std::uint32_t> class_of_step{}, next{}, open{};
  std::vector<std::uint32_t> first_waiter{}, waiters{};    ///< steps that wait for the end of a step
  std::vector<std::uint32_t> first_send{}, first_local{};  ///< per step, and one more; sends are messages in order
  std::vector<std::uint32_t> first_receive{}, receives{};
  std::vector<flow_message> messages{};
  std::vector<flow_local> locals{};

  fair_share<> shares{};
  /// Places of `shares`: classes of links come first, then the reduction of ranks.
  std::vector<std::uint32_t> engine_class{};          ///< class of ranks, per place behind those of links
  std::vector<std::uint32_t> plain_way{}, sum_way{};  ///< per class of connections
  std::uint64_t all_messages = 0;                     ///< of all ranks
  bool unpriced = false;

  [[nodiscard]] const program& program_of(std::uint32_t step) const { return *programs[class_of_step[step]]; }
  [[nodiscard]] std::uint32_t local_number(std::uint32_t step) const { return step - first_step[class_of_step[step]]; }
  [[nodiscard]] const step& step_at(std::uint32_t s) const { return program_of(s).steps[local_number(s)]; }
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t step) const { return rank_of[class_of_step[step]]; }
};

/// Programs that exist already; their messages take the routes of the router.
class given_programs {
 public:
  explicit given_programs(std::span<const program> all) : all_(all) {}
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(all_.size()); }
  [[nodiscard]] result<const program*> at(std::uint32_t r) const { return &all_[r]; }
  [[nodiscard]] result<const program*> keep(std::uint32_t r) const { return &all_[r]; }
  void forget() {}
  [[nodiscard]] std::uint32_t way_of(std::uint32_t, const step&, const op&) const { return 0; }
  [[nodiscard]] std::span<const way> ways() const { return {}; }
  [[nodiscard]] std::span<const switch_way> switch_ways() const { return {}; }
  [[nodiscard]] bool in_switch(std::uint32_t) const { return false; }

 private:
  std::span<const program> all_;
};

/// Programs that are lowered when they are asked for.
template <class = void>
class lowered_programs {
 public:
  explicit lowered_programs(const schedule& plan) : plan_(&plan) {
    for (std::uint32_t i = 0; i < plan.stages.size(); ++i) list_ways(i);
    if (ways_.empty()) return;
    seq::sort(ways_, [](const tree_edge& a, const tree_edge& b) { return a.key() < b.key(); });
    unit_of_.resize(plan.chunks());
    for (std::uint32_t s = 0; s < plan.slices; ++s)
      for (std::uint32_t u = 0; u < plan.units; ++u) unit_of_[chunk_of(plan, s, u)] = u;
  }
  [[nodiscard]] std::uint32_t count() const { return plan_->ranks; }
  /// Valid until the next call.
  [[nodiscard]] result<const program*> at(std::uint32_t r) {
    auto made = lower(*plan_, rank_id{r});
    if (!made) return made.error();
    last_ = *std::move(made);
    return &last_;
  }
  /// Valid until `forget`. Precondition: no rank is kept twice.
  [[nodiscard]] result<const program*> keep(std::uint32_t r) {
    auto made = lower(*plan_, rank_id{r});
    if (!made) return made.error();
    kept_.reserve(plan_->ranks);  // so that none of them moves
    kept_.push_back(*std::move(made));
    return &kept_.back();
  }
  void forget() { kept_.clear(); }

  /// Way of a message of `rank` in a tree or by a switch; 0 when it has none of its own.
  [[nodiscard]] std::uint32_t way_of(std::uint32_t rank, const step& st, const op& o) const {
    if (ways_.empty() || o.chunk >= unit_of_.size()) return 0;
    const bool sends = o.kind == op_kind::send;
    const std::uint32_t unit = unit_of_[o.chunk];
    tree_edge wanted{st.stage, sends ? rank : o.peer.value, sends ? o.peer.value : rank, unit + 1, 0, 0};
    auto it = seq::lower_bound_by(ways_, wanted.key(), [](const tree_edge& e) { return e.key(); });
    if (it == ways_.begin()) return 0;
    --it;
    const bool here = it->stage == wanted.stage && it->from == wanted.from && it->to == wanted.to;
    return here && it->lo <= unit && unit < it->hi ? it->way : 0;
  }
  [[nodiscard]] std::span<const way> ways() const { return plan_->ways; }
  [[nodiscard]] std::span<const switch_way> switch_ways() const { return switch_ways_; }
  [[nodiscard]] bool in_switch(std::uint32_t stage) const {
    return stage < plan_->stages.size() && plan_->stages[stage].how == algorithm::in_switch;
  }

 private:
  struct tree_edge {
    std::uint32_t stage, from, to, lo, hi, way;
    struct order {
      std::uint64_t first, second;
      friend bool operator<(const order& a, const order& b) {
        return a.first != b.first ? a.first < b.first : a.second < b.second;
      }
    };
    [[nodiscard]] order key() const { return {std::uint64_t{stage} << 32U | from, std::uint64_t{to} << 32U | lo}; }
  };
  void list_ways(std::uint32_t index) {
    const stage& st = plan_->stages[index];
    if (st.how == algorithm::in_switch)
      for (std::size_t g = 0; g < st.group_count(); ++g) list_switch_ways(index, st.kind, st.group(g));
    if (st.ways_down.empty() && st.ways_up.empty()) return;
    for (std::size_t g = 0; g < st.group_count(); ++g) {
      const group_view group = st.group(g);
      for (std::uint32_t m = 1; m < group.size() && m < group.parents.size(); ++m) {
        const std::uint32_t child = group.members[m].value, parent = group.members[group.parents[m]].value;
        const std::size_t at = st.offsets[g] + m;
        if (!st.ways_down.empty() && st.ways_down[at] != 0)
          ways_.push_back({index, parent, child, group.first(), group.last(), st.ways_down[at]});
        if (!st.ways_up.empty() && st.ways_up[at] != 0)
          ways_.push_back({index, child, parent, group.first(), group.last(), st.ways_up[at]});
      }
    }
  }

  /// Data that members keep go through the switch as well: their link carries all of the group or their part of it, which
  /// the messages with the others share.
  void list_switch_ways(std::uint32_t index, stage_kind kind, const group_view& group) {
    const std::uint32_t k = group.size();
    if (k < 2 || group.first() == group.last()) return;
    const auto part = [&](std::uint32_t j) { return group.bounds[j + 1] - group.bounds[j]; };
    const double all = group.last() - group.first();
    const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t lo, std::uint32_t hi, switch_way w) {
      if (lo == hi) return;
      w.members = k;
      std::size_t at = switch_ways_.size();
      while (at > 0 && switch_ways_[at - 1] != w) --at;
      if (at == 0) {
        switch_ways_.push_back(w);
        at = switch_ways_.size();
      }
      ways_.push_back({index, group.members[from].value, group.members[to].value, lo, hi,
                       static_cast<std::uint32_t>(plan_->ways.size() + at)});
    };
    const bool rooted = kind == stage_kind::reduce || kind == stage_kind::broadcast;
    const bool sums = kind != stage_kind::all_gather && kind != stage_kind::broadcast;
    const bool copies = kind != stage_kind::reduce_scatter && kind != stage_kind::reduce;
    for (std::uint32_t i = 0; i < k; ++i)
      for (std::uint32_t j = 0; j < k; ++j) {
        if (i == j || (rooted && i != 0)) continue;
        // Member i owns what is summed up or handed out, j is the other end.
        const std::uint32_t lo = rooted ? group.first() : group.bounds[i],
                            hi = rooted ? group.last() : group.bounds[i + 1];
        const double whole = rooted ? 1 : all / (all - part(j));
        if (sums) add(j, i, lo, hi, {whole, 1.0 / (k - 1), true, 0});
        if (copies) add(i, j, lo, hi, {1.0 / (k - 1), whole, false, 0});
      }
  }

  const schedule* plan_;
  program last_;
  std::vector<program> kept_;
  std::vector<tree_edge> ways_;
  std::vector<switch_way> switch_ways_;
  std::vector<std::uint32_t> unit_of_;
};

}}}}  // namespace topocoll::v0::plan::detail
