// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/codec.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;
namespace io = topocoll::io;

namespace {

struct answer {
  int code = -1;
  std::string out, err;
};

answer run(std::vector<std::string_view> args) {
  answer a;
  a.code = whole_program::run({"topo", "diff"}, args, app::into(a.out), app::into(a.err));
  return a;
}

/// A described topology as a file of its own JSON, gone with the test.
class saved {
 public:
  saved(const std::string& name, const std::string& spec) {
    std::string folder = (std::filesystem::temp_directory_path() / "topocoll-diff-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    folder_ = folder;
    path_ = folder + '/' + name;
    auto f = topocoll::describe(spec);
    EXPECT_TRUE(f) << (f ? "" : f.error().what);
    auto g = topocoll::topo::graph::from(*std::move(f));
    EXPECT_TRUE(g);
    EXPECT_TRUE(io::write_file(path_, io::to_text(topocoll::topo::to_json_value(*g))));
  }
  ~saved() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  saved(const saved&) = delete;
  saved& operator=(const saved&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

}  // namespace

TEST(run_topo_diff, says_that_equal_things_are_the_same) {
  const answer a = run({"dgx-h100", "dgx-h100"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.out, "A (dgx-h100) and B (dgx-h100) are the same: 37 devices and switches were found in both.\n");
  EXPECT_EQ(a.err, "");
}

TEST(run_topo_diff, compares_files_and_names_both) {
  const saved monday("monday.json", "dgx-h100");
  const saved friday("friday.json", "dgx-h100:slow=node0/nic3:0.5");
  const answer a = run({monday.path(), friday.path()});
  EXPECT_EQ(a.code, app::exit_problem);
  EXPECT_EQ(a.out.substr(0, a.out.find('\n')),
            "monday.json and friday.json differ: 1 warning; 37 devices and switches were found in both.");
  EXPECT_NE(
      a.out.find("warning  the internal link of mlx5_3/1 to mlx5_3 is slower in friday.json: 50.0 GB/s in monday.json, "
                 "25.0 GB/s in friday.json\n"),
      std::string::npos)
      << a.out;
}

TEST(run_topo_diff, writes_json) {
  const answer a = run({"dgx-h100", "dgx-h100:missing=node0/gpu2,slow=node0/gpu3:0.5", "--json"});
  EXPECT_EQ(a.code, app::exit_problem);
  EXPECT_EQ(a.err, "");
  const auto j = io::parse_json(a.out, "output");
  ASSERT_TRUE(j) << (j ? "" : j.error().what);
  EXPECT_EQ((*j)["schema"], "topocoll.findings/1");
  EXPECT_EQ((*j)["command"], "topo diff");
  EXPECT_EQ((*j)["outcome"], "differs");
  EXPECT_EQ((*j)["a"], "dgx-h100");
  EXPECT_EQ((*j)["counts"]["warnings"], 2);
  EXPECT_EQ((*j)["findings"].size(), 2U);
  EXPECT_EQ((*j)["missing"], io::json::array({"node0/pci:0000:17:00.0"}));
  EXPECT_EQ((*j)["added"], io::json::array());
  EXPECT_EQ((*j)["hosts"][0]["b"], "node0");
  EXPECT_EQ((*j)["recognised"]["by_key"], 36);
  ASSERT_EQ((*j)["links"].size(), 1U);
  EXPECT_EQ((*j)["links"][0]["kind"], "pcie");
  EXPECT_EQ((*j)["links"][0]["a"]["lanes"], 16);
  EXPECT_EQ((*j)["links"][0]["b"]["from"], "node0/pci:0000:1a:00.0");
}

TEST(run_topo_diff, maps_hosts) {
  const answer a = run({"dgx-h100:nodes=2,leaves=8", "dgx-h100:nodes=2,leaves=8,missing=node0/gpu1", "--map",
                        "node0=node1", "--map=node1=node0", "--json"});
  const auto j = io::parse_json(a.out, "output");
  ASSERT_TRUE(j) << a.out << a.err;
  EXPECT_EQ((*j)["missing"][0], "node1/pci:0000:14:00.0");
}

TEST(run_topo_diff, cannot_look_at_what_is_not_there) {
  for (const std::vector<std::string_view>& args : {std::vector<std::string_view>{"dgx-h100"},
                                                    {"dgx-h100", "/nowhere/a.xml"},
                                                    {"dgx-h100:nodez=3", "dgx-h100"},
                                                    {"dgx-h100", "dgx-h100", "--map", "node0"},
                                                    {"dgx-h100", "dgx-h100", "--bogus"}}) {
    const answer a = run(args);
    EXPECT_EQ(a.code, app::exit_unable);
    EXPECT_EQ(a.out, "");
    EXPECT_EQ(a.err.substr(0, 10), "topocoll: ") << a.err;
  }
}

TEST(run_topo_diff, tells_its_options) {
  const answer a = run({"--help"});
  EXPECT_EQ(a.code, app::exit_ok);
  for (const char* option : {"--json", "--map", "--all", "--no-paths", "--tolerance"})
    EXPECT_NE(a.out.find(option), std::string::npos) << option;
}
