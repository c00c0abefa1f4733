// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <vector>
#include <topocoll/discover/files.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;

namespace {

class folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "topocoll-files-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
    return path + "/" + name;
  }
  std::string path;
};
using from_file = folder;

constexpr const char* one_gpu =
    "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu></system>";

std::string refusal(const std::string& text) {
  const auto f = tc::from_text(text, "f");
  return f ? "" : f.error().what;
}

}  // namespace

TEST_F(from_file, tells_kinds_apart_by_content_not_by_name) {
  const auto xml = tc::from_file(write("a.json", std::string("\xef\xbb\xbf\n<!-- a comment -->\n") + one_gpu));
  ASSERT_TRUE(xml) << xml.error().message();
  EXPECT_EQ(xml->source.rfind("nccl-xml ", 0), 0U);
  auto graph = tc::topo::graph::from(*xml);
  ASSERT_TRUE(graph);
  const auto json = tc::from_file(write("b.xml", tc::topo::to_json(*graph)));
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->nodes.size(), xml->nodes.size());
  const auto recording = tc::from_file(write("c", "# host node7\n/sys/devices/system/node/node0/cpulist\t0-3\\n\n"));
  ASSERT_TRUE(recording) << recording.error().message();
  EXPECT_EQ(recording->nodes[0].key, "node7/numa:0");
}

TEST_F(from_file, reads_a_directory_that_holds_sys) {
  fs::create_directories(path + "/sys/devices/system/node/node0");
  write("sys/devices/system/node/node0/cpulist", "0-3\n");
  const auto f = tc::from_file(path, {.host = "h"});
  ASSERT_TRUE(f) << f.error().message();
  EXPECT_EQ(f->nodes[0].key, "h/numa:0");
}

TEST_F(from_file, names_file_and_reason_when_it_refuses) {
  EXPECT_EQ(tc::from_file(path + "/none").error().code, tc::errc::not_found);
  const auto directory = tc::from_file(path);
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().what.find(
                path + " is a directory without sys/: not a topology file that topocoll knows; it reads "),
            std::string::npos)
      << directory.error().what;
  const auto empty = tc::from_file(write("empty", ""));
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().what.find("empty is empty"), std::string::npos);
}

TEST_F(from_file, does_not_wait_for_a_pipe) {
  ASSERT_EQ(::mkfifo((path + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(tc::from_file(path + "/pipe").error().code, tc::errc::invalid_argument);
}

TEST_F(from_file, refuses_a_hundred_megabytes_at_once) {
  const std::string name = write("big", "\x01\x02");
  fs::resize_file(name, 100U << 20U);  // sparse: a look at the size is enough
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tc::from_file(name).error().code, tc::errc::unsupported);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(from_text, says_what_the_text_is_and_what_is_read) {
  EXPECT_EQ(refusal("<topology/>")
                .find("f is XML with the root <topology>: not a topology file that topocoll knows; it "
                      "reads NCCL and hwloc XML"),
            0U)
      << refusal("<topology/>");
  EXPECT_NE(refusal("<graphs/>").find("NCCL_GRAPH_DUMP_FILE"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1}").find("JSON"), std::string::npos);
  EXPECT_NE(refusal("Once upon a time\nthere was a fabric.\n").find("is a text"), std::string::npos);
  EXPECT_NE(refusal(std::string("\x7f"
                                "ELF\x02\x01\x01\0\0",
                                9))
                .find("binary data"),
            std::string::npos);
  EXPECT_NE(refusal("{\"schema\": \"topocoll.topology/1\""), "");  // cut off
  EXPECT_NE(refusal("/proc\tx\n/proc\ty\n").find("f line 2"), std::string::npos);
  EXPECT_NE(refusal("# topocoll recording 1\n").find("neither /sys nor /proc"), std::string::npos);
}

TEST(from_text, passes_on_the_line_of_a_broken_nccl_file) {
  EXPECT_EQ(refusal("<system>\n<cpu numaid=\"0\">\n<pci/>\n</cpu></system>"),
            "f line 3: <pci> has no busid, so the device cannot be told from others");
  EXPECT_EQ(refusal("<system>\n<cpu numaid=\"0\">\n"),
            "f line 2: the text is cut off; the last element that began is <cpu> on line 2");
}

// The seeds of the fuzz targets: small texts of every kind.
std::vector<std::string> seeds() {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  std::vector<std::string> found;
  if (source == nullptr) return found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(source) / "tests/fuzz/corpus"))
    if (entry.is_regular_file()) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

TEST(text_kinds, exclude_each_other_and_each_reads_some_text) {
  const auto files = seeds();
  if (files.empty()) GTEST_SKIP() << "TOPOCOLL_SOURCE_DIR is not set";
  std::vector<int> read(tc::text_kinds().size(), 0);
  for (const std::string& file : files) {
    const auto text = tc::io::read_file(file);
    ASSERT_TRUE(text);
    std::string kinds;
    int count = 0;
    for (std::size_t k = 0; k < read.size(); ++k) {
      if (!tc::text_kinds()[k].is(*text)) continue;
      kinds += std::string(tc::text_kinds()[k].name) + "; ";
      ++count;
      if (tc::from_text(*text, file)) ++read[k];
    }
    EXPECT_LE(count, 1) << file << ": " << kinds;
  }
  for (std::size_t k = 0; k < read.size(); ++k) EXPECT_GT(read[k], 0) << tc::text_kinds()[k].name;
}

TEST(text_kinds, exclude_each_other_over_the_corpus) {
  const char* corpus = std::getenv("TOPOCOLL_CORPUS");
  if (corpus == nullptr || !fs::is_directory(fs::path(corpus) / "corpus")) GTEST_SKIP() << "TOPOCOLL_CORPUS is not set";
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(corpus) / "corpus")) {
    if (!entry.is_regular_file()) continue;
    const auto text = tc::io::read_file(entry.path().string());
    ASSERT_TRUE(text);
    std::string kinds;
    int count = 0;
    for (const tc::text_kind& k : tc::text_kinds())
      if (k.is(*text)) {
        ++count;
        kinds += std::string(k.name) + "; ";
      }
    EXPECT_LE(count, 1) << entry.path() << ": " << kinds;
  }
}
