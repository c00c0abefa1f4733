// SPDX-License-Identifier: Apache-2.0
#pragma once
// A second opinion on programs: runs them on random integers, in a random order that the rules allow, and looks at the sums.
// It shares nothing with the verifier but program.hpp.
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include <topocoll/plan/program.hpp>

namespace plan_test {

struct oracle_options {
  std::uint64_t elements = 10;  ///< of the buffer, or of one shard
  bool in_place = false;
  bool buffered = false;  ///< a send ends when its data are taken; otherwise only together with its receive
  std::uint32_t seed = 1;
  std::vector<std::uint64_t> counts{};  ///< elements of every shard where they differ, in place of `elements`
};

/// Runs one collective; `run()` gives "" when every rank ends with the right numbers, else what is wrong.
class oracle {
 public:
  oracle(std::vector<topocoll::plan::program> programs, oracle_options options)
      : all_(std::move(programs)),
        options_(options),
        random_(options.seed),
        n_(static_cast<std::uint32_t>(all_.size())),
        starts_(starts_of(options_, n_, topocoll::plan::sharded(all_[0].collective))),
        grid_(options_.counts.empty()
                  ? topocoll::plan::grid_of(all_[0].collective, n_, all_[0].chunks, options_.elements)
                  : topocoll::plan::grid_of(all_[0].chunks, starts_)),
        total_(grid_.begin(all_[0].chunks)) {}

  [[nodiscard]] std::string run() {
    fill();
    prepare();
    while (!todo_.empty() && wrong_.empty()) {
      const std::size_t pick = random_() % todo_.size();
      std::swap(todo_[pick], todo_.back());
      const action a = todo_.back();
      todo_.pop_back();
      carry_out(a);
    }
    if (!wrong_.empty()) return wrong_;
    for (std::uint32_t r = 0; r < n_; ++r)
      for (std::size_t s = 0; s < all_[r].steps.size(); ++s)
        if (left_[r][s] != 0) return "rank " + std::to_string(r) + " never ends step " + std::to_string(s);
    return compare();
  }

 private:
  using kind = topocoll::collective_kind;
  using op = topocoll::plan::op;
  using op_kind = topocoll::plan::op_kind;
  using slice = topocoll::plan::slice;
  using buffer = topocoll::plan::buffer;

  enum class what { start, take, deliver, both, local };
  struct action {
    what a;
    std::uint32_t rank, step, op;
  };
  struct lane {
    std::vector<action> sends, receives;  // posted
    std::vector<bool> taken;
    std::vector<std::vector<std::uint64_t>> data;
  };

