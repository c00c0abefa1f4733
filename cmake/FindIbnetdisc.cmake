# SPDX-License-Identifier: Apache-2.0
# Finds libibnetdisc of infiniband-diags with libibmad and libibumad, which it needs. Defines Ibnetdisc::ibnetdisc.
# Hints: Ibnetdisc_ROOT, pkg-config.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_IBNETDISC QUIET libibnetdisc)
endif()
find_path(Ibnetdisc_INCLUDE_DIR infiniband/ibnetdisc.h HINTS ${PC_IBNETDISC_INCLUDE_DIRS})
find_library(Ibnetdisc_LIBRARY ibnetdisc HINTS ${PC_IBNETDISC_LIBRARY_DIRS})
find_library(Ibnetdisc_MAD_LIBRARY ibmad HINTS ${PC_IBNETDISC_LIBRARY_DIRS})
find_library(Ibnetdisc_UMAD_LIBRARY ibumad HINTS ${PC_IBNETDISC_LIBRARY_DIRS})
mark_as_advanced(Ibnetdisc_INCLUDE_DIR Ibnetdisc_LIBRARY Ibnetdisc_MAD_LIBRARY Ibnetdisc_UMAD_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Ibnetdisc
  REQUIRED_VARS Ibnetdisc_LIBRARY Ibnetdisc_MAD_LIBRARY Ibnetdisc_UMAD_LIBRARY Ibnetdisc_INCLUDE_DIR
  VERSION_VAR PC_IBNETDISC_VERSION)

if(Ibnetdisc_FOUND AND NOT TARGET Ibnetdisc::ibnetdisc)
  add_library(Ibnetdisc::ibnetdisc UNKNOWN IMPORTED)
  set_target_properties(
    Ibnetdisc::ibnetdisc
    PROPERTIES IMPORTED_LOCATION "${Ibnetdisc_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Ibnetdisc_INCLUDE_DIR}"
               INTERFACE_LINK_LIBRARIES "${Ibnetdisc_MAD_LIBRARY};${Ibnetdisc_UMAD_LIBRARY}")
endif()
