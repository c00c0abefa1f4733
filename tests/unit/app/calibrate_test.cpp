// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <unit/app/whole_program.hpp>
#include <vector>
#include <topocoll/app/detail/measurement_table.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/plan/library_model.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;
namespace io = topocoll::io;
namespace plan = topocoll::plan;
using app::detail::parse_measurement_table;
using plan::gpu_fabric;
using plan::network_kind;

namespace {

struct answer {
  int code = -1;
  std::string out, err;
};

answer ask(const std::vector<std::string_view>& args) {
  answer a;
  a.code = whole_program::run({"calibrate"}, args, app::into(a.out), app::into(a.err));
  return a;
}

/// A folder of its own for each test.
class calibrate_command : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("topocoll-calibrate-" + std::to_string(::getpid()) + "-" +
                                                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(io::write_file(path, text));
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

/// The table that nccl-tests would print on eight GPUs whose ring reaches `share` of the line rate.
std::string table(double share, double launch_us) {
  std::string text = "# Collective test starting: reduce_scatter_perf\n";
  for (int r = 0; r < 8; ++r)
    text += "#  Rank  " + std::to_string(r) + " Group  0 Pid  1 on node0 device  " + std::to_string(r) +
            " [0000:1b:00] X\n";
  text += "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n";
  for (unsigned long long size = 1024; size <= (8ULL << 30U); size *= 4) {
    const double us = launch_us + static_cast<double>(size) * 7 / 8 / (450e3 * share);
    const double algbw = static_cast<double>(size) / us / 1e3;
    char line[200];
    std::snprintf(line, sizeof line, "%12llu %12llu float sum -1 %8.2f %6.2f %6.2f 0 %8.2f %6.2f %6.2f 0\n", size,
                  size / 32, us, algbw, algbw * 7 / 8, us, algbw, algbw * 7 / 8);
    text += line;
  }
  return text;
}

constexpr const char* names =
    "system_id\tgpu\tgpus_per_node\tintra_link\tintra_peak_GBps\tnodes\tnranks\tnic_count\tnic_gbps\tnic_kind\tfabric_"
    "notes\t"
    "lib\talgo\tnvls_sharp\ttool\top\tbytes\ttime_us\ttime_ip_us\thealth\n";

plan::observation row_of(const std::string& line) {
  const auto t = parse_measurement_table(std::string(names) + line + "\n", "t").value();
  EXPECT_EQ(t.rows.size(), 1U) << line;
  return t.rows.empty() ? plan::observation{} : t.rows[0];
}

}  // namespace

TEST(parse_measurement_table, reads_machines_of_every_kind) {
  auto o = row_of(
      "a\tX\t8\tNVSwitch, NVLink4 18x25\t450\t2\t16\t8\t400\tIB "
      "NDR\t\t\t\t\tnccl-tests\tall_reduce\t1024\t40\t38\thealthy");
  EXPECT_EQ(o.machine.domains, 2U);
  EXPECT_EQ(o.machine.fabric, gpu_fabric::nvswitch);
  EXPECT_EQ(o.machine.generation, 4U);
  EXPECT_TRUE(o.machine.multicast);
  EXPECT_EQ(o.machine.network, network_kind::infiniband);
  EXPECT_EQ(o.machine.nics, 8U);
  EXPECT_DOUBLE_EQ(o.time.value, 38e-6);  // the lesser half of a small size

  // A switch that joins hosts: one domain, however many hosts; two racks are two.
  o = row_of(
      "a\tX NVL36\t4\tNVSwitch rack domain, NVLink5 "
      "18x50\t900\t9\t36\t4\t400\tIB\t\t\t\t\t\tall_reduce\t8388608\t90\t80\thealthy");
  EXPECT_EQ(o.machine.domains, 1U);
  EXPECT_EQ(o.machine.hosts, 9U);
  EXPECT_DOUBLE_EQ(o.time.value, 90e-6);
  o = row_of(
      "a\tX\t4\tNVSwitch rack domain (36), NVLink5 "
      "18x50\t900\t18\t72\t4\t400\tIB\t\t\t\t\t\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_EQ(o.machine.domains, 2U);
  EXPECT_EQ(o.machine.nics, 36U);
  o = row_of(
      "a\tX\t4\tNVSwitch rack domain (36), NVLink5 18x50\t900\t2\t2\t8\t400\tRoCE\t\t\t\tMNNVL "
      "off\t\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_EQ(o.machine.domains, 2U);
  EXPECT_EQ(o.machine.nics, 2U);  // what one of four GPUs may use of eight

  o = row_of("a\tX\t8\txGMI mesh 7x64\t448\t1\t2\t\t\tn/a\t\t\t\t\t\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_TRUE(o.machine.xgmi);
  EXPECT_EQ(o.machine.fabric, gpu_fabric::mesh);
  EXPECT_EQ(o.machine.gpus_in_mesh, 8U);
  o = row_of(
      "a\tX\t4\tNVLink3 mesh NV4 per pair (4x25)\t100\t1\t4\t\t\tn/a\t\t\t\t\t\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_DOUBLE_EQ(o.machine.gpu_links.value, 300e9);
  o = row_of("a\tX\t2\tNVLink bridge NV12 (12x25)\t\t1\t2\t\t\tn/a\t\t\t\t\t\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_EQ(o.machine.fabric, gpu_fabric::bridge);
  EXPECT_DOUBLE_EQ(o.machine.gpu_links.value, 300e9);
  o = row_of("a\tX\t4\tPCIe4 x16 via host bridges\t\t1\t4\t\t\tn/a\t\t\t\t\t\tall_reduce\t8388608\t900\t\thealthy");
  EXPECT_EQ(o.machine.fabric, gpu_fabric::pcie_host);
  EXPECT_NEAR(o.machine.gpu_links.value, 31.5e9, 0.1e9);
  o = row_of(
      "a\tX\t1\tnone (1 GPU/node)\t\t2\t2\t1\t100\tEFA\tTCP-like host staging (no GDR "
      "here)\t\t\t\t\tall_reduce\t8388608\t900\t\thealthy");
  EXPECT_EQ(o.machine.network, network_kind::host_copies);
  o = row_of(
      "a\tX\t8\tNVSwitch, NVLink3 12x25\t300\t2\t16\t\t\tIB HDR\tno GDRCopy tuning "
      "stated\t\t\t\t\tall_reduce\t8388608\t900\t\thealthy");
  EXPECT_EQ(o.machine.network, network_kind::infiniband);
  EXPECT_EQ(o.machine.nics, 8U);
  EXPECT_DOUBLE_EQ(o.machine.nic_rate.value, 25e9);
}

TEST(parse_measurement_table, reads_what_the_library_was_told) {
  auto o = row_of(
      "a\tX\t8\tNVSwitch, NVLink4 18x25\t450\t1\t8\t\t\tn/a\t\t\tRing\tNVLS off\ttorch "
      "loop\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_EQ(o.conditions.only, plan::library_algorithm::ring);
  EXPECT_FALSE(o.machine.multicast);
  EXPECT_TRUE(o.conditions.from_framework);
  o = row_of(
      "a\tX\t8\tNVSwitch, NVLink4 18x25\t450\t1\t8\t\t\tn/a\t\t\tdefault (NVLS at large "
      "sizes)\ton\t\tall_reduce\t8388608\t90\t\thealthy");
  EXPECT_FALSE(o.conditions.only);
}

TEST(parse_measurement_table, counts_what_it_leaves_out) {
  const auto line = [](const char* op, const char* bytes, const char* time, const char* health, const char* nic) {
    return "a\tX\t8\tNVSwitch, NVLink3 12x25\t300\t2\t16\t" + std::string(nic) + "\t\t\t\t\t\t" + op + "\t" + bytes +
           "\t" + time + "\t\t" + health + "\n";
  };
  const std::string text =
      std::string(names) + line("all_reduce", "8", "30", "healthy", "8\t200\tIB") +
      line("sendrecv", "8", "30", "healthy", "8\t200\tIB") + line("all_reduce", "", "30", "healthy", "8\t200\tIB") +
      line("all_reduce", "8", "30", "degraded", "8\t200\tIB") + line("all_reduce", "8", "30", "healthy", "\t\tunknown");
  const auto t = parse_measurement_table(text, "t").value();
  EXPECT_EQ(t.rows.size(), 1U);
  EXPECT_EQ(t.other_collectives, 1U);
  EXPECT_EQ(t.without_time, 1U);
  EXPECT_EQ(t.not_healthy, 1U);
  EXPECT_EQ(t.not_described, 1U);
  EXPECT_FALSE(parse_measurement_table("system_id\tbytes\nx\t8\n", "t"));
  EXPECT_NE(parse_measurement_table(
                std::string(names) + "a\tX\t8\t\t\t9\t8\t\t\t\t\t\t\t\t\tall_reduce\t8\t3\t\thealthy\n", "t")
                .error()
                .what.find("t:2:"),
            std::string::npos);
}

TEST_F(calibrate_command, fits_a_table_of_nccl_tests_on_a_described_machine) {
  const std::string results = write("t.txt", table(0.70, 30)), model = path("model.json"), residuals = path("r.tsv");
  const answer a = ask({results, "--fabric", "dgx-h100:nodes=1", "--output", model, "--residuals", residuals});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_NE(a.out.find("| nvlink4 |"), std::string::npos);
  EXPECT_NE(a.out.find("not in these measurements"), std::string::npos);
  const auto j = io::parse_json(io::read_file(model).value(), "model").value();
  EXPECT_EQ(j.at("schema"), "topocoll.model/1");
  EXPECT_NEAR(j.at("constants").at("nvlink4").at("value").get<double>(), 0.70, 0.04);
  EXPECT_TRUE(j.at("constants").at("nvlink4").at("determined").get<bool>());
  EXPECT_EQ(j.at("constants").at("nvlink5").at("rows"), 0);
  // Measurements are in the one file, constants in the other.
  const std::string rows = io::read_file(residuals).value();
  EXPECT_NE(rows.find("measured_us"), std::string::npos);
  EXPECT_EQ(io::read_file(model).value().find("measured"), std::string::npos);
  // What was fitted predicts its own measurements better than the built-in model.
  const answer before = ask({results, "--fabric", "dgx-h100:nodes=1", "--errors"});
  const answer after = ask({results, "--fabric", "dgx-h100:nodes=1", "--errors", "--model", model});
  ASSERT_EQ(after.code, app::exit_ok) << after.err;
  EXPECT_NE(before.out, after.out);
}

TEST_F(calibrate_command, takes_its_own_bench) {
  answer bench;
  bench.code = whole_program::run({"bench", "all_reduce"},
                                  {"--ranks", "2", "-b", "8", "-e", "1M", "-f", "8", "-n", "3", "--json"},
                                  app::into(bench.out), app::into(bench.err));
  ASSERT_EQ(bench.code, app::exit_ok) << bench.err;
  const std::string model = path("host.json");
  const answer a = ask({write("bench.json", bench.out), "--output", model});
  ASSERT_EQ(a.code, app::exit_ok) << a.err;
  EXPECT_NE(a.out.find("launch"), std::string::npos);
  const auto j = io::parse_json(io::read_file(model).value(), "model").value();
  EXPECT_GT(j.at("host").at("rate_GBps").get<double>(), 0);
}

TEST_F(calibrate_command, answers_with_one_document_or_one_sentence) {
  const std::string results = write("t.txt", table(0.7, 20));
  const answer json = ask({results, "--fabric", "dgx-h100:nodes=1", "--json"});
  ASSERT_EQ(json.code, app::exit_ok) << json.err;
  EXPECT_TRUE(io::parse_json(json.out, "answer"));
  for (const std::vector<std::string_view>& wrong : {std::vector<std::string_view>{results},
                                                     {"/nowhere/t.txt"},
                                                     {},
                                                     {results, "--fabric", "dgx-h100:nodes=1", "--launch", "twice"}}) {
    const answer a = ask(wrong);
    EXPECT_EQ(a.code, app::exit_unable);
    EXPECT_TRUE(a.out.empty());
    EXPECT_EQ(a.err.find('\n'), a.err.size() - 1) << a.err;
  }
  const std::string strange = write("strange.txt", "once upon a time\n");
  EXPECT_NE(ask({strange, "--fabric", "dgx-h100:nodes=1"}).err.find("strange.txt"), std::string::npos);
}
