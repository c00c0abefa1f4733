// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/nccl_graph_file.hpp packs rings into the links of a host.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/nccl_network.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/plan/lower.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

/// A channel by positions in the network's lists.
struct nccl_chain {
  static constexpr std::size_t no_net = SIZE_MAX;
  std::vector<std::size_t> gpus;
  std::size_t net_in = no_net, net_out = no_net;
};

/// Packs channels of one rate into the links; the rates that are tried are those at which some link is just full.
template <class = void>
class ring_search {
 public:
  ring_search(const nccl_network& n, const nccl_graph_options& o)
      : n_(n), inter_(o.between_nodes), most_(o.most_channels) {}

  struct answer {
    double rate = 0;
    std::uint32_t cross_nic = 0;
    std::vector<nccl_chain> chains;
    [[nodiscard]] double total() const { return rate * static_cast<double>(chains.size()); }
  };

  /// Best total rate with paths of these classes at most.
  void try_types(topo::path_class intra, topo::path_class inter, std::uint32_t cross, answer& best) {
    intra_type_ = intra;
    inter_type_ = inter;
    cross_ = cross;
    const double ceiling = most_in_all();
    if (!(ceiling > best.total() * (1 + tolerance))) return;
    // Half of what is left: classes come from near to far, and most machines are done with the first.
    work_ = left_in_all_ / 2;
    const std::uint32_t begun = work_;
    search(ceiling, cross, best);
    left_in_all_ -= begun - work_;
  }

 private:
  void search(double ceiling, std::uint32_t cross, answer& best) {
    if (pack(1, 0).empty()) return;  // no channel at all, however slow
    struct candidate {
      double rate, total;
    };
    const double fastest = most_of_a_channel();
    std::vector<candidate> rates;
    std::vector<double> capacities(n_.capacity);
    capacities.push_back(fastest);
    seq::sort_unique(capacities);
    for (const double c : capacities)
      for (std::uint32_t k = 1; k <= most_ && c > 0; ++k) {
        const double rate = c / k;
        const double channels = std::min<double>(most_, std::floor(ceiling / rate * (1 + tolerance)));
        if (channels >= 1 && rate <= fastest) rates.push_back({rate, channels * rate});
      }
    // Few fast channels first where both promise as much: they are found sooner and cost NCCL fewer blocks.
    seq::sort(rates, [](const candidate& x, const candidate& y) {
      return std::abs(x.total - y.total) > 1e-6 * x.total ? x.total > y.total : x.rate > y.rate;
    });
    rates.erase(std::unique(rates.begin(), rates.end(),
                            [](const candidate& x, const candidate& y) { return x.rate == y.rate; }),
                rates.end());
    // A few orders for every rate, then more.
    for (std::uint32_t block = 0; block < attempts; block += 8)
      for (const candidate& c : rates) {
        if (c.total < best.total() * (1 - tolerance) || work_ == 0) break;
        // More in all, or the same on fewer channels, which take fewer thread blocks.
        const auto better = [&](double total, std::size_t channels) {
          return total > best.total() * (1 + tolerance) ||
                 (total >= best.total() * (1 - tolerance) && channels < best.chains.size());
        };
        if (!better(c.total, static_cast<std::size_t>(c.total / c.rate + 0.5))) continue;
        for (std::uint32_t attempt = block; attempt < block + 8; ++attempt) {
          auto chains = pack(c.rate, attempt);
          const double total = c.rate * static_cast<double>(chains.size());
          if (!better(total, chains.size())) continue;
          best.rate = c.rate;
          best.cross_nic = cross;
          best.chains = std::move(chains);
          if (total >= c.total * (1 - tolerance)) break;
        }
      }
  }

  static constexpr double tolerance = 1e-9;
  static constexpr std::uint32_t attempts = 96;  ///< orders that are tried for each rate

