// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `topocoll export` writes for each format.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/app/detail/export_subject.hpp>
#include <topocoll/integrate/msccl_xml.hpp>
#include <topocoll/integrate/mscclpp_json.hpp>
#include <topocoll/integrate/nccl_environment.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/integrate/nccl_tuner_csv.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/plan/levels.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {
/// What `make` makes of the plan; of the next in price where the format cannot hold it, which a finding tells then.
template <class Make>
[[nodiscard]] auto first_that_fits(export_subject& subject, export_report& report, const Make& make) {
  auto made = make(*subject.schedule);
  if (made || made.error().code != errc::unsupported) return made;
  const std::string why = made.error().what;
  std::size_t tried = 0;
  for (const export_subject::priced& other : subject.others) {
    if (other.schedule == *subject.schedule) continue;
    if (++tried > 12) break;
    auto instead = make(other.schedule);
    if (!instead) continue;
    const std::string slices =
        std::to_string(other.schedule.slices) + (other.schedule.slices == 1 ? " slice" : " slices");
    report.findings.push_back({severity::note,
                               {},
                               "the format cannot hold the cheapest plan; this one is '" + other.name + "' in " +
                                   slices + ", by price " + to_string(other.time),
                               why,
                               {},
                               1});
    subject.schedule = other.schedule;
    return instead;
  }
  return made;
}

/// The text of --format msccl-xml, read back and proved.
template <class = void>
[[nodiscard]] result<std::string> msccl_answer(const export_options& o, export_subject& subject,
                                               export_report& report) {
  if (o.reader != "executor" && o.reader != "fork")
    return fail(errc::invalid_argument, "'" + o.reader + "' does not read MSCCL's XML",
                "take executor (msccl-executor-nccl and RCCL) or fork (Microsoft's msccl)");
  const auto smallest = size_or_none(o.smallest), largest = size_or_none(o.largest);
  if (!smallest) return smallest.error();
  if (!largest) return largest.error();
  msccl_options options;
  options.reader = o.reader == "fork" ? msccl_reader::fork : msccl_reader::executor;
  options.protocol = o.protocol;
  options.in_place = !o.out_of_place;
  options.one_root = o.one_root;
  options.min_size = *smallest;
  options.max_size = *largest;
  const auto made =
      first_that_fits(subject, report, [&](const plan::schedule& s) { return msccl_plan_of(s, options); });
  if (!made) return made.error();
  std::string text = to_msccl_xml(*made);
  const auto root = io::parse_xml(text, "the plan");
  if (!root) return root.error();
  msccl_check_options check;
  check.root = subject.schedule->root.value;
  const auto proof = check_msccl_xml(*root, "the plan", options.reader, check);
  if (!proof) return proof.error();
  report.proof = io::json{{"steps", proof->steps},
                          {"messages", proof->messages},
                          {"channels", proof->channels},
                          {"most_blocks", proof->most_blocks}};
  report.notes += "proved for all orders: " + std::to_string(proof->steps) + " steps, " +
                  std::to_string(proof->messages) + " messages on " + std::to_string(proof->channels) +
                  " channels; at most " + std::to_string(proof->most_blocks) +
                  " thread blocks of a GPU, which must all run at once\n";
  return text;
}

template <class = void>
[[nodiscard]] result<std::string> mscclpp_answer(const export_options& o, export_subject& subject,
                                                 export_report& report) {
  const auto smallest = size_or_none(o.smallest), largest = size_or_none(o.largest);
  if (!smallest) return smallest.error();
  if (!largest) return largest.error();
  mscclpp_options options;
  options.in_place = !o.out_of_place;
  options.one_root = o.one_root;
  options.most_blocks = o.blocks;
  options.min_size = *smallest;
  options.max_size = *largest;
  if (subject.graph) {
    auto domains = memory_domains(subject.problem);
    if (!domains) return std::move(domains).error();
    options.domain = std::move(*domains);
  } else if (o.ranks_per_host) {
    if (*o.ranks_per_host == 0) return fail(errc::invalid_argument, "hosts have at least one rank each");
    for (std::uint32_t r = 0; r < subject.schedule->ranks; ++r) options.domain.push_back(r / *o.ranks_per_host);
  } else {
    report.findings.push_back({severity::note,
                               {},
                               "all ranks are taken to reach each other's memory",
                               {},
                               "say --ranks-per-host, or name the topology",
                               1});
  }
  const auto made =
      first_that_fits(subject, report, [&](const plan::schedule& s) { return mscclpp_plan_of(s, options); });
  if (!made) return made.error();
  std::string text = to_mscclpp_json(*made);
  const auto back = read_mscclpp_json(text, "the plan");
  if (!back) return back.error();
  mscclpp_check_options check;
  check.root = subject.schedule->root.value;
  check.most_blocks = o.blocks;
  const auto proof = check_mscclpp_plan(*back, check);
  if (!proof) return proof.error();
  report.proof = io::json{{"operations", proof->operations},
                          {"messages", proof->messages},
                          {"most_blocks", proof->most_blocks},
                          {"max_bytes", made->max_bytes},
                          {"divisible_by", std::uint64_t{subject.schedule->chunks()} * 16}};
  report.notes += "proved for all orders: " + std::to_string(proof->operations) + " operations, " +
                  std::to_string(proof->messages) + " messages; at most " + std::to_string(proof->most_blocks) +
                  " thread blocks of a GPU. For sums of up to " + to_string(bytes{made->max_bytes}) +
                  ", divisible by " + std::to_string(subject.schedule->chunks()) + " x 16 bytes\n";
  return text;
}

