// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/msccl_xml.hpp lays programs out in thread blocks and steps.
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
#include <topocoll/integrate/msccl_xml.hpp>
#include <topocoll/plan/lower.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Which sends are done in one step with the receive of what they pass on, and which streams share a thread block.
struct block_layout {
  static constexpr std::uint32_t none = flow_piece::none;
  std::vector<std::uint32_t> fused_send;  ///< per receive: the send that it is fused with
  std::vector<std::uint32_t> fused_with;  ///< per send: that receive
  std::vector<std::uint32_t> partner;     ///< per stream: the stream of the other direction in the same block
};

/// Pairs streams that pass on the most, and fuses the sends that can be done as early as their receive.
template <class = void>
[[nodiscard]] block_layout fuse(rank_flow& flow) {
  constexpr std::uint32_t none = block_layout::none;
  const stream_pairs pairs = pairs_of(flow);
  block_layout layout;
  layout.fused_send.assign(flow.pieces.size(), none);
  layout.fused_with.assign(flow.pieces.size(), none);
  layout.partner = pairs.partner;
  for (std::uint32_t s = 0; s < flow.streams.size(); ++s) {
    if (!flow.streams[s].sends || layout.partner[s] == none) continue;
    std::uint32_t last_place = 0;  // of the send before, in the order of the block
    for (const std::uint32_t p : flow.streams[s].pieces) {
      const std::uint32_t r = pairs.origin[p];
      const bool early = r != none && flow.pieces[r].stream == layout.partner[s] && layout.fused_send[r] == none &&
                         last_place <= r && seq::all_of(flow.pieces[p].after, [&](std::uint32_t a) { return a <= r; });
      if (!early) {
        last_place = p;
        continue;
      }
      last_place = r;
      layout.fused_send[r] = p;
      layout.fused_with[p] = r;
      // What the send waits for, the step as a whole waits for.
      for (const std::uint32_t a : flow.pieces[p].after)
        if (a != r && !seq::contains(flow.pieces[r].after, a)) flow.pieces[r].after.push_back(a);
      seq::sort(flow.pieces[r].after);
      flow.pieces[p].after = {r};
    }
  }
  return layout;
}

/// True when nobody but its fused send needs what a receive_reduce leaves at this rank: it is overwritten unread, or it is
/// in scratch for good.
template <class = void>
[[nodiscard]] bool sum_is_dead(const rank_flow& flow, std::uint32_t receive, std::uint32_t send) {
  const flow_piece& r = flow.pieces[receive];
  if (r.to.where == plan::buffer::input) return false;
  for (std::uint32_t i = 0; i < r.count; ++i) {
    const std::uint32_t c = r.to.first + i;
    const auto holds = [&](const plan::slice& s, std::uint32_t count) {
      return s.where == r.to.where && s.first <= c && c < s.first + count;
    };
    bool overwritten = false;
    for (std::uint32_t p = receive + 1; p < flow.pieces.size() && !overwritten; ++p) {
      const flow_piece& later = flow.pieces[p];
      const bool reads = later.kind != plan::op_kind::receive && holds(later.from, later.count);
      const bool writes = later.kind != plan::op_kind::send && holds(later.to, later.count);
      if (p != send && (reads || (writes && later.kind == plan::op_kind::reduce))) return false;
      overwritten = writes;
    }
    if (!overwritten && r.to.where == plan::buffer::output) return false;
  }
  return true;
}

/// One way of laying out a plan.
struct msccl_layout {
  bool fused = true;                   ///< steps that receive and send
  bool paired = false;                 ///< every block sends and receives, for plans with too many streams
  std::uint32_t spread = 1, fold = 1;  ///< as in `flow_cut`
};

template <class = void>
class msccl_builder {
 public:
  msccl_builder(std::span<const plan::program> programs, const msccl_options& options, const msccl_layout& how)
      : programs_(programs), options_(options), how_(how), most_(limits_of(options.reader)) {}

