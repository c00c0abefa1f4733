// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/msccl_xml.hpp proves a plan by the rules of its reader.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/block_run.hpp>
#include <topocoll/integrate/detail/collective_ends.hpp>
#include <topocoll/integrate/detail/msccl_text.hpp>
#include <topocoll/integrate/msccl_xml.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

[[nodiscard]] constexpr bool msccl_sends(msccl_op o) {
  return o == msccl_op::s || o == msccl_op::rcs || o == msccl_op::rrs || o == msccl_op::rrcs;
}
[[nodiscard]] constexpr bool msccl_receives(msccl_op o) {
  return o == msccl_op::r || o == msccl_op::rcs || o == msccl_op::rrs || o == msccl_op::rrc || o == msccl_op::rrcs;
}
[[nodiscard]] constexpr bool msccl_reads(msccl_op o) {
  return o != msccl_op::r && o != msccl_op::rcs && o != msccl_op::nop;
}
[[nodiscard]] constexpr bool msccl_writes(msccl_op o) {
  return o != msccl_op::s && o != msccl_op::rrs && o != msccl_op::nop;
}
/// Messages in flight: NCCL's buffers have 8 parts; Simple fills 4 with each message of MSCCL, the others 1.
/// Source: MSCCL_CHUNKSTEPS = NCCL_STEPS / 2 in both readers.
[[nodiscard]] constexpr std::uint32_t msccl_slots(std::string_view protocol) { return protocol == "Simple" ? 2 : 8; }

/// One end of a connection: which steps send (or receive) on it, in order.
struct msccl_end {
  std::uint32_t channel = 0, from = 0, to = 0, gpu = 0, block = 0;
  std::vector<std::uint32_t> steps;
};

/// Checks one plan.
template <class = void>
class msccl_checker {
 public:
  msccl_checker(const msccl_plan& plan, const msccl_check_options& options) : plan_(plan), options_(options) {}

