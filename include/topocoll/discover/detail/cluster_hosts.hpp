// SPDX-License-Identifier: Apache-2.0
#pragma once
// How discover/cluster_graph.hpp builds the hosts of a cluster file, and which of their ports take a cable.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/detail/fabric_build.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/cluster_file.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

// Documented in cluster_graph.hpp.
using host_text_reader = result<topo::fragment> (*)(std::string_view text, const std::string& file,
                                                    const discover_options& options);

namespace detail {

/// The hosts of one cluster file; what is shared with the half that joins them.
template <class = void>
class cluster_host_builder {
 protected:
  cluster_host_builder(const read::cluster_file& c, const discover_options& options, const std::string& file,
                       host_text_reader read_host)
      : c_(c), options_(options), file_(file), read_host_(read_host), stands_(out_) {}

  /// A port that a cable can end in.
  struct port {
    node_id nic, at;
    std::string name;  ///< of the adapter
    bytes_per_second rate{};
    trust how = trust::assumed;
    std::string reason;
  };
  /// One host, in the order of the file.
  struct placed_host {
    const std::string* name;
    const read::cluster_hosts* group;
    std::size_t first_port, ports;
  };
  [[nodiscard]] failure refuse(std::uint32_t line, const std::string& why, std::string next = {}) const {
    return fail(errc::malformed_input, file_ + " line " + std::to_string(line) + ": " + why, std::move(next));
  }
  [[nodiscard]] failure too_large(std::uint32_t line, const char* what) const {
    return fail(errc::unsupported, file_ + " line " + std::to_string(line) + ": the cluster has more than " +
                                       std::to_string(read::most_cluster_parts) + " " + what);
  }

  [[nodiscard]] result<void> add_hosts(const read::cluster_hosts& h) {
    if (!h.model.empty()) return add_models(h);
    if (!h.file.empty()) return add_files(h);
    const std::size_t nics = !h.nic_names.empty() ? h.nic_names.size()
                             : h.nics             ? *h.nics
                                                  : (h.plugs.empty() ? h.leaves.size() : h.plugs.size());
    if (out_.nodes.size() + h.names.size() * (2 * nics + 1) > read::most_cluster_parts)
      return too_large(h.line, "nodes");
    const bytes_per_second rate = h.nic_rate ? *h.nic_rate : c_.rate ? *c_.rate : unknown_port_rate;
    const bool told = h.nic_rate || c_.rate;
    for (const std::string& host : h.names) {
      hosts_.push_back({&host, &h, ports_.size(), nics});
      if (nics == 0) static_cast<void>(stands_.add_host(host, file_));
      for (std::uint32_t i = 0; i < nics; ++i) {
        const std::string name = !h.nic_names.empty()            ? h.nic_names[i]
                                 : i < h.plugs.size() && !h.nics ? h.plugs[i].first
                                                                 : std::string();
        const bool named = !name.empty() && !read::digits_of(name, 10);
        port p;
        p.at = stands_.add_port(host, i + 1, {}, file_);
        p.nic = {p.at.value - 1};
        p.name = named ? name : std::to_string(i);
        if (named) name_adapter(p, name);
        p.rate = rate;
        p.how = told ? trust::reported : trust::assumed;
        if (!told) p.reason = file_ + " tells no rate; taken as 10 Gbit/s, as NCCL does for a port that tells none";
        set_inner(p);
        ports_.push_back(std::move(p));
      }
    }
    return {};
  }
  /// An adapter that the file names is no stand-in.
  void name_adapter(const port& p, const std::string& name) {
    const node_id both[] = {p.nic, p.at};
    for (const node_id v : both) {
      topo::node& n = out_.nodes[v.value];
      n.key = n.host + (v == p.nic ? "/nic:" + name : "/net:" + name + "/1");
      n.name = name;
      n.how = trust::reported;
      n.reason.clear();
      n.facts.clear();
    }
  }
  /// The link between adapter and port is as fast as the port.
  void set_inner(const port& p) {
    topo::link l = cable(p.nic, p.at, topo::link_kind::internal, p.rate, p.how, p.reason);
    stands_.set_rate(l);
  }

