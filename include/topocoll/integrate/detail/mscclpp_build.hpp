// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/mscclpp_json.hpp turns programs into channels, thread blocks and operations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/message_flow.hpp>
#include <topocoll/integrate/mscclpp_json.hpp>
#include <topocoll/plan/levels.hpp>
#include <topocoll/plan/lower.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// One way of laying out a plan: streams over more channels, so that thread blocks stay short, and several streams to a
/// thread block, so that there are few.
struct mscclpp_layout {
  std::uint32_t spread = 1, streams_per_block = 1;
};

template <class = void>
class mscclpp_builder {
 public:
  mscclpp_builder(std::span<const plan::program> programs, const mscclpp_options& options, const mscclpp_layout& how)
      : programs_(programs), options_(options), how_(how) {}

  [[nodiscard]] result<mscclpp_plan> run() {
    const plan::program& first = programs_[0];
    flow_cut cut;
    cut.spread = how_.spread;
    cut.in_place = options_.in_place;
    cut.apart = !options_.in_place;
    for (const plan::program& p : programs_) flows_.push_back(flow_of(p, cut));
    for (std::uint32_t r = 0; r < programs_.size(); ++r) {
      ranks_.emplace_back();
      assign(r);
    }
    for (std::uint32_t r = 0; r < programs_.size(); ++r)
      for (const flow_piece& p : flows_[r].pieces)
        if (p.stream != none && other_end(flows_, r, p) == nullptr)
          return fail(errc::invalid_argument, "rank " + std::to_string(r) + " and rank " + std::to_string(p.peer) +
                                                  " do not exchange the same messages");
    find_grants();
    mscclpp_plan plan;
    plan.collective = first.collective;
    plan.in_place = options_.in_place;
    plan.name = options_.name;
    if (plan.name.empty())
      plan.name = std::string(to_string(first.collective)) + "_" + std::to_string(first.ranks) + "_ranks";
    std::uint32_t most_cells = first.chunks;
    for (std::uint32_t r = 0; r < programs_.size(); ++r) {
      auto gpu = part_of_gpu(r);
      if (!gpu) return std::move(gpu).error();
      most_cells = std::max(most_cells, gpu->scratch);
      plan.gpus.push_back(std::move(*gpu));
    }
    plan.min_bytes = options_.min_size.value;
    // Offsets in all buffers are 32-bit numbers of bytes.
    const std::uint64_t reach = (std::uint64_t{1} << 32U) / most_cells * first.chunks;
    plan.max_bytes = options_.max_size.value == 0 ? reach : std::min(reach, options_.max_size.value);
    return plan;
  }

 private:
  static constexpr std::uint32_t none = flow_piece::none;

  struct rank_state {
    std::vector<std::uint32_t> block;               ///< of each piece
    std::vector<std::vector<std::uint32_t>> order;  ///< pieces of each block
    std::vector<std::uint32_t> block_of_stream;
    std::vector<std::uint32_t> staging;  ///< of each receive_reduce: its first scratch cell
    std::vector<std::uint8_t> granted;   ///< per receive: it tells the sender when its place is free
    std::uint32_t scratch = 0;
  };

  [[nodiscard]] bool near(std::uint32_t a, std::uint32_t b) const {
    return options_.domain.empty() || options_.domain[a] == options_.domain[b];
  }

