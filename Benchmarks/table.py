#!/usr/bin/env python3
"""Prints the table of Benchmarks/RESULTS.md from one run of all measurements.

    { swift package --package-path Benchmarks benchmark --format markdown && stallwatch-bench; } | Benchmarks/table.py

What it reads it prints, too. Exit status: 0, or 1 if a measurement is missing.
"""

import re
import sys

STOP = "Capture of a thread with a stack of 64 KiB"
TURN = "A source0 turn of a run loop"
FIRST = "From the threshold to the first captured sample"
FILE = "From the threshold to a file"
MEMORY = "Memory added"
NAMES = "Names and lines of a whole stack"
REST = "Four event loops"
P50, P99, SIZE = "p50", "p99", "resident, MB"


def us(name):
    """The median and the 99th percentile of a time in nanoseconds."""
    return [(STOP, f"{name}: held", column, 1e-3) for column in (P50, P99)]


# A row's name, its values, where these are and what they are multiplied with, and its goals: at most, or if negative at least.
# Titles, rows and columns are found by their beginnings; of several rows the values are added.
ROWS = [
    ("held by a stop, 64 KiB stack, p50 / p99", "{:.0f} / {:.0f} us", us("StallWatch's stop"), [10, 40]),
    (
        "held by a capture by signal; by `backtrace(3)` in a signal handler, p50 / p99", "{:.0f} / {:.0f}; {:.0f} / {:.0f} us",
        us("StallWatch's signal") + us("a handler with backtrace(3)"), [],
    ),
    (
        "a stalled thread's longest pause / without StallWatch, p50", "{:.2f} / {:.2f} ms",
        [(FIRST, "StallWatch's sample", "paused p50", 1), (FIRST, "the stalls without a monitor", "paused p50", 1)], [],
    ),
    (
        "a turn: not observed, two empty observers, StallWatch, a semaphore per activity", "{:.0f}, {:.0f}, {:.0f}, {:.0f} ns",
        [(TURN, f"{name}: ns", P50, 1) for name in ("not observed", "two empty observers", "StallWatch", "a semaphore")], [],
    ),
    ("turn with StallWatch / with two empty observers", "{:.2f}", [(TURN, "StallWatch / two", P50, 1e-3)], [1.25]),
    ("StallWatch's own part of a turn / two `clock_gettime`", "{:.2f}", [(TURN, "StallWatch's own part", P50, 1e-3)], [1.8]),
    ("added by a semaphore per activity / by StallWatch", "{:.1f}", [(TURN, "added by a semaphore", P50, 1e-3)], [-3]),
    (
        "probe, begin and end / two `clock_gettime`", "{:.2f}",
        [("A turn of a loop with a probe", "beginTurn() and endTurn() /", P50, 1e-3)], [1.5],
    ),
    (
        "C++ exception, 10 frames, with / without StallWatch", "{:.2f}",
        [("A C++ exception thrown and caught 10 frames further out, mean", "with StallWatch linked /", P50, 1e-3)], [1.1],
    ),
    (
        "an operation with a limit, beyond an empty task-local binding, p50 / p99", "{:.0f} / {:.0f} ns",
        [("An operation with a limit", "an operation beyond", column, 1) for column in (P50, P99)], [200, 200],
    ),
    (
        "wake-ups of the watchdog in 60 s while a loop waits", "{:.0f}",
        [("The watching thread while a run loop waits", "StallWatch's watchdog", "wake-ups", 1)], [0],
    ),
    (
        "4 SwiftNIO loops, 10 queues, the pool, the main loop, idle for 60 s: wake-ups of loops / watchdog", "{:.0f} / {:.0f}",
        [(REST, "NIO-ELT", "wake-ups", 1), (REST, "stallwatch-dog", "wake-ups", 1)], [0, 480],
    ),
    ("the same, the watchdog's CPU", "{:.2f} %", [(REST, "stallwatch-dog", "% of a CPU", 1)], [0.05]),
    (
        "watching a queue without work / a thread that submits blocks", "{:.2f}",
        [("A serial queue watched", "StallWatch, a queue without work", "/ the thread's", 1)], [1],
    ),
    (
        "watchdog's CPU while a loop turns 1,000 times a second", "{:.2f} % of a core",
        [("The watching thread while a run loop turns", "StallWatch's watchdog", "% of a core", 1)], [0.1],
    ),
    (
        "threshold to first sample, p50 / p99 of 1,000", "{:.2f} / {:.2f} ms",
        [(FIRST, "StallWatch's sample", column, 1) for column in (P50, P99)], [None, 2],
    ),
    (
        "the same, beside 2 threads that compute", "{:.2f} / {:.2f} ms",
        [("The same beside 2 threads", "StallWatch's sample", column, 1) for column in (P50, P99)], [],
    ),
    (
        "threshold to a file with names and lines, warm, p50 / p99 of 50", "{:.1f} / {:.0f} ms",
        [(FILE, "warm", column, 1) for column in (P50, P99)], [2, 20],
    ),
    ("the same, of the first stall of a process", "{:.0f} ms", [(FILE, "the first stall", P50, 1)], [60]),
    (
        "memory added before the first stall; of it in no file", "{:.1f}; {:.2f} MB",
        [(MEMORY, "linked", column, 1) for column in (SIZE, "of it in no file")], [2, 1],
    ),
    ("memory added after 1,000 stalls with function names", "{:.1f} MB", [(MEMORY, "after 1,000 stalls, with f", SIZE, 1)], [30]),
    ("the same, with lines", "{:.0f} MB", [(MEMORY, "after 1,000 stalls, with lines", SIZE, 1)], [16]),
    (
        "memory added after a day with a stall every 30 s / after two", "{:.1f} / {:.1f} MB",
        [(MEMORY, "after a day", SIZE, 1), (MEMORY, "after two", SIZE, 1)], [],
    ),
    (
        "names and lines of a whole stack, cold, small executable: Runtime / StallWatch", "{:.1f} ({:.1f} / {:.2f} ms)",
        [(NAMES, "small", column, 1) for column in ("cold ratio", "Runtime cold", "StallWatch cold")], [-2.5],
    ),
    (
        "the same, an executable of 33 MB", "{:.0f} ({:.0f} / {:.1f} ms)",
        [(NAMES, "large", column, 1) for column in ("cold ratio", "Runtime cold", "StallWatch cold")], [-20],
    ),
    ("the same, warm", "{:.2f} ms", [(NAMES, "large", "StallWatch warm", 1)], [1]),
]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def read(lines):
    """Returns (title, name of the row, column, value) of each number of the tables."""
    found, title, columns = [], "", []
    for line in lines:
        if line.startswith("#"):
            title, columns = line.strip("# \n"), []
        elif line.startswith("|") and not columns:
            columns = cells(line)
        elif line.startswith("|") and not re.fullmatch(r"[|:\s-]+", line):
            name, *values = cells(line)
            for column, value in zip(columns[1:], values):
                if re.fullmatch(r"-?[\d.]+(?:e[+-]?\d+)?", value):
                    found.append((title, name, column, float(value)))
    return found


