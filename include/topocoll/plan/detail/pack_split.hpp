// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces switches by arcs between ranks without narrowing any cut that trees need.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/pack_bound.hpp>
#include <topocoll/plan/detail/pack_flow.hpp>
#include <topocoll/plan/detail/pack_network.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Ways from one node to another: lists of pieces of capacity, each along one route of arcs of a `pack_network`.
struct pack_routes {
  struct piece {
    std::int64_t amount;
    std::uint32_t first, count;  ///< in `arcs`
    std::uint32_t next;          ///< next piece of the pair
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> head;  ///< first piece per pair of nodes
  std::vector<piece> pieces;
  std::vector<std::uint32_t> arcs;

  explicit pack_routes(std::uint32_t n) : nodes(n), head(std::size_t{n} * n, none) {}
  [[nodiscard]] std::uint32_t& head_of(std::uint32_t u, std::uint32_t v) { return head[std::size_t{u} * nodes + v]; }
  [[nodiscard]] std::uint32_t head_of(std::uint32_t u, std::uint32_t v) const {
    return head[std::size_t{u} * nodes + v];
  }
  void add(std::uint32_t u, std::uint32_t v, std::int64_t amount, std::uint32_t first, std::uint32_t count) {
    pieces.push_back({amount, first, count, head_of(u, v)});
    head_of(u, v) = static_cast<std::uint32_t>(pieces.size() - 1);
  }
  /// Joins `amount` of u to w and w to t into ways from u to t; for u = t they are dropped.
  void join(std::uint32_t u, std::uint32_t w, std::uint32_t t, std::int64_t amount) {
    while (amount > 0) {
      std::uint32_t& a = head_of(u, w);
      std::uint32_t& b = head_of(w, t);
      piece &in = pieces[a], &out = pieces[b];
      std::int64_t both = in.amount < out.amount ? in.amount : out.amount;
      both = amount < both ? amount : both;
      in.amount -= both;
      out.amount -= both;
      amount -= both;
      const piece from = in, to = out;
      if (from.amount == 0) a = from.next;
      if (to.amount == 0) b = to.next;
      if (u == t) continue;
      const auto first = static_cast<std::uint32_t>(arcs.size());
      for (const piece* part : {&from, &to})
        for (std::uint32_t i = 0; i < part->count; ++i) {
          const std::uint32_t arc = arcs[part->first + i];
          arcs.push_back(arc);
        }
      add(u, t, both, first, from.count + to.count);
    }
  }
};

/// Splits switches off, one after the other.
///
/// Invariant: the flow from the source (last node; it feeds each rank what it is root of) to every rank is `all`. A plan
/// pairs the capacity into a switch with that out of it; where flows show that it narrows a cut too much, that part of
/// the plan is taken back, and the cut, now tight, tells which pairs no later plan may use. By the splitting theorems of
/// Mader and of Bang-Jensen, Frank and Jackson a safe pair exists as long as every switch has as much capacity in as out;
/// elsewhere the search may end without success.
template <class = void>
class switch_splitter {
 public:
  switch_splitter(const pack_network& net, std::span<const std::int64_t> count, std::span<const std::int64_t> feed)
      : ranks_(net.ranks), nodes_(net.nodes), flow_(net.nodes + 1), routes_(net.nodes) {
    fill(flow_, net, count, feed);
    for (const std::int64_t f : feed) all_ += f;
    for (std::uint32_t a = 0; a < net.arcs.size(); ++a) {
      if (count[a] <= 0) continue;
      routes_.arcs.push_back(a);
      routes_.add(net.arcs[a].from, net.arcs[a].to, count[a], static_cast<std::uint32_t>(routes_.arcs.size() - 1), 1);
    }
  }

