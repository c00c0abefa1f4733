// SPDX-License-Identifier: Apache-2.0
#pragma once
// Any topology file that topocoll knows, told apart by its content. Needs pugixml, nlohmann-json, toml++ and libyaml.
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/capacity_json.hpp>
#include <topocoll/discover/cluster_toml.hpp>
#include <topocoll/discover/hwloc_xml.hpp>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/discover/ibstat_graph.hpp>
#include <topocoll/discover/kfd_graph.hpp>
#include <topocoll/discover/lldp_json.hpp>
#include <topocoll/discover/lspci_graph.hpp>
#include <topocoll/discover/matrix_graph.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/discover/netq_json.hpp>
#include <topocoll/discover/nvlink_graph.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/rocm_graph.hpp>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/discover/slurm_yaml.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/iblinkinfo.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// A kind of text file: what it is called, how to tell it by its content, and its reader.
struct text_kind {
  const char* name;
  bool (*is)(std::string_view text);
  result<topo::fragment> (*read)(std::string_view text, const std::string& file, const discover_options& options);
};

/// The kinds that are neither XML nor topocoll's own JSON, in the order in which they are tried.
template <class = void>
[[nodiscard]] std::span<const text_kind> text_kinds();

/// Reads a text, told apart by its content, never by its name.
/// @param file  name for failures and findings
/// @return `malformed_input` for a text of a known kind that is broken, with the place; `unsupported` for any other kind
template <class = void>
[[nodiscard]] result<topo::fragment> from_text(std::string_view text, const std::string& file,
                                               const discover_options& options = {});

/// Reads a file, or the machine below a directory that holds /sys.
///
/// Knows what docs/formats/inputs.md lists: XML of NCCL and hwloc, topocoll's own JSON and recordings of /sys, what NVIDIA's,
/// AMD's and InfiniBand's tools and lspci print, configurations of Slurm, host lists, LLDP tables, cluster files, and
/// directories with sys/ and proc/ as a mounted machine.
/// @return as `io::read_file` and `from_text`
template <class = void>
[[nodiscard]] result<topo::fragment> from_file(const std::string& path, const discover_options& options = {});

namespace detail {

template <class = void>
[[nodiscard]] failure unknown_kind(const std::string& file, const std::string& found) {
  std::string known = "NCCL and hwloc XML, topocoll's JSON and recordings";
  for (const text_kind& k : text_kinds()) known += std::string(", ") + k.name;
  return fail(errc::unsupported, file + " is " + found + ": not a topology file that topocoll knows; it reads " +
                                     known + ", and directories that hold /sys");
}

/// First line that is neither empty nor a comment.
template <class = void>
[[nodiscard]] std::string_view first_row(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!row.empty() && row != "\r" && row.front() != '#') return row;
  }
  return {};
}

template <class = void>
[[nodiscard]] bool looks_binary(std::string_view text) {
  for (const char c : text.substr(0, 4096))
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b')
      return true;
  return false;
}

/// A text through its parser and on to the graph.
template <class Parse>
[[nodiscard]] result<topo::fragment> parsed(const Parse& parse, std::string_view text, const std::string& file,
                                            const discover_options& options) {
  const auto told = parse(text, file);
  if (!told) return told.error();
  return fragment_of(*told, options, file);
}

template <class = void>
[[nodiscard]] result<topo::fragment> from_xml(std::string_view text, const std::string& file,
                                              const discover_options& options) {
  const auto root = io::parse_xml(text, file);
  if (!root) return root.error();
  if (root->name == "system") {
    const auto topology = read::nccl_topology_of(*root, file);
    if (!topology) return topology.error();
    return fragment_of(*topology, options.host, file);
  }
  if (root->name == "topology" && read::looks_like_hwloc_topology(text)) {
    const auto topology = read::hwloc_topology_of(*root, file);
    if (!topology) return topology.error();
    return fragment_of(*topology, options, file);
  }
  const char* whose = root->name == "graphs" ? ", as NCCL_GRAPH_DUMP_FILE writes"
                      : root->name == "algo" ? ", an MSCCL plan"
                                             : "";
  return unknown_kind(file, "XML with the root <" + root->name + ">" + whose);
}

}  // namespace detail

