# SPDX-License-Identifier: Apache-2.0
"""What headers of a library that others embed must not contain, and how every header begins.

  bans.py              check
  bans.py --self-test  see that bad samples are refused
"""
import re
import sys

sys.dont_write_bytecode = True
import sources  # noqa: E402

MOST_LINES = 400  # of a public header
# Headers of the system that have no vendor; folders end in a slash.
SYSTEM = ("sys/", "net/", "netinet/", "arpa/", "linux/", "asm/", "immintrin.h", "cpuid.h", "arm_neon.h", "unistd.h", "fcntl.h",
          "dlfcn.h", "poll.h", "pthread.h", "sched.h", "semaphore.h", "signal.h", "spawn.h", "dirent.h", "ifaddrs.h",
          "netdb.h", "errno.h", "time.h", "limits.h", "stdlib.h", "string.h", "endian.h", "link.h")
BANNED = [
    ("prints", re.compile(r"\bstd::(cout|cerr|clog)\b|(?<![\w.>])(std::|::)?v?f?printf\s*\(|"
                          r"(?<![\w.>])(std::|::)?(puts|fputs|putchar|fputc|perror)\s*\("),
     "a header does not print; give the text back or take a sink"),
    ("ends the program", re.compile(r"\bstd::(abort|exit|quick_exit|terminate)\b|(?<![\w>])::(abort|exit|quick_exit)\s*\(|"
                                    r"(?<![\w.>:~])(exit|quick_exit)\s*\("),
     "a header does not end the program; return a failure"),
    ("opens a namespace", re.compile(r"\busing\s+namespace\b"), "no `using namespace` in a header"),
    ("starts detached threads", re.compile(r"\.\s*detach\s*\("), "a thread has an owner that joins it"),
]
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(|\b(un)?setenv\s*\(|\bputenv\s*\(|(?<!\w)environ\b(?!\s*[:/])")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
# nvcc 13 declares the == that a defaulted friend <=> implies, but never defines it: programs then do not link.
LONE_SPACESHIP = re.compile(r"\bfriend\b[^;{}]*operator<=>\s*\([^)]*\)[^;]*=\s*default\s*;(?!\s*(?:friend\s+)?(?:constexpr\s+)?bool\s+operator==)")
VARIABLE = re.compile(r"^(?:inline|static|thread_local)\s+(?!constexpr\b|const\b|consteval\b|constinit\s+const\b|namespace\b)"
                      r"[\w:<>,*&\s]+?\b\w+\s*(?:=|\{|;)")

# A long body in a function that is no template costs everyone who includes the header, also those who never call it.
EAGER = re.compile(r"^(?:\[\[nodiscard\]\] )?inline (?!constexpr\b|namespace\b)[^;{}=()]*?(?<!::)\b(\w+)\([^;{}]*\{$(.*?)^\}", re.M | re.S)
MOST_EAGER_LINES = 12
DEFERRED_LAYERS = ("io/", "read/", "topo/", "discover/", "plan/", "exec/", "probe/", "bench/", "integrate/")


def frames(code, position):
    """What stands before each brace that is open at a position: the heads of namespaces, classes and functions."""
    stack, start = [], 0
    for i in range(position):
        if code[i] == "{":
            stack.append(code[start:i])
            start = i + 1
        elif code[i] == "}":
            if stack:
                stack.pop()
            start = i + 1
        elif code[i] == ";":
            start = i + 1
    return stack


def beginning(name, text):
    """SPDX line, #pragma once, and a comment that says in a sentence what the header offers."""
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
        return [f"{name}:1: begins with the line `// SPDX-License-Identifier: Apache-2.0`"]
    if lines[1] != "#pragma once":
        return [f"{name}:2: the second line is `#pragma once`"]
    comment = []
    for line in lines[2:]:
        if not line.startswith("// "):
            break
        comment.append(line[3:])
    sentence = " ".join(comment)
    if len(sentence.split()) < 3 or not re.search(r"[.;:!?]$", sentence):
        return [f"{name}:3: the third line begins a comment that says in a sentence what the header offers"]
    return []


def known_include(included, name, vendors):
    """None, or why the include is refused."""
    if included.startswith("topocoll/"):
        return None
    for start, component, place in vendors:
        if included.startswith(start):
            allowed = name == place or name.startswith(place + "/") or name.rsplit(".", 1)[0] == place
            allowed = allowed or (place.endswith("/") and name.startswith(place))
            allowed = allowed or (name.startswith("backend/") and place.startswith("backend/") and component in ("cuda",))
            return None if allowed else f"<{included}> belongs to {component}; only {place} may include it"
    if re.fullmatch(r"[a-z_0-9]+", included):
        return None  # the standard library
    if any(included == s or (s.endswith("/") and included.startswith(s)) for s in SYSTEM):
        return None
    return f"<{included}> is neither standard, nor of the system, nor in cmake/vendor_headers.tsv"


def complaints(name, text, vendors):
    found = beginning(name, text)
    code = sources.blank(text)
    lines = text.count("\n")
    if lines > MOST_LINES and "/detail/" not in name:
        found.append(f"{name}: {lines} lines; a public header has at most {MOST_LINES}")
    for _, pattern, why in BANNED:
        found += [f"{name}:{sources.line_of(code, m.start())}: `{m.group(0).strip()}`: {why}" for m in pattern.finditer(code)]
    for m in ENVIRONMENT.finditer(code):
        if "environment" not in name and not any("environment" in head for head in frames(code, m.start())):
            found.append(f"{name}:{sources.line_of(code, m.start())}: reads the environment in a function whose name does "
                         "not say so")
    for m in LONE_SPACESHIP.finditer(code):
        found.append(f"{name}:{sources.line_of(code, m.start())}: write the defaulted == below the defaulted friend <=>, nvcc needs it")
    for m in MACRO.finditer(code):
        if not m.group(1).startswith("TOPOCOLL_"):
            found.append(f"{name}:{sources.line_of(code, m.start())}: macro {m.group(1)} does not begin with TOPOCOLL_")
    for m in re.finditer(r"^(?:inline|static|thread_local)\b[^\n]*", code, re.M):
        if VARIABLE.match(m.group(0)) and "(" not in re.split(r"[={;]", m.group(0))[0]:
            found.append(f"{name}:{sources.line_of(code, m.start())}: a variable that can change, shared by the whole program")
    if name.startswith(DEFERRED_LAYERS):
        for m in EAGER.finditer(code):
            if m.group(2).count("\n") > MOST_EAGER_LINES:
                found.append(f"{name}:{sources.line_of(code, m.start())}: {m.group(1)}() has a long body: write `template <class = "
                             "void>` for `inline`, so that only those who call it compile it")
    for m in sources.INCLUDE.finditer(sources.blank(text, keep_texts=True)):
        refused = "includes are written <topocoll/layer/name.hpp>" if m.group(1) == '"' else known_include(m.group(2), name, vendors)
        if refused:
            found.append(f"{name}:{sources.line_of(text, m.start())}: {refused}")
    return found


def self_test():
    vendors = sources.vendors()
    top = "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n// Says what it offers.\n"
    check = lambda body, name="topo/x.hpp": complaints(name, top + body, vendors)
    raw = lambda text: complaints("topo/x.hpp", text, vendors)
    sources.self_test("bans", [
        ("SPDX", raw(top[1:]), raw(top)),
        ("pragma once", raw(top.replace("#pragma once\n", "")), raw(top)),
        ("first sentence", raw(top.replace("// Says", "#include <x>\n// Says")), raw(top)),
        ("sentence that ends", raw(top.replace("offers.", "offers")), raw(top)),
        ("cout", check("inline void f() { std::cout << 1; }"), check("\n// std::cout\ninline const char* f() { return \"std::cout\"; }")),
        ("printf", check('inline void f() { std::fprintf(stderr, ""); }'), check('inline int f() { return std::snprintf(a, 1, ""); }')),
        ("puts", check("inline void f() { puts(x); }"), check("inline void f() { sink.puts(x); }")),
        ("abort", check("inline void f() { std::abort(); }"), check("inline void f(T& t) { t.abort(why); }")),
        ("exit", check("inline void f() { exit(1); }"), check("inline int f() { return exit_code(1); }")),
        ("using namespace", check("using namespace std;"), check("using std::vector;")),
        ("detach", check("inline void f() { t.detach(); }"), check("inline void f() { t.join(); }")),
        ("getenv", check('inline auto f() { return std::getenv("A"); }'),
         check('inline auto launch_from_environment() { if (a) { return std::getenv("A"); } }')),
        ("getenv after", check('inline int of_environment() { return 1; }\ninline auto f() { return std::getenv("A"); }'),
         check('inline auto f() { return std::getenv("A"); }', "exec/environment.hpp")),
        ("lone <=>", check("struct a {\n  friend auto operator<=>(a, a) = default;\n};\n"),
         check("struct a {\n  friend constexpr auto operator<=>(a, a) = default;\n  friend constexpr bool operator==(a, a) = default;\n};\n")),
        ("macro", check("#define LIMIT 3\n"), check("#define TOPOCOLL_LIMIT 3\n")),
        ("mutable global", check("inline int counter = 0;\n"), check("inline constexpr int most = 3;\ninline int f(int a = 0) {\n}")),
        ("mutable global of class type", check("inline std::vector<int> all;\n"), check("static inline int f();\n")),
        ("vendor elsewhere", check("#include <pugixml.hpp>\n"), check("#include <pugixml.hpp>\n", "io/xml.hpp")),
        ("backend's own", check("#include <infiniband/verbs.h>\n", "backend/ucx.hpp"),
         check("#include <infiniband/verbs.h>\n", "backend/verbs/transport.hpp")),
        ("unknown library", check("#include <zlib.h>\n"), check("#include <vector>\n#include <sys/stat.h>\n")),
        ("quotes", check('#include "x.hpp"\n'), check("#include <topocoll/core/x.hpp>\n")),
        ("eager body", check("[[nodiscard]] inline int f(int a) {\n" + "  ++a;\n" * 20 + "}\n"),
         check("inline int f(int a) {\n  return a;\n}\ntemplate <class = void>\nint g(int a) {\n" + "  ++a;\n" * 20 + "}\n")),
        ("length", check("\n" * 400), check("\n" * 400, "topo/detail/x.hpp")),
    ])


def main():
    if "--self-test" in sys.argv:
        self_test()
    vendors = sources.vendors()
    all_headers = sources.headers()
    found = [c for name, text in all_headers.items() for c in complaints(name, text, vendors)]
    sources.finish("bans", found, len(all_headers))


main()
