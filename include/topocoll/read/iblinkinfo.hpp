// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `iblinkinfo` prints: one row for each port, under headings or, with -l, with the device in front of each.
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// True for a text with a row such as `12 1[  ] ==( 4X 53.125 Gbps Active/ LinkUp)==> …`. Looks at up to 400 lines.
template <class = void>
[[nodiscard]] bool looks_like_iblinkinfo(std::string_view text);

/// Reads a listing, whole or a part of one, in any of the forms of the tool and mixtures of them.
///
/// Devices are known by GUID, by LID where no GUID is printed, and by description only where there is neither; then the
/// row of the far end must point back, or the cable is left out and told. A row shows the GUIDs of an adapter's ports, so
/// adapters have no GUID of their own here. With -l a row does not say switch or adapter: `ib_device::how` and `reason` tell
/// how it was decided. "Could be …" gives the best width and speed; ports without it run at their best.
/// @param file  name for failures and findings
/// @return `malformed_input` with the line for a row that breaks off, and for a text without rows. Cost: O(n log n).
template <class = void>
[[nodiscard]] result<ib_fabric> parse_iblinkinfo(std::string_view text, std::string_view file);

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/iblinkinfo_reader.hpp>
