// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <unit/app/whole_program.hpp>
#include <vector>
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
  a.code = whole_program::run({"topo"}, args, app::into(a.out), app::into(a.err));
  return a;
}

io::json parsed(const std::string& text) {
  auto value = io::parse_json(text, "output");
  EXPECT_TRUE(value) << (value ? "" : value.error().what);
  return value ? *std::move(value) : io::json{};
}

/// A directory that goes away with the test.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "topocoll-topo-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = name;
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
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* machine_xml = R"(<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:18:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1b:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:1c:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="1" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
)";

}  // namespace

TEST(topo_command, shows_a_tree_by_default) {
  const answer a = run({"--fabric", "pcie"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.err, "");
  EXPECT_EQ(a.out, run({"--fabric", "pcie", "--tree"}).out);
  EXPECT_NE(a.out.find("4 GPUs"), std::string::npos);
  EXPECT_NE(a.out.find("+- NUMA 0"), std::string::npos);
  EXPECT_NE(run({"--fabric", "pcie", "--unicode"}).out.find("├─ NUMA 0"), std::string::npos);
}

TEST(topo_command, writes_a_json_document_with_counts) {
  const answer a = run({"--fabric", "dgx-h100:nodes=2", "--json"});
  EXPECT_EQ(a.code, app::exit_ok);
  const io::json document = parsed(a.out);
  EXPECT_EQ(document["schema"], "topocoll.topology/1");
  EXPECT_EQ(document["summary"]["gpus"], 16);
  EXPECT_EQ(document["summary"]["hosts"], 2);
  EXPECT_FALSE(document.contains("paths"));
}

TEST(topo_command, reads_a_file_and_its_own_json) {
  const folder f;
  const std::string xml = f.write("machine.xml", machine_xml);
  const answer first = run({"--from", xml, "--json", "--host", "node7"});
  EXPECT_EQ(first.code, app::exit_ok) << first.err;
  const io::json document = parsed(first.out);
  EXPECT_EQ(document["summary"]["gpus"], 1);
  EXPECT_EQ(document["summary"]["nics"], 1);
  EXPECT_EQ(document["nodes"][0]["host"], "node7");
  const std::string json = f.write("machine.json", first.out);
  EXPECT_EQ(run({"--from", json, "--json"}).out, first.out);
}

TEST(topo_command, merges_several_sources) {
  const folder f;
  const std::string xml = f.write("machine.xml", machine_xml);
  const answer a = run({"--from", xml, "--fabric", "pcie", "--from", xml, "--json"});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_EQ(parsed(a.out)["summary"]["gpus"], 5) << "the same file twice is the same machine";
}

TEST(topo_command, lists_every_pair_of_a_host_with_class_rate_and_reason) {
  const folder f;
  const answer a = run({"--from", f.write("machine.xml", machine_xml), "--paths"});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_EQ(
      a.out,
      "from    to        class  rate       why\n"
      "GPU 0   mlx5_0    PIX    48.0 GB/s  limited by the Gen5 x16 link of GPU 0\n"
      "GPU 0   memory 0  PHB    48.0 GB/s  limited by the Gen5 x16 link of GPU 0 ?1\n"
      "mlx5_0  memory 0  PHB    48.0 GB/s  limited by the Gen5 x16 link of mlx5_0 ?1\n"
      "\n"
      "  ?1  the figure of the memory of NUMA 0 is assumed (nobody reports it; taken as four channels of DDR4-3200)\n");
}

TEST(topo_command, groups_the_pairs_of_a_fabric) {
  const answer a = run({"--fabric", "dgx-h100:nodes=3,leaves=8", "--paths", "--json"});
  EXPECT_EQ(a.code, app::exit_ok);
  std::size_t gpu_pairs = 0;
  std::size_t nvlink_pairs = 0;
  const io::json document = parsed(a.out);
  for (const io::json& row : document["paths"]) {
    const bool gpus = row["why"].get<std::string>().find("mlx5") == std::string::npos || row["class"] == "NET";
    EXPECT_FALSE(row["why"].get<std::string>().empty());
    if (row["class"] == "NVL") nvlink_pairs += row["pairs"].get<std::size_t>();
    if (gpus) gpu_pairs += row["pairs"].get<std::size_t>();
  }
  EXPECT_EQ(nvlink_pairs, 3U * 8 * 7);
  EXPECT_GT(gpu_pairs, nvlink_pairs);
  EXPECT_LT(document["paths"].size(), 20U);
}

TEST(topo_command, counts_every_pair_of_a_small_fabric_once_each_way) {
  const io::json document = parsed(run({"--fabric", "dgx-h100:nodes=5,leaves=8", "--paths", "--json"}).out);
  std::size_t pairs = 0;
  for (const io::json& row : document["paths"]) pairs += row["pairs"].get<std::size_t>();
  EXPECT_EQ(pairs, 80U * 79) << "40 GPUs and 40 NICs";
}

TEST(topo_command, lets_gpus_relay_only_when_asked) {
  const std::string plain = run({"--fabric", "dgx-1v", "--paths"}).out;
  const std::string relayed = run({"--fabric", "dgx-1v", "--paths", "--nvb"}).out;
  EXPECT_EQ(plain.find("NVB"), std::string::npos);
  EXPECT_NE(relayed.find("NVB"), std::string::npos);
  EXPECT_NE(run({"--fabric", "dgx-h100:nodes=2", "--paths", "--pxn"}).out.find("PXN"), std::string::npos);
}

TEST(topo_command, draws) {
  const answer a = run({"--fabric", "pcie", "--dot"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.out.find("digraph topology {"), 0U);
}

TEST(topo_command, writes_to_a_file_instead_of_standard_output) {
  const folder f;
  const answer a = run({"--fabric", "pcie", "--json", "--output", f / "out.json"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.out, "");
  EXPECT_EQ(*io::read_file(f / "out.json"), run({"--fabric", "pcie", "--json"}).out);
}

TEST(topo_command, that_cannot_write_leaves_nothing) {
  const folder f;
  const answer a = run({"--fabric", "pcie", "--output", f / "none/out.json"});
  EXPECT_EQ(a.code, app::exit_unable);
  EXPECT_EQ(a.out, "");
  EXPECT_EQ(std::ranges::count(a.err, '\n'), 1);
  EXPECT_NE(a.err.find("none/out.json"), std::string::npos);
  EXPECT_EQ(run({"--fabric", "pcie", "--output", "/dev/full"}).err,
            "topocoll: the disk is full: cannot write '/dev/full'; free space or choose another place\n");
}

TEST(topo_command, answers_a_mistake_with_one_sentence_and_nothing_else) {
  const folder f;
  const std::string cut = f.write("cut.xml", std::string(machine_xml).substr(0, 300));
  const std::string empty = f.write("empty", "");
  const std::string newer = f.write("newer.json", R"({"schema":"topocoll.topology/9","nodes":[],"links":[]})");
  const std::vector<std::vector<std::string_view>> mistakes = {{"--form", "x"},
                                                               {"stray"},
                                                               {"--json", "--dot"},
                                                               {"--json", "--tree"},
                                                               {"--nvb"},
                                                               {"--from", "/none"},
                                                               {"--from", cut},
                                                               {"--from", f.path()},
                                                               {"--from", empty},
                                                               {"--from", newer},
                                                               {"--fabric", "dgx-x9000"},
                                                               {"--fabric", ""},
                                                               {"--fabric", "pcie:nodes=0"},
                                                               {"--from"},
                                                               {"--root", f.path()}};
  for (const auto& args : mistakes) {
    SCOPED_TRACE(std::string(args[0]) + ' ' + std::string(args.back()));
    const answer a = run(args);
    EXPECT_EQ(a.code, app::exit_unable);
    EXPECT_EQ(a.out, "");
    EXPECT_EQ(a.err.find("topocoll: "), 0U) << a.err;
    EXPECT_EQ(std::ranges::count(a.err, '\n'), 1) << a.err;
  }
  EXPECT_NE(run({"--from", newer}).err.find("version 9"), std::string::npos);
}

TEST(topo_command, helps) {
  const answer a = run({"--help"});
  EXPECT_EQ(a.code, app::exit_ok);
  EXPECT_EQ(a.err, "");
  for (const char* option :
       {"--from", "--fabric", "--json", "--dot", "--tree", "--paths", "--output", "--root", "--host"})
    EXPECT_NE(a.out.find(option), std::string::npos) << option;
}

TEST(topo_command, looks_at_this_machine) {
  const answer a = run({"--from", "live", "--json", "--host", "me"});
  EXPECT_EQ(a.code, app::exit_ok) << a.err;
  const io::json document = parsed(a.out);
  EXPECT_GE(document["summary"]["numa_domains"].get<int>(), 1);
  EXPECT_EQ(document["nodes"][0]["host"], "me");
  EXPECT_EQ(run({"--json", "--host", "me"}).out, a.out) << "live is the default";
}

TEST(topo_command, reads_or_refuses_every_captured_file_and_never_half) {
  const char* const captured = std::getenv("TOPOCOLL_CORPUS");
  if (captured == nullptr || *captured == '\0') GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder of captured inputs";
  std::size_t read = 0;
  std::size_t refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(captured) / "corpus")) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path());
    const std::string path = entry.path().string();
    const answer a = run({"--from", path, "--json"});
    if (a.code == app::exit_unable) {
      ++refused;
      EXPECT_EQ(a.out, "");
      EXPECT_EQ(std::ranges::count(a.err, '\n'), 1) << a.err;
      continue;
    }
    ++read;
    EXPECT_EQ(a.code, app::exit_ok);
    EXPECT_EQ(a.err, "");
    const auto back = topocoll::topo::from_json(a.out, path);
    ASSERT_TRUE(back) << back.error().what;
    for (const char* form : {"--tree", "--dot", "--paths"})
      EXPECT_EQ(run({"--from", path, form}).code, app::exit_ok) << form;
  }
  EXPECT_GT(read, refused / 4) << refused << " refused";
  RecordProperty("read", static_cast<int>(read));
}

