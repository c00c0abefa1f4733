// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>
#include <topocoll/plan/calibrate.hpp>
#include <topocoll/plan/calibrate_host.hpp>
#include <topocoll/plan/model_codec.hpp>
#include <gtest/gtest.h>

namespace plan = topocoll::plan;
namespace io = topocoll::io;
using namespace topocoll::literals;
using plan::model_constants;
using plan::model_parameter;
using plan::observation;
using topocoll::bytes;
using topocoll::collective_kind;
using topocoll::errc;

namespace {

plan::machine_summary machine(std::uint32_t hosts, std::uint32_t generation) {
  plan::machine_summary m;
  m.ranks = 8 * hosts;
  m.domains = m.hosts = hosts;
  m.fabric = plan::gpu_fabric::nvswitch;
  m.generation = generation;
  m.gpu_links = {generation * 112.5e9};
  m.gpus_in_mesh = 8;
  m.network = hosts > 1 ? plan::network_kind::roce : plan::network_kind::none;
  m.nics = 8;
  m.nic_rate = 200_Gbps;
  return m;
}

/// What a machine with these constants would measure, each time off by at most `noise`, alternating.
std::vector<observation> measured_with(const model_constants& k, std::uint32_t systems, double noise = 0) {
  std::vector<observation> all;
  for (std::uint32_t s = 0; s < systems; ++s)
    for (const std::uint32_t hosts : {1U, 2U, 4U})
      for (const collective_kind c : {collective_kind::all_reduce, collective_kind::all_gather})
        for (std::uint64_t size = 8; size <= (8_GiB).value; size *= 8) {
          observation o;
          o.machine = machine(hosts, 3);
          o.conditions.launch = plan::launch_mode::process_per_gpu;
          o.collective = c;
          o.size = {size};
          o.system = s;
          o.time = plan::predict(o.machine, c, o.size, o.conditions, k)->time;
          o.time = o.time * (all.size() % 2 == 0 ? 1 + noise : 1 / (1 + noise));
          all.push_back(o);
        }
  return all;
}

const plan::fitted_parameter& of(const plan::calibration& c, model_parameter p) {
  return c.parameters[static_cast<std::size_t>(p)];
}

}  // namespace

TEST(calibrate, finds_the_constants_that_made_the_measurements) {
  model_constants truth;
  truth[model_parameter::nvlink3] = 0.70;
  truth[model_parameter::roce] = 0.85;
  truth[model_parameter::launch] = 15;
  truth[model_parameter::roce_hop] = 12;
  const auto c = plan::calibrate(measured_with(truth, 2)).value();
  EXPECT_LT(c.after, c.before / 10);
  for (const model_parameter p : {model_parameter::nvlink3, model_parameter::roce, model_parameter::launch})
    EXPECT_NEAR(std::log(c.constants[p] / truth[p]), 0, 0.05) << fact_of(p).name;
  EXPECT_NEAR(std::log(c.constants[model_parameter::roce_hop] / 12), 0, 0.2);
  const auto errors =
      plan::errors_of(measured_with(truth, 2), plan::predictions_for(measured_with(truth, 2), c.constants));
  for (const plan::error_line& l : errors) EXPECT_LT(l.median, 0.03);
}

TEST(calibrate, says_what_the_measurements_can_tell) {
  const auto c = plan::calibrate(measured_with(model_constants{}, 2)).value();
  EXPECT_TRUE(of(c, model_parameter::nvlink3).determined);
  EXPECT_TRUE(of(c, model_parameter::roce).determined);
  for (const model_parameter p : {model_parameter::nvlink5, model_parameter::infiniband, model_parameter::efa_hop,
                                  model_parameter::xgmi, model_parameter::nvls_start}) {
    EXPECT_EQ(of(c, p).rows, 0U) << fact_of(p).name;
    EXPECT_FALSE(of(c, p).determined) << fact_of(p).name;
    EXPECT_EQ(of(c, p).value, of(c, p).centre) << fact_of(p).name;
  }
}

