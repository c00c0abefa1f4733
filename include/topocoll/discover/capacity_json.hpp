// SPDX-License-Identifier: Apache-2.0
#pragma once
// A bare capacity graph as a topology source: compute nodes, switches and directed links with exact rates. Needs nlohmann-json.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// True for JSON with nodes of the kind "compute" and links between them.
[[nodiscard]] inline bool looks_like_capacity_graph(std::string_view text) {
  return text.find("\"nodes\"") != std::string_view::npos && text.find("\"links\"") != std::string_view::npos &&
         text.find("\"compute\"") != std::string_view::npos;
}

/// Reads a graph that says nothing but who is joined to whom, and how fast (docs/formats/capacity.md):
/// `{"nodes": [["a", "compute"], ["s", "switch"]], "links": [["a", "s", "25/2"], ["s", "a", 12.5]]}`.
///
/// Compute nodes become GPUs, numbered in their order; switches become switches; every link is one direction, its rate in
/// GB/s as a number, a decimal or a fraction, and is taken as payload. One such object may stand alone or as the only entry of
/// "topologies".
/// @param file  name for failures
/// @return `malformed_input` with the place for what is not of this form, for a link between unknown nodes or from a node to
///         itself, and for a rate that is none; `unsupported` for several topologies in one file. Cost: O(n log n).
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of_capacity_graph(std::string_view text, const std::string& file);

/// A file with a capacity graph: `discover({}, capacity_file{"torus.json"})`.
struct capacity_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "capacity-graph"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options&) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    return fragment_of_capacity_graph(*text, path);
  }
};
static_assert(TopologySource<capacity_file>);

namespace detail {

/// "25", "12.5" or "25/2" as a number; nothing for anything else, or below 0.
template <class = void>
[[nodiscard]] std::optional<double> capacity_of(const io::json& told) {
  if (told.is_number()) return told.get<double>() >= 0 ? std::optional(told.get<double>()) : std::nullopt;
  if (!told.is_string()) return std::nullopt;
  const std::string& text = told.get_ref<const std::string&>();
  const std::size_t bar = text.find('/');
  const auto number = [](std::string_view part) {
    const bool digits = !part.empty() && part.find_first_not_of("0123456789.") == std::string_view::npos;
    return digits ? read::leading_number(part) : std::nullopt;
  };
  const auto above = number(std::string_view(text).substr(0, bar));
  const auto below = bar == std::string::npos ? std::optional(1.0) : number(std::string_view(text).substr(bar + 1));
  if (!above || !below || !(*below > 0)) return std::nullopt;
  return *above / *below;
}

template <class = void>
class capacity_reader {
 public:
  explicit capacity_reader(const std::string& file) : file_(file) { out_.source = "capacity-graph " + file; }

  [[nodiscard]] result<topo::fragment> read(const io::json& document) {
    const io::json* told = &document;
    if (document.is_object() && document.contains("topologies") && document["topologies"].is_array()) {
      const io::json& all = document["topologies"];
      if (all.size() != 1)
        return fail(errc::unsupported,
                    file_ + " holds " + std::to_string(all.size()) + " topologies, and one is read at a time",
                    "write the one that you want to a file of its own");
      told = &all[0];
    }
    const auto list = [&](const char* name) -> const io::json* {
      return told->is_object() && told->contains(name) && (*told)[name].is_array() ? &(*told)[name] : nullptr;
    };
    const io::json *nodes = list("nodes"), *links = list("links");
    if (nodes == nullptr || links == nullptr) return bad("/", "there are no arrays \"nodes\" and \"links\"");
    for (std::size_t i = 0; i < nodes->size(); ++i)
      if (auto ok = add_node((*nodes)[i], "/nodes/" + std::to_string(i)); !ok) return ok.error();
    seq::sort(names_);
    for (std::size_t i = 1; i < names_.size(); ++i)
      if (names_[i].first == names_[i - 1].first) return bad("/nodes", "\"" + names_[i].first + "\" is there twice");
    for (std::size_t i = 0; i < links->size(); ++i)
      if (auto ok = add_link((*links)[i], "/links/" + std::to_string(i)); !ok) return ok.error();
    return std::move(out_);
  }

 private:
  [[nodiscard]] failure bad(const std::string& where, const std::string& what) const {
    return fail(errc::malformed_input, file_ + ": " + where + ": " + what, "see docs/formats/capacity.md");
  }

  [[nodiscard]] result<void> add_node(const io::json& told, const std::string& where) {
    if (!told.is_array() || told.size() != 2 || !told[0].is_string() || !told[1].is_string())
      return bad(where, "a node is [name, \"compute\" or \"switch\"]");
    const std::string& kind = told[1].get_ref<const std::string&>();
    if (kind != "compute" && kind != "switch")
      return bad(where, "\"" + kind + "\" is neither \"compute\" nor \"switch\"");
    topo::node n;
    n.key = n.name = told[0].get<std::string>();
    n.kind = kind == "compute" ? topo::node_kind::gpu : topo::node_kind::nvswitch;
    if (n.kind == topo::node_kind::gpu) n.index = gpus_++;
    std::string name = n.key;
    names_.push_back({std::move(name), out_.add(std::move(n)).value});
    return {};
  }

  [[nodiscard]] std::optional<node_id> find(const io::json& name) const {
    if (!name.is_string()) return std::nullopt;
    const std::string& wanted = name.get_ref<const std::string&>();
    const auto it = seq::lower_bound_by(names_, wanted, &std::pair<std::string, std::uint32_t>::first);
    if (it == names_.end() || it->first != wanted) return std::nullopt;
    return node_id{it->second};
  }

  [[nodiscard]] result<void> add_link(const io::json& told, const std::string& where) {
    if (!told.is_array() || told.size() != 3) return bad(where, "a link is [from, to, GB/s]");
    const auto from = find(told[0]), to = find(told[1]);
    if (!from || !to)
      return bad(where,
                 "it names no node: " + told[from ? 1 : 0].dump(-1, ' ', false, io::json::error_handler_t::replace));
    if (*from == *to) return bad(where, "it leads from a node to itself");
    const auto rate = capacity_of(told[2]);
    if (!rate || *rate > 1e6) return bad(where, "its rate is no number of GB/s");
    if (*rate == 0) return {};
    topo::link l;
    l.from = *from;
    l.to = *to;
    l.kind = topo::link_kind::nvlink;
    l.capacity = {*rate * 1e9};
    l.how = trust::reported;
    out_.links.push_back(std::move(l));
    return {};
  }

  const std::string& file_;
  topo::fragment out_;
  std::vector<std::pair<std::string, std::uint32_t>> names_;  ///< with positions; sorted once all are known
  std::uint32_t gpus_ = 0;
};

}  // namespace detail

template <class>
result<topo::fragment> fragment_of_capacity_graph(std::string_view text, const std::string& file) {
  const auto document = io::parse_json(text, file);
  if (!document) return document.error();
  return detail::capacity_reader(file).read(*document);
}

}}  // namespace topocoll::v0
