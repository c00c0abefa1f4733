// SPDX-License-Identifier: Apache-2.0
#pragma once
// The name that a misspelt word was probably meant to be, under the path by which this layer knows it.
#include <topocoll/read/detail/nearest.hpp>
