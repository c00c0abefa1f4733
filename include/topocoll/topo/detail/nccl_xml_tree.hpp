// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which hosts go into an NCCL topology file, and what stands above each of their devices.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/nccl_xml_build.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class Deferred>
result<void> nccl_writer<Deferred>::choose_hosts() {
  const std::vector<group> all = hosts(g_);
  const auto names = [&] {
    std::string text;
    for (std::size_t i = 0; i < all.size() && i < 6; ++i) text += (i == 0 ? "" : ", ") + all[i].name;
    return text + (all.size() > 6 ? ", …" : "");
  };
  if (all.empty()) return fail(errc::invalid_argument, "the graph has no host to write as an NCCL topology");
  if (o_.host.empty() && all.size() > 1)
    return fail(errc::invalid_argument,
                "the graph has " + std::to_string(all.size()) + " hosts, an NCCL topology holds one",
                "name one of " + names());
  const auto chosen = o_.host.empty() ? all.begin() : seq::find_by(all, o_.host, &group::name);
  if (chosen == all.end())
    return fail(errc::invalid_argument, "the graph has no host \"" + o_.host + "\"", "name one of " + names());
  hosts_.push_back(chosen->name);
  here_.assign(g_.node_count(), false);
  for (const node_id v : chosen->nodes) here_[v.value] = true;
  if (!o_.whole_domain) return {};
  std::vector<bool> plane(g_.node_count(), false);
  for (const node_id v : chosen->nodes)
    for (const link_id e : g_.out_links(v))
      if (g_.at(g_.head(e)).kind == node_kind::nvswitch) plane[g_.head(e).value] = true;
  for (const group& h : all) {
    if (h.name == chosen->name) continue;
    const bool shares = seq::any_of(h.nodes, [&](node_id v) {
      return seq::any_of(g_.out_links(v), [&](link_id e) { return plane[g_.head(e).value]; });
    });
    if (!shares) continue;
    hosts_.push_back(h.name);
    for (const node_id v : h.nodes) here_[v.value] = true;
  }
  return {};
}

template <class Deferred>
result<void> nccl_writer<Deferred>::lay_tree() {
  for (std::uint32_t v = 0; v < g_.node_count(); ++v)
    if (here_[v] && g_.at(node_id{v}).kind == node_kind::cpu) cpus_.push_back({v});
  if (cpus_.empty())
    return fail(
        errc::unsupported,
        "host " + hosts_.front() + " has no NUMA domain in the graph, so there is nothing to hang its devices on",
        "describe it in full (detail=full), or discover it on the machine");
  below_.resize(g_.node_count());
  above_.assign(g_.node_count(), none);
  uplink_.assign(g_.node_count(), none);
  std::vector<std::uint32_t> depth(g_.node_count(), 0);
  std::vector<node_id> found = cpus_;
  for (const node_id cpu : cpus_) above_[cpu.value] = cpu.value;
  const auto reach = [&](std::size_t first, link_kind kind, bool further) {
    for (std::size_t i = first; i < found.size(); ++i)
      for (const link_id e : g_.out_links(found[i])) {
        const node_id w = g_.head(e);
        const link& l = g_.at(e);
        if (l.kind != kind || is_further(l) != further || !is_here(w) || above_[w.value] != none || is_partition(w))
          continue;
        if (l.capacity.value <= 0) {
          note(severity::warning, "a device whose link is dead is left out", name_of(w));
          continue;
        }
        above_[w.value] = found[i].value;
        uplink_[w.value] = e.value;
        depth[w.value] = depth[found[i].value] + 1;
        found.push_back(w);
      }
  };
  reach(0, link_kind::pcie, false);
  reach(0, link_kind::pcie, true);
  reach(0, link_kind::pcie, false);
  reach(0, link_kind::c2c, false);
  for (std::uint32_t v = 0; v < g_.node_count(); ++v) {
    const node& n = g_.at(node_id{v});
    is_amd_ = is_amd_ || (here_[v] && n.kind == node_kind::gpu && has_text(n, "gcn"));
    if (!here_[v] || above_[v] != none) continue;
    if (n.kind == node_kind::gpu && !is_partition({v})) {
      if (auto ok = adopt({v}); !ok) return ok.error();
    } else if (n.kind == node_kind::nic) {
      if (auto ok = adopt({v}); !ok) return ok.error();
    } else if (n.kind == node_kind::host_memory) {
      const bool alone = seq::none_of(g_.out_links({v}), [&](link_id e) { return above_[g_.head(e).value] != none; });
      if (alone) note(severity::note, "memory without cores has no place in NCCL's file", name_of({v}));
    }
  }
  for (std::uint32_t v = 0; v < g_.node_count(); ++v) {
    if (above_[v] == none || above_[v] == v) continue;
    below_[above_[v]].push_back({v});
    if (depth[v] > o_.most_elements)
      return fail(errc::unsupported, name_of({v}) + " lies below more than " + std::to_string(o_.most_elements) +
                                         " PCIe switches; NCCL reads no file of that many elements");
  }
  return {};
}

template <class Deferred>
result<void> nccl_writer<Deferred>::adopt(node_id v) {
  const node& n = g_.at(v);
  node_id cpu = cpus_.front();
  bool told = false;
  for (const node_id c : cpus_)
    if (!told && g_.at(c).host == n.host && n.numa && g_.at(c).numa == n.numa) {
      cpu = c;
      told = true;
    }
  if (!told)
    for (std::size_t c = cpus_.size(); c-- > 0;)
      if (g_.at(cpus_[c]).host == n.host) cpu = cpus_[c];
  if (g_.at(cpu).host != n.host)
    return fail(errc::unsupported,
                "host " + n.host + " has no NUMA domain in the graph, so there is no place for " + name_of(v));
  above_[v.value] = cpu.value;
  note(told ? severity::note : severity::warning,
       told ? "no link leads to the device; it is written below its NUMA domain"
            : "no link leads to the device and its NUMA domain is not told; it is written below the first",
       name_of(v));
  return {};
}

}}}}  // namespace topocoll::v0::topo::detail
