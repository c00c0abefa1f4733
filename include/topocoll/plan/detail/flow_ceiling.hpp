// SPDX-License-Identifier: Apache-2.0
#pragma once
// The longest that programs can take under max-min fairness, without simulating them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/flow_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// See `flow_simulator::ceiling` and docs/models/simulation.md for the proof.
template <class = void>
class flow_ceiling {
 public:
  flow_ceiling(const flow_model& m, const flow_prices& prices) : m_(m), prices_(prices) {}

  /// Time after launch; empty when the steps wait for each other in a circle or a message lacks an end.
  [[nodiscard]] std::optional<double> run() {
    find_loads();
    return longest();
  }

 private:
  struct entry {
    std::uint32_t place, rank, channel, connection;
    double share;
    [[nodiscard]] std::uint64_t group() const { return std::uint64_t{rank} << 12U | channel; }
  };
  /// One use of a place by a step: which step of its channel, and how much.
  struct use {
    std::uint32_t step;
    double load;
  };

  /// Steps of a channel, those that do something of a kind counted through.
  struct windows {
    std::vector<std::uint32_t> number;  ///< per step: so many of the kind come before it on its channel
    std::vector<std::uint32_t> ended;   ///< per step: so many first ones of the kind have surely ended when it starts
  };
  template <class Wanted>
  [[nodiscard]] windows find_windows(Wanted wanted) const {
    const std::size_t steps = m_.class_of_step.size();
    windows w;
    w.number.assign(steps, 0);
    w.ended.assign(steps, 0);
    for (std::uint32_t g = 0; g < steps; ++g) {
      const std::uint32_t first = g - m_.local_number(g);
      for (const std::uint32_t a : m_.step_at(g).after) {
        const std::uint32_t s = first + a;
        if (m_.step_at(s).channel != m_.step_at(g).channel) continue;
        const bool all = w.ended[s] == w.number[s];
        w.ended[g] = std::max(w.ended[g], all && wanted(s) ? w.number[s] + 1 : w.ended[s]);
      }
      if (m_.next[g] != flow_none) {
        w.number[m_.next[g]] = w.number[g] + (wanted(g) ? 1 : 0);
        w.ended[m_.next[g]] = std::max(w.ended[m_.next[g]], w.ended[g]);
      }
    }
    return w;
  }
  /// Most load of those that can be active at once: when step s of a channel is the last of its kind that has started,
  /// those from number `ended[s]` to s can be. `uses` are of one channel of one rank, in the order of the steps.
  [[nodiscard]] static double most(const std::vector<use>& uses, const windows& w) {
    double now = 0, worst = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      now += uses[i].load;
      while (w.number[uses[first].step] < w.ended[uses[i].step]) now -= uses[first++].load;
      worst = std::max(worst, now);
    }
    return worst;
  }

  void find_loads() {
    const std::size_t classes = m_.connection_of.size();
    const windows sending = find_windows([&](std::uint32_t g) { return m_.first_send[g] != m_.first_send[g + 1]; });
    // Steps that send on each class of connections, in order.
    std::vector<std::vector<use>> sends(classes);
    for (const flow_message& x : m_.messages)
      if (x.send_step != flow_none) sends[x.connection].push_back({x.send_step, 1});
    std::vector<double> alone(classes);
    for (std::size_t q = 0; q < classes; ++q) alone[q] = most(sends[q], sending);

    load_.assign(m_.shares.place_count(), 0);
    std::vector<entry> all;
    for (const flow_connection& c : m_.connections) {
      const auto at = static_cast<std::size_t>(&c - m_.connections.data());
      for (const flow_route::part& x : m_.routes[c.route].parts) {
        const std::uint32_t l = m_.link_class[x.link];
        if (m_.link_of[l] == x.link) all.push_back({l, c.from, c.channel, m_.connection_class[at], x.share});
      }
    }
    std::sort(all.begin(), all.end(), [](const entry& a, const entry& b) {
      return a.place != b.place ? a.place < b.place : a.group() < b.group();
    });
    std::vector<use> together;
    for (std::size_t i = 0; i < all.size();) {
      std::size_t j = i + 1;
      while (j < all.size() && all[j].place == all[i].place && all[j].group() == all[i].group()) ++j;
      if (j == i + 1) {
        load_[all[i].place] += all[i].share * alone[all[i].connection];
      } else {
        together.clear();
        for (std::size_t k = i; k < j; ++k)
          for (const use& u : sends[all[k].connection]) together.push_back({u.step, all[k].share});
        std::sort(together.begin(), together.end(), [](const use& a, const use& b) { return a.step < b.step; });
        load_[all[i].place] += most(together, sending);
      }
      i = j;
    }
    find_rank_loads(sending);
  }

  /// What a rank can have to reduce, to send and to receive at once.
  void find_rank_loads(const windows& sending) {
    const std::size_t ranks = m_.rank_of.size(), links = m_.link_of.size();
    send_wait_.assign(ranks, 0);
    receive_wait_.assign(ranks, 0);
    least_out_.assign(ranks, 1e300);
    least_in_.assign(ranks, 1e300);
    const auto receives = [&](std::uint32_t g) { return m_.first_receive[g] != m_.first_receive[g + 1]; };
    const windows receiving = find_windows(receives);
    const windows working =
        find_windows([&](std::uint32_t g) { return receives(g) || m_.first_local[g] != m_.first_local[g + 1]; });
    std::vector<std::vector<use>> sums, out, in;
    for (std::uint32_t c = 0; c < ranks; ++c) {
      const std::uint32_t channels = m_.programs[c]->channels;
      for (auto* lists : {&sums, &out, &in}) lists->assign(channels, {});
      for (std::uint32_t g = m_.first_step[c]; g < m_.first_step[c + 1]; ++g) {
        const std::uint32_t channel = m_.step_at(g).channel;
        for (std::uint32_t l = m_.first_local[g]; l < m_.first_local[g + 1]; ++l)
          for (const fair_use& u : m_.shares.uses(m_.locals[l].way)) sums[channel].push_back({g, u.share});
        for (std::uint32_t x = m_.first_send[g]; x < m_.first_send[g + 1]; ++x) {
          out[channel].push_back({g, 1});
          least_out_[c] = std::min(least_out_[c], m_.messages[x].latency);
        }
        for (std::uint32_t i = m_.first_receive[g]; i < m_.first_receive[g + 1]; ++i) {
          const flow_message& x = m_.messages[m_.receives[i]];
          in[channel].push_back({g, 1});
          least_in_[c] = std::min(least_in_[c], x.latency);
          if (x.reduces) sums[channel].push_back({g, 1});
        }
      }
      for (std::uint32_t k = 0; k < channels; ++k) {
        if (!m_.engine_class.empty()) load_[links + c] += most(sums[k], working);
        send_wait_[c] += most(out[k], sending);
        receive_wait_[c] += most(in[k], receiving);
      }
    }
  }

  /// Wait for earlier posts of a rank that can have `others` + 1 messages under way. Those that are over are no reason to
  /// wait when each of them took longer than a post.
  [[nodiscard]] double posting(double most_at_once, double least_latency) const {
    if (most_at_once < 1) return 0;
    return prices_.post * (least_latency >= prices_.post ? most_at_once - 1 : most_at_once);
  }
  [[nodiscard]] double slowest(std::uint32_t way, double amount) const {
    double worst = 0;
    for (const fair_use& u : m_.shares.uses(way)) worst = std::max(worst, load_[u.place] / capacity(u.place));
    return amount * worst;
  }
  [[nodiscard]] double capacity(std::uint32_t place) const {
    return place < m_.link_of.size() ? prices_.rate[m_.link_of[place]] : prices_.reduce_rate;
  }

  [[nodiscard]] std::optional<double> longest() {
    const std::size_t steps = m_.class_of_step.size();
    // A step starts after those it waits for; a flow runs when its steps have started; a step ends with its flows.
    std::vector<double> start(steps, 0), end(steps, 0);
    std::vector<std::uint32_t> open = m_.open, pending(steps, 1), sides(m_.messages.size(), 0);
    for (const flow_message& x : m_.messages) {
      if (x.send_step == flow_none || x.receive_step == flow_none) return std::nullopt;
      ++pending[x.send_step];
      ++pending[x.receive_step];
    }
    std::vector<std::uint32_t> todo;
    for (std::uint32_t g = 0; g < steps; ++g)
      if (open[g] == 0) todo.push_back(g);
    std::size_t over = 0;
    double last = 0;
    const auto release = [&](std::uint32_t g, double time) {
      start[g] = std::max(start[g], time);
      if (--open[g] == 0) todo.push_back(g);
    };
    std::vector<std::uint32_t> ending;
    const auto done = [&](std::uint32_t g, double time) {
      end[g] = std::max(end[g], time);
      if (--pending[g] == 0) ending.push_back(g);
    };
    const auto side = [&](std::uint32_t x) {
      if (++sides[x] != 2) return;
      const flow_message& m = m_.messages[x];
      const std::uint32_t from = m_.class_of_step[m.send_step], to = m_.class_of_step[m.receive_step];
      const double time = std::max(start[m.send_step], start[m.receive_step]) +
                          posting(send_wait_[from], least_out_[from]) + posting(receive_wait_[to], least_in_[to]) +
                          m.latency + slowest(m.way, m.amount);
      done(m.send_step, time);
      done(m.receive_step, time);
    };
    while (!todo.empty() || !ending.empty()) {
      if (!ending.empty()) {
        const std::uint32_t g = ending.back();
        ending.pop_back();
        ++over;
        last = std::max(last, end[g]);
        for (std::uint32_t i = m_.first_waiter[g]; i < m_.first_waiter[g + 1]; ++i) release(m_.waiters[i], end[g]);
        continue;
      }
      const std::uint32_t g = todo.back();
      todo.pop_back();
      for (std::uint32_t x = m_.first_send[g]; x < m_.first_send[g + 1]; ++x) side(x);
      for (std::uint32_t i = m_.first_receive[g]; i < m_.first_receive[g + 1]; ++i) side(m_.receives[i]);
      double own = start[g];
      for (std::uint32_t l = m_.first_local[g]; l < m_.first_local[g + 1]; ++l)
        own = std::max(own, start[g] + slowest(m_.locals[l].way, m_.locals[l].amount));
      if (m_.next[g] != flow_none) release(m_.next[g], start[g]);
      done(g, own);
    }
    if (over != steps) return std::nullopt;
    return last;
  }

  const flow_model& m_;
  const flow_prices& prices_;
  std::vector<double> load_;                      // per place: most load per rate at once
  std::vector<double> send_wait_, receive_wait_;  // per class of ranks: most messages under way at once
  std::vector<double> least_out_, least_in_;      // least latency of a message
};

}}}}  // namespace topocoll::v0::plan::detail
