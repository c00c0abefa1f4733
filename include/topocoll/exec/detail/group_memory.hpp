// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory that the ranks of one host share, as one process sees it.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <linux/futex.h>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/group_layout.hpp>
#include <topocoll/exec/detail/process.hpp>
#include <topocoll/exec/detail/spin_lock.hpp>
#include <climits>

namespace topocoll { inline namespace v0 { namespace detail {

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

/// The shared memory of a group, as this process sees it. All functions may be called by any rank at any time.
class group_memory {
 public:
  static constexpr std::uint64_t layout_mark = 0x32306c6c6f634f54ULL;  // raised with every change of the layout

  group_memory(mapping m, group_shape s, sharing how) : mapping_(std::move(m)), shape_(s), how_(how) {}

  /// Writes the header and the records into zeroed memory. Done once, by whoever made the memory.
  void write_header() {
    auto* h = ::new (static_cast<void*>(mapping_.data())) group_header{};
    h->mark = layout_mark;
    h->ranks = shape_.ranks;
    h->channels = shape_.channels;
    h->slot_count = shape_.slot_count;
    h->slot_bytes = shape_.slot_bytes;
    h->cell_bytes = shape_.cell_bytes;
    h->stage_bytes = shape_.stage_bytes;
    h->buffer_bytes = shape_.buffer_bytes;
    h->total_bytes = shape_.total();
    if (::getrandom(&h->id, sizeof h->id, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof h->id))
      h->id = (static_cast<std::uint64_t>(::getpid()) << 32U) ^
              static_cast<std::uint64_t>(steady_clock::now().value * 1e9);  // unique on this host all the same
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) {
      auto* record =
          ::new (static_cast<void*>(mapping_.data() + shape_.records_at() + r * sizeof(rank_record))) rank_record{};
      record->waits_for.store(nobody, std::memory_order_relaxed);
      record->core.store(-1, std::memory_order_relaxed);
    }
    // Boards, lane controls and slot headers start as zeros, which is what fresh pages hold: they are not touched here.
    h->ready.store(1, std::memory_order_release);
  }

  /// For threads: the memory of a group made from this one, under a number that its ranks agree on. The first to ask makes it.
  template <class Make>
  [[nodiscard]] result<std::shared_ptr<group_memory>> child(std::uint64_t number, const Make& make) {
    const spin_lock::holder one_at_a_time(children_lock_);
    for (const auto& [its_number, child] : children_)
      if (its_number == number)
        if (auto known = child.lock()) return known;
    auto made = make();
    if (made) children_.emplace_back(number, *made);
    return made;
  }

