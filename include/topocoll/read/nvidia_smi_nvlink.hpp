// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `nvidia-smi nvlink -s`, `-c` and `-e` print: the NVLinks of each GPU, their rates, abilities and error counters.
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
#include <topocoll/core/units.hpp>
#include <topocoll/read/detail/text_rows.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// One NVLink of one GPU. A listing tells only part of this.
struct nvlink_state {
  std::uint32_t number = 0;
  bool inactive = false;                                        ///< printed as "&lt;inactive&gt;"
  std::optional<bytes_per_second> rate;                         ///< line rate of one direction, as printed by -s
  std::vector<std::pair<std::string, bool>> abilities;          ///< as printed by -c: "P2P is supported" and an answer
  std::vector<std::pair<std::string, std::uint64_t>> counters;  ///< as printed by -e: "CRC Errors" and a count
  std::uint32_t line = 0;
};
struct nvlink_gpu {
  std::uint32_t index = 0;
  std::string model, uuid;
  std::vector<nvlink_state> links;   ///< in the order of the listing
  std::vector<std::string> remarks;  ///< other lines below the GPU
  bool all_inactive = false;         ///< said in one line instead of a list
  std::uint32_t line = 0;

  /// Links with a rate.
  [[nodiscard]] std::size_t active() const {
    std::size_t n = 0;
    for (const nvlink_state& l : links) n += l.rate ? 1U : 0U;
    return n;
  }
};
struct nvidia_smi_nvlink {
  std::vector<nvlink_gpu> gpus;  ///< in the order of the listing; numbers may have gaps
  std::vector<finding> findings;
};

/// True when a line "GPU 0: name (UUID: GPU-…)" is there, and below one that begins with "Link 0".
template <class = void>
[[nodiscard]] bool looks_like_nvidia_smi_nvlink(std::string_view text);

/// Reads a listing; lines of other kinds are kept as remarks of their GPU or passed over. Listings of several kinds one
/// after the other are joined by the number of the GPU.
/// @param file  name for failures and findings
/// @return `malformed_input` with file and line when no GPU is named, for a link outside every GPU, and for a link that is
///         told twice with different rates; `unsupported` for more than 1,024
///         GPUs. Cost: O(text * links of a GPU).
template <class = void>
[[nodiscard]] result<nvidia_smi_nvlink> parse_nvidia_smi_nvlink(std::string_view text, std::string_view file);

namespace detail {

/// Most links of one GPU that are believed; GPUs have up to 18.
inline constexpr std::uint32_t most_links_of_a_listing = 64;
/// Most GPUs of one host that are read; hosts have up to 16.
inline constexpr std::size_t most_gpus_of_a_listing = 1024;

/// "GPU 3: Tesla V100 (UUID: GPU-…)". Empty for other rows.
template <class = void>
[[nodiscard]] std::optional<nvlink_gpu> gpu_row(std::string_view row) {
  row = trimmed(row);
  if (row.substr(0, 4) != "GPU ") return std::nullopt;
  const std::size_t colon = row.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto index = digits_of(trimmed(row.substr(4, colon - 4)), 10);
  if (!index || *index > 65535) return std::nullopt;
  nvlink_gpu g;
  g.index = static_cast<std::uint32_t>(*index);
  std::string_view rest = trimmed(row.substr(colon + 1));
  if (const std::size_t open = rest.rfind("(UUID:"); open != std::string_view::npos) {
    std::string_view uuid = rest.substr(open + 6);
    uuid = uuid.substr(0, uuid.find(')'));
    g.uuid = std::string(trimmed(uuid));
    rest = rest.substr(0, open);
  }
  g.model = std::string(trimmed(rest));
  return g;
}

/// What follows "Link 3" in a row, from the colon or comma on, and the number. Empty for other rows.
template <class = void>
[[nodiscard]] std::optional<std::pair<std::uint32_t, std::string_view>> link_row(std::string_view row) {
  row = trimmed(row);
  if (row.substr(0, 5) != "Link ") return std::nullopt;
  const std::size_t end = row.find_first_of(":,");
  if (end == std::string_view::npos) return std::nullopt;
  const auto number = digits_of(trimmed(row.substr(5, end - 5)), 10);
  if (!number || *number >= most_links_of_a_listing) return std::nullopt;
  return std::pair{static_cast<std::uint32_t>(*number), row.substr(end)};
}

template <class = void>
class nvlink_reader {
 public:
  nvlink_reader(std::string_view text, std::string_view file) : rows_(text), file_(file) {}

