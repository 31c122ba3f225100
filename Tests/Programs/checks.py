"""Shared code of the programs that check the product."""

import os
import pathlib
import re
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# The package with tests that stall or hang.
SAMPLE = REPOSITORY / "Tests/Samples/StallsInTests"
# Where scripts/install-python-packages.sh installs packages that Debian lacks.
sys.path.insert(0, str(REPOSITORY / ".build" / "python"))


class Fault(Exception):
    """Something that is wrong."""


def expect(condition, what):
    if not condition:
        raise Fault(what)


def equal(found, wanted, what):
    expect(found == wanted, f"{what} is {found!r}, not {wanted!r}")


class Faults(list):
    """What is wrong, for a program that goes on after a fault."""

    def check(self, right, text):
        if not right:
            self.append(text)
        return bool(right)

    def status(self, name):
        """Prints the faults; returns the program's exit status."""
        for fault in self:
            print(fault, file=sys.stderr)
        print(f"{name}: {f'{len(self)} faults' if self else 'ok'}")
        return 1 if self else 0


def marks(folder, kind):
    """Returns `File.swift:line` of each mark `// KIND: NAME` in the sample package, by its name."""
    found = {}
    for path in (SAMPLE / folder).rglob("*.swift"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.search(rf"// {kind}: (\w+)$", line):
                found[match[1]] = f"{path.name}:{number}"
    return found


def begin_again(missing):
    """Restarts the program with Debian's Python, which has Debian's packages but may not be the first one on PATH.

    Exits with status 69 if that Python already runs.
    """
    if pathlib.Path("/usr/bin/python3").exists() and "STALLWATCH_PYTHON" not in os.environ:
        os.environ["STALLWATCH_PYTHON"] = "tried"
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print(f"{missing}: run `make test`, which installs it", file=sys.stderr)
    sys.exit(69)
