// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the checker: which places exist, names for people, and sets of ranks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/plan/check_report.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Where failures go.
struct check_log {
  check_report& report;
  std::size_t most;

  void add(check_kind what, std::string sentence) {
    if (report.failures.size() < most) report.failures.push_back({what, std::move(sentence)});
  }
};

/// One program as its text describes it.
struct check_reader {
  const program& p;

  [[nodiscard]] std::uint32_t shard() const { return sharded(p.collective) ? p.chunks / p.ranks : p.chunks; }
  [[nodiscard]] bool mine(std::uint32_t chunk) const { return chunk / shard() == p.rank.value; }
  /// Whether the rank has this chunk of input: what it contributes.
  [[nodiscard]] bool has_input(std::uint32_t chunk) const {
    if (chunk >= p.chunks) return false;
    if (p.collective == collective_kind::all_gather || p.collective == collective_kind::gather) return mine(chunk);
    if (p.collective == collective_kind::broadcast || p.collective == collective_kind::scatter) return p.rank == p.root;
    return true;
  }
  /// Whether the rank has this chunk of output: what it is promised.
  [[nodiscard]] bool has_output(std::uint32_t chunk) const {
    if (chunk >= p.chunks) return false;
    if (p.collective == collective_kind::reduce_scatter || p.collective == collective_kind::scatter) return mine(chunk);
    if (p.collective == collective_kind::reduce || p.collective == collective_kind::gather) return p.rank == p.root;
    return true;
  }
  [[nodiscard]] bool has(buffer where, std::uint32_t cell) const {
    if (where == buffer::input) return has_input(cell);
    if (where == buffer::output) return has_output(cell);
    return where == buffer::scratch && cell < p.scratch_cells;
  }

  [[nodiscard]] static bool sends(const op& o) { return o.kind == op_kind::send; }
  [[nodiscard]] static bool receives(const op& o) {
    return o.kind == op_kind::receive || o.kind == op_kind::receive_reduce;
  }
  [[nodiscard]] static bool reads(const op& o) { return o.kind != op_kind::receive; }
  [[nodiscard]] static bool writes(const op& o) { return o.kind != op_kind::send; }
  [[nodiscard]] static std::uint32_t count(const op& o) { return reads(o) ? o.from.count : o.to.count; }

  /// The i-th chunk that an operation is about; precondition: the shape of the operation is right.
  [[nodiscard]] std::uint32_t chunk_of(const op& o, std::uint32_t i) const {
    return o.stride == 1 ? o.chunk + i : static_cast<std::uint32_t>((o.chunk + std::uint64_t{o.stride} * i) % p.chunks);
  }

  /// Name of the first of them.
  [[nodiscard]] static std::string first_chunk(const op& o) {
    return std::to_string(o.chunk) + (o.stride == 1 ? "" : ", every " + std::to_string(o.stride) + "th");
  }

  [[nodiscard]] std::string step_name(std::uint32_t s) const {
    std::string text = "rank " + std::to_string(p.rank.value) + " in step " + std::to_string(s);
    if (s < p.steps.size() && p.steps[s].stage < p.stages.size()) text += " (" + p.stages[p.steps[s].stage] + ")";
    return text;
  }
  [[nodiscard]] std::string op_name(std::uint32_t s, std::uint32_t o) const {
    const op& x = p.ops[o];
    std::string text = step_name(s) + ", operation " + std::to_string(o) + ", ";
    switch (x.kind) {
      case op_kind::send: return text + "a send to rank " + std::to_string(x.peer.value);
      case op_kind::receive: return text + "a receive from rank " + std::to_string(x.peer.value);
      case op_kind::receive_reduce: return text + "a reducing receive from rank " + std::to_string(x.peer.value);
      case op_kind::copy: return text + "a copy";
      case op_kind::reduce: return text + "a reduction";
    }
    return text + "of no known kind";
  }
  [[nodiscard]] static std::string cell_name(buffer where, std::uint32_t cell) {
    if (where == buffer::scratch) return "cell " + std::to_string(cell) + " of scratch";
    return "chunk " + std::to_string(cell) + (where == buffer::input ? " of the input" : " of the output");
  }
};

/// Sets of ranks, each kept once, as sorted runs of consecutive ranks.
class rank_sets {
 public:
  rank_sets() { (void)keep({}); }

