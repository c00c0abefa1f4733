// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/options.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;

namespace {

struct answer {
  std::optional<int> code;
  std::string out, err;
  int ranks = 4;
  bool json = false;
};

answer ask(const std::vector<std::string_view>& args) {
  answer a;
  CLI::App cli("measures collectives", "bench");
  cli.add_option("--ranks", a.ranks, "processes");
  cli.add_flag("--json", a.json, "for machines");
  a.code = app::parse(cli, args, app::into(a.out), app::into(a.err));
  return a;
}

}  // namespace

TEST(parse, reads_options_in_order) {
  const answer a = ask({"--ranks", "3", "--json"});
  EXPECT_FALSE(a.code);
  EXPECT_EQ(a.ranks, 3);
  EXPECT_TRUE(a.json);
  EXPECT_EQ(a.out + a.err, "");
  EXPECT_FALSE(ask({}).code);
}

TEST(parse, writes_help_to_standard_output) {
  const answer a = ask({"--help"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_NE(a.out.find("--ranks"), std::string::npos);
  EXPECT_EQ(a.err, "");
}

TEST(parse, answers_mistakes_with_one_sentence) {
  answer a = ask({"--rank=3"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_EQ(a.out, "");
  EXPECT_EQ(
      a.err,
      "topocoll: unknown option '--rank=3' (did you mean '--ranks'?); 'topocoll bench --help' lists the options\n");
  a = ask({"table"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_NE(a.err.find("unexpected argument 'table'"), std::string::npos) << a.err;
  a = ask({"--ranks", "many"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_NE(a.err.find("many"), std::string::npos) << a.err;
  EXPECT_EQ(a.err.find('\n'), a.err.size() - 1) << "one line";
  EXPECT_EQ(ask({"--ranks"}).code, app::exit_unable);
}

TEST(complain, writes_what_happened_and_what_to_do) {
  std::string err;
  EXPECT_EQ(app::complain(app::into(err), topocoll::fail(topocoll::errc::not_found, "x is not there", "look for y")),
            app::exit_unable);
  EXPECT_EQ(err, "topocoll: x is not there; look for y\n");
}

TEST(parse, names_an_unknown_option_before_a_missing_one) {
  std::string out, err, collective;
  CLI::App cli("measures collectives", "bench");
  cli.add_option("collective", collective, "which")->required();
  const std::vector<std::string_view> args{"--jsno"};
  EXPECT_EQ(app::parse(cli, args, app::into(out), app::into(err)), app::exit_unable);
  EXPECT_EQ(err, "topocoll: unknown option '--jsno'; 'topocoll bench --help' lists the options\n");
}
