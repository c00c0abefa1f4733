// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of stages that run along an axis of a plan's shape.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

/// Steps of an axis: how far apart neighbours along it stand, and in how many blocks of equal coordinates before it the
/// positions fall.
struct axis_steps {
  std::uint32_t size = 1;    ///< ranks along the axis
  std::uint32_t stride = 1;  ///< positions from one to the next
  std::uint32_t block = 1;   ///< positions with equal coordinates along all earlier axes: size * stride
};
template <class = void>
[[nodiscard]] axis_steps steps_of(const schedule& plan, std::uint32_t axis) {
  axis_steps s;
  s.size = plan.shape[axis];
  for (std::size_t later = axis + 1; later < plan.shape.size(); ++later) s.stride *= plan.shape[later];
  s.block = s.size * s.stride;
  return s;
}

/// Appends the group along an axis that contains the position `v`, written down.
///
/// Its units are those of the positions that agree with it along all earlier axes, which follow each other; each member's
/// part are those that agree with the member along this axis too.
template <class = void>
void add_axis_group(const schedule& plan, const axis_steps& s, std::uint32_t v, stage& to) {
  const std::uint32_t first = v / s.block * s.block, per_position = plan.units / plan.ranks;
  std::vector<rank_id> members;
  std::vector<std::uint32_t> bounds;
  for (std::uint32_t j = 0; j < s.size; ++j) {
    const std::uint32_t position = first + j * s.stride + v % s.stride;
    members.push_back(plan.order.empty() ? rank_id{position} : plan.order[position]);
    bounds.push_back((first + j * s.stride) * per_position);
  }
  bounds.push_back((first + s.block) * per_position);
  to.add(members, bounds);
}

template <class = void>
[[nodiscard]] stage without_groups(const stage& st) {
  stage plain;
  plain.kind = st.kind;
  plain.how = st.how;
  plain.label = st.label;
  return plain;
}

}  // namespace detail

template <class>
schedule expanded(const schedule& plan) {
  schedule wide = plan;
  for (stage& st : wide.stages) {
    if (!st.axis) continue;
    const detail::axis_steps s = detail::steps_of(plan, *st.axis);
    stage written = detail::without_groups(st);
    for (std::uint32_t v = 0; v < plan.ranks; ++v)
      if (v % s.block < s.stride) detail::add_axis_group(plan, s, v, written);
    st = std::move(written);
  }
  return wide;
}

template <class>
schedule part_of(const schedule& plan, rank_id rank) {
  std::uint32_t position = rank.value;
  if (!plan.shape.empty() && !plan.order.empty())
    position = static_cast<std::uint32_t>(seq::find(plan.order, rank) - plan.order.begin());
  schedule mine = plan;
  for (stage& st : mine.stages) {
    if (!st.axis) continue;
    stage written = detail::without_groups(st);
    detail::add_axis_group(plan, detail::steps_of(plan, *st.axis), position, written);
    st = std::move(written);
  }
  return mine;
}

}}}  // namespace topocoll::v0::plan
