// SPDX-License-Identifier: Apache-2.0
// Captured files against what an independent reader noted of each: MANIFEST.tsv, columns "facts" and "notes".
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/discover/files.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/hwloc_topology.hpp>
#include <topocoll/read/iblinkinfo.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/read/kfd.hpp>
#include <topocoll/read/lspci.hpp>
#include <topocoll/read/nvidia_smi_nvlink.hpp>
#include <topocoll/read/pcie.hpp>
#include <topocoll/read/rocm_smi_topo.hpp>
#include <topocoll/topo/affinity.hpp>
#include <topocoll/topo/check.hpp>
#include <topocoll/topo/diff.hpp>
#include <topocoll/topo/summary.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
namespace rd = topocoll::read;
using tc::severity;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

using tally = std::map<std::string, std::size_t>;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct row {
  std::string file, kind, facts, notes;
};

/// "a x3,b x2" as {a: 3, b: 2}; a name may hold commas.
tally counted(std::string_view list) {
  tally all;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i != list.size() && list[i] != ',') continue;
    std::size_t digits = i;
    while (digits > start && list[digits - 1] >= '0' && list[digits - 1] <= '9') --digits;
    if (digits == i || digits < start + 2 || list.substr(digits - 2, 2) != " x") continue;
    all[std::string(list.substr(start, digits - 2 - start))] = std::stoul(std::string(list.substr(digits, i - digits)));
    start = i + 1;
  }
  return all;
}

/// What stands in the braces behind `name`, or up to the semicolon; nothing where the row does not speak of it.
std::optional<tally> list_of(const std::string& facts, const std::string& name) {
  for (const char* opening : {"{", " {"})
    if (const auto at = facts.find(name + opening); at != std::string::npos) {
      const std::size_t first = facts.find('{', at) + 1;
      return counted(std::string_view(facts).substr(first, facts.find('}', first) - first));
    }
  const auto at = facts.find(name + " ");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t first = at + name.size() + 1;
  return counted(std::string_view(facts).substr(first, std::min(facts.find(';', first), facts.size()) - first));
}

/// The number behind `name`.
std::optional<std::size_t> number_of(const std::string& facts, const std::string& name) {
  const auto at = facts.find(name);
  if (at == std::string::npos) return std::nullopt;
  const std::string digits = facts.substr(at + name.size(), 9);
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  return std::stoul(digits);
}

const tc::finding* found(const tc::topo::graph& g, const std::string& what) {
  for (const tc::finding& f : g.findings())
    if (f.what.find(what) != std::string::npos) return &f;
  return nullptr;
}
/// Of how many things a finding speaks: "7: a, b, …" of seven, "a" of one.
std::size_t things(const tc::finding* f) {
  if (f == nullptr) return 0;
  const std::size_t digits = f->evidence.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string::npos && f->evidence.compare(digits, 2, ": ") == 0
             ? std::stoul(f->evidence)
             : 1;
}
std::size_t mentions(const tc::topo::graph& g, const std::string& what) {
  return static_cast<std::size_t>(std::count_if(g.findings().begin(), g.findings().end(), [&](const tc::finding& f) {
    return f.what.find(what) != std::string::npos;
  }));
}
std::string fact(const tc::topo::node& n, const std::string& name) {
  for (const auto& [own, value] : n.facts)
    if (own == name) return value;
  return {};
}
bool on_pci(const tc::topo::node& n) { return n.key.find("/pci:") != std::string::npos; }

/// One of the two directions of each connection.
std::vector<tc::topo::link> connections(const tc::topo::graph& g) {
  std::vector<tc::topo::link> some;
  for (std::size_t i = 0; i < g.links().size(); i += 2) some.push_back(g.links()[i]);
  return some;
}
const tc::topo::node& named(const tc::topo::graph& g, node_kind kind, const std::string& name) {
  for (const tc::topo::node& n : g.nodes())
    if (n.kind == kind && n.name == name) return n;
  ADD_FAILURE() << g.source() << " holds no " << to_string(kind) << " called " << name;
  return g.nodes()[0];
}
/// The link above the node with this key.
tc::topo::link link_to(const tc::topo::graph& g, const std::string& key) {
  for (const tc::topo::link& l : connections(g))
    if (g.at(l.to).key == key) return l;
  ADD_FAILURE() << g.source() << ": no link leads to " << key;
  return {};
}

class manifest : public testing::Test {
 protected:
  void SetUp() override {
    const char* place = std::getenv("TOPOCOLL_CORPUS");
    if (place == nullptr || !fs::exists(fs::path(place) / "corpus/MANIFEST.tsv"))
      GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/MANIFEST.tsv";
    root = fs::path(place) / "corpus";
    std::ifstream table(root / "MANIFEST.tsv");
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
      std::vector<std::string> cells(1);
      for (const char c : line) {
        if (c == '\t')
          cells.emplace_back();
        else if (c != '\r')
          cells.back() += c;
      }
      ASSERT_EQ(cells.size(), 11U) << line;
      rows.push_back({cells[0], cells[1], cells[9], cells[10]});
    }
    ASSERT_FALSE(rows.empty());
  }

  [[nodiscard]] std::string text(const std::string& file) const { return text_of(root / file); }
  [[nodiscard]] std::optional<tc::topo::graph> read(const std::string& file) const {
    auto fragment = tc::from_file((root / file).string());
    if (!fragment) return std::nullopt;
    auto g = tc::topo::graph::from(*std::move(fragment));
    EXPECT_TRUE(g) << file << ": " << g.error().what;
    if (!g) return std::nullopt;
    return *std::move(g);
  }
  /// A file that must be there and be read; an empty graph with a failure otherwise.
  [[nodiscard]] tc::topo::graph must(const std::string& file) const {
    auto g = read(file);
    if (!g) ADD_FAILURE() << file << " is not read";
    return g ? *std::move(g) : tc::topo::graph{};
  }

  fs::path root;
  std::vector<row> rows;
};

}  // namespace

