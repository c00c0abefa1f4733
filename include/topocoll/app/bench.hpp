// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `topocoll bench`: collectives between processes of this host, in the table of nccl-tests.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <optional>
#include <sched.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/app/detail/bench_options.hpp>
#include <topocoll/app/detail/clock_text.hpp>
#include <topocoll/app/options.hpp>
#include <topocoll/app/sink.hpp>
#include <topocoll/bench/nccl_json.hpp>
#include <topocoll/bench/nccl_style.hpp>
#include <topocoll/bench/sweep.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/exec/launch.hpp>
#include <topocoll/exec/local.hpp>
#include <topocoll/exec/shm.hpp>
#include <topocoll/io/file.hpp>
#include <topocoll/probe/collective_probe.hpp>
#include <topocoll/probe/cores.hpp>
#include <topocoll/probe/memory.hpp>
#include <CLI/CLI.hpp>

namespace topocoll { inline namespace v0 { namespace app {

/// Runs `topocoll bench`. Without a launcher it forks the ranks itself; under torchrun, mpirun or srun on one host the processes
/// find each other by shared memory, and rank 0 speaks.
///
/// Reads the environment (see `launch_from_environment`).
/// @return `exit_ok`; `exit_problem` for wrong data, a lost rank or a size that took too long, with one sentence on `err`;
///         `exit_unable` for bad options or a group that could not be made
template <class = void>
[[nodiscard]] int run_bench(std::span<const std::string_view> args, sink out, sink err);

namespace detail {

/// What ranks leave for the process that started them: rows as they are finished, and what each rank is doing.
class bench_board {
 public:
  struct stored_row {
    std::uint64_t size, count, iterations, out_wrong, in_wrong;
    double out_time, in_time;
    std::uint8_t type, op, checked;
    char plan[61];
  };
  struct head {
    std::atomic<std::uint64_t> rows;
  };

  bench_board(std::size_t rows, std::uint32_t ranks)
      : rows_(rows), memory_(sizeof(head) + 64 + ranks * sizeof(bench::whereabouts) + rows * sizeof(stored_row), true) {
    if (!memory_) return;
    new (memory_.data()) head{};
    places_ = reinterpret_cast<bench::whereabouts*>(memory_.data() + 64);
    for (std::uint32_t r = 0; r < ranks; ++r) new (places_ + r) bench::whereabouts{};
    first_ = reinterpret_cast<stored_row*>(reinterpret_cast<std::byte*>(places_ + ranks));
  }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(memory_); }
  [[nodiscard]] bench::whereabouts& place(std::uint32_t rank) const { return places_[rank]; }

  /// By rank 0.
  void add(const bench::row& r) const {
    const std::uint64_t at = counter().load(std::memory_order_relaxed);
    if (at >= rows_) return;
    stored_row& s = first_[at];
    s = {r.size.value,
         r.count,
         r.iterations,
         r.out_of_place.wrong.value_or(0),
         r.in_place.wrong.value_or(0),
         r.out_of_place.time.value,
         r.in_place.time.value,
         static_cast<std::uint8_t>(r.type),
         static_cast<std::uint8_t>(r.op),
         r.in_place.wrong.has_value() ? std::uint8_t{1} : std::uint8_t{0},
         {}};
    std::strncpy(s.plan, r.plan.c_str(), sizeof s.plan - 1);
    counter().store(at + 1, std::memory_order_release);
  }
  /// By the starter, at any time.
  [[nodiscard]] std::vector<bench::row> rows(const bench::sweep_config& c, std::uint32_t ranks) const {
    std::vector<bench::row> all;
    for (std::uint64_t i = 0; i < counter().load(std::memory_order_acquire); ++i) {
      const stored_row& s = first_[i];
      bench::row r;
      r.collective = c.collective;
      r.size = {s.size};
      r.count = s.count;
      r.iterations = s.iterations;
      r.type = static_cast<dtype>(s.type);
      r.op = static_cast<reduce_op>(s.op);
      if (rooted(c.collective)) r.root = c.root;
      r.ranks = ranks;
      r.plan = s.plan;
      r.out_of_place.time = {s.out_time};
      r.in_place.time = {s.in_time};
      if (s.checked != 0) r.out_of_place.wrong = s.out_wrong;
      if (s.checked != 0) r.in_place.wrong = s.in_wrong;
      all.push_back(std::move(r));
    }
    return all;
  }

