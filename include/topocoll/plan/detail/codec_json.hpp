// SPDX-License-Identifier: Apache-2.0
#pragma once
// How schedules become JSON and come back.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/detail/codec_words.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

template <class = void>
[[nodiscard]] std::string quoted(const std::string& text) {
  return io::json(text).dump(-1, ' ', false, io::json::error_handler_t::replace);
}

template <class = void>
std::uint32_t number_of(std::uint32_t n) {
  return n;
}
template <class = void>
std::uint32_t number_of(rank_id r) {
  return r.value;
}
template <class = void>
std::uint32_t number_of(link_id e) {
  return e.value;
}

/// A schedule of a large cluster has millions of numbers: they are written without a tree of values.
template <class T>
void write_numbers(std::string& to, std::string_view name, const std::vector<T>& numbers) {
  to += '"';
  to += name;
  to += "\": [";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) to += ", ";
    to += std::to_string(number_of(numbers[i]));
  }
  to += ']';
}

template <class T>
[[nodiscard]] result<std::vector<T>> read_numbers(const io::json& object, std::string_view name,
                                                  const io::json_place& at) {
  const auto array = io::read_array(object, name, at);
  if (!array) return array.error();
  std::vector<T> numbers;
  numbers.reserve((*array)->size());
  const io::json_place here = at / name;
  std::size_t index = 0;
  for (const io::json& value : **array) {
    const auto n = io::read_value<std::uint32_t>(value, here / index++);
    if (!n) return n.error();
    numbers.push_back(T{*n});
  }
  return numbers;
}

/// A word of an enumeration. `parse` gives an optional.
template <class Parse>
[[nodiscard]] auto read_word(const io::json& object, std::string_view name, const io::json_place& at, Parse parse)
    -> result<typename decltype(parse(std::string_view{}))::value_type> {
  const auto word = io::read_field<std::string>(object, name, at);
  if (!word) return word.error();
  const auto value = parse(std::string_view(*word));
  if (!value) return fail(errc::malformed_input, (at / name).text() + " is '" + *word + "', which is not known here");
  return *value;
}

template <class = void>
[[nodiscard]] result<stage> read_stage(const io::json& value, const io::json_place& at) {
  stage s;
  const auto kind = read_word(value, "kind", at, parse_stage_kind);
  if (!kind) return kind.error();
  s.kind = *kind;
  const auto how = read_word(value, "algorithm", at, parse_algorithm);
  if (!how) return how.error();
  s.how = *how;
  auto label = io::read_optional<std::string>(value, "label", at);
  if (!label) return label.error();
  s.label = label->value_or("");
  if (io::find_field(value, "axis") != nullptr) {
    const auto axis = io::read_field<std::uint32_t>(value, "axis", at);
    if (!axis) return axis.error();
    s.axis = *axis;
    return s;
  }
  auto offsets = read_numbers<std::uint32_t>(value, "offsets", at);
  if (!offsets) return offsets.error();
  s.offsets = std::move(*offsets);
  auto members = read_numbers<rank_id>(value, "members", at);
  if (!members) return members.error();
  s.members = std::move(*members);
  auto bounds = read_numbers<std::uint32_t>(value, "bounds", at);
  if (!bounds) return bounds.error();
  s.bounds = std::move(*bounds);
  const auto list = [&](std::string_view name, std::vector<std::uint32_t>& to) -> result<void> {
    if (io::find_field(value, name) == nullptr) return {};
    auto numbers = read_numbers<std::uint32_t>(value, name, at);
    if (!numbers) return numbers.error();
    to = std::move(*numbers);
    return {};
  };
  if (auto ok = list("parents", s.parents); !ok) return ok.error();
  if (auto ok = list("ways_down", s.ways_down); !ok) return ok.error();
  if (auto ok = list("ways_up", s.ways_up); !ok) return ok.error();
  return s;
}

}  // namespace detail

