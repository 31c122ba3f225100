#!/usr/bin/env python3
"""Checks that the tests named in docs/Guarantees.md exist.

Each row of its table names at least one test: a link to the suite's file, a colon, and the test functions in
backquotes. Exit status: 0 if every file, suite and test function exists, 1 if not.
"""

import pathlib
import re
import sys

document = pathlib.Path(__file__).resolve().parent.parent / "docs/Guarantees.md"
rows = re.findall(r"^\| (.*) \| (.*) \|$", document.read_text(), re.MULTILINE)[2:]
faults = [] if rows else ["there is no table of promises and tests"]

for promise, tests in rows:
    suites = re.findall(r"\[(\w+)\]\(([\w/+.]+)\): ((?:`[^`]+`(?:, )?)+)", tests)
    if not suites:
        faults.append(f"no test is named for: {promise}")
    for suite, path, functions in suites:
        file = document.parent / path
        text = file.read_text() if file.is_file() else ""
        if not re.search(rf"\bstruct {suite}\b", text):
            faults.append(f"{path} has no suite {suite}")
        for function in re.findall(r"`([^`]+)`", functions):
            # The attribute's arguments may be on lines of their own, before the function. A name with spaces is a raw
            # identifier, in backquotes.
            name = re.escape(function)
            if not re.search(rf"@Test(?:(?!@Test|\bfunc\b).)*\bfunc (?:{name}|`{name}`)\(", text, re.DOTALL):
                faults.append(f"{path} has no test {function}")

for fault in faults:
    print(f"{document.relative_to(document.parent.parent)}: error: {fault}", file=sys.stderr)
sys.exit(1 if faults else 0)