TEST_F(manifest, lists_every_file_and_each_is_read_or_refused_with_a_reason) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    files += entry.is_regular_file() && entry.path().parent_path() != root ? 1U : 0U;
  EXPECT_EQ(rows.size(), files);
  // Forms that no source of ours is: they are refused, and the sentence says what is read instead.
  const std::vector<std::string> foreign = {
      "top keys", "sysfs map entries", "GPU=8 NET=8", "devices=8; max_link_gen", "keys name=\"", "lines=23"};
  for (const row& r : rows) {
    SCOPED_TRACE(r.file);
    const auto fragment = tc::from_file((root / r.file).string());
    const bool broken = r.facts.find("NOT well-formed") != std::string::npos || r.notes.rfind("NEGATIVE", 0) == 0;
    const bool unknown =
        r.kind == "other" && std::any_of(foreign.begin(), foreign.end(),
                                         [&](const std::string& start) { return r.facts.rfind(start, 0) == 0; });
    EXPECT_EQ(static_cast<bool>(fragment), !broken && !unknown) << (fragment ? "read" : fragment.error().what);
    if (fragment) continue;
    EXPECT_EQ(fragment.error().code, broken ? tc::errc::malformed_input : tc::errc::unsupported);
    EXPECT_NE(fragment.error().what.find(fs::path(r.file).filename().string()), std::string::npos);
    EXPECT_NE(fragment.error().what.find(broken ? " line " : "it reads"), std::string::npos) << fragment.error().what;
  }
}

// ---- NCCL's XML

TEST_F(manifest, pcie_links_of_nccl_files_keep_speed_and_width_as_told) {
  // "32.0 GT/s PCIe x16": generation and lanes, 0 where nothing is told.
  const auto figures = [](const tally& told) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> sums;
    const std::map<std::string, std::uint32_t> generation = {{"2.5", 1},  {"5", 2},   {"5.0", 2},  {"8", 3},
                                                             {"8.0", 3},  {"16", 4},  {"16.0", 4}, {"32", 5},
                                                             {"32.0", 5}, {"64.0", 6}};
    for (const auto& [label, count] : told) {
      const auto g = generation.find(label.substr(0, label.find(' ')));
      const std::string lanes = label.substr(label.rfind('x') + 1);
      const bool digits = !lanes.empty() && lanes.find_first_not_of("0123456789") == std::string::npos;
      sums[{g == generation.end() ? 0 : g->second, digits ? static_cast<std::uint32_t>(std::stoul(lanes)) : 0U}] +=
          count;
    }
    return sums;
  };
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.kind != "nccl-xml") continue;
    const auto g = read(r.file);
    if (!g) continue;
    SCOPED_TRACE(r.file);
    std::map<std::string, std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t>> have;
    for (const tc::topo::link& l : connections(*g)) {
      const tc::topo::node& n = g->at(l.to);
      if (l.kind != link_kind::pcie || !on_pci(n)) continue;
      const char* sort = n.kind == node_kind::gpu           ? "gpu links"
                         : n.kind == node_kind::nic         ? "nic links"
                         : n.kind == node_kind::pcie_switch ? "bridge links"
                                                            : "";
      ++have[sort][{l.generation, l.lanes}];
    }
    for (const char* sort : {"gpu links", "nic links", "bridge links"}) {
      const auto told = list_of(r.facts, sort);
      if (!told && have.find(sort) == have.end()) continue;
      EXPECT_EQ(have[sort], figures(told.value_or(tally{}))) << sort;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100U);
}

TEST_F(manifest, gpu_links_of_nccl_files_add_up_to_the_count_of_each_gpu) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.kind != "nccl-xml") continue;
    const auto g = read(r.file);
    if (!g) continue;
    SCOPED_TRACE(r.file);
    const bool self = r.facts.find("SELF-LOOP targets") != std::string::npos;
    EXPECT_EQ(mentions(*g, "leads to the GPU itself"), self ? g->all(node_kind::gpu).size() : 0U);
    for (const auto& [word, kind] : {std::pair<const char*, link_kind>{"nvlink: ", link_kind::nvlink},
                                     {"xgmi: ", link_kind::xgmi},
                                     {"c2c: ", link_kind::c2c}}) {
      tally have;
      for (const tc::node_id v : g->all(node_kind::gpu)) {
        std::uint32_t lanes = 0;
        for (const tc::link_id e : g->out_links(v)) lanes += g->at(e).kind == kind ? g->at(e).lanes : 0U;
        if (lanes != 0) ++have[std::to_string(lanes)];
      }
      const auto at = r.facts.find(word);
      const auto told = at == std::string::npos ? std::nullopt : list_of(r.facts.substr(at), "total count per gpu");
      EXPECT_EQ(have, self || !told ? tally{} : *told) << word;
      compared += told ? 1U : 0U;
    }
    // Targets outside the file are switches, and all of them one plane.
    EXPECT_EQ(g->all(node_kind::nvswitch).size(), r.facts.find("targets not in file: ") != std::string::npos ? 1U : 0U);
  }
  EXPECT_GT(compared, 35U);
}

TEST_F(manifest, ports_of_nccl_files_have_the_speed_that_is_told_unless_no_port_has_it) {
  for (const row& r : rows) {
    if (r.kind != "nccl-xml") continue;
    const auto g = read(r.file);
    if (!g) continue;
    SCOPED_TRACE(r.file);
    const bool odd = r.facts.find("NET SPEED OUT OF RANGE") != std::string::npos;
    tally have, believed;
    for (const tc::topo::link& l : connections(*g)) {
      if (l.kind != link_kind::internal) continue;
      const std::string told = fact(g->at(l.to), "speed");
      if (told.empty()) continue;
      ++have[told];
      if (odd) {
        EXPECT_EQ(l.how, tc::trust::assumed);
      } else {
        EXPECT_DOUBLE_EQ(l.current.value_or(tc::bytes_per_second{}).value * 8 / 1e6, std::stod(told));
      }
    }
    EXPECT_EQ(have, list_of(r.facts, "net speeds").value_or(tally{}));
    EXPECT_EQ(mentions(*g, "more than any port has"), number_of(r.facts, "OUT OF RANGE (x1000?) on ").value_or(0));
  }
}

TEST_F(manifest, what_nccl_files_leave_out_is_said) {
  for (const row& r : rows) {
    if (r.kind != "nccl-xml") continue;
    const auto g = read(r.file);
    if (!g) continue;
    SCOPED_TRACE(r.file);
    std::size_t without_class = 0;
    for (const tc::topo::node& n : g->nodes()) without_class += on_pci(n) && fact(n, "class").empty() ? 1U : 0U;
    EXPECT_EQ(without_class, number_of(r.facts, "pci without class=").value_or(0));
    const bool one_mask = r.facts.find("ALL cpus share one affinity mask") != std::string::npos;
    EXPECT_EQ(mentions(*g, "have the same affinity mask") + mentions(*g, "tells no affinity mask"), one_mask ? 1U : 0U);
    EXPECT_EQ(things(found(*g, "only the class tells that the device is an adapter")),
              number_of(r.facts, "net=0 (+").value_or(0));
    const auto bridges = list_of(r.facts, "bridge links");
    if (r.facts.find("MIXED bridge links") != std::string::npos) {
      EXPECT_GT(bridges->size(), 1U);
    }
  }
}

// ---- matrices and NVLink listings

