// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/msccl_xml.hpp writes and reads the text.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/integrate/detail/xml_attributes.hpp>
#include <topocoll/integrate/msccl_xml.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// A whole number from `least` to `most`.
[[nodiscard]] inline std::int64_t msccl_number(xml_attributes& a, std::string_view name, std::int64_t least,
                                               std::int64_t most) {
  const std::string* value = a.text(name);
  if (value == nullptr) return least;
  const auto n = exact_number<std::int64_t>(*value);
  if (n && *n >= least && *n <= most) return *n;
  a.complain_of(name, *value, ", not a number from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

template <class = void>
[[nodiscard]] result<msccl_step> read_msccl_step(const io::xml_element& e, std::size_t index, std::string_view file) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  xml_attributes a(e, file);
  msccl_step s;
  if (msccl_number(a, "s", 0, most) != static_cast<std::int64_t>(index) && !a.wrong())
    a.complain_of("s", a.word("s"), " where step " + std::to_string(index) + " is due");
  const std::string_view type = a.word("type");
  bool known = false;
  for (int t = 0; t <= static_cast<int>(msccl_op::nop); ++t)
    if (to_string(static_cast<msccl_op>(t)) == type) {
      s.type = static_cast<msccl_op>(t);
      known = true;
    }
  if (!known) a.complain_of("type", type, ", which is none of the readers' steps");
  const auto place = [&](std::string_view buffer, std::string_view offset, char& where, std::int32_t& at) {
    const std::string_view word = a.word(buffer);
    if (word != "i" && word != "o" && word != "s") a.complain_of(buffer, word, " instead of i, o or s");
    where = word.empty() ? 'i' : word[0];
    at = static_cast<std::int32_t>(msccl_number(a, offset, -1, most));
  };
  place("srcbuf", "srcoff", s.src, s.src_offset);
  place("dstbuf", "dstoff", s.dst, s.dst_offset);
  s.count = static_cast<std::uint32_t>(msccl_number(a, "cnt", 0, most));
  s.dep_block = static_cast<std::int32_t>(msccl_number(a, "depid", -1, most));
  s.dep_step = static_cast<std::int32_t>(msccl_number(a, "deps", -1, most));
  s.has_dep = msccl_number(a, "hasdep", 0, 1) != 0;
  if (a.wrong()) return *a.wrong();
  return s;
}

/// Children named `name`, whose attribute id counts 0, 1, 2, …
template <class = void>
[[nodiscard]] result<std::vector<const io::xml_element*>> msccl_children(const io::xml_element& e,
                                                                         std::string_view name, std::string_view file) {
  std::vector<const io::xml_element*> found;
  for (const io::xml_element& child : e.children) {
    xml_attributes a(child, file);
    if (child.name != name) a.complain("stands where only <" + std::string(name) + "> may stand");
    if (!a.wrong() && name != "step" && msccl_number(a, "id", 0, 1 << 20) != static_cast<std::int64_t>(found.size()) &&
        !a.wrong())
      a.complain_of("id", a.word("id"), " where " + std::to_string(found.size()) + " is due");
    if (a.wrong()) return *a.wrong();
    found.push_back(&child);
  }
  return found;
}

}  // namespace detail

template <class>
std::string to_msccl_xml(const msccl_plan& plan) {
  const auto attribute = [](const char* name, std::string_view value) { return detail::xml_attribute(name, value); };
  const auto number = [&](const char* name, std::int64_t value) { return attribute(name, std::to_string(value)); };
  const bool executor = plan.reader == msccl_reader::executor;
  std::string text = "<algo" + attribute("name", plan.name) + attribute("proto", plan.protocol) +
                     number("nchannels", plan.channels) + number("nchunksperloop", plan.chunks) +
                     number("ngpus", static_cast<std::int64_t>(plan.gpus.size())) +
                     attribute("coll", std::string(detail::msccl_word(plan.collective, plan.reader))) +
                     number("inplace", plan.in_place ? 1 : 0);
  if (executor) text += number("outofplace", plan.out_of_place ? 1 : 0);
  // The fork takes 128 MiB for "not told", so "no limit" is a large number there.
  const std::uint64_t largest = executor || plan.max_bytes != 0
                                    ? plan.max_bytes
                                    : std::uint64_t{1} << 50U;  // 1 PiB, far from the edge of the fork's 64 bits
  text +=
      attribute("minBytes", std::to_string(plan.min_bytes)) + attribute("maxBytes", std::to_string(largest)) + ">\n";
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    const msccl_gpu& gpu = plan.gpus[g];
    text += "  <gpu" + number("id", static_cast<std::int64_t>(g)) + number("i_chunks", gpu.input) +
            number("o_chunks", gpu.output) + number("s_chunks", gpu.scratch) + ">\n";
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const msccl_block& block = gpu.blocks[b];
      text += "    <tb" + number("id", static_cast<std::int64_t>(b)) + number("send", block.send) +
              number("recv", block.recv) + number("chan", block.channel) + ">\n";
      for (std::size_t i = 0; i < block.steps.size(); ++i) {
        const msccl_step& s = block.steps[i];
        text += "      <step" + number("s", static_cast<std::int64_t>(i)) +
                attribute("type", std::string(to_string(s.type))) + attribute("srcbuf", std::string(1, s.src)) +
                number("srcoff", s.src_offset) + attribute("dstbuf", std::string(1, s.dst)) +
                number("dstoff", s.dst_offset) + number("cnt", s.count) + number("depid", s.dep_block) +
                number("deps", s.dep_step) + number("hasdep", s.has_dep ? 1 : 0) + "/>\n";
      }
      text += "    </tb>\n";
    }
    text += "  </gpu>\n";
  }
  return text + "</algo>\n";
}