  void assign(std::uint32_t r) {
    const rank_flow& flow = flows_[r];
    rank_state& s = ranks_[r];
    s.block.assign(flow.pieces.size(), none);
    s.block_of_stream.assign(flow.streams.size(), none);
    s.granted.assign(flow.pieces.size(), 0);
    s.staging.assign(flow.pieces.size(), none);
    s.scratch = programs_[r].scratch_cells;
    for (std::uint32_t p = 0; p < flow.pieces.size(); ++p)
      if (flow.pieces[p].kind == plan::op_kind::receive_reduce) {
        s.staging[p] = s.scratch;
        s.scratch += flow.pieces[p].count;
      }
    const stream_pairs pairs = pairs_of(flow);
    struct bundle {
      std::uint32_t block, channel, streams;
      bool sends;
    };
    std::vector<bundle> open;
    const auto fresh = [&] {
      s.order.emplace_back();
      return static_cast<std::uint32_t>(s.order.size() - 1);
    };
    for (std::uint32_t i = 0; i < flow.streams.size(); ++i) {
      const flow_stream& stream = flow.streams[i];
      const std::uint32_t partner = pairs.partner[i];
      if (how_.streams_per_block == 1) {
        s.block_of_stream[i] =
            partner != none && s.block_of_stream[partner] != none ? s.block_of_stream[partner] : fresh();
        continue;
      }
      auto room = seq::find_if(open, [&](const bundle& b) {
        return b.channel == stream.channel && b.sends == stream.sends && b.streams < how_.streams_per_block;
      });
      if (room == open.end()) {
        open.push_back({fresh(), stream.channel, 0, stream.sends});
        room = open.end() - 1;
      }
      ++room->streams;
      s.block_of_stream[i] = room->block;
    }
    std::vector<std::uint32_t> alone(programs_[r].channels, none);
    for (std::uint32_t p = 0; p < flow.pieces.size(); ++p) {
      const flow_piece& piece = flow.pieces[p];
      std::uint32_t& at = s.block[p];
      if (piece.stream != none) {
        at = s.block_of_stream[piece.stream];
      } else {
        const std::uint32_t channel = piece.channel / how_.spread;
        for (const std::uint32_t a : piece.after)
          if (flow.pieces[a].channel / how_.spread == channel) at = s.block[a];
        if (at == none) {
          if (alone[channel] == none) alone[channel] = fresh();
          at = alone[channel];
        }
      }
      s.order[at].push_back(p);
    }
  }

  /// A message that overwrites what its receiver still uses needs the receiver's leave, unless its sender cannot have the
  /// data before all of those uses are over: then the leave is in the data.
  void find_grants() {
    for (std::uint32_t r = 0; r < flows_.size(); ++r)
      for (std::uint32_t p = 0; p < flows_[r].pieces.size(); ++p) {
        flow_piece& piece = flows_[r].pieces[p];
        if (piece.kind != plan::op_kind::receive || piece.after.empty()) continue;
        const flow_piece& sent = *other_end(flows_, r, piece);
        const auto first = static_cast<std::uint32_t>(&sent - flows_[piece.peer].pieces.data());
        if (all_before(r, piece.after, piece.peer, first))
          piece.after.clear();
        else
          ranks_[r].granted[p] = 1;
      }
  }
  /// Whether pieces of rank `r` are surely over before piece `start` of rank `there` begins. Walks back over data and messages.
  [[nodiscard]] bool all_before(std::uint32_t r, const std::vector<std::uint32_t>& wanted, std::uint32_t there,
                                std::uint32_t start) const {
    struct place {
      std::uint32_t rank, piece;
    };
    std::vector<std::vector<std::uint8_t>> seen(flows_.size());
    std::vector<place> open{{there, start}};
    std::size_t found = 0;
    const auto visit = [&](std::uint32_t rank, std::uint32_t piece) {
      if (seen[rank].empty()) seen[rank].assign(flows_[rank].pieces.size(), 0);
      if (seen[rank][piece] != 0) return;
      seen[rank][piece] = 1;
      if (rank == r && seq::contains(wanted, piece)) ++found;
      open.push_back({rank, piece});
    };
    while (!open.empty() && found < wanted.size()) {
      const place at = open.back();
      open.pop_back();
      const flow_piece& piece = flows_[at.rank].pieces[at.piece];
      const bool receives = piece.kind == plan::op_kind::receive || piece.kind == plan::op_kind::receive_reduce;
      if (receives) {
        const flow_piece& sent = *other_end(flows_, at.rank, piece);
        visit(piece.peer, static_cast<std::uint32_t>(&sent - flows_[piece.peer].pieces.data()));
      }
      // What a plain receive waits for may have been found to be no matter.
      if (piece.kind != plan::op_kind::receive)
        for (const std::uint32_t a : piece.after) visit(at.rank, a);
    }
    return found == wanted.size();
  }

  /// Where a slice lies, with the words of the format. In place, each rank's own shard is named within the whole array, whose
  /// start is at the same offset on all ranks.
  [[nodiscard]] mscclpp_place local(std::uint32_t r, const plan::slice& s) const {
    const plan::program& p = programs_[r];
    const std::uint32_t mine = r * (p.chunks / p.ranks);
    const bool gather = p.collective == collective_kind::all_gather;
    const bool scatter = p.collective == collective_kind::reduce_scatter;
    mscclpp_place place;
    place.index = s.first;
    place.size = s.count;
    if (s.where == plan::buffer::scratch) {
      place.buffer = 's';
    } else if (s.where == plan::buffer::input) {
      place.buffer = options_.in_place && gather ? 'o' : 'i';
      if (gather && !options_.in_place) place.index -= mine;
    } else {
      place.buffer = options_.in_place && scatter ? 'i' : 'o';
      if (scatter && !options_.in_place) place.index -= mine;
    }
    return place;
  }

