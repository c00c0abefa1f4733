# SPDX-License-Identifier: Apache-2.0
# Headers, CMake package, pkg-config file. The headers run on any architecture, so everything lies under share/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(topocoll_cmake_dir "${CMAKE_INSTALL_DATADIR}/cmake/topocoll")
install(TARGETS topocoll EXPORT topocollTargets FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT topocollTargets NAMESPACE topocoll:: DESTINATION "${topocoll_cmake_dir}")

configure_package_config_file(cmake/topocollConfig.cmake.in "${PROJECT_BINARY_DIR}/topocollConfig.cmake"
                              INSTALL_DESTINATION "${topocoll_cmake_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/topocollConfigVersion.cmake" COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/topocollConfig.cmake" "${PROJECT_BINARY_DIR}/topocollConfigVersion.cmake"
              cmake/topocollComponents.cmake cmake/FindIbnetdisc.cmake cmake/FindNCCL.cmake cmake/FindVerbs.cmake cmake/Findhwloc.cmake cmake/Findyaml.cmake
        DESTINATION "${topocoll_cmake_dir}")

set(topocoll_pc_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
file(RELATIVE_PATH topocoll_pc_to_prefix "/${topocoll_pc_dir}" "/")
string(REGEX REPLACE "/$" "" topocoll_pc_to_prefix "${topocoll_pc_to_prefix}")
list(TRANSFORM CMAKE_DL_LIBS PREPEND "-l" OUTPUT_VARIABLE topocoll_pc_libs)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  list(APPEND topocoll_pc_libs -lrt)
endif()
list(JOIN topocoll_pc_libs " " topocoll_pc_libs)
configure_file(cmake/topocoll.pc.in "${PROJECT_BINARY_DIR}/topocoll.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/topocoll.pc" DESTINATION "${topocoll_pc_dir}")