template <class>
result<msccl_plan> read_msccl_xml(const io::xml_element& root, std::string_view file, msccl_reader reader) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t any_size = std::numeric_limits<std::int64_t>::max();
  msccl_plan plan;
  plan.reader = reader;
  detail::xml_attributes a(root, file);
  if (root.name != "algo") a.complain("is not the root of an MSCCL plan, which is <algo>");
  if (a.wrong()) return *a.wrong();
  plan.name = a.word("name");
  plan.protocol = a.word("proto");
  plan.channels = static_cast<std::uint32_t>(detail::msccl_number(a, "nchannels", 1, most));
  plan.chunks = static_cast<std::uint32_t>(detail::msccl_number(a, "nchunksperloop", 1, most));
  const std::int64_t gpus = detail::msccl_number(a, "ngpus", 1, most);
  const std::string_view word = a.word("coll");
  bool known = false;
  for (int k = 0; k <= static_cast<int>(collective_kind::all_to_all); ++k)
    if (detail::msccl_word(static_cast<collective_kind>(k), reader) == word) {
      plan.collective = static_cast<collective_kind>(k);
      known = true;
    }
  if (!known) a.complain_of("coll", word, ", which this reader does not know");
  plan.in_place = detail::msccl_number(a, "inplace", 0, 1) != 0;
  const bool executor = reader == msccl_reader::executor;
  plan.out_of_place = executor ? detail::msccl_number(a, "outofplace", 0, 1) != 0 : !plan.in_place;
  if (executor || a.has("minBytes"))
    plan.min_bytes = static_cast<std::uint64_t>(detail::msccl_number(a, "minBytes", 0, any_size));
  if (executor || a.has("maxBytes"))
    plan.max_bytes = static_cast<std::uint64_t>(detail::msccl_number(a, "maxBytes", 0, any_size));
  if (!executor && plan.max_bytes >= std::uint64_t{1} << 50U) plan.max_bytes = 0;
  if (a.wrong()) return *a.wrong();

  const auto elements = detail::msccl_children(root, "gpu", file);
  if (!elements) return elements.error();
  for (const io::xml_element* e : *elements) {
    detail::xml_attributes g(*e, file);
    msccl_gpu gpu;
    gpu.input = static_cast<std::uint32_t>(detail::msccl_number(g, "i_chunks", 0, most));
    gpu.output = static_cast<std::uint32_t>(detail::msccl_number(g, "o_chunks", 0, most));
    gpu.scratch = static_cast<std::uint32_t>(detail::msccl_number(g, "s_chunks", 0, most));
    if (g.wrong()) return *g.wrong();
    const auto blocks = detail::msccl_children(*e, "tb", file);
    if (!blocks) return blocks.error();
    for (const io::xml_element* b : *blocks) {
      detail::xml_attributes t(*b, file);
      msccl_block block;
      block.send = static_cast<std::int32_t>(detail::msccl_number(t, "send", -1, most));
      block.recv = static_cast<std::int32_t>(detail::msccl_number(t, "recv", -1, most));
      block.channel = static_cast<std::uint32_t>(detail::msccl_number(t, "chan", 0, most));
      if (t.wrong()) return *t.wrong();
      const auto steps = detail::msccl_children(*b, "step", file);
      if (!steps) return steps.error();
      for (std::size_t i = 0; i < steps->size(); ++i) {
        const auto step = detail::read_msccl_step(*(*steps)[i], i, file);
        if (!step) return step.error();
        block.steps.push_back(*step);
      }
      gpu.blocks.push_back(std::move(block));
    }
    plan.gpus.push_back(std::move(gpu));
  }
  if (static_cast<std::int64_t>(plan.gpus.size()) != gpus)
    return fail(errc::malformed_input, std::string(file) + ": ngpus is " + std::to_string(gpus) + ", but " +
                                           std::to_string(plan.gpus.size()) + " <gpu> follow");
  return plan;
}

}}  // namespace topocoll::v0
