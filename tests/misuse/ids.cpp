// SPDX-License-Identifier: Apache-2.0
// A rank is not a node, a node is not a link, and none of them is a plain number.
#include <topocoll/core/ids.hpp>

namespace tc = topocoll;

constexpr bool same(tc::node_id a, tc::node_id b) { return a == b; }
static_assert(same(tc::node_id{3}, tc::node_id{3}));

#ifdef SECTION_RANK_FOR_NODE
// expect: could not convert .*rank_id|could not convert .*rank_tag
// expect: no viable conversion from 'tc::rank_id'|no matching function for call to 'same'
bool mixed = same(tc::rank_id{3}, tc::node_id{3});
#endif

#ifdef SECTION_COMPARE_RANK_WITH_NODE
// expect: no match for .*operator==.*rank_(id|tag).*node_(id|tag)
// expect: invalid operands to binary expression
bool mixed = tc::rank_id{3} == tc::node_id{3};
#endif

#ifdef SECTION_LINK_AS_NUMBER
// expect: cannot convert .*(link_id|link_tag).* to 'unsigned int'
// expect: no viable conversion from 'tc::link_id'.* to 'unsigned int'
unsigned number = tc::link_id{3};
#endif

#ifdef SECTION_NUMBER_AS_RANK
// expect: conversion from 'int' to non-scalar type
// expect: no viable conversion from 'int' to 'tc::rank_id'
tc::rank_id rank = 3;
#endif
