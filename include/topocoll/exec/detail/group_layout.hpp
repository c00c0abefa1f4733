// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the memory that the ranks of one host share is laid out: who is there, why the group broke, a ring of slots per pair
// and channel, each rank's board, its staging area, and room for the buffers that it gives out.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unistd.h>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::uint32_t nobody = UINT32_MAX;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "processes can only share atomics that need no lock");

enum class presence : std::uint32_t {
  absent,  ///< has not attached yet
  present,
  left,  ///< destroyed its transport
  dead   ///< whoever started it says so
};

/// Whether a rank of a broken group goes on in a new one.
enum class survival : std::uint32_t { unknown, asks, goes_on };

/// What all ranks know of one of them.
struct alignas(cache_line) rank_record {
  std::atomic<presence> state;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint64_t> started;
  std::atomic<std::uint64_t> pid_namespace;
  std::atomic<std::uint64_t> mapped_at;  // where its process has the shared memory
  char host[65];                         // written before `state` becomes present
  char fate[95];                         // "was killed by signal 9 (Killed)"; written before `state` becomes dead

  // Sleeping and waking, see endpoint.hpp.
  alignas(cache_line) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> asleep;
  std::atomic<std::int32_t> core;  // where the rank was last seen

  std::atomic<survival> survives;  // of a broken group

  // For messages to people: whom this rank waits for, and when it last said so.
  alignas(cache_line) std::atomic<std::uint32_t> waits_for;
  std::atomic<std::uint64_t> said_at;  // ns of the monotonic clock, which all processes of a host share
};

/// Start of the shared memory.
struct alignas(cache_line) group_header {
  std::uint64_t mark;
  std::uint32_t ranks;
  std::uint32_t channels;
  std::uint32_t slot_count;
  std::uint32_t slot_bytes;
  std::uint32_t cell_bytes;
  std::uint32_t stage_bytes;
  std::uint64_t buffer_bytes;
  std::uint64_t total_bytes;
  std::uint64_t id;                     // drawn at random: names the groups that are made from this one
  std::atomic<std::uint32_t> ready;     // 1 when everything above and all records are written
  std::atomic<std::uint32_t> attached;  // ranks that have attached at some time

  alignas(cache_line) std::atomic<std::uint32_t> sleepers;  // ranks that may be asleep
  std::atomic<std::uint32_t> chosen;  // survivors: 1 while one rank writes down who they are, 2 afterwards
  alignas(cache_line) std::atomic<std::uint32_t> broken;  // 0 whole, 1 the cause is being written, 2 broken
  std::uint32_t code;
  char what[1024];
  char next[256];
};

/// One slot of a ring: a whole message if it is short, or one piece of a long one.
struct alignas(cache_line) slot_header {
  static constexpr std::size_t short_bytes = 40;

  std::atomic<std::uint64_t> sequence;  // k+1 when the k-th piece of the lane lies here
  std::uint64_t tag;                    // these two in the first piece of a message
  std::uint64_t size;
  alignas(8) std::byte data[short_bytes];  // the message, if it fits
};
static_assert(sizeof(slot_header) == cache_line, "a short message moves as one cache line");

/// A message that the receiver reads where the sender has it: only within one address space.
struct lent_message {
  const std::byte* data;
  std::atomic<std::uint32_t> claim;  // lent_*
};
inline constexpr std::uint32_t lent_offered = 0;
inline constexpr std::uint32_t lent_in_use = 1;
inline constexpr std::uint32_t lent_done = 2;
inline constexpr std::uint32_t lent_revoked = 3;
static_assert(sizeof(lent_message) <= slot_header::short_bytes);

// What one core writes and others wait for lies two lines apart: processors fetch lines in pairs.
inline constexpr std::size_t line_pair = 2 * cache_line;

/// One announcement of a rank: which call it makes, and what it brings, if that is short; otherwise where it lies. Behind
/// it is room for an input that is longer: `group_shape::cell_bytes`.
struct alignas(line_pair) board_cell {
  static constexpr std::size_t short_bytes = 40;

