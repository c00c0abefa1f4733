// SPDX-License-Identifier: Apache-2.0
// Real reports and the answers that a user of the program must get from its JSON. Each report carries the answer.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;
namespace fs = std::filesystem;
namespace io = topocoll::io;

namespace {

struct answer {
  int code = -1;
  std::string out, err;
};

answer run(const std::vector<std::string_view>& args) {
  answer a;
  a.code = whole_program::run({"topo"}, args, app::into(a.out), app::into(a.err));
  return a;
}

class cases : public testing::Test {
 protected:
  void SetUp() override {
    const char* const captured = std::getenv("TOPOCOLL_CORPUS");
    if (captured == nullptr || !fs::is_directory(fs::path(captured) / "cases"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with cases";
    root = (fs::path(captured) / "cases").string() + "/";
  }
  /// The block of JSON in a report.
  [[nodiscard]] io::json expected(const std::string& report) const {
    const auto text = io::read_file(root + report);
    if (!text) {
      ADD_FAILURE() << text.error().what;
      return {};
    }
    const std::size_t start = text->find("```json") + 7;
    auto value = io::parse_json(text->substr(start, text->find("```", start) - start), report);
    EXPECT_TRUE(value) << (value ? "" : value.error().what);
    return value ? *std::move(value) : io::json{};
  }
  /// What the program says of an input: `topocoll topo --from INPUT --json`, with more options or another command.
  [[nodiscard]] io::json told(const std::string& input, const std::vector<std::string_view>& more = {},
                              int code = app::exit_ok) const {
    const std::string path = root + input;
    std::vector<std::string_view> args = more;
    args.insert(args.end(), {"--from", path, "--json"});
    const answer a = run(args);
    EXPECT_EQ(a.code, code) << a.err;
    EXPECT_EQ(a.err, "");
    auto value = io::parse_json(a.out, input);
    EXPECT_TRUE(value) << (value ? "" : value.error().what);
    return value ? *std::move(value) : io::json{};
  }

  std::string root;
};

const io::json& node(const io::json& document, const std::string& key) {
  static const io::json none;
  for (const io::json& n : document["nodes"])
    if (n["key"] == key) return n;
  ADD_FAILURE() << "no node " << key;
  return none;
}
const io::json& link_to(const io::json& document, const std::string& key) {
  static const io::json none;
  for (const io::json& l : document["links"])
    if (l["to"] == key) return l;
  ADD_FAILURE() << "no link to " << key;
  return none;
}
/// The first finding of `level` that says `what`, as "what; evidence; next step".
std::string finding(const io::json& document, const std::string& level, const std::string& what) {
  for (const io::json& f : document["findings"])
    if (f["severity"] == level && f["what"].get<std::string>().find(what) != std::string::npos)
      return f["what"].get<std::string>() + "; " + f.value("evidence", "") + "; " + f.value("next_step", "");
  return {};
}
/// {"0": 8, …}: the number of the NIC that each GPU should use; all must be of this path class.
io::json gpu_to_nic(const io::json& document, const std::string& path_class) {
  io::json chosen = io::json::object();
  for (const io::json& gpu : document["affinity"]["gpus"]) {
    EXPECT_EQ(gpu["class"], path_class);
    chosen[std::to_string(gpu["index"].get<int>())] = gpu["nic_index"];
  }
  return chosen;
}
io::json unaffiliated(const io::json& document) {
  io::json numbers = io::json::array();
  for (const io::json& key : document["affinity"]["unaffiliated_nics"])
    numbers.push_back(node(document, key.get<std::string>())["index"]);
  return numbers;
}
void expect_affinity(const io::json& document, const io::json& want) {
  for (const auto& [gpu, cores] : want.items())
    EXPECT_EQ(node(document, "localhost/gpu:" + gpu)["facts"]["cpu_affinity"], cores) << "GPU " << gpu;
}

}  // namespace

TEST_F(cases, of_adapters_in_reverse_order_give_each_gpu_the_near_one) {
  const io::json want = expected("p01-reverse-nics.md"), is = told("p01-topo.txt");
  EXPECT_EQ(is["summary"]["gpus"], want["gpus"]);
  EXPECT_EQ(is["summary"]["nics"], want["nics"]);
  EXPECT_EQ(gpu_to_nic(is, want["path_type"].get<std::string>()), want["gpu_to_nic"]);
  EXPECT_EQ(unaffiliated(is), want["unaffiliated_nics"]);
  EXPECT_EQ(is["affinity"]["rails"], want["rails"]);
  io::json numa = io::json::object();
  for (const io::json& n : is["nodes"])
    if (n["kind"] == "gpu") numa[std::to_string(n["numa"].get<int>())].push_back(n["index"]);
  EXPECT_EQ(numa, want["numa"]);
  expect_affinity(is, want["cpu_affinity"]);
  ASSERT_EQ(is["gpu_links"].size(), 1U);
  EXPECT_EQ(is["gpu_links"][0]["all_to_all"], want["nvlink_all_to_all"]);
  EXPECT_EQ(is["gpu_links"][0]["links_per_pair"], want["nvlink_per_pair"]);
  for (const io::json& gpu : is["gpu_links"][0]["gpus"])
    EXPECT_EQ(gpu["links"], want["nvlink_per_pair"]) << "to the switch, not times seven";
}

TEST_F(cases, of_shared_adapters_give_pairs_of_gpus_one_and_leave_two_alone) {
  const io::json want = expected("p02-shared-nics.md"), is = told("p02-topo.txt");
  EXPECT_EQ(gpu_to_nic(is, want["path_type"].get<std::string>()), want["gpu_to_nic"]);
  EXPECT_EQ(is["affinity"]["gpus_per_nic"], want["gpus_per_nic"]);
  EXPECT_EQ(is["affinity"]["rails"], 4);
  EXPECT_EQ(unaffiliated(is), want["unaffiliated_nics"]);
  for (const auto& [gpu, domain] : want["numa_of_gpu"].items())
    EXPECT_EQ(node(is, "localhost/gpu:" + gpu)["numa"], domain) << "GPU " << gpu;
  expect_affinity(is, want["cpu_affinity"]);
  // "Missing NIC rows are a warning": what the GPUs say of them holds both ways.
  EXPECT_EQ(finding(is, "warning", "rows of some adapters are missing").find("holds both ways") != std::string::npos,
            want["symmetric_from_partial"].get<bool>());
  // GPUs 0 and 1 get one adapter, 0 and 2 get two.
  for (const auto& [gpus, rails] : {std::pair<const char*, int>{"0,1", 1}, {"0,2", 2}})
    EXPECT_EQ(told("p02-topo.txt", {"--gpus", gpus})["affinity"]["rails"], rails) << gpus;
}

TEST_F(cases, of_access_control_name_the_bridges_the_gpus_and_the_cure) {
  const io::json want = expected("p03-acs.md"), is = told("p03-acs.txt");
  EXPECT_EQ(is["verdict"], want["verdict"]);
  const std::string said = finding(is, "warning", "access control services (ACS)");
  ASSERT_NE(said, "");
  const std::string bridges = said.substr(said.find("bridges 0"));
  for (const auto& [address, bridge] : want["bridges"].items()) {
    EXPECT_EQ(bridges.find(address) != std::string::npos, bridge["redirects_p2p"].get<bool>()) << address;
    for (const io::json& below : bridge["below"]) {
      const io::json& facts = node(is, "localhost/pci:0000:" + below.get<std::string>())["facts"];
      EXPECT_EQ(facts["root_port"], "0000:" + address);
      EXPECT_EQ(facts["root_port_acs"], bridge["acsctl_hex"]);
    }
  }
  std::string gpus;
  for (const io::json& gpu : want["gpus_affected"])
    gpus += (gpus.empty() ? "0000:" : ", 0000:") + gpu.get<std::string>();
  EXPECT_NE(said.find("GPUs " + gpus + "; "), std::string::npos) << said;
  EXPECT_EQ(want["advice_keys"], io::json::parse(R"(["disable_acs_bios_or_kernel","or_disable_p2p"])"));
  EXPECT_NE(said.find("pci=disable_acs_redir"), std::string::npos) << said;
  EXPECT_NE(said.find("NCCL_P2P_DISABLE"), std::string::npos) << said;
  EXPECT_EQ(finding(is, "note", "it is not known whether PCIe bridges redirect"), "") << "root has looked";
}

TEST_F(cases, of_inactive_nvlinks_fail_and_name_the_gpu) {
  const io::json want = expected("p04-nvlink-inactive.md"), is = told("p04-nvlink-s.txt");
  const double tolerance = want["tolerance"].get<double>();
  EXPECT_EQ(is["verdict"], want["verdict"]);
  ASSERT_EQ(is["gpu_links"].size(), 1U);
  const io::json& joined = is["gpu_links"][0];
  EXPECT_EQ(joined["gpus"].size(), want["gpus"].size());
  for (const io::json& gpu : joined["gpus"]) {
    const io::json& w = want["gpus"][std::to_string(gpu["index"].get<int>())];
    EXPECT_EQ(gpu["links"], w["active"]);
    EXPECT_NEAR(gpu["current_bytes_per_second"].get<double>() / 1e9, w["GBps_total"].get<double>(),
                w["GBps_total"].get<double>() * tolerance);
    const io::json& facts = node(is, gpu["gpu"].get<std::string>())["facts"];
    EXPECT_EQ(facts["nvlinks"],
              std::to_string(w["active"].get<int>()) + " of " + std::to_string(w["links"].get<int>()) + " active");
    std::string dead;
    if (w.contains("inactive"))
      for (const io::json& n : w["inactive"]) dead += (dead.empty() ? "" : ", ") + std::to_string(n.get<int>());
    EXPECT_EQ(facts.value("nvlinks_down", ""), dead);
    const bool lost = w["active"] != w["links"];
    EXPECT_NEAR(gpu["share"].get<double>(), lost ? want["ratio_vs_peers"].get<double>() : 1, tolerance);
  }
  io::json degraded = io::json::array();
  for (const io::json& key : joined["degraded"]) degraded.push_back(node(is, key.get<std::string>())["index"]);
  EXPECT_EQ(degraded, want["degraded_gpus"]);
  EXPECT_TRUE(joined["all_to_all"].is_null()) << "where the links lead is not told";
  // The check looks at it too, and says so with its exit code.
  const io::json checked = told("p04-nvlink-s.txt", {"check"}, app::exit_problem);
  EXPECT_EQ(checked["verdict"], want["verdict"]);
  EXPECT_NE(finding(checked, "fault", "GPU 3 has 4 of 6 NVLinks active"), "");
}

TEST_F(cases, of_a_virtual_switch_set_its_figure_aside) {
  const io::json want = expected("p11-virtual-switch.md"), is = told("p11-vm-topo.xml");
  const double tolerance = want["tolerance"].get<double>();
  const auto near = [&](double is_value, const io::json& w) {
    EXPECT_NEAR(is_value, w.get<double>(), w.get<double>() * tolerance);
  };
  const std::string gpu_key = "localhost/pci:" + want["gpu"]["busid"].get<std::string>();
  const io::json& gpu = node(is, gpu_key);
  EXPECT_EQ(gpu["index"], want["gpu"]["dev"]);
  EXPECT_EQ(gpu["global_rank"], want["gpu"]["rank"]);
  EXPECT_EQ(gpu["facts"]["sm"], std::to_string(want["gpu"]["sm"].get<int>()));
  EXPECT_EQ(gpu["facts"]["nvlink_targets"], std::to_string(want["gpu"]["nvlink_targets"].get<int>()));
  EXPECT_EQ(is["gpu_links"][0]["gpus"][0]["links"], want["gpu"]["nvlinks"]);

  const std::string port_key = "localhost/net:" + want["nic"]["name"].get<std::string>() + "/1";
  EXPECT_EQ(node(is, port_key)["index"], want["nic"]["dev"]);
  EXPECT_EQ(link_to(is, port_key)["from"], "localhost/pci:" + want["nic"]["busid"].get<std::string>());
  EXPECT_DOUBLE_EQ(link_to(is, port_key)["current_bytes_per_second"].get<double>() * 8 / 1e6,
                   want["nic"]["speed_Mbps"].get<double>());

  const io::json& bridge = link_to(is, "localhost/pci:" + want["bridge"]["busid"].get<std::string>());
  near(topocoll::pcie_payload_rate(bridge["generation"].get<std::uint32_t>(), bridge["lanes"].get<std::uint32_t>())
               .value /
           1e9,
       want["bridge"]["reported_GBps"]);
  EXPECT_EQ(bridge["trust"] != "assumed", want["bridge"]["plausible"].get<bool>());
  EXPECT_NE(bridge["reason"].get<std::string>().find("emulated bridges"), std::string::npos);
  EXPECT_GT(bridge["capacity_bytes_per_second"].get<double>(), 1e9) << "not planned around";
  near(link_to(is, gpu_key)["capacity_bytes_per_second"].get<double>() / 1e9, want["endpoint_GBps"]);
  EXPECT_NE(finding(is, "warning", "bridge speed not trusted"), "");
  EXPECT_EQ(is["verdict"], "warn") << "a doubt, not a degraded link";

  const io::json& near_nic = is["affinity"]["gpus"][0];
  EXPECT_EQ(want["gpu_nic_path"], "same switch");
  EXPECT_EQ(near_nic["class"], "PIX");
  EXPECT_EQ(near_nic["nic"], port_key);
  near(near_nic["rate_bytes_per_second"].get<double>() / 1e9, want["effective_gpu_nic_GBps"]);
  EXPECT_EQ(told("p11-vm-topo.xml", {"check"})["outcome"], "healthy");
}

// Without captured files: the fields themselves.

TEST(topo_json, tells_how_the_gpus_of_a_host_are_joined) {
  const auto joined = [](const char* spec) {
    const answer a = run({"--fabric", spec, "--json"});
    const auto value = io::parse_json(a.out, "output");
    EXPECT_TRUE(value) << a.err;
    return value ? value->value("gpu_links", io::json::array()) : io::json();
  };
  const io::json two = joined("dgx-h100:nodes=2");
  ASSERT_EQ(two.size(), 2U);
  for (const io::json& host : two) {
    EXPECT_EQ(host["all_to_all"], true);
    EXPECT_EQ(host["links_per_pair"], 18);
    EXPECT_EQ(host["gpus"].size(), 8U);
    EXPECT_EQ(host["degraded"].size(), 0U);
  }
  // The cube mesh of DGX-1 joins a GPU to four others, by one link or by two.
  const io::json mesh = joined("dgx-1v");
  EXPECT_EQ(mesh[0]["all_to_all"], false);
  EXPECT_TRUE(mesh[0]["links_per_pair"].is_null());
  for (const io::json& gpu : mesh[0]["gpus"]) EXPECT_EQ(gpu["links"], 6);
  EXPECT_EQ(joined("pcie").size(), 0U) << "no NVLink, no entry";
}

TEST(topo_json, has_the_verdict_of_its_worst_finding) {
  const answer good = run({"--fabric", "dgx-h100:nodes=1", "--json"});
  EXPECT_EQ(io::json::parse(good.out)["verdict"], "pass");
  const answer checked = run({"check", "--fabric", "dgx-h100:nodes=8,nvlinks_down=node5/gpu1:18", "--json"});
  EXPECT_EQ(checked.code, app::exit_problem);
  EXPECT_EQ(io::json::parse(checked.out)["verdict"], "fail");
}

TEST(topo_json, calls_a_gpu_that_lost_all_links_degraded) {
  const std::string place = (fs::temp_directory_path() / "topocoll-cases-nvlink.txt").string();
  ASSERT_TRUE(io::write_file(place,
                             "GPU 0: M\n Link 0: 25 GB/s\nGPU 1: M\n unable: all links are inActive\nGPU 2: other\n"
                             " unable: all links are inActive\n"));
  const answer a = run({"--from", place, "--json"});
  std::error_code ignored;
  fs::remove(place, ignored);
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  const io::json is = io::json::parse(a.out);
  EXPECT_EQ(is["gpu_links"][0]["degraded"], io::json::parse(R"(["localhost/gpu:1"])"));
  EXPECT_EQ(is["verdict"], "fail");
}
