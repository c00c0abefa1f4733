// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll topo check`: the odd host, device or switch among its like.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/detail/findings_answer.hpp>
#include <topocoll/app/detail/gpu_links_table.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/discover/generate/faults.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/check.hpp>
#include <topocoll/topo/merge.hpp>
#include <topocoll/topo/summary.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll topo check`. The answer goes to `out`, complaints to `err`.
/// @return `exit_ok` when nothing is odd (notes apart), `exit_problem` when something is, `exit_unable` with one sentence on
///         `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_topo_check(std::span<const std::string_view> args, sink out, sink err) {
  topology_input input;
  std::vector<std::string> places;
  bool json = false, everything = false;
  topo::check_options o;
  CLI::App cli(
      "Names the odd one out: a host unlike its siblings, a device below its neighbours, a leaf short of cables.",
      "topo check");
  cli.add_option(
         "place", places,
         "files, 'live' for this machine (default), or descriptions such as dgx-h100:nodes=16; several are merged")
      ->type_name("FILE|live|SPEC");
  cli.add_option("--from", input.from, "a file or 'live', as in topocoll topo")
      ->type_name("FILE|live")
      ->allow_extra_args(false);
  cli.add_option("--fabric", input.fabric, "a described cluster, as in topocoll topo")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  cli.add_flag("--json", json, "JSON, schema topocoll.findings/1");
  cli.add_flag("--all", everything, "in the text, every finding");
  cli.add_option("--tolerance", o.tolerance, "share by which two rates may differ and still be equal")
      ->check(CLI::Range(0.0, 0.5))
      ->capture_default_str();
  cli.add_option("--root", input.root, "root of the file system that 'live' reads, for containers")->type_name("DIR");
  cli.add_option("--host", input.host, "name for a host whose source does not name it")->type_name("NAME");
  if (const auto done = parse(cli, args, out, err)) return *done;

  for (const std::string& place : places) (detail::is_description(place) ? input.fabric : input.from).push_back(place);
  const auto g = read_topology(input);
  if (!g) return complain(err, g.error());
  std::vector<finding> found = topo::check(*g, o);
  // What a source saw broken needs no comparison; what a description planted is there to be found.
  for (const finding& f : g->findings())
    if (f.level == severity::fault && f.evidence != planted_evidence) found.push_back(f);
  const detail::severity_counts counts(found);
  const std::string what = topo::to_string(topo::summarize(*g));
  const std::string sentence = counts.bad()          ? "Something is odd: " + counts.text() + " about " + what + "."
                               : counts.notes() != 0 ? "Nothing is odd among " + what + "; " + counts.text() + "."
                                                     : "Nothing is odd among " + what + ".";
  if (json) {
    io::json document = detail::findings_json("topo check", counts.bad() ? "odd" : "healthy", sentence, found);
    document["source"] = g->source();
    document["verdict"] = detail::verdict_of(found);
    out(io::to_text(document));
  } else {
    out(detail::findings_text(sentence, found, everything ? SIZE_MAX : 40));
  }
  return counts.bad() ? exit_problem : exit_ok;
}

}}}  // namespace topocoll::v0::app
