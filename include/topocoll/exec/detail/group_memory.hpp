// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory that the ranks of one host share: who is there, why the group broke, and a ring of slots per pair and
// channel.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <linux/futex.h>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/process.hpp>
#include <climits>

namespace topocoll { inline namespace v0 { namespace detail {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::uint32_t nobody = UINT32_MAX;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "processes can only share atomics that need no lock");

/// A mapping that is given back by its destructor.
class mapping {
 public:
  mapping() = default;
  mapping(void* at, std::size_t size) : at_(at), size_(size) {}
  mapping(mapping&& o) noexcept : at_(std::exchange(o.at_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  mapping& operator=(mapping&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~mapping() {
    if (at_ != nullptr) ::munmap(at_, size_);
  }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(at_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

enum class presence : std::uint32_t {
  absent,  ///< has not attached yet
  present,
  left,  ///< destroyed its transport
  dead   ///< whoever started it says so
};

/// What all ranks know of one of them.
struct alignas(cache_line) rank_record {
  std::atomic<presence> state;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint64_t> started;
  std::atomic<std::uint64_t> pid_namespace;
  char host[65];  // written before `state` becomes present
  char fate[95];  // "was killed by signal 9 (Killed)"; written before `state` becomes dead

  // Sleeping and waking, see endpoint.hpp.
  alignas(cache_line) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> asleep;
  std::atomic<std::int32_t> core;  // where the rank was last seen

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
  std::uint64_t total_bytes;
  std::atomic<std::uint32_t> ready;     // 1 when everything above and all records are written
  std::atomic<std::uint32_t> attached;  // ranks that have attached at some time

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

/// Counts of a lane that the receiver writes.
struct alignas(cache_line) lane_control {
  std::atomic<std::uint64_t> consumed;  // slots given back
};

/// Sizes of a group. Everything follows from the number of ranks, of channels, and the payload allowed.
struct group_shape {
  std::uint32_t ranks = 0;
  std::uint32_t channels = 0;
  std::uint32_t slot_count = 0;
  std::uint32_t slot_bytes = 0;

  // 8 slots: a sender fills one while the receiver empties another, with some slack for the scheduler. 32 KiB: larger
  // slots gained nothing on the machines tried, smaller ones pay more flag exchanges; a lane stays well inside a 1 MiB
  // L2 cache.
  static constexpr std::uint32_t default_slots = 8;
  static constexpr std::uint64_t most_slot_bytes = 32U << 10U;
  static constexpr std::uint64_t least_slot_bytes = 256;

  static constexpr bytes most_payload{256ULL << 20U};       // pages taken as they are used
  static constexpr bytes most_payload_named{32ULL << 20U};  // pages taken at once

  /// `payload` 0 stands for the default of the kind of memory.
  [[nodiscard]] static result<group_shape> of(std::uint32_t ranks, std::uint32_t channels, bytes payload, bool named) {
    if (ranks == 0) return fail(errc::invalid_argument, "a group needs at least one rank");
    if (channels < 2)
      return fail(errc::invalid_argument,
                  "a group needs at least two channels, " + std::to_string(channels) + " were asked for");
    // With more, sizes would leave 64 bits long after they left every host: lanes < 2^38 up to here.
    if (ranks > 65536 || channels > 64)
      return fail(errc::invalid_argument, "one host cannot hold " + std::to_string(ranks) + " ranks with " +
                                              std::to_string(channels) + " channels");
    if (payload.value == 0) payload = named ? most_payload_named : most_payload;
    group_shape s{ranks, channels, default_slots, 0};
    const std::uint64_t lanes = s.lanes() == 0 ? 1 : s.lanes();
    std::uint64_t each = payload.value / lanes / default_slots;
    each = each > most_slot_bytes ? most_slot_bytes : (each < least_slot_bytes ? least_slot_bytes : each);
    s.slot_bytes = static_cast<std::uint32_t>(each / cache_line * cache_line);
    return s;
  }
  [[nodiscard]] std::uint64_t lanes() const { return std::uint64_t{ranks} * (ranks - 1) * channels; }
  [[nodiscard]] std::uint64_t records_at() const { return sizeof(group_header); }
  [[nodiscard]] std::uint64_t controls_at() const { return records_at() + ranks * sizeof(rank_record); }
  [[nodiscard]] std::uint64_t headers_at() const { return controls_at() + lanes() * sizeof(lane_control); }
  [[nodiscard]] std::uint64_t payload_at() const {
    const std::uint64_t end = headers_at() + lanes() * slot_count * sizeof(slot_header);
    return (end + 4095) / 4096 * 4096;
  }
  [[nodiscard]] std::uint64_t total() const { return payload_at() + lanes() * slot_count * std::uint64_t{slot_bytes}; }
};

/// One lane: messages from one rank to another on one channel.
struct lane_view {
  lane_control* control = nullptr;
  slot_header* headers = nullptr;
  std::byte* payload = nullptr;
};

/// The shared memory of a group, as this process sees it. All functions may be called by any rank at any time.
class group_memory {
 public:
  static constexpr std::uint64_t layout_mark = 0x31306c6c6f634f54ULL;  // raised with every change of the layout

  group_memory(mapping m, group_shape s, bool one_address_space)
      : mapping_(std::move(m)), shape_(s), one_address_space_(one_address_space) {}

  /// Writes the header and the records into zeroed memory. Done once, by whoever made the memory.
  void write_header() {
    auto* h = ::new (static_cast<void*>(mapping_.data())) group_header{};
    h->mark = layout_mark;
    h->ranks = shape_.ranks;
    h->channels = shape_.channels;
    h->slot_count = shape_.slot_count;
    h->slot_bytes = shape_.slot_bytes;
    h->total_bytes = shape_.total();
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) {
      auto* record =
          ::new (static_cast<void*>(mapping_.data() + shape_.records_at() + r * sizeof(rank_record))) rank_record{};
      record->waits_for.store(nobody, std::memory_order_relaxed);
      record->core.store(-1, std::memory_order_relaxed);
    }
    // Lane controls and slot headers start as zeros, which is what fresh pages hold: they are not touched here.
    h->ready.store(1, std::memory_order_release);
  }

  [[nodiscard]] const group_shape& shape() const { return shape_; }
  [[nodiscard]] bool one_address_space() const { return one_address_space_; }
  [[nodiscard]] bytes size() const { return {shape_.total()}; }
  [[nodiscard]] group_header& header() const { return *std::launder(reinterpret_cast<group_header*>(mapping_.data())); }
  [[nodiscard]] rank_record& record(std::uint32_t r) const {
    return *std::launder(
        reinterpret_cast<rank_record*>(mapping_.data() + shape_.records_at() + r * sizeof(rank_record)));
  }
  /// Precondition: from != to.
  [[nodiscard]] lane_view lane(std::uint32_t from, std::uint32_t to, std::uint32_t channel) const {
    const std::uint64_t n =
        (std::uint64_t{to} * (shape_.ranks - 1) + (from < to ? from : from - 1)) * shape_.channels + channel;
    std::byte* base = mapping_.data();
    return {reinterpret_cast<lane_control*>(base + shape_.controls_at() + n * sizeof(lane_control)),
            reinterpret_cast<slot_header*>(base + shape_.headers_at() + n * shape_.slot_count * sizeof(slot_header)),
            base + shape_.payload_at() + n * shape_.slot_count * shape_.slot_bytes};
  }

  /// The process behind a rank, as it introduced itself.
  [[nodiscard]] process_identity identity(std::uint32_t r) const {
    const rank_record& it = record(r);
    return {it.pid.load(std::memory_order_relaxed), it.started.load(std::memory_order_relaxed),
            it.pid_namespace.load(std::memory_order_relaxed)};
  }
  /// "rank 2 (pid 4711 on host node17)", or "rank 2" before it attached.
  [[nodiscard]] std::string name_of(std::uint32_t r) const {
    const rank_record& it = record(r);
    std::string text = "rank " + std::to_string(r);
    const std::int32_t pid = it.pid.load(std::memory_order_acquire);
    if (pid == 0) return text;
    text += " (pid " + std::to_string(pid);
    if (it.state.load(std::memory_order_acquire) != presence::absent && it.host[0] != 0)
      text += std::string(" on host ") + it.host;
    return text + ")";
  }

  /// Takes the place of rank r. False if somebody has it already.
  [[nodiscard]] bool attach(std::uint32_t r, const process_identity& me, std::string_view host) {
    rank_record& it = record(r);
    std::int32_t none = 0;
    // A launcher may have written our pid beforehand, so that a death before this point has a name.
    if (!it.pid.compare_exchange_strong(none, me.pid, std::memory_order_acq_rel) &&
        (none != me.pid || it.state.load() != presence::absent))
      return false;
    it.started.store(me.started, std::memory_order_relaxed);
    it.pid_namespace.store(me.namespace_id, std::memory_order_relaxed);
    put_text(it.host, sizeof it.host, host);
    presence expected = presence::absent;
    if (!it.state.compare_exchange_strong(expected, presence::present, std::memory_order_acq_rel)) return false;
    header().attached.fetch_add(1, std::memory_order_acq_rel);
    ring_all();
    return true;
  }
  /// Says that rank r destroyed its transport.
  void leave(std::uint32_t r) noexcept {
    presence expected = presence::present;
    if (record(r).state.compare_exchange_strong(expected, presence::left, std::memory_order_acq_rel)) ring_all();
  }
  /// Says that rank r is dead, and how it died: "was killed by signal 9 (Killed)".
  void mark_dead(std::uint32_t r, std::string_view fate) noexcept {
    rank_record& it = record(r);
    if (it.state.load(std::memory_order_acquire) == presence::dead) return;
    put_text(it.fate, sizeof it.fate, fate);
    it.state.store(presence::dead, std::memory_order_release);
    ring_all();
  }

  [[nodiscard]] bool broken() const noexcept { return header().broken.load(std::memory_order_acquire) != 0; }

  /// Breaks the group with this cause, unless it is broken already. The first cause stays.
  void break_group(errc code, std::string_view what, std::string_view next) noexcept {
    group_header& h = header();
    std::uint32_t whole = 0;
    if (h.broken.compare_exchange_strong(whole, 1, std::memory_order_acq_rel)) {
      h.code = static_cast<std::uint32_t>(code);
      put_text(h.what, sizeof h.what, what);
      put_text(h.next, sizeof h.next, next);
      h.broken.store(2, std::memory_order_release);
      ring_all();
    }
  }
  /// Why the group broke. Precondition: broken().
  [[nodiscard]] failure cause() const {
    const group_header& h = header();
    // The rank that found the cause writes it in microseconds, unless it died over it.
    for (int tries = 0; h.broken.load(std::memory_order_acquire) == 1; ++tries) {
      if (tries == 100)
        return fail(errc::peer_lost, "a rank of the group died while it wrote down why the group broke");
      const timespec a_moment{0, 1'000'000};
      ::nanosleep(&a_moment, nullptr);
    }
    return fail(static_cast<errc>(h.code), h.what, h.next);
  }

  /// Wakes rank r if it sleeps. What was stored before is seen by it afterwards.
  void wake(std::uint32_t r) noexcept {
    rank_record& it = record(r);
    // An exchange, not a load: either it comes before the sleeper's own exchange, which then acquires what we stored,
    // or after it, and sees the sleeper.
    if (it.asleep.exchange(0, std::memory_order_acq_rel) != 0) ring(it);
  }
  /// Sleeps until woken or for `most`; `seen` is the bell's value before the last look for work.
  void sleep(std::uint32_t r, std::uint32_t seen, seconds most) noexcept {
    const auto whole = static_cast<time_t>(most.value);
    const timespec t{whole, static_cast<long>((most.value - static_cast<double>(whole)) * 1e9)};
    ::syscall(SYS_futex, word_of(record(r).bell), FUTEX_WAIT, seen, &t, nullptr, 0);
  }
  void ring_all() noexcept {
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) {
      record(r).asleep.store(0, std::memory_order_release);
      ring(record(r));
    }
  }

 private:
  static std::uint32_t* word_of(std::atomic<std::uint32_t>& a) noexcept { return reinterpret_cast<std::uint32_t*>(&a); }
  static void ring(rank_record& it) noexcept {
    it.bell.fetch_add(
        1, std::memory_order_acq_rel);  // after `asleep` was cleared: whoever sets it again has seen this bell
    ::syscall(SYS_futex, word_of(it.bell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  static void put_text(char* into, std::size_t size, std::string_view text) noexcept {
    const std::size_t n = text.size() < size - 1 ? text.size() : size - 1;
    if (n != 0) std::memcpy(into, text.data(), n);
    into[n] = 0;
  }

  mapping mapping_;
  group_shape shape_;
  bool one_address_space_;
};

/// Zeroed memory for a group of one process (`shared` false) or of this process and its children (`shared` true).
template <class = void>
[[nodiscard]] result<std::shared_ptr<group_memory>> make_group_memory(const group_shape& shape, bool shared) {
  const std::size_t size = shape.total();
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_ANONYMOUS | MAP_NORESERVE | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
  if (at == MAP_FAILED) {
    return fail(errc::system, "the system gives no " + std::to_string(size) + " bytes of memory for a group of " +
                                  std::to_string(shape.ranks) + " ranks: " + std::strerror(errno));
  }
  auto memory = std::make_shared<group_memory>(mapping{at, size}, shape, !shared);
  memory->write_header();
  return memory;
}

}}}  // namespace topocoll::v0::detail
