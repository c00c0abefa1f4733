// SPDX-License-Identifier: Apache-2.0
// Tables of nccl-tests: what is read has times above zero, and no more ranks than lines.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <topocoll/read/nccl_tests.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tests = topocoll::read;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)tests::looks_like_nccl_tests(text);
  const auto tables = tests::parse_nccl_tests(text, "f.txt");
  if (!tables) {
    demand(tables.error().what.rfind("f.txt", 0) == 0);
    return 0;
  }
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  demand(!tables->empty());
  for (const tests::nccl_tests_table& t : *tables) {
    demand(!t.rows.empty() && t.rows.size() <= lines && t.ranks <= lines && t.hosts <= t.ranks);
    for (const tests::nccl_tests_row& r : t.rows) {
      demand(r.out_of_place || r.in_place);
      for (const auto& half : {r.out_of_place, r.in_place}) demand(!half || half->time.value > 0);
    }
  }
  return 0;
}

static const fuzz::target known("nccl_tests", try_input);
