// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a vendor library says about itself: versions and the devices it sees.
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>

namespace topocoll { inline namespace v0 {

/// Answer of one vendor library on this machine, as given by the `<vendor>_library()` functions of `backend/`.
struct library_info {
  std::string name;                             ///< as its makers write it
  std::optional<std::string> compiled_against;  ///< version of the headers; empty when they do not carry one
  std::optional<std::string> running;           ///< version of the library in this process; empty when it does not tell
  std::optional<std::string> driver;  ///< newest interface of the kernel driver; empty when there is none to ask
  std::optional<std::vector<std::string>> devices;  ///< as the library names them; empty list: it looked and saw none
  std::vector<finding> findings;                    ///< what could not be asked, and why
};

}}  // namespace topocoll::v0
