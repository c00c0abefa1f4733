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
  // Any reader can draw a plan's line from its cuts: the one that takes least, each as long as the slope that takes most.
  for (const auto& range : ranges)
    for (const auto& curve : j.at("curves")) {
      if (curve.at("name") != range.at("name")) continue;
      double least = 1e9;
      for (const auto& cut : curve.at("cuts")) {
        double most = 0;
        for (const auto& slope : cut.at("slopes"))
          most = std::max(most, slope.at("fixed").get<double>() +
                                    slope.at("per_byte").get<double>() * range.at("last").get<double>());
        least = std::min(least, most);
      }
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

TEST(run_plan, lists_the_plans_of_a_communicator) {
  const answer a = ask({"--fabric", small, "--pareto"});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_TRUE(a.out.starts_with("all_reduce among 32 ranks; ")) << a.out;
  EXPECT_NE(a.out.find("busbw of large arrays  from size"), std::string::npos) << a.out;
  EXPECT_EQ(a.out.find("other plans"), std::string::npos) << "no explanation unless asked for";
  const answer both = ask({"--fabric", small, "--pareto", "--brief"});
  EXPECT_EQ(both.out, ask({"--fabric", small, "--brief"}).out + "\n" + a.out);

  const answer json = ask({"--fabric", small, "--pareto", "--json", "--sizes", "1K:256M"});
  ASSERT_EQ(json.code, app::exit_ok) << json.err;
  const auto j = io::parse_json(json.out, "answer").value();
  EXPECT_EQ(j.at("schema"), "topocoll.explanation/1");
  const auto& list = j.at("pareto");
  EXPECT_EQ(list.at("first"), 1024);
  EXPECT_EQ(list.at("last"), 256U << 20U);
  std::uint64_t covered = 0;
  double latency = 0, busbw = 0;
  for (const auto& line : list.at("plans")) {
    for (const auto& r : line.at("ranges"))
      covered += r.at("last").get<std::uint64_t>() - r.at("first").get<std::uint64_t>() + 1;
    EXPECT_TRUE(line.at("proved").get<bool>()) << line.dump();
    EXPECT_GE(line.at("latency").get<double>(), latency);
    EXPECT_GE(line.at("busbw").get<double>(), busbw);
    latency = line.at("latency").get<double>();
    busbw = line.at("busbw").get<double>();
  }
  EXPECT_EQ(covered, (256U << 20U) - 1024U + 1U) << "every size has one plan";
  EXPECT_LE(busbw, list.at("bound").at("busbw").get<double>());
  EXPECT_EQ(j.at("sizes").front().at("name"), list.at("plans").front().at("name"));
  for (const auto& other : list.at("others")) EXPECT_TRUE(other.contains("factor") != other.contains("why_not"));
}

namespace {

/// A cube mesh as a file, after `change` was made to the links between two of its GPUs.
template <class Change>
void write_mesh(const std::string& path, const Change& change) {
  std::string out, err;
  ASSERT_EQ(whole_program::run({"topo"}, {"--fabric", "dgx-1v", "--json"}, app::into(out), app::into(err)),
            app::exit_ok)
      << err;
  auto graph = io::parse_json(out, "graph").value();
  io::json links = io::json::array();
  std::string from, to;
  for (io::json link : graph.at("links")) {
    const bool wire = link.at("kind") == "nvlink";
    if (wire && from.empty()) {
      from = link.at("from");
      to = link.at("to");
    }
    if (!wire || link.at("from") != from || link.at("to") != to || change(link)) links.push_back(std::move(link));
  }
  ASSERT_FALSE(from.empty());
  graph["links"] = std::move(links);
  ASSERT_TRUE(io::write_file(path, io::to_text(graph)));
}
bool unchanged(io::json&) { return true; }
bool halved(io::json& link) {
  const double rate = link.at("capacity_bytes_per_second");
  link["current_bytes_per_second"] = link["capacity_bytes_per_second"] = rate / 2;
  return true;
}
bool removed(io::json&) { return false; }

}  // namespace

TEST(run_plan, leaves_sums_to_nvswitches_when_it_may) {
  const scratch made("made.json");
  const answer a = ask({"--fabric", "dgx-h100:nodes=1", "--size", "1G", "--nvls", "--output", made.path});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_NE(a.out.find("in_switch, "), std::string::npos) << a.out;
  EXPECT_NE(a.out.find("what NVSwitches that add up and multiply ask of"), std::string::npos) << a.out;
  EXPECT_EQ(a.out.find("other planner"), std::string::npos);
  EXPECT_EQ(ask({"--fabric", "dgx-h100:nodes=1", "--size", "1G"}).out.find("in_switch"), std::string::npos);
  // That plan is one for such switches only.
  const answer kept = ask({"--fabric", "dgx-h100:nodes=1", "--size", "1G", "--nvls", "--previous", made.path});
  EXPECT_EQ(kept.code, app::exit_ok) << kept.err;
  const answer other = ask({"--fabric", "dgx-h100:nodes=1", "--size", "1G", "--previous", made.path});
  EXPECT_EQ(other.code, app::exit_unable);
  EXPECT_NE(other.err.find("say --nvls"), std::string::npos) << other.err;
  const answer old = ask({"--fabric", "dgx-a100:nodes=1", "--nvls"});
  EXPECT_EQ(old.code, app::exit_unable);
  EXPECT_NE(old.err.find("generation 3"), std::string::npos) << old.err;
  const answer pcie = ask({"--fabric", "pcie:nodes=1,gpus=4", "--nvls"});
  EXPECT_EQ(pcie.code, app::exit_unable);
  EXPECT_NE(pcie.err.find("hangs on no NVSwitch"), std::string::npos) << pcie.err;
}

TEST(run_plan, keeps_a_plan_that_is_still_right) {
  const scratch made("made.json");
  ASSERT_EQ(ask({"--fabric", small, "--brief", "--output", made.path}).code, app::exit_ok);
  const answer a = ask({"--fabric", small, "--previous", made.path});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_TRUE(a.out.starts_with("keep the plan of " + made.path + ": planning anew gives the same plan\n")) << a.out;
  EXPECT_NE(a.out.find("made:    for 64 MiB, predicted to take "), std::string::npos) << a.out;
  EXPECT_EQ(a.out.find("changes:"), std::string::npos) << a.out;
  const answer json = ask({"--fabric", small, "--previous", made.path, "--json"});
  ASSERT_EQ(json.code, app::exit_ok) << json.err;
  const auto j = io::parse_json(json.out, "answer").value();
  const auto& p = j.at("previous");
  EXPECT_EQ(p.at("advice"), "keep");
  EXPECT_EQ(p.at("same"), true);
  EXPECT_EQ(p.at("digest"), j.at("plan").at("digest"));
  EXPECT_EQ(p.at("time_before"), p.at("time_after"));
  EXPECT_EQ(p.at("made_for").at("time"), j.at("plan").at("time"));
  EXPECT_TRUE(p.at("moved").empty());
  EXPECT_TRUE(p.at("gone").empty());
}

namespace {

/// Asks with the options of the problem that the mesh is planned for.
answer ask_mesh(std::vector<std::string_view> args) {
  args.insert(args.end(), {"--ranks", "4", "--collective", "all_gather", "--size", "1G"});
  return ask(args);
}

}  // namespace

TEST(run_plan, advises_another_plan_when_a_link_is_slow_and_names_it) {
  const scratch whole("whole.json"), slow("slow.json"), made("made.json"), fresh("fresh.json");
  write_mesh(whole.path, unchanged);
  write_mesh(slow.path, halved);
  ASSERT_EQ(ask_mesh({"--from", whole.path, "--brief", "--output", made.path}).code, app::exit_ok);
  const answer a = ask_mesh({"--from", slow.path, "--previous", made.path, "--output", fresh.path});
  EXPECT_EQ(a.code, app::exit_problem) << a.err;
  EXPECT_TRUE(a.err.empty()) << a.err;
  EXPECT_TRUE(a.out.starts_with("replace the plan of " + made.path + ": the new one saves ")) << a.out;
  EXPECT_NE(a.out.find("why:     before, GPU 0 of node0 to GPU 1 of node0 is busy for "), std::string::npos) << a.out;
  EXPECT_NE(a.out.find("12.5 GB/s, runs at 12.5 GB/s of 25.0 GB/s"), std::string::npos) << a.out;
  // The new plan was written, and is right.
  const answer again = ask_mesh({"--from", slow.path, "--previous", fresh.path});
  EXPECT_EQ(again.code, app::exit_ok) << again.out;
  const answer json = ask_mesh({"--from", slow.path, "--previous", made.path, "--json"});
  EXPECT_EQ(json.code, app::exit_problem);
  const auto p = io::parse_json(json.out, "answer").value().at("previous");
  EXPECT_EQ(p.at("advice"), "replace");
  const double gain = p.at("gain");
  EXPECT_NEAR(gain, 1 - p.at("time_after").get<double>() / p.at("time_before").get<double>(), 1e-9);
  EXPECT_GT(gain, 0.05);
  EXPECT_GT(p.at("time_before").get<double>(), p.at("made_for").at("time").get<double>() * 1.05);
  EXPECT_TRUE(p.at("gone").empty());
  const auto& link = p.at("busier").at(0);
  EXPECT_TRUE(link.at("name") == "GPU 0 of node0 to GPU 1 of node0" ||
              link.at("name") == "GPU 1 of node0 to GPU 0 of node0")
      << link.dump();
  EXPECT_EQ(link.at("nominal_rate"), 2 * link.at("current_rate").get<double>());
  // Whoever asks for more than there is to gain keeps the plan.
  const std::string more = std::to_string(gain * 100 + 1), less = std::to_string(gain * 100 - 1);
  EXPECT_EQ(ask_mesh({"--from", slow.path, "--previous", made.path, "--gain", more}).code, app::exit_ok);
  EXPECT_EQ(ask_mesh({"--from", slow.path, "--previous", made.path, "--gain", less}).code, app::exit_problem);
}

TEST(run_plan, names_the_link_that_is_gone_though_all_others_have_other_numbers) {
  const scratch whole("whole.json"), cut("cut.json"), made("made.json");
  write_mesh(whole.path, unchanged);
  write_mesh(cut.path, removed);
  ASSERT_EQ(ask_mesh({"--from", whole.path, "--brief", "--output", made.path}).code, app::exit_ok);
  const answer a = ask_mesh({"--from", cut.path, "--previous", made.path});
  EXPECT_EQ(a.code, app::exit_problem) << a.err;
  EXPECT_NE(a.out.find("gone:    the link from node0/"), std::string::npos) << a.out;
  const answer json = ask_mesh({"--from", cut.path, "--previous", made.path, "--json"});
  const auto p = io::parse_json(json.out, "answer").value().at("previous");
  ASSERT_EQ(p.at("gone").size(), 2U) << "one wire, both ways";
  EXPECT_EQ(p.at("gone").at(0).at("from"), p.at("gone").at(1).at("to"));
  EXPECT_GT(p.at("ways_lost").get<std::size_t>(), 0U);
  for (const auto& w : p.at("lost")) EXPECT_EQ(w.at("why"), "a link of it is not in the graph");
}

TEST(run_plan, tells_ranks_that_sit_elsewhere_than_when_the_plan_was_made) {
  const scratch made("made.json");
  ASSERT_EQ(ask({"--fabric", small, "--brief", "--ranks", "16", "--output", made.path}).code, app::exit_ok);
  const answer a = ask({"--fabric", small, "--ranks", "16", "--order", "scattered", "--previous", made.path, "--json"});
  ASSERT_NE(a.code, app::exit_unable) << a.err;
  const auto p = io::parse_json(a.out, "answer").value().at("previous");
  ASSERT_EQ(p.at("moved").size(), 8U);  // the second host is of the other pod
  EXPECT_EQ(p.at("moved").at(0).at("rank"), 8);
  EXPECT_TRUE(p.at("moved").at(0).at("then").get<std::string>().starts_with("node1/"));
  EXPECT_TRUE(p.at("moved").at(0).at("now").get<std::string>().starts_with("node2/"));
}

TEST(run_plan, advises_against_a_plan_that_is_wrong) {
  const scratch made("made.json");
  ASSERT_EQ(ask({"--fabric", small, "--brief", "--output", made.path}).code, app::exit_ok);
  auto plan = io::parse_json(io::read_file(made.path).value(), "plan").value();
  plan.erase("digest");
  plan.at("stages").erase(plan.at("stages").size() - 1);  // half of the work
  ASSERT_TRUE(io::write_file(made.path, io::to_text(plan)));
  const answer a = ask({"--fabric", small, "--previous", made.path});
  EXPECT_EQ(a.code, app::exit_problem) << a.err;
  EXPECT_NE(a.out.find(": it does not compute all_reduce: "), std::string::npos) << a.out;
}

TEST(run_plan, refuses_a_previous_plan_for_something_else_in_one_sentence) {
  const scratch made("made.json"), why("why.json"), rooted("rooted.json");
  ASSERT_EQ(ask({"--fabric", small, "--brief", "--output", made.path}).code, app::exit_ok);
  ASSERT_EQ(
      ask({"--fabric", small, "--collective", "broadcast", "--root", "3", "--brief", "--output", rooted.path}).code,
      app::exit_ok);
  ASSERT_TRUE(io::write_file(why.path, ask({"--fabric", small, "--json"}).out));
  struct refused {
    std::vector<std::string_view> args;
    const char* words;
  };
  const std::vector<refused> bad = {
      {{"--previous", made.path, "--ranks", "31"}, "is a plan among 32 ranks, but here are 31"},
      {{"--previous", made.path, "--collective", "all_gather"}, "is a plan of all_reduce, not of all_gather"},
      {{"--previous", rooted.path, "--collective", "broadcast"}, "is a plan with root 3, not 0"},
      {{"--previous", why.path}, "explains a plan, but does not hold it"},
      {{"--previous", "/nonexistent/plan.json"}, "/nonexistent/plan.json"},
      {{"--gain", "5"}, "--previous"},
      {{"--previous", made.path, "--gain", "101"}, "from 0 to 100 percent"}};
  for (const refused& r : bad) {
    std::vector<std::string_view> args = {"--fabric", small};
    args.insert(args.end(), r.args.begin(), r.args.end());
    const answer a = ask(args);
    EXPECT_EQ(a.code, app::exit_unable) << r.words;
    EXPECT_TRUE(a.out.empty()) << a.out;
    EXPECT_NE(a.err.find(r.words), std::string::npos) << a.err;
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

TEST(run_plan, takes_shares_from_the_line_and_from_a_file) {
  const scratch file("shares.txt");
  ASSERT_TRUE(io::write_file(file.path, "1\r\n2\n\n 0\t\n5"));
  const std::string at = "@" + file.path;
  const auto with = [&](std::string_view shares, std::string_view how) {
    return ask({"--fabric", "dgx-1v", "--ranks", "4", "--collective", "all_gather", "--shares", shares, how});
  };
  const answer json = with("1,2,0,5", "--json");
  ASSERT_EQ(json.code, app::exit_ok) << json.err;
  EXPECT_EQ(with(at, "--json").out, json.out);
  const auto j = io::parse_json(json.out, "answer").value();
  EXPECT_EQ(j.at("shares"), io::json::parse("[1, 2, 0, 5]"));
  const auto even = io::parse_json(with("7,7,7,7", "--json").out, "answer").value();
  EXPECT_GT(j.at("bound").at("time").get<double>(), even.at("bound").at("time").get<double>());
  EXPECT_FALSE(
      io::parse_json(ask({"--fabric", "dgx-1v", "--ranks", "4", "--json"}).out, "answer").value().contains("shares"));
  const answer text = with("1,2,0,5", "--brief");
  EXPECT_NE(text.out.find("shards:  8.00 MiB, 16.0 MiB, 0 B and 40.0 MiB, from rank 0 on\n"), std::string::npos)
      << text.out;
  std::string many = "3";
  for (int k = 1; k < 32; ++k) many += k == 9 ? ",12" : (k % 2 == 0 ? ",0" : ",1");
  const answer large = ask({"--fabric", small, "--collective", "reduce_scatter", "--shares", many, "--brief"});
  EXPECT_NE(large.out.find("shards:  from nothing of 15 ranks to "), std::string::npos) << large.out << large.err;
  EXPECT_NE(large.out.find(" of rank 9\n"), std::string::npos) << large.out;
}

TEST(run_plan, refuses_shares_that_mean_nothing_in_one_sentence) {
  const scratch odd("odd.txt"), none("none.txt");
  ASSERT_TRUE(io::write_file(odd.path, "1\n2\nthree\n4\n"));
  ASSERT_TRUE(io::write_file(none.path, "\n\n"));
  const std::string in_odd = "--shares=@" + odd.path, in_none = "--shares=@" + none.path;
  struct refused {
    std::string_view collective, shares;
    std::string words;
  };
  const std::vector<refused> bad = {{"all_gather", "--shares=1,2,3", "3 shares were given for 4 ranks"},
                                    {"all_gather", "--shares=1,2,3,4,5", "5 shares were given for 4 ranks"},
                                    {"all_gather", "--shares=1,-2,3,4", "the share of rank 1, '-2',"},
                                    {"all_gather", "--shares=1,2,3,", "the share of rank 3, '',"},
                                    {"all_gather", "--shares=1,2,3,4.5", "the share of rank 3, '4.5',"},
                                    {"all_gather", "--shares=18446744073709551616,0,0,0", "the share of rank 0"},
                                    {"all_gather", "--shares=18446744073709551615,1,0,0", "63 bits"},
                                    {"all_gather", "--shares=0,0,0,0", "the shares of all ranks are 0"},
                                    {"all_gather", in_odd, odd.path + ":3: 'three'"},
                                    {"all_gather", in_none, none.path + " holds no shares"},
                                    {"all_gather", "--shares=@/nonexistent/file", "/nonexistent/file"},
                                    {"all_reduce", "--shares=1,2,3,4", "all_reduce has no shards"}};
  for (const refused& r : bad) {
    const answer a = ask({"--fabric", "dgx-1v", "--ranks", "4", "--collective", r.collective, r.shares});
    EXPECT_EQ(a.code, app::exit_unable) << r.words;
    EXPECT_TRUE(a.out.empty()) << a.out;
    EXPECT_NE(a.err.find(r.words), std::string::npos) << a.err;
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
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
  for (const char* option :
       {"--from", "--fabric", "--collective", "--size", "--sizes", "--ranks", "--order", "--algorithm", "--explain",
        "--json", "--output", "--svg", "--chart", "--model", "--pareto", "--previous", "--gain", "--shares"})
    EXPECT_NE(a.out.find(option), std::string::npos) << option;
}
