// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/nvidia_smi_topo.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::read::matrix_cell;
using tc::read::matrix_word;

namespace {

tc::read::nvidia_smi_topo parsed(const std::string& text) {
  auto m = tc::read::parse_nvidia_smi_topo(text, "m.txt");
  EXPECT_TRUE(m) << (m ? "" : m.error().message());
  return m ? *std::move(m) : tc::read::nvidia_smi_topo{};
}
std::string refusal(const std::string& text) {
  const auto m = tc::read::parse_nvidia_smi_topo(text, "m.txt");
  EXPECT_FALSE(m);
  return m ? std::string() : m.error().what;
}
bool says(const tc::read::nvidia_smi_topo& m, const std::string& what) {
  for (const tc::finding& f : m.findings)
    if (f.what.find(what) != std::string::npos) return true;
  return false;
}

const std::string two_gpus =
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPIX\t0-7,16-23\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\t8-15,24-31\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  PIX  = one bridge\n\nNIC Legend:\n\n  NIC0: mlx5_bond_7\n";

}  // namespace

TEST(matrix_cell_of, knows_every_word_and_the_numbers_of_links) {
  EXPECT_EQ(tc::read::matrix_cell_of("X"), (matrix_cell{matrix_word::self, 0}));
  EXPECT_EQ(tc::read::matrix_cell_of("NV12"), (matrix_cell{matrix_word::gpu_link, 12}));
  EXPECT_EQ(tc::read::matrix_cell_of("ICN3"), (matrix_cell{matrix_word::gpu_link, 3}));
  EXPECT_EQ(tc::read::matrix_cell_of("MX"), (matrix_cell{matrix_word::gpu_link, 0}));
  EXPECT_EQ(tc::read::matrix_cell_of("SOC"), (matrix_cell{matrix_word::soc, 0}));
  EXPECT_EQ(tc::read::matrix_cell_of("CNS"), (matrix_cell{matrix_word::chipset, 0}));
  EXPECT_EQ(tc::read::matrix_cell_of("N/A"), (matrix_cell{matrix_word::untold, 0}));
  for (const char* strange : {"", "NV0", "NVx", "pix", "15", "XX", "NV99999999999999999999"})
    EXPECT_FALSE(tc::read::matrix_cell_of(strange)) << strange;
}

TEST(nvidia_smi_topo, is_read_from_tabs) {
  const auto m = parsed(two_gpus);
  ASSERT_EQ(m.devices.size(), 3U);
  EXPECT_FALSE(m.peers);
  EXPECT_EQ(m.gpu_link_word, "NV");
  EXPECT_TRUE(m.devices[0].gpu);
  EXPECT_EQ(m.devices[1].index, 1U);
  EXPECT_EQ(m.devices[0].cpu_affinity, "0-7,16-23");
  EXPECT_EQ(m.devices[1].numa_affinity, "1");
  EXPECT_EQ(m.devices[1].gpu_numa_id, "");
  EXPECT_FALSE(m.devices[2].gpu);
  EXPECT_EQ(m.devices[2].name, "mlx5_bond_7");
  EXPECT_EQ(m.devices[2].line, 4U);
  EXPECT_EQ(m.between(0, 1), (matrix_cell{matrix_word::gpu_link, 4}));
  EXPECT_EQ(m.between(2, 1).word, matrix_word::sys);
  EXPECT_TRUE(m.findings.empty());
}

TEST(nvidia_smi_topo, is_read_from_blanks_with_carriage_returns_colours_and_a_mark) {
  const auto m = parsed(
      "\xef\xbb\xbf    \x1b[4mGPU0    GPU1    mlx5_3  mlx5_1  CPU Affinity    NUMA Affinity\x1b[0m\r\n"
      "    GPU0     X      PHB     NODE    SYS     0-3     N/A\r\n"
      "    GPU1    PHB      X      NODE    SYS     0-3     0-1\r\n"
      "    mlx5_3  NODE    NODE     X      SYS\r\n"
      "    mlx5_1  SYS     SYS     SYS      X");
  ASSERT_EQ(m.devices.size(), 4U);
  EXPECT_EQ(m.devices[2].name, "mlx5_3");
  EXPECT_FALSE(m.devices[2].index);
  EXPECT_EQ(m.devices[0].numa_affinity, "");
  EXPECT_EQ(m.devices[1].numa_affinity, "0-1");
  EXPECT_EQ(m.devices[0].cpu_affinity, "0-3");
  EXPECT_EQ(m.between(3, 2).word, matrix_word::sys);
}

