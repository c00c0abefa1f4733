// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which links a transfer between two nodes uses, and in what shares; fast for a million pairs on a million links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/ids.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Maps 64-bit keys to numbers: open addressing, grows by doubling. (<unordered_map> costs 6,000 lines.)
class number_map {
 public:
  static constexpr std::uint32_t absent = UINT32_MAX;

  [[nodiscard]] std::uint32_t find(std::uint64_t key) const {
    if (slots_.empty()) return absent;
    for (std::size_t i = start(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].second == absent) return absent;
      if (slots_[i].first == key) return slots_[i].second;
    }
  }
  void insert(std::uint64_t key, std::uint32_t number) {
    if (used_ * 2 >= slots_.size()) grow();
    std::size_t i = start(key);
    while (slots_[i].second != absent) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, number};
    ++used_;
  }

 private:
  [[nodiscard]] std::size_t start(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15U;  // 2^64 by the golden ratio: spreads neighbouring keys
    return static_cast<std::size_t>(key >> 20U) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : old.size() * 2, {0, absent});
    used_ = 0;
    for (const auto& [key, number] : old)
      if (number != absent) insert(key, number);
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> slots_;
  std::size_t used_ = 0;
};

/// Routes on one graph.
///
/// Between devices of one host: inside the host when that is possible. Between hosts: through the two hosts and switches.
/// A route has the fewest hops, where passing through a GPU counts as 32 hops (NCCL's NVB and PXN paths: only when there
/// is nothing better) and through a NUMA domain as 64 (its PHB path); memories pass nothing on. Inside a host equal routes
/// go to the widest; then the flow is split evenly at every node over the links that lead on, as an ideal ECMP would.
/// Routes of hosts that are built alike are found once. The graph must outlive the router.
template <class = void>
class router {
 public:
  explicit router(const topo::graph& g) : g_(&g) {
    find_hosts();
    find_classes();
    scratch_.resize(g.node_count());
  }

  /// Calls `use(link_id, share)` for every link that a flow from `a` to `b` uses; nothing for a = b.
  /// False when there is no way at all. Cost: O(links of the route) after the first of its kind.
  template <class Use>
  [[nodiscard]] bool route(node_id a, node_id b, Use use) {
    return route(a, b, use,
                 [&](std::uint32_t number, double share) { use_links(fabric_[number], nullptr, share, use); });
  }

  /// The same, but what lies between the switches that two hosts plug into is told as the number of a bundle: many pairs of
  /// hosts share it. `open_bundle` tells its links.
  template <class Use, class UseBundle>
  [[nodiscard]] bool route(node_id a, node_id b, Use use, UseBundle use_bundle) {
    if (a == b) return true;
    const std::uint32_t from = host_[a.value], to = host_[b.value];
    if (from != no_host && from == to) {
      const local_path& p = store_[inside(from, local_[a.value], local_[b.value])];
      if (p.cost > 2 && through_shared_nvswitch(a, b, use)) return true;
      if (p.cost != unreachable) {
        use_links(p, links_of(from), 1.0, use);
        return true;
      }
    } else if (from != no_host && to != no_host) {
      combine(a, b);
      if (!combos_.empty()) {
        const double share = 1.0 / static_cast<double>(combos_.size());
        for (const combo& c : combos_) {
          use_links(store_[c.up], links_of(from), share, use);
          use(c.exit, share);
          if (!fabric_[c.across].parts.empty()) use_bundle(c.across, share);
          use(c.entry, share);
          use_links(store_[c.down], links_of(to), share, use);
        }
        return true;
      }
    }
    const local_path& p = anywhere(a, b);
    if (p.cost == unreachable) return false;
    use_links(p, nullptr, 1.0, use);
    return true;
  }

