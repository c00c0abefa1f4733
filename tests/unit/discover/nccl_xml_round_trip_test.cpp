// SPDX-License-Identifier: Apache-2.0
// What is read from an NCCL topology file, generated or recorded, is written as one and read again: what must be the same.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unit/topo/nccl_xml_strict.hpp>
#include <vector>
#include <topocoll/discover/files.hpp>
#include <topocoll/discover/generate.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/topo/nccl_xml_text.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::graph;

namespace {

graph frozen(const tc::result<tc::topo::fragment>& fragment) {
  EXPECT_TRUE(fragment) << (fragment ? "" : fragment.error().message());
  auto g = fragment ? graph::from(*fragment) : tc::result<graph>(graph{});
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? *g : graph{};
}

// The text must please a reader as strict as NCCL's, whose version of the format is the one that was written.
void expect_readable_by_nccl(const std::string& text, const std::string& who, std::size_t room = 256) {
  const std::string version = text.find("<system version=\"2\"") == 0 ? "2" : "1";
  EXPECT_EQ(topocoll_test::strict_nccl_reader::complaint(text, version, room), "") << who << "\n" << text;
}

graph read_back(const std::string& text, const std::string& host) {
  tc::discover_options options;
  options.host = host;
  return frozen(tc::fragment_of_nccl_xml(text, "written", options));
}

std::string rate(const std::optional<tc::bytes_per_second>& r) { return r ? std::to_string(r->value) : "none"; }
std::string number(const std::optional<std::uint32_t>& n) { return n ? std::to_string(*n) : "none"; }

// One field that is not the same: `what` is the kind of node or link, "gone" or "new" a field of its own.
struct difference {
  std::string what, field, who, before, after;
};

// Compares nodes by key, and the links between the same two nodes of the same kind in their order.
std::vector<difference> differences(const graph& a, const graph& b) {
  std::vector<difference> all;
  const auto differ = [&](const char* kind, const std::string& who, const char* field, const std::string& x,
                          const std::string& y) {
    if (x != y) all.push_back({kind, field, who, x, y});
  };
  for (const tc::topo::node& x : a.nodes()) {
    const auto at = b.find(x.key);
    if (!at) {
      all.push_back({to_string(x.kind), "gone", x.key, "", ""});
      continue;
    }
    const tc::topo::node& y = b.at(*at);
    const char* kind = to_string(x.kind);
    differ(kind, x.key, "kind", to_string(x.kind), to_string(y.kind));
    differ(kind, x.key, "name", x.name, y.name);
    differ(kind, x.key, "host", x.host, y.host);
    differ(kind, x.key, "index", number(x.index), number(y.index));
    differ(kind, x.key, "rank", number(x.global_rank), number(y.global_rank));
    differ(kind, x.key, "numa", number(x.numa), number(y.numa));
    differ(kind, x.key, "trust", to_string(x.how), to_string(y.how));
    differ(kind, x.key, "reason", x.reason, y.reason);
    std::map<std::string, std::string> fx(x.facts.begin(), x.facts.end());
    std::map<std::string, std::string> fy(y.facts.begin(), y.facts.end());
    differ(kind, x.key, "fact count", std::to_string(x.facts.size()), std::to_string(y.facts.size()));
    for (const auto& [name, value] : fx)
      differ(kind, x.key, ("fact " + name).c_str(), value, fy.count(name) ? fy[name] : "none");
    for (const auto& [name, value] : fy)
      if (!fx.count(name)) differ(kind, x.key, ("fact " + name).c_str(), "none", value);
  }
  for (const tc::topo::node& y : b.nodes())
    if (!a.find(y.key)) all.push_back({to_string(y.kind), "new", y.key, "", ""});

  using ends = std::string;
  const auto by_ends = [](const graph& g) {
    std::map<ends, std::vector<const tc::topo::link*>> sorted;
    for (const tc::topo::link& l : g.links())
      sorted[g.at(l.from).key + " > " + g.at(l.to).key + " " + to_string(l.kind)].push_back(&l);
    return sorted;
  };
  const auto before = by_ends(a);
  const auto after = by_ends(b);
  for (const auto& [who, links] : before) {
    const char* kind = to_string(links.front()->kind);
    const auto there = after.find(who);
    const std::size_t left = there == after.end() ? 0 : there->second.size();
    if (left != links.size())
      all.push_back({std::string(kind) + " link", left < links.size() ? "gone" : "new", who, "", ""});
    for (std::size_t i = 0; i < std::min(left, links.size()); ++i) {
      const tc::topo::link& x = *links[i];
      const tc::topo::link& y = *there->second[i];
      const std::string what = std::string(kind) + " link";
      differ(what.c_str(), who, "generation", std::to_string(x.generation), std::to_string(y.generation));
      differ(what.c_str(), who, "lanes", std::to_string(x.lanes), std::to_string(y.lanes));
      differ(what.c_str(), who, "nominal", rate(x.nominal), rate(y.nominal));
      differ(what.c_str(), who, "current", rate(x.current), rate(y.current));
      differ(what.c_str(), who, "capacity", rate(x.capacity), rate(y.capacity));
      differ(what.c_str(), who, "trust", to_string(x.how), to_string(y.how));
      differ(what.c_str(), who, "reason", x.reason, y.reason);
    }
  }
  for (const auto& [who, links] : after)
    if (!before.count(who)) all.push_back({std::string(to_string(links.front()->kind)) + " link", "new", who, "", ""});
  return all;
}

// What the format cannot carry, each with its reason. "*" stands for every kind.
struct exception {
  const char *what, *field, *reason;
};
using exceptions = std::vector<exception>;

std::vector<difference> beyond(const std::vector<difference>& found, const exceptions& allowed) {
  std::vector<difference> left;
  for (const difference& d : found)
    if (std::none_of(allowed.begin(), allowed.end(), [&](const exception& e) {
          return (e.what == std::string("*") || e.what == d.what) && e.field == d.field;
        }))
      left.push_back(d);
  return left;
}

std::string joined(const std::vector<difference>& all, std::size_t most = 20) {
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < most; ++i)
    text +=
        all[i].what + " " + all[i].who + ": " + all[i].field + " '" + all[i].before + "', now '" + all[i].after + "'\n";
  return text + (all.size() > most ? "… " + std::to_string(all.size()) + " in all\n" : "");
}

