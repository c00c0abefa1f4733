# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over every header, layer by layer: one source per layer includes it all, and complaints about our headers
are errors. Headers whose optional library is missing are left out, as in the header checks.

  tidy.py [layer]...
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
    wanted = sys.argv[1:] or sorted(layers)

    def one(layer):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layer.cpp")
            source.write_text("".join(f"#include <topocoll/{n}>\n" for n in layers[layer]), encoding="utf-8")
            done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={sources.ROOT / '.clang-tidy'}", "--warnings-as-errors=*",
                                   f"--header-filter=include/topocoll/{layer}/", str(source), "--", "-std=c++20",
                                   f"-I{sources.ROOT / 'include'}", *flags], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        heads = [l for l in lines if re.search(r": (error|warning): ", l)]
        return heads if heads or done.returncode == 0 else [f"{layer}: clang-tidy fails: {done.stdout[-2000:]}{done.stderr[-2000:]}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line.replace(str(sources.ROOT) + "/", "") for lines in pool.map(one, wanted) for line in lines]
    sources.finish("tidy", sorted(set(found)), sum(len(layers[l]) for l in wanted))


main()
