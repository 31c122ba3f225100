#!/usr/bin/env python3
"""Checks that every Swift and C block of the documentation is compiled.

Reads the README, docs/ and the documentation catalogs. Apart from indentation and imports, each Swift block must be a
part of a Swift file in Snippets/, which the package manager builds, in Examples/, which the tests build, or in
Tests/Samples/, which `make stalls-in-tests` builds. Each C block must be a part of a C file in Examples/. A Swift block
of `.package(…)` and `.product(…)` lines only, or with a tools version, is a manifest: Package.swift must declare the products
and traits that it names. `make guides` builds the whole manifests and Examples/hummingbird-server.

Exit status: 0 without faults, 1 with faults.
"""

import pathlib
import re
import sys
import textwrap

root = pathlib.Path(__file__).resolve().parent.parent
documents = [root / "README.md", *sorted(root.glob("docs/**/*.md")), *sorted(root.glob("Sources/*/*.docc/*.md"))]
manifest = (root / "Package.swift").read_text()
sources = {"swift": ["Snippets/*.swift", "Examples/*/Sources/**/*.swift", "Tests/Samples/*/Tests/**/*.swift"], "c": ["Examples/*/Sources/**/*.c"]}


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(whole, part):
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


def unknown_names(block):
    """Returns the products and traits in a manifest's lines that Package.swift does not declare."""
    products = re.findall(r'\.product\(name: "([^"]+)", package: "StallWatch"', block)
    lists = re.findall(r'\.package\([^\n]*StallWatch[^\n]*traits: \[([^\]]*)\]', block)
    traits = [name for names in lists for name in re.findall(r'"([^"]+)"', names)]
    return [name for name in products if not re.search(rf'\.(?:library|executable)\(name: "{name}"', manifest)] + [
        name for name in traits if f'.trait(name: "{name}"' not in manifest
    ]


compiled = {
    language: [lines(path.read_text()) for pattern in patterns for path in sorted(root.glob(pattern))]
    for language, patterns in sources.items()
}
faults = 0
for document in documents:
    for language, block in re.findall(r"^```(swift|c)\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE):
        code = [line for line in lines(textwrap.dedent(block)) if not line.startswith("import ")]
        if block.startswith("// swift-tools-version") or all(line.startswith((".package(", ".product(", "//")) for line in code):
            problem = ", ".join(unknown_names(block))
            problem = problem and f"Package.swift declares no product or trait named {problem}"
        else:
            is_compiled = any(contains(file, code) for file in compiled[language])
            problem = "" if is_compiled else "no compiled file has this block"
        if problem:
            faults += 1
            print(f"{document.relative_to(root)}: error: {problem}", file=sys.stderr)
            print(textwrap.indent(block, "    "), file=sys.stderr)
sys.exit(1 if faults else 0)
