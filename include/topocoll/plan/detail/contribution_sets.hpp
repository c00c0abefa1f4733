// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of ranks as small numbers: equal sets have equal numbers, unions are remembered.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Table of the sets of contributions that turn up in a proof. Number 0 is the empty set; {r} is r+1.
class contribution_sets {
 public:
  explicit contribution_sets(std::uint32_t ranks)
      : ranks_(ranks), words_((ranks + 63) / 64), by_content_(64), by_pair_(64) {
    sizes_.push_back(0);
    bits_.resize(words_);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      bits_.resize(bits_.size() + words_);
      bits_[bits_.size() - words_ + r / 64] = std::uint64_t{1} << (r % 64);
      add_last(1);
    }
  }

  [[nodiscard]] std::uint32_t of(std::uint32_t rank) const { return rank + 1; }
  [[nodiscard]] bool is_full(std::uint32_t set) const { return sizes_[set] == ranks_; }
  [[nodiscard]] std::uint32_t size(std::uint32_t set) const { return sizes_[set]; }
  [[nodiscard]] bool holds(std::uint32_t set, std::uint32_t rank) const {
    return ((bits_[std::size_t{set} * words_ + rank / 64] >> (rank % 64)) & 1U) != 0;
  }
  /// A rank that is in both sets, or `ranks` when they are disjoint.
  [[nodiscard]] std::uint32_t common(std::uint32_t a, std::uint32_t b) const {
    for (std::uint32_t w = 0; w < words_; ++w)
      if (const std::uint64_t both = bits_[std::size_t{a} * words_ + w] & bits_[std::size_t{b} * words_ + w])
        return w * 64 + static_cast<std::uint32_t>(std::countr_zero(both));
    return ranks_;
  }
  /// Union of two disjoint sets, `overlap` when they are not. Amortised O(ranks / 64), O(1) for a pair seen before.
  [[nodiscard]] std::uint32_t join(std::uint32_t a, std::uint32_t b) {
    if (a > b) std::swap(a, b);
    const std::uint64_t key = (std::uint64_t{a} << 32U) | b;
    if (const std::uint32_t* known = by_pair_.find(mix(key), [&](const pair_entry& e) { return e.key == key; }))
      return by_pair_.at(*known).value;
    std::uint32_t set = overlap;
    if (common(a, b) == ranks_) {
      bits_.resize(bits_.size() + words_);
      for (std::uint32_t w = 0; w < words_; ++w)
        bits_[bits_.size() - words_ + w] = bits_[std::size_t{a} * words_ + w] | bits_[std::size_t{b} * words_ + w];
      set = add_last(sizes_[a] + sizes_[b]);
    }
    by_pair_.insert({mix(key), key, set});
    return set;
  }
  static constexpr std::uint32_t overlap = 0xffffffffU;

 private:
  /// Open addressing, linear probing; entries are never removed.
  template <class Entry>
  class table {
   public:
    explicit table(std::size_t slot_count) : slots_(slot_count, empty) {}
    template <class Same>
    [[nodiscard]] const std::uint32_t* find(std::uint64_t hash, Same&& same) const {
      for (std::size_t i = hash & (slots_.size() - 1); slots_[i] != empty; i = (i + 1) & (slots_.size() - 1))
        if (entries_[slots_[i]].hash == hash && same(entries_[slots_[i]])) return &slots_[i];
      return nullptr;
    }
    [[nodiscard]] const Entry& at(std::uint32_t i) const { return entries_[i]; }
    void insert(Entry e) {
      entries_.push_back(e);
      if (entries_.size() * 2 > slots_.size()) {
        slots_.assign(slots_.size() * 2, empty);
        for (std::uint32_t i = 0; i < entries_.size(); ++i) place(i);
      } else {
        place(static_cast<std::uint32_t>(entries_.size() - 1));
      }
    }

   private:
    static constexpr std::uint32_t empty = 0xffffffffU;
    void place(std::uint32_t entry) {
      std::size_t i = entries_[entry].hash & (slots_.size() - 1);
      while (slots_[i] != empty) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = entry;
    }
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> slots_;
  };
  struct set_entry {
    std::uint64_t hash;
    std::uint32_t set;
  };
  struct pair_entry {
    std::uint64_t hash, key;
    std::uint32_t value;
  };

  /// Finaliser of MurmurHash3 (Appleby, public domain): spreads all bits.
  [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdU;
    x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53U;
    return x ^ (x >> 33U);
  }

  /// Gives the bits at the end of the table a number, or drops them when they are known.
  std::uint32_t add_last(std::uint32_t size) {
    const std::size_t last = bits_.size() - words_;
    std::uint64_t hash = 0;
    for (std::uint32_t w = 0; w < words_; ++w) hash = mix(hash ^ bits_[last + w]) + w;
    const std::uint32_t* known = by_content_.find(hash, [&](const set_entry& e) {
      for (std::uint32_t w = 0; w < words_; ++w)
        if (bits_[std::size_t{e.set} * words_ + w] != bits_[last + w]) return false;
      return true;
    });
    if (known != nullptr) {
      bits_.resize(last);
      return by_content_.at(*known).set;
    }
    sizes_.push_back(size);
    const auto set = static_cast<std::uint32_t>(sizes_.size() - 1);
    by_content_.insert({hash, set});
    return set;
  }

  std::uint32_t ranks_;
  std::uint32_t words_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> sizes_;
  table<set_entry> by_content_;
  table<pair_entry> by_pair_;
};

}}}}  // namespace topocoll::v0::plan::detail
