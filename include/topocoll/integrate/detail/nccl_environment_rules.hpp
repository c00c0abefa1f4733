// SPDX-License-Identifier: Apache-2.0
#pragma once
// What in a topology or a plan justifies which variable of integrate/nccl_environment.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/integrate/detail/nccl_network.hpp>
#include <topocoll/integrate/nccl_environment.hpp>
#include <topocoll/integrate/nccl_tuner_csv.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/groups.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

template <class = void>
class nccl_environment_rules {
 public:
  nccl_environment_rules(const topo::graph& g, const nccl_environment_options& o) : g_(g), o_(o) {}

  [[nodiscard]] result<nccl_environment> run() {
    if (auto ok = choose_host(); !ok) return std::move(ok).error();
    adapters();
    made_up_interfaces();
    cross_nic();
    files();
    pxn();
    nvls();
    algorithm();
    if (o_.most_channels)
      add("NCCL_MAX_CTAS", std::to_string(*o_.most_channels),
          "asked for: NCCL takes at most so many thread blocks, the others stay with the program", "maxCTAs");
    seq::sort_by(out_.variables, &nccl_variable::name);
    return std::move(out_);
  }

 private:
  void add(const char* name, std::string value, std::string why, const char* field = "") {
    out_.variables.push_back({name, std::move(value), std::move(why), field});
  }
  void note(const std::string& what, const std::string& evidence, const std::string& next) {
    out_.findings.push_back({severity::note, host_, what, evidence, next, 1});
  }

  [[nodiscard]] result<void> choose_host() {
    for (const topo::group& h : topo::hosts(g_)) {
      const bool gpus = seq::any_of(h.nodes, [&](node_id v) { return g_.at(v).kind == topo::node_kind::gpu; });
      hosts_with_gpus_ += gpus ? 1 : 0;
      if (!nodes_.empty() || (o_.host.empty() ? !gpus : h.name != o_.host)) continue;
      host_ = h.name;
      nodes_ = h.nodes;
    }
    if (nodes_.empty())
      return o_.host.empty() ? fail(errc::not_found, "no host has GPUs")
                             : fail(errc::invalid_argument, "there is no host '" + o_.host + "'");
    if (o_.host.empty() && hosts_with_gpus_ > 1)
      note("the variables are those of one host; others are taken to be like it",
           std::to_string(hosts_with_gpus_) + " hosts have GPUs", "name the host where they differ");
    cut_ = topo::detail::host_cutter<>(g_).cut(nodes_);
    near_ = topo::affinity_of(cut_.local);
    if (near_.gpus.empty()) return fail(errc::not_found, "host '" + host_ + "' has no GPU");
    return {};
  }

  /// The adapter of an interface, and whether RDMA goes over it.
  [[nodiscard]] static std::string fact(const topo::node& n, std::string_view name) {
    for (const auto& [key, value] : n.facts)
      if (key == name) return value;
    return {};
  }
  [[nodiscard]] bool is_rdma(node_id port) const {
    const topo::graph& g = cut_.local;
    const auto real = [](const std::string& guid) {
      return !guid.empty() && guid.find_first_not_of("0x") != std::string::npos;
    };
    // Sockets have made-up GUIDs of small numbers in NCCL's files; RDMA devices are named after their driver.
    const std::string name = name_of(port);
    const bool driver = name.find("mlx") == 0 || name.find("ib") == 0 || name.find("roce") == 0 ||
                        name.find("bnxt_re") == 0 || name.find("irdma") == 0 || name.find("rdmap") == 0 ||
                        name.find("hfi") == 0;
    if (driver && (real(fact(g.at(port), "guid")) || real(fact(g.at(port), "port_guid")))) return true;
    for (const link_id e : g_.out_links(original(port)))
      if (g_.at(e).kind == topo::link_kind::infiniband) return true;
    return driver;
  }
  [[nodiscard]] node_id original(node_id local) const { return cut_.original[local.value]; }
  /// "mlx5_0" and 1 of "node7/net:mlx5_0/1".
  [[nodiscard]] std::string name_of(node_id port) const {
    const std::string& key = cut_.local.at(port).key;
    const auto at = key.find("/net:");
    if (at == std::string::npos) return cut_.local.at(port).name;
    return key.substr(at + 5, key.rfind('/') - at - 5);
  }
  [[nodiscard]] std::string port_of(node_id port) const {
    const std::string& key = cut_.local.at(port).key;
    const std::string number = key.substr(key.rfind('/') + 1);
    return number.empty() || number == "0" ? std::string() : ":" + number;
  }
  [[nodiscard]] double rate_of(node_id port) const {
    double most = 0;
    for (const link_id e : cut_.local.out_links(port)) most = std::max(most, cut_.local.capacity(e).value);
    return most;
  }

