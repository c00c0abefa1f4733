// SPDX-License-Identifier: Apache-2.0
#pragma once
// Meeting by means that the program has already: MPI, PMIx, a store of a framework.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>

namespace topocoll { inline namespace v0 {

/// Gathers blocks of equal length: `f(mine, all, until)` puts the blocks of all ranks one after the other into `all`, which has
/// size() times as many bytes as `mine`. All ranks call it at the same time with blocks of one length: MPI_Allgather, a
/// PMIx_Fence that collects, all_gather of a framework. It should give up at the deadline, as all that wait for a rank that is
/// gone hang otherwise: with MPI that is MPI_Iallgather and MPI_Test (bench/peers/mpi_meeting.cpp). Nothing may use the memory
/// after it has returned.
template <class F>
concept BlockGather = requires(F& f, std::span<const std::byte> mine, std::span<std::byte> all, deadline until) {
  { f(mine, all, until) } -> std::same_as<result<void>>;
};

namespace detail {

/// What ranks tell each other first in every call of a `lent_bootstrap`.
struct lent_head {
  static constexpr std::uint64_t this_version = 0x746f'7063'6c65'6e01ULL;
  enum class form : std::uint32_t { all_gather, barrier, end };

  std::uint64_t version = this_version;
  std::uint32_t number = 0;  ///< of the call
  form what = form::all_gather;
  std::uint64_t length = 0;  ///< of the part, or of the reason
};

/// What is wrong with these calls, which should be one.
template <class = void>
[[nodiscard]] std::optional<failure> lent_mismatch(std::span<const lent_head> all) {
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    const lent_head &a = all[0], &b = all[r];
    const std::string name = "rank " + std::to_string(r);
    if (b.version != lent_head::this_version)
      return fail(errc::mismatch, name + " has another version of this bootstrap, or another byte order",
                  "use one build on all ranks");
    if (a.what == lent_head::form::end || b.what == lent_head::form::end) continue;
    if (a.number != b.number || a.what != b.what)
      return fail(errc::mismatch,
                  name + " is in call " + std::to_string(b.number) +
                      (b.what == lent_head::form::barrier ? ", a barrier" : ", an all_gather") + ", rank 0 in call " +
                      std::to_string(a.number) +
                      (a.what == lent_head::form::barrier ? ", a barrier" : ", an all_gather"),
                  "make sure that all ranks make the same calls in the same order");
  }
  return std::nullopt;
}

}  // namespace detail

/// A `Bootstrap` on a function of the caller's. Two gathers for each all_gather, of 24 bytes and of the longest part; one for a
/// barrier. That a rank is gone is found by the function alone, or by its deadline.
template <BlockGather F>
class lent_bootstrap {
 public:
  /// @return `invalid_argument` for a rank that is none of the group
  [[nodiscard]] static result<lent_bootstrap> make(rank_id rank, std::uint32_t size, F gather) {
    if (rank.value >= size)
      return fail(errc::invalid_argument,
                  "there is no rank " + std::to_string(rank.value) + " in a group of " + std::to_string(size));
    return lent_bootstrap(rank, size, std::move(gather));
  }

  [[nodiscard]] rank_id rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  [[nodiscard]] result<std::vector<std::vector<std::byte>>> all_gather(std::span<const std::byte> mine,
                                                                       deadline until) {
    auto heads = meet(detail::lent_head::form::all_gather, mine.size(), until);
    if (!heads) return std::move(heads).error();
    auto parts = blocks(mine, *heads, until);
    if (!parts) return ended(std::move(parts).error());
    return parts;
  }
  [[nodiscard]] result<void> barrier(deadline until) {
    auto heads = meet(detail::lent_head::form::barrier, 0, until);
    if (!heads) return std::move(heads).error();
    return {};
  }
  /// This rank tells the others in its own next call; while it makes none, they wait for it until their deadline.
  void abort(std::string_view why) {
    if (!cause_) cause_ = fail(errc::aborted, "rank " + std::to_string(rank_.value) + " aborted: " + std::string(why));
  }

 private:
  using heads_of_all = std::vector<detail::lent_head>;

  lent_bootstrap(rank_id rank, std::uint32_t size, F gather) : gather_(std::move(gather)), rank_(rank), size_(size) {}

  [[nodiscard]] failure ended(failure why) {
    if (!cause_) cause_ = std::move(why);
    told_ = true;
    return *cause_;
  }
  /// What all ranks are about to do; a failure if that is not the same.
  [[nodiscard]] result<heads_of_all> meet(detail::lent_head::form what, std::uint64_t length, deadline until) {
    if (told_) return *cause_;
    const std::string reason = cause_ ? cause_->what : std::string();
    const detail::lent_head mine{detail::lent_head::this_version, number_++,
                                 cause_ ? detail::lent_head::form::end : what, cause_ ? reason.size() : length};
    heads_of_all heads(size_);
    if (auto done = gather_(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(heads)), until); !done)
      return ended(std::move(done).error());
    if (auto differs = detail::lent_mismatch(std::span<const detail::lent_head>(heads)))
      return ended(*std::move(differs));
    bool ends = false;
    for (const detail::lent_head& h : heads) ends = ends || h.what == detail::lent_head::form::end;
    if (!ends) return heads;
    for (detail::lent_head& h : heads)
      if (h.what != detail::lent_head::form::end) h.length = 0;
    auto reasons = blocks(std::as_bytes(std::span(reason)), heads, until);
    if (!reasons) return ended(std::move(reasons).error());
    for (std::uint32_t r = 0; r < size_; ++r)
      if (heads[r].what == detail::lent_head::form::end) {
        const auto& text = (*reasons)[r];
        if (r != rank_.value || !cause_)
          cause_ = fail(errc::aborted, std::string(reinterpret_cast<const char*>(text.data()), text.size()));
        break;
      }
    told_ = true;
    return *cause_;
  }
  /// The parts of all ranks, whose lengths are known.
  [[nodiscard]] result<std::vector<std::vector<std::byte>>> blocks(std::span<const std::byte> mine,
                                                                   const heads_of_all& heads, deadline until) {
    std::uint64_t longest = 0;
    for (const detail::lent_head& h : heads) longest = h.length > longest ? h.length : longest;
    std::vector<std::vector<std::byte>> parts(size_);
    if (longest == 0) return parts;
    std::vector<std::byte> block(longest), all(longest * size_);
    if (!mine.empty()) std::memcpy(block.data(), mine.data(), mine.size());
    if (auto done = gather_(std::span<const std::byte>(block), std::span<std::byte>(all), until); !done)
      return std::move(done).error();
    for (std::uint32_t r = 0; r < size_; ++r) {
      const std::byte* from = all.data() + r * longest;
      parts[r].assign(from, from + heads[r].length);
    }
    return parts;
  }

  F gather_;
  rank_id rank_;
  std::uint32_t size_;
  std::uint32_t number_ = 0;
  std::optional<failure> cause_;
  bool told_ = false;  // all others know the cause
};

}}  // namespace topocoll::v0
