# SPDX-License-Identifier: Apache-2.0
# Checks that take minutes, as tests: the same code under other compilers and sanitizers in nested builds, the formatter,
# clang-tidy, the reference. `ctest` is then the whole of CI.
set(nested "${PROJECT_SOURCE_DIR}/tests/nested.cmake")

# topocoll_nested(<name> TARGET <target> LABEL <label> TIMEOUT <seconds> OPTIONS <cache entries>)
function(topocoll_nested name)
  cmake_parse_arguments(nested "" "TARGET;LABEL;TIMEOUT" "OPTIONS" ${ARGN})
  list(JOIN nested_OPTIONS "|" options)
  topocoll_test(nested_${name} LABELS full nested TIMEOUT ${nested_TIMEOUT}
                COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DBINARY=${PROJECT_BINARY_DIR}/nested/${name}"
                        "-DGENERATOR=${CMAKE_GENERATOR}" -DTARGET=${nested_TARGET} -DLABEL=${nested_LABEL}
                        "-DOPTIONS=${options}" -P "${nested}")
  set_tests_properties(nested_${name} PROPERTIES RUN_SERIAL TRUE)
endfunction()

find_program(TOPOCOLL_CLANG clang++ DOC "Builds everything a second time, with sanitizers")
mark_as_advanced(TOPOCOLL_CLANG)
if(TOPOCOLL_CLANG)
  # Code that handles memory itself. The rest works on containers, whose own checks are on in the tests, and parsers are
  # fuzzed with the address sanitizer; the preset sanitize has everything, and takes twice as long as all of CI.
  topocoll_nested(clang_address_undefined TARGET memory_tests LABEL memory TIMEOUT 1800
                  OPTIONS CMAKE_CXX_COMPILER=${TOPOCOLL_CLANG} CMAKE_BUILD_TYPE=Debug CMAKE_CXX_FLAGS_DEBUG=-O0
                          TOPOCOLL_TEST_BATCH=8 TOPOCOLL_SANITIZE=address,undefined TOPOCOLL_EXAMPLES=OFF TOPOCOLL_PROGRAMS=OFF)
  topocoll_nested(clang_thread TARGET threads_tests LABEL threads TIMEOUT 1200
                  OPTIONS CMAKE_CXX_COMPILER=${TOPOCOLL_CLANG} CMAKE_BUILD_TYPE=Debug CMAKE_CXX_FLAGS_DEBUG=-O0
                          TOPOCOLL_TEST_BATCH=8 TOPOCOLL_SANITIZE=thread TOPOCOLL_EXAMPLES=OFF TOPOCOLL_PROGRAMS=OFF)
  topocoll_nested(clang_fuzz TARGET fuzz_tests LABEL fuzz TIMEOUT 1500
                  OPTIONS CMAKE_CXX_COMPILER=${TOPOCOLL_CLANG} CMAKE_BUILD_TYPE=Debug CMAKE_CXX_FLAGS_DEBUG=-O1
                          TOPOCOLL_FUZZ=ON TOPOCOLL_FUZZ_SECONDS=${TOPOCOLL_FUZZ_SECONDS} TOPOCOLL_EXAMPLES=OFF
                          TOPOCOLL_PROGRAMS=OFF)
else()
  message(STATUS "topocoll: no clang++, hence no sanitizer builds")
endif()

foreach(tool format tidy)
  set(script "${PROJECT_SOURCE_DIR}/tests/lint/${tool}.py")
  topocoll_test(lint_${tool} LABELS full lint TIMEOUT 900 COMMAND Python3::Interpreter "${script}")
  set_property(TEST lint_${tool} APPEND PROPERTY ENVIRONMENT "TOPOCOLL_COMPONENTS=${found}" "TOPOCOLL_CHECK_FLAGS=${flags}")
endforeach()

# The reference, with warnings as errors.
find_program(TOPOCOLL_DOXYGEN doxygen DOC "Makes the reference")
mark_as_advanced(TOPOCOLL_DOXYGEN)
if(TOPOCOLL_DOXYGEN)
  set(TOPOCOLL_DOXYGEN_OUTPUT "${PROJECT_BINARY_DIR}/reference")
  file(MAKE_DIRECTORY "${TOPOCOLL_DOXYGEN_OUTPUT}")
  configure_file("${PROJECT_SOURCE_DIR}/docs/reference/Doxyfile.in" "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
  topocoll_test(docs_reference LABELS full docs TIMEOUT 300 COMMAND "${TOPOCOLL_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile")
else()
  message(STATUS "topocoll: no doxygen, hence no reference")
endif()
