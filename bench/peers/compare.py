#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of topocoll beside those of other libraries on one host, in alternating passes.

  compare.py                                    all operations, 2 ranks, three passes; prints a table
  compare.py --md docs/results/host-peers.md    writes the page as well
  compare.py --ops all_reduce --max 1048576 --rewrite 0 --passes 1

Builds the programs that it needs with g++ and the compiler wrappers of the MPI libraries. A peer that is not installed is
named with its Debian package, and left out. Exit code: 0; 1 if our own program fails, or with --at-least R if some point has
ours less than R times the best peer; 2 for a wrong command line or a program that does not build.
"""
import argparse
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OPS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
FLAGS = ["-std=c++20", "-O2", "-DNDEBUG"]
# glibc never gives memory back to the system, so that scratch of a library is touched first only once.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_MAX_": "0", "MALLOC_TOP_PAD_": str(64 << 20)}
OURS, LIMIT = "topocoll", "plain loop"


def stop(text, code=2):
    print(f"compare.py: {text}", file=sys.stderr)
    sys.exit(code)


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(command, timeout, environment=None):
    """(exit code or None after the timeout, standard output, standard error)"""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                             env={**os.environ, **(environment or {})})
    try:
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err
    except subprocess.TimeoutExpired:
        for how in (signal.SIGTERM, signal.SIGKILL):  # launchers end their ranks when they are asked to
            try:
                os.killpg(child.pid, how)
            except ProcessLookupError:
                pass
            try:
                out, err = child.communicate(timeout=10)
                return None, out, err
            except subprocess.TimeoutExpired:
                continue
        return None, "", ""


def first_line(command):
    try:
        code, out, _ = run(command, 20)
    except OSError:
        return ""
    return out.splitlines()[0].strip() if code == 0 and out.strip() else ""


class Contestant:
    """One library under one setting: how it is built and started."""

    def __init__(self, name, source, compiler, package, launcher=None, arguments=(), libraries=(), header=None):
        self.name, self.source, self.compiler, self.package = name, source, compiler, package
        self.launcher, self.arguments, self.libraries, self.header = launcher, list(arguments), list(libraries), header
        self.program = None
        self.version = ""
        self.broken = ""

    def missing(self):
        """What is not installed, or nothing."""
        for tool in filter(None, (self.compiler, self.launcher)):
            if not shutil.which(tool):
                return tool
        if self.header:
            done = subprocess.run([self.compiler, "-E", "-x", "c++", "-"], input=f"#include <{self.header}>\n", text=True,
                                  capture_output=True, timeout=60, check=False)
            if done.returncode != 0:
                return self.header
        return None

    def build(self, folder):
        program = folder / f"{self.source.stem}_{self.compiler.replace('.', '_').replace('+', 'x')}"
        newest = max(f.stat().st_mtime for f in [self.source, *HERE.glob("*.hpp"), *self.own_headers()])
        if not program.exists() or program.stat().st_mtime < newest:
            note(f"building {program.name}")
            code, _, err = run([self.compiler, *FLAGS, f"-I{ROOT / 'include'}", str(self.source), "-o", f"{program}.new",
                                *self.libraries], 1200)
            if code != 0:
                errors = [line for line in err.splitlines() if "error" in line] or err.splitlines()
                stop("\n".join([f"{self.source.name} does not build with {self.compiler}:", *errors[:5]]))
            os.replace(f"{program}.new", program)
        self.program = program

    def own_headers(self):
        return (ROOT / "include").rglob("*.hpp") if self.name == OURS else []

    def command(self, arguments, ranks, cores):
        start = []
        if self.launcher == "mpirun.openmpi":
            start = [self.launcher, *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-np", str(ranks),
                     *(["--bind-to", "core"] if ranks <= cores else ["--oversubscribe", "--bind-to", "none"])]
            for key in MALLOC:
                start += ["-x", key]
        elif self.launcher:
            start = [self.launcher, "-np", str(ranks), *(["-bind-to", "core"] if ranks <= cores else [])]
        return [*start, *self.arguments, str(self.program), *arguments]


def contestants():
    mpi = HERE / "mpi_coll.cpp"
    openmpi = "libopenmpi-dev and openmpi-bin"
    return [
        Contestant(LIMIT, ROOT / "bench/limits/plain_loop.cpp", "g++", "g++"),
        Contestant(OURS, HERE / "ours_coll.cpp", "g++", "g++", libraries=["-pthread", "-ldl"]),
        Contestant("openmpi-ob1", mpi, "mpicxx.openmpi", openmpi, "mpirun.openmpi",
                   ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]),
        # Open MPI offers UCX only where it finds fast networks, unless told otherwise.
        Contestant("openmpi-ucx", mpi, "mpicxx.openmpi", openmpi, "mpirun.openmpi",
                   ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]),
        Contestant("mpich", mpi, "mpicxx.mpich", "libmpich-dev and mpich", "mpiexec.mpich"),
        Contestant("gloo", HERE / "gloo_coll.cpp", "g++", "libgloo-dev", libraries=["-lgloo", "-pthread"],
                   header="gloo/allreduce.h"),
    ]


class Figures:
    """Medians of all passes, by library, operation, bytes, buffers, rewriting and, for the plain loop, the loop."""

    def __init__(self):
        self.passes = {}

    def read(self, name, text, buffers, rewrite):
        """Takes what one run printed; how many points there were."""
        points = 0
        for line in text.splitlines():
            cells = line.split("\t")
            if len(cells) != 7 or cells[0] not in OPS:
                continue
            loop = cells[2].replace("+rewrite", "") if name == LIMIT else ""
            key = (name, cells[0], int(cells[1]), buffers, rewrite, loop)
            self.passes.setdefault(key, []).append((float(cells[4]), float(cells[5]), float(cells[6])))
            points += 1
        return points

    def busbw(self, key):
        """GB/s; the median of the passes, or None."""
        return statistics.median(p[2] for p in self.passes[key]) if key in self.passes else None

    def spread(self):
        """Slowest over fastest pass, of all points with more than one pass."""
        return sorted(max(t) / min(t) for t in ([p[0] for p in of] for of in self.passes.values()) if len(t) > 1 and min(t) > 0)

    def limit(self, op, size, rewrite):
        best = [(self.busbw(k), k[5]) for k in self.passes if k[:3] == (LIMIT, op, size) and k[4] == rewrite]
        return max(best, default=(None, ""))

    def best_peer(self, op, size, buffers, rewrite, peers):
        found = []
        for peer in peers:
            for kind in (buffers, "private"):  # a library without memory of its own takes any
                rate = self.busbw((peer, op, size, kind, rewrite, ""))
                if rate is not None:
                    found.append((rate, peer))
                    break
        return max(found, default=(None, ""))


def short(size):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def rate_text(rate):
    if rate is None:
        return "-"
    return f"{rate:.{max(0, 2 - math.floor(math.log10(rate)))}f}" if 0 < rate < 100 else f"{rate:.0f}"


def ratio_text(one, other):
    return f"{one / other:.2f}" if one is not None and other else "-"


def tables(figures, peers):
    """(title, rows) of each combination that was measured."""
    sets = sorted({(k[4], k[3], OPS.index(k[1])) for k in figures.passes if k[0] == OURS},
                  key=lambda s: (s[0], s[1] != "private", s[2]))
    for rewrite, buffers, at in sets:
        op = OPS[at]
        rows = []
        for size in sorted({k[2] for k in figures.passes if k[0] == OURS and k[1] == op}):
            ours = figures.busbw((OURS, op, size, buffers, rewrite, ""))
            if ours is None:
                continue
            rows.append((size, *figures.limit(op, size, rewrite), ours, *figures.best_peer(op, size, buffers, rewrite, peers)))
        yield op, buffers, rewrite, rows


def print_tables(figures, peers):
    for op, buffers, rewrite, rows in tables(figures, peers):
        inputs = "rewritten before each call" if rewrite else "not rewritten"
        print(f"\n{op}, {buffers} buffers, inputs {inputs}; busbw in GB/s")
        print(f"{'bytes':>6} {'plain loop':>10} {'ours':>8} {'best peer':>9} {'':12} {'ours/peer':>9} {'ours/plain':>10}")
        for size, limit, _, ours, best, peer in rows:
            print(f"{short(size):>6} {rate_text(limit):>10} {rate_text(ours):>8} {rate_text(best):>9} {peer:12} "
                  f"{ratio_text(ours, best):>9} {ratio_text(ours, limit):>10}")


def ratios(figures, peers):
    return [(ours / best, op, size, buffers, rewrite, peer) for op, buffers, rewrite, rows in tables(figures, peers)
            for size, _, _, ours, best, peer in rows if best]


def in_words(ratio):
    value, op, size, buffers, rewrite, peer = ratio
    return f"{value:.2f} ({op}, {short(size)}, {buffers} buffers, {'' if rewrite else 'not '}rewritten, {peer})"


def summary(figures, peers):
    got = sorted(ratios(figures, peers))
    if not got:
        return "There is no point with a peer beside ours."
    lower = [r for r in got if r[0] < 1]
    ties = [r for r in got if 1 / 1.05 <= r[0] <= 1.05]
    return (f"{len(got)} points: ours is faster than the best peer at {sum(r[0] > 1 for r in got)}, slower at {len(lower)}; "
            f"{len(ties)} of all are within 5 %. Ours over best peer: median {statistics.median(r[0] for r in got):.2f}, "
            f"least {in_words(got[0])}, most {in_words(got[-1])}.")


def machine():
    lines = []
    _, out, _ = run(["lscpu"], 20, {"LC_ALL": "C"}) if shutil.which("lscpu") else (0, "", "")
    facts = dict(re.findall(r"^([^:\n]+):\s*(.*)$", out, re.M))
    lines.append(f"{facts.get('Model name', platform.processor() or platform.machine())}, {os.cpu_count()} processors, "
                 f"{facts.get('NUMA node(s)', '?')} NUMA node(s)" + (", a virtual machine" if "Hypervisor vendor" in facts else ""))
    caches = [f"{level} {facts[level + ' cache']}" for level in ("L1d", "L2", "L3") if level + " cache" in facts]
    if caches:
        lines.append("caches: " + ", ".join(caches))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines.append(f"{memory:.0f} GiB of memory, Linux {platform.release()}")
    return lines


def page(figures, peers, options, facts, command):
    text = ["# Against other libraries on one host", "",
            "Regenerated by one command, which also builds what it needs:", "", f"    {command}", "",
            "Busbw in GB/s, counted as nccl-tests counts it (bytes are those of the whole array; broadcast is in place, the others",
            "are not), sums of floats. A sample is a batch of back-to-back calls after a barrier, and counts the slowest rank; a",
            "pass gives the median of its samples, and what stands here is the median over the passes, in which the libraries take",
            f"turns ({options.passes} of them). Results are checked before and after timing. *Rewritten*: every rank writes its inputs",
            "before each call, and calls are timed one by one; otherwise inputs may still lie in the reader's cache, which flatters",
            "everybody. All libraries run with glibc's malloc told never to give memory back; ranks are pinned if there is a core",
            "for each.", "",
            "*Plain loop* is the limit that was measured in the same run: one flag exchange, each of two ranks does half of the",
            "work straight on buffers that both can see, one flag exchange (`bench/limits/plain_loop.cpp`; best of ordinary and",
            "streaming stores, pages of both sizes, and, for short arrays, one message each way). Private buffers cannot be seen by",
            "the peer, so a library must copy once more. *Library* buffers are memory that the library hands out (MPI:",
            "`MPI_Alloc_mem`; Gloo has none and runs with private ones); *private* ones are plain memory.", "",
            "Machine and versions:", ""]
    text += [f"- {fact}" for fact in facts]
    spread = figures.spread()
    if spread:
        text += ["", f"Slowest over fastest pass at a point: median {statistics.median(spread):.2f}, 90 % of points under "
                 f"{spread[int(0.9 * (len(spread) - 1))]:.2f}, worst {spread[-1]:.1f}. Ratios nearer to 1 than that are ties."]
    text += ["", summary(figures, peers)]
    for op, buffers, rewrite, rows in tables(figures, peers):
        text += ["", f"## {op}, {buffers} buffers, inputs {'rewritten' if rewrite else 'not rewritten'}", "",
                 "| bytes | plain loop | its kind | ours | best peer | which | ours / best peer | ours / plain loop |",
                 "|---|---|---|---|---|---|---|---|"]
        for size, limit, loop, ours, best, peer in rows:
            text.append(f"| {short(size)} | {rate_text(limit)} | {loop} | {rate_text(ours)} | {rate_text(best)} | {peer} | "
                        f"{ratio_text(ours, best)} | {ratio_text(ours, limit)} |")
    return "\n".join(text) + "\n"


def raw(figures, ranks):
    lines = ["library\top\tbytes\tbuffers\trewrite\tloop\tranks\tpasses\tmedian_us\tmin_us\tbusbw_GBps\tworst_over_best"]
    for (name, op, size, buffers, rewrite, loop), of in sorted(figures.passes.items()):
        times = [p[0] for p in of]
        lines.append("\t".join(map(str, (name, op, size, buffers, rewrite, loop or "-", ranks, len(of), f"{statistics.median(times):.3f}",
                                         f"{min(p[1] for p in of):.3f}", f"{statistics.median(p[2] for p in of):.6f}",
                                         f"{max(times) / max(min(times), 1e-9):.2f}"))))
    return "\n".join(lines) + "\n"


def list_of(allowed, what):
    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"there is no {what} \"{word}\"; there are {', '.join(allowed)}")
        return words
    return parse


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--ops", type=list_of(OPS, "operation"), default=list(OPS), help="with commas between; all five")
    p.add_argument("--min", type=int, default=8, help="bytes; 8")
    p.add_argument("--max", type=int, default=256 << 20, help="bytes; 268435456")
    p.add_argument("--factor", type=int, default=4, help="from size to size; 4")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--buffers", type=list_of(("private", "library"), "kind of buffer"), default=["private", "library"])
    p.add_argument("--rewrite", type=list_of(("0", "1"), "choice"), default=["0", "1"])
    p.add_argument("--passes", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3, help="for a point of a pass, once there are five samples; 0.3")
    p.add_argument("--timeout", type=float, default=900, help="seconds for one run of one program; 900")
    p.add_argument("--nice", type=int, help="priority of all runs; -20 keeps a busy machine from disturbing (root only)")
    p.add_argument("--peers", help="only these, with commas between: " + ", ".join(c.name for c in contestants()[2:]))
    p.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build" / "peers")
    p.add_argument("--ours", type=pathlib.Path, help="program bench_ours_coll, if it is there already")
    p.add_argument("--plain-loop", type=pathlib.Path, help="program bench_plain_loop, if it is there already")
    p.add_argument("--md", type=pathlib.Path, help="file for the page")
    p.add_argument("--tsv", type=pathlib.Path, help="file for all figures")
    p.add_argument("--at-least", type=float, help="fail if ours over the best peer is less somewhere")
    options = p.parse_args()
    if options.passes < 1 or options.ranks < 2 or options.factor < 2 or options.min < 4:
        p.error("--passes is at least 1, --ranks and --factor at least 2, --min at least 4")
    return options


def prepare(options):
    """Those that can run, built."""
    ready = []
    chosen = options.peers.split(",") if options.peers else None
    known = [c.name for c in contestants()[2:]]
    for name in chosen or []:
        if name not in known:
            stop(f"there is no peer \"{name}\"; there are {', '.join(known)}")
    options.build_dir.mkdir(parents=True, exist_ok=True)
    for c in contestants():
        given = {OURS: options.ours, LIMIT: options.plain_loop}.get(c.name)
        if c.name == LIMIT and options.ranks != 2:
            note("the plain loop is one for 2 ranks: no limit is shown")
            continue
        if chosen is not None and c.name in known and c.name not in chosen:
            continue
        if given:
            if not os.access(given, os.X_OK):
                stop(f"{given} is no program; build it, or leave the option out")
            c.program = given.resolve()
        else:
            lacks = c.missing()
            if lacks and c.name in (OURS, LIMIT):
                stop(f"{lacks} is not installed (Debian: {c.package})")
            if lacks:
                note(f"{c.name} is left out: {lacks} is not installed (Debian: {c.package})")
                continue
            c.build(options.build_dir)
        ready.append(c)
    return ready


def one_run(c, options, figures, buffers, rewrite, number):
    arguments = ["--op", ",".join(options.ops), "--min", str(options.min), "--max", str(options.max),
                 "--factor", str(options.factor), "--ranks", str(options.ranks), "--buffers", buffers,
                 "--rewrite", rewrite, "--seconds", str(options.seconds)]
    command = c.command(arguments, options.ranks, len(os.sched_getaffinity(0)))
    if options.nice is not None:
        command = ["nice", "-n", str(options.nice), *command]
    note(f"pass {number}: {c.name}, {buffers} buffers, rewrite {rewrite}")
    code, out, err = run(command, options.timeout, MALLOC)
    points = figures.read(c.name, out, buffers, int(rewrite))
    heading = re.search(r"^# (.*)$", out, re.M)
    if heading:
        c.version = heading.group(1)
    if code == 0:
        return
    said = [line.strip() for line in err.splitlines() if re.search(r"[A-Za-z]", line)]
    why = "did not end in time" if code is None else (said[0] if said else f"ended with {code}")
    if c.name == OURS:
        stop(f"our own program failed: {why}\n{err[-2000:]}", 1)
    note(f"{c.name} failed: {why}")
    if points == 0:
        c.broken = why  # no use in waiting for it again


def command_line(options):
    """What regenerates the page elsewhere: without the folders of this machine."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if word in ("--build-dir", "--ours", "--plain-loop"):
            skip = True
        elif skip:
            skip = False
        elif not word.startswith(("--build-dir=", "--ours=", "--plain-loop=")):
            words.append(os.path.relpath(word, ROOT) if os.path.isabs(word) else word)
    return " ".join(["python3", "bench/peers/compare.py", *words])


