// SPDX-License-Identifier: Apache-2.0
#pragma once
// From programs to a flow model: connections and their routes, classes of what stays alike, one rank of each class.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/flow_classes.hpp>
#include <topocoll/plan/detail/flow_model.hpp>
#include <topocoll/plan/detail/flow_routes.hpp>
#include <topocoll/plan/flow_options.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Whether numbers in a program are in range, so that it can be run without looking again.
template <class = void>
[[nodiscard]] result<void> runnable(const program& p, const problem& q, std::uint32_t rank) {
  const std::string me = "the program of rank " + std::to_string(rank);
  if (p.rank.value != rank || p.ranks != q.rank_count() || p.collective != q.collective || p.chunks == 0 ||
      (sharded(p.collective) && p.chunks % p.ranks != 0))
    return fail(errc::invalid_argument, me + " is about rank " + std::to_string(p.rank.value) + " of " +
                                            std::to_string(p.ranks) + " in " + std::string(to_string(p.collective)) +
                                            " with " + std::to_string(p.chunks) + " chunks, the problem about " +
                                            std::string(to_string(q.collective)) + " of " +
                                            std::to_string(q.rank_count()));
  std::uint32_t next = 0;
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    const step& st = p.steps[s];
    bool fits = st.first_op == next && st.op_count <= p.ops.size() - next && st.channel < p.channels;
    for (const std::uint32_t a : st.after) fits = fits && a < s;
    if (!fits) return fail(errc::invalid_argument, me + ": step " + std::to_string(s) + " names what is not there");
    next += st.op_count;
  }
  if (next != p.ops.size()) return fail(errc::invalid_argument, me + " has operations that belong to no step");
  for (const op& o : p.ops) {
    const bool message = o.kind == op_kind::send || o.kind == op_kind::receive || o.kind == op_kind::receive_reduce;
    const std::uint32_t count = o.kind == op_kind::receive ? o.to.count : o.from.count;
    if (!names_chunks(p, o, count) || (message && (o.peer.value >= p.ranks || o.peer == p.rank)))
      return fail(errc::invalid_argument, me + " has an operation on chunk " + std::to_string(o.chunk) + " with rank " +
                                              std::to_string(o.peer.value) + ", which is not there");
  }
  return {};
}

template <class Programs>
class flow_builder {
 public:
  flow_builder(const topo::graph& g, const flow_prices& prices, router<>& routes, const problem& p, Programs& programs,
               const flow_options& options)
      : g_(g),
        prices_(prices),
        p_(p),
        programs_(programs),
        options_(options),
        routes_(g, prices, routes, p, programs.ways(), programs.switch_ways(), options, m_) {}

  [[nodiscard]] result<flow_model> run() {
    const std::uint32_t n = programs_.count();
    if (n != p_.rank_count() || n == 0)
      return fail(errc::invalid_argument,
                  std::to_string(n) + " programs were given for " + std::to_string(p_.rank_count()) + " ranks");
    if (n >= (1U << 24U)) return fail(errc::unsupported, "more than 16 million ranks are not simulated");
    for (const node_id v : p_.ranks)
      if (v.value >= g_.node_count())
        return fail(errc::invalid_argument, "a rank sits on node " + std::to_string(v.value) +
                                                ", but the graph has only " + std::to_string(g_.node_count()) +
                                                " nodes");
    for (const way& w : programs_.ways())
      for (const link_id e : w.links)
        if (e.value >= g_.link_count())
          return fail(errc::invalid_argument, "a way of the plan takes link " + std::to_string(e.value) +
                                                  ", but the graph has only " + std::to_string(g_.link_count()));
    if (auto fits = check_shares(p_); !fits) return fits.error();
    place_shards();
    marks_.resize(n);
    for (std::uint32_t r = 0; r < n; ++r)
      if (auto seen = scan(r); !seen) return seen.error();
    classify();
    if (auto made = copy_programs(); !made) return made.error();
    add_places();
    add_ways();
    for (std::uint32_t c = 0; c < m_.rank_of.size(); ++c) add_steps(c);
    m_.first_send.push_back(static_cast<std::uint32_t>(m_.messages.size()));
    m_.first_local.push_back(static_cast<std::uint32_t>(m_.locals.size()));
    add_receives();
    add_waits();
    return std::move(m_);
  }

