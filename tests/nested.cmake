# SPDX-License-Identifier: Apache-2.0
# Configures SOURCE again in BINARY with other OPTIONS (separated by |), builds TARGET and runs the tests with LABEL,
# without those that go through many cases.
string(REPLACE "|" ";" OPTIONS "${OPTIONS}")
set(entries "")
foreach(option IN LISTS OPTIONS)
  list(APPEND entries "-D${option}")
endforeach()
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)

execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}" ${entries} -DTOPOCOLL_WERROR=ON
                        -DTOPOCOLL_BENCH=OFF -DTOPOCOLL_HEADER_CHECKS=OFF -DTOPOCOLL_FULL=OFF
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BINARY}" --target ${TARGET} --parallel ${cores} OUTPUT_VARIABLE built
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the build fails:\n${built}")
endif()

# The sanitizers of clang 14 and g++ 12 cannot map their shadow where a recent kernel spreads addresses more widely than
# they know; without randomisation they always can. A container may forbid that: then it must do without.
set(steady "")
find_program(setarch setarch)
if(setarch)
  execute_process(COMMAND "${setarch}" -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(refused EQUAL 0)
    set(steady "${setarch}" -R)
  endif()
endif()
# libhwloc unloads its plug-ins with memory of theirs still allocated, in code that no suppression can name any more.
set(ENV{HWLOC_PLUGINS_PATH} "${BINARY}")
set(ENV{ASAN_OPTIONS} "detect_stack_use_after_return=1:strict_string_checks=1")
set(ENV{TSAN_OPTIONS} "halt_on_error=1:second_deadlock_stack=1")
set(ENV{UBSAN_OPTIONS} "print_stacktrace=1")
execute_process(COMMAND ${steady} "${CMAKE_CTEST_COMMAND}" --test-dir "${BINARY}" -L "^${LABEL}$" -LE "^property$" --output-on-failure
                        --no-tests=error --parallel ${cores} COMMAND_ERROR_IS_FATAL ANY)
