// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <topocoll/exec/launch.hpp>
#include <gtest/gtest.h>

namespace {

using namespace topocoll;

using variables = std::map<std::string, std::string, std::less<>>;

result<launch> launched(const variables& v) {
  return launch_from([&](std::string_view name) -> std::optional<std::string> {
    const auto at = v.find(name);
    return at == v.end() ? std::nullopt : std::optional(at->second);
  });
}

const variables slurm_task = {{"SLURM_PROCID", "5"},
                              {"SLURM_STEP_NUM_TASKS", "15"},
                              {"SLURM_NTASKS", "23"},
                              {"SLURM_LOCALID", "2"},
                              {"SLURM_NODEID", "1"},
                              {"SLURM_JOB_ID", "4711"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_STEP_TASKS_PER_NODE", "3,8,4"},
                              {"SLURM_STEP_NODELIST", "gpu[03-05]"}};

TEST(launch_from, of_nothing_is_rank_0_of_1) {
  const auto l = launched({}).value();
  EXPECT_EQ(l.launcher, "none");
  EXPECT_EQ(l.rank, rank_id{0});
  EXPECT_EQ(l.size, 1U);
  EXPECT_FALSE(l.local_rank);
  EXPECT_TRUE(l.findings.empty());
}

TEST(launch_from, reads_torchrun) {
  const auto l = launched({{"RANK", "9"},
                           {"WORLD_SIZE", "16"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "8"},
                           {"GROUP_RANK", "1"},
                           {"MASTER_ADDR", "node0"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "abc"},
                           {"TORCHELASTIC_RESTART_COUNT", "2"}})
                     .value();
  EXPECT_EQ(l.launcher, "torchrun");
  EXPECT_EQ(l.rank, rank_id{9});
  EXPECT_EQ(l.size, 16U);
  EXPECT_EQ(l.local_rank, 1U);
  EXPECT_EQ(l.local_size, 8U);
  EXPECT_EQ(l.node, 1U);
  EXPECT_EQ(l.address, "node0");
  EXPECT_EQ(l.port, 29500);
  EXPECT_EQ(l.job, "abc");
  EXPECT_EQ(l.restarts, 2U);
}

TEST(launch_from, reads_open_mpi_whose_node_rank_is_not_a_node) {
  const auto l = launched({{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                           {"PMIX_NAMESPACE", "prterun-1"},
                           {"PMIX_RANK", "3"}})
                     .value();
  EXPECT_EQ(l.launcher, "Open MPI");
  EXPECT_EQ(l.rank, rank_id{3});
  EXPECT_EQ(l.size, 4U);
  EXPECT_EQ(l.local_rank, 1U);
  EXPECT_EQ(l.local_size, 2U);
  EXPECT_FALSE(l.node);
  EXPECT_EQ(l.job, "prterun-1");
}

TEST(launch_from, reads_mvapich_pmi_pals_and_flux) {
  EXPECT_EQ(launched({{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}, {"MV2_COMM_WORLD_LOCAL_RANK", "0"}})
                ->launcher,
            "MVAPICH");
  const auto pmi =
      launched({{"PMI_RANK", "1"}, {"PMI_SIZE", "6"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}}).value();
  EXPECT_EQ(pmi.launcher, "PMI");
  EXPECT_EQ(pmi.local_size, 3U);
  const auto pals =
      launched({{"PALS_RANKID", "7"}, {"PMI_SIZE", "8"}, {"PALS_LOCAL_RANKID", "3"}, {"PALS_NODEID", "1"}}).value();
  EXPECT_EQ(pals.launcher, "PALS");
  EXPECT_EQ(pals.rank, rank_id{7});
  EXPECT_EQ(pals.node, 1U);
  const auto flux =
      launched({{"FLUX_TASK_RANK", "2"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_LOCAL_ID", "0"}, {"FLUX_JOB_ID", "f1"}})
          .value();
  EXPECT_EQ(flux.launcher, "Flux");
  EXPECT_EQ(flux.job, "f1");
}

TEST(launch_from, reads_slurm_steps) {
  const auto l = launched(slurm_task).value();
  EXPECT_EQ(l.launcher, "Slurm");
  EXPECT_EQ(l.rank, rank_id{5});
  EXPECT_EQ(l.size, 15U) << "the step's tasks, not the job's";
  EXPECT_EQ(l.local_rank, 2U);
  EXPECT_EQ(l.local_size, 8U) << "second number of 3,8,4";
  EXPECT_EQ(l.node, 1U);
  EXPECT_EQ(l.job, "4711.0");
  EXPECT_EQ(l.address, "gpu03");
}

TEST(launch_from, does_not_take_a_batch_script_for_a_task) {
  const auto l =
      launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_LOCALID", "0"}})
          .value();
  EXPECT_EQ(l.launcher, "none");
  EXPECT_EQ(l.size, 1U);
  ASSERT_EQ(l.findings.size(), 1U);
  EXPECT_NE(l.findings[0].what.find("batch script"), std::string::npos);
  EXPECT_NE(l.findings[0].next_step.find("srun"), std::string::npos);
}

TEST(launch_from, believes_mpirun_inside_a_batch_script) {
  const auto l = launched({{"SLURM_PROCID", "0"},
                           {"SLURM_NTASKS", "64"},
                           {"SLURM_JOB_ID", "1"},
                           {"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "64"}})
                     .value();
  EXPECT_EQ(l.launcher, "Open MPI");
  EXPECT_EQ(l.rank, rank_id{3});
}

TEST(launch_from, refuses_two_launchers_that_disagree_and_names_both) {
  variables v = slurm_task;
  v["OMPI_COMM_WORLD_RANK"] = "0";
  v["OMPI_COMM_WORLD_SIZE"] = "15";
  const auto l = launched(v);
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, errc::mismatch);
  for (const char* word : {"Open MPI", "rank 0 of 15", "OMPI_COMM_WORLD_RANK", "Slurm", "rank 5 of 15", "SLURM_PROCID"})
    EXPECT_NE(l.error().what.find(word), std::string::npos) << l.error().what;
}

TEST(launch_from, takes_two_launchers_that_agree) {
  variables v = slurm_task;
  v["PMI_RANK"] = "5";
  v["PMI_SIZE"] = "15";
  EXPECT_EQ(launched(v)->launcher, "PMI");
}

TEST(launch_from, lets_srun_start_one_torchrun_per_host) {
  const auto l = launched({{"SLURM_PROCID", "1"},
                           {"SLURM_NTASKS", "2"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_NODEID", "1"},
                           {"RANK", "11"},
                           {"WORLD_SIZE", "16"},
                           {"LOCAL_RANK", "3"}})
                     .value();
  EXPECT_EQ(l.launcher, "torchrun");
  EXPECT_EQ(l.rank, rank_id{11});
  EXPECT_EQ(l.node, 1U);
}

TEST(launch_from, warns_about_a_launcher_that_says_all_alone) {
  const auto l = launched({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).value();
  ASSERT_EQ(l.findings.size(), 1U);
  EXPECT_EQ(l.findings[0].level, severity::warning);
  EXPECT_NE(l.findings[0].what.find("PMI"), std::string::npos);
}

TEST(launch_from, warns_about_pmix_without_a_size) {
  const auto l = launched({{"PMIX_RANK", "3"}}).value();
  EXPECT_EQ(l.launcher, "none");
  ASSERT_EQ(l.findings.size(), 1U);
  EXPECT_NE(l.findings[0].what.find("PMIx"), std::string::npos);
}

TEST(launch_from, refuses_halves_and_nonsense_and_names_the_variable) {
  const std::pair<variables, const char*> cases[] = {
      {{{"RANK", "0"}}, "WORLD_SIZE"},
      {{{"WORLD_SIZE", "2"}}, "RANK is not"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK is 2, which is not below WORLD_SIZE, 2"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK is \"-1\""},
      {{{"RANK", "1x"}, {"WORLD_SIZE", "2"}}, "RANK is \"1x\""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, "WORLD_SIZE is \"99999999999\""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "RANK is 0"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, "LOCAL_RANK is 2"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}}, "OMPI_COMM_WORLD_SIZE"},
  };
  for (const auto& [v, words] : cases) {
    const auto l = launched(v);
    ASSERT_FALSE(l) << words;
    EXPECT_EQ(l.error().code, errc::malformed_input);
    EXPECT_NE(l.error().what.find(words), std::string::npos) << l.error().what;
  }
}

TEST(launch_from, takes_an_empty_variable_for_unset) {
  EXPECT_EQ(launched({{"RANK", ""}, {"WORLD_SIZE", ""}})->launcher, "none");
}

TEST(launch_from_environment, reads_this_process) {
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "3", 1);
  const auto l = launch_from_environment();
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  ASSERT_TRUE(l) << l.error().message();
  EXPECT_EQ(l->rank, rank_id{1});
  EXPECT_EQ(l->size, 3U);
}

TEST(tasks_on_node, reads_slurms_list_with_repeats) {
  using detail::tasks_on_node;
  EXPECT_EQ(tasks_on_node("8(x2),7", 0), 8U);
  EXPECT_EQ(tasks_on_node("8(x2),7", 1), 8U);
  EXPECT_EQ(tasks_on_node("8(x2),7", 2), 7U);
  EXPECT_EQ(tasks_on_node("8(x2),7", 3), std::nullopt);
  EXPECT_EQ(tasks_on_node("8(x2", 1), std::nullopt);
  EXPECT_EQ(tasks_on_node("eight", 0), std::nullopt);
  EXPECT_EQ(tasks_on_node("", 0), std::nullopt);
}

TEST(first_host, takes_brackets_apart) {
  using detail::first_host;
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("node7,node9"), "node7");
  EXPECT_EQ(first_host("gpu[03-05,9],login1"), "gpu03");
  EXPECT_EQ(first_host("gpu[3]-ib,x"), "gpu3-ib");
  EXPECT_EQ(first_host("rack[1-2]node[3-4]"), std::nullopt);
  EXPECT_EQ(first_host("gpu[3"), std::nullopt);
  EXPECT_EQ(first_host(""), std::nullopt);
}

}  // namespace
