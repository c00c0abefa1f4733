// SPDX-License-Identifier: Apache-2.0
#pragma once
// PCIe links of which only the rate is told, not generation and lanes: what to believe, what to assume, and why.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

inline constexpr std::size_t no_cable = static_cast<std::size_t>(-1);

/// The generations and widths whose links have one line rate.
struct rate_meaning {
  std::uint32_t generation = 0, lanes = 0;  ///< of the pair with the oldest generation; 0 when there is none
  std::size_t pairs = 0;
  std::string text;  ///< "Gen3 x16, Gen4 x8 or Gen5 x4"
};

/// Widths: those of slots and modules, x1 to x16 (PCI Express Card Electromechanical Specification). Generations 6 and 7 are
/// also accepted without the loss of their flits, as programs count that are older than these.
template <class = void>
[[nodiscard]] rate_meaning meaning_of(bytes_per_second rate) {
  rate_meaning m;
  std::vector<std::string> names;
  const auto close = [&](double exact) { return rate.value > exact * 0.999 && rate.value < exact * 1.001; };
  for (std::uint32_t g = 1; g <= 7; ++g)
    for (std::uint32_t lanes = 1; lanes <= 16; lanes *= 2) {
      const double old = g < 6 ? 0 : 8e9 * static_cast<double>(1U << (g - 3)) / 8 * 128 / 130 * lanes;
      if (!close(pcie_line_rate(g, lanes).value) && !(g >= 6 && close(old))) continue;
      if (m.pairs++ == 0) {
        m.generation = g;
        m.lanes = lanes;
      }
      names.push_back("Gen" + std::to_string(g) + " x" + std::to_string(lanes));
    }
  for (std::size_t i = 0; i < names.size(); ++i)
    m.text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return m;
}

/// What large transfers get of a link with this line rate: NCCL's figure for the pair that it means (equal for all of them),
/// else the share that NCCL gives the oldest generations, its lowest.
template <class = void>
[[nodiscard]] bytes_per_second payload_of_rate(bytes_per_second rate) {
  const rate_meaning m = meaning_of(rate);
  if (m.pairs != 0) return pcie_payload_rate(m.generation, m.lanes);
  return rate * (pcie_payload_rate(1, 1) / pcie_line_rate(1, 1));
}

/// One link and what its two ends tell.
struct pcie_cable {
  node_id node, above;
  std::size_t parent = no_cable;  ///< position of the cable that leads up from `above`; smaller than its own
  bool bridge = false, gpu = false, nic = false;
  std::optional<bytes_per_second> device_end, port_end;
  std::string model;  ///< vendor and device: cables of equal cards are compared
  std::string who;
};

template <class = void>
class cable_rates {
 public:
  explicit cable_rates(const std::vector<pcie_cable>& cables)
      : c_(cables), v_(cables.size()), below_(cables.size()), fastest_told_(cables.size()) {
    for (const pcie_cable& c : c_)
      if (c.gpu && c.device_end) gpus_.emplace_back(c.model, c.device_end->value);
    seq::sort(gpus_);
    for (std::size_t i = 0; i < c_.size(); ++i) {
      take_what_is_told(i);
      if (c_[i].parent == no_cable) continue;
      below_[c_[i].parent].push_back(i);
      fastest_told_[c_[i].parent] = std::max(fastest_told_[c_[i].parent], v_[i].told);
    }
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (v_[i].used.value == 0 && below_[i].empty()) borrow(i);
    for (std::size_t i = c_.size(); i-- > 0;)
      if (!below_[i].empty()) judge_bridge(i);
  }

  /// Adds both directions of every link, in the order of the cables. Cost: O(n) for bounded depth.
  void join(topo::fragment& fragment, tally& tally) const {
    for (std::size_t i = 0; i < c_.size(); ++i) {
      const verdict& v = v_[i];
      topo::link l;
      l.from = c_[i].above;
      l.to = c_[i].node;
      l.kind = topo::link_kind::pcie;
      if (v.told.value > 0) {
        l.current = v.told;
        const rate_meaning m = meaning_of(v.told);
        if (m.pairs == 1) {
          l.generation = m.generation;
          l.lanes = m.lanes;
        }
      }
      l.capacity = payload_of_rate(v.used);
      l.how = v.how;
      l.reason = v.reason;
      fragment.join(l);
      if (!v.remark.empty()) tally.add(v.level, v.remark, c_[i].who, v.next_step);
    }
  }

  [[nodiscard]] bool told(std::size_t i) const { return v_[i].told.value > 0; }
  [[nodiscard]] bytes_per_second capacity(std::size_t i) const { return payload_of_rate(v_[i].used); }

 private:
  struct verdict {
    bytes_per_second told{}, used{};  // line rates; 0 for not told
    trust how = trust::assumed;
    std::string reason, remark, next_step;
    severity level = severity::note;
  };

  static constexpr bytes_per_second slowest{0.25e9};  // Gen1 x1
  static constexpr double same = 1.05;  // some drivers round: 31 for 31.5 GB/s; rates of different links differ by half

