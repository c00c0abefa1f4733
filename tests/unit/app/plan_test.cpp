// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
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

namespace {

/// A file of this test that is gone at the end.
struct scratch {
  explicit scratch(const std::string& name)
      : path((std::filesystem::temp_directory_path() / ("topocoll_plan_" + std::to_string(::getpid()) + "_" + name))
                 .string()) {}
  ~scratch() { std::remove(path.c_str()); }
  std::string path;
};

}  // namespace

TEST(run_plan, draws_the_plan_and_a_chart) {
  const scratch map("map.svg"), chart("chart.svg");
  const answer a = ask({"--fabric", small, "--json", "--svg", map.path, "--chart", chart.path});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_TRUE(a.err.empty()) << a.err;
  const auto j = io::parse_json(a.out, "answer").value();
  const std::string drawn = io::read_file(map.path).value(), curve = io::read_file(chart.path).value();
  EXPECT_TRUE(drawn.starts_with("<svg ")) << drawn.substr(0, 80);
  EXPECT_TRUE(curve.starts_with("<svg ")) << curve.substr(0, 80);
  EXPECT_NE(drawn.find("on the busiest link"), std::string::npos);
  for (const auto& range : j.at("sizes"))  // the chart knows the same winners
    EXPECT_NE(curve.find(range.at("name").get<std::string>() + ", cheapest from "), std::string::npos);
}

TEST(run_plan, tells_machines_what_it_tells_people) {
  const answer a = ask({"--fabric", small, "--json", "--sizes", "1K:1G"});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  const auto j = io::parse_json(a.out, "answer").value();
  const auto& ranges = j.at("sizes");
  for (std::size_t k = 1; k < ranges.size(); ++k)
    EXPECT_EQ(ranges[k].at("first").get<std::uint64_t>(), ranges[k - 1].at("last").get<std::uint64_t>() + 1);
  const std::string ratio = j.at("plan").at("bandwidth_ratio");
  EXPECT_NEAR(std::stod(ratio) / std::stod(ratio.substr(ratio.find('/') + 1)),
              1 + j.at("plan").at("bandwidth_gap").get<double>(), 1e-9);
  EXPECT_FALSE(j.at("plan").at("remedy").get<std::string>().empty());
  ASSERT_EQ(j.at("libraries").size(), 2U);
  for (const auto& l : j.at("libraries")) {
    EXPECT_EQ(l.at("measured"), false);
    EXPECT_GT(l.at("time").get<double>(), 0);
  }
  EXPECT_EQ(j.at("nics").at(0).at("nics"), 32);
  EXPECT_EQ(j.at("rails").size(), 8U);
  EXPECT_EQ(j.at("leaves").at(0).at("leaves"), 16);
  std::uint64_t full = 0;
  for (const auto& l : j.at("loads")) full += l.at("full").get<std::uint64_t>();
  EXPECT_GT(full, 0U);
  // Any reader can draw a plan's line from its slopes: the least of them is the time that the table tells.
  for (const auto& range : ranges)
    for (const auto& curve : j.at("curves")) {
      if (curve.at("name") != range.at("name")) continue;
      double least = 1e9;
      for (const auto& slope : curve.at("slopes"))
        least = std::min(least, slope.at("fixed").get<double>() +
                                    slope.at("per_byte").get<double>() * range.at("last").get<double>());
      EXPECT_NEAR(least, range.at("last_time").get<double>(), 1e-12);
    }
}

TEST(run_plan, takes_prices_from_a_model_file) {
  const scratch model("model.json"), host("host.json"), odd("odd.json");
  ASSERT_TRUE(io::write_file(model.path, R"({"schema": "topocoll.model/1", "rows": 1, "systems": 1, "constants": {
      "launch": {"value": 50, "unit": "us"}, "nvlink4": {"value": 0.1, "unit": "share"}}})"));
  ASSERT_TRUE(
      io::write_file(host.path, R"({"schema": "topocoll.model/1", "rows": 9, "host": {"launch_us": 7, "hop_us": 1,
      "hop_determined": true, "rate_GBps": 5, "rate_determined": true, "median_error": 0.1}})"));
  ASSERT_TRUE(io::write_file(odd.path, R"({"schema": "topocoll.model/1", "constants": {"nvlnk4": {"value": 1}}})"));
  const auto json = [](const std::vector<std::string_view>& args) {
    const answer a = ask(args);
    EXPECT_EQ(a.code, app::exit_ok) << a.err;
    return io::parse_json(a.out, "answer").value();
  };
  const auto built_in = json({"--fabric", "dgx-h100", "--json"});
  const auto fitted = json({"--fabric", "dgx-h100", "--json", "--model", model.path});
  EXPECT_DOUBLE_EQ(fitted.at("plan").at("parts_of_time").at("launch").get<double>(), 50e-6);
  // NVLink at a tenth of its rate: the bound, the plan and the library follow.
  EXPECT_GT(fitted.at("bound").at("bandwidth_time").get<double>(),
            3 * built_in.at("bound").at("bandwidth_time").get<double>());
  EXPECT_GT(fitted.at("plan").at("time").get<double>(), 3 * built_in.at("plan").at("time").get<double>());
  EXPECT_GT(fitted.at("libraries").at(0).at("time").get<double>(),
            built_in.at("libraries").at(0).at("time").get<double>());
  const auto processes = json({"--from", "live", "--json", "--model", host.path});
  EXPECT_DOUBLE_EQ(processes.at("plan").at("parts_of_time").at("launch").get<double>(), 7e-6);
  EXPECT_FALSE(processes.contains("libraries"));
  const std::vector<std::vector<std::string_view>> bad = {{"--fabric", small, "--model", odd.path},
                                                          {"--fabric", small, "--model", host.path},
                                                          {"--fabric", small, "--model", "/nonexistent/model.json"},
                                                          {"--from", "live", "--model", model.path}};
  for (const auto& args : bad) {
    const answer a = ask(args);
    EXPECT_EQ(a.code, app::exit_unable) << args.back();
    EXPECT_TRUE(a.out.empty());
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

TEST(run_plan, writes_nothing_when_it_fails) {
  const scratch map("none.svg");
  const answer a = ask({"--fabric", small, "--svg", map.path, "--chart", map.path, "--sizes", "1M"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_FALSE(std::filesystem::exists(map.path));
  const answer one = ask({"--fabric", "dgx-h100", "--ranks", "1", "--svg", map.path, "--chart", map.path});
  EXPECT_EQ(one.code, app::exit_unable);
  EXPECT_NE(one.err.find("one rank"), std::string::npos) << one.err;
  EXPECT_FALSE(std::filesystem::exists(map.path));
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
      {"--fabric", small, "--brief", "--output", "/nonexistent/folder/plan.json"},
      {"--fabric", small, "--brief", "--svg", "/nonexistent/folder/plan.svg"},
      {"--fabric", small, "--brief", "--chart", "/nonexistent/folder/chart.svg"},
      {"--fabric", small, "--sizes", "0:1K"}};
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
                             "--algorithm", "--explain", "--json", "--output", "--svg", "--chart", "--model"})
    EXPECT_NE(a.out.find(option), std::string::npos) << option;
}
