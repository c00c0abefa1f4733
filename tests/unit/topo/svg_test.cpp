// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/nccl_xml.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/topo/svg.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;
namespace fs = std::filesystem;
using tc::topo::link_kind;
using tc::topo::node_kind;

namespace {

tc::topo::graph frozen(tc::result<tc::topo::fragment> f) {
  EXPECT_TRUE(f) << (f ? "" : f.error().message());
  auto g = f ? tc::topo::graph::from(std::move(*f)) : tc::result<tc::topo::graph>(tc::topo::graph{});
  EXPECT_TRUE(g) << (g ? "" : g.error().message());
  return g ? std::move(*g) : tc::topo::graph{};
}
tc::topo::graph described(std::string_view spec) { return frozen(tc::describe(spec)); }

struct rectangle {
  double left, top, right, bottom;
  std::string what;
};
double number(const tc::io::xml_element& e, std::string_view name) {
  const std::string* value = e.find(name);
  return value ? std::strtod(value->c_str(), nullptr) : 0;
}
void collect(const tc::io::xml_element& e, const std::string& name, std::vector<const tc::io::xml_element*>& found) {
  if (e.name == name) found.push_back(&e);
  for (const auto& child : e.children) collect(child, name, found);
}
std::vector<const tc::io::xml_element*> all(const tc::io::xml_element& root, const std::string& name) {
  std::vector<const tc::io::xml_element*> found;
  collect(root, name, found);
  return found;
}
tc::io::xml_element parsed(const std::string& svg) {
  auto root = tc::io::parse_xml(svg, "picture");
  EXPECT_TRUE(root) << (root ? "" : root.error().message());
  return root ? *root : tc::io::xml_element{};
}

// Where a text stands: widths of letters are those of Helvetica's metrics, rounded up to the widest of each sort, so
// another table than the one that the picture is laid out by.
double independent_width(const std::string& text, double size, bool bold) {
  double ems = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0U) == 0x80) continue;
    if (std::string_view("ijlI.,:;|' ").find(c) != std::string_view::npos)
      ems += 0.32;
    else if (std::string_view("mwMW%@").find(c) != std::string_view::npos)
      ems += 0.9;
    else if (c >= 'A' && c <= 'Z')
      ems += 0.7;
    else
      ems += 0.56;
  }
  return ems * size * (bold ? 1.06 : 1);
}
std::vector<rectangle> texts(const tc::io::xml_element& root) {
  std::vector<rectangle> found;
  for (const auto* t : all(root, "text")) {
    const double size = number(*t, "font-size");
    const double w = independent_width(t->text, size, t->find("font-weight") != nullptr);
    const std::string* where = t->find("text-anchor");
    const double x = number(*t, "x") - (!where ? 0 : *where == "middle" ? w / 2 : w);
    // Ascent and descent of sans-serif fonts, without the room for accents.
    found.push_back({x, number(*t, "y") - 0.75 * size, x + w, number(*t, "y") + 0.22 * size, t->text});
  }
  return found;
}
void expect_texts_apart(const std::string& svg, const std::string& who) {
  const tc::io::xml_element root = parsed(svg);
  const std::vector<rectangle> r = texts(root);
  const double width = number(root, "width");
  const double height = number(root, "height");
  for (std::size_t i = 0; i < r.size(); ++i) {
    EXPECT_GE(r[i].left, 0) << who << ": " << r[i].what;
    EXPECT_GE(r[i].top, 0) << who << ": " << r[i].what;
    EXPECT_LE(r[i].right, width) << who << ": " << r[i].what;
    EXPECT_LE(r[i].bottom, height) << who << ": " << r[i].what;
    for (std::size_t k = 0; k < i; ++k) {
      const bool apart =
          r[i].right <= r[k].left || r[k].right <= r[i].left || r[i].bottom <= r[k].top || r[k].bottom <= r[i].top;
      EXPECT_TRUE(apart) << who << ": '" << r[i].what << "' over '" << r[k].what << "'";
    }
  }
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

const std::vector<std::string> specs{
    "dgx-h100",
    "dgx-1v",
    "dgx-a100",
    "hgx-b200:detail=full",
    "pcie",
    "pcie:gpus=10,nics=3",
    "pcie:gpus=1,gpus_per_switch=1,nics=0",
    "gb200-nvl72",
    "gb200-nvl72:nodes=144,detail=full",
    "dgx-h100:nodes=2",
    "dgx-h100:nodes=7,leaves=3",
    "dgx-h100:nodes=16,leaves=8",
    "dgx-h100:nodes=16,leaves=8,slow=node3/nic2:0.5,missing=leaf1/spine0,unplugged=node7/nic0,nvlinks_down=node5/"
    "gpu1:4",
    "dgx-h100:nodes=33,leaves=8,detail=full",
    "dgx-h100:nodes=128,pods=4,cores=8",
    "dgx-h100:nodes=1000",
    "dgx-h100:nodes=1000,pods=8,slow=node3/nic2:0.5,missing=node77/nic1",
};

}  // namespace

