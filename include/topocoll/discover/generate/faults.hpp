// SPDX-License-Identifier: Apache-2.0
#pragma once
// Faults in generated clusters: drawn from a seed, checked, and planted into the topology.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/rational.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/detail/random.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/discover/generate/shape.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// What `with_faults` draws at most; more would be another cluster rather than a faulty one.
inline constexpr std::uint32_t most_drawn_faults = 4096;

/// Evidence of the findings that name planted faults, so that a check that must find them by itself can pass them over.
inline constexpr const char* planted_evidence = "planted by the description";

/// Draws `count` faults at different places and adds them to the options: missing, unplugged and slow NICs, missing and
/// slow uplinks, NVLinks that are down, as far as the cluster has such parts. The seed alone decides.
/// @return  the options with the faults in `faults`; what `shape_of` refuses; `invalid_argument` when the cluster has
///          fewer places than that. Cost: O(faults^2)
template <class = void>
[[nodiscard]] result<fabric_options> with_faults(fabric_options options, std::uint32_t count, std::uint64_t seed);

/// "node3/nic2", "leaf1/spine0": how descriptions name a part.
template <class = void>
[[nodiscard]] std::string to_string(const fabric_part& part) {
  const auto pair = [&](const char* a, const char* b) {
    return a + std::to_string(part.first) + (*b != '\0' ? '/' + (b + std::to_string(part.second)) : std::string());
  };
  switch (part.kind) {
    case fabric_part::kind_t::host: return pair("node", "");
    case fabric_part::kind_t::gpu: return pair("node", "gpu");
    case fabric_part::kind_t::nic: return pair("node", "nic");
    case fabric_part::kind_t::leaf: return pair("leaf", "");
    case fabric_part::kind_t::spine: return pair("spine", "");
    case fabric_part::kind_t::core: return pair("core", "");
    case fabric_part::kind_t::leaf_uplink: return pair("leaf", "spine");
    case fabric_part::kind_t::spine_uplink: return pair("spine", "core");
  }
  return {};
}

