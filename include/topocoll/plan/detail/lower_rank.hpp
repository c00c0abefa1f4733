// SPDX-License-Identifier: Apache-2.0
#pragma once
// Puts the slices of a rank together to one program.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/detail/slice_lowering.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Renumbers the scratch cells of all slices so that only used ones are counted. Neighbours stay neighbours.
template <class = void>
void pack_scratch(program& p, const std::vector<std::uint32_t>& first_cell, std::uint32_t cells,
                  const std::vector<std::uint32_t>& slice_of_op) {
  std::vector<std::uint32_t> number(cells, 0);
  const auto each = [&](auto&& visit) {
    for (std::size_t i = 0; i < p.ops.size(); ++i)
      for (slice* s : {&p.ops[i].from, &p.ops[i].to})
        if (s->where == buffer::scratch && s->count != 0) visit(*s, first_cell[slice_of_op[i]]);
  };
  each([&](const slice& s, std::uint32_t base) {
    for (std::uint32_t c = 0; c < s.count; ++c) number[base + s.first + c] = 1;
  });
  std::uint32_t used = 0;
  for (std::uint32_t& n : number) {
    const bool wanted = n != 0;
    n = used;
    used += wanted ? 1 : 0;
  }
  each([&](slice& s, std::uint32_t base) { s.first = number[base + s.first]; });
  p.scratch_cells = used;
}

/// Where the steps of a stage of a slice are in a program.
struct stage_steps {
  std::uint32_t first = 0, count = 0;
};

/// `lower` for a valid schedule whose groups are written down, those of `rank` at least; slice s runs on channel
/// s % `channels`.
template <class = void>
[[nodiscard]] result<program> lower_written(const schedule& plan, rank_id rank, std::uint32_t channels) {
  program p;
  p.collective = plan.collective;
  p.ranks = plan.ranks;
  p.rank = rank;
  p.root = plan.root;
  p.chunks = plan.chunks();
  p.channels = std::min(plan.slices, channels);
  for (const stage& st : plan.stages) p.stages.push_back(st.label.empty() ? std::string(to_string(st.kind)) : st.label);
  p.stages.push_back("copy to output");

  std::vector<slice_lowering<>> slices;
  std::vector<std::uint32_t> first_cell;
  std::uint32_t cells = 0;
  std::size_t steps = 0, ops = 0;
  for (std::uint32_t s = 0; s < plan.slices; ++s) {
    slices.push_back(slice_lowering(plan, rank, s));
    for (std::uint32_t i = 0; i < plan.stages.size(); ++i)
      if (auto done = slices[s].run(i); !done) return done.error();
    if (auto done = slices[s].finish(); !done) return done.error();
    steps += slices[s].steps().size();
    ops += slices[s].ops().size();
    first_cell.push_back(cells);
    cells += slices[s].scratch_cells();
  }

  // A pipeline: while slice s is in a stage, slice s+1 is in the stage before it. All ranks list stages of slices in this
  // order, so that what shares a channel meets in the same order at both ends, and nothing waits for what is listed later.
  std::vector<std::vector<std::uint32_t>> global(plan.slices);
  std::vector<std::uint32_t> slice_of_op;
  p.steps.reserve(steps);
  p.ops.reserve(ops);
  slice_of_op.reserve(ops);
  const std::uint32_t stages = static_cast<std::uint32_t>(p.stages.size());
  std::vector<std::size_t> next(plan.slices, 0);
  std::vector<stage_steps> at(std::size_t{plan.slices} * stages);
  for (std::uint32_t turn = 0; turn < plan.slices + stages - 1; ++turn)
    for (std::uint32_t s = turn < stages ? 0 : turn - stages + 1; s <= turn && s < plan.slices; ++s) {
      const std::uint32_t stage = turn - s;
      stage_steps& mine = at[std::size_t{s} * stages + stage];
      mine.first = static_cast<std::uint32_t>(p.steps.size());
      const std::uint32_t lag = stage < plan.stages.size() ? slices_at_once(plan.stages[stage]) : 1;
      const stage_steps ahead = s < lag ? stage_steps{} : at[std::size_t{s - lag} * stages + stage];
      for (; next[s] < slices[s].steps().size() && slices[s].steps()[next[s]].stage == stage; ++next[s]) {
        auto& from = slices[s].steps()[next[s]];
        for (std::uint32_t& a : from.after) a = global[s][a];
        if (mine.count < ahead.count) from.after.push_back(ahead.first + mine.count);
        global[s].push_back(static_cast<std::uint32_t>(p.steps.size()));
        p.steps.push_back(
            {s % channels, stage, static_cast<std::uint32_t>(p.ops.size()), from.op_count, std::move(from.after)});
        const auto first = slices[s].ops().begin() + from.first_op;
        p.ops.insert(p.ops.end(), first, first + from.op_count);
        slice_of_op.insert(slice_of_op.end(), from.op_count, s);
        ++mine.count;
      }
    }
  pack_scratch(p, first_cell, cells, slice_of_op);
  return p;
}

/// `lower` for a schedule that is known to be valid and a rank that it has.
template <class = void>
[[nodiscard]] result<program> lower_valid(const schedule& plan, rank_id rank, std::uint32_t channels = max_channels) {
  const bool compact = seq::any_of(plan.stages, [](const stage& st) { return st.axis.has_value(); });
  return compact ? lower_written(part_of(plan, rank), rank, channels) : lower_written(plan, rank, channels);
}

}  // namespace detail

template <class>
result<program> lower(const schedule& plan, rank_id rank) {
  if (auto fits = validate(plan); !fits) return fits.error();
  if (rank.value >= plan.ranks)
    return fail(errc::invalid_argument, "schedule '" + plan.name + "': rank " + std::to_string(rank.value) +
                                            " is not one of its " + std::to_string(plan.ranks) + " ranks");
  return detail::lower_valid(plan, rank);
}

}}}  // namespace topocoll::v0::plan