  /// What one channel, a thread block at each GPU, is thought to move: the fastest entries of NCCL's tables of speeds.
  /// Source: NCCL 2.28 src/graph/search.cc: 40 (60 from sm90, 90 from sm100) within a node, 48 (96 from sm100) between.
  [[nodiscard]] double most_of_a_channel() const {
    std::uint32_t oldest = UINT32_MAX;
    for (const std::uint32_t sm : n_.sm) oldest = std::min(oldest, sm);
    const double gb = inter_ ? (oldest >= 100 ? 96 : 48) : oldest >= 100 ? 90 : oldest >= 90 ? 60 : 40;
    return gb * 1e9;
  }

  /// No plan is above this: what GPUs can send over paths of the class, and what the adapters carry.
  [[nodiscard]] double most_in_all() const {
    double least = 1e300;
    for (std::size_t a = 0; a < n_.gpus.size() && n_.gpus.size() > 1; ++a) {
      std::vector<std::uint32_t> first_links;
      double sum = 0;
      for (std::size_t b = 0; b < n_.gpus.size(); ++b) {
        const nccl_path& p = n_.hop(a, b);
        if (a == b || p.kind > intra_type_ || p.uses.empty()) continue;
        if (seq::contains(first_links, p.uses.front().link)) continue;
        first_links.push_back(p.uses.front().link);
        sum += n_.capacity[p.uses.front().link];
      }
      // Between nodes a GPU at the end of a channel sends over an adapter instead.
      if (inter_) sum *= static_cast<double>(n_.gpus.size()) / static_cast<double>(n_.gpus.size() - 1);
      least = std::min(least, sum);
    }
    double nets = 0;  // each no more than its port carries, nor than the ways behind it
    for (std::size_t i = 0; i < n_.nets.size(); ++i) {
      double port = 0, ways = 0;
      for (std::size_t a = 0; a < n_.gpus.size(); ++a) {
        const nccl_path& p = n_.enter(i, a);
        if (p.kind > inter_type_ || p.uses.empty()) continue;
        double narrowest = 1e300;
        for (const nccl_use& u : p.uses) narrowest = std::min(narrowest, n_.capacity[u.link]);
        port = std::max(port, n_.capacity[p.uses.front().link]);
        ways += narrowest;
      }
      nets += std::min(port, ways);
    }
    return inter_ ? std::min(least, nets) : least;
  }

  [[nodiscard]] bool fits(const nccl_path& p, topo::path_class most) const {
    if (p.kind > most || p.uses.empty()) return false;
    for (const nccl_use& u : p.uses)
      if (left_[u.link] < rate_ * u.share * (1 - tolerance)) return false;
    return true;
  }
  void take(const nccl_path& p, double sign) {
    for (const nccl_use& u : p.uses) left_[u.link] -= sign * rate_ * u.share;
  }
  [[nodiscard]] double room(const nccl_path& p) const {
    double least = 1e300;
    for (const nccl_use& u : p.uses) least = std::min(least, left_[u.link] / u.share);
    return least;
  }

