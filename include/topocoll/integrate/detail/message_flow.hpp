// SPDX-License-Identifier: Apache-2.0
#pragma once
// The programs of all ranks as pieces that wait for each other's data: what exporters of plans start from.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// An operation of one rank, cut to what one instruction of the other format can do.
struct flow_piece {
  plan::op_kind kind = plan::op_kind::copy;
  std::uint32_t peer = 0;
  std::uint32_t channel = 0;
  plan::slice from{}, to{};  ///< on the grid of the whole array, as in the program
  std::uint32_t count = 0;   ///< chunks
  std::uint32_t chunk = 0;   ///< the first, on the grid: the same at both ends of a message
  /// Pieces of this rank, earlier in the list, that must be over: they write what this one reads, or use what it overwrites.
  std::vector<std::uint32_t> after;
  std::uint32_t stream = none;   ///< for messages: index into `rank_flow::streams`
  std::uint32_t message = none;  ///< and the place of this one in it

  static constexpr std::uint32_t none = 0xffffffffU;
};

/// All messages between this rank and one peer on one channel, in one direction.
struct flow_stream {
  std::uint32_t peer = 0, channel = 0;
  bool sends = false;
  std::vector<std::uint32_t> pieces;  ///< in the order of the messages
};

struct rank_flow {
  std::vector<flow_piece> pieces;  ///< in an order in which they can be done one after the other
  std::vector<flow_stream> streams;

  [[nodiscard]] std::uint32_t find(bool sends, std::uint32_t peer, std::uint32_t channel) const {
    for (std::uint32_t i = 0; i < streams.size(); ++i)
      if (streams[i].sends == sends && streams[i].peer == peer && streams[i].channel == channel) return i;
    return flow_piece::none;
  }
};

/// How operations are cut and messages spread.
struct flow_cut {
  std::uint32_t most_chunks = 0xffffffffU;   ///< of one message or copy
  std::uint32_t most_reduced = 0xffffffffU;  ///< of one local reduction
  /// Messages between two ranks on one channel of the program go in turn, first part first, over so many channels.
  std::uint32_t spread = 1;
  std::uint32_t fold = 1;  ///< or so many channels of the program become one, where both ends see one order of messages
  bool in_place = false;  ///< input and output are one memory: copies from one to the same place of the other fall away
  bool apart = false;     ///< they surely are two: writing output waits for nobody who reads input
};

/// What every exporter asks of the programs: one collective, one for each rank, in order.
[[nodiscard]] inline result<void> belong_together(std::span<const plan::program> all) {
  if (all.empty()) return fail(errc::invalid_argument, "there are no programs to export");
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].rank.value != r || all[r].ranks != all.size() || all[r].collective != all[0].collective ||
        all[r].chunks != all[0].chunks || all[r].root != all[0].root)
      return fail(errc::invalid_argument, "program " + std::to_string(r) + " is not the one of rank " +
                                              std::to_string(r) + " of " + std::to_string(all.size()) +
                                              " in the same collective");
  if (all[0].collective == collective_kind::gather || all[0].collective == collective_kind::scatter)
    return fail(errc::unsupported,
                "neither MSCCL nor MSCCL++ knows a " + std::string(to_string(all[0].collective)) + " collective");
  return {};
}

/// Finds for every piece which earlier ones it must wait for. Input and output may be one memory or two, which is both
/// obeyed unless they are told to be `apart`.
template <class = void>
class access_table {
 public:
  access_table(std::uint32_t chunks, std::uint32_t scratch, bool apart)
      : chunks_(chunks),
        apart_(apart),
        writer_(chunks * 2 + scratch, flow_piece::none),
        readers_(chunks * 2 + scratch) {}

  void note(std::vector<flow_piece>& pieces, flow_piece piece) {
    const auto now = static_cast<std::uint32_t>(pieces.size());
    const bool reads = piece.kind != plan::op_kind::receive;
    const bool writes = piece.kind != plan::op_kind::send;
    const bool still = apart_ || (piece.kind == plan::op_kind::copy && piece.from.where == plan::buffer::input &&
                                  piece.to.where == plan::buffer::output && piece.from.first == piece.to.first);
    const auto wait = [&](std::uint32_t earlier) {
      if (earlier != flow_piece::none && earlier != now && !seq::contains(piece.after, earlier))
        piece.after.push_back(earlier);
    };
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      if (reads) wait(writer_[cell(piece.from, i)]);
      if (!writes) continue;
      wait(writer_[cell(piece.to, i)]);
      for (const std::uint32_t r : readers_[cell(piece.to, i)]) wait(r);
      if (piece.to.where == plan::buffer::output && !still)
        for (const std::uint32_t r : readers_[chunks_ + piece.to.first + i]) wait(r);
    }
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      if (writes) {
        writer_[cell(piece.to, i)] = now;
        readers_[cell(piece.to, i)].clear();
        if (piece.to.where == plan::buffer::output && !still) readers_[chunks_ + piece.to.first + i].clear();
      }
      // What a reduction reads at `to` is ordered by its writing there.
      if (reads && !(writes && cell(piece.from, i) == cell(piece.to, i))) readers_[cell(piece.from, i)].push_back(now);
    }
    seq::sort(piece.after);
    pieces.push_back(std::move(piece));
  }

 private:
  /// Output first, then input, then scratch.
  [[nodiscard]] std::uint32_t cell(const plan::slice& s, std::uint32_t i) const {
    const std::uint32_t base = s.where == plan::buffer::output  ? 0
                               : s.where == plan::buffer::input ? chunks_
                                                                : chunks_ * 2;
    return base + s.first + i;
  }
  std::uint32_t chunks_;
  bool apart_;
  std::vector<std::uint32_t> writer_;
  std::vector<std::vector<std::uint32_t>> readers_;
};