  /// Where the shards of the ranks begin, and where the last one ends.
  static std::vector<std::uint64_t> starts_of(const oracle_options& options, std::uint32_t ranks, bool shards) {
    std::vector<std::uint64_t> starts{0};
    for (std::uint32_t r = 0; r < ranks && shards; ++r)
      starts.push_back(starts.back() + (options.counts.empty() ? options.elements : options.counts[r]));
    return starts;
  }
  /// The rank whose shard an element lies in.
  [[nodiscard]] std::uint32_t owner(std::uint64_t element) const {
    std::uint32_t r = 0;
    while (starts_[r + 1] <= element) ++r;
    return r;
  }
  [[nodiscard]] std::uint64_t value(std::uint32_t r, std::uint64_t element) const {
    std::uint64_t x = (std::uint64_t{r} << 32U) + element + 0x9e3779b97f4a7c15U * (options_.seed + 1);
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }
  /// First and one past the last element that exist at a rank.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> region(std::uint32_t r, bool input) const {
    const bool shards = starts_.size() > 1;
    const std::pair<std::uint64_t, std::uint64_t> whole{0, total_},
        shard{shards ? starts_[r] : 0, shards ? starts_[r + 1] : 0}, nothing{0, 0};
    const bool root = r == all_[0].root.value;
    switch (all_[0].collective) {
      case kind::all_reduce:
      case kind::all_to_all: return whole;
      case kind::all_gather: return input ? shard : whole;
      case kind::reduce_scatter: return input ? whole : shard;
      case kind::broadcast: return input && !root ? nothing : whole;
      case kind::reduce: return !input && !root ? nothing : whole;
      case kind::gather: return input ? shard : root ? whole : nothing;
      case kind::scatter: return !input ? shard : root ? whole : nothing;
    }
    return nothing;
  }
  void fill() {
    memory_.assign(n_, {});
    // What nobody wrote is poison: it makes every sum wrong.
    for (std::uint32_t r = 0; r < n_; ++r) {
      memory_[r][0].assign(total_, 0xdeadbeefdeadbeefU);
      memory_[r][1].assign(total_, 0xfeedfacefeedfaceU);
      memory_[r][2].assign(all_[r].scratch_cells * grid_.largest(), 0xabadcafeabadcafeU);
      auto& in = memory_[r][options_.in_place ? 1 : 0];
      const auto [lo, hi] = region(r, true);
      for (std::uint64_t e = lo; e < hi; ++e) in[e] = value(r, e);
    }
  }
  void prepare() {
    wait_.resize(n_);
    left_.resize(n_);
    next_.resize(n_);
    for (std::uint32_t r = 0; r < n_; ++r) {
      const auto& steps = all_[r].steps;
      wait_[r].assign(steps.size(), 0);
      left_[r].assign(steps.size(), 0);
      next_[r].assign(steps.size(), -1);
      std::map<std::uint32_t, std::uint32_t> last;
      for (std::uint32_t s = 0; s < steps.size(); ++s) {
        left_[r][s] = steps[s].op_count + 1;  // one for the start
        wait_[r][s] = static_cast<std::uint32_t>(steps[s].after.size());
        if (last.count(steps[s].channel) != 0) {
          ++wait_[r][s];
          next_[r][last[steps[s].channel]] = static_cast<int>(s);
        }
        last[steps[s].channel] = s;
        if (wait_[r][s] == 0) todo_.push_back({what::start, r, s, 0});
      }
    }
  }
  void release(std::uint32_t r, std::uint32_t s) {
    if (--wait_[r][s] == 0) todo_.push_back({what::start, r, s, 0});
  }
  void ended(std::uint32_t r, std::uint32_t s) {
    if (--left_[r][s] != 0) return;
    for (std::uint32_t t = s + 1; t < all_[r].steps.size(); ++t)
      for (const std::uint32_t a : all_[r].steps[t].after)
        if (a == s) release(r, t);
  }
  lane& lane_of(const action& a) {
    const op& o = all_[a.rank].ops[a.op];
    const bool send = o.kind == op_kind::send;
    return lanes_[{send ? a.rank : o.peer.value, send ? o.peer.value : a.rank, all_[a.rank].steps[a.step].channel}];
  }
  void carry_out(const action& a) {
    const topocoll::plan::program& p = all_[a.rank];
    if (a.a == what::start) {
      const auto& st = p.steps[a.step];
      for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) post({what::local, a.rank, a.step, o});
      if (next_[a.rank][a.step] >= 0) release(a.rank, static_cast<std::uint32_t>(next_[a.rank][a.step]));
      ended(a.rank, a.step);
      return;
    }
    const op& o = p.ops[a.op];
    if (a.a == what::local) {
      const auto data = load(a.rank, o, o.from);
      store(a.rank, o, o.kind == op_kind::reduce ? add(load(a.rank, o, o.to), data) : data);
      ended(a.rank, a.step);
      return;
    }
    lane& l = lane_of(a);
    if (a.a == what::take) {
      const std::size_t k = index(l.sends, a);
      l.data[k] = load(a.rank, o, o.from);
      l.taken[k] = true;
      ended(a.rank, a.step);
      if (k < l.receives.size())
        todo_.push_back({what::deliver, l.receives[k].rank, l.receives[k].step, l.receives[k].op});
      return;
    }
    // deliver, both: `a` is the receiving side
    const std::size_t k = index(l.receives, a);
    const action& s = l.sends[k];
    if (a.a == what::both) l.data[k] = load(s.rank, all_[s.rank].ops[s.op], all_[s.rank].ops[s.op].from);
    if (l.data[k].size() != load(a.rank, o, o.to).size()) {
      wrong_ = "rank " + std::to_string(a.rank) + " gets a message of another size than it expects";
      return;
    }
    store(a.rank, o, o.kind == op_kind::receive_reduce ? add(load(a.rank, o, o.from), l.data[k]) : l.data[k]);
    ended(a.rank, a.step);
    if (a.a == what::both) ended(s.rank, s.step);
  }
  void post(action a) {
    const op& o = all_[a.rank].ops[a.op];
    if (o.kind == op_kind::copy || o.kind == op_kind::reduce) {
      todo_.push_back(a);
      return;
    }
    lane& l = lane_of(a);
    if (o.kind == op_kind::send) {
      l.sends.push_back(a);
      l.taken.push_back(false);
      l.data.emplace_back();
      if (options_.buffered) {
        a.a = what::take;
        todo_.push_back(a);
      } else if (l.sends.size() <= l.receives.size()) {
        const action& r = l.receives[l.sends.size() - 1];
        todo_.push_back({what::both, r.rank, r.step, r.op});
      }
    } else {
      l.receives.push_back(a);
      const std::size_t k = l.receives.size() - 1;
      if (k < l.sends.size() && (!options_.buffered || l.taken[k])) {
        a.a = options_.buffered ? what::deliver : what::both;
        todo_.push_back(a);
      }
    }
  }
  static std::size_t index(const std::vector<action>& list, const action& a) {
    std::size_t k = 0;
    while (list[k].op != a.op) ++k;
    return k;
  }
  [[nodiscard]] std::vector<std::uint64_t>& memory(std::uint32_t r, buffer where) {
    return memory_[r][where == buffer::scratch ? 2 : where == buffer::output || options_.in_place ? 1 : 0];
  }
  [[nodiscard]] std::vector<std::uint64_t> load(std::uint32_t r, const op& o, const slice& s) {
    std::vector<std::uint64_t> data;
    each_piece(r, o, s, [&](std::uint64_t* at, std::uint64_t count) { data.insert(data.end(), at, at + count); });
    return data;
  }
  /// Visits where a slice lies in memory, piece by piece.
  template <class Visit>
  void each_piece(std::uint32_t r, op o, const slice& s, Visit visit) {
    o.kind = op_kind::send;
    o.from = s;
    for (std::uint32_t i = 0; i < topocoll::plan::pieces_of(grid_, o) && wrong_.empty(); ++i) {
      const op one = topocoll::plan::piece_of(grid_, o, i);
      const auto [first, count] = topocoll::plan::extent_of(grid_, one, one.from);
      inside(r, s, first, count);
      if (wrong_.empty()) visit(memory(r, s.where).data() + first, count);
    }
  }
  void store(std::uint32_t r, const op& o, const std::vector<std::uint64_t>& data) {
    std::uint64_t next = 0;
    each_piece(r, o, o.to, [&](std::uint64_t* at, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count && next < data.size(); ++i) at[i] = data[next++];
    });
  }
  void inside(std::uint32_t r, const slice& s, std::uint64_t first, std::uint64_t count) {
    const auto [lo, hi] = s.where == buffer::scratch ? std::pair<std::uint64_t, std::uint64_t>{0, memory_[r][2].size()}
                                                     : region(r, s.where == buffer::input);
    if (count != 0 && (first < lo || first + count > hi)) wrong_ = "rank " + std::to_string(r) + " leaves a buffer";
  }
  static std::vector<std::uint64_t> add(std::vector<std::uint64_t> a, const std::vector<std::uint64_t>& b) {
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] += b[i];
    return a;
  }
  [[nodiscard]] std::string compare() {
    for (std::uint32_t r = 0; r < n_; ++r) {
      const auto [lo, hi] = region(r, false);
      for (std::uint64_t e = lo; e < hi; ++e) {
        std::uint64_t want = 0;
        const std::uint64_t unit = options_.elements;
        switch (all_[0].collective) {
          case kind::gather:
          case kind::all_gather: want = value(owner(e), e); break;
          case kind::scatter:
          case kind::broadcast: want = value(all_[0].root.value, e); break;
          case kind::all_to_all: want = value(static_cast<std::uint32_t>(e / unit), r * unit + e % unit); break;
          default:
            for (std::uint32_t s = 0; s < n_; ++s) want += value(s, e);
        }
        if (memory_[r][1][e] != want)
          return "rank " + std::to_string(r) + " has a wrong element " + std::to_string(e) + " of " +
                 std::to_string(total_);
      }
      if (options_.in_place) continue;
      const auto [first, last] = region(r, true);
      for (std::uint64_t e = first; e < last; ++e)
        if (memory_[r][0][e] != value(r, e)) return "rank " + std::to_string(r) + " changed its input";
    }
    return "";
  }

  std::vector<topocoll::plan::program> all_;
  oracle_options options_;
  std::mt19937 random_;
  std::uint32_t n_;
  std::vector<std::uint64_t> starts_;
  topocoll::plan::chunk_grid grid_;
  std::uint64_t total_;
  std::vector<std::array<std::vector<std::uint64_t>, 3>> memory_;  // input, output, scratch
  std::vector<std::vector<std::uint32_t>> wait_, left_;
  std::vector<std::vector<int>> next_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, lane> lanes_;
  std::vector<action> todo_;
  std::string wrong_;
};

/// What is wrong with the programs under all four kinds of runs; "" when nothing is.
inline std::string second_opinion(const std::vector<topocoll::plan::program>& programs, std::uint64_t elements,
                                  std::uint32_t seed, const std::vector<std::uint64_t>& counts = {}) {
  for (const bool in_place : {false, true})
    for (const bool buffered : {false, true}) {
      const std::string found = oracle(programs, {elements, in_place, buffered, seed, counts}).run();
      if (!found.empty())
        return found + (in_place ? ", in place" : "") + (buffered ? ", buffered" : "") + ", seed " +
               std::to_string(seed);
    }
  return "";
}

}  // namespace plan_test
