// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements in memory that a communicator gives.
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <topocoll/exec/dtype.hpp>

namespace topocoll { inline namespace v0 {

/// An array from `communicator::allocate`. Moves, does not copy; gives its memory back when destroyed, by any thread, and
/// may outlive the communicator. Contents are unspecified at first.
template <Element T>
class buffer {
 public:
  using value_type = T;

  buffer() = default;
  buffer(std::shared_ptr<std::byte> memory, std::size_t size) : memory_(std::move(memory)), size_(size) {}
  buffer(buffer&& o) noexcept : memory_(std::move(o.memory_)), size_(std::exchange(o.size_, 0)) {}
  buffer& operator=(buffer&& o) noexcept {
    memory_ = std::move(o.memory_);
    size_ = std::exchange(o.size_, 0);
    return *this;
  }

  [[nodiscard]] T* data() { return reinterpret_cast<T*>(memory_.get()); }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }
  /// Part of it, for a collective on some of the elements.
  [[nodiscard]] std::span<T> first(std::size_t count) { return std::span<T>(*this).first(count); }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

}}  // namespace topocoll::v0
