# SPDX-License-Identifier: Apache-2.0
"""All C++ is as clang-format 14 writes it.

  format.py           check
  format.py --write   format in place
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import sources  # noqa: E402


def main():
    version = shutil.which("clang-format") and subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    if not version or not re.search(r"version 14\.", version):
        print("skipped: no clang-format 14 on this machine")
        sys.exit(77)
    names = [f for f in sources.files() if f.endswith((".hpp", ".cpp", ".cuh", ".cu"))]
    mode = ["-i"] if "--write" in sys.argv else ["--dry-run", "-Werror"]

    def one(name):
        done = subprocess.run(["clang-format", "--style=file", *mode, name], cwd=sources.ROOT, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else f"{name}: {done.stderr.splitlines()[0] if done.stderr else 'fails'}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [c for c in pool.map(one, names) if c]
    if found:
        found.append("run tests/lint/format.py --write")
    sources.finish("format", found, len(names))


main()
