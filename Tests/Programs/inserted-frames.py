#!/usr/bin/env python3
"""Counts the frames of functions that left none in the stacks of reports.

    inserted-frames.py DEBUG [OPTIMIZED] [--at-least STACKS]

In the reports of the directory DEBUG, which are of a debug build, there must be none: there no frame is missing. In
those of the directory OPTIMIZED, which are of an optimized build of the same program, the debug build must have each of
them below the same caller. Exit status: 0 if so and there were STACKS stacks (default 1) in DEBUG, 1 if not.
"""

import argparse
import json
import pathlib
import sys


def stacks(directory):
    """The stacks of a directory's reports, each a list of frames."""
    for path in sorted(pathlib.Path(directory).rglob("stall-*.json")):
        report = json.loads(path.read_text())
        for stack in report["stacks"]:
            yield [report["frames"][index] for index in stack]


def name(frame):
    """The function, however the compiler has specialized or shared it."""
    words = (frame.get("function") or "?").split(" ")
    return " ".join(word for word in words if word not in ("merged", "specialized"))


def written(stack):
    """The frames of functions of a source."""
    generated = (None, "merged")
    return [frame for frame in stack if not frame.get("isRuntimeFrame") and frame.get("compilerGenerated") in generated]


arguments = argparse.ArgumentParser()
arguments.add_argument("debug")
arguments.add_argument("optimized", nargs="?")
arguments.add_argument("--at-least", type=int, default=1)
options = arguments.parse_args()

calls, count, frames, wrong = set(), 0, 0, []
for stack in stacks(options.debug):
    count += 1
    frames += len(stack)
    wrong += [f"in a debug build: {name(frame)}" for frame in stack if frame.get("isTailCall")]
    functions = [name(frame) for frame in written(stack)]
    calls |= set(zip(functions, functions[1:]))
print(f"{count} stacks with {frames} frames of the debug build: {len(wrong)} inserted frames")

if options.optimized:
    inserted = 0
    for stack in stacks(options.optimized):
        functions = written(stack)
        for inner, outer in zip(functions, functions[1:]):
            if inner.get("isTailCall"):
                inserted += 1
                if (name(inner), name(outer)) not in calls:
                    wrong.append(f"not in the debug build: {name(inner)} called by {name(outer)}")
    print(f"{inserted} inserted frames of the optimized build")
for line in sorted(set(wrong)):
    print(f"FAILED: {line}")
if count < options.at_least:
    sys.exit(f"FAILED: {count} stacks are too few: {options.at_least} are wanted")
sys.exit(1 if wrong else 0)
