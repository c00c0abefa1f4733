// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/app/sink.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;

namespace {

struct answer {
  int code = 0;
  std::string out, err;
};

answer ask(const std::vector<std::string_view>& args) {
  answer a;
  a.code = commands::run(args, app::into(a.out), app::into(a.err));
  return a;
}

}  // namespace

TEST(run, lists_every_command_in_its_help) {
  const answer a = ask({"--help"});
  EXPECT_EQ(a.code, app::exit_ok);
  for (const app::command& c : commands::all) {
    EXPECT_NE(a.out.find("\n  " + std::string(c.name) + ' '), std::string::npos) << c.name;
    EXPECT_NE(a.out.find(c.example), std::string::npos) << c.name;
    EXPECT_TRUE(c.example.starts_with("topocoll " + std::string(c.name))) << c.example;
  }
}

TEST(run, every_command_answers_help_on_standard_output) {
  for (const app::command& c : commands::all) {
    SCOPED_TRACE(c.name);
    const answer a = ask({c.name, "--help"});
    EXPECT_EQ(a.code, app::exit_ok);
    EXPECT_NE(a.out.find("--json"), std::string::npos) << a.out;
    EXPECT_EQ(a.err, "");
  }
}

TEST(run, every_command_refuses_options_that_it_does_not_have) {
  for (const app::command& c : commands::all) {
    SCOPED_TRACE(c.name);
    const answer a = ask({c.name, "--no-such-option"});
    EXPECT_EQ(a.code, app::exit_unable);
    EXPECT_EQ(a.out, "");
    EXPECT_NE(a.err.find("--no-such-option"), std::string::npos) << a.err;
    EXPECT_EQ(a.err.back(), '\n');
  }
}

TEST(run, plans_for_a_described_cluster) {
  const answer a = ask({"plan", "--fabric", "dgx-h100:nodes=2", "--json"});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_EQ(a.out.substr(0, 1), "{");
}

TEST(run, refuses_a_description_that_cannot_be_built) {
  const answer a = ask({"plan", "--fabric", "dgx-h100:nodes=4,leafs=8", "--json"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_EQ(a.out, "");
  EXPECT_NE(a.err.find("did you mean 'leaves'"), std::string::npos) << a.err;
}
