// SPDX-License-Identifier: Apache-2.0
#pragma once
// The algorithms: what one member of a group sends and receives, round by round, in units.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// What a member does with units lo to hi-1. Peers are positions in the group.
enum class act : std::uint8_t {
  send,          ///< sends its value and keeps it
  give,          ///< sends its partial sum, which is not needed here any more
  store,         ///< the arriving value becomes its value
  combine,       ///< its value := arriving ⊕ its value
  pass_through,  ///< as combine, but the sum will be given away next: it may lie in slot `slot`
  stash,         ///< the arriving value is kept in slot `slot`, beside its own
  fold,          ///< its value := its value ⊕ slot
  swap,          ///< sends its value, receives the peer's in slot `slot`, and adds it
  last_swap,     ///< the same, and the sum is the final value
  sum_slots  ///< its value := slot 0 ⊕ slot 1 ⊕ …, its own value standing in for slot `slot`; `peer` slots in all
};

[[nodiscard]] constexpr bool is_local(act a) { return a == act::fold || a == act::sum_slots; }
[[nodiscard]] constexpr bool sends(act a) {
  return a == act::send || a == act::give || a == act::swap || a == act::last_swap;
}

struct action {
  act what = act::send;
  /// Both ends of a message have it in the same round. As a member finishes its rounds in order, waits cannot go in a
  /// circle, even if nothing is buffered.
  std::uint32_t round = 0;
  std::uint32_t peer = 0;
  std::uint32_t lo = 0, hi = 0;
  std::uint32_t slot = 0;
};

/// The actions of one member in order of rounds, and the memory that they need beside the buffers.
struct member_actions {
  std::vector<action> list;
  std::uint32_t slot_count = 0;   ///< each as long as the longest interval that is put into one
  std::uint32_t slot_length = 0;  ///< in units
  std::uint32_t rounds = 0;       ///< of the whole group
  /// Sends of a round to one peer, and receives from one, travel as one message where the grid allows it (`bundle_at`):
  /// parts are copied to the slots of the sends, and arrive in the slots of the receives.
  bool bundled = false;
};

/// Writes the actions of member `me` of a group. One object serves one member of one group in one slice.
template <class = void>
class member_walk {
 public:
  member_walk(const group_view& group, std::uint32_t me, bool second_tree)
      : bounds_(group.bounds), parents_(group.parents), k_(group.size()), me_(me), second_(second_tree) {}

