// SPDX-License-Identifier: Apache-2.0
#pragma once
// Both ends of every cable of a fabric: what only one of them tells, and where they disagree.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read { namespace detail {

/// One observation about many ports: counted, the first few spelt out.
class port_tally {
 public:
  port_tally(severity level, std::string what, std::string next_step = {})
      : finding_{level, {}, std::move(what), {}, std::move(next_step), 1} {}
  /// `who` is called for the first few only: a fabric has many ports, and names cost time.
  template <class Who>
  void add(const Who& who) {
    constexpr std::size_t spelt = 6;
    if (count_++ < spelt) finding_.evidence += (count_ == 1 ? "" : "; ") + std::string(who());
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  void report(std::string_view where, std::vector<finding>& out) {
    if (count_ == 0) return;
    finding_.where = std::string(where);
    if (count_ > 1) finding_.evidence = std::to_string(count_) + ": " + finding_.evidence + (count_ > 6 ? "; …" : "");
    out.push_back(std::move(finding_));
    count_ = 0;
  }

 private:
  finding finding_;
  std::size_t count_ = 0;
};

/// "leaf1 0x… port 7 - spine2 0x… port 1".
[[nodiscard]] inline std::string cable_text(const ib_fabric& f, ib_end a, ib_end b) {
  return label_of(f.devices[a.device], a.port) + " - " + label_of(f.devices[b.device], b.port);
}
/// "4x HDR"; "?x ???" for unknown.
[[nodiscard]] inline std::string rate_text(std::uint32_t width, ib_speed speed) {
  return (width == 0 ? std::string("?") : std::to_string(width)) + "x " + to_string(speed);
}

[[nodiscard]] inline ib_port* port_of(ib_fabric& f, ib_end e) {
  return const_cast<ib_port*>(find_port(f.devices[e.device], e.port));
}

/// Sorts the ports of a device; of a port that is told twice the first telling stays.
template <class = void>
void settle_ports(ib_fabric& f, std::uint32_t device, port_tally& twice) {
  ib_device& d = f.devices[device];
  bool sorted = true;
  for (std::size_t i = 1; i < d.ports.size(); ++i) sorted = sorted && d.ports[i - 1].number < d.ports[i].number;
  if (sorted) return;
  seq::sort_by(d.ports, &ib_port::number);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < d.ports.size(); ++i) {
    if (kept > 0 && d.ports[kept - 1].number == d.ports[i].number) {
      const ib_port& first = d.ports[kept - 1];
      const ib_port& again = d.ports[i];
      if (!(first.peer == again.peer) || first.width != again.width || first.speed != again.speed)
        twice.add([&] {
          return label_of(d, again.number) + " (lines " + std::to_string(first.line) + " and " +
                 std::to_string(again.line) + ")";
        });
      continue;
    }
    if (kept != i) d.ports[kept] = std::move(d.ports[i]);
    ++kept;
  }
  d.ports.erase(d.ports.begin() + static_cast<std::ptrdiff_t>(kept), d.ports.end());
}

/// Makes the peers of a fabric mutual: after it, the peer of a port's peer is that port. A cable that one end tells and the
/// other does not know is kept, one that the other end contradicts is dropped; both become findings, as do ends that
/// trained to different rates. Cost: O(n log n) for n ports.
template <class = void>
void close_cables(ib_fabric& f, std::string_view file) {
  port_tally twice(severity::warning, "a port is told twice, with different figures; the first telling is kept",
                   "list the fabric again");
  port_tally looped(severity::warning, "a port is said to be cabled to itself; the cable is left out");
  port_tally against(severity::warning,
                     "the two ends of a cable disagree on where it leads; what the far end contradicts is left out",
                     "list the fabric again while nobody changes cables");
  port_tally dark(severity::warning, "one end tells of a cable, the other shows its port without one; it is kept",
                  "list the fabric again: the link may be coming up or going down");
  port_tally one_sided(severity::note, "cables are told by one of their ends only, and believed");
  port_tally uneven(severity::warning, "the two ends of a cable tell different widths or speeds; the lesser is taken",
                    "look at the link with iblinkinfo; list the fabric again");

  for (std::uint32_t d = 0; d < f.devices.size(); ++d) settle_ports(f, d, twice);

  struct missing_port {
    ib_end at;
    ib_port port;
  };
  std::vector<missing_port> missing;
  std::vector<ib_end> drop;
  for (std::uint32_t d = 0; d < f.devices.size(); ++d)
    for (const ib_port& p : f.devices[d].ports) {
      if (!p.peer) continue;
      const ib_end here{d, p.number};
      const ib_end there = *p.peer;
      if (here == there) {
        looped.add([&] { return label_of(f.devices[d], p.number); });
        drop.push_back(here);
        continue;
      }
      ib_port* other = port_of(f, there);
      if (other == nullptr) {
        ib_port mirror;
        mirror.number = there.port;
        mirror.width = p.width;
        mirror.speed = p.speed;
        mirror.peer = here;
        mirror.told = false;
        missing.push_back({there, std::move(mirror)});
        one_sided.add([&] { return cable_text(f, here, there); });
      } else if (!other->peer) {
        dark.add([&] { return cable_text(f, here, there); });
      } else if (!(*other->peer == here)) {
        against.add([&] {
          return cable_text(f, here, there) + ", but the far end says " + cable_text(f, there, *other->peer) +
                 " (lines " + std::to_string(p.line) + " and " + std::to_string(other->line) + ")";
        });
        drop.push_back(here);
      } else if ((here.device < there.device || (here.device == there.device && here.port < there.port)) &&
                 (p.width != other->width || p.speed != other->speed)) {
        uneven.add([&] {
          return cable_text(f, here, there) + " (" + rate_text(p.width, p.speed) + " and " +
                 rate_text(other->width, other->speed) + ")";
        });
      }
    }
  for (const ib_end e : drop) port_of(f, e)->peer.reset();
  // Ports that both ends' records leave out, or that two cables claim: the first claim holds.
  seq::sort(missing, [](const missing_port& a, const missing_port& b) {
    return a.at.device != b.at.device ? a.at.device < b.at.device : a.at.port < b.at.port;
  });
  for (std::size_t i = 1; i < missing.size(); ++i) {
    if (!(missing[i].at == missing[i - 1].at)) continue;
    const ib_end claimant = *missing[i].port.peer;
    against.add([&] { return cable_text(f, claimant, missing[i].at) + ", where another cable ends as well"; });
    port_of(f, claimant)->peer.reset();
  }
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (i == 0 || !(missing[i].at == missing[i - 1].at))
      f.devices[missing[i].at.device].ports.push_back(missing[i].port);
  for (std::uint32_t d = 0; d < f.devices.size(); ++d) settle_ports(f, d, twice);
  // A port that shows no cable takes the first one that leads to it.
  for (std::uint32_t d = 0; d < f.devices.size(); ++d)
    for (ib_port& p : f.devices[d].ports) {
      if (!p.peer) continue;
      const ib_end here{d, p.number};
      ib_port* other = port_of(f, *p.peer);
      if (!other->peer) {
        other->peer = here;
      } else if (!(*other->peer == here)) {
        against.add([&] { return cable_text(f, here, *p.peer) + ", where another cable ends as well"; });
        p.peer.reset();
      }
    }
  for (port_tally* t : {&twice, &looped, &against, &dark, &one_sided, &uneven}) t->report(file, f.findings);
}

}}}}  // namespace topocoll::v0::read::detail
