// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reader of NCCL topology files that is as strict as NCCL's own, written from its rules, for tests.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace topocoll_test {

/// Reads a text one character after the other as NCCL 2.28 does (graph/xml.cc) and complains of whatever NCCL would refuse,
/// cut, misread or overwrite memory with. Stricter than NCCL in this: no text that a pedantic XML reader would refuse.
class strict_nccl_reader {
 public:
  /// @param system_version  what <system version> must be
  /// @return empty when the text is good, else the first complaint
  static std::string complaint(std::string_view text, const std::string& system_version = "1", std::size_t room = 256) {
    strict_nccl_reader r(text, system_version, room);
    r.read();
    return r.complaint_;
  }

 private:
  strict_nccl_reader(std::string_view text, std::string system_version, std::size_t room)
      : text_(text), version_(std::move(system_version)), room_(room) {}

  struct open_element {
    std::string name;
    std::size_t children = 0;
  };

  bool refuse(const std::string& why) {
    if (complaint_.empty()) complaint_ = "byte " + std::to_string(at_) + ": " + why;
    return false;
  }
  bool next(char& c) {
    if (at_ == text_.size()) return refuse("the text ends inside an element");
    c = text_[at_++];
    if (c == '\t') return refuse("a tab");
    if (c == '\r') return refuse("a carriage return");
    if (c == '\0') return refuse("a NUL");
    return true;
  }
  /// A name up to '=', or up to a blank, '>', '/' or newline; the character that ended it.
  bool name(std::string& out, char& last) {
    out.clear();
    for (;;) {
      if (!next(last)) return false;
      if (last == '=' || last == ' ' || last == '>' || last == '/' || last == '\n') return true;
      const bool good = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z') || (last >= '0' && last <= '9') ||
                        last == '_' || last == '-' || last == '.';
      if (!good) return refuse(std::string("'") + last + "' in a name");
      out += last;
      if (out.size() > 254) return refuse("a name of more than 254 characters");
    }
  }
  /// A value in double quotes, and the character behind it. NCCL replaces no entities and checks no length.
  bool value(std::string& out, char& last) {
    char c = 0;
    if (!next(c)) return false;
    if (c != '"') return refuse("a value without quotes");
    out.clear();
    for (;;) {
      if (!next(c)) return false;
      if (c == '"') break;
      if (c == '\n') return refuse("a line end in a value");
      if (c == '<' || c == '&') return refuse(std::string("'") + c + "' in a value");
      out += c;
      if (out.size() > 255) return refuse("a value of more than 255 characters");
    }
    return next(last);
  }
  static bool may_hold(const std::string& parent, const std::string& child) {
    if (parent.empty()) return child == "system";
    if (parent == "system") return child == "cpu";
    if (parent == "cpu") return child == "pci" || child == "nic";
    if (parent == "pci") return child == "pci" || child == "gpu" || child == "nic" || child == "pcilink";
    if (parent == "gpu") return child == "nvlink" || child == "xgmi" || child == "c2c";
    if (parent == "nic") return child == "net";
    return false;
  }
  bool required(const std::string& element, const std::vector<std::string>& names,
                const std::vector<std::string>& values) {
    const auto find = [&](const char* wanted) -> const std::string* {
      for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == wanted) return &values[i];
      return nullptr;
    };
    const auto number = [&](const char* wanted, bool needed) {
      const std::string* v = find(wanted);
      if (v == nullptr) return !needed || refuse("<" + element + "> lacks " + wanted);
      std::size_t digits = !v->empty() && v->front() == '-' ? 1 : 0;
      const bool hex = v->compare(digits, 2, "0x") == 0;
      if (hex) digits += 2;
      return (v->size() > digits &&
              v->find_first_not_of(hex ? "0123456789abcdef" : "0123456789", digits) == std::string::npos) ||
             refuse("<" + element + "> has " + wanted + "=\"" + *v + "\"");
    };
    if (element == "system")
      return (find("version") != nullptr && *find("version") == version_) || refuse("another version of <system>");
    if (element == "cpu") return number("numaid", true) && number("familyid", false) && number("modelid", false);
    if (element == "pci") {
      const std::string* id = find("busid");
      return (id != nullptr && id->size() >= 12 && (*id)[id->size() - 2] == '.') || refuse("<pci> without a busid");
    }
    if (element == "gpu")
      return number("dev", false) && number("sm", false) && number("rank", false) && number("gdr", false);
    if (element == "net")
      return (find("name") != nullptr || find("dev") != nullptr || refuse("<net> lacks name and dev")) &&
             number("dev", false) && number("speed", false) && number("port", false) && number("maxconn", false);
    if (element == "nvlink" || element == "xgmi")
      return (find("target") != nullptr || refuse("<" + element + "> lacks target")) && number("count", true);
    if (element == "c2c") return number("bw", true) && number("count", true);
    if (element == "pcilink") return find("target") != nullptr || refuse("<pcilink> lacks target");
    return true;
  }

  bool element() {
    char c = 0;
    if (!next(c)) return false;
    if (c != '<') return refuse(std::string("'<' expected, '") + c + "' found");
    std::string tag;
    if (!name(tag, c)) return false;
    if (tag.empty() && c == '/') {
      if (!name(tag, c)) return false;
      if (c != '>') return refuse("a closing tag that does not end in '>'");
      if (open_.empty() || open_.back().name != tag) return refuse("</" + tag + "> closes nothing");
      open_.pop_back();
      return line_end();
    }
    const std::string parent = open_.empty() ? std::string() : open_.back().name;
    if (!may_hold(parent, tag)) return refuse("<" + tag + "> inside <" + parent + ">");
    if (open_.empty() && seen_ > 0) return refuse("a second root");
    if (!open_.empty() && ++open_.back().children > 128)
      return refuse("more than 128 elements inside <" + parent + ">");
    // A slot is taken before the next tag is looked at, so the last slot is never of use.
    if (++seen_ >= room_) return refuse("more elements than NCCL has room for");
    std::vector<std::string> names;
    std::vector<std::string> values;
    while (c == ' ') {
      std::string attribute;
      std::string text;
      if (!name(attribute, c)) return false;
      if (c != '=' || attribute.empty()) return refuse("an attribute without a value, or two blanks");
      if (!value(text, c)) return false;
      for (const std::string& other : names)
        if (other == attribute) return refuse("the attribute " + attribute + " twice");
      names.push_back(attribute);
      values.push_back(text);
      if (names.size() > 16) return refuse("more than 16 attributes");
    }
    if (!required(tag, names, values)) return false;
    if (c == '/') {
      if (!next(c)) return false;
    } else {
      open_.push_back({tag});
    }
    if (c != '>') return refuse(std::string("'>' expected, '") + c + "' found");
    return line_end();
  }
  /// One element a line: only blanks and the line end follow a '>'.
  bool line_end() {
    if (at_ == text_.size() || text_[at_] != '\n') return refuse("no line end after an element");
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }
  void read() {
    while (at_ < text_.size())
      if (!element()) return;
    if (!open_.empty()) refuse("<" + open_.back().name + "> is not closed");
    if (seen_ == 0) refuse("no element");
  }

  std::string_view text_;
  std::string version_;
  std::size_t room_;
  std::size_t at_ = 0;
  std::size_t seen_ = 0;
  std::vector<open_element> open_;
  std::string complaint_;
};

}  // namespace topocoll_test
