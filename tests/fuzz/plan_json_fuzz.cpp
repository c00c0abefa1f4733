// SPDX-License-Identifier: Apache-2.0
// Any text: read as a plan or refused with a reason, never more; what was read is written and read back equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string_view>
#include <topocoll/plan/codec.hpp>

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace plan = topocoll::plan;
  const auto read = plan::schedule_from_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!read) {
    if (read.error().what.empty()) std::abort();
    return 0;
  }
  const auto again = plan::schedule_from_json(plan::to_json(*read), "written");
  if (!again || *again != *read) std::abort();
  return 0;
}

static const fuzz::target known("plan_json", try_input);
