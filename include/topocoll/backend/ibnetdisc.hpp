// SPDX-License-Identifier: Apache-2.0
#pragma once
// libibnetdisc of infiniband-diags: the live InfiniBand fabric that this machine is part of, as a topology source.
#include <topocoll/backend/ibnetdisc/source.hpp>
