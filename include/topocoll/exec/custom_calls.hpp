// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that reduce by an operation of the caller: elements of any size, any associative ⊕.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/call_options.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/reduce.hpp>

namespace topocoll { inline namespace v0 {

/// The reduction of elements of type T by a function object: `f(a, b)` is a ⊕ b. `f` must outlive it and must not throw.
template <class T, class F>
requires std::is_trivially_copyable_v<T> && std::default_initializable<T> && requires(F& f, const T& a, const T& b) {
  { f(a, b) } -> std::convertible_to<T>;
}
[[nodiscard]] custom_reduction reduction_by(F& f) {
  const auto run = [](void* context, std::byte* into, const std::byte* a, const std::byte* b, std::size_t count) {
    F& combine = *static_cast<F*>(context);
    for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {
      T x, y;  // the bytes may lie anywhere
      std::memcpy(&x, a + i, sizeof(T));
      std::memcpy(&y, b + i, sizeof(T));
      const T sum = combine(x, y);
      std::memcpy(into + i, &sum, sizeof(T));
    }
  };
  return {run, const_cast<void*>(static_cast<const void*>(&f)), sizeof(T)};
}

/// all_reduce, reduce_scatter and reduce of a communicator on host memory, by a `custom_reduction`.
///
/// Every rank gets ((x0 ⊕ x1) ⊕ x2) ⊕ …, the operands in the order of the ranks, so ⊕ need not be commutative, and all ranks get
/// the same bits. Each rank combines its part of the elements and passes it on: traffic and steps are those of a direct
/// all-reduce, whatever plan the communicator has. Calls of the communicator that take long arrays are made in windows.
///
/// The communicator must outlive it, and its rules hold: all ranks make the same calls in the same order; a failure is that
/// of the call within, and `call_options::op` is not looked at. One thread at a time.
template <class C>
class custom_calls {
  static_assert(
      requires(C & comm) {
        { comm.memory() } -> std::same_as<host_memory&>;
      },
      "operations of the caller work on host memory: take a communicator with host_memory");

 public:
  /// @param scratch  memory for what arrives from the others, kept from call to call; longer arrays are worked on in windows
  ///                 that need no more. Equal on all ranks. At least one element from each rank is taken at a time.
  custom_calls(C& comm, custom_reduction what, bytes scratch = {4ULL << 20U})
      : comm_(&comm), what_(what), scratch_(scratch) {}

  /// out[i] := x0[i] ⊕ x1[i] ⊕ …, over the elements of all ranks. In place: `in` and `out` are the same memory; they must
  /// not overlap otherwise. What `out` holds after a failure is not said.
  /// @return `invalid_argument` for no function, spans that differ in length or are no whole elements; as the communicator
  [[nodiscard]] result<void> all_reduce(std::span<const std::byte> in, std::span<std::byte> out,
                                        const call_options& options = {}) {
    if (auto fits = check("all_reduce", in.size(), out.size()); !fits) return fits;
    return in_windows(in, options, [&](std::size_t at, std::size_t length, const call_options& rest) -> result<void> {
      return comm_->all_gather_v(words(mine_), words(out.subspan(at, length)), counts_, rest);
    });
  }
  [[nodiscard]] result<void> all_reduce(std::span<std::byte> data, const call_options& options = {}) {
    return all_reduce(data, data, options);
  }

  /// The same on the root alone; elsewhere `out` is not touched and may be empty.
  [[nodiscard]] result<void> reduce(std::span<const std::byte> in, std::span<std::byte> out, rank_id root,
                                    const call_options& options = {}) {
    const bool here = comm_->rank() == root;
    if (auto fits = check("reduce", in.size(), here ? out.size() : in.size()); !fits) return fits;
    return in_windows(in, options, [&](std::size_t at, std::size_t length, const call_options& rest) -> result<void> {
      return comm_->gather_v(words(mine_), words(here ? out.subspan(at, length) : std::span<std::byte>{}), counts_,
                             root, rest);
    });
  }

