#!/usr/bin/env python3
"""Measures what StallWatch adds to a clean release build of an app.

    Benchmarks/build-time.py [--rounds N]

Builds the same small program N times (3) in turns, without StallWatch and with it, each time from nothing but the fetched
packages. Prints a table in Markdown with the seconds of each build and the medians.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "App",
    dependencies: [{dependency}],
    targets: [.executableTarget(name: "App", dependencies: [{product}])]
)
"""
PLAIN = 'import Foundation\n\nRunLoop.main.run(until: Date(timeIntervalSinceNow: 1))\n'
WATCHED = """import Foundation
import StallWatch

let monitor = try StallMonitor(.init(outputs: [.directory("stalls")]))
try monitor.watch(.main)
try monitor.start()
RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
monitor.stop()
"""


def write(directory, is_watched):
    sources = directory / "Sources" / "App"
    sources.mkdir(parents=True)
    (sources / "main.swift").write_text(WATCHED if is_watched else PLAIN)
    dependency = f'.package(name: "StallWatch", path: "{ROOT}")' if is_watched else ""
    product = '.product(name: "StallWatch", package: "StallWatch")' if is_watched else ""
    (directory / "Package.swift").write_text(MANIFEST.format(dependency=dependency, product=product))


def build(directory):
    """Returns the seconds of a build from nothing but the fetched packages."""
    command = ["swift", "build", "-c", "release", "--package-path", directory]
    subprocess.run(["swift", "package", "--package-path", directory, "resolve"], check=True, capture_output=True)
    for name in ["release", "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "out", "build.db", "release.yaml"]:
        place = directory / ".build" / name
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.is_dir():
            shutil.rmtree(place)
    begin = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"})
    if result.returncode != 0:
        sys.exit(f"The build failed:\n{result.stdout}{result.stderr}")
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        apps = {name: pathlib.Path(scratch) / name for name in ["plain", "watched"]}
        for name, directory in apps.items():
            write(directory, name == "watched")
        print("## Clean release build of a small app\n")
        print("| round | without StallWatch, s | with it, s | added, s |")
        print("| --- | ---: | ---: | ---: |")
        rounds = []
        for number in range(options.rounds):
            plain, watched = build(apps["plain"]), build(apps["watched"])
            rounds.append((plain, watched, watched - plain))
            print(f"| {number + 1} | {plain:.1f} | {watched:.1f} | {watched - plain:.1f} |", flush=True)
        medians = [statistics.median(column) for column in zip(*rounds)]
        print("| median | " + " | ".join(f"{value:.1f}" for value in medians) + " |")


if __name__ == "__main__":
    main()
