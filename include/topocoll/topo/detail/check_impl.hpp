// SPDX-License-Identifier: Apache-2.0
#pragma once
// How topo/check.hpp goes about it: links, hosts, tiers, rails, ratios.
#include <string>
#include <utility>
#include <vector>
#include <topocoll/topo/check.hpp>
#include <topocoll/topo/detail/check_context.hpp>
#include <topocoll/topo/detail/check_fabric.hpp>
#include <topocoll/topo/detail/check_hosts.hpp>
#include <topocoll/topo/detail/check_rails.hpp>
#include <topocoll/topo/detail/check_ratios.hpp>

namespace topocoll { inline namespace v0 { namespace topo {

template <class>
std::vector<finding> check(const graph& g, const check_options& options) {
  detail::sameness::check_context c(g, options);
  detail::sameness::check_links(c);
  detail::sameness::host_checker<>(c).run();
  detail::sameness::fabric_checker<> fabric(c);
  if (fabric.has_network()) {
    fabric.tiers();
    detail::sameness::rail_checker<>(c, fabric).run();
    detail::sameness::ratio_checker<>(c, fabric.loads()).run();
  }
  for (const detail::sameness::sort_of_finding& sort : c.sorts)
    if (sort.unsaid != 0)
      c.findings.push_back({severity::warning, "network",
                            std::to_string(sort.unsaid) + " more findings of the sort '" + std::string(sort.name) +
                                "' are not written out",
                            "", "raise most_named to see them all", 1});
  return std::move(c.findings);
}

}}}  // namespace topocoll::v0::topo
