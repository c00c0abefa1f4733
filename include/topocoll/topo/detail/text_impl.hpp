// SPDX-License-Identifier: Apache-2.0
#pragma once
// How topo/text.hpp lays out a graph as a tree.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/tree_layout.hpp>
#include <topocoll/topo/groups.hpp>
#include <topocoll/topo/summary.hpp>
#include <topocoll/topo/text.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo {
namespace detail {

/// Builds the trees of one graph. Its state is the graph's: which nodes have a place, which reasons have a mark.
template <class = void>
class tree_writer {
 public:
  tree_writer(const graph& g, const text_options& options)
      : g_(g),
        o_(options),
        layout_(options.unicode),
        parent_(g.node_count()),
        depth_(g.node_count(), 0),
        shown_(g.node_count(), false),
        busy_(g.node_count(), false) {
    for (const link& l : g.links()) wired_ = wired_ || l.kind == link_kind::infiniband || l.kind == link_kind::ethernet;
  }

  [[nodiscard]] std::string run() {
    std::string text = to_string(summarize(g_)) + '\n';
    if (!g_.source().empty()) text += "from " + g_.source() + '\n';
    add_hosts(text);
    if (const tree_line planes = plane_tree(); !planes.below.empty()) layout_.append(text, planes);
    if (const tree_line fabric = fabric_tree(); !fabric.below.empty()) layout_.append(text, fabric);
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      if (i == 0) text += "\nassumed\n";
      text += "  ?" + std::to_string(i + 1) + "  " + reasons_[i] + '\n';
    }
    add_findings(text);
    return text;
  }

 private:
  /// "?2" for an assumed figure, leading to its reason; nothing for others.
  [[nodiscard]] std::string mark(const link& l) {
    if (l.how != trust::assumed) return {};
    const std::string reason = l.reason.empty() ? "no reason is given" : l.reason;
    auto it = seq::find(reasons_, reason);
    if (it == reasons_.end()) it = reasons_.insert(it, reason);
    return " ?" + std::to_string(it - reasons_.begin() + 1);
  }

  /// "63.0 GB/s", "63.0 GB/s, runs at 31.5 GB/s", "250 MB/s, taken as 48.0 GB/s ?1".
  [[nodiscard]] std::string figure(const link& l) {
    if (l.capacity.value <= 0) return "dead" + mark(l);
    const bytes_per_second best = l.nominal.value_or(l.capacity);
    std::string text = to_string(best);
    if (l.current && (l.current->value < 0.99 * best.value || l.current->value > 1.01 * best.value))
      text += ", runs at " + to_string(*l.current);
    // Models use a little less than the line rate; anything else needs saying.
    const bytes_per_second told = l.current.value_or(best);
    if (l.capacity.value < 0.5 * told.value || l.capacity.value > 1.01 * told.value)
      text += ", taken as " + to_string(l.capacity);
    return text + mark(l);
  }
  [[nodiscard]] std::string made_and_rated(const link& l) { return make_of(l) + ' ' + figure(l); }

  /// "400 Gb/s InfiniBand"
  [[nodiscard]] std::string cable_words(const link& l) {
    std::string text = make_of(l);
    if (l.current && l.nominal && l.current->value < 0.99 * l.nominal->value)
      text += ", runs at " + bits_text(*l.current);
    if (l.capacity.value <= 0) text += ", dead";
    return text + mark(l);
  }

  [[nodiscard]] static bool is_tree_link(link_kind k) {
    return k == link_kind::pcie || k == link_kind::memory || k == link_kind::internal;
  }

  /// Gives every node of a host that hangs on a NUMA domain, or else on some other node, the link by which it does.
  void choose_parents(std::span<const node_id> nodes, const std::string& host) {
    std::vector<node_id> queue;
    const auto grow = [&](std::size_t first, bool c2c) {
      for (std::size_t i = first; i < queue.size(); ++i)
        for (const link_id e : g_.out_links(queue[i])) {
          const node_id w = g_.head(e);
          const bool fits = is_tree_link(g_.at(e).kind) || (c2c && g_.at(e).kind == link_kind::c2c);
          if (!fits || shown_[w.value] || depth_[queue[i].value] >= deepest || g_.at(w).host != host ||
              g_.at(w).kind == node_kind::cpu)
            continue;
          shown_[w.value] = true;
          parent_[w.value] = e;
          depth_[w.value] = depth_[queue[i].value] + 1;
          queue.push_back(w);
        }
    };
    const auto start = [&](node_kind kind) {
      for (const node_id v : nodes) {
        if (g_.at(v).kind != kind || shown_[v.value]) continue;
        shown_[v.value] = true;
        roots_.push_back(v);
        queue.push_back(v);
        if (kind != node_kind::cpu) grow(queue.size() - 1, true);
      }
    };
    start(node_kind::cpu);
    grow(0, false);  // all of PCIe before chip-to-chip links, so that a GPU with both stands in the PCIe tree
    grow(0, true);
    for (const node_kind kind : {node_kind::pcie_root, node_kind::pcie_switch, node_kind::gpu, node_kind::nic,
                                 node_kind::nic_port, node_kind::pcie_device, node_kind::host_memory})
      start(kind);
  }

