// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/io/toml.hpp>
#include <topocoll/read/cluster_file.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;
using topocoll::errc;

namespace {

topocoll::result<rd::cluster_file> parse(const std::string& text) {
  const auto root = topocoll::io::parse_toml(text, "c.toml");
  EXPECT_TRUE(root) << (root ? "" : root.error().what);
  if (!root) return root.error();
  return rd::cluster_file_of(*root, "c.toml");
}

void refused(const std::string& text, const std::string& why, errc code = errc::malformed_input) {
  const auto c = parse(text);
  ASSERT_FALSE(c) << text;
  EXPECT_EQ(c.error().code, code);
  EXPECT_EQ(c.error().what.rfind("c.toml", 0), 0U) << c.error().what;
  EXPECT_NE(c.error().message().find(why), std::string::npos)
      << "'" << c.error().message() << "' does not say: " << why;
}

const std::string head = "schema = \"topocoll.cluster/1\"\n";
const std::string hosts = head + "[[hosts]]\nnames = \"n[0-3]\"\n";

}  // namespace

TEST(cluster_file, reads_every_key) {
  const auto c = parse(
      head +
      "name = \"lab\"\n[fabric]\nnetwork = \"ethernet\"\nrate = \"100Gb/s\"\n"
      "[[hosts]]\nnames = [\"n[0-1]\", \"m\"]\nnics = [\"eth[0-1]\"]\nnic_rate = \"25GB/s\"\nleaves = [\"a\", \"b\"]\n"
      "[[hosts]]\nnames = \"k\"\nfile = \"k.xml\"\nplug = { mlx5_0 = \"a\" }\n"
      "[[switches]]\nnames = \"a,b\"\ntier = \"leaf\"\nup = \"s\"\ncables = 3\nrate = \"1.6Tb/s\"\noversubscription = "
      "1.5\n"
      "[[links]]\nbetween = [\"a\", \"s\"]\ncables = 2\nreason = \"r\"\n"
      "[[corrections]]\nnode = \"k/x\"\nfact = \"f\"\nvalue = 3\nreason = \"r\"\n");
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->name, "lab");
  EXPECT_TRUE(c->ethernet);
  EXPECT_DOUBLE_EQ(c->rate->value, 12.5e9);
  ASSERT_EQ(c->hosts.size(), 2U);
  EXPECT_EQ(c->hosts[0].names.size(), 3U);
  EXPECT_EQ(c->hosts[0].nic_names.at(1), "eth1");
  EXPECT_EQ(c->hosts[1].plugs.at(0).second, "a");
  EXPECT_EQ(c->hosts[1].line, 11U);
  EXPECT_EQ(c->switches.at(0).tier, 0U);
  EXPECT_EQ(c->switches[0].cables, 3U);
  EXPECT_DOUBLE_EQ(c->switches[0].rate->value, 200e9);
  EXPECT_DOUBLE_EQ(*c->switches[0].oversubscription, 1.5);
  EXPECT_EQ(c->links.at(0).cables, 2U);
  EXPECT_EQ(c->corrections.at(0).value, "3");
}

TEST(cluster_file, refuses_unknown_keys_with_the_nearest) {
  refused(head + "host = 1\n", "line 2: unknown key 'host'");
  refused(head + "host = 1\n", "did you mean 'hosts'?");
  refused(hosts + "leafs = \"a\"\n", "did you mean 'leaves'?");
  refused(hosts + "[fabric]\nspeed = 1\n", "unknown key 'speed' of 'fabric'");
  refused(hosts + "[[switches]]\nnames = \"a\"\noversubscripton = 2\n", "did you mean 'oversubscription'?");
  refused(hosts + "[[links]]\nbetwen = []\n", "did you mean 'between'?");
  refused(hosts + "[[corrections]]\nnod = 1\n", "did you mean 'node'?");
}

TEST(cluster_file, refuses_other_schemas) {
  refused("name = \"x\"\n", "has no 'schema'");
  refused("schema = \"topocoll.plan/1\"\n", "not \"topocoll.cluster/1\"");
  refused("schema = \"topocoll.cluster/x\"\n", "not \"topocoll.cluster/1\"");
  refused("schema = \"topocoll.cluster/2\"\n", "version 2", errc::unsupported);
}

