# SPDX-License-Identifier: Apache-2.0
"""The repository as a stranger finds it: its folders, its licences, no leftovers, tests that are named and can fail.

  hygiene.py              check
  hygiene.py --self-test  see that bad samples are refused
"""
import re
import sys

sys.dont_write_bytecode = True
import sources  # noqa: E402

FOLDERS = {"include", "examples", "bench", "tests", "cmake", "docs"}
FILES = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md"}
LARGEST = 512 * 1024  # bytes of one file; captured inputs are cut down to what a test needs
CODE = (".hpp", ".cpp", ".cuh", ".cu", ".py", ".cmake", "CMakeLists.txt", ".sh", ".ci/run")
# Written with brackets so that this file does not contain them.
LEFTOVERS = re.compile(r"\bTO[D]O\b|\bFIXM[E]\b|\bXX[X]\b|DISABLE[D]_|not\simplemente[d]|\bplaceholde[r]s?\b")
MACHINE = re.compile(r"/wor[k]/|/far[m]/|/hom[e]/\w+|/roo[t]/|/tm[p]/[a-z]+-[0-9]|\bsub-?agen[t]s?\b|before-sto[p]")
SPDX = re.compile(r"SPDX-License-Identifier: Apache-2\.0")
TEST_NAME = re.compile(r"\b(?:TYPED_TEST(?:_P)?|TEST(?:_F|_P)?)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
WORDS = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
SKIP = re.compile(r"GTEST_SKIP\s*\(\s*\)\s*;")


def of_name(path):
    folder = path.split("/")[0]
    if "/" not in path:
        return [] if path in FILES or path.startswith(".") else [f"{path}: not one of the top-level files ({', '.join(sorted(FILES))})"]
    return [] if folder in FOLDERS or folder.startswith(".") else [f"{path}: not one of the folders {', '.join(sorted(FOLDERS))}"]


def of_text(path, text):
    found = []
    if path.endswith(CODE) and not SPDX.search("\n".join(text.splitlines()[:3])):
        found.append(f"{path}:1: no SPDX line at the top")
    own = path != "LICENSE"
    for number, line in enumerate(text.splitlines(), 1):
        if own and path.startswith(("include/", "tests/", "bench/", "examples/", "cmake/")) and LEFTOVERS.search(line):
            found.append(f"{path}:{number}: says that something is unfinished: {line.strip()[:80]}")
        if own and MACHINE.search(line):
            found.append(f"{path}:{number}: names one machine or its tools: {line.strip()[:80]}")
    if text and not text.endswith("\n") and "/corpus/" not in path:
        found.append(f"{path}: the last line has no end")
    if path.startswith("tests/") and path.endswith(".cpp"):
        code = sources.blank(text)
        for m in TEST_NAME.finditer(code):
            if not (WORDS.fullmatch(m.group(1)) and WORDS.fullmatch(m.group(2))):
                found.append(f"{path}:{sources.line_of(code, m.start())}: {m.group(1)}.{m.group(2)} is not named in snake_case words")
        for m in SKIP.finditer(code):
            found.append(f"{path}:{sources.line_of(code, m.start())}: skips without a reason")
    return found


def self_test():
    spdx = "// SPDX-License-Identifier: Apache-2.0\n"
    text = lambda body, path="tests/unit/x_test.cpp": of_text(path, spdx + body)
    sources.self_test("hygiene", [
        ("folder", of_name("scripts/a.py"), of_name("docs/a.md")),
        ("file", of_name("notes.txt"), of_name(".clang-tidy")),
        ("SPDX", of_text("cmake/a.cmake", "set(x 1)\n"), of_text("cmake/a.cmake", "#" + spdx[2:])),
        ("leftover", text("// TO" + "DO: more\n"), text("// to do this, ...\n")),
        ("machine", text("// /wor" + "k/main\n"), text("// network/main\n")),
        ("last line", text("int x;"), text("int x;\n")),
        ("test name", text("TEST(Merge, prefers_measured) {}\n"), text("TEST(merge, prefers_measured) {}\n")),
        ("typed test name", text("TYPED_TEST(a_transport, Works) {}\n"), text("TYPED_TEST(a_transport, works) {}\n")),
        ("skip", text("GTEST_SKIP();\n"), text('GTEST_SKIP() << "no corpus";\n')),
    ])


def main():
    if "--self-test" in sys.argv:
        self_test()
    found, checked = [], 0
    for path in sources.files():
        checked += 1
        found += of_name(path)
        size = (sources.ROOT / path).stat().st_size
        if size > LARGEST:
            found.append(f"{path}: {size} bytes; at most {LARGEST}")
            continue
        try:
            found += of_text(path, sources.read(path))
        except UnicodeDecodeError:
            if not path.startswith("tests/"):
                found.append(f"{path}: not a text file")
    sources.finish("hygiene", found, checked)


main()
