// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys of fabric descriptions: one table for reading, writing and explaining them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/detail/spec_values.hpp>
#include <topocoll/discover/generate/faults.hpp>
#include <topocoll/discover/generate/options.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// "node3/nic2", "leaf1/spine0", "spine2", …
template <class = void>
result<fabric_part> read_part(std::string_view text) {
  using kind = fabric_part::kind_t;
  struct form {
    std::string_view first, second;
    kind what;
  };
  constexpr form forms[] = {{"node", "", kind::host},
                            {"node", "gpu", kind::gpu},
                            {"node", "nic", kind::nic},
                            {"leaf", "", kind::leaf},
                            {"leaf", "spine", kind::leaf_uplink},
                            {"spine", "", kind::spine},
                            {"spine", "core", kind::spine_uplink},
                            {"core", "", kind::core}};
  const std::size_t slash = text.find('/');
  const std::string_view left = text.substr(0, slash);
  const std::string_view right = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  for (const form& f : forms) {
    if (!left.starts_with(f.first) || !right.starts_with(f.second) ||
        f.second.empty() != (slash == std::string_view::npos))
      continue;
    const auto a = read_number(left.substr(f.first.size()));
    const auto b = f.second.empty() ? result<std::uint64_t>(0U) : read_number(right.substr(f.second.size()));
    if (a && b) return fabric_part{f.what, static_cast<std::uint32_t>(*a), static_cast<std::uint32_t>(*b)};
  }
  return bad_value(text, "a part: node3, node3/gpu5, node3/nic2, leaf1, leaf1/spine0, spine0, spine0/core1 or core0");
}

/// Reads parts joined by '+' into faults of one kind; those that need a figure have it behind a colon.
template <class = void>
result<void> read_faults(fabric_options& o, std::string_view value, planted_fault::kind_t kind) {
  for (;;) {
    const std::size_t plus = value.find('+');
    const std::string_view one = value.substr(0, plus);
    const bool figure = kind == planted_fault::kind_t::slow || kind == planted_fault::kind_t::nvlinks_down;
    const std::size_t colon = figure ? one.find(':') : std::string_view::npos;
    if (figure && colon == std::string_view::npos)
      return bad_value(one, kind == planted_fault::kind_t::slow ? "a part and its share of speed, as in node3/nic2:0.5"
                                                                : "a GPU and its lost links, as in node3/gpu5:9");
    const auto part = read_part(one.substr(0, colon));
    if (!part) return part.error();
    planted_fault fault;
    fault.kind = kind;
    fault.part = *part;
    if (kind == planted_fault::kind_t::slow) {
      const auto share = read_ratio(one.substr(colon + 1));
      if (!share) return share.error();
      fault.share = *share;
    } else if (figure) {
      if (auto ok = read_count(one.substr(colon + 1), fault.links); !ok) return ok.error();
    }
    o.faults.push_back(fault);
    if (plus == std::string_view::npos) return {};
    value.remove_prefix(plus + 1);
  }
}

template <class = void>
std::string fault_spec(const planted_fault& f) {
  const std::string part = to_string(f.part);
  switch (f.kind) {
    case planted_fault::kind_t::missing: return "missing=" + part;
    case planted_fault::kind_t::unplugged: return "unplugged=" + part;
    case planted_fault::kind_t::slow: return "slow=" + part + ':' + ratio_text(f.share);
    case planted_fault::kind_t::nvlinks_down: return "nvlinks_down=" + part + ':' + std::to_string(f.links);
  }
  return {};
}

/// One key: how its value is read, how it is written (empty when it says what `base` says), what it means.
struct spec_key {
  std::string_view name;
  result<void> (*read)(fabric_options& into, std::string_view value);
  std::string (*write)(const fabric_options& o, const fabric_options& base);
  std::string_view meaning;
  bool repeats = false;  ///< may be given more than once; such keys plant faults
};

template <class = void>
std::string unless_equal(std::uint32_t n, std::uint32_t base) {
  return n == base ? std::string() : std::to_string(n);
}
template <class = void>
std::string unless_empty(std::optional<std::uint32_t> n) {
  return n ? std::to_string(*n) : std::string();
}

