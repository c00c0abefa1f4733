// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a topology matrix becomes nodes and links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/host.hpp>
#include <topocoll/discover/detail/keys.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/matrix_graph.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// Most NVLinks of one GPU: 18 since NVLink 4. Source: NVIDIA's data sheets of H100 and B200.
inline constexpr std::uint32_t most_nvlinks_of_a_gpu = 18;

/// Sets of devices, joined step by step.
class device_sets {
 public:
  explicit device_sets(std::size_t n) : up_(n) {
    for (std::size_t i = 0; i < n; ++i) up_[i] = i;
  }
  /// The smallest member of the set of `i`.
  [[nodiscard]] std::size_t first(std::size_t i) {
    while (up_[i] != i) i = up_[i] = up_[up_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = first(a);
    b = first(b);
    up_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> up_;
};

template <class = void>
class matrix_builder {
 public:
  matrix_builder(const read::nvidia_smi_topo& matrix, const std::string& host, const std::string& file)
      : m_(matrix),
        host_(host),
        file_(file),
        n_(matrix.devices.size()),
        sets_{device_sets(n_), device_sets(n_), device_sets(n_), device_sets(n_)},
        home_(n_),
        node_(n_) {
    out_.source = "nvidia-smi-topo " + file_;
    out_.findings = m_.findings;
  }

  [[nodiscard]] topo::fragment build() {
    if (m_.peers) {
      for (std::size_t i = 0; i < n_; ++i) node_[i] = out_.add(device(i));
      add_peers();
    } else {
      join_sets();
      place_domains();
      add_domains();
      add_devices();
      add_gpu_links();
      tell_contradictions();
    }
    for (topo::node& n : out_.nodes) seq::sort(n.facts);
    make_keys_unique(out_, {}, tally_);
    tally_.report(file_, out_.findings);
    return std::move(out_);
  }

 private:
  enum level : std::size_t { pix, pxb, phb, numa, far, untold };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct domain {
    std::optional<std::uint32_t> number;
    std::string processors;  // affinity that stands for a number where none is told
    std::vector<std::size_t> members;
    node_id node;
  };

  [[nodiscard]] static level level_of(read::matrix_word w) {
    switch (w) {
      case read::matrix_word::pix: return pix;
      case read::matrix_word::pxb: return pxb;
      case read::matrix_word::phb: return phb;
      case read::matrix_word::node: return numa;
      case read::matrix_word::sys:
      case read::matrix_word::soc: return far;
      default: return untold;
    }
  }
  [[nodiscard]] static const char* word_of(level l) {
    constexpr const char* words[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "?"};
    return words[l];
  }
  /// What the matrix says of a pair; of two rows that differ the farther.
  [[nodiscard]] read::matrix_cell cell(std::size_t i, std::size_t j) const {
    read::matrix_cell a = m_.between(i, j);
    const read::matrix_cell b = m_.between(j, i);
    if (b.word > a.word) return b;
    if (b.word == a.word) a.links = std::min(a.links, b.links);
    return a;
  }
  [[nodiscard]] level told(std::size_t i, std::size_t j) const { return level_of(cell(i, j).word); }
  [[nodiscard]] std::string pair_text(std::size_t i, std::size_t j) const {
    return m_.devices[i].label + "-" + m_.devices[j].label;
  }
  [[nodiscard]] std::optional<std::uint32_t> number_of(std::size_t i) const {
    return read::small_number(m_.devices[i].numa_affinity, 65535);
  }
  /// The level at which two devices are together in what is built.
  [[nodiscard]] level built(std::size_t i, std::size_t j) {
    for (const level l : {pix, pxb, phb, numa})
      if (sets_[l].first(i) == sets_[l].first(j)) return l;
    return home_[i] == home_[j] ? numa : far;
  }

  [[nodiscard]] topo::node device(std::size_t i) const;
  void join_sets();
  void place_domains();
  [[nodiscard]] bool fits(const std::vector<std::size_t>& cluster, const domain& d) const;
  void add_domains();
  void add_devices();
  node_id add_switch(std::size_t first, level l, node_id above);
  void join_pcie(node_id below, node_id above);
  void add_port(std::size_t i);
  void add_gpu_links();
  void join_gpus(node_id a, node_id b, std::uint32_t links);
  void add_peers();
  void tell_contradictions();

  const read::nvidia_smi_topo& m_;
  std::string host_;
  std::string file_;
  std::size_t n_;
  device_sets sets_[4];            // devices that are together at each level
  std::vector<std::size_t> home_;  // domain of each device
  std::vector<node_id> node_;      // of each device
  std::vector<domain> domains_;
  topo::fragment out_;
  tally tally_;
};

template <class Deferred>
topo::node matrix_builder<Deferred>::device(std::size_t i) const {
  const read::matrix_device& d = m_.devices[i];
  topo::node n;
  n.host = host_;
  n.index = d.index;
  n.numa = number_of(i);
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty()) n.facts.emplace_back(name, value);
  };
  if (d.gpu) {
    n.kind = topo::node_kind::gpu;
    n.key = host_ + "/gpu:" + std::to_string(*d.index);
    n.name = "GPU " + std::to_string(*d.index);
    fact("cpu_affinity", d.cpu_affinity);
    fact("gpu_numa_id", d.gpu_numa_id);
    fact("numa_affinity", d.numa_affinity);
    if (d.label.substr(0, 3) != "GPU") fact("label", d.label);
  } else {
    n.kind = topo::node_kind::nic;
    n.name = d.name.empty() ? d.label : d.name;
    n.key = host_ + "/nic:" + n.name;
    if (d.name.empty()) {
      n.how = trust::derived;
      n.reason = "the matrix only numbers it; no legend names it";
    } else if (d.label != d.name) {
      fact("label", d.label);
    }
  }
  return n;
}

