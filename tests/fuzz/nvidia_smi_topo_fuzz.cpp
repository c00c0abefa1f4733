// SPDX-License-Identifier: Apache-2.0
// Topology matrices: what is read becomes a graph, and what we write of that graph reads back to the same classes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/matrix_graph.hpp>
#include <topocoll/topo/matrix.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  using tc::read::matrix_word;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool looks = tc::read::looks_like_nvidia_smi_topo(text);
  const auto matrix = tc::read::parse_nvidia_smi_topo(text, "f.txt");
  if (!matrix) {
    demand(matrix.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  // Comparing all pairs is quadratic, and says no more for many than for some.
  if (matrix->devices.size() > 64) return 0;
  auto fragment = tc::fragment_of(*matrix, tc::discover_options{}, "f.txt");
  demand(static_cast<bool>(fragment));
  bool doubtful = !looks;
  for (const tc::finding& f : fragment->findings) doubtful = doubtful || f.level != tc::severity::note;
  for (const tc::topo::link& l : fragment->links) demand(l.capacity.value > 0 && !l.reason.empty());
  const auto graph = tc::topo::graph::from(*std::move(fragment));
  demand(static_cast<bool>(graph));
  const auto written = tc::topo::matrix_text(*graph);
  demand(static_cast<bool>(written));
  if (matrix->peers || doubtful) return 0;
  const auto back = tc::read::parse_nvidia_smi_topo(*written, "w.txt");
  demand(back && back->devices.size() == matrix->devices.size());
  for (std::size_t i = 0; i < matrix->devices.size(); ++i) {
    if (back->devices[i].gpu != matrix->devices[i].gpu) return 0;  // other order: adapters before GPUs
    if (back->devices[i].gpu && back->devices[i].index != matrix->devices[i].index) return 0;
  }
  for (std::size_t i = 0; i < matrix->devices.size(); ++i)
    for (std::size_t j = 0; j < matrix->devices.size(); ++j) {
      auto said = matrix->between(i, j);
      if (said.word == matrix_word::untold || said.word == matrix_word::c2c) continue;
      if (said.word == matrix_word::gpu_link && !(matrix->devices[i].gpu && matrix->devices[j].gpu)) continue;
      if (said.word == matrix_word::soc) said.word = matrix_word::sys;
      demand(back->between(i, j).word == said.word);
    }
  return 0;
}

static const fuzz::target known("nvidia_smi_topo", try_input);
