"""What the readers of the tool's output share."""

import os
import pathlib
import sys


class Fault(Exception):
    """What is wrong with what is read."""


def expect(condition, what):
    if not condition:
        raise Fault(what)


def equal(found, wanted, what):
    expect(found == wanted, f"{what} is {found!r}, not {wanted!r}")


def begin_again(missing):
    """Runs the program with Debian's Python, which Debian's packages are for and which need not be the first one on PATH.

    Ends with status 69 when it is that one already.
    """
    if pathlib.Path("/usr/bin/python3").exists() and "STALLWATCH_PYTHON" not in os.environ:
        os.environ["STALLWATCH_PYTHON"] = "tried"
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print(f"{missing}: run `make test`, which installs it", file=sys.stderr)
    sys.exit(69)
