// SPDX-License-Identifier: Apache-2.0
#pragma once
// Events that wait for each other and move sets of contributions: whether they end, race, and what they leave behind.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A cell of memory, or one message on its way: nothing, or one chunk with the ranks whose contributions are summed in it.
struct symbolic_value {
  static constexpr std::uint32_t nothing = 0xffffffffU;
  std::uint32_t chunk = nothing;     ///< which chunk of the whole array, by the numbers of the caller
  std::vector<std::uint64_t> ranks;  ///< a bit for each rank
};

/// What went wrong: two events (or one twice) and the cell, in the numbers of the caller.
struct symbolic_fault {
  enum class kind_t : std::uint8_t { cycle, race, read_of_nothing, other_chunks, counted_twice };
  kind_t kind = kind_t::cycle;
  std::uint32_t event = 0, other = 0, cell = 0;
};

/// Execution on sets of contributions in every order at once: events are proved to be ordered wherever they share a cell
/// and one of them writes, so that all orders give the same; orders drawn at random are run all the same.
///
/// Used by the validators of plans in other people's formats; shares nothing with what writes such plans.
template <class = void>
class symbolic_run {
 public:
  static constexpr std::uint32_t none = 0xffffffffU;

  symbolic_run(std::uint32_t ranks, std::uint32_t cells) : words_((ranks + 63) / 64), value_(cells) {}

