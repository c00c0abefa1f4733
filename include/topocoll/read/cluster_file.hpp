// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a hand-written cluster file (schema topocoll.cluster/1, docs/formats/cluster.md) says, as plain structs.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/io/value_tree.hpp>
#include <topocoll/read/detail/nearest.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Nodes, and links, of one cluster file: a hundred and fifty thousand hosts of a common model, about 3 GB of memory.
inline constexpr std::size_t most_cluster_parts = std::size_t{1} << 22U;

/// `[[hosts]]`: hosts of one make, plugged in one way.
struct cluster_hosts {
  std::vector<std::string> names;
  std::string model;                   ///< a description as in docs/formats/fabric.md: "dgx-h100"
  std::string file;                    ///< or a topology file, which holds for each of the hosts
  std::optional<std::uint32_t> nics;   ///< or only how many adapters there are
  std::vector<std::string> nic_names;  ///< or what they are called
  std::optional<bytes_per_second> nic_rate;
  std::vector<std::string> leaves;                         ///< one for all adapters, or one for each
  std::vector<std::pair<std::string, std::string>> plugs;  ///< adapter (name or position) and its leaf
  std::uint32_t line = 0;
};
/// `[[switches]]`: switches of one tier, cabled in one way.
struct cluster_switches {
  std::vector<std::string> names;
  std::optional<std::uint32_t> tier;  ///< 0 leaf, 1 spine, 2 core, when it is stated
  std::vector<std::string> up;        ///< each of `names` has cables to each of these
  std::optional<std::uint32_t> cables;
  std::optional<bytes_per_second> rate;    ///< of one cable upwards
  std::optional<double> oversubscription;  ///< factor: capacity below by capacity upwards
  std::uint32_t line = 0;
};
/// `[[links]]`: a link that is not as the rest.
struct cluster_exception {
  std::string a, b;  ///< "leaf3", "node07/mlx5_2", "node07/2"
  bool missing = false;
  std::optional<std::uint32_t> cables;
  std::optional<bytes_per_second> rate;
  std::string reason;
  std::uint32_t line = 0;
};
/// `[[corrections]]`: a fact that replaces what the rest of the file says.
struct cluster_correction {
  std::string node;  ///< key of a node
  std::string fact, value, reason;
  std::uint32_t line = 0;
};
struct cluster_file {
  std::string name;
  bool ethernet = false;                 ///< `[fabric] network`; else InfiniBand
  std::optional<bytes_per_second> rate;  ///< `[fabric] rate`: of every cable that tells none
  std::vector<cluster_hosts> hosts;
  std::vector<cluster_switches> switches;
  std::vector<cluster_exception> links;
  std::vector<cluster_correction> corrections;
};

/// True for a text in which a line begins with `schema = "topocoll.cluster/`.
template <class = void>
[[nodiscard]] bool looks_like_cluster_file(std::string_view text);

/// Understands a cluster file.
/// @param file  name for failures
/// @return `malformed_input` with file and line for a missing or unknown key (with the nearest known one), a value of another
///         kind, a bad rate or host list, a host or switch that is named twice; `unsupported` for a newer schema and for more
///         than `most_hosts` names in all. What names refer to is for the builder of the graph. Cost: O(n log n)
template <class = void>
[[nodiscard]] result<cluster_file> cluster_file_of(const io::value& root, std::string_view file);

namespace detail {

/// One pass over the tables.
template <class = void>
class cluster_reader {
 public:
  explicit cluster_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<cluster_file> run(const io::value& root) {
    if (auto ok = schema(root); !ok) return std::move(ok).error();
    if (auto ok = keys(root, {"schema", "name", "fabric", "hosts", "switches", "links", "corrections"}); !ok)
      return std::move(ok).error();
    result<void> ok = text(root, "name", c_.name);
    if (ok) ok = fabric(root.find("fabric"));
    if (ok) ok = each(root, "hosts", &cluster_reader::hosts);
    if (ok) ok = each(root, "switches", &cluster_reader::switches);
    if (ok) ok = each(root, "links", &cluster_reader::link);
    if (ok) ok = each(root, "corrections", &cluster_reader::correction);
    if (!ok) return std::move(ok).error();
    if (c_.hosts.empty())
      return fail(errc::malformed_input, file_ + " has no [[hosts]]", "name hosts: [[hosts]], names = \"node[0-15]\"");
    std::vector<named> all;
    for (const cluster_hosts& h : c_.hosts)
      for (const std::string& n : h.names) all.push_back({&n, h.line});
    if (ok = unique(all, "host"); !ok) return std::move(ok).error();
    all.clear();
    for (const cluster_switches& s : c_.switches)
      for (const std::string& n : s.names) all.push_back({&n, s.line});
    if (ok = unique(all, "switch"); !ok) return std::move(ok).error();
    return std::move(c_);
  }