  std::atomic<std::uint64_t> sequence;     // number of the call, written last
  std::uint64_t what;                      // call_mark of it
  std::uint64_t count;                     // elements, or what stands for a list of them
  alignas(8) std::byte head[short_bytes];  // a short input, or the places of input and output
};
static_assert(offsetof(board_cell, head) + board_cell::short_bytes == cache_line,
              "an announcement with a short input moves as one cache line");

/// How far a rank has come.
struct board_counters {
  // As many calls as a rank may be ahead of another that has not looked yet: the root of broadcasts, for example.
  static constexpr std::size_t depth = 16;

  alignas(line_pair) std::atomic<std::uint64_t> phase;     // meetings passed, ever
  alignas(line_pair) std::atomic<std::uint64_t> finished;  // calls ended, ever: their cells may be written again
  alignas(line_pair) std::atomic<std::uint32_t> working;   // 1 while this rank touches memory of others
  std::atomic<std::uint32_t> reads_all;                    // 1 if it can read private memory of all others
};

/// Counts of a lane that the receiver writes.
struct alignas(cache_line) lane_control {
  std::atomic<std::uint64_t> consumed;  // slots given back
};

/// How the ranks of a group came to share memory.
enum class sharing : std::uint8_t {
  threads,  ///< they are threads of one process, and see all memory of one another
  forked,   ///< mapped before they were forked; pages are taken as they are used
  named     ///< a file in /dev/shm: its pages are taken at once, but for those of buffers
};

/// What a group is asked for; 0 stands for the default of its kind of sharing.
struct group_wishes {
  std::uint32_t ranks = 0;
  std::uint32_t channels = 0;
  bytes messages{};  ///< most memory for messages under way
  bytes buffers{};   ///< most memory for buffers given out, per rank
};

/// Sizes of a group. Everything follows from the number of ranks, of channels, and the payload allowed.
struct group_shape {
  std::uint32_t ranks = 0;
  std::uint32_t channels = 0;
  std::uint32_t slot_count = 0;
  std::uint32_t slot_bytes = 0;
  std::uint32_t cell_bytes = 0;    // behind each announcement
  std::uint32_t stage_bytes = 0;   // per rank
  std::uint64_t buffer_bytes = 0;  // per rank

  // 8 slots: a sender fills one while the receiver empties another, with some slack for the scheduler. 32 KiB: larger
  // slots gained nothing on the machines tried, smaller ones pay more flag exchanges; a lane stays well inside a 1 MiB
  // L2 cache.
  static constexpr std::uint32_t default_slots = 8;
  static constexpr std::uint64_t most_slot_bytes = 32U << 10U;
  static constexpr std::uint64_t least_slot_bytes = 256;
  static constexpr std::uint64_t most_stage_bytes = 1U << 20U;
  static constexpr std::uint64_t least_stage_bytes = 64U << 10U;

  static constexpr bytes most_payload{256ULL << 20U};       // pages taken as they are used
  static constexpr bytes most_payload_named{32ULL << 20U};  // pages taken at once
  static constexpr bytes most_stages_named{8ULL << 20U};    // of all ranks together
  static constexpr bytes most_cells_named{8ULL << 20U};     // the same
  static constexpr std::uint64_t most_cell_bytes = 64U << 10U;
  static constexpr std::uint64_t least_cell_bytes = 4U << 10U;
  static constexpr std::uint64_t page = 4096;

