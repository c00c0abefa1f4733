// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of io/ that needs no optional library: files, tables, shared libraries; sockets and digests are included by name.
// Written by tests/lint/umbrellas.py.
#include <topocoll/io/file.hpp>
#include <topocoll/io/library.hpp>
#include <topocoll/io/recording.hpp>
#include <topocoll/io/tree.hpp>
#include <topocoll/io/value_tree.hpp>
#include <topocoll/io/xml_tree.hpp>
