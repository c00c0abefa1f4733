// SPDX-License-Identifier: Apache-2.0
#pragma once
// What nearly every command uses is compiled once, in shared_topology.cpp: reading topologies is a third of the program.
// Without these lines the program is the same, and takes a compiler three times as long.
#include <topocoll/app/options.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/topo/text.hpp>

extern template std::optional<int> topocoll::app::parse<void>(CLI::App&, std::span<const std::string_view>,
                                                              topocoll::app::sink, topocoll::app::sink);
extern template topocoll::result<topocoll::topo::graph> topocoll::app::read_topology<void>(
    const topocoll::app::topology_input&);
extern template topocoll::result<topocoll::io::json> topocoll::io::parse_json<void>(std::string_view, std::string_view,
                                                                                    std::size_t);
extern template std::string topocoll::io::to_text<void>(const topocoll::io::json&);
extern template std::string topocoll::topo::to_text<void>(const topocoll::topo::graph&,
                                                          const topocoll::topo::text_options&);
