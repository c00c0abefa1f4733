// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads LLDP tables as `lldpctl -f json` and `lldpctl -f json0` write them. Needs nlohmann-json.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/read/lldp.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// Reads one table, or those of several hosts in the forms that `looks_like_lldp` knows.
///
/// The two forms of lldpctl differ in depth: json drops lists of one and puts names in the place of keys, json0 never does.
/// Both are understood, also mixed. Interfaces without a chassis are dropped.
/// @param file  name for failures
/// @return what `io::parse_json` refuses; `malformed_input` with the JSON pointer for another shape. Linear.
template <class = void>
[[nodiscard]] result<std::vector<lldp_table>> parse_lldp(std::string_view text, std::string_view file);

namespace detail {

/// A value that may stand in a list of its own, or in {"value": …}.
[[nodiscard]] inline const io::json* unwrapped(const io::json* v) {
  while (v != nullptr && v->is_array()) v = v->empty() ? nullptr : &v->front();
  return v;
}
[[nodiscard]] inline std::string lldp_text(const io::json* v) {
  v = unwrapped(v);
  if (v != nullptr && v->is_object()) v = unwrapped(io::find_field(*v, "value"));
  const auto* text = v == nullptr ? nullptr : v->get_ptr<const std::string*>();
  return text == nullptr ? std::string() : std::string(trimmed(*text));
}

/// Reads one interface's entry.
template <class = void>
void add_neighbor(const std::string& net_interface, const io::json& entry, std::vector<lldp_neighbor>& to) {
  const io::json* chassis = unwrapped(io::find_field(entry, "chassis"));
  if (chassis == nullptr || !chassis->is_object()) return;
  lldp_neighbor n;
  n.net_interface = net_interface;
  // json names the chassis by its key when it has a name: {"switch-1": {"id": …}}.
  if (io::find_field(*chassis, "id") == nullptr && chassis->size() == 1 &&
      unwrapped(&chassis->begin().value()) != nullptr && unwrapped(&chassis->begin().value())->is_object()) {
    n.name = chassis->begin().key();
    chassis = unwrapped(&chassis->begin().value());
  }
  if (const std::string name = lldp_text(io::find_field(*chassis, "name")); !name.empty()) n.name = name;
  if (const io::json* id = unwrapped(io::find_field(*chassis, "id"))) {
    n.id = lldp_text(id);
    n.id_type = lldp_text(io::find_field(*id, "type"));
  }
  if (const io::json* list = io::find_field(*chassis, "capability")) {
    const auto look = [&](const io::json& c) {
      const std::string type = lldp_text(io::find_field(c, "type"));
      const io::json* on = io::find_field(c, "enabled");
      if (!n.is_switch) n.is_switch = false;
      if ((type == "Bridge" || type == "Router") && on != nullptr && on->is_boolean() && on->get<bool>())
        n.is_switch = true;
    };
    if (list->is_array())
      for (const io::json& c : *list) look(c);
    else
      look(*list);
  }
  if (const io::json* port = unwrapped(io::find_field(entry, "port")); port != nullptr && port->is_object()) {
    const io::json* id = unwrapped(io::find_field(*port, "id"));
    n.port = lldp_text(id);
    const std::string descr = lldp_text(io::find_field(*port, "descr"));
    if ((n.port.empty() || (id != nullptr && lldp_text(io::find_field(*id, "type")) == "mac")) && !descr.empty())
      n.port = descr;
    if (const io::json* negotiation = unwrapped(io::find_field(*port, "auto-negotiation")); negotiation != nullptr)
      n.rate = medium_rate(lldp_text(io::find_field(*negotiation, "current")));
  }
  if (n.name.empty() && n.id.empty()) return;
  to.push_back(std::move(n));
}

/// Reads what stands under "lldp".
template <class = void>
[[nodiscard]] result<void> add_table(const io::json& lldp, const io::json_place& at, lldp_table& to) {
  const auto block = [&](const io::json& b) -> result<void> {
    if (!b.is_object()) return io::detail::wrong_type(b, "an object with the field 'interface'", at);
    const io::json* list = io::find_field(b, "interface");
    if (list == nullptr) return {};
    const auto entry = [&](const io::json& e) -> result<void> {
      if (!e.is_object()) return io::detail::wrong_type(e, "an object", at / "interface");
      if (io::find_field(e, "chassis") != nullptr && io::find_field(e, "name") != nullptr) {
        add_neighbor(lldp_text(io::find_field(e, "name")), e, to.neighbors);
        return {};
      }
      for (const auto& [name, value] : e.items()) {
        if (value.is_array())
          for (const io::json& one : value) add_neighbor(name, one, to.neighbors);
        else
          add_neighbor(name, value, to.neighbors);
      }
      return {};
    };
    if (!list->is_array()) return entry(*list);
    for (const io::json& e : *list)
      if (auto ok = entry(e); !ok) return ok;
    return {};
  };
  if (!lldp.is_array()) return block(lldp);
  for (const io::json& b : lldp)
    if (auto ok = block(b); !ok) return ok;
  return {};
}

}  // namespace detail

template <class>
result<std::vector<lldp_table>> parse_lldp(std::string_view text, std::string_view file) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  const auto root = io::parse_json(text, file);
  if (!root) return root.error();
  const io::json_place top(file);
  std::vector<lldp_table> tables;
  const auto add = [&](std::string host, const io::json& holder, const io::json_place& at) -> result<void> {
    const io::json* lldp = io::find_field(holder, "lldp");
    if (lldp == nullptr)
      return fail(errc::malformed_input, at.text() + " has no field 'lldp'", "give what lldpctl -f json writes");
    tables.emplace_back();
    tables.back().host = std::move(host);
    const io::json_place inside = at / "lldp";
    return detail::add_table(*lldp, inside, tables.back());
  };
  result<void> ok;
  if (root->is_array()) {
    for (std::size_t i = 0; ok && i < root->size(); ++i) {
      const io::json& entry = (*root)[i];
      const io::json_place at = top / i;
      std::string host = detail::lldp_text(io::find_field(entry, "host"));
      if (host.empty()) host = detail::lldp_text(io::find_field(entry, "hostname"));
      ok = add(std::move(host), entry, at);
    }
  } else if (io::find_field(*root, "lldp") != nullptr || !root->is_object() || root->empty()) {
    ok = add({}, *root, top);
  } else {
    for (const auto& [host, entry] : root->items()) {
      const io::json_place at = top / host;
      ok = add(host, entry, at);
      if (!ok) break;
    }
  }
  if (!ok) return std::move(ok).error();
  return tables;
}

}}}  // namespace topocoll::v0::read
