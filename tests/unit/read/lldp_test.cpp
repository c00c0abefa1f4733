// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/lldp.hpp>
#include <topocoll/read/lldp_json.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;

namespace {

std::vector<rd::lldp_table> parse(const std::string& text) {
  auto t = rd::parse_lldp(text, "l.json");
  EXPECT_TRUE(t) << (t ? "" : t.error().message());
  return t ? std::move(*t) : std::vector<rd::lldp_table>();
}

const char* chassis_json =
    R"({"tor-7": {"id": {"type": "mac", "value": "02:00:00:00:00:07"}, "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": false}]}})";
const char* port_json =
    R"({"id": {"type": "ifname", "value": "Ethernet9"}, "descr": "to n1", "auto-negotiation": {"supported": true, "current": "100GbaseCR4 - four lanes"}})";

}  // namespace

TEST(lldp, reads_the_compact_form) {
  const auto t = parse(std::string(R"({"lldp": {"interface": {"eth1": {"via": "LLDP", "chassis": )") + chassis_json +
                       R"(, "port": )" + port_json + "}}}}");
  ASSERT_EQ(t.size(), 1U);
  EXPECT_EQ(t[0].host, "");
  ASSERT_EQ(t[0].neighbors.size(), 1U);
  const auto& n = t[0].neighbors[0];
  EXPECT_EQ(n.net_interface, "eth1");
  EXPECT_EQ(n.name, "tor-7");
  EXPECT_EQ(n.id, "02:00:00:00:00:07");
  EXPECT_EQ(n.id_type, "mac");
  EXPECT_EQ(n.port, "Ethernet9");
  EXPECT_EQ(n.is_switch, true);
  ASSERT_TRUE(n.rate);
  EXPECT_DOUBLE_EQ(n.rate->value, 12.5e9);
}

TEST(lldp, reads_the_compact_form_of_several_interfaces) {
  const std::string entry = std::string(R"({"chassis": )") + chassis_json + "}";
  for (const std::string& interfaces : {R"([{"eth1": )" + entry + R"(}, {"eth2": )" + entry + "}]",
                                        R"({"eth1": )" + entry + R"(, "eth2": )" + entry + "}",
                                        R"({"eth1": [)" + entry + R"(], "eth2": )" + entry + "}"}) {
    const auto t = parse(R"({"lldp": {"interface": )" + interfaces + "}}");
    ASSERT_EQ(t.at(0).neighbors.size(), 2U) << interfaces;
    EXPECT_EQ(t[0].neighbors[1].net_interface, "eth2");
    EXPECT_EQ(t[0].neighbors[1].port, "");
    EXPECT_FALSE(t[0].neighbors[1].rate);
  }
}

TEST(lldp, reads_the_regular_form) {
  const auto t = parse(R"({"lldp": [{"interface": [
    {"name": "ens1", "via": "LLDP", "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:09"}], "name": [{"value": "tor-9"}],
      "capability": [{"type": "Router", "enabled": true}]}], "port": [{"id": [{"type": "mac", "value": "02:00:00:00:01:09"}], "descr": [{"value": "swp3"}],
      "auto-negotiation": [{"supported": true, "current": [{"value": "10GigBaseLR - fibre"}]}]}]},
    {"name": "ens2", "chassis": [{"id": [{"type": "local", "value": "x9"}], "capability": [{"type": "Station", "enabled": true}]}]}]}]})");
  ASSERT_EQ(t.at(0).neighbors.size(), 2U);
  EXPECT_EQ(t[0].neighbors[0].name, "tor-9");
  EXPECT_EQ(t[0].neighbors[0].port, "swp3");  // a MAC address says nothing to people
  EXPECT_DOUBLE_EQ(t[0].neighbors[0].rate->value, 1.25e9);
  EXPECT_EQ(t[0].neighbors[1].name, "");
  EXPECT_EQ(t[0].neighbors[1].id, "x9");
  EXPECT_EQ(t[0].neighbors[1].is_switch, false);
}

TEST(lldp, reads_tables_of_many_hosts) {
  const std::string table = std::string(R"("lldp": {"interface": {"eth1": {"chassis": )") + chassis_json + "}}}";
  const auto by_key = parse(R"({"n1": {)" + table + R"(}, "n2": {"lldp": {}}})");
  ASSERT_EQ(by_key.size(), 2U);
  EXPECT_EQ(by_key[0].host, "n1");
  EXPECT_TRUE(by_key[1].neighbors.empty());
  const auto list = parse(R"([{"host": "n1", )" + table + R"(}, {"hostname": "n2", )" + table + "}]");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1].host, "n2");
}

TEST(lldp, refuses_other_shapes_with_the_place) {
  for (const char* text : {"", "[", "{}", "3", "{\"a\": 1}", "{\"a\": {}}", "[{}]", "{\"lldp\": 3}", "{\"lldp\": [3]}",
                           "{\"lldp\": {\"interface\": 3}}", "{\"lldp\": {\"interface\": [3]}}"}) {
    const auto t = rd::parse_lldp(text, "l.json");
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(t.error().code, errc::malformed_input);
    EXPECT_EQ(t.error().what.rfind("l.json", 0), 0U) << t.error().what;
  }
}

TEST(lldp, drops_interfaces_without_a_chassis) {
  for (const char* entry :
       {"{}", "3", "{\"chassis\": 3}", "{\"chassis\": []}", "{\"chassis\": {}}", "{\"chassis\": {\"id\": {}}}"}) {
    EXPECT_TRUE(parse(std::string(R"({"lldp": {"interface": {"e": )") + entry + "}}}").at(0).neighbors.empty())
        << entry;
  }
}

TEST(lldp, is_known_by_its_keys) {
  for (const char* text : {"{\"lldp\": {}}", "\n{ \"lldp\" : [", "{\"n1\": {\"lldp\": {",
                           "[{\"host\": \"a\", \"lldp\": {", "[{\"lldp\": {"}) {
    EXPECT_TRUE(rd::looks_like_lldp(text)) << text;
  }
  for (const char* text : {"", "{}", "[]", "{\"schema\": \"topocoll.topology/1\"}", "{\"a\": [{\"lldp\": 1}]}",
                           "{\"a\": {\"b\": {\"lldp\": 1}}}", "lldp: {}", "[{\"host\": 3, \"lldp\": {"}) {
    EXPECT_FALSE(rd::looks_like_lldp(text)) << text;
  }
}

TEST(medium_rate, follows_the_names_of_ieee) {
  EXPECT_DOUBLE_EQ(rd::medium_rate("1000BaseTFD - twisted pair")->value, 1.25e8);
  EXPECT_DOUBLE_EQ(rd::medium_rate("10GigBaseSR")->value, 1.25e9);
  EXPECT_DOUBLE_EQ(rd::medium_rate("400GbaseDR4")->value, 50e9);
  EXPECT_DOUBLE_EQ(rd::medium_rate(" 100baseTX")->value, 1.25e7);
  for (const char* text : {"", "base", "Gbase", "0baseT", "fibre", "100", "100G", "100Gbas", "unknown"}) {
    EXPECT_FALSE(rd::medium_rate(text)) << text;
  }
}
