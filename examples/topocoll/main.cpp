// SPDX-License-Identifier: Apache-2.0
// The program `topocoll`. Everything it does is in topocoll/app/.
#include <csignal>
#include <string_view>
#include <vector>
#include <topocoll/app/streams.hpp>
#include "commands.hpp"

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe becomes an error of write
  topocoll::app::stream out(1), err(2);
  const std::vector<std::string_view> args(words + (count > 0 ? 1 : 0), words + count);
  return topocoll::app::finish(commands::run(args, out.to(), err.to()), out, err.to());
}
