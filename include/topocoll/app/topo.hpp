// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll topo`: shows a topology as a tree, tables, JSON, drawings, or as a file for another tool.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/detail/affinity_table.hpp>
#include <topocoll/app/detail/gpu_links_table.hpp>
#include <topocoll/app/detail/path_table.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/capture.hpp>
#include <topocoll/integrate/slurm_topology.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/codec.hpp>
#include <topocoll/topo/dot.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/matrix.hpp>
#include <topocoll/topo/nccl_xml_text.hpp>
#include <topocoll/topo/svg.hpp>
#include <topocoll/topo/text.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll topo`. The answer goes to `out` (or the file of --output) in one piece, complaints to `err`.
/// @return `exit_ok`, or `exit_unable` with one sentence on `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_topo(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

/// What the answer is written as.
enum class topo_form : unsigned char { tree, json, dot, svg, matrix, affinity, nccl_xml, slurm_conf, slurm_yaml };

/// What `topocoll topo` was asked for.
struct topo_options {
  topology_input input;
  topo_form form = topo_form::tree;
  bool tree = false, paths = false, unicode = false, everything = false;
  topo::route_options routes;
  std::string output, record, only_host;
};

/// What the live machine tells, as one text that replays on another; addresses masked.
template <class = void>
[[nodiscard]] result<std::string> recording_of(const topology_input& input) {
  if (!input.fabric.empty() || (!input.from.empty() && input.from != std::vector<std::string>{"live"}))
    return fail(errc::invalid_argument, "--record records this machine, not a file or a description",
                "leave --from and --fabric out");
  return capture({.root = input.root, .host = input.host.empty() ? name_of_this_host() : input.host});
}

/// The network as a file of Slurm: blocks where NVLink joins hosts, and the tree of switches.
template <class = void>
[[nodiscard]] result<std::string> slurm_answer(const topo::graph& g, bool yaml) {
  auto tree = slurm_tree_of(g);
  auto blocks = slurm_blocks_of(g);
  if (!tree && !blocks) return tree.error();
  if (!yaml) return to_topology_conf(tree ? *tree : *blocks);
  std::vector<read::slurm_topology> both;
  if (tree) both.push_back(std::move(*tree));
  if (blocks) both.push_back(std::move(*blocks));
  return to_topology_yaml(both);
}

/// One host for NCCL; what the format cannot carry is told on `err`.
template <class = void>
[[nodiscard]] result<std::string> nccl_answer(const topo::graph& g, const std::string& host, sink err) {
  topo::nccl_xml_options how;
  how.host = host;
  auto document = topo::nccl_xml_of(g, how);
  if (!document) return std::move(document).error();
  for (const finding& f : document->findings)
    err("topocoll: " + (f.where.empty() ? std::string() : f.where + ": ") + f.what +
        (f.evidence.empty() ? "" : " (" + f.evidence + ")") + '\n');
  return std::move(document->text);
}

