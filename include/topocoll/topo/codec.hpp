// SPDX-License-Identifier: Apache-2.0
#pragma once
// Topology graphs as JSON and back, schema topocoll.topology/1 (docs/formats/topology.md). Needs nlohmann-json.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>
#include <topocoll/topo/summary.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// Name and newest version of the schema.
inline constexpr const char* topology_schema = "topocoll.topology";
inline constexpr std::uint32_t topology_schema_version = 1;

/// The graph as a JSON value: schema, source, summary, nodes, links, findings. Fields that are empty or unknown are left
/// out; two links that follow each other and are mirror images are written once, as "duplex". Cost: O(n + m log m).
template <class = void>
[[nodiscard]] io::json to_json_value(const graph& g);

/// The graph as JSON text, ending in a newline.
template <class = void>
[[nodiscard]] std::string to_json(const graph& g) {
  return io::to_text(to_json_value(g));
}

/// Reads what `to_json` wrote: the same nodes, links and findings in the same order, every field equal.
///
/// Unknown fields are passed over, so that a reader survives additions. The summary is not read: it is counted anew.
/// @param where  what the text is, for failures: a path
/// @return `malformed_input` with the JSON pointer for what is missing, of a wrong type, of an unknown kind, not a possible
///         figure, for a key that appears twice and for a link to a key that does not; `unsupported` for a newer schema,
///         with both versions. Cost: O((n + m) log n).
template <class = void>
[[nodiscard]] result<fragment> from_json(std::string_view text, std::string_view where);

/// The same for a value that has been parsed already.
template <class = void>
[[nodiscard]] result<fragment> from_json_value(const io::json& document, std::string_view where);

namespace detail {

/// True when `b` is `a` the other way round with the same figures.
template <class = void>
[[nodiscard]] bool is_mirror(const link& a, const link& b) {
  return a.from == b.to && a.to == b.from && a.kind == b.kind && a.generation == b.generation && a.lanes == b.lanes &&
         a.nominal == b.nominal && a.current == b.current && a.capacity == b.capacity && a.how == b.how &&
         a.reason == b.reason;
}

template <class = void>
[[nodiscard]] io::json json_of(const summary& s) {
  return {{"hosts", s.hosts},
          {"gpus", s.gpus},
          {"nics", s.nics},
          {"numa_domains", s.numa_domains},
          {"pcie_switches", s.pcie_switches},
          {"nvswitches", s.nvswitches},
          {"switches", s.switches},
          {"links", s.links}};
}
template <class = void>
[[nodiscard]] io::json json_of(const node& n) {
  io::json o{{"key", n.key}, {"kind", to_string(n.kind)}};
  if (!n.name.empty()) o["name"] = n.name;
  if (!n.host.empty()) o["host"] = n.host;
  if (n.index) o["index"] = *n.index;
  if (n.global_rank) o["global_rank"] = *n.global_rank;
  if (n.numa) o["numa"] = *n.numa;
  o["trust"] = to_string(n.how);
  if (!n.reason.empty()) o["reason"] = n.reason;
  if (!n.facts.empty()) {
    io::json facts = io::json::object();
    for (const auto& [name, value] : n.facts) facts.emplace(name, value);
    o["facts"] = std::move(facts);
  }
  return o;
}
template <class = void>
[[nodiscard]] io::json json_of(const graph& g, const link& l, bool duplex) {
  io::json o{{"from", g.at(l.from).key}, {"to", g.at(l.to).key}, {"kind", to_string(l.kind)}, {"duplex", duplex}};
  if (l.generation != 0) o["generation"] = l.generation;
  if (l.lanes != 0) o["lanes"] = l.lanes;
  if (l.nominal) o["nominal_bytes_per_second"] = l.nominal->value;
  if (l.current) o["current_bytes_per_second"] = l.current->value;
  o["capacity_bytes_per_second"] = l.capacity.value;
  o["trust"] = to_string(l.how);
  if (!l.reason.empty()) o["reason"] = l.reason;
  return o;
}
template <class = void>
[[nodiscard]] io::json json_of(const finding& f) {
  io::json o{{"severity", to_string(f.level)}};
  if (!f.where.empty()) o["where"] = f.where;
  o["what"] = f.what;
  if (!f.evidence.empty()) o["evidence"] = f.evidence;
  if (!f.next_step.empty()) o["next_step"] = f.next_step;
  o["confidence"] = f.confidence;
  return o;
}

/// Reads one document; the first thing that is wrong ends it.
class topology_reader {
 public:
  [[nodiscard]] result<fragment> run(const io::json& document, std::string_view where) {
    const io::json_place top(where);
    if (auto version = io::read_schema(document, topology_schema, topology_schema_version, top); !version)
      return std::move(version).error();
    if (!text(document, "source", top, f_.source)) return std::move(why_);
    if (!each(document, "nodes", top, true,
              [this](const io::json& o, const io::json_place& at) { return read_node(o, at); }) ||
        !index_keys(top) ||
        !each(document, "links", top, true,
              [this](const io::json& o, const io::json_place& at) { return read_link(o, at); }) ||
        !each(document, "findings", top, false,
              [this](const io::json& o, const io::json_place& at) { return read_finding(o, at); }))
      return std::move(why_);
    return std::move(f_);
  }

