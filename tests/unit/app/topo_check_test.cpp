// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/io/json.hpp>
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
  a.code = whole_program::run({"topo", "check"}, args, app::into(a.out), app::into(a.err));
  return a;
}

}  // namespace

TEST(run_topo_check, finds_a_healthy_cluster_healthy) {
  const answer a = run({"dgx-h100:nodes=8,leaves=8"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.out.substr(0, a.out.find('\n')),
            "Nothing is odd among 8 hosts, 64 GPUs, 64 NICs, 8 NVSwitch planes, 16 network switches, 320 links.");
  EXPECT_EQ(a.err, "");
}

TEST(run_topo_check, takes_notes_for_no_problem) {
  const answer a = run({"--fabric", "dgx-h100:nodes=8,leaves=8,oversubscription=2"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_NE(a.out.find("; 1 note."), std::string::npos) << a.out;
  EXPECT_NE(a.out.find("note     leaves are oversubscribed: 2.00:1"), std::string::npos) << a.out;
}

TEST(run_topo_check, names_the_odd_ones) {
  const answer a = run({"dgx-h100:nodes=8,leaves=8,missing=node2/nic3,nvlinks_down=node5/gpu1:18"});
  EXPECT_EQ(a.code, app::exit_problem);
  EXPECT_EQ(a.out.substr(0, a.out.find(" about")), "Something is odd: 1 fault, 1 warning and 1 note");
  EXPECT_LT(a.out.find("fault    the NVLink connection between GPU 1 of node5"),
            a.out.find("warning  node2 lacks mlx5_3"));
  EXPECT_NE(a.out.find("warning  node2 lacks mlx5_3"), std::string::npos) << a.out;
}

TEST(run_topo_check, writes_json) {
  const answer a = run({"--json", "dgx-h100:nodes=8,leaves=8,missing=leaf1/spine0"});
  EXPECT_EQ(a.code, app::exit_problem);
  const auto j = io::parse_json(a.out, "output");
  ASSERT_TRUE(j) << a.out << a.err;
  EXPECT_EQ((*j)["schema"], "topocoll.findings/1");
  EXPECT_EQ((*j)["command"], "topo check");
  EXPECT_EQ((*j)["outcome"], "odd");
  EXPECT_EQ((*j)["counts"]["warnings"], 1);
  EXPECT_EQ((*j)["findings"][0]["where"], "leaf:1 - spine:0");
  EXPECT_EQ((*j)["findings"][0]["severity"], "warning");
  EXPECT_TRUE((*j)["source"].is_string());
}

TEST(run_topo_check, cuts_long_lists_unless_told) {
  std::string spec = "dgx-h100:nodes=128,pods=4";
  for (int h = 0; h < 50; ++h) spec += ",slow=node" + std::to_string(h) + "/nic0:0.5";
  const answer some = run({spec});
  EXPECT_NE(some.out.find("and 10 more warnings; --all shows them"), std::string::npos) << some.out;
  const answer all = run({spec, "--all"});
  EXPECT_EQ(all.out.find("more warnings"), std::string::npos);
  EXPECT_GT(all.out.size(), some.out.size());
}

TEST(run_topo_check, cannot_look_at_what_is_not_there) {
  for (const std::vector<std::string_view>& args : {std::vector<std::string_view>{"/nowhere/a.xml"},
                                                    {"dgx-h100:nodez=3"},
                                                    {"--tolerance", "7", "dgx-h100"},
                                                    {"--bogus"}}) {
    const answer a = run(args);
    EXPECT_EQ(a.code, app::exit_unable);
    EXPECT_EQ(a.out, "");
    EXPECT_EQ(a.err.substr(0, 10), "topocoll: ") << a.err;
  }
}