/// The answer as one text; notes about it go to `err`.
template <class = void>
[[nodiscard]] result<std::string> topo_answer(const topo::graph& g, const topo_options& o, sink err) {
  switch (o.form) {
    case topo_form::dot: return topo::to_dot(g);
    case topo_form::svg: return topo::to_svg(g);
    case topo_form::matrix: return topo::matrix_text(g, o.only_host);
    case topo_form::nccl_xml: return nccl_answer(g, o.only_host, err);
    case topo_form::slurm_conf: return slurm_answer(g, false);
    case topo_form::slurm_yaml: return slurm_answer(g, true);
    case topo_form::affinity: return affinity_text(g, topo::affinity_of(g));
    case topo_form::json: {
      io::json document = topo::to_json_value(g);
      if (const auto near = topo::affinity_of(g); !near.gpus.empty()) document["affinity"] = to_json(g, near);
      document["verdict"] = verdict_of(g.findings());
      if (io::json joined = gpu_links_json(g); !joined.empty()) document["gpu_links"] = std::move(joined);
      if (o.paths) document["paths"] = to_json(g, paths_of(g, o.routes));
      return io::to_text(document);
    }
    case topo_form::tree: break;
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

template <class>
int run_topo(std::span<const std::string_view> args, sink out, sink err) {
  detail::topo_options o;
  CLI::App cli("Shows what a machine, a file or a description holds: devices, links, expected rates.", "topo");
  cli.footer("\n'topocoll topo diff A B' compares two topologies, 'topocoll topo check' names the odd one out.");
  cli.add_option(
         "--from", o.input.from,
         "a file, told by its content: XML of NCCL or hwloc, what nvidia-smi, rocm-smi, lspci, ibnetdiscover and "
         "others print, Slurm's topology, a cluster file, this program's JSON or recording "
         "(docs/formats/inputs.md); or 'live' for this machine (default). May be given several times: what the "
         "sources say is merged")
      ->type_name("FILE|live")
      ->allow_extra_args(false);
  cli.add_option("--fabric", o.input.fabric,
                 "a described cluster, for example dgx-h100:nodes=16,leaves=8,oversubscription=2")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  cli.add_option("--gpus", o.input.gpus, "only these GPUs, as CUDA_VISIBLE_DEVICES lists them: numbers or UUIDs")
      ->type_name("LIST");
  auto* tree = cli.add_flag("--tree", o.tree, "a tree for people (default)");
  bool json = false, dot = false, svg = false, matrix = false, affinity = false, nccl = false, conf = false,
       yaml = false;
  std::vector<CLI::Option*> forms = {
      cli.add_flag("--json", json, "JSON, schema topocoll.topology/1, with counts in the field \"summary\""),
      cli.add_flag("--svg", svg, "a picture that any browser opens"),
      cli.add_flag("--dot", dot, "a drawing for Graphviz: topocoll topo --dot | dot -Tsvg"),
      cli.add_flag("--matrix", matrix, "path classes of one host as nvidia-smi topo -m prints them"),
      cli.add_flag("--affinity", affinity, "the NIC that each GPU should use, and NICs that no GPU is near to"),
      cli.add_flag("--nccl-xml", nccl, "one host as a topology file for NCCL_TOPO_FILE"),
      cli.add_flag("--slurm", conf, "the network as Slurm's topology.conf"),
      cli.add_flag("--slurm-yaml", yaml, "the network and its NVLink domains as Slurm's topology.yaml")};
  auto* paths =
      cli.add_flag("--paths", o.paths,
                   "path class and expected rate of every pair of GPUs, NICs and memories, and why; of every kind of "
                   "pair when there are several hosts. With --tree or --json both");
  cli.add_flag("--nvb", o.routes.nvb, "in --paths, let GPUs relay over NVLink")->needs(paths);
  cli.add_flag("--pxn", o.routes.pxn, "in --paths, let GPUs use the NIC of an NVLink peer")->needs(paths);
  cli.add_option("--only", o.only_host, "the host that --matrix and --nccl-xml are about, when there are several")
      ->type_name("HOST");
  cli.add_flag("--all", o.everything, "in the tree, every device and every host; nothing summed up");
  cli.add_flag("--unicode", o.unicode, "in the tree, box-drawing characters");
  cli.add_option("--output", o.output, "write to this file instead of standard output; it is never seen half written")
      ->type_name("FILE");
  auto* record =
      cli.add_option("--record", o.record,
                     "write what this machine tells to a file that --from reads anywhere (addresses masked), and stop")
          ->type_name("FILE")
          ->excludes(tree, paths);
  cli.add_option("--root", o.input.root, "root of the file system that 'live' reads, for containers")->type_name("DIR");
  cli.add_option("--host", o.input.host, "name for a host whose source does not name it")->type_name("NAME");
  for (std::size_t i = 0; i < forms.size(); ++i) {
    forms[i]->excludes(tree);
    record->excludes(forms[i]);
    if (i != 0) forms[i]->excludes(paths);  // JSON has room for both
    for (std::size_t j = 0; j < i; ++j) forms[i]->excludes(forms[j]);
  }
  if (const auto done = parse(cli, args, out, err)) return *done;

  o.form = json       ? detail::topo_form::json
           : dot      ? detail::topo_form::dot
           : svg      ? detail::topo_form::svg
           : matrix   ? detail::topo_form::matrix
           : affinity ? detail::topo_form::affinity
           : nccl     ? detail::topo_form::nccl_xml
           : conf     ? detail::topo_form::slurm_conf
           : yaml     ? detail::topo_form::slurm_yaml
                      : detail::topo_form::tree;
  if (!o.record.empty()) {
    const auto told = detail::recording_of(o.input);
    if (!told) return complain(err, told.error());
    if (const auto written = io::write_file(o.record, *told); !written) return complain(err, written.error());
    return exit_ok;
  }
  const auto g = read_topology(o.input);
  if (!g) return complain(err, g.error());
  const auto answer = detail::topo_answer(*g, o, err);
  if (!answer) return complain(err, answer.error());
  if (o.output.empty()) {
    out(*answer);
    return exit_ok;
  }
  if (const auto written = io::write_file(o.output, *answer); !written) return complain(err, written.error());
  return exit_ok;
}

}}}  // namespace topocoll::v0::app
