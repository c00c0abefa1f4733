# SPDX-License-Identifier: Apache-2.0
# What our own targets are compiled with; users of the library get none of it.
include_guard()
include("${CMAKE_CURRENT_LIST_DIR}/Sanitizers.cmake")

set(topocoll_warning_flags -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns at -O2 of any "text" + std::string() (GCC PR 105651), of std::optional members that are not read while
  # empty (PR 80635), and of table look-ups behind a switch that covers all values.
  list(APPEND topocoll_warning_flags -Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds)
endif()
if(TOPOCOLL_WERROR)
  list(APPEND topocoll_warning_flags -Werror)
endif()

# Marks a target as ours: strict C++20, warnings, sanitizers, and the library itself.
function(topocoll_own target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${topocoll_warning_flags} ${topocoll_sanitizer_flags})
  target_link_options(${target} PRIVATE ${topocoll_sanitizer_flags})
  target_link_libraries(${target} PRIVATE topocoll::topocoll)
endfunction()
