#!/usr/bin/env python3
"""Measures what a profile costs the profiled program, beside `perf record`, in the same run.

    Benchmarks/profile-beside-perf.py [--rounds N] [--seconds S] [--hertz F] PRODUCTS

PRODUCTS is the folder with stallwatch and stallwatch-test-host: .build/release or .build/debug. A program computes all the
time and prints how many rounds it has done. Each round of the measurement has four parts of S seconds: alone, with
`stallwatch profile`, alone, with `perf record -g`. The cost of a part is how much slower the program was than in the parts
alone before and after it. Prints the median of each and its standard error. Nothing else should run on the machine.

Exit status: 0; 1 if something cannot be run; 2 for wrong arguments.
"""

import argparse
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# What a part leaves out at its ends, in seconds: the tool starts before its first sample, and perf writes its file.
MARGIN = 0.5


class Counter:
    """The lines of the program: monotonic nanoseconds and rounds."""

    def __init__(self, output):
        self.points = []
        self.thread = threading.Thread(target=self.read, args=(output,), daemon=True)
        self.thread.start()

    def read(self, output):
        for line in output:
            words = line.split()
            if words and words[0] == b"U":
                self.points.append((int(words[1]) / 1e9, int(words[2])))

    def rate(self, begin, end):
        """Rounds per second between two times of the monotonic clock."""
        points = [point for point in self.points if begin <= point[0] <= end]
        if len(points) < 3:
            sys.exit("profile-beside-perf: the program has printed too few lines: take longer parts")
        return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--hertz", type=int, default=50)
    parser.add_argument("products", type=pathlib.Path)
    options = parser.parse_args()
    perf = shutil.which("perf")
    if perf is None:
        sys.exit("profile-beside-perf: there is no perf: install linux-perf")
    folder = pathlib.Path(tempfile.mkdtemp())
    program = subprocess.Popen(
        [options.products / "stallwatch-test-host", "control", folder, "count"], stdout=subprocess.PIPE
    )
    try:
        counter = Counter(program.stdout)
        time.sleep(2)
        commands = {
            "alone": None,
            "stallwatch profile": [
                options.products / "stallwatch", "profile", str(program.pid), "--seconds", str(options.seconds),
                "--hertz", str(options.hertz), "-o", folder / "profile.txt",
            ],
            "perf record -g": [
                perf, "record", "-q", "-g", "-F", str(options.hertz), "-p", str(program.pid), "-o", folder / "perf.data",
                "--", "sleep", str(options.seconds),
            ],
        }
        parts = []
        for _ in range(options.rounds):
            for name in ["alone", "stallwatch profile", "alone", "perf record -g"]:
                parts.append((name, part(counter, commands[name], options.seconds)))
        parts.append(("alone", part(counter, None, options.seconds)))
    finally:
        program.kill()
        program.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"Cost at {options.hertz} samples a second, {options.rounds} parts of {options.seconds} s each:")
    for wanted in ["stallwatch profile", "perf record -g"]:
        costs = [
            100 * (1 - 2 * rate / (parts[index - 1][1] + parts[index + 1][1]))
            for index, (name, rate) in enumerate(parts) if name == wanted
        ]
        error = statistics.stdev(costs) / len(costs) ** 0.5
        print(f"  {wanted:20} {statistics.median(costs):6.3f} %  (mean {statistics.mean(costs):.3f} ± {error:.3f})")


def part(counter, command, seconds):
    """Runs a command for a while; returns the program's rate meanwhile."""
    begin = time.monotonic() + MARGIN
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) if command else None
    time.sleep(seconds)
    rate = counter.rate(begin, time.monotonic())
    if process is not None and process.wait(timeout=60) != 0:
        sys.exit(f"profile-beside-perf: {command[0]} ended with {process.returncode}")
    time.sleep(MARGIN)
    return rate


if __name__ == "__main__":
    main()