  [[nodiscard]] std::vector<nccl_chain> pack(double rate, std::uint32_t attempt) {
    rate_ = rate;
    left_ = n_.capacity;
    seed_ = attempt;
    std::vector<nccl_chain> chains;
    while (chains.size() < most_) {
      chain_ = chains.size();
      const nccl_chain* before = chains.empty() ? nullptr : &chains.back();
      auto next = chain(before, static_cast<std::uint32_t>(chains.size()));
      if (!next) break;
      chains.push_back(*next);
      if (chains.size() == most_) {
        if (cross_ == 2) chains.pop_back();
        break;
      }
      // Links run both ways, so the same channel backwards often fits too.
      if (cross_ == 2 || (attempt % 2 == 1 && !inter_ && n_.gpus.size() > 2)) {
        nccl_chain back = *next;
        std::reverse(back.gpus.begin(), back.gpus.end());
        std::swap(back.net_in, back.net_out);
        if (place(back)) {
          chains.push_back(std::move(back));
        } else if (cross_ == 2) {  // channels that change adapters go in pairs
          if (auto other = chain_between(next->net_out, next->net_in)) {
            chains.push_back(std::move(*other));
          } else {
            remove(chains.back());
            chains.pop_back();
            break;
          }
        }
      }
    }
    return chains;
  }
  /// Books all of a chain, or nothing.
  [[nodiscard]] bool place(const nccl_chain& c) {
    std::vector<const nccl_path*> taken;
    const auto book = [&](const nccl_path& p, topo::path_class most) {
      if (!fits(p, most)) return false;
      take(p, 1);
      taken.push_back(&p);
      return true;
    };
    bool ok = !inter_ || book(n_.enter(c.net_in, c.gpus.front()), inter_type_);
    for (std::size_t i = 0; ok && i + 1 < c.gpus.size(); ++i) ok = book(n_.hop(c.gpus[i], c.gpus[i + 1]), intra_type_);
    if (ok && inter_) ok = book(n_.leave(c.net_out, c.gpus.back()), inter_type_);
    if (ok && !inter_ && c.gpus.size() > 1) ok = book(n_.hop(c.gpus.back(), c.gpus.front()), intra_type_);
    if (!ok)
      for (const nccl_path* p : taken) take(*p, -1);
    return ok;
  }
  void remove(const nccl_chain& c) {
    if (inter_) {
      take(n_.enter(c.net_in, c.gpus.front()), -1);
      take(n_.leave(c.net_out, c.gpus.back()), -1);
    } else if (c.gpus.size() > 1) {
      take(n_.hop(c.gpus.back(), c.gpus.front()), -1);
    }
    for (std::size_t i = 0; i + 1 < c.gpus.size(); ++i) take(n_.hop(c.gpus[i], c.gpus[i + 1]), -1);
  }

