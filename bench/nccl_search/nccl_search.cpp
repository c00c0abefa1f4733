// SPDX-License-Identifier: Apache-2.0
// Plans all-reduce on the machines of a table of NCCL's own channel search, with NCCL's link rates, and compares.
//
//   bench_nccl_search FOLDER TABLE [--out FILE] [--only TEXT]
//
// FOLDER has topology files of NCCL (nccl-xml), TABLE is tab-separated: file, nodes, ring_nch, ring_total_GBs, … Writes
// Markdown. Exit code: 0, or 1 when a plan is slower than NCCL's or cannot be proved, 2 when the input cannot be read.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/discover/nccl_graph.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/plan/bound.hpp>
#include <topocoll/plan/nccl_rates.hpp>
#include <topocoll/plan/simulate.hpp>
#include <topocoll/plan/synth/hierarchical.hpp>
#include <topocoll/plan/synth/in_switch.hpp>
#include <topocoll/plan/synth/packed.hpp>
#include <topocoll/plan/traffic.hpp>
#include <topocoll/plan/verify.hpp>
#include "machines.hpp"

namespace {

namespace tc = topocoll;
namespace plan = topocoll::plan;
namespace topo = topocoll::topo;
using tc::link_id;
using tc::node_id;
using tc::result;

/// CPU time of the process in milliseconds.
double cpu_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// One row of NCCL's table, by the names of its columns.
struct row {
  std::map<std::string, std::string> cells;

  [[nodiscard]] const std::string& text(const std::string& column) const {
    static const std::string nothing;
    const auto it = cells.find(column);
    return it == cells.end() ? nothing : it->second;
  }
  [[nodiscard]] double number(const std::string& column) const { return std::atof(text(column).c_str()); }
  [[nodiscard]] std::string name() const { return text("file"); }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(number("nodes")); }
};

result<std::vector<row>> read_table(const std::string& path) {
  const auto text = tc::io::read_file(path);
  if (!text) return text.error();
  std::istringstream in(*text);
  std::string line;
  std::vector<std::string> columns;
  std::vector<row> rows;
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream fields(line);
    for (std::string cell; std::getline(fields, cell, '\t');) cells.push_back(cell);
    if (columns.empty()) {
      columns = cells;
      if (columns.size() < 4 || columns[0] != "file")
        return tc::fail(tc::errc::malformed_input, path + ": the first column is not \"file\"");
      continue;
    }
    row r;
    for (std::size_t k = 0; k < cells.size() && k < columns.size(); ++k) r.cells[columns[k]] = cells[k];
    if (r.nodes() > 0) rows.push_back(std::move(r));
  }
  return rows;
}

/// The machines of a row, `nodes` of them, and a switch that never limits if they are to talk through the network.
result<topo::graph> cluster(const std::vector<bench::machine>& machines, std::uint32_t nodes, bool network) {
  topo::fragment all;
  all.source = machines.front().name;
  std::uint32_t made = 0;
  for (const bench::machine& m : machines)
    for (std::uint32_t k = 0; k < (m.copies == 0 ? nodes : m.copies); ++k) {
      auto one = tc::fragment_of(m.topology, "n" + std::to_string(made++), m.name);
      if (!one) return one.error();
      const auto shift = static_cast<std::uint32_t>(all.nodes.size());
      for (topo::node& n : one->nodes) all.nodes.push_back(std::move(n));
      for (topo::link& l : one->links) {
        l.from.value += shift;
        l.to.value += shift;
        all.links.push_back(std::move(l));
      }
    }
  if (made != nodes)
    return tc::fail(tc::errc::malformed_input,
                    "the row has " + std::to_string(nodes) + " nodes, its name " + std::to_string(made));
  if (network) {
    topo::node net;
    net.kind = topo::node_kind::leaf;
    net.key = net.name = "network";
    const node_id middle = all.add(std::move(net));
    const std::size_t inside = all.links.size();
    for (std::size_t e = 0; e < inside; ++e)
      if (all.nodes[all.links[e].to.value].kind == topo::node_kind::nic_port) {
        topo::link cable = all.links[e];  // as fast as its port
        cable.from = cable.to;
        cable.to = middle;
        cable.kind = topo::link_kind::infiniband;
        cable.current = plan::nccl_rates{}.rate(all.links[e]);
        all.join(cable);
      }
  }
  auto raw = topo::graph::from(std::move(all));
  if (!raw) return raw.error();
  return plan::with_rates_of(*raw, plan::nccl_rates{}, "as NCCL books it");
}