// Keys of plain members of fabric_options and host_model read and write alike.
template <std::uint32_t fabric_options::*member>
inline constexpr spec_key count_key(std::string_view name, std::string_view meaning) {
  return {name, [](fabric_options& o, std::string_view v) { return read_count(v, o.*member); },
          [](const fabric_options& o, const fabric_options& base) { return unless_equal(o.*member, base.*member); },
          meaning};
}
template <std::optional<std::uint32_t> fabric_options::*member>
inline constexpr spec_key optional_key(std::string_view name, std::string_view meaning) {
  return {name, [](fabric_options& o, std::string_view v) { return read_count(v, o.*member); },
          [](const fabric_options& o, const fabric_options&) { return unless_empty(o.*member); }, meaning};
}
template <rational fabric_options::*member>
inline constexpr spec_key ratio_key(std::string_view name, std::string_view meaning) {
  return {name,
          [](fabric_options& o, std::string_view v) -> result<void> {
            const auto ratio = read_ratio(v);
            if (!ratio) return ratio.error();
            o.*member = *ratio;
            return {};
          },
          [](const fabric_options& o, const fabric_options& base) {
            return o.*member == base.*member ? std::string() : ratio_text(o.*member);
          },
          meaning};
}
template <std::uint32_t host_model::*member>
inline constexpr spec_key host_key(std::string_view name, std::string_view meaning) {
  return {name, [](fabric_options& o, std::string_view v) { return read_count(v, o.host.*member); },
          [](const fabric_options& o, const fabric_options& base) {
            return unless_equal(o.host.*member, base.host.*member);
          },
          meaning};
}
template <bytes_per_second host_model::*member>
inline constexpr spec_key rate_key(std::string_view name, std::string_view meaning) {
  return {name, [](fabric_options& o, std::string_view v) { return read_rate(v, o.host.*member); },
          [](const fabric_options& o, const fabric_options& base) {
            return o.host.*member == base.host.*member ? std::string() : rate_spec(o.host.*member, "GB/s", 1e9);
          },
          meaning};
}
template <planted_fault::kind_t kind>
inline constexpr spec_key fault_key(std::string_view name, std::string_view meaning) {
  return {name, [](fabric_options& o, std::string_view v) { return read_faults(o, v, kind); },
          [](const fabric_options&, const fabric_options&) { return std::string(); }, meaning, true};
}

inline constexpr std::string_view order_words[] = {"packed", "scattered", "round_robin", "shuffled"};

template <class = void>
result<void> read_nodes(fabric_options& o, std::string_view value) {
  o.split.clear();
  o.nodes = 0;
  const bool listed = value.find('+') != std::string_view::npos;
  for (;;) {
    const std::size_t plus = value.find('+');
    const auto n = read_number(value.substr(0, plus));
    if (!n) return n.error();
    if (*n + o.nodes > 0xffffffffU) return bad_value(value, "a number of hosts that can be generated");
    o.nodes += static_cast<std::uint32_t>(*n);
    if (listed) o.split.push_back(static_cast<std::uint32_t>(*n));
    if (plus == std::string_view::npos) return {};
    value.remove_prefix(plus + 1);
  }
}

template <class = void>
std::string write_nodes(const fabric_options& o, const fabric_options& base) {
  if (o.split.size() < 2) return unless_equal(o.nodes, base.nodes);
  std::string text;
  for (const std::uint32_t n : o.split) text += (text.empty() ? "" : "+") + std::to_string(n);
  return text;
}

template <class = void>
result<void> read_order(fabric_options& o, std::string_view value) {
  const std::size_t colon = value.find(':');
  rank_order order;
  bool known = false;
  for (std::size_t k = 0; k < std::size(order_words); ++k)
    if (value.substr(0, colon) == order_words[k]) {
      order.kind = static_cast<rank_order::kind_t>(k);
      known = true;
    }
  if (!known || (order.kind == rank_order::kind_t::shuffled) != (colon != std::string_view::npos))
    return bad_value(value, "an order of ranks: packed, scattered, round_robin or, with a seed, shuffled:7");
  if (colon != std::string_view::npos) {
    const auto seed = read_number(value.substr(colon + 1), UINT64_MAX);
    if (!seed) return seed.error();
    order.seed = *seed;
  }
  o.order = order;
  return {};
}

template <class = void>
std::string write_order(const fabric_options& o, const fabric_options&) {
  if (!o.order) return {};
  std::string text(order_words[static_cast<std::size_t>(o.order->kind)]);
  if (o.order->kind == rank_order::kind_t::shuffled) text += ':' + std::to_string(o.order->seed);
  return text;
}

template <class = void>
result<void> read_rails(fabric_options& o, std::string_view value) {
  if (value != "yes" && value != "no") return bad_value(value, "yes or no");
  o.rail_optimised = value == "yes";
  return {};
}

template <class = void>
result<void> read_network(fabric_options& o, std::string_view value) {
  if (value != "infiniband" && value != "ethernet") return bad_value(value, "infiniband or ethernet");
  o.network = value == "infiniband" ? topo::link_kind::infiniband : topo::link_kind::ethernet;
  return {};
}

template <class = void>
result<void> read_detail(fabric_options& o, std::string_view value) {
  if (value != "full" && value != "fabric") return bad_value(value, "full or fabric");
  o.detail = value == "full" ? host_detail::full : host_detail::fabric;
  return {};
}

template <class = void>
std::string write_detail(const fabric_options& o, const fabric_options&) {
  return o.detail == host_detail::automatic ? "" : (o.detail == host_detail::full ? "full" : "fabric");
}

template <class = void>
result<void> read_nvlinks(fabric_options& o, std::string_view value) {
  if (!o.host.mesh.empty())
    return fail(errc::invalid_argument,
                "nvlinks counts links into an NVSwitch plane, and " + std::string(o.host.name) + " wires GPU to GPU");
  return read_count(value, o.host.nvlinks);
}