  /// Marks nodes that are, or lead to, a GPU, a NIC or a memory. Children come after parents in no fixed order, so climb.
  void mark_busy(std::span<const node_id> nodes) {
    for (const node_id v : nodes) {
      const node_kind kind = g_.at(v).kind;
      const bool leads = kind == node_kind::gpu || kind == node_kind::nic || kind == node_kind::nic_port ||
                         kind == node_kind::host_memory;
      if (!leads && !o_.everything) continue;
      for (node_id at = v; !busy_[at.value]; at = g_.tail(*parent_[at.value])) {
        busy_[at.value] = true;
        if (!parent_[at.value]) break;
      }
    }
  }

  [[nodiscard]] std::string left_of(node_id v) const {
    const node& n = g_.at(v);
    std::string text = label_of(n);
    if (const auto address = pci_part(n.key); !address.empty() && text.find(address) == std::string::npos)
      text += "  " + std::string(address);
    if (n.global_rank) text += "  rank " + std::to_string(*n.global_rank);
    return text;
  }

  /// ", port 400 Gb/s InfiniBand to leaf 0" for a port or an adapter; the second form, without names, is for the shape.
  [[nodiscard]] std::pair<std::string, std::string> plug_of(node_id v) {
    std::vector<std::string> to;
    std::string words;
    for (const link_id e : g_.out_links(v)) {
      if (g_.at(e).kind != link_kind::infiniband && g_.at(e).kind != link_kind::ethernet) continue;
      words = cable_words(g_.at(e));
      to.push_back(label_of(g_.at(g_.head(e))));
    }
    if (to.empty()) return {};
    return {words + " to " + joined_names(to), words + " x" + std::to_string(to.size())};
  }

  [[nodiscard]] tree_line line_of(node_id v, const std::vector<std::vector<node_id>>& children) {
    const node& n = g_.at(v);
    tree_line line;
    line.left = (n.kind == node_kind::nic_port ? "port " : "") + left_of(v);
    line.name = label_of(n);
    line.shape = std::string(word_of(n.kind));
    if (const auto e = parent_[v.value]) {
      const link& l = g_.at(*e);
      line.right = l.kind == link_kind::internal ? bits_text(l.nominal.value_or(l.capacity)) + mark(l)
                   : l.kind == link_kind::memory ? figure(l)
                                                 : made_and_rated(l);
    }
    line.shape += line.right;
    const auto also = [&](const std::string& more, const std::string& shape) {
      if (more.empty()) return;
      line.right += (line.right.empty() ? "" : ", ") + more;
      line.shape += shape;
    };
    // Connections beside the tree: chip-to-chip links and second ways up.
    for (const link_id e : g_.out_links(v)) {
      const link& l = g_.at(e);
      const auto up = parent_[v.value];
      const bool tree = (up && g_.tail(*up) == l.to) || (parent_[l.to.value] && g_.tail(*parent_[l.to.value]) == v);
      if (l.kind == link_kind::c2c && !tree && n.kind == node_kind::gpu)
        also(made_and_rated(l) + " to " + label_of(g_.at(l.to)), made_and_rated(l));
      if (l.kind == link_kind::pcie && !tree && (n.kind != node_kind::cpu))
        also("also " + made_and_rated(l) + " to " + label_of(g_.at(l.to)), "+");
    }
    const auto plug = plug_of(v);
    if (n.kind == node_kind::nic_port) {  // the cable says more than the inside of the adapter
      if (plug.first.empty()) {
        also(wired_ ? "no cable" : "", "no cable");
      } else {
        line.right = plug.first;
        line.shape = std::string(word_of(n.kind)) + plug.second;
      }
      return line;
    }
    also(plug.first, plug.second);
    const auto& mine = children[v.value];
    if (n.kind == node_kind::nic && mine.size() == 1 && g_.at(mine[0]).kind == node_kind::nic_port) {
      const tree_line port = line_of(mine[0], children);  // a single port needs no line of its own
      also("port " + port.right, port.shape);
      return line;
    }
    std::size_t idle_devices = 0;
    std::vector<std::vector<tree_line>> alike;  // children by shape, in order of first appearance
    for (const node_id child : mine) {
      if (!busy_[child.value]) {
        idle_devices += idle_below(child, children);
        continue;
      }
      tree_line made = line_of(child, children);
      line.shape += '(' + made.shape + ')';
      const auto twin =
          seq::find_if(alike, [&](const auto& set) { return !o_.everything && set[0].shape == made.shape; });
      if (twin == alike.end())
        alike.push_back({std::move(made)});
      else
        twin->push_back(std::move(made));
    }
    for (auto& set : alike) add_alike(line.below, std::move(set));
    add_idle(line, idle_devices);
    return line;
  }
  static void add_idle(tree_line& to, std::size_t devices) {
    if (devices == 0) return;
    to.shape += std::to_string(devices);
    to.below.push_back({counted(devices, "other PCIe device"), "", "", "", {}});
  }
  [[nodiscard]] std::size_t idle_below(node_id v, const std::vector<std::vector<node_id>>& children) const {
    std::size_t n = g_.at(v).kind == node_kind::pcie_device ? 1 : 0;
    for (const node_id child : children[v.value]) n += idle_below(child, children);
    return n;
  }
  /// More than four lines of one shape become the first of them with a number.
  static void add_alike(std::vector<tree_line>& to, std::vector<tree_line> set) {
    if (set.size() <= 4) {
      for (tree_line& l : set) to.push_back(std::move(l));
      return;
    }
    std::vector<std::string> names;
    for (const tree_line& l : set) names.push_back(l.name);
    tree_line first = std::move(set.front());
    first.left = joined_names(names) + "  (" + std::to_string(set.size()) + " alike" +
                 (first.below.empty() ? ")" : ", the first is shown)");
    to.push_back(std::move(first));
  }

