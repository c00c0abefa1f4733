// SPDX-License-Identifier: Apache-2.0
#pragma once
// PCI functions, GPUs with their links, and adapters with their ports as elements of an NCCL topology file.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/topo/detail/nccl_xml_build.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class Deferred>
result<nccl_element> nccl_writer<Deferred>::pci_element(node_id v, const std::string& address) {
  const node& n = g_.at(v);
  nccl_element e{"pci", {}, {}};
  std::vector<bool> used(n.facts.size(), false);
  mark(n, used, {"busid"});
  put(e, "busid", address);
  const bool has_class = fact(n, "class") != nullptr;
  const bool has_below = seq::any_of(below_[v.value], [&](node_id w) { return !address_of(w).empty(); });
  add_facts(e, n, {"class"}, false, used);
  if (!has_class) {
    // A bridge with nothing below it is told from a device by its class alone.
    const bool bridge = n.kind == node_kind::pcie_switch || n.kind == node_kind::pcie_root;
    const std::vector<node_id> parts = partitions_of(v);
    const bool adapter = n.kind == node_kind::nic && seq::none_of(g_.out_links(v), [&](link_id l) {
                           return g_.at(g_.head(l)).kind == node_kind::nic_port;
                         });
    if (bridge && parts.empty() && (o_.fill || !has_below)) put(e, "class", "0x060400");
    if ((bridge && !parts.empty()) || n.kind == node_kind::gpu) {
      if (o_.fill) put(e, "class", "0x030200");
    }
    if (adapter || (o_.fill && n.kind == node_kind::nic)) put(e, "class", is_infiniband(v) ? "0x020700" : "0x020000");
  }
  add_facts(e, n, {"vendor", "device", "subsystem_vendor", "subsystem_device"}, false, used);
  put_link(e, v, used);
  for (const link_id l : g_.out_links(v))
    if (g_.at(l).kind == link_kind::pcie && is_further(g_.at(l)) && uplink_[g_.head(l).value] != l.value &&
        v < g_.head(l))
      if (const std::string target = address_of(g_.head(l)); !target.empty())
        e.children.push_back({"pcilink", {{"target", target}}, {}});

  if (n.kind == node_kind::gpu) {
    nccl_element gpu = gpu_element(v, used);
    // Without anything to tell, a class that makes the device a GPU is enough.
    if (!gpu.attributes.empty() || !gpu.children.empty() || !is_gpu_by_class(n) || has_below)
      e.children.push_back(std::move(gpu));
    e.kept = true;
  } else if (n.kind == node_kind::nic) {
    e.kept = true;
    if (!is_class_alone(v) || has_below) {
      auto nic = nic_element(v);
      if (!nic) return nic.error();
      e.kept = nic->kept;
      e.children.push_back(std::move(*nic));
    }
  } else if (n.kind == node_kind::pcie_device && (is_nic_by_class(n) || is_gpu_by_class(n))) {
    // An adapter that shows no ports, or has none in use: an empty <nic> keeps readers from counting it.
    e.children.push_back({"nic", {}, {}});
  }
  for (const node_id part : partitions_of(v)) {
    std::vector<bool> used_of_part(g_.at(part).facts.size(), false);
    e.children.push_back(gpu_element(part, used_of_part));
    e.kept = true;
  }
  add_facts(e, n, {}, true, used);
  return with_devices(std::move(e), v);
}

/// Generation and width that the model uses, in the file's own spelling where it says the same.
template <class Deferred>
void nccl_writer<Deferred>::put_link(nccl_element& e, node_id v, std::vector<bool>& used) {
  const node& n = g_.at(v);
  std::uint32_t generation = 0;
  std::uint32_t lanes = 0;
  const bool joined = uplink_[v.value] != none && g_.at(link_id{uplink_[v.value]}).kind == link_kind::pcie;
  if (joined) {
    const link& l = g_.at(link_id{uplink_[v.value]});
    generation = l.generation;
    lanes = l.lanes;
    // Figures above what the link has trained to: it is idle and saves power. NCCL's payload is 0.75 to 0.79 of the line.
    if (l.current && l.nominal && *l.current < *l.nominal && *l.current < l.capacity && lanes > 0)
      for (std::uint32_t best = 7; best > generation; --best)
        if (const double share = l.capacity.value / (lane_rate(best) * lanes); share > 0.7 && share <= 1.001) {
          generation = best;
          break;
        }
    if (l.current && generation > 0 && l.capacity.value < 0.7 * lane_rate(generation) * lanes)
      note(severity::warning,
           "a PCIe link slower than its generation and width cannot be written; it is written as if it "
           "were not",
           name_of(v) + " (" + to_string(l.capacity) + ")");
  }
  if (!n.numa && cpus_.size() > 1 && above_[v.value] != none && g_.at(node_id{above_[v.value]}).kind == node_kind::cpu)
    note(severity::warning,
         "the NUMA domain of a device is not known; the file cannot say so and has it below the first", name_of(v));
  const std::string* speed = fact(n, "link_speed");
  const std::string* width = fact(n, "link_width");
  mark(n, used, {"link_speed", "link_width"});
  if (speed != nullptr && (!joined || generation_of(*speed) == generation))
    put(e, "link_speed", *speed);
  else if (generation > 0)
    put(e, "link_speed", speed_of(generation));
  else if (o_.fill)
    put(e, "link_speed", "");  // NCCL's own for "not told", which it plans as generation 3
  const auto told = width != nullptr ? plain_number(*width) : std::nullopt;
  if (width != nullptr && (!joined || lanes == 0 || told == std::optional<std::int64_t>(lanes)))
    put(e, "link_width", *width);
  else if (lanes > 0)
    put(e, "link_width", std::to_string(lanes));
  else if (o_.fill)
    put(e, "link_width", "0");  // NCCL's own for "not told", which it plans as 16 lanes
}