bool is_intel(const topo::node& n) {
  for (const auto& [name, value] : n.facts)
    if (name == "vendor" && value == "GenuineIntel") return n.kind == topo::node_kind::cpu;
  return false;
}

/// NCCL charges PCIe 1.2 times for what a GPU sends through the root complex of an Intel processor. Source: NCCL 2.28.9,
/// graph/search.cc.
constexpr double through_intel = 1.2;

/// Rates with that charge in advance, so that plans suffer less from it. Which is best depends on what else a link carries.
struct charged_rates {
  const topo::graph* g;
  double at_processor = through_intel;  ///< on PCIe links of Intel processors; 0 keeps plans away from them
  double elsewhere = 1;                 ///< on other PCIe links of hosts with such processors

  [[nodiscard]] tc::bytes_per_second rate(const topo::link& l) const {
    if (l.kind != topo::link_kind::pcie) return l.capacity;
    const double charge = is_intel(g->at(l.from)) || is_intel(g->at(l.to)) ? at_processor : elsewhere;
    return {charge > 0 ? l.capacity.value / charge : 0};
  }
  [[nodiscard]] tc::seconds transfer(const topo::link& l, tc::bytes b) const { return b / rate(l); }
  [[nodiscard]] static tc::seconds latency(const topo::link&) { return {}; }
  [[nodiscard]] static tc::seconds post() { return {}; }
  [[nodiscard]] static tc::seconds launch() { return {}; }
  [[nodiscard]] static tc::seconds reduce(tc::bytes) { return {}; }
};

/// Array bandwidth of a plan whose ways are written down, every link charged as NCCL would charge it: PCIe through Intel
/// root complexes, and an eighth of what the network writes into a GPU older than Ampere on the way back. 0: no ways.
double booked_rate(const topo::graph& g, const plan::schedule& p, bool before_ampere) {
  std::vector<double> load(g.link_count(), 0);
  const double chunks = p.chunks();
  for (const plan::traffic_round& r : plan::traffic(p))
    for (const plan::transfer& t : r.moves) {
      if (t.way == 0) return 0;
      const double amount = static_cast<double>(t.chunks) * r.repeat / chunks;
      const auto& links = p.ways[t.way - 1].links;
      // A way through the network is a path to an adapter, and a path from one.
      for (std::size_t first = 0; first < links.size();) {
        std::size_t end = first;
        std::uint32_t roots = 0, between = 0;
        bool intel = false, port = false;
        while (end < links.size() && !port) {
          const topo::link& l = g.at(links[end++]);
          const topo::node& to = g.at(l.to);
          roots += to.kind == topo::node_kind::cpu ? 1 : 0;
          between += l.kind == topo::link_kind::cpu ? 1 : 0;
          intel = intel || is_intel(to);
          port = to.kind == topo::node_kind::nic_port || to.kind == topo::node_kind::leaf;
        }
        const bool from_gpu = g.at(g.at(links[first]).from).kind == topo::node_kind::gpu;
        const bool charge = from_gpu && intel && roots == 1 && between == 0;
        for (std::size_t k = first; k < end; ++k)
          load[links[k].value] += amount * (charge && g.at(links[k]).kind == topo::link_kind::pcie ? through_intel : 1);
        const topo::link& last = g.at(links[end - 1]);
        if (before_ampere && !from_gpu && g.at(last.to).kind == topo::node_kind::gpu)
          for (const link_id back : g.out_links(last.to))
            if (g.at(back).to == last.from) load[back.value] += amount / 8;
        first = end;
      }
    }
  double longest = 0;
  for (std::uint32_t e = 0; e < load.size(); ++e)
    if (load[e] > 0) longest = std::max(longest, load[e] / g.capacity({e}).value);
  return longest > 0 ? 1 / longest : 0;
}

