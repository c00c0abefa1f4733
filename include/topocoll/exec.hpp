// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of exec/ that needs no optional library: transports, memory and communicators that run a plan.
// Written by tests/lint/umbrellas.py.
#include <topocoll/exec/buffer.hpp>
#include <topocoll/exec/call_group.hpp>
#include <topocoll/exec/call_log.hpp>
#include <topocoll/exec/call_options.hpp>
#include <topocoll/exec/call_queue.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/custom_calls.hpp>
#include <topocoll/exec/dtype.hpp>
#include <topocoll/exec/executor.hpp>
#include <topocoll/exec/faulty.hpp>
#include <topocoll/exec/flat_choice.hpp>
#include <topocoll/exec/float16.hpp>
#include <topocoll/exec/float8.hpp>
#include <topocoll/exec/groups.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/launch.hpp>
#include <topocoll/exec/local.hpp>
#include <topocoll/exec/memory.hpp>
#include <topocoll/exec/mixed.hpp>
#include <topocoll/exec/pattern.hpp>
#include <topocoll/exec/reduce.hpp>
#include <topocoll/exec/shm.hpp>
#include <topocoll/exec/transport.hpp>
