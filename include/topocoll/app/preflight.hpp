// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll preflight`: probes this machine, says what falls short, and ends with one verdict.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/detail/clock_text.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/probe/exit_style.hpp>
#include <topocoll/probe/preflight.hpp>
#include <topocoll/probe/report_json.hpp>
#include <topocoll/probe/report_text.hpp>
#include <topocoll/topo/text.hpp>
#include <topocoll/version.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll preflight`. Sections go to `out` as they are finished, then the verdict line; with --json the report alone.
///
/// @return by --exit-style; for plain `exit_ok` when everything that was measured is good, `exit_problem` when something is
///         not, `exit_unable` when nothing was measured, options are wrong, or the report could not be written. A failed check
///         stays `exit_problem` also when the report could not be written.
template <class = void>
[[nodiscard]] int run_preflight(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

struct preflight_words {
  std::uint32_t ranks = 4;
  bool json = false;
  std::string output, budget = "15s", least, style = "plain", metrics, from, root = "/";
};

/// A line on a terminal that says what is being done, once the run takes longer than two seconds.
class progress_line {
 public:
  explicit progress_line(sink err) : err_(err), start_(steady_clock::now()) {}
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  ~progress_line() { clear(); }

  void show(std::string_view what) {
    if (!err_.terminal || steady_clock::now() - start_ < seconds{2}) return;
    clear();
    err_("\r" + std::string(what) + " ...");
    shown_ = what.size() + 4;
  }
  void clear() {
    if (shown_ == 0) return;
    err_("\r" + std::string(shown_, ' ') + "\r");
    shown_ = 0;
  }

 private:
  sink err_;
  seconds start_;
  std::size_t shown_ = 0;
};

template <class = void>
[[nodiscard]] std::string machine_text(const topo::graph& g, const probe::report& r) {
  std::string text = "topocoll preflight on " + r.host + ", " + r.started + ", topocoll " + r.version + "\n\n";
  text += topo::to_text(g);
  if (r.live) {
    text += "usable cores: " + std::to_string(r.machine.cores);
    if (r.last_level_cache) text += ", last-level cache " + to_string(*r.last_level_cache);
    if (r.load) text += ", load before this run " + probe::detail::fixed_2(*r.load);
    text += "\n";
  }
  return text + "\n";
}

template <class = void>
[[nodiscard]] std::string section_text(probe::section part, const topo::graph& g, const probe::report& r) {
  switch (part) {
    case probe::section::machine: return machine_text(g, r);
    case probe::section::paths: return probe::paths_text(r) + "\n";
    case probe::section::memory: return probe::memory_text(r) + "\n";
    case probe::section::plans: return probe::plans_text(r) + "\n";
    case probe::section::collectives: return probe::collectives_text(r) + "\n";
    case probe::section::verdicts: return probe::verdicts_text(r) + "\n";
  }
  return {};
}

template <class = void>
[[nodiscard]] const char* next_work(probe::section done) {
  constexpr const char* words[] = {"computing paths",     "measuring memory", "planning",
                                   "running collectives", "judging",          "writing the report"};
  return words[static_cast<std::size_t>(done)];
}

}  // namespace detail

template <class>
int run_preflight(std::span<const std::string_view> args, sink out, sink err) {
  detail::preflight_words words;
  CLI::App cli(
      "probes this machine and judges it: links, memory, plans, collectives between local processes; ends with one "
      "verdict",
      "preflight");
  cli.add_option("--ranks", words.ranks, "local processes that run collectives, 2 to 256")->capture_default_str();
  cli.add_flag("--json", words.json, "the report on standard output instead of text and file");
  cli.add_option("--output", words.output,
                 "file for the JSON report; default ./topocoll-preflight.json, none with --json");
  cli.add_option("--metrics", words.metrics, "file for Prometheus' textfile collector (name it .prom)");
  cli.add_option("--time-budget", words.budget, "time for everything; what does not fit is not measured")
      ->capture_default_str();
  cli.add_option("--min-bandwidth", words.least, "busbw that all_reduce must reach at 16 MiB, such as 2GB/s");
  cli.add_option("--exit-style", words.style, "plain, npd, nagios or slurm")->capture_default_str();
  cli.add_option("--from", words.from, "a recorded machine: only what needs no traffic is checked");
  cli.add_option("--root", words.root, "where /sys and /proc of this machine are mounted")->capture_default_str();
  if (const auto done = parse(cli, args, out, err)) return *done;

  const seconds start = steady_clock::now();
  probe::preflight_options options;
  const auto style = probe::parse_exit_style(words.style);
  if (!style)
    return complain(err, fail(errc::invalid_argument, "there is no exit style '" + words.style + "'",
                              "name one of plain, npd, nagios, slurm"));
  if (words.ranks < 2 || words.ranks > 256)
    return complain(err, fail(errc::invalid_argument,
                              "--ranks " + std::to_string(words.ranks) +
                                  ": a collective needs at least two ranks, and more than 256 do not fit one host",
                              "give 2 to 256"));
  options.ranks = words.ranks;
  const auto budget = parse_seconds(words.budget);
  if (!budget) return complain(err, budget.error());
  if (budget->value < 0.5 || budget->value > 3600)
    return complain(
        err, fail(errc::invalid_argument, "--time-budget " + words.budget + " is not between 0.5 s and one hour"));
  options.budget = *budget;
  if (!words.least.empty()) {
    const auto least = parse_rate(words.least);
    if (!least) return complain(err, least.error());
    options.min_bandwidth = *least;
  }
  options.live = words.from.empty();
  topology_input input;
  if (!words.from.empty()) input.from = {words.from};
  input.root = words.root;
  const auto machine = read_topology(input);
  if (!machine) return complain(err, machine.error());

  const std::string host = detail::name_of_this_host();
  const std::string started = detail::utc_now();
  const bool talks = !words.json && *style == probe::exit_style::plain;
  detail::progress_line progress(err);
  const auto name = [&](probe::report& r) {
    r.host = options.live ? host : words.from;
    r.started = started;
    r.version = version_text;
  };
  probe::report r = probe::preflight(*machine, options, [&](probe::section part, const probe::report& so_far) {
    progress.clear();
    if (talks) {
      probe::report named = so_far;
      name(named);
      out(detail::section_text(part, *machine, named));
    }
    progress.show(detail::next_work(part));
  });
  progress.clear();
  name(r);
  r.took = steady_clock::now() - start;

  int code = probe::exit_code_of(probe::count(r.verdicts), *style);
  const auto lost = [&](const failure& why) {
    complain(err, "the report was not written: " + why.message());
    if (code == 0 && *style != probe::exit_style::slurm) code = exit_unable;
  };
  std::string file = words.output;
  if (file.empty() && !words.json && *style == probe::exit_style::plain) file = "topocoll-preflight.json";
  const std::string document = words.json || !file.empty() ? io::to_text(probe::to_json(r)) : std::string();
  std::string written_to;
  if (!file.empty()) {
    if (const auto written = io::write_file(file, document); !written)
      lost(written.error());
    else
      written_to = file;
  }
  if (!words.metrics.empty())
    if (const auto written =
            io::write_file(words.metrics, probe::to_prometheus(r, static_cast<double>(std::time(nullptr))));
        !written)
      lost(written.error());

  if (words.json) {
    out(document);
    return code;
  }
  if (!written_to.empty() && *style == probe::exit_style::plain) out("report: " + written_to + "\n");
  if (const std::string line = probe::status_line(r, *style); !line.empty()) out(line + "\n");
  return code;
}

}}}  // namespace topocoll::v0::app