  [[nodiscard]] result<msccl_plan> run() {
    const plan::program& first = programs_[0];
    const bool fork = options_.reader == msccl_reader::fork;
    flow_cut cut;
    cut.most_chunks = most_.count;
    cut.most_reduced = 1;  // readers add up neighbouring reductions at once, and the fork then counts one chunk only
    cut.spread = how_.spread;
    cut.fold = how_.fold;
    cut.in_place = fork && options_.in_place;
    cut.apart = fork && !options_.in_place;
    for (const plan::program& p : programs_) flows_.push_back(flow_of(p, cut));
    msccl_plan plan;
    plan.reader = options_.reader;
    plan.collective = first.collective;
    plan.protocol = options_.protocol;
    plan.channels = (first.channels + how_.fold - 1) / how_.fold * how_.spread;
    plan.chunks = first.chunks;
    plan.in_place = fork ? options_.in_place : true;
    plan.out_of_place = fork ? !options_.in_place : true;
    plan.min_bytes = options_.min_size.value;
    plan.max_bytes = options_.max_size.value;
    plan.name = options_.name;
    if (plan.name.empty())
      plan.name = std::string(to_string(first.collective)) + "_" + std::to_string(first.ranks) + "_ranks";
    for (std::uint32_t r = 0; r < programs_.size(); ++r) {
      auto gpu = part_of_gpu(r);
      if (!gpu) return std::move(gpu).error();
      plan.gpus.push_back(std::move(*gpu));
    }
    return plan;
  }

 private:
  static constexpr std::uint32_t none = flow_piece::none;

  /// The thread block of each piece, and the pieces of each thread block in order.
  struct assignment {
    std::vector<std::uint32_t> block;
    std::vector<std::vector<std::uint32_t>> order;
    std::vector<msccl_block> blocks;
  };

  [[nodiscard]] assignment assign(const rank_flow& flow, block_layout& layout) const {
    assignment made;
    made.block.assign(flow.pieces.size(), none);
    const auto open = [&](std::uint32_t channel) {
      made.blocks.emplace_back();
      made.blocks.back().channel = channel;
      made.order.emplace_back();
      return static_cast<std::uint32_t>(made.blocks.size() - 1);
    };
    if (how_.paired)
      for (std::uint32_t a = 0; a < flow.streams.size(); ++a)
        for (std::uint32_t b = 0; b < flow.streams.size() && layout.partner[a] == none; ++b)
          if (flow.streams[a].sends && !flow.streams[b].sends && layout.partner[b] == none &&
              flow.streams[a].channel == flow.streams[b].channel) {
            layout.partner[a] = b;
            layout.partner[b] = a;
          }
    std::vector<std::uint32_t> of_stream(flow.streams.size(), none);
    for (std::uint32_t s = 0; s < flow.streams.size(); ++s) {
      const flow_stream& stream = flow.streams[s];
      const std::uint32_t other = layout.partner[s];
      of_stream[s] = other != none && of_stream[other] != none ? of_stream[other] : open(stream.channel);
      (stream.sends ? made.blocks[of_stream[s]].send : made.blocks[of_stream[s]].recv) =
          static_cast<std::int32_t>(stream.peer);
    }
    std::vector<std::uint32_t> local(most_.channels * 64, none);
    for (std::uint32_t p = 0; p < flow.pieces.size(); ++p) {
      const flow_piece& piece = flow.pieces[p];
      if (piece.stream != none) {
        made.block[p] = of_stream[piece.stream];
      } else {
        // Where the last of what it waits for is done, nothing has to be told to another block.
        std::uint32_t at = none;
        for (const std::uint32_t a : piece.after)
          if (made.blocks[made.block[a]].channel / how_.spread == piece.channel / how_.spread) at = made.block[a];
        std::uint32_t& alone = local[piece.channel % local.size()];
        if (at == none && how_.paired)  // thread blocks are scarce
          for (std::uint32_t b = 0; b < made.blocks.size() && at == none; ++b)
            if (made.blocks[b].channel == piece.channel) at = b;
        if (at == none && alone == none) alone = open(piece.channel);
        made.block[p] = at != none ? at : alone;
      }
      const std::uint32_t with = layout.fused_with[p];
      if (with == none) {
        made.order[made.block[p]].push_back(p);
        continue;
      }
      auto& list = made.order[made.block[p]];  // right behind its receive
      const auto place = seq::find(list, with);
      list.insert(place + 1, p);
    }
    return made;
  }

