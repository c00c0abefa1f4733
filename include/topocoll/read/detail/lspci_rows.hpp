// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the lines and the trees of lspci are read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/detail/text_rows.hpp>
#include <topocoll/read/lspci.hpp>

namespace topocoll { inline namespace v0 { namespace read {

namespace detail {

/// A PCI address as lspci writes it: "41:00.0" or "0000:41:00.0", nothing else.
struct pci_name {
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;

  [[nodiscard]] static std::optional<pci_name> parse(std::string_view text) {
    pci_name n;
    const std::size_t dot = text.rfind('.');
    if (dot == std::string_view::npos || dot + 2 != text.size() || text.back() < '0' || text.back() > '7')
      return std::nullopt;
    n.function = static_cast<std::uint32_t>(text.back() - '0');
    text = text.substr(0, dot);
    std::uint32_t* const parts[] = {&n.device, &n.bus, &n.domain};
    std::size_t part = 0;
    for (bool more = true; more; ++part) {
      if (part == 3) return std::nullopt;
      const std::size_t colon = text.rfind(':');
      const std::string_view digits = colon == std::string_view::npos ? text : text.substr(colon + 1);
      const auto value = digits_of(digits, 16);
      if (!value || (part < 2 ? digits.size() != 2 : digits.size() < 4 || digits.size() > 8)) return std::nullopt;
      *parts[part] = static_cast<std::uint32_t>(*value);
      more = colon != std::string_view::npos;
      if (more) text = text.substr(0, colon);
    }
    if (part < 2 || n.device > 0x1f) return std::nullopt;
    return n;
  }
  [[nodiscard]] std::string text() const {
    constexpr char hex[] = "0123456789abcdef";
    std::string out;
    int digits = 4;
    while (digits < 8 && domain >> (4 * digits) != 0) ++digits;
    while (digits-- > 0) out += hex[domain >> (4 * digits) & 15U];
    for (const std::uint32_t byte : {bus, device}) {
      out += ':';
      out += hex[byte >> 4U & 15U];
      out += hex[byte & 15U];
    }
    out += '.';
    out += hex[function];
    return out;
  }
};

/// "10de:20b2" in the last brackets of a description that hold a colon; taken out of it.
template <class = void>
void take_ids(lspci_function& f) {
  const std::size_t open = f.description.rfind('[');
  const auto is_id = [](std::string_view s) { return s.size() == 4 && digits_of(s, 16).has_value(); };
  if (open == std::string::npos || open + 11 > f.description.size() || f.description[open + 10] != ']' ||
      f.description[open + 5] != ':')
    return;
  const std::string_view inside = std::string_view(f.description).substr(open + 1, 9);
  if (!is_id(inside.substr(0, 4)) || !is_id(inside.substr(5))) return;
  f.vendor = std::string(inside.substr(0, 4));
  f.device = std::string(inside.substr(5));
  f.description = std::string(trimmed(f.description.substr(0, open)));
}

/// The line of a function: "01:00.0 3D controller [0302]: NVIDIA … [10de:20b2] (rev a1)". Empty for other rows.
template <class = void>
[[nodiscard]] std::optional<lspci_function> function_row(std::string_view row) {
  row = trimmed(row);
  const std::size_t blank = row.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto name = pci_name::parse(row.substr(0, blank));
  const std::size_t colon = row.find(": ", blank);
  if (!name || colon == std::string_view::npos) return std::nullopt;
  lspci_function f;
  f.address = name->text();
  f.domain = name->domain;
  f.bus = name->bus;
  std::string_view kind = trimmed(row.substr(blank, colon - blank));
  if (kind.size() > 6 && kind.back() == ']' && kind[kind.size() - 6] == '[') {
    f.class_code = pci_class_code(kind.substr(kind.size() - 5, 4));
    kind = trimmed(kind.substr(0, kind.size() - 6));
  } else if (kind.size() == 4) {
    f.class_code = pci_class_code(kind);  // -n prints numbers alone
  }
  if (!f.class_code) f.class_code = pci_class_of_name(kind);
  f.class_name = std::string(kind);
  f.description = std::string(trimmed(row.substr(colon + 2)));
  for (const std::string_view end : {" (prog-if ", " (rev "})
    if (const std::size_t at = f.description.rfind(end); at != std::string::npos) f.description.resize(at);
  if (f.description.size() == 9 && f.description[4] == ':' && kind.size() == 4)
    f.description = "[" + f.description + "]";
  take_ids(f);
  return f;
}

/// Where a row of a tree begins: a bus in brackets behind dashes. npos for other rows.
[[nodiscard]] constexpr std::size_t tree_start(std::string_view row) {
  const std::size_t at = row.find_first_not_of(" |");
  if (at == std::string_view::npos || (row[at] != '-' && row[at] != '+' && row[at] != '\\'))
    return std::string_view::npos;
  return at;
}
[[nodiscard]] constexpr bool is_tree_root(std::string_view row) {
  const std::size_t at = tree_start(row);
  if (at == std::string_view::npos || row[at] != '-') return false;
  const std::string_view rest = row.substr(at);
  const std::size_t open = rest.substr(0, 2) == "-[" ? 2 : rest.substr(0, 4) == "-+-[" ? 4 : 0;
  return open != 0 && rest.size() > open + 4 && rest[open + 4] == ':';
}

/// Devices that only hypervisors make, by what they are called or by the maker's number.
template <class = void>
[[nodiscard]] bool only_in_guests(const lspci_function& f) {
  for (const std::string_view word : {"Virtio", "virtio", "QEMU", "VMware", "Hyper-V", "Xen Platform", "VirtualBox"})
    if (f.description.find(word) != std::string::npos) return true;
  for (const std::string_view maker : {"1af4", "1b36", "15ad", "1414", "5853", "80ee"})
    if (f.vendor == maker) return true;
  return false;
}

template <class = void>
class lspci_reader {
 public:
  lspci_reader(std::string_view text, std::string_view file) : rows_(text), file_(file) {}

