// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs of thread blocks, in whatever format, as events on chunks of memory; and whether they compute their collective.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/detail/collective_ends.hpp>
#include <topocoll/integrate/detail/symbolic_run.hpp>
#include <topocoll/plan/program.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// Buffers of a GPU, in chunks.
struct block_buffers {
  std::uint32_t input = 0, output = 0, scratch = 0;
};

/// A step of a thread block; without a block, the begin (step 0) or end (step 1) of the GPU's kernel.
struct block_step {
  static constexpr std::uint32_t none = 0xffffffffU;
  std::uint32_t gpu = 0, block = none, step = 0;
};

[[nodiscard]] inline std::string block_in_words(std::uint32_t gpu, std::uint32_t block) {
  return "GPU " + std::to_string(gpu) + ", thread block " + std::to_string(block);
}

/// How a format calls what it tells of its buffers; for failures.
struct block_words {
  std::string_view chunks, input, output;
};

/// The collective of a plan, whose buffers have the sizes that it asks for.
/// @param known  whether the format has the collective
template <class Plan>
[[nodiscard]] result<collective_ends> ends_of_plan(const Plan& plan, bool known, std::uint32_t root,
                                                   std::uint32_t chunks, const block_words& words) {
  const auto refuse = [](const std::string& what) { return fail(errc::malformed_input, what); };
  const auto ranks = static_cast<std::uint32_t>(plan.gpus.size());
  if (ranks == 0) return refuse("the plan has no GPU");
  if (!known) return refuse("the format knows no " + std::string(to_string(plan.collective)));
  if (root >= ranks) return refuse("the root is rank " + std::to_string(root) + " of " + std::to_string(ranks));
  if (chunks == 0 || (plan::sharded(plan.collective) && chunks % ranks != 0))
    return refuse(std::string(words.chunks) + " is " + std::to_string(chunks) + ", which " + std::to_string(ranks) +
                  " ranks cannot share");
  if (std::uint64_t{chunks} * ranks >= symbolic_value::nothing)  // of an all_to_all, numbers of data
    return refuse(std::to_string(ranks) + " ranks with " + std::to_string(chunks) + " chunks have too many of them");
  const collective_ends ends{plan.collective, ranks, root, chunks};
  for (std::uint32_t g = 0; g < ranks; ++g)
    if (plan.gpus[g].input != ends.input_chunks() || plan.gpus[g].output != ends.output_chunks())
      return refuse("GPU " + std::to_string(g) + " has " + std::string(words.input) + ' ' +
                    std::to_string(plan.gpus[g].input) + " and " + std::string(words.output) + ' ' +
                    std::to_string(plan.gpus[g].output) + "; " + std::string(words.chunks) + ' ' +
                    std::to_string(chunks) + " makes it " + std::to_string(ends.input_chunks()) + " and " +
                    std::to_string(ends.output_chunks()));
  return ends;
}

/// The run of a plan: its front end tells the chunks that steps use, then the steps as events with their orders and moves.
/// Memory is that of the chunks that are used, not of the buffers, whose sizes are but numbers in a file.
template <class = void>
class block_run {
 public:
  block_run(const collective_ends& ends, bool in_place, std::vector<block_buffers> gpus)
      : ends_(ends), in_place_(in_place), gpus_(std::move(gpus)), spans_(gpus_.size()), run_(ends.ranks, 0) {}

  /// Some step uses `count` chunks from `first`. All uses come before the first `cell`.
  void use(std::uint32_t gpu, char buffer, std::uint32_t first, std::uint32_t count) {
    const std::uint64_t at = address(gpu, buffer, first);
    spans_[gpu].push_back({at, at + count, 0});
    accesses_ += count;
  }
  /// Chunks of all uses, those that are used again counted again: the proof takes a few hundred bytes for each.
  [[nodiscard]] std::uint64_t accesses() const { return accesses_; }
  /// Gives the chunks that are used their cells.
  void settle() {
    for (auto& spans : spans_) {
      seq::sort(spans, [](const span& a, const span& b) { return a.first < b.first; });
      std::size_t kept = 0;
      for (const span& s : spans)
        if (kept != 0 && s.first <= spans[kept - 1].last)
          spans[kept - 1].last = spans[kept - 1].last < s.last ? s.last : spans[kept - 1].last;
        else
          spans[kept++] = s;
      spans.resize(kept);
      for (span& s : spans) {
        s.cell = cells_;
        for (std::uint64_t a = s.first; a < s.last; ++a) cells_ = run_.cell() + 1;
      }
    }
  }
  /// The cell of a chunk that is used. Cost: O(log uses).
  [[nodiscard]] std::uint32_t cell(std::uint32_t gpu, char buffer, std::uint32_t chunk) const {
    const std::uint64_t at = address(gpu, buffer, chunk);
    const auto& spans = spans_[gpu];
    std::size_t low = 0, high = spans.size();
    while (high - low > 1) (spans[(low + high) / 2].first <= at ? low : high) = (low + high) / 2;
    return spans[low].cell + static_cast<std::uint32_t>(at - spans[low].first);
  }
  /// A cell for one chunk on its way.
  [[nodiscard]] std::uint32_t message() { return run_.cell(); }