  /// "GPU 0-7: 18 x NVLink4 450 GB/s to NVSwitch", GPUs with equal words together.
  void add_gpu_links(std::span<const node_id> nodes, std::vector<tree_line>& to) {
    std::vector<node_id> gpus;
    for (const node_id v : nodes)
      if (g_.at(v).kind == node_kind::gpu) gpus.push_back(v);
    struct gpus_alike {
      std::string text, shape;
      std::vector<std::string> names;
    };
    std::vector<gpus_alike> alike;
    for (const node_id v : gpus) {
      std::vector<std::pair<std::string, std::vector<node_id>>> made;  // words of a link -> where such links go
      for (const link_id e : g_.out_links(v)) {
        if (g_.at(e).kind != link_kind::nvlink && g_.at(e).kind != link_kind::xgmi) continue;
        const std::string words = made_and_rated(g_.at(e));
        auto it = seq::find_if(made, [&](const auto& m) { return m.first == words; });
        if (it == made.end()) it = made.insert(it, {words, {}});
        it->second.push_back(g_.head(e));
      }
      std::string text;
      std::string kind;
      for (auto& [words, ends] : made) {
        seq::sort_by(ends, [this](node_id w) { return std::pair(g_.at(w).index.value_or(UINT32_MAX), w); });
        std::vector<std::string> names;
        std::size_t others = 0;
        for (const node_id w : ends) {
          names.push_back(label_of(g_.at(w)));
          others += seq::find(gpus, w) != gpus.end() ? 1 : 0;
          kind += words + (g_.at(w).kind == node_kind::nvswitch ? "NVSwitch" : names.back());
        }
        const bool to_all = others > 1 && others + 1 == gpus.size() && others == ends.size();
        text += (text.empty() ? "" : "; ") + words + " to " + (to_all ? "each other GPU" : joined_names(names, 16));
      }
      if (text.empty()) continue;
      auto it = seq::find_if(alike, [&](const auto& a) { return a.text == text; });
      if (it == alike.end()) it = alike.insert(it, {text, kind, {}});
      it->names.push_back(label_of(g_.at(v)));
    }
    for (const auto& a : alike)
      to.push_back({joined_names(a.names), a.text, std::to_string(a.names.size()) + a.shape, "", {}});
  }

