// SPDX-License-Identifier: Apache-2.0
// A live fabric, as ibsim simulates it: walked by libibnetdisc, and listed by the tools of infiniband-diags where they are
// installed. Skips where ibsim is not installed; not built where libibnetdisc is not.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fabrics/fabric_text.hpp>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <topocoll/backend/ibnetdisc.hpp>
#include <topocoll/read/iblinkinfo.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/read/ibstat.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::node_kind;

namespace {

constexpr fabrics::shape simulated{3, 4, 2, 2};

/// ibsim's replacement for libibumad, which a program loads before its own.
std::string preload() {
  std::vector<fs::path> folders{"/usr/lib", "/usr/lib64", "/usr/local/lib"};
  for (const char* top : {"/usr/lib", "/usr/local/lib"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(top, none))
      if (entry.is_directory(none)) folders.push_back(entry.path());
  }
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "umad2sim/libumad2sim.so")) return folder / "umad2sim/libumad2sim.so";
  return {};
}

/// Starts ibsim, then this program again with ibsim's library in place of the kernel: the second time the tests run.
class fabric : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::getenv("TOPOCOLL_IBSIM") != nullptr) return;  // the second time
    const std::string library = preload();
    if (library.empty() || !fs::exists("/usr/bin/ibsim")) return;
    const fs::path folder = fs::temp_directory_path() / ("topocoll-fabric-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "net") << fabrics::ibsim_text(simulated);
    const std::string name = "topocoll-" + std::to_string(::getpid());
    ::setenv("IBSIM_SOCKNAME", name.c_str(), 1);
    int commands[2];
    if (::pipe(commands) != 0) return;
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ibsim does not outlive a test that crashes
      ::dup2(commands[0], 0);              // and waits for commands that never come
      const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(log, 1);
      ::dup2(log, 2);
      ::execl("/usr/bin/ibsim", "ibsim", "-s", (folder / "net").c_str(), nullptr);
      ::_exit(127);
    }
    ::close(commands[0]);
    for (int i = 0; i < 500 && text_of(folder / "log").find("simulator ready") == std::string::npos; ++i)
      ::usleep(10000);
    ::setenv("TOPOCOLL_IBSIM", (std::to_string(child) + " " + folder.string()).c_str(), 1);
    ::setenv("LD_PRELOAD", library.c_str(), 1);
    ::setenv("SIM_HOST", "node0-0", 1);
    std::string line = text_of("/proc/self/cmdline");
    std::vector<char*> arguments;
    for (std::size_t at = 0; at < line.size(); at += std::char_traits<char>::length(&line[at]) + 1)
      arguments.push_back(&line[at]);
    arguments.push_back(nullptr);
    ::execv("/proc/self/exe", arguments.data());
  }
  static void TearDownTestSuite() {
    const char* sim = std::getenv("TOPOCOLL_IBSIM");
    if (sim == nullptr) return;
    const std::string text = sim;
    const pid_t child = static_cast<pid_t>(std::stol(text));
    ::kill(child, SIGKILL);  // its sockets are abstract and go with it
    ::waitpid(child, nullptr, 0);
    fs::remove_all(text.substr(text.find(' ') + 1));
  }
  void SetUp() override {
    if (std::getenv("TOPOCOLL_IBSIM") == nullptr) GTEST_SKIP() << "ibsim is not installed (Debian: ibsim-utils)";
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// What a tool prints; empty when it is not installed.
  static std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return text;
    char piece[4096];
    for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, n);
    ::pclose(pipe);
    return text;
  }
};

/// Cables as pairs of "description port", sorted: equal for whatever told of the same fabric.
std::vector<std::string> cables_of(const tc::read::ib_fabric& f) {
  std::vector<std::string> all;
  for (const tc::read::ib_device& d : f.devices)
    for (const tc::read::ib_port& p : d.ports)
      if (p.peer)
        all.push_back((d.description.empty() ? d.id : d.description) + " " + std::to_string(p.number) + " - " +
                      (f.devices[p.peer->device].description.empty() ? f.devices[p.peer->device].id
                                                                     : f.devices[p.peer->device].description) +
                      " " + std::to_string(p.peer->port));
  std::sort(all.begin(), all.end());
  return all;
}
std::vector<std::string> cables_as_written() {
  const auto written = tc::read::parse_ibnetdiscover(fabrics::ibsim_text(simulated), "net");
  return written ? cables_of(*written) : std::vector<std::string>{};
}

}  // namespace