  [[nodiscard]] const group_shape& shape() const { return shape_; }
  [[nodiscard]] sharing how() const { return how_; }
  [[nodiscard]] bool one_address_space() const { return how_ == sharing::threads; }
  [[nodiscard]] bytes size() const { return {shape_.fixed()}; }
  [[nodiscard]] group_header& header() const { return *std::launder(reinterpret_cast<group_header*>(mapping_.data())); }
  [[nodiscard]] rank_record& record(std::uint32_t r) const {
    return *std::launder(
        reinterpret_cast<rank_record*>(mapping_.data() + shape_.records_at() + r * sizeof(rank_record)));
  }
  [[nodiscard]] board_counters& counters(std::uint32_t r) const {
    return *std::launder(
        reinterpret_cast<board_counters*>(mapping_.data() + shape_.boards_at() + r * shape_.board_bytes()));
  }
  /// Where rank r announces its call of this number.
  [[nodiscard]] board_cell& cell(std::uint32_t r, std::uint64_t sequence) const {
    return *std::launder(reinterpret_cast<board_cell*>(mapping_.data() + shape_.boards_at() + r * shape_.board_bytes() +
                                                       sizeof(board_counters) +
                                                       sequence % board_counters::depth * shape_.cell_stride()));
  }
  [[nodiscard]] std::byte* body(std::uint32_t r, std::uint64_t sequence) const {
    return reinterpret_cast<std::byte*>(&cell(r, sequence)) + cache_line;
  }
  /// Where rank r puts what others are to read of private memory.
  [[nodiscard]] std::byte* stage(std::uint32_t r) const {
    return mapping_.data() + shape_.stages_at() + r * std::uint64_t{shape_.stage_bytes};
  }
  /// Room for the buffers that rank r gives out.
  [[nodiscard]] std::span<std::byte> buffers(std::uint32_t r) const {
    return {mapping_.data() + shape_.buffers_at() + r * shape_.buffer_bytes,
            static_cast<std::size_t>(shape_.buffer_bytes)};
  }
  /// What tells every rank where memory of this rank lies, if they all see it: threads always do, processes where it is
  /// from `buffers`.
  [[nodiscard]] std::optional<std::uint64_t> place_of(const std::byte* at, std::uint64_t size) const {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    if (one_address_space()) return address;
    const auto base = reinterpret_cast<std::uintptr_t>(mapping_.data());
    if (address < base + shape_.buffers_at() || address > base + shape_.total() ||
        size > base + shape_.total() - address)
      return std::nullopt;
    return address - base;
  }
  [[nodiscard]] std::byte* at_place(std::uint64_t place) const {
    if (!one_address_space()) return mapping_.data() + place;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(place));
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
    it.mapped_at.store(reinterpret_cast<std::uintptr_t>(mapping_.data()), std::memory_order_relaxed);
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

  [[nodiscard]] bool broken() const noexcept { return header().broken.load(std::memory_order_seq_cst) != 0; }

  /// Breaks the group with this cause, unless it is broken already. The first cause stays.
  void break_group(errc code, std::string_view what, std::string_view next) noexcept {
    group_header& h = header();
    std::uint32_t whole = 0;
    if (h.broken.compare_exchange_strong(whole, 1, std::memory_order_seq_cst)) {
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
  /// Wakes all ranks that sleep. What this thread stored before in sequentially consistent order, they see afterwards, or
  /// see when they look once more before they sleep.
  void wake_sleepers(std::uint32_t but) noexcept {
    if (header().sleepers.load(std::memory_order_seq_cst) == 0) return;
    for (std::uint32_t r = 0; r < shape_.ranks; ++r)
      if (r != but) wake(r);
  }
  /// Around the last look for work and the sleep: from here on `wake` and `wake_sleepers` find rank r asleep.
  /// @return what `sleep` takes
  [[nodiscard]] std::uint32_t lie_down(std::uint32_t r) noexcept {
    rank_record& it = record(r);
    const std::uint32_t seen = it.bell.load(std::memory_order_acquire);
    header().sleepers.fetch_add(1, std::memory_order_seq_cst);
    it.asleep.exchange(1, std::memory_order_acq_rel);
    return seen;
  }
  void get_up(std::uint32_t r) noexcept {
    record(r).asleep.store(0, std::memory_order_release);
    header().sleepers.fetch_sub(1, std::memory_order_relaxed);
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
  sharing how_;
  spin_lock children_lock_;
  std::vector<std::pair<std::uint64_t, std::weak_ptr<group_memory>>> children_;
};

/// Zeroed memory for a group of threads, or of this process and its children.
template <class = void>
[[nodiscard]] result<std::shared_ptr<group_memory>> make_group_memory(const group_shape& shape, sharing how) {
  const std::size_t size = shape.total();
  const bool shared = how == sharing::forked;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_ANONYMOUS | MAP_NORESERVE | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
  if (at == MAP_FAILED) {
    return fail(errc::system, "the system gives no " + std::to_string(size) + " bytes of memory for a group of " +
                                  std::to_string(shape.ranks) + " ranks: " + std::strerror(errno));
  }
  auto memory = std::make_shared<group_memory>(mapping{at, size}, shape, how);
  memory->write_header();
  return memory;
}

}}}  // namespace topocoll::v0::detail
