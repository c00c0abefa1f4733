# SPDX-License-Identifier: Apache-2.0
"""Compile cost of headers against limits.tsv, in counts that repeat exactly: preprocessed lines and instantiations.

  cost.py              check
  cost.py --print      print what every limited header costs now, as rows for limits.tsv
  cost.py --self-test  see that a header above a limit is refused
"""
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lint"))
import sources  # noqa: E402

COLUMNS = ("lines", "classes", "functions")
NEAR = 0.97
SKIPPED = 77


def limits():
    rows = []
    for line in sources.read("tests/cost/limits.tsv").splitlines():
        if line and not line.startswith("#"):
            pattern, *numbers = line.split("\t")
            rows.append((pattern, [None if n == "-" else int(n) for n in numbers]))
    return rows


def row_of(name, rows):
    return next((numbers for pattern, numbers in rows if fnmatch.fnmatchcase(name, pattern)), None)


def lines_of(name):
    done = subprocess.run(["g++", "-std=c++20", f"-I{sources.ROOT / 'include'}", "-E", "-P", "-x", "c++", "-"],
                          input=f"#include <topocoll/{name}>\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{name} does not preprocess: {(done.stderr.splitlines() or ['no reason given'])[-1]}")
    return done.stdout.count("\n")


def instantiations_of(name):
    """(classes, functions) that clang instantiates for a source with only this header."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "x.cpp")
        source.write_text(f"#include <topocoll/{name}>\n", encoding="utf-8")
        subprocess.run(["clang++", "-std=c++20", f"-I{sources.ROOT / 'include'}", "-ftime-trace", "-ftime-trace-granularity=0",
                        "-c", str(source), "-o", str(pathlib.Path(folder, "x.o"))], capture_output=True, check=True)
        events = json.loads(pathlib.Path(folder, "x.json").read_text(encoding="utf-8"))["traceEvents"]
    names = [e["name"] for e in events]
    return names.count("InstantiateClass"), names.count("InstantiateFunction")


def verdicts(name, costs, numbers):
    """Complaints and notes for one header: costs and limits are (lines, classes, functions), None where not counted."""
    bad, near = [], []
    for what, cost, limit in zip(COLUMNS, costs, numbers):
        if cost is None or limit is None:
            continue
        text = f"{name}: {cost} {what}, limit {limit}"
        if cost > limit:
            bad.append(text)
        elif cost > NEAR * limit:
            near.append(text)
    return bad, near


def self_test():
    check = lambda cost: verdicts("x.hpp", (cost, None, 5), [100, None, 10])
    sources.self_test("cost", [
        ("above", check(101)[0], check(100)[0]),
        ("near", check(98)[1], check(97)[1]),
        ("functions", verdicts("x.hpp", (1, 2, 11), [100, None, 10])[0], verdicts("x.hpp", (1, 2, 10), [100, None, 10])[0]),
        ("first row decides", [] if row_of("io/json.hpp", [("io/json.hpp", [1]), ("io/*", [2])]) != [1] else ["x"],
         ["x"] if row_of("read/a.hpp", [("io/*", [2])]) is not None else []),
    ])


def version(compiler, pattern):
    if shutil.which(compiler) is None:
        return None
    found = re.search(pattern, subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout)
    return found and found.group(1)


def main():
    if "--self-test" in sys.argv:
        self_test()
    if version("g++", r"\) (\d+)\.") != "12" or version("clang++", r"version (\d+)\.") != "14":
        print("skipped: the limits hold for g++ 12 and clang 14, which this machine does not have")
        sys.exit(SKIPPED)
    rows = limits()
    all_headers = sources.headers()
    names = [n for n in sorted(all_headers) if "/detail/" not in n and not sources.components(n, all_headers)
             and n.split("/")[0] not in ("app", "backend")]

    def costs(name):
        numbers = row_of(name, rows) or [None] * 3
        count = any(n is not None for n in numbers[1:]) or ("--print" in sys.argv and "/" not in name)
        return (lines_of(name), *(instantiations_of(name) if count else (None, None)))

    measured, found = {}, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, future in [(n, pool.submit(costs, n)) for n in names]:
            try:
                measured[name] = future.result()
            except (ValueError, subprocess.CalledProcessError) as error:
                found.append(str(error))
    if "--print" in sys.argv:
        for name, numbers in measured.items():
            print("\t".join([name] + ["-" if n is None else str(n) for n in numbers]))
        return
    found += [f"{n}: no row of tests/cost/limits.tsv fits" for n in names if row_of(n, rows) is None]
    for name, numbers in measured.items():
        bad, near = verdicts(name, numbers, row_of(name, rows) or [None] * 3)
        found += bad
        for text in near:
            print(f"near the limit: {text}")
    sources.finish("cost", found, len(names))


main()