  [[nodiscard]] result<msccl_proof> run() {
    if (auto ok = head(); !ok) return std::move(ok).error();
    for (std::uint32_t g = 0; g < plan_.gpus.size(); ++g)
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b)
        if (auto ok = block(g, b); !ok) return std::move(ok).error();
    if (auto ok = connections(); !ok) return std::move(ok).error();
    for (const bool one_by_one : {false, true})
      if (auto ok = cannot_block(one_by_one); !ok) return std::move(ok).error();
    for (const bool in_place : {false, true})
      if (in_place ? plan_.in_place : plan_.out_of_place)
        if (auto ok = computes(in_place); !ok) return std::move(ok).error();
    return proof_;
  }

 private:
  [[nodiscard]] static std::string at(std::uint32_t g, std::uint32_t b) { return block_in_words(g, b); }
  [[nodiscard]] std::string at(std::uint32_t g, std::uint32_t b, std::uint32_t s) const {
    return at(g, b) + ", step " + std::to_string(s) + " (" +
           std::string(to_string(plan_.gpus[g].blocks[b].steps[s].type)) + ")";
  }
  [[nodiscard]] static failure refuse(const std::string& what) { return fail(errc::malformed_input, what); }

  [[nodiscard]] result<void> head() {
    const msccl_limits most = limits_of(plan_.reader);
    const auto ranks = static_cast<std::uint32_t>(plan_.gpus.size());
    const bool known = !msccl_word(plan_.collective, plan_.reader).empty();
    auto ends = ends_of_plan(plan_, known, options_.root, plan_.chunks, {"nchunksperloop", "i_chunks", "o_chunks"});
    if (!ends) return std::move(ends).error();
    ends_ = *ends;
    if (plan_.name.empty() || plan_.name.size() > most.name)
      return refuse("the name of the plan has " + std::to_string(plan_.name.size()) + " letters; readers take 1 to " +
                    std::to_string(most.name));
    if (plan_.protocol != "Simple" && plan_.protocol != "LL" && plan_.protocol != "LL128")
      return refuse("the protocol is '" + plan_.protocol + "' instead of Simple, LL or LL128");
    if (plan_.channels == 0 || plan_.channels > most.channels)
      return refuse("the plan has " + std::to_string(plan_.channels) + " channels; readers take 1 to " +
                    std::to_string(most.channels));
    if (!plan_.in_place && !plan_.out_of_place) return refuse("the plan is neither for one buffer nor for two");
    if (plan_.reader == msccl_reader::fork && plan_.in_place && plan_.out_of_place)
      return refuse("the fork's files are for one buffer or for two, not for both");
    if (plan_.max_bytes != 0 && plan_.min_bytes > plan_.max_bytes)
      return refuse("minBytes " + std::to_string(plan_.min_bytes) + " is above maxBytes " +
                    std::to_string(plan_.max_bytes));
    for (std::uint32_t g = 0; g < ranks; ++g) {
      const msccl_gpu& gpu = plan_.gpus[g];
      if (gpu.input > most.offset || gpu.output > most.offset || gpu.scratch > most.offset)
        return refuse("GPU " + std::to_string(g) + " has more chunks than offsets of " + std::to_string(most.offset) +
                      " can name");
      if (gpu.blocks.size() > most.thread_blocks)
        return refuse("GPU " + std::to_string(g) + " has " + std::to_string(gpu.blocks.size()) +
                      " thread blocks; the reader takes " + std::to_string(most.thread_blocks));
      if (gpu.blocks.size() > proof_.most_blocks) proof_.most_blocks = static_cast<std::uint32_t>(gpu.blocks.size());
    }
    proof_.ranks = ranks;
    proof_.channels = plan_.channels;
    proof_.slot_count = msccl_slots(plan_.protocol);
    return {};
  }

  [[nodiscard]] result<void> block(std::uint32_t g, std::uint32_t b) {
    const msccl_limits most = limits_of(plan_.reader);
    const msccl_block& tb = plan_.gpus[g].blocks[b];
    for (const std::int32_t peer : {tb.send, tb.recv})
      if (peer < -1 || peer >= static_cast<std::int32_t>(plan_.gpus.size()) || peer == static_cast<std::int32_t>(g))
        return refuse(at(g, b) + " has the peer " + std::to_string(peer));
    if (tb.channel >= plan_.channels)
      return refuse(at(g, b) + " is on channel " + std::to_string(tb.channel) + " of " +
                    std::to_string(plan_.channels));
    if (tb.steps.size() > most.steps)
      return refuse(at(g, b) + " has " + std::to_string(tb.steps.size()) + " steps; the reader takes " +
                    std::to_string(most.steps));
    if (tb.steps.size() > proof_.most_steps) proof_.most_steps = static_cast<std::uint32_t>(tb.steps.size());
    bool waits_before = false;  // nops stand before this step
    std::uint32_t chain = 0;
    for (std::uint32_t i = 0; i < tb.steps.size(); ++i) {
      const msccl_step& s = tb.steps[i];
      const bool waits = s.dep_block >= 0;
      if (waits != (s.dep_step >= 0))
        return refuse(at(g, b, i) + " names a thread block or a step to wait for, but not both");
      if (waits) {
        if (auto ok = wait(g, b, i); !ok) return ok;
      }
      ++proof_.steps;
      if (s.type == msccl_op::nop) {
        if (!waits) return refuse(at(g, b, i) + " waits for nothing");
        if (s.has_dep) return refuse(at(g, b, i) + " has hasdep=1, but nops tell nobody that they are over");
        waits_before = true;
        chain = 0;
        continue;
      }
      if (waits_before && !waits) return refuse(at(g, b, i) + " follows nops, but waits for nothing itself");
      waits_before = false;
      if (s.count == 0 || s.count > most.count)
        return refuse(at(g, b, i) + " moves " + std::to_string(s.count) + " chunks; the readers take 1 to " +
                      std::to_string(most.count));
      if (msccl_sends(s.type) && tb.send < 0)
        return refuse(at(g, b, i) + " sends, but its thread block has no peer to send to");
      if (msccl_receives(s.type) && tb.recv < 0)
        return refuse(at(g, b, i) + " receives, but its thread block has no peer to receive from");
      if (msccl_reads(s.type) && !inside(g, s.src, s.src_offset, s.count))
        return refuse(at(g, b, i) + " reads beyond the end of buffer " + std::string(1, s.src));
      if (msccl_writes(s.type) && !inside(g, s.dst, s.dst_offset, s.count))
        return refuse(at(g, b, i) + " writes beyond the end of buffer " + std::string(1, s.dst));
      if (msccl_sends(s.type) && msccl_receives(s.type)) ++proof_.fused;
      // The readers make neighbouring reductions to one place into one; its length is that of the last.
      const msccl_step* before = i == 0 ? nullptr : &tb.steps[i - 1];
      const bool goes_on = s.type == msccl_op::re && before != nullptr && before->type == msccl_op::re &&
                           !before->has_dep && !waits && before->dst == s.dst && before->dst_offset == s.dst_offset &&
                           before->src == s.src;
      chain = goes_on ? chain + 1 : 1;
      if (goes_on && before->count != s.count)
        return refuse(at(g, b, i) + " reduces " + std::to_string(s.count) +
                      " chunks to where the step before reduced " + std::to_string(before->count) +
                      "; the readers make both into one");
      if (chain > most.fused_reductions)
        return refuse(at(g, b, i) + " is one of more than " + std::to_string(most.fused_reductions) +
                      " reductions that the readers make into one");
    }
    if (waits_before) return refuse(at(g, b) + " ends with a nop, which nobody obeys");
    return {};
  }

  [[nodiscard]] result<void> wait(std::uint32_t g, std::uint32_t b, std::uint32_t i) const {
    const msccl_step& s = plan_.gpus[g].blocks[b].steps[i];
    const auto& blocks = plan_.gpus[g].blocks;
    const auto other = static_cast<std::uint32_t>(s.dep_block), step = static_cast<std::uint32_t>(s.dep_step);
    if (other >= blocks.size() || step >= blocks[other].steps.size())
      return refuse(at(g, b, i) + " waits for step " + std::to_string(step) + " of thread block " +
                    std::to_string(other) + ", which does not exist");
    if (other >= limits_of(plan_.reader).waited_for)
      return refuse(at(g, b, i) + " waits for thread block " + std::to_string(other) +
                    "; the readers keep numbers below " + std::to_string(limits_of(plan_.reader).waited_for));
    if (other == b) return refuse(at(g, b, i) + " waits for its own thread block");
    if (!blocks[other].steps[step].has_dep)
      return refuse(at(g, b, i) + " waits for " + at(g, other, step) + ", which has hasdep=0 and tells nobody");
    return {};
  }

  [[nodiscard]] bool inside(std::uint32_t g, char buffer, std::int32_t offset, std::uint32_t count) const {
    const msccl_gpu& gpu = plan_.gpus[g];
    const std::uint64_t size = buffer == 'i' ? gpu.input : buffer == 'o' ? gpu.output : gpu.scratch;
    return offset >= 0 && static_cast<std::uint64_t>(offset) + count <= size;
  }

  [[nodiscard]] result<void> connections() {
    const msccl_limits most = limits_of(plan_.reader);
    for (std::uint32_t g = 0; g < plan_.gpus.size(); ++g) {
      std::vector<std::uint32_t> sends(plan_.channels, 0), receives(plan_.channels, 0);
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        const msccl_block& tb = plan_.gpus[g].blocks[b];
        msccl_end out{tb.channel, g, static_cast<std::uint32_t>(tb.send), g, b, {}};
        msccl_end in{tb.channel, static_cast<std::uint32_t>(tb.recv), g, g, b, {}};
        for (std::uint32_t i = 0; i < tb.steps.size(); ++i) {
          if (msccl_sends(tb.steps[i].type)) out.steps.push_back(i);
          if (msccl_receives(tb.steps[i].type)) in.steps.push_back(i);
        }
        if (tb.send >= 0 && ++sends[tb.channel] > most.peers_per_channel)
          return refuse(at(g, b) + ": more than " + std::to_string(most.peers_per_channel) +
                        " peers to send to on channel " + std::to_string(tb.channel));
        if (tb.recv >= 0 && ++receives[tb.channel] > most.peers_per_channel)
          return refuse(at(g, b) + ": more than " + std::to_string(most.peers_per_channel) +
                        " peers to receive from on channel " + std::to_string(tb.channel));
        if (tb.send >= 0) out_.push_back(std::move(out));
        if (tb.recv >= 0) in_.push_back(std::move(in));
      }
    }
    const auto less = [](const msccl_end& a, const msccl_end& b) {
      return a.channel != b.channel ? a.channel < b.channel : a.from != b.from ? a.from < b.from : a.to < b.to;
    };
    seq::sort(out_, less);
    seq::sort(in_, less);
    for (const auto* ends : {&out_, &in_})
      for (std::size_t i = 1; i < ends->size(); ++i)
        if (!less((*ends)[i - 1], (*ends)[i]))
          return refuse(at((*ends)[i].gpu, (*ends)[i].block) + " shares its connection with thread block " +
                        std::to_string((*ends)[i - 1].block) + " of the same GPU");
    for (std::size_t i = 0; i < out_.size() || i < in_.size(); ++i) {
      if (i >= in_.size() || (i < out_.size() && less(out_[i], in_[i])))
        return refuse(at(out_[i].gpu, out_[i].block) + " sends to GPU " + std::to_string(out_[i].to) + " on channel " +
                      std::to_string(out_[i].channel) + ", where no thread block receives from it");
      if (i >= out_.size() || less(in_[i], out_[i]))
        return refuse(at(in_[i].gpu, in_[i].block) + " receives from GPU " + std::to_string(in_[i].from) +
                      " on channel " + std::to_string(in_[i].channel) + ", where no thread block sends to it");
      const auto& a = out_[i];
      const auto& b = in_[i];
      for (std::size_t m = 0; m < a.steps.size() || m < b.steps.size(); ++m) {
        if (m >= b.steps.size()) return refuse(at(a.gpu, a.block, a.steps[m]) + " sends what nobody receives");
        if (m >= a.steps.size()) return refuse(at(b.gpu, b.block, b.steps[m]) + " receives what nobody sends");
        const std::uint32_t sent = step(a, m).count, received = step(b, m).count;
        if (sent != received)
          return refuse(at(a.gpu, a.block, a.steps[m]) + " sends " + std::to_string(sent) + " chunks, " +
                        at(b.gpu, b.block, b.steps[m]) + " receives " + std::to_string(received));
        ++proof_.messages;
      }
    }
    for (const msccl_gpu& g : plan_.gpus) {
      out_of_.emplace_back(g.blocks.size(), 0);
      in_of_.emplace_back(g.blocks.size(), 0);
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      out_of_[out_[i].gpu][out_[i].block] = i;
      in_of_[in_[i].gpu][in_[i].block] = i;
    }
    return {};
  }
  [[nodiscard]] const msccl_step& step(const msccl_end& e, std::size_t message) const {
    return plan_.gpus[e.gpu].blocks[e.block].steps[e.steps[message]];
  }

  /// The steps that a step waits for: its own wait, and those of the nops before it.
  template <class Each>
  void waits(const msccl_block& tb, std::uint32_t i, const Each& each) const {
    for (std::uint32_t j = i; j < tb.steps.size(); --j) {
      if (j != i && tb.steps[j].type != msccl_op::nop) break;
      if (tb.steps[j].dep_block >= 0)
        each(static_cast<std::uint32_t>(tb.steps[j].dep_block), static_cast<std::uint32_t>(tb.steps[j].dep_step));
      if (j == 0) break;
    }
  }

  [[nodiscard]] auto naming() const {
    return [this](const block_step& s) { return at(s.gpu, s.block, s.step); };
  }

  /// No order in which the readers may run the steps blocks for ever.
  [[nodiscard]] result<void> cannot_block(bool one_by_one) const {
    constexpr std::uint32_t loops = 3;
    block_run<> events(ends_, false, {});  // without memory
    // First and last event of every step of every loop.
    std::vector<std::vector<std::vector<std::uint32_t>>> first(plan_.gpus.size()), last(plan_.gpus.size());
    for (std::uint32_t g = 0; g < plan_.gpus.size(); ++g) {
      const auto& blocks = plan_.gpus[g].blocks;
      first[g].resize(blocks.size());
      last[g].resize(blocks.size());
      for (std::uint32_t b = 0; b < blocks.size(); ++b)
        for (std::uint32_t l = 0; l < loops; ++l)
          for (std::uint32_t i = 0; i < blocks[b].steps.size(); ++i) {
            const msccl_step& s = blocks[b].steps[i];
            const bool calls = one_by_one && (msccl_sends(s.type) || msccl_receives(s.type));
            const bool begins = first[g][b].empty();
            for (std::uint32_t c = 0; c < (calls ? s.count : 1); ++c) {
              const std::uint32_t e = events.event({g, b, i});
              if (c == 0) first[g][b].push_back(e);
              if (!begins || c != 0) events.order(e - 1, e);
            }
            last[g][b].push_back(events.events() - 1);
          }
    }
    for (std::uint32_t g = 0; g < plan_.gpus.size(); ++g)
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        const msccl_block& tb = plan_.gpus[g].blocks[b];
        const auto steps = static_cast<std::uint32_t>(tb.steps.size());
        for (std::uint32_t i = 0; i < steps; ++i)
          if (tb.steps[i].type != msccl_op::nop)
            waits(tb, i, [&](std::uint32_t other, std::uint32_t step_of_other) {
              const auto length = static_cast<std::uint32_t>(plan_.gpus[g].blocks[other].steps.size());
              for (std::uint32_t l = 0; l < loops; ++l)
                events.order(last[g][other][l * length + step_of_other], first[g][b][l * steps + i]);
            });
      }
    for (std::size_t c = 0; c < out_.size(); ++c) {
      std::vector<std::uint32_t> sent, received;
      const auto calls = [&](const msccl_end& e, std::vector<std::uint32_t>& list) {
        const auto length = static_cast<std::uint32_t>(plan_.gpus[e.gpu].blocks[e.block].steps.size());
        for (std::uint32_t l = 0; l < loops; ++l)
          for (const std::uint32_t i : e.steps)
            for (std::uint32_t v = first[e.gpu][e.block][l * length + i]; v <= last[e.gpu][e.block][l * length + i];
                 ++v)
              list.push_back(v);
      };
      calls(out_[c], sent);
      calls(in_[c], received);
      for (std::size_t m = 0; m < sent.size(); ++m) {
        events.order(sent[m], received[m]);
        if (m >= proof_.slot_count) events.order(received[m - proof_.slot_count], sent[m], true);
      }
    }
    return events.ends(naming(),
                       "can block for ever with " + std::to_string(proof_.slot_count) + " messages in flight");
  }

  /// Every order of the steps leaves what the collective promises.
  [[nodiscard]] result<void> computes(bool in_place) const {
    const auto ranks = static_cast<std::uint32_t>(plan_.gpus.size());
    std::vector<block_buffers> buffers;
    for (const msccl_gpu& g : plan_.gpus) buffers.push_back({g.input, g.output, g.scratch});
    block_run<> run(ends_, in_place, std::move(buffers));
    for (std::uint32_t g = 0; g < ranks; ++g)
      for (const msccl_block& tb : plan_.gpus[g].blocks)
        for (const msccl_step& s : tb.steps) {
          if (msccl_reads(s.type)) run.use(g, s.src, static_cast<std::uint32_t>(s.src_offset), s.count);
          if (msccl_writes(s.type)) run.use(g, s.dst, static_cast<std::uint32_t>(s.dst_offset), s.count);
        }
    run.settle();
    std::vector<std::vector<std::vector<std::uint32_t>>> event(ranks);
    std::vector<std::vector<std::uint32_t>> messages(out_.size());  // cells, of all messages of a connection
    for (std::size_t c = 0; c < out_.size(); ++c)
      for (std::size_t m = 0; m < out_[c].steps.size(); ++m)
        for (std::uint32_t k = 0; k < step(out_[c], m).count; ++k) messages[c].push_back(run.message());
    std::vector<std::uint32_t> sent(out_.size(), 0), received(out_.size(), 0);
    for (std::uint32_t g = 0; g < ranks; ++g) {
      event[g].resize(plan_.gpus[g].blocks.size());
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        const msccl_block& tb = plan_.gpus[g].blocks[b];
        const std::size_t out = out_of_[g][b], in = in_of_[g][b];
        for (std::uint32_t i = 0; i < tb.steps.size(); ++i) {
          const msccl_step& s = tb.steps[i];
          const std::uint32_t e = run.event({g, b, i});
          if (i != 0) run.order(e - 1, e);
          event[g][b].push_back(e);
          for (std::uint32_t k = 0; k < s.count && s.type != msccl_op::nop; ++k) {
            const std::uint32_t src =
                msccl_reads(s.type) ? run.cell(g, s.src, static_cast<std::uint32_t>(s.src_offset) + k) : 0;
            const std::uint32_t dst =
                msccl_writes(s.type) ? run.cell(g, s.dst, static_cast<std::uint32_t>(s.dst_offset) + k) : 0;
            const std::uint32_t arrives = msccl_receives(s.type) ? messages[in][received[in]++] : 0;
            const std::uint32_t leaves = msccl_sends(s.type) ? messages[out][sent[out]++] : 0;
            switch (s.type) {
              case msccl_op::s: run.move(leaves, src); break;
              case msccl_op::r: run.move(dst, arrives); break;
              case msccl_op::rcs:
                run.move(dst, arrives);
                run.move(leaves, arrives);
                break;
              case msccl_op::rrs: run.move(leaves, src, arrives); break;
              case msccl_op::rrc: run.move(dst, src, arrives); break;
              case msccl_op::rrcs:
                run.move(dst, src, arrives);
                run.move(leaves, dst);
                break;
              case msccl_op::cpy:
                if (src != dst) run.move(dst, src);
                break;
              case msccl_op::re: run.move(dst, dst, src); break;
              case msccl_op::nop: break;
            }
          }
        }
      }
    }
    for (std::uint32_t g = 0; g < ranks; ++g)
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        const msccl_block& tb = plan_.gpus[g].blocks[b];
        for (std::uint32_t i = 0; i < tb.steps.size(); ++i)
          if (tb.steps[i].type != msccl_op::nop)
            waits(tb, i, [&](std::uint32_t other, std::uint32_t s) { run.order(event[g][other][s], event[g][b][i]); });
      }
    for (std::size_t c = 0; c < out_.size(); ++c)
      for (std::size_t m = 0; m < out_[c].steps.size(); ++m)
        run.order(event[out_[c].gpu][out_[c].block][out_[c].steps[m]],
                  event[in_[c].gpu][in_[c].block][in_[c].steps[m]]);

    if (auto ok = run.ends(naming(), "blocks for ever"); !ok) return ok;
    return run.computes(naming(), options_.random_orders, options_.seed, in_place ? " (in place)" : "");
  }

  const msccl_plan& plan_;
  msccl_check_options options_;
  collective_ends ends_;
  msccl_proof proof_;
  std::vector<msccl_end> out_, in_;                       ///< sorted alike: the two ends of a connection have one index
  std::vector<std::vector<std::size_t>> out_of_, in_of_;  ///< that index, by GPU and thread block
};

}  // namespace detail

template <class>
result<msccl_proof> check_msccl_plan(const msccl_plan& plan, const msccl_check_options& options) {
  return detail::msccl_checker<>(plan, options).run();
}

}}  // namespace topocoll::v0
