// SPDX-License-Identifier: Apache-2.0
// The least program of a user: includes the umbrella, computes with it, and says which version it was built with.
#include <cstdio>
#include <topocoll/topocoll.hpp>
#include <topocoll/version.hpp>
#ifdef WITH_XML_AND_JSON
#include <topocoll/io/json.hpp>
#include <topocoll/io/xml.hpp>
#endif

namespace tc = topocoll;
using namespace tc::literals;

int main() {
  const tc::seconds time = 64_MiB / 25.0_GBps;
  std::printf("topocoll %s: 64 MiB at 25 GB/s take %.3f ms\n", tc::version_text, time.value * 1e3);
  return time > tc::seconds{0.002} && time < tc::seconds{0.003} ? 0 : 1;
}
