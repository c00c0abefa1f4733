// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `ibnetdiscover` prints, in its full form, as a list of ports (-p) or of nodes (-l), and the net files of ibsim.
#include <string_view>
#include <topocoll/core/result.hpp>
#include <topocoll/read/ib_fabric.hpp>

namespace topocoll { inline namespace v0 { namespace read {

/// True for a text that holds a record (`Switch 36 "S-…"`, `Ca 2 "H-…"`, ibsim's `Hca 2 "name"`), a row of the port list
/// (`SW 12 3 0x… 4x EDR`) or of the node list. Looks at up to 400 lines that are no comments.
template <class = void>
[[nodiscard]] bool looks_like_ibnetdiscover(std::string_view text);

/// Reads a listing.
///
/// Devices are known by GUID (by id in net files), never by their descriptions. Adapters of the port list, which shows the
/// GUIDs of ports alone, have no GUID of their own here. Both ends of a cable are compared; what they contradict is left
/// out and told, what only one of them tells is kept and told. Devices that only others mention are kept, not `told`.
/// Banners, prompts and messages of the tool are passed over and told.
/// @param file  name for failures and findings
/// @return `malformed_input` with the line for a record, port or row that breaks off or is none of these, and for a text
///         without any. Cost: O(n log n), 10,000 ports in some 10 ms.
template <class = void>
[[nodiscard]] result<ib_fabric> parse_ibnetdiscover(std::string_view text, std::string_view file);

}}}  // namespace topocoll::v0::read

#include <topocoll/read/detail/ibnetdiscover_reader.hpp>
