// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first word of a command line chooses the command: help, version, and answers to words that are not commands.
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/sink.hpp>
#include <topocoll/discover/detail/nearest.hpp>
#include <topocoll/version.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// One command of the program.
struct command {
  std::string_view name;
  std::string_view summary;  ///< what it does, one line of help
  std::string_view example;  ///< a whole command line
  /// Runs it on the words after its name. Text for people who asked and for machines goes to `out`, notes to `err`.
  int (*run)(std::span<const std::string_view> args, sink out, sink err) = nullptr;
};

/// Text of "topocoll --help".
[[nodiscard]] inline std::string help(std::span<const command> commands) {
  std::size_t widest = 0;
  for (const command& c : commands) widest = c.name.size() > widest ? c.name.size() : widest;
  std::string text = "topocoll " + std::string(version_text) +
                     ": sees machines and fabrics, plans collectives, runs and measures them\n\n"
                     "usage: topocoll <command> [options]\n\ncommands:\n";
  for (const command& c : commands)
    text += "  " + std::string(c.name) + std::string(widest + 3 - c.name.size(), ' ') + std::string(c.summary) + '\n';
  text +=
      "\n'topocoll <command> --help' lists the options of a command, 'topocoll --version' tells the version.\n\n"
      "exit codes:\n"
      "  0  asked and answered; a preflight found nothing wrong\n"
      "  1  looked, and the answer is bad: a degraded part, a wrong result, a lost rank\n"
      "  2  could not look: bad options, unreadable input, missing rights, output that cannot be written\n\n"
      "examples:\n";
  for (const command& c : commands) text += "  " + std::string(c.example) + '\n';
  return text;
}

/// Runs the command that the first word names, on the words after it.
///
/// "--help" (also "-h", "help", "help <command>") and "--version" answer on `out`. No word at all, or one that is no
/// command, gets a sentence on `err`. Exceptions of a command end as a sentence too.
/// @param args  the command line without the program's name
/// @return  what the command returned, `exit_ok` for help and version, else `exit_unable`
[[nodiscard]] inline int dispatch(std::span<const command> commands, std::span<const std::string_view> args, sink out,
                                  sink err) {
  const auto unable = [&](const std::string& sentence) {
    err("topocoll: " + sentence + '\n');
    return static_cast<int>(exit_unable);
  };
  if (args.empty()) {
    err(help(commands));
    return exit_unable;
  }
  std::string_view word = args[0];
  std::vector<std::string_view> rest(args.begin() + 1, args.end());
  if (word == "help" && !rest.empty()) {
    word = rest[0];
    rest = {"--help"};
  }
  if (word == "--help" || word == "-h" || word == "help") {
    out(help(commands));
    return exit_ok;
  }
  if (word == "--version") {
    out("topocoll " + std::string(version_text) + '\n');
    return exit_ok;
  }
  for (const command& c : commands) {
    if (c.name != word) continue;
    try {
      return c.run(rest, out, err);
    } catch (const std::bad_alloc&) {
      return unable(std::string(word) + " ran out of memory");
    } catch (const std::exception& e) {
      return unable(std::string(word) + " failed: " + e.what());
    }
  }
  std::vector<std::string_view> names;
  std::string list;
  for (const command& c : commands) {
    names.push_back(c.name);
    list += (list.empty() ? "" : ", ") + std::string(c.name);
  }
  const std::string_view meant = topocoll::detail::nearest(word, names);
  return unable("'" + std::string(word) + "' is not a command" +
                (meant.empty() ? "" : " (did you mean '" + std::string(meant) + "'?)") + "; commands are " + list +
                ", and 'topocoll --help' explains them");
}

}}}  // namespace topocoll::v0::app
