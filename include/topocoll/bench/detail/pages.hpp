// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of whole pages: buffers of a benchmark, and what a rank tells the process that started it.
#include <cstddef>
#include <sys/mman.h>
#include <utility>

namespace topocoll { inline namespace v0 { namespace bench { namespace detail {

/// An anonymous mapping, zeroed. Private ones ask for huge pages; shared ones are seen by children that are forked later.
class pages {
 public:
  pages() = default;
  pages(std::size_t size, bool shared) {
    if (size == 0) return;
    void* at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    if (!shared) ::madvise(at, size, MADV_HUGEPAGE);  // a hint only
    at_ = at;
    size_ = size;
  }
  pages(pages&& o) noexcept : at_(std::exchange(o.at_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  pages& operator=(pages&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~pages() {
    if (at_ != nullptr) ::munmap(at_, size_);
  }
  [[nodiscard]] explicit operator bool() const { return at_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(at_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

}}}}  // namespace topocoll::v0::bench::detail
