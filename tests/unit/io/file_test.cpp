// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <topocoll/io/file.hpp>
#include <gtest/gtest.h>

namespace io = topocoll::io;
using topocoll::bytes;
using topocoll::errc;

namespace {

/// A directory that goes away with the test.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "topocoll-file-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = name;
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  const std::string& path() const { return path_; }
  std::size_t count() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }

 private:
  std::string path_;
};

/// Gives up the rights of the superuser until it goes out of scope.
class ordinary_user {
 public:
  ordinary_user() : was_(::geteuid()) {
    if (was_ == 0 && ::seteuid(65534) != 0) ADD_FAILURE() << "cannot become another user";
  }
  ~ordinary_user() {
    if (::seteuid(was_) != 0) ADD_FAILURE() << "cannot become the first user again";
  }
  ordinary_user(const ordinary_user&) = delete;
  ordinary_user& operator=(const ordinary_user&) = delete;

 private:
  uid_t was_;
};

unsigned mode_of(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 07777U : 0;
}

}  // namespace

TEST(read_file, gives_back_what_was_written) {
  const folder f;
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += static_cast<char>(i * 7);
  for (const std::string& text : {std::string(), std::string("x"), std::string("a\0b\n", 4), content}) {
    ASSERT_TRUE(io::write_file(f / "a", text));
    const auto read = io::read_file(f / "a");
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_TRUE(*read == text) << text.size();
  }
}

TEST(read_file, says_that_a_file_is_missing) {
  const folder f;
  const auto read = io::read_file(f / "none");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::not_found);
  EXPECT_EQ(read.error().what, "there is no file '" + (f / "none") + "'");
  ASSERT_TRUE(io::write_file(f / "file", "x"));
  EXPECT_EQ(io::read_file(f / "file/below").error().code, errc::not_found);
  EXPECT_EQ(io::read_file("").error().code, errc::not_found);
}

TEST(read_file, refuses_a_directory) {
  const folder f;
  EXPECT_EQ(io::read_file(f.path()).error().code, errc::invalid_argument);
  EXPECT_EQ(io::read_file(f.path()).error().what, "'" + f.path() + "' is a directory, not a file");
}

TEST(read_file, refuses_a_pipe_without_waiting_for_a_writer) {
  const folder f;
  ASSERT_EQ(::mkfifo((f / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(io::read_file(f / "pipe").error().code, errc::invalid_argument);
  EXPECT_EQ(io::read_file("/dev/zero").error().code, errc::invalid_argument);
}

TEST(read_file, refuses_more_than_the_limit_and_takes_exactly_the_limit) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", std::string(1025, 'x')));
  EXPECT_TRUE(io::read_file(f / "a", bytes{1025}));
  const auto read = io::read_file(f / "a", bytes{1024});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::unsupported);
  EXPECT_EQ(read.error().what, "'" + (f / "a") + "' has 1025 B, more than the limit of 1 KiB");
}

TEST(read_file, reads_files_that_tell_no_size) {
  const auto read = io::read_file("/proc/self/status");
  ASSERT_TRUE(read);
  EXPECT_NE(read->find("Pid:"), std::string::npos);
  EXPECT_EQ(io::read_file("/proc/self/status", bytes{8}).error().code, errc::unsupported);
}

TEST(read_file, says_when_rights_are_missing) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", "x"));
  ASSERT_EQ(::chmod((f / "a").c_str(), 0), 0);
  const ordinary_user user;
  const auto read = io::read_file(f / "a");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::permission);
  EXPECT_EQ(read.error().what, "no permission to read '" + (f / "a") + "'");
}

TEST(write_file, leaves_nothing_but_the_file) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", "one"));
  ASSERT_TRUE(io::write_file(f / "a", "two"));
  EXPECT_EQ(f.count(), 1U);
}

TEST(write_file, keeps_the_permission_bits_of_the_old_file) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", "one"));
  ASSERT_EQ(::chmod((f / "a").c_str(), 0640), 0);
  ASSERT_TRUE(io::write_file(f / "a", "two"));
  EXPECT_EQ(mode_of(f / "a"), 0640U);
}

TEST(write_file, follows_a_symbolic_link) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "real", "one"));
  ASSERT_EQ(::symlink((f / "real").c_str(), (f / "link").c_str()), 0);
  ASSERT_TRUE(io::write_file(f / "link", "two"));
  EXPECT_TRUE(std::filesystem::is_symlink(f / "link"));
  EXPECT_EQ(*io::read_file(f / "real"), "two");
}

TEST(write_file, does_not_change_what_an_open_reader_sees) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", "old"));
  const int reader = ::open((f / "a").c_str(), O_RDONLY);
  ASSERT_TRUE(io::write_file(f / "a", "new!"));
  char seen[8] = {};
  EXPECT_EQ(::read(reader, seen, sizeof seen), 3);
  EXPECT_STREQ(seen, "old");
  ::close(reader);
}

TEST(write_file, refuses_a_directory_and_a_missing_directory) {
  const folder f;
  EXPECT_EQ(io::write_file(f.path(), "x").error().code, errc::invalid_argument);
  EXPECT_EQ(io::write_file(f / "none/a", "x").error().code, errc::not_found);
}

TEST(write_file, says_that_the_disk_is_full) {
  const auto written = io::write_file("/dev/full", "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, errc::system);
  EXPECT_EQ(written.error().what, "the disk is full: cannot write '/dev/full'");
}

TEST(write_file, writes_to_a_device_directly) {
  ASSERT_TRUE(io::write_file("/dev/null", "x"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(write_file, that_fails_half_way_keeps_the_old_content_and_leaves_no_trace) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", "old"));
  // A limit on the size of files stands in for a full disk: the write stops in the middle of the text.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{4096, before.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto written = io::write_file(f / "a", std::string(100'000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, errc::system);
  EXPECT_NE(written.error().what.find("larger than this process may write"), std::string::npos);
  EXPECT_EQ(*io::read_file(f / "a"), "old");
  EXPECT_EQ(f.count(), 1U);
}

TEST(write_file, says_when_rights_are_missing) {
  const folder f;
  ASSERT_TRUE(io::write_file(f / "a", "x"));
  ASSERT_EQ(::chmod((f / "a").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(f.path().c_str(), 0777), 0);
  {
    const ordinary_user user;
    const auto old_file = io::write_file(f / "a", "y");
    ASSERT_FALSE(old_file) << "the directory would allow to replace it, but the file is not to be written";
    EXPECT_EQ(old_file.error().code, errc::permission);
  }
  ASSERT_EQ(::chmod(f.path().c_str(), 0555), 0);
  const ordinary_user user;
  const auto new_file = io::write_file(f / "b", "y");
  ASSERT_FALSE(new_file);
  EXPECT_EQ(new_file.error().code, errc::permission);
}
