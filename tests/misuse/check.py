# SPDX-License-Identifier: Apache-2.0
"""Wrong code must not compile, and the message must say why.

A file of this folder compiles as it stands. Each section of it,

    #ifdef SECTION_NAME
    // expect: regular expression
    ...
    #endif

is compiled on its own with -DSECTION_NAME: that must fail, and one line of the compiler must match. Several `expect`
lines are alternatives (compilers word things differently).

  check.py <compiler> <file>...     compile and compare
  check.py <compiler> --self-test   see that a section that compiles, and a wrong message, are refused
"""
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

SECTION = re.compile(r"^#ifdef (SECTION_\w+)\n(.*?)^#endif", re.M | re.S)
EXPECT = re.compile(r"^\s*// expect: (.+)$", re.M)
SKIPPED = 77


def compile_with(compiler, path, *flags):
    return subprocess.run([compiler, "-std=c++20", f"-I{sources.ROOT / 'include'}", "-fsyntax-only", "-fdiagnostics-color=never",
                           "-Wall", "-Wextra", "-Werror=unused-result", *flags, str(path)], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})


def complaints(compiler, path):
    """What is wrong with one file, and how many sections it has."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    name = os.path.basename(path)
    found = []
    clean = compile_with(compiler, path, "-Werror")
    if clean.returncode != 0:
        found.append(f"{name}: does not compile without a section:\n{clean.stderr}")
    sections = SECTION.findall(text)
    if not sections:
        found.append(f"{name}: has no section")
    for section, body in sections:
        wanted = EXPECT.findall(body)
        if not wanted:
            found.append(f"{name}: {section} does not say what message to expect")
            continue
        done = compile_with(compiler, path, f"-D{section}")
        if done.returncode == 0:
            found.append(f"{name}: {section} compiles with {compiler}, but must not")
        elif not any(re.search(w, line) for w in wanted for line in done.stderr.splitlines()):
            found.append(f"{name}: {section} fails with {compiler}, but no line matches {wanted}:\n{done.stderr[:3000]}")
    return found, len(sections)


def self_test(compiler):
    def of(text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "sample.cpp")
            path.write_text(text, encoding="utf-8")
            return complaints(compiler, path)[0]
    section = lambda expect, code: f"int f();\n#ifdef SECTION_A\n{expect}\n{code}\n#endif\n"
    good = of(section("// expect: right here", 'static_assert(false, "right here");'))
    sources.self_test("misuse", [
        ("section that compiles", of(section("// expect: x", "int g();")), good),
        ("other message", of(section("// expect: elsewhere", 'static_assert(false, "right here");')), good),
        ("no expectation", of(section("", "static_assert(false);")), good),
        ("no section", of("int f();\n"), good),
        ("unclean", of("int x = nothing;\n" + section("// expect: nothing", "int y = nothing;")), good),
    ])


def main():
    compiler = sys.argv[1]
    if shutil.which(compiler) is None:
        print(f"skipped: no {compiler} on this machine")
        sys.exit(SKIPPED)
    if "--self-test" in sys.argv:
        self_test(compiler)
    found, checked = [], 0
    for path in sys.argv[2:]:
        more, sections = complaints(compiler, path)
        found += more
        checked += sections
    sources.finish(f"misuse with {compiler}", found, checked)


main()