template <class = void>
[[nodiscard]] result<nccl_graph_file> graphs_for(const export_options& o, const export_subject& subject) {
  nccl_graph_options options;
  options.host = o.node;
  options.between_nodes = !o.one_node;
  options.nvls = o.nvls;
  options.cross_nic = o.cross_nic;
  options.most_channels = o.channels;
  return subject.schedule ? nccl_graphs_of(subject.problem, *subject.schedule, options)
                          : nccl_graphs_of(*subject.graph, options);
}

template <class = void>
[[nodiscard]] result<std::string> graph_answer(const export_options& o, const export_subject& subject,
                                               export_report& report) {
  const auto made = graphs_for(o, subject);
  if (!made) return made.error();
  std::string text = to_nccl_graph_xml(*made);
  const auto root = io::parse_xml(text, "the graph file");
  if (!root) return root.error();
  const auto back = read_nccl_graph_xml(*root, "the graph file");
  if (!back) return back.error();
  const auto proof = check_nccl_graphs(*back, *subject.graph, o.node);
  if (!proof) return proof.error();
  report.findings = made->findings;
  report.proof = io::json{{"channels", proof->channels},
                          {"ring_bytes_per_second", proof->ring.value},
                          {"tree_bytes_per_second", proof->tree.value}};
  report.notes += "ring: " + std::to_string(proof->channels) + " channels, " + to_string(proof->ring) +
                  " together; tree " + to_string(proof->tree) + "; all links within NCCL's figures for them\n";
  return text;
}

/// Cheapest of the plans that NCCL has something like, by size.
template <class = void>
[[nodiscard]] result<std::vector<plan::selection>> nccl_map(const export_options& o, const plan::problem& p) {
  const auto sizes = sizes_of(o.sizes);
  if (!sizes) return sizes.error();
  if (p.rank_count() < 2) return fail(errc::invalid_argument, "there is nothing to choose for one rank");
  const auto links = prices_of(o.model, true);
  if (!links) return links.error();
  plan::simulator<plan::alpha_beta> prices(*p.graph, links->links);
  const auto limit = plan::lower_bound(p, prices.cost());
  if (!limit) return limit.error();
  const std::vector<bytes> all = plan::doubling_sizes(sizes->first, sizes->last);
  return plan::crossovers(prices, p, *limit, all, plan::choose_options{},
                          plan::ring{.order = plan::ring_order::hardware}, plan::binary_tree{});
}