TEST_F(manifest, adapters_nearest_to_each_gpu_are_those_of_the_matrix) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    const auto at = r.facts.find("nearest NIC ");
    if (r.kind != "nvsmi" || at == std::string::npos) continue;
    SCOPED_TRACE(r.file);
    const auto g = must(r.file);
    const auto near = tc::topo::affinity_of(g);
    // "GPU0->PIX:NIC4/NIC13 GPU1->NODE:6 NICs …"
    std::map<std::string, std::string> told;
    const std::string list = r.facts.substr(at + 12, std::min(r.facts.find(';', at), r.facts.size()) - at - 12);
    for (std::size_t gpu = list.find("GPU"); gpu != std::string::npos;) {
      const std::size_t arrow = list.find("->", gpu);
      const std::size_t next = list.find(" GPU", arrow);
      told[list.substr(gpu + 3, arrow - gpu - 3)] =
          list.substr(arrow + 2, next == std::string::npos ? std::string::npos : next - arrow - 2);
      gpu = next == std::string::npos ? next : next + 1;
    }
    ASSERT_EQ(told.size(), near.gpus.size());
    for (const tc::topo::gpu_affinity& a : near.gpus) {
      const std::string& want = told[std::to_string(*g.at(a.gpu).index)];
      const std::string word = want.substr(0, want.find(':'));
      const std::string names = want.substr(want.find(':') + 1);
      // NODE is a host bridge of the same domain, which NCCL calls PHB; SOC is what SYS was called.
      EXPECT_STREQ(to_string(a.distance), word == "NODE" ? "PHB" : word == "SOC" ? "SYS" : word.c_str());
      if (names.find(" NICs") != std::string::npos) {
        EXPECT_EQ(a.nearest.size(), number_of(names, ""));
        continue;
      }
      std::set<std::string> have, wanted;
      for (const tc::node_id v : a.nearest)
        have.insert(names.rfind("NIC", 0) == 0 ? "NIC" + std::to_string(*g.at(v).index) : g.at(v).name);
      for (std::size_t i = 0; i < names.size();) {
        const std::size_t end = std::min(names.find('/', i), names.size());
        wanted.insert(names.substr(i, end - i));
        i = end + 1;
      }
      EXPECT_EQ(have, wanted) << "GPU " << *g.at(a.gpu).index;
      ++compared;
    }
    // Adapters that no GPU of the matrix calls nearer than SYS.
    for (const tc::node_id v : near.unaffiliated)
      for (const tc::topo::gpu_affinity& a : near.gpus)
        if (a.distance < tc::topo::path_class::SYS) {
          EXPECT_EQ(std::count(a.nearest.begin(), a.nearest.end(), v), 0);
        }
  }
  EXPECT_GT(compared, 80U);
}

TEST_F(manifest, nvlinks_of_listings_have_their_rates_and_the_dead_are_named) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.facts.rfind("nvlink text", 0) != 0) continue;
    SCOPED_TRACE(r.file);
    const auto listing = rd::parse_nvidia_smi_nvlink(text(r.file), r.file);
    ASSERT_TRUE(listing);
    tally rates;
    for (const rd::nvlink_gpu& gpu : listing->gpus)
      for (const rd::nvlink_state& l : gpu.links) {
        if (l.inactive) ++rates["<inactive>"];
        if (!l.rate) continue;
        char words[40];
        std::snprintf(words, sizeof words, "%.6g GB/s", l.rate->value / 1e9);
        ++rates[words];
      }
    EXPECT_EQ(rates, *list_of(r.facts, "links"));
    const auto g = must(r.file);
    // "active per GPU [0:6 3:4(inactive 3,5)]"
    const std::size_t first = r.facts.find("active per GPU [") + 16;
    const std::string list = r.facts.substr(first, r.facts.find(']', first) - first);
    for (std::size_t i = 0; i < list.size(); ++compared) {
      const std::size_t colon = list.find(':', i);
      const std::string gpu = list.substr(i, colon - i);
      const std::size_t active = std::stoul(list.substr(colon + 1));
      std::size_t end = std::min(list.find(' ', colon), list.size());
      std::string dead;
      if (const auto open = list.find('(', colon); open < end) {
        end = list.find(')', open) + 1;
        const std::size_t from = list.find(' ', open) + 1;
        for (const char c : list.substr(from, end - 1 - from)) dead += c == ',' ? std::string(", ") : std::string(1, c);
      }
      std::uint32_t lanes = 0;
      for (const tc::node_id v : g.all(node_kind::gpu))
        if (std::to_string(*g.at(v).index) == gpu)
          for (const tc::link_id e : g.out_links(v)) lanes += g.at(e).kind == link_kind::nvlink ? g.at(e).lanes : 0U;
      EXPECT_EQ(lanes, active) << "GPU " << gpu;
      const tc::finding* f = found(g, "GPU " + gpu + " has ");
      EXPECT_EQ(f != nullptr, !dead.empty()) << "GPU " << gpu;
      if (f != nullptr) {
        EXPECT_EQ(f->level, severity::fault);
        EXPECT_NE(f->what.find("inactive: link " + dead), std::string::npos) << f->what;
      }
      i = end + 1;
    }
  }
  EXPECT_GT(compared, 20U);
}

TEST_F(manifest, of_rocm_listings_has_kinds_and_weights_of_all_pairs) {
  for (const row& r : rows) {
    if (r.facts.rfind("rocm-smi showtopo", 0) != 0) continue;
    const auto listing = rd::parse_rocm_smi_topo(text(r.file), r.file);
    ASSERT_TRUE(listing);
    tally kinds, weights;
    for (std::size_t i = 0; i < listing->gpus.size(); ++i)
      for (std::size_t j = 0; j < listing->gpus.size(); ++j) {
        if (i == j) continue;
        ++kinds[listing->gpus[i].to[j].kind];
        ++weights[std::to_string(listing->gpus[i].to[j].weight.value_or(0))];
      }
    EXPECT_EQ(kinds, *list_of(r.facts, "link types")) << r.file;
    EXPECT_EQ(weights, *list_of(r.facts, "weights")) << r.file;
    const auto g = must(r.file);
    std::size_t xgmi = 0;
    for (const tc::topo::link& l : g.links()) xgmi += l.kind == link_kind::xgmi ? 1U : 0U;
    EXPECT_EQ(xgmi, kinds["XGMI"]) << r.file;
  }
}

// ---- InfiniBand

