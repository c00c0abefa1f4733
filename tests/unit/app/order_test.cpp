// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;
namespace io = topocoll::io;

namespace {

struct answer {
  int code = -1;
  std::string out, err;
};
answer order(std::vector<std::string_view> args) {
  answer a;
  a.code = whole_program::run({"order"}, args, app::into(a.out), app::into(a.err));
  return a;
}
void refused(const std::vector<std::string_view>& args, std::string_view words) {
  const answer a = order(args);
  EXPECT_EQ(a.code, 2) << words;
  EXPECT_EQ(a.out, "");
  EXPECT_NE(a.err.find(words), std::string::npos) << a.err;
  EXPECT_LE(std::count(a.err.begin(), a.err.end(), '\n'), 2) << a.err;
}

/// A directory that goes away with the test, with Slurm's description of two leaves of four hosts.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "topocoll-order-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = name;
    conf = write("topology.conf",
                 "SwitchName=l0 Nodes=n[0-3]\nSwitchName=l1 Nodes=n[4-7]\nSwitchName=top Switches=l[0-1]\n");
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  std::string write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(io::write_file(*this / name, text));
    return *this / name;
  }

  std::string conf;

 private:
  std::string path_;
};

}  // namespace

TEST(order_command, orders_a_host_file_by_leaves) {
  const folder f;
  const std::string hosts = f.write("hosts", "n4 slots=2\nn0 slots=2\nn5 slots=2\nn1 slots=2\n");
  const answer a = order({"--from", f.conf, "--hosts", hosts, "--format", "mpirun"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out, "n4 slots=2\nn5 slots=2\nn0 slots=2\nn1 slots=2\n");
  EXPECT_NE(a.err.find("leaf: 2 groups; the ring leaves one 4 times, 2 in the new order (the least)"),
            std::string::npos)
      << a.err;
}

TEST(order_command, knows_every_launcher) {
  const folder f;
  const std::vector<std::pair<std::string_view, std::string>> forms{
      {"list", "n4\nn5\nn0\n"},
      {"mpirun", "n4 slots=2\nn5 slots=2\nn0 slots=2\n"},
      {"hydra", "n4:2\nn5:2\nn0:2\n"},
      {"rankfile",
       "rank 0=n4 slot=0\nrank 1=n4 slot=1\nrank 2=n5 slot=0\nrank 3=n5 slot=1\nrank 4=n0 slot=0\nrank 5=n0 slot=1\n"},
      {"slurm", "n4\nn4\nn5\nn5\nn0\nn0\n"},
      {"torchrun",
       "n4 --nnodes=3 --nproc-per-node=2 --node-rank=0 --master-addr=n4 --master-port=29500\n"
       "n5 --nnodes=3 --nproc-per-node=2 --node-rank=1 --master-addr=n4 --master-port=29500\n"
       "n0 --nnodes=3 --nproc-per-node=2 --node-rank=2 --master-addr=n4 --master-port=29500\n"}};
  for (const auto& [form, text] : forms) {
    const std::string file = f / std::string(form);
    const answer a =
        order({"--from", f.conf, "--hosts", "n4,n0,n5", "--slots", "2", "--format", form, "--output", file});
    ASSERT_EQ(a.code, 0) << a.err;
    EXPECT_EQ(a.out, "");
    EXPECT_EQ(io::read_file(file).value(), text) << form;
    if (form == "slurm") {
      EXPECT_NE(a.err.find("SLURM_HOSTFILE=" + file + " srun --distribution=arbitrary --nodelist=n[0,4-5] --ntasks=6"),
                std::string::npos)
          << a.err;
    }
  }
  const answer shell = order({"--from", f.conf, "--hosts", "n[0-1]", "--format", "torchrun-env", "--port", "99"});
  EXPECT_EQ(shell.code, 0);
  EXPECT_NE(shell.out.find("MASTER_ADDR=n0 MASTER_PORT=99"), std::string::npos) << shell.out;
}

TEST(order_command, takes_all_hosts_and_their_gpus_by_default) {
  const answer a = order({"--fabric", "dgx-h100:nodes=4,pods=2", "--format", "hydra"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out, "node0:8\nnode1:8\nnode2:8\nnode3:8\n");
  EXPECT_NE(a.err.find("nothing can be gained"), std::string::npos) << a.err;
  const answer list = order({"--fabric", "dgx-h100:nodes=4,pods=2", "--hosts", "node[2,0,3]", "--format", "hydra"});
  EXPECT_EQ(list.out, "node2:8\nnode3:8\nnode0:8\n") << list.err;
}

TEST(order_command, tells_programs_what_it_brings) {
  const folder f;
  const answer a = order({"--from", f.conf, "--hosts", "n4,n0,n5,n1,ghost", "--json"});
  ASSERT_EQ(a.code, 0) << a.err;
  const auto j = io::parse_json(a.out, "out");
  ASSERT_TRUE(j) << a.out;
  EXPECT_EQ((*j)["schema"], "topocoll.order/1");
  EXPECT_EQ((*j)["gains"], true);
  EXPECT_EQ((*j)["known"], 4);
  EXPECT_EQ((*j)["hosts"][1]["name"], "n5");
  EXPECT_EQ((*j)["tiers"][0]["before"]["ring_hops"], 4);
  EXPECT_EQ((*j)["tiers"][0]["after"]["ring_hops"], 2);
  EXPECT_EQ((*j)["findings"].size(), 1u);
  EXPECT_NE(a.err.find("hosts are not in the topology; they stay together at the end (ghost)"), std::string::npos)
      << a.err;
}

TEST(order_command, says_in_one_sentence_what_is_wrong) {
  const folder f;
  refused({"--from", f.conf, "--hosts", "x,y"},
          "the topology knows none of the 2 hosts, the first is 'x'; it has hosts such as 'n0'");
  refused({"--from", f.conf, "--hosts", "n0", "--format", "pbs"}, "'pbs' is not a form for launchers");
  refused({"--from", f.conf, "--hosts", "n0", "--slots", "0"}, "at least one process");
  refused({"--from", f.conf, "--hosts", "no/such/file"}, "'no/such/file' is neither a file nor a list of hosts");
  refused({"--from", f / "nothing.conf"}, "nothing.conf");
  refused({"--from", f.conf, "--hosts", f.write("bad", "n0 slots=none\n")}, "line 1");
  refused({"--from", f.conf, "--hosts", "n0", "-o", f / "no/folder"}, "no/folder");
  refused({"--hosts", "n0"}, "");
}