namespace detail {

/// Where the shared parts of a generated cluster start.
struct fabric_layout {
  std::uint32_t plane = 0, leaf = 0, spine = 0, core = 0;
};

template <class = void>
bool is_there(const fabric_part& p, const fabric_options& o, const fabric_shape& s) {
  switch (p.kind) {
    case fabric_part::kind_t::host: return p.first < s.nodes;
    case fabric_part::kind_t::gpu: return p.first < s.nodes && p.second < o.host.gpus;
    case fabric_part::kind_t::nic: return p.first < s.nodes && p.second < s.rails;
    case fabric_part::kind_t::leaf: return p.first < s.leaves;
    case fabric_part::kind_t::spine: return p.first < s.spines;
    case fabric_part::kind_t::core: return p.first < s.cores;
    case fabric_part::kind_t::leaf_uplink:
      return p.first < s.leaves && p.second < s.spines &&
             (s.cores == 0 || p.first / s.leaves_per_pod() == p.second / s.spines_per_leaf());
    case fabric_part::kind_t::spine_uplink: return p.first < s.spines && p.second < s.cores;
  }
  return false;
}

/// NVLinks of one GPU of the model.
template <class = void>
std::uint32_t nvlinks_of(const host_model& m, std::uint32_t gpu) {
  if (m.has_nvswitch()) return m.nvlinks;
  std::uint32_t links = 0;
  for (const peer_link& p : m.mesh)
    if ((p.a == gpu || p.b == gpu) && p.a < m.gpus && p.b < m.gpus) links += p.links;
  return links;
}

template <class = void>
result<void> check_fault(const planted_fault& fault, const fabric_options& o, const fabric_shape& s) {
  using kind = fabric_part::kind_t;
  const fabric_part& p = fault.part;
  if (!is_there(p, o, s))
    return fail(errc::not_found, "the described cluster has no " + to_string(p),
                "it has " + counted(s.nodes, "host", "hosts") + " with " + counted(o.host.gpus, "GPU", "GPUs") +
                    " and " + counted(s.rails, "NIC", "NICs") + " each, " + counted(s.leaves, "leaf", "leaves") + ", " +
                    counted(s.spines, "spine", "spines") + " and " + counted(s.cores, "core switch", "core switches") +
                    ", counted from 0");
  const bool uplink = p.kind == kind::leaf_uplink || p.kind == kind::spine_uplink;
  switch (fault.kind) {
    case planted_fault::kind_t::missing: return {};
    case planted_fault::kind_t::unplugged:
      if (p.kind != kind::nic || s.leaves == 0)
        return fail(errc::invalid_argument, to_string(p) + " has no cable to unplug",
                    "name a NIC of a cluster with a network");
      return {};
    case planted_fault::kind_t::slow:
      if (p.kind != kind::nic && p.kind != kind::gpu && !uplink)
        return fail(errc::invalid_argument, to_string(p) + " cannot be slow as a whole",
                    "name a NIC, a GPU or an uplink");
      if (!fault.share.valid() || fault.share <= rational{0} || fault.share >= rational{1})
        return fail(errc::invalid_argument, "the speed of " + to_string(p) + " is not a share between 0 and 1",
                    "write for example 0.5");
      return {};
    case planted_fault::kind_t::nvlinks_down: {
      const std::uint32_t links = p.kind == kind::gpu ? nvlinks_of(o.host, p.second) : 0;
      if (fault.links == 0 || fault.links > links)
        return fail(errc::invalid_argument, to_string(p) + " cannot have " + counted(fault.links, "NVLink", "NVLinks") +
                                                " down: it has " + std::to_string(links));
      return {};
    }
  }
  return {};
}

template <class = void>
result<void> check_faults(const fabric_options& o, const fabric_shape& s) {
  for (const planted_fault& fault : o.faults)
    if (auto ok = check_fault(fault, o, s); !ok) return ok.error();
  return {};
}

/// Plants faults into a finished cluster. Positions hold until the last step, which drops what is missing.
template <class = void>
class fault_planter {
 public:
  fault_planter(topo::fragment& f, const fabric_options& o, const host_layout& host, const fabric_layout& at)
      : f_(f), o_(o), host_(host), at_(at), touched_(f.nodes.size(), false), gone_(f.nodes.size(), false) {}

  void plant(const planted_fault& fault) {
    const fabric_part& p = fault.part;
    const bool drop = fault.kind == planted_fault::kind_t::missing;
    const std::uint32_t host = p.first * host_.nodes;
    switch (p.kind) {
      case fabric_part::kind_t::host:
        for (std::uint32_t v = host; v < host + host_.nodes; ++v) gone_[v] = true;
        break;
      case fabric_part::kind_t::gpu:
        if (drop)
          gone_[host + host_.gpu + p.second] = true;
        else
          edit(host + host_.gpu + p.second, anywhere, fault);
        break;
      case fabric_part::kind_t::nic:
        if (drop)
          gone_[host + host_.nic + p.second] = gone_[host + host_.port + p.second] = true;
        else
          edit(host + host_.port + p.second, anywhere, fault);
        break;
      case fabric_part::kind_t::leaf: gone_[at_.leaf + p.first] = true; break;
      case fabric_part::kind_t::spine: gone_[at_.spine + p.first] = true; break;
      case fabric_part::kind_t::core: gone_[at_.core + p.first] = true; break;
      case fabric_part::kind_t::leaf_uplink: edit(at_.leaf + p.first, at_.spine + p.second, fault); break;
      case fabric_part::kind_t::spine_uplink: edit(at_.spine + p.first, at_.core + p.second, fault); break;
    }
    report(fault);
  }

