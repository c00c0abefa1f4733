// SPDX-License-Identifier: Apache-2.0
#pragma once
// An InfiniBand fabric as its tools tell it: devices, their ports, and which port a cable joins to which.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/read/ib_speed.hpp>
#include <topocoll/read/number.hpp>

namespace topocoll { inline namespace v0 { namespace read {

enum class ib_kind : std::uint8_t { unknown, channel_adapter, switch_device, router };

/// Logical state of a port. `unknown` is what a listing without states leaves behind.
enum class ib_state : std::uint8_t { unknown, down, initialize, armed, active };

/// The other end of a cable: positions of a device in `ib_fabric::devices` and the number of its port.
struct ib_end {
  std::uint32_t device = 0;
  std::uint32_t port = 0;

  friend constexpr bool operator==(const ib_end&, const ib_end&) = default;
};

struct ib_port {
  std::uint32_t number = 0;
  std::optional<std::uint64_t> guid;  ///< of an adapter's port; the ports of a switch share the switch's own
  std::optional<std::uint32_t> lid;   ///< empty when not told or 0, which is no LID
  std::optional<std::uint32_t> lmc;
  std::uint32_t width = 0;  ///< lanes; 0 when not told
  ib_speed speed = ib_speed::unknown;
  std::uint32_t best_width = 0;  ///< what both ends could do, where the source tells; else 0
  ib_speed best_speed = ib_speed::unknown;
  ib_state state = ib_state::unknown;
  std::string physical;  ///< "LinkUp", "Polling", …; empty when not told
  std::string remark;    ///< as written: "Could be 12X"
  std::optional<ib_end> peer;
  bool told = true;        ///< false when only the other end tells of this one
  std::uint32_t line = 0;  ///< of the input; 0 for none
};

struct ib_device {
  ib_kind kind = ib_kind::unknown;
  trust how = trust::reported;  ///< of `kind`
  std::string reason;           ///< why `how` is not better
  std::optional<std::uint64_t> guid, system_image;
  std::string id;           ///< what a net file calls it: "Switch1"; empty elsewhere
  std::string description;  ///< free text that administrators set, so never an identity
  std::optional<std::uint32_t> vendor, product;
  std::optional<std::uint32_t> lid;         ///< of a switch, which has one for all its ports
  std::optional<std::uint32_t> port_count;  ///< of the device, told or not
  std::vector<ib_port> ports;               ///< ascending by number, each once
  bool told = true;                         ///< false when only others mention it
  std::uint32_t line = 0;
};

struct ib_fabric {
  std::vector<ib_device> devices;
  std::vector<finding> findings;
};

/// The words of a channel adapter's description, when they are a host and its device: "node7 mlx5_0", "node7 HCA-1".
struct ib_description {
  std::string_view host;    ///< empty when the text does not name one
  std::string_view device;  ///< empty when the text does not name one
  std::optional<std::uint32_t>
      index;  ///< position of the device in its host, from 0: n of "mlx5_n", n - 1 of "HCA-n"; else empty
};

/// Reads a description as rdma-ndd and the older openibd set it, "host device" (rdma-ndd(8), default "%h %d"). A single word
/// is a host; several words that do not end in a device are the name of a product.
template <class = void>
[[nodiscard]] ib_description ib_description_of(std::string_view description);

/// Name of a switch for people, and where it sits in a director: "MF0;core1:CS7500/L11/U1" is the system core1, the model
/// CS7500 and the place L11/U1; any other text is the name.
struct ib_switch_name {
  std::string_view system, model, place;
};
template <class = void>
[[nodiscard]] ib_switch_name ib_switch_name_of(std::string_view description);

/// True for the channel adapter inside a switch that does its reductions (SHARP), by its description.
[[nodiscard]] constexpr bool is_aggregation_node(std::string_view description) {
  return description.find("Aggregation Node") != std::string_view::npos;
}

/// The port of that number, by binary search; null when the device tells of none.
[[nodiscard]] constexpr const ib_port* find_port(const ib_device& d, std::uint32_t number) {
  std::size_t first = 0;
  std::size_t last = d.ports.size();
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (d.ports[middle].number < number)
      first = middle + 1;
    else
      last = middle;
  }
  return first < d.ports.size() && d.ports[first].number == number ? &d.ports[first] : nullptr;
}

/// "0x0002c903000a1b2c", as GUIDs are written in keys and facts.
[[nodiscard]] inline std::string guid_text(std::uint64_t guid) {
  std::string text = "0x0000000000000000";
  for (std::size_t at = text.size(); at-- > 2; guid >>= 4U) text[at] = "0123456789abcdef"[guid & 15U];
  return text;
}

/// What people know a device by: its description or id and its GUID, whichever are told.
[[nodiscard]] inline std::string label_of(const ib_device& d) {
  std::string text = !d.description.empty() ? d.description : d.id;
  if (d.guid) text += (text.empty() ? "" : " ") + guid_text(*d.guid);
  if (text.empty() && !d.ports.empty() && d.ports.front().guid) text = "port " + guid_text(*d.ports.front().guid);
  if (text.empty() && d.lid) text = "LID " + std::to_string(*d.lid);
  return text.empty() ? "a device without a name" : text;
}
/// "leaf1 0x… port 7".
[[nodiscard]] inline std::string label_of(const ib_device& d, std::uint32_t port) {
  return label_of(d) + " port " + std::to_string(port);
}

namespace detail {

[[nodiscard]] constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The digits that end `word`, as a number; empty for none or too many.
[[nodiscard]] constexpr std::optional<std::uint32_t> last_digits(std::string_view word) {
  std::size_t first = word.size();
  while (first > 0 && is_digit(word[first - 1])) --first;
  if (first == word.size() || word.size() - first > 6) return std::nullopt;
  std::uint32_t value = 0;
  for (; first < word.size(); ++first) value = value * 10 + static_cast<std::uint32_t>(word[first] - '0');
  return value;
}

}  // namespace detail

template <class>
ib_description ib_description_of(std::string_view description) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!description.empty() && is_blank(description.front())) description.remove_prefix(1);
  while (!description.empty() && is_blank(description.back())) description.remove_suffix(1);
  std::size_t first_end = 0;
  while (first_end < description.size() && !is_blank(description[first_end])) ++first_end;
  // Names that a machine has before anybody gives it one.
  const std::string_view first = description.substr(0, first_end);
  if (first == "localhost" || first == "localhost.localdomain" || first == "(none)") return {};
  if (first_end == description.size()) return {description, {}, {}};
  std::size_t last = description.size();
  while (last > 0 && !is_blank(description[last - 1])) --last;
  const std::string_view host = description.substr(0, first_end);
  const std::string_view device = description.substr(last);
  const auto number = detail::last_digits(device);
  const bool counted = device.substr(0, 4) == "HCA-" && number;
  const std::size_t underscore = device.rfind('_');
  bool numbered = underscore != std::string_view::npos && underscore > 0 && number && detail::is_letter(device.front());
  for (std::size_t i = underscore + 1; numbered && i < device.size(); ++i) numbered = is_digit(device[i]);
  std::optional<std::uint32_t> index;
  if (counted && *number > 0) index = *number - 1;  // openibd counts adapters from 1
  if (numbered) index = number;
  if (counted || numbered) return {host, device, index};
  // Of two words the second may be a device of any driver: "ibp11s0f0", "bnxt_re0".
  bool two = true;
  for (std::size_t i = first_end; i < last; ++i) two = two && is_blank(description[i]);
  bool digit = false;
  for (const char c : device) digit = digit || is_digit(c);
  if (two && digit && detail::is_letter(device.front())) return {host, device, {}};
  return {};
}

template <class>
ib_switch_name ib_switch_name_of(std::string_view description) {
  if (description.substr(0, 4) != "MF0;") return {description, {}, {}};
  const std::string_view rest = description.substr(4);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {rest, {}, {}};
  const std::string_view tail = rest.substr(colon + 1);
  const std::size_t slash = tail.find('/');
  return {rest.substr(0, colon), tail.substr(0, slash),
          slash == std::string_view::npos ? std::string_view() : tail.substr(slash + 1)};
}

}}}  // namespace topocoll::v0::read
