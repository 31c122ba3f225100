#!/usr/bin/env python3
"""Compares the library's public declarations on Linux with those on other platforms, where it does nothing.

    Tests/Programs/inert.py BUILD INERT_BUILD

Both arguments are the directories of debug builds with all traits (`swift build --show-bin-path`), the second one with
STALLWATCH_INERT=1. Prints each declaration that only one of them has. Exit status: 0 if there is none, 1 if there is, 2 if a
module cannot be read.
"""

import json
import pathlib
import platform
import subprocess
import sys
import tempfile

# The modules on Linux whose declarations each module has off Linux.
MODULES = {"StallWatch": ["StallWatch", "StallSymbols"], "StallWatchTesting": ["StallWatchTesting"]}


def declarations(build, module):
    """Returns the public declarations of a module as text, with its extensions of other modules' types."""
    with tempfile.TemporaryDirectory() as folder:
        return extract(build, module, folder)


def extract(build, module, folder):
    maps = [f"-fmodule-map-file={path}" for path in sorted(build.glob("*.build/module.modulemap"))]
    maps += [
        f"-fmodule-map-file={path}" for path in sorted(build.parent.parent.glob("checkouts/*/Sources/*/include/module.modulemap"))
    ]
    command = [
        "swift-symbolgraph-extract", "-module-name", module, "-I", build / "Modules",
        "-target", f"{platform.machine()}-unknown-linux-gnu", "-minimum-access-level", "public", "-output-dir", folder,
    ]
    result = subprocess.run(
        command + [word for argument in maps for word in ("-Xcc", argument)], capture_output=True, text=True, timeout=120
    )
    if result.returncode != 0:
        print(f"{build}: cannot read {module}:\n{result.stderr}", file=sys.stderr)
        sys.exit(2)
    found = set()
    for path in pathlib.Path(folder).glob(f"{module}*.symbols.json"):
        for symbol in json.loads(path.read_text())["symbols"]:
            if "::SYNTHESIZED::" in symbol["identifier"]["precise"]:
                continue
            text = "".join(fragment["spelling"] for fragment in symbol["declarationFragments"])
            found.add(f"{'.'.join(symbol['pathComponents'][:-1])} {' '.join(text.split())}".strip())
    return found


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    builds = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
    count = 0
    different = 0
    for module, sources in MODULES.items():
        linux = set.union(*(declarations(builds[0], source) for source in sources))
        other = declarations(builds[1], module)
        count += len(linux)
        for line in sorted(linux - other):
            print(f"only on Linux: {line}")
        for line in sorted(other - linux):
            print(f"only elsewhere: {line}")
        different += len(linux ^ other)
    if count == 0:
        print("no declarations were found", file=sys.stderr)
        sys.exit(2)
    print(f"{count} public declarations, {different} of them different off Linux")
    sys.exit(1 if different else 0)


main()