TEST(svg, is_one_self_contained_xml_text) {
  for (const std::string& spec : specs) {
    const std::string svg = to_svg(described(spec));
    const tc::io::xml_element root = parsed(svg);
    EXPECT_EQ(root.name, "svg");
    ASSERT_NE(root.find("xmlns"), nullptr);
    EXPECT_EQ(*root.find("xmlns"), "http://www.w3.org/2000/svg");
    for (const char* outside :
         {"<script", "<style", "<image", "<use", "href", "@import", "url(", "onload", "<foreignObject"})
      EXPECT_FALSE(has(svg, outside)) << spec << " " << outside;
    EXPECT_FALSE(has(svg, "nan")) << spec;
    EXPECT_FALSE(has(svg, "inf\"")) << spec;
  }
}

TEST(svg, has_no_text_over_another_or_off_the_page) {
  for (const std::string& spec : specs) expect_texts_apart(to_svg(described(spec)), spec);
}

TEST(svg, stays_below_300_kilobytes) {
  for (const std::string& spec : specs) EXPECT_LT(to_svg(described(spec)).size(), 300000u) << spec;
  EXPECT_LT(to_svg(described("dgx-h100:nodes=4096,pods=32,cores=64")).size(), 300000u);
}

TEST(svg, shows_every_gpu_and_adapter_of_a_host) {
  const std::string svg = to_svg(described("dgx-h100"));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(count(svg, ">GPU " + std::to_string(i) + "</text>"), 1u) << i;
    EXPECT_EQ(count(svg, ">mlx5_" + std::to_string(i) + "</text>"), 1u) << i;
  }
  EXPECT_EQ(count(svg, ">18 x</text>"), 8u);
  EXPECT_TRUE(has(svg, "450 GB/s each way"));
  EXPECT_TRUE(has(svg, "PCIe switch"));
}

TEST(svg, draws_an_arc_for_each_pair_of_gpus_that_is_wired) {
  EXPECT_EQ(count(to_svg(described("dgx-1v")), "<path"), 16u);
  EXPECT_EQ(count(to_svg(described("dgx-h100")), "<path"), 0u);
}

TEST(svg, draws_every_host_switch_and_cable_of_a_small_fabric) {
  const std::string svg = to_svg(described("dgx-h100:nodes=16,leaves=8"));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(count(svg, ">node" + std::to_string(i) + "</text>"), 1u) << i;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(count(svg, ">leaf " + std::to_string(i) + "</text>"), 1u) << i;
  std::size_t cables = 0;
  const tc::io::xml_element root = parsed(svg);
  for (const auto* l : all(root, "line"))
    for (const auto& child : l->children) cables += has(child.text, "1 cable") ? 1 : 0;
  EXPECT_EQ(cables, 16u * 8 + 8 * 16);  // each host to each leaf, each leaf to each spine
}

TEST(svg, sums_up_hosts_that_are_alike_and_leaves_the_odd_one_alone) {
  const std::string svg = to_svg(described("dgx-h100:nodes=1000,pods=8,slow=node3/nic2:0.5"));
  EXPECT_TRUE(has(svg, ">124 hosts</text>"));
  EXPECT_EQ(count(svg, ">125 hosts</text>"), 7u);
  EXPECT_TRUE(has(svg, ">node3</text>"));
  EXPECT_TRUE(has(svg, ">1 below best or dead</text>"));
  EXPECT_FALSE(has(svg, ">node4</text>"));
}

TEST(svg, says_with_colour_and_dashes_what_is_wrong) {
  tc::topo::fragment f;
  const auto add = [&](node_kind kind, const std::string& key) {
    tc::topo::node n;
    n.kind = kind;
    n.key = "h/" + key;
    n.name = key;
    n.host = "h";
    return f.add(std::move(n));
  };
  const tc::node_id cpu = add(node_kind::cpu, "numa:0");
  const auto gpu = [&](const std::string& key, double nominal, double current, double capacity, tc::trust how) {
    tc::topo::link l;
    l.from = cpu;
    l.to = add(node_kind::gpu, key);
    l.kind = link_kind::pcie;
    l.nominal = tc::bytes_per_second{nominal};
    if (current > 0) l.current = tc::bytes_per_second{current};
    l.capacity = {capacity};
    l.how = how;
    l.reason = "because";
    f.join(l);
  };
  gpu("best", 64e9, 64e9, 48e9, tc::trust::derived);
  gpu("smaller", 32e9, 32e9, 24e9, tc::trust::derived);
  gpu("trained low", 64e9, 16e9, 12e9, tc::trust::derived);
  gpu("idle", 64e9, 4e9, 48e9, tc::trust::assumed);
  gpu("dead", 64e9, 0, 0, tc::trust::reported);
  const std::string svg = to_svg(frozen(std::move(f)));
  const tc::io::xml_element root = parsed(svg);
  const auto look = [&](const std::string& name) {
    for (const auto* l : all(root, "line"))
      for (const auto& child : l->children)
        if (has(child.text, "- " + name + "\n")) {
          const std::string* dashes = l->find("stroke-dasharray");
          return *l->find("stroke") + (dashes ? " " + *dashes : "");
        }
    return std::string("absent");
  };
  EXPECT_EQ(look("best"), "#0072B2");
  EXPECT_EQ(look("smaller"), "#56B4E9");
  EXPECT_EQ(look("trained low"), "#D55E00");
  EXPECT_EQ(look("idle"), "#7F7F7F 5 3");
  EXPECT_EQ(look("dead"), "#D55E00 1.5 3.5");
  EXPECT_TRUE(has(svg, "models use: 12.0 GB/s\nderived: because")) << svg;
}

