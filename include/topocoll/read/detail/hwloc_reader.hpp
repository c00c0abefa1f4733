// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the elements of an hwloc XML are understood.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/read/hwloc_topology.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>

namespace topocoll { inline namespace v0 { namespace read {

namespace detail {

/// "0x0000ffff,,0xf0000000" as words of 32 bits, lowest first. Empty for anything else, for infinite sets ("0xf...f") and
/// above 32,768 bits, which is more than kernels have processors or NUMA nodes.
template <class = void>
[[nodiscard]] std::vector<std::uint32_t> hwloc_bitmap(std::string_view text) {
  constexpr std::size_t most_words = 1024;
  std::vector<std::uint32_t> words;
  text = trimmed(text);
  while (!text.empty() || !words.empty()) {
    const std::size_t comma = text.rfind(',');
    std::string_view word = comma == std::string_view::npos ? text : text.substr(comma + 1);
    std::uint64_t value = 0;
    if (!word.empty()) {
      if (word.substr(0, 2) == "0x") word.remove_prefix(2);
      const auto digits = digits_of(word, 16);
      if (!digits || word.size() > 8) return {};
      value = *digits;
    }
    if (words.size() == most_words) return {};
    words.push_back(static_cast<std::uint32_t>(value));
    if (comma == std::string_view::npos) break;
    text = text.substr(0, comma);
  }
  while (!words.empty() && words.back() == 0) words.pop_back();
  return words;
}

template <class = void>
[[nodiscard]] std::vector<std::uint32_t> numbers_in(const std::vector<std::uint32_t>& words) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t w = 0; w < words.size(); ++w)
    for (std::uint32_t bit = 0; bit < 32; ++bit)
      if ((words[w] >> bit & 1U) != 0) numbers.push_back(static_cast<std::uint32_t>(32 * w) + bit);
  return numbers;
}

template <class = void>
class hwloc_reader {
 public:
  explicit hwloc_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<hwloc_topology> topology(const io::xml_element& root) {
    if (root.name != "topology") {
      std::string what = at(root) + "the root element is <" + root.name + ">, but an hwloc topology has <topology>";
      if (root.name == "topologydiff") what += "; <topologydiff> only says how two topologies differ";
      return fail(errc::malformed_input, std::move(what), "name a file that `lstopo FILE.xml` wrote");
    }
    t_.version = 1;
    if (const std::string* version = root.find("version")) {
      const auto major = leading_number(*version);
      if (!major || *major < 1)
        return fail(errc::malformed_input, at(root) + "version=\"" + *version + "\" is no version of hwloc's XML");
      if (*major >= 4)
        return fail(errc::unsupported,
                    at(root) + "hwloc XML of version " + *version + "; versions 1 to 3 are read here",
                    "export it for an older reader: lstopo --export-xml-flags v2");
      t_.version = static_cast<std::uint32_t>(*major);
    }
    for (const io::xml_element& e : root.children) {
      if (e.name == "object") {
        if (auto ok = objects(e); !ok) return ok.error();
      } else if (e.name == "info") {
        info(e, t_.infos);
      } else if (e.name == "distances2" || e.name == "distances2hetero") {
        matrix(e);
      }
    }
    if (!any_object_)
      return fail(errc::malformed_input, at(root) + "<topology> has no <object>, so there is nothing in it");
    for (const io::xml_element* e : old_matrices_) old_matrix(*e);
    if (const std::string* name = find_info(t_.infos, "HostName")) t_.host_name = std::string(trimmed(*name));
    return std::move(t_);
  }

 private:
  /// An element that waits for its turn, and what stands above it.
  struct waiting {
    const io::xml_element* element;
    const io::xml_element* place;  // nearest object above that is no I/O device
    std::size_t function;          // nearest PCI function or bridge above
  };