template <class Deferred>
void matrix_builder<Deferred>::join_sets() {
  for (std::size_t i = 0; i < n_; ++i)
    for (std::size_t j = i + 1; j < n_; ++j) {
      const auto& there = m_.devices[i].cells;
      const auto& back = m_.devices[j].cells;
      if (j < there.size() && i < back.size() && there[j] != back[i] && there[j].word != read::matrix_word::untold &&
          back[i].word != read::matrix_word::untold)
        tally_.add(severity::warning, "the two rows of a pair tell different things; the farther is taken",
                   pair_text(i, j), "print the matrix again");
      for (std::size_t l = told(i, j); l <= numa; ++l) sets_[l].join(i, j);
    }
}

/// No member is told to be in another domain than a member of `d`.
template <class Deferred>
bool matrix_builder<Deferred>::fits(const std::vector<std::size_t>& cluster, const domain& d) const {
  for (const std::size_t i : cluster)
    for (const std::size_t j : d.members)
      if (told(i, j) == far) return false;
  return true;
}

/// Which devices share a cpu: those that the classes hold together, then those of one NUMA number, then those whose
/// processors are the same, as long as no class says SYS.
template <class Deferred>
void matrix_builder<Deferred>::place_domains() {
  std::vector<std::vector<std::size_t>> clusters(n_);
  for (std::size_t i = 0; i < n_; ++i) clusters[sets_[numa].first(i)].push_back(i);
  for (std::size_t i = 0; i < n_; ++i)
    if (const auto number = number_of(i)) {
      const auto same = [&](const domain& d) { return d.number == number; };
      if (seq::find_if(domains_, same) == domains_.end()) domains_.push_back({number, {}, {}, {}});
    }
  seq::sort(domains_, [](const domain& a, const domain& b) { return *a.number < *b.number; });
  const auto settle = [&](const std::vector<std::size_t>& cluster, std::size_t d) {
    for (const std::size_t i : cluster) {
      home_[i] = d;
      domains_[d].members.push_back(i);
    }
  };
  for (const bool with_number : {true, false})
    for (const auto& cluster : clusters) {
      if (cluster.empty()) continue;
      std::optional<std::uint32_t> number;
      std::string processors;
      for (const std::size_t i : cluster) {
        const auto own = number_of(i);
        if (with_number && own && number && *own != *number)
          tally_.add(
              severity::warning, "the classes put devices of different NUMA domains into one; the classes are believed",
              m_.devices[i].label + " (NUMA " + std::to_string(*own) + " beside " + std::to_string(*number) + ")",
              "look at /sys/bus/pci/devices/*/numa_node");
        if (own && (!number || *own < *number)) number = own;
        // A NUMA affinity of several domains says that the processors cover several as well.
        if (m_.devices[i].numa_affinity.empty() && processors.empty()) processors = m_.devices[i].cpu_affinity;
      }
      if (number.has_value() != with_number) continue;
      std::size_t to = none;
      bool refused = false;
      for (std::size_t d = 0; d < domains_.size() && to == none; ++d) {
        const bool meant =
            number ? domains_[d].number == number : !domains_[d].number && domains_[d].processors == processors;
        if (!meant) continue;
        if (fits(cluster, domains_[d]))
          to = d;
        else
          refused = number.has_value() || !processors.empty();
      }
      if (refused && number)
        tally_.add(severity::warning,
                   "the matrix says SYS between devices that it puts into one NUMA domain; the classes are believed",
                   m_.devices[cluster.front()].label + " (NUMA " + std::to_string(*number) + ")",
                   "look at /sys/bus/pci/devices/*/numa_node");
      if (to == none) {
        to = domains_.size();
        domains_.push_back({std::nullopt, number ? std::string() : processors, {}, {}});
      }
      settle(cluster, to);
    }
}

