# SPDX-License-Identifier: Apache-2.0
# Configures SOURCE in BINARY with OPTIONS (separated by |); it must end as EXPECT (success or failure) and the output must match REGEX.
string(REPLACE "|" ";" OPTIONS "${OPTIONS}")
file(REMOVE_RECURSE "${BINARY}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}" ${OPTIONS}
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(EXPECT STREQUAL "failure" AND status EQUAL 0 OR EXPECT STREQUAL "success" AND NOT status EQUAL 0)
  message(FATAL_ERROR "${EXPECT} was expected, but the exit status is ${status}")
endif()
string(REGEX REPLACE "[ \n]+" " " output "${output}") # CMake wraps its messages
if(NOT output MATCHES "${REGEX}")
  message(FATAL_ERROR "the output does not say: ${REGEX}")
endif()
