// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared memory under a name: made by rank 0, found by the others, nameless as soon as all are there.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/diagnosis.hpp>
#include <topocoll/exec/detail/group_memory.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A file descriptor that is closed by its destructor.
class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// The owner of a segment holds a write lock on it ("open file description lock", fcntl(2)): the kernel drops it when
// the owner dies, in whatever pid namespace that is, and asking about it does not disturb. Only who holds the lock of
// an inode may remove its name; a new name can only be made when the old one is gone. So nobody removes a living
// group's name.
template <class = void>
[[nodiscard]] bool lock_segment(int fd) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}
template <class = void>
[[nodiscard]] bool is_locked(int fd) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
template <class = void>
[[nodiscard]] bool has_name(int fd) noexcept {
  struct stat s {};
  return ::fstat(fd, &s) == 0 && s.st_nlink > 0;
}

template <class = void>
void sleep_for(seconds s) noexcept {
  const timespec t{0, static_cast<long>(s.value * 1e9)};  // below one second
  ::nanosleep(&t, nullptr);
}
inline constexpr seconds look_again_after{0.002};

template <class = void>
[[nodiscard]] std::string in_mib(std::uint64_t n) {
  return std::to_string((n + (1U << 20U) - 1) >> 20U) + " MiB";
}

/// Makes the segment of a group and writes its header; replaces one whose owner is dead.
template <class = void>
[[nodiscard]] result<std::pair<descriptor, mapping>> make_segment(const std::string& path, const group_shape& shape,
                                                                  deadline until) {
  for (;;) {
    descriptor file(::shm_open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (file) {
      if (!lock_segment(file.get())) continue;  // taken for a leftover in the moment before it was locked: once more
      if (!has_name(file.get())) continue;
      // Every page now: a write to a page that does not fit would kill the process later, with SIGBUS. Those of buffers come
      // when these are given out.
      int why;
      do why = ::posix_fallocate(file.get(), 0, static_cast<off_t>(shape.fixed()));
      while (why == EINTR);
      if (why == 0 && ::ftruncate(file.get(), static_cast<off_t>(shape.total())) != 0) why = errno;
      if (why != 0) {
        struct statvfs room {};
        const bool known = ::fstatvfs(file.get(), &room) == 0;
        ::shm_unlink(path.c_str());
        if (why == ENOSPC || why == EFBIG || why == ENOMEM)
          return fail(errc::unavailable,
                      "/dev/shm has no room for the " + in_mib(shape.fixed()) + " that " + std::to_string(shape.ranks) +
                          " ranks share" + (known ? ": " + in_mib(room.f_bavail * room.f_frsize) + " are free" : ""),
                      "free or enlarge /dev/shm, or set group_options::memory lower");
        return fail(errc::system, "the shared memory " + path + " could not be filled: " + std::strerror(why));
      }
      void* at = ::mmap(nullptr, shape.total(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
      if (at == MAP_FAILED) {
        const int error = errno;
        ::shm_unlink(path.c_str());
        return fail(errc::system, "the shared memory " + path + " could not be mapped: " + std::strerror(error));
      }
      return std::pair{std::move(file), mapping{at, shape.total()}};
    }
    if (errno != EEXIST) {
      return fail(errno == EACCES || errno == EPERM ? errc::permission : errc::system,
                  "the shared memory " + path + " could not be made: " + std::strerror(errno));
    }
    descriptor old(::shm_open(path.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (!old) {
      if (errno == ENOENT) continue;
      return fail(errc::permission,
                  "the shared memory " + path + " exists and cannot be opened: " + std::strerror(errno));
    }
    if (lock_segment(old.get())) {
      if (has_name(old.get())) ::shm_unlink(path.c_str());
      continue;
    }
    if (until.passed())
      return fail(errc::unavailable, "the name " + path + " is in use by a group whose rank 0 lives",
                  "use a name that no other job uses");
    sleep_for(look_again_after);
  }
}

/// Finds the segment that a living rank 0 made, complete.
template <class = void>
[[nodiscard]] result<std::pair<descriptor, mapping>> find_segment(const std::string& path, std::uint32_t rank,
                                                                  deadline until, seconds patience) {
  for (;; sleep_for(look_again_after)) {
    descriptor file(::shm_open(path.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (!file && errno != ENOENT)
      return fail(errc::permission, "the shared memory " + path + " cannot be opened: " + std::strerror(errno));
    if (file && is_locked(file.get())) {
      struct stat s {};
      if (::fstat(file.get(), &s) == 0 && static_cast<std::uint64_t>(s.st_size) >= sizeof(group_header)) {
        const auto size = static_cast<std::size_t>(s.st_size);
        void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        if (at == MAP_FAILED)
          return fail(errc::system, "the shared memory " + path + " could not be mapped: " + std::strerror(errno));
        mapping m{at, size};
        const auto* h = std::launder(reinterpret_cast<const group_header*>(m.data()));
        // The owner grows the file, then writes the header; `ready` is the last word of it.
        const bool complete = h->ready.load(std::memory_order_acquire) == 1;
        // It may have grown since we asked for its size: then what is mapped is not all of it.
        if (complete && ::fstat(file.get(), &s) == 0 && static_cast<std::size_t>(s.st_size) != size) continue;
        if (complete) {
          if (h->mark != group_memory::layout_mark || h->total_bytes != size)
            return fail(errc::mismatch, "rank 0 made " + path + " with another version of topocoll than rank " +
                                            std::to_string(rank) + " has");
          return std::pair{std::move(file), std::move(m)};
        }
      }
    }
    if (until.passed())
      return fail(errc::timed_out,
                  "rank 0 did not make the shared memory " + path + " within the " + span_in_words(patience) +
                      " that rank " + std::to_string(rank) + " waited",
                  "make sure that rank 0 runs on this host, under the same user, with the same name");
  }
}

template <class = void>
[[nodiscard]] std::string list_of_absent(const group_memory& group) {
  std::string text;
  std::uint32_t absent = 0;
  for (std::uint32_t r = 0; r < group.shape().ranks; ++r) {
    if (group.record(r).state.load(std::memory_order_acquire) != presence::absent) continue;
    if (++absent <= 8) text += (text.empty() ? "" : ", ") + std::to_string(r);
  }
  if (absent > 8) text += " and " + std::to_string(absent - 8) + " more";
  return (absent == 1 ? "rank " : "ranks ") + text;
}

/// Waits until all ranks have attached. Nothing (a null pointer) if the segment turned out to be a leftover that a new
/// rank 0 has removed meanwhile: the lock that made it look alive was that of the one who tidied up.
template <class = void>
[[nodiscard]] result<std::shared_ptr<group_memory>> wait_for_all(const std::shared_ptr<group_memory>& group,
                                                                 const std::string& path, int file, std::uint32_t rank,
                                                                 seconds start, deadline until) {
  const std::uint32_t ranks = group->shape().ranks;
  for (; group->header().attached.load(std::memory_order_acquire) != ranks; sleep_for(look_again_after)) {
    if (group->broken()) return group->cause();
    if (rank != 0 && !has_name(file)) {
      // Rank 0 removes the name after the last has attached, or after it broke the group: look once more for either.
      if (group->header().attached.load(std::memory_order_acquire) == ranks) break;
      if (group->broken()) return group->cause();
      return std::shared_ptr<group_memory>();
    }
    if (until.passed()) {
      group->break_group(errc::timed_out,
                         list_of_absent(*group) + " of " + std::to_string(ranks) + " did not join within " +
                             span_in_words(steady_clock::now() - start),
                         "make sure that all ranks run on this host, under the same user, with the same name");
    } else if (rank != 0 && !is_locked(file)) {  // rank 0 keeps the lock until all are there
      if (group->header().attached.load(std::memory_order_acquire) == ranks) break;
      if (!has_name(file)) continue;
      // Nobody can come any more. Whoever gets the lock tidies up.
      group->break_group(errc::peer_lost, group->name_of(0) + " died before all ranks had joined", {});
      if (lock_segment(file) && has_name(file)) ::shm_unlink(path.c_str());
    }
  }
  return group;
}

template <class = void>
[[nodiscard]] result<std::shared_ptr<group_memory>> join_named_memory(std::string_view name, std::uint32_t rank,
                                                                      const group_wishes& wishes, deadline until) {
  const seconds start = steady_clock::now();
  const std::uint32_t ranks = wishes.ranks, channels = wishes.channels;
  if (rank >= ranks)
    return fail(errc::invalid_argument,
                "there is no rank " + std::to_string(rank) + " in a group of " + std::to_string(ranks));
  bool good = !name.empty() && name.size() <= 100;
  for (const char c : name)
    good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                    c == '_' || c == '-');
  if (!good)
    return fail(errc::invalid_argument, "\"" + std::string(name) + "\" cannot name shared memory",
                "use letters, digits, '.', '_', '-', at most 100");
  auto shape = group_shape::of(wishes, sharing::named);
  if (!shape) return std::move(shape).error();
  const std::string path = "/topocoll-" + std::to_string(::getuid()) + "-" + std::string(name);
  const process_identity me = this_process();

  for (;; sleep_for(look_again_after)) {
    auto segment = rank == 0 ? make_segment(path, *shape, until) : find_segment(path, rank, until, until.at - start);
    if (!segment) return std::move(segment).error();
    const int file = segment->first.get();
    if (rank != 0) {
      const auto& h = *std::launder(reinterpret_cast<const group_header*>(segment->second.data()));
      *shape = {h.ranks, h.channels, h.slot_count, h.slot_bytes, h.cell_bytes, h.stage_bytes, h.buffer_bytes};
    }
    const auto group = std::make_shared<group_memory>(std::move(segment->second), *shape, sharing::named);
    if (rank == 0) group->write_header();
    // A leftover is locked for the moment in which a new rank 0 removes it. Unless time is up, look for the new one.
    const bool leftover = rank != 0 && state_of(group->identity(0), me).life == process_life::dead;
    if (leftover && !until.passed()) continue;
    if (shape->ranks != ranks || shape->channels != channels)
      return fail(errc::mismatch, "rank " + std::to_string(rank) + " joins a group of " + std::to_string(ranks) +
                                      " ranks with " + std::to_string(channels) + " channels, rank 0 made one of " +
                                      std::to_string(shape->ranks) + " with " + std::to_string(shape->channels));
    if (!group->attach(rank, me, host_name())) {
      if (rank != 0 && !has_name(file) && !until.passed()) continue;
      return fail(errc::mismatch,
                  "the place of " + group->name_of(rank) + " in the group is taken, process " + std::to_string(me.pid) +
                      " claims it too",
                  "give every process its own rank, and every job its own name");
    }
    auto all = wait_for_all(group, path, file, rank, start, until);
    if (rank == 0) ::shm_unlink(path.c_str());
    if (!all || *all != nullptr) return all;
  }
}

}}}  // namespace topocoll::v0::detail