  [[nodiscard]] std::uint32_t offset(std::uint32_t rank, const plan::slice& s) const {
    const plan::program& p = programs_[rank];
    const std::uint32_t mine = rank * (p.chunks / p.ranks);
    if (s.where == plan::buffer::input && p.collective == collective_kind::all_gather) return s.first - mine;
    if (s.where == plan::buffer::output && p.collective == collective_kind::reduce_scatter) return s.first - mine;
    return s.first;
  }
  void name_place(std::uint32_t rank, const plan::slice& s, char& buffer, std::int32_t& at) const {
    buffer = s.where == plan::buffer::input ? 'i' : s.where == plan::buffer::output ? 'o' : 's';
    at = static_cast<std::int32_t>(offset(rank, s));
  }

  [[nodiscard]] result<msccl_gpu> part_of_gpu(std::uint32_t r) {
    const plan::program& program = programs_[r];
    rank_flow& flow = flows_[r];
    block_layout layout;
    layout.fused_send.assign(flow.pieces.size(), none);
    layout.fused_with.assign(flow.pieces.size(), none);
    layout.partner.assign(flow.streams.size(), none);
    if (how_.fused) layout = fuse(flow);
    assignment made = assign(flow, layout);
    const auto waits = waits_between(flow, made.block, made.order);
    if (waits.size() != flow.pieces.size())
      return fail(errc::bug, "rank " + std::to_string(r) + ": thread blocks contradict the order of the operations");

    msccl_gpu gpu;
    const std::uint32_t share = program.chunks / program.ranks;
    gpu.input = program.collective == collective_kind::all_gather ? share : program.chunks;
    gpu.output = program.collective == collective_kind::reduce_scatter ? share : program.chunks;
    gpu.scratch = program.scratch_cells;
    // Numbers of the steps first: a piece with k waits takes k - 1 nops before it.
    std::vector<std::uint32_t> number(flow.pieces.size(), 0);
    std::vector<std::uint8_t> told(flow.pieces.size(), 0);
    for (const auto& list : made.order) {
      std::uint32_t at = 0;
      for (const std::uint32_t p : list) {
        if (layout.fused_with[p] != none) {
          number[p] = number[layout.fused_with[p]];
          continue;
        }
        if (waits[p].size() > 1) at += static_cast<std::uint32_t>(waits[p].size()) - 1;
        number[p] = at++;
      }
    }
    for (const auto& list : waits)
      for (const std::uint32_t w : list) told[layout.fused_with[w] != none ? layout.fused_with[w] : w] = 1;

    for (std::size_t b = 0; b < made.order.size(); ++b) {
      auto& steps = made.blocks[b].steps;
      for (const std::uint32_t p : made.order[b]) {
        if (layout.fused_with[p] != none) continue;
        auto step = step_of(r, p, layout.fused_send[p]);
        if (!step) return std::move(step).error();
        step->has_dep = told[p] != 0;
        for (std::size_t w = 0; w < waits[p].size(); ++w) {
          const bool last = w + 1 == waits[p].size();
          msccl_step nop;
          msccl_step& waiting = last ? *step : nop;
          waiting.dep_block = static_cast<std::int32_t>(made.block[waits[p][w]]);
          waiting.dep_step = static_cast<std::int32_t>(number[waits[p][w]]);
          if (!last) steps.push_back(nop);
        }
        steps.push_back(*step);
      }
      limit_chains(steps);
    }
    gpu.blocks = std::move(made.blocks);
    return gpu;
  }

