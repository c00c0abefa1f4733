// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans as MSCCL's XML, which NCCL with MSCCL's interpreter and RCCL run in place of their own algorithms; and their proof.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/xml_tree.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 {

/// Who reads the file. Both know the same steps; they differ in limits, and in the word for reduce-scatter.
enum class msccl_reader : std::uint8_t {
  executor,  ///< Azure's msccl-executor-nccl and RCCL: 64 steps a thread block, in-place and not in one file
  fork       ///< Microsoft's msccl, a fork of NCCL 2.12: 256 steps a thread block, one of both in a file
};

/// Limits of a reader. Source: msccl-executor-nccl src/include/msccl/msccl_struct.h and src/misc/msccl/msccl_parser.cc,
/// msccl src/include/msccl.h and src/graph/topo.cc; both take channels up to NCCL's 32 of that time.
struct msccl_limits {
  std::uint32_t steps = 64;              ///< of a thread block, nops counted
  std::uint32_t thread_blocks = 1024;    ///< of a GPU
  std::uint32_t peers_per_channel = 32;  ///< that a GPU sends to, and that it receives from
  std::uint32_t channels = 32;
  std::uint32_t count = 71;             ///< chunks of one step
  std::uint32_t waited_for = 128;       ///< thread blocks with a smaller number can be waited for (8 bits with sign)
  std::uint32_t offset = 32767;         ///< of a chunk in its buffer (16 bits with sign)
  std::uint32_t fused_reductions = 16;  ///< neighbouring `re` to one place, which the readers make into one
  std::uint32_t name = 63;              ///< letters
};
[[nodiscard]] constexpr msccl_limits limits_of(msccl_reader reader) {
  msccl_limits l;
  if (reader == msccl_reader::fork) {
    l.steps = 256;
    l.thread_blocks = 216;
  }
  return l;
}

enum class msccl_op : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };
[[nodiscard]] constexpr std::string_view to_string(msccl_op o) {
  constexpr std::string_view words[] = {"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"};
  return words[static_cast<std::size_t>(o)];
}

/// One step. Buffers are 'i', 'o' and 's'; offsets count chunks from the start of the rank's own buffer, -1 where unused.
///
/// What is read: `src` by s, cpy and re, and as the second operand by rrs, rrc and rrcs. What is written: `dst` by r, rcs,
/// rrc, rrcs, cpy and re (`dst` := `dst` ⊕ `src`). `s` names in `dst` where the receiver puts it, `r` in `src` where it
/// came from; nobody acts on that.
struct msccl_step {
  msccl_op type = msccl_op::nop;
  char src = 'i', dst = 'o';
  std::int32_t src_offset = -1, dst_offset = -1;
  std::uint32_t count = 0;
  std::int32_t dep_block = -1, dep_step = -1;  ///< waits until this step of that thread block of the same GPU is over
  bool has_dep = false;                        ///< somebody waits for this step

  friend bool operator==(const msccl_step&, const msccl_step&) = default;
};

/// Runs its steps one after the other, and all of them again for the next part of every chunk.
struct msccl_block {
  std::int32_t send = -1, recv = -1;  ///< peers; -1 for none
  std::uint32_t channel = 0;
  std::vector<msccl_step> steps;

  friend bool operator==(const msccl_block&, const msccl_block&) = default;
};
struct msccl_gpu {
  std::uint32_t input = 0, output = 0, scratch = 0;  ///< chunks
  std::vector<msccl_block> blocks;

  friend bool operator==(const msccl_gpu&, const msccl_gpu&) = default;
};

/// A plan as the file holds it.
struct msccl_plan {
  std::string name;
  msccl_reader reader = msccl_reader::executor;
  collective_kind collective = collective_kind::all_reduce;
  std::string protocol = "Simple";
  std::uint32_t channels = 1;
  std::uint32_t chunks = 1;  ///< of the whole array; sizes that do not divide are run by NCCL's own algorithms
  bool in_place = true, out_of_place = true;
  std::uint64_t min_bytes = 0, max_bytes = 0;  ///< 0: no limit
  std::vector<msccl_gpu> gpus;

  friend bool operator==(const msccl_plan&, const msccl_plan&) = default;
};

struct msccl_options {
  std::string name;  ///< empty: named after the collective and the number of ranks
  msccl_reader reader = msccl_reader::executor;
  std::string protocol = "Simple";  ///< or LL, LL128
  bool in_place = true;             ///< for calls with one buffer; a file for `fork` is for these or for those with two
  bytes min_size{},
      max_size{};  ///< of the whole array; the reader uses the plan from `min_size` to `max_size`, 0 = any
  /// The format does not say which rank is the root of a broadcast or a reduce, and readers do not ask: a plan for one root
  /// would be run for every root. Set this if your program calls it with this root only.
  bool one_root = false;
};

