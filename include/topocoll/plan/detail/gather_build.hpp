// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stages of a hierarchical gather or scatter: between the ranks of other boxes and the entries of the root's box, and in it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/entry_shares.hpp>
#include <topocoll/plan/detail/level_groups.hpp>
#include <topocoll/plan/levels.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Who of the root's box takes the shards of other boxes in (gather) or sends them out (scatter), so that all NICs of the
/// box work: they are its narrowest place, whatever comes before or after.
///
/// A shard keeps to the rail of its owner as long as the entry there can bear it; what is too much for an entry goes to the
/// others, in whole units. Ranks of the root's box reach the root without the network.
template <class = void>
class gather_build {
 public:
  /// @param shares  as in `problem::shares`; borrowed
  gather_build(const levels& at, const roster& who, rank_id root, std::span<const std::uint64_t> shares)
      : at_(at), who_(who), root_(root), shares_(shares) {}

  /// Units per shard: several where entries must share shards to be equally busy.
  [[nodiscard]] std::uint32_t units_per_shard() const {
    const std::vector<rank_id>& box = who_.box[at_.box[root_.value]];
    const auto n = static_cast<std::uint32_t>(at_.box.size()), g = static_cast<std::uint32_t>(box.size());
    const bool shared = n > g && (!shares_.empty() || uneven_rates(entries_of(at_, box)) || (n - g) % g != 0);
    return shared ? std::clamp(2048U / n, 1U, 16U) : 1;
  }

  /// Shards by entry, the root's first, and at each entry its own first: what an entry handles is one interval.
  [[nodiscard]] std::vector<rank_id> order() const {
    const std::uint32_t box = at_.box[root_.value], rail = at_.rail[root_.value];
    const auto g = static_cast<std::uint32_t>(who_.box[box].size());
    std::vector<rank_id> all;
    for (std::uint32_t r = 0; r < at_.box.size(); ++r) all.push_back({r});
    seq::sort_by(all, [&](rank_id r) {
      const std::uint32_t b = at_.box[r.value], p = at_.pod[r.value];
      const std::uint64_t entry = (at_.rail[r.value] % g + g - rail) % g;
      const std::uint64_t near = b == box ? 0 : p == at_.pod[root_.value] ? 1 : 2;
      return std::pair(entry << 2U | near, std::uint64_t{p} << 32U | b);
    });
    return all;
  }

  /// Works out the groups. `owner[v]` is the v-th shard's, as `order` said.
  void run(std::span<const rank_id> owner, std::uint32_t per_shard) {
    const std::uint32_t box = at_.box[root_.value];
    const std::vector<rank_id>& members = who_.box[box];
    std::vector<std::uint32_t> moving, home;
    std::vector<rank_id> entry(owner.size() * per_shard);
    for (std::uint32_t u = 0; u < entry.size(); ++u) {
      const rank_id r = owner[u / per_shard];
      entry[u] = r;
      if (at_.box[r.value] == box) continue;
      moving.push_back(u);
      home.push_back(at_.rail[r.value] % static_cast<std::uint32_t>(members.size()));
    }
    std::vector<double> rates = entries_of(at_, members);
    if (!(sum_of(rates) > 0)) rates.assign(members.size(), 1);
    std::vector<double> weight;
    for (const std::uint32_t u : moving)
      weight.push_back(shares_.empty() ? 1 : static_cast<double>(shares_[owner[u / per_shard].value]));
    const std::vector<std::uint32_t> spread =
        shares_.empty() ? spread_over_entries(rates, std::move(home)) : spread_weights(rates, weight, std::move(home));
    for (std::size_t i = 0; i < moving.size(); ++i) entry[moving[i]] = members[spread[i]];

    collector net, inside;
    for (std::uint32_t u = 0; u < entry.size(); ++u) {
      net.add(u, entry[u], owner[u / per_shard]);
      inside.add(u, root_, entry[u]);
    }
    between = std::move(net).finish();
    in_box = std::move(inside).finish();
  }

  level_groups between{};  ///< an entry first, then the ranks of other boxes that it serves
  level_groups in_box{};   ///< the root first, then the entries

 private:
  /// As `spread_over_entries`, where units weigh differently: what an entry cannot bear goes to the one that has most left.
  [[nodiscard]] static std::vector<std::uint32_t> spread_weights(std::span<const double> rates,
                                                                 std::span<const double> weight,
                                                                 std::vector<std::uint32_t> home) {
    const double all = sum_of(weight), rate = sum_of(rates);
    std::vector<double> left;
    for (const double r : rates) left.push_back(all * (r / rate));
    std::vector<std::size_t> homeless;
    for (std::size_t i = 0; i < home.size(); ++i) {
      if (left[home[i]] >= weight[i] * 0.5)
        left[home[i]] -= weight[i];
      else
        homeless.push_back(i);
    }
    for (const std::size_t i : homeless) {
      std::size_t best = 0;
      for (std::size_t j = 1; j < left.size(); ++j)
        if (left[j] > left[best]) best = j;
      home[i] = static_cast<std::uint32_t>(best);
      left[best] -= weight[i];
    }
    return home;
  }

  /// Collects units that go between one hub and one rank each into groups with the hub first.
  class collector {
   public:
    void add(std::uint32_t u, rank_id hub, rank_id end) {
      const bool open = !group_.members.empty() && group_.members[0] == hub && next_ == u;
      if (hub == end) {
        close();
        return;
      }
      if (open && group_.members.back() == end) {
        group_.bounds.back() = next_ = u + 1;
        return;
      }
      if (!open || seq::find(group_.members, end) != group_.members.end()) {
        close();
        group_.members = {hub};
        group_.bounds = {u, u};
      }
      group_.members.push_back(end);
      group_.bounds.push_back(u + 1);
      next_ = u + 1;
    }
    [[nodiscard]] level_groups finish() && {
      close();
      return std::move(done_);
    }

   private:
    void close() {
      if (!group_.members.empty()) done_.groups.push_back(std::move(group_));
      group_ = {};
    }
    level_groups::group group_{};
    level_groups done_{};
    std::uint32_t next_ = 0;
  };

  const levels& at_;
  const roster& who_;
  rank_id root_;
  std::span<const std::uint64_t> shares_;
};

}}}}  // namespace topocoll::v0::plan::detail
