// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/integrate/msccl_xml.hpp>
#include <topocoll/integrate/mscclpp_json.hpp>
#include <topocoll/integrate/nccl_graph_file.hpp>
#include <topocoll/integrate/nccl_tuner_csv.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/io/xml.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

struct answer {
  int code = -1;
  std::string out, err;
};
answer run(const char* command, std::vector<std::string_view> args) {
  answer a;
  a.code = whole_program::run({command}, args, app::into(a.out), app::into(a.err));
  return a;
}
/// Nothing is written but one sentence.
void refused(const std::vector<std::string_view>& args, std::string_view words) {
  const answer a = run("export", args);
  EXPECT_EQ(a.code, 2) << words;
  EXPECT_EQ(a.out, "");
  EXPECT_NE(a.err.find(words), std::string::npos) << a.err;
  EXPECT_LE(std::count(a.err.begin(), a.err.end(), '\n'), 2) << a.err;
}

/// A directory that goes away with the test.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "topocoll-export-XXXXXX").string();
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

 private:
  std::string path_;
};

}  // namespace

TEST(export_command, writes_rings_of_a_host_for_nccl) {
  const folder f;
  const std::string file = f / "graph.xml";
  const answer a =
      run("export", {"--format", "nccl-graph", "--fabric", "dgx-h100:nodes=2,leaves=8", "--node", "node1", "-o", file});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out, "");
  EXPECT_NE(a.err.find("ring: "), std::string::npos) << a.err;
  const auto read = read_nccl_graph_xml(io::parse_xml(io::read_file(file).value(), file).value(), file);
  ASSERT_TRUE(read) << read.error().what;
  const topo::graph g = topo::graph::from(describe("dgx-h100:nodes=2,leaves=8").value()).value();
  const auto proof = check_nccl_graphs(*read, g, "node1");
  EXPECT_TRUE(proof) << (proof ? "" : proof.error().what);
}

TEST(export_command, writes_msccl_from_a_plan_that_was_saved) {
  const folder f;
  const std::string plan = f / "plan.json";
  const answer made =
      run("plan", {"--fabric", "dgx-h100:nodes=1", "--collective", "all_gather", "--size", "1M", "--output", plan});
  ASSERT_EQ(made.code, 0) << made.err;
  const answer a = run("export", {"--format", "msccl-xml", "--plan", plan});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_NE(a.err.find("proved for all orders"), std::string::npos) << a.err;
  const auto root = io::parse_xml(a.out, "out");
  ASSERT_TRUE(root);
  EXPECT_TRUE(check_msccl_xml(*root, "out", msccl_reader::executor, {}));
  const answer json = run("export", {"--format", "mscclpp-json", "--plan", plan, "--ranks-per-host", "8"});
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_TRUE(read_mscclpp_json(json.out, "out"));
  refused({"--format", "msccl-xml", "--plan", plan, "--fabric", "dgx-h100:nodes=2"},
          "is for 8 ranks, the topology has 16 places");
  const std::string by_switch = f / "switch.json";
  ASSERT_EQ(
      run("plan", {"--fabric", "dgx-h100:nodes=1", "--nvls", "--algorithm", "in_switch", "--output", by_switch}).code,
      0);
  refused({"--format", "msccl-xml", "--plan", by_switch}, "leaves sums and copies to NVSwitches");
  refused({"--format", "mscclpp-json", "--plan", plan, "--ranks-per-host", "0"}, "at least one rank each");
}

