// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <unit/topo/nccl_xml_strict.hpp>
#include <vector>
#include <topocoll/topo/nccl_xml_text.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
using tc::topo::link_kind;
using tc::topo::node_kind;
using topocoll_test::strict_nccl_reader;

namespace {

tc::topo::node node(node_kind kind, const std::string& key,
                    std::vector<std::pair<std::string, std::string>> facts = {}) {
  tc::topo::node n;
  n.kind = kind;
  n.host = key.find('/') == std::string::npos ? "" : key.substr(0, key.find('/'));
  n.key = key;
  n.facts = std::move(facts);
  return n;
}
tc::topo::link link(tc::node_id a, tc::node_id b, link_kind kind, double rate = 1e9) {
  tc::topo::link l;
  l.from = a;
  l.to = b;
  l.kind = kind;
  l.capacity = {rate};
  return l;
}
tc::topo::graph frozen(tc::topo::fragment f) {
  auto g = tc::topo::graph::from(std::move(f));
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? std::move(*g) : tc::topo::graph{};
}
// A host with one NUMA domain, a GPU and an adapter with one port below it.
struct small {
  tc::topo::fragment f;
  tc::node_id cpu, gpu, nic, port;

  explicit small(const std::string& host = "h") {
    cpu = f.add(node(node_kind::cpu, host + "/numa:0"));
    gpu = f.add(node(node_kind::gpu, host + "/pci:0000:11:00.0"));
    nic = f.add(node(node_kind::nic, host + "/pci:0000:12:00.0"));
    port = f.add(node(node_kind::nic_port, host + "/net:mlx5_0/1"));
    tc::topo::link l = link(cpu, gpu, link_kind::pcie);
    l.generation = 5;
    l.lanes = 16;
    f.join(l);
    f.join(link(cpu, nic, link_kind::pcie));
    tc::topo::link p = link(nic, port, link_kind::internal, 50e9);
    p.current = p.capacity;
    f.join(p);
  }
};
bool tells(const tc::topo::nccl_xml_document& d, const std::string& what) {
  return std::any_of(d.findings.begin(), d.findings.end(),
                     [&](const tc::finding& f) { return f.what.find(what) != std::string::npos; });
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(strict_nccl_reader, takes_what_nccl_takes) {
  EXPECT_EQ(strict_nccl_reader::complaint("<system version=\"1\">\n  <cpu numaid=\"0\"/>\n</system>\n"), "");
}

TEST(strict_nccl_reader, refuses_what_nccl_refuses_or_misreads) {
  const auto complaint = [](const std::string& inside) {
    return strict_nccl_reader::complaint("<system version=\"1\">\n" + inside + "</system>\n");
  };
  EXPECT_NE(strict_nccl_reader::complaint("<?xml version=\"1.0\"?>\n<system version=\"1\"/>\n"), "");
  EXPECT_NE(strict_nccl_reader::complaint("<system version=\"2\"/>\n"), "");
  EXPECT_NE(strict_nccl_reader::complaint("<system version=\"1\">\n"), "");
  EXPECT_NE(complaint("\t<cpu numaid=\"0\"/>\n"), "");
  EXPECT_NE(complaint("<cpu numaid=\"0\" />\n"), "");
  EXPECT_NE(complaint("<cpu  numaid=\"0\"/>\n"), "");
  EXPECT_NE(complaint("<cpu numaid=\"0\"/>text\n"), "");
  EXPECT_NE(complaint("<cpu arch=\"arm64\"/>\n"), "");
  EXPECT_NE(complaint("<cpu numaid=\"0\" arch=\"a&amp;b\"/>\n"), "");
  EXPECT_NE(complaint("<cpu numaid=\"0\"><pci busid=\"0000:00:00.0\"/></cpu>\n"), "");
  EXPECT_NE(complaint("<cpu numaid=\"0\" arch=\"" + std::string(256, 'x') + "\"/>\n"), "");
  std::string attributes;
  for (int i = 0; i < 16; ++i) attributes += " a" + std::to_string(i) + "=\"\"";
  EXPECT_NE(complaint("<cpu numaid=\"0\"" + attributes + "/>\n"), "");
  std::string cpus;
  for (int i = 0; i < 129; ++i) cpus += "<cpu numaid=\"" + std::to_string(i) + "\"/>\n";
  EXPECT_NE(complaint(cpus), "");
}

TEST(nccl_xml_text, is_what_nccl_would_dump) {
  small s;
  s.f.nodes[s.cpu.value].facts = {
      {"arch", "x86_64"}, {"familyid", "6"}, {"modelid", "143"}, {"vendor", "GenuineIntel"}};
  s.f.nodes[s.gpu.value].index = 3;
  s.f.nodes[s.gpu.value].global_rank = 11;
  s.f.nodes[s.gpu.value].facts = {{"class", "0x030200"}, {"sm", "90"}};
  s.f.nodes[s.port.value].index = 0;
  const auto text = to_nccl_xml(frozen(s.f));
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(*text,
            "<system version=\"1\">\n"
            "  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
            "    <pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
            "      <gpu dev=\"3\" sm=\"90\" rank=\"11\"/>\n"
            "    </pci>\n"
            "    <pci busid=\"0000:12:00.0\">\n"
            "      <nic>\n"
            "        <net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" port=\"1\"/>\n"
            "      </nic>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "</system>\n");
  EXPECT_EQ(strict_nccl_reader::complaint(*text), "");
}

TEST(nccl_xml_text, never_writes_what_is_not_known) {
  small s;
  s.f.links[4].current.reset();  // the port
  s.f.links[4].how = tc::trust::assumed;
  const auto text = to_nccl_xml(frozen(s.f));
  ASSERT_TRUE(text);
  for (const char* unknown :
       {"speed=\"0\"", "link_width=\"0\"", "sm=", "dev=", "rank=", "class=", "vendor=", "guid=", "gdr="})
    EXPECT_FALSE(has(*text, unknown)) << unknown << "\n" << *text;
  EXPECT_TRUE(has(*text, "<net name=\"mlx5_0\" port=\"1\"/>")) << *text;
}

TEST(nccl_xml_text, filled_has_what_nccl_would_ask_the_machine) {
  tc::topo::nccl_xml_options options;
  options.fill = true;
  const auto text = to_nccl_xml(frozen(small().f), options);
  ASSERT_TRUE(text);
  EXPECT_TRUE(has(*text, "busid=\"0000:11:00.0\" class=\"0x030200\"")) << *text;
  EXPECT_TRUE(has(*text, "busid=\"0000:12:00.0\" class=\"0x020000\" link_speed=\"\" link_width=\"0\"")) << *text;
}

TEST(nccl_xml_text, wants_the_host_named_when_there_are_several) {
  small one("a");
  const small two("b");
  for (const auto& n : two.f.nodes) one.f.add(n);
  tc::topo::nccl_xml_options options;
  const auto g = frozen(one.f);
  const auto refused = to_nccl_xml(g, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, tc::errc::invalid_argument);
  EXPECT_TRUE(has(refused.error().message(), "name one of a, b")) << refused.error().message();
  options.host = "c";
  EXPECT_FALSE(to_nccl_xml(g, options));
  options.host = "a";
  ASSERT_TRUE(to_nccl_xml(g, options));
  EXPECT_FALSE(to_nccl_xml(tc::topo::graph{}));
}

TEST(nccl_xml_text, of_a_domain_tells_its_hosts_apart_by_hash) {
  small one("a");
  const small two("b");
  const auto first = static_cast<std::uint32_t>(one.f.nodes.size());
  for (const auto& n : two.f.nodes) one.f.add(n);
  for (auto l : two.f.links) {
    l.from.value += first;
    l.to.value += first;
    one.f.links.push_back(l);
  }
  tc::topo::node plane = node(node_kind::nvswitch, "nvswitch:0");
  const tc::node_id p = one.f.add(plane);
  for (const tc::node_id gpu : {one.gpu, tc::node_id{two.gpu.value + first}}) {
    tc::topo::link l = link(gpu, p, link_kind::nvlink, 900e9);
    l.lanes = 18;
    one.f.join(l);
  }
  tc::topo::nccl_xml_options options;
  options.host = "a";
  options.whole_domain = true;
  const auto text = to_nccl_xml(frozen(one.f), options);
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(strict_nccl_reader::complaint(*text), "");
  std::size_t hashes = 0;
  for (std::size_t at = 0; (at = text->find("host_hash=\"0x", at)) != std::string::npos; ++at) ++hashes;
  EXPECT_EQ(hashes, 2u) << *text;
  EXPECT_TRUE(has(*text, "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>")) << *text;
}

TEST(nccl_xml_text, refuses_a_host_without_numa_domains) {
  tc::topo::fragment f;
  f.add(node(node_kind::gpu, "h/pci:0000:11:00.0"));
  const auto refused = to_nccl_xml(frozen(f));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, tc::errc::unsupported);
}

TEST(nccl_xml_text, refuses_a_gpu_without_address) {
  small s;
  s.f.nodes[s.gpu.value].key = "h/gpu:3";
  const auto refused = to_nccl_xml(frozen(s.f));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, tc::errc::unsupported);
  EXPECT_TRUE(has(refused.error().what, "no PCI address")) << refused.error().what;
}

TEST(nccl_xml_text, refuses_names_that_nccl_could_not_read) {
  for (const std::string& name :
       {std::string("a\"b"), std::string("a&b"), std::string("a<b"), std::string("a\tb"), std::string(256, 'x')}) {
    small s;
    s.f.nodes[s.port.value].key = "h/net:" + name + "/1";
    const auto refused = to_nccl_xml(frozen(s.f));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, tc::errc::unsupported);
  }
  small longest;
  longest.f.nodes[longest.port.value].key = "h/net:" + std::string(255, 'x') + "/1";
  const auto text = to_nccl_xml(frozen(longest.f));
  ASSERT_TRUE(text);
  EXPECT_EQ(strict_nccl_reader::complaint(*text), "");
}

