// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans as execution plans of MSCCL++ (JSON), and their proof. Needs nlohmann-json.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/problem.hpp>
#include <topocoll/plan/program.hpp>
#include <topocoll/plan/schedule.hpp>

namespace topocoll { inline namespace v0 {

/// Limits of the executor. Source: MSCCL++ 0.7 and later, src/core/include/execution_common.hpp.
struct mscclpp_limits {
  std::uint32_t operations = 64;  ///< of a thread block
  std::uint32_t channels = 16;    ///< of a thread block, of each type; remote buffers likewise
  std::uint32_t channels_per_operation = 8;
  std::uint32_t semaphores_per_operation = 16;
};

/// Memory: stores into a peer's memory. Port: a proxy thread moves the data, by RDMA between hosts.
enum class mscclpp_channel : std::uint8_t { none, memory, port };

/// The operations that exported plans consist of; the executor has more (packets, multicast, loops).
enum class mscclpp_op : std::uint8_t { nop, put, signal, wait, flush, copy, re, sem_acquire, sem_release };
[[nodiscard]] constexpr std::string_view to_string(mscclpp_op o) {
  constexpr std::string_view words[] = {"nop",  "put", "signal",      "wait",       "flush",
                                        "copy", "re",  "sem_acquire", "sem_release"};
  return words[static_cast<std::size_t>(o)];
}

/// Chunks `index` to `index + size - 1` of a local buffer ('i', 'o', 's'), or of a remote one of the thread block's list.
struct mscclpp_place {
  char buffer = 'i';         ///< 'r' for a remote buffer
  std::uint32_t remote = 0;  ///< its place in the thread block's list of this channel type
  std::uint32_t index = 0, size = 0;

  friend bool operator==(const mscclpp_place&, const mscclpp_place&) = default;
};

/// One operation. All threads of the block run it, but signal, wait, flush, semaphores and put over a port, which one thread
/// runs for each channel. Only a `nop` makes the threads of a block wait for each other.
struct mscclpp_operation {
  mscclpp_op name = mscclpp_op::nop;
  mscclpp_channel type = mscclpp_channel::none;
  std::vector<std::uint32_t> channels;  ///< places in the thread block's list of this type
  std::vector<mscclpp_place> src, dst;  ///< re: dst := src[0] ⊕ src[1] ⊕ …
  std::vector<std::uint32_t> semaphores;

  friend bool operator==(const mscclpp_operation&, const mscclpp_operation&) = default;
};
struct mscclpp_block {
  std::vector<mscclpp_operation> operations;
  std::vector<std::uint32_t> memory_channels, port_channels;  ///< of the GPU's lists
  std::vector<std::uint32_t> memory_buffers, port_buffers;    ///< of the GPU's remote buffers

  friend bool operator==(const mscclpp_block&, const mscclpp_block&) = default;
};
struct mscclpp_remote {
  std::uint32_t rank = 0;
  char buffer = 'o';
  bool by_memory = false, by_port = false;

  friend bool operator==(const mscclpp_remote&, const mscclpp_remote&) = default;
};
struct mscclpp_gpu {
  std::uint32_t input = 0, output = 0, scratch = 0;     ///< chunks
  std::vector<std::uint32_t> memory_peers, port_peers;  ///< the GPU's channels of each type, by peer
  std::vector<mscclpp_remote> remotes;
  std::uint32_t semaphores = 0;  ///< all begin at 0
  std::vector<mscclpp_block> blocks;

  friend bool operator==(const mscclpp_gpu&, const mscclpp_gpu&) = default;
};
struct mscclpp_plan {
  std::string name;
  collective_kind collective = collective_kind::all_reduce;
  bool in_place = true;
  std::uint64_t min_bytes = 0, max_bytes = 0;  ///< of the whole array; 0: as much as 32-bit offsets reach
  std::vector<mscclpp_gpu> gpus;

