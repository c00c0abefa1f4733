// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/io/file.hpp>
#include <topocoll/plan/codec.hpp>
#include <topocoll/plan/verify.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;
namespace plan = topocoll::plan;
namespace io = topocoll::io;

namespace {

struct answer {
  int code = -1;
  std::string out, err;
};

answer ask(const std::vector<std::string_view>& args) {
  answer a;
  a.code = whole_program::run({"plan"}, args, app::into(a.out), app::into(a.err));
  return a;
}

constexpr const char* small = "dgx-h100:nodes=4,pods=2,oversubscription=3";

}  // namespace

TEST(run_plan, explains_by_default) {
  const answer a = ask({"--fabric", small});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_TRUE(a.err.empty());
  EXPECT_NE(a.out.find("all_reduce of 64 MiB among 32 ranks in 4 boxes in 2 pods"), std::string::npos) << a.out;
  EXPECT_NE(a.out.find("cheapest plan"), std::string::npos);
  EXPECT_EQ(ask({"--fabric", small, "--explain"}).out, a.out);
}

TEST(run_plan, is_brief_when_asked) {
  const answer a = ask({"--fabric", small, "--brief"});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_EQ(a.out.find("other plans"), std::string::npos);
  EXPECT_NE(a.out.find("\nbound "), std::string::npos);
}

TEST(run_plan, answers_machines_with_one_document) {
  const answer a = ask({"--fabric", small, "--json", "--collective", "all_gather", "--size", "1G", "--sizes", "1K:1M"});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  const auto j = io::parse_json(a.out, "answer").value();
  EXPECT_EQ(j.at("schema"), "topocoll.explanation/1");
  EXPECT_EQ(j.at("collective"), "all_gather");
  EXPECT_EQ(j.at("size"), 1U << 30U);
  EXPECT_EQ(j.at("sizes").front().at("first"), 1024);
  EXPECT_EQ(j.at("sizes").back().at("last"), 1U << 20U);
}

TEST(run_plan, writes_the_plan_to_a_file) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("topocoll_plan_" + std::to_string(::getpid()) + ".json")).string();
  const answer a = ask({"--fabric", small, "--brief", "--output", path});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  const auto read = plan::schedule_from_json(io::read_file(path).value(), path);
  std::remove(path.c_str());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->ranks, 32U);
  EXPECT_TRUE(plan::verify(*read));
}

TEST(run_plan, places_ranks_as_told) {
  const auto json = [](std::vector<std::string_view> args) {
    args.insert(args.begin(), {"--fabric", small, "--json"});
    const answer a = ask(args);
    EXPECT_EQ(a.code, app::exit_ok) << a.err;
    return io::parse_json(a.out, "answer").value();
  };
  EXPECT_EQ(json({"--ranks", "5"}).at("ranks"), 5);
  const auto packed = json({"--order", "packed"}), scattered = json({"--order", "scattered"});
  const auto ring = [](const io::json& j, std::string_view name) {
    for (const auto& line : j.at("spine"))
      if (line.at("name").get<std::string>().starts_with(name)) return line.at("up").get<double>();
    return -1.0;
  };
  EXPECT_GT(ring(scattered, "rings in rank order"), ring(packed, "rings in rank order"));
  EXPECT_EQ(json({"--order", "random:7"}).at("ranks"), 32);
  EXPECT_EQ(json({"--order", "round_robin"}).at("ranks"), 32);
}

TEST(run_plan, takes_the_algorithm_that_is_asked_for) {
  const answer a = ask({"--fabric", small, "--algorithm", "ring", "--json"});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_EQ(io::parse_json(a.out, "answer").value().at("plan").at("name"), "ring");
}

TEST(run_plan, plans_every_collective) {
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"}) {
    const answer a = ask({"--fabric", small, "--collective", kind, "--root", "3", "--brief"});
    EXPECT_EQ(a.code, app::exit_ok) << kind << ": " << a.err;
  }
}

TEST(run_plan, plans_for_processes_where_there_is_no_gpu) {
  const answer a = ask({"--from", "live", "--brief"});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_NE(a.out.find(" ranks"), std::string::npos) << a.out;
}

TEST(run_plan, complains_in_one_sentence) {
  const std::vector<std::vector<std::string_view>> bad = {
      {"--fabric", small, "--collective", "all_redcue"},
      {"--fabric", small, "--size", "much"},
      {"--fabric", small, "--sizes", "1G:1K"},
      {"--fabric", small, "--ranks", "33"},
      {"--fabric", small, "--ranks", "0"},
      {"--fabric", small, "--ranks", "-1"},
      {"--fabric", small, "--order", "sideways"},
      {"--fabric", small, "--order", "random:"},
      {"--fabric", small, "--order", "random:99999999999999999999"},
      {"--fabric", small, "--root", "32"},
      {"--fabric", small, "--algorithm", "rnig"},
      {"--fabric", "dgx-h100:nodes=0"},
      {"--from", "/nonexistent/file.xml"},
      {"--fabric", small, "--colour"},
      {"--fabric", small, "--json", "--brief"},
      {"--fabric", small, "--brief", "--output", "/nonexistent/folder/plan.json"}};
  for (const auto& args : bad) {
    const answer a = ask(args);
    EXPECT_EQ(a.code, app::exit_unable) << args.back();
    EXPECT_TRUE(a.out.empty()) << a.out;
    EXPECT_TRUE(a.err.starts_with("topocoll: ")) << a.err;
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
  EXPECT_EQ(ask({"--fabric", small, "--algorithm", "rnig"}).err.find("rnig") != std::string::npos, true);
}

TEST(run_plan, helps) {
  const answer a = ask({"--help"});
  EXPECT_EQ(a.code, app::exit_ok);
  for (const char* option : {"--from", "--fabric", "--collective", "--size", "--sizes", "--ranks", "--order",
                             "--algorithm", "--explain", "--json", "--output"})
    EXPECT_NE(a.out.find(option), std::string::npos) << option;
}