 private:
  struct named {
    const std::string* name;
    std::uint32_t line;
  };

  [[nodiscard]] failure refuse(std::uint32_t line, const std::string& why, std::string next = {}) const {
    return fail(errc::malformed_input, file_ + " line " + std::to_string(line) + ": " + why, std::move(next));
  }
  [[nodiscard]] failure wrong(const io::value& v, const char* wanted) const {
    return refuse(v.line, "'" + v.key + "' is " + to_string(v.kind) + ", not " + wanted);
  }

  [[nodiscard]] result<void> schema(const io::value& root) const {
    constexpr std::string_view prefix = "topocoll.cluster/";
    const io::value* s = root.find("schema");
    if (s == nullptr)
      return fail(errc::malformed_input, file_ + " has no 'schema'", "begin with schema = \"topocoll.cluster/1\"");
    const std::string_view text = s->text;
    if (s->kind != io::value_kind::text || text.substr(0, prefix.size()) != prefix ||
        !digits_of(text.substr(prefix.size()), 10))
      return refuse(s->line, "the schema is not \"topocoll.cluster/1\"");
    if (text.substr(prefix.size()) != "1")
      return fail(errc::unsupported,
                  file_ + " line " + std::to_string(s->line) + ": written in version " +
                      std::string(text.substr(prefix.size(), 20)) +
                      " of topocoll.cluster, but this program reads version 1",
                  "use a newer topocoll");
    return {};
  }

  [[nodiscard]] result<void> keys(const io::value& v, const std::vector<std::string_view>& known) const {
    const std::string where = v.key.empty() ? std::string() : " of '" + v.key + "'";
    if (v.kind != io::value_kind::map)
      return refuse(v.line, "an entry is " + std::string(to_string(v.kind)) + ", not a table");
    for (const io::value& item : v.items) {
      if (seq::contains(known, item.key)) continue;
      std::string next = "keys here are";
      for (const std::string_view k : known) next += (k == known.front() ? " " : ", ") + std::string(k);
      const std::string_view near = topocoll::detail::nearest(item.key, known);
      if (!near.empty()) next = "did you mean '" + std::string(near) + "'? " + next;
      return refuse(item.line, "unknown key '" + item.key + "'" + where, next);
    }
    return {};
  }
  [[nodiscard]] result<void> unique(std::vector<named>& all, const char* what) const {
    seq::sort(all, [](const named& a, const named& b) { return *a.name < *b.name; });
    for (std::size_t i = 1; i < all.size(); ++i)
      if (*all[i].name == *all[i - 1].name)
        return refuse(all[i].line, std::string("the ") + what + " '" + *all[i].name +
                                       "' is named twice, first on line " + std::to_string(all[i - 1].line));
    return {};
  }
  /// The tables of an array of tables; a single table stands for an array of one.
  [[nodiscard]] result<void> each(const io::value& root, const char* key,
                                  result<void> (cluster_reader::*read)(const io::value&)) {
    const io::value* v = root.find(key);
    if (v == nullptr) return {};
    if (v->kind == io::value_kind::map) return (this->*read)(*v);
    if (v->kind != io::value_kind::list) return wrong(*v, "tables; write [[…]]");
    for (const io::value& entry : v->items)
      if (auto ok = (this->*read)(entry); !ok) return ok;
    return {};
  }

