// SPDX-License-Identifier: Apache-2.0
#pragma once
// A topology graph as a picture that every browser shows: the fabric in tiers, hosts as nested boxes.
#include <cstddef>
#include <string>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

/// How much the picture shows.
struct svg_options {
  std::string title;         ///< headline; empty: where the graph comes from
  std::size_t boxes = 32;    ///< hosts or switches of one tier that are drawn one by one; more are summed up
  std::size_t cables = 640;  ///< connections between tiers that are drawn one by one; more are summed up
  std::size_t shapes = 3;    ///< hosts of different shape whose inside is drawn
  std::size_t findings = 6;  ///< warnings and faults that are listed
};

/// The graph as one SVG text without scripts, styles, fonts or references to anything outside.
///
/// Lines are as wide as their capacity (by its logarithm) and coloured by what is wrong with them, in colours that the
/// colour-blind tell apart, with other dashes too: blue for the fastest of their kind, light blue for slower ones, grey
/// dashes for assumed rates, vermilion for what runs below its best, vermilion dots for what is dead. Every box and line
/// has an SVG title (shown when pointed at) with its figures, trust and reason.
///
/// Switches and hosts that are alike, down to their neighbours, become one box with their number when there are more than
/// fit; so a fault in a thousand hosts stands out as the host, leaf and cables that are not like the others. The text stays
/// below 300 kB for up to `boxes` and `cables` as given here.
/// Cost: O((n + m) log n) for each of at most eight rounds of sorting alike from unlike.
template <class = void>
[[nodiscard]] std::string to_svg(const graph& g, const svg_options& options = {});

}}}  // namespace topocoll::v0::topo

#include <topocoll/topo/detail/svg_picture.hpp>