  /// Two GPUs of one host whose NVSwitches belong to several hosts (NVLink domains of a rack) talk through these, split
  /// evenly over the planes; false when they share none. Cost: O(links of the GPU and of its NVSwitches).
  template <class Use>
  bool through_shared_nvswitch(node_id a, node_id b, Use use) {
    std::vector<link_id> there, on;
    for (const link_id e : g_->out_links(a)) {
      const node_id s = g_->head(e);
      if (g_->at(s).kind != topo::node_kind::nvswitch || host_[s.value] != no_host || g_->capacity(e).value <= 0)
        continue;
      for (const link_id f : g_->out_links(s))
        if (g_->head(f) == b && g_->capacity(f).value > 0) {
          there.push_back(e);
          on.push_back(f);
          break;
        }
    }
    for (std::size_t k = 0; k < there.size(); ++k) {
      use(there[k], 1.0 / static_cast<double>(there.size()));
      use(on[k], 1.0 / static_cast<double>(there.size()));
    }
    return !there.empty();
  }

  /// Calls `use(link_id, share)` for the links of a bundle that `route` told of.
  template <class Use>
  void open_bundle(std::uint32_t number, Use use) const {
    use_links(fabric_[number], nullptr, 1.0, use);
  }

 private:
  static constexpr std::uint32_t no_host = UINT32_MAX;
  static constexpr std::uint32_t unreachable = UINT32_MAX;
  static constexpr std::uint32_t not_found = UINT32_MAX;  // not looked for yet
  static constexpr std::uint32_t gpu_relay = 32, cpu_relay = 64;

  struct part {
    std::uint32_t link;  // of the graph, or position among the links of the host
    double share;
  };
  struct local_path {
    std::uint32_t cost = unreachable;
    std::vector<part> parts{};
  };
  /// A link between a host and what belongs to no host.
  struct gate {
    link_id link;
    std::uint32_t local;  // end in the host
  };
  struct reach {
    std::uint32_t gate, path, cost;
  };
  struct host_class {
    std::uint32_t example = 0;  // a host of this class
    std::uint32_t size = 0;
    std::vector<std::uint64_t> signature{};
    std::vector<std::uint32_t> paths{};              // size x size numbers in store_, found when asked for
    std::vector<std::vector<reach>> ups{}, downs{};  // per local node
  };
  struct combo {
    std::uint32_t up, down, across;
    link_id exit, entry;
  };
  struct mark {
    std::uint32_t round = 0, cost = 0, preds = 0;
    double width = 0, share = 0;
    bool wanted = false;
    std::uint32_t fan = 0;
  };
  struct pred {
    std::uint32_t from, link, next;
  };

  [[nodiscard]] static std::uint32_t relay(topo::node_kind k) {
    switch (k) {
      case topo::node_kind::gpu: return gpu_relay;
      case topo::node_kind::cpu: return cpu_relay;
      case topo::node_kind::host_memory: return unreachable;
      default: return 0;
    }
  }
  [[nodiscard]] const std::uint32_t* links_of(std::uint32_t host) const {
    return host_links_.data() + first_link_[host];
  }

  template <class Use>
  static void use_links(const local_path& p, const std::uint32_t* base, double share, Use& use) {
    for (const part& x : p.parts) use(link_id{base == nullptr ? x.link : base[x.link]}, share * x.share);
  }

