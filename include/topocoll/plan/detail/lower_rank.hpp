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
                  const std::vector<std::uint32_t>& channel_of_op) {
  std::vector<std::uint32_t> number(cells, 0);
  const auto each = [&](auto&& visit) {
    for (std::size_t i = 0; i < p.ops.size(); ++i)
      for (slice* s : {&p.ops[i].from, &p.ops[i].to})
        if (s->where == buffer::scratch && s->count != 0) visit(*s, first_cell[channel_of_op[i]]);
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

/// `lower` for a valid schedule whose groups are written down, those of `rank` at least.
template <class = void>
[[nodiscard]] result<program> lower_written(const schedule& plan, rank_id rank) {
  program p;
  p.collective = plan.collective;
  p.ranks = plan.ranks;
  p.rank = rank;
  p.root = plan.root;
  p.chunks = plan.chunks();
  p.channels = plan.slices;
  for (const stage& st : plan.stages) p.stages.push_back(st.label.empty() ? std::string(to_string(st.kind)) : st.label);
  p.stages.push_back("copy to output");

  std::vector<slice_lowering<>> slices;
  std::size_t longest = 0, steps = 0, ops = 0;
  std::vector<std::uint32_t> first_cell;
  std::uint32_t cells = 0;
  for (std::uint32_t s = 0; s < plan.slices; ++s) {
    slices.push_back(slice_lowering(plan, rank, s));
    for (std::uint32_t i = 0; i < plan.stages.size(); ++i)
      if (auto done = slices[s].run(i); !done) return done.error();
    if (auto done = slices[s].finish(); !done) return done.error();
    longest = std::max(longest, slices[s].steps().size());
    steps += slices[s].steps().size();
    ops += slices[s].ops().size();
    first_cell.push_back(cells);
    cells += slices[s].scratch_cells();
  }

  // Slices take turns, step by step, so that whoever walks the list keeps all channels busy.
  std::vector<std::vector<std::uint32_t>> global(plan.slices);
  std::vector<std::uint32_t> channel_of_op;
  p.steps.reserve(steps);
  p.ops.reserve(ops);
  channel_of_op.reserve(ops);
  for (std::size_t i = 0; i < longest; ++i)
    for (std::uint32_t s = 0; s < plan.slices; ++s) {
      if (i >= slices[s].steps().size()) continue;
      auto& from = slices[s].steps()[i];
      global[s].push_back(static_cast<std::uint32_t>(p.steps.size()));
      for (std::uint32_t& a : from.after) a = global[s][a];
      p.steps.push_back(
          {s, from.stage, static_cast<std::uint32_t>(p.ops.size()), from.op_count, std::move(from.after)});
      const auto first = slices[s].ops().begin() + from.first_op;
      p.ops.insert(p.ops.end(), first, first + from.op_count);
      channel_of_op.insert(channel_of_op.end(), from.op_count, s);
    }
  pack_scratch(p, first_cell, cells, channel_of_op);
  return p;
}

/// `lower` for a schedule that is known to be valid and a rank that it has.
template <class = void>
[[nodiscard]] result<program> lower_valid(const schedule& plan, rank_id rank) {
  const bool compact = seq::any_of(plan.stages, [](const stage& st) { return st.axis.has_value(); });
  return compact ? lower_written(part_of(plan, rank), rank) : lower_written(plan, rank);
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
