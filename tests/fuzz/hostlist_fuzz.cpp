// SPDX-License-Identifier: Apache-2.0
// Host lists and host files: what is expanded is bounded, and comes back from its shortest form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fuzz/target.hpp>
#include <string>
#include <string_view>
#include <topocoll/read/hostfile.hpp>
#include <topocoll/read/hostlist.hpp>

namespace {
void demand(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

static int try_input(const std::uint8_t* data, std::size_t size) {
  namespace rd = topocoll::read;
  constexpr std::size_t limit = 20000;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto names = rd::expand_hostlist(text, limit)) {
    demand(names->size() <= limit);
    for (const std::string& name : *names) demand(!name.empty() && name.size() <= rd::longest_host_name);
    const std::string shortest = rd::compress_hostlist(*names);
    const auto back = rd::expand_hostlist(shortest, limit);
    demand(back && *back == *names);
    demand(rd::compress_hostlist(*back) == shortest);
  }
  static_cast<void>(rd::looks_like_hostfile(text));
  // A line may stand for a million hosts; that bound has its own test.
  if (size <= 4096 && text.find('[') == std::string_view::npos) {
    if (const auto file = rd::parse_hostfile(text, "h"))
      demand(!file->entries.empty());
    else
      demand(file.error().what.rfind("h", 0) == 0);
  }
  return 0;
}

static const fuzz::target known("hostlist", try_input);