def measure(ready, options):
    figures = Figures()
    for number in range(1, options.passes + 1):
        for rewrite in options.rewrite:
            for buffers in options.buffers:
                for c in ready:
                    # The loop's buffers are seen by both ranks whatever is asked; Gloo has none of its own.
                    once = c.name in (LIMIT, "gloo")
                    if not c.broken and not (once and buffers == "library" and "private" in options.buffers):
                        one_run(c, options, figures, "private" if once else buffers, rewrite, number)
    return figures


def main():
    options = parse()
    ready = prepare(options)
    facts = machine()
    commit = first_line(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"])
    changed = commit and first_line(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "include", "bench"])
    facts.append(f"topocoll {'at ' + commit if commit else 'from a folder without history'}{' with changes' if changed else ''}; "
                 f"{first_line(['g++', '--version'])}, {' '.join(FLAGS)}")
    if options.ours:
        facts[-1] += " (of the comparison; our program was built beforehand)"
    load = os.getloadavg()[0]
    figures = measure(ready, options)
    peers = [c.name for c in ready if c.name not in (OURS, LIMIT)]
    facts += [f"{c.name}: {c.version}" for c in ready if c.version and c.name in peers]
    facts += [f"{c.name} could not run: {c.broken}" for c in ready if c.broken]
    facts.append(f"{options.ranks} ranks; load of the machine before the first pass {load:.1f}"
                 + (f"; all runs at priority {options.nice}" if options.nice is not None else ""))
    print("\n".join(facts))
    print_tables(figures, peers)
    print("\n" + summary(figures, peers))
    if options.md:
        options.md.write_text(page(figures, peers, options, facts, command_line(options)), encoding="utf-8")
    if options.tsv:
        options.tsv.write_text(raw(figures, options.ranks), encoding="utf-8")
    if options.at_least is not None:
        lower = [r for r in sorted(ratios(figures, peers)) if r[0] < options.at_least]
        for r in lower:
            print(f"less than {options.at_least}: {in_words(r)}")
        if lower:
            sys.exit(1)


if __name__ == "__main__":
    main()