TEST(nvidia_smi_topo, finds_the_columns_of_empty_cells) {
  // No processors in the cgroup: only the tabs tell that the 1 is the NUMA domain.
  const auto tabs = parsed(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNODE\t\t1\t\tN/A\n"
      "GPU1\tNODE\t X \t3\t1\t\t9\n");
  EXPECT_EQ(tabs.devices[0].cpu_affinity, "");
  EXPECT_EQ(tabs.devices[0].numa_affinity, "1");
  EXPECT_EQ(tabs.devices[1].cpu_affinity, "3");
  EXPECT_EQ(tabs.devices[1].gpu_numa_id, "9");
  const auto nothing = parsed(
      "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \t\t\t\tN/A\n");
  EXPECT_EQ(nothing.devices[0].cpu_affinity + nothing.devices[0].numa_affinity, "");
  const auto blanks = parsed(
      "        GPU0    GPU1    CPU Affinity    NUMA Affinity\n"
      "GPU0     X      PIX                     2\n"
      "GPU1    PIX      X      4-7\n");
  EXPECT_EQ(blanks.devices[0].cpu_affinity, "");
  EXPECT_EQ(blanks.devices[0].numa_affinity, "2");
  EXPECT_EQ(blanks.devices[1].cpu_affinity, "4-7");
  EXPECT_EQ(blanks.devices[1].numa_affinity, "");
}

TEST(nvidia_smi_topo, does_not_mind_ragged_tabs_a_quoted_header_and_text_around) {
  const auto m = parsed(
      "see below\n    table = '''\tGPU0\tGPU1\thfi1_0\tCPU Affinity    NUMA Affinity\n"
      "GPU0\t X \t\tSOC\t \tPXB\t\t0-5\t\t0\n"
      "GPU1\tSOC \t\tX \tSOC\t6-11\t\t1\n"
      "hfi1_0\tPXB\t\tSOC\t X \t\t\n"
      "    x = nodes(table)\n");
  EXPECT_EQ(m.devices[0].cpu_affinity, "0-5");
  EXPECT_EQ(m.devices[1].numa_affinity, "1");
  EXPECT_EQ(m.between(0, 2).word, matrix_word::pxb);
  EXPECT_EQ(m.between(1, 0).word, matrix_word::soc);
}

TEST(nvidia_smi_topo, is_read_when_every_line_is_quoted_or_names_its_task) {
  const std::string quoted = "> \tGPU0\tGPU1\n> GPU0\t X \tNODE\n> GPU1\tNODE\t X \n";
  const std::string task =
      "0:         GPU0    GPU1    CPU Affinity\n0: GPU0     X      NODE    0-3\n0: GPU1    NODE     X      0-3\n";
  for (const std::string& text : {quoted, task}) {
    EXPECT_TRUE(tc::read::looks_like_nvidia_smi_topo(text));
    const auto m = parsed(text);
    EXPECT_EQ(m.devices.size(), 2U);
    EXPECT_EQ(m.between(1, 0).word, matrix_word::node);
    EXPECT_TRUE(m.findings.empty());
  }
  EXPECT_EQ(parsed(task).devices[1].cpu_affinity, "0-3");
}

TEST(nvidia_smi_topo, completes_missing_rows_by_symmetry_and_says_so) {
  const auto m = parsed(
      "      GPU0  GPU1  NIC0  NIC1\n"
      "GPU0   X    PIX   PXB   SYS\n"
      "GPU1  PIX    X    PXB   SYS\n");
  EXPECT_EQ(m.between(2, 0).word, matrix_word::pxb);
  EXPECT_EQ(m.between(3, 1).word, matrix_word::sys);
  EXPECT_EQ(m.between(2, 3).word, matrix_word::untold);
  EXPECT_TRUE(says(m, "rows of some adapters are missing"));
  EXPECT_TRUE(says(m, "the legend does not name"));
  for (const tc::finding& f : m.findings)  // a part of the truth is missing, but nothing is wrong
    EXPECT_EQ(f.level, f.what.find("rows of") != std::string::npos ? tc::severity::warning : tc::severity::note);
}

TEST(nvidia_smi_topo, keeps_what_is_whole_of_a_text_that_was_cut_off) {
  const auto m = parsed(
      "\tGPU0\tGPU1\tGPU2\n"
      "GPU0\t X \tPIX\tNOD");
  EXPECT_EQ(m.between(0, 1).word, matrix_word::pix);
  EXPECT_EQ(m.between(0, 2).word, matrix_word::untold);
  EXPECT_TRUE(says(m, "cut off"));
  EXPECT_TRUE(says(m, "rows of some GPUs are missing"));
}

