// SPDX-License-Identifier: Apache-2.0
#pragma once
// What models of GPU libraries say to the problem of an explanation.
#include <string>
#include <utility>
#include <topocoll/plan/explanation.hpp>
#include <topocoll/plan/library_model.hpp>
#include <topocoll/plan/nccl_model.hpp>
#include <topocoll/plan/problem.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Two lines, each with a time or with the reason why it has none. Nothing for ranks that are no GPUs, or for one rank.
template <class = void>
void explain_libraries(const problem& p, const model_constants& constants, explanation& e) {
  if (p.ranks.size() < 2 || p.graph->at(p.ranks[0]).kind != topo::node_kind::gpu) return;
  library_line ours, theirs;
  ours.model = "library model";
  theirs.model = "NCCL 2.28.9's own model";
  const auto machine = machine_summary_of(*p.graph, p.ranks);
  if (!p.shares.empty()) {
    ours.why_not = theirs.why_not = "it knows shards of equal size only";
  } else if (!machine) {
    ours.why_not = theirs.why_not = machine.error().what;
  } else {
    if (const auto t = predict(*machine, p.collective, p.size, {}, constants)) {
      ours.time = t->time;
      ours.algorithm = to_string(t->algorithm);
      ours.protocol = to_string(t->protocol);
      ours.limit = to_string(t->limit);
      ours.spread = t->spread;
    } else {
      ours.why_not = t.error().what;
    }
    if (const auto known = nccl_machine_of(*machine); !known) {
      theirs.why_not = known.error().what;
    } else if (const auto t = nccl_predict(*known, p.collective, p.size)) {
      theirs.time = t->time;
      theirs.algorithm = to_string(t->algorithm);
      theirs.protocol = to_string(t->protocol);
    } else {
      theirs.why_not = t.error().what;
    }
  }
  e.libraries.push_back(std::move(ours));
  e.libraries.push_back(std::move(theirs));
}

}}}}  // namespace topocoll::v0::plan::detail
