// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line of `topocoll bench`: the options of nccl-tests that make sense for ranks on host memory.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/bench/nccl_style.hpp>
#include <topocoll/bench/row.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/plan/collective.hpp>
#include <topocoll/plan/schedule.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// The options as they were written.
struct bench_words {
  std::string collective, first = "32M", last = "32M", step = "1M", type = "float", op = "sum", algorithm, file;
  std::uint64_t factor = 0, iterations = 20, warm_up = 1, checked = 1, threads = 1, gpus = 0;
  std::uint32_t root = 0, average = 1, ranks = 0, registered = 0;
  double timeout = 0;
  bool json = false, bound = false;
};

template <class = void>
void declare(CLI::App& cli, bench_words& w) {
  cli.add_option("collective", w.collective,
                 "all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather or scatter")
      ->required();
  cli.add_option("-b,--minbytes", w.first, "first size; K, M, G are binary")->capture_default_str();
  cli.add_option("-e,--maxbytes", w.last, "last size")->capture_default_str();
  cli.add_option("-f,--stepfactor", w.factor, "multiply the size by this from line to line");
  cli.add_option("-i,--stepbytes", w.step, "without -f: add this from line to line")->capture_default_str();
  cli.add_option("-n,--iters", w.iterations, "timed calls")->capture_default_str();
  cli.add_option("-w,--warmup_iters", w.warm_up, "calls before the timed ones")->capture_default_str();
  cli.add_option("-c,--check", w.checked, "calls whose result is checked element by element; 0 checks nothing")
      ->capture_default_str();
  cli.add_option("-o,--op", w.op, "sum, prod, min, max, avg or all")->capture_default_str();
  cli.add_option("-d,--datatype", w.type,
                 "int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2 or all")
      ->capture_default_str();
  cli.add_option("-r,--root", w.root, "root of broadcast, reduce, gather and scatter")->capture_default_str();
  cli.add_option("-a,--average", w.average, "time that is shown: 0 rank 0, 1 mean, 2 min, 3 max over ranks")
      ->capture_default_str();
  cli.add_option("-T,--timeout", w.timeout, "seconds for one size; without it only a single call is limited, to 60 s");
  cli.add_option("-J,--output_file", w.file,
                 "write JSON there as well; an existing file stays, .1, .2 is added to the name");
  cli.add_option("-t,--nthreads", w.threads, "threads per process; only 1")->capture_default_str();
  cli.add_option("-g,--ngpus", w.gpus, "GPUs per thread; ranks work on host memory, so only 0 or 1, without effect");
  cli.add_option("--ranks", w.ranks,
                 "processes to start on this host; default one per core, at least 2, at most 8; not under a launcher");
  cli.add_option("--algorithm", w.algorithm,
                 "ring, recursive, doubling, tree, double_tree, direct, one_shot, bruck or pat; default by size");
  cli.add_option("-R,--local_register", w.registered,
                 "1: buffers from memory that all ranks of the host see; 0: private memory")
      ->capture_default_str();
  cli.add_flag("--bound", w.bound, "add columns: share of what the measured memory bandwidth allows");
  cli.add_flag("--json", w.json, "JSON on standard output instead of the table");
}

/// One configuration per type and operation.
struct bench_request {
  std::vector<bench::sweep_config> sweeps;
  std::optional<std::uint32_t> ranks;
  std::string file;
  bool json = false, bound = false;
};

