# SPDX-License-Identifier: Apache-2.0
# Finds libyaml. Defines yaml::yaml. Hints: yaml_ROOT, pkg-config.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_YAML QUIET yaml-0.1)
endif()
find_path(yaml_INCLUDE_DIR yaml.h HINTS ${PC_YAML_INCLUDE_DIRS})
find_library(yaml_LIBRARY yaml HINTS ${PC_YAML_LIBRARY_DIRS})
mark_as_advanced(yaml_INCLUDE_DIR yaml_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(yaml REQUIRED_VARS yaml_LIBRARY yaml_INCLUDE_DIR VERSION_VAR PC_YAML_VERSION)

if(yaml_FOUND AND NOT TARGET yaml::yaml)
  add_library(yaml::yaml UNKNOWN IMPORTED)
  set_target_properties(yaml::yaml PROPERTIES IMPORTED_LOCATION "${yaml_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${yaml_INCLUDE_DIR}")
endif()
