// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <unit/app/whole_program.hpp>
#include <vector>
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
  a.code = whole_program::run({"preflight"}, args, app::into(a.out), app::into(a.err));
  return a;
}

// A topology file with one GPU on eight lanes where nothing says what it could have: nothing to blame, nothing measured.
constexpr const char* machine_file =
    R"(<system version="1"><cpu numaid="0" affinity="3" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="49">
<pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci></cpu></system>
)";

class place : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/topocoll-preflight-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    path_ = name;
    ASSERT_TRUE(tc::io::write_file(path_ + "/machine.xml", machine_file));
  }
  void TearDown() override {
    for (const char* name : {"/machine.xml", "/r.json", "/m.prom"}) ::unlink((path_ + name).c_str());
    ::rmdir(path_.c_str());
  }
  std::string path_;
};

TEST_F(place, with_a_recorded_machine_gives_not_measured_and_exit_2) {
  const std::string file = path_ + "/machine.xml", output = path_ + "/r.json";
  const answer a = run({"--from", file, "--output", output});
  EXPECT_EQ(a.code, 2) << a.err;
  EXPECT_NE(a.out.find("NOT MEASURED: "), std::string::npos) << a.out;
  const auto text = tc::io::read_file(output);
  ASSERT_TRUE(text);
  const auto j = tc::io::parse_json(*text, output);
  ASSERT_TRUE(j) << j.error().message();
  EXPECT_EQ((*j)["outcome"], "not_measured");
  EXPECT_EQ((*j)["live"], false);
  EXPECT_EQ((*j)["machine"]["gpus"], 1);
  EXPECT_TRUE((*j)["machine"]["usable_cores"].is_null());
}

TEST_F(place, with_json_prints_the_report_alone_and_writes_no_file) {
  const std::string file = path_ + "/machine.xml";
  const answer a = run({"--from", file, "--json"});
  EXPECT_EQ(a.code, 2);
  const auto j = tc::io::parse_json(a.out, "output");
  ASSERT_TRUE(j) << j.error().message();
  EXPECT_EQ((*j)["schema"], "topocoll.report/1");
}

TEST_F(place, follows_the_exit_style_that_is_asked_for) {
  const std::string file = path_ + "/machine.xml";
  EXPECT_EQ(run({"--from", file, "--exit-style", "npd"}).code, 2);
  const answer nagios = run({"--from", file, "--exit-style", "nagios"});
  EXPECT_EQ(nagios.code, 3);
  EXPECT_EQ(nagios.out.rfind("TOPOCOLL UNKNOWN - ", 0), 0U) << nagios.out;
  const answer slurm = run({"--from", file, "--exit-style", "slurm"});
  EXPECT_EQ(slurm.code, 0);
  EXPECT_EQ(slurm.out.rfind("topocoll: not measured", 0), 0U) << slurm.out;
}

TEST_F(place, says_so_when_the_report_cannot_be_written_and_still_gives_the_verdict) {
  const std::string file = path_ + "/machine.xml";
  const answer a = run({"--from", file, "--output", "/nowhere/report.json"});
  EXPECT_EQ(a.code, 2);
  EXPECT_NE(a.err.find("the report was not written"), std::string::npos) << a.err;
  EXPECT_NE(a.out.find("NOT MEASURED: "), std::string::npos) << a.out;
}

TEST_F(place, writes_metrics_for_a_collector) {
  const std::string file = path_ + "/machine.xml", metrics = path_ + "/m.prom";
  static_cast<void>(run({"--from", file, "--json", "--metrics", metrics}));
  const auto text = tc::io::read_file(metrics);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("topocoll_preflight_success 0\n"), std::string::npos);
}

TEST(run_preflight, of_this_machine_ends_with_one_verdict_line) {
  const answer a = run({"--ranks", "2", "--output", "/dev/null"});
  EXPECT_EQ(a.code, 0) << a.out << a.err;
  const auto last = a.out.rfind('\n', a.out.size() - 2);
  EXPECT_EQ(a.out.substr(last + 1).rfind("PASS: ", 0), 0U) << a.out;
  for (const char* heading :
       {"Expected bandwidth of every path", "Memory (", "Plans for 2 ranks", "Collectives between 2 ranks", "Checks\n"})
    EXPECT_NE(a.out.find(heading), std::string::npos) << heading;
}

TEST(run_preflight, answers_bad_options_with_one_sentence_and_exit_2) {
  const std::vector<std::vector<std::string_view>> bad = {{"--ranks", "1"},
                                                          {"--ranks", "x"},
                                                          {"--time-budget", "5"},
                                                          {"--time-budget", "1ms"},
                                                          {"--exit-style", "odd"},
                                                          {"--min-bandwidth", "fast"},
                                                          {"--from", "/nowhere.xml"},
                                                          {"--bogus"},
                                                          {"extra"}};
  for (const auto& args : bad) {
    const answer a = run(args);
    EXPECT_EQ(a.code, 2) << args[0];
    EXPECT_EQ(a.out, "") << args[0];
    EXPECT_EQ(a.err.rfind("topocoll: ", 0), 0U) << args[0] << a.err;
  }
}

}  // namespace
