// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `topo::check` calls odd, as plain values.
#include <cstddef>

namespace topocoll { inline namespace v0 { namespace topo {

/// What counts as odd.
struct check_options {
  double tolerance = 0.01;         ///< share by which two rates may differ and still be called equal
  double oversubscription = 1.25;  ///< how many times the usual ratio makes a leaf a warning; below that it is a note
  std::size_t most_named = 1024;   ///< findings of one sort; what is beyond is counted in one more
};

}}}  // namespace topocoll::v0::topo