TEST_F(manifest, of_fabrics_has_their_cables_speeds_and_oddities) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.kind != "ib" || r.facts.rfind("JSON", 0) == 0) continue;
    SCOPED_TRACE(r.file);
    const std::string own = text(r.file);
    const bool links = r.facts.rfind("iblinkinfo", 0) == 0;
    const auto fabric = links ? rd::parse_iblinkinfo(own, r.file) : rd::parse_ibnetdiscover(own, r.file);
    ASSERT_TRUE(fabric) << fabric.error().what;
    tally speeds, switch_ports, lanes;
    std::size_t alone = 0;
    for (const rd::ib_device& d : fabric->devices) {
      if (d.kind == rd::ib_kind::switch_device && d.told && d.port_count) ++switch_ports[std::to_string(*d.port_count)];
      for (const rd::ib_port& p : d.ports) {
        if (!p.told) continue;
        alone += p.peer ? 0U : 1U;
        const std::string width = std::to_string(p.width);
        ++speeds[width + (r.facts.rfind("port list", 0) == 0 ? "x " : "x") + to_string(p.speed)];
        char words[40];
        // iblinkinfo prints what a lane signals; it knows FDR10 only as 10 Gbit/s.
        const double gbps = p.speed == rd::ib_speed::fdr10 ? 10 : rd::ib_signalling_gbps(p.speed);
        std::snprintf(words, sizeof words, gbps == static_cast<int>(gbps) ? "%.1f" : "%.8g", gbps);
        ++lanes[width + "X " + words + " Gbps"];
      }
    }
    if (const auto told = list_of(r.facts, "speeds")) {
      EXPECT_EQ(speeds, *told);
    }
    if (const auto told = list_of(r.facts, "switch port counts")) {
      EXPECT_EQ(switch_ports, *told);
    }
    if (r.facts.rfind("port list", 0) == 0) {
      EXPECT_EQ(speeds, *list_of(r.facts, "rates"));
    }
    if (links) {
      EXPECT_EQ(lanes, *list_of(r.facts, "rates"));
    }
    if (const auto told = number_of(r.facts, "without peer=")) {
      EXPECT_EQ(alone, *told);
    }

    const auto g = must(r.file);
    EXPECT_EQ(things(found(g, "ports of switches have no partner")), number_of(r.facts, "without peer=").value_or(0));
    if (const auto told = number_of(r.facts, "SHARP aggregation-node CAs=")) {
      EXPECT_EQ(things(found(g, "adapters inside switches")), *told);
    }
    if (r.facts.rfind("switches=", 0) == 0) {
      EXPECT_EQ(things(found(g, "told by one of their ends only")),
                number_of(r.facts, "links recorded on one side only=").value_or(0));
    }
    EXPECT_EQ(things(found(g, "leave and enter the same switch")), number_of(r.facts, "self-loop cables=").value_or(0));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> pairs;
    for (const tc::topo::link& l : connections(g)) {
      const auto fabric_switch = [&](tc::node_id v) {
        return g.at(v).kind == node_kind::leaf || g.at(v).kind == node_kind::spine ||
               g.at(v).kind == node_kind::core_switch;
      };
      if (fabric_switch(l.from) && fabric_switch(l.to))
        ++pairs[{std::min(l.from.value, l.to.value), std::max(l.from.value, l.to.value)}];
    }
    tally parallel;
    for (const auto& [ends, cables] : pairs) ++parallel[std::to_string(cables)];
    if (r.facts.rfind("switches=", 0) == 0) {
      EXPECT_EQ(parallel, list_of(r.facts, "parallel cables per switch pair").value_or(tally{}));
    }
    ++compared;
  }
  EXPECT_GT(compared, 15U);
}

// ---- hwloc, AMD's driver, lspci, recordings, Slurm

TEST_F(manifest, of_hwloc_files_has_the_classes_and_rates_of_all_functions) {
  for (const row& r : rows) {
    if (r.kind != "hwloc-xml") continue;
    SCOPED_TRACE(r.file);
    const auto root_element = tc::io::parse_xml(text(r.file), r.file);
    ASSERT_TRUE(root_element);
    const auto topology = rd::hwloc_topology_of(*root_element, r.file);
    ASSERT_TRUE(topology);
    tally displays, networks;
    for (const rd::hwloc_pci& f : topology->functions) {
      if (f.bridge || !f.class_code) continue;
      const std::uint32_t base = *f.class_code >> 16U, sub = rd::pci_subclass(*f.class_code);
      char words[40];
      std::snprintf(words, sizeof words, "%04x@%.6f", *f.class_code >> 8U, f.link ? f.link->value / 1e9 : 0.0);
      if (base == 0x03 || base == 0x12) ++displays[words];
      if (sub == rd::pci_class_ethernet || sub == rd::pci_class_infiniband) ++networks[words];
    }
    EXPECT_EQ(displays, list_of(r.facts, "display/3D/accel PCI class@link_speed").value_or(tally{}));
    EXPECT_EQ(networks, list_of(r.facts, "network PCI class@link_speed").value_or(tally{}));
  }
}

TEST_F(manifest, of_the_compute_driver_has_types_and_weights_of_all_links) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.facts.rfind("KFD nodes=", 0) != 0) continue;
    SCOPED_TRACE(r.file);
    const auto topology = rd::parse_kfd(text(r.file), r.file);
    ASSERT_TRUE(topology);
    tally types, weights;
    for (const rd::kfd_node& n : topology->nodes)
      for (const rd::kfd_link& l : n.links) {
        ++types[std::to_string(l.type)];
        ++weights[std::to_string(l.weight)];
      }
    EXPECT_EQ(types, *list_of(r.facts, "type"));
    EXPECT_EQ(weights, *list_of(r.facts, "weight"));
    EXPECT_EQ(topology->nodes.size(), number_of(r.facts, "KFD nodes="));
    EXPECT_EQ(must(r.file).all(node_kind::gpu).size(), number_of(r.facts, "(GPU nodes="));
    ++compared;
  }
  EXPECT_EQ(compared, 3U);
}

TEST_F(manifest, of_lspci_has_the_state_of_all_links) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    const auto told = list_of(r.facts, "LnkSta");
    if (!told) continue;
    SCOPED_TRACE(r.file);
    const auto listing = rd::parse_lspci(text(r.file), r.file);
    ASSERT_TRUE(listing);
    EXPECT_EQ(listing->functions.size(), number_of(r.facts, "functions="));
    const auto word = [](const std::string& w) { return w.empty() ? std::string() : " (" + w + ")"; };
    tally states;
    for (const rd::lspci_function& f : listing->functions)
      if (!f.now.speed.empty())
        ++states["Speed " + f.now.speed + word(f.now.speed_word) + ", Width x" + f.now.width + word(f.now.width_word)];
    EXPECT_EQ(states, *told);
    ++compared;
  }
  EXPECT_EQ(compared, 2U);
}

