// SPDX-License-Identifier: Apache-2.0
#pragma once
// Any topology file that topocoll knows, told apart by its content. Needs pugixml and nlohmann-json.
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads a text, told apart by its content, never by its name.
/// @param file  name for failures and findings
/// @return `malformed_input` for a text of a known kind that is broken, with the place; `unsupported` for any other kind
template <class = void>
[[nodiscard]] result<topo::fragment> from_text(std::string_view text, const std::string& file,
                                               const discover_options& options = {});

/// Reads a file, or the machine below a directory that holds /sys.
///
/// Knows: NCCL and RCCL topologies (XML with the root `system`), topocoll's own JSON (schema "topocoll.topology/1"),
/// recordings of /sys (docs/formats/recording.md), and directories with sys/ and proc/ as a mounted machine.
/// @return as `io::read_file` and `from_text`
template <class = void>
[[nodiscard]] result<topo::fragment> from_file(const std::string& path, const discover_options& options = {});

namespace detail {

inline constexpr const char* known_kinds =
    "NCCL topologies (XML with <system>), topocoll topologies (JSON), recordings of /sys, and directories that hold "
    "/sys";

template <class = void>
[[nodiscard]] failure unknown_kind(const std::string& file, const std::string& found) {
  return fail(errc::unsupported,
              file + " is " + found + ": not a topology file that topocoll knows; it reads " + known_kinds);
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

}  // namespace detail

template <class>
result<topo::fragment> from_text(std::string_view text, const std::string& file, const discover_options& options) {
  std::string_view body = text;
  if (body.substr(0, 3) == "\xef\xbb\xbf") body.remove_prefix(3);
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return fail(errc::malformed_input, file + " is empty", std::string("name a topology file: ") + detail::known_kinds);
  if (body[first] == '<') {
    const auto root = io::parse_xml(text, file);
    if (!root) return root.error();
    if (root->name == "system") {
      const auto topology = read::nccl_topology_of(*root, file);
      if (!topology) return topology.error();
      return fragment_of(*topology, options.host, file);
    }
    const char* whose = root->name == "topology" ? ", as hwloc writes"
                        : root->name == "graphs" ? ", as NCCL_GRAPH_DUMP_FILE writes"
                        : root->name == "algo"   ? ", an MSCCL plan"
                                                 : "";
    return detail::unknown_kind(file, "XML with the root <" + root->name + ">" + whose);
  }
  if (detail::looks_binary(body)) return detail::unknown_kind(file, "binary data");
  if (body[first] == '{' || body[first] == '[') {
    if (body.find("\"topocoll.topology/") == std::string_view::npos)
      return detail::unknown_kind(file, "JSON (or a text that begins like it) without the schema topocoll.topology");
    return topo::from_json(body, file);
  }
  const std::string_view row = detail::first_row(body);
  if (body.substr(0, 20) == "# topocoll recording" ||
      (row.substr(0, 1) == "/" && row.find('\t') != std::string_view::npos))
    return fragment_of_recording(body, file, options);
  return detail::unknown_kind(file, "a text");
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
