#!/usr/bin/env python3
"""Checks that the suites of tests named in docs/Guarantees.md exist.

Each row of its table has at least one suite: a link with its name to its file. Exit status: 0 if every file has its suite,
with a test, 1 if not.
"""

import pathlib
import re
import sys

document = pathlib.Path(__file__).resolve().parent.parent / "docs/Guarantees.md"
rows = re.findall(r"^\| (.*) \| (.*) \|$", document.read_text(), re.MULTILINE)[2:]
faults = [] if rows else ["there is no table of promises and tests"]

for promise, tests in rows:
    suites = re.findall(r"\[(\w+)\]\(([\w/+.]+)\)", tests)
    if not suites:
        faults.append(f"no suite is named for: {promise}")
    for suite, path in suites:
        file = document.parent / path
        text = file.read_text() if file.is_file() else ""
        if not re.search(rf"\bstruct {suite}\b.*?@Test\b", text, re.DOTALL):
            faults.append(f"{path} has no suite {suite} with a test")

for fault in faults:
    print(f"{document.relative_to(document.parent.parent)}: error: {fault}", file=sys.stderr)
sys.exit(1 if faults else 0)