TEST(topo_command, records_this_machine_so_that_it_replays_to_the_same_graph) {
  const folder here;
  const std::string file = here / "machine.rec";
  const answer recorded = run({"--record", file, "--host", "node7"});
  ASSERT_EQ(recorded.code, app::exit_ok) << recorded.err;
  EXPECT_EQ(recorded.out, "");
  const answer live = run({"--host", "node7", "--json"});
  const answer replayed = run({"--from", file, "--json"});
  ASSERT_EQ(replayed.code, app::exit_ok) << replayed.err;
  EXPECT_EQ(parsed(replayed.out)["summary"], parsed(live.out)["summary"]);

  const answer both = run({"--record", file, "--fabric", "dgx-a100"});
  EXPECT_EQ(both.code, app::exit_unable);
  EXPECT_EQ(std::ranges::count(both.err, '\n'), 1) << both.err;
}

TEST(topo_forms, write_files_that_read_back_as_the_same_devices) {
  const folder here;
  const auto counts = [&](const std::string& file) {
    const answer a = run({"--from", file, "--json"});
    EXPECT_EQ(a.code, 0) << a.err;
    return parsed(a.out)["summary"];
  };
  const std::string_view box = "dgx-h100:nodes=1,detail=full";
  const io::json whole = parsed(run({"--fabric", box, "--json"}).out)["summary"];
  const answer xml = run({"--fabric", box, "--nccl-xml"});
  ASSERT_EQ(xml.code, 0) << xml.err;
  const io::json again = counts(here.write("box", xml.out));
  for (const char* what : {"gpus", "nics", "numa_domains", "nvswitches"}) EXPECT_EQ(again[what], whole[what]) << what;

  const answer matrix = run({"--fabric", box, "--matrix"});
  ASSERT_EQ(matrix.code, 0) << matrix.err;
  const io::json rows = counts(here.write("matrix", matrix.out));
  EXPECT_EQ(rows["gpus"], whole["gpus"]);
  EXPECT_EQ(rows["nics"], whole["nics"]);

  for (const char* form : {"--slurm", "--slurm-yaml"}) {
    const answer conf = run({"--fabric", "dgx-h100:nodes=8,pods=2", form});
    ASSERT_EQ(conf.code, 0) << conf.err;
    EXPECT_EQ(counts(here.write("conf", conf.out))["hosts"], 8) << form;
  }
}

