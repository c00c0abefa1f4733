// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `topocoll export` is asked to write: options, topology, ranks and plan.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/app/detail/plan_input.hpp>
#include <topocoll/app/plan_search.hpp>
#include <topocoll/app/rank_placement.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/choose.hpp>
#include <topocoll/plan/codec.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

struct export_options {
  topology_input input;
  rank_placement placement;
  std::string format, plan, output, node, model;
  std::string collective = "all_reduce", size = "64M", sizes = "8:4G", algorithm;
  std::string style = "export", graph_file, topology_file, tuner_file;
  std::string reader = "executor", protocol = "Simple", smallest, largest;
  std::uint32_t root = 0, cross_nic = 2, channels = 32, blocks = 108;
  std::optional<std::uint32_t> most_channels, ranks_per_host;
  bool one_node = false, nvls = false, out_of_place = false, one_root = false, json = false;
};

/// What is exported, put together: a topology if one was named, the ranks on it, and the plan.
struct export_subject {
  struct priced {
    plan::schedule schedule;
    std::string name;
    seconds time{};
  };
  std::optional<topo::graph> graph;
  plan::problem problem;
  std::optional<plan::schedule> schedule;
  std::vector<priced> others;  ///< that may be taken when the format cannot hold `schedule`, the cheapest first
};

/// Plans beside the cheapest: those of other planners, and all with fewer slices, which take fewer thread blocks.
template <class = void>
[[nodiscard]] std::vector<export_subject::priced> others_of(const plan::choice& made) {
  std::vector<export_subject::priced> others;
  for (const plan::candidate& c : made.candidates) {
    if (!c.plan || !c.price || c.why_not) continue;
    others.push_back({*c.plan, c.name, c.price->time});
    if (seq::any_of(c.plan->stages, [](const plan::stage& s) { return s.how == plan::algorithm::double_tree; }))
      continue;
    for (std::uint32_t slices = c.plan->slices / 2; slices >= 1; slices /= 2) {
      plan::simulation price = *c.price;
      price.cut_into(slices);
      others.push_back({*c.plan, c.name, price.time});
      others.back().schedule.slices = slices;
    }
  }
  seq::sort_by(others, [](const export_subject::priced& p) { return p.time.value; });
  return others;
}

/// What is said with a file: to people by lines, to programs by --json.
struct export_report {
  std::string notes;
  io::json proof = io::json::object();  // clang 14 leaks it where a list in braces is assigned: assign an io::json
  std::vector<finding> findings;
};

template <class = void>
[[nodiscard]] result<collective_kind> collective_named(const std::string& word) {
  if (const auto kind = parse_collective(word)) return *kind;
  return fail(errc::invalid_argument, "'" + word + "' is not a collective",
              "take one of all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter");
}

/// Reads the topology and, if it is asked for, the plan, or chooses one.
template <class = void>
[[nodiscard]] result<void> gather_subject(const export_options& o, bool wants_graph, bool wants_plan,
                                          export_subject& subject) {
  const bool named = !o.input.from.empty() || !o.input.fabric.empty();
  if (wants_graph || named || o.plan.empty()) {
    auto g = read_topology(o.input);
    if (!g) return std::move(g).error();
    subject.graph = std::move(*g);
    subject.problem.graph = &*subject.graph;
    const auto kind = collective_named(o.collective);
    if (!kind) return kind.error();
    const auto size = parse_bytes(o.size);
    if (!size) return size.error();
    subject.problem.collective = *kind;
    subject.problem.size = *size;
    subject.problem.root = rank_id{o.root};
    auto ranks = place_ranks(*subject.graph, o.placement);
    if (!ranks && (wants_plan || !o.plan.empty())) return std::move(ranks).error();
    if (ranks) subject.problem.ranks = std::move(*ranks);
  }
  if (!o.plan.empty()) {
    const auto text = io::read_file(o.plan);
    if (!text) return text.error();
    auto schedule = plan::schedule_from_json(*text, o.plan);
    if (!schedule) return std::move(schedule).error();
    if (subject.graph && subject.problem.rank_count() != schedule->ranks)
      return fail(
          errc::mismatch,
          o.plan + " is for " + std::to_string(schedule->ranks) + " ranks, the topology has " +
              std::to_string(subject.problem.rank_count()) + " places",
          "say --ranks " + std::to_string(schedule->ranks) + ", or take the topology that the plan was made for");
    if (wants_plan &&
        seq::any_of(schedule->stages, [](const plan::stage& s) { return s.how == plan::algorithm::in_switch; }))
      return fail(errc::unsupported, o.plan + " leaves sums and copies to NVSwitches, which the format cannot say here",
                  "make the plan without --nvls");
    subject.problem.collective = schedule->collective;
    subject.problem.root = schedule->root;
    subject.schedule = std::move(*schedule);
  } else if (wants_plan) {
    if (subject.problem.root.value >= subject.problem.ranks.size())
      return fail(errc::invalid_argument,
                  "the root is rank " + std::to_string(o.root) + ", but there are only " +
                      std::to_string(subject.problem.ranks.size()) + " ranks",
                  "take a --root below that, or more --ranks");
    const bool on_gpus = subject.graph->at(subject.problem.ranks[0]).kind == topo::node_kind::gpu;
    const auto links = prices_of(o.model, on_gpus);
    if (!links) return links.error();
    plan_simulator prices(*subject.graph, links->links);
    plan::choose_options options;
    options.only = o.algorithm;
    auto made = choose_plan(prices, subject.problem, options);
    if (!made) return std::move(made).error();
    subject.schedule = made->best();
    if (o.algorithm.empty()) subject.others = others_of(*made);
  }
  return {};
}

template <class = void>
[[nodiscard]] std::string told(const std::vector<finding>& findings) {
  std::string text;
  for (const finding& f : findings)
    text += "topocoll: " + (f.where.empty() ? std::string() : f.where + ": ") + f.what +
            (f.evidence.empty() ? "" : " (" + f.evidence + ")") + (f.next_step.empty() ? "" : "; " + f.next_step) +
            '\n';
  return text;
}

template <class = void>
[[nodiscard]] std::string export_json(const export_options& o, const std::string& text, const export_report& report) {
  io::json findings = io::json::array();
  for (const finding& f : report.findings)
    findings.push_back({{"level", to_string(f.level)}, {"where", f.where}, {"what", f.what}, {"evidence", f.evidence}});
  io::json answer{
      {"schema", "topocoll.export/1"}, {"format", o.format}, {"proof", report.proof}, {"findings", findings}};
  if (o.output.empty())
    answer["text"] = text;
  else
    answer["output"] = o.output;
  return io::to_text(answer);
}

template <class = void>
[[nodiscard]] result<bytes> size_or_none(const std::string& word) {
  return word.empty() ? result<bytes>(bytes{}) : parse_bytes(word);
}

}}}}  // namespace topocoll::v0::app::detail
