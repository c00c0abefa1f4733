// SPDX-License-Identifier: Apache-2.0
// A type that lacks part of a seam is told which part, in a sentence.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <topocoll/discover/source.hpp>
#include <topocoll/exec/transport.hpp>
#include <topocoll/topo/concepts.hpp>

namespace tc = topocoll;

struct source {
  std::string_view name();
  tc::result<tc::topo::fragment> read(const tc::discover_options& options);
};
static_assert((tc::require_topology_source<source>(), true));

#ifdef SECTION_SOURCE_WITHOUT_NAME
// expect: a TopologySource has name\(\) giving a text
struct nameless {
  tc::result<tc::topo::fragment> read(const tc::discover_options& options);
};
template void tc::require_topology_source<nameless>();
#endif

#ifdef SECTION_SOURCE_THAT_CANNOT_FAIL
// expect: a TopologySource has read\(const discover_options&\) returning result<topo::fragment>
struct certain {
  std::string_view name();
  tc::topo::fragment read(const tc::discover_options& options);
};
template void tc::require_topology_source<certain>();
#endif

#ifdef SECTION_TRANSPORT_THAT_IS_A_NUMBER
// expect: a Transport has rank\(\) const returning rank_id
template void tc::require_transport<int>();
#endif

#ifdef SECTION_TRANSPORT_WITHOUT_DEADLINE
// expect: a Transport has wait_any
struct patient {
  tc::rank_id rank() const;
  std::uint32_t size() const;
  std::uint32_t channels() const;
  tc::result<tc::ticket> post(std::span<const tc::outgoing> out, std::span<const tc::incoming> in);
  tc::result<std::size_t> wait_any(std::span<const tc::ticket> pending);  // no deadline
  void abort(const std::string& why) noexcept;
};
template void tc::require_transport<patient>();
#endif

#ifdef SECTION_GRAPH_WITH_PLAIN_NUMBERS
// expect: a LinkGraph has head\(link_id\) const returning node_id
struct numbered {
  std::size_t node_count() const;
  std::size_t link_count() const;
  std::span<const tc::link_id> out_links(tc::node_id v) const;
  std::uint32_t head(tc::link_id e) const;
  tc::bytes_per_second capacity(tc::link_id e) const;
};
template void tc::topo::require_link_graph<numbered>();
#endif
