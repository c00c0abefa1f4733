// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll topo`: shows a topology as a tree, a table of expected rates, JSON or a drawing.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/app/detail/path_table.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/capture.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/files.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/dot.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/text.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Where a topology comes from. Several places are merged: the same key is the same device.
struct topology_input {
  std::vector<std::string> from;    ///< files, or "live" for this machine
  std::vector<std::string> fabric;  ///< descriptions such as "dgx-h100:nodes=16"
  std::string root = "/";           ///< file system of the live machine
  std::string host;  ///< name of hosts that their file does not name; empty: this machine's name when live
};

/// Reads, merges and checks. Nothing named at all means this machine.
/// @return what the sources refuse, with the file or the position; `malformed_input` when the parts do not make a graph
[[nodiscard]] result<topo::graph> read_topology(const topology_input& input);

/// Runs `topocoll topo`. The answer goes to `out` (or the file of --output) in one piece, complaints to `err`.
/// @return `exit_ok`, or `exit_unable` with one sentence on `err` and nothing on `out`
[[nodiscard]] int run_topo(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

[[nodiscard]] inline std::string name_of_this_host() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

/// What `topocoll topo` was asked for.
struct topo_options {
  topology_input input;
  bool json = false, dot = false, tree = false, paths = false, unicode = false, everything = false;
  topo::route_options routes;
  std::string output, record;
};

/// What the live machine tells, as one text that replays on another; addresses masked.
[[nodiscard]] inline result<std::string> recording_of(const topology_input& input) {
  if (!input.fabric.empty() || (!input.from.empty() && input.from != std::vector<std::string>{"live"}))
    return fail(errc::invalid_argument, "--record records this machine, not a file or a description",
                "leave --from and --fabric out");
  return capture({.root = input.root, .host = input.host.empty() ? name_of_this_host() : input.host});
}

/// The answer as one text.
[[nodiscard]] inline std::string topo_answer(const topo::graph& g, const topo_options& o) {
  if (o.dot) return topo::to_dot(g);
  if (o.json) {
    io::json document = topo::to_json_value(g);
    if (o.paths) document["paths"] = to_json(g, paths_of(g, o.routes));
    return io::to_text(document);
  }
  std::string text;
  if (o.tree || !o.paths) {
    topo::text_options how;
    how.unicode = o.unicode;
    how.everything = o.everything;
    text = topo::to_text(g, how);
  }
  if (o.paths) text += (text.empty() ? "" : "\n") + to_text(g, paths_of(g, o.routes));
  return text;
}

}  // namespace detail

inline result<topo::graph> read_topology(const topology_input& input) {
  std::vector<topo::fragment> parts;
  std::vector<std::string> from = input.from;
  if (from.empty() && input.fabric.empty()) from.emplace_back("live");
  for (const std::string& place : from) {
    discover_options options;
    options.host = !input.host.empty() ? input.host : place == "live" ? detail::name_of_this_host() : options.host;
    auto part = place == "live" ? sysfs{input.root}.read(options) : from_file(place, options);
    if (!part) return std::move(part).error();
    parts.push_back(std::move(*part));
  }
  for (const std::string& spec : input.fabric) {
    auto part = describe(spec);
    if (!part) return std::move(part).error();
    parts.push_back(std::move(*part));
  }
  if (parts.size() == 1) return topo::graph::from(std::move(parts[0]));
  auto merged = topo::merge(parts);
  if (!merged) return std::move(merged).error();
  return topo::graph::from(std::move(*merged));
}

inline int run_topo(std::span<const std::string_view> args, sink out, sink err) {
  detail::topo_options o;
  CLI::App cli("Shows what a machine, a file or a description holds: devices, links, expected rates.", "topo");
  cli.add_option("--from", o.input.from,
                 "a file: NCCL topology XML, this program's JSON, a recorded machine and others, told by its content; "
                 "or 'live' "
                 "for this machine (default). May be given several times: what the sources say is merged")
      ->type_name("FILE|live")
      ->allow_extra_args(false);
  cli.add_option("--fabric", o.input.fabric,
                 "a described cluster, for example dgx-h100:nodes=16,leaves=8,oversubscription=2")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  auto* tree = cli.add_flag("--tree", o.tree, "a tree for people (default)");
  auto* json = cli.add_flag("--json", o.json, "JSON, schema topocoll.topology/1, with counts in the field \"summary\"");
  auto* dot = cli.add_flag("--dot", o.dot, "a drawing for Graphviz: topocoll topo --dot | dot -Tsvg");
  auto* paths =
      cli.add_flag("--paths", o.paths,
                   "path class and expected rate of every pair of GPUs, NICs and memories, and why; of every kind of "
                   "pair when there are several hosts. With --tree or --json both");
  cli.add_flag("--nvb", o.routes.nvb, "in --paths, let GPUs relay over NVLink")->needs(paths);
  cli.add_flag("--pxn", o.routes.pxn, "in --paths, let GPUs use the NIC of an NVLink peer")->needs(paths);
  cli.add_flag("--all", o.everything, "in the tree, every device and every host; nothing summed up");
  cli.add_flag("--unicode", o.unicode, "in the tree, box-drawing characters");
  cli.add_option("--output", o.output, "write to this file instead of standard output; it is never seen half written")
      ->type_name("FILE");
  cli.add_option("--record", o.record,
                 "write what this machine tells to a file that --from reads anywhere (addresses masked), and stop")
      ->type_name("FILE")
      ->excludes(json, dot, tree, paths);
  cli.add_option("--root", o.input.root, "root of the file system that 'live' reads, for containers")->type_name("DIR");
  cli.add_option("--host", o.input.host, "name for a host whose source does not name it")->type_name("NAME");
  json->excludes(dot, tree);
  dot->excludes(tree, paths);
  if (const auto done = parse(cli, args, out, err)) return *done;

  if (!o.record.empty()) {
    const auto told = detail::recording_of(o.input);
    if (!told) return complain(err, told.error());
    if (const auto written = io::write_file(o.record, *told); !written) return complain(err, written.error());
    return exit_ok;
  }
  const auto g = read_topology(o.input);
  if (!g) return complain(err, g.error());
  const std::string answer = detail::topo_answer(*g, o);
  if (o.output.empty()) {
    out(answer);
    return exit_ok;
  }
  if (const auto written = io::write_file(o.output, answer); !written) return complain(err, written.error());
  return exit_ok;
}

}}}  // namespace topocoll::v0::app