TEST_F(fabric, is_walked_as_it_was_written) {
  const auto walked = tc::ibnetdisc{}.fabric(tc::deadline::in({20}));
  ASSERT_TRUE(walked) << walked.error().message();
  EXPECT_EQ(cables_of(*walked), cables_as_written());
  EXPECT_EQ(cables_as_written().size(), fabrics::ports(simulated));
  for (const tc::read::ib_device& d : walked->devices)
    for (const tc::read::ib_port& p : d.ports) {
      if (!p.peer) continue;
      EXPECT_EQ(p.width, 4U);  // ibsim's ports come up so, and could do 12x QDR
      EXPECT_EQ(p.speed, tc::read::ib_speed::sdr);
      EXPECT_EQ(p.best_width, 12U);
      EXPECT_EQ(p.best_speed, tc::read::ib_speed::qdr);
      EXPECT_EQ(p.physical, "LinkUp");
    }
}

TEST_F(fabric, becomes_a_graph) {
  auto fragment = tc::ibnetdisc{}.read({.host = "here", .until = tc::deadline::in({20})});
  ASSERT_TRUE(fragment) << fragment.error().message();
  const auto graph = tc::topo::graph::from(*fragment);
  ASSERT_TRUE(graph) << graph.error().message();
  const tc::topo::summary s = tc::topo::summarize(*graph);
  EXPECT_EQ(s.switches, simulated.leaves + simulated.spines);
  EXPECT_EQ(s.hosts, simulated.leaves * simulated.hosts);
  EXPECT_EQ(graph->all(node_kind::leaf).size(), simulated.leaves);
  EXPECT_EQ(graph->all(node_kind::spine).size(), simulated.spines);
  EXPECT_TRUE(std::any_of(fragment->findings.begin(), fragment->findings.end(),
                          [](const tc::finding& f) { return f.what.find("below what both") != std::string::npos; }));
}

TEST_F(fabric, is_given_up_at_the_deadline) {
  const tc::seconds before = tc::steady_clock::now();
  const auto walked = tc::ibnetdisc{}.fabric(tc::deadline::in({0}));
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, tc::errc::timed_out);
  EXPECT_LT((tc::steady_clock::now() - before).value, 5);
  EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 1);  // no child of ours is left to collect; ibsim runs on
}

TEST_F(fabric, tells_why_it_cannot_be_walked) {
  const auto walked = tc::ibnetdisc{.adapter = "no_such_0"}.fabric(tc::deadline::in({20}));
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().code, tc::errc::unavailable);
  EXPECT_NE(walked.error().what.find("no_such_0"), std::string::npos) << walked.error().what;
}

TEST_F(fabric, is_listed_by_the_tools_as_it_is_walked) {
  for (const char* command : {"ibnetdiscover", "ibnetdiscover -f", "ibnetdiscover -p", "ibnetdiscover -g"}) {
    const std::string text = output_of(command);
    if (text.empty()) GTEST_SKIP() << command << " gives nothing (Debian: infiniband-diags)";
    const auto listed = tc::read::parse_ibnetdiscover(text, command);
    ASSERT_TRUE(listed) << listed.error().message();
    EXPECT_EQ(cables_of(*listed), cables_as_written()) << command;
  }
  for (const char* command : {"iblinkinfo", "iblinkinfo -l", "iblinkinfo -p"}) {
    const std::string text = output_of(command);
    if (text.empty()) GTEST_SKIP() << command << " gives nothing (Debian: infiniband-diags)";
    const auto listed = tc::read::parse_iblinkinfo(text, command);
    ASSERT_TRUE(listed) << listed.error().message();
    EXPECT_EQ(cables_of(*listed), cables_as_written()) << command;
  }
}

TEST_F(fabric, shows_its_adapter_to_ibstat) {
  const std::string text = output_of("ibstat");
  if (text.empty()) GTEST_SKIP() << "ibstat gives nothing (Debian: infiniband-diags)";
  EXPECT_TRUE(tc::read::looks_like_ibstat(text));
  const auto adapters = tc::read::parse_ibstat(text, "ibstat");
  ASSERT_TRUE(adapters) << adapters.error().message();
  ASSERT_EQ(adapters->adapters.size(), 1U);
  EXPECT_EQ(adapters->adapters[0].ports.size(), 1U);
}
