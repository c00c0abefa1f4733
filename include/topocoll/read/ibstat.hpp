// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `ibstat` and `ibv_devinfo` print about the RDMA adapters of one machine.
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
#include <topocoll/read/detail/ib_text.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read {

struct ib_adapter_port {
  std::uint32_t number = 0;
  ib_state state = ib_state::unknown;
  std::string state_text;                ///< as written
  std::string physical;                  ///< "LinkUp", "Polling", "Disabled"; empty when not told
  std::optional<bytes_per_second> rate;  ///< as printed, also by ports that are down
  std::uint32_t width = 0;               ///< lanes; only `ibv_devinfo -v` tells
  ib_speed speed = ib_speed::unknown;    ///< FDR10 from ibstat; others from `ibv_devinfo -v` alone
  std::optional<std::uint32_t> lid;      ///< empty when not told or 0
  std::optional<std::uint64_t> guid;     ///< not told by ibv_devinfo
  std::string layer;                     ///< "InfiniBand", "Ethernet"; empty when not told
  std::uint32_t line = 0;
};
struct ib_adapter {
  std::string name;  ///< "mlx5_0"
  std::string type, firmware;
  std::optional<std::uint64_t> node_guid, system_image;
  std::optional<std::uint32_t> port_count;
  std::vector<ib_adapter_port> ports;
  std::uint32_t line = 0;
};
struct ib_adapters {
  std::vector<ib_adapter> adapters;
  std::vector<finding> findings;
};

/// True for a text with the heading of an adapter (`CA 'mlx5_0'`, `hca_id: mlx5_0`) and one of its properties below.
template <class = void>
[[nodiscard]] bool looks_like_ibstat(std::string_view text);

/// Reads what `ibstat`, `ibstat NAME PORT`, `ibv_devinfo` or `ibv_devinfo -v` print, for any number of adapters.
///
/// Properties that are not known are passed over; a value that is none, such as a GUID with other letters, is refused.
/// @param file  name for failures and findings
/// @return `malformed_input` with the line, or for a text without adapters. Cost: O(n).
template <class = void>
[[nodiscard]] result<ib_adapters> parse_ibstat(std::string_view text, std::string_view file);

namespace detail {

/// The name in `CA 'mlx5_0'`, `CA: 'mlx5_0'` or `hca_id: mlx5_0`; empty for other lines.
template <class = void>
[[nodiscard]] std::string_view ib_adapter_heading(std::string_view line) {
  text_words words(line);
  if (words.take("hca_id:")) {
    const std::string_view name = words.take_word();
    return words.at_end() ? name : std::string_view();
  }
  if (!words.take("CA: '") && !words.take("CA '")) return {};
  std::string_view name = words.rest();
  if (name.size() < 2 || name.back() != '\'') return {};
  name.remove_suffix(1);
  return name.find('\'') == std::string_view::npos ? name : std::string_view();
}

/// A line `name: value`, both without blanks around them.
struct ib_property {
  std::string_view name, value;
};
[[nodiscard]] constexpr ib_property ib_property_of(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  return {trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1))};
}

/// "0x0002c903000a1b2c", or "0002:c903:000a:1b2c" as ibv_devinfo writes it.
template <class = void>
[[nodiscard]] std::optional<std::uint64_t> ib_guid_of(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != ':') digits += c;
  text_words words(digits);
  const auto guid = words.take_guid();
  return guid && words.at_end() ? guid : std::nullopt;
}

template <class = void>
class ibstat_reader {
 public:
  explicit ibstat_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<ib_adapters> read(std::string_view text) {
    text_lines lines(text);
    while (lines.next()) {
      line_ = lines.line();
      number_ = lines.number();
      if (line_.empty() || line_.front() == '#') continue;
      if (const std::string_view name = ib_adapter_heading(line_); !name.empty()) {
        ib_adapter a;
        a.name = std::string(name);
        a.line = number_;
        out_.adapters.push_back(std::move(a));
        continue;
      }
      const ib_property p = ib_property_of(line_);
      if (out_.adapters.empty() || p.name.empty()) {
        odd_.add(number_, line_);
        continue;
      }
      if (auto ok = property(p); !ok) return ok.error();
    }
    if (out_.adapters.empty())
      return fail(errc::malformed_input, std::string(file_) + ": no adapter in it", "give what `ibstat` prints");
    odd_.report(file_, out_.findings);
    return std::move(out_);
  }

