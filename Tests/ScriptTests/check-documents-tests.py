#!/usr/bin/env python3
"""Tests scripts/check-documents.py with pages that name what does not exist."""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/check-documents.py"

RIGHT = """# A page

`stallwatch`, `stallwatch top --cause lock`, `stallwatch baseline update --output known.json`, `swift package stalls tree --bottom-up`,
`stallwatch test --after 2m swift test --no-such`, `Sources/StallWatch/API`, `Fleet/*/groups.sql`, `Tests/NAME/x`, `make test`,
`cause.lock.owners`, `monitor.start()`, `STALLWATCH=off`, [here](#a-page), [there](https://swift.org).

```sh
swift run -c release stallwatch top stalls --json | jq --no-such   # a comment
make scenarios && make test-all
```
"""

WRONG = {
    "`stallwatch shwo`": "stallwatch has no command shwo",
    "`stallwatch top --histroy`": "stallwatch top has no option --histroy",
    "`stallwatch health 1 --group-by cause`": "stallwatch health has no option --group-by",
    "```sh\nswift run stallwatch --nope | cat\n```": "stallwatch top has no option --nope",
    "```sh\nmake tests\n```": "the makefile has no target tests",
    "`make soak SOOK=8h`": "the makefile uses no variable SOOK",
    "`Sources/StallWach/API`": "there is no Sources/StallWach/API",
    "`cause.lokc`": "no file has the name lokc",
    "`STALLWATCH_OFFF=1`": "no file has the variable STALLWATCH_OFFF",
    "| measurement | value |\n| --- | ---: |\n| a turn | 1 ns |": "Benchmarks/RESULTS.md has no row | a turn | 1 ns |",
    "[x](missing.md)": "the link missing.md leads nowhere",
    "[x](#other)": "#other: that page has no such heading",
    "[x](doc:Limits)": "doc:Limits: GitHub does not follow it; write Limits.md",
}


def run(text):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        page.write_text(text)
        result = subprocess.run([SCRIPT, page], capture_output=True, text=True, timeout=60)
        return result.returncode, result.stderr.replace(f"{page}:", "")


class Documents(unittest.TestCase):
    def test_right(self):
        self.assertEqual(run(RIGHT), (0, ""))

    def test_wrong(self):
        for text, fault in WRONG.items():
            status, errors = run(f"{text}\n")
            self.assertEqual((status, errors.split("error: ")[1:]), (1, [fault + "\n"]), text)


if __name__ == "__main__":
    unittest.main()