  /// Changes links, then drops missing nodes and links in one pass.
  void finish() {
    seq::sort(changes_, [](const change& a, const change& b) { return a.node < b.node; });
    std::vector<std::uint32_t> place(f_.nodes.size(), 0);
    std::uint32_t kept = 0;
    for (std::uint32_t v = 0; v < f_.nodes.size(); ++v) {
      place[v] = kept;
      if (gone_[v]) continue;
      if (kept != v) f_.nodes[kept] = std::move(f_.nodes[v]);
      ++kept;
    }
    std::size_t out = 0;
    for (std::size_t e = 0; e < f_.links.size(); ++e) {
      topo::link& l = f_.links[e];
      if (gone_[l.from.value] || gone_[l.to.value]) continue;
      if ((touched_[l.from.value] || touched_[l.to.value]) && !keeps(l)) continue;
      l.from.value = place[l.from.value];
      l.to.value = place[l.to.value];
      if (out != e) f_.links[out] = std::move(l);
      ++out;
    }
    f_.nodes.resize(kept);
    f_.links.resize(out);
  }

 private:
  static constexpr std::uint32_t anywhere = 0xffffffffU;
  struct change {
    std::uint32_t node, peer;  ///< links between these two, or all of `node`
    planted_fault fault;
    std::uint32_t left_out, left_in;  ///< of `nvlinks_down`: links still to be taken away, by direction
  };

  void edit(std::uint32_t node, std::uint32_t peer, const planted_fault& fault) {
    touched_[node] = true;
    changes_.push_back({node, peer, fault, fault.links, fault.links});
  }

  /// Applies every change that concerns `l`; false when it is not there any more.
  bool keeps(topo::link& l) {
    return survives(l, l.from.value, l.to.value, true) && survives(l, l.to.value, l.from.value, false);
  }

  bool survives(topo::link& l, std::uint32_t node, std::uint32_t peer, bool out) {
    if (!touched_[node]) return true;
    auto c = std::lower_bound(changes_.begin(), changes_.end(), node,
                              [](const change& x, std::uint32_t v) { return x.node < v; });
    for (; c != changes_.end() && c->node == node; ++c) {
      if (c->peer != anywhere && c->peer != peer) continue;
      switch (c->fault.kind) {
        case planted_fault::kind_t::missing: return false;
        case planted_fault::kind_t::unplugged:
          if (l.kind == o_.network) return false;
          break;
        case planted_fault::kind_t::slow:
          if (c->fault.part.kind == fabric_part::kind_t::gpu && l.kind != topo::link_kind::pcie &&
              l.kind != topo::link_kind::c2c)
            break;
          lower(l, {l.capacity.value * static_cast<double>(c->fault.share.numerator()) /
                    static_cast<double>(c->fault.share.denominator())});
          break;
        case planted_fault::kind_t::nvlinks_down: {
          if (l.kind != topo::link_kind::nvlink && l.kind != topo::link_kind::xgmi) break;
          std::uint32_t& left = out ? c->left_out : c->left_in;
          const std::uint32_t down = std::min(left, l.lanes);
          left -= down;
          if (down == 0) break;
          l.lanes -= down;
          lower(l, o_.host.nvlink_rate * l.lanes);
          break;
        }
      }
    }
    return true;
  }

  static void lower(topo::link& l, bytes_per_second rate) {
    l.current = rate;
    l.capacity = rate;
    l.reason = "planted fault";
  }

  void report(const planted_fault& fault) {
    finding n;
    n.level = severity::fault;
    n.where = to_string(fault.part);
    switch (fault.kind) {
      case planted_fault::kind_t::missing: n.what = n.where + " is missing"; break;
      case planted_fault::kind_t::unplugged: n.what = n.where + " has no cable"; break;
      case planted_fault::kind_t::slow:
        n.what = n.where + " runs at " + std::to_string(fault.share.numerator()) + '/' +
                 std::to_string(fault.share.denominator()) + " of its rate";
        break;
      case planted_fault::kind_t::nvlinks_down:
        n.what = n.where + " has " + std::to_string(fault.links) + " of " +
                 std::to_string(nvlinks_of(o_.host, fault.part.second)) + " NVLinks down";
        break;
    }
    n.evidence = planted_evidence;
    f_.findings.push_back(std::move(n));
  }

