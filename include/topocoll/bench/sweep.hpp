// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures a collective on a communicator as nccl-tests does: checked calls, warm-up, back-to-back calls, out of place and in place.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/bench/detail/pages.hpp>
#include <topocoll/bench/nccl_style.hpp>
#include <topocoll/bench/row.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/pattern.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace bench {

/// What a rank is doing at the moment, for whoever has to say where it died. Lives in memory that the starter sees.
struct alignas(64) whereabouts {
  enum class phase : std::uint32_t { starting, checking, warming_up, timing, finished };
  std::atomic<phase> at{phase::starting};
  std::atomic<std::uint32_t> in_place{0};
  std::atomic<std::uint64_t> size{0};
  std::atomic<std::uint64_t> call{0};   ///< of this phase, from 1
  std::atomic<std::uint64_t> calls{0};  ///< of this phase
};

/// "all_reduce of 1 MiB in place, timed call 12 of 20".
template <class = void>
[[nodiscard]] std::string to_string(const whereabouts& w, collective_kind collective) {
  const auto phase = w.at.load(std::memory_order_relaxed);
  if (phase == whereabouts::phase::starting)
    return "its start, before the first " + std::string(topocoll::to_string(collective));
  if (phase == whereabouts::phase::finished)
    return "its end, after the last " + std::string(topocoll::to_string(collective));
  const char* const kind = phase == whereabouts::phase::checking
                               ? "checked call "
                               : (phase == whereabouts::phase::timing ? "timed call " : "warm-up call ");
  return std::string(topocoll::to_string(collective)) + " of " +
         topocoll::to_string(bytes{w.size.load(std::memory_order_relaxed)}) +
         (w.in_place.load(std::memory_order_relaxed) != 0 ? " in place, " : " out of place, ") + kind +
         std::to_string(w.call.load(std::memory_order_relaxed)) + " of " +
         std::to_string(w.calls.load(std::memory_order_relaxed));
}

/// Measures one size after the other on one communicator. Every rank makes the same calls with the same configuration.
template <Transport T>
class sweep {
 public:
  /// No single call may take longer than this, so that a lost rank of another host ends the run.
  static constexpr seconds longest_call{60};

  /// @param at  told what the rank does; may be null; must outlive the sweep
  sweep(communicator<T>& comm, const sweep_config& config, whereabouts* at = nullptr)
      : comm_(comm), config_(config), at_(at) {}

  /// Adopts the plan that the configuration names, and takes memory for the largest size.
  /// @return `unsupported` when the collective has no such algorithm, `system` or `unavailable` when there is no memory
  [[nodiscard]] result<void> prepare() {
    const std::uint32_t n = comm_.size();
    if (config_.root.value >= n)
      return fail(errc::invalid_argument,
                  "root " + std::to_string(config_.root.value) + " is no rank of " + std::to_string(n));
    if (!config_.algorithm.empty()) {
      const auto how = plan::parse_algorithm(config_.algorithm);
      if (!how)
        return fail(errc::invalid_argument, "there is no algorithm '" + config_.algorithm + "'",
                    "ring, recursive, doubling, tree, double_tree, direct, one_shot, bruck or pat");
      const auto plan = plan::flat_schedule(config_.collective, n, config_.root, *how);
      if (!plan) return plan.error();
      if (auto taken = comm_.adopt(*plan, longest_call); !taken) return taken;
      plan_ = plan->name.empty() ? config_.algorithm : plan->name;
    }
    const std::uint64_t most = buffer_bytes(count_of(config_.collective, config_.range.last, config_.type, n));
    if (config_.registered) {
      for (buffer<std::uint8_t>* b : {&given_in_, &given_out_}) {
        auto given = comm_.template allocate<std::uint8_t>(most);
        if (!given) return std::move(given).error();
        *b = *std::move(given);
      }
      return {};
    }
    in_ = detail::pages(most, false);
    out_ = detail::pages(most, false);
    if (!in_ || !out_)
      return fail(errc::system, "rank " + std::to_string(comm_.rank().value) + " has no memory for two buffers of " +
                                    topocoll::to_string(bytes{most}));
    return {};
  }

  /// One line of the table; the same on all ranks. Precondition: `prepare` succeeded, `size` is not above the range.
  /// @return the failure of the call that failed; `timed_out` when the size took longer than the configuration allows
  [[nodiscard]] result<row> measure(bytes size) {
    const std::uint32_t n = comm_.size();
    row r;
    r.collective = config_.collective;
    r.count = count_of(config_.collective, size, config_.type, n);
    r.size = size_of_count(config_.collective, r.count, config_.type, n);
    r.type = config_.type;
    r.op = config_.op;
    if (rooted(config_.collective)) r.root = config_.root;
    r.ranks = n;
    r.iterations = config_.iterations;
    r.plan = plan_.empty() ? built_in(r.count) : plan_;
    size_ = r.size;
    until_ = deadline::in(config_.timeout.value_or(seconds{1e9}));
    for (const bool in_place : {false, true}) {
      auto half = measure_half(r, in_place);
      if (!half) return std::move(half).error();
      (in_place ? r.in_place : r.out_of_place) = *half;
    }
    return r;
  }

 private:
  [[nodiscard]] std::uint64_t width() const { return size_of(config_.type).value; }
  [[nodiscard]] std::uint64_t buffer_bytes(std::uint64_t count) const {
    return std::max<std::uint64_t>(4096, count * width() * (plan::sharded(config_.collective) ? comm_.size() : 1));
  }
  [[nodiscard]] std::string built_in(std::uint64_t count) const {
    return comm_.plan_for(config_.collective, config_.root, count, config_.type);
  }

  [[nodiscard]] bool is_root() const { return comm_.rank() == config_.root; }