TEST(calibrate, stays_where_it_was_when_the_model_was_right) {
  const auto c = plan::calibrate(measured_with(model_constants{}, 3, 0.01)).value();
  for (const plan::fitted_parameter& p : c.parameters)
    EXPECT_NEAR(std::log(p.value / p.centre), 0, 0.15) << fact_of(p.what).name;
}

TEST(calibrate, is_not_pulled_by_a_few_rows_that_are_off_by_factors) {
  auto rows = measured_with(model_constants{}, 3);
  for (std::size_t i = 7; i < rows.size(); i += 20) rows[i].time = rows[i].time * 4;
  const auto c = plan::calibrate(rows).value();
  EXPECT_NEAR(c.constants[model_parameter::nvlink3] / model_constants{}[model_parameter::nvlink3], 1, 0.02);
  EXPECT_NEAR(c.constants[model_parameter::roce] / model_constants{}[model_parameter::roce], 1, 0.02);
}

TEST(calibrate, keeps_constants_in_their_range) {
  model_constants impossible;
  impossible[model_parameter::roce] = 3;  // more than the line rate
  const auto c = plan::calibrate(measured_with(impossible, 1)).value();
  EXPECT_LE(c.constants[model_parameter::roce], 1);
}

TEST(calibrate, refuses_what_cannot_be_fitted) {
  EXPECT_EQ(plan::calibrate({}).error().code, errc::invalid_argument);
  auto rows = measured_with(model_constants{}, 1);
  rows[3].time = {};
  EXPECT_EQ(plan::calibrate(rows).error().code, errc::invalid_argument);
  rows = measured_with(model_constants{}, 1);
  rows[3].collective = collective_kind::broadcast;
  EXPECT_NE(plan::calibrate(rows).error().what.find("measurement 3"), std::string::npos);
}

TEST(predictions_left_out, do_not_know_the_system_that_they_predict) {
  model_constants odd;
  odd[model_parameter::nvlink3] = 0.5;
  auto rows = measured_with(model_constants{}, 2);
  for (observation o : measured_with(odd, 1)) {
    o.system = 2;
    rows.push_back(o);
  }
  plan::calibration_options how;
  const auto fitted = plan::calibrate(rows, how).value();
  const auto times = plan::predictions_left_out(rows, how, fitted.constants, 40).value();
  // The odd system alone is slow; whoever has not seen it predicts the others' bandwidth.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].system != 2 || rows[i].machine.domains > 1 || rows[i].size < 1_GiB) continue;
    EXPECT_NEAR(rows[i].time / times[i], 0.78 / 0.5, 0.12);
  }
}

TEST(errors_of, counts_time_for_small_sizes_and_bandwidth_for_large_ones) {
  std::vector<observation> rows(3);
  rows[0].size = 1_KiB;
  rows[1].size = rows[2].size = 2_MiB;
  for (auto& r : rows) r.time = {1e-3};
  rows[2].system = 1;
  const auto e = plan::errors_of(rows, std::vector<topocoll::seconds>{{2e-3}, {2e-3}, {0.8e-3}});
  EXPECT_DOUBLE_EQ(e[0].median, 1.0);  // twice the time
  EXPECT_EQ(e[2].rows, 2U);
  EXPECT_EQ(e[2].systems, 2U);
  EXPECT_DOUBLE_EQ(e[2].median, (0.5 + 0.25) / 2);  // half the bandwidth, and a quarter more
  EXPECT_EQ(e[4].rows, 0U);
}

TEST(model_from_json, reads_what_was_written) {
  auto c = plan::calibrate(measured_with(model_constants{}, 1)).value();
  c.constants[model_parameter::efa_hop] = 17.25;
  c.parameters[static_cast<std::size_t>(model_parameter::efa_hop)].value = 17.25;
  const std::string text = plan::to_json(c);
  const auto k = plan::model_from_json(text, "model.json").value();
  for (std::size_t i = 0; i < plan::model_parameter_count; ++i) EXPECT_DOUBLE_EQ(k.values[i], c.parameters[i].value);
  const auto j = io::parse_json(text, "model.json").value();
  EXPECT_EQ(j.at("schema"), "topocoll.model/1");
  EXPECT_EQ(text.find("time"), std::string::npos);  // no measurement in it
}

