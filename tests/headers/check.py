# SPDX-License-Identifier: Apache-2.0
"""Every header is tested as a header; the list is the folder, nothing is kept by hand.

  check.py alone  <compiler> <layer>   each header of a layer compiles by itself, warnings are errors; clang++ has the public ones,
                                       g++ those in detail/, or all where there is no clang++
  check.py poison <compiler>           all headers compile where other people's macros are defined
  check.py twice  <compiler>           a source with all headers defines nothing that another would again: nothing lacks `inline`
  check.py device <nvcc> <layer>       the layer's headers compile as CUDA source
  check.py self-test <compiler>        see that a bad header is refused by each of the above

Headers that need an optional library are checked when TOPOCOLL_COMPONENTS (separated by commas) names it.
Results are kept in --cache and used again while no file that went into them is newer.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lint"))
import sources  # noqa: E402

INCLUDE = sources.ROOT / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wno-sign-conversion", "-Werror"]
SKIPPED = 77


def selected(layer=None):
    """Headers to check, and those left out with the reason."""
    have = {c for c in os.environ.get("TOPOCOLL_COMPONENTS", "").split(",") if c}
    all_headers = sources.headers()
    kept, left = [], []
    for name in sorted(all_headers):
        if layer is not None and (name.split("/")[0] if "/" in name else "top") != layer:
            continue
        missing = sources.components(name, all_headers) - have
        (left if missing else kept).append((name, missing) if missing else name)
    return kept, left


def command(compiler, *rest):
    return [*compiler.split(), "-std=c++20", *WARNINGS, f"-I{INCLUDE}", *os.environ.get("TOPOCOLL_CHECK_FLAGS", "").split(), *rest]


def run(arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **more)


def inputs_of(depfile):
    text = depfile.read_text(encoding="utf-8").replace("\\\n", " ")
    return text.split(": ", 1)[1].split()


def alone(compiler, name, cache):
    """Output of the compiler when the header does not compile by itself, else an empty text."""
    stamp = cache / f"{compiler.replace('/', '_').replace(' ', '_')}-{name.replace('/', '_')}"
    dep, ok = stamp.with_suffix(".d"), stamp.with_suffix(".ok")
    if ok.exists() and dep.exists():
        made = ok.stat().st_mtime
        try:
            if all(os.stat(i).st_mtime < made for i in inputs_of(dep) + [__file__]):
                return ""
        except OSError:
            pass
    ok.unlink(missing_ok=True)
    source = f"#include <topocoll/{name}>\n"
    done = run(command(compiler, "-fsyntax-only", "-x", "c++", "-MD", "-MF", str(dep), "-MT", "x", "-"), input=source)
    if done.returncode == 0:
        ok.touch()
        return ""
    return done.stdout + done.stderr or f"exit status {done.returncode}"


def system_includes(names):
    """Standard, system and vendor headers that our headers name."""
    all_headers = sources.headers()
    found = {i for n in names for i in sources.includes(all_headers[n]) if not i.startswith("topocoll/")}
    return sorted(found)


def everything(names):
    return "".join(f"#include <topocoll/{n}>\n" for n in names)


def poison(compiler, names):
    foreign = "".join(f"#if __has_include(<{i}>)\n#include <{i}>\n#endif\n" for i in system_includes(names))
    source = foreign + f'#include "{HERE}/poison.hpp"\n' + everything(names)
    done = run(command(compiler, "-fsyntax-only", "-x", "c++", "-"), input=source)
    return "" if done.returncode == 0 else done.stdout + done.stderr or f"exit status {done.returncode}"


def twice(compiler, names):
    """What a second source with the same headers would define again: all that a first one defines for others, but weakly."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "one.cpp")
        source.write_text(everything(names), encoding="utf-8")
        made = source.with_suffix(".o")
        done = run(command(compiler, "-O0", "-c", str(source), "-o", str(made)))
        if done.returncode != 0:
            return done.stdout + done.stderr
        symbols = [line.split() for line in run(["nm", "--defined-only", "--format=posix", str(made)]).stdout.splitlines()]
        return "".join(f"defined in every source, `inline` is missing: {s[0]}\n" for s in sorted(symbols) if len(s) > 1 and s[1] in "TDBRG")


