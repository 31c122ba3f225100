#!/usr/bin/env python3
"""Compares docs/api.md with the public declarations of the compiled modules StallWatch and StallWatchTesting.

    scripts/check-api.py [BUILD]

BUILD is the folder of a debug build with all traits, .build/debug by default. Prints each declaration that only the page or
only the modules have. Attributes, default parts such as `{ get }`, and the names around a nested type do not count. Without
a build it compares nothing and says so; with the variable CI that is an error.

Exit status: 0 if they are the same or there is no build, 1 if they differ, 2 if the modules cannot be read.
"""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["StallWatch", "StallWatchTesting"]
# The compiler makes them of other declarations.
MADE = {"static let $current: TaskLocal<StallContext?>"}


def declarations(build, module):
    """Yields the public declarations of a module: the names around each, its kind and its text."""
    maps = [*build.glob("*.build/module.modulemap"), *build.parent.parent.glob("checkouts/*/Sources/*/include/module.modulemap")]
    with tempfile.TemporaryDirectory() as folder:
        command = ["swift-symbolgraph-extract", "-module-name", module, "-I", build / "Modules", "-output-dir", folder]
        command += ["-target", f"{platform.machine()}-unknown-linux-gnu", "-minimum-access-level", "public"]
        command += [word for path in sorted(maps) for word in ("-Xcc", f"-fmodule-map-file={path}")]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if result.returncode != 0:
            print(f"{build}: cannot read {module}:\n{result.stderr}", file=sys.stderr)
            sys.exit(2)
        for path in sorted(pathlib.Path(folder).glob(f"{module}*.symbols.json")):
            for symbol in json.loads(path.read_text())["symbols"]:
                if "::SYNTHESIZED::" in symbol["identifier"]["precise"]:
                    continue
                text = "".join(fragment["spelling"] for fragment in symbol["declarationFragments"])
                yield ".".join(symbol["pathComponents"][:-1]), text


def plain(text):
    """Returns a declaration without what does not count."""
    text = re.sub(r"@\w+(\([^)]*\))? |\b(?:final|consuming|convenience) |\{ get( set)? \}", "", " ".join(text.split()))
    return re.sub(r"\b(?:StallMonitor|Configuration)\.(?=[A-Z])", "", text).strip()


def compiled(build):
    """Returns the declarations of all modules as the page has them: members with the name of their type."""
    found = set()
    for module in MODULES:
        for outer, text in declarations(build, module):
            if plain(text) in MADE:
                continue
            kind = re.match(r"(?:final )?(class|struct|enum|protocol|typealias) (\w+)", plain(text))
            if kind:
                found.add(f"{kind[1]} {outer + '.' if outer else ''}{kind[2]}")
            else:
                found.add(f"{outer} {plain(text)}".strip())
    return found


def page():
    """Returns the declarations of the page in the same form."""
    found = set()
    for block in re.findall(r"^```api\n(.*?)^```", (ROOT / "docs/api.md").read_text(), re.DOTALL | re.MULTILINE):
        outer = ""
        for line in block.splitlines():
            line = re.sub(r"\s+//.*", "", line)
            opened = re.match(r"(class|struct|enum|extension) ([\w.]+).* \{$", line)
            if opened:
                outer = opened[2]
                if opened[1] != "extension":
                    found.add(f"{opened[1]} {outer}")
            elif line == "}":
                outer = ""
            elif line.strip():
                found.add(f"{outer} {plain(line)}".strip())
    return found


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".build/debug").resolve()
    if not all((build / "Modules" / f"{module}.swiftmodule").exists() for module in MODULES):
        print(f"docs/api.md was not compared: {build} has no build with all traits", file=sys.stderr)
        sys.exit(2 if os.environ.get("CI") else 0)
    documented, public = page(), compiled(build)
    for line in sorted(documented - public):
        print(f"docs/api.md: error: no module declares: {line}")
    for line in sorted(public - documented):
        print(f"docs/api.md: error: not on the page: {line}")
    sys.exit(1 if documented != public else 0)


main()
