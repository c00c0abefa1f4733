// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <topocoll/discover/discover.hpp>
#include <gtest/gtest.h>

namespace tc = topocoll;

namespace {

// A source that tells of one GPU with one fact, at a given trust.
struct one_gpu {
  std::string address;
  std::string fact;
  [[nodiscard]] std::string name() const { return "one-gpu " + fact; }
  [[nodiscard]] tc::result<tc::topo::fragment> read(const tc::discover_options& o) const {
    tc::topo::fragment f;
    f.source = name();
    tc::topo::node n;
    n.kind = tc::topo::node_kind::gpu;
    n.key = o.host + "/pci:" + address;
    n.host = o.host;
    n.facts = {{fact, "1"}};
    f.add(n);
    f.findings.push_back({tc::severity::note, address, "seen by " + fact, {}, {}, 1});
    return f;
  }
};
struct nothing {
  [[nodiscard]] static const char* name() { return "nothing"; }
  [[nodiscard]] static tc::result<tc::topo::fragment> read(const tc::discover_options&) {
    return tc::fail(tc::errc::unavailable, "the library is not here", "install it");
  }
};
static_assert(tc::TopologySource<one_gpu> && tc::TopologySource<nothing>);

}  // namespace

TEST(discover, joins_what_sources_tell_about_one_device) {
  const auto d = tc::discover({.host = "a"}, one_gpu{"0000:01:00.0", "x"}, one_gpu{"0000:01:00.0", "y"},
                              one_gpu{"0000:02:00.0", "x"});
  ASSERT_TRUE(d) << d.error().message();
  EXPECT_EQ(d->graph.node_count(), 2U);
  EXPECT_EQ(d->graph.at(*d->graph.find("a/pci:0000:01:00.0")).facts.size(), 2U);
  EXPECT_EQ(d->findings.size(), 3U);
}

TEST(discover, turns_a_refusal_into_a_finding_when_another_source_answers) {
  const auto d = tc::discover({}, nothing{}, one_gpu{"0000:01:00.0", "x"});
  ASSERT_TRUE(d);
  ASSERT_EQ(d->findings.size(), 2U);
  EXPECT_EQ(d->findings[1].where, "nothing");
  EXPECT_EQ(d->findings[1].level, tc::severity::warning);
  EXPECT_EQ(d->findings[1].what, "the source could tell nothing: the library is not here");
  EXPECT_EQ(d->findings[1].next_step, "install it");
}

TEST(discover, fails_with_all_reasons_when_no_source_answers) {
  const auto d = tc::discover({}, nothing{}, nothing{});
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, tc::errc::unavailable);
  EXPECT_EQ(d.error().what, "the library is not here; nothing: the library is not here");
}

TEST(join_fragments, of_nothing_is_a_failure) {
  EXPECT_EQ(tc::join_fragments({}).error().code, tc::errc::invalid_argument);
}