  [[nodiscard]] result<void> text(const io::value& v, const char* key, std::string& to) const {
    const io::value* t = v.find(key);
    if (t == nullptr) return {};
    if (t->kind != io::value_kind::text) return wrong(*t, "a text");
    to = t->text;
    return {};
  }
  [[nodiscard]] result<void> count(const io::value& v, const char* key, std::uint32_t most,
                                   std::optional<std::uint32_t>& to) const {
    const io::value* n = v.find(key);
    if (n == nullptr) return {};
    const auto number = n->kind == io::value_kind::number ? digits_of(n->text, 10) : std::nullopt;
    if (!number || *number > most)
      return refuse(n->line, "'" + n->key + "' is not a whole number from 0 to " + std::to_string(most));
    to = static_cast<std::uint32_t>(*number);
    return {};
  }
  [[nodiscard]] result<void> rate(const io::value& v, const char* key, std::optional<bytes_per_second>& to) const {
    const io::value* r = v.find(key);
    if (r == nullptr) return {};
    const auto found = r->kind == io::value_kind::text ? parse_rate(r->text) : result<bytes_per_second>(failure{});
    if (!found || !(found->value > 0) || found->value > 1e15)  // a petabyte per second is a typing mistake
      return refuse(r->line, "'" + r->key + "' is not a rate above 0",
                    "write for example rate = \"400Gb/s\" (bits) or \"50GB/s\" (bytes)");
    to = *found;
    return {};
  }
  /// A host list, or a list of host lists.
  [[nodiscard]] result<void> names(const io::value& v, const char* key, std::vector<std::string>& to) {
    const io::value* list = v.find(key);
    if (list == nullptr) return {};
    if (list->kind != io::value_kind::text && list->kind != io::value_kind::list)
      return wrong(*list, "a list of names");
    const auto add = [&](const io::value& item) -> result<void> {
      if (item.kind != io::value_kind::text) return wrong(*list, "a list of names");
      auto expanded = expand_hostlist(item.text, left_);
      if (!expanded)
        return fail(expanded.error().code, file_ + " line " + std::to_string(item.line) + ": " + expanded.error().what,
                    expanded.error().next);
      left_ -= expanded->size();
      to.insert(to.end(), expanded->begin(), expanded->end());
      return {};
    };
    if (list->kind == io::value_kind::text) return add(*list);
    for (const io::value& item : list->items)
      if (auto ok = add(item); !ok) return ok;
    return {};
  }

  [[nodiscard]] result<void> fabric(const io::value* v) {
    if (v == nullptr) return {};
    if (auto ok = keys(*v, {"network", "rate"}); !ok) return ok;
    std::string network = "infiniband";
    if (auto ok = text(*v, "network", network); !ok) return ok;
    if (network != "infiniband" && network != "ethernet")
      return refuse(v->find("network")->line, "'network' is neither \"infiniband\" nor \"ethernet\"");
    c_.ethernet = network == "ethernet";
    return rate(*v, "rate", c_.rate);
  }

