// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans and their explanations as JSON, schemas topocoll.plan/1 and topocoll.explanation/1 (docs/formats/plan.md). Needs nlohmann-json.
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

inline constexpr const char* plan_schema = "topocoll.plan";
inline constexpr std::uint32_t plan_schema_version = 1;
inline constexpr const char* explanation_schema = "topocoll.explanation";
inline constexpr std::uint32_t explanation_schema_version = 1;

/// A schedule as JSON text, one stage a line, ending in a newline, with its digest. Cost: O(size of the schedule).
template <class = void>
[[nodiscard]] std::string to_json(const schedule& plan);

/// Reads what `to_json` wrote: an equal schedule. Unknown fields are passed over.
///
/// What comes back is `validate`; that it computes its collective is for `verify` to say.
/// @param where  what the text is, for failures: a path
/// @return `malformed_input` with the JSON pointer for what is missing, of a wrong type or unknown, and for a schedule that
///         is not `validate`; `mismatch` when the digest in the text is not that of the schedule; `unsupported` for a newer
///         schema, with both versions. Cost: O(length of the text), sorted.
template <class = void>
[[nodiscard]] result<schedule> schedule_from_json(std::string_view text, std::string_view where);

/// An explanation as a JSON value: all numbers of the text, times in seconds, amounts in bytes, rates in bytes per second.
template <class = void>
[[nodiscard]] io::json to_json_value(const explanation& e);

/// The same as text, ending in a newline.
template <class = void>
[[nodiscard]] std::string to_json(const explanation& e) {
  return io::to_text(to_json_value(e));
}

}}}  // namespace topocoll::v0::plan

#include <topocoll/plan/detail/codec_explanation.hpp>
#include <topocoll/plan/detail/codec_json.hpp>
