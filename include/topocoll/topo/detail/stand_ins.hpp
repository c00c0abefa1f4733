// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stand-ins of sources that know a host by name only give way to the devices that other sources know.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/identify.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class = void>
class stand_in_replacer {
 public:
  explicit stand_in_replacer(copied_parts& c) : c_(c) {}

  void run() {
    std::vector<std::string> hosts;
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (here(g) && !c_.at(g).host.empty() && is_stand_in(c_.at(g))) hosts.push_back(c_.at(g).host);
    if (hosts.empty()) return;
    seq::sort_unique(hosts);
    using in_host = std::pair<std::uint32_t, std::uint32_t>;  // host and node
    std::vector<in_host> all;
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      if (!here(g) || c_.at(g).host.empty()) continue;
      const auto at =
          seq::lower_bound_by(hosts, c_.at(g).host, [](const std::string& h) -> const std::string& { return h; });
      if (at != hosts.end() && *at == c_.at(g).host)
        all.emplace_back(static_cast<std::uint32_t>(at - hosts.begin()), g);
    }
    seq::sort(all);
    index_links();
    std::vector<std::uint32_t> nodes;
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
      nodes.clear();
      for (last = first; last < all.size() && all[last].first == all[first].first; ++last)
        nodes.push_back(all[last].second);
      replace_ports(nodes);
      replace_gpus(nodes);
      replace_planes(nodes);
      replace_host(nodes);
    }
    fold_planes();
    if (left_over_ > 0)
      c_.tell(severity::warning, first_left_over_,
              left_over_ == 1 ? "a cable belongs to no port: all ports of its host that are known have cables already"
                              : std::to_string(left_over_) +
                                    " cables belong to no port: all ports of their hosts that are "
                                    "known have cables already",
              example_, "name a source that tells which ports the cables are in");
    if (moved_ > 0)
      c_.tell(severity::note, "",
              "cables are given to ports in the order of their names, because one source knows the "
              "hosts by name only",
              std::to_string(moved_) + (moved_ == 1 ? " cable" : " cables"));
  }

  /// Adds what has no stand-in in its part. To be called when all that goes has gone.
  void add_links() {
    seq::sort(more_, [](const new_link& a, const new_link& b) {
      if (a.part != b.part) return a.part < b.part;
      return a.gpu.key != b.gpu.key ? a.gpu.key < b.gpu.key : a.domain < b.domain;
    });
    std::vector<std::uint32_t> by_key;  // of one part, before anything is added
    for (std::size_t i = 0; i < more_.size(); ++i) {
      const new_link& m = more_[i];
      fragment& f = c_.parts[m.part];
      const bool same_gpu = i > 0 && more_[i - 1].part == m.part && more_[i - 1].gpu.key == m.gpu.key;
      if (same_gpu && more_[i - 1].domain == m.domain) continue;
      const auto key_at = [&](std::uint32_t v) -> const std::string& { return f.nodes[v].key; };
      if (i == 0 || more_[i - 1].part != m.part) {
        by_key.clear();
        for (std::uint32_t v = 0; v < f.nodes.size(); ++v) by_key.push_back(v);
        seq::sort_by(by_key, key_at);
      }
      const auto find = [&](const std::string& key) {
        const auto at = seq::lower_bound_by(by_key, key, key_at);
        return at != by_key.end() && key_at(*at) == key ? *at : copied_parts::gone;
      };
      link l = m.like;
      l.from = {find(m.gpu.key)};
      l.to = {find(m.domain)};
      if (l.to.value == copied_parts::gone) continue;
      if (l.from.value == copied_parts::gone)
        l.from = same_gpu && f.nodes.back().key == m.gpu.key ? node_id{static_cast<std::uint32_t>(f.nodes.size() - 1)}
                                                             : f.add(m.gpu);
      f.join(l);
    }
  }

 private:
  [[nodiscard]] bool here(std::uint32_t g) const { return c_.into[g] == g; }
  [[nodiscard]] static bool stands_for(const node& n, const char* what) {
    const std::string* fact = fact_of(n, stand_in_fact);
    return fact != nullptr && *fact == what;
  }
  [[nodiscard]] static bool is_cable(const link& l) {
    return l.kind == link_kind::infiniband || l.kind == link_kind::ethernet;
  }

  /// Links by the node that they leave.
  void index_links() {
    first_out_.assign(c_.size() + 1, 0);
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p)
      for (const link& l : c_.parts[p].links) ++first_out_[c_.number(p, l.from) + 1];
    for (std::uint32_t g = 0; g < c_.size(); ++g) first_out_[g + 1] += first_out_[g];
    out_.resize(first_out_.back());
    std::vector<std::uint32_t> next(first_out_.begin(), first_out_.end() - 1);
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p)
      for (std::uint32_t e = 0; e < c_.parts[p].links.size(); ++e)
        out_[next[c_.number(p, c_.parts[p].links[e].from)]++] = e;
  }
  /// Calls `use` with every link that leaves a node.
  template <class Use>
  void each_link(std::uint32_t g, const Use& use) {
    for (std::uint32_t i = first_out_[g]; i < first_out_[g + 1]; ++i) use(c_.parts[c_.part_of[g]].links[out_[i]]);
  }

  struct real_port {
    std::uint32_t node;
    bool cabled = false, dead = false, taken = false;
  };
  struct port_stand_in {
    std::uint32_t node;
    std::uint32_t rail = UINT32_MAX;
  };

  /// Ports that are known to carry a cable have it; the others take those of the stand-ins, by rail where that is told.
  void replace_ports(const std::vector<std::uint32_t>& nodes) {
    std::vector<real_port> real;
    std::vector<port_stand_in> stand_ins;
    std::vector<std::string> reached;  // switches that real ports have cables to
    for (const std::uint32_t g : nodes) {
      const node& n = c_.at(g);
      if (n.kind != node_kind::nic_port || fact_of(n, "virtual") != nullptr) continue;
      bool cabled = false, dead = false, loose = false;
      std::uint32_t rail = UINT32_MAX;
      each_link(g, [&](const link& l) {
        const node& far = c_.parts[c_.part_of[g]].nodes[l.to.value];
        cabled = cabled || is_cable(l);
        dead = dead || (l.kind == link_kind::internal && l.capacity.value <= 0);
        loose = loose || (l.kind == link_kind::internal && is_stand_in(far));
        if (const std::string* fact = is_cable(l) ? fact_of(far, "rail") : nullptr)
          if (all_digits(*fact) && fact->size() < 9) rail = static_cast<std::uint32_t>(std::stoul(*fact));
      });
      if (is_stand_in(n))
        stand_ins.push_back({g, rail});
      else if (!loose || cabled)
        real.push_back({g, cabled, dead, false});
      if (cabled && !is_stand_in(n)) add_far_ends(g, reached);
    }
    if (stand_ins.empty() || real.empty()) return;
    seq::sort(real, [&](const real_port& a, const real_port& b) {
      const std::string& x = c_.at(a.node).key;
      const std::string& y = c_.at(b.node).key;
      return x != y && counted_before(x, y);
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < real.size(); ++i) {
      if (kept > 0 && c_.at(real[kept - 1].node).key == c_.at(real[i].node).key) {
        real[kept - 1].cabled = real[kept - 1].cabled || real[i].cabled;
        real[kept - 1].dead = real[kept - 1].dead || real[i].dead;
      } else {
        real[kept++] = real[i];
      }
    }
    real.resize(kept);
    seq::sort(stand_ins, [&](const port_stand_in& a, const port_stand_in& b) {
      const node& x = c_.at(a.node);
      const node& y = c_.at(b.node);
      if (c_.part_of[a.node] != c_.part_of[b.node]) return c_.part_of[a.node] < c_.part_of[b.node];
      if (x.index != y.index) return x.index < y.index;
      return counted_before(x.key, y.key);
    });
    for (std::size_t first = 0, last = 0; first < stand_ins.size(); first = last) {
      for (last = first;
           last < stand_ins.size() && c_.part_of[stand_ins[last].node] == c_.part_of[stand_ins[first].node];)
        ++last;
      // Sources that know the same stand-ins mean the same ports, so each starts anew. Ports that the source itself tells
      // beside a stand-in are others.
      std::vector<std::string> own;
      for (const std::uint32_t g : nodes)
        if (here(g) && c_.part_of[g] == c_.part_of[stand_ins[first].node]) own.push_back(c_.at(g).key);
      seq::sort(own);
      std::size_t others = 0;
      for (real_port& r : real) {
        const std::string& key = c_.at(r.node).key;
        const auto at = seq::lower_bound_by(own, key, [](const std::string& k) -> const std::string& { return k; });
        const bool told = at != own.end() && *at == key;
        r.taken = r.cabled || told;
        others += told ? 0U : 1U;
      }
      if (others == 0) continue;
      // A cable to a switch that a real port is known to reach is that port's.
      std::vector<std::string> cables = reached, far;
      for (std::size_t i = first; i < last; ++i) {
        far.clear();
        add_far_ends(stand_ins[i].node, far);
        const auto known = far.empty() ? cables.end() : seq::find(cables, far[0]);
        if (known == cables.end()) continue;
        cables.erase(known);
        remove(stand_ins[i].node);
      }
      for (std::size_t i = first; i < last; ++i)
        if (const std::uint32_t rail = stand_ins[i].rail;
            rail < real.size() && !real[rail].taken && !real[rail].dead && here(stand_ins[i].node))
          move_to(stand_ins[i], real[rail]);
      for (const bool dead : {false, true})
        for (std::size_t i = first, r = 0; i < last; ++i) {
          if (!here(stand_ins[i].node) || !is_stand_in(c_.at(stand_ins[i].node))) continue;
          while (r < real.size() && (real[r].taken || real[r].dead != dead)) ++r;
          if (r < real.size()) move_to(stand_ins[i], real[r]);
        }
      for (std::size_t i = first; i < last; ++i)
        if (here(stand_ins[i].node) && is_stand_in(c_.at(stand_ins[i].node))) drop(stand_ins[i].node);
    }
  }
  void drop_adapter_of(std::uint32_t port) {
    each_link(port, [&](const link& l) {
      const std::uint32_t far = c_.number(c_.part_of[port], l.to);
      if (l.kind == link_kind::internal && is_stand_in(c_.at(far))) c_.into[far] = copied_parts::gone;
    });
  }
  void move_to(const port_stand_in& s, real_port& r) {
    drop_adapter_of(s.node);
    node copy = c_.at(r.node);
    c_.at(s.node) = std::move(copy);
    r.taken = true;
    ++moved_;
  }
  void drop(std::uint32_t port) {
    if (left_over_++ == 0) {
      first_left_over_ = c_.at(port).host;
      each_link(port, [&](const link& l) {
        if (is_cable(l))
          example_ = c_.source_of(port) + ": '" + c_.at(port).key + "' to '" +
                     c_.parts[c_.part_of[port]].nodes[l.to.value].key + "'";
      });
    }
    remove(port);
  }
  void remove(std::uint32_t port) {
    drop_adapter_of(port);
    c_.into[port] = copied_parts::gone;
  }
  void add_far_ends(std::uint32_t port, std::vector<std::string>& keys) {
    each_link(port, [&](const link& l) {
      if (is_cable(l)) keys.push_back(c_.parts[c_.part_of[port]].nodes[l.to.value].key);
    });
  }

  /// What stands for the GPUs of a host gives way to them: their NVSwitch plane is that of the domain, or they are joined to
  /// it one by one where they have none.
  void replace_gpus(const std::vector<std::uint32_t>& nodes) {
    std::vector<std::uint32_t> gpus, planes;
    std::uint32_t stand_in = copied_parts::gone;
    for (const std::uint32_t g : nodes) {
      const node& n = c_.at(g);
      if (n.kind == node_kind::gpu && !is_stand_in(n)) gpus.push_back(g);
      if (n.kind == node_kind::nvswitch && !is_stand_in(n)) planes.push_back(g);
      if (stands_for(n, "gpu") && stand_in == copied_parts::gone) stand_in = g;
    }
    if (stand_in == copied_parts::gone || gpus.empty()) return;
    const std::uint32_t p = c_.part_of[stand_in];
    std::vector<link> links;
    each_link(stand_in, [&](const link& l) {
      if (l.kind == link_kind::nvlink) links.push_back(l);
    });
    if (links.empty()) return;
    bool one_plane = links.size() == 1;
    for (const std::uint32_t g : planes) one_plane = one_plane && c_.at(g).key == c_.at(planes[0]).key;
    if (!planes.empty() && !one_plane) return;
    for (const link& l : links) {
      const std::uint32_t domain = c_.number(p, l.to);
      for (const std::uint32_t g : planes) {
        c_.at(g).key = c_.at(domain).key;
        c_.at(g).host = c_.at(domain).host;
        planes_.push_back(g);
      }
      planes_.push_back(domain);
      for (const std::uint32_t g : planes.empty() ? gpus : std::vector<std::uint32_t>())
        more_.push_back({p, c_.at(g), c_.at(domain).key, l});
    }
    for (const std::uint32_t g : nodes)
      if (stands_for(c_.at(g), "gpu")) c_.into[g] = copied_parts::gone;
  }

  /// An assumed meeting point of GPU links goes when another source tells where links of these GPUs lead.
  void replace_planes(const std::vector<std::uint32_t>& nodes) {
    std::uint32_t one = copied_parts::gone, other = copied_parts::gone;  // parts that tell
    for (const std::uint32_t g : nodes)
      if (c_.at(g).kind == node_kind::gpu)
        each_link(g, [&](const link& l) {
          const std::uint32_t p = c_.part_of[g];
          if ((l.kind != link_kind::nvlink && l.kind != link_kind::xgmi) || is_stand_in(c_.parts[p].nodes[l.to.value]))
            return;
          if (one == copied_parts::gone) one = p;
          if (one != p) other = p;
        });
    for (const std::uint32_t plane : nodes)
      if (here(plane) && stands_for(c_.at(plane), "nvswitch") && one != copied_parts::gone &&
          (one != c_.part_of[plane] || other != copied_parts::gone))
        c_.into[plane] = copied_parts::gone;
  }

  /// What stands for a whole host goes when anything else in it is known.
  void replace_host(const std::vector<std::uint32_t>& nodes) {
    bool known = false;
    for (const std::uint32_t g : nodes) known = known || (here(g) && !stands_for(c_.at(g), "host"));
    for (const std::uint32_t g : nodes)
      if (known && stands_for(c_.at(g), "host")) c_.into[g] = copied_parts::gone;
  }

  /// A link of one GPU to the plane of its domain.
  struct new_link {
    std::uint32_t part;
    node gpu;
    std::string domain;
    link like;
  };

  /// Planes of several hosts of one part that turned out to be one.
  void fold_planes() {
    seq::sort(planes_, [&](std::uint32_t a, std::uint32_t b) {
      if (c_.part_of[a] != c_.part_of[b]) return c_.part_of[a] < c_.part_of[b];
      return c_.at(a).key != c_.at(b).key ? c_.at(a).key < c_.at(b).key : a < b;
    });
    for (std::size_t i = 1; i < planes_.size(); ++i) {
      const std::uint32_t a = planes_[i - 1], b = planes_[i];
      if (a == b || c_.part_of[a] != c_.part_of[b] || c_.at(a).key != c_.at(b).key) continue;
      std::uint32_t stays = a;
      while (c_.into[stays] != stays) stays = c_.into[stays];
      if (c_.into[b] == b) fold(c_, b, stays);
    }
  }

  copied_parts& c_;
  std::vector<std::uint32_t> first_out_, out_;  ///< for each node, positions of links in its part
  std::vector<std::uint32_t> planes_;           ///< that got the key of a domain, and the domains
  std::vector<new_link> more_;
  std::size_t moved_ = 0, left_over_ = 0;
  std::string first_left_over_, example_;
};

}}}}  // namespace topocoll::v0::topo::detail