TEST(nccl_xml_text, keeps_facts_that_nccl_does_not_know_as_far_as_they_fit) {
  small s;
  auto& facts = s.f.nodes[s.port.value].facts;
  facts.emplace_back("a name", "with a blank");
  facts.emplace_back("b", "\"quoted\"");
  for (char c = 'c'; c <= 'z'; ++c) facts.emplace_back(std::string(1, c), "1");
  const auto g = frozen(s.f);
  const auto d = nccl_xml_of(g);
  ASSERT_TRUE(d) << d.error().message();
  EXPECT_EQ(strict_nccl_reader::complaint(d->text), "");
  EXPECT_TRUE(has(d->text, " c=\"1\" d=\"1\"")) << d->text;
  EXPECT_TRUE(tells(*d, "do not fit"));
  tc::topo::nccl_xml_options options;
  options.every_fact = false;
  EXPECT_FALSE(has(*to_nccl_xml(g, options), " c=\"1\""));
}

TEST(nccl_xml_text, leaves_out_what_is_dead_and_says_so) {
  small s;
  for (std::size_t e : {4U, 5U}) s.f.links[e].capacity = {0};
  const auto d = nccl_xml_of(frozen(s.f));
  ASSERT_TRUE(d);
  EXPECT_TRUE(tells(*d, "a port that carries nothing"));
  EXPECT_FALSE(has(d->text, "<net"));
  EXPECT_TRUE(has(d->text, "<nic/>"));
}