  std::uint32_t event(const block_step& of) {
    steps_.push_back(of);
    return run_.event();
  }
  [[nodiscard]] std::uint32_t events() const { return run_.events(); }
  [[nodiscard]] const block_step& step(std::uint32_t of_event) const { return steps_[of_event]; }
  void order(std::uint32_t earlier, std::uint32_t later, bool room = false) { run_.order(earlier, later, room); }
  void move(std::uint32_t to, std::uint32_t from, std::uint32_t more = symbolic_run<>::none) {
    run_.move(to, from, more);
  }
  /// The last event touches all memory of the GPU that is used.
  void touch_all(std::uint32_t gpu) {
    for (const span& s : spans_[gpu])
      for (std::uint64_t k = 0; k < s.last - s.first; ++k) run_.touch(s.cell + static_cast<std::uint32_t>(k));
  }

  /// Refuses events that wait for each other.
  template <class Name>
  [[nodiscard]] result<void> ends(const Name& name, const std::string& how) {
    const auto stuck = run_.ends();
    if (!stuck) return {};
    return refuse("the plan " + how + ": " + name(steps_[stuck->event]) + " waits for " + name(steps_[stuck->other]) +
                  ", and that one, in turn, for the first");
  }

  /// Refuses accesses without order, and every result but the collective's, in the given order and `random_orders` others.
  /// Precondition: `ends()` said yes.
  /// @param name  of a `block_step`, in words
  /// @param how   ends each sentence
  template <class Name>
  [[nodiscard]] result<void> computes(const Name& name, std::uint32_t random_orders, std::uint64_t seed,
                                      const std::string& how) {
    if (const auto race = run_.races(cells_))
      return refuse(name(steps_[race->event]) + " and " + name(steps_[race->other]) + " use " + name_of(race->cell) +
                    ", one of them writes, and neither waits for the other" + how);
    for (std::uint32_t r = 0; r <= random_orders; ++r) {
      run_.clear();
      for (std::uint32_t g = 0; g < ends_.ranks; ++g)
        if (ends_.brings(g)) bring(g);
      if (const auto wrong = run_.run(r == 0 ? 0 : seed + r)) {
        const char* what = wrong->kind == symbolic_fault::kind_t::read_of_nothing ? " reads what nobody wrote: "
                           : wrong->kind == symbolic_fault::kind_t::other_chunks  ? " adds up different chunks: "
                                                                                  : " counts a contribution twice: ";
        return refuse(name(steps_[wrong->event]) + what + name_of(wrong->cell) + how);
      }
      for (std::uint32_t g = 0; g < ends_.ranks; ++g)
        if (ends_.gets(g))
          if (const auto c = wrong_chunk(g))
            return refuse("GPU " + std::to_string(g) + ": at the end chunk " + std::to_string(*c) +
                          " of the output does not hold what the collective promises" + how);
    }
    return {};
  }

 private:
  /// Chunks at neighbouring addresses, `first` to `last - 1`, and the cell of the first.
  struct span {
    std::uint64_t first, last;
    std::uint32_t cell;
  };

  [[nodiscard]] static failure refuse(const std::string& what) { return fail(errc::malformed_input, what); }

