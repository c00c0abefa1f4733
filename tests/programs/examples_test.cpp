// SPDX-License-Identifier: Apache-2.0
// The examples print what their last comment says. "// Prints:" holds to the letter; any other heading ("// Printed on …")
// introduces what one machine printed, and only the exit code is checked.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <vector>
#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The last comment: its heading, and its other lines without "// ".
struct printed {
  std::string heading;
  std::string text;
};
printed last_comment(const std::vector<std::string>& lines) {
  std::size_t first = lines.size();
  while (first > 0 && lines[first - 1].starts_with("//")) --first;
  printed p;
  for (std::size_t i = first; i < lines.size(); ++i) {
    if (i == first) {
      p.heading = lines[i];
      continue;
    }
    p.text += lines[i].size() > 3 ? lines[i].substr(3) : "";
    p.text += '\n';
  }
  return p;
}

struct run_result {
  std::string out;
  int code = -1;
};
run_result run(const fs::path& program) {
  run_result r;
  std::FILE* pipe = ::popen(("'" + program.string() + "'").c_str(), "r");
  if (pipe == nullptr) return r;
  char room[4096];
  for (std::size_t n = 0; (n = std::fread(room, 1, sizeof room, pipe)) > 0;) r.out.append(room, n);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) r.code = WEXITSTATUS(status);
  return r;
}

std::vector<fs::path> sources() {
  const char* root = std::getenv("TOPOCOLL_SOURCE_DIR");
  std::vector<fs::path> found;
  if (root == nullptr) return found;
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "examples"))
    if (entry.path().extension() == ".cpp") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST(examples, are_short_and_end_with_what_they_print) {
  if (sources().empty()) GTEST_SKIP() << "TOPOCOLL_SOURCE_DIR is not set";
  for (const fs::path& source : sources()) {
    SCOPED_TRACE(source.filename());
    const auto lines = lines_of(source);
    EXPECT_LE(lines.size(), 60U);
    const printed p = last_comment(lines);
    EXPECT_TRUE(p.heading.starts_with("// Print")) << p.heading;
    EXPECT_FALSE(p.text.empty());
  }
}

TEST(examples, print_what_they_say) {
  const char* program = std::getenv("TOPOCOLL_PROGRAM");
  if (sources().empty() || program == nullptr) GTEST_SKIP() << "TOPOCOLL_SOURCE_DIR or TOPOCOLL_PROGRAM is not set";
  const fs::path folder = fs::path(program).parent_path().parent_path() / "examples";
  std::size_t ran = 0;
  for (const fs::path& source : sources()) {
    SCOPED_TRACE(source.filename());
    const fs::path built = folder / ("example_" + source.stem().string());
    if (!fs::exists(built)) continue;  // examples are an option of the build
    const run_result r = run(built);
    EXPECT_EQ(r.code, 0) << r.out;
    const printed p = last_comment(lines_of(source));
    if (p.heading == "// Prints:") {
      EXPECT_EQ(r.out, p.text);
    }
    ++ran;
  }
  if (ran == 0) GTEST_SKIP() << "no examples in " << folder;
}