/// What came out for one row. Rates are bus bandwidths in GB/s.
struct outcome {
  std::string name, failure, planner, why;
  std::uint32_t nodes = 0, ranks = 0;
  double theirs = 0, ours = 0, bound = 0, in_network = 0, nvls = 0, switched = 0;
  double their_ms = 0, our_ms = 0, proof_ms = 0;
  bool split = false;

  [[nodiscard]] bool lower() const { return ours < theirs * (1 - 1e-9); }
  [[nodiscard]] bool equal() const { return !lower() && ours <= theirs * (1 + 1e-9); }
  [[nodiscard]] double ratio() const { return theirs > 0 ? ours / theirs : 0; }
};

constexpr tc::bytes size{std::uint64_t{1} << 40U};

/// Where NCCL's search loses on a machine of this shape, as a key of `reasons`.
std::string reason_of(const row& r, const topo::graph& g, std::size_t machines, bool split) {
  bool nvlink = false, nvswitch = false;
  for (const topo::link& l : g.links()) nvlink = nvlink || l.kind == topo::link_kind::nvlink;
  for (const topo::node& n : g.nodes()) nvswitch = nvswitch || n.kind == topo::node_kind::nvswitch;
  const std::string intra = r.text("ring_typeIntra");
  if (machines > 1) return "U";
  if (split) return "S";
  if (nvlink && (intra == "PHB" || intra == "SYS")) return "I";
  if (!nvlink) return "P";
  if (r.nodes() > 1) return "N";
  return nvswitch ? "T" : "M";
}
constexpr std::pair<const char*, const char*> reasons[] = {
    {"I",
     "NVLink islands joined by PCIe: NCCL's rings visit all GPUs, so every channel crosses PCIe at one speed. Ours "
     "cross it "
     "once per island, with trees that stay inside for the rest."},
    {"M",
     "a mesh: NCCL looks for Hamiltonian cycles of one speed. Trees of different weights use every link, PCIe too."},
    {"N",
     "several nodes: a ring of channels takes the array through the NICs n - 1 times in n; trees enter a node once. "
     "What "
     "NVLink and PCIe have left is used as well, and a slow NIC or GPU carries less instead of slowing all."},
    {"P", "PCIe only: one speed from a table for the whole ring. A tree has slow parts as leaves."},
    {"S",
     "NCCL splits the host into parts that talk through NICs, because GPUs reach these faster than each other. The "
     "whole "
     "host is planned here; NICs may be used."},
    {"T", "NVSwitch: NCCL rounds the speed of a channel down to a table and leaves PCIe (and C2C) idle."},
    {"U", "unequal nodes: NCCL takes the least channel count and the least speed of all nodes, separately."},
};

