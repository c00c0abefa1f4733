// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/mscclpp_json.hpp proves a plan by the rules of MSCCL++'s executor.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/block_run.hpp>
#include <topocoll/integrate/detail/collective_ends.hpp>
#include <topocoll/integrate/detail/mscclpp_text.hpp>
#include <topocoll/integrate/mscclpp_json.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

template <class = void>
class mscclpp_checker {
 public:
  mscclpp_checker(const mscclpp_plan& plan, const mscclpp_check_options& options) : plan_(plan), options_(options) {}

  [[nodiscard]] result<mscclpp_proof> run() {
    if (auto ok = head(); !ok) return std::move(ok).error();
    if (auto ok = match_channels(); !ok) return std::move(ok).error();
    for (std::uint32_t g = 0; g < plan_.gpus.size(); ++g) {
      if (auto ok = lists(g); !ok) return std::move(ok).error();
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b)
        for (std::uint32_t i = 0; i < plan_.gpus[g].blocks[b].operations.size(); ++i)
          if (auto ok = operation(g, b, i); !ok) return std::move(ok).error();
    }
    if (auto ok = executes(); !ok) return std::move(ok).error();
    return proof_;
  }

 private:
  static constexpr std::uint32_t none = block_step::none;

  [[nodiscard]] static std::string at(std::uint32_t g, std::uint32_t b) { return block_in_words(g, b); }
  [[nodiscard]] std::string at(std::uint32_t g, std::uint32_t b, std::uint32_t i) const {
    return at(g, b) + ", operation " + std::to_string(i) + " (" +
           std::string(to_string(plan_.gpus[g].blocks[b].operations[i].name)) + ")";
  }
  [[nodiscard]] static failure refuse(const std::string& what) { return fail(errc::malformed_input, what); }

  [[nodiscard]] result<void> head() {
    const auto ranks = static_cast<std::uint32_t>(plan_.gpus.size());
    const bool scatter = plan_.collective == collective_kind::reduce_scatter,
               known = !mscclpp_word(plan_.collective).empty();
    const std::uint32_t chunks = ranks == 0 ? 0 : scatter ? plan_.gpus[0].input : plan_.gpus[0].output;
    auto ends = ends_of_plan(plan_, known, options_.root, chunks,
                             {"the number of chunks of the array", "input_chunks", "output_chunks"});
    if (!ends) return std::move(ends).error();
    ends_ = *ends;
    for (std::uint32_t g = 0; g < ranks; ++g) {
      const mscclpp_gpu& gpu = plan_.gpus[g];
      if (gpu.blocks.size() > options_.most_blocks)
        return refuse("GPU " + std::to_string(g) + " has " + std::to_string(gpu.blocks.size()) + " thread blocks; " +
                      std::to_string(options_.most_blocks) + " can run at once");
      proof_.most_blocks = std::max(proof_.most_blocks, static_cast<std::uint32_t>(gpu.blocks.size()));
    }
    if (plan_.max_bytes != 0 && plan_.min_bytes > plan_.max_bytes) return refuse("the least size is above the largest");
    proof_.ranks = ranks;
    return {};
  }

  /// Both ends have a channel; the k-th from one rank to another meets the k-th back.
  [[nodiscard]] result<void> match_channels() {
    struct end {
      std::uint32_t low, high, rank, channel;  // the two ranks, and whose channel it is
    };
    for (const bool port : {false, true}) {
      const char* kind = port ? "port" : "memory";
      auto& meets = meets_[port ? 1 : 0];
      std::vector<end> ends;
      for (std::uint32_t g = 0; g < plan_.gpus.size(); ++g) {
        const auto& peers = peers_of(g, port);
        meets.emplace_back(peers.size(), none);
        for (std::uint32_t c = 0; c < peers.size(); ++c) {
          if (peers[c] >= plan_.gpus.size() || peers[c] == g)
            return refuse("GPU " + std::to_string(g) + " has a " + kind + " channel to rank " +
                          std::to_string(peers[c]));
          ends.push_back({std::min(g, peers[c]), std::max(g, peers[c]), g, c});
        }
      }
      seq::sort(ends, [](const end& a, const end& b) {
        return a.low != b.low ? a.low < b.low : a.high != b.high ? a.high < b.high : a.rank < b.rank;
      });
      for (std::size_t first = 0, last = 0; first < ends.size(); first = last) {
        std::size_t back = first;  // the first of the larger rank
        for (last = first;
             last < ends.size() && ends[last].low == ends[first].low && ends[last].high == ends[first].high; ++last)
          back += ends[last].rank == ends[first].low ? 1 : 0;
        if (back - first != last - back)
          return refuse("GPU " + std::to_string(ends[first].low) + " has " + std::to_string(back - first) + " " + kind +
                        " channels to GPU " + std::to_string(ends[first].high) + ", which has " +
                        std::to_string(last - back) + " back");
        for (std::size_t k = 0; first + k < back; ++k) {
          meets[ends[first + k].rank][ends[first + k].channel] = ends[back + k].channel;
          meets[ends[back + k].rank][ends[back + k].channel] = ends[first + k].channel;
        }
      }
    }
    return {};
  }
  [[nodiscard]] const std::vector<std::uint32_t>& peers_of(std::uint32_t g, bool port) const {
    return port ? plan_.gpus[g].port_peers : plan_.gpus[g].memory_peers;
  }

  /// Channels belong to one thread block, and what blocks use is open to them.
  [[nodiscard]] result<void> lists(std::uint32_t g) {
    const mscclpp_limits most;
    const mscclpp_gpu& gpu = plan_.gpus[g];
    for (const bool port : {false, true}) {
      const auto& peers = peers_of(g, port);
      const char* kind = port ? "port" : "memory";
      std::vector<std::uint32_t> owner(peers.size(), none);
      for (std::uint32_t b = 0; b < gpu.blocks.size(); ++b) {
        const auto& mine = port ? gpu.blocks[b].port_channels : gpu.blocks[b].memory_channels;
        const auto& buffers = port ? gpu.blocks[b].port_buffers : gpu.blocks[b].memory_buffers;
        if (mine.size() > most.channels || buffers.size() > most.channels)
          return refuse(at(g, b) + " has more than " + std::to_string(most.channels) + " " + kind +
                        " channels or buffers");
        for (const std::uint32_t c : mine) {
          if (c >= peers.size())
            return refuse(at(g, b) + " has " + kind + " channel " + std::to_string(c) + ", which does not exist");
          if (owner[c] != none)
            return refuse(at(g, b) + " shares " + kind + " channel " + std::to_string(c) + " with thread block " +
                          std::to_string(owner[c]));
          owner[c] = b;
        }
        for (const std::uint32_t r : buffers)
          if (r >= gpu.remotes.size() || !(port ? gpu.remotes[r].by_port : gpu.remotes[r].by_memory))
            return refuse(at(g, b) + " uses remote buffer " + std::to_string(r) + ", which is not open by " + kind);
      }
    }
    for (const mscclpp_remote& r : gpu.remotes)
      if (r.rank >= plan_.gpus.size() || r.rank == g || size_of(r.rank, r.buffer) == 0)
        return refuse("GPU " + std::to_string(g) + " has a remote buffer '" + std::string(1, r.buffer) + "' of rank " +
                      std::to_string(r.rank) + ", where there is none");
    return {};
  }

  [[nodiscard]] std::uint32_t size_of(std::uint32_t g, char buffer) const {
    const mscclpp_gpu& gpu = plan_.gpus[g];
    return buffer == 'i' ? gpu.input : buffer == 'o' ? gpu.output : buffer == 's' ? gpu.scratch : 0;
  }
  /// The rank and the buffer that a place is in.
  [[nodiscard]] std::pair<std::uint32_t, char> where(std::uint32_t g, std::uint32_t b, const mscclpp_operation& o,
                                                     const mscclpp_place& p) const {
    if (p.buffer != 'r') return {g, p.buffer};
    const mscclpp_block& block = plan_.gpus[g].blocks[b];
    const auto& list = o.type == mscclpp_channel::port ? block.port_buffers : block.memory_buffers;
    if (p.remote >= list.size()) return {g, 0};
    const mscclpp_remote& r = plan_.gpus[g].remotes[list[p.remote]];
    return {r.rank, r.buffer};
  }
  [[nodiscard]] static bool moves(mscclpp_op o) {
    return o == mscclpp_op::put || o == mscclpp_op::copy || o == mscclpp_op::re;
  }
  [[nodiscard]] static bool uses_channel(mscclpp_op o) {
    return o == mscclpp_op::signal || o == mscclpp_op::wait || o == mscclpp_op::flush;
  }
  [[nodiscard]] static bool by_port(const mscclpp_operation& o) {
    return o.name == mscclpp_op::put && o.type == mscclpp_channel::port;
  }
  /// Run by the first thread alone.
  [[nodiscard]] static bool narrow(const mscclpp_operation& o) {
    if (uses_channel(o.name) || by_port(o)) return o.channels.size() == 1;
    return (o.name == mscclpp_op::sem_acquire || o.name == mscclpp_op::sem_release) && o.semaphores.size() == 1;
  }

  [[nodiscard]] result<void> operation(std::uint32_t g, std::uint32_t b, std::uint32_t i) {
    const mscclpp_limits most;
    const mscclpp_gpu& gpu = plan_.gpus[g];
    const mscclpp_block& block = gpu.blocks[b];
    const mscclpp_operation& o = block.operations[i];
    ++proof_.operations;
    if (block.operations.size() > most.operations)
      return refuse(at(g, b) + " has " + std::to_string(block.operations.size()) + " operations; the executor takes " +
                    std::to_string(most.operations));
    proof_.most_operations = std::max(proof_.most_operations, static_cast<std::uint32_t>(block.operations.size()));
    if (o.name == mscclpp_op::flush && o.type != mscclpp_channel::port)
      return refuse(at(g, b, i) + " is for ports only");
    const auto& channels = o.type == mscclpp_channel::port ? block.port_channels : block.memory_channels;
    if (o.channels.size() > most.channels_per_operation)
      return refuse(at(g, b, i) + " has " + std::to_string(o.channels.size()) + " channels");
    for (const std::uint32_t c : o.channels)
      if (o.type == mscclpp_channel::none || c >= channels.size())
        return refuse(at(g, b, i) + " has no channel " + std::to_string(c));
    if (uses_channel(o.name) && o.channels.empty()) return refuse(at(g, b, i) + " names no channel");
    const bool semaphore = o.name == mscclpp_op::sem_acquire || o.name == mscclpp_op::sem_release;
    if (semaphore != !o.semaphores.empty() || o.semaphores.size() > most.semaphores_per_operation)
      return refuse(at(g, b, i) + " has " + std::to_string(o.semaphores.size()) + " semaphores");
    for (const std::uint32_t s : o.semaphores)
      if (s >= gpu.semaphores) return refuse(at(g, b, i) + " has no semaphore " + std::to_string(s));
    if (!moves(o.name)) return {};
    const bool put = o.name == mscclpp_op::put;
    if (o.src.empty() || o.dst.empty() ||
        (o.name == mscclpp_op::re ? o.src.size() < 2 || o.dst.size() != 1 : o.src.size() != o.dst.size()))
      return refuse(at(g, b, i) + " has " + std::to_string(o.src.size()) + " sources and " +
                    std::to_string(o.dst.size()) + " targets");
    if (put && o.type == mscclpp_channel::none) return refuse(at(g, b, i) + " has no type of channel");
    if (by_port(o) && o.channels.size() != o.dst.size())
      return refuse(at(g, b, i) + " needs a channel for each target");
    for (const bool from_here : {true, false})
      for (const mscclpp_place& p : from_here ? o.src : o.dst) {
        const auto [rank, buffer] = where(g, b, o, p);
        if ((p.buffer == 'r') != (put && !from_here))
          return refuse(at(g, b, i) +
                        " has a remote place where a local one belongs, or a local one where a remote belongs");
        if (p.size == 0 || p.size != o.src[0].size || std::uint64_t{p.index} + p.size > size_of(rank, buffer))
          return refuse(at(g, b, i) + " uses chunks " + std::to_string(p.index) + " to " +
                        std::to_string(p.index + p.size) + " of a buffer of " + std::to_string(size_of(rank, buffer)));
      }
    if (by_port(o))
      for (std::size_t k = 0; k < o.dst.size(); ++k)
        if (gpu.port_peers[channels[o.channels[k]]] != where(g, b, o, o.dst[k]).first)
          return refuse(at(g, b, i) + " puts to another rank than its channel leads to");
    if (put) proof_.messages += o.dst.size();
    return {};
  }

  [[nodiscard]] std::string at(const block_step& s) const {
    if (s.block == none) return "GPU " + std::to_string(s.gpu) + (s.step == 0 ? "'s begin" : "'s end");
    return at(s.gpu, s.block, s.step);
  }

  [[nodiscard]] result<void> executes() {
    const auto ranks = static_cast<std::uint32_t>(plan_.gpus.size());
    std::vector<block_buffers> buffers;
    for (const mscclpp_gpu& g : plan_.gpus) buffers.push_back({g.input, g.output, g.scratch});
    block_run<> run(ends_, plan_.in_place, std::move(buffers));
    for (std::uint32_t g = 0; g < ranks; ++g)
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b)
        for (const mscclpp_operation& o : plan_.gpus[g].blocks[b].operations)
          for (const auto* places : {&o.src, &o.dst})
            for (const mscclpp_place& p : *places) {
              if (!moves(o.name)) continue;
              const auto [rank, buffer] = where(g, b, o, p);
              run.use(rank, buffer, p.index, p.size);
            }
    if (run.accesses() > options_.most_accesses)
      return fail(errc::unsupported, "operations use " + std::to_string(run.accesses()) + " chunks in all, and " +
                                         std::to_string(options_.most_accesses) + " are proved at most");
    run.settle();
    std::vector<std::uint32_t> begin(ranks), end(ranks);
    for (std::uint32_t g = 0; g < ranks; ++g) {
      begin[g] = run.event({g, none, 0});
      run.touch_all(g);
      end[g] = run.event({g, none, 1});
      run.touch_all(g);
      run.order(begin[g], end[g]);
    }
    // Per end of a channel: signals with the puts over the port before each, and waits, in order.
    struct channel_end {
      std::vector<std::uint32_t> signalled, waits;
      std::vector<std::vector<std::uint32_t>> landed;
      std::vector<std::uint32_t> flying;
    };
    std::vector<std::vector<channel_end>> ends[2];
    for (const int port : {0, 1}) {
      ends[port].resize(ranks);
      for (std::uint32_t g = 0; g < ranks; ++g) ends[port][g].resize(peers_of(g, port != 0).size());
    }
    for (std::uint32_t g = 0; g < ranks; ++g) {
      std::vector<std::uint32_t> released(plan_.gpus[g].semaphores, none), acquired(plan_.gpus[g].semaphores, none);
      for (std::uint32_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        const mscclpp_block& block = plan_.gpus[g].blocks[b];
        std::uint32_t last = begin[g], barrier = begin[g], first_thread = none;
        std::vector<std::uint32_t> since;  // the last nop
        for (std::uint32_t i = 0; i < block.operations.size(); ++i) {
          const mscclpp_operation& o = block.operations[i];
          const std::uint32_t e = run.event({g, b, i});
          run.order(last, e, true);  // no thread is ahead of its own order
          run.order(barrier, e);
          last = e;
          const bool port = o.type == mscclpp_channel::port;
          const auto& list = port ? block.port_channels : block.memory_channels;
          if (o.name == mscclpp_op::nop) {
            for (const std::uint32_t s : since) run.order(s, e);
            since.clear();
            barrier = e;
            first_thread = none;
            continue;
          }
          since.push_back(e);
          if (narrow(o)) {
            if (first_thread != none) run.order(first_thread, e);
            first_thread = e;
          }
          for (const std::uint32_t s : o.semaphores) {
            std::uint32_t& used = o.name == mscclpp_op::sem_release ? released[s] : acquired[s];
            if (used != none)
              return refuse(at(g, b, i) + " uses semaphore " + std::to_string(s) + " again, as " + at(run.step(used)) +
                            " did");
            used = e;
          }
          for (const std::uint32_t c : o.channels) {
            channel_end& here = ends[port ? 1 : 0][g][list[c]];
            if (o.name == mscclpp_op::signal) {
              here.signalled.push_back(e);
              here.landed.push_back(here.flying);
            }
            if (o.name == mscclpp_op::wait) here.waits.push_back(e);
            if (o.name == mscclpp_op::flush)
              for (const std::uint32_t f : here.flying) run.order(f, e);
          }
          if (o.name == mscclpp_op::copy || (o.name == mscclpp_op::put && !port))
            for (std::size_t k = 0; k < o.src.size(); ++k) transfer(run, g, b, o, k);
          if (o.name == mscclpp_op::re)
            for (std::uint32_t c = 0; c < o.dst[0].size; ++c) {
              const std::uint32_t to = run.cell(g, o.dst[0].buffer, o.dst[0].index + c);
              std::uint32_t sum = run.cell(g, o.src[0].buffer, o.src[0].index + c);
              for (std::size_t k = 1; k < o.src.size(); ++k) {
                run.move(to, sum, run.cell(g, o.src[k].buffer, o.src[k].index + c));
                sum = to;
              }
            }
          if (by_port(o))
            for (std::size_t k = 0; k < o.dst.size(); ++k) {  // the proxy does it some time later
              const std::uint32_t flight = run.event({g, b, i});
              run.order(e, flight);
              transfer(run, g, b, o, k);
              ends[1][g][list[o.channels[k]]].flying.push_back(flight);
            }
        }
        for (const std::uint32_t s : since) run.order(s, end[g]);
        run.order(barrier, end[g]);
        run.order(last, end[g], true);
      }
      for (std::uint32_t s = 0; s < plan_.gpus[g].semaphores; ++s) {
        if ((released[s] == none) != (acquired[s] == none))
          return refuse("GPU " + std::to_string(g) + ": semaphore " + std::to_string(s) +
                        " is released or acquired, but not both");
        if (released[s] != none) run.order(released[s], acquired[s]);
      }
    }
    for (const int port : {0, 1})
      for (std::uint32_t g = 0; g < ranks; ++g) {
        const auto& peers = peers_of(g, port != 0);
        for (std::uint32_t c = 0; c < peers.size(); ++c) {
          const std::uint32_t peer = peers[c];
          const channel_end& here = ends[port][g][c];
          const channel_end& there = ends[port][peer][meets_[port][g][c]];
          if (here.signalled.size() != there.waits.size())
            return refuse("GPU " + std::to_string(g) + " signals GPU " + std::to_string(peer) + " " +
                          std::to_string(here.signalled.size()) + " times on " + (port != 0 ? "port" : "memory") +
                          " channel " + std::to_string(c) + ", which waits for " + std::to_string(there.waits.size()));
          for (std::size_t k = 0; k < here.signalled.size(); ++k) {
            run.order(here.signalled[k], there.waits[k]);
            for (const std::uint32_t f : here.landed[k]) run.order(f, there.waits[k]);
          }
        }
      }
    const auto name = [this](const block_step& s) { return at(s); };
    if (auto ok = run.ends(name, "blocks for ever"); !ok) return ok;
    return run.computes(name, options_.random_orders, options_.seed, "");
  }
  void transfer(block_run<>& run, std::uint32_t g, std::uint32_t b, const mscclpp_operation& o, std::size_t k) const {
    const auto [rank, buffer] = where(g, b, o, o.dst[k]);
    for (std::uint32_t c = 0; c < o.dst[k].size; ++c) {
      const std::uint32_t to = run.cell(rank, buffer, o.dst[k].index + c);
      const std::uint32_t of = run.cell(g, o.src[k].buffer, o.src[k].index + c);
      if (to != of) run.move(to, of);
    }
  }
  const mscclpp_plan& plan_;
  mscclpp_check_options options_;
  collective_ends ends_;
  mscclpp_proof proof_;
  std::vector<std::vector<std::uint32_t>> meets_[2];  ///< memory, port: the peer's channel, by GPU and channel
};

}  // namespace detail

template <class>
result<mscclpp_proof> check_mscclpp_plan(const mscclpp_plan& plan, const mscclpp_check_options& options) {
  return detail::mscclpp_checker<>(plan, options).run();
}

}}  // namespace topocoll::v0
