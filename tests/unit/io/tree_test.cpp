// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <topocoll/io/recording.hpp>
#include <topocoll/io/tree.hpp>
#include <gtest/gtest.h>

namespace io = topocoll::io;
using topocoll::bytes;
using topocoll::errc;
using names = std::vector<std::string>;

namespace {

io::recorded_tree parse(const std::string& text) {
  auto tree = io::recorded_tree::parse(text, "r.txt");
  EXPECT_TRUE(tree) << (tree ? "" : tree.error().what);
  return tree ? *tree : io::recorded_tree{};
}
std::string refusal(const std::string& text) {
  const auto tree = io::recorded_tree::parse(text, "r.txt");
  return tree ? "" : tree.error().what;
}
constexpr const char* small =
    "# topocoll recording 1\n# host node7\n"
    "/sys/devices/pci0000:00/0000:00:01.0/class\t0x060400\\n\n"
    "/sys/bus/pci/devices/0000:00:01.0\t-> ../../../devices/pci0000:00/0000:00:01.0\n"
    "/sys/bus/pci-x\tvalue\n"
    "/sys/empty/\t\n";

// A directory of its own that is removed at the end.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "topocoll-tree-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST(recorded_tree, reads_files_through_links) {
  const auto t = parse(small);
  EXPECT_EQ(t.host(), "node7");
  EXPECT_EQ(*t.read("/sys/bus/pci/devices/0000:00:01.0/class"), "0x060400\n");
  EXPECT_EQ(*t.read("/sys//devices/./pci0000:00/0000:00:01.0/class"), "0x060400\n");
  EXPECT_EQ(*t.link("/sys/bus/pci/devices/0000:00:01.0"), "../../../devices/pci0000:00/0000:00:01.0");
}

TEST(recorded_tree, lists_directories_that_only_their_entries_show) {
  const auto t = parse(small);
  EXPECT_EQ(*t.list("/"), (names{"sys"}));
  EXPECT_EQ(*t.list("/sys"), (names{"bus", "devices", "empty"}));
  EXPECT_EQ(*t.list("/sys/bus"), (names{"pci", "pci-x"}));
  EXPECT_EQ(*t.list("/sys/bus/pci/devices/0000:00:01.0"), (names{"class"}));
  EXPECT_EQ(*t.list("/sys/empty"), names{});
}

TEST(recorded_tree, tells_what_is_missing_from_what_is_of_another_kind) {
  const auto t = parse(small);
  EXPECT_EQ(t.read("/sys/none").error().code, errc::not_found);
  EXPECT_EQ(t.read("/sys/bus").error().code, errc::invalid_argument);
  EXPECT_EQ(t.list("/sys/bus/pci-x").error().code, errc::not_found);
  EXPECT_EQ(t.link("/sys/bus").error().code, errc::invalid_argument);
  EXPECT_EQ(t.link("/sys/none").error().code, errc::not_found);
}

TEST(recorded_tree, gives_up_on_links_in_a_circle) {
  const auto t = parse("/a\t-> /b\n/b\t-> a\n/c\t-> c/d\n");
  EXPECT_FALSE(t.read("/a"));
  EXPECT_FALSE(t.read("/c/x"));
  EXPECT_FALSE(t.list("/a"));
}

TEST(recorded_tree, refuses_lines_that_it_cannot_place) {
  EXPECT_EQ(refusal("/a\t1\nhello\n"), "r.txt line 2: a recording has lines 'path<TAB>value' with an absolute path");
  EXPECT_EQ(refusal("a\t1\n").find("r.txt line 1"), 0U);
  EXPECT_EQ(refusal("/a\t1\n/b\t2\n/a\t3\n"), "r.txt line 3: '/a' is given twice");
  EXPECT_EQ(refusal("/a\t1\n/a/b\t2\n"), "r.txt line 2: '/a/b' lies below '/a', which is not a directory");
  EXPECT_EQ(refusal("/a\t-> b\n/a/b\t2\n").find("r.txt line 2"), 0U);
  EXPECT_EQ(refusal("/a/\t\n/a/\t\n/a/b\t1\n"), "");
  EXPECT_EQ(refusal(""), "");
}

TEST(recorded_file, comes_back_whatever_bytes_it_has) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& value :
       {std::string(), std::string("-> not a link"), std::string("\\n is not a line end"), std::string("a\\"), all,
        all + all, std::string("\\-> x"), std::string("\xe2\x80\xa6")}) {
    const auto t = parse(io::recorded_file("/x/y", value));
    ASSERT_TRUE(t.read("/x/y")) << value;
    EXPECT_EQ(*t.read("/x/y"), value);
  }
}

TEST(recorded_tree, reads_the_head_of_a_longer_file) {
  const auto t = parse("/x\tabcdef\n");
  EXPECT_EQ(*t.head("/x", bytes{4}), "abcd");
  EXPECT_EQ(*t.head("/x", bytes{40}), "abcdef");
}

TEST(resolve_link, is_plain_text_work) {
  EXPECT_EQ(io::resolve_link("/sys/class/net", "../../devices/x"), "/sys/devices/x");
  EXPECT_EQ(io::resolve_link("/a", "/b/./c/.."), "/b");
  EXPECT_EQ(io::resolve_link("/a", "../../../.."), "/");
}

TEST(live_tree, answers_as_the_recording_of_the_same_files) {
  const folder f;
  std::filesystem::create_directories(f.path() + "/sys/d/inner");
  std::ofstream(f.path() + "/sys/d/value") << "7\n";
  std::filesystem::create_symlink("../d", f.path() + "/sys/d/inner/up");
  const io::live_tree live(f.path());
  EXPECT_EQ(*live.list("/sys/d"), (names{"inner", "value"}));
  EXPECT_EQ(*live.read("/sys/d/value"), "7\n");
  EXPECT_EQ(*live.head("/sys/d/value", bytes{1}), "7");
  EXPECT_EQ(*live.link("/sys/d/inner/up"), "../d");
  EXPECT_EQ(live.read("/sys/d").error().code, errc::invalid_argument);
  EXPECT_EQ(live.read("/sys/none").error().code, errc::not_found);
  EXPECT_EQ(live.list("/sys/none").error().code, errc::not_found);
  EXPECT_EQ(live.link("/sys/d/value").error().code, errc::invalid_argument);
}

TEST(live_tree, does_not_wait_for_a_pipe_that_nobody_writes_to) {
  const folder f;
  ASSERT_EQ(::mkfifo((f.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(*io::live_tree(f.path()).read("/pipe"), "");
}

TEST(live_tree, refuses_a_file_that_is_too_long_to_describe_a_machine) {
  const folder f;
  std::ofstream(f.path() + "/long") << std::string((4U << 20U) + 1, 'x');
  std::ofstream(f.path() + "/fits") << std::string(4U << 20U, 'x');
  EXPECT_EQ(io::live_tree(f.path()).read("/long").error().code, errc::unsupported);
  EXPECT_EQ(io::live_tree(f.path()).read("/fits")->size(), 4U << 20U);
}
