// SPDX-License-Identifier: Apache-2.0
#include <topocoll/app/export.hpp>
#include "commands.hpp"

int commands::export_files(words args, sink out, sink err) { return topocoll::app::run_export(args, out, err); }
