// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maximum flow on a small network kept as a matrix, for many questions with few changes between them.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Residual capacities of all pairs of nodes, with one bit per pair that still has some.
///
/// Dinic's method on bit sets: a breadth-first layer costs nodes * nodes / 64 steps whatever the number of arcs, and what
/// a flow changed is put back by `undo`, so that the next question costs no copy. Precondition of all flows: the
/// capacities that a flow can use add up to less than 2^62.
template <class Int = std::int64_t>
class matrix_flow {
 public:
  explicit matrix_flow(std::uint32_t nodes) : n_(nodes), words_((nodes + 63) / 64) {
    rest_.assign(std::size_t{n_} * n_, 0);
    open_.assign(std::size_t{n_} * words_, 0);
  }
  [[nodiscard]] std::uint32_t nodes() const { return n_; }
  /// Capacity of a pair. Precondition of this and of `set`: no flow that is not undone.
  [[nodiscard]] Int capacity(std::uint32_t u, std::uint32_t v) const { return rest_[at(u, v)]; }
  void set(std::uint32_t u, std::uint32_t v, Int c) {
    rest_[at(u, v)] = c;
    mark(u, v, c > 0);
  }
  void add(std::uint32_t u, std::uint32_t v, Int c) { set(u, v, rest_[at(u, v)] + c); }

  /// Value of a maximum flow from s to t, at most `enough`; the flow stays until `undo`. Precondition: s != t.
  [[nodiscard]] Int run(std::uint32_t s, std::uint32_t t, Int enough) {
    Int value = 0;
    while (value < enough && layer(s, t)) value += block(s, enough - value);
    return value;
  }
  void undo() {
    for (std::size_t i = log_.size(); i-- > 0;) {
      const step& p = log_[i];
      rest_[at(p.u, p.v)] += p.amount;
      mark(p.u, p.v, true);
      Int& back = rest_[at(p.v, p.u)];
      back -= p.amount;
      mark(p.v, p.u, back > 0);
    }
    log_.clear();
  }
  /// Forgets how to undo: what was sent stays sent.
  void keep() { log_.clear(); }
  /// After a flow that gave less than `enough`: the nodes on the source side of the smallest minimum cut.
  [[nodiscard]] bool on_source_side(std::uint32_t v) const { return (seen_[v / 64] >> (v % 64) & 1U) != 0; }
  [[nodiscard]] const std::vector<std::uint64_t>& source_side() const { return seen_; }

 private:
  struct step {
    std::uint32_t u, v;
    Int amount;
  };
  [[nodiscard]] std::size_t at(std::uint32_t u, std::uint32_t v) const { return std::size_t{u} * n_ + v; }
  void mark(std::uint32_t u, std::uint32_t v, bool has) {
    const std::uint64_t bit = std::uint64_t{1} << (v % 64);
    std::uint64_t& word = open_[std::size_t{u} * words_ + v / 64];
    word = has ? word | bit : word & ~bit;
  }
  bool layer(std::uint32_t s, std::uint32_t t) {
    seen_.assign(words_, 0);
    levels_.assign(words_, 0);
    levels_[s / 64] |= std::uint64_t{1} << (s % 64);
    seen_ = levels_;
    depth_ = 0;
    for (;;) {
      const std::size_t here = std::size_t{depth_} * words_;
      levels_.resize(here + 2 * words_, 0);
      for (std::uint32_t w = 0; w < words_; ++w)
        for (std::uint64_t bits = levels_[here + w]; bits != 0; bits &= bits - 1) {
          const std::uint32_t v = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
          for (std::uint32_t x = 0; x < words_; ++x)
            levels_[here + words_ + x] |= open_[std::size_t{v} * words_ + x] & ~seen_[x];
        }
      bool any = false;
      for (std::uint32_t x = 0; x < words_; ++x) {
        const std::uint64_t fresh = levels_[here + words_ + x];
        seen_[x] |= fresh;
        any = any || fresh != 0;
      }
      ++depth_;
      if ((seen_[t / 64] >> (t % 64) & 1U) != 0) {
        for (std::uint32_t x = 0; x < words_; ++x) levels_[here + words_ + x] = 0;
        levels_[here + words_ + t / 64] = std::uint64_t{1} << (t % 64);
        return true;
      }
      if (!any) return false;
    }
  }
  /// Sends along the layers until they are blocked or `limit` is reached.
  Int block(std::uint32_t s, Int limit) {
    Int value = 0;
    path_.resize(depth_ + 1);
    path_[0] = s;
    std::uint32_t last = 0;  // the path so far is path_[0] to path_[last]
    for (;;) {
      const std::uint32_t v = path_[last];
      if (last == depth_) {
        Int width = limit - value;
        for (std::uint32_t i = 0; i < depth_; ++i) {
          const Int r = rest_[at(path_[i], path_[i + 1])];
          width = r < width ? r : width;
        }
        value += width;
        for (std::uint32_t i = depth_; i-- > 0;) {
          const std::uint32_t a = path_[i], b = path_[i + 1];
          Int& r = rest_[at(a, b)];
          r -= width;
          if (r == 0) {
            mark(a, b, false);
            last = i;  // the first arc that is full is where the next path begins to differ
          }
          rest_[at(b, a)] += width;
          mark(b, a, true);
          log_.push_back({a, b, width});
        }
        if (value >= limit) return value;
        continue;
      }
      const std::size_t next = std::size_t{last + 1} * words_;
      const std::uint64_t* open = &open_[std::size_t{v} * words_];
      std::uint32_t to = n_;
      for (std::uint32_t x = 0; x < words_; ++x) {
        const std::uint64_t bits = open[x] & levels_[next + x];
        if (bits != 0) {
          to = x * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
          break;
        }
      }
      if (to != n_) {
        path_[++last] = to;
        continue;
      }
      if (last == 0) return value;
      levels_[next - words_ + v / 64] &= ~(std::uint64_t{1} << (v % 64));
      --last;
    }
  }

  std::uint32_t n_, words_, depth_ = 0;
  std::vector<Int> rest_;
  std::vector<std::uint64_t> open_, levels_, seen_;
  std::vector<std::uint32_t> path_;
  std::vector<step> log_;
};

/// True when bit v of a set is 1.
[[nodiscard]] inline bool has_bit(const std::vector<std::uint64_t>& set, std::uint32_t v) {
  return (set[v / 64] >> (v % 64) & 1U) != 0;
}

}}}}  // namespace topocoll::v0::plan::detail
