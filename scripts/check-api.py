#!/usr/bin/env python3
"""Compares docs/api.md with the public declarations of the compiled modules StallWatch and StallWatchTesting.

    scripts/check-api.py [--inert] [BUILD]

BUILD is the folder of a debug build with all traits, .build/debug by default. With --inert the modules are first compiled as
they are off Linux, with all traits, against the other modules of that build. Prints each declaration that only the page or
only the modules have. Attributes, default parts such as `{ get }`, and the names around a nested type do not count. Without
a build it compares nothing and says so; with the variable CI that is an error.

Exit status: 0 if they are the same or there is no build, 1 if they differ, 2 if the modules cannot be compiled or read.
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
# The modules that are compiled off Linux, each after those that it imports.
PORTABLE = ["StallReports", *MODULES]
# The compiler makes them of other declarations.
MADE = {"static let $current: TaskLocal<StallContext?>"}


def search_paths(build):
    """Returns the options with which a compiler finds the modules of a build."""
    maps = [*build.glob("*.build/module.modulemap"), *build.parent.parent.glob("checkouts/*/Sources/*/include/module.modulemap")]
    return ["-I", build / "Modules"] + [word for path in sorted(maps) for word in ("-Xcc", f"-fmodule-map-file={path}")]


def run(command, what):
    """Runs a compiler; ends the program if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        print(f"cannot {what}:\n{result.stderr}", file=sys.stderr)
        sys.exit(2)


def compile_inert(paths, folder):
    """Compiles the modules as they are off Linux, with the settings and traits of Package.swift, into a folder."""
    manifest = (ROOT / "Package.swift").read_text()
    features = re.findall(r'"(\w+)"', re.search(r"let features = \[(.*?)\]", manifest)[1])
    conditions = ["STALLWATCH_INERT", *re.findall(r'\.trait\(name: "(\w+)"', manifest)]
    settings = ["-swift-version", "6", "-package-name", "stallwatch", "-parse-as-library"]
    settings += [word for name in conditions for word in ("-D", name)]
    settings += [word for name in features for word in ("-enable-upcoming-feature", name)]
    for module in PORTABLE:
        sources = sorted((ROOT / "Sources" / module).rglob("*.swift"))
        sources = [path for path in sources if "Linux" not in path.relative_to(ROOT).parts]
        # Up to the compiler's intermediate language: all diagnostics, and no machine code.
        outputs = ["-wmo", "-emit-sil", "-o", f"{folder}/{module}.sil", "-emit-module-path", f"{folder}/{module}.swiftmodule"]
        command = ["swiftc", "-module-name", module, *settings, *outputs, "-I", folder, *paths, *sources]
        run(command, f"compile {module} as off Linux")


def declarations(paths, module):
    """Yields the public declarations of a module: the names around each, its kind and its text."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["swift-symbolgraph-extract", "-module-name", module, *paths, "-output-dir", folder]
        command += ["-target", f"{platform.machine()}-unknown-linux-gnu", "-minimum-access-level", "public"]
        run(command, f"read {module}")
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


def compiled(paths):
    """Returns the declarations of all modules as the page has them: members with the name of their type."""
    found = set()
    for module in MODULES:
        for outer, text in declarations(paths, module):
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
    arguments = sys.argv[1:]
    is_inert = arguments[:1] == ["--inert"]
    build = pathlib.Path((arguments[is_inert:] or [ROOT / ".build/debug"])[0]).resolve()
    if not all((build / "Modules" / f"{module}.swiftmodule").exists() for module in MODULES):
        print(f"docs/api.md was not compared: {build} has no build with all traits", file=sys.stderr)
        sys.exit(2 if os.environ.get("CI") else 0)
    paths = search_paths(build)
    with tempfile.TemporaryDirectory() as folder:
        if is_inert:
            compile_inert(paths, folder)
        # The folder comes first: the build has modules with the same names.
        documented, public = page(), compiled(["-I", folder, *paths])
    for line in sorted(documented - public):
        print(f"docs/api.md: error: no module declares: {line}")
    for line in sorted(public - documented):
        print(f"docs/api.md: error: not on the page: {line}")
    sys.exit(1 if documented != public else 0)


main()