  [[nodiscard]] member_actions walk(stage_kind kind, algorithm how) && {
    if (how == algorithm::in_switch) how = algorithm::direct;
    if (k_ > 1) {
      switch (kind) {
        case stage_kind::reduce_scatter: reduce_scatter(how); break;
        case stage_kind::all_gather: all_gather(how, false); break;
        case stage_kind::all_reduce: all_reduce(how); break;
        case stage_kind::broadcast: broadcast(how); break;
        case stage_kind::reduce: reduce(how); break;
        case stage_kind::scatter: scatter(how); break;
        case stage_kind::gather: gather(how); break;
        case stage_kind::all_to_all: how == algorithm::bruck ? bruck_exchange() : all_to_all(); break;
      }
    }
    out_.rounds = round_;
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t first() const { return bounds_.front(); }
  [[nodiscard]] std::uint32_t last() const { return bounds_.back(); }

  void put(act what, std::uint32_t round, std::uint32_t peer, std::uint32_t lo, std::uint32_t hi,
           std::uint32_t slot = 0) {
    if (lo < hi) out_.list.push_back({what, round, peer, lo, hi, slot});
  }
  void put_part(act what, std::uint32_t round, std::uint32_t peer, std::uint32_t part, std::uint32_t slot = 0) {
    put(what, round, peer, bounds_[part], bounds_[part + 1], slot);
  }
  void need_slots(std::uint32_t slot_count, std::uint32_t length) {
    out_.slot_count = std::max(out_.slot_count, slot_count);
    out_.slot_length = std::max(out_.slot_length, length);
  }
  [[nodiscard]] std::uint32_t longest_part() const {
    std::uint32_t longest = 0;
    for (std::uint32_t j = 0; j < k_; ++j) longest = std::max(longest, bounds_[j + 1] - bounds_[j]);
    return longest;
  }
  /// Position `ahead` places after `me` on the circle; `ahead` < 2k.
  [[nodiscard]] std::uint32_t ring_at(std::uint32_t ahead) const { return (me_ + ahead) % k_; }

  // Halving: the members [a, b) and their parts are cut at mid. Member a+j of the lower half is the partner of mid+j; when
  // the lower half has one more, its last is the second partner of the upper half's last.
  struct half {
    std::uint32_t a, mid, b;
  };
  /// The ranges that `me` goes through, largest first.
  [[nodiscard]] std::vector<half> halves() const {
    std::vector<half> path;
    std::uint32_t a = 0, b = k_;
    while (b - a > 1) {
      const std::uint32_t mid = a + (b - a + 1) / 2;
      path.push_back({a, mid, b});
      (me_ < mid ? b : a) = mid;
    }
    return path;
  }
  [[nodiscard]] std::uint32_t depth() const {
    return static_cast<std::uint32_t>(std::bit_width(k_ - 1));
  }  // ceil(log2 k)

  void reduce_scatter(algorithm how) {
    if (how == algorithm::ring) {
      need_slots(2, longest_part());
      for (std::uint32_t t = 0; t + 1 < k_; ++t) {
        put_part(act::give, round_, ring_at(1), ring_at(2 * k_ - 1 - t));
        put_part(t + 2 < k_ ? act::pass_through : act::combine, round_, ring_at(k_ - 1), ring_at(2 * k_ - 2 - t),
                 t % 2);
        ++round_;
      }
    } else if (how == algorithm::recursive) {
      std::uint32_t at = round_;
      for (const half h : halves()) {
        const std::uint32_t upper = h.b - h.mid;
        if (me_ < h.mid) {
          const std::uint32_t j = me_ - h.a;
          put(act::give, at, h.mid + std::min(j, upper - 1), bounds_[h.mid], bounds_[h.b]);
          if (j < upper) put(act::combine, at, h.mid + j, bounds_[h.a], bounds_[h.mid]);
        } else {
          const std::uint32_t j = me_ - h.mid;
          put(act::give, at, h.a + j, bounds_[h.a], bounds_[h.mid]);
          put(act::combine, at, h.a + j, bounds_[h.mid], bounds_[h.b]);
          if (j + 1 == upper && h.mid - h.a > upper) put(act::combine, at, h.a + upper, bounds_[h.mid], bounds_[h.b]);
        }
        ++at;
      }
      round_ += depth();
    } else if (how == algorithm::pat) {
      far_reduce();
    } else {  // direct
      need_slots(k_ - 1, bounds_[me_ + 1] - bounds_[me_]);
      for (std::uint32_t d = 1; d < k_; ++d) put_part(act::give, round_, ring_at(d), ring_at(d));
      put_part(act::combine, round_, ring_at(k_ - 1), me_);
      for (std::uint32_t d = 2; d < k_; ++d) put_part(act::stash, round_, ring_at(k_ - d), me_, d - 2);
      for (std::uint32_t d = 2; d < k_; ++d) put_part(act::fold, round_, me_, me_, d - 2);
      ++round_;
    }
  }

  /// `root_has_all`: member 0 needs nothing (the second half of a broadcast).
  void all_gather(algorithm how, bool root_has_all) {
    const auto message = [&](act what, std::uint32_t round, std::uint32_t peer, std::uint32_t lo, std::uint32_t hi) {
      if (root_has_all && (what == act::send ? peer : me_) == 0) return;
      put(what, round, peer, lo, hi);
    };
    if (how == algorithm::ring) {
      for (std::uint32_t t = 0; t + 1 < k_; ++t) {
        put_part(act::send, round_, ring_at(1), ring_at(2 * k_ - t));
        put_part(act::store, round_, ring_at(k_ - 1), ring_at(2 * k_ - 1 - t));
        ++round_;
      }
    } else if (how == algorithm::recursive) {
      const std::vector<half> path = halves();
      for (std::size_t i = path.size(); i-- > 0;) {
        const half h = path[i];
        const std::uint32_t at = round_ + depth() - 1 - static_cast<std::uint32_t>(i);
        const std::uint32_t upper = h.b - h.mid;
        if (me_ < h.mid) {
          const std::uint32_t j = me_ - h.a;
          if (j < upper) message(act::send, at, h.mid + j, bounds_[h.a], bounds_[h.mid]);
          message(act::store, at, h.mid + std::min(j, upper - 1), bounds_[h.mid], bounds_[h.b]);
        } else {
          const std::uint32_t j = me_ - h.mid;
          message(act::send, at, h.a + j, bounds_[h.mid], bounds_[h.b]);
          if (j + 1 == upper && h.mid - h.a > upper) message(act::send, at, h.a + upper, bounds_[h.mid], bounds_[h.b]);
          message(act::store, at, h.a + j, bounds_[h.a], bounds_[h.mid]);
        }
      }
      round_ += depth();
    } else if (how == algorithm::pat) {
      far_gather();
    } else {  // direct
      for (std::uint32_t d = 1; d < k_; ++d) message(act::send, round_, ring_at(d), bounds_[me_], bounds_[me_ + 1]);
      for (std::uint32_t d = 1; d < k_; ++d) {
        const std::uint32_t peer = ring_at(k_ - d);
        message(act::store, round_, peer, bounds_[peer], bounds_[peer + 1]);
      }
      ++round_;
    }
  }

  void all_reduce(algorithm how) {
    switch (how) {
      case algorithm::ring:
      case algorithm::recursive:
      case algorithm::direct:
        reduce_scatter(how);
        all_gather(how, false);
        return;
      case algorithm::tree:
        reduce(how);
        broadcast(how);
        return;
      case algorithm::double_tree:
        double_tree(true, false);
        double_tree(false, false);
        return;
      case algorithm::doubling: doubling(); return;
      case algorithm::one_shot: one_shot(); return;
      case algorithm::packed:
        climb_tree();
        descend_tree();
        return;
      case algorithm::bruck:
      case algorithm::pat:
      case algorithm::in_switch: return;  // no such stage, see `supports`; or another name, see `walk`
    }
  }

  /// Whole vectors are exchanged at distance 1, 2, 4, …; members beyond the largest power of two hand theirs in first and
  /// get the sum at the end. Both partners add the same two numbers, so all members get the same bits.
  void doubling() {
    const std::uint32_t power = std::bit_floor(k_), extra = k_ - power;
    need_slots(2, last() - first());
    if (extra != 0) {
      if (me_ >= power) put(act::give, round_, me_ - power, first(), last());
      if (me_ < extra) put(act::combine, round_, me_ + power, first(), last());
      ++round_;
    }
    for (std::uint32_t distance = 1, i = 0; distance < power; distance *= 2, ++i, ++round_)
      if (me_ < power)
        put(distance * 2 < power ? act::swap : act::last_swap, round_, me_ ^ distance, first(), last(), i % 2);
    if (extra != 0) {
      if (me_ < extra) put(act::send, round_, me_ + power, first(), last());
      if (me_ >= power) put(act::store, round_, me_ - power, first(), last());
      ++round_;
    }
  }

  /// Every member adds in the order of positions, so all members get the same bits.
  void one_shot() {
    need_slots(k_, last() - first());
    for (std::uint32_t d = 1; d < k_; ++d) put(act::send, round_, ring_at(d), first(), last());
    for (std::uint32_t d = 1; d < k_; ++d) put(act::stash, round_, ring_at(k_ - d), first(), last(), ring_at(k_ - d));
    put(act::sum_slots, round_, k_, first(), last(), me_);
    ++round_;
  }

  void broadcast(algorithm how) {
    switch (how) {
      case algorithm::ring: {  // a chain; unit p leaves member i in round p + i
        const std::uint32_t pieces = last() - first();
        for (std::uint32_t r = 0; r + 2 < pieces + k_; ++r) {
          if (me_ + 1 < k_ && r >= me_) put_unit(act::send, round_ + r, me_ + 1, r - me_, pieces);
          if (me_ > 0 && r + 1 >= me_) put_unit(act::store, round_ + r, me_ - 1, r + 1 - me_, pieces);
        }
        round_ += pieces + k_ - 2;
        return;
      }
      case algorithm::tree: {
        const std::vector<half> path = halves();
        for (std::uint32_t i = 0; i < path.size(); ++i) {
          if (me_ == path[i].a) put(act::send, round_ + i, path[i].mid, first(), last());
          if (me_ == path[i].mid) put(act::store, round_ + i, path[i].a, first(), last());
        }
        round_ += depth();
        return;
      }
      case algorithm::double_tree: double_tree(false, true); return;
      case algorithm::packed: descend_tree(); return;
      case algorithm::recursive:
        scatter(how);
        all_gather(how, true);
        return;
      default:  // direct
        if (me_ == 0)
          for (std::uint32_t j = 1; j < k_; ++j) put(act::send, round_, j, first(), last());
        else
          put(act::store, round_, 0, first(), last());
        ++round_;
    }
  }

  void reduce(algorithm how) {
    switch (how) {
      case algorithm::ring: {  // a chain that ends at member 0; unit p leaves member i in round p + k-1-i
        const std::uint32_t pieces = last() - first(), behind = k_ - 1 - me_;
        need_slots(2, 1);
        for (std::uint32_t r = 0; r + 2 < pieces + k_; ++r) {
          if (me_ > 0 && r >= behind) put_unit(act::give, round_ + r, me_ - 1, r - behind, pieces);
          if (behind > 0 && r + 1 >= behind)
            put_unit(me_ > 0 ? act::pass_through : act::combine, round_ + r, me_ + 1, r + 1 - behind, pieces, r % 2);
        }
        round_ += pieces + k_ - 2;
        return;
      }
      case algorithm::tree: {
        const std::vector<half> path = halves();
        for (std::size_t i = path.size(); i-- > 0;) {
          const std::uint32_t at = round_ + depth() - 1 - static_cast<std::uint32_t>(i);
          if (me_ == path[i].a) put(act::combine, at, path[i].mid, first(), last());
          if (me_ == path[i].mid) put(act::give, at, path[i].a, first(), last());
        }
        round_ += depth();
        return;
      }
      case algorithm::double_tree: double_tree(true, true); return;
      case algorithm::packed: climb_tree(); return;
      case algorithm::recursive:
        reduce_scatter(how);
        gather(how);
        return;
      default:  // direct
        if (me_ == 0) {
          need_slots(k_, last() - first());
          put(act::combine, round_, 1, first(), last());
          for (std::uint32_t j = 2; j < k_; ++j) put(act::stash, round_, j, first(), last(), j);
          for (std::uint32_t j = 2; j < k_; ++j) put(act::fold, round_, 0, first(), last(), j);
        } else {
          put(act::give, round_, 0, first(), last());
        }
        ++round_;
    }
  }

  void put_unit(act what, std::uint32_t round, std::uint32_t peer, std::uint32_t piece, std::uint32_t pieces,
                std::uint32_t slot = 0) {
    if (piece < pieces) put(what, round, peer, first() + piece, first() + piece + 1, slot);
  }

  void scatter(algorithm how) {
    if (how == algorithm::recursive) {
      const std::vector<half> path = halves();
      for (std::uint32_t i = 0; i < path.size(); ++i) {
        const half h = path[i];
        if (me_ == h.a) put(act::send, round_ + i, h.mid, bounds_[h.mid], bounds_[h.b]);
        if (me_ == h.mid) put(act::store, round_ + i, h.a, bounds_[h.mid], bounds_[h.b]);
      }
      round_ += depth();
    } else {
      if (me_ == 0)
        for (std::uint32_t j = 1; j < k_; ++j) put_part(act::send, round_, j, j);
      else
        put_part(act::store, round_, 0, me_);
      ++round_;
    }
  }

  void gather(algorithm how) {
    if (how == algorithm::recursive) {
      const std::vector<half> path = halves();
      for (std::size_t i = path.size(); i-- > 0;) {
        const half h = path[i];
        const std::uint32_t at = round_ + depth() - 1 - static_cast<std::uint32_t>(i);
        if (me_ == h.a) put(act::store, at, h.mid, bounds_[h.mid], bounds_[h.b]);
        if (me_ == h.mid) put(act::give, at, h.a, bounds_[h.mid], bounds_[h.b]);
      }
      round_ += depth();
    } else {
      if (me_ == 0)
        for (std::uint32_t j = 1; j < k_; ++j) put_part(act::store, round_, j, j);
      else
        put_part(act::give, round_, 0, me_);
      ++round_;
    }
  }

  void all_to_all() {
    need_slots(k_, longest_part());
    for (std::uint32_t d = 1; d < k_; ++d) put_part(act::send, round_, ring_at(d), ring_at(d));
    // What arrives stands for the part that the sender holds for `me`.
    for (std::uint32_t d = 1; d < k_; ++d) put_part(act::stash, round_, ring_at(k_ - d), me_, ring_at(k_ - d));
    ++round_;
  }

  /// All parts are on their way at once. What member i has for member i+o goes by the distances 1, 2, 4, … that add up to o;
  /// it takes the place of the part for member i+o wherever it is.
  void bruck_exchange() {
    out_.bundled = true;
    std::uint32_t arrived = k_ / 2;  // of the slots the first hold what is sent: never more than half of the parts
    for (std::uint32_t distance = 1; distance < k_; distance *= 2, ++round_) {
      std::uint32_t sent = 0;
      for (std::uint32_t o = distance; o < k_; ++o)
        if ((o & distance) != 0) put_part(act::send, round_, ring_at(distance), ring_at(o), sent++);
      for (std::uint32_t o = distance; o < k_; ++o)
        if ((o & distance) != 0) put_part(act::store, round_, ring_at(k_ - distance), ring_at(o), arrived++);
    }
    need_slots(arrived, longest_part());
  }

  /// Part j goes to member j+o by the distances …, 4, 2, 1 that add up to o, so over `distance` go the parts of the members
  /// at all multiples of twice that behind.
  void far_gather() {
    out_.bundled = true;
    std::uint32_t arrived = k_ / 2;
    for (std::uint32_t distance = std::bit_floor(k_ - 1); distance > 0; distance /= 2, ++round_) {
      std::uint32_t sent = 0;
      for (std::uint32_t o = 0; o + distance < k_; o += 2 * distance)
        put_part(act::send, round_, ring_at(distance), ring_at(k_ - o), sent++);
      for (std::uint32_t o = distance; o < k_; o += 2 * distance)
        put_part(act::store, round_, ring_at(k_ - distance), ring_at(k_ - o), arrived++);
    }
    need_slots(arrived, longest_part());
  }

  /// The mirror image: sums come back by the same distances in the opposite order and direction.
  void far_reduce() {
    out_.bundled = true;
    std::uint32_t arrived = k_ / 2;
    for (std::uint32_t distance = 1; distance < k_; distance *= 2, ++round_) {
      std::uint32_t sent = 0;
      for (std::uint32_t o = distance; o < k_; o += 2 * distance)
        put_part(act::give, round_, ring_at(k_ - distance), ring_at(k_ - o), sent++);
      for (std::uint32_t o = 0; o + distance < k_; o += 2 * distance)
        put_part(act::combine, round_, ring_at(distance), ring_at(k_ - o), arrived++);
    }
    need_slots(arrived, longest_part());
  }

  // Two binary trees over positions 0 to k-1, in-order numbered, such that (but for the root and one other) who has
  // children in one is a leaf in the other. Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
  // broadcast, reduction and scan", Parallel Computing 35 (2009).

  /// Parent in the first tree: position i with lowest set bit b hangs below the next higher level; 0 is the root.
  [[nodiscard]] std::uint32_t tree_parent(std::uint32_t i) const {
    const std::uint32_t b = i & (~i + 1U);
    const std::uint32_t up = (i ^ b) | (b << 1U);
    return up < k_ ? up : i ^ b;
  }
  [[nodiscard]] std::uint32_t tree_depth(std::uint32_t i) const {
    std::uint32_t d = 0;
    for (; i != 0; i = tree_parent(i)) ++d;
    return d;
  }
  /// Position in the tree of member j, and back (`back`). The second tree shifts or mirrors the numbering so that odd
  /// positions, the leaves, become even ones; a rooted collective keeps position 0.
  [[nodiscard]] std::uint32_t relabel(std::uint32_t j, bool keep_root, bool back) const {
    if (!second_) return j;
    const std::uint32_t fixed = keep_root ? 1 : 0,
                        m = k_ - fixed;  // members fixed to k-1 are renumbered among themselves
    if (j < fixed || m < 2) return j;
    const std::uint32_t x = j - fixed;
    // Mirroring changes parity of every j when the end points differ in parity; otherwise shift by one.
    if (((fixed + k_ - 1) & 1U) != 0) return k_ - 1 - x;
    return (back ? x + m - 1 : x + 1) % m + fixed;
  }

  void double_tree(bool up, bool keep_root) {
    const std::uint32_t levels = static_cast<std::uint32_t>(std::bit_width(k_ - 1));  // depth of the deepest position
    const std::uint32_t i = relabel(me_, keep_root, false);
    const auto member = [&](std::uint32_t position) { return relabel(position, keep_root, true); };
    std::uint32_t children[2] = {0, 0}, count = 0;
    const std::uint32_t low = i == 0 ? std::bit_floor(k_ - 1) * 2 : i & (~i + 1U);
    if (i != 0 && low > 1) children[count++] = i - low / 2;
    for (std::uint32_t step = low / 2; step > 0; step /= 2)
      if (i + step < k_ && tree_parent(i + step) == i) {
        children[count++] = i + step;
        break;
      }
    const std::uint32_t d = tree_depth(i);
    if (up) {
      for (std::uint32_t c = 0; c < count; ++c)
        put(act::combine, round_ + levels - (d + 1), member(children[c]), first(), last());
      if (i != 0) put(act::give, round_ + levels - d, member(tree_parent(i)), first(), last());
    } else {
      if (i != 0) put(act::store, round_ + d - 1, member(tree_parent(i)), first(), last());
      for (std::uint32_t c = 0; c < count; ++c) put(act::send, round_ + d, member(children[c]), first(), last());
    }
    round_ += levels;
  }

  /// From the root down the drawn tree: every member passes on what it has to all its children at once.
  void descend_tree() {
    std::vector<std::uint32_t> depth(k_, 0);
    std::uint32_t deepest = 0;
    for (std::uint32_t j = 1; j < k_; ++j) {
      depth[j] = depth[parents_[j]] + 1;
      deepest = std::max(deepest, depth[j]);
      if (parents_[j] == me_) put(act::send, round_ + depth[j] - 1, j, first(), last());
    }
    if (me_ != 0) put(act::store, round_ + depth[me_] - 1, parents_[me_], first(), last());
    round_ += deepest;
  }

  /// Up the drawn tree. A member takes its children one after the other, as all are added to the same sum; those with the
  /// least to wait for come first.
  void climb_tree() {
    std::vector<std::uint32_t> gives(k_, 0),
        free_at(k_, 0);  // round of a member's message; next free round of its parent
    std::vector<std::uint32_t> by_round, next(k_, k_), first_child(k_, k_);
    for (std::uint32_t j = k_; j-- > 1;) {
      next[j] = first_child[parents_[j]];
      first_child[parents_[j]] = j;
    }
    for (std::uint32_t v = k_; v-- > 0;) {  // children stand behind their parents
      by_round.clear();
      for (std::uint32_t c = first_child[v]; c < k_; c = next[c]) by_round.push_back(c);
      seq::sort_by(by_round, [&](std::uint32_t c) { return std::pair(free_at[c], c); });
      for (const std::uint32_t c : by_round) {
        gives[c] = std::max(free_at[c], free_at[v]);
        free_at[v] = gives[c] + 1;
        if (v == me_) put(act::combine, round_ + gives[c], c, first(), last());
      }
    }
    if (me_ != 0) put(act::give, round_ + gives[me_], parents_[me_], first(), last());
    round_ += free_at[0];
  }

  std::span<const std::uint32_t> bounds_;
  std::span<const std::uint32_t> parents_;
  std::uint32_t k_;
  std::uint32_t me_;
  bool second_;
  std::uint32_t round_ = 0;
  member_actions out_;
};

/// What member `me` of a group does in slice `slice`.
template <class = void>
[[nodiscard]] member_actions actions_of(const stage& st, const group_view& group, std::uint32_t me,
                                        std::uint32_t slice) {
  return member_walk(group, me, slice % 2 == 1).walk(st.kind, st.how);
}

}}}}  // namespace topocoll::v0::plan::detail