outcome compare(const std::string& folder, const row& r) {
  outcome o;
  o.name = r.name();
  o.nodes = r.nodes();
  o.theirs = r.number("ring_total_GBs");
  o.their_ms = r.number("plan_ms_cpu_min");
  const double begin = cpu_ms();
  const auto machines = bench::machines_of(folder, r.name());
  if (!machines) {
    o.failure = machines.error().what;
    return o;
  }
  const bool network = o.nodes > 1 || r.text("ring_typeInter") != "-";
  const auto g = cluster(*machines, o.nodes, network);
  if (!g) {
    o.failure = g.error().message();
    return o;
  }
  plan::problem q;
  q.graph = &*g;
  q.size = size;
  q.ranks = g->all(topo::node_kind::gpu);
  o.ranks = q.rank_count();
  const double to_bus = 2.0 * (o.ranks - 1) / o.ranks / 1e9;
  const auto bus = [&](tc::seconds t) { return size / t / tc::bytes_per_second{1} * to_bus; };
  const bool before_ampere = r.number("sm") < 80;

  plan::schedule best;
  const auto consider = [&](const auto& planner, const plan::problem& on) {
    const auto made = planner.synthesize(on);
    if (!made) {
      if (o.ours == 0) o.failure = made.error().message();
      return;
    }
    double rate = booked_rate(*g, *made, before_ampere) * to_bus;
    if (rate == 0) {
      const auto priced = plan::simulate(q, *made, charged_rates{&*g});
      if (!priced) {
        o.failure = priced.error().message();
        return;
      }
      rate = bus(priced->busiest);
    }
    if (rate <= o.ours) return;
    o.ours = rate;
    o.planner = planner.name();
    best = *made;
  };
  // Plans are made until one is within 1 % of the bound.
  const auto limit = plan::lower_bound(q);
  if (!limit) {
    o.failure = limit.error().message();
    return o;
  }
  o.bound = bus(limit->bandwidth_time);
  const auto good = [&] { return o.ours >= 0.99 * o.bound; };
  plan::packed packed;
  packed.cost = plan::alpha_beta::ideal();
  packed.most_ranks = 256;
  constexpr std::uint32_t many = 48;
  if (o.ranks > many) consider(plan::hierarchical{}, q);
  if (!good()) consider(packed, q);
  if (std::any_of(g->nodes().begin(), g->nodes().end(), is_intel))
    for (const charged_rates& rates :
         {charged_rates{&*g}, charged_rates{&*g, through_intel, through_intel}, charged_rates{&*g, 0, 1}}) {
      if (good()) break;
      const auto charged = plan::with_rates_of(*g, rates, "through an Intel root complex");
      plan::problem on = q;
      on.graph = &*charged;
      consider(packed, on);
    }
  if (o.ours == 0) return o;
  o.our_ms = cpu_ms() - begin;
  o.failure.clear();
  o.split = static_cast<std::uint32_t>(r.number("gpus/node")) * o.nodes < o.ranks;
  o.why = reason_of(r, *g, machines->size(), o.split);

  const double rest = cpu_ms();
  const auto proof = plan::verify(best);
  if (!proof) o.failure = "not proved: " + proof.error().message();
  o.proof_ms = cpu_ms() - rest;
  if (r.number("nvls_nch") > 0 && o.nodes == 1) {
    o.nvls = r.number("nvls_nch") * r.number("nvls_bwIntra") * to_bus * 1e9;
    q.reduces = plan::in_network::nvswitches;
    const auto in = plan::lower_bound(q);
    if (in) o.in_network = bus(in->bandwidth_time);
    if (const auto made = plan::in_switch{}.synthesize(q); made) {
      const auto priced = plan::simulate(q, *made, charged_rates{&*g});
      if (priced) o.switched = bus(priced->busiest);
    }
  }
  return o;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string rate_text(double value) { return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0); }