bool same_order(const graph& a, const graph& b) {
  if (a.node_count() != b.node_count() || a.link_count() != b.link_count()) return false;
  for (std::uint32_t v = 0; v < a.node_count(); ++v)
    if (a.at(tc::node_id{v}).key != b.at(tc::node_id{v}).key) return false;
  for (std::uint32_t e = 0; e < a.link_count(); ++e)
    if (a.at(tc::link_id{e}).from != b.at(tc::link_id{e}).from || a.at(tc::link_id{e}).to != b.at(tc::link_id{e}).to)
      return false;
  return true;
}

// What a description knows and an NCCL topology has no word for.
exceptions of_descriptions() {
  return {
      {"*", "trust", "what is read is reported, whatever it was before"},
      {"*", "reason", "the format has no place for reasons"},
      {"pcie_switch", "name", "switches have an address and no name"},
      {"pcie_switch", "index", "switches have an address and no number"},
      {"nic", "index", "the number is that of the port (dev)"},
      {"host_memory", "index", "memories are not written, but follow from <cpu>"},
      {"nic_port", "name", "the name is that of the device, without the port"},
      {"*", "fact count", "link_speed and link_width are read as facts too"},
      {"*", "fact link_speed", "as above"},
      {"*", "fact link_width", "as above"},
      {"nic_port", "fact speed", "speed is read as a fact too"},
      {"internal link", "nominal", "a port has one speed, at which it runs now"},
      {"internal link", "current", "as above"},
      {"pcie link", "capacity", "capacities follow from generation and width by NCCL's model"},
      {"nvlink link", "capacity", "capacities follow from the architecture by NCCL's model"},
      {"xgmi link", "capacity", "as above"},
      {"memory link", "nominal", "nothing tells of memories"},
      {"memory link", "capacity", "as above"},
      {"cpu link", "capacity", "nothing tells of the links between sockets"},
  };
}

}  // namespace