  [[nodiscard]] std::string at(const io::xml_element& e) const {
    return file_ + " line " + std::to_string(e.line) + ": ";
  }
  void note(severity level, const io::xml_element& e, std::string what, std::string evidence = {}) {
    t_.findings.push_back(
        {level, file_ + " line " + std::to_string(e.line), std::move(what), std::move(evidence), {}, 1});
  }
  [[nodiscard]] static std::string text(const io::xml_element& e, std::string_view name) {
    const std::string* value = e.find(name);
    return value ? *value : std::string();
  }
  [[nodiscard]] static std::vector<std::uint32_t> bitmap(const io::xml_element& e, std::string_view name) {
    const std::string* value = e.find(name);
    return value ? hwloc_bitmap(*value) : std::vector<std::uint32_t>();
  }
  [[nodiscard]] static std::optional<std::uint64_t> large_number(const io::xml_element& e, std::string_view name) {
    const std::string* value = e.find(name);
    return value ? digits_of(trimmed(*value), 10) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> number(const io::xml_element& e, std::string_view name) {
    const std::string* value = e.find(name);
    if (!value) return std::nullopt;
    const auto found = small_number(*value, INT32_MAX);
    if (!found)
      note(severity::warning, e,
           std::string(name) + "=\"" + *value + "\" is not a number from 0 to 2147483647; taken as not told");
    return found;
  }
  static void info(const io::xml_element& e, hwloc_infos& into) {
    const std::string* name = e.find("name");
    const std::string* value = e.find("value");
    if (name && value) into.emplace_back(*name, *value);
  }
  static void infos(const io::xml_element& object, hwloc_infos& into) {
    for (const io::xml_element& e : object.children)
      if (e.name == "info") info(e, into);
  }

  /// The tree below one object, without recursion.
  [[nodiscard]] result<void> objects(const io::xml_element& first) {
    std::vector<waiting> todo{{&first, nullptr, hwloc_none}};
    while (!todo.empty()) {
      const waiting w = todo.back();
      todo.pop_back();
      const io::xml_element& e = *w.element;
      const std::string type = text(e, "type");
      waiting below{nullptr, w.place, w.function};
      any_object_ = true;
      if (type == "Bridge" || type == "PCIDev") {
        if (type == "Bridge" && e.find("pci_busid") == nullptr) {
          ++t_.host_bridges;
          below.function = hwloc_none;
        } else {
          below.function = t_.functions.size();
          if (auto ok = function(e, type == "Bridge", w); !ok) return ok.error();
        }
      } else if (type == "OSDev") {
        os_device(e, w.function);
      } else if (type != "Misc") {
        below.place = &e;
        below.function = hwloc_none;
        place(e, type);
      }
      for (std::size_t i = e.children.size(); i-- > 0;) {
        const io::xml_element& child = e.children[i];
        if (child.name == "distances") old_matrices_.push_back(&child);
        if (child.name != "object") continue;
        below.element = &child;
        todo.push_back(below);
      }
    }
    return {};
  }

  void place(const io::xml_element& e, const std::string& type) {
    if (type == "PU") {
      ++t_.processing_units;
    } else if (type == "Core") {
      ++t_.cores;
    } else if (type == "Machine" || type == "System") {
      infos(e, t_.infos);
      if (const auto size = large_number(e, "local_memory")) t_.memory = bytes{*size};
    } else if (type == "Package" || type == "Socket") {
      hwloc_package p;
      p.number = number(e, "os_index");
      p.cpus = bitmap(e, "cpuset");
      p.line = e.line;
      infos(e, p.infos);
      t_.packages.push_back(std::move(p));
    } else if (type == "NUMANode") {
      hwloc_numa n;
      n.number = number(e, "os_index");
      n.subtype = text(e, "subtype");
      if (const auto size = large_number(e, "local_memory")) n.memory = bytes{*size};
      n.cpus = bitmap(e, "cpuset");
      n.line = e.line;
      infos(e, n.infos);
      if (const std::string* kind = find_info(n.infos, "Type"); n.subtype.empty() && kind) n.subtype = *kind;
      t_.numas.push_back(std::move(n));
    }
  }

  [[nodiscard]] result<void> function(const io::xml_element& e, bool bridge, const waiting& above) {
    hwloc_pci p;
    p.address = text(e, "pci_busid");
    p.subtype = text(e, "subtype");
    p.bridge = bridge;
    p.parent = above.function;
    p.gp_index = large_number(e, "gp_index");
    p.line = e.line;
    if (trimmed(p.address).empty())
      return fail(errc::malformed_input, at(e) + "a PCI device has no pci_busid, so it cannot be told from others");
    if (const std::string* type = e.find("pci_type")) pci_type(e, *type, p);
    if (const std::string* speed = e.find("pci_link_speed")) {
      const auto rate = leading_number(*speed);  // GB/s; 0 means that hwloc could not find out
      if (!rate || *rate > 1e4)
        note(severity::warning, e, "pci_link_speed=\"" + *speed + "\" is no rate in GB/s; taken as not told");
      else if (*rate > 0)
        p.link = bytes_per_second{*rate * 1e9};
    }
    if (above.function != hwloc_none)
      p.near = t_.functions[above.function].near;
    else if (above.place != nullptr)
      p.near = domains_of(*above.place);
    infos(e, p.infos);
    t_.functions.push_back(std::move(p));
    return {};
  }

  /// NUMA domains of an object; worked out once where several bridges hang on one.
  [[nodiscard]] const std::vector<std::uint32_t>& domains_of(const io::xml_element& object) {
    if (last_place_ == &object) return last_domains_;
    last_place_ = &object;
    last_domains_ = numbers_in(bitmap(object, "nodeset"));
    if (text(object, "type") == "NUMANode")
      if (const auto own = small_number(text(object, "os_index"), INT32_MAX)) last_domains_ = {*own};
    constexpr std::size_t most = 64;  // of which one is to be chosen: beyond that nothing is told
    if (last_domains_.size() > most) last_domains_.clear();
    return last_domains_;
  }

  /// "0302 [10de:1db8] [10de:131d] a1 00": class, vendor and device, subsystem, revision, and interface since version 3.
  void pci_type(const io::xml_element& e, std::string_view type, hwloc_pci& p) {
    const auto ids = [](std::string_view pair, std::string& vendor, std::string& device) {
      if (pair.size() != 11 || pair[0] != '[' || pair[5] != ':' || pair[10] != ']') return false;
      if (!digits_of(pair.substr(1, 4), 16) || !digits_of(pair.substr(6, 4), 16)) return false;
      vendor = "0x" + std::string(pair.substr(1, 4));
      device = "0x" + std::string(pair.substr(6, 4));
      return true;
    };
    std::string_view words[5];
    std::size_t n = 0;
    for (std::string_view rest = trimmed(type); !rest.empty() && n < 5;) {
      const std::size_t end = rest.find(' ');
      words[n++] = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view() : trimmed(rest.substr(end));
    }
    const auto code = words[0].size() == 4 ? pci_class_code(words[0]) : std::nullopt;
    if (!code || !ids(words[1], p.vendor, p.device)) {
      note(severity::warning, e, "pci_type=\"" + std::string(type) + "\" is not \"class [vendor:device] …\"");
      p.vendor.clear();
      p.device.clear();
      if (code) p.class_code = code;
      return;
    }
    p.class_code = code;
    if (p.vendor == "0x0000") {
      // A function whose configuration space could not be read: no vendor has this number.
      note(severity::warning, e, "the PCI function " + p.address + " tells neither vendor nor class",
           "pci_type=\"" + std::string(type) + "\"");
      p.class_code.reset();
      p.vendor.clear();
      p.device.clear();
      return;
    }
    if (ids(words[2], p.subsystem_vendor, p.subsystem_device) && p.subsystem_vendor == "0x0000") {
      p.subsystem_vendor.clear();
      p.subsystem_device.clear();
    }
    if (words[4].size() == 2)
      if (const auto programming = digits_of(words[4], 16)) *p.class_code |= static_cast<std::uint32_t>(*programming);
  }

  void os_device(const io::xml_element& e, std::size_t function) {
    hwloc_os_device d;
    d.name = text(e, "name");
    d.subtype = text(e, "subtype");
    d.function = function;
    d.gp_index = large_number(e, "gp_index");
    d.line = e.line;
    infos(e, d.infos);
    if (const auto type = number(e, "osdev_type")) {
      constexpr std::uint32_t old[] = {hwloc_storage,     hwloc_display, hwloc_network,
                                       hwloc_openfabrics, hwloc_dma,     hwloc_coprocessor};
      if (t_.version >= 3)
        d.kinds = *type & 127U;
      else if (*type < 6)
        d.kinds = old[*type];
    }
    if (d.name.empty()) {
      note(severity::warning, e, "an OS device has no name; it is passed over");
      return;
    }
    t_.os_devices.push_back(std::move(d));
  }

  /// `<distances2>` and `<distances2hetero>`: indexes and values are lists in pieces.
  void matrix(const io::xml_element& e) {
    hwloc_matrix m;
    m.name = text(e, "name");
    m.line = e.line;
    const std::string type = text(e, "type");
    const bool mixed = e.name == "distances2hetero";
    m.by_os_index = !mixed && text(e, "indexing") == "os";
    // Unnamed before version 2.1: bit 2 of `kind` says that the values are latencies.
    if (m.name.empty() && type == "NUMANode" && (small_number(text(e, "kind")).value_or(0) & 4U) != 0)
      m.name = "NUMALatency";
    for (const io::xml_element& part : e.children) {
      if (part.name != "indexes" && part.name != "u64values") continue;
      for (std::string_view rest = trimmed(part.text); !rest.empty();) {
        const std::size_t end = rest.find_first_of(" \t\r\n");
        std::string_view word = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view() : trimmed(rest.substr(end));
        hwloc_place place{type, 0};
        if (const std::size_t colon = word.find(':'); part.name == "indexes" && colon != std::string_view::npos) {
          place.type = std::string(word.substr(0, colon));
          word.remove_prefix(colon + 1);
        }
        const auto value = digits_of(word, 10);
        if (!value) {
          note(severity::warning, part,
               "\"" + std::string(word) + "\" is no number; the matrix " + m.name + " is passed over");
          return;
        }
        if (part.name == "indexes") {
          place.index = *value;
          m.places.push_back(std::move(place));
        } else {
          m.values.push_back(static_cast<double>(*value));
        }
      }
    }
    keep(e, std::move(m), number(e, "nbobjs"));
  }

  /// `<distances>` of version 1: values times a base, between the objects of one depth, of which only their number is told.
  void old_matrix(const io::xml_element& e) {
    const auto n = number(e, "nbobjs");
    const auto base = leading_number(text(e, "latency_base"));
    if (!n || *n != t_.numas.size() || !base) {
      note(severity::note, e, "a matrix between objects other than NUMA nodes is passed over");
      return;
    }
    hwloc_matrix m;
    m.name = "NUMALatency";
    m.by_os_index = true;
    m.line = e.line;
    for (std::size_t i = 0; i < t_.numas.size(); ++i)
      m.places.push_back({"NUMANode", t_.numas[i].number.value_or(static_cast<std::uint32_t>(i))});
    for (const io::xml_element& value : e.children)
      if (value.name == "latency") m.values.push_back(leading_number(text(value, "value")).value_or(0) * *base);
    keep(e, std::move(m), n);
  }

  void keep(const io::xml_element& e, hwloc_matrix m, std::optional<std::uint32_t> told) {
    const std::size_t n = m.places.size();
    if (n == 0 || m.values.size() % n != 0 || m.values.size() / n != n || (told && *told != n)) {
      note(severity::warning, e, "a matrix does not have as many values as objects need; it is passed over",
           m.name + ": " + std::to_string(n) + " objects, " + std::to_string(m.values.size()) + " values");
      return;
    }
    t_.matrices.push_back(std::move(m));
  }

  std::string file_;
  hwloc_topology t_;
  bool any_object_ = false;
  std::vector<const io::xml_element*> old_matrices_;
  const io::xml_element* last_place_ = nullptr;
  std::vector<std::uint32_t> last_domains_;
};

}  // namespace detail

template <class>
result<hwloc_topology> hwloc_topology_of(const io::xml_element& root, std::string_view file) {
  return detail::hwloc_reader(file).topology(root);
}

}}}  // namespace topocoll::v0::read
