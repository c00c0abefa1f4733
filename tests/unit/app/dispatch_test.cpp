// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/app/dispatch.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;

namespace {

using words = std::vector<std::string_view>;

int echo(std::span<const std::string_view> args, app::sink out, app::sink) {
  for (const std::string_view a : args) out("<" + std::string(a) + ">");
  return app::exit_problem;
}
int exhausted(std::span<const std::string_view>, app::sink, app::sink) { throw std::bad_alloc(); }
int broken(std::span<const std::string_view>, app::sink, app::sink) {
  throw std::runtime_error("an odd thing happened");
}

constexpr std::array<app::command, 3> commands{{{"preflight", "says its words", "topocoll preflight a b", echo},
                                                {"exhausted", "has no memory", "topocoll exhausted", exhausted},
                                                {"broken", "throws", "topocoll broken", broken}}};

struct answer {
  int code;
  std::string out, err;
};

answer ask(const words& args) {
  answer a{};
  a.code = app::dispatch(commands, args, app::into(a.out), app::into(a.err));
  return a;
}

}  // namespace

TEST(dispatch, hands_the_rest_of_the_words_to_the_command) {
  const answer a = ask({"preflight", "--json", "x y", ""});
  EXPECT_EQ(a.code, app::exit_problem);
  EXPECT_EQ(a.out, "<--json><x y><>");
  EXPECT_EQ(a.err, "");
}

TEST(dispatch, explains_itself_on_standard_output_when_asked) {
  for (const words& w : {words{"--help"}, words{"-h"}, words{"help"}, words{"--help", "preflight"}}) {
    const answer a = ask(w);
    EXPECT_EQ(a.code, app::exit_ok);
    EXPECT_EQ(a.err, "");
    for (const char* part : {"usage: topocoll <command>", "preflight   says its words", "topocoll preflight a b",
                             "exit codes:", "  2  could not look"})
      EXPECT_NE(a.out.find(part), std::string::npos) << part << '\n' << a.out;
  }
}

TEST(dispatch, explains_a_command_by_its_own_help) { EXPECT_EQ(ask({"help", "preflight"}).out, "<--help>"); }

TEST(dispatch, tells_the_version) {
  const answer a = ask({"--version"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.out, std::string("topocoll ") + topocoll::version_text + "\n");
}

TEST(dispatch, without_words_explains_itself_on_standard_error) {
  const answer a = ask({});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_EQ(a.out, "");
  EXPECT_NE(a.err.find("usage: topocoll"), std::string::npos);
}

TEST(dispatch, answers_unknown_words_with_the_nearest_command) {
  const answer a = ask({"preflihgt", "--json"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_EQ(a.out, "");
  EXPECT_EQ(a.err,
            "topocoll: 'preflihgt' is not a command (did you mean 'preflight'?); commands are preflight, exhausted, "
            "broken, and "
            "'topocoll --help' explains them\n");
  EXPECT_EQ(ask({"help", "zebra"}).err.find("did you mean"), std::string::npos);
  EXPECT_EQ(ask({"--jsno"}).code, app::exit_unable);
  EXPECT_EQ(ask({""}).code, app::exit_unable);
}

TEST(dispatch, turns_exceptions_into_sentences) {
  EXPECT_EQ(ask({"exhausted"}).code, app::exit_unable);
  EXPECT_EQ(ask({"exhausted"}).err, "topocoll: exhausted ran out of memory\n");
  EXPECT_EQ(ask({"broken"}).code, app::exit_unable);
  EXPECT_EQ(ask({"broken"}).err, "topocoll: broken failed: an odd thing happened\n");
}