  /// A new event. Returns its number; numbers count from 0.
  std::uint32_t event() {
    first_move_.push_back(static_cast<std::uint32_t>(moves_.size()));
    return static_cast<std::uint32_t>(first_move_.size() - 1);
  }
  [[nodiscard]] std::uint32_t events() const { return static_cast<std::uint32_t>(first_move_.size()); }
  /// `later` starts when `earlier` has ended. A room edge only says that there must be room for the message: it can
  /// block, but nobody may rely on it for the order of memory, because real buffers may be larger.
  void order(std::uint32_t earlier, std::uint32_t later, bool room = false) {
    edges_.push_back({earlier, later, room});
  }
  /// Part of the last event: `to` := `from`, or `from` ⊕ `more`. A message of its own is a cell too.
  void move(std::uint32_t to, std::uint32_t from, std::uint32_t more = none) { moves_.push_back({to, from, more}); }
  /// Part of the last event: whoever else uses this cell must be before or after it. Changes nothing.
  void touch(std::uint32_t cell) { moves_.push_back({cell, none, none}); }
  /// A cell more, with nothing in it.
  std::uint32_t cell() {
    value_.emplace_back();
    return static_cast<std::uint32_t>(value_.size() - 1);
  }
  void put(std::uint32_t cell, std::uint32_t chunk, std::uint32_t rank) {
    value_[cell].chunk = chunk;
    value_[cell].ranks.assign(words_, 0);
    value_[cell].ranks[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  /// Empties all cells, for another run.
  void clear() {
    for (symbolic_value& v : value_) v.chunk = symbolic_value::nothing;
  }
  [[nodiscard]] const symbolic_value& at(std::uint32_t cell) const { return value_[cell]; }

  /// Empty when every order of the events ends: the waits have no cycle. Linear.
  [[nodiscard]] std::optional<symbolic_fault> ends() {
    index();
    order_ = sorted(true, 0);
    if (order_.size() == events()) return std::nullopt;
    std::vector<std::uint8_t> done(events(), 0);
    for (const std::uint32_t e : order_) done[e] = 1;
    // Everything that is left waits, so walking from one to what it waits for must come round.
    std::uint32_t at = 0;
    while (done[at] != 0) ++at;
    std::vector<std::uint32_t> before(events(), none);
    for (const edge& e : edges_)
      if (done[e.from] == 0) before[e.to] = e.from;
    std::vector<std::uint8_t> seen(events(), 0);
    while (seen[at] == 0) {
      seen[at] = 1;
      at = before[at];
    }
    return symbolic_fault{symbolic_fault::kind_t::cycle, at, before[at], none};
  }

  /// Empty when all accesses to the first `cells` cells, one of them a write, are ordered. Precondition: `ends()` said yes.
  /// @param together  accessing events that are looked at in one pass over the orders
  /// Cost: (events + orders) * accessing events / 64 time at most, together / 8 bytes of memory for each event.
  [[nodiscard]] std::optional<symbolic_fault> races(std::uint32_t cells, std::size_t together = 4096) const {
    const std::vector<std::uint32_t> sequence = sorted(false, 0);
    std::vector<std::uint32_t> place(events());
    for (std::uint32_t i = 0; i < sequence.size(); ++i) place[sequence[i]] = i;
    std::vector<access> all;
    for (std::uint32_t e = 0; e < events(); ++e)
      for (std::uint32_t m = first_move_[e]; m < last_move(e); ++m) {
        const auto add = [&](std::uint32_t cell, bool writes) {
          if (cell < cells) all.push_back({cell, e, writes});
        };
        add(moves_[m].to, true);
        if (moves_[m].from != none) add(moves_[m].from, false);
        if (moves_[m].more != none) add(moves_[m].more, false);
      }
    seq::sort(all, [&](const access& a, const access& b) {
      return a.cell != b.cell     ? a.cell < b.cell
             : a.event != b.event ? place[a.event] < place[b.event]
                                  : a.writes < b.writes;
    });
    std::vector<std::uint32_t> number(events(), none), accessing;
    std::vector<std::uint64_t> over;
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
      accessing.clear();
      while (last < all.size() && accessing.size() < together)  // whole cells
        for (const std::uint32_t here = all[last].cell; last < all.size() && all[last].cell == here; ++last)
          if (number[all[last].event] == none) {
            number[all[last].event] = static_cast<std::uint32_t>(accessing.size());
            accessing.push_back(all[last].event);
          }
      for (std::size_t from = 0; from < accessing.size(); from += together) {
        // Which of these events are surely over when an event starts.
        const std::size_t count = accessing.size() - from < together ? accessing.size() - from : together;
        const std::size_t words = (count + 63) / 64;
        over.assign(words * events(), 0);
        for (const std::uint32_t e : sequence)
          for (std::uint32_t i = first_out_[e]; i < first_out_[e + 1]; ++i) {
            const edge& way = edges_[out_[i]];
            if (way.room) continue;
            for (std::size_t w = 0; w < words; ++w) over[words * way.to + w] |= over[words * e + w];
            const std::size_t bit = number[e] - from;  // wraps for those of other passes
            if (number[e] != none && bit < count) over[words * way.to + bit / 64] |= std::uint64_t{1} << bit % 64;
          }
        const auto before = [&](std::uint32_t a, std::uint32_t b) {
          const std::size_t bit = number[a] - from;
          return a == b || bit >= count || (over[words * b + bit / 64] >> bit % 64 & 1U) != 0;
        };
        if (const auto clash = unordered(all, first, last, before)) return clash;
      }
      for (const std::uint32_t e : accessing) number[e] = none;
    }
    return std::nullopt;
  }

  /// Runs all events in one order, drawn from `seed`; 0 takes the order of their numbers where it is free.
  /// The values are in the cells afterwards. Precondition: `ends()` said yes.
  [[nodiscard]] std::optional<symbolic_fault> run(std::uint64_t seed) {
    for (const std::uint32_t e : sorted(false, seed))
      for (std::uint32_t m = first_move_[e]; m < last_move(e); ++m) {
        const auto& [to, from, more] = moves_[m];
        if (from == none) continue;
        const auto wrong = [&](symbolic_fault::kind_t kind, std::uint32_t cell) {
          return symbolic_fault{kind, e, e, cell};
        };
        if (value_[from].chunk == symbolic_value::nothing) return wrong(symbolic_fault::kind_t::read_of_nothing, from);
        if (more == none) {
          if (to != from) value_[to] = value_[from];
          continue;
        }
        if (value_[more].chunk == symbolic_value::nothing) return wrong(symbolic_fault::kind_t::read_of_nothing, more);
        if (value_[from].chunk != value_[more].chunk) return wrong(symbolic_fault::kind_t::other_chunks, more);
        symbolic_value sum = value_[from];
        for (std::size_t w = 0; w < words_; ++w) {
          if ((sum.ranks[w] & value_[more].ranks[w]) != 0) return wrong(symbolic_fault::kind_t::counted_twice, more);
          sum.ranks[w] |= value_[more].ranks[w];
        }
        value_[to] = std::move(sum);
      }
    return std::nullopt;
  }

 private:
  struct edge {
    std::uint32_t from, to;
    bool room;
  };
  struct step {
    std::uint32_t to, from, more;
  };
  struct access {
    std::uint32_t cell, event;
    bool writes;
  };

  /// The first two of some accesses, sorted by cell and order, that are not ordered though one of them writes.
  template <class Before>
  [[nodiscard]] static std::optional<symbolic_fault> unordered(const std::vector<access>& all, std::size_t first,
                                                               std::size_t last, const Before& before) {
    std::size_t write = last, first_reader = first;
    for (std::size_t i = first; i < last; ++i) {
      if (i == first || all[i].cell != all[i - 1].cell) {
        write = last;
        first_reader = i;
      }
      const auto clash = [&](std::size_t j) {
        return symbolic_fault{symbolic_fault::kind_t::race, all[j].event, all[i].event, all[i].cell};
      };
      if (write != last && !before(all[write].event, all[i].event)) return clash(write);
      if (!all[i].writes) continue;
      for (std::size_t j = first_reader; j < i; ++j)
        if (!before(all[j].event, all[i].event)) return clash(j);
      write = i;
      first_reader = i + 1;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::uint32_t last_move(std::uint32_t e) const {
    return e + 1 < first_move_.size() ? first_move_[e + 1] : static_cast<std::uint32_t>(moves_.size());
  }
  void index() {
    first_out_.assign(events() + 1, 0);
    for (const edge& e : edges_) ++first_out_[e.from + 1];
    for (std::uint32_t i = 0; i < events(); ++i) first_out_[i + 1] += first_out_[i];
    out_.resize(edges_.size());
    std::vector<std::uint32_t> next(first_out_.begin(), first_out_.end() - 1);
    for (std::uint32_t i = 0; i < edges_.size(); ++i) out_[next[edges_[i].from]++] = i;
  }
  /// Kahn's order, as far as it goes; among events that are free the next is drawn.
  [[nodiscard]] std::vector<std::uint32_t> sorted(bool with_room, std::uint64_t seed) const {
    std::vector<std::uint32_t> waits(events(), 0), ready, sequence;
    for (const edge& e : edges_)
      if (with_room || !e.room) ++waits[e.to];
    for (std::uint32_t e = events(); e-- > 0;)
      if (waits[e] == 0) ready.push_back(e);
    sequence.reserve(events());
    while (!ready.empty()) {
      if (seed != 0) {
        // splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
        std::uint64_t z = seed += 0x9e3779b97f4a7c15ULL;
        z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27U) * 0x94d049bb133111ebULL;
        std::swap(ready.back(), ready[static_cast<std::size_t>((z ^ z >> 31U) % ready.size())]);
        if (seed == 0) seed = 1;
      }
      const std::uint32_t e = ready.back();
      ready.pop_back();
      sequence.push_back(e);
      for (std::uint32_t i = first_out_[e]; i < first_out_[e + 1]; ++i) {
        const edge& way = edges_[out_[i]];
        if ((with_room || !way.room) && --waits[way.to] == 0) ready.push_back(way.to);
      }
    }
    return sequence;
  }

  std::size_t words_;
  std::vector<symbolic_value> value_;
  std::vector<std::uint32_t> first_move_;
  std::vector<step> moves_;
  std::vector<edge> edges_;
  std::vector<std::uint32_t> first_out_, out_, order_;
};

}}}  // namespace topocoll::v0::detail