TEST(cluster_file, refuses_values_of_another_kind) {
  refused(head, "has no [[hosts]]");
  refused(head + "hosts = 3\n", "'hosts' is a number, not tables");
  refused(head + "hosts = [3]\n", "an entry is a number, not a table");
  refused(head + "[[hosts]]\nmodel = \"x\"\n", "no 'names'");
  refused(head + "[[hosts]]\nnames = 3\n", "'names' is a number, not a list of names");
  refused(head + "[[hosts]]\nnames = [3]\n", "not a list of names");
  refused(head + "[[hosts]]\nnames = \"n[\"\n", "bracket");
  refused(head + "[[hosts]]\nnames = \"a/b\"\n", "a character that no host name has");
  refused(hosts + "model = 3\n", "'model' is a number, not a text");
  refused(hosts + "nics = -1\n", "not a whole number");
  refused(hosts + "nics = [\"a\", \"a\"]\n", "named twice");
  refused(hosts + "nics = 2\nmodel = \"x\"\n", "one of 'model', 'file' and 'nics'");
  refused(hosts + "model = \"x\"\nnic_rate = \"1Gb/s\"\n", "exclude each other");
  refused(hosts + "leaves = \"a\"\nplug = { a = \"b\" }\n", "exclude each other");
  refused(hosts + "nic_rate = 100\n", "not a rate above 0");
  refused(hosts + "nic_rate = \"0GB/s\"\n", "not a rate above 0");
  refused(hosts + "[fabric]\nnetwork = \"token ring\"\n", "neither");
  refused(hosts + "[[switches]]\nnames = \"a\"\ntier = \"top\"\n", "'tier' is none of");
  refused(hosts + "[[switches]]\nnames = \"a\"\ncables = 2\n", "no 'up'");
  refused(hosts + "[[switches]]\nnames = \"a\"\nup = \"b\"\ncables = 0\n", "'cables' is 0");
  refused(hosts + "[[switches]]\nnames = \"a\"\nup = \"b\"\noversubscription = 0\n", "above 0");
  refused(hosts + "[[switches]]\nnames = \"a\"\nup = \"b\"\noversubscription = -2\n", "above 0");
  refused(hosts + "[[links]]\nbetween = [\"a\"]\n", "two names");
  refused(hosts + "[[links]]\nbetween = [\"a\", \"b\"]\nmissing = 1\n", "not true or false");
  refused(hosts + "[[links]]\nbetween = [\"a\", \"b\"]\nmissing = true\ncables = 1\n", "neither 'cables' nor 'rate'");
  refused(hosts + "[[corrections]]\nnode = \"a\"\nfact = \"b\"\n", "'node', 'fact' and 'value'");
  refused(hosts + "[[corrections]]\nnode = \"a\"\nfact = \"b\"\nvalue = 1\n", "no 'reason'");
}

TEST(cluster_file, refuses_names_that_come_twice) {
  refused(hosts + "[[hosts]]\nnames = \"n[3-4]\"\n", "line 4: the host 'n3' is named twice, first on line 2");
  refused(hosts + "[[switches]]\nnames = \"a\"\n[[switches]]\nnames = \"a\"\n", "the switch 'a' is named twice");
}

TEST(cluster_file, is_known_by_its_schema) {
  EXPECT_TRUE(rd::looks_like_cluster_file("# c\r\nname = \"x\"\r\n schema='topocoll.cluster/1'\r\n"));
  EXPECT_TRUE(rd::looks_like_cluster_file("schema = \"topocoll.cluster/9\""));
  for (const char* text : {"", "schema", "schema =", "schema = ", "schema = \"topocoll.topology/1\"",
                           "{\"schema\": \"topocoll.cluster/1\"}", "schemas = \"topocoll.cluster/1\""}) {
    EXPECT_FALSE(rd::looks_like_cluster_file(text)) << text;
  }
}