  [[nodiscard]] result<lspci_listing> read() {
    while (rows_.next()) {
      const std::string_view row = rows_.row();
      if (out_.functions.size() > most_pci_functions)
        return fail(errc::unsupported, at() + "more than " + std::to_string(most_pci_functions) + " functions");
      if (!out_.tree && out_.functions.empty() && is_tree_root(row)) out_.tree = true;
      if (out_.tree) {
        if (auto ok = tree_row(row); !ok) return ok.error();
        continue;
      }
      if (auto f = function_row(row)) {
        f->line = rows_.number();
        out_.functions.push_back(std::move(*f));
      } else if (!out_.functions.empty()) {
        attribute(out_.functions.back(), trimmed(row));
      }
    }
    if (out_.functions.empty())
      return fail(errc::malformed_input,
                  file_ + ": no line is that of a PCI function, such as \"41:00.0 3D controller: …\"",
                  "name the output of lspci -vvv, -nn or -tv");
    return finish();
  }

 private:
  /// A bus whose devices are being listed, and the column in which its branches begin.
  struct open_bus {
    std::size_t column;
    std::uint32_t domain, bus;
    bool root;  // the list of root buses
  };

  [[nodiscard]] std::string at() const { return file_ + " line " + std::to_string(rows_.number()) + ": "; }
  void attribute(lspci_function& f, std::string_view row);
  [[nodiscard]] static lspci_link link(std::string_view text);
  [[nodiscard]] result<void> tree_row(std::string_view row);
  [[nodiscard]] result<lspci_listing> finish();