  /// Attempts differ: backwards channels at once or not, the same order again or not, roomy links first or any.
  [[nodiscard]] bool by_room() const { return seed_ < 4 || seed_ / 4 % 2 == 0; }
  /// A pseudo-random number for ties. splitmix64: Steele, Lea, Flood, OOPSLA 2014.
  [[nodiscard]] std::uint64_t draw(std::uint64_t a) const {
    std::uint64_t z = (seed_ + 1) * 0x9e3779b97f4a7c15ULL + a;
    z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27U) * 0x94d049bb133111ebULL;
    return z ^ z >> 31U;
  }

  [[nodiscard]] std::optional<nccl_chain> chain(const nccl_chain* before, std::uint32_t number) {
    budget_ = seed_ < 16 ? 600 : 4000;
    successor_.assign(n_.gpus.size(), nccl_chain::no_net);
    if (before != nullptr && seed_ / 2 % 2 == 0)  // same order again where it fits
      for (std::size_t i = 0; i < before->gpus.size(); ++i)
        successor_[before->gpus[i]] = before->gpus[(i + 1) % before->gpus.size()];
    path_.clear();
    used_.assign(n_.gpus.size(), 0);
    last_ = SIZE_MAX;
    if (!inter_) {
      const std::size_t start = 0;  // a ring may start anywhere
      return walk_from(start, nccl_chain::no_net);
    }
    std::vector<std::size_t> nets(n_.nets.size());
    for (std::size_t i = 0; i < nets.size(); ++i) nets[i] = (i + number) % nets.size();
    std::vector<double> widest(nets.size(), 0);
    for (std::size_t i = 0; i < nets.size(); ++i)
      for (std::size_t a = 0; a < n_.gpus.size(); ++a)
        if (fits(n_.enter(i, a), inter_type_)) widest[i] = std::max(widest[i], room(n_.enter(i, a)));
    seq::sort(nets, [&](std::size_t a, std::size_t b) { return widest[a] > widest[b] * (1 + 1e-6); });
    for (const std::size_t net : nets) {
      if (!(widest[net] > 0)) continue;
      if (auto found = enter_by(net)) return found;
      if (budget_ == 0) return std::nullopt;
    }
    return std::nullopt;
  }
  /// The second channel of a pair.
  [[nodiscard]] std::optional<nccl_chain> chain_between(std::size_t net_in, std::size_t net_out) {
    budget_ = seed_ < 16 ? 600 : 4000;
    path_.clear();
    used_.assign(n_.gpus.size(), 0);
    only_out_ = net_out;
    auto found = enter_by(net_in);
    only_out_ = nccl_chain::no_net;
    return found;
  }
  [[nodiscard]] std::optional<nccl_chain> enter_by(std::size_t net) {
    std::vector<std::size_t> starts;
    for (std::size_t a = 0; a < n_.gpus.size(); ++a)
      if (fits(n_.enter(net, a), inter_type_)) starts.push_back(a);
    seq::sort(starts, [&](std::size_t a, std::size_t b) {
      const nccl_path &x = n_.enter(net, a), &y = n_.enter(net, b);
      if (x.kind != y.kind) return x.kind < y.kind;
      if (!by_room()) return draw(a + chain_ * 64) < draw(b + chain_ * 64);
      return room(x) > room(y) * (1 + 1e-6);
    });
    for (const std::size_t start : starts) {
      take(n_.enter(net, start), 1);
      // The GPU that the channel leaves from is chosen first: few have a way out, and the others can come in any order.
      for (const std::size_t last : exits(net, start)) {
        last_ = last;
        if (auto found = walk_from(start, net)) return found;
        if (budget_ == 0) break;
      }
      take(n_.enter(net, start), -1);
      if (budget_ == 0) return std::nullopt;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::size_t> exits(std::size_t net, std::size_t first) const {
    struct exit {
      std::size_t gpu;
      topo::path_class kind;
      double room;
      std::uint64_t tie;
    };
    std::vector<exit> found;
    for (std::size_t a = 0; a < n_.gpus.size(); ++a) {
      if (a == first && n_.gpus.size() > 1) continue;
      exit best{a, topo::path_class::DIS, 0,
                by_room() ? (a + n_.gpus.size() - first) % n_.gpus.size() : draw(a + chain_ * 64)};
      for (std::size_t i = 0; i < n_.nets.size(); ++i)
        if (const nccl_path& p = n_.leave(i, a); may_leave(net, i) && fits(p, inter_type_) && p.kind < best.kind) {
          best.kind = p.kind;
          best.room = room(p);
        }
      if (best.kind != topo::path_class::DIS) found.push_back(best);
    }
    seq::sort(found, [&](const exit& a, const exit& b) {
      if (a.kind != b.kind) return a.kind < b.kind;
      if (by_room() && std::abs(a.room - b.room) > 1e-6 * b.room) return a.room > b.room;
      return a.tie < b.tie;
    });
    std::vector<std::size_t> gpus;
    for (const exit& e : found) gpus.push_back(e.gpu);
    return gpus;
  }
  [[nodiscard]] bool may_leave(std::size_t net_in, std::size_t net_out) const {
    if (only_out_ != nccl_chain::no_net) return net_out == only_out_;
    return cross_ == 2 ? net_out != net_in : net_out == net_in;
  }
  [[nodiscard]] std::optional<nccl_chain> walk_from(std::size_t start, std::size_t net) {
    path_ = {start};
    used_[start] = 1;
    std::size_t net_out = nccl_chain::no_net;
    if (walk(net, net_out)) return nccl_chain{path_, net, net_out};
    used_[start] = 0;
    path_.clear();
    return std::nullopt;
  }
  /// Depth first; links of the found chain stay booked. At most 64 deep.
  [[nodiscard]] bool walk(std::size_t net, std::size_t& net_out) {
    if (budget_ == 0 || work_ == 0) return false;
    --budget_;
    --work_;
    const std::size_t at = path_.back();
    if (path_.size() == n_.gpus.size()) return finish(net, net_out);
    struct choice {
      std::size_t gpu;
      bool again;
      topo::path_class kind;
      double room;
      std::uint64_t tie;
    };
    std::vector<choice> choices;
    for (std::size_t b = 0; b < n_.gpus.size(); ++b) {
      if (used_[b] != 0 || !fits(n_.hop(at, b), intra_type_)) continue;
      if (b == last_ && path_.size() + 1 < n_.gpus.size()) continue;
      const std::size_t ahead = (b + n_.gpus.size() - at) % n_.gpus.size();
      choices.push_back({b, successor_[at] == b, n_.hop(at, b).kind, by_room() ? room(n_.hop(at, b)) : 0,
                         seed_ < 4 ? ahead : draw(at * 64 + b + path_.size() * 4096 + chain_ * 262144)});
    }
    seq::sort(choices, [](const choice& a, const choice& b) {
      if (a.again != b.again) return a.again;
      if (a.kind != b.kind) return a.kind < b.kind;
      if (std::abs(a.room - b.room) > 1e-6 * b.room) return a.room > b.room;
      return a.tie < b.tie;
    });
    for (const choice& c : choices) {
      take(n_.hop(at, c.gpu), 1);
      used_[c.gpu] = 1;
      path_.push_back(c.gpu);
      if (walk(net, net_out)) return true;
      path_.pop_back();
      used_[c.gpu] = 0;
      take(n_.hop(at, c.gpu), -1);
      if (budget_ == 0) return false;
    }
    return false;
  }
  [[nodiscard]] bool finish(std::size_t net, std::size_t& net_out) {
    const std::size_t last = path_.back();
    if (!inter_) {
      if (n_.gpus.size() == 1) return true;
      if (!fits(n_.hop(last, path_.front()), intra_type_)) return false;
      take(n_.hop(last, path_.front()), 1);
      return true;
    }
    std::size_t best = nccl_chain::no_net;
    for (std::size_t i = 0; i < n_.nets.size(); ++i) {
      if (!may_leave(net, i)) continue;
      if (!fits(n_.leave(i, last), inter_type_)) continue;
      if (best == nccl_chain::no_net || n_.leave(i, last).kind < n_.leave(best, last).kind ||
          (n_.leave(i, last).kind == n_.leave(best, last).kind &&
           room(n_.leave(i, last)) > room(n_.leave(best, last)) * (1 + 1e-6)))
        best = i;
    }
    if (best == nccl_chain::no_net) return false;
    take(n_.leave(best, last), 1);
    net_out = best;
    return true;
  }

  const nccl_network& n_;
  bool inter_;
  std::uint32_t most_;
  topo::path_class intra_type_{}, inter_type_{};
  std::uint32_t cross_ = 0;
  std::size_t only_out_ = nccl_chain::no_net, last_ = SIZE_MAX;
  double rate_ = 0;
  std::uint64_t seed_ = 0, chain_ = 0;
  std::uint32_t left_in_all_ = 160'000, work_ = 0;  ///< steps of search that are left
  std::uint32_t budget_ = 0;
  std::vector<double> left_;
  std::vector<std::size_t> path_, successor_;
  std::vector<std::uint8_t> used_;
};

/// Every channel twice at half the rate, where NCCL does so after its own search (not after reading a file): fast channels
/// are more than one thread block moves. Source: NCCL 2.28 src/graph/search.cc, ncclTopoDupChannels.
template <class = void>
void double_channels(const nccl_network& n, double rate, std::uint32_t most, std::vector<nccl_chain>& chains) {
  std::uint32_t oldest = UINT32_MAX;
  for (const std::uint32_t sm : n.sm) oldest = std::min(oldest, sm);
  if (n.gpus.size() == 1 || rate < 25e9 || (oldest > 80 && rate < 50e9 && chains.size() > 4) ||
      chains.size() * 2 > most)
    return;
  const std::vector<nccl_chain> once = chains;
  chains.insert(chains.end(), once.begin(), once.end());
}

/// The graphs along given channels, at the largest rate that the links allow.
template <class = void>
[[nodiscard]] nccl_graph_file graphs_along(const nccl_network& n, const std::vector<nccl_chain>& chains,
                                           std::uint32_t cross_nic, const nccl_graph_options& o) {
  nccl_graph_file file;
  file.findings = n.findings;
  nccl_loads<> ring_load(n), tree_load(n);
  nccl_graph ring, tree;
  ring.cross_nic = cross_nic;
  tree.id = nccl_graph_id::tree;
  // Within a node NCCL calls it balanced; between nodes all of it hangs at the first GPU, which always has an adapter.
  tree.pattern = o.between_nodes ? nccl_pattern::tree : nccl_pattern::balanced_tree;
  const auto note = [](topo::path_class& worst, const nccl_path& p) { worst = std::max(worst, p.kind); };
  for (const nccl_chain& c : chains) {
    nccl_channel r, t;
    for (const std::size_t gpu : c.gpus) r.gpus.push_back(n.gpu_dev[gpu]);
    t.gpus = r.gpus;
    for (std::size_t i = 0; i + 1 < c.gpus.size(); ++i) {
      const nccl_path &forth = n.hop(c.gpus[i], c.gpus[i + 1]), &back = n.hop(c.gpus[i + 1], c.gpus[i]);
      ring_load.add(forth);
      tree_load.add(forth, 0.5);
      tree_load.add(back, 0.5);
      note(ring.type_intra, forth);
      note(tree.type_intra, forth);
      note(tree.type_intra, back);
    }
    if (c.net_in != nccl_chain::no_net) {
      const nccl_path &in = n.enter(c.net_in, c.gpus.front()), &out = n.leave(c.net_out, c.gpus.back());
      const nccl_path& out_first = n.leave(c.net_in, c.gpus.front());
      r.net_in = n.net_dev[c.net_in];
      r.net_out = n.net_dev[c.net_out];
      t.net_in = t.net_out = r.net_in;
      ring_load.add(in);
      ring_load.add(out);
      tree_load.add(in);
      tree_load.add(out_first);
      note(ring.type_inter, in);
      note(ring.type_inter, out);
      note(tree.type_inter, in);
      note(tree.type_inter, out_first);
    } else if (c.gpus.size() > 1) {
      ring_load.add(n.hop(c.gpus.back(), c.gpus.front()));
      note(ring.type_intra, n.hop(c.gpus.back(), c.gpus.front()));
    }
    ring.channels.push_back(std::move(r));
    tree.channels.push_back(std::move(t));
  }
  const auto finish = [&](nccl_graph& g, double rate) {
    if (rate > 1e299) rate = 5000e9;  // one GPU alone: NCCL's rate within a device
    g.speed_intra = g.speed_inter = {rate};
    g.same_channels = seq::all_of(g.channels, [&](const nccl_channel& c) { return c.gpus == g.channels.front().gpus; });
    file.graphs.push_back(std::move(g));
  };
  finish(ring, ring_load.rate());
  finish(tree, tree_load.rate());
  return file;
}

/// One head for each GPU.
template <class = void>
void add_nvls(const nccl_network& n, const nccl_graph_options& o, nccl_graph_file& file) {
  bool all = true;
  double wires = 1e300;
  for (std::size_t a = 0; a < n.gpus.size(); ++a) {
    double to_switch = 0;
    for (const link_id e : n.cut.local.out_links(n.gpus[a]))
      if (n.cut.local.at(n.cut.local.head(e)).kind == topo::node_kind::nvswitch) to_switch += n.capacity[e.value];
    wires = std::min(wires, to_switch);
    all = all && n.sm[a] >= 90 && to_switch > 0;
  }
  if (!all || n.gpus.size() < 2 || n.gpus.size() > 32) {
    file.findings.push_back({severity::note,
                             n.host,
                             "no NVLS graph is written: it takes 2 to 32 GPUs of sm90 or later on NVSwitch",
                             {},
                             {},
                             1});
    return;
  }
  nccl_graph nvls;
  nvls.id = nccl_graph_id::nvls;
  nvls.pattern = nccl_pattern::nvls;
  nvls.type_intra = topo::path_class::NVL;
  nccl_loads<> net_load(n);
  for (std::size_t a = 0; a < n.gpus.size(); ++a) {
    nccl_channel c;
    c.gpus = {n.gpu_dev[a]};
    std::size_t best = nccl_chain::no_net;
    for (std::size_t i = 0; i < n.nets.size(); ++i) {
      const nccl_path& p = n.leave(i, a);
      if (p.uses.empty()) continue;
      const auto users = [&](std::size_t net) {
        std::size_t count = 0;
        for (const nccl_channel& other : nvls.channels) count += other.net_in == n.net_dev[net] ? 1 : 0;
        return count;
      };
      if (best == nccl_chain::no_net || p.kind < n.leave(best, a).kind ||
          (p.kind == n.leave(best, a).kind && users(i) < users(best)))
        best = i;
    }
    if (o.between_nodes && best != nccl_chain::no_net) {
      c.net_in = c.net_out = n.net_dev[best];
      net_load.add(n.enter(best, a));
      net_load.add(n.leave(best, a));
      nvls.type_inter = std::max({nvls.type_inter, n.enter(best, a).kind, n.leave(best, a).kind});
    }
    nvls.channels.push_back(std::move(c));
  }
  nvls.speed_intra = {wires / static_cast<double>(n.gpus.size())};
  nvls.speed_inter = o.between_nodes ? bytes_per_second{net_load.rate()} : nvls.speed_intra;
  file.graphs.push_back(std::move(nvls));
}

template <class = void>
[[nodiscard]] result<nccl_network> network_for(const topo::graph& g, const nccl_graph_options& o) {
  auto n = nccl_network_of(g, o.host, o.between_nodes);
  if (!n) return n;
  if (o.between_nodes && n->nets.empty())
    return fail(errc::not_found, "host '" + n->host + "' has no network adapter that is up",
                "ask for a job on one node");
  if (o.most_channels == 0 || o.most_channels > 32)
    return fail(errc::invalid_argument,
                std::to_string(o.most_channels) + " channels were asked for; NCCL searches 1 to 32");
  if (o.cross_nic > 2)
    return fail(errc::invalid_argument, "NCCL_CROSS_NIC is 0, 1 or 2, not " + std::to_string(o.cross_nic));
  return n;
}

}  // namespace detail

