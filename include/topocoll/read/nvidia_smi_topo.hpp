// SPDX-License-Identifier: Apache-2.0
#pragma once
// The matrix that `nvidia-smi topo -m`, `-mp` and `-p2p` print, and its look-alikes of other makers, as plain structs.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/read/detail/text_rows.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// What a cell says. Paths from near to far, then the answers of `topo -p2p`.
enum class matrix_word : std::uint8_t {
  untold,    ///< no row, no cell, N/A, or a word that nobody explains
  self,      ///< X
  gpu_link,  ///< NV4: bonded NVLinks; also MX, ICN4 and XGMI of other makers
  c2c,       ///< chip-to-chip link
  pix,       ///< at most one PCIe bridge
  pxb,       ///< several PCIe bridges, no host bridge
  phb,       ///< one host bridge
  node,      ///< host bridges of one NUMA domain
  sys,       ///< between NUMA domains
  soc,       ///< between sockets: what drivers before 384 say, which know neither NODE nor SYS
  ok,        ///< peer access works
  chipset,   ///< CNS: the chipset does not support it
  gpu,       ///< GNS: the GPU does not
  topology,  ///< TNS: the topology does not
  no,        ///< NS: not supported
  disabled,  ///< DR: switched off in the registry of the driver
  unknown    ///< U
};

struct matrix_cell {
  matrix_word word = matrix_word::untold;
  std::uint32_t links = 0;  ///< bonded GPU links; 0 when not told

  friend constexpr bool operator==(const matrix_cell&, const matrix_cell&) = default;
};

/// One column of the matrix.
struct matrix_device {
  std::string label;                   ///< as the header says: "GPU0", "NIC3", "mlx5_0"
  bool gpu = false;                    ///< else a network adapter
  std::optional<std::uint32_t> index;  ///< the number in the label: of GPUs, and of adapters that are only numbered
  std::string name;  ///< adapters: name of the device, from the label or the legend; empty when only numbered
  bool has_row = false;
  std::uint32_t line = 0;          ///< of its row; 0 without one
  std::string cpu_affinity;        ///< processors, "0-23,48-71"; empty when not told
  std::string numa_affinity;       ///< "0", "0-3"; empty when not told or N/A
  std::string gpu_numa_id;         ///< domain of the GPU's own memory; empty when not told or N/A
  std::vector<matrix_cell> cells;  ///< its row, in the order of the columns; shorter when the row was cut off
};

struct nvidia_smi_topo {
  bool peers = false;         ///< cells are answers of `topo -p2p`, not paths
  std::string gpu_link_word;  ///< what the maker calls GPU links: "NV", "MX", "ICN", "XGMI"; empty without any
  std::vector<matrix_device> devices;
  std::vector<finding> findings;

  /// What the row of `from` says about `to`, or, where that is missing, the row of `to` about `from`.
  [[nodiscard]] matrix_cell between(std::size_t from, std::size_t to) const {
    const auto& row = devices[from].cells;
    if (to < row.size() && row[to].word != matrix_word::untold) return row[to];
    const auto& other = devices[to].cells;
    return from < other.size() ? other[from] : matrix_cell{};
  }
};

/// Most devices that a matrix may have; machines have some dozens.
inline constexpr std::size_t most_matrix_devices = 1024;

/// The meaning of a cell; `untold` for N/A; empty for a word that is not known.
template <class = void>
[[nodiscard]] std::optional<matrix_cell> matrix_cell_of(std::string_view text);

/// True when the text holds a header of GPU labels and a row that belongs to it, with X on the diagonal.
template <class = void>
[[nodiscard]] bool looks_like_nvidia_smi_topo(std::string_view text);

/// Reads the first matrix in a text; text around it is passed over.
///
/// Understands tabs and blanks, colours, empty cells of the affinity columns, missing rows (completed by symmetry) and a cut
/// last row, each with a finding. Words of cells that nobody explains are kept as untold, with a finding.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line when there is no matrix, for a row that is too short in the middle, for an X
///         off the diagonal, for a label that comes twice, and when no cell is understood; `unsupported` for more than 1,024
///         devices. Cost: O(text).
template <class = void>
[[nodiscard]] result<nvidia_smi_topo> parse_nvidia_smi_topo(std::string_view text, std::string_view file);

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/matrix_rows.hpp>