TEST(nccl_xml_round_trip, of_every_file_of_the_corpus_gives_the_same_graph) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/nccl-xml"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nccl-xml";
  std::size_t same = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(named) / "corpus/nccl-xml")) {
    const auto fragment = tc::nccl_xml(entry.path().string()).read({});
    if (!fragment) continue;  // refused, and tested so elsewhere
    const graph g = frozen(fragment);
    tc::topo::nccl_xml_options options;
    const auto groups = tc::topo::hosts(g);
    options.host = groups.front().name;
    options.whole_domain = groups.size() > 1;
    const auto written = nccl_xml_of(g, options);
    if (!written) {
      ADD_FAILURE() << entry.path() << written.error().message();
      continue;
    }
    expect_readable_by_nccl(written->text, entry.path().string());
    const graph back = read_back(written->text, "localhost");
    const auto found = differences(g, back);
    EXPECT_TRUE(same_order(g, back)) << entry.path();
    EXPECT_TRUE(found.empty()) << entry.path() << "\n" << joined(found);
    EXPECT_TRUE(written->findings.empty())
        << entry.path() << written->findings.front().what << ": " << written->findings.front().evidence;
    same += found.empty() ? 1 : 0;
  }
  EXPECT_GT(same, 0u);
  RecordProperty("same", static_cast<int>(same));
}

TEST(nccl_xml_round_trip, of_every_generated_host_keeps_all_but_what_the_format_cannot_carry) {
  for (const tc::host_model& model : tc::models::all) {
    const graph g = frozen(tc::single_host(model, "node0"));
    const auto written = nccl_xml_of(g);
    ASSERT_TRUE(written) << written.error().message();
    expect_readable_by_nccl(written->text, std::string(model.name));
    exceptions allowed = of_descriptions();
    if (model.c2c_rate.value > 0) {
      allowed.push_back(
          {"pcie link", "new", "a GPU stands in the PCIe tree even if nothing is known of its link there"});
      allowed.push_back({"c2c link", "lanes", "NCCL wants a number of links; one of the whole rate is written"});
    }
    const auto left = beyond(differences(g, read_back(written->text, "node0")), allowed);
    EXPECT_TRUE(left.empty()) << model.name << "\n" << joined(left);
    EXPECT_TRUE(written->findings.empty()) << written->findings.front().what;
  }
}

TEST(nccl_xml_round_trip, of_one_host_of_a_cluster_leaves_the_others_and_the_fabric_out) {
  tc::fabric_options o;
  o.nodes = 3;
  o.detail = tc::host_detail::full;
  o.order = tc::rank_order{};
  const graph g = frozen(tc::generate(o));
  EXPECT_EQ(nccl_xml_of(g).error().code, tc::errc::invalid_argument);
  tc::topo::nccl_xml_options options;
  options.host = "node2";
  const auto written = nccl_xml_of(g, options);
  ASSERT_TRUE(written) << written.error().message();
  expect_readable_by_nccl(written->text, "node2");
  const graph back = read_back(written->text, "node2");
  for (const difference& d : beyond(differences(g, back), of_descriptions())) {
    EXPECT_EQ(d.field, "gone") << joined({d});
    EXPECT_EQ(d.who.rfind("node2/", 0) == 0 && d.who.find(" > node2/") != std::string::npos, false) << d.who;
  }
  EXPECT_EQ(back.at(*back.find("node2/pci:0000:11:00.0")).global_rank, 16u);
  EXPECT_EQ(tc::topo::summarize(back).gpus, 8u);
  EXPECT_EQ(tc::topo::summarize(back).nvswitches, 1u);
}

