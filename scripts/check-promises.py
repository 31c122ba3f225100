#!/usr/bin/env python3
"""Checks that the tests which the README names for its promises are there.

Each row of the table of promises has to name one at least, as a link to the suite's file followed by the functions. Exit
status: 0 when the files, the suites and the test functions are all there, 1 when not.
"""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
section = re.search(r"^## What it promises.*?\n(.*?)^## ", (root / "README.md").read_text(), re.DOTALL | re.MULTILINE)
rows = re.findall(r"^\| (.*) \| (.*) \|$", section[1], re.MULTILINE)[2:] if section else []
faults = [] if rows else ["the table of promises is not there"]

for promise, tests in rows:
    suites = re.findall(r"\[(\w+)\]\((Tests/[\w/+.]+)\): ((?:`\w+`(?:, )?)+)", tests)
    if not suites:
        faults.append(f"no test is named for: {promise}")
    for suite, path, functions in suites:
        text = (root / path).read_text() if (root / path).is_file() else ""
        if not re.search(rf"\bstruct {suite}\b", text):
            faults.append(f"{path} has no suite {suite}")
        for function in re.findall(r"\w+", functions):
            # The attribute's arguments may be on lines of their own, before the function.
            if not re.search(rf"@Test(?:(?!@Test|\bfunc\b).)*\bfunc {function}\(", text, re.DOTALL):
                faults.append(f"{path} has no test {function}")

for fault in faults:
    print(f"README.md: error: {fault}", file=sys.stderr)
sys.exit(1 if faults else 0)