def device(nvcc, names):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "layer.cu")
        source.write_text(everything(names) + "__global__ void nothing() {}\n", encoding="utf-8")
        flags = os.environ.get("TOPOCOLL_CHECK_FLAGS", "").split()
        # 2810: nvcc 13 takes an assignment to a [[nodiscard]] class for a result that is ignored.
        done = run([nvcc, "-std=c++20", f"-I{INCLUDE}", *flags, "-Werror", "all-warnings", "-diag-suppress", "2810",
                    "-c", str(source), "-o", str(pathlib.Path(folder, "layer.o"))])
        return "" if done.returncode == 0 else done.stdout + done.stderr or f"exit status {done.returncode}"


def self_test(compiler):
    global INCLUDE
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        INCLUDE = pathlib.Path(folder, "include")
        (INCLUDE / "topocoll").mkdir(parents=True)
        cache = pathlib.Path(folder)
        bad = {"alone": "#pragma once\nstd::uint32_t x();\n", "warning": "#pragma once\ninline int f(long v) { return v; }\n",
               "poison": "#pragma once\nstruct release { int minor(); };\n", "twice": "#pragma once\nint f() { return 1; }\n"}
        for name, text in {**bad, "good": "#pragma once\n#include <cstdint>\ninline std::uint32_t g() { return 1; }\n"}.items():
            (INCLUDE / f"topocoll/{name}.hpp").write_text(text, encoding="utf-8")
        sources.headers = lambda: {f"{n}.hpp": t for n, t in bad.items()} | {"good.hpp": "#include <cstdint>\n"}
        checks = {"alone": lambda n: alone(compiler, n, cache), "warning": lambda n: alone(compiler, n, cache),
                  "poison": lambda n: poison(compiler, [n]), "twice": lambda n: twice(compiler, [n])}
        for name, check in checks.items():
            if not check(f"{name}.hpp"):
                wrong.append(f"the bad header of '{name}' passed")
            if check("good.hpp"):
                wrong.append(f"the good header was refused by '{name}': {check('good.hpp')}")
        if not (cache / f"{compiler.replace('/', '_')}-good.ok").exists():
            wrong.append("no result was kept")
    sources.finish("headers self-test", wrong, 4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["alone", "poison", "twice", "device", "self-test"])
    parser.add_argument("compiler")
    parser.add_argument("layer", nargs="?")
    parser.add_argument("--cache", default=tempfile.gettempdir() + "/topocoll-headers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if shutil.which(options.compiler.split()[0]) is None:
        print(f"skipped: no {options.compiler} on this machine")
        sys.exit(SKIPPED)
    if options.what == "self-test":
        self_test(options.compiler)
    names, left = selected(options.layer)
    if options.what == "device":  # nvcc 13.0 does not compile toml++ 3.3 (impl/table.h); host code reads cluster files
        every = sources.headers()
        toml = [n for n in names if "toml" in sources.components(n, every)]
        names = [n for n in names if n not in toml]
        print(f"left out, nvcc cannot compile toml++: {', '.join(toml) or 'none'}")
    for name, missing in left:
        print(f"left out: {name} needs {', '.join(sorted(missing))}, which was not found")
    if not names:
        print("skipped: no header to check")
        sys.exit(SKIPPED)
    cache = pathlib.Path(options.cache)
    cache.mkdir(parents=True, exist_ok=True)
    if options.what == "alone":
        # What a header includes does not depend on the compiler: one of them looks at the public ones, the other at the rest.
        if shutil.which("clang++") is not None:
            names = [n for n in names if ("/detail/" in n) != ("clang" in options.compiler)] or names[:1]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            answers = list(pool.map(lambda n: alone(options.compiler, n, cache), names))
        found = [f"{n} does not compile alone with {options.compiler}:\n{a}" for n, a in zip(names, answers) if a]
    else:
        answer = {"poison": poison, "twice": twice, "device": device}[options.what](options.compiler, names)
        found = [answer] if answer else []
    sources.finish(f"headers {options.what} with {options.compiler}", found, len(names))


if __name__ == "__main__":
    main()
