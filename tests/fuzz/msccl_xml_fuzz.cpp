// SPDX-License-Identifier: Apache-2.0
// MSCCL plans: what is read comes back from what we write; the proof says the same of both, and in whatever order it runs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <topocoll/integrate/msccl_xml.hpp>
#include <topocoll/io/xml.hpp>

namespace {

namespace tc = topocoll;

void demand(bool holds) {
  if (!holds) std::abort();
}

std::size_t steps_in(const tc::msccl_plan& p) {
  std::size_t n = 0;
  for (const auto& g : p.gpus)
    for (const auto& b : g.blocks) n += b.steps.size();
  return n;
}

void same_words_of(const tc::result<tc::msccl_proof>& a, const tc::result<tc::msccl_proof>& b) {
  demand(static_cast<bool>(a) == static_cast<bool>(b));
  if (a)
    demand(a->steps == b->steps && a->messages == b->messages && a->fused == b->fused);
  else
    demand(a.error().what == b.error().what);
}

void read_and_prove(const tc::io::xml_element& root, std::size_t size, tc::msccl_reader reader) {
  const auto plan = tc::read_msccl_xml(root, "p.xml", reader);
  if (!plan) {
    demand(plan.error().what.rfind("p.xml", 0) == 0);
    return;
  }
  demand(steps_in(*plan) * 7 <= size);  // "<step …/>" each
  const auto again = tc::io::parse_xml(tc::to_msccl_xml(*plan), "written");
  demand(static_cast<bool>(again));
  const auto back = tc::read_msccl_xml(*again, "written", reader);
  demand(back && *back == *plan);

  tc::msccl_check_options one{.root = 0, .random_orders = 1, .seed = 7};
  const auto proof = tc::check_msccl_plan(*plan, one);
  same_words_of(proof, tc::check_msccl_plan(*back, one));
  if (!proof) return;
  demand(proof->ranks == plan->gpus.size() && proof->steps == steps_in(*plan));
  // What was proved of every order holds in others than those that were run.
  one.random_orders = 3;
  one.seed = size + 1;
  same_words_of(proof, tc::check_msccl_plan(*plan, one));
}

}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  const auto root = tc::io::parse_xml({reinterpret_cast<const char*>(data), size}, "p.xml");
  if (!root) return 0;
  for (const tc::msccl_reader reader : {tc::msccl_reader::executor, tc::msccl_reader::fork})
    read_and_prove(*root, size, reader);
  return 0;
}

static const fuzz::target known("msccl_xml", try_input);