  /// True when no switch is left. `budget` counts flows down; false also when it is used up.
  [[nodiscard]] bool run(std::int64_t& budget) {
    std::vector<bool> gone(nodes_, false);
    for (std::uint32_t left = nodes_ - ranks_; left > 0; --left) {
      // Fewest ports first: their pairs become ports of the larger ones.
      std::uint32_t best = nodes_, fewest = UINT32_MAX;
      for (std::uint32_t w = ranks_; w < nodes_; ++w) {
        if (gone[w]) continue;
        std::uint32_t ports = 0;
        for (std::uint32_t u = 0; u < nodes_; ++u) ports += flow_.capacity(u, w) > 0 || flow_.capacity(w, u) > 0;
        if (ports < fewest) {
          fewest = ports;
          best = w;
        }
      }
      gone[best] = true;
      if (!split(best, budget)) return false;
    }
    return true;
  }
  [[nodiscard]] const pack_routes& routes() const { return routes_; }

 private:
  struct pair {
    std::uint32_t from, to;
    std::int64_t amount;
  };
  using bits = std::vector<std::uint64_t>;

  bool split(std::uint32_t w, std::int64_t& budget) {
    for (;;) {
      std::vector<std::uint32_t> in, out;
      for (std::uint32_t u = 0; u < nodes_; ++u) {
        if (flow_.capacity(u, w) > 0) in.push_back(u);
        if (flow_.capacity(w, u) > 0) out.push_back(u);
      }
      if (in.empty() || out.empty()) {
        for (const std::uint32_t u : in) flow_.set(u, w, 0);
        for (const std::uint32_t u : out) flow_.set(w, u, 0);
        return true;
      }
      std::vector<pair> plan = pairing(w, in, out);
      if (plan.empty()) return false;
      for (const pair& p : plan) shift(w, p, p.amount);
      const std::size_t known = tight_.size();
      for (std::uint32_t v = 0; v < ranks_;) {
        if (--budget < 0) return false;
        const std::int64_t value = flow_.run(nodes_, v, all_);
        bits side;
        if (value < all_) side = flow_.source_side();
        flow_.undo();
        if (value >= all_)
          ++v;
        else
          take_back(w, plan, side, all_ - value);
      }
      for (const pair& p : plan) routes_.join(p.from, w, p.to, p.amount);
      // What was taken back for one cut may have widened another.
      std::size_t kept = known;
      for (std::size_t i = known; i < tight_.size(); ++i) {
        if (width(tight_[i]) != all_) continue;
        if (kept != i) tight_[kept] = std::move(tight_[i]);
        ++kept;
      }
      tight_.resize(kept);
    }
  }
  void shift(std::uint32_t w, const pair& p, std::int64_t amount) {
    flow_.add(p.from, w, -amount);
    flow_.add(w, p.to, -amount);
    if (p.from != p.to) flow_.add(p.from, p.to, amount);
  }
  /// A pair narrows the cuts that have both its ends on one side and the switch on the other.
  [[nodiscard]] static bool narrows(const bits& side, std::uint32_t w, std::uint32_t u, std::uint32_t t) {
    const bool here = has_bit(side, w);
    return has_bit(side, u) != here && has_bit(side, t) != here;
  }
  [[nodiscard]] std::int64_t width(const bits& side) const {
    std::int64_t sum = 0;
    for (std::uint32_t u = 0; u <= nodes_; ++u)
      for (std::uint32_t v = 0; has_bit(side, u) && v < nodes_; ++v)
        if (!has_bit(side, v)) sum += flow_.capacity(u, v);
    return sum;
  }
  void take_back(std::uint32_t w, std::vector<pair>& plan, const bits& side, std::int64_t missing) {
    std::int64_t pairs = 0;
    for (const pair& p : plan) pairs += p.amount > 0 && narrows(side, w, p.from, p.to);
    for (pair& p : plan) {
      if (p.amount == 0 || !narrows(side, w, p.from, p.to)) continue;
      std::int64_t part = (missing + pairs - 1) / pairs;
      part = part < p.amount ? part : p.amount;
      shift(w, p, -part);
      p.amount -= part;
      missing -= part;
      --pairs;
    }
    // What small pairs could not give back, the others do.
    for (pair& p : plan) {
      if (missing == 0) break;
      if (p.amount == 0 || !narrows(side, w, p.from, p.to)) continue;
      const std::int64_t part = missing < p.amount ? missing : p.amount;
      shift(w, p, -part);
      p.amount -= part;
      missing -= part;
    }
    tight_.push_back(side);
  }
  /// A pairing of the capacity in with that out, spread evenly, without pairs that some tight cut forbids.
  ///
  /// Pairs that have no other direct connection come first, those that return to where they came from (what they carry is
  /// dropped) last. Empty when nothing is allowed.
  [[nodiscard]] std::vector<pair> pairing(std::uint32_t w, const std::vector<std::uint32_t>& in,
                                          const std::vector<std::uint32_t>& out) {
    const auto rows = static_cast<std::uint32_t>(in.size()), columns = static_cast<std::uint32_t>(out.size());
    const std::uint32_t source = rows + columns, sink = source + 1;
    matrix_flow<std::int64_t> flow(sink + 1);
    std::int64_t total_in = 0, total_out = 0;
    for (std::uint32_t i = 0; i < rows; ++i) {
      flow.set(source, i, flow_.capacity(in[i], w));
      total_in += flow_.capacity(in[i], w);
    }
    for (std::uint32_t k = 0; k < columns; ++k) {
      flow.set(rows + k, sink, flow_.capacity(w, out[k]));
      total_out += flow_.capacity(w, out[k]);
    }
    const std::int64_t larger = total_in > total_out ? total_in : total_out;
    const std::int64_t wanted = total_in < total_out ? total_in : total_out;
    enum : std::uint8_t { forbidden, apart, adjacent, same };
    std::vector<std::uint8_t> sort(std::size_t{rows} * columns);
    for (std::uint32_t i = 0; i < rows; ++i)
      for (std::uint32_t k = 0; k < columns; ++k) {
        std::uint8_t& s = sort[std::size_t{i} * columns + k];
        s = in[i] == out[k] ? same : (joined(w, in[i], out[k]) ? adjacent : apart);
        for (const bits& side : tight_)
          if (narrows(side, w, in[i], out[k])) {
            s = forbidden;
            break;
          }
      }
    // Between ranks that are linked otherwise, a few wide ways make few trees; elsewhere many make shallow ones.
    bool linked = false;
    for (const std::uint32_t u : in)
      for (std::uint32_t v = 0; v < nodes_; ++v) linked = linked || (v != w && flow_.capacity(u, v) > 0);
    std::int64_t value = 0;
    std::vector<std::int64_t> limit(sort.size(), 0);
    for (const std::uint8_t now : {apart, adjacent, same})
      for (const std::int64_t times : {1, 2, 4, 16, 0}) {  // times the even share; 0: as much as fits
        if (value == wanted) break;
        if (now == apart && linked && times != 0) continue;
        for (std::uint32_t i = 0; i < rows; ++i)
          for (std::uint32_t k = 0; k < columns; ++k) {
            const std::size_t cell = std::size_t{i} * columns + k;
            if (sort[cell] != now) continue;
            const std::int64_t a = flow_.capacity(in[i], w), b = flow_.capacity(w, out[k]);
            const std::int64_t all = a < b ? a : b;
            const auto even = static_cast<std::int64_t>((int128{a} * b * times + larger - 1) / larger);
            const std::int64_t most = times == 0 || even > all ? all : even;
            if (most > limit[cell]) {
              flow.add(i, rows + k, most - limit[cell]);
              limit[cell] = most;
            }
          }
        value += flow.run(source, sink, wanted - value);
        flow.keep();
      }
    std::vector<pair> plan;
    for (std::uint32_t i = 0; i < rows; ++i)
      for (std::uint32_t k = 0; k < columns; ++k) {
        const std::int64_t sent = flow.capacity(rows + k, i);
        if (sent > 0) plan.push_back({in[i], out[k], sent});
      }
    return plan;
  }
  [[nodiscard]] bool joined(std::uint32_t w, std::uint32_t u, std::uint32_t t) const {
    if (flow_.capacity(u, t) > 0) return true;
    for (std::uint32_t x = ranks_; x < nodes_; ++x)
      if (x != w && flow_.capacity(u, x) > 0 && flow_.capacity(x, t) > 0) return true;
    return false;
  }

  std::uint32_t ranks_, nodes_;
  std::int64_t all_ = 0;
  matrix_flow<std::int64_t> flow_;
  pack_routes routes_;
  std::vector<bits> tight_;
};

}}}}  // namespace topocoll::v0::plan::detail