  /// Buffers of a call: in place, all-gather and the root of a gather read from their shard of the output, reduce-scatter and
  /// the root of a scatter write to their shard of the input.
  struct buffers {
    std::byte* in;
    std::byte* out;
    std::size_t in_size, out_size;
  };
  [[nodiscard]] buffers buffers_of(std::uint64_t count, bool in_place) {
    const auto start = [this](const detail::pages& own, buffer<std::uint8_t>& given) {
      return config_.registered ? reinterpret_cast<std::byte*>(given.data()) : own.data();
    };
    std::byte* const in = start(in_, given_in_);
    std::byte* const out = start(out_, given_out_);
    const std::size_t part = static_cast<std::size_t>(count * width());
    const std::size_t shard = comm_.rank().value * part;
    const std::size_t whole = part * comm_.size();
    const auto is = config_.collective;
    if ((is == collective_kind::gather || is == collective_kind::scatter) && !is_root())
      return {in, out, part, part};  // the other ranks have one buffer, whatever the root does
    switch (is) {
      case collective_kind::gather:
      case collective_kind::all_gather: return {in_place ? out + shard : in, out, part, whole};
      case collective_kind::scatter:
      case collective_kind::reduce_scatter: return {in, in_place ? in + shard : out, whole, part};
      case collective_kind::all_to_all: return {in, out, whole, whole};  // has no form in place
      default: return {in_place ? out : in, out, part, part};
    }
  }

  void enter(whereabouts::phase phase, std::uint64_t calls) {
    if (at_ == nullptr) return;
    at_->call.store(0, std::memory_order_relaxed);
    at_->calls.store(calls, std::memory_order_relaxed);
    at_->at.store(phase, std::memory_order_relaxed);
  }

  [[nodiscard]] result<void> once(const buffers& b, std::uint64_t count) {
    if (at_ != nullptr) at_->call.store(at_->call.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const call_options how = options();
    const bool last =
        config_.timeout && how.timeout < longest_call;  // the call may take what is left of the size's time
    auto ran = comm_.run(config_.collective, config_.root, b.in, b.out, count, config_.type, how);
    // What the wait says of the peers is beside the point when the time for this size is over.
    if (ran ? config_.timeout && until_.passed() : last && ran.error().code == errc::timed_out)
      return fail(errc::timed_out,
                  std::string(topocoll::to_string(config_.collective)) + " of " + topocoll::to_string(size_) +
                      " took longer than " + topocoll::to_string(*config_.timeout) + " on rank " +
                      std::to_string(comm_.rank().value),
                  "allow more time per size (-T) or ask for fewer calls (-n)");
    return ran;
  }
  [[nodiscard]] call_options options() const { return {config_.op, std::min(longest_call, until_.left())}; }

  [[nodiscard]] result<timing> measure_half(const row& r, bool in_place) {
    const buffers b = buffers_of(r.count, in_place);
    if (at_ != nullptr) {
      at_->size.store(r.size.value, std::memory_order_relaxed);
      at_->in_place.store(in_place ? 1 : 0, std::memory_order_relaxed);
    }
    timing half;
    enter(whereabouts::phase::checking, config_.checked);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < config_.checked; ++i) {
      const pattern data(config_.collective, config_.type, config_.op, comm_.size(), config_.root, i + 1);
      std::fill_n(b.out, b.out_size, std::byte{0xff});  // before the input, which may share it in place
      const bool reads = input_of(config_.collective, is_root()) != region::nothing;
      if (reads)
        data.fill(comm_.rank(), std::span(b.in, b.in_size));
      else
        std::fill_n(b.in, b.in_size, std::byte{0xff});
      if (auto ran = once(b, r.count); !ran) return std::move(ran).error();
      wrong += data.wrong(comm_.rank(), std::span<const std::byte>(b.out, b.out_size));
    }
    if (config_.checked > 0) {
      std::vector<std::uint64_t> all(1);
      if (auto summed = comm_.all_reduce(std::span(&wrong, 1), std::span(all), {reduce_op::sum, options().timeout});
          !summed)
        return std::move(summed).error();
      half.wrong = all[0];
    }

    enter(whereabouts::phase::warming_up, config_.warm_up);
    for (std::uint64_t i = 0; i < config_.warm_up; ++i)
      if (auto ran = once(b, r.count); !ran) return std::move(ran).error();
    if (auto together = comm_.barrier(options()); !together) return std::move(together).error();
    enter(whereabouts::phase::timing, config_.iterations);
    const seconds start = steady_clock::now();
    for (std::uint64_t i = 0; i < config_.iterations; ++i)
      if (auto ran = once(b, r.count); !ran) return std::move(ran).error();
    const double mine =
        (steady_clock::now() - start).value / static_cast<double>(std::max<std::uint64_t>(config_.iterations, 1));
    std::vector<double> all(comm_.size());
    if (auto shared = comm_.all_gather(std::span(&mine, 1), std::span(all), {reduce_op::sum, options().timeout});
        !shared)
      return std::move(shared).error();
    half.time = {averaged(all)};
    return half;
  }

  [[nodiscard]] double averaged(std::span<const double> times) const {
    switch (config_.average) {
      case averaging::rank0: return times.front();
      case averaging::least: return *std::min_element(times.begin(), times.end());
      case averaging::most: return *std::max_element(times.begin(), times.end());
      case averaging::mean: break;
    }
    double sum = 0;
    for (const double t : times) sum += t;
    return sum / static_cast<double>(times.size());
  }

  communicator<T>& comm_;
  sweep_config config_;
  whereabouts* at_;
  std::string plan_;
  detail::pages in_, out_;
  buffer<std::uint8_t> given_in_, given_out_;
  bytes size_{};
  deadline until_{};
};

}}}  // namespace topocoll::v0::bench
