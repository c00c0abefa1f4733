// SPDX-License-Identifier: Apache-2.0
#pragma once
// The topology graph of NVIDIA NetQ as a topology source: switches with their tiers, hosts, and cables. Needs nlohmann-json.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// True for JSON in which nodes are grouped in tiers ("compounded_nodes") and cables in bundles ("compounded_links").
[[nodiscard]] inline bool looks_like_netq(std::string_view text) {
  return text.find("\"compounded_nodes\"") != std::string_view::npos &&
         text.find("\"compounded_links\"") != std::string_view::npos;
}

/// Reads a topology graph of NetQ: an array of objects with "nodes" and "links".
///
/// A device of type "switch" is a leaf in tier 1, a spine in tier 2, a core switch above; any other device is a host, with a
/// nic and a nic_port for each interface that has a cable. Each of the "compounded_links" is a cable of its own. NetQ tells
/// no rates here, so they are assumed, and told.
/// @param file  name for failures and findings
/// @return `malformed_input` with the place for JSON that is none of this, or in which a cable ends at an unknown device.
///         Cost: O(n log n).
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of_netq(std::string_view text, const std::string& file);

/// A file with a topology graph of NetQ: `discover({}, netq_file{"topology.json"})`.
struct netq_file {
  std::string path;

  [[nodiscard]] static std::string_view name() { return "netq"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options&) const {
    const auto text = io::read_file(path);
    if (!text) return text.error();
    return fragment_of_netq(*text, path);
  }
};
static_assert(TopologySource<netq_file>);

namespace detail {

template <class = void>
class netq_reader {
 public:
  explicit netq_reader(const std::string& file) : file_(file) { out_.source = file; }

