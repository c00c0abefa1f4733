// SPDX-License-Identifier: Apache-2.0
// What every TopologySource promises beyond what the compiler checks.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <topocoll/core/deadline.hpp>
#include <topocoll/discover/cluster_toml.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/hwloc_xml.hpp>
#include <topocoll/discover/iblinkinfo_file.hpp>
#include <topocoll/discover/ibnetdiscover_file.hpp>
#include <topocoll/discover/ibstat_file.hpp>
#include <topocoll/discover/kfd_file.hpp>
#include <topocoll/discover/live.hpp>
#include <topocoll/discover/lldp_json.hpp>
#include <topocoll/discover/lspci_file.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/discover/netq_json.hpp>
#include <topocoll/discover/nvidia_smi_nvlink_file.hpp>
#include <topocoll/discover/nvidia_smi_topo_file.hpp>
#include <topocoll/discover/nvml.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/rocm_smi_topo_file.hpp>
#include <topocoll/discover/slurm_graph.hpp>
#include <topocoll/discover/slurm_yaml.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {

// A file that is removed at the end.
class scratch_file {
 public:
  scratch_file(const std::string& name, const std::string& text)
      : path_((std::filesystem::temp_directory_path() / ("topocoll-source-" + std::to_string(::getpid()) + "-" + name))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// How to make a source that answers, one that cannot, and whether it names hosts by the options.
template <class S>
struct maker;
template <>
struct maker<tc::sysfs> {
  tc::sysfs good() { return {}; }
  tc::sysfs bad() { return {.root = "/nonexistent"}; }
  static constexpr bool names_host = true;
};
template <>
struct maker<tc::sysfs_recording> {
  scratch_file file{
      "recording",
      "/sys/devices/system/node/node0/cpulist\t0-3\\n\n/sys/bus/pci/devices/0000:01:00.0/class\t0x020000\\n\n"};
  scratch_file broken{"recording-broken", "no recording"};
  tc::sysfs_recording good() { return {file.path()}; }
  tc::sysfs_recording bad() { return {broken.path()}; }
  static constexpr bool names_host = true;
};
template <>
struct maker<tc::nccl_xml> {
  scratch_file file{"nccl",
                    "<system><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu></system>"};
  scratch_file broken{"nccl-broken", "<system><cpu>"};
  tc::nccl_xml good() { return tc::nccl_xml(file.path()); }
  tc::nccl_xml bad() { return tc::nccl_xml(broken.path()); }
  static constexpr bool names_host = true;
};
template <>
struct maker<tc::description> {
  tc::description good() { return {.spec = "dgx-h100:nodes=2"}; }
  tc::description bad() { return {.spec = "no such machine"}; }
  static constexpr bool names_host = false;
};

template <>
struct maker<tc::hwloc_xml_file> {
  scratch_file file{"hwloc",
                    "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"0\" "
                    "cpuset=\"0x3\"/><object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:2330] "
                    "[10de:16c1] a1\" pci_link_speed=\"63.015385\"/></object></topology>"};
  scratch_file broken{"hwloc-broken", "<topology version=\"2.0\">"};
  tc::hwloc_xml_file good() { return {file.path()}; }
  tc::hwloc_xml_file bad() { return {broken.path()}; }
  static constexpr bool names_host = true;
};
// The stand-in for the management library (tests/stand_in/nvml).
template <>
struct maker<tc::nvml> {
  tc::nvml good() {
    const char* built = std::getenv("TOPOCOLL_STAND_INS");
    const char* from = std::getenv("TOPOCOLL_SOURCE_DIR");
    if (built == nullptr || from == nullptr) return bad();
    ::setenv("TOPOCOLL_STAND_IN_MACHINE", (std::string(from) + "/tests/stand_in/nvml/hgx-h100.txt").c_str(), 1);
    return {.library = std::string(built) + "/libnvidia-ml-stand-in.so"};
  }
  tc::nvml bad() { return {.library = "libnvidia-ml-that-is-not-there.so.1"}; }
  static constexpr bool names_host = true;
};

// Sources that read a file: good is a seed of the fuzz target, bad is no file.
template <class S, bool Names>
struct file_maker {
  static S of(const std::string& path) {
    S s;
    s.path = path;
    return s;
  }
  static S seed(const char* name) {
    const char* from = std::getenv("TOPOCOLL_SOURCE_DIR");
    return of(std::string(from != nullptr ? from : ".") + "/tests/fuzz/corpus/" + name);
  }
  S bad() { return of("/nonexistent/file"); }
  static constexpr bool names_host = Names;
};
template <>
struct maker<tc::ibnetdiscover_file> : file_maker<tc::ibnetdiscover_file, false> {
  tc::ibnetdiscover_file good() { return seed("ibnetdiscover/records.txt"); }
};
template <>
struct maker<tc::iblinkinfo_file> : file_maker<tc::iblinkinfo_file, false> {
  tc::iblinkinfo_file good() { return seed("iblinkinfo/headings.txt"); }
};
template <>
struct maker<tc::ibstat_file> : file_maker<tc::ibstat_file, true> {
  tc::ibstat_file good() { return seed("ibstat/ibstat.txt"); }
};
template <>
struct maker<tc::kfd_file> : file_maker<tc::kfd_file, true> {
  tc::kfd_file good() { return seed("kfd/hive.txt"); }
};
template <>
struct maker<tc::lspci_file> : file_maker<tc::lspci_file, true> {
  tc::lspci_file good() { return seed("lspci/verbose.txt"); }
};
template <>
struct maker<tc::nvidia_smi_nvlink_file> : file_maker<tc::nvidia_smi_nvlink_file, true> {
  tc::nvidia_smi_nvlink_file good() { return seed("nvidia_smi_nvlink/status.txt"); }
};
template <>
struct maker<tc::nvidia_smi_topo_file> : file_maker<tc::nvidia_smi_topo_file, true> {
  tc::nvidia_smi_topo_file good() { return seed("nvidia_smi_topo/switched.txt"); }
};
template <>
struct maker<tc::rocm_smi_topo_file> : file_maker<tc::rocm_smi_topo_file, true> {
  tc::rocm_smi_topo_file good() { return seed("rocm_smi_topo/pair.txt"); }
};
template <>
struct maker<tc::slurm_topology_file> : file_maker<tc::slurm_topology_file, false> {
  tc::slurm_topology_file good() { return seed("slurm_topology/tree"); }
};
template <>
struct maker<tc::host_map_file> : file_maker<tc::host_map_file, false> {
  tc::host_map_file good() { return seed("slurm_topology/host_domains"); }
};
template <>
struct maker<tc::mpi_hostfile> : file_maker<tc::mpi_hostfile, false> {
  tc::mpi_hostfile good() { return seed("hostlist/hostfile"); }
};
template <>
struct maker<tc::slurm_yaml_file> : file_maker<tc::slurm_yaml_file, false> {
  tc::slurm_yaml_file good() { return seed("slurm_yaml/tree_and_block"); }
};
template <>
struct maker<tc::topograph_model_file> : file_maker<tc::topograph_model_file, false> {
  tc::topograph_model_file good() { return seed("slurm_yaml/topograph"); }
};
template <>
struct maker<tc::cluster_toml> : file_maker<tc::cluster_toml, false> {
  tc::cluster_toml good() { return seed("cluster_file/two_tiers"); }
};
template <>
struct maker<tc::netq_file> : file_maker<tc::netq_file, false> {
  tc::netq_file good() { return seed("netq/tiers.json"); }
};
template <>
struct maker<tc::lldp_json> {
  tc::lldp_json good() {
    const char* from = std::getenv("TOPOCOLL_SOURCE_DIR");
    return {{std::string(from != nullptr ? from : ".") + "/tests/fuzz/corpus/lldp/regular"}};
  }
  tc::lldp_json bad() { return {{"/nonexistent/file"}}; }
  static constexpr bool names_host = false;
};
template <>
struct maker<tc::live_machine> {
  tc::live_machine good() { return {}; }
  tc::live_machine bad() { return {.root = "/nonexistent"}; }
  static constexpr bool names_host = true;
};

template <class S>
class source : public testing::Test {
 protected:
  maker<S> make;
};
using sources =
    testing::Types<tc::sysfs, tc::sysfs_recording, tc::nccl_xml, tc::description, tc::hwloc_xml_file, tc::nvml,
                   tc::live_machine, tc::lldp_json, tc::ibnetdiscover_file, tc::iblinkinfo_file, tc::ibstat_file,
                   tc::kfd_file, tc::lspci_file, tc::nvidia_smi_nvlink_file, tc::nvidia_smi_topo_file,
                   tc::rocm_smi_topo_file, tc::slurm_topology_file, tc::host_map_file, tc::mpi_hostfile,
                   tc::slurm_yaml_file, tc::topograph_model_file, tc::cluster_toml, tc::netq_file>;
TYPED_TEST_SUITE(source, sources);

}  // namespace

TYPED_TEST(source, has_a_name) {
  auto s = this->make.good();
  EXPECT_FALSE(std::string_view(s.name()).empty());
}

TYPED_TEST(source, gives_a_fragment_that_is_a_graph) {
  auto s = this->make.good();
  const auto f = s.read({.host = "node7"});
  ASSERT_TRUE(f) << f.error().message();
  EXPECT_FALSE(f->source.empty());
  EXPECT_FALSE(f->nodes.empty());
  const auto g = tc::topo::graph::from(*f);
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
}

TYPED_TEST(source, starts_the_keys_of_a_hosts_own_things_with_the_host) {
  auto s = this->make.good();
  const auto f = s.read({.host = "node7"});
  ASSERT_TRUE(f);
  for (const tc::topo::node& n : f->nodes) {
    if (n.host.empty()) continue;
    EXPECT_EQ(n.key.rfind(n.host + "/", 0), 0U) << n.key;
    if (this->make.names_host) {
      EXPECT_EQ(n.host, "node7");
    }
  }
}

TYPED_TEST(source, says_why_whatever_it_assumes) {
  auto s = this->make.good();
  const auto f = s.read({});
  ASSERT_TRUE(f);
  for (const tc::topo::link& l : f->links)
    if (l.how == tc::trust::assumed) {
      EXPECT_FALSE(l.reason.empty());
    }
  for (const tc::topo::node& n : f->nodes)
    if (n.how == tc::trust::assumed) {
      EXPECT_FALSE(n.reason.empty()) << n.key;
    }
  for (const tc::finding& x : f->findings) EXPECT_FALSE(x.what.empty());
}

TYPED_TEST(source, gives_the_same_answer_twice) {
  auto s = this->make.good();
  const auto shape = [](const tc::result<tc::topo::fragment>& f) {
    std::string text;
    for (const tc::topo::node& n : f->nodes) text += n.key + "\n";
    for (const tc::topo::link& l : f->links)
      text += std::to_string(l.from.value) + "-" + std::to_string(l.to.value) + " " + std::to_string(l.capacity.value) +
              "\n";
    return text;
  };
  const auto once = s.read({});
  const auto twice = s.read({});
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(shape(once), shape(twice));
}

TYPED_TEST(source, fails_with_a_sentence_when_nothing_can_be_told) {
  auto s = this->make.bad();
  const auto f = s.read({});
  ASSERT_FALSE(f);
  EXPECT_GT(f.error().what.size(), 10U);
  EXPECT_NE(f.error().code, tc::errc::bug);
}

TYPED_TEST(source, does_not_work_past_its_deadline) {
  auto s = this->make.good();
  const tc::seconds start = tc::steady_clock::now();
  static_cast<void>(s.read({.host = "h", .until = tc::deadline::in({-1})}));
  EXPECT_LT((tc::steady_clock::now() - start).value, 5);
}
