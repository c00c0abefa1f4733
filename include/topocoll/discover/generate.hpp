// SPDX-License-Identifier: Apache-2.0
#pragma once
// Topologies of machines that are not here: single hosts of known models, clusters of them, with planted faults.
#include <topocoll/discover/generate/fabric.hpp>
#include <topocoll/discover/generate/faults.hpp>
#include <topocoll/discover/generate/host.hpp>
#include <topocoll/discover/generate/model.hpp>
#include <topocoll/discover/generate/options.hpp>
#include <topocoll/discover/generate/order.hpp>
#include <topocoll/discover/generate/shape.hpp>
