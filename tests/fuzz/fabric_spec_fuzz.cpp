// SPDX-License-Identifier: Apache-2.0
// Descriptions of fabrics: whatever is read is written and read back unchanged, and what is small is built.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <utility>
#include <topocoll/discover/describe.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const auto options = tc::parse_spec({reinterpret_cast<const char*>(data), size});
  if (!options) {
    demand(!options.error().what.empty());
    return 0;
  }
  const auto spec = tc::to_spec(*options);
  demand(static_cast<bool>(spec));
  const auto back = tc::parse_spec(*spec);
  demand(back && *back == *options);

  const auto shape = tc::shape_of(*options);
  const bool small = shape && shape->nodes <= 64 && options->host.gpus <= 64 && options->host.nics <= 64 &&
                     shape->leaves <= 256 && std::uint64_t{shape->spines} * (shape->cores + shape->leaves) <= 65536;
  if (!small) return 0;
  auto fragment = tc::generate(*options);
  if (fragment) demand(static_cast<bool>(tc::topo::graph::from(std::move(*fragment))));
  return 0;
}

static const fuzz::target known("fabric_spec", try_input);