  [[nodiscard]] result<msccl_step> step_of(std::uint32_t r, std::uint32_t p, std::uint32_t send) const {
    const rank_flow& flow = flows_[r];
    const flow_piece& piece = flow.pieces[p];
    msccl_step s;
    s.count = piece.count;
    const flow_piece* other = piece.stream == none ? nullptr : other_end(flows_, r, piece);
    if (piece.stream != none && other == nullptr)
      return fail(errc::invalid_argument, "rank " + std::to_string(r) + " and rank " + std::to_string(piece.peer) +
                                              " do not exchange the same messages");
    switch (piece.kind) {
      case plan::op_kind::send:
        s.type = msccl_op::s;
        name_place(r, piece.from, s.src, s.src_offset);
        name_place(piece.peer, other->to, s.dst, s.dst_offset);
        break;
      case plan::op_kind::receive:
        s.type = send == none ? msccl_op::r : msccl_op::rcs;
        name_place(piece.peer, other->from, s.src, s.src_offset);
        name_place(r, piece.to, s.dst, s.dst_offset);
        break;
      case plan::op_kind::receive_reduce:
        s.type = send == none ? msccl_op::rrc : sum_is_dead(flow, p, send) ? msccl_op::rrs : msccl_op::rrcs;
        name_place(r, piece.from, s.src, s.src_offset);
        name_place(r, piece.to, s.dst, s.dst_offset);
        break;
      case plan::op_kind::copy:
      case plan::op_kind::reduce:
        s.type = piece.kind == plan::op_kind::copy ? msccl_op::cpy : msccl_op::re;
        name_place(r, piece.from, s.src, s.src_offset);
        name_place(r, piece.to, s.dst, s.dst_offset);
        break;
    }
    return s;
  }

  /// Breaks runs of reductions that the readers would fuse, by telling that one is over.
  void limit_chains(std::vector<msccl_step>& steps) const {
    std::uint32_t chain = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const msccl_step& s = steps[i];
      const bool goes_on = i != 0 && s.type == msccl_op::re && steps[i - 1].type == msccl_op::re &&
                           !steps[i - 1].has_dep && s.dep_block < 0;
      chain = goes_on ? chain + 1 : 1;
      if (chain == most_.fused_reductions) {
        steps[i].has_dep = true;
        chain = 0;
      }
    }
  }

  std::span<const plan::program> programs_;
  const msccl_options& options_;
  msccl_layout how_;
  msccl_limits most_;
  std::vector<rank_flow> flows_;
};

/// The first limit that a plan passes, in words, and what may help.
struct msccl_excess {
  enum class cure_t : std::uint8_t { none, more_channels, fewer_blocks };
  cure_t cure = cure_t::none;
  std::string what;  ///< empty when the plan keeps all limits
};
template <class = void>
[[nodiscard]] msccl_excess beyond_limits(const msccl_plan& plan) {
  using cure = msccl_excess::cure_t;
  const msccl_limits most = limits_of(plan.reader);
  const auto excess = [](cure c, std::size_t is, const std::string& what, std::uint32_t allowed) {
    return msccl_excess{c, std::to_string(is) + " " + what + " where " + std::to_string(allowed) + " are allowed"};
  };
  if (plan.channels > most.channels) return excess(cure::none, plan.channels, "channels", most.channels);
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    const std::string who = " of GPU " + std::to_string(g);
    std::vector<std::uint32_t> sends(plan.channels, 0), receives(plan.channels, 0);
    for (const msccl_block& b : plan.gpus[g].blocks) {
      if (b.send >= 0) ++sends[b.channel];
      if (b.recv >= 0) ++receives[b.channel];
    }
    for (std::uint32_t c = 0; c < plan.channels; ++c)
      if (const std::uint32_t peers = std::max(sends[c], receives[c]); peers > most.peers_per_channel)
        return excess(cure::none, peers, "peers" + who + " on a channel", most.peers_per_channel);
    if (plan.gpus[g].blocks.size() > most.thread_blocks)
      return excess(cure::fewer_blocks, plan.gpus[g].blocks.size(), "thread blocks" + who, most.thread_blocks);
    for (const msccl_block& b : plan.gpus[g].blocks) {
      if (b.steps.size() > most.steps)
        return excess(cure::more_channels, b.steps.size(), "steps in a thread block" + who, most.steps);
      for (const msccl_step& s : b.steps)
        if (s.dep_block >= static_cast<std::int32_t>(most.waited_for))
          return excess(cure::fewer_blocks, plan.gpus[g].blocks.size(), "thread blocks that wait for each other" + who,
                        most.waited_for);
    }
  }
  return {};
}