TEST(nccl_xml_text, writes_what_the_model_uses_of_an_idle_gpu) {
  small s;
  for (std::size_t e : {0U, 1U}) {
    tc::topo::link& l = s.f.links[e];
    l.generation = 1;
    l.current = tc::bytes_per_second{2.5e8 * 16};
    l.nominal = tc::bytes_per_second{32e9 / 8 * 128 / 130 * 16};
    l.capacity = {48e9};
    l.how = tc::trust::assumed;
  }
  EXPECT_TRUE(has(*to_nccl_xml(frozen(s.f)), "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\""));
  for (std::size_t e : {0U, 1U}) s.f.links[e].capacity = {3e9};
  EXPECT_TRUE(has(*to_nccl_xml(frozen(s.f)), "link_speed=\"2.5 GT/s PCIe\" link_width=\"16\""));
}

TEST(nccl_xml_text, trims_like_nccl_when_the_limit_is_reached) {
  small s;
  for (int i = 0; i < 128; ++i) {
    const tc::node_id d =
        s.f.add(node(node_kind::pcie_device, "h/pci:0001:" + std::string(1, "01234567"[i / 16]) +
                                                 std::string(1, "0123456789abcdef"[i % 16]) + ":00.0"));
    s.f.join(link(s.cpu, d, link_kind::pcie));
  }
  const auto d = nccl_xml_of(frozen(s.f));
  ASSERT_TRUE(d) << d.error().message();
  EXPECT_EQ(strict_nccl_reader::complaint(d->text), "");
  EXPECT_TRUE(tells(*d, "leads to no GPU"));
  EXPECT_TRUE(has(d->text, "0000:11:00.0"));
  EXPECT_FALSE(has(d->text, "0001:"));
}

