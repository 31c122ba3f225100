#!/usr/bin/env python3
"""Runs all scenarios of the demo many times and counts what is reported rightly, wrongly and not at all.

    scripts/repeat-scenarios.py DEMO [ROUNDS]

Two scenarios run side by side, but for those that need the machine to themselves. In a virtual machine whose host takes
its CPUs away (steal, proc_stat(5)) a stall is not as long as it was meant to be: a wrong verdict is then no verdict, and the
scenario is run again, MAXIMUM_ATTEMPTS times in all; that is counted, and the last attempt is judged. A right verdict
counts at once. What was wrong is kept in stalls/, as is summary.json, with all verdicts.

Exit status: 0 when all verdicts are right, 1 when not.
"""

import collections
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys

# They compete for CPUs, or for the disk, themselves.
ALONE = ["starved", "throttled", "under-load", "fsync", "paging", "cpu-kernel-copy"]
LANES = 2
MAXIMUM_ATTEMPTS = 5
# The same as in the tests.
STOLEN_LIMIT = 0.01
OUTPUT = pathlib.Path("stalls")
RIGHT = ("ok", "not-available")

Verdict = collections.namedtuple("Verdict", "scenario verdict row attempts")


def cpu_times():
    """The ticks that were stolen so far, and all."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def run(demo, scenario, round):
    """One scenario's verdict."""
    for attempt in range(1, MAXIMUM_ATTEMPTS + 1):
        folder = OUTPUT / f"{scenario}-{round}-{attempt}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        summary = folder / "summary.json"
        stolen, all = cpu_times()
        command = [demo, "--quiet", "--scenario", scenario, "--output", folder, "--summary", summary]
        done = subprocess.run(command, capture_output=True, text=True)
        rows = json.loads(summary.read_text()) if summary.exists() else []
        words = [row["verdict"] for row in rows] or [f"exit status {done.returncode}: {done.stderr.strip()}"]
        if is_right := set(words) <= set(RIGHT):
            shutil.rmtree(folder)
        now_stolen, now_all = cpu_times()
        is_stolen = now_stolen - stolen > STOLEN_LIMIT * (now_all - all)
        if is_right or not is_stolen:
            break
    return Verdict(scenario, words[0] if is_right else ", ".join(words), rows, attempt)


def main():
    demo, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    listed = subprocess.run([demo, "--list"], capture_output=True, text=True, check=True).stdout
    scenarios = [line.split()[0] for line in listed.splitlines() if line.strip()]
    verdicts = []
    for round in range(rounds):
        for lanes, names in (LANES, [name for name in scenarios if name not in ALONE]), (1, ALONE):
            with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
                verdicts += pool.map(lambda name: run(demo, name, round), names)
        for verdict in verdicts[-len(scenarios):]:
            if verdict.verdict not in RIGHT:
                print(f"round {round + 1}: {verdict.scenario}: {verdict.verdict}", flush=True)
        counts = collections.Counter(verdict.verdict for verdict in verdicts)
        again = sum(verdict.attempts - 1 for verdict in verdicts)
        told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        print(f"{round + 1} rounds: {told}; {again} run again because the host took the CPUs", flush=True)
        OUTPUT.joinpath("summary.json").write_text(json.dumps([verdict._asdict() for verdict in verdicts]))
    return 0 if all(verdict.verdict in RIGHT for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
