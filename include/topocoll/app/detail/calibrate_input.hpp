// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measurements of users as observations: tables with machines, tables of nccl-tests, JSON of nccl-tests and of topocoll bench.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/detail/measurement_table.hpp>
#include <topocoll/app/plan.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/calibrate_host.hpp>
#include <topocoll/read/nccl_tests.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

/// Where results without a machine were measured.
struct calibrate_machine {
  topology_input input;
  rank_placement placement;
  std::string collective;  ///< of tables that do not tell
  plan::run_conditions conditions;
  bool given = false;  ///< a topology was named
};

/// Everything that the files hold.
struct calibrate_input {
  measurement_table gpus;
  std::vector<plan::host_observation> hosts;
  std::vector<std::string> notes;
};

/// A line of a result before its machine is known.
struct plain_result {
  std::string collective;
  bytes size{};
  seconds time{};
};

/// The lesser half of small sizes, else the time out of place: as in `parse_measurement_table`.
template <class = void>
[[nodiscard]] seconds time_of_halves(bytes size, std::optional<seconds> out, std::optional<seconds> in) {
  if (!out) return in.value_or(seconds{});
  const bool half_counts = plan::band_of(size) == plan::size_band::to_64KiB;
  return half_counts && in ? std::min(*out, *in) : *out;
}

/// Adds results of one run among `ranks` ranks of the machine that was named.
template <class = void>
[[nodiscard]] result<void> add_results(const std::string& file, const std::vector<plain_result>& results,
                                       std::uint32_t ranks, const calibrate_machine& on, calibrate_input& to) {
  if (!on.given)
    return fail(errc::invalid_argument, file + " does not describe the machine that it was measured on",
                "name its topology with --from or --fabric");
  const auto g = read_topology(on.input);
  if (!g) return g.error();
  rank_placement placement = on.placement;
  if (!placement.ranks && ranks > 0) placement.ranks = ranks;
  const auto seats = place_ranks(*g, placement);
  if (!seats) return seats.error();
  auto machine = plan::machine_summary_of(*g, *seats);
  if (!machine) return machine.error();
  for (const finding& f : machine->findings) to.notes.push_back(file + ": " + f.what);
  const auto system = static_cast<std::uint32_t>(to.gpus.systems.size());
  to.gpus.systems.push_back(file);
  for (const plain_result& r : results) {
    const std::string& word = r.collective.empty() ? on.collective : r.collective;
    const auto collective = parse_collective(word);
    if (!collective)
      return fail(errc::invalid_argument, file + " does not say which collective was measured",
                  "name it with --collective");
    if (!(r.time.value > 0)) {
      ++to.gpus.without_time;
      continue;
    }
    plan::observation o;
    o.machine = *machine;
    o.conditions = on.conditions;
    o.collective = *collective;
    o.size = r.size;
    o.time = r.time;
    o.system = system;
    if (const auto fine = plan::predict(o.machine, o.collective, o.size, o.conditions); !fine) {
      if (*collective == collective_kind::all_reduce || *collective == collective_kind::all_gather ||
          *collective == collective_kind::reduce_scatter)
        return fine.error();
      ++to.gpus.other_collectives;
      continue;
    }
    to.gpus.link_groups.push_back(link_group_of(o.machine));
    to.gpus.rows.push_back(std::move(o));
  }
  return {};
}

/// What busbw over algbw says of the collective: 2(n-1)/n is an all-reduce, (n-1)/n with a sum a reduce-scatter, without one
/// an all-gather (or an all-to-all: `--collective` tells). Empty when no line has both.
template <class = void>
[[nodiscard]] std::string collective_by_factor(const read::nccl_tests_table& t) {
  for (auto r = t.rows.rbegin(); r != t.rows.rend(); ++r) {
    const auto& half = r->out_of_place ? r->out_of_place : r->in_place;
    if (!half || !(half->algbw > 1) || !(half->busbw > 0)) continue;
    const double factor = half->busbw / half->algbw;
    if (factor >= 0.995) return r->op == "none" ? std::string() : "all_reduce";
    return r->op == "none" ? "all_gather" : "reduce_scatter";
  }
  return {};
}

template <class = void>
[[nodiscard]] result<void> add_text(const std::string& file, std::string_view text, const calibrate_machine& on,
                                    calibrate_input& to) {
  const auto tables = read::parse_nccl_tests(text, file);
  if (!tables) return tables.error();
  for (const read::nccl_tests_table& t : *tables) {
    std::string collective = t.collective == "alltoall" ? "all_to_all" : t.collective;
    if (collective.empty() && on.collective.empty()) collective = collective_by_factor(t);
    std::vector<plain_result> results;
    for (const read::nccl_tests_row& r : t.rows) {
      const auto time = [](const std::optional<read::nccl_tests_half>& h) -> std::optional<seconds> {
        if (!h) return std::nullopt;
        return h->time;
      };
      results.push_back({collective, r.size, time_of_halves(r.size, time(r.out_of_place), time(r.in_place))});
    }
    if (auto added = add_results(file, results, t.ranks, on, to); !added) return added;
  }
  return {};
}

