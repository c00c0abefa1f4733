# SPDX-License-Identifier: Apache-2.0
"""Holds #include lines to the table of layers (layers.tsv), refuses circles, and draws the table.

  layering.py              check
  layering.py --draw       write docs/layers.dot
  layering.py --self-test  see that bad samples are refused
"""
import sys

sys.dont_write_bytecode = True
import sources  # noqa: E402

# The standard headers that cost most to compile, at least 25,000 preprocessed lines each with g++ 12.
DEAR = {"functional", "memory", "thread", "chrono", "iostream", "istream", "ostream", "fstream", "sstream", "iomanip",
        "filesystem", "regex", "random", "ranges", "future", "condition_variable"}
# Headers beside the layers that any layer may include.
COMMON = {"version.hpp", "fwd.hpp"}


def table():
    rows = {}
    for line in sources.read("tests/lint/layers.tsv").splitlines():
        if line and not line.startswith("#"):
            path, level, dear, allowed = line.split("\t")
            rows[path] = (level, dear == "yes", allowed.split())
    return rows


def row_of(name, rows):
    """The longest row that the header's path starts with, or None."""
    stem = name.rsplit(".", 1)[0]
    fitting = [p for p in rows if name == p or name.startswith(p + "/") or stem == p]
    return max(fitting, key=len) if fitting else None


def complaints(name, text, rows):
    found = []
    layer = name.split("/")[0] if "/" in name else None
    row = row_of(name, rows) if layer else None
    if layer and row is None:
        return [f"{name}: its folder is not in tests/lint/layers.tsv"]
    for included in sources.includes(text):
        if not included.startswith("topocoll/"):
            if layer and not rows[row][1] and included in DEAR:
                found.append(f"{name}: <{included}> is too dear for {layer}/ (see DEAR in tests/lint/layering.py)")
            continue
        target = included[len("topocoll/"):]
        if layer is None:  # umbrellas have their own test; version.hpp and fwd.hpp stand alone
            if name in COMMON:
                found.append(f"{name}: includes <{included}>, but stands below every layer")
            continue
        if "/" not in target:
            if target not in COMMON:
                found.append(f"{name}: includes the umbrella <{included}>; include what is used")
            continue
        other = target.split("/")[0]
        if other not in rows[row][2] and other != layer:
            found.append(f"{name}: {row} may not include {other} (<{included}>)")
        if layer == "backend" and other == "backend":
            own, its = row, row_of(target, rows)
            if its not in (own, "backend"):
                found.append(f"{name}: {own} may not include {its} (<{included}>)")
    return found


def circles(all_headers):
    """Every circle of includes, as one line."""
    graph = {n: [i[len("topocoll/"):] for i in sources.includes(t) if i.startswith("topocoll/")]
             for n, t in all_headers.items()}
    for name, targets in graph.items():
        if "/detail/" in name:  # the second half of a header may include the first, so that it compiles alone
            graph[name] = [t for t in targets if name not in graph.get(t, [])]
    state, found = {}, []

    def visit(name, trail):
        state[name] = "open"
        for target in graph.get(name, []):
            if state.get(target) == "open":
                found.append("circle: " + " -> ".join(trail[trail.index(target):] + [target]))
            elif target not in state:
                visit(target, trail + [target])
        state[name] = "done"

    for name in sorted(graph):
        if name not in state:
            visit(name, [name])
    return found


