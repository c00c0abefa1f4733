// SPDX-License-Identifier: Apache-2.0
// All commands of the program: help, JSON that parses, bad input that gets a sentence and exit code 2.
#include <algorithm>
#include <programs/program.hpp>
#include <string>
#include <vector>
#include <topocoll/io/json.hpp>

namespace {

TEST(program, explains_itself_and_each_command) {
  TOPOCOLL_NEEDS_PROGRAM();
  const auto top = programs::run({"--help"});
  EXPECT_EQ(top.code, 0);
  for (const char* command : {"topo", "plan", "export", "order", "preflight", "bench", "calibrate"}) {
    EXPECT_NE(top.out.find(command), std::string::npos) << command;
    const auto a = programs::run({command, "--help"});
    EXPECT_EQ(a.code, 0) << command;
    EXPECT_NE(a.out.find("--json"), std::string::npos) << command;
    EXPECT_EQ(a.err, "") << command;
  }
}

TEST(program, gives_json_that_parses) {
  TOPOCOLL_NEEDS_PROGRAM();
  const std::vector<std::vector<std::string>> lines = {
      {"topo", "--json"},
      {"topo", "--fabric", "dgx-h100:nodes=2", "--json"},
      {"plan", "--fabric", "dgx-h100:nodes=2", "--json"},
      {"bench", "all_reduce", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "--json"}};
  for (const auto& line : lines) {
    const auto a = programs::run(line);
    EXPECT_EQ(a.code, 0) << line[0] << ": " << a.err;
    const auto j = topocoll::io::parse_json(a.out, line[0]);
    EXPECT_TRUE(j) << (j ? "" : j.error().message());
  }
}

TEST(program, answers_bad_input_with_one_sentence_and_exit_2) {
  TOPOCOLL_NEEDS_PROGRAM();
  const std::vector<std::vector<std::string>> lines = {{},
                                                       {"nonsense"},
                                                       {"topo", "--from", "/nowhere"},
                                                       {"topo", "--from", "/dev/null"},
                                                       {"topo", "--fabric", "dgx-h100:nodes=-1"},
                                                       {"plan", "--fabric", "nothing"},
                                                       {"plan", "--fabric", "dgx-h100", "--size", "x"},
                                                       {"preflight", "--from", "/nowhere"},
                                                       {"preflight", "--ranks", "0"},
                                                       {"bench"},
                                                       {"bench", "all_reduce", "-b", "nothing"}};
  for (const auto& line : lines) {
    const auto a = programs::run(line);
    std::string words;
    for (const auto& w : line) words += w + ' ';
    EXPECT_EQ(a.code, 2) << words << a.out << a.err;
    EXPECT_EQ(a.out, "") << words;
    EXPECT_FALSE(a.err.empty()) << words;
    if (!line.empty()) {
      EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << words << a.err;
    }
  }
}

TEST(program, says_so_when_standard_output_is_full) {
  TOPOCOLL_NEEDS_PROGRAM();
  const std::string command = "'" + programs::path() + "' topo --fabric dgx-h100 >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

}  // namespace
