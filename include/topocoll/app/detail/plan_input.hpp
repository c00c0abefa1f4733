// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `topocoll plan` is asked: its options as words, and what they mean.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/app/rank_placement.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/exact_number.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/detail/switch_groups.hpp>
#include <topocoll/plan/model_codec.hpp>
#include <topocoll/plan/plan_origin.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace app { namespace detail {

struct plan_options {
  topology_input input;
  rank_placement placement;
  std::string collective = "all_reduce", size = "64M", sizes, shares, algorithm, previous, output, svg, chart, model;
  std::uint32_t root = 0;
  double gain = 5;  ///< percent
  bool json = false, brief = false, explain = false, pareto = false;
  bool nvls = false;  ///< NVSwitches may add up and multiply

  /// The explanation is text, and is asked for: by name, or because nothing else is.
  [[nodiscard]] bool explains() const { return !json && (explain || brief || (!pareto && previous.empty())); }
};

/// First and last of the sizes that are compared.
struct size_span {
  bytes first{}, last{};
};
/// "1K:1G", "64M": the sizes that a word names.
template <class = void>
[[nodiscard]] result<size_span> sizes_of(const std::string& word) {
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

/// "1,2,0,5", "@FILE" with one number a line: the weights of the ranks. Blanks around numbers and empty lines do not count.
template <class = void>
[[nodiscard]] result<std::vector<std::uint64_t>> shares_of(const std::string& word) {
  const bool in_file = word.starts_with('@');
  std::string text = word;
  if (in_file) {
    auto read = io::read_file(word.substr(1));
    if (!read) return std::move(read).error();
    text = std::move(*read);
  }
  std::vector<std::uint64_t> shares;
  std::size_t line = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(in_file ? '\n' : ',', at), text.size());
    std::string_view one = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line;
    const auto first = one.find_first_not_of(" \t\r");
    one = first == std::string_view::npos ? std::string_view()
                                          : one.substr(first, one.find_last_not_of(" \t\r") + 1 - first);
    if (in_file && one.empty()) continue;
    const auto share = topocoll::detail::exact_number<std::uint64_t>(one);
    if (!share)
      return fail(in_file ? errc::malformed_input : errc::invalid_argument,
                  (in_file ? word.substr(1) + ":" + std::to_string(line) + ": '"
                           : "the share of rank " + std::to_string(line - 1) + ", '") +
                      std::string(one.substr(0, 40)) + "'" + (in_file ? "" : ",") +
                      " is not a whole number from 0 to 2^64 - 1",
                  in_file ? "write one number a line, rank 0 first"
                          : "write one number for each rank, as --shares 1,2,0,5, or --shares @FILE with one a line");
    shares.push_back(*share);
  }
  if (shares.empty())
    return fail(errc::invalid_argument, word.substr(1) + " holds no shares", "write one number a line");
  return shares;
}

/// Prices of links, and of GPU libraries, as a model file says, or as they are built in.
struct plan_prices {
  plan::alpha_beta links;
  plan::model_constants library{};
};
template <class = void>
[[nodiscard]] result<plan_prices> prices_of(const std::string& file, bool on_gpus) {
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
                                : " has no figures of processes of one host, but the ranks sit on no GPUs"),
                "take a model that 'topocoll calibrate' made from measurements of such ranks");
  if (on_gpus) return plan_prices{plan::alpha_beta::from(*constants), *constants};
  const auto host = plan::host_model_from_json(*text, file);
  if (!host) return host.error();
  return plan_prices{*host, *constants};
}

