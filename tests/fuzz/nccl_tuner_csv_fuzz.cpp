// SPDX-License-Identifier: Apache-2.0
// Tuner files: every line that is read is a row, and rows come back from what we write; what is refused is refused in words.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <topocoll/integrate/nccl_tuner_csv.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace tc = topocoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = tc::read_tuner_csv(text, "t.csv");
  if (!rows) {
    demand(rows.error().what.rfind("t.csv line ", 0) == 0);
    return 0;
  }
  demand(rows->size() <= static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  for (const tc::tuner_row& r : *rows) demand(r.min_bytes <= r.max_bytes);
  const std::string written = tc::to_tuner_csv(*rows);
  const auto back = tc::read_tuner_csv(written, "written");
  demand(back && *back == *rows);
  demand(tc::to_tuner_csv(*back) == written);
  return 0;
}

static const fuzz::target known("nccl_tuner_csv", try_input);
