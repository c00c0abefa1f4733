// SPDX-License-Identifier: Apache-2.0
#pragma once
// NUMA domains and memories of an hwloc topology.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/hwloc_build.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

template <class Deferred>
std::string hwloc_builder<Deferred>::list_of(const std::vector<std::uint32_t>& words) {
  std::string text;
  const std::size_t bits = 32 * words.size();
  const auto has = [&](std::size_t bit) { return bit < bits && (words[bit / 32] >> (bit % 32) & 1U) != 0; };
  for (std::size_t bit = 0; bit < bits; ++bit) {
    if (!has(bit)) continue;
    std::size_t last = bit;
    while (has(last + 1)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(bit);
    if (last > bit) text += "-" + std::to_string(last);
    bit = last;
  }
  return text;
}

/// Processors belong to one domain: ordinary memory before special, near before far, low numbers first.
template <class Deferred>
void hwloc_builder<Deferred>::find_owners() {
  const auto& all = t_.numas;
  domains_.resize(all.size());
  std::vector<std::size_t> order(all.size());
  std::vector<std::size_t> count(all.size());
  for (std::size_t d = 0; d < all.size(); ++d) {
    order[d] = d;
    for (const std::uint32_t word : all[d].cpus)
      for (std::uint32_t rest = word; rest != 0; rest &= rest - 1) ++count[d];
  }
  seq::sort(order, [&](std::size_t a, std::size_t b) {
    const auto special = [&](std::size_t d) { return !all[d].subtype.empty() && all[d].subtype != "DRAM"; };
    if (special(a) != special(b)) return special(b);
    return count[a] != count[b] ? count[a] < count[b] : a < b;
  });
  std::vector<std::uint32_t> taken;
  std::size_t first = none;
  for (const std::size_t d : order) {
    if (all[d].cpus.empty() || overlap(all[d].cpus, taken)) continue;
    domains_[d].own_processors = true;
    first = std::min(first, d);
    if (taken.size() < all[d].cpus.size()) taken.resize(all[d].cpus.size());
    for (std::size_t w = 0; w < all[d].cpus.size(); ++w) taken[w] |= all[d].cpus[w];
  }
  if (first == none && !all.empty()) {
    first = 0;  // no set of processors is told
    for (std::size_t d = 0; d < all.size(); ++d)
      if (all[d].subtype.empty()) domains_[d].own_processors = true;
    domains_[0].own_processors = true;
  }
  constexpr std::size_t most = 512;  // beyond that memory without processors goes to the first domain
  for (std::size_t d = 0; d < all.size(); ++d) {
    if (domains_[d].own_processors) continue;
    domains_[d].near = first;
    for (std::size_t o = 0; o < all.size() && all.size() <= most; ++o)
      if (domains_[o].own_processors && overlap(all[o].cpus, all[d].cpus)) {
        domains_[d].near = o;
        break;
      }
  }
}

/// Whose memory a domain without processors is, in a word.
template <class Deferred>
std::string hwloc_builder<Deferred>::memory_of(std::size_t d) const {
  const read::hwloc_numa& n = t_.numas[d];
  if (n.subtype == "GPUMemory") {
    const std::string bus = info_of(n.infos, "PCIBusID");
    return bus.empty() ? "gpu" : "gpu " + bus;
  }
  if (!n.subtype.empty()) return n.subtype;
  // POWER firmware numbers the memories of GPUs from 255 downwards (skiboot, hw/npu2.c), host memory from 0 upwards; other
  // machines hide them.
  if (info_of(t_.infos, "Architecture").rfind("ppc64", 0) == 0 && n.number && *n.number >= 240 && *n.number <= 255)
    return "gpu";
  return "unknown";
}

template <class Deferred>
void hwloc_builder<Deferred>::add_domains() {
  find_owners();
  const std::string arch = info_of(t_.infos, "Architecture");
  std::vector<processor> sockets;
  const auto describe = [&](topo::node& n, const std::vector<std::uint32_t>& cpus) {
    const read::hwloc_package* package = t_.packages.empty() ? nullptr : &t_.packages.front();
    constexpr std::size_t most = 1024;  // packages that are looked at
    for (std::size_t p = 0; p < t_.packages.size() && p < most; ++p)
      if (overlap(t_.packages[p].cpus, cpus)) {
        package = &t_.packages[p];
        break;
      }
    const auto told = [&](const char* name) {
      const std::string own = package ? info_of(package->infos, name) : std::string();
      return own.empty() ? info_of(t_.infos, name) : own;
    };
    const std::string vendor = told("CPUVendor"), family = told("CPUFamilyNumber"), model = told("CPUModelNumber");
    fact(n, "arch", arch);
    fact(n, "cpus", list_of(cpus));
    fact(n, "familyid", family);
    fact(n, "model_name", told("CPUModel"));
    fact(n, "modelid", model);
    fact(n, "vendor", vendor);
    sockets.push_back({arch, vendor, read::small_number(family), read::small_number(model)});
  };
  const bool tells_memory =
      seq::any_of(t_.numas, [](const read::hwloc_numa& n) { return n.memory && n.memory->value > 0; });
  for (std::size_t d = 0; d < t_.numas.size(); ++d) {
    const read::hwloc_numa& told = t_.numas[d];
    const bool own = domains_[d].own_processors;
    topo::node n;
    const std::uint32_t number = told.number.value_or(static_cast<std::uint32_t>(d));
    n.kind = topo::node_kind::cpu;
    n.key = host_ + "/numa:" + std::to_string(number);
    n.name = "NUMA " + std::to_string(number);
    n.host = host_;
    n.index = n.numa = number;
    if (!told.number) {
      n.how = trust::assumed;
      n.reason = "the file gives the NUMA node no number; numbered by its place";
    }
    if (told.memory) fact(n, "memory_bytes", std::to_string(told.memory->value));
    if (own) {
      describe(n, told.cpus);
    } else {
      const std::string whose = memory_of(d);
      fact(n, "memory_of", whose);
      if (whose.rfind("gpu", 0) == 0)
        tally_.add(severity::note, "a NUMA domain without processors is the memory of a GPU; nothing is placed on it",
                   n.name);
      else
        tally_.add(severity::note,
                   "a NUMA domain has memory but no processors of its own; its memory is joined to a domain that has",
                   n.name + (whose == "unknown" ? "" : " (" + whose + ")"));
    }
    by_number_.emplace_back(number, d);
    domains_[d].node = add(std::move(n), told.line);
    if (own) cpus_.push_back(domains_[d].node);
  }
  seq::sort(by_number_);
  if (cpus_.empty()) {
    topo::node n;
    n.kind = topo::node_kind::cpu;
    n.key = host_ + "/numa:0";
    n.name = "NUMA 0";
    n.host = host_;
    n.index = n.numa = 0;
    n.how = trust::assumed;
    n.reason = "hwloc shows no NUMA node; the machine is taken as one";
    std::vector<std::uint32_t> cpus;
    for (const read::hwloc_package& p : t_.packages) {
      if (cpus.size() < p.cpus.size()) cpus.resize(p.cpus.size());
      for (std::size_t w = 0; w < p.cpus.size(); ++w) cpus[w] |= p.cpus[w];
    }
    describe(n, cpus);
    if (t_.memory) fact(n, "memory_bytes", std::to_string(t_.memory->value));
    cpus_.push_back(add(std::move(n), 0));
    add_memory(out_, cpus_.front(), host_ + "/memory:0", "memory 0");
    if (t_.memory) fact(out_.nodes.back(), "memory_bytes", std::to_string(t_.memory->value));
    tally_.add(severity::note, "hwloc shows no NUMA node; the machine is taken as one", host_);
  }
  for (std::size_t d = 0; d < t_.numas.size(); ++d) {
    const read::hwloc_numa& told = t_.numas[d];
    const std::string number = std::to_string(told.number.value_or(static_cast<std::uint32_t>(d)));
    const bool none_here = told.memory ? told.memory->value == 0 : tells_memory;
    if (none_here) tally_.add(severity::note, "a NUMA domain has no memory", "NUMA " + number);
    if (none_here || (!domains_[d].own_processors && memory_of(d).rfind("gpu", 0) == 0)) continue;
    const node_id at = domains_[d].own_processors ? domains_[d].node : domains_[domains_[d].near].node;
    add_memory(out_, at, host_ + "/memory:" + number, "memory " + number);
    lines_.resize(out_.nodes.size(), told.line);
    out_.nodes.back().numa = out_.nodes[domains_[d].node.value].numa;
    if (told.memory) fact(out_.nodes.back(), "memory_bytes", std::to_string(told.memory->value));
  }
  // A mesh of all is only made where machines are that small.
  for (std::size_t a = 0; a < cpus_.size(); ++a)
    for (std::size_t b = a + 1; b < (cpus_.size() <= 128 ? cpus_.size() : std::min(a + 2, cpus_.size())); ++b)
      join_domains(out_, cpus_[a], sockets[a], cpus_[b], sockets[b]);
  add_distances();
}

/// The latencies of each domain to all, by rising number, as the kernel writes them.
template <class Deferred>
void hwloc_builder<Deferred>::add_distances() {
  for (const read::hwloc_matrix& m : t_.matrices) {
    if (m.name != "NUMALatency" || !m.by_os_index) continue;
    const std::size_t n = m.places.size();
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    seq::sort(order, [&](std::size_t a, std::size_t b) { return m.places[a].index < m.places[b].index; });
    for (const std::size_t row : order) {
      const auto at = std::lower_bound(by_number_.begin(), by_number_.end(), m.places[row].index,
                                       [](const auto& pair, std::uint64_t number) { return pair.first < number; });
      if (at == by_number_.end() || at->first != m.places[row].index) continue;
      std::string text;
      for (const std::size_t column : order) {
        const double value = m.values[row * n + column];
        text += (text.empty() ? "" : " ") + std::to_string(value < 1e9 ? static_cast<std::uint64_t>(value + 0.5) : 0);
      }
      fact(out_.nodes[domains_[at->second].node.value], "distances", std::move(text));
    }
    return;
  }
}

}}}  // namespace topocoll::v0::detail
