# SPDX-License-Identifier: Apache-2.0
# The optional libraries, one component each. The build tree and the installed package both read this file, so that
# `topocoll::xml` means the same in add_subdirectory, FetchContent and find_package.
include_guard()

# topocoll_component(<name> DEBIAN <package> PACKAGES <find_package names> LINK <targets>)
macro(topocoll_component name)
  cmake_parse_arguments(topocoll_${name} "" "DEBIAN" "PACKAGES;LINK" ${ARGN})
  list(APPEND topocoll_components ${name})
endmacro()

set(topocoll_components "")
topocoll_component(xml DEBIAN libpugixml-dev PACKAGES pugixml LINK pugixml::pugixml)
topocoll_component(json DEBIAN nlohmann-json3-dev PACKAGES nlohmann_json LINK nlohmann_json::nlohmann_json)
topocoll_component(toml DEBIAN libtomlplusplus-dev PACKAGES tomlplusplus LINK tomlplusplus::tomlplusplus)
topocoll_component(yaml DEBIAN libyaml-dev PACKAGES yaml LINK yaml::yaml)
topocoll_component(cli DEBIAN libcli11-dev PACKAGES CLI11 LINK CLI11::CLI11)
topocoll_component(ucx DEBIAN libucx-dev PACKAGES ucx LINK ucx::ucp ucx::uct ucx::ucs)
topocoll_component(verbs DEBIAN libibverbs-dev PACKAGES Verbs LINK Verbs::verbs)
topocoll_component(hwloc DEBIAN libhwloc-dev PACKAGES hwloc LINK hwloc::hwloc)
topocoll_component(ibnetdisc DEBIAN "libibnetdisc-dev libibmad-dev libibumad-dev" PACKAGES Ibnetdisc LINK Ibnetdisc::ibnetdisc)
topocoll_component(cuda DEBIAN nvidia-cuda-toolkit PACKAGES CUDAToolkit LINK CUDA::cudart)
topocoll_component(nccl DEBIAN libnccl-dev PACKAGES CUDAToolkit NCCL LINK NCCL::nccl CUDA::cudart)
topocoll_component(benchmark DEBIAN libbenchmark-dev PACKAGES benchmark LINK benchmark::benchmark)

# Looks for the libraries of one component, quietly. When all are there, defines topocoll::<name>.
# Further arguments go to find_package (a subproject passes GLOBAL, so that its parent sees the targets too).
function(topocoll_find_component name)
  if(TARGET topocoll::${name})
    return()
  endif()
  list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  list(GET topocoll_${name}_LINK 0 first)
  if(NOT TARGET ${first}) # some packages cannot be found twice
    foreach(package IN LISTS topocoll_${name}_PACKAGES)
      find_package(${package} QUIET ${ARGN})
    endforeach()
  endif()
  foreach(target IN LISTS topocoll_${name}_LINK)
    if(NOT TARGET ${target})
      return()
    endif()
  endforeach()
  add_library(topocoll::${name} INTERFACE IMPORTED)
  if("GLOBAL" IN_LIST ARGN)
    set_target_properties(topocoll::${name} PROPERTIES IMPORTED_GLOBAL TRUE)
  endif()
  target_link_libraries(topocoll::${name} INTERFACE topocoll::topocoll ${topocoll_${name}_LINK})
endfunction()
