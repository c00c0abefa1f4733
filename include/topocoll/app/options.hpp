// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all commands share in reading their options: help to standard output, mistakes as one sentence with exit code 2.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/sink.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/detail/nearest.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Writes "topocoll: <message>" as one line; the form of every complaint on standard error.
inline void complain(sink err, std::string_view message) {
  std::string line = "topocoll: ";
  line += message;
  line += '\n';
  err(line);
}

/// Writes a failure as one line: what happened and what to do next. Gives `exit_unable`, so that a command can return it.
inline int complain(sink err, const failure& why) {
  complain(err, why.message());
  return exit_unable;
}

/// Reads `args` (without the name of the program or the command) into the options that `cli` declares.
///
/// @return  nothing when the command may go on; `exit_ok` after "--help", whose text went to `out`; `exit_unable` after a
///          mistake, which went to `err` as one sentence with the option that was probably meant and where to read on
template <class = void>
[[nodiscard]] std::optional<int> parse(CLI::App& cli, std::span<const std::string_view> args, sink out, sink err) {
  std::vector<std::string> reversed;  // CLI11 takes arguments from the back
  for (auto it = args.rbegin(); it != args.rend(); ++it) reversed.emplace_back(*it);
  try {
    cli.parse(std::move(reversed));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    out(cli.help());
    return exit_ok;
  } catch (const CLI::CallForAllHelp&) {
    out(cli.help("", CLI::AppFormatMode::All));
    return exit_ok;
  } catch (const CLI::ParseError& e) {
    std::string message = e.what();
    while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
    if (!cli.remaining().empty()) {  // says more than that something else is missing
      std::vector<std::string> names;
      for (const CLI::Option* option : cli.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      const std::vector<std::string_view> known(names.begin(), names.end());
      for (const std::string& word : cli.remaining()) {
        message = word.starts_with('-') ? "unknown option '" + word + "'" : "unexpected argument '" + word + "'";
        const std::string_view meant =
            topocoll::detail::nearest(std::string_view(word).substr(0, word.find('=')), known);
        if (!meant.empty()) message += " (did you mean '" + std::string(meant) + "'?)";
        break;
      }
    }
    const std::string name = cli.get_name().empty() ? "--help" : cli.get_name() + " --help";
    complain(err, message + "; 'topocoll " + name + "' lists the options");
    return exit_unable;
  }
}

}}}  // namespace topocoll::v0::app