/// What is to be planned, as far as it is known before the topology is read.
/// @return `invalid_argument` for words that mean nothing; as `shares_of`
template <class = void>
[[nodiscard]] result<plan::problem> problem_of(const plan_options& o) {
  plan::problem p;
  const auto collective = parse_collective(o.collective);
  if (!collective)
    return fail(errc::invalid_argument, "'" + o.collective + "' is not a collective",
                "take one of all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter");
  p.collective = *collective;
  const auto size = parse_bytes(o.size);
  if (!size) return size.error();
  p.size = *size;
  p.root = rank_id{o.root};
  if (o.nvls) p.reduces = plan::in_network::nvswitches;
  if (o.shares.empty()) return p;
  auto shares = shares_of(o.shares);
  if (!shares) return std::move(shares).error();
  p.shares = std::move(*shares);
  return p;
}

/// Puts the ranks of a problem on a topology.
/// @return as `place_ranks`; `invalid_argument` for a root or for shares that do not fit the ranks
template <class = void>
[[nodiscard]] result<void> place(plan::problem& p, const rank_placement& wish, const topo::graph& g) {
  p.graph = &g;
  auto ranks = place_ranks(g, wish);
  if (!ranks) return std::move(ranks).error();
  if (p.reduces != plan::in_network::nothing)
    for (const node_id v : *ranks)
      if (const auto fault = plan::detail::switch_fault(g, {&v, 1}))
        return fail(errc::unsupported, "NVSwitches cannot add up here: " + *fault, "plan without --nvls");
  p.ranks = std::move(*ranks);
  if (p.root.value >= p.ranks.size())
    return fail(errc::invalid_argument,
                "the root is rank " + std::to_string(p.root.value) + ", but there are only " +
                    std::to_string(p.ranks.size()) + " ranks",
                "take a --root below that, or more --ranks");
  return plan::check_shares(p);
}

/// A plan that was made earlier, and what for, where the file tells.
struct previous_plan {
  plan::schedule schedule;
  std::optional<plan::plan_origin> origin;
};

/// Reads a plan that was made for this problem earlier.
/// @return as `plan::schedule_from_json`; `mismatch` when it is of another collective, number of ranks or root
template <class = void>
[[nodiscard]] result<previous_plan> read_previous(const std::string& file, const plan::problem& p) {
  const auto text = io::read_file(file);
  if (!text) return text.error();
  const auto document = io::parse_json(*text, file);
  if (!document) return document.error();
  const io::json* const schema = io::find_field(*document, "schema");
  if (schema != nullptr && schema->is_string() &&
      schema->get<std::string>().starts_with(std::string(plan::explanation_schema) + '/'))
    return fail(errc::invalid_argument, file + " explains a plan, but does not hold it",
                "give the file that 'topocoll plan --output' wrote");
  auto before = plan::schedule_from_json(*text, file);
  if (!before) return std::move(before).error();
  auto origin = plan::origin_of(*document, file);
  if (!origin) return std::move(origin).error();
  if (before->collective != p.collective) {
    const std::string collective(to_string(before->collective));
    return fail(errc::mismatch,
                file + " is a plan of " + collective + ", not of " + std::string(to_string(p.collective)),
                "say --collective " + collective + ", or give a plan of " + std::string(to_string(p.collective)));
  }
  if (p.reduces == plan::in_network::nothing &&
      seq::any_of(before->stages, [](const plan::stage& s) { return s.how == plan::algorithm::in_switch; }))
    return fail(errc::mismatch, file + " leaves sums and copies to NVSwitches",
                "say --nvls, or give a plan that does without");
  if (before->ranks != p.rank_count())
    return fail(errc::mismatch,
                file + " is a plan among " + std::to_string(before->ranks) + " ranks, but here are " +
                    std::to_string(p.rank_count()),
                "say --ranks " + std::to_string(before->ranks) +
                    " if the same ranks are meant, or plan anew without --previous");
  if (rooted(p.collective) && before->root != p.root)
    return fail(
        errc::mismatch,
        file + " is a plan with root " + std::to_string(before->root.value) + ", not " + std::to_string(p.root.value),
        "say --root " + std::to_string(before->root.value) + ", or give a plan with the root that is meant");
  return previous_plan{std::move(*before), std::move(*origin)};
}

}}}}  // namespace topocoll::v0::app::detail