 private:
  template <class Read>
  bool each(const io::json& document, std::string_view name, const io::json_place& top, bool required,
            const Read& read) {
    if (!required && io::find_field(document, name) == nullptr) return true;
    auto items = io::read_array(document, name, top);
    if (!items) return refuse(std::move(items).error());
    const io::json_place list = top / name;
    std::size_t i = 0;
    for (const io::json& item : **items) {
      const io::json_place at = list / i++;
      if (!read(item, at)) return false;
    }
    return true;
  }

  bool read_node(const io::json& o, const io::json_place& at) {
    node n;
    if (!required_text(o, "key", at, n.key) || !text(o, "name", at, n.name) || !text(o, "host", at, n.host) ||
        !text(o, "reason", at, n.reason) || !word(o, "kind", at, node_kind::core_switch, n.kind) ||
        !word(o, "trust", at, trust::assumed, n.how) || !number(o, "index", at, n.index) ||
        !number(o, "global_rank", at, n.global_rank) || !number(o, "numa", at, n.numa))
      return false;
    if (n.key.empty())
      return refuse(fail(errc::malformed_input, (at / "key").text() + " is empty", "give the node an address"));
    if (io::find_field(o, "facts") != nullptr) {
      auto facts = io::read_object(o, "facts", at);
      if (!facts) return refuse(std::move(facts).error());
      const io::json_place place = at / "facts";
      for (const auto& [name, value] : (*facts)->get_ref<const io::json::object_t&>()) {
        auto read = io::read_value<std::string>(value, place / name);
        if (!read) return refuse(std::move(read).error());
        n.facts.emplace_back(name, std::move(*read));
      }
    }
    f_.nodes.push_back(std::move(n));
    return true;
  }

  /// Sorts the keys, so that links can find them.
  bool index_keys(const io::json_place& top) {
    by_key_.resize(f_.nodes.size());
    for (std::uint32_t i = 0; i < by_key_.size(); ++i) by_key_[i] = {i};
    seq::sort_by(by_key_, [this](node_id v) { return std::pair(std::string_view(key_of(v)), v.value); });
    for (std::size_t i = 1; i < by_key_.size(); ++i)
      if (key_of(by_key_[i]) == key_of(by_key_[i - 1])) {
        const io::json_place nodes = top / "nodes";
        return refuse(fail(errc::malformed_input,
                           (nodes / by_key_[i].value).text() + " has the key '" + key_of(by_key_[i]) + "' of node " +
                               std::to_string(by_key_[i - 1].value),
                           "give every node its own key"));
      }
    return true;
  }
  [[nodiscard]] const std::string& key_of(node_id v) const { return f_.nodes[v.value].key; }

  bool end(const io::json& o, const char* name, const io::json_place& at, node_id& v) {
    std::string key;
    if (!required_text(o, name, at, key)) return false;
    const auto it = seq::lower_bound_by(by_key_, key, [this](node_id w) -> const std::string& { return key_of(w); });
    if (it == by_key_.end() || key_of(*it) != key)
      return refuse(fail(errc::malformed_input, (at / name).text() + ": there is no node with the key '" + key + "'",
                         "add the node, or remove the link"));
    v = *it;
    return true;
  }

