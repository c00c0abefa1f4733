// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads an XML text into plain elements by means of pugixml; failures name file, line and reason.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/io/xml_tree.hpp>

#if !__has_include(<pugixml.hpp>)
#error "topocoll/io/xml.hpp needs pugixml (Debian: libpugixml-dev)"
#endif
#include <pugixml.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// What a text may cost. Far above any description of a machine, far below what hurts.
struct xml_limits {
  std::size_t text_bytes = std::size_t{32} << 20U;
  std::uint32_t elements = 200000;
  std::uint32_t depth = 200;
};

/// Parses a UTF-8 text (with or without byte-order mark) that holds one root element.
///
/// Document type definitions are skipped and their entities are not expanded, so a small text cannot grow.
/// @param origin  name of the file, for failures
/// @return `malformed_input` for a text that is empty, not XML, cut off, has text or a second element outside the root,
///         or an attribute given twice; `unsupported` beyond a limit. Cost: linear; memory about ten times the text.
template <class = void>
[[nodiscard]] result<xml_element> parse_xml(std::string_view text, std::string_view origin,
                                            const xml_limits& limits = {});

namespace detail {

/// Line numbers of offsets into a text.
class line_index {
 public:
  explicit line_index(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') ends_.push_back(i);
  }
  [[nodiscard]] std::uint32_t of(std::size_t offset) const {
    return static_cast<std::uint32_t>(std::lower_bound(ends_.begin(), ends_.end(), offset) - ends_.begin()) + 1;
  }

 private:
  std::vector<std::size_t> ends_;
};

/// Why pugixml stopped, in words that name what is wrong with the text.
template <class = void>
[[nodiscard]] const char* xml_reason(pugi::xml_parse_status status) {
  switch (status) {
    case pugi::status_unrecognized_tag: return "a '<' that begins no tag";
    case pugi::status_bad_pi: return "a broken processing instruction";
    case pugi::status_bad_comment: return "a comment that is not closed";
    case pugi::status_bad_cdata: return "a CDATA section that is not closed";
    case pugi::status_bad_doctype: return "a broken document type";
    case pugi::status_bad_pcdata: return "broken text between elements";
    case pugi::status_bad_start_element: return "an opening tag that is broken or cut off";
    case pugi::status_bad_attribute: return "an attribute that is broken or cut off";
    case pugi::status_bad_end_element: return "a closing tag that is broken or cut off";
    case pugi::status_end_element_mismatch: return "a closing tag that does not match its opening tag";
    case pugi::status_no_document_element: return "no element";
    default: return "something that is not XML";
  }
}

/// Deepest of the last elements: where a text that was cut off had arrived.
template <class = void>
[[nodiscard]] pugi::xml_node last_element(pugi::xml_node at) {
  for (;;) {
    pugi::xml_node next = at.last_child();
    while (next && next.type() != pugi::node_element) next = next.previous_sibling();
    if (!next) return at;
    at = next;
  }
}

}  // namespace detail