  /// `in` has as many elements for each rank as `out`; rank r gets the sums of those at r * out.size().
  [[nodiscard]] result<void> reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                            const call_options& options = {}) {
    const std::uint32_t n = comm_->size();
    if (auto fits = check("reduce_scatter", in.size(), out.size() * n); !fits) return fits;
    const deadline until = deadline::in(options.timeout);
    const std::size_t most = elements_per_window();
    for (std::size_t at = 0; at < out.size();) {
      const std::size_t length = std::min(most * what_.element_size, out.size() - at);
      parts_.resize(length * n);
      for (std::uint32_t r = 0; r < n; ++r)
        std::memcpy(parts_.data() + r * length, in.data() + r * out.size() + at, length);
      arrived_.resize(length * n);
      if (auto done =
              comm_->all_to_all(words(parts_), words(std::span<std::byte>(arrived_)), remaining(options, until));
          !done)
        return done;
      combine(out.subspan(at, length));
      at += length;
    }
    return {};
  }

 private:
  [[nodiscard]] static std::span<const std::uint8_t> words(std::span<const std::byte> b) {
    return {reinterpret_cast<const std::uint8_t*>(b.data()), b.size()};
  }
  [[nodiscard]] static std::span<std::uint8_t> words(std::span<std::byte> b) {
    return {reinterpret_cast<std::uint8_t*>(b.data()), b.size()};
  }
  [[nodiscard]] static std::span<const std::uint8_t> words(const std::vector<std::byte>& b) {
    return words(std::span<const std::byte>(b));
  }
  [[nodiscard]] static call_options remaining(const call_options& options, deadline until) {
    call_options rest = options;
    rest.timeout = std::max(seconds{}, until.left());
    return rest;
  }
  [[nodiscard]] result<void> check(const char* name, std::size_t in, std::size_t out) const {
    if (what_.function == nullptr || what_.element_size == 0)
      return fail(errc::invalid_argument, std::string(name) + " was given a reduction without a function or elements");
    if (in != out || in % what_.element_size != 0)
      return fail(errc::invalid_argument,
                  std::string(name) + " of elements of " + std::to_string(what_.element_size) + " bytes was given " +
                      std::to_string(in) + " bytes to read and " + std::to_string(out) + " to write",
                  "both must be the same whole number of elements");
    return {};
  }
  /// Elements of one part of a window.
  [[nodiscard]] std::size_t elements_per_window() const {
    const std::size_t fit = static_cast<std::size_t>(scratch_.value) / what_.element_size / comm_->size();
    return fit == 0 ? 1 : fit;
  }
  /// sum := what has arrived from all ranks, in their order.
  void combine(std::span<std::byte> sum) {
    if (sum.empty()) return;
    sources_.clear();
    for (std::uint32_t r = 0; r < comm_->size(); ++r) sources_.push_back(arrived_.data() + r * sum.size());
    reduce_many(what_, sum.data(), sources_, sum.size() / what_.element_size);
  }
  /// Every rank combines its part of each window into `mine_`; `pass_on` has the window's place, the parts are in `counts_`.
  template <class PassOn>
  [[nodiscard]] result<void> in_windows(std::span<const std::byte> in, const call_options& options,
                                        const PassOn& pass_on) {
    const std::uint32_t n = comm_->size();
    const deadline until = deadline::in(options.timeout);
    const std::size_t size = what_.element_size, window = elements_per_window() * n * size;
    for (std::size_t at = 0; at < in.size();) {
      const std::size_t length = std::min(window, in.size() - at), elements = length / size;
      counts_.clear();
      for (std::uint32_t r = 0; r < n; ++r) counts_.push_back((elements / n + (r < elements % n ? 1 : 0)) * size);
      mine_.resize(counts_[comm_->rank().value]);
      arrived_.resize(mine_.size() * n);
      receives_.assign(n, mine_.size());
      const auto sent = words(in.subspan(at, length));
      const auto arrives = words(std::span<std::byte>(arrived_));
      const call_options rest = remaining(options, until);
      auto done = elements % n == 0 ? comm_->all_to_all(sent, arrives, rest)
                                    : comm_->all_to_all_v(sent, arrives, counts_, receives_, rest);
      if (!done) return done;
      combine(mine_);
      if (done = pass_on(at, length, remaining(options, until)); !done) return done;
      at += length;
    }
    return {};
  }

  C* comm_;
  custom_reduction what_;
  bytes scratch_;
  std::vector<std::byte> arrived_{}, mine_{}, parts_{};
  std::vector<const std::byte*> sources_{};
  std::vector<std::uint64_t> counts_{}, receives_{};
};

}}  // namespace topocoll::v0
