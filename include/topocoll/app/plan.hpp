// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll plan`: chooses a plan for a collective, says why, and writes it.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topo.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/busbw_chart.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/model_codec.hpp>
#include <topocoll/plan/overlay_svg.hpp>
#include <topocoll/plan/planners.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Where the ranks of a plan sit.
struct rank_placement {
  std::optional<std::uint32_t> ranks;  ///< how many; all GPUs, or four processes where there is none
  std::string order;  ///< packed, scattered, round_robin, random:SEED; empty: as the source says, else packed
};

/// Nodes of the ranks: GPUs in the wished order, or, on a machine without GPUs, NUMA domains, each with its share of the
/// processes.
/// @return `invalid_argument` for an unknown order or more ranks than GPUs; `not_found` when there is nothing to sit on
[[nodiscard]] result<std::vector<node_id>> place_ranks(const topo::graph& g, const rank_placement& wish);

/// Runs `topocoll plan`. The answer goes to `out` in one piece, complaints to `err`.
/// @return `exit_ok`; `exit_unable` with one sentence on `err` and nothing on `out`
[[nodiscard]] int run_plan(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

struct plan_options {
  topology_input input;
  rank_placement placement;
  std::string collective = "all_reduce", size = "64M", sizes, algorithm, output, svg, chart, model;
  std::uint32_t root = 0;
  bool json = false, brief = false, explain = false;
};

/// "packed", "random:7": the order that a word names.
[[nodiscard]] inline result<rank_order> order_of(const std::string& word) {
  using kind = rank_order::kind_t;
  if (word == "packed") return rank_order{kind::packed, 0};
  if (word == "scattered") return rank_order{kind::scattered, 0};
  if (word == "round_robin") return rank_order{kind::round_robin, 0};
  constexpr std::string_view random = "random:";
  if (word.starts_with(random) && word.size() > random.size() && word.size() < random.size() + 19 &&
      word.find_first_not_of("0123456789", random.size()) == std::string::npos)
    return rank_order{kind::shuffled, std::stoull(word.substr(random.size()))};
  return fail(errc::invalid_argument, "'" + word + "' is not an order of ranks",
              "write packed, scattered, round_robin or random:SEED with a number");
}

/// First and last of the sizes that are compared.
struct size_span {
  bytes first{}, last{};
};
/// "1K:1G", "64M": the sizes that a word names.
[[nodiscard]] inline result<size_span> sizes_of(const std::string& word) {
  const auto colon = word.find(':');
  const auto first = parse_bytes(word.substr(0, colon));
  if (!first) return first.error();
  const auto last = colon == std::string::npos ? first : parse_bytes(word.substr(colon + 1));
  if (!last) return last.error();
  if (first->value == 0 || *first > *last)
    return fail(errc::invalid_argument, "'" + word + "' names no sizes",
                "write the smaller size first, above 0: 1K:1G");
  return size_span{*first, *last};
}

/// Prices of links, and of GPU libraries, as a model file says, or as they are built in.
struct plan_prices {
  plan::alpha_beta links;
  plan::model_constants library{};
};
[[nodiscard]] inline result<plan_prices> prices_of(const std::string& file, bool on_gpus) {
  if (file.empty()) return plan_prices{on_gpus ? plan::alpha_beta{} : plan::alpha_beta::host()};
  const auto text = io::read_file(file);
  if (!text) return text.error();
  const auto constants = plan::model_from_json(*text, file);
  if (!constants) return constants.error();
  const auto document = io::parse_json(*text, file);
  if (!document) return document.error();
  if (io::find_field(*document, on_gpus ? "constants" : "host") == nullptr)
    return fail(errc::invalid_argument,
                file + (on_gpus ? " has no constants of GPU libraries, but the ranks sit on GPUs"
                                : " has no figures of processes of one host, but the ranks sit on no GPUs"));
  if (on_gpus) return plan_prices{plan::alpha_beta::from(*constants), *constants};
  const auto host = plan::host_model_from_json(*text, file);
  if (!host) return host.error();
  return plan_prices{*host, *constants};
}

/// A file that is written once everything is known.
struct plan_file {
  std::string path, text;
};
/// Writes all or says which one could not be written.
[[nodiscard]] inline result<void> write_all(const std::vector<plan_file>& files) {
  for (const plan_file& f : files)
    if (const auto written = io::write_file(f.path, f.text); !written) return written.error();
  return {};
}

/// Chooses, explains and writes as text; everything of the command that can fail for a reason other than its options.
[[nodiscard]] inline result<std::string> plan_answer(const plan_options& o) {
  const auto collective = parse_collective(o.collective);
  if (!collective)
    return fail(errc::invalid_argument, "'" + o.collective + "' is not a collective",
                "take one of all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter");
  const auto size = parse_bytes(o.size);
  if (!size) return size.error();
  std::optional<size_span> sizes;
  if (!o.sizes.empty()) {
    const auto wished = sizes_of(o.sizes);
    if (!wished) return wished.error();
    sizes = *wished;
    if (!o.chart.empty() && sizes->first == sizes->last)
      return fail(errc::invalid_argument, "a chart of one size has nothing to show",
                  "write two sizes, the smaller first: --sizes 1K:1G");
  }

  const auto g = read_topology(o.input);
  if (!g) return g.error();
  auto ranks = place_ranks(*g, o.placement);
  if (!ranks) return ranks.error();
  plan::problem p;
  p.graph = &*g;
  p.collective = *collective;
  p.size = *size;
  p.ranks = std::move(*ranks);
  p.root = rank_id{o.root};
  if (p.root.value >= p.ranks.size())
    return fail(errc::invalid_argument, "the root is rank " + std::to_string(o.root) + ", but there are only " +
                                            std::to_string(p.ranks.size()) + " ranks");

  const bool on_gpus = g->at(p.ranks[0]).kind == topo::node_kind::gpu;
  const auto model = prices_of(o.model, on_gpus);
  if (!model) return model.error();
  plan::simulator<plan::alpha_beta> prices(*g, model->links);
  plan::choose_options options;
  options.only = o.algorithm;
  return plan::with_planners_for(p.rank_count(), [&](const auto&... planners) -> result<std::string> {
    auto made = plan::choose(prices, p, options, planners...);
    if (!made) return made.error();
    constexpr std::uint32_t quick = 4096;  // ranks for which a map of sizes is drawn without being asked
    if (!sizes && p.rank_count() > 1 && (!o.chart.empty() || (!o.json && !o.brief && p.rank_count() <= quick)))
      sizes = size_span{{std::uint64_t{1} << 10U}, {std::uint64_t{1} << 30U}};
    plan::size_map map;
    if (sizes) {
      auto found = plan::winners(prices, p, made->limit, sizes->first, sizes->last, options, planners...);
      if (!found) return found.error();
      map = std::move(*found);
    }
    plan::explain_options how;
    how.constants = model->library;
    const auto why = plan::explain(prices, p, *made, std::move(map), how);
    if (!why) return why.error();
    // Everything is made before anything is written.
    std::vector<plan_file> files;
    if (!o.output.empty()) files.push_back({o.output, plan::to_json(made->best())});
    if (!o.svg.empty()) files.push_back({o.svg, plan::overlay_svg(p, made->best(), made->price(), prices.cost())});
    if (!o.chart.empty()) {
      const auto chart = plan::busbw_chart_of(p, *why, model->library);
      if (!chart) return chart.error();
      files.push_back({o.chart, plan::to_svg(*chart)});
    }
    std::string text = o.json ? plan::to_json(*why) : plan::to_text(*why, o.brief);
    if (const auto written = write_all(files); !written) return written.error();
    return text;
  });
}

}  // namespace detail