  /// The operations of one thread block, with a nop wherever threads must wait for each other.
  class operation_list {
   public:
    explicit operation_list(std::vector<mscclpp_operation>& to) : to_(to) {}
    /// `narrow`: the first thread runs it alone.
    void add(mscclpp_operation o, bool narrow) {
      if (wide_since_ || (narrow_since_ && !narrow)) {
        to_.emplace_back();
        wide_since_ = narrow_since_ = false;
      }
      (narrow ? narrow_since_ : wide_since_) = true;
      to_.push_back(std::move(o));
    }

   private:
    std::vector<mscclpp_operation>& to_;
    bool wide_since_ = false, narrow_since_ = false;
  };

  [[nodiscard]] result<mscclpp_gpu> part_of_gpu(std::uint32_t r) {
    const plan::program& program = programs_[r];
    const rank_flow& flow = flows_[r];
    const rank_state& s = ranks_[r];
    // A plain receive waits for nobody here but to give leave; one that adds up waits like a reduction.
    const auto waits = waits_between(flow, s.block, s.order);
    if (waits.size() != flow.pieces.size())
      return fail(errc::bug, "rank " + std::to_string(r) + ": thread blocks contradict the order of the operations");
    mscclpp_gpu gpu;
    const std::uint32_t share = program.chunks / program.ranks;
    gpu.input = program.collective == collective_kind::all_gather ? share : program.chunks;
    gpu.output = program.collective == collective_kind::reduce_scatter ? share : program.chunks;
    gpu.scratch = s.scratch;
    gpu.blocks.resize(s.order.size());

    // Channels: both ends of a stream list it at the same place among the channels of the two.
    std::vector<std::uint32_t> by_name(flow.streams.size()), channel(flow.streams.size());
    for (std::uint32_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
    seq::sort(by_name, [&](std::uint32_t a, std::uint32_t b) {
      const flow_stream& x = flow.streams[a];
      const flow_stream& y = flow.streams[b];
      if (x.peer != y.peer) return x.peer < y.peer;
      const bool up_x = x.sends == (r < x.peer), up_y = y.sends == (r < y.peer);  // from the smaller rank to the larger
      return up_x != up_y ? up_x < up_y : x.channel < y.channel;
    });
    for (const std::uint32_t i : by_name) {
      const flow_stream& stream = flow.streams[i];
      auto& peers = near(r, stream.peer) ? gpu.memory_peers : gpu.port_peers;
      mscclpp_block& block = gpu.blocks[s.block_of_stream[i]];
      auto& mine = near(r, stream.peer) ? block.memory_channels : block.port_channels;
      channel[i] = static_cast<std::uint32_t>(mine.size());
      mine.push_back(static_cast<std::uint32_t>(peers.size()));
      peers.push_back(stream.peer);
    }
    // One semaphore for each wait between blocks.
    std::vector<std::vector<std::uint32_t>> acquire(flow.pieces.size()), release(flow.pieces.size());
    for (std::uint32_t p = 0; p < flow.pieces.size(); ++p)
      for (const std::uint32_t w : waits[p]) {
        acquire[p].push_back(gpu.semaphores);
        release[w].push_back(gpu.semaphores++);
      }
    std::vector<std::uint8_t> reused(flow.pieces.size(), 0);  // somebody here waits until it has read its source
    for (const flow_piece& p : flow.pieces)
      for (const std::uint32_t a : p.after) reused[a] = 1;

    for (std::uint32_t b = 0; b < s.order.size(); ++b) {
      mscclpp_block& block = gpu.blocks[b];
      operation_list list(block.operations);
      const auto on_channel = [&](mscclpp_op name, std::uint32_t stream) {
        mscclpp_operation o;
        o.name = name;
        o.type = near(r, flow.streams[stream].peer) ? mscclpp_channel::memory : mscclpp_channel::port;
        o.channels = {channel[stream]};
        list.add(std::move(o), true);
      };
      const auto semaphores = [&](mscclpp_op name, const std::vector<std::uint32_t>& ids) {
        const std::uint32_t most = mscclpp_limits{}.semaphores_per_operation;
        for (std::size_t i = 0; i < ids.size(); i += most) {
          mscclpp_operation o;
          o.name = name;
          o.semaphores.assign(ids.begin() + static_cast<std::ptrdiff_t>(i),
                              ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), i + most)));
          const bool narrow = o.semaphores.size() == 1;
          list.add(std::move(o), narrow);
        }
      };
      const auto combine = [&](mscclpp_place a, mscclpp_place c, mscclpp_place to) {
        mscclpp_operation o;
        o.name = mscclpp_op::re;
        o.src = {a, c};
        o.dst = {to};
        list.add(std::move(o), false);
      };
      for (std::uint32_t i = 0; i < flow.streams.size(); ++i)
        if (s.block_of_stream[i] == b && !flow.streams[i].sends) on_channel(mscclpp_op::signal, i);  // the kernel runs
      std::vector<std::uint32_t> unflushed;
      for (const std::uint32_t p : s.order[b]) {
        const flow_piece& piece = flow.pieces[p];
        switch (piece.kind) {
          case plan::op_kind::send: {
            semaphores(mscclpp_op::sem_acquire, acquire[p]);
            const flow_piece& other = *other_end(flows_, r, piece);
            const auto there = static_cast<std::uint32_t>(&other - flows_[piece.peer].pieces.data());
            if (piece.message == 0) on_channel(mscclpp_op::wait, piece.stream);
            if (ranks_[piece.peer].granted[there] != 0) on_channel(mscclpp_op::wait, piece.stream);
            const bool port = !near(r, piece.peer);
            mscclpp_operation o;
            o.name = mscclpp_op::put;
            o.type = port ? mscclpp_channel::port : mscclpp_channel::memory;
            o.channels = {channel[piece.stream]};
            o.src = {local(r, piece.from)};
            const std::uint32_t staging = ranks_[piece.peer].staging[there];
            o.dst = {staging != none ? local(piece.peer, {plan::buffer::scratch, staging, piece.count})
                                     : local(piece.peer, other.to)};
            o.dst[0].remote = remote(gpu, block, piece.peer, o.dst[0].buffer, port);
            o.dst[0].buffer = 'r';
            list.add(std::move(o), port);
            on_channel(mscclpp_op::signal, piece.stream);
            if (port) {
              if (reused[p] != 0) {
                on_channel(mscclpp_op::flush, piece.stream);
                std::erase(unflushed, piece.stream);
              } else if (!seq::contains(unflushed, piece.stream)) {
                unflushed.push_back(piece.stream);
              }
            }
            break;
          }
          case plan::op_kind::receive:
            if (s.granted[p] != 0) {
              semaphores(mscclpp_op::sem_acquire, acquire[p]);
              on_channel(mscclpp_op::signal, piece.stream);
            }
            on_channel(mscclpp_op::wait, piece.stream);
            break;
          case plan::op_kind::receive_reduce:
            on_channel(mscclpp_op::wait, piece.stream);
            semaphores(mscclpp_op::sem_acquire, acquire[p]);
            combine(local(r, piece.from), local(r, {plan::buffer::scratch, s.staging[p], piece.count}),
                    local(r, piece.to));
            break;
          case plan::op_kind::copy: {
            semaphores(mscclpp_op::sem_acquire, acquire[p]);
            mscclpp_operation o;
            o.name = mscclpp_op::copy;
            o.src = {local(r, piece.from)};
            o.dst = {local(r, piece.to)};
            list.add(std::move(o), false);
            break;
          }
          case plan::op_kind::reduce:
            semaphores(mscclpp_op::sem_acquire, acquire[p]);
            combine(local(r, piece.to), local(r, piece.from), local(r, piece.to));
            break;
        }
        semaphores(mscclpp_op::sem_release, release[p]);
      }
      for (const std::uint32_t i : unflushed)
        on_channel(mscclpp_op::flush, i);  // the caller may reuse its buffers then
    }
    std::erase_if(gpu.blocks, [](const mscclpp_block& block) { return block.operations.empty(); });
    return gpu;
  }

  /// The place of a peer's buffer in the list of a thread block.
  [[nodiscard]] static std::uint32_t remote(mscclpp_gpu& gpu, mscclpp_block& block, std::uint32_t peer, char buffer,
                                            bool port) {
    auto at = seq::find_if(gpu.remotes, [&](const mscclpp_remote& x) { return x.rank == peer && x.buffer == buffer; });
    if (at == gpu.remotes.end()) {
      gpu.remotes.push_back({peer, buffer, false, false});
      at = gpu.remotes.end() - 1;
    }
    (port ? at->by_port : at->by_memory) = true;
    const auto number = static_cast<std::uint32_t>(at - gpu.remotes.begin());
    auto& list = port ? block.port_buffers : block.memory_buffers;
    const auto known = seq::find(list, number);
    const auto place = static_cast<std::uint32_t>(known - list.begin());
    if (known == list.end()) list.push_back(number);
    return place;
  }

  std::span<const plan::program> programs_;
  const mscclpp_options& options_;
  mscclpp_layout how_;
  std::vector<rank_flow> flows_;
  std::vector<rank_state> ranks_;
};

