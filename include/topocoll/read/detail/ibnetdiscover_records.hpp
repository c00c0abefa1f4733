// SPDX-License-Identifier: Apache-2.0
#pragma once
// The full form of ibnetdiscover and the net files of ibsim: a record for each device, with a line for each port.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/read/detail/ib_cables.hpp>
#include <topocoll/read/detail/ib_text.hpp>
#include <topocoll/read/detail/ibnetdiscover_list.hpp>
#include <topocoll/read/ib_codes.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read { namespace detail {

/// Kind of device that a record of the full form or of a net file begins with, and its id.
struct ib_record_start {
  ib_kind kind = ib_kind::unknown;
  std::optional<std::uint32_t> ports;
  std::string_view id;
  std::string_view rest;
};
template <class = void>
[[nodiscard]] std::optional<ib_record_start> ib_record_start_of(std::string_view line) {
  text_words words(line);
  const std::string_view word = words.take_word();
  ib_record_start r;
  if (word == "Switch")
    r.kind = ib_kind::switch_device;
  else if (word == "Ca" || word == "Hca")
    r.kind = ib_kind::channel_adapter;
  else if (word == "Rt" || word == "Router")
    r.kind = ib_kind::router;
  else
    return std::nullopt;
  r.ports = words.take_number(65535);
  const auto id = words.take_quoted();
  if (!r.ports || !id || id->empty()) return std::nullopt;
  r.id = *id;
  r.rest = words.rest();
  return r;
}

/// Reads the full form and net files.
template <class = void>
class ibnetdiscover_reader {
 public:
  explicit ibnetdiscover_reader(std::string_view file) : file_(file) {}