  text_rows rows_;
  std::string file_;
  lspci_listing out_;
  std::vector<open_bus> open_;
};

/// "Speed 16GT/s (downgraded), Width x16 (ok)", also with a port number before and more behind.
template <class Deferred>
lspci_link lspci_reader<Deferred>::link(std::string_view text) {
  lspci_link l;
  const auto after = [&](std::string_view word, std::string& value, std::string& judgement) {
    const std::size_t start = text.find(word);
    if (start == std::string_view::npos) return;
    std::string_view rest = text.substr(start + word.size());
    rest = rest.substr(0, rest.find(','));
    const std::size_t open = rest.find('(');
    value = std::string(trimmed(rest.substr(0, open)));
    if (open != std::string_view::npos) {
      rest = rest.substr(open + 1);
      judgement = std::string(trimmed(rest.substr(0, rest.find(')'))));
    }
  };
  after("Speed ", l.speed, l.speed_word);
  after("Width x", l.width, l.width_word);
  return l;
}

template <class Deferred>
void lspci_reader<Deferred>::attribute(lspci_function& f, std::string_view row) {
  const auto value_of = [&](std::string_view name) -> std::optional<std::string_view> {
    if (row.substr(0, name.size()) != name) return std::nullopt;
    return trimmed(row.substr(name.size()));
  };
  if (const auto numa = value_of("NUMA node:")) {
    f.numa = small_number(*numa, 65535);
  } else if (const auto buses = value_of("Bus:")) {
    const auto bus = [&](std::string_view name) -> std::optional<std::uint32_t> {
      const std::size_t start = buses->find(name);
      if (start == std::string_view::npos) return std::nullopt;
      std::string_view digits = buses->substr(start + name.size());
      digits = digits.substr(0, digits.find_first_of(", "));
      const auto n = digits_of(digits, 16);
      return n && *n <= 255 ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
    };
    f.secondary = bus("secondary=");
    f.subordinate = bus("subordinate=");
    // A bridge that is not set up has no buses behind it.
    if (f.secondary && *f.secondary == 0) f.secondary.reset();
  } else if (const auto capability = value_of("Capabilities:")) {
    if (capability->find("access denied") != std::string_view::npos) f.denied = true;
    // "[2a0 v1] …": the version is printed for extended ones alone.
    if (const std::size_t end = capability->find(']'); end != std::string_view::npos)
      f.extended = f.extended || capability->substr(0, end).find(" v") != std::string_view::npos;
    f.has_acs = f.has_acs || capability->find("Access Control Services") != std::string_view::npos;
    if (capability->find("Express") != std::string_view::npos) {
      const auto says = [&](std::string_view word) { return capability->find(word) != std::string_view::npos; };
      if (says("Root Port"))
        f.port = pcie_port::root;
      else if (says("Upstream Port"))
        f.port = pcie_port::upstream;
      else if (says("Downstream Port"))
        f.port = pcie_port::downstream;
      else if (says("Endpoint"))
        f.port = pcie_port::endpoint;
      else if (says("to PCI"))
        f.port = pcie_port::to_pci;
    }
  } else if (const auto best = value_of("LnkCap:")) {
    f.best = link(*best);
  } else if (const auto now = value_of("LnkSta:")) {
    f.now = link(*now);
  } else if (const auto cap = value_of("ACSCap:")) {
    f.acs_capability = acs_bits_of(*cap);
  } else if (const auto control = value_of("ACSCtl:")) {
    f.acs_control = acs_bits_of(*control);
  } else if (const auto driver = value_of("Kernel driver in use:")) {
    f.driver = std::string(*driver);
  } else if (const auto slot = value_of("Physical Slot:")) {
    f.slot = std::string(*slot);
  }
}

/// One row of a tree: branches and buses from left to right, at most one device with a description at the end.
template <class Deferred>
result<void> lspci_reader<Deferred>::tree_row(std::string_view row) {
  std::size_t i = tree_start(row);
  if (i == std::string_view::npos) {
    if (!trimmed(row).empty() && row.find('[') != std::string_view::npos)
      out_.findings.push_back({severity::note,
                               file_ + " line " + std::to_string(rows_.number()),
                               "the line is no branch of the tree; it is passed over",
                               {},
                               {},
                               1});
    return {};
  }
  open_bus now{0, 0, 0, true};
  if (row[i] == '-') {
    open_.clear();  // a new tree, or the first
  } else {
    while (!open_.empty() && open_.back().column > i) open_.pop_back();
    if (open_.empty() || open_.back().column != i)
      return fail(errc::malformed_input, at() + "a branch in column " + std::to_string(i + 1) +
                                             " belongs to no bus above it: the columns have shifted");
    now = open_.back();
    ++i;
  }
  std::size_t bridge = static_cast<std::size_t>(-1);  // whose bus comes next
  while (i < row.size()) {
    const char c = row[i];
    if (c == '-') {
      ++i;
    } else if (c == '+' || c == '\\') {
      if (open_.size() > 1024) return fail(errc::malformed_input, at() + "more than 1,024 buses inside each other");
      now.column = i++;
      open_.push_back(now);
    } else if (c == '[') {
      const std::size_t end = row.find(']', i);
      if (end == std::string_view::npos) return fail(errc::malformed_input, at() + "a bus number without its bracket");
      std::string_view inside = row.substr(i + 1, end - i - 1);
      if (const std::size_t colon = inside.find(':'); colon != std::string_view::npos) {
        const auto domain = digits_of(inside.substr(0, colon), 16);
        if (!domain || *domain > UINT32_MAX)
          return fail(errc::malformed_input, at() + "\"" + std::string(inside) + "\" is no PCI bus");
        now.domain = static_cast<std::uint32_t>(*domain);
        inside.remove_prefix(colon + 1);
      }
      const std::size_t dash = inside.find('-');
      const auto first = digits_of(inside.substr(0, dash), 16);
      const auto last = dash == std::string_view::npos ? first : digits_of(inside.substr(dash + 1), 16);
      if (!first || !last || *first > 255 || *last > 255)
        return fail(errc::malformed_input, at() + "\"" + std::string(inside) + "\" is no PCI bus");
      now.bus = static_cast<std::uint32_t>(*first);
      now.root = false;
      if (bridge < out_.functions.size()) {
        out_.functions[bridge].secondary = now.bus;
        out_.functions[bridge].subordinate = static_cast<std::uint32_t>(*last);
        out_.functions[bridge].class_code = 0x060400;
      }
      i = end + 1;
    } else {
      const std::size_t end = std::min(row.find_first_of(" -", i), row.size());
      const std::string_view device = row.substr(i, end - i);
      pci_name name;
      const bool fits = device.size() == 4 && device[2] == '.' && device[3] >= '0' && device[3] <= '7';
      const auto number = fits ? digits_of(device.substr(0, 2), 16) : std::nullopt;
      if (!number || *number > 0x1f || now.root)
        return fail(errc::malformed_input,
                    at() + "\"" + std::string(device) + "\" where a device such as 00.0 is expected");
      name.domain = now.domain;
      name.bus = now.bus;
      name.device = static_cast<std::uint32_t>(*number);
      name.function = static_cast<std::uint32_t>(device[3] - '0');
      lspci_function f;
      f.address = name.text();
      f.domain = now.domain;
      f.bus = now.bus;
      f.line = rows_.number();
      bridge = out_.functions.size();
      i = end;
      if (i < row.size() && row[i] == ' ') {
        f.description = std::string(trimmed(row.substr(i)));
        take_ids(f);
        i = row.size();
      }
      out_.functions.push_back(std::move(f));
    }
  }
  return {};
}

template <class Deferred>
result<lspci_listing> lspci_reader<Deferred>::finish() {
  std::vector<std::size_t> order(out_.functions.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto& f = out_.functions;
  seq::sort(order, [&](std::size_t a, std::size_t b) {
    return f[a].address != f[b].address ? f[a].address < f[b].address : a < b;
  });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (f[order[i]].address == f[order[i - 1]].address)
      return fail(errc::malformed_input, file_ + " line " + std::to_string(f[order[i]].line) + ": " +
                                             f[order[i]].address + " was already told in line " +
                                             std::to_string(f[order[i - 1]].line));
  for (const lspci_function& x : f)
    if (out_.guest_of.empty() && only_in_guests(x))
      out_.guest_of = x.address + " " + (x.description.empty() ? x.vendor + ":" + x.device : x.description);
  return std::move(out_);
}

}  // namespace detail

template <class>
bool looks_like_lspci(std::string_view text) {
  detail::text_rows rows(text);
  while (rows.next()) {
    if (detail::is_tree_root(rows.row())) return true;
    const auto f = detail::function_row(rows.row());
    if (f && f->class_code) return true;
  }
  return false;
}

template <class>
result<lspci_listing> parse_lspci(std::string_view text, std::string_view file) {
  return detail::lspci_reader<>(text, file).read();
}

}}}  // namespace topocoll::v0::read
