// SPDX-License-Identifier: Apache-2.0
#pragma once
// Differences between two topologies as plain values: devices, links, paths, and sentences.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/kinds.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// How two graphs are compared.
struct diff_options {
  std::string a = "A", b = "B";  ///< what findings call the two sides
  /// Hosts that are the same although their names differ: name in A, name in B. Others are paired by their names, then by
  /// GUIDs and serial numbers, then by what they look like.
  std::vector<std::pair<std::string, std::string>> hosts{};
  double tolerance = 0.01;  ///< share of the larger by which two rates may differ and still be called equal
  bool paths = true;        ///< compare path classes too, in hosts where devices or links come or go
};

/// How a device was found again.
enum class recognised : std::uint8_t {
  by_key,       ///< the same address, port or name
  by_identity,  ///< the same GUID, UUID or serial number
  by_place      ///< the same kind and model at the same place between the same neighbours
};

/// One device in both graphs.
struct same_device {
  node_id a, b;
  recognised how = recognised::by_key;
};

/// All links of one kind from one node to another, as one.
struct bundle {
  node_id from, to;
  link_kind kind = link_kind::pcie;
  std::uint32_t links = 0;
  std::uint32_t generation = 0;             ///< the least; 0 when a link does not tell
  std::uint32_t lanes = 0;                  ///< of all links; 0 when a link does not tell
  std::optional<bytes_per_second> nominal;  ///< of all links; empty when a link does not tell
  std::optional<bytes_per_second> current;  ///< what they run at now, by line rate; empty when a link does not tell
  bytes_per_second capacity{};              ///< of all links
  trust how = trust::measured;              ///< of the least trusted one
};

/// A connection that is not the same in both graphs.
struct link_change {
  std::optional<bundle> a, b;  ///< empty on the side that has no such link
};

/// A pair of devices of one host whose way to each other belongs to another class.
struct path_change {
  same_device from, to;
  path_class a = path_class::DIS, b = path_class::DIS;
};

/// What `diff` found. Lists are in the order of graph A, what only B has in that of graph B.
struct difference {
  std::vector<std::pair<std::string, std::string>> hosts;  ///< which hosts were compared
  std::vector<same_device> same;                           ///< devices found in both
  std::vector<node_id> missing;                            ///< only in A
  std::vector<node_id> added;                              ///< only in B
  std::vector<same_device> changed;                        ///< another model, another NUMA domain, a port up or down
  std::vector<link_change> links;
  std::vector<path_change> paths;
  /// All of the above in sentences that name both sides. Warnings are differences; notes are other numbers for the same
  /// thing, figures that differ without changing a rate, and what cannot be compared because one side does not tell it.
  std::vector<finding> findings;

  /// True when nothing worse than notes was found.
  [[nodiscard]] bool same_but_for_notes() const {
    for (const finding& f : findings)
      if (f.level != severity::note) return false;
    return true;
  }
};

}}}  // namespace topocoll::v0::topo
