// SPDX-License-Identifier: Apache-2.0
#include "shared_topology.hpp"

template std::optional<int> topocoll::app::parse<void>(CLI::App&, std::span<const std::string_view>,
                                                       topocoll::app::sink, topocoll::app::sink);
template topocoll::result<topocoll::topo::graph> topocoll::app::read_topology<void>(
    const topocoll::app::topology_input&);
template topocoll::result<topocoll::io::json> topocoll::io::parse_json<void>(std::string_view, std::string_view,
                                                                             std::size_t);
template std::string topocoll::io::to_text<void>(const topocoll::io::json&);
template std::string topocoll::topo::to_text<void>(const topocoll::topo::graph&, const topocoll::topo::text_options&);
