// SPDX-License-Identifier: Apache-2.0
// Quantities with different units do not add, compare or convert.
#include <topocoll/core/units.hpp>

namespace tc = topocoll;

constexpr tc::bytes_per_second rate = tc::bytes{100} / tc::seconds{2};
static_assert(rate == tc::bytes_per_second{50});

#ifdef SECTION_ADD_BYTES_AND_SECONDS
// expect: no match for .*operator\+.*bytes.*seconds
// expect: invalid operands to binary expression \('topocoll::bytes' and 'topocoll::seconds'\)
// expect: invalid operands to binary expression \('tc::bytes'.* and 'tc::seconds'
auto sum = tc::bytes{1} + tc::seconds{1};
#endif

#ifdef SECTION_COMPARE_RATE_WITH_TIME
// expect: no match for .*operator<.*bytes_per_second.*seconds
// expect: invalid operands to binary expression
bool less = rate < tc::seconds{1};
#endif

#ifdef SECTION_NUMBER_AS_TIME
// expect: conversion from 'double' to non-scalar type
// expect: no viable conversion from 'double' to 'tc::seconds'
tc::seconds time = 0.5;
#endif

#ifdef SECTION_TIME_AS_NUMBER
// expect: cannot convert 'topocoll::.*seconds' to 'double'
// expect: no viable conversion from 'tc::seconds'.* to 'double'
double number = tc::seconds{1};
#endif

#ifdef SECTION_FRACTION_OF_A_BYTE
// expect: narrowing conversion of
// expect: type 'double' cannot be narrowed to
tc::bytes half_a_byte{0.5};
#endif
