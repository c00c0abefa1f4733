// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of the checker: which ends of messages meet, in what sequence everything can happen, and what is ordered at all.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/check_parts.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

enum class check_event : std::uint8_t { start, end, sent, received };

template <class = void>
class check_order {
 public:
  struct event {
    check_event what;
    std::uint32_t rank, step, op, message;
  };

  check_order(std::span<const program> all, check_log& log) : all_(all), log_(log) {
    base_.push_back(0);
    for (const program& p : all) base_.push_back(base_.back() + static_cast<std::uint32_t>(p.steps.size()));
    first_end_.assign(base_.back() + 1, 0);
  }

  [[nodiscard]] std::uint64_t messages() const { return messages_.size(); }
  /// Most messages on one channel from one rank to another.
  [[nodiscard]] std::uint32_t longest_lane() const { return longest_; }

  /// Finds for every send its receive: on each lane (from, to, channel) the first meets the first. False when some do not.
  [[nodiscard]] bool match() {
    struct end {
      std::uint64_t lane;
      std::uint32_t channel, rank, step, op;
    };
    std::vector<end> out, in;
    for (std::uint32_t r = 0; r < all_.size(); ++r)
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s) {
        const step& st = all_[r].steps[s];
        for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
          const op& x = all_[r].ops[o];
          if (check_reader::sends(x))
            out.push_back({std::uint64_t{r} << 32U | x.peer.value, st.channel, r, s, o});
          else if (check_reader::receives(x))
            in.push_back({std::uint64_t{x.peer.value} << 32U | r, st.channel, r, s, o});
        }
      }
    const auto before = [](const end& a, const end& b) {
      return a.lane != b.lane ? a.lane < b.lane : a.channel < b.channel;
    };
    seq::sort(out, before);
    seq::sort(in, before);
    bool fine = true;
    std::uint32_t place = 0;
    for (std::size_t i = 0, j = 0; i < out.size() || j < in.size();) {
      const bool only_out = j == in.size() || (i < out.size() && before(out[i], in[j]));
      const bool only_in = i == out.size() || (j < in.size() && before(in[j], out[i]));
      if (only_out || only_in) {
        const end& e = only_out ? out[i++] : in[j++];
        log_.add(check_kind::messages, check_reader{all_[e.rank]}.op_name(e.step, e.op) + ", is met by no " +
                                           (only_out ? "receive" : "send") + " on channel " +
                                           std::to_string(e.channel));
        fine = false;
        continue;
      }
      const end &a = out[i], &b = in[j];
      const op &x = all_[a.rank].ops[a.op], &y = all_[b.rank].ops[b.op];
      if (x.chunk != y.chunk || x.stride != y.stride || x.from.count != y.to.count) {
        log_.add(check_kind::messages, check_reader{all_[a.rank]}.op_name(a.step, a.op) + ", carries " +
                                           std::to_string(x.from.count) + " chunks from " +
                                           check_reader::first_chunk(x) + "; " +
                                           check_reader{all_[b.rank]}.op_name(b.step, b.op) + ", wants " +
                                           std::to_string(y.to.count) + " from " + check_reader::first_chunk(y));
        fine = false;
      }
      const bool goes_on = i > 0 && j > 0 && !before(out[i - 1], a) && !messages_.empty();
      place = goes_on ? place + 1 : 0;
      longest_ = std::max(longest_, place + 1);
      messages_.push_back({a.rank, a.step, a.op, b.rank, b.step, b.op, place});
      ++i;
      ++j;
    }
    // Ends of messages by step: sends first.
    for (const message& m : messages_) {
      ++first_end_[base_[m.from] + m.send_step + 1];
      ++first_end_[base_[m.to] + m.receive_step + 1];
    }
    for (std::size_t s = 1; s < first_end_.size(); ++s) first_end_[s] += first_end_[s - 1];
    ends_.resize(first_end_.back());
    std::vector<std::uint32_t> fill(first_end_.begin(), first_end_.end() - 1);
    for (std::uint32_t k = 0; k < messages_.size(); ++k) {
      ends_[fill[base_[messages_[k].from] + messages_[k].send_step]++] = 2 * k;
      ends_[fill[base_[messages_[k].to] + messages_[k].receive_step]++] = 2 * k + 1;
    }
    return fine;
  }

  /// Puts all events in an order in which they can happen when every lane holds `credits` messages; false when some never
  /// happen.
  ///
  /// Events: start and end of every step, and for every message that it is sent (its data are read) and received (they are
  /// written). A start waits for the start of the step before on its channel and the ends in `after`; an end for the start
  /// and all messages of the step; a message is sent when its step has started and there is a credit: without any, when the
  /// receiving step has started; with k, when the message k before it on its lane has been received. It is received when it
  /// has been sent and its receiving step has started.
  [[nodiscard]] bool sort(std::uint32_t credits) {
    const std::size_t steps = base_.back(), count = 2 * steps + 2 * messages_.size();
    edges_.clear();
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      std::vector<std::uint32_t> last(all_[r].channels, UINT32_MAX);
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s) {
        const step& st = all_[r].steps[s];
        const std::uint32_t g = base_[r] + s;
        edge(start(g), end(g));
        if (last[st.channel] != UINT32_MAX) edge(start(base_[r] + last[st.channel]), start(g));
        last[st.channel] = s;
        for (const std::uint32_t a : st.after) edge(end(base_[r] + a), start(g));
      }
    }
    for (std::uint32_t k = 0; k < messages_.size(); ++k) {
      const message& m = messages_[k];
      const std::uint32_t from = base_[m.from] + m.send_step, to = base_[m.to] + m.receive_step;
      edge(start(from), sent(k));
      edge(start(to), received(k));
      edge(sent(k), received(k));
      edge(sent(k), end(from));
      edge(received(k), end(to));
      if (credits == 0)
        edge(start(to), sent(k));
      else if (m.place >= credits)
        edge(received(k - credits), sent(k));  // messages of a lane follow each other
    }
    first_edge_.assign(count + 1, 0);
    open_.assign(count, 0);
    for (const auto& [a, b] : edges_) {
      ++first_edge_[a + 1];
      ++open_[b];
    }
    for (std::size_t i = 0; i < count; ++i) first_edge_[i + 1] += first_edge_[i];
    heads_.resize(edges_.size());
    std::vector<std::uint32_t> fill(first_edge_.begin(), first_edge_.end() - 1);
    for (const auto& [a, b] : edges_) heads_[fill[a]++] = b;
    sequence_.clear();
    for (std::uint32_t e = 0; e < count; ++e)
      if (open_[e] == 0) sequence_.push_back(e);
    for (std::size_t i = 0; i < sequence_.size(); ++i)
      for (std::uint32_t k = first_edge_[sequence_[i]]; k < first_edge_[sequence_[i] + 1]; ++k)
        if (--open_[heads_[k]] == 0) sequence_.push_back(heads_[k]);
    return sequence_.size() == count;
  }

  /// After a failed `sort`: the circle of waits in words.
  [[nodiscard]] std::string circle() const {
    std::vector<std::vector<std::uint32_t>> waits_for(open_.size());
    for (const auto& [a, b] : edges_)
      if (open_[a] != 0 && open_[b] != 0) waits_for[b].push_back(a);
    std::uint32_t e = 0;
    while (open_[e] == 0) ++e;
    std::vector<std::uint32_t> path;
    std::vector<bool> seen(open_.size(), false);
    while (!seen[e]) {
      seen[e] = true;
      path.push_back(e);
      e = waits_for[e].front();  // whoever is stuck waits for somebody who is stuck
    }
    path.erase(path.begin(), seq::find(path, e));
    constexpr std::size_t shown = 8;
    std::string text = "the ranks wait for each other: ";
    for (std::size_t i = 0; i < path.size() && i < shown; ++i) text += name(path[i]) + " needs that ";
    if (path.size() > shown) text += "… ";
    return text + name(path.front()) + " (" + std::to_string(path.size()) + " events in a circle)";
  }

  /// After a `sort` that came to an end.
  [[nodiscard]] std::vector<event> events() const {
    std::vector<event> all;
    all.reserve(sequence_.size());
    for (const std::uint32_t e : sequence_) all.push_back(told(e));
    return all;
  }
  /// The steps of a rank in the order of their starts.
  [[nodiscard]] const std::vector<std::uint32_t>& starts(std::uint32_t r) {
    if (starts_.empty()) {
      starts_.resize(all_.size());
      for (const std::uint32_t e : sequence_)
        if (e < 2 * base_.back() && e % 2 == 0) {
          const std::uint32_t who = rank_of(e / 2);
          starts_[who].push_back(e / 2 - base_[who]);
        }
    }
    return starts_[r];
  }

  /// Whether step `a` of a rank has surely ended before step `b` starts, whatever is buffered.
  [[nodiscard]] bool ended_before(std::uint32_t r, std::uint32_t a, std::uint32_t b) {
    if (floors_of_ != r) find_floors(r);
    const program& p = all_[r];
    if (floors_[std::size_t{b} * p.channels + p.steps[a].channel] > place_[a]) return true;
    return reaches(base_[r] + a, base_[r] + b);
  }

 private:
  struct message {
    std::uint32_t from, send_step, send_op, to, receive_step, receive_op, place;
  };
  [[nodiscard]] static std::uint32_t start(std::uint32_t g) { return 2 * g; }
  [[nodiscard]] static std::uint32_t end(std::uint32_t g) { return 2 * g + 1; }
  [[nodiscard]] std::uint32_t sent(std::uint32_t k) const { return 2 * base_.back() + 2 * k; }
  [[nodiscard]] std::uint32_t received(std::uint32_t k) const { return 2 * base_.back() + 2 * k + 1; }
  void edge(std::uint32_t a, std::uint32_t b) { edges_.push_back({a, b}); }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t g) const {
    std::uint32_t low = 0, high = static_cast<std::uint32_t>(all_.size());
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (base_[middle] <= g ? low : high) = middle;
    }
    return low;
  }
  [[nodiscard]] event told(std::uint32_t e) const {
    if (e < 2 * base_.back()) {
      const std::uint32_t r = rank_of(e / 2);
      return {e % 2 == 0 ? check_event::start : check_event::end, r, e / 2 - base_[r], 0, 0};
    }
    const std::uint32_t k = (e - 2 * base_.back()) / 2;
    const message& m = messages_[k];
    if (e % 2 == 0) return {check_event::sent, m.from, m.send_step, m.send_op, k};
    return {check_event::received, m.to, m.receive_step, m.receive_op, k};
  }
  [[nodiscard]] std::string name(std::uint32_t e) const {
    const event x = told(e);
    const check_reader who{all_[x.rank]};
    switch (x.what) {
      case check_event::start: return who.step_name(x.step) + " starts";
      case check_event::end: return who.step_name(x.step) + " ends";
      case check_event::sent:
        return who.step_name(x.step) + " has sent to rank " + std::to_string(messages_[x.message].to);
      case check_event::received:
        return who.step_name(x.step) + " has received from rank " + std::to_string(messages_[x.message].from);
    }
    return {};
  }

  /// For each step of a rank and each channel: so many first steps of the channel have ended when the step starts, by what
  /// the rank itself waits for.
  void find_floors(std::uint32_t r) {
    const program& p = all_[r];
    floors_of_ = r;
    floors_.assign(p.steps.size() * p.channels, 0);
    place_.assign(p.steps.size(), 0);
    std::vector<std::uint32_t> last(p.channels, UINT32_MAX);
    for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
      const std::uint32_t channel = p.steps[s].channel;
      const auto take = [&](std::uint32_t other) {
        for (std::uint32_t c = 0; c < p.channels; ++c) {
          std::uint32_t& mine = floors_[std::size_t{s} * p.channels + c];
          mine = std::max(mine, floors_[std::size_t{other} * p.channels + c]);
        }
      };
      if (last[channel] != UINT32_MAX) {
        place_[s] = place_[last[channel]] + 1;
        take(last[channel]);
      }
      last[channel] = s;
      for (const std::uint32_t a : p.steps[s].after) {
        take(a);
        std::uint32_t& mine = floors_[std::size_t{s} * p.channels + p.steps[a].channel];
        if (mine == place_[a]) ++mine;
      }
    }
  }

  /// The same by search backwards through everything that is ordered: waits of all ranks and their messages.
  [[nodiscard]] bool reaches(std::uint32_t a, std::uint32_t b) {
    if (mark_.size() != 2 * std::size_t{base_.back()}) mark_.assign(2 * std::size_t{base_.back()}, 0);
    if (previous_.empty()) find_previous();
    ++round_;
    todo_.assign(1, start(b));
    mark_[start(b)] = round_;
    const auto visit = [&](std::uint32_t e) {
      if (mark_[e] == round_) return;
      mark_[e] = round_;
      todo_.push_back(e);
    };
    while (!todo_.empty()) {
      const std::uint32_t e = todo_.back(), g = e / 2;
      todo_.pop_back();
      if (e == end(a)) return true;
      if (e % 2 == 1) {
        visit(start(g));
        for (std::uint32_t i = first_end_[g]; i < first_end_[g + 1]; ++i) {
          const message& m = messages_[ends_[i] / 2];
          if (ends_[i] % 2 == 1) visit(start(base_[m.from] + m.send_step));  // what has come in had begun to be sent
        }
        continue;
      }
      if (previous_[g] != UINT32_MAX) visit(start(previous_[g]));
      const std::uint32_t r = owner_[g];
      for (const std::uint32_t w : all_[r].steps[g - base_[r]].after) visit(end(base_[r] + w));
    }
    return false;
  }
  void find_previous() {
    previous_.assign(base_.back(), UINT32_MAX);
    owner_.assign(base_.back(), 0);
    for (std::uint32_t r = 0; r < all_.size(); ++r) {
      std::vector<std::uint32_t> last(all_[r].channels, UINT32_MAX);
      for (std::uint32_t s = 0; s < all_[r].steps.size(); ++s) {
        std::uint32_t& before = last[all_[r].steps[s].channel];
        owner_[base_[r] + s] = r;
        previous_[base_[r] + s] = before;
        before = base_[r] + s;
      }
    }
  }

  std::span<const program> all_;
  check_log& log_;
  std::vector<std::uint32_t> base_;  // first step of each rank, numbered through
  std::vector<message> messages_;    // lane by lane, in order
  std::uint32_t longest_ = 0;
  std::vector<std::uint32_t> first_end_, ends_;  // per step: its messages, times two, plus one for the receiving end
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> first_edge_, heads_, open_, sequence_;
  std::vector<std::vector<std::uint32_t>> starts_;
  std::uint32_t floors_of_ = UINT32_MAX;
  std::vector<std::uint32_t> floors_, place_;
  std::vector<std::uint32_t> mark_, todo_, previous_, owner_;
  std::uint32_t round_ = 0;
};

}}}}  // namespace topocoll::v0::plan::detail