  static void say(verdict& v, severity level, std::string remark, std::string next_step = {}) {
    v.level = level;
    v.remark = std::move(remark);
    v.next_step = std::move(next_step);
  }
  /// Gen1 of any width: what a GPU falls back to while it has nothing to do.
  [[nodiscard]] static bool may_be_idle(bytes_per_second rate) { return meaning_of(rate).generation == 1; }

  void take_what_is_told(std::size_t i) {
    const pcie_cable& c = c_[i];
    verdict& v = v_[i];
    if (!c.device_end && !c.port_end) return;
    v.told = c.device_end.value_or(c.port_end.value_or(bytes_per_second{}));
    v.used = v.told;
    v.how = trust::derived;
    const std::string meaning = meaning_of(v.told).text;
    v.reason = "payload of " + to_string(v.told) + " as in NCCL's model" + (meaning.empty() ? "" : ", " + meaning);
    const auto near = [](bytes_per_second a, bytes_per_second b) { return a <= b * same && b <= a * same; };
    if (c.device_end && c.port_end && !near(*c.device_end, *c.port_end)) {
      // Both ends of a cable train alike, but they are not read at the same moment, and a GPU changes its speed.
      if (c.gpu && *c.port_end > *c.device_end) {
        v.used = *c.port_end;
        v.how = trust::assumed;
        v.reason = to_string(v.told) + " at the device and " + to_string(v.used) +
                   " at the port: an idle GPU lowers its speed; the higher is taken";
      }
      say(v, severity::note,
          "the two ends of a PCIe link tell different rates; " +
              std::string(v.used > v.told ? "an idle GPU lowers its speed, so the higher is taken"
                                          : "the device is believed"));
    }
    if (!c.gpu || !may_be_idle(v.used)) return;
    // Sorted by model, then by rate: the last of a model is its fastest.
    const auto after = std::upper_bound(gpus_.begin(), gpus_.end(), std::pair<std::string, double>(c.model, 1e300));
    bytes_per_second best = v.used;
    if (after != gpus_.begin() && (after - 1)->first == c.model)
      best = std::max(best, bytes_per_second{(after - 1)->second});
    v.how = trust::assumed;
    v.reason = to_string(v.told) + " now, but an idle GPU lowers its speed";
    if (best > v.used) {
      v.used = best;
      v.reason += "; taken as the " + to_string(best) + " of another GPU of its kind";
    } else {
      v.reason += "; its best is not told, so the rate is taken as it is";
    }
    say(v, severity::note,
        "the PCIe link of a GPU runs at " + to_string(v.told) + ", which an idle GPU may do to save power",
        "look again under load");
  }

  void borrow(std::size_t i) {
    const pcie_cable& c = c_[i];
    const bool fast = c.gpu || c.nic;
    verdict& v = v_[i];
    for (std::size_t up = c.parent; up != no_cable && v.used.value == 0; up = c_[up].parent)
      if (v_[up].told.value > 0 && !(fast && v_[up].told <= slowest)) {
        v.used = v_[up].told;
        v.reason = "link not told, taken as that of the bridge above, " + to_string(v.used);
      }
    if (c.parent != no_cable && v.used.value == 0) {
      v.used = fastest_told_[c.parent];
      if (v.used.value > 0) v.reason = "link not told, taken as that of a device beside it, " + to_string(v.used);
    }
    if (v.used.value == 0) {
      v.used = pcie_line_rate(3, 16);
      v.reason = "link not told, taken as Gen3 x16";
    }
    say(v, fast ? severity::warning : severity::note, "the PCIe link is not told; it is assumed",
        fast ? "measure, or read lspci -vv on the host" : "");
  }

  void judge_bridge(std::size_t i) {
    verdict& v = v_[i];
    bytes_per_second fastest{};
    for (const std::size_t below : below_[i]) fastest = std::max(fastest, v_[below].used);
    if (v.told.value == 0) {
      v.used = fastest;
      v.reason = "link not told, taken as that of the fastest device below, " + to_string(fastest);
      say(v, severity::warning, "the PCIe link of a bridge is not told; taken as that of the fastest device below",
          "measure, or read lspci -vv on the host");
    } else if (v.told <= slowest && fastest > slowest * 4) {
      v.used = fastest;
      v.how = trust::assumed;
      v.reason = "bridge speed not trusted: " + to_string(v.told) + " above " + to_string(fastest) +
                 " is what emulated bridges print; taken as the fastest device below";
      say(v, severity::warning,
          "bridge speed not trusted: 2.5 GT/s x1 above faster devices, as emulated bridges print; taken as that of the "
          "fastest device below",
          "measure, or read lspci -vv on the host");
    }
  }

  const std::vector<pcie_cable>& c_;
  std::vector<verdict> v_;
  std::vector<std::vector<std::size_t>> below_;
  std::vector<bytes_per_second> fastest_told_;        // of the links below each
  std::vector<std::pair<std::string, double>> gpus_;  // model and rate of each GPU that tells one
};

}}}  // namespace topocoll::v0::detail
