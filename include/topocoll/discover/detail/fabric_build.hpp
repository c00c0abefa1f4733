// SPDX-License-Identifier: Apache-2.0
#pragma once
// Switches, cables and hosts of fabrics that are known from lists: what stands in for devices that nobody has seen yet.
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
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Name of the fact that marks a node as standing in for devices of its host that the source does not know. Whoever knows
/// the real ones replaces it: cables of the n-th stand-in port belong to the n-th real port that has no cable.
inline constexpr const char* stand_in_fact = "stand_in";

/// leaf, spine, core switch by tier; tiers above the third are core switches too.
[[nodiscard]] constexpr topo::node_kind switch_kind(std::uint32_t tier) {
  return tier == 0 ? topo::node_kind::leaf : tier == 1 ? topo::node_kind::spine : topo::node_kind::core_switch;
}

/// A rate written by people: with a unit, or "400G" for 400 Gb/s. Empty for a bare number, which says no unit.
[[nodiscard]] inline std::optional<bytes_per_second> written_rate(std::string_view text) {
  if (const auto rate = parse_rate(text); rate && rate->value > 0) return *rate;
  if (!text.empty() && (text.back() == 'G' || text.back() == 'g'))
    if (const auto rate = parse_rate(std::string(text.substr(0, text.size() - 1)) + "Gb/s"); rate && rate->value > 0)
      return *rate;
  return std::nullopt;
}

/// A cable with one figure; trust and reason say where it comes from.
[[nodiscard]] inline topo::link cable(node_id a, node_id b, topo::link_kind kind, bytes_per_second rate, trust how,
                                      std::string reason) {
  topo::link l;
  l.from = a;
  l.to = b;
  l.kind = kind;
  l.capacity = rate;
  if (how < trust::assumed) l.nominal = rate;
  l.how = how;
  l.reason = std::move(reason);
  return l;
}

/// A switch known by name.
[[nodiscard]] inline topo::node named_switch(const std::string& name, std::uint32_t tier) {
  topo::node n;
  n.kind = switch_kind(tier);
  n.key = "switch:" + name;
  n.name = name;
  return n;
}

/// Hosts that are only names: gives each the stand-ins that links need.
class host_stands {
 public:
  explicit host_stands(topo::fragment& f) : f_(f) {}

  /// Port `number` (from 1) of an adapter of its own in `host`, which may be empty for ports known by GUID alone.
  /// @param guid  "0x" and 16 digits, or empty
  node_id add_port(const std::string& host, std::uint32_t number, const std::string& guid, const std::string& file) {
    const std::string place = host.empty() ? guid : "?/" + std::to_string(number);
    topo::node nic;
    nic.kind = topo::node_kind::nic;
    nic.key = (host.empty() ? std::string() : host + "/") + "nic:" + place;
    nic.name = host.empty() ? "NIC of " + guid : "NIC " + std::to_string(number - 1);
    nic.host = host;
    if (!host.empty()) nic.index = number - 1;
    nic.how = trust::assumed;
    nic.reason = file + " tells no adapters; each connection is taken as one";
    nic.facts.emplace_back(stand_in_fact, "nic");
    topo::node port = nic;
    port.kind = topo::node_kind::nic_port;
    port.key = (host.empty() ? std::string() : host + "/") + (host.empty() ? "port:" : "net:") + place;
    port.name = guid.empty() ? "port " + std::to_string(number - 1) : guid;
    if (!guid.empty()) {
      port.how = trust::reported;
      port.reason.clear();
      port.facts.emplace_back("port_guid", guid);
    } else {
      port.facts[0].second = "nic_port";
    }
    if (!guid.empty()) port.facts.erase(port.facts.begin());
    const node_id a = f_.add(std::move(nic));
    const node_id b = f_.add(std::move(port));
    f_.join(cable(a, b, topo::link_kind::internal, unknown_port_rate, trust::assumed,
                  file + " tells no rate; taken as 10 Gbit/s, as NCCL does for a port that tells none"));
    internal_.push_back(f_.links.size() - 1);
    return b;
  }
  /// The link between the adapter and the port that were added last gets the rate of the port's cable.
  void set_rate(const topo::link& like) {
    for (std::size_t e = internal_.back() - 1; e <= internal_.back(); ++e) {
      f_.links[e].capacity = like.capacity;
      f_.links[e].nominal = like.nominal;
      f_.links[e].how = like.how;
      f_.links[e].reason = like.reason;
    }
  }

  /// Something in `host` that NVLink reaches: its GPUs, whatever their number.
  node_id add_gpus(const std::string& host, const std::string& file) {
    topo::node n;
    n.kind = topo::node_kind::pcie_device;
    n.key = host + "/nvlink:?";
    n.name = "GPUs";
    n.host = host;
    n.how = trust::assumed;
    n.reason = file + " tells no GPUs, only that the host belongs to an NVLink domain";
    n.facts.emplace_back(stand_in_fact, "gpu");
    return f_.add(std::move(n));
  }
  /// A host of which nothing else is known.
  node_id add_host(const std::string& host, const std::string& file) {
    topo::node n;
    n.kind = topo::node_kind::pcie_device;
    n.key = host + "/?";
    n.name = host;
    n.host = host;
    n.how = trust::assumed;
    n.reason = file + " tells no devices of the host";
    n.facts.emplace_back(stand_in_fact, "host");
    return f_.add(std::move(n));
  }
  /// The plane that joins the GPUs of an NVLink domain.
  node_id add_domain(const std::string& name) {
    topo::node n;
    n.kind = topo::node_kind::nvswitch;
    n.key = "nvswitch:" + name;
    n.name = name;
    return f_.add(std::move(n));
  }
  void join_domain(node_id gpus, node_id domain, const std::string& file) {
    topo::link l =
        cable(gpus, domain, topo::link_kind::nvlink, nvlink_rate(std::nullopt).payload, trust::assumed,
              file + " tells neither GPUs nor links; taken as one NVLink of the slowest kind that NVSwitch joins");
    f_.join(l);
  }

 private:
  topo::fragment& f_;
  std::vector<std::size_t> internal_;
};

/// Names in a file can look like keys of other nodes, or name one port twice: both are kept, and told.
inline void settle(topo::fragment& f, const std::string& file) {
  tally told;
  make_keys_unique(f, {}, told);
  told.report(file, f.findings);
}

/// Numbers names, in alphabetical order.
class name_index {
 public:
  explicit name_index(std::vector<const std::string*> all) : all_(std::move(all)) {
    seq::sort(all_, [](const std::string* a, const std::string* b) { return *a < *b; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (i == 0 || *all_[i] != *all_[kept - 1]) all_[kept++] = all_[i];
    all_.resize(kept);
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  /// Precondition: `name` was among them.
  [[nodiscard]] std::size_t operator()(const std::string& name) const {
    return static_cast<std::size_t>(
        seq::lower_bound_by(all_, name, [](const std::string* s) -> const std::string& { return *s; }) - all_.begin());
  }

 private:
  std::vector<const std::string*> all_;
};

}}}  // namespace topocoll::v0::detail
