// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll plan`: chooses a plan for a collective, says why, and writes it.
#include <span>
#include <string_view>
#include <topocoll/app/detail/plan_answer.hpp>
#include <topocoll/app/detail/plan_input.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/rank_placement.hpp>
#include <topocoll/app/sink.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll plan`. The answer goes to `out` in one piece, complaints to `err`.
/// @return `exit_ok`; `exit_problem` when a plan of before was given and should be replaced; `exit_unable` with one
///         sentence on `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_plan(std::span<const std::string_view> args, sink out, sink err) {
  detail::plan_options o;
  CLI::App cli(
      "Chooses a plan for a collective on a topology, proves it, and explains why it is the best.\n"
      "Exit code: 0 answered (with --previous: keep that plan), 1 the plan of --previous should be replaced,\n"
      "2 bad options or input.",
      "plan");
  cli.add_option("--from", o.input.from,
                 "a topology file (see 'topocoll topo --help'), or 'live' for this machine (default)")
      ->type_name("FILE|live")
      ->allow_extra_args(false);
  cli.add_option("--fabric", o.input.fabric,
                 "a described cluster, for example dgx-h100:nodes=16,pods=8,oversubscription=3")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  cli.add_option("--collective", o.collective,
                 "all_reduce (default), all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter")
      ->type_name("NAME");
  cli.add_option("--size", o.size,
                 "bytes of the whole array, as nccl-tests counts them (default 64M; K, M and G are binary)")
      ->type_name("BYTES");
  cli.add_option("--shares", o.shares,
                 "shards of unequal size: one weight per rank, rank 0 first, as 1,2,0,5 or @FILE with one a line; for "
                 "all_gather, reduce_scatter, gather, scatter")
      ->type_name("LIST|@FILE");
  cli.add_option("--sizes", o.sizes,
                 "sizes for which the cheapest plans are told; 1K:1G when the answer is text or a chart, 8:4G for "
                 "--pareto")
      ->type_name("FIRST:LAST");
  cli.add_option("--ranks", o.placement.ranks, "number of ranks: the first GPUs; without GPUs, processes (default 4)")
      ->type_name("N");
  cli.add_option("--order", o.placement.order,
                 "how ranks lie on the GPUs: packed, scattered (hosts in turn from each pod), round_robin (over "
                 "hosts), random:SEED; "
                 "by default as the topology says, else packed")
      ->type_name("ORDER");
  cli.add_option("--root", o.root, "root of broadcast and reduce, gather and scatter (default 0)")->type_name("RANK");
  cli.add_option("--algorithm", o.algorithm,
                 "take this planner's plan, whatever it costs: hierarchical, ring, ring-hardware, tree, …")
      ->type_name("NAME");
  cli.add_flag(
      "--nvls", o.nvls,
      "NVSwitches may add up and multiply data: more plans, and the bound that holds for them; run by libraries "
      "that use multicast of NVSwitches, by others as the algorithm direct");
  cli.add_flag("--pareto", o.pareto,
               "the plans that are the cheapest for some size, with latency, busbw, sizes and rounds; "
               "no explanation unless --explain or --brief asks for it");
  auto* previous =
      cli.add_option("--previous", o.previous,
                     "a plan that --output wrote earlier: is it still right for the topology as it is now? Exit code 1 "
                     "when it should be replaced; no explanation unless --explain or --brief asks for it")
          ->type_name("FILE");
  cli.add_option("--gain", o.gain,
                 "with --previous: replace when the new plan saves at least so many percent of the time (default 5, "
                 "about what the prices are good for)")
      ->type_name("PERCENT")
      ->needs(previous);
  auto* explain = cli.add_flag("--explain", o.explain, "why, with loads and alternatives, as text (default)");
  auto* brief = cli.add_flag("--brief", o.brief, "the plan, its price, the bound and the bottleneck only");
  auto* json = cli.add_flag("--json", o.json,
                            "the explanation as JSON, schema topocoll.explanation/1, with members pareto and previous "
                            "where asked for");
  cli.add_option("--output", o.output, "also write the plan to this file: JSON, schema topocoll.plan/1")
      ->type_name("FILE");
  cli.add_option("--svg", o.svg, "also draw the plan on the topology: what links carry, who sends to whom, trees (SVG)")
      ->type_name("FILE");
  cli.add_option("--chart", o.chart,
                 "also draw predicted busbw against size: plans that win somewhere, the bound, library models (SVG)")
      ->type_name("FILE");
  cli.add_option("--model", o.model, "prices as 'topocoll calibrate' wrote them: JSON, schema topocoll.model/1")
      ->type_name("FILE");
  cli.add_option("--root-dir", o.input.root, "root of the file system that 'live' reads, for containers")
      ->type_name("DIR");
  cli.add_option("--host", o.input.host, "name for a host whose source does not name it")->type_name("NAME");
  json->excludes(explain, brief);
  brief->excludes(explain);
  if (const auto done = parse(cli, args, out, err)) return *done;
  const auto answer = detail::plan_answer(o);
  if (!answer) return complain(err, answer.error());
  out(answer->text);
  return answer->code;
}

}}}  // namespace topocoll::v0::app
