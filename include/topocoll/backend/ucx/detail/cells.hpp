// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queues that share one pool, so that putting something into them allocates nothing once warm; and the names of steps.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace backend::detail {

inline constexpr std::uint32_t no_cell = UINT32_MAX;

/// First in, first out; a handful of bytes as long as nothing is in it.
struct cell_queue {
  std::uint32_t first = no_cell;
  std::uint32_t last = no_cell;
  [[nodiscard]] bool empty() const { return first == no_cell; }
};

template <class T>
class cell_pool {
 public:
  [[nodiscard]] T& operator[](std::uint32_t at) { return cells_[at].value; }
  [[nodiscard]] const T& operator[](std::uint32_t at) const { return cells_[at].value; }

  /// Takes a cell that is in no queue.
  [[nodiscard]] std::uint32_t take(T value) {
    if (free_ == no_cell) {
      cells_.push_back({std::move(value), no_cell});
      return static_cast<std::uint32_t>(cells_.size() - 1);
    }
    const std::uint32_t at = free_;
    free_ = cells_[at].next;
    cells_[at].value = std::move(value);
    return at;
  }
  void release(std::uint32_t at) {
    cells_[at].next = free_;
    free_ = at;
  }
  void append(cell_queue& q, std::uint32_t at) {
    cells_[at].next = no_cell;
    (q.empty() ? q.first : cells_[q.last].next) = at;
    q.last = at;
  }
  /// Puts it before the first cell whose value is not less.
  template <class Less>
  void insert(cell_queue& q, std::uint32_t at, Less less) {
    if (q.empty() || !less(cells_[at].value, cells_[q.last].value)) return append(q, at);
    std::uint32_t* link = &q.first;
    while (less(cells_[*link].value, cells_[at].value)) link = &cells_[*link].next;
    cells_[at].next = *link;
    *link = at;
  }
  /// Out of the queue, but not yet free.
  std::uint32_t pop(cell_queue& q) {
    const std::uint32_t at = q.first;
    q.first = cells_[at].next;
    if (q.first == no_cell) q.last = no_cell;
    return at;
  }
  void clear(cell_queue& q) {
    while (!q.empty()) release(pop(q));
  }

 private:
  struct cell {
    T value;
    std::uint32_t next;
  };
  std::vector<cell> cells_;
  std::uint32_t free_ = no_cell;
};

/// Steps that were posted, and how many of their messages are still open.
class open_steps {
 public:
  [[nodiscard]] bool full() const { return free_.empty() && steps_.size() > 0xffffU; }
  /// The number of a new step; precondition: not full.
  [[nodiscard]] std::uint32_t take(std::size_t messages) {
    std::uint32_t at = static_cast<std::uint32_t>(steps_.size());
    if (free_.empty()) {
      steps_.push_back({});
    } else {
      at = free_.back();
      free_.pop_back();
    }
    steps_[at].open = messages;
    steps_[at].given = true;
    ++given_;
    return at;
  }
  void message_done(std::uint32_t at) { --steps_[at].open; }
  [[nodiscard]] ticket name_of(std::uint32_t at) const { return {(std::uint32_t{steps_[at].generation} << 16U) | at}; }
  [[nodiscard]] bool known(ticket k) const {
    const std::uint32_t at = k.value & 0xffffU;
    return at < steps_.size() && steps_[at].given && steps_[at].generation == k.value >> 16U;
  }
  /// Precondition of this and the next: the tickets are known.
  [[nodiscard]] std::optional<std::size_t> finished(std::span<const ticket> pending) const {
    for (std::size_t i = 0; i < pending.size(); ++i)
      if (steps_[pending[i].value & 0xffffU].open == 0) return i;
    return std::nullopt;
  }
  void give_back(ticket k) {
    step& s = steps_[k.value & 0xffffU];
    s.given = false;
    ++s.generation;
    free_.push_back(k.value & 0xffffU);
    --given_;
  }
  /// Whether all were given back.
  [[nodiscard]] bool none() const { return given_ == 0; }

 private:
  struct step {
    std::size_t open = 0;
    std::uint16_t generation = 0;
    bool given = false;
  };
  std::vector<step> steps_;
  std::vector<std::uint32_t> free_;
  std::size_t given_ = 0;
};

}}}  // namespace topocoll::v0::backend::detail
