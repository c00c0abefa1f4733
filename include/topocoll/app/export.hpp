// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll export`: plans and topologies as files that make NCCL, MSCCL and MSCCL++ run them.
#include <span>
#include <string>
#include <string_view>
#include <topocoll/app/detail/export_answers.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/io/file.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll export`. The file goes to `out` (or to --output), what was proved and what was assumed to `err`; with
/// --json all of it goes to `out`.
/// @return `exit_ok`; `exit_unable` with one sentence on `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_export(std::span<const std::string_view> args, sink out, sink err);

template <class>
int run_export(std::span<const std::string_view> args, sink out, sink err) {
  detail::export_options o;
  CLI::App cli("Writes plans and topologies as files that make NCCL, MSCCL and MSCCL++ run them.", "export");
  cli.add_option("--format", o.format,
                 "nccl-graph (rings and trees of a host for NCCL_GRAPH_FILE), nccl-env (variables that the topology "
                 "justifies), tuner-csv (for NCCL's example tuner plug-in), msccl-xml, mscclpp-json")
      ->type_name("FORMAT");
  cli.add_option("--plan", o.plan,
                 "a plan that 'topocoll plan --output' wrote; by default the cheapest that the format can hold is "
                 "chosen, and nccl-graph searches")
      ->type_name("FILE");
  cli.add_option("--from", o.input.from, "a topology file (see 'topocoll topo --help'), or 'live' for this machine")
      ->type_name("FILE|live")
      ->allow_extra_args(false);
  cli.add_option("--fabric", o.input.fabric, "a described cluster, for example dgx-h100:nodes=2,leaves=8")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  cli.add_option("--node", o.node, "the host that nccl-graph and nccl-env are about, when there are several")
      ->type_name("HOST");
  cli.add_option("--collective", o.collective,
                 "all_reduce (default), all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter")
      ->type_name("NAME");
  cli.add_option("--size", o.size, "bytes of the whole array that the plan is chosen for (default 64M)")
      ->type_name("BYTES");
  cli.add_option("--sizes", o.sizes, "sizes for tuner-csv and nccl-env, doubling (default 8:4G)")
      ->type_name("FIRST:LAST");
  cli.add_option("--algorithm", o.algorithm, "take this planner's plan, whatever it costs")->type_name("NAME");
  cli.add_option("--model", o.model, "price by this model, which 'topocoll calibrate --output' wrote")
      ->type_name("FILE");
  cli.add_option("--ranks", o.placement.ranks, "number of ranks: the first GPUs")->type_name("N");
  cli.add_option("--order", o.placement.order, "packed, scattered, round_robin, random:SEED")->type_name("ORDER");
  cli.add_option("--root", o.root, "root of broadcast and reduce (default 0)")->type_name("RANK");
  cli.add_flag("--one-root", o.one_root,
               "MSCCL and MSCCL++: the program always takes this root, so that a plan for it is safe");
  cli.add_flag("--one-node", o.one_node, "nccl-graph: for jobs on one node alone");
  cli.add_flag("--nvls", o.nvls, "nccl-graph: also heads for NVLS");
  cli.add_option("--cross-nic", o.cross_nic,
                 "nccl-graph: 0 keeps rings on their adapter, 2 (default) may change in pairs")
      ->type_name("N");
  cli.add_option("--channels", o.channels, "nccl-graph: at most so many channels (default 32)")->type_name("N");
  cli.add_option("--style", o.style, "nccl-env: export (default), env, mpirun, config")->type_name("STYLE");
  cli.add_option("--graph-file", o.graph_file, "nccl-env: where the file of nccl-graph lies")->type_name("PATH");
  cli.add_option("--topo-file", o.topology_file, "nccl-env: where the file of 'topocoll topo --nccl-xml' lies")
      ->type_name("PATH");
  cli.add_option("--tuner-file", o.tuner_file, "nccl-env: where the file of tuner-csv lies")->type_name("PATH");
  cli.add_option("--max-ctas", o.most_channels, "nccl-env: thread blocks that NCCL may take")->type_name("N");
  cli.add_option("--reader", o.reader,
                 "msccl-xml: executor (default; msccl-executor-nccl and RCCL) or fork (Microsoft's msccl)")
      ->type_name("NAME");
  cli.add_option("--protocol", o.protocol, "msccl-xml: Simple (default), LL, LL128")->type_name("NAME");
  cli.add_flag("--out-of-place", o.out_of_place, "MSCCL's fork and MSCCL++: for calls with two buffers");
  cli.add_option("--min-size", o.smallest, "MSCCL and MSCCL++: the plan is for sizes from this on")->type_name("BYTES");
  cli.add_option("--max-size", o.largest, "MSCCL and MSCCL++: the plan is for sizes up to this")->type_name("BYTES");
  cli.add_option("--blocks", o.blocks, "mscclpp-json: thread blocks that a GPU runs at once (default 108, an A100)")
      ->type_name("N");
  cli.add_option("--ranks-per-host", o.ranks_per_host, "mscclpp-json without a topology: ranks that share memory")
      ->type_name("N");
  cli.add_flag("--json", o.json,
               "the file, what was proved of it and what was found as JSON, schema topocoll.export/1");
  cli.add_option("-o,--output", o.output, "write to this file; it is never seen half written")->type_name("FILE");
  cli.add_option("--root-dir", o.input.root, "root of the file system that 'live' reads, for containers")
      ->type_name("DIR");
  cli.add_option("--host", o.input.host, "name for a host whose source does not name it")->type_name("NAME");
  if (const auto done = parse(cli, args, out, err)) return *done;
  detail::export_report report;
  const auto answer = detail::export_answer(o, report);
  if (!answer) return complain(err, answer.error());
  if (!o.output.empty()) {
    if (const auto written = io::write_file(o.output, *answer); !written) return complain(err, written.error());
  } else {
    if (!o.json) out(*answer);
  }
  if (o.json) {
    out(detail::export_json(o, *answer, report));
    return exit_ok;
  }
  err(detail::told(report.findings));
  err(report.notes);
  return exit_ok;
}

}}}  // namespace topocoll::v0::app
