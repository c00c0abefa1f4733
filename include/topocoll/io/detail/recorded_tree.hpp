// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a recorded file tree is parsed, searched and written.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/io/recording.hpp>

namespace topocoll { inline namespace v0 { namespace io {

namespace detail {

/// Order of paths in which everything below a directory stands together: '/' sorts before every other character.
template <class = void>
[[nodiscard]] bool path_before(std::string_view a, std::string_view b) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i)
    if (a[i] != b[i]) {
      if (a[i] == '/') return true;
      if (b[i] == '/') return false;
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
    }
  return a.size() < b.size();
}

template <class = void>
[[nodiscard]] int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Undoes `escape`. A backslash that begins none of its forms stands for itself.
template <class = void>
[[nodiscard]] std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[i + 1];
    if (next == 'n' || next == 't' || next == '\\' || next == '-') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
      ++i;
    } else if (next == 'x' && i + 3 < text.size() && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
      i += 3;
    } else {
      out += '\\';
    }
  }
  return out;
}

template <class = void>
[[nodiscard]] std::string escape(std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\')
      out += "\\\\";
    else if (code < 0x20 || code >= 0x7f) {
      out += "\\x";
      out += hex[code >> 4U];
      out += hex[code & 15U];
    } else
      out += c;
  }
  return out;
}

}  // namespace detail

template <class>
std::string resolve_link(std::string_view directory, std::string_view target) {
  std::string joined;
  if (target.substr(0, 1) != "/") joined = std::string(directory) + '/';
  joined += target;
  std::string out;
  for (std::size_t at = 0; at <= joined.size();) {
    const std::size_t end = std::min(joined.find('/', at), joined.size());
    const std::string_view part = std::string_view(joined).substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      continue;
    }
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

template <class>
std::string recorded_file(std::string_view path, std::string_view value) {
  std::string text = detail::escape(value);
  if (text.substr(0, 3) == "-> ") text.insert(0, 1, '\\');
  return detail::escape(path) + '\t' + text + '\n';
}
template <class>
std::string recorded_link(std::string_view path, std::string_view target) {
  return detail::escape(path) + "\t-> " + detail::escape(target) + '\n';
}
template <class>
std::string recorded_directory(std::string_view path) {
  return detail::escape(path) + "/\t\n";
}

inline result<recorded_tree> recorded_tree::parse(std::string_view text, std::string_view origin) {
  recorded_tree tree;
  std::uint32_t line = 0;
  const auto refuse = [&](std::uint32_t where, const std::string& why) {
    return fail(errc::malformed_input, std::string(origin) + " line " + std::to_string(where) + ": " + why);
  };
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    if (row.empty()) continue;
    if (row.front() == '#') {
      if (row.substr(0, 7) == "# host " && tree.entries_.empty()) tree.host_ = std::string(row.substr(7));
      continue;
    }
    const std::size_t tab = row.find('\t');
    if (row.front() != '/' || tab == std::string_view::npos)
      return refuse(line, "a recording has lines 'path<TAB>value' with an absolute path");
    entry e;
    e.line = line;
    const std::string path = detail::unescape(row.substr(0, tab));
    const std::string_view value = row.substr(tab + 1);
    if (path.back() == '/')
      e.what = kind::directory;
    else if (value.substr(0, 3) == "-> ")
      e.what = kind::link;
    e.path = resolve_link("", path);
    e.value = detail::unescape(e.what == kind::link ? value.substr(3) : value);
    tree.entries_.push_back(std::move(e));
  }
  seq::sort(tree.entries_, [](const entry& a, const entry& b) { return detail::path_before(a.path, b.path); });
  for (std::size_t i = 1; i < tree.entries_.size(); ++i) {
    const entry& before = tree.entries_[i - 1];
    const entry& now = tree.entries_[i];
    if (before.path == now.path) {
      if (before.what == kind::directory && now.what == kind::directory) continue;
      return refuse(std::max(before.line, now.line), "'" + now.path + "' is given twice");
    }
    // Everything below a file would stand right behind it, because '/' sorts first.
    if (before.what != kind::directory && now.path.size() > before.path.size() &&
        now.path.compare(0, before.path.size(), before.path) == 0 && now.path[before.path.size()] == '/')
      return refuse(now.line, "'" + now.path + "' lies below '" + before.path + "', which is not a directory");
  }
  return tree;
}

inline const recorded_tree::entry* recorded_tree::find(std::string_view path) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), path,
                                   [](const entry& e, std::string_view p) { return detail::path_before(e.path, p); });
  return it != entries_.end() && it->path == path ? &*it : nullptr;
}

inline bool recorded_tree::is_directory(const std::string& path) const {
  if (path == "/") return true;
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), path,
                                   [](const entry& e, const std::string& p) { return detail::path_before(e.path, p); });
  if (it == entries_.end()) return false;
  if (it->path == path) return it->what == kind::directory;
  return it->path.size() > path.size() && it->path.compare(0, path.size(), path) == 0 && it->path[path.size()] == '/';
}

inline std::string recorded_tree::resolve(const std::string& path, bool keep_last) const {
  std::string todo = resolve_link("", path);
  std::string done;
  int links = 0;
  while (!todo.empty() && todo != "/") {
    const std::size_t end = std::min(todo.find('/', 1), todo.size());
    const std::string next = done + todo.substr(0, end);
    todo.erase(0, end);
    const entry* e = todo.empty() && keep_last ? nullptr : find(next);
    if (e == nullptr || e->what != kind::link) {
      done = next;
      continue;
    }
    if (++links > 40) return {};  // as many as the Linux kernel follows
    todo = resolve_link(done, e->value) + todo;
    if (todo.size() > 65536) return {};
    done.clear();
  }
  return done.empty() ? "/" : done;
}

inline result<std::string> recorded_tree::read(const std::string& path) const {
  const std::string real = resolve(path, false);
  const entry* e = real.empty() ? nullptr : find(real);
  if (e != nullptr && e->what == kind::file) return e->value;
  if (is_directory(real)) return detail::tree_failure(path, EISDIR);
  return fail(errc::not_found, "the recording has no file '" + path + "'");
}

inline result<std::vector<std::string>> recorded_tree::list(const std::string& path) const {
  const std::string real = resolve(path, false);
  if (real.empty() || !is_directory(real))
    return fail(errc::not_found, "the recording has no directory '" + path + "'");
  const std::string prefix = real == "/" ? real : real + '/';
  std::vector<std::string> names;
  auto it = std::lower_bound(entries_.begin(), entries_.end(), prefix,
                             [](const entry& e, const std::string& p) { return detail::path_before(e.path, p); });
  for (; it != entries_.end() && it->path.compare(0, prefix.size(), prefix) == 0; ++it) {
    const std::size_t end = std::min(it->path.find('/', prefix.size()), it->path.size());
    std::string name = it->path.substr(prefix.size(), end - prefix.size());
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  seq::sort(names);
  return names;
}

inline result<std::string> recorded_tree::link(const std::string& path) const {
  const std::string real = resolve(path, true);
  const entry* e = real.empty() ? nullptr : find(real);
  if (e != nullptr && e->what == kind::link) return e->value;
  if (e != nullptr || is_directory(real)) return fail(errc::invalid_argument, "'" + path + "' is not a symbolic link");
  return fail(errc::not_found, "the recording has no link '" + path + "'");
}

}}}  // namespace topocoll::v0::io