/// Writes programs (one for each rank) as thread blocks and steps.
///
/// A message stream between two ranks gets a thread block of its own at each end. Where most messages are passed on as they
/// come in, one block does both, in fused steps (rcs, rrcs, rrs where nobody needs the sum here): only if that cannot block.
/// Copies and reductions run in the block that they wait for. Messages of more chunks, or blocks of more steps, than the
/// reader takes are spread over more channels. The result has passed `check_msccl_plan`.
/// @return `invalid_argument` for programs that do not belong together or a protocol that does not exist; `unsupported` for
///         a broadcast or reduce without `one_root`, and beyond a limit of the reader, with the figures; `bug` when what was
///         made does not pass the check. Cost: a few times that of the check.
template <class = void>
[[nodiscard]] result<msccl_plan> msccl_plan_of(std::span<const plan::program> programs,
                                               const msccl_options& options = {});

/// The same for a schedule, lowered for every rank.
template <class = void>
[[nodiscard]] result<msccl_plan> msccl_plan_of(const plan::schedule& schedule, const msccl_options& options = {});

/// The text of the file.
template <class = void>
[[nodiscard]] std::string to_msccl_xml(const msccl_plan& plan);

/// Reads what `to_msccl_xml`, msccl-tools or others wrote.
/// @param root  of the file, from `io::parse_xml`
/// @param file  its name, for failures
/// @param reader  whose words and limits are meant
/// @return `malformed_input` with file and line for attributes that are missing or no numbers, for words that the reader does
///         not know, and for numbers of GPUs, thread blocks and steps that are not 0, 1, 2, …
template <class = void>
[[nodiscard]] result<msccl_plan> read_msccl_xml(const io::xml_element& root, std::string_view file,
                                                msccl_reader reader = msccl_reader::executor);

struct msccl_check_options {
  std::uint32_t root = 0;           ///< of broadcast and reduce, which the file does not tell
  std::uint32_t random_orders = 4;  ///< runs beside the proof
  std::uint64_t seed = 1;
};

/// What was looked at.
struct msccl_proof {
  std::uint32_t ranks = 0, channels = 0;
  std::uint32_t most_blocks = 0;  ///< of a GPU; all must run at once, so a GPU needs so many multiprocessors
  std::uint32_t most_steps = 0;   ///< of a thread block
  std::uint64_t steps = 0, messages = 0, fused = 0;
  std::uint32_t slot_count = 0;  ///< messages that fit into a connection, as it was proved with
};

/// Proves a plan by the rules of its reader, without trust in who wrote it.
///
/// Limits and numbers; a connection has one sender and one receiver block; both ends see the same messages; waits name steps
/// that are told; extra waits stand in nops right before a step that waits itself; a chain of `re` that the reader fuses is
/// of one length. Then: no interleaving blocks for ever with the protocol's few slots per connection (Simple 2, others 8),
/// whether the reader moves the chunks of a step together or one by one, over three parts of the chunks; accesses to a chunk
/// are ordered; and every rank ends with exactly what the collective promises, run symbolically in random orders too, with
/// separate buffers and in place as the file says.
/// @return `malformed_input` with GPU, thread block and step. Cost: O(steps + waits), and steps * accesses / 64 at most;
/// memory O(steps + chunks that they move * ranks / 64), whatever sizes the file tells.
template <class = void>
[[nodiscard]] result<msccl_proof> check_msccl_plan(const msccl_plan& plan, const msccl_check_options& options = {});

/// Reads and checks.
template <class = void>
[[nodiscard]] result<msccl_proof> check_msccl_xml(const io::xml_element& root, std::string_view file,
                                                  msccl_reader reader = msccl_reader::executor,
                                                  const msccl_check_options& options = {}) {
  const auto plan = read_msccl_xml(root, file, reader);
  if (!plan) return plan.error();
  return check_msccl_plan(*plan, options);
}

namespace detail {

/// The readers' words for the collectives, in the order of `collective_kind`.
[[nodiscard]] constexpr std::string_view msccl_word(collective_kind k, msccl_reader reader) {
  constexpr std::string_view words[] = {"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall",
                                        "",          ""};
  if (k == collective_kind::reduce_scatter && reader == msccl_reader::fork) return "reduce_scatter";
  return words[static_cast<std::size_t>(k)];
}

}  // namespace detail

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/msccl_build.hpp>
#include <topocoll/integrate/detail/msccl_check.hpp>
#include <topocoll/integrate/detail/msccl_text.hpp>