TEST(nccl_xml_round_trip, of_recordings_keeps_all_but_what_the_format_cannot_carry) {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  const fs::path folder = source ? fs::path(source) / "tests/machines"
                                 : fs::path(__FILE__).parent_path().parent_path().parent_path() / "machines";
  exceptions allowed{
      {"*", "trust", "what is read is reported, whatever it was before"},
      {"*", "reason", "the format has no place for reasons"},
      {"*", "numa", "a device stands below some <cpu>, also when its NUMA domain is not known"},
      {"pcie_device", "name", "devices have an address and no name"},
      {"*", "fact count", "facts that are written with more attributes, see below"},
      {"*", "fact link_speed", "the link's figures are read as facts too"},
      {"*", "fact link_width", "as above"},
      {"cpu", "fact affinity", "the list of cores is also written as NCCL's mask"},
      {"nic_port", "fact guid", "written as a number, which NCCL reads"},
      {"nic_port", "fact speed", "written in Mbit/s, which NCCL reads"},
      {"pcie link", "nominal", "one figure: what the link has trained to"},
      {"pcie link", "current", "as above"},
      {"memory link", "gone", "memory without cores has no place"},
      {"host_memory", "gone", "as above"},
      {"internal link", "gone", "a port that carries nothing is none to NCCL"},
      {"nic_port", "gone", "as above"},
      {"internal link", "lanes", "a port has a speed and no width"},
      {"xgmi link", "nominal", "the architecture of AMD's GPUs is not in this recording, the driver told the rate"},
      {"xgmi link", "capacity", "as above"},
      {"xgmi link", "lanes", "the driver tells of no number of links, and NCCL wants one"},
  };
  std::size_t tried = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path input = entry.path() / "captured.txt";
    if (!fs::exists(input)) continue;
    const graph g = frozen(tc::from_file(input.string()));
    const auto groups = tc::topo::hosts(g);
    ASSERT_EQ(groups.size(), 1u);
    const auto written = nccl_xml_of(g);
    ASSERT_TRUE(written) << written.error().message();
    expect_readable_by_nccl(written->text, entry.path().string());
    const auto left = beyond(differences(g, read_back(written->text, groups.front().name)), allowed);
    for (const difference& d : left) {
      // An adapter without a port in use becomes a device, so that nobody takes it for one that works.
      const bool dead_adapter = d.what == "nic" && (d.field == "kind" || d.field == "name");
      // An idle GPU has lowered its speed; what the model uses is written.
      const bool idle = d.what == "pcie link" && d.field == "generation" && d.before < d.after;
      EXPECT_TRUE(dead_adapter || idle) << entry.path() << joined({d});
    }
    ++tried;
  }
  EXPECT_GE(tried, 5u);
}

