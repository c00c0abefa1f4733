// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of fragments in which the same device has the same key everywhere: what topo/merge.hpp works on.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// Name of the fact that marks a node as standing in for devices of its host that the source does not know.
inline constexpr const char* stand_in_fact = "stand_in";
/// Facts that name one device in the whole world, whoever looks.
inline constexpr const char* identity_facts[] = {"uuid", "node_guid", "port_guid"};
template <class = void>
[[nodiscard]] bool is_identity(std::string_view fact) {
  return fact == identity_facts[0] || fact == identity_facts[1] || fact == identity_facts[2];
}

/// The value of a fact, or null. Linear: facts are few.
template <class = void>
[[nodiscard]] const std::string* fact_of(const node& n, std::string_view name) {
  for (const auto& fact : n.facts)
    if (fact.first == name) return &fact.second;
  return nullptr;
}
template <class = void>
[[nodiscard]] bool is_stand_in(const node& n) {
  return fact_of(n, stand_in_fact) != nullptr;
}
/// What follows "<host>/" in a key; the key itself for things outside hosts.
template <class = void>
[[nodiscard]] std::string_view place_of(const node& n) {
  const std::string_view key = n.key;
  const std::size_t host = n.host.size();
  return host != 0 && key.size() > host && key[host] == '/' && key.substr(0, host) == n.host ? key.substr(host + 1)
                                                                                             : key;
}
template <class = void>
[[nodiscard]] bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}
/// "mlx5_0" of "net:mlx5_0/1" or "nic:mlx5_0"; empty for other places, and for names that are numbers or addresses.
template <class = void>
[[nodiscard]] std::string_view name_in_place(std::string_view place) {
  if (place.substr(0, 4) != "net:" && place.substr(0, 4) != "nic:") return {};
  std::string_view name = place.substr(4);
  name = name.substr(0, name.rfind('/'));
  const bool number = all_digits(name) || name.substr(0, 2) == "0x" || name.substr(0, 1) == "?";
  return number || name.find(':') != std::string_view::npos ? std::string_view() : name;
}
/// How well a key names its device: 0 by PCI address, 1 by name, 2 by a number or a GUID, 3 as a stand-in.
template <class = void>
[[nodiscard]] std::uint32_t key_rank(const node& n) {
  if (is_stand_in(n)) return 3;
  const std::string_view place = place_of(n);
  if (place.substr(0, 4) == "pci:") return 0;
  if (place.substr(0, 4) == "gpu:" || place.substr(0, 5) == "port:") return 2;
  if (place.substr(0, 4) == "net:" || place.substr(0, 4) == "nic:") return name_in_place(place).empty() ? 2 : 1;
  return 1;
}
/// As people count: "mlx5_2" before "mlx5_10".
template <class = void>
[[nodiscard]] bool counted_before(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (!digit(a[i]) || !digit(b[k])) {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i, ++k;
      continue;
    }
    const auto number = [&](std::string_view text, std::size_t& at) {
      while (at + 1 < text.size() && text[at] == '0' && digit(text[at + 1])) ++at;
      const std::size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = number(a, i), y = number(b, k);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() - i != b.size() - k ? a.size() - i < b.size() - k : a < b;
}

/// A node by an identity of its own.
struct identity {
  std::uint32_t fact;        ///< position in `identity_facts`
  const std::string* value;  ///< in the node
  std::uint32_t node;        ///< number over all parts
};

/// Copies of the fragments, in canonical order. Nodes and links are numbered over all of them.
struct copied_parts {
  static constexpr std::uint32_t gone = UINT32_MAX;

  std::vector<const fragment*> originals;
  std::vector<fragment> parts;
  std::vector<finding> findings;
  std::vector<std::uint32_t> first, first_link;  ///< of each part; the last is the number of all
  std::vector<std::uint32_t> part_of;            ///< of each node
  std::vector<std::uint32_t> into;               ///< of each node: itself, the one that it became a part of, or gone
  std::vector<std::uint32_t> link_gone;          ///< of each link: 1 when it goes
  std::vector<std::uint32_t> local;              ///< of each node: 1 when its part saw its host from the inside
  std::vector<identity> identities;              ///< sorted by fact, value and node; each value once in a part

  [[nodiscard]] std::uint32_t size() const { return first.back(); }
  [[nodiscard]] node& at(std::uint32_t g) { return parts[part_of[g]].nodes[g - first[part_of[g]]]; }
  [[nodiscard]] const node& at(std::uint32_t g) const { return parts[part_of[g]].nodes[g - first[part_of[g]]]; }
  [[nodiscard]] const std::string& original_key(std::uint32_t g) const {
    return originals[part_of[g]]->nodes[g - first[part_of[g]]].key;
  }
  [[nodiscard]] const std::string& source_of(std::uint32_t g) const { return parts[part_of[g]].source; }
  [[nodiscard]] std::uint32_t number(std::uint32_t part, node_id v) const { return first[part] + v.value; }
  void tell(severity level, std::string where, std::string what, std::string evidence, std::string next = {}) {
    findings.push_back({level, std::move(where), std::move(what), std::move(evidence), std::move(next), 1});
  }
};

/// Numbers everything. Precondition: all links lead to nodes that are there.
template <class = void>
[[nodiscard]] copied_parts copies_of(const std::vector<const fragment*>& originals) {
  copied_parts c;
  c.originals = originals;
  for (const fragment* f : originals) {
    c.parts.push_back(*f);
    c.first.push_back(static_cast<std::uint32_t>(c.part_of.size()));
    c.first_link.push_back(static_cast<std::uint32_t>(c.link_gone.size()));
    c.part_of.resize(c.part_of.size() + f->nodes.size(), static_cast<std::uint32_t>(c.parts.size() - 1));
    c.link_gone.resize(c.link_gone.size() + f->links.size());
  }
  c.first.push_back(static_cast<std::uint32_t>(c.part_of.size()));
  c.first_link.push_back(static_cast<std::uint32_t>(c.link_gone.size()));
  c.local.resize(c.part_of.size());
  for (std::uint32_t g = 0; g < c.part_of.size(); ++g) c.into.push_back(g);
  return c;
}

/// Collects what names devices everywhere. What a source gives to two devices names none.
template <class = void>
void collect_identities(copied_parts& c) {
  std::vector<identity> all;
  for (std::uint32_t g = 0; g < c.size(); ++g)
    for (const auto& [name, value] : c.at(g).facts)
      for (std::uint32_t f = 0; f < 3; ++f) {
        const node_kind kind = c.at(g).kind;
        const bool meant = f == 0   ? kind == node_kind::gpu
                           : f == 2 ? kind == node_kind::nic_port
                                    : kind == node_kind::nic;
        if (!meant || name != identity_facts[f]) continue;
        const bool zero = value.find_first_not_of("0x") == std::string::npos;
        if (!zero) all.push_back({f, &value, g});
      }
  seq::sort(all, [](const identity& a, const identity& b) {
    if (a.fact != b.fact) return a.fact < b.fact;
    if (*a.value != *b.value) return *a.value < *b.value;
    return a.node < b.node;
  });
  struct doubled {
    std::uint32_t count = 0, node = 0, other = 0, fact = 0;
  };
  std::vector<doubled> twice(c.parts.size() * 3);
  const auto same = [&](std::size_t i, std::size_t k) {
    return k < all.size() && all[i].fact == all[k].fact && c.part_of[all[i].node] == c.part_of[all[k].node] &&
           *all[i].value == *all[k].value;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t last = i + 1;
    while (same(i, last)) ++last;
    if (last == i + 1) {
      c.identities.push_back(all[i]);
      continue;
    }
    doubled& d = twice[c.part_of[all[i].node] * 3 + all[i].fact];
    if (d.count++ == 0) d = {1, all[i].node, all[i + 1].node, all[i].fact};
    i = last - 1;
  }
  for (const doubled& d : twice)
    if (d.count > 0)
      c.tell(severity::note, c.source_of(d.node),
             std::string("a ") + identity_facts[d.fact] + " is that of several devices, so it names none",
             "'" + c.at(d.node).key + "' and '" + c.at(d.other).key + "'" +
                 (d.count > 1 ? ", and " + std::to_string(d.count - 1) + " more" : std::string()));
}

/// Makes `gone` one with `stays`, another node of the same part: what is not known of it is taken over. An adapter has one
/// PCIe link; that of the node that stays counts.
template <class = void>
void fold(copied_parts& c, std::uint32_t gone, std::uint32_t stays) {
  const node& from = c.at(gone);
  node& to = c.at(stays);
  for (const auto& fact : from.facts)
    if (fact_of(to, fact.first) == nullptr && fact.first != stand_in_fact) to.facts.push_back(fact);
  seq::sort(to.facts);
  c.into[gone] = stays;
}

/// Drops what goes, and follows what became one.
template <class = void>
void settle(copied_parts& c) {
  for (std::uint32_t p = 0; p < c.parts.size(); ++p) {
    fragment& f = c.parts[p];
    bool changed = false;
    for (std::uint32_t g = c.first[p]; g < c.first[p + 1] && !changed; ++g) changed = c.into[g] != g;
    for (std::uint32_t e = c.first_link[p]; e < c.first_link[p + 1] && !changed; ++e) changed = c.link_gone[e] != 0;
    if (!changed) continue;
    const auto end_of = [&](node_id v) {
      std::uint32_t g = c.number(p, v);
      while (g != copied_parts::gone && c.into[g] != g) g = c.into[g];
      return g;
    };
    std::vector<std::uint32_t> place(f.nodes.size());
    std::vector<node> nodes;
    for (std::uint32_t v = 0; v < f.nodes.size(); ++v) {
      place[v] = static_cast<std::uint32_t>(nodes.size());
      if (c.into[c.first[p] + v] == c.first[p] + v) nodes.push_back(std::move(f.nodes[v]));
    }
    std::vector<link> links;
    for (std::uint32_t e = 0; e < f.links.size(); ++e) {
      link& l = f.links[e];
      const std::uint32_t from = end_of(l.from), to = end_of(l.to);
      const bool folded = from != c.number(p, l.from) || to != c.number(p, l.to);
      if (c.link_gone[c.first_link[p] + e] != 0 || from == copied_parts::gone || to == copied_parts::gone ||
          from == to || (folded && l.kind == link_kind::pcie))
        continue;
      l.from = {place[from - c.first[p]]};
      l.to = {place[to - c.first[p]]};
      links.push_back(std::move(l));
    }
    f.nodes = std::move(nodes);
    f.links = std::move(links);
  }
}

}}}}  // namespace topocoll::v0::topo::detail