std::string time_text(double ms) { return fixed(ms, ms < 10 ? 1 : 0); }

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string document(const std::vector<outcome>& all) {
  std::vector<outcome> done, missing;
  for (const outcome& o : all) (o.ours > 0 ? done : missing).push_back(o);
  std::size_t higher = 0, equal = 0, lower = 0, at_bound = 0, unproved = 0, slower = 0;
  std::vector<double> ratios, times;
  double ours_ms = 0, theirs_ms = 0;
  const outcome *worst = nullptr, *best = nullptr, *slowest = nullptr;
  for (const outcome& o : done) {
    (o.lower() ? lower : o.equal() ? equal : higher) += 1;
    at_bound += o.ours >= 0.99 * o.bound ? 1 : 0;
    unproved += o.failure.empty() ? 0 : 1;
    slower += o.our_ms > o.their_ms ? 1 : 0;
    ratios.push_back(o.ratio());
    times.push_back(o.their_ms / o.our_ms);
    ours_ms += o.our_ms;
    theirs_ms += o.their_ms;
    if (worst == nullptr || o.ratio() < worst->ratio()) worst = &o;
    if (best == nullptr || o.ratio() > best->ratio()) best = &o;
    if (slowest == nullptr || o.our_ms / o.their_ms > slowest->our_ms / slowest->their_ms) slowest = &o;
  }
  std::ostringstream t;
  t << "# Against NCCL's own channel search\n\n"
       "Regenerated by one command (`cmake --build build --target bench_nccl_search` makes the program; one core, half "
       "a "
       "minute). FOLDER holds topology\nfiles of NCCL and RCCL, TABLE what NCCL's search found on them:\n\n"
       "    build/bench/bench_nccl_search FOLDER TABLE --out docs/results/nccl-search.md\n\n"
       "TABLE was made with the unmodified graph code of NCCL 2.28.9 (parser, paths, search, tuning) on the same "
       "files. Both "
       "sides use NCCL's link\nrates (`plan/nccl_rates.hpp`). N nodes are N copies of the file's machine, joined by a "
       "network "
       "that never limits, because NCCL models\nnothing beyond the NIC. *NCCL* is what its rings are planned to carry, "
       "channels "
       "times speed of a channel: for a ring that is bus bandwidth\n(all-reduce: size / time x 2 (n-1) / n). *Ours* is "
       "the bus "
       "bandwidth of our plan for large arrays, by its busiest link, booked as NCCL books:\nwhat GPUs send through the "
       "root "
       "complex of an Intel processor loads PCIe 1.2 times, and what the network writes into a GPU older than "
       "Ampere\nloads the "
       "way back by an eighth. *Bound* is what no plan can exceed on the bare rates, so without these charges; sums "
       "are made in "
       "GPUs. Every plan\nwas proved to compute an all-reduce (`verify`). Rates are in GB/s. These are planned figures "
       "of both "
       "sides, not measurements.\n\n"
       "Times are CPU milliseconds for one plan from the file on: reading, graph, bound, planning, pricing here (proof "
       "not "
       "included); parsing, paths,\nsearch and tuning in NCCL (least of its runs, warm, on another day and the same "
       "kind of "
       "machine: read them as magnitudes). NCCL's part also\nmakes trees and, on newer GPUs, NVLS.\n\n";
  t << done.size() << " of " << all.size() << " rows: **" << higher << " higher, " << equal << " equal, " << lower
    << " lower**; " << at_bound << " within 1 % of the bound";
  if (unproved > 0) t << "; " << unproved << " plans could not be proved";
  if (!done.empty())
    t << ". Ours over NCCL's: median " << fixed(middle(ratios), 2) << ", least " << fixed(worst->ratio(), 2) << " ("
      << worst->name << ", " << worst->nodes << " nodes), most " << fixed(best->ratio(), 2) << " (" << best->name
      << ", " << best->nodes << " nodes).\nPlanning: " << fixed(ours_ms / 1e3, 1) << " s here for all rows, "
      << fixed(theirs_ms / 1e3, 1) << " s in NCCL; median of NCCL's time over ours " << fixed(middle(times), 0)
      << ", least " << fixed(slowest->their_ms / slowest->our_ms, 2) << " (" << slowest->name << ", " << slowest->nodes
      << " nodes); slower on " << slower << " rows.\n\nWhy there is a difference:\n\n";
  for (const auto& [key, words] : reasons) t << "- **" << key << "** " << words << '\n';
  t << "\n| machine | nodes | ranks | NCCL | ours | ours / NCCL | bound | planner | why | ms here | ms NCCL |\n"
       "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const outcome& o : done)
    t << "| " << o.name << " | " << o.nodes << " | " << o.ranks << " | " << rate_text(o.theirs) << " | "
      << (o.lower() ? "**" : "") << rate_text(o.ours) << (o.lower() ? "** (lower)" : "") << " | " << fixed(o.ratio(), 2)
      << " | " << rate_text(o.bound) << " | " << o.planner << " | " << o.why
      << (o.equal() && o.ours >= 0.99 * o.bound ? ", equal and at the bound" : "")
      << (o.failure.empty() ? "" : ", " + o.failure) << " | " << time_text(o.our_ms) << " | " << time_text(o.their_ms)
      << " |\n";
  t << "\n## Sums made in NVSwitches\n\n"
       "NCCL also plans NVLS on one node, where NVSwitches add and multicast. That is another problem with another "
       "bound: what NVLS\nis planned to carry (heads x speed x 2 (n-1) / n, before the efficiency of its tuning "
       "model), "
       "what the plan `in_switch` carries\nat the same speed of links (each takes (1 + 1/n) of the array, as the "
       "switch "
       "reads the reader's own part too), the bound with\nNVSwitches that reduce, and the plan above, in which ranks "
       "do. "
       "A slow GPU slows all that NVSwitches add, but not packed trees.\n\n"
       "| machine | NVLS | in_switch | bound | without NVSwitches |\n|---|---|---|---|---|\n";
  for (const outcome& o : done)
    if (o.in_network > 0)
      t << "| " << o.name << " | " << rate_text(o.nvls) << " | " << rate_text(o.switched) << " | "
        << rate_text(o.in_network) << " | " << rate_text(o.ours) << " |\n";
  t << "\n## Machines that were completed or made\n\n"
       "Files that list PCI devices alone were completed as the table's were: GPUs, NVLink, ports. RCCL's files are "
       "read as "
       "machines of NVLink with\ncompute capability 8.0. Others:\n\n";
  for (const bench::recipe& x : bench::recipes)
    if (!x.remark.empty()) t << "- " << x.name << ": " << x.remark << '\n';
  t << "- x-dgx2-v100x16: no file, made as its user guide describes it: eight PCIe switches with two GPUs and a NIC "
       "each\n"
       "- x-gb200-tray4: no file, made from its description; C2C of 225 GB/s a GPU each way (NVIDIA states 900 GB/s "
       "both ways "
       "for a Grace with two)\n";
  if (!missing.empty()) t << "\n## Machines that are not covered\n\n";
  for (std::size_t k = 0; k < missing.size(); ++k) {
    const auto same = [&](const outcome& o) { return o.name == missing[k].name; };
    if (std::any_of(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(k), same)) continue;
    t << "- " << missing[k].name << " (" << std::count_if(missing.begin(), missing.end(), same)
      << " rows): " << missing[k].failure << '\n';
  }
  return t.str();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> places;
  std::string out, only;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    if (a == "--out" && k + 1 < argc)
      out = argv[++k];
    else if (a == "--only" && k + 1 < argc)
      only = argv[++k];
    else
      places.push_back(a);
  }
  if (places.size() != 2) {
    std::cerr << "usage: bench_nccl_search FOLDER TABLE [--out FILE] [--only TEXT]\n";
    return 2;
  }
  const auto rows = read_table(places[1]);
  if (!rows) {
    std::cerr << rows.error().message() << '\n';
    return 2;
  }
  std::vector<outcome> all;
  bool bad = false;
  for (const row& r : *rows) {
    if (r.name().find(only) == std::string::npos) continue;
    all.push_back(compare(places[0], r));
    const outcome& o = all.back();
    if (o.ours == 0) continue;
    bad = bad || o.lower() || !o.failure.empty();
    if (o.lower() || !o.failure.empty())
      std::cerr << o.name << ", " << o.nodes << " nodes: " << rate_text(o.ours) << " of " << rate_text(o.theirs)
                << ", bound " << rate_text(o.bound) << ' ' << o.failure << '\n';
  }
  const std::string text = document(all);
  if (out.empty())
    std::cout << text;
  else if (const auto written = tc::io::write_file(out, text); !written) {
    std::cerr << written.error().message() << '\n';
    return 2;
  }
  return bad ? 1 : 0;
}