template <class = void>
[[nodiscard]] result<std::string> tuner_answer(const export_options& o, const export_subject& subject,
                                               export_report& report) {
  const auto map = nccl_map(o, subject.problem);
  if (!map) return map.error();
  const auto at = plan::levels_of(subject.problem);
  if (!at) return at.error();
  // The host's rings tell NCCL's model how fast its channels are.
  export_options ring = o;
  ring.one_node = at->boxes == 1;
  ring.node = subject.graph->at(subject.problem.ranks[0]).host;
  export_subject without_plan;
  without_plan.graph = subject.graph;
  plan::nccl_machine machine;
  machine.ranks = subject.problem.rank_count();
  machine.nodes = at->boxes;
  const auto graphs = graphs_for(ring, without_plan);
  std::uint32_t sm = 0;
  for (const auto& [name, value] : subject.graph->at(subject.problem.ranks[0]).facts)
    if (name == "sm")
      for (const char c : value)
        sm = c >= '0' && c <= '9' && sm < 1000 ? sm * 10 + static_cast<std::uint32_t>(c - '0') : sm;
  machine.arch = plan::nccl_arch_of(sm == 0 ? 80 : sm);
  if (graphs)
    for (const nccl_graph& g : graphs->graphs) {
      plan::nccl_channels c;
      c.count = static_cast<std::uint32_t>(g.channels.size());
      c.intra = g.speed_intra.value / 1e9;
      c.inter = g.speed_inter.value / 1e9;
      c.over_nvlink = g.type_intra <= topo::path_class::NVB;
      c.ll128 = c.over_nvlink && g.type_inter <= (sm >= 90 ? topo::path_class::PXN : topo::path_class::PXB);
      c.tree_pattern = g.pattern == nccl_pattern::tree;
      if (g.id == nccl_graph_id::ring) machine.ring = c;
      if (g.id == nccl_graph_id::tree) machine.tree = c;
    }
  else
    report.findings.push_back({severity::note,
                               ring.node,
                               "protocols are all simple, because the rings of a host could not be told",
                               graphs.error().what,
                               {},
                               1});
  std::vector<tuner_choice> choices;
  for (const plan::selection& s : *map) {
    const auto algorithm = tuner_algorithm_of(s.name);
    if (!algorithm) return fail(errc::bug, "the planner '" + s.name + "' has no name in NCCL");
    choices.push_back(
        {s.size, *algorithm, tuner_protocol_for(subject.problem.collective, *algorithm, machine, s.size)});
  }
  const auto rows = tuner_rows(subject.problem.collective, choices, at->boxes, subject.problem.rank_count());
  if (!rows) return rows.error();
  std::string text = to_tuner_csv(*rows);
  const auto back = read_tuner_csv(text, "the tuner file");
  if (!back) return back.error();
  report.proof = io::json{{"rows", back->size()}, {"nodes", at->boxes}, {"ranks", subject.problem.rank_count()}};
  report.notes += std::to_string(back->size()) + " rows for " + std::to_string(at->boxes) + " nodes with " +
                  std::to_string(subject.problem.rank_count()) +
                  " ranks: algorithms by price on this topology, protocols by NCCL's own model\n";
  return text;
}

template <class = void>
[[nodiscard]] result<std::string> environment_answer(const export_options& o, const export_subject& subject,
                                                     export_report& report) {
  nccl_environment_options options;
  options.host = o.node;
  options.graph_file = o.graph_file;
  options.topology_file = o.topology_file;
  options.tuner_file = o.tuner_file;
  options.most_channels = o.most_channels;
  std::optional<nccl_graph_file> graphs;
  if (!o.graph_file.empty()) {  // the one that the command writes for the same host
    auto made = graphs_for(o, subject);
    if (!made) return std::move(made).error();
    graphs = std::move(*made);
    options.graphs = &*graphs;
  }
  std::vector<plan::selection> map;
  if (subject.problem.rank_count() > 1 && subject.problem.rank_count() <= 4096 &&
      subject.graph->at(subject.problem.ranks[0]).kind == topo::node_kind::gpu)
    if (auto found = nccl_map(o, subject.problem)) map = std::move(*found);
  options.map = map;
  options.collective = subject.problem.collective;
  const auto made = nccl_environment_of(*subject.graph, options);
  if (!made) return made.error();
  report.findings = made->findings;
  if (o.style == "export") return to_export_lines(*made);
  if (o.style == "env") return to_env_file(*made);
  if (o.style == "mpirun") return to_mpirun_options(*made);
  if (o.style == "config") return to_config_notes(*made);
  return fail(errc::invalid_argument, "'" + o.style + "' is not a style for variables",
              "take export, env, mpirun or config");
}

template <class = void>
[[nodiscard]] result<std::string> export_answer(const export_options& o, export_report& report) {
  const bool nccl = o.format == "nccl-graph" || o.format == "nccl-env" || o.format == "tuner-csv";
  const bool steps = o.format == "msccl-xml" || o.format == "mscclpp-json";
  if (!nccl && !steps)
    return fail(
        errc::invalid_argument,
        o.format.empty() ? "no format was asked for" : "'" + o.format + "' is not a format that plans are exported to",
        "say --format nccl-graph, nccl-env, tuner-csv, msccl-xml or mscclpp-json");
  export_subject subject;
  if (auto ok = gather_subject(o, nccl, steps, subject); !ok) return std::move(ok).error();
  if (o.format == "msccl-xml") return msccl_answer(o, subject, report);
  if (o.format == "mscclpp-json") return mscclpp_answer(o, subject, report);
  if (o.format == "nccl-graph") return graph_answer(o, subject, report);
  if (o.format == "tuner-csv") return tuner_answer(o, subject, report);
  return environment_answer(o, subject, report);
}

}}}}  // namespace topocoll::v0::app::detail