/// The pieces and streams of one rank. Both ends of a stream cut and spread alike, because they see the same messages.
template <class = void>
[[nodiscard]] rank_flow flow_of(const plan::program& p, const flow_cut& cut) {
  rank_flow flow;
  // So many messages go over each stream of the program: needed before the first can be spread.
  struct load {
    bool sends;
    std::uint32_t peer, channel, messages, seen;
  };
  std::vector<load> loads;
  const auto load_of = [&](const plan::op& o, std::uint32_t channel) -> load& {
    channel /= cut.fold;
    const bool sends = o.kind == plan::op_kind::send;
    for (load& l : loads)
      if (l.sends == sends && l.peer == o.peer.value && l.channel == channel) return l;
    loads.push_back({sends, o.peer.value, channel, 0, 0});
    return loads.back();
  };
  const auto is_message = [](plan::op_kind k) { return k != plan::op_kind::copy && k != plan::op_kind::reduce; };
  const auto length = [](const plan::op& o) { return o.kind == plan::op_kind::send ? o.from.count : o.to.count; };
  for (const plan::step& s : p.steps)
    for (std::uint32_t i = s.first_op; i < s.first_op + s.op_count; ++i)
      if (is_message(p.ops[i].kind))
        load_of(p.ops[i], s.channel).messages +=
            length(p.ops[i]) / cut.most_chunks + (length(p.ops[i]) % cut.most_chunks != 0 ? 1 : 0);

  access_table<> table(p.chunks, p.scratch_cells, cut.apart);
  for (const plan::step& s : p.steps)
    for (std::uint32_t i = s.first_op; i < s.first_op + s.op_count; ++i) {
      const plan::op& o = p.ops[i];
      if (cut.in_place && o.kind == plan::op_kind::copy && o.from.where == plan::buffer::input &&
          o.to.where == plan::buffer::output && o.from.first == o.to.first)
        continue;
      const std::uint32_t most = o.kind == plan::op_kind::reduce ? cut.most_reduced : cut.most_chunks;
      for (std::uint32_t at = 0; at < length(o); at += std::min(most, length(o) - at)) {
        flow_piece piece;
        piece.kind = o.kind;
        piece.count = std::min(most, length(o) - at);
        piece.from = {o.from.where, o.from.first + at, piece.count};
        piece.to = {o.to.where, o.to.first + at, piece.count};
        piece.chunk = o.chunk_at(at, p.chunks);
        piece.channel = s.channel / cut.fold * cut.spread;
        if (is_message(o.kind)) {
          load& l = load_of(o, s.channel);
          piece.peer = l.peer;
          piece.channel += l.seen++ / ((l.messages + cut.spread - 1) / cut.spread);
        }
        const auto now = static_cast<std::uint32_t>(flow.pieces.size());
        table.note(flow.pieces, std::move(piece));
        flow_piece& done = flow.pieces.back();
        if (!is_message(o.kind)) continue;
        done.stream = flow.find(o.kind == plan::op_kind::send, done.peer, done.channel);
        if (done.stream == flow_piece::none) {
          done.stream = static_cast<std::uint32_t>(flow.streams.size());
          flow.streams.push_back({done.peer, done.channel, o.kind == plan::op_kind::send, {}});
        }
        done.message = static_cast<std::uint32_t>(flow.streams[done.stream].pieces.size());
        flow.streams[done.stream].pieces.push_back(now);
      }
    }
  return flow;
}

/// The piece at the other end of a message; null when the programs do not fit together.
template <class = void>
[[nodiscard]] const flow_piece* other_end(const std::vector<rank_flow>& all, std::uint32_t rank, const flow_piece& p) {
  const bool sends = p.kind == plan::op_kind::send;
  const rank_flow& there = all[p.peer];
  const std::uint32_t stream = there.find(!sends, rank, p.channel);
  if (stream == flow_piece::none || p.message >= there.streams[stream].pieces.size()) return nullptr;
  const flow_piece& other = there.pieces[there.streams[stream].pieces[p.message]];
  return other.count == p.count && other.chunk == p.chunk ? &other : nullptr;
}

