// SPDX-License-Identifier: Apache-2.0
#pragma once
// How discover/ib_fabric_graph.hpp builds its fragment.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/ib_observations.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/switch_tiers.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/read/detail/ib_cables.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class = void>
class ib_fabric_builder {
 public:
  ib_fabric_builder(const read::ib_fabric& fabric, std::string file) : f_(fabric), devices_(fabric.devices) {
    out_.source = std::move(file);
  }

  [[nodiscard]] result<topo::fragment> run() {
    for (const read::ib_device& d : devices_)
      for (const read::ib_port& p : d.ports)
        if (p.peer &&
            (p.peer->device >= devices_.size() || read::find_port(devices_[p.peer->device], p.peer->port) == nullptr))
          return fail(errc::bug, out_.source + ": " + label_of(d, p.number) + " is cabled to a port that is not there");
    out_.findings = f_.findings;
    nodes_.resize(devices_.size());
    find_aggregation_nodes();
    add_switches();
    add_adapters();
    add_cables();
    check_ports();
    make_keys_unique(out_, lines_, keys_);
    report();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  [[nodiscard]] static bool is_switch(const read::ib_device& d) {
    return d.kind == read::ib_kind::switch_device || d.kind == read::ib_kind::router;
  }
  [[nodiscard]] const read::ib_port& far_port(const read::ib_port& p) const {
    return *read::find_port(devices_[p.peer->device], p.peer->port);
  }

  /// The adapter inside a switch: by its description; by the system image GUID, which it shares with its switch; or, where
  /// neither is told, because it sits on the last port and its GUID lies beside that of the switch, so in the same block
  /// of GUIDs of one box.
  void find_aggregation_nodes() {
    inside_.assign(devices_.size(), none);
    for (std::uint32_t d = 0; d < devices_.size(); ++d) {
      const read::ib_device& a = devices_[d];
      if (is_switch(a)) continue;
      const bool named = read::is_aggregation_node(a.description);
      for (const read::ib_port& p : a.ports) {
        if (!p.peer || !is_switch(devices_[p.peer->device])) continue;
        const read::ib_device& s = devices_[p.peer->device];
        const bool one_box = a.system_image && s.system_image == a.system_image;
        const bool beside = a.description.empty() && !a.system_image && a.guid && s.guid && s.port_count &&
                            p.peer->port == *s.port_count && *a.guid > *s.guid && *a.guid - *s.guid < 256;
        if (named || one_box || beside) inside_[d] = p.peer->device;
      }
      if (named && inside_[d] == none) inside_[d] = d;  // with no cable told
      if (inside_[d] != none) seen_.sharp.add([&] { return label_of(a); });
    }
  }

  void add_switches() {
    switch_wiring wiring;
    std::vector<std::uint32_t> place(devices_.size(), none);
    std::vector<std::uint32_t> switches;
    for (std::uint32_t d = 0; d < devices_.size(); ++d)
      if (is_switch(devices_[d])) {
        place[d] = static_cast<std::uint32_t>(switches.size());
        switches.push_back(d);
      }
    wiring.neighbours.resize(switches.size());
    wiring.host_ports.resize(switches.size());
    for (std::uint32_t i = 0; i < switches.size(); ++i)
      for (const read::ib_port& p : devices_[switches[i]].ports) {
        if (!p.peer || p.peer->device == switches[i]) continue;
        if (place[p.peer->device] != none)
          wiring.neighbours[i].push_back(place[p.peer->device]);
        else if (inside_[p.peer->device] == none)
          ++wiring.host_ports[i];
      }
    const std::vector<switch_tier> tiers = tiers_of(std::move(wiring));

    const std::vector<std::uint32_t> repeated = with_repeated_descriptions(switches);
    for (std::uint32_t i = 0; i < switches.size(); ++i) {
      const read::ib_device& s = devices_[switches[i]];
      const switch_tier& t = tiers[i];
      topo::node n;
      n.kind = t.kind;
      n.how = t.how;
      n.reason = t.reason;
      if (s.kind == read::ib_kind::router) {
        n.kind = topo::node_kind::core_switch;
        n.how = trust::derived;
        n.reason = "a router, which joins subnets";
      } else if (s.how > n.how || (s.how == n.how && n.reason.empty())) {
        n.how = s.how;
        n.reason = s.reason;
      }
      const bool alone = repeated[switches[i]] == 0;
      const read::ib_switch_name name = read::ib_switch_name_of(s.description);
      n.key = "switch:" + identity_of(s);
      n.name = s.description.empty() ? (s.id.empty() ? identity_of(s) : s.id) : std::string(name.system);
      if (!name.place.empty() && name.place != "U1")
        n.name += "/" + std::string(name.place);  // U1: the only unit of a box
      if (!alone && s.guid) n.name += " (" + read::guid_text(*s.guid) + ")";
      if (s.guid) fact(n, "node_guid", read::guid_text(*s.guid));
      if (s.system_image) fact(n, "system_image_guid", read::guid_text(*s.system_image));
      if (s.lid) fact(n, "lid", std::to_string(*s.lid));
      if (s.port_count) fact(n, "ports", std::to_string(*s.port_count));
      fact(n, "description", s.description);
      fact(n, "model", std::string(name.model));
      if (s.kind == read::ib_kind::router) fact(n, "role", "router");
      add(switches[i], std::move(n));
      if (t.holds_hosts_above_leaves) seen_.lifted.add([&] { return label_of(s); });
      if (t.how == trust::assumed && s.kind != read::ib_kind::router) seen_.tierless.add([&] { return label_of(s); });
      if (t.how == trust::derived && t.kind == topo::node_kind::leaf) seen_.empty.add([&] { return label_of(s); });
    }
    for (std::uint32_t d = 0; d < devices_.size(); ++d)
      if (inside_[d] != none && inside_[d] != d) {
        topo::node& n = out_.nodes[nodes_[inside_[d]].value];
        if (devices_[d].guid)
          fact(n, "aggregation_node", read::guid_text(*devices_[d].guid));
        else
          fact(n, "aggregation_node", devices_[d].description);
      }
    for (const std::uint32_t s : switches) seq::sort(out_.nodes[nodes_[s].value].facts);
  }

  /// How many other devices of those listed carry the description of each.
  [[nodiscard]] std::vector<std::uint32_t> with_repeated_descriptions(const std::vector<std::uint32_t>& which) const {
    std::vector<std::uint32_t> order = which;
    seq::sort(order,
              [&](std::uint32_t a, std::uint32_t b) { return devices_[a].description < devices_[b].description; });
    std::vector<std::uint32_t> others(devices_.size());
    for (std::size_t i = 0; i < order.size();) {
      std::size_t last = i;
      while (last < order.size() && devices_[order[last]].description == devices_[order[i]].description) ++last;
      for (std::size_t k = i; k < last; ++k) others[order[k]] = static_cast<std::uint32_t>(last - i - 1);
      i = last;
    }
    return others;
  }

  /// What sets a device apart, best first.
  [[nodiscard]] static std::string identity_of(const read::ib_device& d) {
    if (d.guid) return read::guid_text(*d.guid);
    if (!d.id.empty()) return d.id;
    for (const read::ib_port& p : d.ports)
      if (p.guid) return read::guid_text(*p.guid);
    if (!d.description.empty()) return d.description;
    if (d.lid) return "lid-" + std::to_string(*d.lid);
    for (const read::ib_port& p : d.ports)
      if (p.lid) return "lid-" + std::to_string(*p.lid);
    return "unnamed";
  }

  void add_adapters() {
    std::vector<std::uint32_t> adapters;
    for (std::uint32_t d = 0; d < devices_.size(); ++d)
      if (!is_switch(devices_[d]) && inside_[d] == none) adapters.push_back(d);
    const std::vector<std::uint32_t> repeated = with_repeated_descriptions(adapters);
    for (const std::uint32_t d : adapters) {
      const read::ib_device& a = devices_[d];
      const read::ib_description told = read::ib_description_of(a.description.empty() ? a.id : a.description);
      const std::string identity = identity_of(a);
      topo::node n;
      n.kind = topo::node_kind::nic;
      n.how = a.how;
      n.reason = a.reason;
      // "node7 mlx5_0" twice is two hosts that were given one name, or a name that is none. A host alone may have several.
      const bool shared = repeated[d] > 0 && !told.device.empty();
      if (told.host.empty() || shared) {
        n.host = a.system_image ? read::guid_text(*a.system_image) : identity;
        n.how = trust::assumed;
        n.reason =
            shared ? "its description is that of other adapters too, so it names no host; a GUID stands for the host"
                   : "its description names no host; a GUID stands for the host";
        (shared ? seen_.shared : seen_.hostless).add([&] { return label_of(a); });
      } else {
        n.host = std::string(told.host);
      }
      const std::string device =
          told.host.empty() || shared || told.device.empty() ? identity : std::string(told.device);
      n.name = told.device.empty() ? device : std::string(told.device);
      n.key = n.host + "/net:" + device;
      n.index = told.index;
      fact(n, "description", a.description);
      if (a.guid) fact(n, "node_guid", read::guid_text(*a.guid));
      if (a.port_count) fact(n, "ports", std::to_string(*a.port_count));
      if (a.system_image) fact(n, "system_image_guid", read::guid_text(*a.system_image));
      const std::string host = n.host;
      const std::string name = n.name;
      const node_id nic = add(d, std::move(n));
      for (const read::ib_port& p : a.ports) add_port(d, p, nic, host, name, device);
    }
  }
  void add_port(std::uint32_t d, const read::ib_port& p, node_id nic, const std::string& host, const std::string& name,
                const std::string& device) {
    topo::node n;
    n.kind = topo::node_kind::nic_port;
    n.host = host;
    n.name = p.number == 1 ? name : name + "/" + std::to_string(p.number);
    n.key = host + "/net:" + device + "/" + std::to_string(p.number);
    n.how = out_.nodes[nic.value].how;
    n.reason = out_.nodes[nic.value].reason;
    fact(n, "layer", "InfiniBand");
    if (p.lid) fact(n, "lid", std::to_string(*p.lid));
    fact(n, "physical_state", p.physical);
    if (p.guid) fact(n, "port_guid", read::guid_text(*p.guid));
    if (p.speed != read::ib_speed::unknown && p.state != read::ib_state::down) fact(n, "speed", to_string(p.speed));
    ports_.push_back({{d, p.number}, {static_cast<std::uint32_t>(out_.nodes.size())}});
    lines_.push_back(p.line);
    // Inside the adapter a port is as fast as itself, whatever its cable has trained to with the far end.
    topo::link l = ib_link(p.width, p.speed, 0, read::ib_speed::unknown, p.state);
    l.from = nic;
    l.to = out_.add(std::move(n));
    l.kind = topo::link_kind::internal;
    out_.join(l);
  }

  /// Node that a cable ends at: the switch, or the port of an adapter. `none` inside switches.
  [[nodiscard]] std::uint32_t node_of(read::ib_end e) const {
    if (is_switch(devices_[e.device])) return nodes_[e.device].value;
    const auto at = std::lower_bound(ports_.begin(), ports_.end(), e, [](const port_node& p, const read::ib_end& want) {
      return p.at.device != want.device ? p.at.device < want.device : p.at.port < want.port;
    });
    return at != ports_.end() && at->at == e ? at->node.value : none;
  }

  void add_cables() {
    for (std::uint32_t d = 0; d < devices_.size(); ++d)
      for (const read::ib_port& p : devices_[d].ports) {
        if (!p.peer) continue;
        const read::ib_end here{d, p.number};
        const read::ib_end there = *p.peer;
        if (there.device < here.device || (there.device == here.device && there.port < here.port)) continue;
        const read::ib_port& q = far_port(p);
        const std::uint32_t from = node_of(here);
        const std::uint32_t to = node_of(there);
        if (from == none || to == none) continue;
        if (from == to) {
          seen_.loops.add([&] { return read::detail::cable_text(f_, here, there); });
          continue;
        }
        topo::link l = ib_link(least(p.width, q.width), slower(p.speed, q.speed), least(p.best_width, q.best_width),
                               slower(p.best_speed, q.best_speed), least_state(p.state, q.state));
        l.from = {from};
        l.to = {to};
        l.kind = topo::link_kind::infiniband;
        if ((p.width != q.width || p.speed != q.speed) && l.how == trust::reported) {
          l.how = trust::derived;
          l.reason = "its ends tell different rates; the lesser is taken";
        }
        if (l.current && l.nominal && *l.current < *l.nominal)
          seen_.below_best.add([&] {
            return read::detail::cable_text(f_, here, there) + " (" +
                   read::detail::rate_text(l.lanes, slower(p.speed, q.speed)) + ", could be " +
                   read::detail::rate_text(least(p.best_width, q.best_width), slower(p.best_speed, q.best_speed)) + ")";
          });
        if (l.how == trust::assumed && l.current)
          seen_.inactive.add([&] { return read::detail::cable_text(f_, here, there); });
        else if (l.how == trust::assumed)
          seen_.rateless.add([&] { return read::detail::cable_text(f_, here, there); });
        if (l.capacity.value <= 0) seen_.dead.add([&] { return read::detail::cable_text(f_, here, there); });
        out_.join(l);
      }
  }
  /// The lesser of two numbers of which 0 is none.
  [[nodiscard]] static std::uint32_t least(std::uint32_t a, std::uint32_t b) {
    return a == 0 ? b : b == 0 ? a : std::min(a, b);
  }
  [[nodiscard]] static read::ib_speed slower(read::ib_speed a, read::ib_speed b) {
    return a == read::ib_speed::unknown ? b : b == read::ib_speed::unknown ? a : std::min(a, b);
  }
  [[nodiscard]] static read::ib_state least_state(read::ib_state a, read::ib_state b) {
    return a == read::ib_state::unknown ? b : b == read::ib_state::unknown ? a : std::min(a, b);
  }

  /// Ports without a partner, and links of a switch that are slower than most of their kind there.
  void check_ports() {
    struct sibling {
      bool to_switch;
      double rate;
      const read::ib_port* port;
    };
    struct slow_cable {
      read::ib_end one, other;
      bool to_switch;
    };
    std::vector<slow_cable> slow;
    for (std::uint32_t d = 0; d < devices_.size(); ++d) {
      const read::ib_device& v = devices_[d];
      if (inside_[d] != none) continue;
      std::vector<sibling> siblings;
      for (const read::ib_port& p : v.ports) {
        if (!p.peer) {
          const auto who = [&] { return label_of(v, p.number) + (p.physical.empty() ? "" : " (" + p.physical + ")"); };
          if (!is_switch(v))
            seen_.dark_adapters.add(who);
          else
            seen_.dark_switches.add(who);
          continue;
        }
        if (!is_switch(v) || inside_[p.peer->device] != none || p.peer->device == d) continue;
        const read::ib_port& q = far_port(p);
        const double rate = infiniband_rate(slower(p.speed, q.speed), least(p.width, q.width)).value;
        if (rate > 0) siblings.push_back({is_switch(devices_[p.peer->device]), rate, &p});
      }
      seq::sort(siblings, [](const sibling& a, const sibling& b) {
        return a.to_switch != b.to_switch ? b.to_switch : a.rate < b.rate;
      });
      for (std::size_t first = 0, last = 0; first < siblings.size(); first = last) {
        for (last = first; last < siblings.size() && siblings[last].to_switch == siblings[first].to_switch;) ++last;
        const double middle = siblings[first + (last - first) / 2].rate;
        for (std::size_t i = first; last - first >= 3 && i < last && siblings[i].rate < middle; ++i) {
          const read::ib_end here{d, siblings[i].port->number};
          const read::ib_end there = *siblings[i].port->peer;
          const bool lesser = here.device < there.device;
          slow.push_back({lesser ? here : there, lesser ? there : here, siblings[i].to_switch});
        }
      }
    }
    // A cable between switches may be slow among its siblings at both ends; it is told once.
    seq::sort(slow, [](const slow_cable& a, const slow_cable& b) {
      return a.one.device != b.one.device ? a.one.device < b.one.device : a.one.port < b.one.port;
    });
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (i > 0 && slow[i].one == slow[i - 1].one) continue;
      (slow[i].to_switch ? seen_.slow_cables : seen_.slow_hosts).add([&] {
        const read::ib_port& p = *read::find_port(devices_[slow[i].one.device], slow[i].one.port);
        return read::detail::cable_text(f_, slow[i].one, slow[i].other) + " (" +
               read::detail::rate_text(least(p.width, far_port(p).width), slower(p.speed, far_port(p).speed)) + ")";
      });
    }
  }

