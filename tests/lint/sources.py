# SPDX-License-Identifier: Apache-2.0
"""The repository as the lint tests see it: its files, its C++ without comments and texts, and how a test reports."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("TOPOCOLL_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def files():
    """Relative paths of all files that belong to the repository: tracked, or new and not ignored."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
        return sorted(n for n in names if n and (ROOT / n).is_file())
    found = []  # a source archive has no .git
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [d for d in inner if d != ".git" and not d.startswith("build")]
        found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names]
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def headers():
    """Public headers and details, relative to include/topocoll/, with their text."""
    base = "include/topocoll/"
    return {f[len(base):]: read(f) for f in files() if f.startswith(base) and f.endswith((".hpp", ".cuh"))}


def includes(text):
    """Names of the #include lines, in order, without those in comments."""
    return [m.group(2) for m in INCLUDE.finditer(blank(text, keep_texts=True))]


_TOKEN = re.compile(r'''//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+\'''',
                    re.S)


def blank(text, keep_texts=False):
    """C++ with comments, and unless asked otherwise texts, replaced by blanks; line numbers stay."""
    def gap(m):
        found = m.group(0)
        if keep_texts and not found.startswith(("//", "/*")):
            return found
        return "".join(c if c == "\n" else " " for c in found)
    return _TOKEN.sub(gap, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def vendors():
    """Rows of cmake/vendor_headers.tsv: (start of the include, component, where it is allowed)."""
    rows = [l.split("\t") for l in read("cmake/vendor_headers.tsv").splitlines() if l and not l.startswith("#")]
    return [(start, component, place) for start, component, place in rows]


def components(name, all_headers, seen=None):
    """Optional libraries that a header needs, directly or through our other headers."""
    seen = set() if seen is None else seen
    if name in seen or name not in all_headers:
        return set()
    seen.add(name)
    found = set()
    for included in includes(all_headers[name]):
        if included.startswith("topocoll/"):
            found |= components(included[len("topocoll/"):], all_headers, seen)
        found |= {c for start, c, _ in vendors() if included.startswith(start)}
    return found


def finish(what, complaints, checked):
    """Prints the complaints and ends the program as a test does."""
    for complaint in complaints:
        print(complaint)
    print(f"{what}: {checked} checked, {len(complaints)} complaint(s)")
    sys.exit(1 if complaints else 0)


def self_test(what, samples):
    """Each sample is (name, complaints of a bad text, complaints of a good text): the first must be some, the second none."""
    wrong = []
    for name, bad, good in samples:
        if not bad:
            wrong.append(f"{what}: the bad sample of '{name}' passed")
        if good:
            wrong.append(f"{what}: the good sample of '{name}' was refused: {good}")
    finish(f"{what} self-test", wrong, len(samples))
