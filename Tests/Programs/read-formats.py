#!/usr/bin/env python3
"""Reads the Markdown, JUnit and GitHub output of the tool with independent readers.

    Tests/Programs/read-formats.py DIRECTORY FUNCTION

DIRECTORY has the files show.md, top.md and diff.md, show.xml, top.xml and diff.xml, and show.txt, top.txt and diff.txt with
annotations. FUNCTION is a function that each of them has to name.

*.md    markdown-it-py (PyPI), with GitHub's tables: every table is one, and no line of it is lost as prose
*.xml   junitparser (PyPI)
*.txt   the grammar of GitHub's runner for workflow commands: `::command key=value,…::message`, percent codes

Exit status: 0 if all checks pass, 1 if one fails (prints the fault), 64 for a wrong argument, 69 without a reader.
"""

import pathlib
import re
import sys

from checks import Fault, begin_again, equal, expect

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# The directory in which scripts/install-python-packages.sh installs packages that Debian lacks.
sys.path.insert(0, str(REPOSITORY / ".build" / "python"))

try:
    import junitparser
    from markdown_it import MarkdownIt
except ImportError as missing:
    begin_again(missing)

COMMANDS = ["show", "top", "diff"]
# GitHub shows a comment's first lines; longer ones have to be opened.
LONGEST_ISSUE = 60
PERCENT_CODES = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


def read_markdown(path, function):
    text = path.read_text(encoding="utf-8")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = [token.type for token in tokens]
    expect("table_open" in kinds, "there is no table")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # The line under the header is no row.
    equal(kinds.count("tr_open"), len(rows) - kinds.count("table_open"), "the number of rows")
    columns = kinds.count("th_open") // kinds.count("thead_open")
    equal(kinds.count("td_open"), (kinds.count("tr_open") - kinds.count("thead_open")) * columns, "the number of cells")
    expect("html_block" not in kinds, "there is HTML")
    code = [
        child.content
        for token in tokens
        for child in (token.children or [])
        if child.type == "code_inline"
    ]
    expect(function in code, f"no code span is {function!r}: {code}")
    if path.name == "show.md":
        expect("heading_open" in kinds and "fence" in kinds, "there is no heading, or no stack")
        expect(len(text.splitlines()) <= LONGEST_ISSUE, "it is too long for an issue")


def read_junit(path, function):
    document = junitparser.JUnitXml.fromfile(str(path))
    cases = [case for suite in document for case in suite]
    equal(document.tests, len(cases), "the number of tests")
    failed = [case for case in cases if any(isinstance(result, junitparser.Failure) for result in case.result)]
    equal(document.failures, len(failed), "the number of failures")
    expect(any(function in case.name for case in failed), f"no failed test names {function!r}")
    expect(abs(sum(case.time for case in cases) - document.time) < 0.01, "the times do not add up")


def unescaped(text):
    return re.sub("|".join(PERCENT_CODES), lambda match: PERCENT_CODES[match[0]], text)


def read_annotations(path, function):
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"::(error|warning|notice)(?: ([^:]*))?::(.+)", line)
        expect(match, f"no workflow command: {line!r}")
        properties = dict(pair.split("=", 1) for pair in match[2].split(","))
        expect(set(properties) <= {"file", "line", "title"}, f"unknown properties: {line!r}")
        expect(properties.get("line", "1").isdecimal(), f"no line number: {line!r}")
        found.append(unescaped(properties["title"]))
    expect(any(function in title for title in found), f"no annotation names {function!r}: {found}")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    directory, function = pathlib.Path(arguments[0]), arguments[1]
    for reader, suffix in [(read_markdown, "md"), (read_junit, "xml"), (read_annotations, "txt")]:
        for command in COMMANDS:
            path = directory / f"{command}.{suffix}"
            try:
                reader(path, function)
            except (Fault, junitparser.JUnitXmlError) as fault:
                print(f"{path.name}: {fault}", file=sys.stderr)
                return 1
            print(f"{path.name}: read")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