TEST_F(manifest, of_recordings_has_adapters_ports_and_domains) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.facts.rfind("lines=", 0) != 0 || r.facts.find("pci devices=") == std::string::npos) continue;
    SCOPED_TRACE(r.file);
    const auto g = must(r.file);
    if (const auto domains = number_of(r.facts, "numa nodes="); domains != 0U) {
      EXPECT_EQ(g.all(node_kind::cpu).size() + things(found(g, "is the memory of a GPU")), domains);
    }
    const auto at = r.facts.find("infiniband devices=");
    if (at == std::string::npos) continue;
    const std::size_t first = r.facts.find('(', at) + 1;
    const std::string names = r.facts.substr(first, r.facts.find(')', first) - first);
    EXPECT_EQ(static_cast<std::size_t>(std::count(names.begin(), names.end(), ',')) + 1,
              number_of(r.facts, "infiniband devices="));
    tally rates;
    for (std::size_t i = 0; i < names.size();) {
      const std::size_t end = std::min(names.find(',', i), names.size());
      const tc::topo::node& port = named(g, node_kind::nic_port, names.substr(i, end - i));
      const tc::topo::link l = link_to(g, port.key);
      char words[60];
      std::snprintf(words, sizeof words, "%.6g Gb/sec (%uX %s)",
                    l.current.value_or(tc::bytes_per_second{}).value * 8e-9, l.lanes, fact(port, "speed").c_str());
      ++rates[words];
      EXPECT_EQ(fact(port, "state"), "4: ACTIVE");
      i = end + 1;
      ++compared;
    }
    const std::size_t braces = r.facts.find("rates {", at) + 7;
    EXPECT_EQ(rates, counted(std::string_view(r.facts).substr(braces, r.facts.find('}', braces) - braces)));
  }
  EXPECT_EQ(compared, 10U);
}

TEST_F(manifest, of_slurm_files_has_all_switches_blocks_and_hosts) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    if (r.kind != "slurm" || r.notes.rfind("NEGATIVE", 0) == 0) continue;
    SCOPED_TRACE(r.file);
    const auto g = must(r.file);
    const auto s = tc::topo::summarize(g);
    if (const auto switches = number_of(r.facts, "SwitchName lines=")) {
      EXPECT_EQ(s.switches, *switches + *number_of(r.facts, "BlockName lines="));
      EXPECT_EQ(s.nics, number_of(r.facts, "node references=")) << "a port for every place of a host";
      EXPECT_EQ(g.all(node_kind::leaf).size(),
                *number_of(r.facts, "(leaf with Nodes=") + *number_of(r.facts, "BlockName lines="));
    } else {
      EXPECT_EQ(s.hosts, number_of(r.facts, "hosts="));
      EXPECT_EQ(s.nics + s.nvswitches, number_of(r.facts, "values="));
    }
    ++compared;
  }
  EXPECT_EQ(compared, 12U);
}

// ---- notes

