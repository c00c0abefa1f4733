// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/rank_order.hpp writes orders for launchers and people.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/integrate/detail/shell_word.hpp>
#include <topocoll/integrate/rank_order.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

[[nodiscard]] inline std::uint32_t slots_of(const job_host& h) { return h.slot_count == 0 ? 1 : h.slot_count; }

/// `each(host, its place)` put together.
template <class Each>
[[nodiscard]] std::string per_host(const ordered_hosts& order, const Each& each) {
  std::string text;
  for (std::size_t i = 0; i < order.hosts.size(); ++i) text += each(order.hosts[i], i);
  return text;
}

}  // namespace detail

template <class>
std::string to_text(const ordered_hosts& order) {
  std::string text;
  const std::string hosts = std::to_string(order.hosts.size()) + (order.hosts.size() == 1 ? " host" : " hosts");
  if (order.before.empty()) return "no switch is known above the " + hosts + ": nothing can be gained by their order\n";
  constexpr bytes sample{std::uint64_t{1} << 30U};
  for (std::size_t t = 0; t < order.before.size(); ++t) {
    const order_score &b = order.before[t], &a = order.after[t];
    text += b.tier + ": " + std::to_string(a.groups) + (a.groups == 1 ? " group" : " groups");
    if (a.groups > 1) {
      text += "; the ring leaves one " + std::to_string(b.ring) + " times, " + std::to_string(a.ring) +
              " in the new order (the least); the trees " + std::to_string(b.tree) + ", " + std::to_string(a.tree);
      const auto gib = [&](const order_score& s) {
        return to_string(bytes{static_cast<std::uint64_t>(ring_bytes_across(s, order.ranks(), sample))});
      };
      text += "; a ring all-reduce of 1 GiB takes " + gib(b) + " across, then " + gib(a);
    }
    text += '\n';
  }
  if (!order.gains()) text += "nothing can be gained: the order that was given crosses as little as any\n";
  return text;
}

template <class>
std::string to_mpirun_hostfile(const ordered_hosts& order) {
  return detail::per_host(order, [](const job_host& h, std::size_t) {
    return h.name + " slots=" + std::to_string(detail::slots_of(h)) + '\n';
  });
}

template <class>
std::string to_rankfile(const ordered_hosts& order) {
  std::uint32_t rank = 0;
  return detail::per_host(order, [&](const job_host& h, std::size_t) {
    std::string text;
    for (std::uint32_t s = 0; s < detail::slots_of(h); ++s)
      text += "rank " + std::to_string(rank++) + "=" + h.name + " slot=" + std::to_string(s) + '\n';
    return text;
  });
}

template <class>
std::string to_hydra_hostfile(const ordered_hosts& order) {
  return detail::per_host(
      order, [](const job_host& h, std::size_t) { return h.name + ':' + std::to_string(detail::slots_of(h)) + '\n'; });
}

template <class>
std::string to_slurm_hostfile(const ordered_hosts& order) {
  return detail::per_host(order, [](const job_host& h, std::size_t) {
    std::string text;
    for (std::uint32_t s = 0; s < detail::slots_of(h); ++s) text += h.name + '\n';
    return text;
  });
}

template <class>
std::string to_slurm_nodelist(const ordered_hosts& order) {
  std::vector<std::string> names;
  for (const job_host& h : order.hosts) names.push_back(h.name);
  seq::sort(names, [](const std::string& a, const std::string& b) { return read::host_order(a, b); });
  return read::compress_hostlist(names);
}

template <class>
std::string to_torchrun_table(const ordered_hosts& order, std::uint32_t port) {
  return detail::per_host(order, [&](const job_host& h, std::size_t i) {
    return h.name + " --nnodes=" + std::to_string(order.hosts.size()) +
           " --nproc-per-node=" + std::to_string(detail::slots_of(h)) + " --node-rank=" + std::to_string(i) +
           " --master-addr=" + order.hosts.front().name + " --master-port=" + std::to_string(port) + '\n';
  });
}

template <class>
std::string to_torchrun_environment(const ordered_hosts& order, std::uint32_t port) {
  std::string text =
      "# source this on every host, then:\n"
      "#   torchrun --nnodes=$NNODES --node-rank=$NODE_RANK --nproc-per-node=$NPROC_PER_NODE \\\n"
      "#            --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT program\n";
  text += "export NNODES=" + std::to_string(order.hosts.size()) +
          " MASTER_ADDR=" + detail::shell_word(order.hosts.front().name) + " MASTER_PORT=" + std::to_string(port) +
          "\ncase \"$(hostname)\" in\n";
  text += detail::per_host(order, [](const job_host& h, std::size_t i) {
    // The kernel's name may be longer or shorter than the one in the list.
    const std::string brief = h.name.substr(0, h.name.find('.'));
    const std::string quoted = detail::shell_word(brief);
    return "  " + detail::shell_word(h.name) + "|" + quoted + "|" + quoted +
           ".*) export NODE_RANK=" + std::to_string(i) + " NPROC_PER_NODE=" + std::to_string(detail::slots_of(h)) +
           " ;;\n";
  });
  return text + "  *) echo \"$(hostname) is not a host of this job\" >&2; false ;;\nesac\n";
}

template <class>
std::string to_host_names(const ordered_hosts& order) {
  return detail::per_host(order, [](const job_host& h, std::size_t) { return h.name + '\n'; });
}

}}  // namespace topocoll::v0
