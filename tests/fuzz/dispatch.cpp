// SPDX-License-Identifier: Apache-2.0
// Hands inputs to the target that the environment names.
#include <cstdio>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <map>
#include <string_view>

namespace {

std::map<std::string_view, fuzz::function>& targets() {
  static std::map<std::string_view, fuzz::function> all;
  return all;
}

fuzz::function wanted() {
  const char* name = std::getenv("TOPOCOLL_FUZZ_TARGET");
  const auto found = targets().find(name == nullptr ? "" : name);
  if (found != targets().end()) return found->second;
  std::fprintf(stderr, "set TOPOCOLL_FUZZ_TARGET to one of:");
  for (const auto& [known, run] : targets())
    std::fprintf(stderr, " %.*s", static_cast<int>(known.size()), known.data());
  std::fprintf(stderr, "\n");
  std::_Exit(name == nullptr ? 2 : 77);  // a parser whose library is not here is skipped
}

}  // namespace

fuzz::target::target(std::string_view name, function run) { targets().emplace(name, run); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::function run = wanted();
  return run(data, size);
}