  node_id add(std::uint32_t device, topo::node n) {
    lines_.push_back(devices_[device].line);
    return nodes_[device] = out_.add(std::move(n));
  }
  static void fact(topo::node& n, const char* name, std::string value) {
    if (!value.empty()) n.facts.emplace_back(name, std::move(value));
  }
  void report() {
    keys_.report(out_.source, out_.findings);
    seen_.report(out_.source, out_.findings);
  }

  struct port_node {
    read::ib_end at;
    node_id node;
  };

  const read::ib_fabric& f_;
  const std::vector<read::ib_device>& devices_;
  topo::fragment out_;
  std::vector<node_id> nodes_;         // of each device; that of an adapter is its nic
  std::vector<std::uint32_t> inside_;  // switch that an adapter is a part of, or none
  std::vector<port_node> ports_;       // of adapters, ascending
  std::vector<std::uint32_t> lines_;   // beside out_.nodes
  tally keys_;
  ib_observations seen_;
};

}}}  // namespace topocoll::v0::detail

namespace topocoll { inline namespace v0 {

template <class>
result<topo::fragment> fragment_of(const read::ib_fabric& fabric, const discover_options&, std::string file) {
  return detail::ib_fabric_builder<>(fabric, std::move(file)).run();
}

}}  // namespace topocoll::v0
