// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll calibrate`: fits the model of GPU libraries to measurements, or says how far it is off.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/detail/calibrate_input.hpp>
#include <topocoll/app/detail/calibrate_text.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/calibrate_host.hpp>
#include <topocoll/plan/model_codec.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll calibrate`. The answer goes to `out` in one piece, notes and complaints to `err`. The model goes to the
/// file of --output, measured against predicted to the file of --residuals; neither holds what the other is for.
/// @return `exit_ok`; `exit_unable` with one sentence on `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_calibrate(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

struct calibrate_options {
  std::vector<std::string> files;
  calibrate_machine machine;
  std::string model, output, residuals, launch;
  bool errors = false, left_out = false, links_left_out = false, priors = false, systems = false, json = false;
};

/// Answer for results of processes in shared memory.
template <class = void>
[[nodiscard]] result<std::string> host_answer(const calibrate_options& o, const calibrate_input& in) {
  const auto c = plan::calibrate_host(in.hosts);
  if (!c) return c.error();
  if (!o.output.empty())
    if (const auto written = io::write_file(o.output, plan::to_json(*c)); !written) return written.error();
  if (o.json) return plan::to_json(*c);
  std::string text = "processes of one host, from " + std::to_string(c->rows) + " measurements\n";
  text += formatted("  launch  %8.3f us\n", c->launch.value * 1e6);
  text +=
      formatted("  hop     %8.3f us a round%s\n", c->hop.value * 1e6,
                c->hop_determined ? "" : " (all plans have about as many rounds: launch and hop are not told apart)");
  text += formatted("  rate    %8.3f GB/s%s\n", c->rate.value / 1e9,
                    c->rate_determined ? "" : " (no measurement was large enough to tell)");
  return text + "  median error of these measurements: " + percent(c->median_error) + "\n";
}

/// Answer for results of GPU libraries.
template <class = void>
[[nodiscard]] result<std::string> gpu_answer(const calibrate_options& o, const calibrate_input& in) {
  const measurement_table& t = in.gpus;
  plan::model_constants k = o.priors ? plan::model_constants::priors() : plan::model_constants{};
  if (!o.model.empty()) {
    const auto text = io::read_file(o.model);
    if (!text) return text.error();
    const auto read = plan::model_from_json(*text, o.model);
    if (!read) return read.error();
    k = *read;
  }
  std::vector<named_predictions> models;
  plan::calibration_options how;
  how.centre = k;
  std::string text, answer;
  if (!o.errors) {
    const auto c = plan::calibrate(t.rows, how);
    if (!c) return c.error();
    if (!o.output.empty())
      if (const auto written = io::write_file(o.output, plan::to_json(*c)); !written) return written.error();
    models.push_back({"before", plan::predictions_for(t.rows, k)});
    models.push_back({"fitted", plan::predictions_for(t.rows, c->constants)});
    k = c->constants;
    if (o.json) answer = plan::to_json(*c);
    text += "Constants, spread as a share of the value:\n\n" + constant_table(*c) + "\n";
  } else {
    models.push_back({"model", plan::predictions_for(t.rows, k)});
    how.centre = plan::model_constants::priors();
  }
  if (!o.residuals.empty())
    if (const auto written = io::write_file(o.residuals, residual_table(t, k)); !written) return written.error();
  if (!answer.empty()) return answer;
  if (o.left_out) {
    auto times = plan::predictions_left_out(t.rows, how, k, 40);
    if (!times) return times.error();
    models.push_back({"each system left out", std::move(*times)});
  }
  text += std::to_string(t.rows.size()) + " measurements of " + std::to_string(t.systems.size()) +
          " systems. Errors are those of time up to 64 KiB and of bus bandwidth above; bias is that of time, negative "
          "where "
          "the model is too fast.\n\n";
  if (o.links_left_out) {
    // As if all systems with the same links were one.
    auto rows = t.rows;
    std::vector<std::string> groups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto at = seq::find(groups, t.link_groups[i]);
      rows[i].system = static_cast<std::uint32_t>(at - groups.begin());
      if (at == groups.end()) groups.push_back(t.link_groups[i]);
    }
    auto times = plan::predictions_left_out(rows, how, k, 40);
    if (!times) return times.error();
    models.push_back({"all systems with the same links left out", std::move(*times)});
  }
  models.push_back({"NCCL", nccl_predictions(t.rows)});
  text += error_table(t.rows, models);
  const named_predictions& shown = models[models.size() - (o.left_out && o.links_left_out ? 3 : 2)];
  text += "\nMedian errors by links (" + shown.name + "), in brackets the measurements:\n\n" + link_table(t, shown);
  if (o.systems) text += "\nMedian errors by system (" + shown.name + "):\n\n" + system_table(t, shown);
  return text;
}

}  // namespace detail

