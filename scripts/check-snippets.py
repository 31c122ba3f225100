#!/usr/bin/env python3
"""Checks that every Swift block of the documentation is compiled.

Each block of the README and of the documentation catalog has to be, line by line and apart from its indentation, a part of
a file in Snippets/, which the package manager builds. Exit status: 0 when all are, 1 when not.
"""

import pathlib
import re
import sys
import textwrap

root = pathlib.Path(__file__).resolve().parent.parent
documents = [root / "README.md", *sorted(root.glob("Sources/*/*.docc/*.md"))]


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(whole, part):
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


compiled = [lines(path.read_text()) for path in sorted((root / "Snippets").glob("*.swift"))]
missing = 0
for document in documents:
    for block in re.findall(r"^```swift\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE):
        code = [line for line in lines(textwrap.dedent(block)) if not line.startswith("import ")]
        if not any(contains(snippet, code) for snippet in compiled):
            missing += 1
            print(f"{document.relative_to(root)}: this block is in no file of Snippets/, so nothing compiles it:", file=sys.stderr)
            print(textwrap.indent(block, "    "), file=sys.stderr)
if missing:
    sys.exit(1)