  friend bool operator==(const mscclpp_plan&, const mscclpp_plan&) = default;
};

struct mscclpp_options {
  std::string name;  ///< empty: named after the collective and the number of ranks
  bool in_place = true;
  bytes min_size{}, max_size{};
  /// Ranks with equal numbers reach each other's memory (one host or NVLink domain); others use ports. Empty: all do.
  std::vector<std::uint32_t> domain;
  /// Thread blocks of a GPU, all of which must run at once: an A100 has 108 multiprocessors, an H100 132.
  std::uint32_t most_blocks = 108;
  bool one_root = false;  ///< as `msccl_options::one_root`
};

/// Writes programs (one for each rank) as channels, semaphores and operations.
///
/// Data are put where the receiver wants them; what it adds to its own goes to scratch cells of their own first. Each stream
/// of messages has a channel of its own; the receiver tells once that its kernel runs, and again before a message that
/// overwrites what it still uses, unless the way of the data through other ranks tells that already. Thread blocks of one
/// rank tell each other by semaphores that are used once. The plan sums, whatever reduction a call asks for. Sizes must
/// divide into chunks of whole 16 bytes, and buffers must lie at the same offset of their allocation on all ranks.
/// The result has passed `check_mscclpp_plan`.
/// @return `invalid_argument` for programs that do not belong together or a list of domains of the wrong length;
///         `unsupported` for reduce (which MSCCL++ has not), broadcast without `one_root`, and beyond a limit, with figures
template <class = void>
[[nodiscard]] result<mscclpp_plan> mscclpp_plan_of(std::span<const plan::program> programs,
                                                   const mscclpp_options& options = {});
template <class = void>
[[nodiscard]] result<mscclpp_plan> mscclpp_plan_of(const plan::schedule& schedule, const mscclpp_options& options = {});

/// Domains of ranks for `mscclpp_options::domain`: ranks of one host, or whose GPUs NVLink joins.
/// @return as `plan::levels_of`
template <class = void>
[[nodiscard]] result<std::vector<std::uint32_t>> memory_domains(const plan::problem& p);

/// The text of the file.
template <class = void>
[[nodiscard]] std::string to_mscclpp_json(const mscclpp_plan& plan);

/// Reads what `to_mscclpp_json` wrote, or any plan of these operations.
/// @return `malformed_input` with the JSON pointer; `unsupported` for operations that are not among `mscclpp_op`, for fields
///         of operations that `to_mscclpp_json` does not write (they may change what is done), and reductions but the sum
template <class = void>
[[nodiscard]] result<mscclpp_plan> read_mscclpp_json(std::string_view text, std::string_view file);

struct mscclpp_check_options {
  std::uint32_t root = 0;
  std::uint32_t random_orders = 4;
  std::uint64_t seed = 1;
  std::uint32_t most_blocks = 0xffffffffU;
  /// Chunks that all operations together may use: the format sets no limit, so that a short file can name billions.
  std::uint64_t most_accesses = std::uint64_t{1} << 24U;
};
struct mscclpp_proof {
  std::uint32_t ranks = 0, most_blocks = 0, most_operations = 0;
  std::uint64_t operations = 0, messages = 0;
};

/// Proves a plan by the rules of the executor, which itself checks none of them.
///
/// Limits and numbers; both ends of a channel signal and wait equally often; nothing waits in a circle; every two accesses to
/// a chunk, local or by a peer, one of which writes, are ordered by signals, semaphores and nops, and peers leave a rank's
/// memory alone before its kernel runs and after it has ended; what is put over a port is only known to be there when a later
/// signal is waited for, and to be read when flushed or arrived; every rank ends with what the collective promises.
/// @return `malformed_input` with GPU, thread block and operation; `unsupported` beyond `most_accesses`.
/// Cost: as `check_msccl_plan`.
template <class = void>
[[nodiscard]] result<mscclpp_proof> check_mscclpp_plan(const mscclpp_plan& plan,
                                                       const mscclpp_check_options& options = {});

namespace detail {

/// MSCCL++'s words for the collectives, in the order of `collective_kind`; it has no reduce.
[[nodiscard]] constexpr std::string_view mscclpp_word(collective_kind k) {
  constexpr std::string_view words[] = {"allreduce", "allgather", "reducescatter", "broadcast", "", "alltoall", "", ""};
  return words[static_cast<std::size_t>(k)];
}

}  // namespace detail

}}  // namespace topocoll::v0

#include <topocoll/integrate/detail/mscclpp_build.hpp>
#include <topocoll/integrate/detail/mscclpp_check.hpp>
#include <topocoll/integrate/detail/mscclpp_text.hpp>
