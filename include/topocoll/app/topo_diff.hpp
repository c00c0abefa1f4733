// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll topo diff`: what differs between two machines, or between one and its guest, or today and then.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>
#include <topocoll/app/detail/findings_answer.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/diff.hpp>
#include <topocoll/topo/graph.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll topo diff A B`. The answer goes to `out`, complaints to `err`.
/// @return `exit_ok` when both are the same (notes apart), `exit_problem` when they differ, `exit_unable` with one sentence
///         on `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_topo_diff(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

/// What sentences call the two sides: the last parts of their paths, with the words A and B where those are equal or long.
template <class = void>
[[nodiscard]] std::pair<std::string, std::string> side_names(const std::string& a, const std::string& b) {
  const auto last = [](const std::string& place) { return place.substr(place.find_last_of('/') + 1); };
  const std::string x = is_description(a) ? a : last(a);
  const std::string y = is_description(b) ? b : last(b);
  constexpr std::size_t longest = 32;
  if (x == y || x.empty() || y.empty() || x.size() > longest || y.size() > longest) return {"A", "B"};
  return {x, y};
}

/// The structured part of the answer, beside the findings.
template <class = void>
[[nodiscard]] io::json difference_json(const topo::graph& a, const topo::graph& b, const topo::difference& d) {
  io::json j;
  j["hosts"] = io::json::array();
  for (const auto& [x, y] : d.hosts) j["hosts"].push_back({{"a", x}, {"b", y}});
  std::size_t how[3] = {0, 0, 0};
  for (const topo::same_device& s : d.same) ++how[static_cast<std::size_t>(s.how)];
  j["recognised"] = {{"by_key", how[0]}, {"by_identity", how[1]}, {"by_place", how[2]}};
  const auto pair_json = [&](const topo::same_device& s) {
    return io::json{{"a", a.at(s.a).key}, {"b", b.at(s.b).key}};
  };
  j["missing"] = io::json::array();
  for (const node_id v : d.missing) j["missing"].push_back(a.at(v).key);
  j["added"] = io::json::array();
  for (const node_id v : d.added) j["added"].push_back(b.at(v).key);
  j["changed"] = io::json::array();
  for (const topo::same_device& s : d.changed) j["changed"].push_back(pair_json(s));
  const auto rate = [](const std::optional<bytes_per_second>& r) { return r ? io::json(r->value) : io::json(nullptr); };
  const auto side = [&](const topo::graph& g, const std::optional<topo::bundle>& l) {
    if (!l) return io::json(nullptr);
    return io::json{{"from", g.at(l->from).key},
                    {"to", g.at(l->to).key},
                    {"links", l->links},
                    {"generation", l->generation != 0 ? io::json(l->generation) : io::json(nullptr)},
                    {"lanes", l->lanes != 0 ? io::json(l->lanes) : io::json(nullptr)},
                    {"nominal_bytes_per_second", rate(l->nominal)},
                    {"current_bytes_per_second", rate(l->current)},
                    {"capacity_bytes_per_second", l->capacity.value},
                    {"trust", to_string(l->how)}};
  };
  j["links"] = io::json::array();
  for (const topo::link_change& c : d.links)
    j["links"].push_back({{"kind", to_string((c.a ? *c.a : *c.b).kind)}, {"a", side(a, c.a)}, {"b", side(b, c.b)}});
  j["paths"] = io::json::array();
  for (const topo::path_change& p : d.paths)
    j["paths"].push_back(
        {{"from", pair_json(p.from)}, {"to", pair_json(p.to)}, {"a", to_string(p.a)}, {"b", to_string(p.b)}});
  return j;
}

}  // namespace detail

template <class>
int run_topo_diff(std::span<const std::string_view> args, sink out, sink err) {
  std::string a, b, root = "/", host;
  std::vector<std::string> maps;
  bool json = false, everything = false, no_paths = false;
  topo::diff_options o;
  CLI::App cli("Compares two topologies: host and guest, node and node, today and yesterday.", "topo diff");
  const char* help = "a file, 'live' for this machine, or a description such as dgx-h100:nodes=16";
  cli.add_option("A", a, help)->type_name("FILE|live|SPEC")->required();
  cli.add_option("B", b, help)->type_name("FILE|live|SPEC")->required();
  cli.add_option("--map", maps, "host of A and the name that it has in B; may be given several times")
      ->type_name("HOST=HOST")
      ->allow_extra_args(false);
  cli.add_flag("--json", json, "JSON, schema topocoll.findings/1");
  cli.add_flag("--all", everything, "in the text, every finding");
  cli.add_flag("--no-paths", no_paths, "leave path classes out, which take most of the time for large clusters");
  cli.add_option("--tolerance", o.tolerance, "share by which two rates may differ and still be equal")
      ->check(CLI::Range(0.0, 0.5))
      ->capture_default_str();
  cli.add_option("--root", root, "root of the file system that 'live' reads, for containers")->type_name("DIR");
  cli.add_option("--host", host, "name for a host whose source does not name it")->type_name("NAME");
  if (const auto done = parse(cli, args, out, err)) return *done;

  for (const std::string& map : maps) {
    const std::size_t at = map.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == map.size())
      return complain(err, fail(errc::invalid_argument, "--map " + map + " does not name two hosts",
                                "write for example --map node7=guest7"));
    o.hosts.emplace_back(map.substr(0, at), map.substr(at + 1));
  }
  o.paths = !no_paths;
  const auto left = detail::read_place(a, root, host);
  if (!left) return complain(err, left.error());
  const auto right = detail::read_place(b, root, host);
  if (!right) return complain(err, right.error());
  std::tie(o.a, o.b) = detail::side_names(a, b);
  const topo::difference d = topo::diff(*left, *right, o);
  const detail::severity_counts counts(d.findings);
  const std::string devices = std::to_string(d.same.size()) + " devices and switches were found in both";
  const std::string sides = o.a == "A" ? "A (" + a + ") and B (" + b + ")" : o.a + " and " + o.b;
  const std::string sentence =
      sides + (counts.bad()          ? " differ: " + counts.text() + "; " + devices + "."
               : counts.notes() != 0 ? " are the same but for " + counts.text() + "; " + devices + "."
                                     : " are the same: " + devices + ".");
  if (json) {
    io::json document = detail::findings_json("topo diff", counts.bad() ? "differs" : "same", sentence, d.findings);
    document["a"] = a;
    document["b"] = b;
    document.update(detail::difference_json(*left, *right, d));
    out(io::to_text(document));
  } else {
    out(detail::findings_text(sentence, d.findings, everything ? SIZE_MAX : 40));
  }
  return counts.bad() ? exit_problem : exit_ok;
}

}}}  // namespace topocoll::v0::app
