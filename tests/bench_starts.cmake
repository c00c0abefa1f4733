# SPDX-License-Identifier: Apache-2.0
# Builds the benchmarks and runs each for an instant: they must not rot.
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target bench COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PROGRAM}" --benchmark_min_time=0.001 COMMAND_ERROR_IS_FATAL ANY)
