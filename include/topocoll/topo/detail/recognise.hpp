// SPDX-License-Identifier: Apache-2.0
#pragma once
// All steps that give a device the same key in every fragment, in their order.
#include <vector>
#include <topocoll/topo/detail/identify.hpp>
#include <topocoll/topo/detail/identify_devices.hpp>
#include <topocoll/topo/detail/identify_hosts.hpp>
#include <topocoll/topo/detail/pcie_parents.hpp>
#include <topocoll/topo/detail/stand_ins.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

/// Copies of the fragments with one key for each device, as far as it can be recognised.
/// Precondition: the fragments are sound, and in canonical order.
template <class = void>
[[nodiscard]] copied_parts recognised(const std::vector<const fragment*>& order) {
  copied_parts c = copies_of(order);
  collect_identities(c);
  host_matcher(c).run();
  device_matcher(c).run();
  parent_chooser(c).run();
  stand_in_replacer stand_ins(c);
  stand_ins.run();
  settle(c);
  stand_ins.add_links();
  return c;
}

}}}}  // namespace topocoll::v0::topo::detail
