"""Shared code of the programs that check the product."""

import os
import pathlib
import sys


class Fault(Exception):
    """Something that is wrong."""


def expect(condition, what):
    if not condition:
        raise Fault(what)


def equal(found, wanted, what):
    expect(found == wanted, f"{what} is {found!r}, not {wanted!r}")


def begin_again(missing):
    """Restarts the program with Debian's Python, which has Debian's packages but may not be the first one on PATH.

    Exits with status 69 if that Python already runs.
    """
    if pathlib.Path("/usr/bin/python3").exists() and "STALLWATCH_PYTHON" not in os.environ:
        os.environ["STALLWATCH_PYTHON"] = "tried"
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print(f"{missing}: run `make test`, which installs it", file=sys.stderr)
    sys.exit(69)
