// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `rocm-smi --showtopo` prints: weight, hops and kind of the link between each two AMD GPUs, and their NUMA domains.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/detail/text_rows.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// What one GPU says of another. Empty fields were not told.
struct rocm_pair {
  std::optional<std::uint32_t> weight, hops;
  std::string kind;  ///< "XGMI", "PCIE", or as printed
};
struct rocm_gpu {
  std::uint32_t index = 0;
  std::optional<std::uint32_t> numa;           ///< NUMA node; empty when not told or -1
  std::optional<std::uint32_t> numa_affinity;  ///< NUMA affinity, likewise
  std::vector<rocm_pair> to;                   ///< in the order of `rocm_smi_topo::gpus`
};
struct rocm_smi_topo {
  std::vector<rocm_gpu> gpus;
  std::vector<finding> findings;
};

/// True when the title of one of the matrices is there: "Weight between two GPUs" and the like.
template <class = void>
[[nodiscard]] bool looks_like_rocm_smi_topo(std::string_view text);

/// Reads the matrices that are there; the order and number of them are free. Lines that belong to none are passed over.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line when no matrix is there, for a row that is shorter than its header, for a row
///         of a GPU without column, and for headers that differ; `unsupported` for more than 1,024 GPUs. Cost: O(text * log).
template <class = void>
[[nodiscard]] result<rocm_smi_topo> parse_rocm_smi_topo(std::string_view text, std::string_view file);

namespace detail {

inline constexpr std::size_t most_rocm_gpus = 1024;

template <class = void>
class rocm_reader {
 public:
  rocm_reader(std::string_view text, std::string_view file) : rows_(text), file_(file) {}

  [[nodiscard]] result<rocm_smi_topo> read() {
    while (rows_.next()) {
      const std::string_view row = trimmed(rows_.row());
      if (row.empty()) continue;
      if (row.substr(0, 3) == "===") {
        table_ = table_of(row);
        columns_.clear();
      } else if (row.substr(0, 4) == "GPU[") {
        numa(row);
      } else if (row.substr(0, 3) == "GPU" && table_ != table::none) {
        const std::vector<word> words = words_of(row);
        if (auto ok = columns_.empty() ? header(words) : matrix_row(words); !ok) return ok.error();
      }
    }
    if (out_.gpus.empty())
      return fail(errc::malformed_input, file_ + ": there is no matrix between GPUs",
                  "name the output of rocm-smi --showtopo");
    return std::move(out_);
  }

 private:
  enum class table : std::uint8_t { none, weight, hops, kind };
  [[nodiscard]] static table table_of(std::string_view title) {
    if (title.find("between two GPUs") == std::string_view::npos) return table::none;
    if (title.find("Weight") != std::string_view::npos) return table::weight;
    if (title.find("Hops") != std::string_view::npos) return table::hops;
    return title.find("Link Type") != std::string_view::npos ? table::kind : table::none;
  }
  [[nodiscard]] std::string at() const { return file_ + " line " + std::to_string(rows_.number()) + ": "; }

  [[nodiscard]] static std::optional<std::uint32_t> number_of(std::string_view label) {
    if (label.substr(0, 3) != "GPU") return std::nullopt;
    const auto n = digits_of(label.substr(3), 10);
    return n && *n <= 65535 ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
  }
  [[nodiscard]] rocm_gpu* find(std::uint32_t index) {
    const auto it = std::lower_bound(out_.gpus.begin(), out_.gpus.end(), index,
                                     [](const rocm_gpu& g, std::uint32_t i) { return g.index < i; });
    return it != out_.gpus.end() && it->index == index ? &*it : nullptr;
  }
  [[nodiscard]] result<void> header(const std::vector<word>& words) {
    std::vector<std::uint32_t> columns;
    for (const word& w : words) {
      const auto n = number_of(w.text);
      if (!n)
        return fail(errc::malformed_input,
                    at() + "\"" + std::string(w.text) + "\" where the label of a GPU is expected");
      columns.push_back(*n);
    }
    if (columns.size() > most_rocm_gpus)
      return fail(errc::unsupported, at() + "the matrix has " + std::to_string(columns.size()) +
                                         " columns, more than " + std::to_string(most_rocm_gpus));
    std::vector<std::uint32_t> sorted = columns;
    seq::sort(sorted);
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      return fail(errc::malformed_input, at() + "a GPU heads two columns");
    if (out_.gpus.empty()) {
      for (const std::uint32_t n : sorted) {
        rocm_gpu g;
        g.index = n;
        g.to.resize(sorted.size());
        out_.gpus.push_back(std::move(g));
      }
    }
    const bool same = sorted.size() == out_.gpus.size() &&
                      std::equal(sorted.begin(), sorted.end(), out_.gpus.begin(),
                                 [](std::uint32_t n, const rocm_gpu& g) { return n == g.index; });
    if (!same) return fail(errc::malformed_input, at() + "the matrix heads other GPUs than the one before it");
    columns_ = std::move(columns);
    return {};
  }
  [[nodiscard]] result<void> matrix_row(const std::vector<word>& words) {
    const auto n = number_of(words.front().text);
    rocm_gpu* from = n ? find(*n) : nullptr;
    if (!from)
      return fail(errc::malformed_input, at() + "the row " + std::string(words.front().text) + " has no column");
    if (words.size() != columns_.size() + 1)
      return fail(errc::malformed_input, at() + "the row of GPU" + std::to_string(*n) + " has " +
                                             std::to_string(words.size() - 1) + " cells where the header names " +
                                             std::to_string(columns_.size()) + " columns");
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view text = words[i + 1].text;
      rocm_pair& pair = from->to[static_cast<std::size_t>(find(columns_[i]) - out_.gpus.data())];
      if (columns_[i] == *n) continue;
      if (table_ == table::kind) {
        pair.kind = text == "N/A" ? std::string() : std::string(text);
        continue;
      }
      const auto value = small_number(text);
      if (!value && text != "N/A")
        out_.findings.push_back({severity::warning,
                                 file_ + " line " + std::to_string(rows_.number()),
                                 "\"" + std::string(text) + "\" is no number; taken as not told",
                                 {},
                                 {},
                                 1});
      (table_ == table::weight ? pair.weight : pair.hops) = value;
    }
    return {};
  }
  /// "GPU[0] : (Topology) Numa Node: 0"
  void numa(std::string_view row) {
    const std::size_t close = row.find(']');
    if (close == std::string_view::npos) return;
    const auto n = digits_of(row.substr(4, close - 4), 10);
    const bool node = row.find("Numa Node:") != std::string_view::npos;
    if (!n || *n > 65535 || (!node && row.find("Numa Affinity:") == std::string_view::npos)) return;
    rocm_gpu* gpu = find(static_cast<std::uint32_t>(*n));
    if (!gpu) return;
    (node ? gpu->numa : gpu->numa_affinity) = small_number(row.substr(row.rfind(':') + 1), 65535);
  }

  text_rows rows_;
  std::string file_;
  rocm_smi_topo out_;
  table table_ = table::none;
  std::vector<std::uint32_t> columns_;  // of the matrix being read
};

}  // namespace detail

template <class>
bool looks_like_rocm_smi_topo(std::string_view text) {
  return text.find("Weight between two GPUs") != std::string_view::npos ||
         text.find("Hops between two GPUs") != std::string_view::npos ||
         text.find("Link Type between two GPUs") != std::string_view::npos;
}

template <class>
result<rocm_smi_topo> parse_rocm_smi_topo(std::string_view text, std::string_view file) {
  return detail::rocm_reader<>(text, file).read();
}

}}}  // namespace topocoll::v0::read