  [[nodiscard]] result<void> add_models(const read::cluster_hosts& h) {
    auto o = parse_spec(h.model);
    if (!o)
      return fail(o.error().code, file_ + " line " + std::to_string(h.line) + ": " + o.error().what, o.error().next);
    if (o->leaves || o->pods || o->spines || o->cores != 0 || o->order || !o->faults.empty() || !o->split.empty())
      return refuse(h.line,
                    "the model '" + h.model.substr(0, 80) +
                        "' describes a network, ranks or faults, but here it stands for hosts",
                    "leave out keys that are not about hosts");
    // Hosts that share no plane are copies of one; those that do, copies of one plane with its hosts.
    const bool many = h.names.size() > o->host.domain_hosts;
    if (o->detail == host_detail::automatic)
      o->detail = many && joined_without_pcie(o->host) ? host_detail::fabric : host_detail::full;
    o->leaves = 0;
    topo::fragment pattern;
    for (std::size_t first = 0; first < h.names.size();) {
      const std::size_t count =
          h.names.size() - first < o->host.domain_hosts ? h.names.size() - first : o->host.domain_hosts;
      if (first == 0 || count != o->nodes) {
        o->nodes = static_cast<std::uint32_t>(count);
        auto made = generate(*o);
        if (!made)
          return fail(made.error().code, file_ + " line " + std::to_string(h.line) + ": " + made.error().what,
                      made.error().next);
        const std::size_t copies = first == 0 ? h.names.size() / count : 1;
        if (made->nodes.size() > (read::most_cluster_parts - out_.nodes.size()) / copies)
          return too_large(h.line, "nodes");
        if (made->links.size() > (2 * read::most_cluster_parts - out_.links.size()) / copies)
          return too_large(h.line, "links");
        pattern = std::move(*made);
      }
      topo::fragment copy = pattern;
      for (topo::node& n : copy.nodes) {
        if (n.host.empty()) {
          // The plane that the hosts share, by the first of them.
          n.key = "nvswitch:" + h.names[first];
          n.index.reset();
          n.name = "NVSwitch plane of " + h.names[first];
          continue;
        }
        const auto number = read::digits_of(std::string_view(n.host).substr(4), 10).value_or(0);  // "node12"
        const std::string& host = h.names[first + static_cast<std::size_t>(number)];
        n.key = host + n.key.substr(n.host.size());
        n.host = host;
      }
      if (first > 0) copy.findings.clear();
      append(std::move(copy), h, std::span(h.names).subspan(first, count));
      first += count;
    }
    return {};
  }

  [[nodiscard]] result<void> add_files(const read::cluster_hosts& h) {
    if (read_host_ == nullptr)
      return fail(errc::unsupported, file_ + " line " + std::to_string(h.line) + ": files of hosts are not read here");
    const std::size_t slash = file_.rfind('/');
    const std::string path =
        h.file[0] == '/' || slash == std::string::npos ? h.file : file_.substr(0, slash + 1) + h.file;
    const auto text = io::read_file(path);
    if (!text)
      return fail(text.error().code, file_ + " line " + std::to_string(h.line) + ": " + text.error().what,
                  text.error().next);
    if (read::looks_like_cluster_file(*text))
      return refuse(h.line, path + " is a cluster file, not the topology of a host");
    for (const std::string& host : h.names) {
      if (options_.until.passed())
        return fail(errc::timed_out,
                    file_ + " line " + std::to_string(h.line) + ": reading the files of hosts took too long");
      discover_options o = options_;
      o.host = host;
      auto made = read_host_(*text, path, o);
      if (!made) return made.error();
      if (made->nodes.size() > read::most_cluster_parts - out_.nodes.size()) return too_large(h.line, "nodes");
      if (made->links.size() > 2 * read::most_cluster_parts - out_.links.size()) return too_large(h.line, "links");
      for (const topo::node& n : made->nodes)
        if (n.host != host)
          return refuse(h.line, path + " is not the topology of one host: '" + n.key + "' belongs to '" + n.host + "'");
      append(std::move(*made), h, std::span(&host, 1));
    }
    return {};
  }