  void adapters() {
    std::vector<node_id> rdma, used, left_out;
    for (const node_id v : topo::detail::interfaces(cut_.local))
      if (is_rdma(v)) rdma.push_back(v);
    if (rdma.size() < 2) return;
    double fastest = 0;
    for (const node_id v : rdma) fastest = std::max(fastest, rate_of(v));
    std::string reasons;
    const auto leave = [&](node_id v, const std::string& why) {
      left_out.push_back(v);
      reasons += (reasons.empty() ? "" : ", ") + name_of(v) + " " + why;
    };
    for (const node_id v : rdma) {
      const double rate = rate_of(v);
      if (!(rate > 0)) leave(v, "is down");
      // A quarter of the fastest: a management or storage port, not a rail with a fault.
      else if (rate < fastest / 4)
        leave(v, "has " + to_string(bytes_per_second{rate}) + " where others have " +
                     to_string(bytes_per_second{fastest}));
      else if (seq::contains(near_.unaffiliated, v) && near_.unaffiliated.size() < rdma.size())
        leave(v, "has no GPU near");
      else
        used.push_back(v);
    }
    if (left_out.empty() || used.empty()) return;
    seq::sort(used, [&](node_id a, node_id b) { return read::host_order(name_of(a), name_of(b)); });
    std::string value = "=";
    for (const node_id v : used) value += (value.size() == 1 ? "" : ",") + name_of(v) + port_of(v);
    add("NCCL_IB_HCA", value, "the rails of the host; left out: " + reasons);
  }

  void made_up_interfaces() {
    std::vector<std::string> names;
    for (const node_id v : nodes_)
      if (g_.at(v).kind == topo::node_kind::nic_port && !fact(g_.at(v), "virtual").empty()) {
        const std::string& key = g_.at(v).key;
        const auto at = key.find("/net:");
        names.push_back(at == std::string::npos ? g_.at(v).name : key.substr(at + 5, key.rfind('/') - at - 5));
      }
    if (names.empty()) return;
    seq::sort_unique(names);
    std::string value = "^lo,docker";  // what NCCL leaves out by itself, which a value of ours replaces
    for (const std::string& n : names)
      if (n.find("docker") != 0 && n != "lo") value += ',' + n;
    if (value == "^lo,docker") return;
    add("NCCL_SOCKET_IFNAME", value,
        "interfaces that the host made up lead nowhere, but NCCL would count them as adapters");
  }

  void cross_nic() {
    if (o_.graphs != nullptr)
      if (const nccl_graph* ring = o_.graphs->find(nccl_graph_id::ring); ring != nullptr && ring->cross_nic == 2) {
        add("NCCL_CROSS_NIC", "2", "rings of the graph file change adapters in pairs");
        return;
      }
    const auto rails = topo::rails(g_);
    std::size_t with_leaves = 0;
    bool apart = true;
    for (const topo::rail& r : rails) {
      with_leaves += r.leaves.empty() ? 0 : 1;
      apart = apart && !r.shares_leaf;
    }
    if (rails.size() < 2 || with_leaves != rails.size() || !apart || hosts_with_gpus_ < 2) return;
    add("NCCL_CROSS_NIC", "0",
        "each of the " + std::to_string(rails.size()) +
            " rails has leaves of its own, so that data which change rails cross the spine");
  }

  void files() {
    if (!o_.graph_file.empty() && o_.graphs != nullptr) {
      const nccl_graph* ring = o_.graphs->find(nccl_graph_id::ring);
      std::string why = "rings and trees for the links of " + host_;
      if (ring != nullptr)
        why += ": " + std::to_string(ring->channels.size()) + " channels of " + to_string(ring->speed_intra);
      add("NCCL_GRAPH_FILE", o_.graph_file, why);
    }
    if (!o_.topology_file.empty())
      add("NCCL_TOPO_FILE", o_.topology_file,
          "tells what NCCL cannot see here: links that run below their best, devices that the machine hides");
    if (!o_.tuner_file.empty())
      add("NCCL_TUNER_CONFIG_FILE", o_.tuner_file,
          "algorithm and protocol by size, for the example tuner plug-in (NCCL_TUNER_PLUGIN=example, from "
          "ext-tuner/example)");
  }