def picture(rows):
    """The table as a drawing: an arrow for each pair that no longer chain of arrows already shows."""
    layers = {p: (level, allowed) for p, (level, _, allowed) in rows.items() if "/" not in p and p != "backend"}
    lines = ["// Drawn from tests/lint/layers.tsv by tests/lint/layering.py --draw. An arrow means: may include.",
             "// What is reached over several arrows may be included too.",
             "digraph layers {", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    for level in sorted({l for l, _ in layers.values()}, reverse=True):
        same = "; ".join(sorted(p for p, (l, _) in layers.items() if l == level))
        lines.append(f"  {{ rank=same; {same}; }}")
    for path, (_, allowed) in sorted(layers.items()):
        for target in sorted(allowed):
            if not any(target in layers[middle][1] for middle in allowed if middle != target):
                lines.append(f"  {path} -> {target};")
    return "\n".join(lines + ["}"]) + "\n"


def untidy(rows):
    """Layers that reach over several arrows what their own row does not allow: then the drawing would mislead."""
    found = []
    for path, (_, _, allowed) in rows.items():
        reached = {far for near in allowed for far in rows[near][2]}
        if reached - set(allowed):
            found.append(f"tests/lint/layers.tsv: {path} reaches {sorted(reached - set(allowed))} but may not include it")
    return found


def self_test():
    rows = table()
    includes = lambda *names: "".join(f"#include <{n}>\n" for n in names)
    check = lambda name, *names: complaints(name, includes(*names), rows)
    a_to_b = {"topo/a.hpp": includes("topocoll/topo/b.hpp")}
    sources.self_test("layering", [
        ("upward", check("topo/x.hpp", "topocoll/plan/y.hpp"), check("plan/y.hpp", "topocoll/topo/x.hpp")),
        ("sideways", check("topo/x.hpp", "topocoll/read/y.hpp"), check("discover/x.hpp", "topocoll/read/y.hpp")),
        ("backend", check("exec/x.hpp", "topocoll/backend/ucx.hpp"), check("backend/ucx.hpp", "topocoll/exec/x.hpp")),
        ("other backend", check("backend/ucx.hpp", "topocoll/backend/cuda.hpp"),
         check("backend/nccl/transport.hpp", "topocoll/backend/library_info.hpp", "topocoll/backend/nccl.hpp")),
        ("umbrella", check("plan/x.hpp", "topocoll/topo.hpp"), check("plan/x.hpp", "topocoll/version.hpp")),
        ("dear", check("io/x.hpp", "thread"), check("exec/x.hpp", "thread")),
        ("exception", check("exec/other.hpp", "topocoll/discover/source.hpp"),
         check("exec/session.hpp", "topocoll/discover/source.hpp")),
        ("unknown folder", check("misc/x.hpp"), check("core/x.hpp")),
        ("commented out", check("topo/x.hpp", "topocoll/exec/y.hpp"),
         complaints("topo/x.hpp", "// #include <topocoll/exec/y.hpp>\n", rows)),
        ("circle", circles({**a_to_b, "topo/b.hpp": includes("topocoll/topo/a.hpp")}),
         circles({**a_to_b, "topo/b.hpp": ""})),
        ("two halves", circles({"topo/a.hpp": includes("topocoll/topo/detail/b.hpp"),
                                "topo/detail/b.hpp": includes("topocoll/topo/c.hpp"),
                                "topo/c.hpp": includes("topocoll/topo/a.hpp")}),
         circles({"topo/a.hpp": includes("topocoll/topo/detail/b.hpp"),
                  "topo/detail/b.hpp": includes("topocoll/topo/a.hpp")})),
        ("table with a gap", untidy({"a": ("0", False, []), "b": ("1", False, ["a"]), "c": ("2", False, ["b"])}),
         untidy(rows)),
    ])


def main():
    rows = table()
    if "--self-test" in sys.argv:
        self_test()
    drawing = sources.ROOT / "docs" / "layers.dot"
    if "--draw" in sys.argv:
        drawing.parent.mkdir(exist_ok=True)
        drawing.write_text(picture(rows), encoding="utf-8")
        return
    all_headers = sources.headers()
    found = [c for name, text in all_headers.items() for c in complaints(name, text, rows)]
    found += circles(all_headers) + untidy(rows)
    if not drawing.exists() or drawing.read_text(encoding="utf-8") != picture(rows):
        found.append("docs/layers.dot is not what tests/lint/layers.tsv says; run tests/lint/layering.py --draw")
    sources.finish("layering", found, len(all_headers))


main()
