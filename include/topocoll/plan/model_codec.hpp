// SPDX-License-Identifier: Apache-2.0
#pragma once
// The constants of the library model as JSON, schema topocoll.model/1 (docs/formats/model.md). Needs nlohmann-json.
#include <cstdint>
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/calibrate_host.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

inline constexpr const char* model_schema = "topocoll.model";
inline constexpr std::uint32_t model_schema_version = 1;

/// A calibration as JSON: for each constant value, unit, where it started, spread, rows, and whether the measurements
/// determined it. No measurement is in it. Cost: O(constants).
template <class = void>
[[nodiscard]] std::string to_json(const calibration& c) {
  io::json j;
  j["schema"] = std::string(model_schema) + "/" + std::to_string(model_schema_version);
  j["rows"] = c.rows;
  j["systems"] = c.systems;
  io::json all = io::json::object();
  for (const fitted_parameter& p : c.parameters) {
    const parameter_fact& fact = fact_of(p.what);
    io::json one;
    one["value"] = p.value;
    one["unit"] = std::string(fact.unit);
    one["centre"] = p.centre;
    one["spread"] = p.spread;
    one["rows"] = p.rows;
    one["determined"] = p.determined;
    all[std::string(fact.name)] = std::move(one);
  }
  j["constants"] = std::move(all);
  return io::to_text(j);
}

/// The figures of processes in shared memory as JSON, in the same schema: an object "host" in place of "constants".
template <class = void>
[[nodiscard]] std::string to_json(const host_calibration& c) {
  io::json j;
  j["schema"] = std::string(model_schema) + "/" + std::to_string(model_schema_version);
  j["rows"] = c.rows;
  io::json h;
  h["launch_us"] = c.launch.value * 1e6;
  h["hop_us"] = c.hop.value * 1e6;
  h["hop_determined"] = c.hop_determined;
  h["rate_GBps"] = c.rate.value / 1e9;
  h["rate_determined"] = c.rate_determined;
  h["median_error"] = c.median_error;
  j["host"] = std::move(h);
  return io::to_text(j);
}

/// Reads an object "host"; `alpha_beta::host()` where the text has none.
/// @return as `model_from_json`
template <class = void>
[[nodiscard]] result<alpha_beta> host_model_from_json(std::string_view text, std::string_view where) {
  const auto j = io::parse_json(text, where);
  if (!j) return j.error();
  const io::json_place top(where);
  if (const auto version = io::read_schema(*j, model_schema, model_schema_version, top); !version)
    return version.error();
  const io::json* host = io::find_field(*j, "host");
  if (host == nullptr) return alpha_beta::host();
  const auto at = top / "host";
  host_calibration c;
  const auto launch = io::read_field<double>(*host, "launch_us", at);
  const auto hop = io::read_field<double>(*host, "hop_us", at);
  const auto rate = io::read_field<double>(*host, "rate_GBps", at);
  for (const auto* x : {&launch, &hop, &rate})
    if (!*x) return x->error();
  if (!(*launch > 0) || !(*hop > 0) || !(*rate > 0))
    return fail(errc::malformed_input, at.text() + " has a figure that is not positive");
  c.launch = {*launch * 1e-6};
  c.hop = {*hop * 1e-6};
  c.rate = {*rate * 1e9};
  return c.model();
}

/// Reads what `to_json` wrote. A constant that is not in the text keeps its built-in value; unknown ones are refused, for a
/// misspelt name would silently change nothing.
/// @param where  what the text is, for failures: a path
/// @return `malformed_input` with the JSON pointer, also for a value that is not positive or a share above 1, and for
///         another unit; `unsupported` for a newer schema. Cost: O(length)
template <class = void>
[[nodiscard]] result<model_constants> model_from_json(std::string_view text, std::string_view where) {
  const auto j = io::parse_json(text, where);
  if (!j) return j.error();
  const io::json_place top(where);
  if (const auto version = io::read_schema(*j, model_schema, model_schema_version, top); !version)
    return version.error();
  if (io::find_field(*j, "constants") == nullptr && io::find_field(*j, "host") != nullptr) return model_constants{};
  const auto all = io::read_object(*j, "constants", top);
  if (!all) return all.error();
  const auto list = top / "constants";
  model_constants k;
  for (const auto& [name, one] : (*all)->items()) {
    const auto at = list / std::string_view(name);
    const std::size_t n = parameter_named(name);
    if (n == model_parameter_count) return fail(errc::malformed_input, at.text() + " is not a constant of the model");
    const auto value = io::read_field<double>(one, "value", at);
    if (!value) return value.error();
    const parameter_fact& fact = model_parameters[n];
    const auto unit = io::read_optional<std::string>(one, "unit", at);
    if (!unit) return unit.error();
    if (*unit && **unit != fact.unit)
      return fail(errc::malformed_input,
                  at.text() + " is in '" + **unit + "', but the model counts it in '" + std::string(fact.unit) + "'");
    if (!(*value > 0) || (fact.unit == "share" && *value > 1))
      return fail(errc::malformed_input, at.text() + " is " + std::to_string(*value) + ", which is no " +
                                             (fact.unit == "share" ? "share between 0 and 1" : "positive number"));
    k.values[n] = *value;
  }
  return k;
}

}}}  // namespace topocoll::v0::plan