TEST(nccl_xml_text, refuses_more_devices_than_nccl_can_read) {
  small s;
  std::vector<tc::node_id> switches;
  for (std::uint32_t i = 0; i < 200; ++i) {
    if (i % 50 == 0) {
      switches.push_back(s.f.add(node(node_kind::pcie_switch, "h/pci:0002:" + std::to_string(10 + i / 50) + ":00.0")));
      s.f.join(link(s.cpu, switches.back(), link_kind::pcie));
    }
    const tc::node_id d = s.f.add(node(node_kind::gpu, "h/pci:0001:" + std::string(1, "0123456789abcdef"[i / 16]) +
                                                           std::string(1, "0123456789abcdef"[i % 16]) + ":00.0"));
    s.f.join(link(switches.back(), d, link_kind::pcie));
  }
  const auto g = frozen(s.f);
  const auto refused = to_nccl_xml(g);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, tc::errc::unsupported);
  EXPECT_TRUE(has(refused.error().what, "255")) << refused.error().what;
  tc::topo::nccl_xml_options options;
  options.most_elements = 10000;
  const auto large = to_nccl_xml(g, options);
  ASSERT_TRUE(large);
  EXPECT_EQ(strict_nccl_reader::complaint(*large, "1", 10001), "");
}

TEST(nccl_xml_text, stops_at_255_elements_and_not_before) {
  small s;  // system, cpu, pci, gpu, pci, nic, net are 7; 31 bridges of 8 GPUs' pairs fill up to 255
  std::size_t elements = 7;
  std::uint32_t number = 0;
  const auto address = [&] {
    ++number;
    return "h/pci:0001:" + std::string(1, "0123456789abcdef"[number / 16]) +
           std::string(1, "0123456789abcdef"[number % 16]) + ":00.0";
  };
  while (elements < 255) {
    const tc::node_id d = s.f.add(node(node_kind::gpu, address()));
    s.f.join(link(s.cpu, d, link_kind::pcie));
    elements += 2;
  }
  ASSERT_EQ(elements, 255u);
  const auto text = to_nccl_xml(frozen(s.f));
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(strict_nccl_reader::complaint(*text), "");
  const tc::node_id d = s.f.add(node(node_kind::gpu, address()));
  s.f.join(link(s.cpu, d, link_kind::pcie));
  EXPECT_FALSE(to_nccl_xml(frozen(s.f)));
}

TEST(nccl_xml_text, writes_a_list_of_cores_as_a_mask) {
  small s;
  s.f.nodes[s.cpu.value].facts = {{"cpus", "0-2,33,64-67"}};
  EXPECT_TRUE(has(*to_nccl_xml(frozen(s.f)), "affinity=\"0000000f,00000002,00000007\""));
  s.f.nodes[s.cpu.value].facts = {{"cpus", "5-2"}};
  EXPECT_FALSE(has(*to_nccl_xml(frozen(s.f)), "affinity"));
}

TEST(nccl_xml_text, writes_guids_as_numbers) {
  small s;
  s.f.nodes[s.port.value].facts = {{"guid", "248a:0703:00f8:d2c0"}, {"speed", "4X NDR"}};
  const auto text = to_nccl_xml(frozen(s.f));
  EXPECT_TRUE(has(*text, "guid=\"0x248a070300f8d2c0\"")) << *text;
  EXPECT_TRUE(has(*text, "speed=\"400000\"")) << *text;
}

TEST(nccl_xml_text, is_of_version_2_for_amd) {
  small s;
  s.f.nodes[s.gpu.value].facts = {{"gcn", "gfx942"}};
  EXPECT_TRUE(has(*to_nccl_xml(frozen(s.f)), "<system version=\"2\">"));
  tc::topo::nccl_xml_options options;
  options.version = 1;
  EXPECT_TRUE(has(*to_nccl_xml(frozen(s.f), options), "<system version=\"1\">"));
}
