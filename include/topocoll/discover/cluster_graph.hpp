// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what a hand-written cluster file says into a fragment of the topology graph.
#include <string>
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/cluster_file.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// How the topology files that a cluster file names are read: as `from_text`. Hosts get their names by `options.host`.
using host_text_reader = result<topo::fragment> (*)(std::string_view text, const std::string& file,
                                                    const discover_options& options);

/// Hosts, switches ("switch:<name>") and cables of a cluster file.
///
/// Hosts of a model are built as `describe` does; those with a file as `read_host` tells; others get adapters of the given
/// names ("<host>/net:<name>/1"), or unnamed ones ("<host>/net:?/1", fact "stand_in"). A switch above which nothing else
/// is told is as fast upwards as the stated oversubscription allows, or as all that hangs below it, which is assumed. Stated
/// and derived oversubscription that differ by more than one percent, stated and derived tiers that differ, exceptions and
/// unplugged parts are findings. Leaves carry the facts "oversubscription" (three digits, as cabled) and, when all their
/// adapters have one position, "rail".
/// @param file  name for failures; files of hosts are looked for beside it
/// @param read_host  null: hosts with a file are refused
/// @return `malformed_input` with file and line for a leaf or switch that nobody defines, cables that run in a circle,
///         adapters and leaves that do not match, an exception or correction about what is not there; `unsupported` for more
///         than `read::most_cluster_parts` nodes or links; what models and files of hosts are refused for. Cost: O(n log n).
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::cluster_file& cluster, const discover_options& options,
                                                 const std::string& file, host_text_reader read_host = nullptr);

}}  // namespace topocoll::v0

#include <topocoll/discover/detail/cluster_build.hpp>
