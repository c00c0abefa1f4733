// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/nccl_graph_file.hpp checks a file against the host that it is for.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/integrate/detail/nccl_network.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

template <class = void>
class nccl_graph_checker {
 public:
  nccl_graph_checker(const nccl_graph_file& file, const nccl_network& n) : file_(file), n_(n) {}

  [[nodiscard]] result<nccl_graph_proof> run() {
    if (file_.graphs.empty()) return refuse("the file has no graph");
    proof_.gpus = static_cast<std::uint32_t>(n_.gpus.size());
    for (std::size_t i = 0; i < file_.graphs.size(); ++i) {
      const nccl_graph& g = file_.graphs[i];
      for (std::size_t j = 0; j < i; ++j)
        if (file_.graphs[j].id == g.id) return refuse(name(g) + " is there twice");
      if (auto ok = graph(g); !ok) return std::move(ok).error();
    }
    const nccl_graph* ring = file_.find(nccl_graph_id::ring);
    const nccl_graph* tree = file_.find(nccl_graph_id::tree);
    if (ring != nullptr && tree != nullptr && ring->channels.size() != tree->channels.size())
      return refuse("the ring has " + std::to_string(ring->channels.size()) + " channels and the tree " +
                    std::to_string(tree->channels.size()) + ": NCCL would use the smaller number for both");
    return proof_;
  }

 private:
  [[nodiscard]] static failure refuse(const std::string& what) { return fail(errc::malformed_input, what); }
  [[nodiscard]] static std::string name(const nccl_graph& g) {
    constexpr const char* words[] = {"the ring graph", "the tree graph", "the collnet chain", "the NVLS graph",
                                     "the collnet graph"};
    return words[static_cast<std::size_t>(g.id)];
  }