TEST(nccl_xml_round_trip, of_files_with_anything_missing_or_odd_gives_the_same_graph) {
  // One host with everything that the format knows; each try removes or spoils some of it.
  const std::string whole = R"(<system version="1">
<cpu numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:10:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1" subsystem_device="0x2" link_speed="32.0 GT/s PCIe" link_width="16">
<pcilink target="0000:20:00.0"/>
<pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1">
<nvlink target="0000:21:00.0" count="2" tclass="0x030200"/><nvlink target="0000:00:00.0" count="4" tclass="0x068000"/>
<nvlink target="fffffff:ff:ff.0" count="4" tclass="0x068000"/><nvlink target="0000:11:00.0" count="1" tclass="0x030200"/><nvlink target="0000:99:00.0" count="1"/>
<nvlink target="0000:77:00.0" count="3" tclass="0x068001"/><c2c bw="20000" count="2"/></gpu></pci>
<pci busid="0000:12:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="8"><nic><net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.0" guid="0xabc" maxconn="131072" gdr="1" coll="1"/><net name="mlx5_0" dev="1" speed="0" port="2"/></nic></pci>
<pci busid="0000:13:00.0" class="0x010802"/><pci busid="0000:14:00.0" class="0x120000"><gpu dev="4"/><gpu dev="5"><xgmi target="0000:11:00.0" count="1"/></gpu></pci>
</pci>
<nic><net name="eth0" dev="3" speed="10000" port="0" guid="0x0" gdr="0"/></nic>
</cpu>
<cpu numaid="1" affinity="ffff0000" arch="x86_64">
<pci busid="0000:20:00.0" class="0x060400" link_speed="2.5 GT/s" link_width="1">
<pci busid="0000:21:00.0" class="0x030000" vendor="0x10de" link_speed="8 GT/s" link_width="0"><gpu dev="1" sm="90" rank="1"><nvlink target="0000:11:00.0" count="2" tclass="0x030200"/></gpu></pci>
<pci busid="0000:22:00.0" class="0x020000"><nic></nic></pci><pci busid="0000:23:00.0" class="0x020000"/><pci busid="0000:24:00.0"/>
</pci></cpu></system>)";
  const auto root = tc::io::parse_xml(whole, "whole");
  ASSERT_TRUE(root) << root.error().message();
  std::uint64_t state = 20240611;
  const auto draw = [&](std::uint64_t below) {  // xorshift64, so that every machine tries the same
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return state % below;
  };
  const std::vector<std::string> values{"0",
                                        "-1",
                                        "7",
                                        "0000:11:00.0",
                                        "0000:21:00.0",
                                        "0000:14:00.0",
                                        "0000:10:00.0",
                                        "0x020000",
                                        "0x030200",
                                        "0x060400",
                                        "0x068000",
                                        "0x068001",
                                        "2.5 GT/s PCIe",
                                        "16",
                                        "1",
                                        "lots",
                                        "",
                                        "mlx5_0",
                                        "eth0",
                                        "veth3",
                                        "400000000",
                                        "64.0 GT/s PCIe",
                                        "gfx942",
                                        "x"};
  const auto spoil = [&](auto&& self, tc::io::xml_element& e) -> void {
    for (std::size_t i = 0; i < e.attributes.size();) {
      const auto luck = draw(24);
      if (luck == 0 && e.attributes[i].name != "busid") {
        e.attributes.erase(e.attributes.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      if (luck == 1) e.attributes[i].value = values[draw(values.size())];
      ++i;
    }
    std::vector<tc::io::xml_element> children;
    for (tc::io::xml_element& child : e.children) {
      self(self, child);
      const auto luck = draw(20);
      if (luck == 1) children.push_back(child);
      if (luck != 0) children.push_back(std::move(child));
    }
    e.children = std::move(children);
  };
  std::size_t read = 0;
  std::size_t odd = 0;
  for (int attempt = 0; attempt < 1500; ++attempt) {
    tc::io::xml_element e = *root;
    for (tc::io::xml_element& cpu : e.children) spoil(spoil, cpu);
    const auto topology = tc::read::nccl_topology_of(e, "spoilt");
    if (!topology) continue;
    const auto fragment = tc::fragment_of(*topology, "h", "spoilt");
    if (!fragment) continue;
    const graph g = frozen(fragment);
    const auto written = nccl_xml_of(g);
    ASSERT_TRUE(written) << written.error().message();
    // Of two devices with one address, links can name only the first; a port without name and number is named by its line.
    if (std::any_of(g.nodes().begin(), g.nodes().end(), [](const tc::topo::node& n) {
          return (n.kind == tc::topo::node_kind::gpu && n.key.find('#') != std::string::npos) ||
                 n.key.find("/net:line") != std::string::npos;
        }))
      continue;
    // Two domains without a number are numbered, or NCCL could not tell them apart.
    if (std::any_of(written->findings.begin(), written->findings.end(),
                    [](const tc::finding& f) { return f.what.find("is made up") != std::string::npos; }))
      continue;
    expect_readable_by_nccl(written->text, "attempt " + std::to_string(attempt));
    // Words where NCCL would read a number are left out.
    auto left = differences(g, read_back(written->text, "h"));
    const auto is_word = [](const difference& d) {
      const bool number = d.field == "fact familyid" || d.field == "fact modelid" || d.field == "fact sm" ||
                          d.field == "fact gdr" || d.field == "fact maxconn" || d.field == "fact coll" ||
                          d.field == "fact speed";
      return number && d.after == "none" &&
             (d.before.empty() || d.before.find_first_not_of("0123456789") != std::string::npos);
    };
    if (std::any_of(left.begin(), left.end(), is_word))
      left.erase(std::remove_if(left.begin(), left.end(),
                                [&](const difference& d) { return is_word(d) || d.field == "fact count"; }),
                 left.end());
    ++read;
    odd += left.empty() ? 0 : 1;
    if (!left.empty() && odd < 6) ADD_FAILURE() << attempt << "\n" << joined(left, 8) << written->text;
  }
  EXPECT_GT(read, 500u);
  RecordProperty("read", static_cast<int>(read));
  EXPECT_EQ(odd, 0u) << "of " << read;
}

TEST(nccl_xml_round_trip, of_every_small_file_of_the_tests_gives_the_same_graph) {
  const char* source = std::getenv("TOPOCOLL_SOURCE_DIR");
  const fs::path folder = source ? fs::path(source) / "tests/machines"
                                 : fs::path(__FILE__).parent_path().parent_path().parent_path() / "machines";
  std::size_t tried = 0;
  std::size_t joined_hosts = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path input = entry.path() / "topology.xml";
    if (!fs::exists(input)) continue;
    const graph g = frozen(tc::nccl_xml(input.string()).read({}));
    tc::topo::nccl_xml_options options;
    options.host = tc::topo::hosts(g).front().name;
    options.whole_domain = true;
    joined_hosts += tc::topo::hosts(g).size() > 1 ? 1 : 0;
    const auto written = nccl_xml_of(g, options);
    ASSERT_TRUE(written) << written.error().message();
    expect_readable_by_nccl(written->text, entry.path().string());
    const auto left = beyond(differences(g, read_back(written->text, "localhost")),
                             {{"nic_port", "fact speed", "a speed that is no number is left out"},
                              {"nic_port", "fact count", "as above"},
                              {"cpu", "fact familyid", "a family that is no number is left out"},
                              {"cpu", "fact count", "as above"}});
    EXPECT_TRUE(left.empty()) << entry.path() << "\n" << joined(left);
    ++tried;
  }
  EXPECT_GE(tried, 6u);
  EXPECT_GE(joined_hosts, 1u);
}

