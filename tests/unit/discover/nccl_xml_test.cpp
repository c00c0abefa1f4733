// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class corpus : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("TOPOCOLL_CORPUS");
    if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/nccl-xml"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nccl-xml";
    root = named;
    for (const auto& entry : fs::directory_iterator(root / "corpus/nccl-xml")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_FALSE(files.empty());
  }
  fs::path root;
  std::vector<fs::path> files;
};

}  // namespace

TEST(nccl_xml, fails_with_a_reason_when_there_is_no_such_file) {
  const auto f = tc::nccl_xml("/nonexistent/topo.xml").read({});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, tc::errc::not_found);
}

TEST(nccl_xml, refuses_a_directory) { EXPECT_EQ(tc::nccl_xml("/").read({}).error().code, tc::errc::invalid_argument); }

TEST_F(corpus, is_read_with_the_counts_that_an_independent_reader_found) {
  const auto facts = tc::io::parse_json(text_of(root / "corpus/facts.json"), "facts.json");
  ASSERT_TRUE(facts) << facts.error().message();
  std::size_t right = 0;
  std::size_t refused = 0;
  for (const fs::path& file : files) {
    const std::string name = "nccl-xml/" + file.filename().string();
    ASSERT_TRUE(facts->contains(name)) << name;
    const auto& want = (*facts)[name];
    auto fragment = tc::nccl_xml(file.string()).read({});
    if (!fragment) {
      EXPECT_FALSE(want["well_formed"].get<bool>()) << fragment.error().message();
      EXPECT_NE(fragment.error().what.find(" line "), std::string::npos) << fragment.error().what;
      ++refused;
      continue;
    }
    EXPECT_TRUE(want["well_formed"].get<bool>()) << name;
    const auto graph = tc::topo::graph::from(std::move(*fragment));
    ASSERT_TRUE(graph) << graph.error().message();
    const tc::topo::summary s = tc::topo::summarize(*graph);
    EXPECT_EQ(s.gpus, want["gpus"].get<std::size_t>()) << name;
    EXPECT_EQ(s.nics, want["nics"].get<std::size_t>()) << name;
    EXPECT_EQ(s.numa_domains, want["numa_domains"].get<std::size_t>()) << name;
    ++right;
  }
  EXPECT_EQ(right + refused, files.size());
  RecordProperty("read", static_cast<int>(right));
  RecordProperty("refused", static_cast<int>(refused));
}

TEST_F(corpus, has_no_link_without_capacity_and_no_doubt_without_reason) {
  for (const fs::path& file : files) {
    const auto fragment = tc::nccl_xml(file.string()).read({});
    if (!fragment) continue;
    for (const tc::topo::link& l : fragment->links) {
      EXPECT_GT(l.capacity.value, 0) << file;
      EXPECT_LT(l.capacity.value, 2e12) << file;
      if (l.how >= tc::trust::derived) {
        EXPECT_NE(l.reason, "") << file;
      }
      if (l.nominal && l.how == tc::trust::derived) {
        EXPECT_LE(l.capacity.value, l.nominal->value) << file;
      }
    }
  }
}

TEST_F(corpus, case_of_a_virtual_switch_reads_as_the_report_says) {
  const fs::path file = root / "cases/p11-vm-topo.xml";
  if (!fs::exists(file)) GTEST_SKIP() << "the corpus lacks cases/p11-vm-topo.xml";
  const auto fragment = tc::nccl_xml(file.string()).read({});
  ASSERT_TRUE(fragment) << fragment.error().message();
  const auto graph = tc::topo::graph::from(*fragment);
  ASSERT_TRUE(graph);
  const auto capacity = [&](const std::string& from, const std::string& to) {
    for (const tc::topo::link& l : graph->links())
      if (graph->at(l.from).key == "localhost/" + from && graph->at(l.to).key == "localhost/" + to)
        return l.capacity.value / 1e9;
    return -1.0;
  };
  EXPECT_NEAR(capacity("pci:0000:bf:00.0", "pci:0000:c2:00.0"), 48, 48 * 0.05);  // endpoint_GBps
  EXPECT_NEAR(std::min(capacity("pci:0000:bf:00.0", "pci:0000:c1:00.0"), capacity("pci:0000:c1:00.0", "net:mlx5_5/1")),
              25, 25 * 0.05);
  EXPECT_GT(capacity("numa:0", "pci:0000:bf:00.0"), 1);  // not planned around 0.19
  EXPECT_TRUE(std::any_of(graph->findings().begin(), graph->findings().end(), [](const tc::finding& f) {
    return f.what.find("bridge speed not trusted") != std::string::npos;
  }));
}