template <class>
result<nccl_graph_file> nccl_graphs_of(const topo::graph& g, const nccl_graph_options& options) {
  auto n = detail::network_for(g, options);
  if (!n) return std::move(n).error();
  using topo::path_class;
  detail::ring_search<> search(*n, options);
  typename detail::ring_search<>::answer best;
  // Near paths first: worse ones must bring more to be taken.
  std::vector<path_class> intra, inter;
  for (const detail::nccl_path& p : n->between) intra.push_back(p.uses.empty() ? path_class::LOC : p.kind);
  for (const detail::nccl_path& p : n->in) inter.push_back(p.kind);
  for (const detail::nccl_path& p : n->out) inter.push_back(p.kind);
  seq::sort_unique(intra);
  seq::sort_unique(inter);
  if (inter.empty()) inter.push_back(path_class::LOC);
  for (const path_class a : intra)
    for (const path_class b : inter) {
      if (a == path_class::DIS || b == path_class::DIS) continue;
      search.try_types(a, b, 0, best);
      if (options.between_nodes && options.cross_nic != 0 && n->nets.size() > 1) search.try_types(a, b, 2, best);
    }
  if (best.chains.empty())
    return fail(errc::unsupported, "no order of the GPUs of host '" + n->host + "' can be joined to a ring");
  if (n->gpus.size() == 1 && !options.between_nodes) best.chains.resize(1);
  detail::double_channels(*n, best.rate, options.most_channels, best.chains);
  nccl_graph_file file = detail::graphs_along(*n, best.chains, best.cross_nic, options);
  if (options.nvls) detail::add_nvls(*n, options, file);
  return file;
}