namespace {

/// What a note says in words, as the finding that must say it too.
struct remark {
  const char* file;
  severity level;
  const char* what;
  const char* evidence = "";
  std::size_t things = 0;  ///< how many devices or cables it speaks of; 0 for any number
};

constexpr remark remarks[] = {
    // Roles and figures that nobody tells.
    {"nccl-xml/aws_g5_48xl.xml", severity::warning, "does not tell what the device is", "0000:00:16.0", 9},
    {"nccl-xml/aws_g5_48xl.xml", severity::note, "tells neither arch nor vendor", "line 13", 2},
    {"nccl-xml/aws_g5_48xl.xml", severity::note, "tells no affinity mask", "line 13", 2},
    {"nccl-xml/aws_p4d_24xl.xml", severity::note, "only the class tells that the device is an adapter", "", 4},
    {"nccl-xml/aws_p5_48xl_2023.xml", severity::warning, "does not tell what the device is", "0000:4f:00.0", 32},
    {"nccl-xml/aws_p5_48xl_2023.xml", severity::warning, "the PCIe link of a bridge is not told", "0000:45:00.0", 8},
    {"nccl-xml/aws_p5_48xl_2023.xml", severity::note, "\"32 GT/s PCIe/s\" is not spelt as any kernel does", "", 32},
    {"nccl-xml/aws_p5_48xl_2023.xml", severity::note, "tells no affinity mask", "", 2},
    {"nccl-xml/azure_ncv4_a100_pcie.xml", severity::warning, "nvlink of GPU 0 leads to the GPU itself", "count=\"12\""},
    {"nccl-xml/azure_ncv4_a100_pcie.xml", severity::warning, "the PCIe link is not told", "0001:00:00.0", 4},
    {"nccl-xml/azure_ndv2_v100.xml", severity::note, "only the class tells that the device is an adapter", "", 1},
    {"nccl-xml/azure_ndv4_a100.xml", severity::note, "only the class tells that the device is an adapter", "", 8},
    {"nccl-xml/azure_ndv4_a100_2023.xml", severity::warning, "all 4 <cpu> have the same affinity mask", "0000ffff"},
    {"nccl-xml/gb10_spark_trimmed.xml", severity::note, "tells no numaid", ""},
    {"nccl-xml/gb10_spark_trimmed.xml", severity::warning, "the PCIe link of a GPU tells 2.5 GT/s", "000f:01:00.0", 1},
    {"nccl-xml/ibm_gx3d_160x1792x8h100_vm.xml", severity::warning, "bridge speed not trusted: 2.5 GT/s x1", "", 8},
    {"nccl-xml/ibm_gx3d_160x1792x8h100_vm.xml", severity::warning, "the PCIe width is not told; taken as x16", "", 16},
    {"nccl-xml/oci_h100.xml", severity::note, "a bridge carries less than that of a device below it", "0000:08:00.0",
     8},
    {"hwloc-xml/hwloc_16intel64_manyVFs.xml", severity::note, "functions of an adapter without an interface", "", 12},
    {"hwloc-xml/hwloc_nvidia_dgx_gb10.xml", severity::note, "tells no I/O devices", ""},
    {"hwloc-xml/tuolumne_mi300a_cpx.xml", severity::note, "one GPU is run as 6 partitions", "", 4},
    {"hwloc-xml/sierra_p9_4v100.xml", severity::note, "is the memory of a GPU", "NUMA 252", 4},
    {"hwloc-xml/butte_broker0.xml", severity::warning, "a port is not active; it carries nothing", "mlx5_1 port 1", 2},
    // Fabrics.
    {"ib/iblinkinfo_line_variants.txt", severity::warning, "links run below what both their ends can do",
     "4x SDR, could be 12x QDR", 2},
    {"ib/ibnetdiscover_cs7500_edr_174sw_compact.txt", severity::note, "told by one of their ends only", "", 1644},
    {"ib/ibnetdiscover_dgxa100_8rail_2su.txt", severity::note, "1 line is no part of the listing", "line 1: "},
    {"ib/ibnetdiscover_p_test.txt", severity::note, "ports of switches have no partner", "port 37", 2},
    {"ib/ibnetdiscover_superbench_faked.txt", severity::note, "told by one of their ends only", "port 41"},
    {"ib/ibnetdiscover_topograph_ndr_dgx.txt", severity::note, "adapters inside switches", "", 40},
    {"ib/ibnetdiscover_topograph_ndr_dgx.txt", severity::note, "descriptions of adapters name no host", "", 72},
    {"ib/ibsim_net.txt", severity::note, "the width or speed of links is not told", "", 4},
    {"ib/ibtopotool_1.txt", severity::warning, "two ends of a cable tell different widths or speeds",
     "4x SDR and 1x SDR", 2},
    {"ib/ibtopotool_3.txt", severity::note, "1 line is no part of the listing", "src/query_smp.c"},
    {"ib/ibtopotool_3.txt", severity::warning, "leave and enter the same switch", "", 3},
    // Matrices and listings.
    {"nvsmi/nvlink_c_h800_capabilities.txt", severity::note, "GPUs are missing from the listing: 2, 3, 4, 5, 6", ""},
    {"nvsmi/topo_m_a100x4_numa_range.txt", severity::note, "a NUMA domain has no number", ""},
    {"nvsmi/topo_m_della_h100x8_6nic_blank_affinity.txt", severity::warning,
     "put devices of different NUMA domains into one", "GPU4 (NUMA 1 beside 0)", 4},
    {"nvsmi/topo_m_h200x8_shuffled_nics.txt", severity::note, "the legend does not name some adapters", "NIC0"},
    {"nvsmi/topo_m_x2_nv2.txt", severity::note, "a NUMA domain has no number", "GPU0"},
    {"nvsmi/topo_m_x4_nv8_17nic_ansi.txt", severity::note, "a NUMA domain has no number", "", 9},
    {"nvsmi/topo_m_x8_sys_all.txt", severity::warning, "SYS between devices that it puts into one NUMA domain", "", 6},
    {"nvsmi/topo_p2p_r_x2_cns.txt", severity::warning, "the chipset does not support peer access", "GPU0-GPU1"},
    {"nvsmi/topo_p2p_r_x8_cutlass.txt", severity::note, "the matrix of peer access tells no paths", ""},
    {"nvsmi/ppu_smi_topo_mp_po.txt", severity::warning, "SYS between devices that it puts into one NUMA domain", "", 2},
    // Machines.
    {"other/kfd_two_discrete_gpus.flat.txt", severity::warning, "an address is given to two devices", "0000:19:00.0"},
    {"other/kfd_mi308_34nodes.flat.txt", severity::note, "a GPU is partitioned", "(4)", 8},
    {"other/lspci_nn_azure_a100.txt", severity::warning, "does not tell what stands above the devices", ""},
    {"other/lspci_tv_h200_vm_flat.txt", severity::warning, "the tree tells no classes", "17 devices"},
    {"other/lspci_vvv_asus_4x6000ada_idle_downgraded.txt", severity::note, "which an idle GPU does to save power",
     "0000:01:00.0", 4},
    {"other/lspci_vvv_asus_4x6000ada_idle_downgraded.txt", severity::warning, "narrower than both ends can", "", 2},
    {"other/lspci_vvv_h100_hgx_links.txt", severity::note, "the PCIe port above can do more than the device in it",
     "0000:1b:00.0 Gen4 x16 of Gen5 x16", 12},
    {"other/sysfs_class_infiniband_h100.flat.txt", severity::note, "stands at its ceiling", "link_downed=255"},
    {"other/sysfs_power9_v100_gpu_numa_nodes.flat.txt", severity::note, "is the memory of a GPU", "NUMA domain 250", 6},
    // Schedulers.
    {"slurm/azure_topology_guids.conf", severity::note, "Switches holds neighbours here", ""},
    {"slurm/slurm_test133_case4.topology.conf", severity::note, "the switches form 2 parts", "at the top: "},
    {"slurm/superpod_2019.topology.conf", severity::warning, "stands for hosts that begin with 'n'",
     "circe-n[001-016],n[019-020]"},
    {"slurm/superpod_2019.topology.conf", severity::note, "the switches form 5 parts", ""},
};

}  // namespace

TEST_F(manifest, anomalies_in_the_notes_are_findings_with_the_same_devices) {
  std::string last;
  std::optional<tc::topo::graph> g;
  for (const remark& m : remarks) {
    SCOPED_TRACE(m.file);
    SCOPED_TRACE(m.what);
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const row& r) { return r.file == m.file; }));
    if (last != m.file) g = must(last = m.file);
    const tc::finding* f = found(*g, m.what);
    if (f == nullptr) {
      ADD_FAILURE() << "no finding says so";
      continue;
    }
    EXPECT_EQ(f->level, m.level);
    EXPECT_NE(f->evidence.find(m.evidence), std::string::npos) << f->evidence;
    if (m.things != 0) {
      EXPECT_EQ(things(f), m.things) << f->evidence;
    }
  }
}

TEST_F(manifest, figures_of_files_without_anomalies_are_not_doubted) {
  // Healthy by their notes: nothing worse than a note may be said of them.
  for (const char* file : {"nccl-xml/icx_2xa100pcie_nodeB_nic_x16.xml",
                           "nccl-xml/rccl_8p_940.xml",
                           "nccl-xml/superbench_ndv5_h100.xml",
                           "ib/ibnetdiscover_lab_4sw_ring.txt",
                           "ib/ibnetdiscover_cs7500_edr_10edge.txt",
                           "ib/ibtopotool_2.txt",
                           "ib/ibtopotool_4.txt",
                           "ib/iblinkinfo_qdr_partial.txt",
                           "nvsmi/nvlink_s_a100x8_ok.txt",
                           "nvsmi/nvlink_s_b300_7_of_8.txt",
                           "nvsmi/topo_m_hopper_x8_rail_aligned.txt",
                           "nvsmi/topo_m_polaris_a100x4.txt",
                           "nvsmi/topo_m_v100x8_2hca_ragged_tabs.txt",
                           "nvsmi/topo_m_v100x8_indented.txt",
                           "nvsmi/topo_m_x6_ansi_header.txt",
                           "nvsmi/rocm_smi_showtopo_mi3xx_x8.txt",
                           "other/kfd_mi210_xgmi_pcie.flat.txt",
                           "slurm/single_switch_no_newline.topology.conf",
                           "slurm/slurm_test133_case3.topology.conf",
                           "slurm/azure_slurm_topology.conf",
                           "slurm/topograph_oci_tree.topology.conf"}) {
    const auto g = must(file);
    for (const tc::finding& f : g.findings()) EXPECT_EQ(f.level, severity::note) << file << ": " << f.what;
  }
}