template <class>
int run_calibrate(std::span<const std::string_view> args, sink out, sink err) {
  detail::calibrate_options o;
  CLI::App cli("Fits the model of GPU libraries to your measurements, or says how far off it is.", "calibrate");
  cli.add_option(
         "results", o.files,
         "tables or JSON of nccl-tests, JSON of 'topocoll bench', or a table of measurements that describes the "
         "machine of every line (docs/formats/measurements.md)")
      ->type_name("FILE")
      ->required();
  cli.add_option("--from", o.machine.input.from, "topology of the machine that the results come from")
      ->type_name("FILE|live")
      ->allow_extra_args(false);
  cli.add_option("--fabric", o.machine.input.fabric, "the same as a description, for example dgx-h100:nodes=4")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  cli.add_option("--ranks", o.machine.placement.ranks, "number of ranks, where the results do not tell")
      ->type_name("N");
  cli.add_option("--order", o.machine.placement.order, "how ranks lie on the GPUs, as in 'topocoll plan'")
      ->type_name("ORDER");
  cli.add_option("--collective", o.machine.collective, "what was measured, where the results do not tell")
      ->type_name("NAME");
  cli.add_option("--launch", o.launch, "process_per_gpu or one_process, where it is known")
      ->type_name("MODE")
      ->check(CLI::IsMember({"process_per_gpu", "one_process"}));
  auto* model =
      cli.add_option("--model", o.model, "start from this model instead of the built-in one")->type_name("FILE");
  auto* priors =
      cli.add_flag("--from-priors", o.priors,
                   "start from what was believed before anything was fitted: how the built-in model was made");
  auto* output = cli.add_option("--output", o.output, "write the model to this file: JSON, schema topocoll.model/1")
                     ->type_name("FILE");
  cli.add_option("--residuals", o.residuals, "write measured and predicted times to this file, one line a measurement")
      ->type_name("FILE");
  auto* errors = cli.add_flag("--errors", o.errors, "fit nothing; compare the model, and NCCL's own, with the results");
  cli.add_flag("--left-out", o.left_out, "also predict each system by a fit without it");
  cli.add_flag("--links-left-out", o.links_left_out,
               "also predict each system by a fit without any system that has the same links");
  cli.add_flag("--systems", o.systems, "also list the errors of each system");
  auto* json = cli.add_flag("--json", o.json, "the model as JSON, schema topocoll.model/1");
  errors->excludes(output, json);
  model->excludes(priors);
  if (const auto done = parse(cli, args, out, err)) return *done;
  o.machine.given = !o.machine.input.from.empty() || !o.machine.input.fabric.empty();
  if (o.launch == "process_per_gpu") o.machine.conditions.launch = plan::launch_mode::process_per_gpu;
  if (o.launch == "one_process") o.machine.conditions.launch = plan::launch_mode::one_process;
  const auto in = detail::read_calibrate_input(o.files, o.machine);
  if (!in) return complain(err, in.error());
  for (const std::string& n : in->notes) complain(err, n);
  if (!in->hosts.empty() && !in->gpus.rows.empty())
    return complain(err,
                    fail(errc::invalid_argument,
                         "some results come from GPUs, others from processes in host memory: one model cannot fit both",
                         "give them apart"));
  const auto answer = in->hosts.empty() ? detail::gpu_answer(o, *in) : detail::host_answer(o, *in);
  if (!answer) return complain(err, answer.error());
  out(*answer);
  return exit_ok;
}

}}}  // namespace topocoll::v0::app