TEST(nvidia_smi_topo, reads_peer_access_and_other_makers) {
  const auto p2p = parsed(
      " \tGPU0\tGPU1\tGPU2\n"
      " GPU0\tX\tOK\tTNS\n"
      " GPU1\tOK\tX\tDR\n"
      " GPU2\tTNS\tDR\tX\n");
  EXPECT_TRUE(p2p.peers);
  EXPECT_EQ(p2p.between(0, 1).word, matrix_word::ok);
  EXPECT_EQ(p2p.between(2, 1).word, matrix_word::disabled);
  const auto other = parsed(
      "Attached things: 2\n"
      "        PPU0    PPU1    NIC0    Node Affinity  CPU Affinity\n"
      "PPU0    X       ICN2    PIX     0              0-31,64-95\n"
      "PPU1    ICN2    X       NODE    0              0-31,64-95\n");
  EXPECT_EQ(other.gpu_link_word, "ICN");
  EXPECT_EQ(other.devices[1].label, "PPU1");
  EXPECT_EQ(other.devices[1].numa_affinity, "0");
  EXPECT_EQ(other.devices[1].cpu_affinity, "0-31,64-95");
}

TEST(nvidia_smi_topo, takes_a_word_that_nobody_explains_as_not_told) {
  const auto m = parsed(
      "\tGPU0\tGPU1\tGPU2\n"
      "GPU0\t X \tWARP\tPIX\n"
      "GPU1\tWARP\t X \tPIX\n"
      "GPU2\tPIX\tPIX\t X \n");
  EXPECT_EQ(m.between(0, 1).word, matrix_word::untold);
  EXPECT_TRUE(says(m, "\"WARP\" is a class of a path that is not known"));
}

TEST(nvidia_smi_topo, reads_the_first_of_two_matrices) {
  const auto m =
      parsed("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n\n\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n");
  EXPECT_EQ(m.between(0, 1).word, matrix_word::pix);
  EXPECT_TRUE(says(m, "another matrix follows"));
}

TEST(nvidia_smi_topo, refuses_with_the_place) {
  EXPECT_EQ(refusal("nothing here"), "m.txt: there is no row of GPU labels (GPU0, GPU1, …), so no matrix");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\n"), "m.txt: the header of a matrix is there, but none of its rows");
  EXPECT_EQ(refusal("\tGPU0\tGPU0\n"), "m.txt line 1: the label GPU0 heads two columns");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \nGPU1\tPIX\t X \n"),
            "m.txt line 2: the row of GPU0 has 1 cells where the header names 2 columns");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\tPIX\t X \n"),
            "m.txt line 2: the row of GPU0 has PIX under GPU0 where X is expected: the columns have shifted");
  EXPECT_EQ(
      refusal("\tGPU0\tGPU1\nGPU0\t X \tX\n"),
      "m.txt line 2: the row of GPU0 has X under GPU1, but X stands only on the diagonal: the columns have shifted");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU0\t X \tPIX\n"),
            "m.txt line 3: a second row of GPU0; the first is line 2");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tWARP\nGPU1\tWARP\t X \n"),
            "m.txt line 2: \"WARP\" is no class of a path, and no other cell is understood");
  std::string wide;
  for (int i = 0; i < 1025; ++i) wide += "\tGPU" + std::to_string(i);
  EXPECT_EQ(tc::read::parse_nvidia_smi_topo(wide, "m.txt").error().code, tc::errc::unsupported);
}

TEST(looks_like_nvidia_smi_topo, asks_for_a_header_and_a_row_with_its_diagonal) {
  EXPECT_TRUE(tc::read::looks_like_nvidia_smi_topo(two_gpus));
  EXPECT_TRUE(tc::read::looks_like_nvidia_smi_topo("GPU0 CPU Affinity\n\nGPU0 X 0-3\n"));
  EXPECT_TRUE(tc::read::looks_like_nvidia_smi_topo("\x1b[4m\tGPU0\tGPU1\x1b[0m\nGPU0\t\x1b[1m X \x1b[0m\tSYS\n"));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_topo(""));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_topo("       GPU0  GPU1\nGPU0   0     15\nGPU1   15    0\n"));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_topo("GPU 0: Tesla (UUID: GPU-1)\n\t Link 0: 25 GB/s\n"));
  EXPECT_FALSE(tc::read::looks_like_nvidia_smi_topo("\tGPU0\tGPU1\n"));
}