TEST_F(manifest, emulated_bridges_keep_their_figure_and_the_model_uses_another) {
  const auto g = must("nccl-xml/ibm_gx3d_160x1792x8h100_vm.xml");
  std::size_t bridges = 0, devices = 0;
  for (const tc::topo::link& l : connections(g)) {
    if (l.kind != link_kind::pcie) continue;
    const bool bridge = g.at(l.to).kind == node_kind::pcie_switch;
    (bridge ? bridges : devices) += 1;
    EXPECT_EQ(l.how, tc::trust::assumed) << g.at(l.to).key;
    EXPECT_NE(l.reason, "");
    EXPECT_EQ(l.generation, bridge ? 1U : 5U);
    EXPECT_EQ(l.lanes, bridge ? 1U : 0U);
    EXPECT_DOUBLE_EQ(l.capacity.value, 48e9);
  }
  EXPECT_EQ(bridges, 8U);
  EXPECT_EQ(devices, 16U);
}

TEST_F(manifest, a_gpu_that_tells_gen1_keeps_it_and_the_model_uses_another) {
  const auto g = must("nccl-xml/gb10_spark_trimmed.xml");
  const tc::topo::node& gpu = named(g, node_kind::gpu, "GPU 0");
  const tc::topo::link l = link_to(g, gpu.key);
  EXPECT_EQ(l.generation, 1U);
  EXPECT_EQ(l.lanes, 16U);
  EXPECT_EQ(l.how, tc::trust::assumed);
  EXPECT_DOUBLE_EQ(l.capacity.value, 12e9);
  EXPECT_EQ(fact(gpu, "gdr"), "0");
  for (const char* port : {"rocep1s0f0", "roceP2p1s0f0"})
    EXPECT_EQ(fact(named(g, node_kind::nic_port, port), "gdr"), "0");
  EXPECT_EQ(std::count_if(g.links().begin(), g.links().end(),
                          [](const tc::topo::link& x) { return x.kind == link_kind::c2c; }),
            2);
}

TEST_F(manifest, devices_that_only_have_a_place_are_kept_where_they_are) {
  // Eight bridges with four functions each, and no GPU.
  const auto p5 = must("nccl-xml/aws_p5_48xl_2023.xml");
  EXPECT_EQ(p5.all(node_kind::gpu).size() + p5.all(node_kind::nic).size(), 0U);
  ASSERT_EQ(p5.all(node_kind::pcie_switch).size(), 8U);
  for (const tc::node_id v : p5.all(node_kind::pcie_switch)) {
    std::size_t below = 0;
    for (const tc::link_id e : p5.out_links(v)) below += p5.at(p5.head(e)).kind == node_kind::pcie_device ? 1U : 0U;
    EXPECT_EQ(below, 4U);
  }
  // Bridges that the hypervisor made up, at addresses that no machine has.
  const auto nd = must("nccl-xml/azure_ndv4_a100.xml");
  for (const tc::node_id v : nd.all(node_kind::pcie_switch))
    EXPECT_NE(nd.at(v).key.find("/pci:ffff:ff:0"), std::string::npos);
  // An adapter without a place in the PCI tree.
  const auto nc = must("nccl-xml/azure_ncv4_a100_pcie.xml");
  const tc::topo::node& nic = named(nc, node_kind::nic, "eth0");
  EXPECT_FALSE(on_pci(nic));
  EXPECT_EQ(nc.at(link_to(nc, nic.key).from).kind, node_kind::cpu);
  // Class codes alone: NVSwitch chips and virtual functions.
  const auto vm = must("other/lspci_nn_azure_a100.txt");
  const auto called = [&](const char* start) {
    return std::count_if(vm.nodes().begin(), vm.nodes().end(),
                         [&](const tc::topo::node& n) { return on_pci(n) && n.name.rfind(start, 0) == 0; });
  };
  EXPECT_EQ(vm.all(node_kind::gpu).size(), 8U);
  EXPECT_EQ(called("NVSwitch "), 6);
  EXPECT_EQ(called("NIC "), 9) << "eight InfiniBand functions and one of Ethernet";
}

TEST_F(manifest, twins_are_compared_by_what_differs) {
  const auto a = must("nccl-xml/icx_2xa100pcie_nodeA_nic_x8.xml");
  const auto b = must("nccl-xml/icx_2xa100pcie_nodeB_nic_x16.xml");
  const auto d = tc::topo::diff(a, b);
  ASSERT_EQ(d.findings.size(), 1U);
  EXPECT_EQ(d.findings[0].level, severity::warning);
  EXPECT_NE(d.findings[0].what.find("Gen4 x8"), std::string::npos) << d.findings[0].what;
  EXPECT_NE(d.findings[0].what.find("Gen4 x16"), std::string::npos) << d.findings[0].what;
  for (const auto* g : {&a, &b})
    for (const tc::topo::link& l : g->links()) EXPECT_NE(l.kind, link_kind::nvlink);
  const auto v2 = must("hwloc-xml/hwloc_cxlmem_dax_v2.xml");
  const auto v3 = must("hwloc-xml/hwloc_cxlmem_dax_v3.xml");
  EXPECT_TRUE(tc::topo::diff(v2, v3).findings.empty()) << "one machine in two versions of the schema";
}

