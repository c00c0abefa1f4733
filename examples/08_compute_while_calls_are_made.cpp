// SPDX-License-Identifier: Apache-2.0
// Gradients are added up while the next ones are computed; a group of small arrays; a message to a neighbour.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/exec/call_group.hpp>
#include <topocoll/exec/call_queue.hpp>
#include <topocoll/exec/communicator.hpp>
#include <topocoll/exec/local.hpp>

namespace tc = topocoll;
using communicator = tc::communicator<tc::shm_transport>;

tc::result<std::string> train(tc::shm_transport& transport) {
  auto comm = communicator::create(std::move(transport));
  if (!comm) return comm.error();
  const std::uint32_t me = comm->rank().value, n = comm->size();
  std::vector<std::vector<float>> layers(3, std::vector<float>(50'000));
  // [queue]
  auto queue = tc::call_queue<communicator>::create(*std::move(comm));
  if (!queue) return queue.error();
  std::vector<tc::request> sums;
  for (std::vector<float>& layer : layers) {
    for (float& x : layer) x = static_cast<float>(me + 1);  // computed while the sums of earlier layers are under way
    sums.push_back(queue->all_reduce(layer));
  }
  if (auto done = tc::wait_all(sums, {10}); !done) return done.error();
  // [/queue]
  // [group]
  std::vector<float> bias(10, 1), scale(20, 2), edge(4, static_cast<float>(me)), from_before(4);
  tc::call_group group;
  group.all_reduce(bias);
  group.all_reduce(scale);  // short ones travel together
  group.send(edge, tc::rank_id{(me + 1) % n});
  group.receive(from_before, tc::rank_id{(me + n - 1) % n});
  if (auto done = queue->start(group).wait({10}); !done) return done.error();
  // [/group]
  return "layer " + std::to_string(layers[2][0]) + ", bias " + std::to_string(bias[0]) + ", scale " +
         std::to_string(scale[0]) + ", from rank " + std::to_string(from_before[0]);
}

int main() {
  const auto ends = tc::run_local_ranks(
      3, {}, [](tc::shm_transport& t) { return train(t); }, tc::deadline::in({20}));
  if (!ends) return 1;
  for (const tc::rank_exit& end : *ends)
    std::printf("rank %u: %s\n", end.rank.value, end.outcome ? end.outcome->c_str() : end.outcome.error().what.c_str());
}

// Prints:
// rank 0: layer 6.000000, bias 3.000000, scale 6.000000, from rank 2.000000
// rank 1: layer 6.000000, bias 3.000000, scale 6.000000, from rank 0.000000
// rank 2: layer 6.000000, bias 3.000000, scale 6.000000, from rank 1.000000