  [[nodiscard]] result<void> graph(const nccl_graph& g) {
    using id = nccl_graph_id;
    using pattern = nccl_pattern;
    const bool fits = g.id == id::ring   ? g.pattern == pattern::ring
                      : g.id == id::nvls ? g.pattern == pattern::nvls
                      : g.id == id::tree ? g.pattern >= pattern::balanced_tree && g.pattern <= pattern::tree
                                         : true;
    if (!fits) return refuse(name(g) + " has pattern " + std::to_string(static_cast<int>(g.pattern)));
    if (g.channels.empty() || g.channels.size() > 64)
      return refuse(name(g) + " has " + std::to_string(g.channels.size()) + " channels; NCCL takes 1 to 64");
    if (!(g.speed_intra.value > 0) || !(g.speed_inter.value > 0)) return refuse(name(g) + " has no speed");
    const bool between = g.channels.front().net_in.has_value();
    std::vector<double> load(n_.capacity.size(), 0);
    topo::path_class intra = topo::path_class::LOC, inter = topo::path_class::LOC;
    const auto use = [&](const nccl_path& p, double rate, topo::path_class& worst) {
      worst = std::max(worst, p.kind == topo::path_class::C2C ? topo::path_class::PIX : p.kind);
      for (const nccl_use& u : p.uses) load[u.link] += u.share * rate;
    };
    for (std::size_t c = 0; c < g.channels.size(); ++c) {
      const nccl_channel& channel = g.channels[c];
      const std::string at = name(g) + ", channel " + std::to_string(c);
      std::vector<std::size_t> gpus;
      for (const std::uint32_t dev : channel.gpus) {
        const auto known = seq::find(n_.gpu_dev, dev);
        if (known == n_.gpu_dev.end())
          return refuse(at + ": there is no GPU " + std::to_string(dev) + " on " + n_.host);
        gpus.push_back(static_cast<std::size_t>(known - n_.gpu_dev.begin()));
        if (std::count(channel.gpus.begin(), channel.gpus.end(), dev) != 1)
          return refuse(at + " visits GPU " + std::to_string(dev) + " twice");
      }
      const std::size_t wanted = g.id == id::nvls ? 1 : n_.gpus.size();
      if (gpus.size() != wanted)
        return refuse(at + " visits " + std::to_string(gpus.size()) + " GPUs of " + std::to_string(wanted));
      if (channel.net_in.has_value() != between || channel.net_out.has_value() != between)
        return refuse(at + (between ? " lacks an adapter at an end" : " has an adapter, which others lack"));
      std::size_t nets[2] = {0, 0};
      for (const bool in : {true, false}) {
        if (!between) break;
        const std::uint32_t dev = in ? *channel.net_in : *channel.net_out;
        const auto known = seq::find(n_.net_dev, dev);
        if (known == n_.net_dev.end())
          return refuse(at + ": there is no adapter " + std::to_string(dev) + " on " + n_.host);
        nets[in ? 0 : 1] = static_cast<std::size_t>(known - n_.net_dev.begin());
      }
      if (between && g.cross_nic == 0 && nets[0] != nets[1])
        return refuse(at + " leaves by adapter " + std::to_string(*channel.net_out) + ", but crossnic is 0");
      if (between && g.cross_nic == 2 && g.id == id::ring && nets[0] != nets[1]) {
        const std::size_t other = c ^ 1U;
        if (other >= g.channels.size() || g.channels[other].net_in != channel.net_out ||
            g.channels[other].net_out != channel.net_in)
          return refuse(at + " changes adapters, but the channel beside it does not change them back");
      }
      const double s = g.speed_intra.value;
      const bool tree = g.id == id::tree;
      for (std::size_t i = 0; i + 1 < gpus.size(); ++i) {
        use(n_.hop(gpus[i], gpus[i + 1]), tree ? s / 2 : s, intra);
        if (tree) use(n_.hop(gpus[i + 1], gpus[i]), s / 2, intra);
      }
      if (between) {
        use(n_.enter(nets[0], gpus.front()), g.speed_inter.value, inter);
        use(n_.leave(nets[1], tree ? gpus.front() : gpus.back()), g.speed_inter.value, inter);
      } else if (g.id == id::ring && gpus.size() > 1) {
        use(n_.hop(gpus.back(), gpus.front()), s, intra);
      }
      if (g.id == id::nvls) intra = topo::path_class::NVL;
    }
    // Speeds are written with the precision of NCCL's own.
    for (std::size_t e = 0; e < load.size(); ++e)
      if (load[e] > n_.capacity[e] * (1 + 1e-5)) {
        const topo::link& l = n_.cut.local.at(link_id{static_cast<std::uint32_t>(e)});
        return refuse(name(g) + " puts " + to_string(bytes_per_second{load[e]}) + " on the link from " +
                      n_.cut.local.at(l.from).key + " to " + n_.cut.local.at(l.to).key + ", which carries " +
                      to_string(bytes_per_second{n_.capacity[e]}));
      }
    if (intra == topo::path_class::DIS || inter == topo::path_class::DIS)
      return refuse(name(g) + " joins what no path joins");
    const auto written = [](topo::path_class c) { return c == topo::path_class::C2C ? topo::path_class::PIX : c; };
    if (intra != written(g.type_intra))
      return refuse(name(g) + " says " + to_string(g.type_intra) + " within the node, but uses " + to_string(intra));
    if (between && inter != written(g.type_inter))
      return refuse(name(g) + " says " + to_string(g.type_inter) + " to the network, but uses " + to_string(inter));
    const bool same = seq::all_of(g.channels, [&](const nccl_channel& c) { return c.gpus == g.channels.front().gpus; });
    if (g.same_channels && !same) return refuse(name(g) + " says that all channels are the same, but they are not");
    const bytes_per_second total =
        (between ? std::min(g.speed_inter, g.speed_intra) : g.speed_intra) * static_cast<double>(g.channels.size());
    if (g.id == id::ring) proof_.ring = total;
    if (g.id == id::tree) proof_.tree = total;
    if (g.id == id::ring) proof_.channels = static_cast<std::uint32_t>(g.channels.size());
    return {};
  }

  const nccl_graph_file& file_;
  const nccl_network& n_;
  nccl_graph_proof proof_;
};

}  // namespace detail

template <class>
result<nccl_graph_proof> check_nccl_graphs(const nccl_graph_file& file, const topo::graph& g, const std::string& host) {
  const auto n = detail::nccl_network_of(g, host, true);
  if (!n) return n.error();
  return detail::nccl_graph_checker<>(file, *n).run();
}

}}  // namespace topocoll::v0