 private:
  [[nodiscard]] std::atomic<std::uint64_t>& counter() const { return reinterpret_cast<head*>(memory_.data())->rows; }

  std::size_t rows_;
  bench::detail::pages memory_;
  bench::whereabouts* places_ = nullptr;
  stored_row* first_ = nullptr;
};

/// busbw that memory allows, by size; measured before any rank runs.
struct bench_bounds {
  std::vector<std::pair<bytes, bytes_per_second>> by_size;
  [[nodiscard]] std::optional<bytes_per_second> of(bytes size) const {
    for (const auto& [at, bound] : by_size)
      if (at == size) return bound;
    return std::nullopt;
  }
};

template <class = void>
[[nodiscard]] bench_bounds measure_bounds(const bench::sweep_config& c, std::uint32_t ranks, deadline until) {
  bench_bounds bounds;
  const probe::core_layout layout = probe::read_core_layout();
  std::vector<std::uint32_t> cores;
  for (const probe::usable_core& core : layout.cores)
    if (cores.size() < ranks) cores.push_back(core.number);
  for (const bytes asked : bench::sizes(c.range)) {
    const bytes size =
        bench::size_of_count(c.collective, bench::count_of(c.collective, asked, c.type, ranks), c.type, ranks);
    if (size.value == 0 || cores.empty()) continue;
    // The working set of the ranks, spread over the cores: small sizes stay in the caches, large ones do not.
    const bytes each{std::max<std::uint64_t>(4096, size.value * ranks / cores.size())};
    if (layout.memory_available && 4 * each.value * cores.size() > layout.memory_available->value) continue;
    const auto rates = probe::measure_memory(cores, {.buffer = each, .repeats = 5, .most = 15, .warm_up = 1}, until);
    if (!rates) continue;  // the column says N/A
    const auto limit = probe::limit_by_memory(c.collective, size, ranks, rates->front().together.median, cores.size());
    bounds.by_size.emplace_back(size, size / limit.time * busbw_factor(c.collective, ranks));
  }
  return bounds;
}

/// One rank's whole run; what rank 0 has to say goes to `say`, and each row to `board` where there is one.
template <Transport T, class Say>
[[nodiscard]] result<std::uint64_t> bench_rank(communicator<T>& comm, const bench_request& request,
                                               const bench_bounds& bounds, const bench_board* board,
                                               std::vector<bench::rank_line>& ranks, std::vector<bench::row>& rows,
                                               Say&& say) {
  const bool speaks = comm.rank().value == 0;
  struct card {
    char host[56];
    std::int64_t pid;
  };
  static_assert(sizeof(card) == 64);
  card mine{};
  std::strncpy(mine.host, topocoll::detail::host_name().c_str(), sizeof mine.host - 1);
  mine.pid = ::getpid();
  std::vector<card> cards(comm.size());
  if (auto met = comm.all_gather(&mine, cards.data(), sizeof(card), dtype::uint8, {reduce_op::sum, seconds{60}}); !met)
    return std::move(met).error();
  for (std::uint32_t r = 0; r < comm.size(); ++r)
    ranks.push_back({r, static_cast<long>(cards[r].pid), cards[r].host, std::nullopt});
  if (speaks) say(bench::header(request.sweeps.front(), ranks) + bench::column_lines(request.bound));

  std::uint64_t wrong = 0;
  for (const bench::sweep_config& config : request.sweeps) {
    bench::sweep<T> sweep(comm, config, board != nullptr ? &board->place(comm.rank().value) : nullptr);
    if (auto ready = sweep.prepare(); !ready) return std::move(ready).error();
    for (const bytes size : bench::sizes(config.range)) {
      auto row = sweep.measure(size);
      if (!row) return std::move(row).error();
      row->bound = bounds.of(row->size);
      wrong += row->out_of_place.wrong.value_or(0) + row->in_place.wrong.value_or(0);
      if (!speaks) continue;
      if (board != nullptr) board->add(*row);
      say(bench::to_text(*row, request.bound));
      rows.push_back(std::move(*row));
    }
  }
  if (board != nullptr)
    board->place(comm.rank().value).at.store(bench::whereabouts::phase::finished, std::memory_order_relaxed);
  if (speaks) say(bench::footer(bench::total(rows)));
  return wrong;
}

/// The first name of "file", "file.1", "file.2", … that does not exist yet; the file is made, empty.
template <class = void>
[[nodiscard]] result<std::string> new_name(const std::string& file) {
  for (int i = 0; i < 10000; ++i) {
    const std::string name = i == 0 ? file : file + "." + std::to_string(i);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      ::close(fd);
      return name;
    }
    if (errno != EEXIST)
      return fail(errc::system, "'" + name + "' cannot be made: " + std::strerror(errno),
                  "choose another name or directory for -J");
  }
  return fail(errc::system, "'" + file + "' and its names with numbers are all taken", "choose another name for -J");
}

/// JSON to where it was asked for; the exit code.
template <class = void>
[[nodiscard]] int deliver(const bench_request& request, std::span<const bench::row> rows, bench::run_facts facts,
                          const std::string& file, int code, sink out, sink err) {
  facts.end_time = utc_now();
  if (!request.json && file.empty()) return code;
  const std::string text = io::to_text(bench::to_json(request.sweeps.front(), rows, facts));
  if (request.json) out(text);
  if (file.empty()) return code;
  if (auto written = io::write_file(file, text); !written) {
    complain(err, written.error());
    return std::max<int>(code, exit_unable);
  }
  return code;
}

/// One sentence on what ended the run: who, where, doing what.
template <class = void>
[[nodiscard]] std::string what_ended(std::span<const rank_exit> exits, const bench_board& board,
                                     collective_kind collective) {
  const rank_exit* killed = nullptr;
  for (const rank_exit& e : exits)
    if (e.signal != 0 && killed == nullptr) killed = &e;
  if (killed != nullptr && killed->outcome.error().code == errc::peer_lost) {
    const std::string host = topocoll::detail::host_name();
    return "rank " + std::to_string(killed->rank.value) + " (pid " + std::to_string(killed->pid) + " on host " + host +
           ") was killed by " + topocoll::detail::signal_in_words(killed->signal) + " during " +
           bench::to_string(board.place(killed->rank.value), collective) + "; the other ranks were stopped";
  }
  if (const auto why = probe::first_failure(exits)) return why->message();
  return {};
}

template <class = void>
[[nodiscard]] int bench_by_fork(const bench_request& request, bench::run_facts facts, sink out, sink err) {
  const std::uint32_t ranks = request.ranks.value_or(
      static_cast<std::uint32_t>(std::clamp<std::size_t>(probe::read_core_layout().cores.size(), 2, 8)));
  std::string file;
  if (!request.file.empty()) {
    auto name = new_name(request.file);
    if (!name) return complain(err, name.error());
    file = std::move(*name);
  }
  const bench::sweep_config& first = request.sweeps.front();
  const bench_bounds bounds = request.bound ? measure_bounds(first, ranks, deadline::in(seconds{60})) : bench_bounds{};
  const bench_board board(request.sweeps.size() * bench::sizes(first.range).size(), ranks);
  if (!board) return complain(err, fail(errc::system, "no shared memory for the ranks' figures"));

  // A row is shown as soon as it is there where a child can write; else everything comes at the end.
  const bool shows = !request.json;
  std::vector<bench::rank_line> lines;
  const auto body = [&](shm_transport& transport) -> result<std::string> {
    auto comm = communicator<shm_transport>::create(std::move(transport));
    if (!comm) return std::move(comm).error();
    std::string text;
    std::vector<bench::row> rows;
    const auto say = [&](const std::string& more) {
      if (shows && out.forks)
        out(more);
      else if (shows)
        text += more;
    };
    auto wrong = bench_rank(*comm, request, bounds, &board, lines, rows, say);
    if (!wrong) return std::move(wrong).error();
    return text;
  };
  auto exits = run_local_ranks(ranks, {}, body, deadline::in(seconds{1e9}));
  if (!exits) return complain(err, exits.error());
  for (const rank_exit& e : *exits)
    facts.ranks.push_back({e.rank.value, e.pid, topocoll::detail::host_name(), std::nullopt});
  std::vector<bench::row> rows = board.rows(first, ranks);
  for (bench::row& r : rows) r.bound = bounds.of(r.size);

  int code = exit_ok;
  const std::string why = what_ended(*exits, board, first.collective);
  if (!why.empty()) {
    if (shows && !out.forks)
      for (const bench::row& r : rows) out(bench::to_text(r, request.bound));
    complain(err, why);
    facts.errors.push_back(why);
    const bool refused =
        rows.empty() && seq::none_of(*exits, [](const rank_exit& e) { return e.signal != 0; }) &&
        seq::any_of(*exits, [](const rank_exit& e) {
          return !e.outcome && (e.outcome.error().code == errc::invalid_argument ||
                                e.outcome.error().code == errc::unsupported || e.outcome.error().code == errc::system);
        });
    code = refused ? exit_unable : exit_problem;
  } else {
    if (shows && !out.forks) out(*exits->front().outcome);
    const std::uint64_t wrong = bench::total(rows).wrong;
    if (wrong > 0) {
      complain(err, std::to_string(wrong) + " elements of the results are wrong");
      code = exit_problem;
    }
  }
  return deliver(request, rows, std::move(facts), file, code, out, err);
}

/// Under a launcher: this process is one rank, and the others are on this host or cannot be reached.
template <class = void>
[[nodiscard]] int bench_by_launch(const bench_request& request, const launch& me, bench::run_facts facts, sink out,
                                  sink err) {
  const auto refuse = [&](const std::string& what, const std::string& next) {
    if (me.rank.value == 0) complain(err, fail(errc::unsupported, what, next));
    return static_cast<int>(exit_unable);
  };
  if (request.ranks && *request.ranks != me.size)
    return refuse("--ranks " + std::to_string(*request.ranks) + " contradicts " + me.launcher + ", which started " +
                      std::to_string(me.size) + " ranks",
                  "leave --ranks out");
  if (me.local_size && *me.local_size < me.size)
    return refuse(
        me.launcher + " started " + std::to_string(me.size) + " ranks, " + std::to_string(*me.local_size) +
            " of them on this host: ranks of several hosts need a network transport, which this program does not have",
        "start all ranks on one host");
  std::string name =
      "bench-" + (me.job ? *me.job : std::to_string(::getppid())) + "-" + std::to_string(me.restarts.value_or(0));
  for (char& c : name)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-' && c != '.') c = '_';
  if (name.size() > 100) name.resize(100);
  auto transport = join_shm(name, me.rank, me.size, deadline::in(seconds{30}));
  if (!transport) return complain(err, transport.error());
  auto comm = communicator<shm_transport>::create(std::move(*transport));
  if (!comm) return complain(err, comm.error());
  std::string file;
  if (!request.file.empty() && me.rank.value == 0) {
    auto made = new_name(request.file);
    if (!made) {
      comm->abort(made.error().what);
      return complain(err, made.error());
    }
    file = std::move(*made);
  }
  std::vector<bench::row> rows;
  auto wrong = bench_rank(*comm, request, bench_bounds{}, nullptr, facts.ranks, rows, [&](const std::string& text) {
    if (!request.json) out(text);
  });
  int code = exit_ok;
  if (!wrong) {
    if (wrong.error().code != errc::aborted) complain(err, wrong.error());
    facts.errors.push_back(wrong.error().message());
    code = exit_problem;
  } else if (*wrong > 0) {
    if (me.rank.value == 0) complain(err, std::to_string(*wrong) + " elements of the results are wrong");
    code = exit_problem;
  }
  if (me.rank.value != 0) return code;
  return deliver(request, rows, std::move(facts), file, code, out, err);
}

}  // namespace detail

template <class>
int run_bench(std::span<const std::string_view> args, sink out, sink err) {
  CLI::App cli("measures a collective between processes of this host and prints the table of nccl-tests", "bench");
  detail::bench_words words;
  detail::declare(cli, words);
  if (const auto done = parse(cli, args, out, err)) return *done;
  const auto given = [&](const char* option) { return cli.count(option) > 0; };
  auto request = detail::read_request(words, given("-b"), given("-e"), given("-f"));
  if (!request) return complain(err, request.error());
  auto me = launch_from_environment();
  if (!me) return complain(err, me.error());
  for (const finding& f : me->findings) complain(err, f.what);

  bench::run_facts facts;
  facts.start_time = detail::utc_now();
  facts.arguments = {"topocoll", "bench"};
  for (const std::string_view a : args) facts.arguments.emplace_back(a);
  if (me->size > 1) return detail::bench_by_launch(*request, *me, std::move(facts), out, err);
  return detail::bench_by_fork(*request, std::move(facts), out, err);
}

}}}  // namespace topocoll::v0::app