  [[nodiscard]] result<ib_fabric> read(std::string_view text) {
    text_lines lines(text);
    while (lines.next()) {
      line_ = lines.line();
      number_ = lines.number();
      if (line_.empty() || line_.front() == '#') continue;
      if (line_.size() > 1 && line_.front() == '[' && is_digit(line_[1])) {
        if (auto ok = port(); !ok) return ok.error();
      } else if (const auto start = ib_record_start_of(line_); start) {
        begin(*start);
      } else if (auto listed = ib_listed_node(line_); listed) {
        listed->line = number_;
        out_.devices.push_back(std::move(*listed));
        current_ = none;
      } else if (const result<bool> known = assignment(); !known) {
        return known.error();
      } else if (!*known && !banner()) {
        if (starts_record())
          return bad_line(file_, number_, line_, "a record such as Switch 36 \"S-0002c903000a1b2c\"");
        odd_.add(number_, line_);
      }
    }
    if (out_.devices.empty())
      return fail(errc::malformed_input, std::string(file_) + ": no record of a switch or an adapter in it",
                  "give what `ibnetdiscover` prints, or a net file of ibsim");
    join_records();
    resolve();
    odd_.report(file_, out_.findings);
    for (port_tally* t : {&beyond_, &renamed_}) t->report(file_, out_.findings);
    close_cables(out_, file_);
    for (const far_end& f : far_) learn(f);
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct far_end {
    ib_end at;
    std::uint32_t position;  ///< of the port in its device's `ports`
    std::string_view id;
    std::uint32_t port;
    std::uint32_t device = none;
    std::optional<std::uint64_t> guid;  ///< of the port
    std::optional<std::uint32_t> lid;
    std::string_view description;
    std::uint32_t line;
  };
  struct named {
    std::string_view id;
    std::uint32_t device;
  };

  [[nodiscard]] bool starts_record() const {
    text_words words(line_);
    const std::string_view word = words.take_word();
    if (word != "Switch" && word != "Ca" && word != "Hca" && word != "Rt") return false;
    return words.take_number().has_value() || line_.find('"') != std::string_view::npos;
  }
  /// Headings that ibnetdiscover writes between the records of chassis.
  [[nodiscard]] bool banner() const {
    for (const std::string_view heading :
         {"Chassis ", "Non-Chassis Nodes", "Spine Nodes", "Line Nodes", "Chassis Switches"})
      if (line_.substr(0, heading.size()) == heading) return true;
    return false;
  }

  /// `switchguid=0x…(…)` and its like, which come before the record that they belong to.
  [[nodiscard]] result<bool> assignment() {
    const std::size_t equals = line_.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = line_.substr(0, equals);
    std::optional<std::uint64_t>* target = name == "vendid"                                               ? &vendor_
                                           : name == "devid"                                              ? &product_
                                           : name == "sysimgguid"                                         ? &system_
                                           : name == "switchguid" || name == "caguid" || name == "rtguid" ? &guid_
                                                                                                          : nullptr;
    if (target == nullptr) return false;
    text_words words(line_.substr(equals + 1));
    const auto value = words.take_guid();
    if (!value) return bad_line(file_, number_, line_, "a hexadecimal number after " + std::string(name) + "=");
    *target = *value;
    current_ = none;
    return true;
  }

  void begin(const ib_record_start& start) {
    ib_device d;
    d.kind = start.kind;
    d.port_count = start.ports;
    d.line = number_;
    d.vendor = narrow(vendor_);
    d.product = narrow(product_);
    if (system_ && *system_ != 0) d.system_image = system_;
    name_device(d, start.id);
    if (!d.guid && guid_ && *guid_ != 0) d.guid = guid_;
    if (d.guid && guid_ && *guid_ != *d.guid)
      renamed_.add(
          [&] { return "line " + std::to_string(number_) + ": " + guid_text(*guid_) + ", " + guid_text(*d.guid); });
    text_words words(start.rest);
    if (words.take("#")) {
      if (const auto text = words.take_quoted_to_last()) d.description = std::string(trimmed(*text));
      while (!words.at_end())
        if (words.take("lid ")) {
          if (const auto lid = words.take_number(65535); lid && *lid != 0) d.lid = lid;
        } else {
          (void)words.take_word();
        }
    }
    vendor_.reset();
    product_.reset();
    system_.reset();
    guid_.reset();
    current_ = static_cast<std::uint32_t>(out_.devices.size());
    names_.push_back({start.id, current_});
    out_.devices.push_back(std::move(d));
  }
  [[nodiscard]] static std::optional<std::uint32_t> narrow(const std::optional<std::uint64_t>& v) {
    if (!v || *v > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*v);
  }
  /// "S-0002c903000a1b2c" is a GUID; what a net file invents is an id.
  static void name_device(ib_device& d, std::string_view id) {
    if (id.size() == 18 && id[1] == '-' && (id[0] == 'S' || id[0] == 'H' || id[0] == 'R')) {
      text_words words(id.substr(2));
      const auto guid = words.take_guid();
      if (guid && words.at_end()) {
        d.guid = guid;
        return;
      }
    }
    d.id = std::string(id);
  }

  [[nodiscard]] result<void> port() {
    if (current_ == none)
      return bad_line(file_, number_, line_, "a record such as Switch 36 \"S-…\" above the first of its ports");
    text_words words(line_);
    const auto broken = [&] {
      return bad_line(file_, number_, line_, "a port such as [1] \"S-0002c903000a1b2c\"[17], port numbers up to 255");
    };
    ib_port p;
    p.line = number_;
    far_end far{};
    far.line = number_;
    (void)words.take("[");
    const auto number = words.take_number(most_port_number);
    if (!number || !words.take("]")) return broken();
    p.number = *number;
    if (!extras(words, p.guid)) return broken();
    if (words.at_end() || words.take("#")) {
      keep(std::move(p));
      return {};
    }
    const auto id = words.take_quoted();
    if (!id || id->empty() || !words.take("[")) return broken();
    far.id = *id;
    const auto far_port = words.take_number(most_port_number);
    if (!far_port || !words.take("]")) return broken();
    far.port = *far_port;
    if (!extras(words, far.guid)) return broken();
    while (!words.at_end() && words.rest().front() != '#')
      if (!option(words.take_word(), p)) return broken();
    if (words.take("#")) comment(words.rest(), p, far);
    if (p.number == 0) return {};  // management port of a switch, inside it
    far.at = {current_, p.number};
    far.position = static_cast<std::uint32_t>(out_.devices[current_].ports.size());
    far_.push_back(far);
    keep(std::move(p));
    return {};
  }
  void keep(ib_port p) {
    ib_device& d = out_.devices[current_];
    if (d.port_count && p.number > *d.port_count)
      beyond_.add([&] { return label_of(d, p.number) + " of " + std::to_string(*d.port_count); });
    d.ports.push_back(std::move(p));
  }
  /// `(guid)` and `[ext 5]`, in any order. False when one of them breaks off.
  [[nodiscard]] static bool extras(text_words& words, std::optional<std::uint64_t>& guid) {
    for (;;) {
      if (words.take("(")) {
        guid = words.take_guid();
        if (!guid || !words.take(")")) return false;
      } else if (words.take("[ext")) {
        if (!words.take_number() || !words.take("]")) return false;
      } else {
        return true;
      }
    }
  }
  /// What net files may add to a port: `w=4`, the number of lanes, and `s=4`, PortInfo's code for a speed.
  [[nodiscard]] static bool option(std::string_view word, ib_port& p) {
    if (word.size() < 3 || word[1] != '=') return false;
    const auto value = small_number(word.substr(2), 65535);
    if (!value) return false;
    if (word[0] == 'w') p.width = *value == 1 || *value == 4 || *value == 12 ? *value : 0;
    if (word[0] == 's') p.speed = ib_speed_of_code(*value, 0);
    return true;
  }
  /// After '#': `lid 5 lmc 0 "peer" lid 7 4xHDR s=4 w=2 v=4 e=4`, where an adapter's own LID comes first and all is optional.
  static void comment(std::string_view text, ib_port& p, far_end& far) {
    const std::size_t open = text.find('"');
    const std::size_t close = text.rfind('"');
    std::string_view tail = text;
    if (open != std::string_view::npos && close > open) {
      far.description = trimmed(text.substr(open + 1, close - open - 1));
      text_words own(text.substr(0, open));
      if (own.take("lid ")) {
        if (const auto lid = own.take_number(65535); lid && *lid != 0) p.lid = lid;
        if (own.take("lmc ")) p.lmc = own.take_number(7);
      }
      tail = text.substr(close + 1);
    }
    text_words words(tail);
    if (words.take("lid "))
      if (const auto lid = words.take_number(65535); lid && *lid != 0) far.lid = lid;
    read_ib_rate(words, p);
    if (p.width != 0 && p.speed != ib_speed::unknown) return;
    std::uint32_t speed = 0;
    std::uint32_t extended = 0;
    std::uint32_t width = 0;
    while (!words.at_end()) {
      const std::string_view word = words.take_word();
      if (word.size() < 3 || word[1] != '=') continue;
      const std::uint32_t value = small_number(word.substr(2), 65535).value_or(0);
      if (word[0] == 's') speed = value;
      if (word[0] == 'e') extended = value;
      if (word[0] == 'w') width = value;
    }
    if (p.width == 0) p.width = ib_lanes_of_code(width);
    if (p.speed == ib_speed::unknown) p.speed = ib_speed_of_code(speed, extended);
  }

  [[nodiscard]] std::uint32_t find(std::string_view id) const {
    const auto at = seq::lower_bound_by(names_, id, &named::id);
    return at != names_.end() && at->id == id ? at->device : none;
  }
  /// Several records with one id are one device: listings get pasted together. The later ones leave empty devices behind.
  void join_records() {
    seq::sort(names_, [](const named& a, const named& b) { return a.id != b.id ? a.id < b.id : a.device < b.device; });
    std::vector<std::uint32_t> place(out_.devices.size());
    std::vector<std::uint32_t> moved(out_.devices.size());  // ports that stand before those of the device
    std::vector<bool> gone(out_.devices.size());
    for (std::uint32_t d = 0; d < place.size(); ++d) place[d] = d;
    bool doubled = false;
    for (std::size_t i = 1; i < names_.size(); ++i) {
      if (names_[i].id != names_[i - 1].id) continue;
      const std::uint32_t later = names_[i].device;
      const std::uint32_t first = place[names_[i - 1].device];
      std::vector<ib_port>& to = out_.devices[first].ports;
      moved[later] = static_cast<std::uint32_t>(to.size());
      for (ib_port& p : out_.devices[later].ports) to.push_back(std::move(p));
      place[later] = first;
      gone[later] = doubled = true;
    }
    if (!doubled) return;
    std::vector<std::uint32_t> next(out_.devices.size());
    std::uint32_t kept = 0;
    for (std::uint32_t d = 0; d < gone.size(); ++d) {
      next[d] = kept;
      if (gone[d]) continue;
      if (kept != d) out_.devices[kept] = std::move(out_.devices[d]);
      ++kept;
    }
    out_.devices.resize(kept);
    for (named& n : names_) n.device = next[place[n.device]];
    for (far_end& f : far_) {
      f.position += moved[f.at.device];
      f.at.device = next[place[f.at.device]];
    }
  }

  /// Finds or makes the devices that ports lead to.
  void resolve() {
    std::vector<named> strangers;
    for (std::size_t i = 0; i < far_.size(); ++i) {
      far_[i].device = find(far_[i].id);
      if (far_[i].device == none) strangers.push_back({far_[i].id, static_cast<std::uint32_t>(i)});
    }
    seq::sort_by(strangers, &named::id);
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      far_end& f = far_[strangers[i].device];
      if (i > 0 && strangers[i].id == strangers[i - 1].id) {
        f.device = far_[strangers[i - 1].device].device;
        continue;
      }
      f.device = static_cast<std::uint32_t>(out_.devices.size());
      ib_device d;
      d.told = false;
      d.line = f.line;
      name_device(d, f.id);
      d.description = std::string(f.description);
      d.kind = !d.guid && !f.guid         ? ib_kind::unknown
               : d.guid && f.id[0] == 'S' ? ib_kind::switch_device
               : d.guid && f.id[0] == 'R' ? ib_kind::router
                                          : ib_kind::channel_adapter;
      if (d.kind == ib_kind::unknown) {
        d.kind = f.port > 2 ? ib_kind::switch_device : ib_kind::channel_adapter;
        d.how = trust::assumed;
        d.reason = "it has no record of its own, and its id does not tell what it is";
      }
      out_.devices.push_back(std::move(d));
    }
    for (const far_end& f : far_) out_.devices[f.at.device].ports[f.position].peer = ib_end{f.device, f.port};
  }
  /// A device without a record is known by what others say of it.
  void learn(const far_end& f) {
    ib_device& d = out_.devices[f.device];
    if (d.kind == ib_kind::switch_device) {
      if (!d.lid) d.lid = f.lid;
      return;
    }
    ib_port* p = port_of(out_, {f.device, f.port});
    if (p == nullptr) return;
    if (!p->guid) p->guid = f.guid;
    if (!p->lid) p->lid = f.lid;
  }

  std::string_view file_, line_;
  std::uint32_t number_ = 0;
  std::uint32_t current_ = none;
  std::optional<std::uint64_t> vendor_, product_, system_, guid_;
  ib_fabric out_;
  std::vector<named> names_;
  std::vector<far_end> far_;
  odd_lines odd_;
  port_tally beyond_{severity::warning, "a port's number is above the number of ports that its device has"};
  port_tally renamed_{severity::warning, "a record gives two GUIDs to one device; that of the id is taken"};
};

}}}}  // namespace topocoll::v0::read::detail
