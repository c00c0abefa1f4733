// SPDX-License-Identifier: Apache-2.0
#pragma once
// LLDP tables as lldpctl writes them in JSON, of one or many hosts, as a topology source. Needs nlohmann-json.
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/lldp_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/read/lldp_json.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// Reads the text of one file. See `fragment_of` for what becomes what.
[[nodiscard]] inline result<topo::fragment> fragment_of_lldp_json(std::string_view text, const std::string& file,
                                                                  const discover_options& options = {}) {
  const auto tables = read::parse_lldp(text, file);
  if (!tables) return tables.error();
  return fragment_of(*tables, options, file);
}

/// One table for each host: the file's name up to its first dot is the name of a host whose file does not say it.
/// `discover({}, lldp_json{{"node1.json", "node2.json"}})`. A file that cannot be read fails the whole.
struct lldp_json {
  std::vector<std::string> paths;

  [[nodiscard]] static std::string_view name() { return "lldp"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    std::vector<read::lldp_table> all;
    for (const std::string& path : paths) {
      const auto text = io::read_file(path);
      if (!text) return text.error();
      auto tables = read::parse_lldp(*text, path);
      if (!tables) return std::move(tables).error();
      for (read::lldp_table& t : *tables) {
        const std::string base = path.substr(path.rfind('/') + 1);
        if (t.host.empty() && paths.size() > 1) t.host = base.substr(0, base.find('.'));
        all.push_back(std::move(t));
      }
    }
    if (all.empty()) return fail(errc::invalid_argument, "no LLDP file was named");
    return fragment_of(all, options, paths.size() == 1 ? paths[0] : std::to_string(paths.size()) + " files");
  }
};
static_assert(TopologySource<lldp_json>);

}}  // namespace topocoll::v0