 private:
  /// Elements before each shard, where shards differ: every share of the size, rounded up.
  void place_shards() {
    double all = 0;
    for (const std::uint64_t s : p_.shares) all += static_cast<double>(s);
    const double cell = options_.element.value == 0 ? 1 : static_cast<double>(options_.element.value);
    if (!p_.shares.empty()) starts_.assign(1, 0);
    for (const std::uint64_t s : p_.shares) {
      const double exact = static_cast<double>(p_.size.value) * (static_cast<double>(s) / all) / cell;
      starts_.push_back(starts_.back() + static_cast<std::uint64_t>(exact * (1 - 1e-12) + 0.999999));
    }
  }
  [[nodiscard]] double amount_of(const program& p, const op& o) const {
    const slice& s = o.kind == op_kind::receive ? o.to : o.from;
    const std::uint64_t units = sharded(p.collective) ? p.ranks : 1;
    const std::uint64_t cell = options_.element.value == 0 ? 1 : options_.element.value;
    const std::uint64_t per_unit = (p_.size.value + units * cell - 1) / (units * cell);
    const chunk_grid grid =
        starts_.empty() ? grid_of(p.collective, p.ranks, p.chunks, per_unit) : grid_of(p.chunks, starts_);
    std::uint64_t elements = grid.begin(o.chunk + s.count) - grid.begin(o.chunk);
    if (o.stride != 1 && !grid.even()) {
      elements = 0;
      for (std::uint32_t i = 0; i < s.count; ++i)
        elements += grid.begin(o.chunk_at(i, p.chunks) + 1) - grid.begin(o.chunk_at(i, p.chunks));
    }
    return static_cast<double>(elements * cell);
  }
  /// False for what costs nothing: empty messages, and copies to where the data lie.
  [[nodiscard]] bool counts(const op& o, double amount) const {
    if (!(amount > 0)) return false;
    if (o.kind != op_kind::copy || !options_.in_place) return true;
    return o.from.where == buffer::scratch || o.to.where == buffer::scratch || o.from.first != o.to.first;
  }
  [[nodiscard]] static bool is_message(op_kind k) { return k != op_kind::copy && k != op_kind::reduce; }

  // ---- connections

  [[nodiscard]] std::uint32_t connection(std::uint32_t rank, const step& st, const op& o) {
    const bool sends = o.kind == op_kind::send;
    const std::uint32_t from = sends ? rank : o.peer.value, to = sends ? o.peer.value : rank;
    const std::uint32_t taken = programs_.way_of(rank, st, o);
    const std::uint64_t pair = std::uint64_t{from} << 32U | to;
    std::uint32_t number = pairs_.find(pair);
    if (number == number_map::absent) {
      number = pair_count_++;
      pairs_.insert(pair, number);
    }
    const std::uint64_t key = std::uint64_t{number} << 32U | std::uint64_t{st.channel} << 20U | taken;
    std::uint32_t c = by_key_.find(key);
    if (c != number_map::absent) return c;
    c = static_cast<std::uint32_t>(m_.connections.size());
    by_key_.insert(key, c);
    flow_connection made;
    made.from = from;
    made.to = to;
    made.channel = st.channel;
    made.way = taken;
    m_.connections.push_back(made);
    return c;
  }