template <class>
std::string to_json(const schedule& plan) {
  std::string text =
      "{\n  \"schema\": \"" + std::string(plan_schema) + '/' + std::to_string(plan_schema_version) + "\",\n";
  text += "  \"collective\": \"" + std::string(to_string(plan.collective)) + "\",\n";
  text += "  \"ranks\": " + std::to_string(plan.ranks) + ",\n  \"root\": " + std::to_string(plan.root.value) + ",\n";
  text += "  \"name\": " + detail::quoted(plan.name) + ",\n";
  text += "  \"units\": " + std::to_string(plan.units) + ",\n  \"slices\": " + std::to_string(plan.slices) + ",\n";
  text += "  \"digest\": \"" + detail::hex_of(digest(plan)) + "\",\n";
  if (!plan.order.empty()) {
    text += "  ";
    detail::write_numbers(text, "order", plan.order);
    text += ",\n";
  }
  if (!plan.shape.empty()) {
    text += "  ";
    detail::write_numbers(text, "shape", plan.shape);
    text += ",\n";
  }
  if (!plan.ways.empty()) {
    text += "  \"ways\": [";
    for (std::size_t k = 0; k < plan.ways.size(); ++k) {
      text += k == 0 ? "{" : ", {";
      detail::write_numbers(text, "links", plan.ways[k].links);
      text += '}';
    }
    text += "],\n";
  }
  text += "  \"stages\": [";
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    const stage& s = plan.stages[k];
    text += (k == 0 ? "\n    {" : ",\n    {") + std::string("\"kind\": \"") + std::string(to_string(s.kind)) +
            "\", \"algorithm\": \"" + std::string(to_string(s.how)) + "\", ";
    if (!s.label.empty()) text += "\"label\": " + detail::quoted(s.label) + ", ";
    if (s.axis) {
      text += "\"axis\": " + std::to_string(*s.axis) + '}';
      continue;
    }
    detail::write_numbers(text, "offsets", s.offsets);
    text += ", ";
    detail::write_numbers(text, "members", s.members);
    text += ", ";
    detail::write_numbers(text, "bounds", s.bounds);
    const auto list = [&](std::string_view name, const std::vector<std::uint32_t>& numbers) {
      if (numbers.empty()) return;
      text += ", ";
      detail::write_numbers(text, name, numbers);
    };
    list("parents", s.parents);
    list("ways_down", s.ways_down);
    list("ways_up", s.ways_up);
    text += '}';
  }
  return text + (plan.stages.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

template <class>
result<schedule> schedule_from_json(std::string_view text, std::string_view where) {
  const auto document = io::parse_json(text, where);
  if (!document) return document.error();
  const io::json_place top(where);
  if (const auto version = io::read_schema(*document, plan_schema, plan_schema_version, top); !version)
    return version.error();
  schedule plan;
  const auto collective = detail::read_word(*document, "collective", top, parse_collective);
  if (!collective) return collective.error();
  plan.collective = *collective;
  const auto number = [&](std::string_view name, std::uint32_t& to) -> result<void> {
    const auto n = io::read_field<std::uint32_t>(*document, name, top);
    if (!n) return n.error();
    to = *n;
    return {};
  };
  if (auto ok = number("ranks", plan.ranks); !ok) return ok.error();
  if (auto ok = number("root", plan.root.value); !ok) return ok.error();
  if (auto ok = number("units", plan.units); !ok) return ok.error();
  if (auto ok = number("slices", plan.slices); !ok) return ok.error();
  auto name = io::read_optional<std::string>(*document, "name", top);
  if (!name) return name.error();
  plan.name = name->value_or("");
  if (io::find_field(*document, "order") != nullptr) {
    auto order = detail::read_numbers<rank_id>(*document, "order", top);
    if (!order) return order.error();
    plan.order = std::move(*order);
  }
  if (io::find_field(*document, "shape") != nullptr) {
    auto shape = detail::read_numbers<std::uint32_t>(*document, "shape", top);
    if (!shape) return shape.error();
    plan.shape = std::move(*shape);
  }
  if (io::find_field(*document, "ways") != nullptr) {
    const auto ways = io::read_array(*document, "ways", top);
    if (!ways) return ways.error();
    const io::json_place here = top / "ways";
    std::size_t position = 0;
    for (const io::json& value : **ways) {
      auto links = detail::read_numbers<link_id>(value, "links", here / position++);
      if (!links) return links.error();
      plan.ways.push_back({std::move(*links)});
    }
  }
  const auto stages = io::read_array(*document, "stages", top);
  if (!stages) return stages.error();
  const io::json_place list = top / "stages";
  std::size_t index = 0;
  for (const io::json& value : **stages) {
    auto s = detail::read_stage(value, list / index++);
    if (!s) return s.error();
    plan.stages.push_back(std::move(*s));
  }
  if (const auto ok = validate(plan); !ok)
    return fail(errc::malformed_input, std::string(where) + ": " + ok.error().what, ok.error().next);
  const auto print = io::read_optional<std::string>(*document, "digest", top);
  if (!print) return print.error();
  if (*print && **print != detail::hex_of(digest(plan)))
    return fail(
        errc::mismatch,
        std::string(where) + ": the digest says " + **print + ", but the schedule has " + detail::hex_of(digest(plan)),
        "the plan was changed after it was written: take it from where it was made, or drop the field 'digest'");
  return plan;
}

}}}  // namespace topocoll::v0::plan
