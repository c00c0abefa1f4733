// SPDX-License-Identifier: Apache-2.0
// Listings of iblinkinfo: cables are mutual, and whatever is read becomes a graph with reasons; refusals name the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/read/iblinkinfo.hpp>
#include <topocoll/topo/graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)tc::read::looks_like_iblinkinfo(text);
  const auto fabric = tc::read::parse_iblinkinfo(text, "f.txt");
  if (!fabric) {
    demand(fabric.error().code == tc::errc::malformed_input);
    demand(fabric.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  std::size_t ports = 0;
  for (std::uint32_t d = 0; d < fabric->devices.size(); ++d) {
    const tc::read::ib_device& device = fabric->devices[d];
    demand(device.how < tc::trust::derived || !device.reason.empty());
    ports += device.ports.size();
    for (std::size_t i = 0; i < device.ports.size(); ++i) {
      const tc::read::ib_port& p = device.ports[i];
      demand(i == 0 || device.ports[i - 1].number < p.number);
      if (!p.peer) continue;
      demand(p.peer->device < fabric->devices.size());
      const tc::read::ib_port* back = tc::read::find_port(fabric->devices[p.peer->device], p.peer->port);
      demand(back != nullptr && back->peer && *back->peer == tc::read::ib_end{d, p.number});
    }
  }
  demand(fabric->devices.size() + ports <= 3 * size + 3);
  auto fragment = tc::fragment_of(*fabric, {}, "f.txt");
  demand(static_cast<bool>(fragment));
  for (const tc::topo::link& l : fragment->links) {
    demand(l.capacity.value > 0 || !l.reason.empty());
    demand(l.how < tc::trust::derived || !l.reason.empty());
    demand(!l.current || l.capacity <= *l.current);
  }
  demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("iblinkinfo", try_input);