template <class>
result<xml_element> parse_xml(std::string_view text, std::string_view origin, const xml_limits& limits) {
  const std::string file(origin);
  if (text.size() > limits.text_bytes)
    return fail(errc::unsupported, file + " has " + std::to_string(text.size()) + " bytes; an XML text may have " +
                                       std::to_string(limits.text_bytes));
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return fail(errc::malformed_input, file + " is empty", "give a file that holds an XML document");
  const detail::line_index lines(text);
  const auto refuse = [&](std::size_t offset, const std::string& why) {
    return fail(errc::malformed_input, file + " line " + std::to_string(lines.of(offset)) + ": " + why);
  };
  // pugixml would read past a NUL as if the text ended there or went on, by build; XML has no such character.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    return refuse(nul, "a NUL byte, so this is not an XML text");
  if (const std::size_t first = text.find_first_not_of(" \t\r\n"); text[first] != '<')
    return refuse(first, "the text does not begin with '<', so this is not XML");
  if (static_cast<std::size_t>(std::count(text.begin(), text.end(), '<')) > 2 * std::size_t{limits.elements})
    return fail(errc::unsupported, file + " holds more than " + std::to_string(limits.elements) + " elements");

  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(), pugi::parse_fragment | pugi::parse_escapes | pugi::parse_wconv_attribute,
      pugi::encoding_utf8);
  if (!parsed) {
    const auto offset = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0)), text.size());
    if (parsed.status == pugi::status_out_of_memory) return fail(errc::system, file + " does not fit into memory");
    // The parser stops on the last '>' of a text that lacks closing tags, and inside a closing tag that is wrong: after a
    // last closing tag both look the same.
    const bool at_end = text.find_first_not_of(" \t\r\n>", offset) == std::string_view::npos;
    const std::size_t tag = text.rfind('<', offset);
    if (at_end && parsed.status == pugi::status_end_element_mismatch && tag != std::string_view::npos &&
        text.substr(tag, 2) == "</")
      return refuse(offset, "the text is cut off after a closing tag, or that tag does not match its opening tag");
    const pugi::xml_node open = detail::last_element(document);
    if (at_end && open && open.type() == pugi::node_element)
      return refuse(text.size() - 1, std::string("the text is cut off; the last element that began is <") +
                                         open.name() + "> on line " +
                                         std::to_string(lines.of(static_cast<std::size_t>(open.offset_debug()))));
    return refuse(std::min(offset, text.size() - 1), std::string(detail::xml_reason(parsed.status)));
  }
  // A fragment may hold several roots and text beside them; XML may not.
  pugi::xml_node root;
  for (pugi::xml_node top = document.first_child(); top; top = top.next_sibling()) {
    const auto at = static_cast<std::size_t>(std::max<std::ptrdiff_t>(top.offset_debug(), 0));
    if (top.type() == pugi::node_pcdata || top.type() == pugi::node_cdata)
      return refuse(text.find_first_not_of(" \t\r\n", at), "text outside the root element");
    if (top.type() != pugi::node_element) continue;
    if (root) return refuse(at, std::string("a second root element <") + top.name() + "> after <" + root.name() + ">");
    root = top;
  }
  if (!root) return fail(errc::malformed_input, file + " holds no element, so this is not XML");

  // Without recursion, because the depth is what the text makes it until it is checked here.
  struct step {
    pugi::xml_node node;
    xml_element made;
  };
  std::vector<step> open;
  std::uint32_t elements = 0;
  const auto enter = [&](pugi::xml_node n) -> result<void> {
    const auto at = static_cast<std::size_t>(n.offset_debug());
    if (open.size() >= limits.depth)
      return fail(errc::unsupported, file + " line " + std::to_string(lines.of(at)) + ": elements nest deeper than " +
                                         std::to_string(limits.depth));
    if (++elements > limits.elements)
      return fail(errc::unsupported, file + " holds more than " + std::to_string(limits.elements) + " elements");
    step s;
    s.node = n;
    s.made.name = n.name();
    s.made.line = lines.of(at);
    for (const pugi::xml_attribute a : n.attributes()) {
      if (s.made.find(a.name()) != nullptr)
        return refuse(at, std::string("<") + n.name() + "> has the attribute '" + a.name() + "' twice");
      if (s.made.attributes.size() >= 256)  // keeps the search above from becoming quadratic
        return refuse(at, std::string("<") + n.name() + "> has more than 256 attributes");
      s.made.attributes.push_back({a.name(), a.value()});
    }
    for (pugi::xml_node inside = n.first_child(); inside; inside = inside.next_sibling())
      if (inside.type() == pugi::node_pcdata) s.made.text += inside.value();
    open.push_back(std::move(s));
    return {};
  };
  const auto next_element = [](pugi::xml_node n) {
    while (n && n.type() != pugi::node_element) n = n.next_sibling();
    return n;
  };
  if (auto ok = enter(root); !ok) return ok.error();
  for (pugi::xml_node next = next_element(root.first_child());;) {
    if (next) {
      if (auto ok = enter(next); !ok) return ok.error();
      next = next_element(next.first_child());
      continue;
    }
    step done = std::move(open.back());
    open.pop_back();
    if (open.empty()) return std::move(done.made);
    next = next_element(done.node.next_sibling());
    open.back().made.children.push_back(std::move(done.made));
  }
}

}}}  // namespace topocoll::v0::io
