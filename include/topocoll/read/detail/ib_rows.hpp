// SPDX-License-Identifier: Apache-2.0
#pragma once
// Listings with one row for each port, in which devices are known by GUID, by LID, or by description alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/detail/ib_cables.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read { namespace detail {

/// One end of a row, as far as the listing names it.
struct ib_row_end {
  ib_kind kind = ib_kind::unknown;
  std::optional<std::uint64_t> guid;  ///< of a switch, or of an adapter's port
  std::uint32_t lid = 0;              ///< 0 for none
  std::uint32_t port = 0;
  std::string_view name;
};
struct ib_row {
  ib_row_end here, there;
  bool cabled = false;  ///< `there` is told
  ib_port port;         ///< of `here`, less number, GUID, LID and peer
};

/// Sorts the ends of rows into devices.
template <class = void>
class ib_row_fabric {
 public:
  explicit ib_row_fabric(const std::vector<ib_row>& rows) : rows_(rows), device_(2 * rows.size(), none) {}

  [[nodiscard]] ib_fabric run(std::string_view file) {
    by_guid();
    join_adapters();
    by_lid();
    by_name();
    number_devices();
    tell_kinds();
    add_ports();
    for (port_tally* t : {&unresolved_, &assumed_}) t->report(file, out_.findings);
    close_cables(out_, file);
    for (std::size_t i = 0; i < rows_.size(); ++i) learn_far_port(i);
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  [[nodiscard]] const ib_row_end& end(std::size_t e) const {
    return e % 2 == 0 ? rows_[e / 2].here : rows_[e / 2].there;
  }
  [[nodiscard]] bool there(std::size_t e) const { return e % 2 == 0 || rows_[e / 2].cabled; }
  /// Positions of the ends that `wanted` says yes to.
  template <class Wanted>
  [[nodiscard]] std::vector<std::uint32_t> ends_with(const Wanted& wanted) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t e = 0; e < device_.size(); ++e)
      if (there(e) && wanted(end(e))) found.push_back(e);
    return found;
  }

  void by_guid() {
    auto ends = ends_with([](const ib_row_end& e) { return e.guid.has_value(); });
    seq::sort(ends, [&](std::uint32_t a, std::uint32_t b) { return *end(a).guid < *end(b).guid; });
    for (std::size_t i = 0; i < ends.size(); ++i)
      device_[ends[i]] = i > 0 && *end(ends[i]).guid == *end(ends[i - 1]).guid ? device_[ends[i - 1]] : count_++;
  }

  /// What a device is, by all the ends that name it. Sorted by device, then by port.
  struct view {
    std::uint32_t device;
    std::uint32_t end;
  };
  [[nodiscard]] std::vector<view> views() const {
    std::vector<view> all;
    for (std::uint32_t e = 0; e < device_.size(); ++e)
      if (device_[e] != none) all.push_back({device_[e], e});
    seq::sort(all, [&](const view& a, const view& b) {
      return a.device != b.device ? a.device < b.device : end(a.end).port < end(b.end).port;
    });
    return all;
  }

  /// The ports of one adapter have GUIDs of their own; a description with host and device tells that they belong
  /// together, unless it is given to one port number twice, and so to two adapters.
  void join_adapters() {
    std::vector<view> firsts;  // one for each device that is known by GUID and may be an adapter's port
    const std::vector<view> all = views();
    for (std::size_t i = 0; i < all.size();) {
      std::size_t last = i;
      bool adapter = true;
      while (last < all.size() && all[last].device == all[i].device) {
        const ib_row_end& e = end(all[last].end);
        adapter = adapter && e.port == end(all[i].end).port && e.kind != ib_kind::switch_device &&
                  !ib_description_of(e.name).device.empty() && e.name == end(all[i].end).name;
        ++last;
      }
      if (adapter) firsts.push_back(all[i]);
      i = last;
    }
    seq::sort(firsts, [&](const view& a, const view& b) {
      const int order = end(a.end).name.compare(end(b.end).name);
      return order != 0 ? order < 0 : end(a.end).port < end(b.end).port;
    });
    std::vector<std::uint32_t> joined(count_);
    for (std::uint32_t d = 0; d < count_; ++d) joined[d] = d;
    for (std::size_t i = 0; i < firsts.size();) {
      std::size_t last = i + 1;
      bool apart = true;
      while (last < firsts.size() && end(firsts[last].end).name == end(firsts[i].end).name) {
        apart = apart && end(firsts[last].end).port != end(firsts[last - 1].end).port;
        ++last;
      }
      for (std::size_t k = i + 1; apart && k < last; ++k) joined[firsts[k].device] = firsts[i].device;
      i = last;
    }
    for (std::uint32_t& d : device_)
      if (d != none) d = joined[d];
  }

  /// Within a subnet a LID names one port of an adapter or one switch; listings of several subnets in one file are told
  /// apart by the descriptions.
  void by_lid() {
    auto ends = ends_with([](const ib_row_end& e) { return e.lid != 0; });
    seq::sort(ends, [&](std::uint32_t a, std::uint32_t b) { return end(a).lid < end(b).lid; });
    for (std::size_t first = 0; first < ends.size();) {
      std::size_t last = first;
      while (last < ends.size() && end(ends[last]).lid == end(ends[first]).lid) ++last;
      std::uint32_t nameless = none;  // of rows without a heading, when no name or several go with their LID
      for (const bool named : {true, false})
        for (std::size_t i = first; i < last; ++i) {
          const ib_row_end& e = end(ends[i]);
          if (device_[ends[i]] != none || e.name.empty() == named) continue;
          std::uint32_t found = none;
          bool several = false;
          for (std::size_t k = first; k < last && k < first + most_ports; ++k) {
            const ib_row_end& other = end(ends[k]);
            if (device_[ends[k]] == none || (!e.name.empty() && !other.name.empty() && e.name != other.name)) continue;
            several = several || (found != none && found != device_[ends[k]]);
            found = device_[ends[k]];
          }
          if (found != none && !several) {
            device_[ends[i]] = found;
          } else if (named) {
            device_[ends[i]] = count_++;
          } else {
            if (nameless == none) nameless = count_++;
            device_[ends[i]] = nameless;
          }
        }
      first = last;
    }
  }
  // A LID is told by the ports of one switch and the ports that look at it; more is no fabric, and must not cost squares.
  static constexpr std::size_t most_ports = 1024;

  /// In a fabric that no subnet manager has swept there are no LIDs. Then the far end is the port whose own row points back
  /// here, or the only device of that name.
  void by_name() {
    std::vector<std::uint32_t> nears;
    for (std::uint32_t e = 0; e < device_.size(); e += 2)
      if (device_[e] != none && !end(e).name.empty()) nears.push_back(e);
    // A near end by its own name and port and those of its far end.
    const auto order = [&](std::uint32_t a, std::uint32_t b, std::uint32_t far_a) {
      const int names = end(a).name.compare(end(b).name);
      if (names != 0) return names;
      if (end(a).port != end(b).port) return end(a).port < end(b).port ? -1 : 1;
      const ib_row_end& x = end(far_a);
      const ib_row_end& y = end(b ^ 1U);
      const int beyond = x.name.compare(y.name);
      return beyond != 0 ? beyond : x.port != y.port ? (x.port < y.port ? -1 : 1) : 0;
    };
    seq::sort(nears, [&](std::uint32_t a, std::uint32_t b) { return order(a, b, a ^ 1U) < 0; });
    // The device of each name, where only one has it.
    std::vector<std::uint32_t> sole(nears.size(), none);
    for (std::size_t first = 0, last = 0; first < nears.size(); first = last) {
      bool one = true;
      for (last = first; last < nears.size() && end(nears[last]).name == end(nears[first]).name; ++last)
        one = one && device_[nears[last]] == device_[nears[first]];
      if (one) sole[first] = device_[nears[first]];
    }
    std::vector<std::uint32_t> strangers;
    for (std::uint32_t e = 1; e < device_.size(); e += 2) {
      if (!there(e) || device_[e] != none) continue;
      const std::string_view name = end(e).name;
      const auto back = std::lower_bound(nears.begin(), nears.end(), e, [&](std::uint32_t near, std::uint32_t far) {
        return order(far, near, far ^ 1U) > 0;
      });
      const auto points_back = [&](std::vector<std::uint32_t>::const_iterator at) {
        return at != nears.end() && order(e, *at, e ^ 1U) == 0;
      };
      const auto same = std::lower_bound(nears.begin(), nears.end(), name,
                                         [&](std::uint32_t near, std::string_view n) { return end(near).name < n; });
      const bool known = same != nears.end() && end(*same).name == name;
      if (!name.empty() && points_back(back) && !points_back(back + 1))
        device_[e] = device_[*back];
      else if (!name.empty() && known && sole[static_cast<std::size_t>(same - nears.begin())] != none)
        device_[e] = sole[static_cast<std::size_t>(same - nears.begin())];
      else if (!name.empty() && !known)
        strangers.push_back(e);
      else
        unresolved_.add([&] {
          return "line " + std::to_string(rows_[e / 2].port.line) + ": \"" + std::string(name) + "\" port " +
                 std::to_string(end(e).port);
        });
    }
    seq::sort(strangers, [&](std::uint32_t a, std::uint32_t b) { return end(a).name < end(b).name; });
    for (std::size_t i = 0; i < strangers.size(); ++i)
      device_[strangers[i]] =
          i > 0 && end(strangers[i]).name == end(strangers[i - 1]).name ? device_[strangers[i - 1]] : count_++;
  }

  /// Devices in the order of their first mention.
  void number_devices() {
    std::vector<std::uint32_t> place(count_, none);
    for (std::uint32_t e = 0; e < device_.size(); ++e) {
      if (device_[e] == none) continue;
      std::uint32_t& p = place[device_[e]];
      if (p == none) {
        p = static_cast<std::uint32_t>(out_.devices.size());
        out_.devices.emplace_back();
        out_.devices.back().line = rows_[e / 2].port.line;
        out_.devices.back().told = false;
      }
      device_[e] = p;
      ib_device& d = out_.devices[p];
      if (d.description.empty()) d.description = std::string(end(e).name);
      d.told = d.told || e % 2 == 0;
    }
  }

  void tell_kinds() {
    const std::vector<view> all = views();
    std::vector<std::uint32_t> unsure;
    for (std::size_t i = 0; i < all.size();) {
      ib_device& d = out_.devices[all[i].device];
      const ib_row_end& one = end(all[i].end);
      std::uint32_t most = 0;
      bool shared = false;  // one GUID at several port numbers
      std::size_t last = i;
      for (; last < all.size() && all[last].device == all[i].device; ++last) {
        const ib_row_end& e = end(all[last].end);
        if (d.kind == ib_kind::unknown) d.kind = e.kind;
        most = std::max(most, e.port);
        shared = shared || (e.port != one.port && e.guid == one.guid && (e.guid || (e.lid != 0 && e.lid == one.lid)));
      }
      if (d.kind == ib_kind::unknown) {
        d.how = trust::derived;
        if (shared) {
          d.kind = ib_kind::switch_device;
          d.reason = "several of its ports share one identity";
        } else if (!ib_description_of(d.description).device.empty() || is_aggregation_node(d.description)) {
          d.kind = ib_kind::channel_adapter;
          d.reason = "its description is that of an adapter";
        } else if (most > 2) {
          d.kind = ib_kind::switch_device;
          d.reason = "it has a port " + std::to_string(most) + ", and adapters have one or two";
        } else {
          unsure.push_back(all[i].device);
        }
      }
      i = last;
    }
    std::vector<bool> meets_switch(out_.devices.size());
    for (std::size_t e = 0; e < device_.size(); ++e) {
      const std::uint32_t other = device_[e ^ 1U];
      if (device_[e] != none && other != none && out_.devices[other].kind != ib_kind::channel_adapter)
        meets_switch[device_[e]] = true;
    }
    for (const std::uint32_t u : unsure) {
      ib_device& d = out_.devices[u];
      d.how = trust::assumed;
      d.kind = meets_switch[u] ? ib_kind::channel_adapter : ib_kind::switch_device;
      d.reason = meets_switch[u]
                     ? "nothing tells what it is; taken as an adapter, because a switch is its neighbour"
                     : "nothing tells what it is; taken as a switch, because only adapters are its neighbours";
      assumed_.add([&] { return label_of(d) + " as " + (meets_switch[u] ? "an adapter" : "a switch"); });
    }
  }

  void add_ports() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (device_[2 * i] == none) continue;
      const ib_row& row = rows_[i];
      ib_device& d = out_.devices[device_[2 * i]];
      ib_port p = row.port;
      p.number = row.here.port;
      if (d.kind == ib_kind::channel_adapter) p.guid = row.here.guid;
      if (d.kind != ib_kind::channel_adapter && row.here.guid) d.guid = row.here.guid;
      if (row.here.lid != 0) (d.kind == ib_kind::switch_device ? d.lid : p.lid) = row.here.lid;
      if (device_[2 * i + 1] != none) p.peer = ib_end{device_[2 * i + 1], row.there.port};
      d.ports.push_back(std::move(p));
    }
  }
  /// What a row tells of its far end is all that is known of devices without rows.
  void learn_far_port(std::size_t i) {
    const ib_row& row = rows_[i];
    if (!row.cabled || device_[2 * i + 1] == none) return;
    ib_device& d = out_.devices[device_[2 * i + 1]];
    if (d.kind != ib_kind::channel_adapter) {
      if (!d.guid) d.guid = row.there.guid;
      if (!d.lid && row.there.lid != 0) d.lid = row.there.lid;
    } else if (ib_port* p = port_of(out_, {device_[2 * i + 1], row.there.port}); p != nullptr) {
      if (!p->guid) p->guid = row.there.guid;
      if (!p->lid && row.there.lid != 0) p->lid = row.there.lid;
    }
  }

  const std::vector<ib_row>& rows_;
  std::vector<std::uint32_t> device_;  // of each end: 2 i is the near end of row i, 2 i + 1 the far end
  std::uint32_t count_ = 0;
  ib_fabric out_;
  port_tally unresolved_{severity::warning,
                         "the far end of a cable has neither GUID nor LID, and its description is no one device's; the "
                         "cable is left out",
                         "list the fabric with `iblinkinfo -l`, which prints GUIDs"};
  port_tally assumed_{severity::note, "nothing tells a switch from an adapter; its neighbours decide",
                      "list the whole fabric with ibnetdiscover"};
};

}}}}  // namespace topocoll::v0::read::detail
