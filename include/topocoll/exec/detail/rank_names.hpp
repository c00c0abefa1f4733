// SPDX-License-Identifier: Apache-2.0
#pragma once
// What sentences call the ranks of a group that is a part of a larger one: by their numbers in the larger one.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/exec/detail/group_memory.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Of one rank: the memory of the group knows nothing of it. Without names, every rank is called by its own number.
class rank_names {
 public:
  void call(std::vector<rank_id> names) { names_ = std::move(names); }
  [[nodiscard]] std::uint32_t of(std::uint32_t r) const { return r < names_.size() ? names_[r].value : r; }
  /// As `group_memory::name_of`: "rank 5 (pid 4711 on host node17)".
  [[nodiscard]] std::string full(const group_memory& group, std::uint32_t r) const {
    return renamed(group.name_of(r), r);
  }
  /// The same sentence by another name. Precondition: it begins with "rank <r>".
  [[nodiscard]] std::string renamed(const std::string& sentence, std::uint32_t r) const {
    if (names_.empty()) return sentence;
    return "rank " + std::to_string(of(r)) + sentence.substr(5 + std::to_string(r).size());
  }

 private:
  std::vector<rank_id> names_;
};

}}}  // namespace topocoll::v0::detail