def value(found, title, name, column, factor):
    """`None` if it was not measured."""
    # The row of this name alone, if there is one: others may begin with it, too.
    rows = [each for each in found if each[0].startswith(title) and each[2].startswith(column)]
    values = [each[3] for each in rows if each[1] == name] or [each[3] for each in rows if each[1].startswith(name)]
    return sum(values) * factor if values else None


def goal(values, limits):
    """The last column: the limits, and whether the values are within them."""
    known = [limit for limit in limits if limit is not None]
    if not known:
        return ""
    pairs = [(each, limit) for each, limit in zip(values, limits) if limit is not None]
    is_met = all(each <= limit if limit >= 0 else each >= -limit for each, limit in pairs)
    text = " / ".join(f"{abs(limit):g}" for limit in known)
    return f"at {'most' if known[0] >= 0 else 'least'} {text}: {'met' if is_met else 'not met'}"


def main():
    lines = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        lines.append(line)
    found, missing = read(lines), []
    print("\n| measurement | ratio or value | goal |\n| --- | ---: | --- |")
    for name, form, places, limits in ROWS:
        values = [value(found, *place) for place in places]
        if None in values:
            missing.append(name)
        else:
            print(f"| {name} | {form.format(*values)} | {goal(values, limits)} |")
    if missing:
        sys.exit("Not measured: " + "; ".join(missing))


if __name__ == "__main__":
    main()
