// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event loop of the flow simulator: steps start, messages are posted, bytes flow, steps end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/flow_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// One run of a model. Times count from the start of the first steps.
template <class = void>
class flow_loop {
 public:
  /// A message (by number) or an operation of a rank (number of messages + its number).
  struct times {
    double ready = -1, posted = 0, begun = 0, ended = -1;
    std::uint32_t limit = flow_none;  ///< place that set its rate for the longest time
    double limited = 0;
  };

  flow_loop(flow_model& m, const flow_prices& prices) : m_(m), prices_(prices), left_(m.class_of_step.size()) {
    const std::size_t steps = m.class_of_step.size(), flows = m.messages.size() + m.locals.size();
    started_.assign(steps, -1);
    ended_.assign(steps, -1);
    cause_.assign(steps, flow_none);
    last_.assign(steps, flow_none);
    pending_.assign(steps, 0);
    open_ = m.open;
    flow_.resize(flows);
    for (const flow_message& x : m.messages) {
      if (x.send_step != flow_none) ++pending_[x.send_step];
      if (x.receive_step != flow_none) ++pending_[x.receive_step];
    }
    for (const flow_local& x : m.locals) ++pending_[x.step];
    free_send_.assign(m.rank_of.size(), 0);
    free_receive_.assign(m.rank_of.size(), 0);
    lane_.resize(m.shares.way_count());
    active_.assign(m.shares.place_count(), 0);
    since_.assign(m.shares.place_count(), 0);
    busy_.assign(m.shares.place_count(), 0);
  }

  /// Runs to the end; `bug` when something waits for ever.
  [[nodiscard]] result<void> run() {
    for (std::uint32_t g = 0; g < open_.size(); ++g)
      if (open_[g] == 0) todo_.push_back({g, false});
    cascade();
    while (!heap_.empty()) {
      now_ = std::max(now_, heap_.front().time);
      // Events that differ by rounding happen at once.
      const double until = now_ * (1 + 1e-10);
      while (!heap_.empty() && heap_.front().time <= until) {
        const event e = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        happen(e);
      }
      cascade();
    }
    if (left_ != 0) return stuck();
    return {};
  }

  [[nodiscard]] double end() const { return end_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] double busy(std::uint32_t place) const { return busy_[place]; }
  [[nodiscard]] const times& of(std::uint32_t flow) const { return flow_[flow]; }
  [[nodiscard]] double ended(std::uint32_t step) const { return ended_[step]; }
  /// Flows on the critical path, last first: each was ready when the one after it (in the list) had ended.
  [[nodiscard]] std::vector<std::uint32_t> critical() const {
    std::vector<std::uint32_t> path;
    std::uint32_t g = flow_none;
    for (std::uint32_t s = 0; s < ended_.size(); ++s)
      if (g == flow_none || ended_[s] > ended_[g]) g = s;
    while (g != flow_none) {
      // What ended last in this step; a step without anything ends when it starts.
      std::uint32_t begun = g;
      if (last_[g] != flow_none) {
        path.push_back(last_[g]);
        begun = later_start(last_[g], g);
      }
      while (begun != flow_none && cause_[begun] != flow_none && (cause_[begun] & 1U) == 0) begun = cause_[begun] >> 1U;
      g = begun == flow_none || cause_[begun] == flow_none ? flow_none : cause_[begun] >> 1U;
    }
    return path;
  }

 private:
  enum class what : std::uint8_t { post_send, post_receive, begin, finish };
  struct event {
    double time;
    std::uint64_t order;  // of equal times: first come, first served
    std::uint32_t number, version;
    what kind;
  };
  static bool later(const event& a, const event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }
  using goal = std::pair<double, std::uint32_t>;  // service at which a flow ends, the flow
  static bool sooner(const goal& a, const goal& b) { return a > b; }
  struct task {
    std::uint32_t step;
    bool ends;
  };
  /// Flows of one way: all have had the same service since they began, so the one with the least to go ends first.
  struct lane {
    double served = 0, since = 0, rate = 0;
    std::uint32_t version = 0, place = flow_none;
    std::vector<goal> goals{};  // heap, least first
  };

