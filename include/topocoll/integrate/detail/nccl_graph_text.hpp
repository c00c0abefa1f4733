// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/nccl_graph_file.hpp writes and reads the text.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/integrate/detail/xml_attributes.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Classes that NCCL's files know.
inline constexpr topo::path_class nccl_known_types[] = {
    topo::path_class::LOC, topo::path_class::NVL, topo::path_class::NVB, topo::path_class::PIX, topo::path_class::PXB,
    topo::path_class::P2C, topo::path_class::PXN, topo::path_class::PHB, topo::path_class::SYS};

/// The class as the file has it: C2C is missing there, and the next worse stands in.
[[nodiscard]] constexpr topo::path_class nccl_written(topo::path_class c) {
  return c == topo::path_class::C2C ? topo::path_class::PIX : c;
}

/// A decimal number that reads back as the same; NCCL itself keeps 32-bit floats.
[[nodiscard]] inline std::string short_decimal(double x) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(x)).ptr;
  return {text, end};
}

/// A number that the file may write in decimals or, with base 16, in hexadecimal with or without "0x".
[[nodiscard]] inline std::uint32_t nccl_number(xml_attributes& a, std::string_view name, std::uint32_t most,
                                               int base = 10) {
  const std::string* value = a.text(name);
  if (value == nullptr) return 0;
  std::string_view digits = *value;
  if (base == 16 && digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == 'x') digits.remove_prefix(2);
  const auto n = exact_number<std::uint32_t>(digits, base);
  if (n && *n <= most) return *n;
  a.complain_of(name, *value, ", not a number up to " + std::to_string(most));
  return 0;
}
/// A number from 0 to 1e9, as NCCL keeps it: a 32-bit float.
[[nodiscard]] inline double nccl_real(xml_attributes& a, std::string_view name) {
  const std::string* value = a.text(name);
  if (value == nullptr) return 0;
  double x = 0;
  const auto [end, wrong] = std::from_chars(value->data(), value->data() + value->size(), x);
  if (wrong == std::errc{} && end == value->data() + value->size() && x >= 0 && x <= 1e9) return static_cast<float>(x);
  a.complain_of(name, *value, ", not a number up to 1e9");
  return 0;
}
[[nodiscard]] inline topo::path_class nccl_type(xml_attributes& a, std::string_view name) {
  const std::string* value = a.text(name);
  if (value == nullptr) return topo::path_class::LOC;
  for (const topo::path_class c : nccl_known_types)
    if (*value == to_string(c)) return c;
  a.complain_of(name, *value, ", which NCCL does not know here");
  return topo::path_class::LOC;
}

template <class = void>
[[nodiscard]] result<nccl_channel> read_nccl_channel(const io::xml_element& e, std::string_view file) {
  nccl_channel channel;
  if (e.name != "channel") {
    xml_attributes a(e, file);
    a.complain("stands where only <channel> may stand");
    return *a.wrong();
  }
  for (std::size_t i = 0; i < e.children.size(); ++i) {
    const io::xml_element& child = e.children[i];
    xml_attributes a(child, file);
    const std::uint32_t dev = nccl_number(a, "dev", UINT32_MAX, 16);
    if (child.name == "gpu") {
      channel.gpus.push_back(dev);
    } else if (child.name == "net") {
      if (i != 0 && i + 1 != e.children.size())
        a.complain("stands between GPUs; a channel enters first and leaves last");
      (i == 0 ? channel.net_in : channel.net_out) = dev;
    } else {
      a.complain("is neither <gpu> nor <net>");
    }
    if (a.wrong()) return *a.wrong();
  }
  return channel;
}

}  // namespace detail

template <class>
std::string to_nccl_graph_xml(const nccl_graph_file& file) {
  const auto attribute = [](const char* name, std::string_view value) { return detail::xml_attribute(name, value); };
  const auto device = [&](const char* kind, std::uint32_t dev) {
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, dev, 16).ptr;
    return std::string("      <") + kind + attribute("dev", "0x" + std::string(digits, end)) + "/>\n";
  };
  std::string text = "<graphs version=\"1\">\n";
  for (const nccl_graph& g : file.graphs) {
    text += "  <graph" + attribute("id", std::to_string(static_cast<int>(g.id))) +
            attribute("pattern", std::to_string(static_cast<int>(g.pattern))) +
            attribute("crossnic", std::to_string(g.cross_nic)) +
            attribute("nchannels", std::to_string(g.channels.size())) +
            attribute("speedintra", detail::short_decimal(g.speed_intra.value / 1e9)) +
            attribute("speedinter", detail::short_decimal(g.speed_inter.value / 1e9)) +
            attribute("latencyinter", detail::short_decimal(g.latency_inter.value * 1e6)) +
            attribute("typeintra", to_string(detail::nccl_written(g.type_intra))) +
            attribute("typeinter", to_string(detail::nccl_written(g.type_inter))) +
            attribute("samechannels", g.same_channels ? "1" : "0") + ">\n";
    for (const nccl_channel& c : g.channels) {
      text += "    <channel>\n";
      if (c.net_in) text += device("net", *c.net_in);
      for (const std::uint32_t gpu : c.gpus) text += device("gpu", gpu);
      if (c.net_out) text += device("net", *c.net_out);
      text += "    </channel>\n";
    }
    text += "  </graph>\n";
  }
  return text + "</graphs>\n";
}

template <class>
result<nccl_graph_file> read_nccl_graph_xml(const io::xml_element& root, std::string_view file) {
  nccl_graph_file out;
  detail::xml_attributes top(root, file);
  if (root.name != "graphs")
    top.complain("is not the root of a graph file, which is <graphs>");
  else if (const std::uint32_t version = detail::nccl_number(top, "version", UINT32_MAX); version != 1 && !top.wrong())
    top.complain("has version " + std::to_string(version) + "; NCCL reads 1");
  if (top.wrong()) return *top.wrong();
  for (const io::xml_element& e : root.children) {
    detail::xml_attributes a(e, file);
    if (e.name != "graph") a.complain("stands where only <graph> may stand");
    if (a.wrong()) return *a.wrong();
    nccl_graph g;
    g.id = static_cast<nccl_graph_id>(detail::nccl_number(a, "id", 4));
    const std::uint32_t pattern = detail::nccl_number(a, "pattern", 6);
    if (pattern == 0) a.complain("has no pattern");
    g.pattern = static_cast<nccl_pattern>(pattern);
    g.cross_nic = detail::nccl_number(a, "crossnic", 2);
    const std::uint32_t channels = detail::nccl_number(a, "nchannels", 4096);
    g.speed_intra = {detail::nccl_real(a, "speedintra") * 1e9};
    g.speed_inter = {detail::nccl_real(a, "speedinter") * 1e9};
    if (a.has("latencyinter")) g.latency_inter = {detail::nccl_real(a, "latencyinter") / 1e6};  // NCCL: 0 without it
    g.type_intra = detail::nccl_type(a, "typeintra");
    g.type_inter = detail::nccl_type(a, "typeinter");
    g.same_channels = detail::nccl_number(a, "samechannels", 1) != 0;
    if (channels != e.children.size())
      a.complain("has nchannels=\"" + std::to_string(channels) + "\" and " + std::to_string(e.children.size()) +
                 " channels");
    if (a.wrong()) return *a.wrong();
    for (const io::xml_element& c : e.children) {
      auto channel = detail::read_nccl_channel(c, file);
      if (!channel) return std::move(channel).error();
      g.channels.push_back(std::move(*channel));
    }
    out.graphs.push_back(std::move(g));
  }
  return out;
}

}}  // namespace topocoll::v0
