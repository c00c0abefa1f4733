// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what `ibstat` or `ibv_devinfo` tell about a machine's RDMA adapters into a fragment of the topology graph.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/ibstat.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A nic for every adapter and a nic_port for every port of it, on the host `options.host`, as the tools name no host. Where
/// the adapters sit is not told: nothing joins them to the machine, and a merge with another source knows them by key,
/// "host/net:mlx5_0/1", or by the facts "node_guid" and "port_guid".
///
/// A port that is not active carries nothing, whatever rate it prints. `current` is the rate as printed; where that is a
/// speed with 8b/10b or 64b/66b coding, `capacity` is what the coding leaves.
/// @param file  `fragment::source`, and the place of findings. Never fails for what the parser gives.
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::ib_adapters& adapters, const discover_options& options,
                                                 std::string file);

namespace detail {

/// What line coding leaves of the rate that ibstat prints for an InfiniBand port: four fifths up to 10 Gbit/s a lane of at
/// most four (8b/10b), except FDR10, which ibstat names; FDR prints 14 for 14.0625 before 64b/66b.
template <class = void>
[[nodiscard]] bytes_per_second ib_payload_of_printed(const read::ib_adapter_port& p) {
  const double gbit = p.rate->value / 1.25e8;
  if (p.layer == "Ethernet" || p.speed == read::ib_speed::fdr10) return *p.rate;
  for (const read::ib_speed speed :
       {read::ib_speed::sdr, read::ib_speed::ddr, read::ib_speed::qdr, read::ib_speed::fdr})
    for (const std::uint32_t lanes : {1U, 2U, 4U}) {
      const double named = infiniband_rate(speed, lanes).value / 1.25e8;
      if (gbit > named * 0.999 && gbit < named * 1.001) return infiniband_data_rate(speed, lanes);
    }
  return *p.rate;
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::ib_adapters& adapters, const discover_options& options,
                                   std::string file) {
  topo::fragment out;
  out.source = std::move(file);
  out.findings = adapters.findings;
  detail::tally tally;
  std::vector<std::uint32_t> lines;
  const auto fact = [](topo::node& n, const char* name, std::string value) {
    if (!value.empty()) n.facts.emplace_back(name, std::move(value));
  };
  for (const read::ib_adapter& a : adapters.adapters) {
    topo::node n;
    n.kind = topo::node_kind::nic;
    n.key = options.host + "/net:" + a.name;
    n.name = a.name;
    n.host = options.host;
    n.index = read::ib_description_of("host " + a.name).index;
    fact(n, "firmware", a.firmware);
    if (a.node_guid) fact(n, "node_guid", read::guid_text(*a.node_guid));
    if (a.system_image) fact(n, "system_image_guid", read::guid_text(*a.system_image));
    fact(n, "type", a.type);
    lines.push_back(a.line);
    const node_id nic = out.add(std::move(n));
    if (a.port_count && *a.port_count > a.ports.size())
      tally.add(severity::note, "an adapter has more ports than are listed",
                a.name + " (" + std::to_string(a.ports.size()) + " of " + std::to_string(*a.port_count) + ")");
    for (const read::ib_adapter_port& p : a.ports) {
      const std::string label = a.name + " port " + std::to_string(p.number);
      topo::node port;
      port.kind = topo::node_kind::nic_port;
      port.key = options.host + "/net:" + a.name + "/" + std::to_string(p.number);
      port.name = p.number == 1 ? a.name : a.name + "/" + std::to_string(p.number);
      port.host = options.host;
      fact(port, "layer", p.layer);
      if (p.lid) fact(port, "lid", std::to_string(*p.lid));
      fact(port, "physical_state", p.physical);
      if (p.guid) fact(port, "port_guid", read::guid_text(*p.guid));
      if (p.speed != read::ib_speed::unknown) fact(port, "speed", to_string(p.speed));
      fact(port, "state", p.state_text);
      topo::link l;
      l.from = nic;
      l.kind = topo::link_kind::internal;
      l.lanes = p.width;
      if (p.state != read::ib_state::active && p.state != read::ib_state::unknown) {
        l.reason = "port state \"" + p.state_text + "\"" + (p.physical.empty() ? "" : ", \"" + p.physical + "\"") +
                   ": carries nothing now";
        tally.add(severity::warning,
                  "a port is not active; it carries nothing, and the rate that it shows means nothing",
                  label + " (" + p.state_text + (p.physical.empty() ? "" : ", " + p.physical) + ")",
                  "look at cable, switch port and subnet manager");
      } else if (p.width != 0 && p.speed != read::ib_speed::unknown) {
        l.current = infiniband_rate(p.speed, p.width);
        l.capacity = infiniband_data_rate(p.speed, p.width);
      } else if (p.rate) {
        l.current = p.rate;
        l.capacity = detail::ib_payload_of_printed(p);
      } else {
        l.capacity = unknown_port_rate;
        l.how = trust::assumed;
        l.reason = "the port tells no rate; taken as 10 Gbit/s";
        tally.add(severity::note, "the rate of a port is not told; it is taken as 10 Gbit/s", label, "run ibstat");
      }
      if (l.current && l.capacity < *l.current) {
        l.how = trust::derived;
        l.reason = "what line coding leaves of the printed rate";
      }
      if (p.state == read::ib_state::unknown) {
        l.how = trust::assumed;
        l.reason = (l.reason.empty() ? "" : l.reason + "; ") + std::string("the state of the port is not told");
        tally.add(severity::warning, "the state of a port is not told", label, "run ibstat");
      }
      lines.push_back(p.line);
      l.to = out.add(std::move(port));
      out.join(l);
    }
  }
  detail::make_keys_unique(out, lines, tally);
  tally.report(out.source, out.findings);
  return out;
}

}}  // namespace topocoll::v0
