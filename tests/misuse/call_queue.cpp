// SPDX-License-Identifier: Apache-2.0
// Calls that are made later: what they use must still be there.
#include <cstdint>
#include <span>
#include <vector>
#include <topocoll/exec/call_queue.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/inproc.hpp>

namespace tc = topocoll;

using queue_type = tc::call_queue<tc::communicator<tc::inproc_transport>>;

inline tc::request fine(queue_type& queue, const std::vector<float>& in, std::vector<float>& out) {
  (void)queue.all_reduce(std::span(out));
  return queue.all_reduce(in, out);
}

#ifdef SECTION_A_TEMPORARY_VECTOR
// expect: a temporary is gone by then
inline tc::request bad(queue_type& queue, std::vector<float>& out) {
  return queue.all_reduce(std::vector<float>(8), out);
}
#endif

#ifdef SECTION_TYPES_DIFFER
// expect: input and output have elements of one type
inline tc::request bad(queue_type& queue, std::vector<double>& in, std::vector<float>& out) {
  return queue.all_reduce(in, out);
}
#endif

#ifdef SECTION_A_TEMPORARY_MESSAGE
// expect: a temporary is gone by then
inline tc::request bad(queue_type& queue) { return queue.send(std::vector<float>(8), tc::rank_id{1}); }
#endif