inline result<std::vector<node_id>> place_ranks(const topo::graph& g, const rank_placement& wish) {
  if (wish.ranks && *wish.ranks == 0) return fail(errc::invalid_argument, "a plan needs at least one rank");
  std::optional<rank_order> order;
  if (!wish.order.empty()) {
    const auto named = detail::order_of(wish.order);
    if (!named) return named.error();
    order = *named;
  }
  std::vector<node_id> gpus = order ? ranks_in_order(g, *order) : ranks_in_order(g);
  if (!gpus.empty()) {
    if (wish.ranks && *wish.ranks > gpus.size())
      return fail(errc::invalid_argument, std::to_string(*wish.ranks) + " ranks were asked for, but there are only " +
                                              std::to_string(gpus.size()) + " GPUs");
    if (wish.ranks) gpus.resize(*wish.ranks);
    return gpus;
  }
  const std::vector<node_id> domains = g.all(topo::node_kind::cpu);
  if (domains.empty())
    return fail(errc::not_found, "the topology has neither GPUs nor NUMA domains that ranks could sit on");
  const std::uint64_t n = wish.ranks.value_or(4);
  std::vector<node_id> seats;
  for (std::uint64_t r = 0; r < n; ++r) seats.push_back(domains[r * domains.size() / n]);
  return seats;
}

inline int run_plan(std::span<const std::string_view> args, sink out, sink err) {
  detail::plan_options o;
  CLI::App cli("Chooses a plan for a collective on a topology, proves it, and explains why it is the best.", "plan");
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
  cli.add_option("--sizes", o.sizes,
                 "sizes for which the cheapest plans are told; 1K:1G when the answer is text or a chart")
      ->type_name("FIRST:LAST");
  cli.add_option("--ranks", o.placement.ranks, "number of ranks: the first GPUs; without GPUs, processes (default 4)")
      ->type_name("N");
  cli.add_option("--order", o.placement.order,
                 "how ranks lie on the GPUs: packed, scattered (hosts in turn from each pod), round_robin (over "
                 "hosts), random:SEED; "
                 "by default as the topology says, else packed")
      ->type_name("ORDER");
  cli.add_option("--root", o.root, "root of broadcast and reduce (default 0)")->type_name("RANK");
  cli.add_option("--algorithm", o.algorithm,
                 "take this planner's plan, whatever it costs: hierarchical, ring, ring-hardware, tree, …")
      ->type_name("NAME");
  auto* explain = cli.add_flag("--explain", o.explain, "why, with loads and alternatives, as text (default)");
  auto* brief = cli.add_flag("--brief", o.brief, "the plan, its price, the bound and the bottleneck only");
  auto* json = cli.add_flag("--json", o.json, "the explanation as JSON, schema topocoll.explanation/1");
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
  out(*answer);
  return exit_ok;
}

}}}  // namespace topocoll::v0::app