  void push(double time, what kind, std::uint32_t number, std::uint32_t version = 0) {
    heap_.push_back({time, ++order_, number, version, kind});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  // ---- steps

  void cascade() {
    while (!todo_.empty() || !ready_.empty() || !asking_.empty()) {
      while (!todo_.empty()) {
        const task t = todo_.back();
        todo_.pop_back();
        t.ends ? end_step(t.step) : start_step(t.step);
      }
      // Whatever the order in which steps were looked at, a rank posts by step and operation.
      if (!ready_.empty()) {
        std::vector<std::uint32_t> now = std::move(ready_);
        ready_.clear();
        by(now, &flow_message::send_step, &flow_message::send_op);
        for (const std::uint32_t x : now)
          post(x, free_send_[m_.class_of_step[m_.messages[x].send_step]], what::post_send);
      } else if (!asking_.empty()) {
        std::vector<std::uint32_t> now = std::move(asking_);
        asking_.clear();
        by(now, &flow_message::receive_step, &flow_message::receive_op);
        for (const std::uint32_t x : now)
          post(x, free_receive_[m_.class_of_step[m_.messages[x].receive_step]], what::post_receive);
      }
    }
    for (const std::uint32_t w : m_.shares.settle()) update(w);
  }
  void by(std::vector<std::uint32_t>& all, std::uint32_t flow_message::*first, std::uint32_t flow_message::*second) {
    if (prices_.post > 0)
      seq::sort_by(
          all, [&](std::uint32_t x) { return std::uint64_t{m_.messages[x].*first} << 32U | m_.messages[x].*second; });
  }
  /// Takes the next free slot of a rank, now or later.
  void post(std::uint32_t x, double& free, what kind) {
    const double at = std::max(now_, free);
    free = at + prices_.post;
    if (at > now_)
      push(at, kind, x);
    else
      posted(x, kind);
  }
  void posted(std::uint32_t x, what kind) {
    if (kind == what::post_send) {
      asking_.push_back(x);
      return;
    }
    flow_[x].posted = now_;
    const double latency = m_.messages[x].latency;
    if (latency > 0)
      push(now_ + latency, what::begin, x);
    else
      begin(x);
  }

  void start_step(std::uint32_t g) {
    started_[g] = now_;
    ++pending_[g];  // for the start itself
    const auto wake = [&](std::uint32_t x) {
      const flow_message& m = m_.messages[x];
      if (m.send_step == flow_none || m.receive_step == flow_none) return;
      if (started_[m.send_step] < 0 || started_[m.receive_step] < 0 || flow_[x].ready >= 0) return;
      flow_[x].ready = now_;
      ready_.push_back(x);
    };
    for (std::uint32_t x = m_.first_send[g]; x < m_.first_send[g + 1]; ++x) wake(x);
    for (std::uint32_t i = m_.first_receive[g]; i < m_.first_receive[g + 1]; ++i) wake(m_.receives[i]);
    for (std::uint32_t l = m_.first_local[g]; l < m_.first_local[g + 1]; ++l) {
      const auto x = static_cast<std::uint32_t>(m_.messages.size() + l);
      flow_[x].ready = flow_[x].posted = now_;
      begin(x);
    }
    if (m_.next[g] != flow_none) release(m_.next[g], g << 1U);
    done_with(g, flow_none);
  }
  void end_step(std::uint32_t g) {
    ended_[g] = now_;
    end_ = std::max(end_, now_);
    --left_;
    for (std::uint32_t i = m_.first_waiter[g]; i < m_.first_waiter[g + 1]; ++i) release(m_.waiters[i], g << 1U | 1U);
  }
  /// `cause`: step times two, plus one when it is its end that releases.
  void release(std::uint32_t g, std::uint32_t cause) {
    if (--open_[g] != 0) return;
    cause_[g] = cause;
    todo_.push_back({g, false});
  }
  void done_with(std::uint32_t g, std::uint32_t flow) {
    if (flow != flow_none) last_[g] = flow;
    if (--pending_[g] == 0) todo_.push_back({g, true});
  }

  // ---- flows

  [[nodiscard]] std::uint32_t way_of(std::uint32_t x) const {
    return x < m_.messages.size() ? m_.messages[x].way : m_.locals[x - m_.messages.size()].way;
  }
  [[nodiscard]] double amount_of(std::uint32_t x) const {
    return x < m_.messages.size() ? m_.messages[x].amount : m_.locals[x - m_.messages.size()].amount;
  }
  void begin(std::uint32_t x) {
    flow_[x].begun = now_;
    const std::uint32_t w = way_of(x);
    if (m_.shares.uses(w).empty()) {
      finish(x);
      return;
    }
    lane& l = lane_[w];
    serve(l);
    if (l.goals.empty()) {
      for (const fair_use& u : m_.shares.uses(w))
        if (active_[u.place]++ == 0) since_[u.place] = now_;
    }
    l.goals.push_back({l.served + amount_of(x), x});
    std::push_heap(l.goals.begin(), l.goals.end(), sooner);
    m_.shares.start(w);
  }
  void finish(std::uint32_t x) {
    flow_[x].ended = now_;
    ++events_;
    if (x >= m_.messages.size()) {
      done_with(m_.locals[x - m_.messages.size()].step, x);
      return;
    }
    done_with(m_.messages[x].send_step, x);
    done_with(m_.messages[x].receive_step, x);
  }
  void serve(lane& l) {
    const double span = now_ - l.since;
    l.served += l.rate * span;
    l.since = now_;
    if (l.place != flow_none && span > 0)
      for (const auto& g : l.goals) {
        times& t = flow_[g.second];
        // The place that limited most: what another gains, the candidate loses.
        if (t.limit == l.place || t.limited <= span) {
          t.limited = t.limit == l.place ? t.limited + span : span - t.limited;
          t.limit = l.place;
        } else {
          t.limited -= span;
        }
      }
  }
  /// A new rate: when will the first flow of the way end?
  void update(std::uint32_t w) {
    lane& l = lane_[w];
    serve(l);
    l.rate = m_.shares.rate(w);
    l.place = m_.shares.bottleneck(w);
    ++l.version;
    if (!l.goals.empty() && l.rate > 0)
      push(now_ + std::max(0.0, l.goals.front().first - l.served) / l.rate, what::finish, w, l.version);
  }

  void happen(const event& e) {
    ++events_;
    switch (e.kind) {
      case what::post_send:
      case what::post_receive: posted(e.number, e.kind); return;
      case what::begin: begin(e.number); return;
      case what::finish: break;
    }
    lane& l = lane_[e.number];
    if (e.version != l.version) return;
    serve(l);
    // The first has what it needs by construction; others may be a rounding away.
    bool first = true;
    while (!l.goals.empty()) {
      const auto [target, x] = l.goals.front();
      if (!first && target > l.served + amount_of(x) * 1e-10) break;
      first = false;
      std::pop_heap(l.goals.begin(), l.goals.end(), sooner);
      l.goals.pop_back();
      m_.shares.stop(e.number);
      finish(x);
    }
    if (!l.goals.empty()) return;
    l.served = l.rate = 0;
    ++l.version;
    for (const fair_use& u : m_.shares.uses(e.number))
      if (--active_[u.place] == 0) busy_[u.place] += now_ - since_[u.place];
  }

  // ---- why

  /// Of the steps of a flow, the one that started last: what made it ready. For operations, its own.
  [[nodiscard]] std::uint32_t later_start(std::uint32_t x, std::uint32_t own) const {
    if (x >= m_.messages.size()) return own;
    const flow_message& m = m_.messages[x];
    return started_[m.send_step] >= started_[m.receive_step] ? m.send_step : m.receive_step;
  }
  [[nodiscard]] std::string name(std::uint32_t g) const {
    const program& p = m_.program_of(g);
    std::string text = "rank " + std::to_string(m_.rank_at(g)) + ", step " + std::to_string(m_.local_number(g));
    const std::uint32_t stage = m_.step_at(g).stage;
    if (stage < p.stages.size()) text += " (" + p.stages[stage] + ")";
    return text;
  }
  [[nodiscard]] failure stuck() const;

  flow_model& m_;
  const flow_prices& prices_;
  double now_ = 0, end_ = 0;
  std::uint64_t order_ = 0, events_ = 0;
  std::size_t left_;  // steps that have not ended
  std::vector<event> heap_;
  std::vector<task> todo_;
  std::vector<std::uint32_t> ready_, asking_;  // messages: both steps have started; the sender has posted
  std::vector<double> started_, ended_;        // per step
  std::vector<std::uint32_t> open_, pending_, cause_, last_;
  std::vector<times> flow_;
  std::vector<double> free_send_, free_receive_;  // per class of ranks: when it can post again
  std::vector<lane> lane_;
  std::vector<std::uint32_t> active_;  // per place: ways that use it
  std::vector<double> since_, busy_;
};

/// Follows what a step waits for until it comes back or nobody is there.
template <class T>
failure flow_loop<T>::stuck() const {
  std::uint32_t g = 0;
  while (g < ended_.size() && ended_[g] >= 0) ++g;
  std::string text = "the plan hangs after " + to_string(seconds{now_}) + ": ";
  std::vector<std::uint32_t> seen;
  constexpr std::size_t shown = 8;
  while (seq::find(seen, g) == seen.end()) {
    seen.push_back(g);
    if (seen.size() <= shown) text += name(g);
    std::uint32_t other = flow_none;
    std::string how;
    if (started_[g] < 0) {
      for (const std::uint32_t a : m_.step_at(g).after) {
        const std::uint32_t s = g - m_.local_number(g) + a;
        if (ended_[s] < 0) other = s;
      }
      how = " waits for the end of ";
      if (other == flow_none) {
        how = " comes on its channel after ";
        for (std::uint32_t s = g; s-- > m_.first_step[m_.class_of_step[g]];)
          if (m_.next[s] == g) other = s;
      }
    } else {
      const auto look = [&](std::uint32_t x) -> bool {
        const flow_message& m = m_.messages[x];
        if (flow_[x].ended >= 0) return false;
        const bool sends = m.send_step == g;
        const std::uint32_t far = sends ? m.receive_step : m.send_step;
        const std::string peer = std::to_string(sends ? m.to.value : m.from.value);
        if (far == flow_none) {
          how = (sends ? " sends to rank " : " receives from rank ") + peer + ", which has no " +
                (sends ? "receive" : "send") + " for it";
          return true;
        }
        if (flow_[x].ready >= 0) {
          const std::uint32_t at = m_.shares.bottleneck(m.way);
          how = (sends ? " sends to rank " : " receives from rank ") + peer + " and gets no bandwidth";
          if (at != flow_none && at < m_.link_of.size()) how += " on link " + std::to_string(m_.link_of[at]);
          return true;
        }
        how = (sends ? " sends to rank " : " receives from rank ") + peer + ", for which must start ";
        other = far;
        return true;
      };
      bool found = false;
      for (std::uint32_t x = m_.first_send[g]; x < m_.first_send[g + 1] && !found; ++x) found = look(x);
      for (std::uint32_t i = m_.first_receive[g]; i < m_.first_receive[g + 1] && !found; ++i)
        found = look(m_.receives[i]);
    }
    if (seen.size() <= shown) text += how;
    if (other == flow_none) return fail(errc::bug, text);
    g = other;
  }
  const auto first = static_cast<std::size_t>(seq::find(seen, g) - seen.begin());
  return fail(errc::bug, text + (seen.size() > shown ? " … " : "") + name(g) + ": a circle of " +
                             std::to_string(seen.size() - first) + " waits");
}

}}}}  // namespace topocoll::v0::plan::detail
