// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `topocoll plan` answers: the plan is chosen, explained, compared and written.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/app/detail/plan_change_report.hpp>
#include <topocoll/app/detail/plan_input.hpp>
#include <topocoll/app/plan_search.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/busbw_chart.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/explain.hpp>
#include <topocoll/plan/overlay_svg.hpp>
#include <topocoll/plan/pareto.hpp>
#include <topocoll/plan/pareto_codec.hpp>
#include <topocoll/plan/plan_origin.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// A file that is written once everything is known.
struct plan_file {
  std::string path, text;
};
/// Writes all or says which one could not be written.
template <class = void>
[[nodiscard]] result<void> write_all(const std::vector<plan_file>& files) {
  for (const plan_file& f : files)
    if (const auto written = io::write_file(f.path, f.text); !written) return written.error();
  return {};
}

struct plan_reply {
  std::string text;
  int code = exit_ok;
};

/// Everything of the command that can fail for a reason other than that an option is unknown.
template <class = void>
[[nodiscard]] result<plan_reply> plan_answer(const plan_options& o) {
  std::optional<size_span> sizes;
  if (!o.sizes.empty()) {
    const auto wished = sizes_of(o.sizes);
    if (!wished) return wished.error();
    sizes = *wished;
    if (!o.chart.empty() && sizes->first == sizes->last)
      return fail(errc::invalid_argument, "a chart of one size has nothing to show",
                  "write two sizes, the smaller first: --sizes 1K:1G");
  }
  if (!(o.gain >= 0 && o.gain <= 100))
    return fail(errc::invalid_argument, "the gain that is asked for must be from 0 to 100 percent",
                "write a number such as --gain 5");
  auto asked = problem_of(o);
  if (!asked) return std::move(asked).error();
  const auto g = read_topology(o.input);
  if (!g) return g.error();
  if (const auto placed = place(*asked, o.placement, *g); !placed) return placed.error();
  const plan::problem& p = *asked;
  std::optional<previous_plan> before;
  if (!o.previous.empty()) {
    auto read = read_previous(o.previous, p);
    if (!read) return std::move(read).error();
    before = std::move(*read);
  }

  const auto model = prices_of(o.model, g->at(p.ranks[0]).kind == topo::node_kind::gpu);
  if (!model) return model.error();
  plan_simulator prices(*g, model->links);
  plan::choose_options options;
  options.only = o.algorithm;
  auto made = choose_plan(prices, p, options);
  if (!made) return made.error();
  constexpr std::uint32_t quick = 4096;  // ranks for which a map of sizes is drawn without being asked
  if (!sizes && o.pareto)
    sizes = size_span{{8}, {std::uint64_t{4} << 30U}};
  else if (!sizes && p.rank_count() > 1 && (!o.chart.empty() || (o.explains() && !o.brief && p.rank_count() <= quick)))
    sizes = size_span{{std::uint64_t{1} << 10U}, {std::uint64_t{1} << 30U}};
  plan::size_map map;
  std::optional<plan::pareto_list> list;
  if (o.pareto) {
    auto found = pareto_plans(prices, p, made->limit, sizes->first, sizes->last, options);
    if (!found) return found.error();
    list = std::move(*found);
    map = list->map;
  } else if (sizes) {
    auto found = winners_by_size(prices, p, made->limit, sizes->first, sizes->last, options);
    if (!found) return found.error();
    map = std::move(*found);
  }
  std::optional<plan::explanation> why;
  if (o.json || o.explains() || !o.chart.empty()) {
    plan::explain_options how;
    how.constants = model->library;
    auto explained = plan::explain(prices, p, *made, std::move(map), how);
    if (!explained) return explained.error();
    why = std::move(*explained);
  }
  std::optional<plan_change_report> change;
  if (before) {
    auto compared = report_change(prices, p, *made, o.previous, std::move(*before), o.gain / 100, options.proof);
    if (!compared) return compared.error();
    change = std::move(*compared);
  }
  // Everything is made before anything is written.
  std::vector<plan_file> files;
  if (!o.output.empty()) {
    const plan::plan_origin origin = plan::origin_of(p, made->best(), made->price().time);
    files.push_back({o.output, plan::to_json(made->best(), origin)});
  }
  if (!o.svg.empty()) files.push_back({o.svg, plan::overlay_svg(p, made->best(), made->price(), prices.cost())});
  if (!o.chart.empty()) {
    const auto chart = plan::busbw_chart_of(p, *why, model->library);
    if (!chart) return chart.error();
    files.push_back({o.chart, plan::to_svg(*chart)});
  }
  plan_reply reply;
  if (change && change->replaces()) reply.code = exit_problem;
  if (o.json) {
    io::json all = plan::to_json_value(*why);
    if (change) all["previous"] = to_json_value(*change, p);
    if (list) all["pareto"] = plan::to_json_value(*list);
    reply.text = io::to_text(all);
  } else {
    const auto add = [&](const std::string& block) { reply.text += (reply.text.empty() ? "" : "\n") + block; };
    if (change) add(to_text(*change, p, *made));
    if (o.explains()) add(plan::to_text(*why, o.brief));
    if (list) add(plan::to_text(*list));
  }
  if (const auto written = write_all(files); !written) return written.error();
  return reply;
}

}}}}  // namespace topocoll::v0::app::detail