namespace {

// Two GPUs at one domain, with these rows inside the first and the second <gpu>.
std::string two_gpus(const std::string& first, const std::string& second) {
  return "<system version=\"1\"><cpu numaid=\"0\" arch=\"ppc64\">"
         "<pci busid=\"0004:04:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"70\" rank=\"0\">" +
         first + "</gpu></pci><pci busid=\"0004:05:00.0\" class=\"0x030200\"><gpu dev=\"1\" sm=\"70\" rank=\"1\">" +
         second + "</gpu></pci></cpu></system>";
}

}  // namespace

TEST(nccl_xml_round_trip, keeps_nvlinks_that_end_in_the_processor) {
  const graph g = read_back(two_gpus("<nvlink target=\"0004:00:01.0\" count=\"3\" tclass=\"0x068001\"/>", ""), "p9");
  EXPECT_TRUE(g.all(tc::topo::node_kind::nvswitch).empty());
  const auto cpu = g.find("p9/numa:0");
  const auto gpu = g.find("p9/pci:0004:04:00.0");
  ASSERT_TRUE(cpu && gpu);
  std::size_t found = 0;
  for (const tc::link_id e : g.out_links(*gpu))
    if (g.at(e).kind == tc::topo::link_kind::nvlink && g.head(e) == *cpu) {
      EXPECT_EQ(g.at(e).lanes, 3u);
      ++found;
    }
  EXPECT_EQ(found, 1u);
  const auto written = nccl_xml_of(g);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_NE(written->text.find("count=\"3\" tclass=\"0x068001\""), std::string::npos) << written->text;
  EXPECT_TRUE(differences(g, read_back(written->text, "p9")).empty());
}

TEST(nccl_xml_round_trip, keeps_counts_that_the_two_ends_tell_differently) {
  for (const auto& [there, back] : std::vector<std::pair<int, int>>{{2, 3}, {3, 2}, {2, 0}, {0, 2}}) {
    const auto row = [](const char* target, int count) {
      return count == 0 ? std::string()
                        : "<nvlink target=\"" + std::string(target) + "\" count=\"" + std::to_string(count) +
                              "\" tclass=\"0x030200\"/>";
    };
    const graph g = read_back(two_gpus(row("0004:05:00.0", there), row("0004:04:00.0", back)), "h");
    const auto written = nccl_xml_of(g);
    ASSERT_TRUE(written) << written.error().message();
    EXPECT_TRUE(differences(g, read_back(written->text, "h")).empty()) << written->text;
    if (there == 0 || back == 0) continue;
    EXPECT_NE(written->text.find("count=\"" + std::to_string(there) + '"'), std::string::npos) << written->text;
    EXPECT_NE(written->text.find("count=\"" + std::to_string(back) + '"'), std::string::npos) << written->text;
  }
}
