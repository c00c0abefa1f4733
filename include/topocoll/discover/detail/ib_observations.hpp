// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is worth telling about an InfiniBand fabric, and what its ports make of a link.
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/read/detail/ib_cables.hpp>
#include <topocoll/read/ib_fabric.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// A link with the rates of a port, or of the two ends of a cable; its ends and kind are still to be set.
template <class = void>
[[nodiscard]] topo::link ib_link(std::uint32_t width, read::ib_speed speed, std::uint32_t best_width,
                                 read::ib_speed best_speed, read::ib_state state) {
  topo::link l;
  l.lanes = width;
  if (best_width != 0 && best_speed != read::ib_speed::unknown) l.nominal = infiniband_rate(best_speed, best_width);
  if (state == read::ib_state::down) {
    l.reason = "the port is down: carries nothing now";
    return l;
  }
  if (width == 0 || speed == read::ib_speed::unknown) {
    l.capacity = unknown_port_rate;
    l.how = trust::assumed;
    l.reason = std::string(width == 0 && speed == read::ib_speed::unknown ? "neither width nor speed is told"
                           : width == 0                                   ? "the width is not told"
                                                                          : "the speed is not told") +
               "; taken as 10 Gbit/s";
    return l;
  }
  l.current = infiniband_rate(speed, width);
  l.capacity = infiniband_data_rate(speed, width);
  if (l.capacity < *l.current) {
    l.how = trust::derived;
    l.reason = "what line coding leaves of " + read::detail::rate_text(width, speed);
  }
  if (state == read::ib_state::initialize || state == read::ib_state::armed) {
    l.how = trust::assumed;
    l.reason = "no subnet manager has activated the port; its trained rate is taken";
  }
  return l;
}

/// One finding for each kind of observation, in the order in which they are reported.
struct ib_observations {
  using port_tally = read::detail::port_tally;

  port_tally tierless{severity::note,
                      "no host can be reached from these switches, so leaves and spines cannot be told apart",
                      "list the fabric with its adapters"};
  port_tally lifted{severity::note, "hosts plug into switches that are spines by all their other cables"};
  port_tally empty{severity::note, "leaves have no hosts"};
  port_tally sharp{severity::note, "adapters inside switches, which reduce for SHARP, are neither hosts nor NICs"};
  port_tally shared{severity::warning,
                    "adapters share one description, so it names no host; they are told apart by GUID",
                    "set node descriptions with rdma-ndd"};
  port_tally hostless{severity::note,
                      "the descriptions of adapters name no host; each counts as a host of its own, or as one with "
                      "those of its system image",
                      "set node descriptions with rdma-ndd"};
  port_tally loops{severity::warning, "cables leave and enter the same switch; they join nothing", "unplug them"};
  port_tally below_best{severity::warning, "links run below what both their ends can do",
                        "reseat or replace the cable, then look at the speeds enabled at both ends"};
  port_tally slow_cables{severity::warning, "links between switches are slower than most others of the same switch",
                         "look at the cable and the port settings at both ends"};
  port_tally slow_hosts{severity::note, "hosts' links are slower than most others of the same switch",
                        "compare with what the adapter can do: an older one is no fault"};
  port_tally inactive{severity::warning, "links are trained, but no subnet manager has activated them",
                      "look whether a subnet manager runs"};
  port_tally rateless{severity::note, "the width or speed of links is not told; taken as 10 Gbit/s"};
  port_tally dead{severity::warning, "cables carry nothing, because a port at one of their ends is down",
                  "look at cable and port"};
  port_tally dark_adapters{severity::warning,
                           "ports of adapters have no partner: no cable, or a link that does not come up",
                           "look at cable and switch port"};
  port_tally dark_switches{severity::note,
                           "ports of switches have no partner: unused, or a link that does not come up"};

  void report(const std::string& where, std::vector<finding>& out) {
    for (port_tally* t : {&tierless, &lifted, &empty, &sharp, &shared, &hostless, &loops, &below_best, &slow_cables,
                          &slow_hosts, &inactive, &rateless, &dead, &dark_adapters, &dark_switches})
      t->report(where, out);
  }
};

}}}  // namespace topocoll::v0::detail
