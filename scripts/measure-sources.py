#!/usr/bin/env python3
"""Prints how large the files of Sources/ and Tests/ are, and how many of them a reader opens to understand some.

    scripts/measure-sources.py [REVISION ...]

Without a revision it measures the working tree. A file *reaches* the files of its module that declare a name which it uses,
and what these reach. Measured so: lines as `wc -l` counts them; sizes over all Swift files of Sources/.
"""

import importlib.util
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Readers begin at these files.
BEGINNINGS = ["TopCommand", "LoopSupervisor", "Reporter"]

spec = importlib.util.spec_from_file_location("layers", ROOT / "scripts/check-layers.py")
layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layers)


def reached(files, beginning):
    """Returns the files of one module that a file reaches, with itself."""
    module = beginning.parts[0]
    inside = {path: file for path, file in files.items() if path.parts[0] == module and "Inert" not in path.parts}
    declared = {name: path for path, file in inside.items() for name in file.top}
    found, open_ = {beginning}, [beginning]
    while open_:
        file = inside[open_.pop()]
        for name in file.words - (file.own - file.top):
            path = declared.get(name)
            if path and path not in found:
                found.add(path)
                open_.append(path)
    return found


def lines(paths):
    return sum(path.read_bytes().count(b"\n") for path in paths)


def measure(root, tracked):
    code = [root / name for name in tracked if pathlib.Path(name).suffix in (".swift", ".c", ".h", ".cpp", ".js", ".css", ".html")]
    sizes = sorted(file.lines for file in layers.read(root).values())
    files = layers.read(root)
    yield "tracked files", len(tracked)
    yield "Swift files in Sources", len(sizes)
    yield "… under 40 lines", f"{sum(size < 40 for size in sizes)} ({sum(size < 40 for size in sizes) / len(sizes):.1%})"
    yield "… median / p90 / longest", f"{statistics.median(sizes):.0f} / {sizes[int(len(sizes) * 0.9)]} / {sizes[-1]}"
    yield "lines in Sources", lines(path for path in code if (root / "Sources") in path.parents)
    yield "lines in Tests", lines(path for path in code if (root / "Tests") in path.parents)
    yield "Swift files in Tests", sum(name.startswith("Tests/") and name.endswith(".swift") for name in tracked)
    yield "lines of Package.swift", lines([root / "Package.swift"])
    for name in BEGINNINGS:
        for path in files:
            if path.name == f"{name}.swift":
                found = reached(files, path)
                yield f"reached from {name}", f"{len(found)} files, {sum(files[path].lines for path in found)} lines"


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def main():
    for revision in sys.argv[1:] or [None]:
        print(f"== {revision or 'working tree'}")
        with tempfile.TemporaryDirectory() as folder:
            root = ROOT
            if revision:
                root = pathlib.Path(folder)
                subprocess.run(["tar", "x", "-C", folder], input=git("archive", revision), check=True)
                tracked = git("ls-tree", "-r", "--name-only", revision).decode().splitlines()
            else:
                tracked = git("ls-files").decode().splitlines()
            for name, value in measure(root, tracked):
                print(f"{name:28} {value}")


main()