template <class = void>
[[nodiscard]] result<bench_request> read_request(const bench_words& w, bool first_given, bool last_given,
                                                 bool factor_given) {
  const auto bad = [](std::string what, std::string next = {}) {
    return fail(errc::invalid_argument, std::move(what), std::move(next));
  };
  bench::sweep_config c;
  const auto kind = parse_collective(w.collective);
  if (!kind || *kind == collective_kind::all_to_all)
    return bad("there is no benchmark '" + w.collective + "'",
               "name one of all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter");
  c.collective = *kind;
  const std::pair<const std::string*, bytes*> amounts[] = {
      {&w.first, &c.range.first}, {&w.last, &c.range.last}, {&w.step, &c.range.step}};
  for (const auto& [text, amount] : amounts) {
    auto read = parse_bytes(*text);
    if (!read) return std::move(read).error();
    *amount = *read;
  }
  if (first_given && !last_given) c.range.last = std::max(c.range.first, c.range.last);
  if (!first_given && last_given) c.range.first = std::min(c.range.first, c.range.last);
  if (c.range.first > c.range.last)
    return bad("the first size, " + to_string(c.range.first) + ", is above the last, " + to_string(c.range.last));
  if (factor_given) {
    if (w.factor < 2) return bad("the factor between sizes is " + std::to_string(w.factor), "give -f 2 or more");
    c.range.factor = w.factor;
  } else if (c.range.step.value == 0) {
    return bad("the step between sizes is 0 bytes", "give -i a size, or -f a factor");
  }
  if (w.iterations == 0) return bad("0 timed calls give no time", "give -n 1 or more");
  if (w.average > 3) return bad("-a " + std::to_string(w.average) + " is none of 0, 1, 2, 3");
  if (w.threads != 1)
    return bad("-t " + std::to_string(w.threads) + ": a rank here is a process with one thread",
               "use --ranks for more ranks");
  if (w.gpus > 1)
    return bad("-g " + std::to_string(w.gpus) + ": ranks work on host memory here, not on GPUs",
               "use --ranks for more ranks");
  if (w.timeout < 0 || !(w.timeout < 1e9)) return bad("-T takes a number of seconds");
  if (w.timeout > 0) c.timeout = seconds{w.timeout};
  c.iterations = w.iterations;
  c.warm_up = w.warm_up;
  c.checked = w.checked;
  c.average = static_cast<bench::averaging>(w.average);
  c.root = {w.root};
  if (w.registered > 1) return bad("-R " + std::to_string(w.registered) + " is none of 0, 1");
  c.registered = w.registered == 1;
  c.algorithm = w.algorithm;
  if (!w.algorithm.empty()) {
    const auto how = plan::parse_algorithm(w.algorithm);
    if (!how)
      return bad("there is no algorithm '" + w.algorithm + "'",
                 "name one of ring, recursive, doubling, tree, double_tree, direct, one_shot, bruck, pat");
    if (const auto made = plan::flat_schedule(c.collective, 2, {0}, *how); !made) return made.error();
  }

  std::vector<dtype> types;
  std::vector<reduce_op> ops;
  if (w.type == "all")
    types.assign(std::begin(all_dtypes), std::end(all_dtypes));
  else if (const auto one = parse_dtype(w.type))
    types.push_back(*one);
  else
    return bad(
        "there is no data type '" + w.type + "'",
        "name one of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2, all");
  if (w.op == "all" && reduces(c.collective))
    for (int o = 0; o <= static_cast<int>(reduce_op::avg); ++o) ops.push_back(static_cast<reduce_op>(o));
  else if (w.op == "all")
    ops.push_back(reduce_op::sum);
  else if (const auto one = parse_reduce_op(w.op))
    ops.push_back(*one);
  else
    return bad("there is no operation '" + w.op + "'", "name one of sum, prod, min, max, avg, all");

  bench_request request;
  for (const dtype type : types)
    for (const reduce_op op : ops) {
      c.type = type;
      c.op = op;
      request.sweeps.push_back(c);
    }
  if (w.ranks > 0) request.ranks = w.ranks;
  if (w.ranks > 4096)
    return bad(std::to_string(w.ranks) + " ranks are more than one host can hold", "--ranks takes at most 4096");
  request.file = w.file;
  request.json = w.json;
  request.bound = w.bound;
  return request;
}

}}}}  // namespace topocoll::v0::app::detail