template <class = void>
result<void> draw_faults(fabric_options& o, std::string_view value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos) return bad_value(value, "a number of faults and a seed, as in 3:7");
  const auto count = read_number(value.substr(0, colon), most_drawn_faults);
  const auto seed = read_number(value.substr(colon + 1), UINT64_MAX);
  if (!count) return count.error();
  if (!seed) return seed.error();
  auto drawn = with_faults(o, static_cast<std::uint32_t>(*count), *seed);
  if (!drawn) return drawn.error();
  o = std::move(*drawn);
  return {};
}

/// Every key, in the order in which `to_spec` writes them.
inline constexpr std::array<spec_key, 31> spec_keys{{
    {"nodes", read_nodes, write_nodes, "hosts; 7+8 gives those of each pod (or leaf, with rails=no)"},
    optional_key<&fabric_options::leaves>("leaves", "leaf switches in all; 0 for hosts without a network"),
    optional_key<&fabric_options::pods>("pods", "groups of hosts; each has one leaf per rail if rail-optimised"),
    optional_key<&fabric_options::spines>("spines", "spine switches in all"),
    count_key<&fabric_options::cores>("cores", "core switches, which join the spines of pods; none by default"),
    {"rails", read_rails,
     [](const fabric_options& o, const fabric_options&) -> std::string {
       return o.rail_optimised ? (*o.rail_optimised ? "yes" : "no") : "";
     },
     "yes: a leaf serves one NIC of every host of its pod; no: it serves all NICs of its hosts"},
    ratio_key<&fabric_options::oversubscription>("oversubscription", "of leaves: 2, 1.5 or 3:2"),
    ratio_key<&fabric_options::core_oversubscription>("core_oversubscription", "of spines, towards core switches"),
    {"network", read_network,
     [](const fabric_options& o, const fabric_options& base) -> std::string {
       return o.network == base.network ? "" : to_string(o.network);
     },
     "infiniband or ethernet"},
    host_key<&host_model::gpus>("gpus", "GPUs per host"),
    {"nvlinks", read_nvlinks,
     [](const fabric_options& o, const fabric_options& base) {
       return unless_equal(o.host.nvlinks, base.host.nvlinks);
     },
     "NVLinks per GPU into its NVSwitch plane"},
    rate_key<&host_model::nvlink_rate>("nvlink_rate", "of one NVLink, one direction: 25GB/s"),
    host_key<&host_model::nvlink_generation>("nvlink_generation", "a fact that the links carry"),
    host_key<&host_model::domain_hosts>("domain_hosts", "hosts that share one NVSwitch plane"),
    host_key<&host_model::sm>("sm", "compute capability times ten, a fact that the GPUs carry"),
    host_key<&host_model::pcie_generation>("pcie_generation", "1 to 7"),
    host_key<&host_model::pcie_lanes>("pcie_lanes", "of every PCIe link: 16"),
    host_key<&host_model::gpus_per_switch>("gpus_per_switch", "GPUs under each PCIe switch; 0 for none"),
    rate_key<&host_model::c2c_rate>("c2c_rate", "chip-to-chip link of each GPU to its CPU, in place of PCIe"),
    host_key<&host_model::sockets>("sockets", "CPU sockets, each one NUMA domain"),
    rate_key<&host_model::socket_rate>("socket_rate", "what peer traffic between two sockets reaches"),
    rate_key<&host_model::memory_rate>("memory_rate", "of one socket"),
    host_key<&host_model::nics>("nics", "NICs per host, which is the number of rails"),
    {"nic_rate", [](fabric_options& o, std::string_view v) { return read_rate(v, o.host.nic_rate); },
     [](const fabric_options& o, const fabric_options& base) {
       return o.host.nic_rate == base.host.nic_rate ? std::string() : rate_spec(o.host.nic_rate, "Gb/s", 1.25e8);
     },
     "of one NIC: 400Gb/s"},
    {"detail", read_detail, write_detail,
     "full: with NUMA, memory and PCIe; fabric: GPUs, NVLink, NICs and switches only"},
    {"order", read_order, write_order, "gives ranks to GPUs: packed, scattered, round_robin or shuffled:SEED"},
    fault_key<planted_fault::kind_t::missing>("missing",
                                              "what is not there: node3/nic2, node3/gpu5, leaf1/spine0, spine0, …"),
    fault_key<planted_fault::kind_t::unplugged>("unplugged", "NICs without a cable: node3/nic2"),
    fault_key<planted_fault::kind_t::slow>("slow", "share of speed: node3/nic2:0.5, node3/gpu5:0.5, leaf1/spine0:0.25"),
    fault_key<planted_fault::kind_t::nvlinks_down>("nvlinks_down", "lost NVLinks of a GPU: node3/gpu5:9"),
    {"faults", draw_faults, [](const fabric_options&, const fabric_options&) { return std::string(); },
     "number and seed of faults that are drawn for the keys before it: 3:7", true},
}};

}}}  // namespace topocoll::v0::detail