  [[nodiscard]] result<nvidia_smi_nvlink> read() {
    while (rows_.next()) {
      const std::string_view row = trimmed(rows_.row());
      if (row.empty()) continue;
      if (auto gpu = gpu_row(row)) {
        if (auto ok = begin(std::move(*gpu)); !ok) return ok.error();
      } else if (const auto link = link_row(row)) {
        if (now_ == none)
          return fail(errc::malformed_input, place() + ": a link, but no line such as \"GPU 0: name\" before it");
        if (auto ok = add(link->first, link->second); !ok) return ok.error();
      } else if (now_ != none && row.substr(0, 5) != "=====") {
        nvlink_gpu& g = out_.gpus[now_];
        if (row.find("links are inActive") != std::string_view::npos ||
            row.find("links are inactive") != std::string_view::npos)
          g.all_inactive = true;
        else if (g.remarks.size() < 8)
          g.remarks.emplace_back(row);
      }
    }
    if (out_.gpus.empty())
      return fail(errc::malformed_input, file_ + ": no line names a GPU, such as \"GPU 0: name (UUID: …)\"",
                  "name the output of nvidia-smi nvlink -s");
    return std::move(out_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  [[nodiscard]] std::string place() const { return file_ + " line " + std::to_string(rows_.number()); }
  void note(std::string what) {
    if (out_.findings.size() < 32) out_.findings.push_back({severity::note, place(), std::move(what), {}, {}, 1});
  }

  [[nodiscard]] result<void> begin(nvlink_gpu gpu) {
    gpu.line = rows_.number();
    for (now_ = 0; now_ < out_.gpus.size(); ++now_)
      if (out_.gpus[now_].index == gpu.index) return {};
    if (out_.gpus.size() == most_gpus_of_a_listing)
      return fail(errc::unsupported, place() + ": more than " + std::to_string(most_gpus_of_a_listing) + " GPUs");
    out_.gpus.push_back(std::move(gpu));
    return {};
  }
  [[nodiscard]] result<void> add(std::uint32_t number, std::string_view rest) {
    std::vector<nvlink_state>& links = out_.gpus[now_].links;
    std::size_t at = 0;
    while (at < links.size() && links[at].number != number) ++at;
    if (at == links.size()) {
      links.emplace_back();
      links.back().number = number;
      links.back().line = rows_.number();
    }
    nvlink_state& l = links[at];
    const std::string_view value = trimmed(rest.substr(1));
    if (rest.front() == ',') {  // "Link 0, P2P is supported: true"
      const std::size_t colon = value.rfind(':');
      const std::string_view answer = colon == std::string_view::npos ? value : trimmed(value.substr(colon + 1));
      if (colon == std::string_view::npos || (answer != "true" && answer != "false"))
        note("\"" + std::string(value) + "\" is no ability with true or false; passed over");
      else if (l.abilities.size() < 64)
        l.abilities.emplace_back(std::string(trimmed(value.substr(0, colon))), answer == "true");
      return {};
    }
    if (value == "<inactive>" || value == "inactive") {
      if (l.rate) return twice(number);
      l.inactive = true;
      return {};
    }
    if (const std::size_t colon = value.rfind(':'); colon != std::string_view::npos) {  // "CRC Errors: 3"
      const auto count = digits_of(trimmed(value.substr(colon + 1)), 10);
      if (!count)
        note("\"" + std::string(value) + "\" is no counter with a number; passed over");
      else if (l.counters.size() < 64)
        l.counters.emplace_back(std::string(trimmed(value.substr(0, colon))), *count);
      return {};
    }
    const auto gigabytes = leading_number(value);
    // No link is faster than a terabyte per second.
    if (!gigabytes || *gigabytes <= 0 || *gigabytes > 1000 || value.find("GB/s") == std::string_view::npos) {
      note("\"" + std::string(value) + "\" is no rate in GB/s; passed over");
      return {};
    }
    const bytes_per_second rate{*gigabytes * 1e9};
    if (l.inactive || (l.rate && *l.rate != rate)) return twice(number);
    l.rate = rate;
    return {};
  }
  [[nodiscard]] failure twice(std::uint32_t number) const {
    return fail(errc::malformed_input, place() + ": link " + std::to_string(number) + " of GPU " +
                                           std::to_string(out_.gpus[now_].index) +
                                           " is told twice, and the two do not agree");
  }

  text_rows rows_;
  std::string file_;
  nvidia_smi_nvlink out_;
  std::size_t now_ = none;  // the GPU that rows belong to
};

}  // namespace detail

template <class>
bool looks_like_nvidia_smi_nvlink(std::string_view text) {
  detail::text_rows rows(text);
  bool gpu = false;
  while (rows.next()) {
    if (gpu && detail::link_row(rows.row())) return true;
    if (detail::gpu_row(rows.row())) gpu = true;
  }
  return false;
}

template <class>
result<nvidia_smi_nvlink> parse_nvidia_smi_nvlink(std::string_view text, std::string_view file) {
  return detail::nvlink_reader<>(text, file).read();
}

}}}  // namespace topocoll::v0::read
