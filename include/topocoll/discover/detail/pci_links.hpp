// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns a forest of PCI functions into PCIe links: what is told, what is assumed where nothing is told, and why.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

inline constexpr std::size_t no_function = static_cast<std::size_t>(-1);

/// Generation and width of a PCIe link; 0 is "not told".
struct pcie_figure {
  std::uint32_t generation = 0;
  std::uint32_t lanes = 0;
  [[nodiscard]] bool whole() const { return generation != 0 && lanes != 0; }
  [[nodiscard]] bool none() const { return generation == 0 && lanes == 0; }
};

/// "Gen5 x16", "Gen5", "x16".
template <class = void>
[[nodiscard]] std::string to_text(pcie_figure f) {
  std::string text = f.generation != 0 ? "Gen" + std::to_string(f.generation) : std::string();
  if (f.lanes != 0) text += (text.empty() ? "x" : " x") + std::to_string(f.lanes);
  return text.empty() ? "not told" : text;
}

/// One function and the link between it and what stands above it.
struct pci_function {
  node_id node;                      ///< its node
  node_id above;                     ///< node of what stands above: a function or a CPU
  std::size_t parent = no_function;  ///< position of the function above, smaller than its own; none under a CPU
  bool bridge = false;               ///< passes data on
  bool gpu = false;
  bool nic = false;
  bool emulated = false;  ///< a device of a guest with the figures that emulators give to all: they mean nothing
  pcie_figure best;       ///< the best that both ends can do
  pcie_figure now;        ///< what the link has trained to
  std::string who;        ///< for findings
};

/// What a link is taken to be.
struct pcie_verdict {
  pcie_figure used;
  trust how = trust::assumed;
  std::string reason;
};

class pci_links {
 public:
  explicit pci_links(const std::vector<pci_function>& functions)
      : f_(functions), v_(functions.size()), below_(functions.size()) {
    for (std::size_t i = 0; i < f_.size(); ++i)
      if (f_[i].parent != no_function) below_[f_[i].parent].push_back(i);
    for (std::size_t i = 0; i < f_.size(); ++i) take_what_is_told(i);
    fastest_told_.resize(f_.size());
    for (std::size_t i = 0; i < f_.size(); ++i)
      if (const std::size_t p = f_[i].parent; p != no_function && payload(v_[i].used) > payload(fastest_told_[p]))
        fastest_told_[p] = v_[i].used;
    for (std::size_t i = 0; i < f_.size(); ++i)
      if (v_[i].used.none() && below_[i].empty()) borrow(i);
    for (std::size_t i = f_.size(); i-- > 0;)
      if (!below_[i].empty()) judge_bridge(i);
    seq::sort(remarks_, [](const remark& a, const remark& b) { return a.function < b.function; });
  }

  /// Adds both directions of every link. Cost: O(n) for bounded depth.
  void join(topo::fragment& fragment, tally& tally) const {
    for (std::size_t i = 0; i < f_.size(); ++i) {
      const pci_function& f = f_[i];
      topo::link l;
      l.from = f.above;
      l.to = f.node;
      l.kind = topo::link_kind::pcie;
      const pcie_figure told = stated(f);
      l.generation = told.generation;
      l.lanes = told.lanes;
      if (f.best.whole()) l.nominal = pcie_line_rate(f.best.generation, f.best.lanes);
      if (f.now.whole()) l.current = pcie_line_rate(f.now.generation, f.now.lanes);
      l.capacity = pcie_payload_rate(v_[i].used.generation, v_[i].used.lanes);
      l.how = v_[i].how;
      l.reason = v_[i].reason;
      fragment.join(l);
    }
    for (const remark& r : remarks_) tally.add(r.level, r.what, f_[r.function].who, r.next_step);
  }

  [[nodiscard]] bytes_per_second capacity(std::size_t i) const {
    return pcie_payload_rate(v_[i].used.generation, v_[i].used.lanes);
  }
  /// Whether anything tells how fast the link is.
  [[nodiscard]] bool told(std::size_t i) const { return stated(f_[i]).generation != 0; }

 private:
  struct remark {
    severity level;
    std::size_t function;
    std::string what, next_step;
  };

  /// What the link runs at: trained if told, else the best.
  [[nodiscard]] static pcie_figure stated(const pci_function& f) {
    return {f.now.generation != 0 ? f.now.generation : f.best.generation,
            f.now.lanes != 0 ? f.now.lanes : f.best.lanes};
  }
  [[nodiscard]] static bool slowest(pcie_figure f) { return f.generation == 1 && f.lanes <= 1; }
  [[nodiscard]] static bytes_per_second payload(pcie_figure f) { return pcie_payload_rate(f.generation, f.lanes); }

  void take_what_is_told(std::size_t i) {
    const pci_function& f = f_[i];
    pcie_figure told = stated(f);
    pcie_verdict& v = v_[i];
    if (told.none() || f.emulated) return;
    if (told.whole()) {
      v.how = trust::derived;
      v.reason = "payload of " + to_text(told) + " as in NCCL's model";
      trained_low(i, told);
      if (f.gpu && told.generation == 1) idle_gpu(i, told);
    } else if (told.lanes == 0) {
      told.lanes = 16;
      v.reason = "width not told, taken as x16";
      remarks_.push_back(
          {severity::warning, i, "the PCIe width is not told; taken as x16", "measure, or read lspci -vv on the host"});
    } else {
      told.generation = 3;
      v.reason = "speed not told, taken as Gen3";
      remarks_.push_back({severity::warning, i, "the PCIe speed is not told; taken as Gen3",
                          "measure, or read lspci -vv on the host"});
    }
    v.used = told;
  }