  /// Takes over hosts that are built, and finds their ports: in the order of the adapters' positions, then of their keys.
  /// @param names  part of the names of `h`
  void append(topo::fragment&& f, const read::cluster_hosts& h, std::span<const std::string> names) {
    const auto first = static_cast<std::uint32_t>(out_.nodes.size());
    std::vector<port> found;
    for (const topo::link& l : f.links) {
      if (l.kind != topo::link_kind::internal || f.nodes[l.to.value].kind != topo::node_kind::nic_port ||
          f.nodes[l.from.value].kind != topo::node_kind::nic)
        continue;
      port p;
      p.nic = {l.from.value + first};
      p.at = {l.to.value + first};
      p.name = f.nodes[l.from.value].name;
      p.rate = l.nominal ? *l.nominal : l.capacity;
      p.how = l.how < trust::derived ? trust::derived : l.how;
      p.reason = l.how == trust::assumed ? l.reason : "as fast as the port";
      found.push_back(std::move(p));
    }
    for (topo::node& n : f.nodes) out_.nodes.push_back(std::move(n));
    for (topo::link& l : f.links) {
      l.from.value += first;
      l.to.value += first;
      out_.links.push_back(std::move(l));
    }
    for (finding& each : f.findings) out_.findings.push_back(std::move(each));
    const auto node = [&](node_id v) -> const topo::node& { return out_.nodes[v.value]; };
    seq::sort(found, [&](const port& a, const port& b) {
      const topo::node& x = node(a.nic);
      const topo::node& y = node(b.nic);
      if (x.host != y.host) return x.host < y.host;
      const std::uint32_t i = x.index.value_or(UINT32_MAX);
      const std::uint32_t k = y.index.value_or(UINT32_MAX);
      if (i != k) return i < k;
      return x.key != y.key ? x.key < y.key : node(a.at).key < node(b.at).key;
    });
    for (const std::string& name : names) {
      const auto begin =
          seq::lower_bound_by(found, name, [&](const port& p) -> const std::string& { return node(p.nic).host; });
      hosts_.push_back({&name, &h, ports_.size(), 0});
      for (auto p = begin; p != found.end() && node(p->nic).host == name; ++p) {
        ports_.push_back(*p);
        ++hosts_.back().ports;
      }
    }
  }

  /// The port that "host/adapter" names, by the adapter's name or position; none for a text without a slash.
  [[nodiscard]] result<std::optional<node_id>> port_named(const read::cluster_exception& e,
                                                          const std::string& end) const {
    const std::size_t slash = end.find('/');
    if (slash == std::string::npos) return std::optional<node_id>();
    const std::string host = end.substr(0, slash);
    const std::string adapter = end.substr(slash + 1);
    const auto at = seq::lower_bound_by(hosts_by_name_, host,
                                        [&](std::uint32_t i) -> const std::string& { return *hosts_[i].name; });
    if (at == hosts_by_name_.end() || *hosts_[*at].name != host)
      return refuse(e.line, "the host '" + host + "' is not named in [[hosts]]");
    const placed_host& h = hosts_[*at];
    const auto number = read::digits_of(adapter, 10);
    for (std::size_t i = 0; i < h.ports; ++i)
      if (ports_[h.first_port + i].name == adapter || (number && *number == i))
        return std::optional<node_id>(ports_[h.first_port + i].at);
    return refuse(e.line, "the host '" + host + "' has no adapter '" + adapter + "'",
                  "it has " + std::to_string(h.ports) + ", named or counted from 0");
  }

  const read::cluster_file& c_;
  const discover_options& options_;
  std::string file_;
  host_text_reader read_host_;
  topo::fragment out_;
  host_stands stands_;
  std::vector<port> ports_;
  std::vector<placed_host> hosts_;
  std::vector<std::uint32_t> hosts_by_name_;
};

}  // namespace detail
}}  // namespace topocoll::v0