  /// Numbers the hosts, in the order of their first nodes. Nodes of a host usually lie together: compare with the last.
  void find_hosts() {
    const auto nodes = g_->nodes();
    host_.assign(nodes.size(), no_host);
    local_.assign(nodes.size(), 0);
    std::vector<std::pair<const std::string*, std::uint32_t>> runs;  // first node of each run of equal names
    for (std::uint32_t v = 0; v < nodes.size(); ++v)
      if (!nodes[v].host.empty() && (v == 0 || nodes[v].host != nodes[v - 1].host)) runs.push_back({&nodes[v].host, v});
    std::vector<std::uint32_t> order(runs.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const int order_of = runs[a].first->compare(*runs[b].first);
      return order_of != 0 ? order_of < 0 : a < b;
    });
    std::vector<std::uint32_t> number(runs.size());  // run -> first run with that name
    for (std::size_t i = 0; i < order.size(); ++i)
      number[order[i]] = i > 0 && *runs[order[i]].first == *runs[order[i - 1]].first ? number[order[i - 1]] : order[i];
    std::vector<std::uint32_t> dense(runs.size(), no_host);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (number[i] == i) dense[i] = hosts_++;
      for (std::uint32_t v = runs[i].second; v < nodes.size() && nodes[v].host == *runs[i].first; ++v)
        host_[v] = dense[number[i]];
    }
    first_node_.assign(hosts_ + 1, 0);
    for (const std::uint32_t h : host_)
      if (h != no_host) ++first_node_[h + 1];
    for (std::uint32_t h = 0; h < hosts_; ++h) first_node_[h + 1] += first_node_[h];
    host_nodes_.resize(first_node_.back());
    std::vector<std::uint32_t> next(first_node_.begin(), first_node_.end() - 1);
    for (std::uint32_t v = 0; v < nodes.size(); ++v)
      if (host_[v] != no_host) {
        local_[v] = next[host_[v]] - first_node_[host_[v]];
        host_nodes_[next[host_[v]]++] = v;
      }
    for (std::uint32_t v = 0; v < nodes.size(); ++v)
      if (host_[v] == no_host && !topo::is_switch(nodes[v].kind)) only_switches_ = false;
  }

  /// Lists each host's links and gates and puts hosts that are built alike into one class.
  void find_classes() {
    exits_.resize(hosts_);
    entries_.resize(hosts_);
    first_link_.push_back(0);
    into_.resize(only_switches_ ? g_->node_count() : 0);
    for (std::uint32_t v = 0; v < host_.size(); ++v) {
      if (host_[v] != no_host) continue;
      for (const link_id e : g_->out_links({v})) {
        if (g_->capacity(e).value <= 0) continue;
        const std::uint32_t u = g_->head(e).value;
        if (host_[u] != no_host)
          entries_[host_[u]].push_back({e, local_[u]});
        else if (only_switches_)
          into_[u].push_back(e.value);
      }
    }
    class_.resize(hosts_);
    number_map by_hash;
    std::vector<std::uint64_t> signature;
    for (std::uint32_t h = 0; h < hosts_; ++h) {
      signature.clear();
      const auto say = [&](std::uint64_t x) { signature.push_back(x); };
      const auto say_link = [&](std::uint32_t a, std::uint32_t b, link_id e) {
        say(std::uint64_t{a} << 40U | std::uint64_t{b} << 8U | static_cast<std::uint64_t>(g_->at(e).kind));
        say(static_cast<std::uint64_t>(g_->capacity(e).value));
      };
      for (std::uint32_t i = first_node_[h]; i < first_node_[h + 1]; ++i) {
        const std::uint32_t v = host_nodes_[i];
        say(static_cast<std::uint64_t>(g_->at(node_id{v}).kind));
        for (const link_id e : g_->out_links({v})) {
          const std::uint32_t u = g_->head(e).value;
          if (host_[u] == h) {
            host_links_.push_back(e.value);
            say_link(local_[v], local_[u], e);
          } else if (host_[u] == no_host && g_->capacity(e).value > 0) {
            exits_[h].push_back({e, local_[v]});
            say_link(local_[v], 0xffffffU, e);
          }
        }
      }
      for (const gate& x : entries_[h]) say_link(0xffffffU, x.local, x.link);
      first_link_.push_back(host_links_.size());
      std::uint64_t hash = 0xcbf29ce484222325U;
      for (const std::uint64_t x : signature) hash = (hash ^ x) * 0x100000001b3U;
      std::uint32_t c = by_hash.find(hash);
      if (c == number_map::absent || classes_[c].signature != signature) {
        const bool fresh = c == number_map::absent;
        c = static_cast<std::uint32_t>(classes_.size());
        if (fresh)
          by_hash.insert(hash, c);  // of two classes with one hash the second has no entry: its hosts stand alone
        host_class made;
        made.example = h;
        made.size = first_node_[h + 1] - first_node_[h];
        made.signature = signature;
        made.paths.assign(std::size_t{made.size} * made.size, not_found);
        made.ups.resize(made.size);
        made.downs.resize(made.size);
        classes_.push_back(std::move(made));
      }
      class_[h] = c;
    }
  }

  /// Number in `store_` of the route inside a host, in positions of its links.
  std::uint32_t inside(std::uint32_t host, std::uint32_t from, std::uint32_t to) {
    host_class& c = classes_[class_[host]];
    std::uint32_t& slot = c.paths[std::size_t{from} * c.size + to];
    if (slot == not_found) {
      const std::uint32_t h = c.example;
      const std::uint32_t* nodes = host_nodes_.data() + first_node_[h];
      local_path p = search(
          {nodes[from]}, {nodes[to]}, [&](std::uint32_t v) { return host_[v] == h; }, true);
      const std::uint32_t* links = links_of(h);
      const std::size_t count = first_link_[h + 1] - first_link_[h];
      for (part& x : p.parts) {
        std::uint32_t at = 0;
        while (at < count && links[at] != x.link) ++at;
        x.link = at;
      }
      slot = static_cast<std::uint32_t>(store_.size());
      store_.push_back(std::move(p));
    }
    return slot;
  }

  /// Ways from a device to the gates of its host (or back), cheapest first.
  const std::vector<reach>& ways(std::uint32_t host, std::uint32_t local, bool up) {
    host_class& c = classes_[class_[host]];
    std::vector<reach>& found = up ? c.ups[local] : c.downs[local];
    if (!found.empty()) return found;
    const std::vector<gate>& gates = up ? exits_[host] : entries_[host];
    for (std::uint32_t k = 0; k < gates.size(); ++k) {
      const std::uint32_t at = gates[k].local;
      const std::uint32_t p = up ? inside(host, local, at) : inside(host, at, local);
      if (store_[p].cost == unreachable) continue;
      const std::uint32_t through = at == local ? 0 : relay(g_->at(node_id{host_nodes_[first_node_[host] + at]}).kind);
      if (through != unreachable) found.push_back({k, p, store_[p].cost + 1 + through});
    }
    seq::sort_by(found, &reach::cost);
    return found;
  }

  /// Fills `combos_` with the equally good ways between devices of two hosts through switches.
  void combine(node_id a, node_id b) {
    combos_.clear();
    const std::uint32_t from = host_[a.value], to = host_[b.value];
    const std::vector<reach>& ups = ways(from, local_[a.value], true);
    const std::vector<reach>& downs = ways(to, local_[b.value], false);
    std::uint32_t best = unreachable;
    for (const reach& up : ups) {
      if (up.cost >= best) break;
      for (const reach& down : downs) {
        if (std::uint64_t{up.cost} + down.cost > best) break;
        const link_id exit = exits_[from][up.gate].link, entry = entries_[to][down.gate].link;
        const std::uint32_t across = between(g_->head(exit).value, g_->tail(entry).value);
        if (fabric_[across].cost == unreachable) continue;
        const std::uint32_t cost = up.cost + down.cost + fabric_[across].cost;
        if (cost > best) continue;
        if (cost < best) combos_.clear();
        best = cost;
        combos_.push_back({up.path, down.path, across, exit, entry});
      }
    }
  }

  /// Number in `fabric_` of the route between two nodes that belong to no host.
  std::uint32_t between(std::uint32_t u, std::uint32_t v) {
    const std::uint64_t key = std::uint64_t{u} << 32U | v;
    if (asked_last_.empty()) asked_last_.resize(g_->node_count(), {0, number_map::absent});
    auto& [last, last_at] = asked_last_[u];
    if (last == v && last_at != number_map::absent) return last_at;
    std::uint32_t at = fabric_at_.find(key);
    last = v;
    last_at = at != number_map::absent ? at : static_cast<std::uint32_t>(fabric_.size());
    if (at != number_map::absent) return at;
    at = last_at;
    fabric_.push_back(u == v           ? local_path{0, {}}
                      : only_switches_ ? meet(u, v)
                                       : search(
                                             {u}, {v}, [&](std::uint32_t w) { return host_[w] == no_host; }, false));
    fabric_at_.insert(key, at);
    return at;
  }

  /// The last resort: through the two hosts and everything without a host, then through anything.
  const local_path& anywhere(node_id a, node_id b) {
    const std::uint64_t key = std::uint64_t{a.value} << 32U | b.value;
    std::uint32_t at = anywhere_at_.find(key);
    if (at != number_map::absent) return anywhere_[at];
    const std::uint32_t from = host_[a.value], to = host_[b.value];
    local_path p = search(
        a, b, [&](std::uint32_t v) { return host_[v] == no_host || host_[v] == from || host_[v] == to; }, false);
    if (p.cost == unreachable)
      p = search(
          a, b, [](std::uint32_t) { return true; }, false);
    at = static_cast<std::uint32_t>(anywhere_.size());
    anywhere_.push_back(std::move(p));
    anywhere_at_.insert(key, at);
    return anywhere_[at];
  }

  /// Cheapest routes between two nodes over nodes that `open` lets through, split evenly; by Dijkstra.
  template <class Open>
  local_path search(node_id a, node_id b, Open open, bool widest) {
    if (a == b) return {0, {}};
    begin();
    preds_.clear();
    order_.clear();
    std::vector<std::pair<std::uint32_t, std::uint32_t>> heap{{0, a.value}};
    const auto later = [](const auto& x, const auto& y) { return x > y; };
    visit(a.value, 0);
    bool found = false;
    while (!heap.empty() && !found) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const auto [cost, v] = heap.back();
      heap.pop_back();
      if (cost > scratch_[v].cost) continue;
      order_.push_back(v);
      found = v == b.value;
      const std::uint32_t through = v == a.value ? 0 : relay(g_->at(node_id{v}).kind);
      if (found || through == unreachable) continue;
      for (const link_id e : g_->out_links({v})) {
        const std::uint32_t u = g_->head(e).value;
        if (g_->capacity(e).value <= 0 || (u != b.value && !open(u))) continue;
        const std::uint32_t next = cost + through + 1;
        const bool seen = scratch_[u].round == round_;
        if (seen && scratch_[u].cost < next) continue;
        if (!seen || scratch_[u].cost > next) {
          visit(u, next);
          heap.push_back({next, u});
          std::push_heap(heap.begin(), heap.end(), later);
        }
        preds_.push_back({v, e.value, scratch_[u].preds});
        scratch_[u].preds = static_cast<std::uint32_t>(preds_.size());
      }
    }
    if (!found) return {};
    scratch_[a.value].width = std::numeric_limits<double>::infinity();
    for (const std::uint32_t v : order_)
      for (std::uint32_t k = scratch_[v].preds; k != 0; k = preds_[k - 1].next)
        scratch_[v].width = std::max(scratch_[v].width, width_over(preds_[k - 1]));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> used;  // tail, link
    scratch_[b.value].wanted = true;
    for (std::size_t i = order_.size(); i-- > 0;) {
      const std::uint32_t v = order_[i];
      if (!scratch_[v].wanted) continue;
      for (std::uint32_t k = scratch_[v].preds; k != 0; k = preds_[k - 1].next) {
        const pred& p = preds_[k - 1];
        if (widest && width_over(p) < scratch_[v].width) continue;
        scratch_[p.from].wanted = true;
        ++scratch_[p.from].fan;
        used.push_back({p.from, p.link});
      }
    }
    return split(a.value, scratch_[b.value].cost, used);
  }

  /// Shortest routes between two switches over switches, split evenly; breadth first from both ends.
  local_path meet(std::uint32_t u, std::uint32_t v) {
    begin();
    visit(u, 0);
    number_map back;  // node -> hops to v, for the few nodes near v
    std::vector<std::uint32_t> forward{u}, backward{v}, near{v};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ahead_links, used;  // tail, link
    back.insert(v, 0);
    order_.assign(1, u);
    std::uint32_t ahead = 0, behind = 0;
    bool met = false;
    while (!met && !forward.empty() && !backward.empty()) {
      std::vector<std::uint32_t> next;
      if (forward.size() <= backward.size()) {
        ++ahead;
        for (const std::uint32_t x : forward)
          for (const link_id e : g_->out_links({x})) {
            const std::uint32_t y = g_->head(e).value;
            if (host_[y] != no_host || g_->capacity(e).value <= 0) continue;
            if (scratch_[y].round != round_) {
              visit(y, ahead);
              order_.push_back(y);
              next.push_back(y);
              met = met || back.find(y) != number_map::absent;
            }
            if (scratch_[y].cost == ahead) ahead_links.push_back({x, e.value});
          }
        forward = std::move(next);
      } else {
        ++behind;
        for (const std::uint32_t x : backward)
          for (const std::uint32_t e : into_[x]) {
            const std::uint32_t y = g_->tail(link_id{e}).value;
            if (back.find(y) != number_map::absent) continue;
            back.insert(y, behind);
            near.push_back(y);
            next.push_back(y);
            met = met || scratch_[y].round == round_;
          }
        backward = std::move(next);
      }
    }
    if (!met) return {};
    // Links of shortest routes, from where both searches meet: back to u, then on to v.
    const auto follow = [&](std::uint32_t x) { return scratch_[x].round == round_ && scratch_[x].wanted; };
    for (const std::uint32_t x : order_)
      if (scratch_[x].cost == ahead && back.find(x) == behind) scratch_[x].wanted = true;
    for (std::size_t i = ahead_links.size(); i-- > 0;) {
      const auto [x, e] = ahead_links[i];
      if (!follow(g_->head(link_id{e}).value)) continue;
      scratch_[x].wanted = true;
      ++scratch_[x].fan;
      used.push_back({x, e});
    }
    // Incoming links of the few nodes near v, farthest first; the outgoing ones of a spine are too many.
    for (std::size_t i = near.size(); i-- > 0;) {
      const std::uint32_t y = near[i], left = back.find(y);
      if (left == behind) continue;
      for (const std::uint32_t e : into_[y]) {
        const std::uint32_t x = g_->tail(link_id{e}).value;
        if (back.find(x) != left + 1 || !follow(x)) continue;
        if (scratch_[y].round != round_) visit(y, ahead + behind - left);
        scratch_[y].wanted = true;
        ++scratch_[x].fan;
        used.push_back({x, e});
      }
    }
    return split(u, ahead + behind, used);
  }

  /// Shares of the links in `used` when every node splits what arrives evenly over its `fan` links.
  local_path split(std::uint32_t from, std::uint32_t cost, std::vector<std::pair<std::uint32_t, std::uint32_t>>& used) {
    seq::sort(used, [&](const auto& x, const auto& y) {
      const std::uint32_t dx = scratch_[x.first].cost, dy = scratch_[y.first].cost;
      return dx != dy ? dx < dy : x < y;
    });
    scratch_[from].share = 1;
    local_path p{cost, {}};
    for (const auto& [tail, link] : used) {
      const double share = scratch_[tail].share / scratch_[tail].fan;
      scratch_[g_->head(link_id{link}).value].share += share;
      p.parts.push_back({link, share});
    }
    return p;
  }

  void begin() { ++round_; }
  void visit(std::uint32_t v, std::uint32_t cost) {
    mark& m = scratch_[v];
    if (m.round != round_) m = {round_, cost, 0, 0, 0, false, 0};
    m.cost = cost;
    m.preds = 0;
  }
  [[nodiscard]] double width_over(const pred& p) const {
    return std::min(scratch_[p.from].width, g_->capacity(link_id{p.link}).value);
  }

  const topo::graph* g_;
  std::uint32_t hosts_ = 0;
  bool only_switches_ = true;                           // nothing but switches belongs to no host
  std::vector<std::uint32_t> host_, local_;             // per node
  std::vector<std::uint32_t> first_node_, host_nodes_;  // per host
  std::vector<std::size_t> first_link_;
  std::vector<std::uint32_t> host_links_, class_;
  std::vector<std::vector<gate>> exits_, entries_;
  std::vector<std::vector<std::uint32_t>> into_;  // links into each switch from other switches
  std::vector<host_class> classes_;
  std::vector<local_path> store_, fabric_, anywhere_;
  number_map fabric_at_, anywhere_at_;
  /// Per node: where to it was asked for last, and the answer. Hosts side by side plug into the same switches.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> asked_last_;
  std::vector<combo> combos_;
  std::vector<mark> scratch_;
  std::uint32_t round_ = 0;
  std::vector<pred> preds_;
  std::vector<std::uint32_t> order_;
};

}}}}  // namespace topocoll::v0::plan::detail
