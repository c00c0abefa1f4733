// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of discover/ that needs no optional library: sources that turn a machine, a file or a description into a graph.
// Written by tests/lint/umbrellas.py.
#include <topocoll/discover/acs.hpp>
#include <topocoll/discover/capture.hpp>
#include <topocoll/discover/describe.hpp>
#include <topocoll/discover/describe/keys.hpp>
#include <topocoll/discover/discover.hpp>
#include <topocoll/discover/generate.hpp>
#include <topocoll/discover/generate/fabric.hpp>
#include <topocoll/discover/generate/faults.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/model.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/discover/generate/shape.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/live.hpp>
#include <topocoll/discover/nvml.hpp>
#include <topocoll/discover/recording.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/discover/sysfs.hpp>
