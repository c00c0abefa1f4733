// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <topocoll/app/bench.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace app = topocoll::app;

namespace {

struct answer {
  int code;
  std::string out, err;
};

answer run(const std::vector<std::string_view>& args) {
  answer a{};
  a.code = app::run_bench(args, app::into(a.out), app::into(a.err));
  return a;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class folder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/topocoll-bench-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    path_ = name;
  }
  void TearDown() override {
    for (const char* name : {"/a.json", "/a.json.1", "/a.json.2"}) ::unlink((path_ + name).c_str());
    ::rmdir(path_.c_str());
  }
  std::string path_;
};

TEST(run_bench, prints_the_table_of_nccl_tests) {
  const answer a = run({"all_reduce", "--ranks", "2", "-b", "8", "-e", "128", "-f", "4", "-n", "3"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.err, "");
  EXPECT_EQ(count(a.out, "#  Rank "), 2U) << a.out;
  EXPECT_EQ(count(a.out, "     float     sum      -1 "), 3U) << a.out;
  EXPECT_NE(a.out.find("\n           8             2     float"), std::string::npos) << a.out;
  EXPECT_NE(a.out.find("# Out of bounds values : 0 OK\n"), std::string::npos) << a.out;
  EXPECT_NE(a.out.find("# Avg bus bandwidth    : "), std::string::npos) << a.out;
}

TEST(run_bench, knows_the_collectives_of_nccl_tests) {
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter"}) {
    const answer a = run({kind, "--ranks", "3", "-b", "1000", "-e", "1000", "-n", "1"});
    EXPECT_EQ(a.code, 0) << kind << a.err;
    EXPECT_NE(a.out.find("0 OK"), std::string::npos) << kind;
  }
}

TEST(run_bench, shows_the_root_and_whole_size_of_a_gather) {
  const answer a = run({"gather", "--ranks", "3", "-b", "1024", "-e", "1024", "-n", "1", "-r", "2"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_NE(a.out.find("\n        1020            85     float    none       2 "), std::string::npos) << a.out;
}

TEST(run_bench, writes_only_json_to_standard_output_when_asked) {
  const answer a = run({"broadcast", "--ranks", "2", "-b", "1K", "-e", "1K", "-n", "2", "-r", "1", "--json"});
  EXPECT_EQ(a.code, 0) << a.err;
  const auto j = tc::io::parse_json(a.out, "output");
  ASSERT_TRUE(j) << j.error().message();
  EXPECT_EQ((*j)["results"].size(), 1U);
  EXPECT_EQ((*j)["results"][0]["root"], 1);
  EXPECT_EQ((*j)["devices"].size(), 2U);
  EXPECT_EQ((*j)["out_of_bounds"]["okay"], "true");
}

TEST(run_bench, sweeps_all_types_and_operations) {
  const answer a =
      run({"reduce_scatter", "--ranks", "2", "-b", "64", "-e", "64", "-n", "1", "-d", "all", "-o", "all", "--json"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ((*tc::io::parse_json(a.out, "output"))["results"].size(),
            std::size(tc::all_dtypes) * std::size(tc::all_reduce_ops));
}

TEST(run_bench, shows_no_wrong_count_when_nothing_is_checked) {
  const answer a = run({"all_reduce", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "-c", "0"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(count(a.out, "  N/A"), 2U) << a.out;
  EXPECT_EQ(a.out.find("OK"), std::string::npos) << a.out;
}

TEST_F(folder, keeps_its_files_when_bench_runs_again) {
  const std::string file = path_ + "/a.json";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run({"all_reduce", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "-J", file}).code, 0);
  for (const char* name : {"/a.json", "/a.json.1", "/a.json.2"}) {
    const auto text = tc::io::read_file(path_ + name);
    ASSERT_TRUE(text) << name;
    EXPECT_TRUE(tc::io::parse_json(*text, name)) << name;
  }
}

TEST(run_bench, answers_bad_options_with_one_sentence_and_exit_2) {
  const std::vector<std::vector<std::string_view>> bad = {
      {},
      {"all_to_all"},
      {"nonsense"},
      {"all_reduce", "-b", "2M", "-e", "1M"},
      {"all_reduce", "-b", "x"},
      {"all_reduce", "--unknown"},
      {"all_reduce", "-d", "quad"},
      {"all_reduce", "-o", "xor"},
      {"all_reduce", "-f", "1"},
      {"all_reduce", "-i", "0"},
      {"all_reduce", "-n", "0"},
      {"all_reduce", "-a", "4"},
      {"all_reduce", "-T", "-1"},
      {"all_reduce", "-t", "2"},
      {"all_reduce", "-g", "8"},
      {"all_reduce", "--ranks", "100000"},
      {"all_reduce", "--algorithm", "magic"},
      {"reduce_scatter", "--algorithm", "tree"},
      {"all_reduce", "-J", "/nowhere/file", "-b", "8", "-e", "8"},
      {"broadcast", "-r", "9", "--ranks", "2", "-b", "8", "-e", "8"},
  };
  for (const auto& args : bad) {
    const answer a = run(args);
    std::string line;
    for (const auto w : args) line += std::string(w) + ' ';
    EXPECT_EQ(a.code, 2) << line << a.err;
    EXPECT_EQ(a.out.find("# Avg"), std::string::npos) << line;
    EXPECT_EQ(a.err.rfind("topocoll: ", 0), 0U) << line << a.err;
    EXPECT_EQ(count(a.err, "\n"), 1U) << line << a.err;
  }
}

TEST(run_bench, gives_up_a_size_after_its_time) {
  const answer a = run({"all_reduce", "--ranks", "2", "-b", "1M", "-e", "1M", "-n", "1000000000", "-T", "0.3"});
  EXPECT_EQ(a.code, 1);
  EXPECT_NE(a.err.find("took longer than 300 ms"), std::string::npos) << a.err;
}

TEST(run_bench, explains_itself) {
  const answer a = run({"--help"});
  EXPECT_EQ(a.code, 0);
  for (const char* option :
       {"--minbytes", "--maxbytes", "--stepfactor", "--iters", "--check", "--algorithm", "--bound", "--ranks"})
    EXPECT_NE(a.out.find(option), std::string::npos) << option;
}

}  // namespace
