# SPDX-License-Identifier: Apache-2.0
"""C++ in the documents is cut out of sources that are compiled and run.

In a document:      <!-- examples/01_x.cpp: bound -->
                    ```cpp
                    ...
                    ```
In the source:      // [bound]
                    ...
                    // [/bound]
A marker without a name (<!-- examples/01_x.cpp -->) stands for the whole file.

  fragments.py              check
  fragments.py --write      copy the sources into the documents
  fragments.py --self-test  see that a stale and an unmarked block are refused
"""
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import sources  # noqa: E402

BLOCK = re.compile(r"^(?:<!-- (?P<path>[\w./-]+?)(?:: (?P<name>[\w-]+))? -->\n)?```(?:cpp|c\+\+)\n(?P<body>.*?)^```$", re.M | re.S)


def fragment(path, name, read):
    """Text of a fragment, or None."""
    try:
        text = read(path)
    except OSError:
        return None
    if name is None:
        return text
    m = re.search(rf"^[ \t]*// \[{re.escape(name)}\]\n(.*?)^[ \t]*// \[/{re.escape(name)}\]$", text, re.M | re.S)
    if m is None:
        return None
    inner = re.sub(r"^[ \t]*// \[/?[\w-]+\]\n", "", m.group(1), flags=re.M)
    return textwrap.dedent(inner)


def complaints(document, text, read):
    found = []
    for m in BLOCK.finditer(text):
        where = f"{document}:{sources.line_of(text, m.start())}"
        if m.group("path") is None:
            found.append(f"{where}: C++ that is not cut from a source; put <!-- path: name --> above it")
            continue
        want = fragment(m.group("path"), m.group("name"), read)
        if want is None:
            found.append(f"{where}: no fragment {m.group('name')} in {m.group('path')}")
        elif want != m.group("body"):
            found.append(f"{where}: differs from {m.group('path')}; run tests/lint/fragments.py --write")
    return found


def rewritten(text, read):
    def fresh(m):
        want = fragment(m.group("path"), m.group("name"), read) if m.group("path") else None
        return m.group(0) if want is None else m.group(0)[:m.start("body") - m.start()] + want + "```"
    return BLOCK.sub(fresh, text)


def self_test():
    read = lambda path: "a;\n  // [x]\n  b;\n  // [/x]\n"
    block = lambda marker, body: f"{marker}\n```cpp\n{body}```\n"
    good = block("<!-- a.cpp: x -->", "b;\n")
    assert rewritten(block("<!-- a.cpp: x -->", "old;\n"), read) == good
    sources.self_test("fragments", [
        ("stale", complaints("d.md", block("<!-- a.cpp: x -->", "c;\n"), read), complaints("d.md", good, read)),
        ("unmarked", complaints("d.md", block("", "b;\n"), read), complaints("d.md", good, read)),
        ("unknown", complaints("d.md", block("<!-- a.cpp: y -->", "b;\n"), read), complaints("d.md", good, read)),
    ])


def main():
    if "--self-test" in sys.argv:
        self_test()
    documents = [f for f in sources.files() if f.endswith(".md") and not f.startswith("tests/")]
    if "--write" in sys.argv:
        for document in documents:
            text = sources.read(document)
            fresh = rewritten(text, sources.read)
            if fresh != text:
                (sources.ROOT / document).write_text(fresh, encoding="utf-8")
        return
    found = [c for d in documents for c in complaints(d, sources.read(d), sources.read)]
    sources.finish("fragments", found, len(documents))


main()
