// SPDX-License-Identifier: Apache-2.0
// Recordings of machines: whatever is read becomes a graph, and recorded again it is the same machine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <topocoll/discover/capture.hpp>
#include <topocoll/discover/recording.hpp>

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

// Keys and figures of all nodes and links.
std::string shape(const topocoll::topo::fragment& f) {
  std::string text;
  for (const auto& n : f.nodes) text += n.key + "\n";
  for (const auto& l : f.links)
    text +=
        std::to_string(l.from.value) + "-" + std::to_string(l.to.value) + " " + std::to_string(l.capacity.value) + "\n";
  return text;
}

}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto tree = tc::io::recorded_tree::parse(text, "r.txt");
  if (!tree) {
    demand(tree.error().what.rfind("r.txt line ", 0) == 0);
    return 0;
  }
  const auto fragment = tc::fragment_of_recording(text, "r.txt");
  if (!fragment) {
    demand(!fragment.error().what.empty());
    return 0;
  }
  auto graph = tc::topo::graph::from(*fragment);
  demand(static_cast<bool>(graph));
  for (const tc::topo::link& l : graph->links()) demand(l.capacity.value > 0 || !l.reason.empty());

  // The name of a host is a line of its own, so it holds no line end.
  const auto again =
      tc::fragment_of_recording(tc::detail::record(*tree, tree->host(), false, tc::deadline::in({20})), "again.txt");
  demand(static_cast<bool>(again));
  demand(shape(*again) == shape(*fragment));
  return 0;
}

static const fuzz::target known("sysfs_capture", try_input);