TEST(svg, escapes_whatever_names_hold) {
  tc::topo::fragment f;
  f.source = "a <b> & \"c\" 'd' \x01 \xff \xc3\xa9 \xed\xa0\x80 \xef\xbf\xbf";
  tc::topo::node n;
  n.kind = node_kind::gpu;
  n.key = "h<&>/gpu:0";
  n.name = "<gpu> & \"x\" ]]>";
  n.host = "h<&>";
  f.add(n);
  const tc::io::xml_element root = parsed(to_svg(frozen(std::move(f))));
  ASSERT_EQ(root.children.front().name, "title");
  EXPECT_EQ(root.children.front().text, "a <b> & \"c\" 'd'   ? \xc3\xa9 ??? ???");
}

TEST(svg, of_an_empty_graph_says_so) {
  const std::string svg = to_svg(tc::topo::graph{});
  parsed(svg);
  EXPECT_TRUE(has(svg, ">nothing</text>"));
}

TEST(svg, of_long_names_stays_readable) {
  tc::topo::fragment f;
  const std::string host(300, 'W');
  for (int i = 0; i < 20; ++i) {
    tc::topo::node n;
    n.kind = i < 10 ? node_kind::gpu : node_kind::nic;
    n.key = host + "/net:" + std::to_string(i);
    n.name = std::string(200, 'M') + std::to_string(i);
    n.host = host;
    f.add(n);
  }
  tc::finding broken;
  broken.level = tc::severity::fault;
  broken.what = std::string(2000, 'm');
  f.findings.push_back(broken);
  const std::string svg = to_svg(frozen(std::move(f)));
  expect_texts_apart(svg, "long names");
  EXPECT_LT(number(parsed(svg), "width"), 4000);
}

TEST(svg, of_every_topology_of_the_corpus_is_valid_and_readable) {
  const char* named = std::getenv("TOPOCOLL_CORPUS");
  if (named == nullptr || !fs::is_directory(fs::path(named) / "corpus/nccl-xml"))
    GTEST_SKIP() << "TOPOCOLL_CORPUS names no folder with corpus/nccl-xml";
  std::size_t drawn = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(named) / "corpus/nccl-xml")) {
    auto fragment = tc::nccl_xml(entry.path().string()).read({});
    if (!fragment) continue;
    const std::string svg = to_svg(frozen(std::move(fragment)));
    expect_texts_apart(svg, entry.path().filename().string());
    EXPECT_LT(svg.size(), 300000u) << entry.path();
    ++drawn;
  }
  EXPECT_GT(drawn, 0u);
}

TEST(svg_text_width, is_not_below_what_helvetica_needs) {
  // Advance widths of Adobe's Helvetica metrics, in thousandths.
  const std::vector<std::pair<std::string, double>> samples{{"GPU", 778 + 667 + 722},
                                                            {"mlx5_0", 833 + 222 + 500 + 556 + 556 + 556},
                                                            {"400 Gb/s", 3 * 556 + 278 + 778 + 556 + 278 + 500},
                                                            {"0000:1b:00.0", 9 * 556 + 2 * 278 + 278},
                                                            {"Wmm", 944 + 833 + 833}};
  for (const auto& [text, width] : samples) EXPECT_GE(tc::topo::detail::text_width(text, 1000), width) << text;
}

TEST(svg_fitted, is_cut_between_letters_and_fits) {
  const std::string text = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
  for (double room = 12; room < 120; room += 1) {
    const std::string cut = tc::topo::detail::fitted(text, room, 10);
    EXPECT_LE(tc::topo::detail::text_width(cut, 10), std::max(room, 10.0)) << room;
    EXPECT_EQ(tc::topo::detail::xml_escaped(cut), cut) << room;  // no half letters
  }
}

TEST(svg_shortened, keeps_both_ends_whole_letters_and_fits) {
  EXPECT_EQ(tc::topo::detail::shortened("node7", 100, 10), "node7");
  const std::string name =
      "\xc3\xa9"
      "rack-a09-leaf-switch-17\xc3\xa9";
  for (double room = 12; room < 140; room += 1) {
    const std::string cut = tc::topo::detail::shortened(name, room, 10);
    EXPECT_LE(tc::topo::detail::text_width(cut, 10), std::max(room, 10.0)) << room;
    EXPECT_EQ(tc::topo::detail::xml_escaped(cut), cut) << room;
    if (room < 40) continue;
    EXPECT_EQ(cut.substr(0, 3), name.substr(0, 3)) << room;
    EXPECT_EQ(cut.substr(cut.size() - 3), name.substr(name.size() - 3)) << room;
  }
}