  /// A trained figure below the best: a narrow width is lost; a low speed of an idle GPU saves power.
  void trained_low(std::size_t i, pcie_figure& told) {
    const pci_function& f = f_[i];
    if (!f.best.whole()) return;
    if (told.lanes < f.best.lanes)
      remarks_.push_back({severity::warning, i,
                          "the PCIe link runs narrower than both ends can: " + to_text(told) + " of " + to_text(f.best),
                          "reseat the card; compare with hosts of the same kind"});
    if (told.generation >= f.best.generation) return;
    if (leads_to_gpu(i)) {
      v_[i].how = trust::assumed;
      v_[i].reason =
          to_text(told) + " now, but an idle GPU lowers its speed; taken as Gen" + std::to_string(f.best.generation);
      remarks_.push_back({severity::note, i,
                          "the PCIe link runs at " + to_text(told) + " of " + to_text(f.best) +
                              ", which an idle GPU does to save power",
                          "look again under load"});
      told.generation = f.best.generation;
    } else {
      remarks_.push_back({severity::warning, i,
                          "the PCIe link runs slower than both ends can: " + to_text(told) + " of " + to_text(f.best),
                          "reseat the card; check the slot's setting"});
    }
  }
  /// A GPU that tells no more than 2.5 GT/s: idle GPUs do, and those in one package with the processor. None computes at it.
  void idle_gpu(std::size_t i, pcie_figure& told) {
    const pcie_figure taken{3, told.lanes};  // as for a device that tells no speed
    v_[i].how = trust::assumed;
    v_[i].reason =
        to_text(told) + " told, as idle GPUs and those of a processor's package do; taken as " + to_text(taken);
    remarks_.push_back({severity::warning, i,
                        "the PCIe link of a GPU tells 2.5 GT/s as its best, as idle GPUs and those of a processor's "
                        "package do; taken as Gen3",
                        "look again under load, or measure"});
    told = taken;
  }
  [[nodiscard]] bool leads_to_gpu(std::size_t i) const {
    while (f_[i].bridge && below_[i].size() == 1) i = below_[i].front();
    return f_[i].gpu;
  }

  /// A device that tells nothing: as the nearest bridge above, else as a neighbour, else Gen3 x16.
  void borrow(std::size_t i) {
    const bool fast = f_[i].gpu || f_[i].nic;
    pcie_verdict& v = v_[i];
    const std::string why =
        f_[i].emulated ? "2.5 GT/s x1 in a guest is an emulator's figure, not a link's" : "link not told";
    for (std::size_t up = f_[i].parent; up != no_function; up = f_[up].parent) {
      const pcie_figure told = stated(f_[up]);
      if (!told.whole() || ((fast || f_[i].emulated) && slowest(told))) continue;
      v.used = told;
      v.reason = why + ", taken as that of the bridge above, " + to_text(told);
      break;
    }
    if (v.used.none() && f_[i].parent != no_function) {
      v.used = fastest_told_[f_[i].parent];
      if (!v.used.none()) v.reason = why + ", taken as that of a device beside it, " + to_text(v.used);
    }
    if (v.used.none()) {
      v.used = {3, 16};
      v.reason = why + ", taken as Gen3 x16";
    }
    remarks_.push_back({fast && !f_[i].emulated ? severity::warning : severity::note, i,
                        (f_[i].emulated ? "the PCIe link of an emulated device is not a real one; taken as "
                                        : "the PCIe link is not told; taken as ") +
                            to_text(v.used),
                        fast && !f_[i].emulated ? "measure, or read lspci -vv on the host" : ""});
  }

  void judge_bridge(std::size_t i) {
    pcie_verdict& v = v_[i];
    pcie_figure fastest;
    for (const std::size_t below : below_[i])
      if (payload(v_[below].used) > payload(fastest)) fastest = v_[below].used;
    const pcie_figure told = stated(f_[i]);
    if (told.none()) {
      v.used = fastest;
      v.reason = "link not told, taken as that of the fastest device below, " + to_text(fastest);
      remarks_.push_back({severity::warning, i,
                          "the PCIe link of a bridge is not told; taken as that of the fastest device below",
                          "measure, or read lspci -vv on the host"});
    } else if (slowest(told) && !better_than(f_[i].best, told) && payload(fastest) > payload({1, 1}) * 4) {
      // Emulators print 2.5 GT/s x1 for every bridge they invent; a real one above a device that is more than four
      // times as fast would have trained better.
      v.used = fastest;
      v.how = trust::assumed;
      v.reason = "bridge speed not trusted: " + to_text({1, 1}) + " above " + to_text(fastest) +
                 " is what emulated bridges print; taken as the fastest device below";
      remarks_.push_back({severity::warning, i,
                          "bridge speed not trusted: 2.5 GT/s x1 above faster devices, as emulated bridges print; "
                          "taken as that of the fastest device below",
                          "measure, or read lspci -vv on the host"});
    } else if (told.whole() && payload(v.used) < payload(fastest) && v_[i].how == trust::derived) {
      remarks_.push_back(
          {severity::note, i, "the PCIe link of a bridge carries less than that of a device below it", ""});
    }
  }
  [[nodiscard]] static bool better_than(pcie_figure a, pcie_figure b) {
    return a.generation > b.generation || (b.lanes != 0 && a.lanes > b.lanes);
  }

  const std::vector<pci_function>& f_;
  std::vector<pcie_verdict> v_;
  std::vector<std::vector<std::size_t>> below_;
  std::vector<pcie_figure> fastest_told_;  // of the functions below each
  std::vector<remark> remarks_;
};

}}}  // namespace topocoll::v0::detail
