// SPDX-License-Identifier: Apache-2.0
// Messages of the bootstrap: what is read is bounded, comes back from what is written, and no front of a whole frame is
// taken for something else.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <span>
#include <vector>
#include <topocoll/exec/detail/bootstrap_wire.hpp>

namespace {

namespace td = topocoll::detail;

void demand(bool holds) {
  if (!holds) std::abort();
}
/// Whether the frame `again` carries exactly `body`.
bool carries(const std::vector<std::byte>& again, std::span<const std::byte> body) {
  return again.size() == td::frame_head_size + body.size() &&
         std::equal(body.begin(), body.end(), again.begin() + td::frame_head_size);
}

}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  const auto received = std::as_bytes(std::span(data, size));
  const td::frame_reading r = td::read_frame(received, td::longest_abort);
  using state = td::frame_reading::state;
  if (r.is == state::foreign || r.is == state::too_long) return 0;
  demand(r.size <= td::frame_head_size + td::longest_abort);
  if (r.is == state::incomplete) {
    demand(r.size == 0 || r.size > size);
    return 0;
  }
  demand(r.size >= td::frame_head_size && r.size <= size);
  const auto whole = received.first(r.size);
  for (std::size_t cut = 0; cut < r.size; ++cut)
    demand(td::read_frame(whole.first(cut), td::longest_abort).is == state::incomplete);

  const auto body = whole.subspan(td::frame_head_size);
  if (const auto h = td::decode_hello(body)) {
    demand(h->job.size() <= td::longest_word && h->place.host.size() <= td::longest_word);
    demand(carries(td::encode(*h, r.version), body));
  }
  if (const auto a = td::decode_abort(body)) demand(carries(td::encode(*a), body));
  if (const auto p = td::decode_piece(body)) demand(carries(td::encode(*p), body));
  for (const std::uint32_t ranks : {1U, 3U, 0xFFFFFFFFU}) {
    if (const auto parts = td::decode_pieces(body, 7, ranks)) demand(carries(td::encode_pieces(7, *parts), body));
    if (const auto places = td::decode_start(body, ranks)) demand(carries(td::encode_start(*places), body));
  }
  demand(!td::unsealed(body, "a token that nobody used", "root", {}));
  return 0;
}

static const fuzz::target known("bootstrap_frame", try_input);