  [[nodiscard]] result<void> hosts(const io::value& v) {
    if (auto ok = keys(v, {"names", "model", "file", "nics", "nic_rate", "leaves", "plug"}); !ok) return ok;
    cluster_hosts h;
    h.line = v.line;
    result<void> ok = names(v, "names", h.names);
    if (ok) ok = text(v, "model", h.model);
    if (ok) ok = text(v, "file", h.file);
    if (ok) ok = rate(v, "nic_rate", h.nic_rate);
    if (ok) ok = names(v, "leaves", h.leaves);
    if (const io::value* nics = v.find("nics"); ok && nics != nullptr)
      ok = nics->kind == io::value_kind::number ? count(v, "nics", 1024, h.nics) : names(v, "nics", h.nic_names);
    if (!ok) return ok;
    if (h.names.empty()) return refuse(v.line, "an entry of [[hosts]] has no 'names'");
    const int told = (h.model.empty() ? 0 : 1) + (h.file.empty() ? 0 : 1) + (v.find("nics") == nullptr ? 0 : 1);
    if (!h.model.empty() && h.nic_rate)
      return refuse(v.find("nic_rate")->line, "'nic_rate' and 'model' exclude each other",
                    "write it into the model: \"" + h.model.substr(0, 40) + ":nic_rate=200Gb/s\"");
    if (told > 1) return refuse(v.line, "hosts are told by one of 'model', 'file' and 'nics'");
    if (h.nic_names.size() > 1024) return refuse(v.line, "a host has more than 1024 adapters");
    for (std::size_t i = 1; i < h.nic_names.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (h.nic_names[i] == h.nic_names[k])
          return refuse(v.line, "the adapter '" + h.nic_names[i] + "' is named twice");
    if (const io::value* plug = v.find("plug")) {
      if (!h.leaves.empty()) return refuse(plug->line, "'plug' and 'leaves' exclude each other");
      if (plug->kind != io::value_kind::map) return wrong(*plug, "a table of adapters and leaves");
      if (plug->items.size() > 1024) return refuse(plug->line, "a host has more than 1024 adapters");
      for (const io::value& p : plug->items) {
        if (p.kind != io::value_kind::text) return wrong(p, "the name of a leaf");
        h.plugs.emplace_back(p.key, p.text);
      }
    }
    c_.hosts.push_back(std::move(h));
    return {};
  }

  [[nodiscard]] result<void> switches(const io::value& v) {
    if (auto ok = keys(v, {"names", "tier", "up", "cables", "rate", "oversubscription"}); !ok) return ok;
    cluster_switches s;
    s.line = v.line;
    std::string tier;
    result<void> ok = names(v, "names", s.names);
    if (ok) ok = text(v, "tier", tier);
    if (ok) ok = names(v, "up", s.up);
    if (ok) ok = count(v, "cables", 1024, s.cables);
    if (ok) ok = rate(v, "rate", s.rate);
    if (!ok) return ok;
    if (s.names.empty()) return refuse(v.line, "an entry of [[switches]] has no 'names'");
    if (!tier.empty()) {
      if (tier != "leaf" && tier != "spine" && tier != "core")
        return refuse(v.find("tier")->line, "'tier' is none of \"leaf\", \"spine\", \"core\"");
      s.tier = tier == "leaf" ? 0U : tier == "spine" ? 1U : 2U;
    }
    if (const io::value* o = v.find("oversubscription")) {
      const auto factor = o->kind == io::value_kind::number ? leading_number(o->text) : std::nullopt;
      if (!factor || !(*factor > 0) || *factor > 1000 || o->text.find_first_of("-e") != std::string::npos)
        return refuse(o->line, "'oversubscription' is not a number above 0, up to 1000",
                      "2 means that twice as much comes from below as goes upwards");
      s.oversubscription = *factor;
    }
    if (s.up.empty() && (s.cables || s.rate || s.oversubscription))
      return refuse(v.line,
                    "'cables', 'rate' and 'oversubscription' are about links upwards, but the entry has no 'up'");
    if (s.cables && *s.cables == 0)
      return refuse(v.find("cables")->line, "'cables' is 0", "leave out 'up' for switches without uplinks");
    c_.switches.push_back(std::move(s));
    return {};
  }

  [[nodiscard]] result<void> link(const io::value& v) {
    if (auto ok = keys(v, {"between", "missing", "cables", "rate", "reason"}); !ok) return ok;
    cluster_exception e;
    e.line = v.line;
    const io::value* between = v.find("between");
    if (between == nullptr || between->kind != io::value_kind::list || between->items.size() != 2 ||
        between->items[0].kind != io::value_kind::text || between->items[1].kind != io::value_kind::text)
      return refuse(v.line, "an entry of [[links]] has no 'between' with two names",
                    "write for example between = [\"leaf3\", \"spine1\"] or [\"node07/mlx5_2\", \"leaf2\"]");
    e.a = between->items[0].text;
    e.b = between->items[1].text;
    if (const io::value* missing = v.find("missing")) {
      if (missing->kind != io::value_kind::boolean) return wrong(*missing, "true or false");
      e.missing = missing->text == "true";
    }
    result<void> ok = count(v, "cables", 1024, e.cables);
    if (ok) ok = rate(v, "rate", e.rate);
    if (ok) ok = text(v, "reason", e.reason);
    if (!ok) return ok;
    if (e.missing && (e.cables || e.rate))
      return refuse(v.line, "a link that is missing has neither 'cables' nor 'rate'");
    if (!e.missing && !e.cables && !e.rate)
      return refuse(v.line, "the entry says nothing: give 'missing', 'cables' or 'rate'");
    if (e.reason.empty())
      return refuse(v.line, "the exception has no 'reason'", "say how it is known, for whoever reads the report");
    c_.links.push_back(std::move(e));
    return {};
  }

  [[nodiscard]] result<void> correction(const io::value& v) {
    if (auto ok = keys(v, {"node", "fact", "value", "reason"}); !ok) return ok;
    cluster_correction c;
    c.line = v.line;
    result<void> ok = text(v, "node", c.node);
    if (ok) ok = text(v, "fact", c.fact);
    if (ok) ok = text(v, "reason", c.reason);
    if (!ok) return ok;
    const io::value* value = v.find("value");
    if (c.node.empty() || c.fact.empty() || value == nullptr)
      return refuse(v.line, "an entry of [[corrections]] has 'node', 'fact' and 'value'");
    if (value->kind == io::value_kind::list || value->kind == io::value_kind::map)
      return wrong(*value, "a text or a number");
    if (c.reason.empty())
      return refuse(v.line, "the correction has no 'reason'", "say how it is known, for whoever reads the report");
    c.value = value->text;
    c_.corrections.push_back(std::move(c));
    return {};
  }

  std::string file_;
  std::size_t left_ = most_hosts;
  cluster_file c_;
};

}  // namespace detail

template <class>
bool looks_like_cluster_file(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view row = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (row.substr(0, 6) != "schema") continue;
    row = trimmed(row.substr(6));
    if (row.empty() || row.front() != '=') continue;
    row = trimmed(row.substr(1));
    if (row.size() > 17 && row.substr(1, 17) == "topocoll.cluster/" && (row[0] == '"' || row[0] == '\'')) return true;
  }
  return false;
}

template <class>
result<cluster_file> cluster_file_of(const io::value& root, std::string_view file) {
  return detail::cluster_reader<>(file).run(root);
}

}}}  // namespace topocoll::v0::read
