// SPDX-License-Identifier: Apache-2.0
// A transport of your own: wraps another one and counts what each rank sends in an all-reduce.
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/inproc.hpp>
#include <topocoll/exec/transport.hpp>

namespace tc = topocoll;

template <tc::Transport T>
class counting {
 public:
  counting(T inner, tc::bytes* sent) : inner_(std::move(inner)), sent_(sent) {}

  [[nodiscard]] tc::rank_id rank() const { return inner_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return inner_.size(); }
  [[nodiscard]] std::uint32_t channels() const { return inner_.channels(); }
  [[nodiscard]] tc::result<tc::ticket> post(std::span<const tc::outgoing> out, std::span<const tc::incoming> in) {
    for (const tc::outgoing& message : out) *sent_ += tc::bytes{message.data.size()};
    return inner_.post(out, in);
  }
  [[nodiscard]] tc::result<std::size_t> wait_any(std::span<const tc::ticket> pending, tc::deadline until) {
    return inner_.wait_any(pending, until);
  }
  void abort(const std::string& why) noexcept { inner_.abort(why); }

 private:
  T inner_;
  tc::bytes* sent_;
};
static_assert(tc::Transport<counting<tc::inproc_transport>>);

int main() {
  constexpr std::uint32_t ranks = 4;
  constexpr std::size_t elements = 1U << 20U;
  auto group = tc::make_inproc_group(ranks).value();
  std::vector<tc::bytes> sent(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto comm = tc::communicator<counting<tc::inproc_transport>>::create({std::move(group[r]), &sent[r]}).value();
      std::vector<float> buffer(elements, 1.0F);
      comm.all_reduce(buffer).value();
    });
  for (std::thread& t : threads) t.join();
  // The least that any algorithm sends on average: 2 (n-1)/n times the buffer.
  const double least = 2.0 * (ranks - 1) / ranks * elements * sizeof(float);
  for (const tc::bytes s : sent) std::printf("%.3f times the least\n", static_cast<double>(s.value) / least);
}

// Prints:
// 1.000 times the least
// 1.000 times the least
// 1.000 times the least
// 1.000 times the least
