// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transport whose ranks are threads of one process.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/detail/lane_transport.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 {

/// One rank of a group of threads. Give each thread its own; destroying it leaves the group, and ranks that wait for it
/// then fail with `peer_lost`. Long messages are read where the sender has them: one copy, and the sender's ticket is
/// given back when the receiver has read.
class inproc_transport : public detail::lane_transport {
 public:
  /// One rank's part in a new group of `ranks` ranks of this one, for `split`. Its members give the same number, which was not
  /// used before for a group made from this one, and each its own place.
  /// @return `timed_out` naming who did not come; for processes also what `join_shm` gives
  template <class = void>
  [[nodiscard]] result<inproc_transport> part(std::uint64_t number, std::uint32_t place, std::uint32_t ranks,
                                              deadline until) const {
    auto end = end_in_part(number, place, ranks, until);
    if (!end) return std::move(end).error();
    return inproc_transport(*std::move(end));
  }
  /// The group without those of its ranks that are gone, for `shrink`. Breaks this one, if it is not broken yet.
  template <class = void>
  [[nodiscard]] result<inproc_transport> survivors(seconds patience) const {
    auto end = end_among_survivors(patience);
    if (!end) return std::move(end).error();
    return inproc_transport(*std::move(end));
  }

 private:
  explicit inproc_transport(std::unique_ptr<detail::endpoint> end) : lane_transport(std::move(end)) {}
  friend result<std::vector<inproc_transport>> make_inproc_group(std::uint32_t ranks, const group_options& options);
};
static_assert(PollableTransport<inproc_transport>);

/// The transports of a group, by rank.
/// @return `invalid_argument` for no ranks or no channels, `system` if there is no memory. Cost: O(ranks²) address
///          space, see `group_options`.
[[nodiscard]] inline result<std::vector<inproc_transport>> make_inproc_group(std::uint32_t ranks,
                                                                             const group_options& options = {}) {
  auto shape =
      detail::group_shape::of({ranks, options.channels, options.memory, options.buffers}, detail::sharing::threads);
  if (!shape) return std::move(shape).error();
  auto memory = detail::make_group_memory(*shape, detail::sharing::threads);
  if (!memory) return std::move(memory).error();
  const detail::process_identity me = detail::this_process();
  const std::string host = detail::host_name();
  std::vector<inproc_transport> group;
  group.reserve(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    (void)(*memory)->attach(r, me, host);  // nobody else can have the place
    group.push_back(inproc_transport(std::make_unique<detail::endpoint>(*memory, r)));
  }
  return result<std::vector<inproc_transport>>(std::move(group));  // nvcc 13 would copy a plain name
}

}}  // namespace topocoll::v0