template <class Deferred>
void matrix_builder<Deferred>::add_domains() {
  for (domain& d : domains_) {
    topo::node n;
    n.kind = topo::node_kind::cpu;
    n.host = host_;
    std::string processors;
    bool same = true;
    bool gpus = false;
    for (const std::size_t i : d.members) {
      const std::string& own = m_.devices[i].cpu_affinity;
      gpus = gpus || m_.devices[i].gpu;
      if (own.empty()) continue;
      same = same && (processors.empty() || processors == own);
      processors = own;
    }
    if (d.number) {
      n.key = host_ + "/numa:" + std::to_string(*d.number);
      n.name = "NUMA " + std::to_string(*d.number);
      n.index = n.numa = d.number;
      if (same && !processors.empty()) n.facts.emplace_back("cpus", processors);
    } else {
      const std::string& label = m_.devices[d.members.front()].label;
      n.key = host_ + "/numa:of-" + label;
      n.name = "NUMA of " + label;
      n.how = trust::assumed;
      n.facts.emplace_back("stand_in", "cpu");
      n.reason = d.processors.empty()
                     ? "no NUMA number is told; taken as a domain because nothing or SYS joins it to others"
                     : "no NUMA number is told; taken as the domain of processors " + d.processors;
      tally_.add(severity::note,
                 "a NUMA domain has no number; it stands for what the classes and processors tell apart", label);
    }
    const std::string memory = n.key.substr(host_.size() + 6);
    d.node = out_.add(std::move(n));
    if (d.number || gpus) {
      add_memory(out_, d.node, host_ + "/memory:" + memory, "memory " + memory);
      if (!d.number) out_.nodes.back().facts.emplace_back("stand_in", "host_memory");
    }
  }
  for (std::size_t a = 0; a < domains_.size(); ++a)
    for (std::size_t b = a + 1; b < domains_.size(); ++b)
      join_domains(out_, domains_[a].node, {}, domains_[b].node, {});
}

}  // namespace detail

template <class>
result<topo::fragment> fragment_of(const read::nvidia_smi_topo& matrix, const discover_options& options,
                                   const std::string& file) {
  return detail::matrix_builder<>(matrix, options.host, file).build();
}

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/matrix_links.hpp>