template <class>
std::span<const text_kind> text_kinds() {
  using text = std::string_view;
  using name = const std::string&;
  using options = const discover_options&;
  static constexpr text_kind kinds[] = {
      {"nvidia-smi topo", [](text t) { return read::looks_like_nvidia_smi_topo(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_nvidia_smi_topo(x, y); }, t, f, o);
       }},
      {"nvidia-smi nvlink", [](text t) { return read::looks_like_nvidia_smi_nvlink(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_nvidia_smi_nvlink(x, y); }, t, f, o);
       }},
      {"rocm-smi --showtopo", [](text t) { return read::looks_like_rocm_smi_topo(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_rocm_smi_topo(x, y); }, t, f, o);
       }},
      {"topologies of AMD's compute driver", [](text t) { return read::looks_like_kfd(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_kfd(x, y); }, t, f, o);
       }},
      {"lspci", [](text t) { return read::looks_like_lspci(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_lspci(x, y); }, t, f, o);
       }},
      {"ibstat", [](text t) { return read::looks_like_ibstat(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_ibstat(x, y); }, t, f, o);
       }},
      {"iblinkinfo", [](text t) { return read::looks_like_iblinkinfo(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_iblinkinfo(x, y); }, t, f, o);
       }},
      {"ibnetdiscover and ibsim", [](text t) { return read::looks_like_ibnetdiscover(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_ibnetdiscover(x, y); }, t, f, o);
       }},
      {"NetQ's topology graph", [](text t) { return looks_like_netq(t); },
       [](text t, name f, options) { return fragment_of_netq(t, f); }},
      {"capacity graphs", [](text t) { return looks_like_capacity_graph(t); },
       [](text t, name f, options) { return fragment_of_capacity_graph(t, f); }},
      {"lldpctl JSON", [](text t) { return read::looks_like_lldp(t); },
       [](text t, name f, options o) { return fragment_of_lldp_json(t, f, o); }},
      {"cluster files (TOML)", [](text t) { return read::looks_like_cluster_file(t); },
       [](text t, name f, options o) { return fragment_of_cluster_toml(t, f, o, &from_text<>); }},
      {"Slurm's topology.conf", [](text t) { return read::looks_like_slurm_topology(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_slurm_topology(x, y); }, t, f, o);
       }},
      {"Slurm's topology.yaml", [](text t) { return read::looks_like_slurm_yaml(t); },
       [](text t, name f, options o) { return fragment_of_slurm_yaml(t, f, o); }},
      {"topograph models", [](text t) { return read::looks_like_topograph_model(t); },
       [](text t, name f, options o) { return fragment_of_topograph_model(t, f, o); }},
      {"maps of hosts to blocks or ports", [](text t) { return read::looks_like_host_map(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_host_map(x, y); }, t, f, o);
       }},
      {"host files of MPI", [](text t) { return read::looks_like_hostfile(t); },
       [](text t, name f, options o) {
         return detail::parsed([](text x, name y) { return read::parse_hostfile(x, y); }, t, f, o);
       }},
  };
  return kinds;
}

template <class>
result<topo::fragment> from_text(std::string_view text, const std::string& file, const discover_options& options) {
  std::string_view body = text;
  if (body.substr(0, 3) == "\xef\xbb\xbf") body.remove_prefix(3);
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return fail(errc::malformed_input, file + " is empty",
                "name a topology file: 'topocoll topo --help' lists the kinds");
  if (body[first] == '<') return detail::from_xml(text, file, options);
  if (detail::looks_binary(body)) return detail::unknown_kind(file, "binary data");
  const bool json = body[first] == '{' || body[first] == '[';
  if (json && body.find("\"topocoll.topology/") != std::string_view::npos) return topo::from_json(body, file);
  const std::string_view row = detail::first_row(body);
  if (body.substr(0, 20) == "# topocoll recording" ||
      (row.substr(0, 1) == "/" && row.find('\t') != std::string_view::npos))
    return fragment_of_recording(body, file, options);
  for (const text_kind& k : text_kinds())
    if (k.is(body)) return k.read(body, file, options);
  return detail::unknown_kind(
      file, json ? "JSON (or a text that begins like it) without the schema topocoll.topology" : "a text");
}

template <class>
result<topo::fragment> from_file(const std::string& path, const discover_options& options) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
    if (io::live_tree(path).list("/sys") || io::live_tree(path).list("/proc")) {
      auto machine = sysfs{.root = path}.read(options);
      if (machine) machine->source = "sysfs " + path;
      return machine;
    }
    return detail::unknown_kind(path, "a directory without sys/");
  }
  const auto text = io::read_file(path);
  if (!text) return text.error();
  return from_text(*text, path, options);
}

}}  // namespace topocoll::v0
