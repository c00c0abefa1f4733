// SPDX-License-Identifier: Apache-2.0
// Graph files: what is read comes back from what we write; a file that passes for a host still does so when written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <topocoll/discover/describe.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/topo/graph.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}

std::size_t devices_in(const topocoll::nccl_graph_file& f) {
  std::size_t n = 0;
  for (const auto& g : f.graphs)
    for (const auto& c : g.channels) n += c.gpus.size() + (c.net_in ? 1 : 0) + (c.net_out ? 1 : 0);
  return n;
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  static const tc::topo::graph host =
      tc::topo::graph::from(tc::describe("dgx-h100:nodes=1,gpus=4,nics=4,leaves=4").value()).value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto root = tc::io::parse_xml(text, "g.xml");
  if (!root) return 0;
  const auto read = tc::read_nccl_graph_xml(*root, "g.xml");
  if (!read) {
    demand(read.error().what.rfind("g.xml line ", 0) == 0);
    return 0;
  }
  demand(devices_in(*read) * 7 <= size);  // "<gpu …/>" each
  const std::string written = tc::to_nccl_graph_xml(*read);
  const auto again = tc::io::parse_xml(written, "written");
  demand(static_cast<bool>(again));
  const auto back = tc::read_nccl_graph_xml(*again, "written");
  demand(back && back->graphs == read->graphs);

  const auto proof = tc::check_nccl_graphs(*read, host);
  const auto proof_of_written = tc::check_nccl_graphs(*back, host);
  demand(static_cast<bool>(proof) == static_cast<bool>(proof_of_written));
  if (!proof) {
    demand(proof.error().what == proof_of_written.error().what);
    return 0;
  }
  demand(proof->gpus == 4);
  demand(proof->ring == proof_of_written->ring && proof->tree == proof_of_written->tree);
  for (const tc::nccl_graph& g : read->graphs)
    for (const tc::nccl_channel& c : g.channels) demand(c.gpus.size() == (g.id == tc::nccl_graph_id::nvls ? 1U : 4U));
  return 0;
}

static const fuzz::target known("nccl_graph_xml", try_input);
