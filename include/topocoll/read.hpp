// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of read/ that needs no optional library: parsers of other people's texts.
// Written by tests/lint/umbrellas.py.
#include <topocoll/read/nccl_topology.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>
#include <topocoll/read/sysfs.hpp>
#include <topocoll/read/sysfs_text.hpp>