 private:
  [[nodiscard]] result<void> property(const ib_property& p) {
    ib_adapter& a = out_.adapters.back();
    const bool heading = p.name.substr(0, 5) == "Port " && p.value.empty();  // "Port 1:" of ibstat
    if (heading || p.name == "port") {
      const auto number = small_number(heading ? p.name.substr(5) : p.value, 255);
      if (!number) return bad_line(file_, number_, line_, "the number of a port, up to 255");
      ib_adapter_port port;
      port.number = *number;
      port.line = number_;
      a.ports.push_back(std::move(port));
      return {};
    }
    if (p.name == "Node GUID" || p.name == "node_guid") return guid(p.value, a.node_guid);
    if (p.name == "System image GUID" || p.name == "sys_image_guid") return guid(p.value, a.system_image);
    if (p.name == "CA type" || p.name == "board_id") a.type = std::string(p.value);
    if (p.name == "Firmware version" || p.name == "fw_ver") a.firmware = std::string(p.value);
    if (p.name == "Number of ports" || p.name == "phys_port_cnt") return count(p.value, a.port_count);
    if (a.ports.empty()) return {};
    ib_adapter_port& port = a.ports.back();
    if (p.name == "Port GUID") return guid(p.value, port.guid);
    if (p.name == "State" || p.name == "state") {
      port.state_text = std::string(p.value);
      std::string_view word = p.value;
      if (word.substr(0, 5) == "PORT_") word.remove_prefix(5);
      port.state = word.substr(0, 4) == "Down" || word.substr(0, 4) == "DOWN"       ? ib_state::down
                   : word.substr(0, 4) == "Init" || word.substr(0, 4) == "INIT"     ? ib_state::initialize
                   : word.substr(0, 3) == "Arm" || word.substr(0, 3) == "ARM"       ? ib_state::armed
                   : word.substr(0, 6) == "Active" || word.substr(0, 6) == "ACTIVE" ? ib_state::active
                                                                                    : ib_state::unknown;
    } else if (p.name == "Physical state" || p.name == "phys_state") {
      port.physical = std::string(p.value);
    } else if (p.name == "Rate") {
      const auto gbit = leading_number(p.value);
      if (!gbit || !(*gbit < 1e6)) return bad_line(file_, number_, line_, "a rate in Gbit/s");
      if (*gbit > 0) port.rate = bytes_per_second{*gbit * 1.25e8};
      if (p.value.find("FDR10") != std::string_view::npos) port.speed = ib_speed::fdr10;
    } else if (p.name == "Base lid" || p.name == "port_lid") {
      std::optional<std::uint32_t> lid;
      if (auto ok = count(p.value, lid); !ok) return ok;
      if (lid && *lid != 0) port.lid = lid;
    } else if (p.name == "Link layer" || p.name == "link_layer") {
      port.layer = p.value == "IB" ? "InfiniBand" : std::string(p.value);
    } else if (p.name == "active_width") {
      port.width = small_number(p.value.substr(0, p.value.find('X')), 64).value_or(0);
    } else if (p.name == "active_speed") {
      port.speed = lane_speed(leading_number(p.value).value_or(0));
    }
    return {};
  }
  /// ibv_devinfo names speeds by what a lane carries, rounded: 2.5, 5, 10, 14, 25, 50, 100 Gbit/s.
  [[nodiscard]] static ib_speed lane_speed(double gbps) {
    constexpr std::pair<double, ib_speed> lanes[] = {{2.5, ib_speed::sdr}, {5, ib_speed::ddr},  {10, ib_speed::qdr},
                                                     {14, ib_speed::fdr},  {25, ib_speed::edr}, {50, ib_speed::hdr},
                                                     {100, ib_speed::ndr}, {200, ib_speed::xdr}};
    for (const auto& [rate, speed] : lanes)
      if (gbps > rate * 0.99 && gbps < rate * 1.01) return speed;
    return ib_speed::unknown;
  }
  [[nodiscard]] result<void> guid(std::string_view text, std::optional<std::uint64_t>& into) const {
    const auto value = ib_guid_of(text);
    if (!value) return bad_line(file_, number_, line_, "a GUID of up to 16 hexadecimal digits");
    if (*value != 0) into = value;
    return {};
  }
  [[nodiscard]] result<void> count(std::string_view text, std::optional<std::uint32_t>& into) const {
    const auto value = small_number(text, 65535);
    if (!value) return bad_line(file_, number_, line_, "a number up to 65535");
    into = value;
    return {};
  }

  std::string_view file_, line_;
  std::uint32_t number_ = 0;
  ib_adapters out_;
  odd_lines odd_;
};

}  // namespace detail

template <class>
bool looks_like_ibstat(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  detail::text_lines lines(text);
  bool heading = false;
  for (int looked = 0; looked < 400 && lines.next(); ++looked) {
    if (!detail::ib_adapter_heading(lines.line()).empty()) {
      heading = true;
      continue;
    }
    const std::string_view name = detail::ib_property_of(lines.line()).name;
    if (heading && (name == "Node GUID" || name == "node_guid" || name == "State" || name == "transport")) return true;
  }
  return false;
}

template <class>
result<ib_adapters> parse_ibstat(std::string_view text, std::string_view file) {
  std::string kept;
  return detail::ibstat_reader<>(file).read(detail::plain_text(text, kept));
}

}}}  // namespace topocoll::v0::read