  // Addresses of a GPU: input, then output, then scratch. In place the smaller buffer is a part of the larger one: the
  // output of a reduce_scatter of its input, else the input of the output.
  [[nodiscard]] bool output_inside() const { return in_place_ && ends_.kind == collective_kind::reduce_scatter; }
  [[nodiscard]] std::uint64_t first_input(std::uint32_t g) const {
    return in_place_ && !output_inside() ? std::uint64_t{gpus_[g].input} + ends_.input_in_output(g, 0) : 0;
  }
  [[nodiscard]] std::uint64_t first_output(std::uint32_t g) const {
    return output_inside() ? ends_.output_in_input(g, 0) : gpus_[g].input;
  }
  [[nodiscard]] std::uint64_t address(std::uint32_t g, char buffer, std::uint32_t chunk) const {
    return chunk + (buffer == 'i'   ? first_input(g)
                    : buffer == 'o' ? first_output(g)
                                    : std::uint64_t{gpus_[g].input} + gpus_[g].output);
  }

  /// Puts a rank's input where it is used.
  void bring(std::uint32_t g) {
    const std::uint64_t begin = first_input(g), end = begin + gpus_[g].input;
    for (const span& s : spans_[g])
      for (std::uint64_t a = s.first < begin ? begin : s.first; a < s.last && a < end; ++a)
        run_.put(s.cell + static_cast<std::uint32_t>(a - s.first),
                 ends_.brought(g, static_cast<std::uint32_t>(a - begin)), g);
  }
  /// The first chunk of a rank's output that is not what it must be.
  [[nodiscard]] std::optional<std::uint32_t> wrong_chunk(std::uint32_t g) const {
    const std::uint64_t begin = first_output(g), end = begin + gpus_[g].output;
    // Output that no step uses is right where it was right as input.
    const bool all = in_place_ && (ends_.ranks == 1 || (ends_.kind == collective_kind::broadcast && g == ends_.root));
    const bool own =
        in_place_ && (ends_.kind == collective_kind::all_gather || ends_.kind == collective_kind::all_to_all);
    const std::uint64_t kept = own && !all ? begin + std::uint64_t{g} * ends_.share() : begin;
    const std::uint64_t kept_end = all ? end : own ? kept + ends_.share() : kept;
    const auto first_lost = [&](std::uint64_t from, std::uint64_t to) {
      return from < kept || from >= kept_end ? from : kept_end < to ? kept_end : to;
    };
    std::uint64_t next = begin;
    for (const span& s : spans_[g]) {
      if (s.last <= next) continue;
      if (s.first >= end) break;
      if (s.first > next)
        if (const std::uint64_t lost = first_lost(next, s.first); lost < s.first)
          return static_cast<std::uint32_t>(lost - begin);
      for (std::uint64_t a = s.first < next ? next : s.first; a < s.last && a < end; ++a)
        if (!right(run_.at(s.cell + static_cast<std::uint32_t>(a - s.first)), g, static_cast<std::uint32_t>(a - begin)))
          return static_cast<std::uint32_t>(a - begin);
      next = s.last;
    }
    if (next >= end) return std::nullopt;
    const std::uint64_t lost = first_lost(next, end);
    return lost < end ? std::optional(static_cast<std::uint32_t>(lost - begin)) : std::nullopt;
  }
  [[nodiscard]] bool right(const symbolic_value& v, std::uint32_t g, std::uint32_t c) const {
    if (v.chunk != ends_.wanted(g, c)) return false;
    const auto giver = ends_.giver(c);
    for (std::uint32_t r = 0; r < ends_.ranks; ++r)
      if (((v.ranks[r / 64] >> r % 64 & 1U) != 0) != (!giver || *giver == r)) return false;
    return true;
  }
  [[nodiscard]] std::string name_of(std::uint32_t c) const {
    for (std::uint32_t g = 0; g < spans_.size(); ++g)
      for (const span& s : spans_[g])
        if (c >= s.cell && c - s.cell < s.last - s.first) {
          const std::uint64_t at = s.first + (c - s.cell), input = gpus_[g].input, output = input + gpus_[g].output;
          return "chunk " +
                 (at < input    ? std::to_string(at) + " of i"
                  : at < output ? std::to_string(at - input) + " of o"
                                : std::to_string(at - output) + " of s") +
                 " of GPU " + std::to_string(g);
        }
    return "a message";
  }

  const collective_ends ends_;
  const bool in_place_;
  const std::vector<block_buffers> gpus_;
  std::vector<std::vector<span>> spans_;  ///< per GPU, disjoint and ascending once settled
  std::uint64_t accesses_ = 0;
  std::uint32_t cells_ = 0;  ///< of memory; messages come after them
  symbolic_run<> run_;
  std::vector<block_step> steps_;  ///< per event
};

}}}  // namespace topocoll::v0::detail
