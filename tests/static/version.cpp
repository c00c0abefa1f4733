// SPDX-License-Identifier: Apache-2.0
// The version is written in three places, which agree.
#include <string_view>
#include <topocoll/version.hpp>

namespace tc = topocoll;

static_assert(std::string_view(tc::version_text) == TOPOCOLL_PROJECT_VERSION, "CMakeLists.txt says another version");

#define TOPOCOLL_TEXT_OF(x) #x
#define TOPOCOLL_TEXT(x) TOPOCOLL_TEXT_OF(x)
static_assert(std::string_view(TOPOCOLL_TEXT(TOPOCOLL_VERSION_MAJOR) "." TOPOCOLL_TEXT(
                  TOPOCOLL_VERSION_MINOR) "." TOPOCOLL_TEXT(TOPOCOLL_VERSION_PATCH)) == tc::version_text);
static_assert(tc::version_number == TOPOCOLL_VERSION && TOPOCOLL_VERSION == 100);