TEST(model_from_json, keeps_built_in_values_for_what_is_absent_and_refuses_what_is_wrong) {
  const auto read = [](const std::string& constants) {
    return plan::model_from_json(R"({"schema": "topocoll.model/1", "constants": {)" + constants + "}}", "m");
  };
  const auto one = read(R"("roce": {"value": 0.5, "unit": "share"})").value();
  EXPECT_DOUBLE_EQ(one[model_parameter::roce], 0.5);
  EXPECT_DOUBLE_EQ(one[model_parameter::nvlink4], model_constants{}[model_parameter::nvlink4]);
  EXPECT_NE(read(R"("roze": {"value": 0.5})").error().what.find("/constants/roze"), std::string::npos);
  EXPECT_EQ(read(R"("roce": {"value": 1.5})").error().code, errc::malformed_input);
  EXPECT_EQ(read(R"("roce": {"value": -1})").error().code, errc::malformed_input);
  EXPECT_EQ(read(R"("roce_hop": {"value": 1, "unit": "ms"})").error().code, errc::malformed_input);
  EXPECT_EQ(read(R"("roce": {})").error().code, errc::malformed_input);
  EXPECT_EQ(plan::model_from_json(R"({"schema": "topocoll.model/2", "constants": {}})", "m").error().code,
            errc::unsupported);
}

TEST(calibrate_host, finds_launch_hop_and_rate) {
  std::vector<plan::host_observation> rows;
  for (const plan::algorithm how : {plan::algorithm::ring, plan::algorithm::recursive, plan::algorithm::direct})
    for (std::uint64_t size = 64; size <= (64_MiB).value; size *= 4) {
      plan::host_observation o{collective_kind::all_reduce, how, 8, {size}, {}};
      const auto load = plan::detail::host_load_of(o).value();
      o.time = {3e-6 + load.rounds * 0.9e-6 + load.sent / 7e9};
      rows.push_back(o);
    }
  const auto c = plan::calibrate_host(rows).value();
  EXPECT_NEAR(c.launch.value, 3e-6, 0.2e-6);
  EXPECT_NEAR(c.hop.value, 0.9e-6, 0.05e-6);
  EXPECT_NEAR(c.rate.value, 7e9, 0.1e9);
  EXPECT_TRUE(c.hop_determined);
  EXPECT_TRUE(c.rate_determined);
  EXPECT_LT(c.median_error, 0.02);
  const auto back = plan::host_model_from_json(plan::to_json(c), "m").value();
  EXPECT_DOUBLE_EQ(back.launch_time.value, c.launch.value);
  EXPECT_DOUBLE_EQ(back.reduce_rate.value, c.rate.value);
}

TEST(calibrate_host, knows_what_ranks_write_without_a_plan) {
  std::vector<plan::host_observation> rows;
  for (std::uint64_t size = 1024; size <= 64U << 20U; size *= 4)
    for (const auto& [kind, part] :
         {std::pair{collective_kind::all_reduce, 1.0}, std::pair{collective_kind::reduce_scatter, 0.25}})
      rows.push_back({kind, std::nullopt, 4, {size}, {1e-6 + 2 * 0.3e-6 + static_cast<double>(size) * part / 8e9}});
  const auto c = plan::calibrate_host(rows).value();
  EXPECT_NEAR(c.rate.value, 8e9, 0.1e9);
  EXPECT_LT(c.median_error, 0.02);
  EXPECT_FALSE(c.hop_determined) << "every call has two meetings";
}

TEST(calibrate_host, says_what_it_cannot_tell) {
  std::vector<plan::host_observation> rows;
  for (std::uint64_t size = 8; size <= 64; size *= 2)
    rows.push_back({collective_kind::all_reduce, plan::algorithm::ring, 2, {size}, {5e-6}});
  const auto c = plan::calibrate_host(rows).value();
  EXPECT_FALSE(c.hop_determined);
  EXPECT_FALSE(c.rate_determined);
  EXPECT_EQ(plan::calibrate_host({}).error().code, errc::invalid_argument);
}
