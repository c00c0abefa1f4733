// SPDX-License-Identifier: Apache-2.0
// MSCCL++ plans: what is read comes back from what we write; the proof says the same of both, and in whatever order it runs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <topocoll/integrate/mscclpp_json.hpp>

namespace {

namespace tc = topocoll;

void demand(bool holds) {
  if (!holds) std::abort();
}

void same_words_of(const tc::result<tc::mscclpp_proof>& a, const tc::result<tc::mscclpp_proof>& b) {
  demand(static_cast<bool>(a) == static_cast<bool>(b));
  if (a)
    demand(a->operations == b->operations && a->messages == b->messages && a->most_blocks == b->most_blocks);
  else
    demand(a.error().what == b.error().what);
}

}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  const auto plan = tc::read_mscclpp_json({reinterpret_cast<const char*>(data), size}, "p.json");
  if (!plan) {
    demand(plan.error().what.rfind("p.json", 0) == 0);
    return 0;
  }
  std::size_t operations = 0;
  for (const auto& g : plan->gpus)
    for (const auto& b : g.blocks) operations += b.operations.size();
  demand(operations * 12 <= size);  // {"name":"re"} each
  const std::string written = tc::to_mscclpp_json(*plan);
  const auto back = tc::read_mscclpp_json(written, "written");
  demand(back && *back == *plan);
  demand(tc::to_mscclpp_json(*back) == written);

  tc::mscclpp_check_options one;
  one.random_orders = 1;
  one.most_accesses = 64 * size;  // a plan of so few letters that does more is not worth the time
  const auto proof = tc::check_mscclpp_plan(*plan, one);
  same_words_of(proof, tc::check_mscclpp_plan(*back, one));
  if (!proof) return 0;
  demand(proof->ranks == plan->gpus.size() && proof->operations == operations);
  // What was proved of every order holds in others than those that were run.
  one.random_orders = 3;
  one.seed = size + 1;
  same_words_of(proof, tc::check_mscclpp_plan(*plan, one));
  return 0;
}

static const fuzz::target known("mscclpp_json", try_input);
