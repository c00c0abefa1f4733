// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checker of shapes: whether numbers are in range and places exist, so that everything else can be looked at safely.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <topocoll/plan/detail/check_parts.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

template <class = void>
class check_shapes {
 public:
  check_shapes(std::span<const program> programs, check_log& log) : all_(programs), log_(log) {}

  /// False when something is wrong, which is told.
  bool run() {
    if (all_.empty()) {
      log_.add(check_kind::shape, "there are no programs");
      return false;
    }
    const std::size_t before = log_.report.failures.size();
    for (std::uint32_t r = 0; r < all_.size() && log_.report.failures.size() == before; ++r) {
      const program& p = all_[r];
      const program& first = all_[0];
      const std::string me = "the program of rank " + std::to_string(r);
      if (p.rank.value != r || p.ranks != all_.size())
        log_.add(check_kind::shape,
                 me + " says that it is rank " + std::to_string(p.rank.value) + " of " + std::to_string(p.ranks));
      else if (p.collective != first.collective || p.root != first.root || p.chunks != first.chunks)
        log_.add(check_kind::shape, me + " is for another collective, root or number of chunks than that of rank 0");
      else if (p.chunks == 0 || p.root.value >= p.ranks || p.channels == 0 || p.channels > 65535 ||
               static_cast<std::uint32_t>(p.collective) >= collective_count ||
               (sharded(p.collective) && p.chunks % p.ranks != 0))
        log_.add(check_kind::shape, me + " has " + std::to_string(p.chunks) + " chunks, root " +
                                        std::to_string(p.root.value) + " and " + std::to_string(p.channels) +
                                        " channels, which cannot be");
      else
        shape_of(p);
    }
    return log_.report.failures.size() == before;
  }

 private:
  void shape_of(const program& p) {
    const check_reader me{p};
    std::uint64_t next = 0;
    for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
      const step& st = p.steps[s];
      if (st.first_op != next || next + st.op_count > p.ops.size()) {
        log_.add(check_kind::shape,
                 me.step_name(s) + " does not begin with the operation after those of the step before");
        return;
      }
      next += st.op_count;
      if (st.channel >= p.channels)
        log_.add(check_kind::shape, me.step_name(s) + " is on channel " + std::to_string(st.channel) + " of " +
                                        std::to_string(p.channels));
      for (const std::uint32_t a : st.after)
        if (a >= s)
          log_.add(check_kind::shape, me.step_name(s) + " waits for step " + std::to_string(a) + ", a later one");
      for (std::uint32_t o = st.first_op; o < st.first_op + st.op_count; ++o) {
        const std::string wrong = shape_of(me, p.ops[o]);
        if (!wrong.empty()) log_.add(check_kind::shape, me.op_name(s, o) + ": " + wrong);
      }
    }
    if (next != p.ops.size())
      log_.add(check_kind::shape, "the program of rank " + std::to_string(p.rank.value) + " has " +
                                      std::to_string(p.ops.size() - next) + " operations in no step");
  }
  /// What is wrong with an operation by itself, or nothing.
  [[nodiscard]] static std::string shape_of(const check_reader& me, const op& o) {
    const program& p = me.p;
    if (static_cast<std::uint32_t>(o.kind) > static_cast<std::uint32_t>(op_kind::reduce))
      return "there is no such kind";
    const bool message = check_reader::sends(o) || check_reader::receives(o);
    if (message && (o.peer.value >= p.ranks || o.peer == p.rank))
      return "rank " + std::to_string(o.peer.value) + " is no other rank";
    const std::uint32_t count = check_reader::count(o);
    if (count == 0) return "it is about no chunk at all";
    const std::uint32_t shard = me.shard();
    if (o.stride != 1) {
      if (!sharded(p.collective) || shard != 1 || o.chunk >= p.chunks || o.stride == 0 || o.stride >= p.chunks ||
          count > p.chunks)
        return "it is about " + std::to_string(count) + " chunks from " + std::to_string(o.chunk) +
               " at distances of " + std::to_string(o.stride) + ", which are no whole shards";
      if ((check_reader::reads(o) && o.from.where != buffer::scratch) ||
          (check_reader::writes(o) && o.to.where != buffer::scratch))
        return "its chunks are strewn, but it does not leave them in scratch";
    } else if (std::uint64_t{o.chunk} + count > p.chunks)
      return "it is about chunks up to " + std::to_string(std::uint64_t{o.chunk} + count - 1) + " of " +
             std::to_string(p.chunks);
    if (sharded(p.collective) && shard > 1 && o.chunk / shard != (o.chunk + count - 1) / shard)
      return "its chunks are parts of two shards";
    for (const bool source : {true, false}) {
      if (source ? !check_reader::reads(o) : !check_reader::writes(o)) continue;
      const slice& s = source ? o.from : o.to;
      if (s.count != count)
        return "it reads " + std::to_string(count) + " chunks and writes " + std::to_string(s.count);
      if (!source && s.where == buffer::input) return "it overwrites the input";
      for (std::uint64_t c = s.first; c < std::uint64_t{s.first} + count; ++c)
        if (c > UINT32_MAX || !me.has(s.where, static_cast<std::uint32_t>(c)))
          return "this rank has no " + check_reader::cell_name(s.where, static_cast<std::uint32_t>(c));
      if (s.where == buffer::scratch) continue;
      const bool same_place =
          p.collective == collective_kind::all_to_all ? s.first % shard == o.chunk % shard : s.first == o.chunk;
      if (!same_place)
        return "it is about chunk " + std::to_string(o.chunk) + " and names " +
               check_reader::cell_name(s.where, s.first);
    }
    const bool both = check_reader::reads(o) && check_reader::writes(o) && o.from.where == o.to.where;
    if (both && o.from.first != o.to.first && o.from.first < o.to.first + count && o.to.first < o.from.first + count)
      return "what it reads and what it writes overlap in part";
    return {};
  }

  std::span<const program> all_;
  check_log& log_;
};

}}}}  // namespace topocoll::v0::plan::detail
