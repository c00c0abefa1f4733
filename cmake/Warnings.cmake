# SPDX-License-Identifier: Apache-2.0
# What our own targets are compiled with; users of the library get none of it.
include_guard()
include("${CMAKE_CURRENT_LIST_DIR}/Sanitizers.cmake")

set(topocoll_warning_flags -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND topocoll_warning_flags -Wno-restrict) # g++ 12 warns of any "text" + std::string() at -O2 (GCC PR 105651)
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