/// Streams that pass on what comes in: for each stream its partner of the other direction on the same channel, so that the
/// pairs with the most messages in common are made first.
struct stream_pairs {
  std::vector<std::uint32_t> partner;  ///< per stream
  std::vector<std::uint32_t> origin;   ///< per send: the receive that wrote just what it reads
};

template <class = void>
[[nodiscard]] stream_pairs pairs_of(const rank_flow& flow) {
  constexpr std::uint32_t none = flow_piece::none;
  stream_pairs found{std::vector<std::uint32_t>(flow.streams.size(), none),
                     std::vector<std::uint32_t>(flow.pieces.size(), none)};
  struct pair {
    std::uint32_t in, out, count;
  };
  std::vector<pair> pairs;
  for (std::uint32_t p = 0; p < flow.pieces.size(); ++p) {
    const flow_piece& send = flow.pieces[p];
    if (send.kind != plan::op_kind::send) continue;
    for (const std::uint32_t a : send.after) {
      const flow_piece& receive = flow.pieces[a];
      if (receive.stream == none || receive.kind == plan::op_kind::send || receive.channel != send.channel ||
          receive.to != send.from)
        continue;
      found.origin[p] = a;
      const auto known =
          seq::find_if(pairs, [&](const pair& q) { return q.in == receive.stream && q.out == send.stream; });
      if (known != pairs.end())
        ++known->count;
      else
        pairs.push_back({receive.stream, send.stream, 1});
    }
  }
  seq::sort(pairs, [](const pair& a, const pair& b) { return a.count > b.count; });
  for (const pair& q : pairs) {
    if (found.partner[q.in] != none || found.partner[q.out] != none) continue;
    found.partner[q.in] = q.out;
    found.partner[q.out] = q.in;
  }
  return found;
}

/// Which pieces run one after the other on which worker (a thread block), and what each must still wait for: of the pieces
/// on other workers only those that no earlier wait covers. Empty when the orders of the workers contradict the waits.
template <class = void>
[[nodiscard]] std::vector<std::vector<std::uint32_t>> waits_between(
    const rank_flow& flow, const std::vector<std::uint32_t>& worker,
    const std::vector<std::vector<std::uint32_t>>& order) {
  constexpr std::uint32_t none = flow_piece::none;
  const std::size_t n = flow.pieces.size(), workers = order.size();
  std::vector<std::uint32_t> place(n, none), before(n, none), follows(n, 0), sequence;
  std::vector<std::vector<std::uint32_t>> waits(n), next(n);
  for (const auto& list : order)
    for (std::size_t i = 0; i < list.size(); ++i) {
      place[list[i]] = static_cast<std::uint32_t>(i);
      if (i != 0) before[list[i]] = list[i - 1];
    }
  const auto follow = [&](std::uint32_t earlier, std::uint32_t later) {
    next[earlier].push_back(later);
    ++follows[later];
  };
  for (std::uint32_t p = 0; p < n; ++p) {
    if (before[p] != none) follow(before[p], p);
    for (const std::uint32_t a : flow.pieces[p].after) follow(a, p);
  }
  for (std::uint32_t p = 0; p < n; ++p)
    if (follows[p] == 0) sequence.push_back(p);
  // Per piece and worker: so many of the worker's first pieces are over once this one is.
  std::vector<std::uint32_t> over(n * workers, 0);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const std::uint32_t p = sequence[i];
    std::uint32_t* mine = &over[p * workers];
    const auto learn = [&](std::uint32_t other) {
      for (std::size_t w = 0; w < workers; ++w) mine[w] = std::max(mine[w], over[other * workers + w]);
    };
    if (before[p] != none) learn(before[p]);
    std::vector<std::uint32_t> open;
    for (const std::uint32_t a : flow.pieces[p].after)
      if (worker[a] != worker[p] && mine[worker[a]] <= place[a]) open.push_back(a);
    for (const std::uint32_t a : open) {
      const bool covered = seq::any_of(open, [&](std::uint32_t b) {
        return a != b && over[b * workers + worker[a]] > place[a] &&
               !(over[a * workers + worker[b]] > place[b] && b > a);
      });
      if (!covered) waits[p].push_back(a);
    }
    for (const std::uint32_t a : waits[p]) learn(a);
    mine[worker[p]] = place[p] + 1;
    for (const std::uint32_t later : next[p])
      if (--follows[later] == 0) sequence.push_back(later);
  }
  if (sequence.size() != n) waits.clear();
  return waits;
}

}}}  // namespace topocoll::v0::detail