  void add_socket_links(std::span<const node_id> nodes, std::vector<tree_line>& to) {
    struct pair_of {
      node_id a, b;
      std::string words;
    };
    std::vector<pair_of> pairs;
    std::size_t cpus = 0;
    for (const node_id v : nodes) {
      cpus += g_.at(v).kind == node_kind::cpu ? 1 : 0;
      for (const link_id e : g_.out_links(v))
        if (g_.at(e).kind == link_kind::cpu && v < g_.head(e)) pairs.push_back({v, g_.head(e), figure(g_.at(e))});
    }
    const bool same = seq::all_of(pairs, [&](const pair_of& p) { return p.words == pairs[0].words; });
    if (pairs.size() > 1 && same && pairs.size() == cpus * (cpus - 1) / 2) {
      to.push_back({"between any two of " + counted(cpus, "NUMA domain"), pairs[0].words, pairs[0].words, "", {}});
      return;
    }
    for (const pair_of& p : pairs)
      to.push_back({label_of(g_.at(p.a)) + " - " + label_of(g_.at(p.b)), p.words, p.words, "", {}});
  }

  [[nodiscard]] tree_line host_tree(std::string name, std::span<const node_id> nodes, const std::string& host) {
    roots_.clear();
    choose_parents(nodes, host);
    mark_busy(nodes);
    tree_line top;
    top.left = std::move(name);
    std::size_t idle = 0;
    for (const node_id v : nodes)
      if (const auto e = parent_[v.value]) children_[g_.tail(*e).value].push_back(v);
    for (const node_id v : nodes)
      seq::sort_by(children_[v.value], [this](node_id w) {
        return std::pair(g_.at(w).kind != node_kind::host_memory, std::string_view(g_.at(w).key));
      });
    std::vector<std::vector<tree_line>> alike;
    for (const node_id v : roots_) {
      const bool cpu = g_.at(v).kind == node_kind::cpu;
      if (!cpu && !busy_[v.value]) {
        idle += idle_below(v, children_);
        continue;
      }
      tree_line made = line_of(v, children_);
      top.shape += '(' + made.shape + ')';
      const auto twin =
          seq::find_if(alike, [&](const auto& set) { return !o_.everything && !cpu && set[0].shape == made.shape; });
      if (twin == alike.end())
        alike.push_back({std::move(made)});
      else
        twin->push_back(std::move(made));
    }
    for (auto& set : alike) add_alike(top.below, std::move(set));
    const std::size_t beside = top.below.size();
    add_idle(top, idle);
    add_socket_links(nodes, top.below);
    add_gpu_links(nodes, top.below);
    for (std::size_t i = beside; i < top.below.size(); ++i) top.shape += '(' + top.below[i].shape + ')';
    return top;
  }

