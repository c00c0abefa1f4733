// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plans of a communicator: made when first needed, verified, agreed on by all ranks, kept.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/exec/detail/agreement.hpp>
#include <topocoll/exec/detail/call_tag.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/executor.hpp>
#include <topocoll/exec/flat_choice.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/lower.hpp>
#include <topocoll/plan/schedule.hpp>
#include <topocoll/plan/verify.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// One plan that all ranks agree on, and this rank's part of it.
struct stored_plan {
  collective_kind collective;
  std::uint32_t root;
  flat_choice choice;
  bool adopted;
  bool windowable;  // on all ranks
  std::string name;
  std::uint64_t digest;
  prepared_program program;
};

/// Verifies a plan and works out the part of one rank. Cost: that of `plan::verify`.
template <class = void>
[[nodiscard]] result<stored_plan> prove(const plan::schedule& plan, std::uint32_t rank, flat_choice choice,
                                        bool adopted) {
  if (auto proof = plan::verify(plan); !proof) return std::move(proof).error();
  // Calls can be cut into windows only if that suits every rank.
  bool windowable = true;
  std::optional<prepared_program> mine;
  for (std::uint32_t r = 0; r < plan.ranks; ++r) {
    auto lowered = plan::lower(plan, {r});
    if (!lowered) return std::move(lowered).error();
    auto prepared = prepared_program::of(*std::move(lowered));
    if (!prepared) return std::move(prepared).error();
    windowable = windowable && prepared->windowable();
    if (r == rank) mine = *std::move(prepared);
  }
  if (!mine)
    return fail(errc::invalid_argument,
                "a plan for " + std::to_string(plan.ranks) + " ranks has no part for rank " + std::to_string(rank));
  return stored_plan{plan.collective,
                     rooted(plan.collective) ? plan.root.value : 0,
                     choice,
                     adopted,
                     windowable,
                     plan.name,
                     plan::digest(plan),
                     *std::move(mine)};
}

class plan_store {
 public:
  struct request {
    dtype type;
    reduce_op op;
    std::uint64_t count;
    std::uint32_t number;
  };

  /// The plan for a call. The first use of a plan costs its proof and one exchange of 8 bytes between all pairs.
  template <Transport T>
  [[nodiscard]] result<stored_plan*> find(T& transport, collective_kind kind, std::uint32_t root, bytes amount,
                                          const request& r, deadline until) {
    if (!rooted(kind)) root = 0;
    const flat_choice choice = choose_flat(kind, transport.size(), amount);
    if (stored_plan* known = look_up(kind, root, choice)) return known;
    auto made = make(kind, transport.rank().value, transport.size(), root, choice);
    const call_identity about{r.number, call_identity::step::agreement, kind, r.type, r.op, root, r.count, 0};
    auto agreed =
        agree(transport, about, made ? (*made)->digest : no_plan, "plan for " + std::string(to_string(kind)), until);
    if (!made) return std::move(made).error();
    if (!agreed) return std::move(agreed).error();
    plans_.push_back(*std::move(made));
    return plans_.back().get();
  }

  /// Makes sure that all ranks bring the same counts of unequal shards. A list that was agreed on in the last such call of
  /// its collective costs nothing; another one costs an exchange of 8 bytes between all pairs.
  template <Transport T>
  [[nodiscard]] result<void> agree_on_counts(T& transport, collective_kind kind, std::uint32_t root,
                                             std::span<const std::uint64_t> counts, const request& r, deadline until) {
    const std::uint64_t mark = mark_of(counts);
    std::uint64_t& known = known_counts_[static_cast<std::size_t>(kind)];
    if (known == mark) return {};
    const call_identity about{r.number, call_identity::step::agreement, kind, r.type,
                              r.op,     rooted(kind) ? root : 0,        0,    0};
    auto agreed = agree(transport, about, mark, "list of counts", until);
    if (agreed) known = mark;
    return agreed;
  }

  /// Makes sure that all ranks combine in the order of the ranks, and cut arrays alike; a rank that looks for a plan of this
  /// collective is found. The first call of a collective and root costs an exchange of 8 bytes between all pairs.
  template <Transport T>
  [[nodiscard]] result<void> agree_on_order(T& transport, collective_kind kind, std::uint32_t root, std::uint64_t mark,
                                            const request& r, deadline until) {
    if (!rooted(kind)) root = 0;
    for (const ordered_collective& known : ordered_)
      if (known.collective == kind && known.root == root) return {};
    const call_identity about{r.number, call_identity::step::agreement, kind, r.type, r.op, root, r.count, 0};
    auto agreed = agree(transport, about, mark,
                        "plan for " + std::string(to_string(kind)) + " (deterministic, window or in_flight)", until);
    if (agreed) ordered_.push_back({kind, root});
    return agreed;
  }

