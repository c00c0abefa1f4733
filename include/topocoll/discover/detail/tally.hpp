// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same observation about many devices as one finding.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Collects who an observation is about; order of first mention.
class tally {
 public:
  void add(severity level, const std::string& what, std::string who, const std::string& next_step = {}) {
    for (row& r : rows_)
      if (r.what == what) {
        if (level > r.level) {
          r.level = level;
          r.next_step = next_step;
        }
        r.who.push_back(std::move(who));
        return;
      }
    rows_.push_back({level, what, next_step, {std::move(who)}});
  }

  /// Appends one finding an observation: "what" with the names as evidence, at most six of them spelt out.
  void report(const std::string& where, std::vector<finding>& out) const {
    constexpr std::size_t spelt = 6;
    for (const row& r : rows_) {
      std::string evidence = r.who.size() == 1 ? std::string() : std::to_string(r.who.size()) + ": ";
      for (std::size_t i = 0; i < r.who.size() && i < spelt; ++i) evidence += (i == 0 ? "" : ", ") + r.who[i];
      if (r.who.size() > spelt) evidence += ", …";
      out.push_back({r.level, where, r.what, std::move(evidence), r.next_step, 1});
    }
  }

 private:
  struct row {
    severity level;
    std::string what, next_step;
    std::vector<std::string> who;
  };
  std::vector<row> rows_;
};

}}}  // namespace topocoll::v0::detail