TEST(export_command, chooses_a_plan_and_proves_it) {
  const answer a = run("export", {"--format", "msccl-xml", "--fabric", "dgx-a100:nodes=2", "--size", "1G"});
  ASSERT_EQ(a.code, 0) << a.err;
  const auto root = io::parse_xml(a.out, "out");
  ASSERT_TRUE(root);
  const auto proof = check_msccl_xml(*root, "out", msccl_reader::executor, {});
  EXPECT_TRUE(proof) << (proof ? "" : proof.error().what);
  const answer json = run("export", {"--format", "mscclpp-json", "--fabric", "dgx-h100:nodes=1", "--size", "1M"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto read = read_mscclpp_json(json.out, "out");
  ASSERT_TRUE(read) << read.error().what;
  const auto ok = check_mscclpp_plan(*read, {});
  EXPECT_TRUE(ok) << (ok ? "" : ok.error().what);
}

TEST(export_command, takes_the_next_plan_where_the_format_cannot_hold_the_cheapest) {
  // The cheapest plans of an all-gather over this fabric are packed trees with tens of thousands of chunks.
  const answer a = run("export", {"--format", "msccl-xml", "--fabric", "dgx-a100:nodes=2,leaves=8", "--collective",
                                  "all_gather", "--size", "256M"});
  ASSERT_EQ(a.code, 0) << a.err;
  const auto root = io::parse_xml(a.out, "out");
  ASSERT_TRUE(root);
  EXPECT_NE(a.err.find("the format cannot hold the cheapest plan; this one is"), std::string::npos) << a.err;
  const answer json = run("export", {"--format", "msccl-xml", "--fabric", "dgx-a100:nodes=2,leaves=8", "--collective",
                                     "all_gather", "--size", "256M", "--algorithm", "packed"});
  EXPECT_EQ(json.code, 2);  // who asks for a planner gets its plan or nothing
  EXPECT_EQ(json.out, "");
  EXPECT_NE(json.err.find("MSCCL takes 32767"), std::string::npos) << json.err;
}

TEST(export_command, writes_the_choice_by_size_for_the_tuner) {
  const answer a = run("export", {"--format", "tuner-csv", "--fabric", "dgx-h100:nodes=4,leaves=8"});
  ASSERT_EQ(a.code, 0) << a.err;
  const auto rows = read_tuner_csv(a.out, "out");
  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_FALSE(rows->empty());
  EXPECT_EQ(rows->front().min_bytes, 0u);
  EXPECT_EQ(rows->back().max_bytes, UINT64_MAX);
  for (std::size_t i = 0; i + 1 < rows->size(); ++i) EXPECT_EQ((*rows)[i].max_bytes + 1, (*rows)[i + 1].min_bytes);
  for (const tuner_row& r : *rows) {
    EXPECT_EQ(r.nodes, 4u);
    EXPECT_EQ(r.ranks, 32u);
  }
  EXPECT_EQ(rows->back().protocol, tuner_protocol::simple);
  refused({"--format", "tuner-csv", "--fabric", "dgx-h100:nodes=2", "--collective", "all_to_all"}, "");
}

TEST(export_command, writes_variables_in_every_style) {
  for (const char* style : {"export", "env", "mpirun", "config"}) {
    const answer a = run("export", {"--format", "nccl-env", "--fabric", "dgx-h100:nodes=4,leaves=8", "--node", "node0",
                                    "--max-ctas", "4", "--style", style});
    EXPECT_EQ(a.code, 0) << a.err;
    EXPECT_NE(a.out.find(std::string_view(style) == "config" ? "maxCTAs = 4" : "NCCL_MAX_CTAS=4"), std::string::npos)
        << a.out;
    EXPECT_NE(a.out.find("NCCL_CROSS_NIC=0"), std::string::npos) << a.out;
  }
  refused({"--format", "nccl-env", "--fabric", "dgx-h100:nodes=1", "--style", "yaml"},
          "'yaml' is not a style for variables");
}

TEST(export_command, tells_programs_what_was_proved) {
  const answer a = run("export", {"--format", "msccl-xml", "--fabric", "dgx-h100:nodes=1", "--json"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.err, "");
  const auto j = io::parse_json(a.out, "out");
  ASSERT_TRUE(j) << a.out;
  EXPECT_EQ((*j)["schema"], "topocoll.export/1");
  EXPECT_EQ((*j)["format"], "msccl-xml");
  EXPECT_GT((*j)["proof"]["steps"], 0);
  EXPECT_TRUE(io::parse_xml((*j)["text"].get<std::string>(), "text"));
  const folder f;
  const answer with =
      run("export", {"--format", "nccl-graph", "--fabric", "dgx-h100:nodes=1", "--json", "-o", f / "g.xml"});
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(io::parse_json(with.out, "out").value()["output"], f / "g.xml");
  EXPECT_TRUE(std::filesystem::exists(f / "g.xml"));
}

TEST(export_command, says_in_one_sentence_what_is_wrong) {
  refused({}, "no format was asked for");
  refused({"--format", "vtk"}, "'vtk' is not a format that plans are exported to");
  refused({"--format", "nccl-graph", "--fabric", "dgx-h100:nodes=2"}, "");
  refused({"--format", "nccl-graph", "--fabric", "dgx-h100:nodes=1", "--node", "there"}, "there");
  refused({"--format", "nccl-graph", "--fabric", "dgx-h100:nodes=1", "--channels", "99"}, "99 channels");
  refused({"--format", "msccl-xml", "--plan", "/no/such/plan.json"}, "/no/such/plan.json");
  refused({"--format", "msccl-xml", "--fabric", "dgx-h100:nodes=1", "--reader", "nobody"}, "'nobody' does not read");
  refused({"--format", "msccl-xml", "--fabric", "dgx-h100:nodes=1", "--collective", "broadcast"}, "root");
  refused({"--format", "msccl-xml", "--fabric", "dgx-h100:nodes=1", "--collective", "polka"},
          "'polka' is not a collective");
  refused({"--format", "msccl-xml", "--fabric", "dgx-h100:nodes=1", "--collective", "broadcast", "--root", "9"},
          "the root is rank 9");
  refused({"--format", "msccl-xml", "--fabric", "dgx-h100:nodes=1", "--protocol", "UDP"}, "UDP");
  refused({"--format", "tuner-csv", "--fabric", "dgx-h100:nodes=1", "--sizes", "4G:8"}, "names no sizes");
  refused({"--format", "tuner-csv", "--fabric", "dgx-h100:nodes=1", "--model", "/no/model.json"}, "/no/model.json");
  const folder f;
  refused({"--format", "nccl-graph", "--fabric", "dgx-h100:nodes=1", "-o", f / "no/such/folder.xml"}, "");
  EXPECT_TRUE(std::filesystem::is_empty(f / ""));
}