[[nodiscard]] inline result<void> few_enough_chunks(std::uint64_t chunks, const msccl_limits& most) {
  if (chunks <= most.offset) return {};
  return fail(errc::unsupported, "the plan cuts its data into " + std::to_string(chunks) + " chunks; MSCCL takes " +
                                     std::to_string(most.offset));
}

}  // namespace detail

template <class>
result<msccl_plan> msccl_plan_of(std::span<const plan::program> programs, const msccl_options& options) {
  if (auto ok = detail::belong_together(programs); !ok) return std::move(ok).error();
  if (options.protocol != "Simple" && options.protocol != "LL" && options.protocol != "LL128")
    return fail(errc::invalid_argument, "'" + options.protocol + "' is not a protocol", "take Simple, LL or LL128");
  const plan::program& first = programs[0];
  if ((first.collective == collective_kind::broadcast || first.collective == collective_kind::reduce) &&
      !options.one_root)
    return fail(errc::unsupported,
                "MSCCL's files do not say for which root a " + std::string(to_string(first.collective)) +
                    " is, and readers would run this plan for every root",
                "allow it only if the program always takes rank " + std::to_string(first.root.value) + " as the root");
  const msccl_limits most = limits_of(options.reader);
  if (auto ok = detail::few_enough_chunks(std::max(first.chunks, first.scratch_cells), most); !ok)
    return std::move(ok).error();
  msccl_check_options check;
  check.root = first.root.value;
  // The first layout that keeps all limits and passes the check: fused steps if they cannot block, more channels for long
  // blocks, channels of the plan together for many blocks, and at last blocks that both send and receive.
  using cure = detail::msccl_excess::cure_t;
  std::string beyond;
  std::optional<failure> wrong;
  for (const bool paired : {false, true})
    for (std::uint32_t fold = 1; fold <= first.channels; fold *= 2)
      for (const bool fused : {true, false})
        for (std::uint32_t spread = 1; spread <= most.channels; spread *= 2) {
          auto plan = detail::msccl_builder<>(programs, options, {fused, paired, spread, fold}).run();
          if (!plan && fold == 1) return plan;
          if (!plan) break;  // the ends see different orders of messages
          const detail::msccl_excess excess = detail::beyond_limits(*plan);
          if (excess.what.empty()) {
            const auto proof = check_msccl_plan(*plan, check);
            if (proof) return plan;
            if (!wrong) wrong = proof.error();
            break;
          }
          if (beyond.empty()) beyond = excess.what;
          if (excess.cure != cure::more_channels) break;
        }
  if (beyond.empty())
    return fail(errc::bug, "the exported plan of " + std::to_string(first.ranks) +
                               " ranks does not pass the check: " + (wrong ? wrong->what : std::string()));
  return fail(errc::unsupported,
              "the plan takes " + beyond +
                  (options.reader == msccl_reader::fork ? " by MSCCL's fork of NCCL" : " by MSCCL's executor"),
              "take a plan with fewer slices, or one in which each rank has fewer peers");
}

template <class>
result<msccl_plan> msccl_plan_of(const plan::schedule& schedule, const msccl_options& options) {
  // Known before anything is lowered.
  if (auto ok = detail::few_enough_chunks(schedule.chunks(), limits_of(options.reader)); !ok)
    return std::move(ok).error();
  std::vector<plan::program> programs;
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) {
    auto program = plan::lower(schedule, rank_id{r});
    if (!program) return std::move(program).error();
    programs.push_back(std::move(*program));
  }
  return msccl_plan_of(std::span<const plan::program>(programs), options);
}

}}  // namespace topocoll::v0