TEST(topo_forms, draw_a_picture_that_stands_alone) {
  const answer a = run({"--fabric", "dgx-h100:nodes=2", "--svg"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out.rfind("<svg", 0), 0U) << a.out.substr(0, 80);
  EXPECT_EQ(a.out.find("<script"), std::string::npos);
}

TEST(topo_forms, tell_which_nic_each_gpu_should_use) {
  const answer text = run({"--fabric", "dgx-h100:nodes=1", "--affinity"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("8 rails, at most 1 GPU on one NIC"), std::string::npos) << text.out;
  const io::json document = parsed(run({"--fabric", "dgx-h100:nodes=1", "--json"}).out);
  EXPECT_EQ(document["affinity"]["rails"], 8);
  EXPECT_EQ(document["affinity"]["gpus"].size(), 8U);
  EXPECT_EQ(document["affinity"]["gpus"][3]["class"], "PIX");
}

TEST(topo_command, shows_only_the_gpus_that_a_process_sees) {
  const io::json document = parsed(run({"--fabric", "dgx-h100:nodes=1", "--gpus", "6,1", "--json"}).out);
  EXPECT_EQ(document["summary"]["gpus"], 2);
  EXPECT_EQ(document["summary"]["nics"], 8);
  EXPECT_EQ(document["affinity"]["rails"], 2);
  EXPECT_EQ(run({"--fabric", "dgx-h100:nodes=1", "--gpus", "all"}).code, 2);
}

TEST(topo_forms, ask_which_host_is_meant_and_exclude_each_other) {
  const answer many = run({"--fabric", "dgx-h100:nodes=2", "--nccl-xml"});
  EXPECT_EQ(many.code, 2);
  EXPECT_EQ(many.out, "");
  EXPECT_NE(many.err, "");
  EXPECT_EQ(run({"--fabric", "dgx-h100:nodes=2", "--matrix", "--only", "node1"}).code, 0);
  EXPECT_EQ(run({"--fabric", "dgx-h100:nodes=1", "--svg", "--dot"}).code, 2);
  EXPECT_EQ(run({"--fabric", "dgx-h100:nodes=1", "--svg", "--paths"}).code, 2);
  EXPECT_EQ(run({"--fabric", "dgx-h100:nodes=1", "--json", "--paths"}).code, 0);
}