  /// Collects the connections of a rank and the hash of what it does.
  [[nodiscard]] result<void> scan(std::uint32_t r) {
    const auto given = programs_.at(r);
    if (!given) return given.error();
    const program& p = **given;
    if (auto fits = runnable(p, p_, r); !fits) return fits;
    if (programs_.switch_ways().size() >= (1U << 16U))
      return fail(errc::unsupported, "more than 65,536 kinds of groups at switches are not simulated");
    if (p.channels > (1U << 12U) || programs_.ways().size() + programs_.switch_ways().size() >= (1U << 20U))
      return fail(errc::unsupported, "more than 4,096 channels or a million ways are not simulated");
    const std::size_t before = m_.connections.size();
    std::uint64_t mark = p.steps.size();
    const auto say = [&](std::uint64_t x) { mark = mixed(mark ^ x); };
    for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
      const step& st = p.steps[s];
      say(std::uint64_t{st.channel} << 32U | st.stage);
      say(std::uint64_t{st.op_count} << 32U | st.after.size());
      for (const std::uint32_t a : st.after) say(a);
      for (std::uint32_t i = st.first_op; i < st.first_op + st.op_count; ++i) {
        const op& o = p.ops[i];
        const double amount = amount_of(p, o);
        if (!counts(o, amount)) continue;
        const auto size = static_cast<std::uint64_t>(amount);
        say(std::uint64_t{i} << 8U | static_cast<std::uint64_t>(o.kind));
        say(size);
        if (!is_message(o.kind)) continue;
        flow_connection& c = m_.connections[connection(r, st, o)];
        const bool sends = o.kind == op_kind::send;
        std::uint64_t& end = sends ? c.send_mark : c.receive_mark;
        end = mixed(mixed(end ^ (std::uint64_t{i} << 2U)) ^ size);
        ++(sends ? c.sends : c.receives);
        m_.all_messages += sends ? 1 : 0;
      }
    }
    marks_[r] = mark;
    for (std::size_t c = before; c < m_.connections.size(); ++c)
      if (auto found = routes_.find(m_.connections[c]); !found) return found;
    return {};
  }

  // ---- classes

  void classify() {
    flow_classes<> found(m_, marks_, prices_);
    found.run(options_.group);
  }

  [[nodiscard]] result<void> copy_programs() {
    for (const std::uint32_t r : m_.rank_of) {
      const auto kept = programs_.keep(r);
      if (!kept) return kept.error();
      m_.programs.push_back(*kept);
    }
    return {};
  }

  void add_places() {
    for (const std::uint32_t e : m_.link_of) m_.shares.add_place(prices_.rate[e]);
    if (!(prices_.reduce_rate > 0)) return;
    for (std::uint32_t c = 0; c < m_.rank_of.size(); ++c) {
      m_.shares.add_place(prices_.reduce_rate);
      m_.engine_class.push_back(c);
    }
  }
  [[nodiscard]] std::uint32_t engine_of(std::uint32_t rank_class) const {
    return static_cast<std::uint32_t>(m_.link_of.size()) + rank_class;
  }

  /// Load of each class of connections on one link of each class: added up over all of them that use the example link.
  void add_ways() {
    const std::size_t classes = m_.connection_of.size();
    std::vector<std::uint32_t> first(classes + 1, 0), order(m_.connections.size());
    for (const std::uint32_t q : m_.connection_class) ++first[q + 1];
    for (std::size_t q = 0; q < classes; ++q) first[q + 1] += first[q];
    std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
    for (std::uint32_t c = 0; c < m_.connections.size(); ++c) order[fill[m_.connection_class[c]]++] = c;
    std::vector<double> load(m_.link_of.size(), 0);
    std::vector<fair_use> uses;
    m_.plain_way.assign(classes, flow_none);
    m_.sum_way.assign(classes, flow_none);
    for (std::uint32_t q = 0; q < classes; ++q) {
      uses.clear();
      for (std::uint32_t i = first[q]; i < first[q + 1]; ++i)
        for (const flow_route::part& x : m_.routes[m_.connections[order[i]].route].parts) {
          const std::uint32_t l = m_.link_class[x.link];
          if (m_.link_of[l] != x.link) continue;
          if (load[l] == 0) uses.push_back({l, 0});
          load[l] += x.share;
        }
      for (fair_use& u : uses) {
        u.share = load[u.place];
        load[u.place] = 0;
      }
      m_.plain_way[q] = m_.shares.add_way(uses);
      if (!(prices_.reduce_rate > 0) || m_.routes[m_.connections[m_.connection_of[q]].route].switched) {
        m_.sum_way[q] = m_.plain_way[q];
        continue;
      }
      uses.push_back({engine_of(m_.rank_class[m_.connections[m_.connection_of[q]].to]), 1});
      m_.sum_way[q] = m_.shares.add_way(uses);
    }
    first_of_.assign(classes + 1, 0);
    for (std::size_t q = 0; q < classes; ++q) {
      const flow_connection& c = m_.connections[m_.connection_of[q]];
      first_of_[q + 1] = first_of_[q] + std::max(c.sends, c.receives);
    }
    sent_.assign(classes, 0);
    received_.assign(classes, 0);
    message_at_.assign(first_of_.back(), flow_none);
  }

  // ---- steps of the examples

  void add_steps(std::uint32_t c) {
    const program& p = *m_.programs[c];
    m_.first_step.push_back(static_cast<std::uint32_t>(m_.class_of_step.size()));
    std::uint32_t copy_way = flow_none, reduce_way = flow_none, no_way = flow_none;
    const auto local_way = [&](op_kind k, bool in_switch) {
      if (in_switch) {  // what the program adds up, the switch has added
        if (no_way == flow_none) no_way = m_.shares.add_way({});
        return no_way;
      }
      std::uint32_t& w = k == op_kind::copy ? copy_way : reduce_way;
      if (w == flow_none && prices_.reduce_rate > 0) {
        // A reduction reads two operands and writes one; a copy reads one and writes one.
        const fair_use use{engine_of(c), k == op_kind::copy ? 2.0 / 3 : 1.0};
        w = m_.shares.add_way({&use, 1});
      } else if (w == flow_none) {
        w = m_.shares.add_way({});
      }
      return w;
    };
    std::vector<std::uint32_t> last(p.channels, flow_none);
    for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
      const step& st = p.steps[s];
      const auto g = static_cast<std::uint32_t>(m_.class_of_step.size());
      m_.class_of_step.push_back(c);
      m_.next.push_back(flow_none);
      m_.open.push_back(static_cast<std::uint32_t>(st.after.size()));
      m_.first_send.push_back(static_cast<std::uint32_t>(m_.messages.size()));
      m_.first_local.push_back(static_cast<std::uint32_t>(m_.locals.size()));
      if (last[st.channel] != flow_none) {
        m_.next[last[st.channel]] = g;
        ++m_.open[g];
      }
      last[st.channel] = g;
      for (std::uint32_t i = st.first_op; i < st.first_op + st.op_count; ++i) {
        const op& o = p.ops[i];
        const double amount = amount_of(p, o);
        if (!counts(o, amount)) continue;
        if (o.kind == op_kind::send) {
          const std::uint32_t q = m_.connection_class[connection(m_.rank_of[c], st, o)];
          flow_message x;
          x.send_step = g;
          x.send_op = i;
          x.connection = q;
          x.way = m_.plain_way[q];
          x.amount = amount;
          x.latency = m_.routes[m_.connections[m_.connection_of[q]].route].latency;
          x.from = rank_id{m_.rank_of[c]};
          x.to = o.peer;
          message_at_[first_of_[q] + sent_[q]++] = static_cast<std::uint32_t>(m_.messages.size());
          m_.messages.push_back(x);
        } else if (!is_message(o.kind)) {
          m_.locals.push_back({g, local_way(o.kind, programs_.in_switch(st.stage)), i, amount});
        }
      }
    }
    if (c + 1 == m_.rank_of.size()) m_.first_step.push_back(static_cast<std::uint32_t>(m_.class_of_step.size()));
  }

  /// The other ends. A receive that nobody sends for becomes a message without a sender, which never starts.
  void add_receives() {
    for (std::uint32_t g = 0; g < m_.class_of_step.size(); ++g) {
      m_.first_receive.push_back(static_cast<std::uint32_t>(m_.receives.size()));
      const program& p = m_.program_of(g);
      const step& st = m_.step_at(g);
      for (std::uint32_t i = st.first_op; i < st.first_op + st.op_count; ++i) {
        const op& o = p.ops[i];
        if (o.kind != op_kind::receive && o.kind != op_kind::receive_reduce) continue;
        if (!counts(o, amount_of(p, o))) continue;
        const std::uint32_t q = m_.connection_class[connection(m_.rank_at(g), st, o)];
        std::uint32_t& at = message_at_[first_of_[q] + received_[q]++];
        if (at == flow_none) {
          at = static_cast<std::uint32_t>(m_.messages.size());
          flow_message lonely;
          lonely.from = o.peer;
          lonely.to = rank_id{m_.rank_at(g)};
          lonely.connection = q;
          m_.messages.push_back(lonely);
        }
        flow_message& x = m_.messages[at];
        x.receive_step = g;
        x.receive_op = i;
        x.reduces = o.kind == op_kind::receive_reduce && !m_.routes[m_.connections[m_.connection_of[q]].route].switched;
        if (x.reduces) x.way = m_.sum_way[q];
        m_.receives.push_back(at);
      }
    }
    m_.first_receive.push_back(static_cast<std::uint32_t>(m_.receives.size()));
  }

  void add_waits() {
    const std::size_t steps = m_.class_of_step.size();
    m_.first_waiter.assign(steps + 1, 0);
    for (std::uint32_t g = 0; g < steps; ++g)
      for (const std::uint32_t a : m_.step_at(g).after) ++m_.first_waiter[g - m_.local_number(g) + a + 1];
    for (std::size_t g = 0; g < steps; ++g) m_.first_waiter[g + 1] += m_.first_waiter[g];
    m_.waiters.resize(m_.first_waiter.back());
    std::vector<std::uint32_t> fill(m_.first_waiter.begin(), m_.first_waiter.end() - 1);
    for (std::uint32_t g = 0; g < steps; ++g)
      for (const std::uint32_t a : m_.step_at(g).after) m_.waiters[fill[g - m_.local_number(g) + a]++] = g;
  }

  const topo::graph& g_;
  const flow_prices& prices_;
  const problem& p_;
  Programs& programs_;
  const flow_options& options_;
  flow_model m_{};
  std::vector<std::uint64_t> marks_;   // per rank: hash of what it does
  std::vector<std::uint64_t> starts_;  // of the shards in elements; empty where they are equal
  flow_routes<> routes_;
  number_map pairs_, by_key_;
  std::uint32_t pair_count_ = 0;
  std::vector<std::uint32_t> first_of_, sent_, received_, message_at_;
};

}}}}  // namespace topocoll::v0::plan::detail