template <class>
result<nccl_graph_file> nccl_graphs_of(const plan::problem& p, const plan::schedule& schedule,
                                       const nccl_graph_options& options) {
  if (p.graph == nullptr) return fail(errc::invalid_argument, "rings of a host need a graph");
  if (schedule.ranks != p.rank_count())
    return fail(errc::invalid_argument, "the plan is for " + std::to_string(schedule.ranks) +
                                            " ranks, the problem for " + std::to_string(p.rank_count()));
  auto n = detail::network_for(*p.graph, options);
  if (!n) return std::move(n).error();
  // Positions of the host's GPUs by rank.
  std::vector<std::size_t> position(p.rank_count(), SIZE_MAX);
  std::size_t here = 0;
  for (std::uint32_t r = 0; r < p.rank_count(); ++r)
    for (std::size_t a = 0; a < n->gpus.size(); ++a)
      if (n->cut.original[n->gpus[a].value] == p.ranks[r]) {
        position[r] = a;
        ++here;
      }
  if (here != n->gpus.size())
    return fail(errc::unsupported, "the plan uses " + std::to_string(here) + " of the " +
                                       std::to_string(n->gpus.size()) + " GPUs of host '" + n->host +
                                       "', and channels of the file visit all");
  if (options.between_nodes == (here == p.rank_count()))
    return fail(errc::invalid_argument, std::string("the plan is ") +
                                            (options.between_nodes ? "for this node alone" : "not for one node alone"));
  std::vector<std::vector<std::uint32_t>> next;  // per channel and rank
  for (std::uint32_t r = 0; r < p.rank_count(); ++r) {
    const auto program = plan::lower(schedule, rank_id{r});
    if (!program) return program.error();
    next.resize(program->channels);
    for (auto& list : next) list.resize(p.rank_count(), UINT32_MAX);
    for (const plan::step& s : program->steps)
      for (std::uint32_t i = s.first_op; i < s.first_op + s.op_count; ++i) {
        if (program->ops[i].kind != plan::op_kind::send) continue;
        std::uint32_t& to = next[s.channel][r];
        if (to != UINT32_MAX && to != program->ops[i].peer.value)
          return fail(errc::unsupported, "the plan '" + schedule.name + "' is not made of rings: rank " +
                                             std::to_string(r) + " sends to rank " + std::to_string(to) +
                                             " and to rank " + std::to_string(program->ops[i].peer.value));
        to = program->ops[i].peer.value;
      }
  }
  std::vector<detail::nccl_chain> chains;
  for (const auto& to : next) {
    detail::nccl_chain c;
    std::size_t entries = 0;
    std::uint32_t start = UINT32_MAX;
    for (std::uint32_t r = 0; r < p.rank_count(); ++r) {
      if (to[r] == UINT32_MAX)
        return fail(errc::unsupported, "the plan '" + schedule.name + "' is not made of rings: rank " +
                                           std::to_string(r) + " sends to nobody");
      if (position[to[r]] == SIZE_MAX || (position[r] != SIZE_MAX && options.between_nodes)) continue;
      ++entries;
      if (options.between_nodes || start == UINT32_MAX) start = to[r];
    }
    if (options.between_nodes && entries != 1)
      return fail(errc::unsupported,
                  "a ring of the plan enters host '" + n->host + "' " + std::to_string(entries) + " times");
    for (std::uint32_t r = start; position[r] != SIZE_MAX && c.gpus.size() < n->gpus.size(); r = to[r])
      c.gpus.push_back(position[r]);
    if (c.gpus.size() != n->gpus.size())
      return fail(errc::unsupported, "a ring of the plan does not pass all GPUs of host '" + n->host + "' in one go");
    const auto nearest = [&](bool in, std::size_t gpu) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < n->nets.size(); ++i) {
        const detail::nccl_path &a = in ? n->enter(i, gpu) : n->leave(i, gpu),
                                &b = in ? n->enter(best, gpu) : n->leave(best, gpu);
        if (a.kind < b.kind) best = i;
      }
      return best;
    };
    if (options.between_nodes) {
      c.net_in = nearest(true, c.gpus.front());
      c.net_out = c.net_in;  // by the adapter that it came in by, as NCCL prefers
    }
    chains.push_back(std::move(c));
  }
  nccl_graph_file file = detail::graphs_along(*n, chains, 0, options);
  if (options.nvls) detail::add_nvls(*n, options, file);
  return file;
}

}}  // namespace topocoll::v0