  static constexpr std::uint32_t empty = 0;
  [[nodiscard]] std::uint32_t single(std::uint32_t r) { return keep({r, r + 1}); }
  [[nodiscard]] std::uint32_t range(std::uint32_t first, std::uint32_t end) { return keep({first, end}); }
  [[nodiscard]] std::uint64_t size(std::uint32_t s) const {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < runs_[s].size(); i += 2) n += runs_[s][i + 1] - runs_[s][i];
    return n;
  }
  /// Lowest rank in the set; precondition: there is one.
  [[nodiscard]] std::uint32_t first(std::uint32_t s) const { return runs_[s].front(); }
  /// Lowest rank that is not in the set.
  [[nodiscard]] std::uint32_t first_missing(std::uint32_t s) const {
    return runs_[s].empty() || runs_[s].front() != 0 ? 0 : runs_[s][1];
  }

  /// Union, and the lowest rank that was in both (or `nobody`).
  struct sum {
    std::uint32_t set = 0, twice = nobody;
  };
  static constexpr std::uint32_t nobody = UINT32_MAX;
  [[nodiscard]] sum unite(std::uint32_t a, std::uint32_t b) {
    if (a > b) std::swap(a, b);
    const std::uint64_t key = std::uint64_t{a} << 32U | b;
    std::size_t at = slot(sums_, key, [&](std::uint32_t k) { return sum_keys_[k] == key; });
    if (sums_[at] != 0) return known_[sums_[at] - 1];
    const sum made = merged(a, b);
    known_.push_back(made);
    sum_keys_.push_back(key);
    sums_[at] = static_cast<std::uint32_t>(known_.size());
    if (known_.size() * 2 >= sums_.size()) {
      std::vector<std::uint32_t> larger(sums_.size() * 2, 0);
      for (std::uint32_t k = 0; k < known_.size(); ++k)
        larger[slot(larger, sum_keys_[k], [](std::uint32_t) { return false; })] = k + 1;
      sums_ = std::move(larger);
    }
    return made;
  }

 private:
  [[nodiscard]] static std::uint64_t spread(std::uint64_t x) {
    x ^= x >> 31U;
    x *= 0x7fb5d329728ea185U;  // any odd number with well-mixed bits
    return x ^ x >> 29U;
  }
  /// First slot that is free or holds the number (plus one) of what `same` says yes to.
  template <class Same>
  [[nodiscard]] static std::size_t slot(const std::vector<std::uint32_t>& table, std::uint64_t hash, Same same) {
    std::size_t at = static_cast<std::size_t>(spread(hash)) & (table.size() - 1);
    while (table[at] != 0 && !same(table[at] - 1)) at = (at + 1) & (table.size() - 1);
    return at;
  }
  [[nodiscard]] static std::uint64_t hash_of(const std::vector<std::uint32_t>& runs) {
    std::uint64_t h = runs.size();
    for (const std::uint32_t x : runs) h = spread(h + x);
    return h;
  }
  std::uint32_t keep(std::vector<std::uint32_t> runs) {
    const std::uint64_t hash = hash_of(runs);
    const std::size_t at = slot(table_, hash, [&](std::uint32_t k) { return runs_[k] == runs; });
    if (table_[at] != 0) return table_[at] - 1;
    runs_.push_back(std::move(runs));
    table_[at] = static_cast<std::uint32_t>(runs_.size());
    if (runs_.size() * 2 >= table_.size()) {
      std::vector<std::uint32_t> larger(table_.size() * 2, 0);
      for (std::uint32_t k = 0; k < runs_.size(); ++k)
        larger[slot(larger, hash_of(runs_[k]), [](std::uint32_t) { return false; })] = k + 1;
      table_ = std::move(larger);
    }
    return static_cast<std::uint32_t>(runs_.size() - 1);
  }
  [[nodiscard]] sum merged(std::uint32_t a, std::uint32_t b) {
    const std::vector<std::uint32_t>&x = runs_[a], &y = runs_[b];
    std::vector<std::uint32_t> all;
    std::uint32_t twice = nobody;
    std::size_t i = 0, j = 0;
    while (i < x.size() || j < y.size()) {
      const bool left = j >= y.size() || (i < x.size() && x[i] <= y[j]);
      const std::uint32_t lo = left ? x[i] : y[j], hi = left ? x[i + 1] : y[j + 1];
      (left ? i : j) += 2;
      if (!all.empty() && lo < all.back()) {
        if (twice == nobody) twice = lo;
        if (hi > all.back()) all.back() = hi;
      } else if (!all.empty() && lo == all.back()) {
        all.back() = hi;
      } else {
        all.push_back(lo);
        all.push_back(hi);
      }
    }
    return {keep(std::move(all)), twice};
  }

  std::vector<std::vector<std::uint32_t>> runs_;
  std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(64, 0), sums_ = std::vector<std::uint32_t>(64, 0);
  std::vector<sum> known_;
  std::vector<std::uint64_t> sum_keys_;
};

}}}}  // namespace topocoll::v0::plan::detail