TEST_F(manifest, adapters_out_of_order_are_given_to_the_gpus_that_are_near) {
  std::size_t compared = 0;
  for (const row& r : rows) {
    const auto at = r.notes.find("best NIC per GPU: ");
    if (at == std::string::npos) continue;
    const auto g = must(r.file);
    const std::string list = r.notes.substr(at + 18, std::min(r.notes.find(';', at), r.notes.size()) - at - 18);
    for (const tc::topo::gpu_affinity& a : tc::topo::affinity_of(g).gpus) {
      const std::string pair =
          std::to_string(*g.at(a.gpu).index) + "->" + (a.chosen ? std::to_string(*g.at(*a.chosen).index) : "none");
      EXPECT_NE((' ' + list + ' ').find(' ' + pair + ' '), std::string::npos) << pair;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8U);
}

TEST_F(manifest, asymmetries_of_matrices_are_in_the_graph) {
  const auto unaffiliated = [](const tc::topo::graph& g) {
    std::set<std::uint32_t> some;
    for (const tc::node_id v : tc::topo::affinity_of(g).unaffiliated) some.insert(*g.at(v).index);
    return some;
  };
  const auto gpus = [](const tc::topo::graph& g, const char* name) {
    std::vector<std::string> all;
    for (const tc::node_id v : g.all(node_kind::gpu)) all.push_back(fact(g.at(v), name));
    return all;
  };
  const auto domains = [](const tc::topo::graph& g) {
    std::vector<std::uint32_t> all;
    for (const tc::node_id v : g.all(node_kind::gpu)) all.push_back(g.at(v).numa.value_or(999));
    return all;
  };
  const auto nps4 = must("nvsmi/topo_m_a100x8_10nic_npS4.txt");
  EXPECT_EQ(domains(nps4), (std::vector<std::uint32_t>{3, 3, 1, 1, 7, 7, 5, 5}));
  EXPECT_EQ(unaffiliated(nps4), (std::set<std::uint32_t>{8, 9}));
  const auto polaris = must("nvsmi/topo_m_polaris_a100x4.txt");
  EXPECT_EQ(domains(polaris), (std::vector<std::uint32_t>{3, 2, 1, 0}));
  EXPECT_EQ(domains(must("nvsmi/topo_m_ac922_v100x4_6hca.txt")), (std::vector<std::uint32_t>{0, 0, 8, 8}));
  const auto container = must("nvsmi/topo_m_x4_nv8_17nic_ansi.txt");
  EXPECT_GE(unaffiliated(container).size(), 1U);
  for (const auto& a : tc::topo::affinity_of(container).gpus) EXPECT_EQ(a.nearest.size(), 2U);
  const auto cgroup = must("nvsmi/topo_m_della_h100x8_6nic_blank_affinity.txt");
  EXPECT_EQ(gpus(cgroup, "cpu_affinity"), (std::vector<std::string>{"", "", "", "", "1", "1", "1", "1"}));
  EXPECT_EQ(cgroup.all(node_kind::cpu).size(), 2U) << "no SYS between devices, whatever the affinity says";
  EXPECT_EQ(gpus(must("nvsmi/topo_m_a100x4_numa_range.txt"), "numa_affinity"), (std::vector<std::string>(4, "0-3")));
  EXPECT_EQ(gpus(must("nvsmi/topo_m_p40x8_soc.txt"), "cpu_affinity"), (std::vector<std::string>(8, "0-13")));
  // NVLink pairs that span NUMA domains.
  const auto bridges = must("nvsmi/topo_m_x4_nv12_pairs_4numa.txt");
  for (const tc::topo::link& l : bridges.links())
    if (l.kind == link_kind::nvlink) {
      EXPECT_NE(bridges.at(l.from).numa, bridges.at(l.to).numa);
    }
  const auto bonds = must("nvsmi/topo_m_single_gpu_container_5bond.txt");
  for (int i = 0; i < 5; ++i) named(bonds, node_kind::nic_port, "mlx5_bond_" + std::to_string(i));
}

TEST_F(manifest, links_of_a_listing_have_the_figures_of_its_notes) {
  const auto hgx = must("other/lspci_vvv_h100_hgx_links.txt");
  for (const tc::node_id v : hgx.all(node_kind::gpu)) {
    const tc::topo::link l = link_to(hgx, hgx.at(v).key);
    EXPECT_EQ(std::make_pair(l.generation, l.lanes), std::make_pair(5U, 16U)) << hgx.at(v).key;
    EXPECT_EQ(l.how, tc::trust::derived);
  }
  // Below the root port 80:01.0, x2 of x16.
  EXPECT_EQ(link_to(hgx, "localhost/pci:0000:81:00.0").lanes, 2U);
  for (const char* slow : {"localhost/pci:0000:1b:00.0", "localhost/pci:0000:9d:00.0"})
    EXPECT_EQ(link_to(hgx, slow).generation, 4U);
  const auto idle = must("other/lspci_vvv_asus_4x6000ada_idle_downgraded.txt");
  for (const tc::node_id v : idle.all(node_kind::gpu)) {
    const tc::topo::link l = link_to(idle, idle.at(v).key);
    EXPECT_DOUBLE_EQ(l.current->value, 4e9);
    EXPECT_DOUBLE_EQ(l.capacity.value, 24e9) << "Gen4 x16, as the card can";
  }
  // Adapters keep their names although numbers are missing.
  const auto ports = must("other/sysfs_class_infiniband_h100.flat.txt");
  EXPECT_EQ(fact(named(ports, node_kind::nic_port, "mlx5_bond_0"), "layer"), "Ethernet");
  for (const tc::topo::node& n : ports.nodes()) EXPECT_TRUE(n.name != "mlx5_2" && n.name != "mlx5_3");
}

TEST_F(manifest, uneven_cabling_is_found_by_the_check) {
  const auto g = must("ib/ibnetdiscover_topograph_ndr_dgx.txt");
  std::size_t single = 0;
  for (const tc::finding& f : tc::topo::check(g))
    single += f.what.find("are joined by 1 cable, 263 of 269 pairs by 2") != std::string::npos ? 1U : 0U;
  EXPECT_EQ(single, 6U);
  // Regular fabrics are not blamed.
  for (const char* file : {"ib/ibnetdiscover_dgxa100_8rail_2su.txt", "ib/ibnetdiscover_lab_4sw_ring.txt"}) {
    const auto regular = must(file);
    for (const tc::finding& f : tc::topo::check(regular)) EXPECT_NE(f.level, severity::fault) << file << f.what;
  }
}

TEST_F(manifest, refusals_say_what_the_notes_say) {
  const auto reason = [&](const std::string& file) {
    const auto fragment = tc::from_file((root / file).string());
    return fragment ? std::string("read") : fragment.error().what;
  };
  EXPECT_NE(reason("nccl-xml/h200_baremetal_unterminated.xml").find("the last element that began is <nic>"),
            std::string::npos);
  const std::map<std::string, std::string> words = {{"block blocks not list", "'blocks' is a text, not a list"},
                                                    {"flat bool mutually exclusive", "'block' and 'flat'"},
                                                    {"root not list", "not a list of topologies"},
                                                    {"torus3d regions not list", "'regions' is a text, not a list"},
                                                    {"torus bad options", "places, but 8 nodes"},
                                                    {"tree mutually exclusive", "'block' and 'tree'"}};
  std::size_t refused = 0;
  for (const row& r : rows) {
    const std::string start = "NEGATIVE: must be rejected: ";
    if (r.notes.rfind(start, 0) != 0) continue;
    const auto word = words.find(r.notes.substr(start.size()));
    ASSERT_NE(word, words.end()) << r.notes;
    EXPECT_NE(reason(r.file).find(word->second), std::string::npos) << reason(r.file);
    ++refused;
  }
  EXPECT_EQ(refused, 6U);
}