  void add_hosts(std::string& text) {
    children_.resize(g_.node_count());
    std::vector<group> all = topo::hosts(g_);
    group nameless;
    for (std::uint32_t v = 0; v < g_.node_count(); ++v) {
      const node& n = g_.at(node_id{v});
      if (n.host.empty() && !is_network_switch(n.kind) && n.kind != node_kind::nvswitch) nameless.nodes.push_back({v});
    }
    if (!nameless.nodes.empty()) all.push_back(std::move(nameless));
    struct kind_of_host {
      tree_line tree;
      std::vector<std::string> names;
    };
    std::vector<kind_of_host> kinds;
    for (const group& h : all) {
      tree_line tree = host_tree(h.name.empty() ? "devices of no named host" : h.name, h.nodes, h.name);
      const auto it =
          seq::find_if(kinds, [&](const kind_of_host& k) { return !o_.everything && k.tree.shape == tree.shape; });
      if (it != kinds.end())
        it->names.push_back(h.name);
      else
        kinds.push_back({std::move(tree), {h.name}});
    }
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (i >= o_.hosts && !o_.everything) {
        left_out += kinds[i].names.size();
        continue;
      }
      if (kinds[i].names.size() > 1)
        kinds[i].tree.right = "and " + counted(kinds[i].names.size() - 1, "more host") +
                              " like it: " + joined_names({kinds[i].names.begin() + 1, kinds[i].names.end()});
      layout_.append(text, kinds[i].tree);
    }
    if (left_out > 0) text += "\n... and " + counted(left_out, "more host") + " of other shapes\n";
  }

  /// NVSwitch planes that belong to no single host.
  [[nodiscard]] tree_line plane_tree() const {
    tree_line top;
    top.left = "NVLink domains of several hosts";
    std::vector<std::pair<std::string, std::vector<std::string>>> alike;
    for (const node_id v : g_.all(node_kind::nvswitch)) {
      if (!g_.at(v).host.empty()) continue;
      std::vector<std::string_view> names;
      std::size_t gpus = 0;
      for (const link_id e : g_.out_links(v)) {
        names.push_back(g_.at(g_.head(e)).host);
        gpus += g_.at(g_.head(e)).kind == node_kind::gpu ? 1 : 0;
      }
      seq::sort_unique(names);
      const std::string words = counted(gpus, "GPU") + " in " + counted(names.size(), "host");
      auto it = seq::find_if(alike, [&](const auto& a) { return a.first == words; });
      if (it == alike.end()) it = alike.insert(it, {words, {}});
      it->second.push_back(label_of(g_.at(v)));
    }
    for (const auto& [words, names] : alike)
      top.below.push_back({joined_names(names), names.size() > 1 ? "each " + words : words, words, "", {}});
    return top;
  }

  /// What a switch connects, and for a leaf how many times more it carries to hosts than to other switches.
  [[nodiscard]] std::string switch_words(node_id v) {
    std::vector<std::pair<std::string, std::size_t>> made;
    double down = 0;
    double up = 0;
    for (const link_id e : g_.out_links(v)) {
      const node_kind k = g_.at(g_.head(e)).kind;
      const bool network = is_network_switch(k);
      const std::string words = cable_words(g_.at(e)) + " to " +
                                (k == node_kind::leaf ? "leaf switch"
                                 : network            ? word_of(k)
                                                      : "NIC");
      (network ? up : down) += g_.capacity(e).value;
      auto it = seq::find_if(made, [&](const auto& m) { return m.first == words; });
      if (it == made.end()) it = made.insert(it, {words, 0});
      ++it->second;
    }
    std::string text;
    for (const auto& [words, n] : made)
      text += (text.empty() ? "" : ", ") + std::to_string(n) + " x " + words +
              (n == 1                  ? ""
               : words.ends_with("ch") ? "es"
                                       : "s");
    if (g_.at(v).kind == node_kind::leaf && down > 0 && up > 0) {
      std::string ratio = topocoll::detail::three_digits(down / up);
      while (ratio.find('.') != std::string::npos && (ratio.back() == '0' || ratio.back() == '.')) ratio.pop_back();
      text += "; oversubscription " + ratio + ":1";
    }
    return text.empty() ? "nothing plugged in" : text;
  }

  [[nodiscard]] tree_line fabric_tree() {
    tree_line top;
    top.left = "fabric";
    for (const node_kind kind : {node_kind::leaf, node_kind::spine, node_kind::core_switch}) {
      std::vector<std::pair<std::string, std::vector<std::string>>> alike;
      for (const node_id v : g_.all(kind)) {
        const std::string words = switch_words(v);
        auto it = seq::find_if(alike, [&](const auto& a) { return a.first == words; });
        if (it == alike.end() || o_.everything) it = alike.insert(alike.end(), {words, {}});
        it->second.push_back(label_of(g_.at(v)));
      }
      for (const auto& [words, names] : alike)
        top.below.push_back({joined_names(names), names.size() > 1 ? "each " + words : words, words, "", {}});
    }
    return top;
  }

  void add_findings(std::string& text) const {
    const auto all = g_.findings();
    if (all.empty()) return;
    text += "\nfindings\n";
    std::size_t listed = 0;
    for (const severity level : {severity::fault, severity::warning, severity::note})
      for (const finding& f : all) {
        if (f.level != level || (listed == o_.findings && !o_.everything)) continue;
        ++listed;
        text += std::string("  ") + to_string(level) + ": " + (f.where.empty() ? "" : f.where + ": ") + f.what;
        if (!f.evidence.empty()) text += " (" + f.evidence + ")";
        if (!f.next_step.empty()) text += "; " + f.next_step;
        text += '\n';
      }
    if (listed < all.size()) text += "  ... and " + counted(all.size() - listed, "more finding") + '\n';
  }

  const graph& g_;
  text_options o_;
  tree_layout layout_;
  bool wired_ = false;                          // some cable is known, so that a port without one is worth a word
  static constexpr std::uint32_t deepest = 64;  // no machine comes near; what lies deeper starts a tree of its own
  std::vector<std::optional<link_id>> parent_;  // link from the node above
  std::vector<std::uint32_t> depth_;
  std::vector<std::vector<node_id>> children_;
  std::vector<bool> shown_, busy_;
  std::vector<node_id> roots_;
  std::vector<std::string> reasons_;
};

}  // namespace detail

template <class>
std::string to_text(const graph& g, const text_options& options) {
  return detail::tree_writer(g, options).run();
}

}}}  // namespace topocoll::v0::topo