/// JSON of nccl-tests, version 3. Runs between processes of a host (devices of "host memory") are kept apart.
template <class = void>
[[nodiscard]] result<void> add_json(const std::string& file, std::string_view text, const calibrate_machine& on,
                                    calibrate_input& to) {
  const auto j = io::parse_json(text, file);
  if (!j) return j.error();
  const io::json_place top(file);
  const auto list = io::read_array(*j, "results", top);
  if (!list) return list.error();
  std::uint32_t ranks = 0;
  bool host = false;
  if (const io::json* devices = io::find_field(*j, "devices"); devices != nullptr && devices->is_array())
    for (const io::json& d : *devices) {
      ++ranks;
      const io::json* info = io::find_field(d, "device_info");
      host = host || (info != nullptr && info->is_string() && info->get_ref<const std::string&>() == "host memory");
    }
  std::string program;  // "./build/all_reduce_perf" in the command line
  if (const io::json* args = io::find_field(*j, "args");
      args != nullptr && args->is_array() && !args->empty() && args->front().is_string())
    program = args->front().get<std::string>();
  if (const std::size_t perf = program.find("_perf"); perf != std::string::npos)
    program = program.substr(0, perf).substr(program.substr(0, perf).find_last_of('/') + 1);
  else
    program.clear();
  std::vector<plain_result> results;
  std::size_t without_plan = 0;
  for (std::size_t i = 0; i < (*list)->size(); ++i) {
    const auto all = top / "results";
    const auto at = all / i;
    const io::json& one = (**list)[i];
    const auto size = io::read_field<std::uint64_t>(one, "size", at);
    if (!size) return size.error();
    const auto name = io::read_optional<std::string>(one, "experiment_name", at);
    if (!name) return name.error();
    const auto half = [&](std::string_view which) -> std::optional<seconds> {
      const io::json* h = io::find_field(one, which);
      const io::json* t = h == nullptr ? nullptr : io::find_field(*h, "time");
      if (t == nullptr || !t->is_number() || !(t->get<double>() > 0)) return std::nullopt;
      return seconds{t->get<double>() * 1e-6};
    };
    const seconds time = time_of_halves({*size}, half("out_of_place"), half("in_place"));
    const bool known = *name && parse_collective(**name);
    if (!host) {
      results.push_back({known ? **name : program, {*size}, time});
      continue;
    }
    const auto plan_name = io::read_optional<std::string>(one, "plan", at);
    if (!plan_name) return plan_name.error();
    const auto how = *plan_name ? plan::parse_algorithm(**plan_name) : std::nullopt;
    const bool without = *plan_name && **plan_name == "shared";
    if (!known || (!how && !without) || !(time.value > 0) || *size == 0 || ranks < 2) {
      ++without_plan;
      continue;
    }
    to.hosts.push_back({*parse_collective(**name), how, ranks, {*size}, time});
  }
  if (without_plan > 0)
    to.notes.push_back(file + ": " + std::to_string(without_plan) +
                       " results name no plan, no size or no time and are left out");
  if (host) return {};
  return add_results(file, results, ranks, on, to);
}

/// Reads all files. Rows of a table keep the systems of the table, every other file is a system of its own.
template <class = void>
[[nodiscard]] result<calibrate_input> read_calibrate_input(const std::vector<std::string>& files,
                                                           const calibrate_machine& on) {
  calibrate_input all;
  for (const std::string& file : files) {
    const auto text = io::read_file(file);
    if (!text) return text.error();
    const std::size_t first = text->find_first_not_of(" \t\r\n");
    if (looks_like_measurement_table(*text)) {
      auto t = parse_measurement_table(*text, file);
      if (!t) return t.error();
      const auto before = static_cast<std::uint32_t>(all.gpus.systems.size());
      for (std::string& s : t->systems) all.gpus.systems.push_back(std::move(s));
      for (std::size_t i = 0; i < t->rows.size(); ++i) {
        t->rows[i].system += before;
        all.gpus.rows.push_back(std::move(t->rows[i]));
        all.gpus.link_groups.push_back(std::move(t->link_groups[i]));
      }
      all.gpus.without_time += t->without_time;
      all.gpus.other_collectives += t->other_collectives;
      all.gpus.not_healthy += t->not_healthy;
      all.gpus.not_described += t->not_described;
      for (const std::string& s : t->not_described_systems)
        all.notes.push_back(file + ": '" + s + "' is not described well enough to be predicted and is left out");
    } else if (first != std::string::npos && (*text)[first] == '{') {
      if (auto added = add_json(file, *text, on, all); !added) return added.error();
    } else if (read::looks_like_nccl_tests(*text)) {
      if (auto added = add_text(file, *text, on, all); !added) return added.error();
    } else {
      return fail(errc::malformed_input,
                  file + " is neither a table nor JSON of nccl-tests, nor a table of measurements",
                  "give the output of all_reduce_perf, of 'topocoll bench --json', or a table as "
                  "docs/formats/measurements.md says");
    }
  }
  if (all.gpus.rows.empty() && all.hosts.empty())
    return fail(errc::not_found, "the files hold no measurement that the model can be compared with");
  return all;
}

}}}}  // namespace topocoll::v0::app::detail
