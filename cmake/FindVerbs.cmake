# SPDX-License-Identifier: Apache-2.0
# Finds libibverbs of rdma-core. Defines Verbs::verbs. Hints: Verbs_ROOT, pkg-config.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_VERBS QUIET libibverbs)
endif()
find_path(Verbs_INCLUDE_DIR infiniband/verbs.h HINTS ${PC_VERBS_INCLUDE_DIRS})
find_library(Verbs_LIBRARY ibverbs HINTS ${PC_VERBS_LIBRARY_DIRS})
mark_as_advanced(Verbs_INCLUDE_DIR Verbs_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Verbs REQUIRED_VARS Verbs_LIBRARY Verbs_INCLUDE_DIR VERSION_VAR PC_VERBS_VERSION)

if(Verbs_FOUND AND NOT TARGET Verbs::verbs)
  add_library(Verbs::verbs UNKNOWN IMPORTED)
  set_target_properties(Verbs::verbs PROPERTIES IMPORTED_LOCATION "${Verbs_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${Verbs_INCLUDE_DIR}")
endif()