  template <Transport T>
  [[nodiscard]] result<void> adopt(T& transport, const plan::schedule& plan, std::uint32_t number, deadline until) {
    auto proved = adoptable(plan, transport.rank().value, transport.size(), transport.channels());
    const std::uint32_t root = rooted(plan.collective) ? plan.root.value : 0;
    const call_identity about{
        number, call_identity::step::agreement, plan.collective, dtype::uint8, reduce_op::sum, root, 0, 0};
    // A rank whose plan is no good takes part all the same: the others learn it at once.
    auto agreed = agree(transport, about, proved ? proved->digest : no_plan,
                        "plan for " + std::string(to_string(plan.collective)), until);
    if (!proved) return std::move(proved).error();
    if (!agreed) return agreed;
    std::erase_if(plans_,
                  [&](const auto& p) { return p->adopted && p->collective == plan.collective && p->root == root; });
    plans_.push_back(std::make_unique<stored_plan>(*std::move(proved)));
    return {};
  }

  /// Whether calls of this collective go by a plan that the caller chose.
  [[nodiscard]] bool adopted(collective_kind kind, std::uint32_t root) const {
    if (!rooted(kind)) root = 0;
    for (const auto& p : plans_)
      if (p->adopted && p->collective == kind && p->root == root) return true;
    return false;
  }

  template <class = void>
  [[nodiscard]] std::string name_of(collective_kind kind, std::uint32_t root, std::uint32_t ranks, bytes amount) const {
    if (!rooted(kind)) root = 0;
    const flat_choice choice = choose_flat(kind, ranks, amount);
    const stored_plan* known = look_up(kind, root, choice);
    return known != nullptr && known->adopted ? known->name : std::string(plan::to_string(choice.how));
  }

 private:
  static constexpr std::uint64_t no_plan = 0;  // in place of a digest
  struct ordered_collective {
    collective_kind collective;
    std::uint32_t root;
  };

  template <class = void>
  [[nodiscard]] static result<stored_plan> adoptable(const plan::schedule& plan, std::uint32_t rank,
                                                     std::uint32_t ranks, std::uint32_t channels) {
    if (plan.ranks != ranks)
      return fail(errc::invalid_argument, "a plan for " + std::to_string(plan.ranks) +
                                              " ranks was given to a group of " + std::to_string(ranks));
    if (plan.slices > channels && ranks > 1)
      return fail(errc::unsupported,
                  "the plan has " + std::to_string(plan.slices) + " slices, the transport only " +
                      std::to_string(channels) + " channels",
                  "ask for more channels when the group is made, or for fewer slices");
    return prove(plan, rank, {}, true);
  }
  [[nodiscard]] stored_plan* look_up(collective_kind kind, std::uint32_t root, flat_choice choice) const {
    stored_plan* found = nullptr;
    for (const auto& p : plans_) {
      if (p->collective != kind || p->root != root) continue;
      if (p->adopted) return p.get();
      if (p->choice == choice) found = p.get();
    }
    return found;
  }
  template <class = void>
  [[nodiscard]] static result<std::unique_ptr<stored_plan>> make(collective_kind kind, std::uint32_t rank,
                                                                 std::uint32_t ranks, std::uint32_t root,
                                                                 flat_choice choice) {
    auto plan = plan::flat_schedule(kind, ranks, {root}, choice.how, {.slices = choice.slices});
    if (!plan) return std::move(plan).error();
    auto proved = prove(*plan, rank, choice, false);
    if (!proved) return std::move(proved).error();
    return std::make_unique<stored_plan>(*std::move(proved));
  }

  std::uint64_t known_counts_[collective_count] = {};  // per collective: mark of the counts agreed on last
  std::vector<ordered_collective> ordered_;            // agreed to go in the order of the ranks
  std::vector<std::unique_ptr<stored_plan>> plans_;    // a dozen at most: searched from front to back
};

}}}  // namespace topocoll::v0::detail
