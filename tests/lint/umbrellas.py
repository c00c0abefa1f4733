# SPDX-License-Identifier: Apache-2.0
"""Umbrella headers list every header that needs no optional library; they are written by machine.

  umbrellas.py              check
  umbrellas.py --write      write include/topocoll/topocoll.hpp and one <layer>.hpp per layer
  umbrellas.py --self-test  see that a missing and a wrong entry are refused
"""
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import sources  # noqa: E402

WITHOUT = {"app", "backend"}  # layers that are for programs, or for one vendor
# What reads and writes other tools' files is included by those who have such files, one by one or by discover/files.hpp.
FOREIGN_LAYERS = {"read", "integrate"}
FOREIGN = re.compile(r"^discover/\w+_(graph|file)\.hpp$")
# Measuring and judging is another job than running collectives: those who do it include the layer by its own name.
OTHER_JOBS = {"probe", "bench"}
# What searches for plans on irregular machines, studies a plan or prices what other libraries do, and what shows, checks or
# compares graphs, is dear to include and needed by few: those include it by name, too.
ON_REQUEST = re.compile(r"^topo/(check\w*|diff\w*|dot|svg|matrix|summary|text|nccl_xml_text)\.hpp$|^exec/bootstrap\w*\.hpp$|^io/(socket\w*|hmac|sha256)\.hpp$|^plan/(planners|pack|packing|synth/packed|explain|overlay_svg|busbw_chart|replan|pareto|symmetry|certif\w+|"
                        r"check\w*|fair_share|flow_\w+|levelled_\w+|library_model|nccl_\w+|calibrate\w*)\.hpp$")
OFFERS = {
    "core": "numbers with units, ids, results, findings, deadlines",
    "io": "files, tables, shared libraries; sockets and digests are included by name",
    "read": "parsers of other people's texts",
    "topo": "the graph of nodes and links, its paths, cuts and groups; checks, comparison, tables and pictures are included by name",
    "discover": "sources that turn a machine, a file or a description into a graph",
    "plan": "collectives, bounds, schedules, proofs and prices; planners, models and studies are included by name",
    "exec": "transports, memory and communicators that run a plan",
    "integrate": "formats and plug-in structures of other libraries and schedulers",
    "probe": "measuring pairs and groups, and judging them",
    "bench": "sweeps of collectives and their comparison",
    "diagnose": "rules that turn facts and verdicts into findings",
}


def text_of(sentence, names):
    lines = "".join(f"#include <topocoll/{n}>\n" for n in sorted(names))
    comment = textwrap.fill(sentence, 120, initial_indent="// ", subsequent_indent="// ")
    return f"// SPDX-License-Identifier: Apache-2.0\n#pragma once\n{comment}\n// Written by tests/lint/umbrellas.py.\n{lines}"


def wanted(all_headers):
    """Umbrella name -> text."""
    layers = {}
    for name in all_headers:
        layer = name.split("/")[0]
        if FOREIGN.match(name) or ON_REQUEST.match(name):
            continue
        if "/" in name and "/detail/" not in name and layer not in WITHOUT and not sources.components(name, all_headers):
            layers.setdefault(layer, []).append(name)
    made = {f"{layer}.hpp": text_of(f"All of {layer}/ that needs no optional library: {OFFERS[layer]}.", names)
            for layer, names in layers.items()}
    top = [n for n in made if n.removesuffix(".hpp") not in FOREIGN_LAYERS | OTHER_JOBS] + [n for n in ("version.hpp", "fwd.hpp") if n in all_headers]
    made["topocoll.hpp"] = text_of("What a program that runs collectives needs: discovery, graph, plans, execution. Measuring (probe.hpp, bench.hpp), the files of other "
                                   "tools and what needs an optional library are included by name.", top)
    return made


def complaints(all_headers):
    made = wanted(all_headers)
    found = [f"include/topocoll/{n}: belongs to no layer" for n in all_headers
             if "/" not in n and n not in made and n not in ("version.hpp", "fwd.hpp")]
    for name, text in made.items():
        if all_headers.get(name) != text:
            have = set(sources.includes(all_headers.get(name, "")))
            want = set(sources.includes(text))
            parts = [f"lacks {i}" for i in sorted(want - have)] + [f"should not have {i}" for i in sorted(have - want)]
            found.append(f"include/topocoll/{name}: {', '.join(parts) or 'differs'}; run tests/lint/umbrellas.py --write")
    return found


def self_test():
    one = {"core/a.hpp": "", "io/xml.hpp": "#include <pugixml.hpp>\n", "io/b.hpp": "", "topo/c.hpp": "#include <topocoll/io/xml.hpp>\n"}
    good = {**one, **wanted(one)}
    assert "io/xml.hpp" not in good["io.hpp"] and "topo.hpp" not in good
    formats = wanted({"read/a.hpp": "", "discover/a_graph.hpp": "", "discover/b.hpp": ""})
    assert "read.hpp" not in formats["topocoll.hpp"] and "a_graph" not in formats["discover.hpp"]
    assert "pack" not in wanted({"plan/pack.hpp": "", "plan/bound.hpp": ""})["plan.hpp"]
    sources.self_test("umbrellas", [
        ("missing header", complaints({**good, "core/new.hpp": ""}), complaints(good)),
        ("opt-in header", complaints({**good, "io/b.hpp": "#include <nlohmann/json.hpp>\n"}), complaints(good)),
        ("stray header", complaints({**good, "misc.hpp": ""}), complaints({**good, "version.hpp": "",
                                                                           **wanted({**one, "version.hpp": ""})})),
        ("missing umbrella", complaints(one), complaints(good)),
    ])


def main():
    if "--self-test" in sys.argv:
        self_test()
    all_headers = sources.headers()
    if "--write" in sys.argv:
        for name, text in wanted(all_headers).items():
            (sources.ROOT / "include/topocoll" / name).write_text(text, encoding="utf-8")
        return
    sources.finish("umbrellas", complaints(all_headers), len(wanted(all_headers)))


main()
