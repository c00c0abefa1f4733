# SPDX-License-Identifier: Apache-2.0
"""clang-tidy on what changed: the headers that differ from an earlier commit, layer by layer; a source per layer includes
them all, and complaints about them are errors. Headers whose optional library is missing are left out, as in the header
checks. All headers of a layer take minutes of a core, so the whole tree is checked by hand.

  tidy.py            headers changed since the commit TOPOCOLL_TIDY_BASE, or since the last one (HEAD~1)
  tidy.py all        every layer
  tidy.py <layer>... every header of these layers
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import sources  # noqa: E402


def changed():
    """Names of the headers that differ from the base, tracked or not."""
    base = os.environ.get("TOPOCOLL_TIDY_BASE", "HEAD~1")
    git = ["git", "-C", str(sources.ROOT)]
    diff = subprocess.run([*git, "diff", "--name-only", "--diff-filter=d", base, "--", "include"], capture_output=True, text=True, check=False)
    if diff.returncode != 0:
        print(f"skipped: git knows no commit {base} to compare with")
        sys.exit(77)
    new = subprocess.run([*git, "ls-files", "--others", "--exclude-standard", "--", "include"], capture_output=True, text=True, check=True)
    return {n.removeprefix("include/topocoll/") for n in (diff.stdout + new.stdout).split()}


def main():
    if shutil.which("clang-tidy") is None:
        print("skipped: no clang-tidy on this machine")
        sys.exit(77)
    have = {c for c in os.environ.get("TOPOCOLL_COMPONENTS", "").split(",") if c}
    flags = os.environ.get("TOPOCOLL_CHECK_FLAGS", "").split()
    all_headers = sources.headers()
    layers = {}
    for name in sorted(all_headers):
        if "/" in name and not sources.components(name, all_headers) - have:
            layers.setdefault(name.split("/")[0], []).append(name)
    wanted = sorted(layers) if sys.argv[1:] == ["all"] else sys.argv[1:]
    if not wanted:
        touched = changed()
        layers = {l: [n for n in names if n in touched] for l, names in layers.items()}
        wanted = sorted(l for l, names in layers.items() if names)

    def one(layer):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layer.cpp")
            source.write_text("".join(f"#include <topocoll/{n}>\n" for n in layers[layer]), encoding="utf-8")
            done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={sources.ROOT / '.clang-tidy'}", "--warnings-as-errors=*",
                                   "--header-filter=include/topocoll/(" + "|".join(map(re.escape, layers[layer])) + ")$", str(source), "--", "-std=c++20",
                                   f"-I{sources.ROOT / 'include'}", *flags], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        heads = [l for l in lines if re.search(r": (error|warning): ", l)]
        return heads if heads or done.returncode == 0 else [f"{layer}: clang-tidy fails: {done.stdout[-2000:]}{done.stderr[-2000:]}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line.replace(str(sources.ROOT) + "/", "") for lines in pool.map(one, wanted) for line in lines]
    sources.finish("tidy", sorted(set(found)), sum(len(layers[l]) for l in wanted))


main()
