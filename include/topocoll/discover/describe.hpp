// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cluster in one line, both ways: "dgx-h100:nodes=16,leaves=8,oversubscription=2".
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/describe/keys.hpp>
#include <topocoll/discover/detail/nearest.hpp>
#include <topocoll/discover/generate/fabric.hpp>
#include <topocoll/discover/generate/model.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads a description: a model, and after a colon `key=value` pairs separated by commas. Blanks around them do not matter.
///
/// Fault keys may be given several times, and take several parts joined by '+'; other keys once. The language is described
/// in docs/formats/fabric.md and by `spec_help`.
/// @return  `malformed_input` for an unknown model or key, which lists the known ones, and for a bad value, with the
///          position of the word (first character is 1). Whether the cluster can be built is for `generate` to say.
/// Cost: O(length), and what drawing faults costs.
template <class = void>
[[nodiscard]] result<fabric_options> parse_spec(std::string_view spec);

/// Writes options as the shortest description that `parse_spec` reads back to equal options: the model's name, then what
/// differs from the model in a fixed order.
/// @return  `unsupported` for a host model that is not one of `models::all` or whose GPUs are wired in another way
template <class = void>
[[nodiscard]] result<std::string> to_spec(const fabric_options& options);

/// Builds what a description describes.
/// @return  as `parse_spec` and `generate`. Cost: of `generate`
template <class = void>
[[nodiscard]] result<topo::fragment> describe(std::string_view spec);

/// Models and keys with their meanings, one a line, for help texts.
template <class = void>
[[nodiscard]] std::string spec_help();

/// A description as a source, to be merged with what other sources tell.
struct description {
  std::string spec;

  [[nodiscard]] std::string_view name() const { return "description"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options&) const {
    return describe(spec);
  }
};

namespace detail {

template <class = void>
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class = void>
std::string at_character(std::string_view word, std::string_view spec) {
  return " at character " + std::to_string(word.data() - spec.data() + 1) + " of '" + std::string(spec) + "'";
}

/// "did you mean 'x'? " when some known word is near.
template <class = void>
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view near = nearest(word, known);
  return near.empty() ? std::string() : "did you mean '" + std::string(near) + "'? ";
}

template <class = void>
std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view w : words) text += (text.empty() ? "" : ", ") + std::string(w);
  return text;
}

template <class = void>
std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const host_model& m : models::all) names.push_back(m.name);
  for (const std::string_view other : {"dgx-h100", "dgx-h200", "dgx-b200"}) names.push_back(other);
  return names;
}

/// Options of a model as it is when nothing else is said: one host, or all hosts of one NVSwitch plane.
template <class = void>
fabric_options plain(const host_model& model) {
  fabric_options o;
  o.host = model;
  o.nodes = model.domain_hosts;
  return o;
}

}  // namespace detail

template <class>
result<fabric_options> parse_spec(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = detail::trimmed(spec.substr(0, colon));
  const host_model* model = find_model(name);
  if (model == nullptr) {
    const auto names = detail::model_names();
    return fail(errc::malformed_input,
                (name.empty() ? std::string("no model is named") : "unknown model '" + std::string(name) + "'") +
                    detail::at_character(name.empty() ? spec : name, spec),
                detail::suggestion(name, names) + "models are " + detail::listed(names));
  }
  fabric_options o = detail::plain(*model);
  std::vector<bool> given(detail::spec_keys.size(), false);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
  if (colon != std::string_view::npos && detail::trimmed(rest).empty()) return o;
  for (bool more = colon != std::string_view::npos; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view pair = rest.substr(0, comma);
    if (more) rest.remove_prefix(comma + 1);
    const std::size_t equals = pair.find('=');
    const std::string_view key = detail::trimmed(pair.substr(0, equals));
    std::size_t k = 0;
    while (k < detail::spec_keys.size() && detail::spec_keys[k].name != key) ++k;
    if (k == detail::spec_keys.size()) {
      std::vector<std::string_view> known;
      for (const detail::spec_key& each : detail::spec_keys) known.push_back(each.name);
      return fail(errc::malformed_input,
                  (key.empty() ? std::string("a key is missing") : "unknown key '" + std::string(key) + "'") +
                      detail::at_character(key, spec),
                  detail::suggestion(key, known) + "keys are " + detail::listed(known));
    }
    if (equals == std::string_view::npos)
      return fail(errc::malformed_input, "'" + std::string(key) + "' has no value" + detail::at_character(key, spec),
                  "write " + std::string(key) + "=…, which means " + std::string(detail::spec_keys[k].meaning));
    if (given[k] && !detail::spec_keys[k].repeats)
      return fail(errc::malformed_input,
                  "'" + std::string(key) + "' is given twice, again" + detail::at_character(key, spec));
    given[k] = true;
    const std::string_view value = detail::trimmed(pair.substr(equals + 1));
    if (auto ok = detail::spec_keys[k].read(o, value); !ok)
      return fail(ok.error().code,
                  std::string(key) + ": " + ok.error().what + ", given" + detail::at_character(value, spec),
                  ok.error().next);
  }
  return o;
}

template <class>
result<std::string> to_spec(const fabric_options& o) {
  const host_model* model = find_model(o.host.name);
  if (model == nullptr || model->name != o.host.name)
    return fail(errc::unsupported, "the host model '" + std::string(o.host.name) + "' has no name in descriptions",
                "models are " + detail::listed(detail::model_names()));
  const fabric_options base = detail::plain(*model);
  host_model wired = base.host;
  wired.mesh = o.host.mesh;
  wired.peer_kind = o.host.peer_kind;
  if (wired != base.host)
    return fail(errc::unsupported, "GPUs of '" + std::string(o.host.name) +
                                       "' that are wired in another way cannot be described in one line");
  std::string spec(o.host.name);
  char separator = ':';
  const auto append = [&](std::string_view text) {
    spec += separator;
    spec += text;
    separator = ',';
  };
  for (const detail::spec_key& key : detail::spec_keys) {
    const std::string value = key.write(o, base);
    if (!value.empty()) append(std::string(key.name) + '=' + value);
  }
  for (const planted_fault& fault : o.faults) append(detail::fault_spec(fault));
  return spec;
}

template <class>
result<topo::fragment> describe(std::string_view spec) {
  const auto options = parse_spec(spec);
  if (!options) return options.error();
  auto f = generate(*options);
  if (f) f->source = "description '" + std::string(spec) + "'";
  return f;
}

template <class>
std::string spec_help() {
  std::string text = "models: " + detail::listed(detail::model_names()) + "\nkeys:\n";
  for (const detail::spec_key& key : detail::spec_keys) {
    std::string line = "  " + std::string(key.name);
    line.resize(line.size() < 24 ? 24 : line.size() + 1, ' ');
    text += line + std::string(key.meaning) + '\n';
  }
  return text;
}

static_assert(TopologySource<description>);

}}  // namespace topocoll::v0
