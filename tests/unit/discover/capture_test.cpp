// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <topocoll/discover/capture.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <topocoll/topo/codec.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;

namespace {

std::string json_of(tc::result<tc::topo::fragment> fragment) {
  EXPECT_TRUE(fragment) << (fragment ? "" : fragment.error().message());
  if (!fragment) return {};
  fragment->source = "x";
  for (tc::finding& f : fragment->findings) {
    f.evidence.clear();  // says whether a file or a recording lacks something
    f.where.clear();
  }
  auto graph = tc::topo::graph::from(std::move(*fragment));
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message());
  return graph ? tc::topo::to_json(*graph) : std::string();
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path machines() {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  return (source ? fs::path(source) : fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path()) /
         "tests/machines";
}

}  // namespace

TEST(capture, replays_this_machine_as_the_same_graph) {
  // Memory and state may change between two looks; a machine that others use gets three tries.
  for (int attempt = 0;; ++attempt) {
    const auto text = tc::capture({.mask_addresses = false});
    ASSERT_TRUE(text) << text.error().message();
    const std::string replayed = json_of(tc::fragment_of_recording(*text, "r.txt", {.host = "h"}));
    const std::string live = json_of(tc::sysfs{}.read({.host = "h"}));
    if (live == replayed || attempt == 2) {
      EXPECT_EQ(live, replayed);
      break;
    }
  }
}

TEST(capture, of_a_recording_is_a_recording_of_the_same_machine) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator(machines())) {
    if (!fs::exists(entry.path() / "captured.txt")) continue;
    ++found;
    const std::string text = text_of(entry.path() / "captured.txt");
    const auto tree = tc::io::recorded_tree::parse(text, "a.txt");
    ASSERT_TRUE(tree) << tree.error().message();
    const std::string again = tc::detail::record(*tree, tree->host(), false, tc::deadline::in({20}));
    EXPECT_EQ(json_of(tc::fragment_of_recording(again, "b.txt")), json_of(tc::fragment_of_recording(text, "a.txt")))
        << entry.path();
    // A recording of a recording holds no more than the first.
    EXPECT_EQ(
        tc::detail::record(*tc::io::recorded_tree::parse(again, "b.txt"), tree->host(), false, tc::deadline::in({20})),
        again);
  }
  EXPECT_GE(found, 4);
}

TEST(capture, masks_addresses_and_keeps_equal_ones_equal) {
  const std::string text =
      "/sys/class/net/eth0/address\t52:54:00:12:34:56\\n\n/sys/class/net/eth0/operstate\tup\\n\n/sys/class/net/eth1/"
      "address\t52:54:00:12:34:56\\n\n/sys/class/net/eth1/operstate\tup\\n\n"
      "/sys/class/net/eth2/address\t52:54:00:12:34:57\\n\n/sys/class/net/eth2/operstate\tup\\n\n/sys/class/infiniband/"
      "mlx5_0/node_guid\t9803:9b03:0012:3456\\n\n";
  const auto tree = tc::io::recorded_tree::parse(text, "a.txt");
  ASSERT_TRUE(tree);
  const std::string masked = tc::detail::record(*tree, "node7", true, tc::deadline::in({20}));
  EXPECT_EQ(masked.find("52:54"), std::string::npos);
  EXPECT_EQ(masked.find("9803"), std::string::npos);
  const auto back = tc::io::recorded_tree::parse(masked, "b.txt");
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->host(), "node7");
  EXPECT_EQ(*back->read("/sys/class/net/eth0/address"), *back->read("/sys/class/net/eth1/address"));
  EXPECT_NE(*back->read("/sys/class/net/eth0/address"), *back->read("/sys/class/net/eth2/address"));
}

TEST(capture, masks_the_serial_number_of_a_gpu) {
  const std::string text =
      "/sys/class/kfd/kfd/topology/nodes/1/properties\tsimd_count 304\\nunique_id 1234567890123\\nlocation_id "
      "2560\\n\n";
  const auto tree = tc::io::recorded_tree::parse(text, "a.txt");
  ASSERT_TRUE(tree);
  const std::string masked = tc::detail::record(*tree, {}, true, tc::deadline::in({20}));
  EXPECT_NE(masked.find("simd_count 304\\nunique_id 0\\nlocation_id 2560\\n"), std::string::npos) << masked;
}

TEST(capture, fails_where_there_is_no_machine) {
  EXPECT_EQ(tc::capture({.root = "/nonexistent"}).error().code, tc::errc::not_found);
}
