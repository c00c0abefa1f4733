// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll order`: the order of hosts in which a job crosses its network least, as a launcher's file.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <vector>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/app/topology_input.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/rank_order.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/json.hpp>
#include <topocoll/read/hostlist.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll order`. The file goes to `out` (or to --output), what it brings and what is odd to `err`.
/// @return `exit_ok`; `exit_unable` with one sentence on `err` and nothing on `out`
template <class = void>
[[nodiscard]] int run_order(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

struct order_options {
  topology_input input;
  std::string hosts, format = "list", output;
  std::optional<std::uint32_t> slot_count;
  std::uint32_t port = 29500;
  bool json = false;
};

/// Hosts that a word names: those in the file of that name, else a list such as node[01-16].
template <class = void>
[[nodiscard]] result<std::vector<job_host>> hosts_named(const std::string& word) {
  struct stat what {};
  if (::stat(word.c_str(), &what) == 0) {
    const auto text = io::read_file(word);
    if (!text) return text.error();
    return read_job_hosts(*text, word);
  }
  auto names = read::expand_hostlist(word);
  if (!names || names->empty() || word.find('/') != std::string::npos)
    return fail(errc::not_found, "'" + word + "' is neither a file nor a list of hosts",
                "give a host file, or a list such as node[01-16],login1");
  std::vector<job_host> hosts;
  for (std::string& name : *names) hosts.push_back({std::move(name), 0});
  return hosts;
}

template <class = void>
[[nodiscard]] std::string order_json(const ordered_hosts& order) {
  io::json hosts = io::json::array(), tiers = io::json::array(), findings = io::json::array();
  for (const job_host& h : order.hosts)
    hosts.push_back({{"name", h.name}, {"slots", h.slot_count == 0 ? 1 : h.slot_count}});
  for (std::size_t t = 0; t < order.before.size(); ++t) {
    const auto score = [&](const order_score& s) {
      return io::json{{"ring_hops", s.ring},
                      {"tree_edges", s.tree},
                      {"ring_bytes_per_byte", ring_bytes_across(s, order.ranks(), bytes{1})}};
    };
    tiers.push_back({{"tier", order.before[t].tier},
                     {"groups", order.before[t].groups},
                     {"before", score(order.before[t])},
                     {"after", score(order.after[t])}});
  }
  for (const finding& f : order.findings)
    findings.push_back({{"level", to_string(f.level)}, {"where", f.where}, {"what", f.what}, {"evidence", f.evidence}});
  return io::to_text({{"schema", "topocoll.order/1"},
                      {"hosts", hosts},
                      {"known", order.known},
                      {"gains", order.gains()},
                      {"tiers", tiers},
                      {"findings", findings}});
}

/// The launcher's file, and what must be said with it.
template <class = void>
[[nodiscard]] result<std::string> order_form(const ordered_hosts& order, const order_options& o, std::string& notes) {
  if (o.json) return order_json(order);
  if (o.format == "list") return to_host_names(order);
  if (o.format == "mpirun") return to_mpirun_hostfile(order);
  if (o.format == "hydra") return to_hydra_hostfile(order);
  if (o.format == "rankfile") {
    notes +=
        "a rank file also binds: rank i of a host runs on its core i; take --format mpirun where cores are chosen "
        "otherwise\n";
    return to_rankfile(order);
  }
  if (o.format == "slurm") {
    notes += "SLURM_HOSTFILE=" + (o.output.empty() ? std::string("<this file>") : o.output) +
             " srun --distribution=arbitrary --nodelist=" + to_slurm_nodelist(order) +
             " --ntasks=" + std::to_string(order.ranks()) + " program\n";
    return to_slurm_hostfile(order);
  }
  if (o.format == "torchrun" || o.format == "torchrun-env") {
    notes += "node ranks hold with torchrun's static rendezvous; --rdzv-backend=c10d gives out ranks by itself\n";
    return o.format == "torchrun" ? to_torchrun_table(order, o.port) : to_torchrun_environment(order, o.port);
  }
  return fail(errc::invalid_argument, "'" + o.format + "' is not a form for launchers",
              "take one of list, mpirun, rankfile, hydra, slurm, torchrun, torchrun-env");
}

}  // namespace detail

template <class>
int run_order(std::span<const std::string_view> args, sink out, sink err) {
  detail::order_options o;
  CLI::App cli("Orders the hosts of a job so that rings and trees cross the upper switches least.", "order");
  cli.add_option("--from", o.input.from,
                 "what tells the network: ibnetdiscover, Slurm's topology.conf, a cluster file, this program's JSON "
                 "(see 'topocoll topo --help'). May be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  cli.add_option("--fabric", o.input.fabric, "a described cluster, for example dgx-h100:nodes=16,pods=4")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  cli.add_option("--hosts", o.hosts,
                 "the hosts of the job: a host file (\"node1 slots=8\", \"node1:8\", names), or a list such as "
                 "node[01-16]; by default all hosts of the topology")
      ->type_name("FILE|LIST");
  cli.add_option("--format", o.format,
                 "list (default), mpirun (Open MPI host file), rankfile, hydra (MPICH, Intel MPI), slurm (for "
                 "SLURM_HOSTFILE), torchrun (arguments by host), torchrun-env (shell file)")
      ->type_name("FORM");
  cli.add_option("--slots", o.slot_count,
                 "processes of each host; by default as the host file says, else its GPUs, else 1")
      ->type_name("N");
  cli.add_option("--port", o.port, "port of torchrun's rendezvous (default 29500)")->type_name("N");
  auto* json = cli.add_flag("--json", o.json, "the order and what it brings as JSON, schema topocoll.order/1");
  cli.add_option("-o,--output", o.output, "write to this file; it is never seen half written")->type_name("FILE");
  cli.add_option("--root-dir", o.input.root, "root of the file system that 'live' reads, for containers")
      ->type_name("DIR");
  if (const auto done = parse(cli, args, out, err)) return *done;
  static_cast<void>(json);
  if (o.slot_count && *o.slot_count == 0)
    return complain(err, fail(errc::invalid_argument, "hosts have at least one process each"));
  const auto g = read_topology(o.input);
  if (!g) return complain(err, g.error());
  const std::vector<job_host> all = job_hosts_of(*g);
  std::vector<job_host> hosts = all;
  if (!o.hosts.empty()) {
    auto named = detail::hosts_named(o.hosts);
    if (!named) return complain(err, named.error());
    hosts = std::move(*named);
  }
  // Sorted, for hosts whose processes nobody told: one for each GPU.
  std::vector<job_host> by_name = all;
  seq::sort_by(by_name, &job_host::name);
  for (job_host& h : hosts) {
    if (o.slot_count) h.slot_count = *o.slot_count;
    const auto known = seq::lower_bound_by(by_name, h.name, &job_host::name);
    if (h.slot_count == 0 && known != by_name.end() && known->name == h.name) h.slot_count = known->slot_count;
  }
  const auto order = order_hosts(*g, hosts);
  if (!order) return complain(err, order.error());
  std::string notes;
  const auto text = detail::order_form(*order, o, notes);
  if (!text) return complain(err, text.error());
  if (!o.output.empty()) {
    if (const auto written = io::write_file(o.output, *text); !written) return complain(err, written.error());
  } else {
    out(*text);
  }
  for (const finding& f : order->findings) complain(err, f.what + (f.evidence.empty() ? "" : " (" + f.evidence + ")"));
  if (!o.json) err(to_text(*order));
  err(notes);
  return exit_ok;
}

}}}  // namespace topocoll::v0::app