/// What may help a plan that is beyond a limit.
struct mscclpp_excess {
  bool too_long = false, too_many = false;
  std::string what;
};
template <class = void>
[[nodiscard]] mscclpp_excess beyond_limits(const mscclpp_plan& plan, std::uint32_t most_blocks) {
  const mscclpp_limits most;
  mscclpp_excess found;
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    const std::string who = " of GPU " + std::to_string(g);
    if (plan.gpus[g].blocks.size() > most_blocks) {
      found.too_many = true;
      found.what = std::to_string(plan.gpus[g].blocks.size()) + " thread blocks" + who + " where " +
                   std::to_string(most_blocks) + " can run at once";
    }
    for (const mscclpp_block& b : plan.gpus[g].blocks)
      if (b.operations.size() > most.operations || b.memory_channels.size() > most.channels ||
          b.port_channels.size() > most.channels || b.memory_buffers.size() > most.channels ||
          b.port_buffers.size() > most.channels) {
        found.too_long = true;
        if (!found.too_many)
          found.what = std::to_string(b.operations.size()) + " operations in a thread block" + who + " where " +
                       std::to_string(most.operations) + " are allowed";
      }
  }
  return found;
}

}  // namespace detail

template <class>
result<mscclpp_plan> mscclpp_plan_of(std::span<const plan::program> programs, const mscclpp_options& options) {
  if (auto ok = detail::belong_together(programs); !ok) return std::move(ok).error();
  const plan::program& first = programs[0];
  if (!options.domain.empty() && options.domain.size() != first.ranks)
    return fail(errc::invalid_argument, std::to_string(options.domain.size()) + " domains were given for " +
                                            std::to_string(first.ranks) + " ranks");
  if (first.collective == collective_kind::reduce)
    return fail(errc::unsupported, "MSCCL++ has no reduce to one root", "take reduce_scatter or all_reduce");
  if (first.collective == collective_kind::broadcast && !options.one_root)
    return fail(errc::unsupported, "MSCCL++'s files do not say for which root a broadcast is",
                "allow it only if the program always takes rank " + std::to_string(first.root.value) + " as the root");
  mscclpp_check_options check;
  check.root = first.root.value;
  check.most_blocks = options.most_blocks;
  std::string beyond;
  std::optional<failure> wrong;
  for (std::uint32_t streams = 1; streams <= 16; streams *= 2)
    for (std::uint32_t spread = 1; spread <= 16; spread *= 2) {
      auto plan = detail::mscclpp_builder<>(programs, options, {spread, streams}).run();
      if (!plan) return plan;
      const detail::mscclpp_excess excess = detail::beyond_limits(*plan, options.most_blocks);
      if (beyond.empty()) beyond = excess.what;
      if (excess.too_many) break;  // more channels would make it worse
      if (excess.too_long) continue;
      const auto proof = check_mscclpp_plan(*plan, check);
      if (proof) return plan;
      if (!wrong) wrong = proof.error();
    }
  if (wrong)
    return fail(errc::bug, "the exported plan of " + std::to_string(first.ranks) +
                               " ranks does not pass the check: " + wrong->what);
  return fail(errc::unsupported, "the plan takes " + beyond + " by MSCCL++",
              "take a plan with fewer slices, or one in which each rank has fewer peers");
}

template <class>
result<mscclpp_plan> mscclpp_plan_of(const plan::schedule& schedule, const mscclpp_options& options) {
  std::vector<plan::program> programs;
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) {
    auto program = plan::lower(schedule, rank_id{r});
    if (!program) return std::move(program).error();
    programs.push_back(std::move(*program));
  }
  return mscclpp_plan_of(std::span<const plan::program>(programs), options);
}

template <class>
result<std::vector<std::uint32_t>> memory_domains(const plan::problem& p) {
  auto at = plan::levels_of(p);
  if (!at) return std::move(at).error();
  return std::move(at->box);
}

}}  // namespace topocoll::v0