  bool read_link(const io::json& o, const io::json_place& at) {
    link l;
    std::optional<std::uint32_t> generation, lanes;
    std::optional<bytes_per_second> capacity;
    if (!end(o, "from", at, l.from) || !end(o, "to", at, l.to) || !word(o, "kind", at, link_kind::ethernet, l.kind) ||
        !word(o, "trust", at, trust::assumed, l.how) || !text(o, "reason", at, l.reason) ||
        !number(o, "generation", at, generation) || !number(o, "lanes", at, lanes) ||
        !rate(o, "nominal_bytes_per_second", at, l.nominal) || !rate(o, "current_bytes_per_second", at, l.current) ||
        !rate(o, "capacity_bytes_per_second", at, capacity))
      return false;
    if (l.from == l.to)
      return refuse(
          fail(errc::malformed_input, at.text() + " joins '" + key_of(l.from) + "' to itself", "remove the link"));
    if (!capacity)
      return refuse(fail(errc::malformed_input, at.text() + " has no field 'capacity_bytes_per_second'",
                         "give it the rate that models should use, or 0 for a dead link"));
    l.generation = generation.value_or(0);
    l.lanes = lanes.value_or(0);
    l.capacity = *capacity;
    auto duplex = io::read_optional<bool>(o, "duplex", at);
    if (!duplex) return refuse(std::move(duplex).error());
    if (duplex->value_or(false))
      f_.join(l);
    else
      f_.links.push_back(std::move(l));
    return true;
  }

  bool read_finding(const io::json& o, const io::json_place& at) {
    finding f;
    std::optional<double> confidence;
    if (!word(o, "severity", at, severity::fault, f.level) || !text(o, "where", at, f.where) ||
        !required_text(o, "what", at, f.what) || !text(o, "evidence", at, f.evidence) ||
        !text(o, "next_step", at, f.next_step) || !number(o, "confidence", at, confidence))
      return false;
    f.confidence = confidence.value_or(1);
    f_.findings.push_back(std::move(f));
    return true;
  }

  template <class T>
  bool number(const io::json& o, const char* name, const io::json_place& at, std::optional<T>& to) {
    auto read = io::read_optional<T>(o, name, at);
    if (!read) return refuse(std::move(read).error());
    to = *read;
    return true;
  }
  bool rate(const io::json& o, const char* name, const io::json_place& at, std::optional<bytes_per_second>& to) {
    std::optional<double> value;
    if (!number(o, name, at, value)) return false;
    if (value && !(*value >= 0 && *value <= 1e300))
      return refuse(fail(errc::malformed_input, (at / name).text() + " is not a number of bytes per second"));
    if (value) to = bytes_per_second{*value};
    return true;
  }
  bool text(const io::json& o, const char* name, const io::json_place& at, std::string& to) {
    auto read = io::read_optional<std::string>(o, name, at);
    if (!read) return refuse(std::move(read).error());
    if (*read) to = std::move(**read);
    return true;
  }
  bool required_text(const io::json& o, const char* name, const io::json_place& at, std::string& to) {
    auto read = io::read_field<std::string>(o, name, at);
    if (!read) return refuse(std::move(read).error());
    to = std::move(*read);
    return true;
  }
  /// One of the words of an enumeration whose last value is `last`.
  template <class Enum>
  bool word(const io::json& o, const char* name, const io::json_place& at, Enum last, Enum& to) {
    std::string found;
    if (!required_text(o, name, at, found)) return false;
    std::string known;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(last); ++i) {
      const char* const one = to_string(static_cast<Enum>(i));
      if (found == one) {
        to = static_cast<Enum>(i);
        return true;
      }
      known += (i == 0 ? "" : ", ") + std::string(one);
    }
    return refuse(fail(errc::malformed_input, (at / name).text() + " is '" + found + "', which is not known",
                       "use one of " + known));
  }
  bool refuse(failure why) {
    why_ = std::move(why);
    return false;
  }

  fragment f_;
  std::vector<node_id> by_key_;
  failure why_;
};

}  // namespace detail

template <class>
io::json to_json_value(const graph& g) {
  io::json document{{"schema", std::string(topology_schema) + '/' + std::to_string(topology_schema_version)}};
  if (!g.source().empty()) document["source"] = g.source();
  document["summary"] = detail::json_of(summarize(g));
  io::json nodes = io::json::array();
  for (const node& n : g.nodes()) nodes.push_back(detail::json_of(n));
  document["nodes"] = std::move(nodes);
  io::json links = io::json::array();
  const auto all = g.links();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool duplex = i + 1 < all.size() && detail::is_mirror(all[i], all[i + 1]);
    links.push_back(detail::json_of(g, all[i], duplex));
    i += duplex ? 1 : 0;
  }
  document["links"] = std::move(links);
  io::json findings = io::json::array();
  for (const finding& f : g.findings()) findings.push_back(detail::json_of(f));
  document["findings"] = std::move(findings);
  return document;
}

template <class>
result<fragment> from_json_value(const io::json& document, std::string_view where) {
  return detail::topology_reader().run(document, where);
}

template <class>
result<fragment> from_json(std::string_view text, std::string_view where) {
  auto document = io::parse_json(text, where);
  if (!document) return std::move(document).error();
  return from_json_value(*document, where);
}

}}}  // namespace topocoll::v0::topo