  [[nodiscard]] static result<group_shape> of(const group_wishes& w, sharing how) {
    if (w.ranks == 0) return fail(errc::invalid_argument, "a group needs at least one rank");
    if (w.channels < 2)
      return fail(errc::invalid_argument,
                  "a group needs at least two channels, " + std::to_string(w.channels) + " were asked for");
    // With more, sizes would leave 64 bits long after they left every host: lanes < 2^38 up to here.
    if (w.ranks > 65536 || w.channels > 64 || w.buffers.value > UINT64_MAX / 2 / 65536)
      return fail(errc::invalid_argument, "one host cannot hold " + std::to_string(w.ranks) + " ranks with " +
                                              std::to_string(w.channels) + " channels and buffers of " +
                                              std::to_string(w.buffers.value) + " bytes each");
    const bool named = how == sharing::named;
    const std::uint64_t payload =
        w.messages.value != 0 ? w.messages.value : (named ? most_payload_named : most_payload).value;
    group_shape s{w.ranks, w.channels, default_slots, 0, 0, 0, 0};
    const std::uint64_t lanes = s.lanes() == 0 ? 1 : s.lanes();
    const std::uint64_t each = std::clamp(payload / lanes / default_slots, least_slot_bytes, most_slot_bytes);
    s.slot_bytes = static_cast<std::uint32_t>(each / cache_line * cache_line);
    const std::uint64_t cell =
        named ? std::clamp(most_cells_named.value / w.ranks / board_counters::depth, least_cell_bytes, most_cell_bytes)
              : most_cell_bytes;
    s.cell_bytes = static_cast<std::uint32_t>(cell / page * page);
    const std::uint64_t stage =
        named ? std::clamp(most_stages_named.value / w.ranks, least_stage_bytes, most_stage_bytes) : most_stage_bytes;
    s.stage_bytes = how == sharing::threads ? 0 : static_cast<std::uint32_t>(stage / page * page);
    s.buffer_bytes = how == sharing::threads ? 0 : rounded(w.buffers.value != 0 ? w.buffers.value : room_of(w.ranks));
    return s;
  }
  [[nodiscard]] std::uint64_t lanes() const { return std::uint64_t{ranks} * (ranks - 1) * channels; }
  [[nodiscard]] std::uint64_t records_at() const { return sizeof(group_header); }
  [[nodiscard]] std::uint64_t boards_at() const {
    return (records_at() + ranks * sizeof(rank_record) + line_pair - 1) / line_pair * line_pair;
  }
  [[nodiscard]] std::uint64_t controls_at() const { return boards_at() + ranks * board_bytes(); }
  [[nodiscard]] std::uint64_t board_bytes() const {
    return sizeof(board_counters) + board_counters::depth * cell_stride();
  }
  /// Not a whole number of pages: the heads of all cells should not fall into one set of a cache.
  [[nodiscard]] std::uint64_t cell_stride() const { return sizeof(board_cell) + cell_bytes; }
  [[nodiscard]] std::uint64_t headers_at() const { return controls_at() + lanes() * sizeof(lane_control); }
  [[nodiscard]] std::uint64_t payload_at() const {
    return rounded(headers_at() + lanes() * slot_count * sizeof(slot_header));
  }
  [[nodiscard]] std::uint64_t stages_at() const {
    return rounded(payload_at() + lanes() * slot_count * std::uint64_t{slot_bytes});
  }
  [[nodiscard]] std::uint64_t buffers_at() const { return stages_at() + ranks * std::uint64_t{stage_bytes}; }
  /// Without the buffers, whose pages come when they are given out.
  [[nodiscard]] std::uint64_t fixed() const { return buffers_at(); }
  [[nodiscard]] std::uint64_t total() const { return buffers_at() + ranks * buffer_bytes; }

 private:
  [[nodiscard]] static constexpr std::uint64_t rounded(std::uint64_t n) { return (n + page - 1) / page * page; }
  /// Addresses for the buffers of one rank: all ranks together cannot fill more than the memory of the host, one may
  /// have four times its part of that.
  [[nodiscard]] static std::uint64_t room_of(std::uint32_t ranks) {
    const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
    const std::uint64_t memory =
        pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 1ULL << 30U;
    return std::max<std::uint64_t>(std::min(memory, memory / ranks * 4), 1U << 20U);
  }
};

/// One lane: messages from one rank to another on one channel.
struct lane_view {
  lane_control* control = nullptr;
  slot_header* headers = nullptr;
  std::byte* payload = nullptr;
};

}}}  // namespace topocoll::v0::detail