template <class Deferred>
nccl_element nccl_writer<Deferred>::gpu_element(node_id v, std::vector<bool>& used) {
  const node& n = g_.at(v);
  nccl_element e{"gpu", {}, {}};
  e.kept = true;
  mark(n, used,
       {"dev", "rank", "nvlink_to_itself", "nvlink_elsewhere", "nvlink_more", "xgmi_to_itself", "xgmi_elsewhere",
        "xgmi_more"});
  if (n.index) put(e, "dev", std::to_string(*n.index));
  add_facts(e, n, {"sm", "gcn", "arch"}, false, used);
  if (n.global_rank) put(e, "rank", std::to_string(*n.global_rank));
  add_facts(e, n, {"gdr", "mlopart"}, false, used);
  put_gpu_links(e, v);
  if (!e.attributes.empty() || !is_gpu_by_class(n)) add_facts(e, n, {}, true, used, is_partition(v));
  return e;
}

template <class Deferred>
void nccl_writer<Deferred>::put_gpu_links(nccl_element& e, node_id v) {
  const node& n = g_.at(v);
  const std::string own = address_of(v);
  const auto row = [&](const char* kind, const std::string& target, const std::string& count, const char* class_code) {
    nccl_element link_row{kind, {{"target", target}, {"count", count}}, {}};
    if (class_code != nullptr && *class_code != 0) link_row.attributes.emplace_back("tclass", class_code);
    e.children.push_back(std::move(link_row));
  };
  // A count that the other end contradicts: "4 to 0000:1b:00.0".
  const auto more = [&](link_kind kind, const std::string& target) {
    for (const auto& [name, value] : n.facts)
      if (name == std::string(to_string(kind)) + "_more")
        if (const auto at = value.find(" to "); at != std::string::npos && value.substr(at + 4) == target)
          return value.substr(0, at);
    return std::string();
  };
  for (const link_id id : g_.out_links(v)) {
    const link& l = g_.at(id);
    const node& other = g_.at(l.to);
    const bool bundle = l.kind == link_kind::nvlink || l.kind == link_kind::xgmi;
    if (!bundle && l.kind != link_kind::c2c) continue;
    if (l.capacity.value <= 0) {
      note(severity::warning, "a dead link of a GPU is left out", describe(g_, id, hosts_.size() > 1));
      continue;
    }
    if (l.kind == link_kind::c2c) {
      if (other.kind != node_kind::cpu || !is_here(l.to)) continue;
      // NCCL wants the rate of one link in MB/s and the number of links.
      const std::uint32_t count = l.lanes > 0 ? l.lanes : 1;
      const double rate = l.current.value_or(l.nominal.value_or(l.capacity)).value / count / 1e6;
      e.children.push_back(
          {"c2c",
           {{"bw", std::to_string(static_cast<std::uint64_t>(rate + 0.5))}, {"count", std::to_string(count)}},
           {}});
      continue;
    }
    is_amd_ = is_amd_ || l.kind == link_kind::xgmi;
    const char* kind = to_string(l.kind);
    if (l.lanes == 0)
      note(severity::note, "the number of links is not told; written as 1, which NCCL needs", name_of(v));
    const std::string count = std::to_string(l.lanes > 0 ? l.lanes : 1);
    if (other.kind == node_kind::nvswitch) {
      // How NCCL writes a switch that the machine cannot see; all switches are one to it.
      row(kind, "fffffff:ff:ff.0", count, "0x068000");
    } else if (other.kind == node_kind::cpu) {
      row(kind, "fffffff:ff:ff.0", count, "0x068001");
    } else if (other.kind != node_kind::gpu || !is_here(l.to)) {
      note(severity::warning, "a link of a GPU leads out of the host and is left out", describe(g_, id, true));
    } else if (is_nameable(l.to)) {
      // Written by one end as well: the first, unless a row cannot name the other.
      if (l.reason.find("only one end tells it") != std::string::npos && l.to < l.from && is_nameable(v)) continue;
      const std::string target = address_of(l.to);
      if (target.empty()) continue;
      const std::string contradicted = more(l.kind, target);
      const std::string* code = fact(other, "class");
      row(kind, target, contradicted.empty() ? count : contradicted, code != nullptr ? code->c_str() : nullptr);
    } else {
      note(severity::note, "links to a further part of a GPU are written from that part alone", name_of(l.to));
    }
  }
  // Links that the source tells of and the graph does not have.
  for (const link_kind kind : {link_kind::nvlink, link_kind::xgmi}) {
    const std::string word = to_string(kind);
    for (const auto& [name, value] : n.facts) {
      if (name == word + "_to_itself" && !own.empty()) row(word.c_str(), own, value, nullptr);
      if (const auto at = value.find(" to "); name == word + "_elsewhere" && at != std::string::npos)
        row(word.c_str(), value.substr(at + 4), value.substr(0, at), nullptr);
    }
  }
}