  topo::fragment& f_;
  const fabric_options& o_;
  host_layout host_;
  fabric_layout at_;
  std::vector<bool> touched_, gone_;
  std::vector<change> changes_;
};

template <class = void>
void apply_faults(topo::fragment& f, const fabric_options& o, const host_layout& host, const fabric_layout& at) {
  fault_planter<> planter(f, o, host, at);
  for (const planted_fault& fault : o.faults) planter.plant(fault);
  planter.finish();
}

}  // namespace detail

template <class>
result<fabric_options> with_faults(fabric_options o, std::uint32_t count, std::uint64_t seed) {
  const auto shape = shape_of(o);
  if (!shape) return shape.error();
  const fabric_shape& s = *shape;
  const std::uint64_t nics = std::uint64_t{s.nodes} * s.rails;
  const std::uint64_t uplinks = std::uint64_t{s.leaves} * s.spines_per_leaf();
  const std::uint64_t gpus = detail::nvlinks_of(o.host, 0) > 0 ? std::uint64_t{s.nodes} * o.host.gpus : 0;
  if (count > most_drawn_faults)
    return fail(errc::unsupported, detail::counted(count, "fault", "faults") + " are more than can be drawn",
                "draw at most " + std::to_string(most_drawn_faults));
  if (count + o.faults.size() > nics + uplinks + gpus)
    return fail(errc::invalid_argument, detail::counted(count, "fault", "faults") +
                                            " more cannot be planted at different places: the cluster has " +
                                            std::to_string(nics + uplinks + gpus) +
                                            " NICs, uplinks and GPUs with NVLinks");
  detail::random_stream draw(seed);
  std::vector<fabric_part> used;
  for (const planted_fault& f : o.faults) used.push_back(f.part);
  constexpr std::int64_t eighths[] = {1, 2, 4, 6};
  for (std::uint32_t n = 0; n < count;) {
    planted_fault f;
    std::uint64_t at = draw.below(nics + uplinks + gpus);
    if (at < nics) {
      f.part = {fabric_part::kind_t::nic, static_cast<std::uint32_t>(at / s.rails),
                static_cast<std::uint32_t>(at % s.rails)};
      const std::uint64_t what = draw.below(s.leaves > 0 ? 3 : 2);
      f.kind = what == 0 ? planted_fault::kind_t::missing
                         : (what == 1 ? planted_fault::kind_t::slow : planted_fault::kind_t::unplugged);
    } else if ((at -= nics) < uplinks) {
      const std::uint32_t leaf = static_cast<std::uint32_t>(at / s.spines_per_leaf());
      const std::uint32_t first = s.cores == 0 ? 0 : leaf / s.leaves_per_pod() * s.spines_per_leaf();
      f.part = {fabric_part::kind_t::leaf_uplink, leaf, first + static_cast<std::uint32_t>(at % s.spines_per_leaf())};
      f.kind = draw.below(2) == 0 ? planted_fault::kind_t::missing : planted_fault::kind_t::slow;
    } else {
      at -= uplinks;
      f.part = {fabric_part::kind_t::gpu, static_cast<std::uint32_t>(at / o.host.gpus),
                static_cast<std::uint32_t>(at % o.host.gpus)};
      f.kind = planted_fault::kind_t::nvlinks_down;
      f.links = 1 + static_cast<std::uint32_t>(draw.below(detail::nvlinks_of(o.host, f.part.second)));
    }
    if (f.kind == planted_fault::kind_t::slow) f.share = rational{eighths[draw.below(4)], 8};
    if (std::find(used.begin(), used.end(), f.part) != used.end()) continue;
    used.push_back(f.part);
    o.faults.push_back(f);
    ++n;
  }
  return o;
}

}}  // namespace topocoll::v0
