// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/rocm_smi_topo.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {

const std::string three_gpus =
    "WARNING: something sleeps\n"
    "\n===== Weight between two GPUs =====\n"
    "       GPU0    GPU1    GPU4\n"
    "GPU0   0       15      40\n"
    "GPU1   15      0       40\n"
    "GPU4   40      40      0\n"
    "\n===== Hops between two GPUs =====\n"
    "       GPU0    GPU1    GPU4\n"
    "GPU0   0       1       2\n"
    "GPU1   1       0       2\n"
    "GPU4   2       2       0\n"
    "\n===== Link Type between two GPUs =====\n"
    "       GPU0    GPU1    GPU4\n"
    "GPU0   0       XGMI    PCIE\n"
    "GPU1   XGMI    0       PCIE\n"
    "GPU4   PCIE    PCIE    0\n"
    "\n===== Numa Nodes =====\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\n"
    "GPU[0]\t\t: (Topology) Numa Affinity: 0\n"
    "GPU[1]\t\t: (Topology) Numa Node: 1\n"
    "GPU[4]\t\t: (Topology) Numa Node: -1\n"
    "===== End =====\n";

std::string refusal(const std::string& text) { return tc::read::parse_rocm_smi_topo(text, "r.txt").error().what; }

}  // namespace

TEST(rocm_smi_topo, reads_the_three_matrices_and_the_numa_nodes) {
  const auto r = tc::read::parse_rocm_smi_topo(three_gpus, "r.txt");
  ASSERT_TRUE(r) << r.error().message();
  ASSERT_EQ(r->gpus.size(), 3U);
  EXPECT_EQ(r->gpus[2].index, 4U);
  EXPECT_EQ(r->gpus[0].to[1].weight, 15U);
  EXPECT_EQ(r->gpus[0].to[1].hops, 1U);
  EXPECT_EQ(r->gpus[0].to[1].kind, "XGMI");
  EXPECT_EQ(r->gpus[2].to[0].kind, "PCIE");
  EXPECT_FALSE(r->gpus[1].to[1].weight);
  EXPECT_EQ(r->gpus[1].numa, 1U);
  EXPECT_FALSE(r->gpus[1].numa_affinity);
  EXPECT_FALSE(r->gpus[2].numa);
  EXPECT_TRUE(r->findings.empty());
}

TEST(rocm_smi_topo, is_content_with_one_matrix_and_carriage_returns) {
  const auto r = tc::read::parse_rocm_smi_topo(
      "=== Link Type between two GPUs ===\r\n     GPU1  GPU0\r\nGPU1  0  XGMI\r\nGPU0  XGMI  0", "r.txt");
  ASSERT_TRUE(r) << r.error().message();
  EXPECT_EQ(r->gpus[0].index, 0U);
  EXPECT_EQ(r->gpus[0].to[1].kind, "XGMI");
  EXPECT_EQ(r->gpus[1].to[0].kind, "XGMI");
  EXPECT_FALSE(r->gpus[1].to[0].hops);
}

TEST(rocm_smi_topo, refuses_with_the_place) {
  EXPECT_EQ(refusal("==== Weight between two GPUs ====\n"), "r.txt: there is no matrix between GPUs");
  EXPECT_EQ(refusal("=== Hops between two GPUs\nGPU0 GPU1\nGPU0 0\n"),
            "r.txt line 3: the row of GPU0 has 1 cells where the header names 2 columns");
  EXPECT_EQ(refusal("=== Hops between two GPUs\nGPU0 GPU1\nGPU2 0 1\n"), "r.txt line 3: the row GPU2 has no column");
  EXPECT_EQ(refusal("=== Hops between two GPUs\nGPU0 GPU0\n"), "r.txt line 2: a GPU heads two columns");
  EXPECT_EQ(refusal("=== Hops between two GPUs\nGPU0 x\n"), "r.txt line 2: \"x\" where the label of a GPU is expected");
  EXPECT_EQ(refusal("=== Hops between two GPUs\nGPU0\nGPU0 0\n=== Weight between two GPUs\nGPU1\n"),
            "r.txt line 5: the matrix heads other GPUs than the one before it");
}

TEST(looks_like_rocm_smi_topo, asks_for_a_title) {
  EXPECT_TRUE(tc::read::looks_like_rocm_smi_topo(three_gpus));
  EXPECT_FALSE(tc::read::looks_like_rocm_smi_topo("\tGPU0\tGPU1\nGPU0\t X \tPIX\n"));
}