  [[nodiscard]] result<topo::fragment> read(const io::json& document) {
    if (!document.is_array()) return bad("the document is no array");
    for (const io::json& part : document) {
      if (!part.is_object() || !part.contains("nodes") || !part.contains("links") || !part["nodes"].is_array() ||
          !part["links"].is_array())
        return bad("a part has no arrays \"nodes\" and \"links\"");
      for (const io::json& tier : part["nodes"])
        for (const io::json& told : list(tier, "compounded_nodes"))
          if (auto ok = add_device(told); !ok) return ok.error();
    }
    if (devices_.empty()) return bad("there is no device in it");
    seq::sort(devices_, [](const device& a, const device& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < devices_.size(); ++i)
      if (devices_[i].id == devices_[i - 1].id) return bad("the device \"" + devices_[i].id + "\" is there twice");
    for (const io::json& part : document)
      for (const io::json& bundle : part["links"])
        for (const io::json& told : list(bundle, "compounded_links"))
          if (auto ok = note_cable(told); !ok) return ok.error();
    add_interfaces();
    for (const cable& c : cables_) add_cable(c);
    make_keys_unique(out_, {}, tally_);
    if (!cables_.empty())
      out_.findings.push_back({severity::note, file_, "NetQ tells no rates of cables; each is taken as 10 Gbit/s",
                               std::to_string(cables_.size()) + " cables", "name the rates in a cluster file", 1});
    tally_.report(file_, out_.findings);
    return std::move(out_);
  }

 private:
  struct device {
    std::string id, name;
    bool is_switch = false;
    node_id node{};  ///< of a switch
  };
  struct host_interface {
    node_id port;
    std::size_t device;  ///< position in devices_
    std::string name;
  };
  struct cable {
    std::size_t device[2];
    std::string name[2];
  };

  [[nodiscard]] failure bad(const std::string& what) const {
    return fail(errc::malformed_input, file_ + ": no topology graph of NetQ: " + what);
  }
  [[nodiscard]] static std::string text(const io::json& object, const char* field) {
    if (!object.is_object() || !object.contains(field) || !object[field].is_string()) return {};
    return object[field].template get<std::string>();
  }
  [[nodiscard]] static const io::json& list(const io::json& object, const char* field) {
    static const io::json nothing = io::json::array();
    return object.is_object() && object.contains(field) && object[field].is_array() ? object[field] : nothing;
  }

  [[nodiscard]] result<void> add_device(const io::json& told) {
    device d;
    d.id = text(told, "id");
    d.name = text(told, "name");
    if (d.id.empty() || d.name.empty()) return bad("a device has no id or no name");
    d.is_switch = text(told, "device_type") == "switch";
    if (d.is_switch) {
      topo::node n;
      n.key = "switch:" + d.name;
      n.name = d.name;
      const std::int64_t tier =
          told.contains("tier") && told["tier"].is_number_integer() ? told["tier"].template get<std::int64_t>() : -1;
      n.kind = tier == 2 ? topo::node_kind::spine : tier > 2 ? topo::node_kind::core_switch : topo::node_kind::leaf;
      if (tier < 1) {
        n.how = trust::assumed;
        n.reason = "NetQ has not classified it; taken as a leaf";
        tally_.add(severity::note, "NetQ tells no tier of a switch; it is taken as a leaf", d.name);
      }
      d.node = out_.add(std::move(n));
    }
    devices_.push_back(std::move(d));
    return {};
  }

  [[nodiscard]] result<void> note_cable(const io::json& told) {
    const io::json& ends = list(told, "interfaces");
    if (ends.size() != 2) return bad("a cable has " + std::to_string(ends.size()) + " ends");
    cable c;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string id = text(ends[i], "node");
      const std::string name = text(ends[i], "interface");
      const auto d = seq::lower_bound_by(devices_, id, &device::id);
      if (d == devices_.end() || d->id != id) return bad("a cable ends at \"" + id + "\", which is no device");
      if (name.empty()) return bad("a cable of \"" + d->name + "\" has no interface there");
      c.device[i] = static_cast<std::size_t>(d - devices_.begin());
      c.name[i] = name;
    }
    cables_.push_back(std::move(c));
    return {};
  }
  /// Ports of hosts, one for each interface that has a cable. NetQ does not tell which of them share an adapter.
  void add_interfaces() {
    for (const cable& c : cables_)
      for (std::size_t i = 0; i < 2; ++i)
        if (!devices_[c.device[i]].is_switch) interfaces_.push_back({{}, c.device[i], c.name[i]});
    seq::sort(interfaces_, before);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < interfaces_.size(); ++i) {
      if (kept > 0 && !before(interfaces_[kept - 1], interfaces_[i])) continue;
      if (kept != i) interfaces_[kept] = std::move(interfaces_[i]);
      add_interface(interfaces_[kept++]);
    }
    interfaces_.erase(interfaces_.begin() + static_cast<std::ptrdiff_t>(kept), interfaces_.end());
  }
  [[nodiscard]] static bool before(const host_interface& a, const host_interface& b) {
    return a.device != b.device ? a.device < b.device : a.name < b.name;
  }
  void add_interface(host_interface& i) {
    topo::node nic;
    nic.kind = topo::node_kind::nic;
    nic.host = devices_[i.device].name;
    nic.key = nic.host + "/nic:" + i.name;
    nic.name = i.name;
    topo::node port = nic;
    port.kind = topo::node_kind::nic_port;
    port.key = port.host + "/net:" + i.name + "/0";
    topo::link l = unknown_rate();
    l.from = out_.add(std::move(nic));
    l.to = i.port = out_.add(std::move(port));
    l.kind = topo::link_kind::internal;
    out_.join(l);
  }
  [[nodiscard]] node_id node_of(const cable& c, std::size_t i) const {
    if (devices_[c.device[i]].is_switch) return devices_[c.device[i]].node;
    const host_interface wanted{{}, c.device[i], c.name[i]};
    return std::lower_bound(interfaces_.begin(), interfaces_.end(), wanted, before)->port;
  }
  void add_cable(const cable& c) {
    topo::link l = unknown_rate();
    l.from = node_of(c, 0);
    l.to = node_of(c, 1);
    l.kind = topo::link_kind::ethernet;
    if (l.from == l.to)
      tally_.add(severity::warning, "cables leave and enter the same device; they join nothing",
                 devices_[c.device[0]].name + " " + c.name[0] + " - " + c.name[1]);
    else
      out_.join(l);
  }
  [[nodiscard]] static topo::link unknown_rate() {
    topo::link l;
    l.capacity = unknown_port_rate;
    l.how = trust::assumed;
    l.reason = "NetQ tells no rate; taken as 10 Gbit/s";
    return l;
  }
  const std::string& file_;
  topo::fragment out_;
  std::vector<device> devices_;
  std::vector<host_interface> interfaces_;
  std::vector<cable> cables_;
  tally tally_;
};

}  // namespace detail

template <class>
result<topo::fragment> fragment_of_netq(std::string_view text, const std::string& file) {
  const auto document = io::parse_json(text, file);
  if (!document) return document.error();
  return detail::netq_reader<>(file).read(*document);
}

}}  // namespace topocoll::v0