  [[nodiscard]] std::uint32_t oldest() const {
    std::uint32_t sm = UINT32_MAX;
    for (const topo::gpu_affinity& a : near_.gpus) {
      const std::string told = fact(cut_.local.at(a.gpu), "sm");
      std::uint32_t n = 0;
      for (const char c : told) n = c >= '0' && c <= '9' && n < 1000 ? n * 10 + static_cast<std::uint32_t>(c - '0') : 0;
      sm = std::min(sm, n);
    }
    return sm;
  }

  void pxn() {
    if (o_.graphs != nullptr && !o_.graph_file.empty()) return;  // the file has trees
    const std::uint32_t sm = oldest();
    if (sm == 0 || sm >= 90 || near_.gpus.size() < 3) return;
    // Every GPU has an adapter of its own behind its PCIe switch, and reaches the others' by NVLink only.
    std::vector<node_id> own;
    for (const topo::gpu_affinity& a : near_.gpus) {
      if (a.distance > topo::path_class::PXB || !a.chosen) return;
      own.push_back(*a.chosen);
      bool nvlink = false;
      for (const link_id e : cut_.local.out_links(a.gpu))
        nvlink = nvlink || cut_.local.at(e).kind == topo::link_kind::nvlink;
      if (!nvlink) return;
    }
    for (const topo::nic_load& l : near_.used)
      if (l.gpus.size() != 1) return;
    const topo::routes ways(cut_.local, near_.gpus[0].gpu);
    for (std::size_t i = 1; i < own.size(); ++i)
      if (own[i] != own[0] && ways.kind(own[i]) <= topo::path_class::PXB) return;
    add("NCCL_PXN_DISABLE", "1",
        "GPUs before sm90 with an adapter each: NCCL's search finds no tree over PXN and falls back to one channel for "
        "rings too "
        "(NVIDIA/nccl pull request 1952); a graph file keeps PXN and all channels");
  }

  void nvls() {
    std::vector<node_id> without;
    std::size_t with = 0;
    for (const topo::gpu_affinity& a : near_.gpus) {
      double rate = 0;
      for (const link_id e : cut_.local.out_links(a.gpu))
        if (cut_.local.at(cut_.local.head(e)).kind == topo::node_kind::nvswitch) rate += cut_.local.capacity(e).value;
      if (rate > 0)
        ++with;
      else
        without.push_back(a.gpu);
    }
    if (with == 0 || without.empty()) return;
    const topo::node& first = cut_.local.at(without.front());
    add("NCCL_NVLS_ENABLE", "0",
        (first.name.empty() ? first.key : first.name) + (without.size() > 1 ? " and others have" : " has") +
            " no live NVLink to the NVSwitch of the others, and NVLS takes all GPUs");
  }

  void algorithm() {
    if (o_.map.empty()) return;
    bool one = true, clear = true;
    const auto winner = tuner_algorithm_of(o_.map.front().name);
    for (const plan::selection& s : o_.map) {
      one = one && winner && tuner_algorithm_of(s.name) == winner;
      const bool rival = tuner_algorithm_of(s.second) && tuner_algorithm_of(s.second) != winner;
      clear = clear && (!rival || s.second_time.value >= 1.1 * s.time.value);
    }
    if (one && clear && o_.collective == collective_kind::all_reduce) {
      add("NCCL_ALGO", "allreduce:" + std::string(to_string(*winner)),
          "wins at all sizes from " + to_string(o_.map.front().size) + " to " + to_string(o_.map.back().size) +
              ", by a tenth or more");
    } else if (!one) {
      note("no algorithm of NCCL's wins at all sizes, so that none is forced", {},
           "write the choice by size as a tuner file");
    }
  }

  const topo::graph& g_;
  const nccl_environment_options& o_;
  nccl_environment out_;
  std::string host_;
  std::vector<node_id> nodes_;
  std::size_t hosts_with_gpus_ = 0;
  topo::detail::one_host cut_;
  topo::affinity near_;
};

}  // namespace detail

template <class>
result<nccl_environment> nccl_environment_of(const topo::graph& g, const nccl_environment_options& options) {
  return detail::nccl_environment_rules<>(g, options).run();
}

}}  // namespace topocoll::v0