/// Whether readers find the adapter by its class, and its one port because it is an adapter.
template <class Deferred>
bool nccl_writer<Deferred>::is_class_alone(node_id nic) const {
  if (!is_nic_by_class(g_.at(nic)) && fact(g_.at(nic), "class") != nullptr) return false;
  std::size_t ports = 0;
  bool assumed = true;
  for (const link_id e : g_.out_links(nic)) {
    if (g_.at(e).kind != link_kind::internal) continue;
    const node& port = g_.at(g_.head(e));
    ++ports;
    assumed = assumed && port.how == trust::assumed && g_.at(e).how == trust::assumed && !g_.at(e).current &&
              port.facts.empty();
  }
  return ports == 0 || (ports == 1 && assumed && is_nic_by_class(g_.at(nic)));
}
template <class Deferred>
bool nccl_writer<Deferred>::is_infiniband(node_id nic) const {
  return seq::any_of(switches_of(g_, nic), [&](node_id s) {
    return seq::any_of(g_.out_links(s), [&](link_id e) { return g_.at(e).kind == link_kind::infiniband; });
  });
}

template <class Deferred>
result<nccl_element> nccl_writer<Deferred>::nic_element(node_id v) {
  nccl_element e{"nic", {}, {}};
  for (const link_id id : g_.out_links(v)) {
    const link& l = g_.at(id);
    if (l.kind != link_kind::internal || g_.at(l.to).kind != node_kind::nic_port) continue;
    if (l.capacity.value <= 0) {
      note(severity::warning, "a port that carries nothing is left out", name_of(l.to));
      continue;
    }
    e.children.push_back(net_element(l.to, l));
    e.kept = true;
  }
  return e;
}

template <class Deferred>
nccl_element nccl_writer<Deferred>::net_element(node_id port, const link& l) {
  const node& n = g_.at(port);
  nccl_element e{"net", {}, {}};
  std::vector<bool> used(n.facts.size(), false);
  mark(n, used, {"name", "dev", "port", "speed", "guid"});
  // "node7/net:mlx5_0/1"; a "#2" behind it tells devices of one name apart.
  std::string name = n.name;
  std::string number;
  if (const auto at = n.key.find("/net:"); at != std::string::npos) {
    name = n.key.substr(at + 5);
    const auto slash = name.rfind('/');
    if (slash != std::string::npos) {
      number = name.substr(slash + 1);
      number = number.substr(0, number.find('#'));
      name.resize(slash);
    }
  }
  // "dev3" is what a port is called here whose file gives it a number and no name.
  if (!n.index || name != "dev" + std::to_string(*n.index)) put(e, "name", name);
  if (n.index) put(e, "dev", std::to_string(*n.index));
  add_facts(e, n, {"latency"}, false, used);
  // Mbit/s. What the file said stays where it says the same, or where it was not believed.
  const std::string* told = fact(n, "speed");
  const auto in_mbit = [](bytes_per_second rate) { return static_cast<std::int64_t>(rate.value * 8 / 1e6 + 0.5); };
  const auto said = told != nullptr ? plain_number(*told) : std::nullopt;
  const bool believed = l.how != trust::assumed || l.current;
  const std::int64_t speed = in_mbit(l.current.value_or(l.nominal.value_or(l.capacity)));
  if (said && (!believed || *said == speed))
    put(e, "speed", *told);
  else if (believed)
    put(e, "speed", std::to_string(speed));
  // Port 0 is also what a port has whose number nobody tells, and what NCCL takes without the attribute.
  if (const auto p = plain_number(number); p && *p > 0) put(e, "port", number);
  if (const std::string* guid = fact(n, "guid"); guid != nullptr) put(e, "guid", guid_number(*guid));
  add_facts(e, n, {"maxconn", "gdr", "coll", "net", "gin", "rma", "rail", "plane"}, true, used);
  return e;
}

}}}}  // namespace topocoll::v0::topo::detail
