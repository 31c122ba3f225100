#!/usr/bin/env python3
"""Runs all scenarios of the demo many times and counts what is reported rightly, wrongly and not at all.

    scripts/repeat-scenarios.py DEMO [ROUNDS]

Two scenarios run side by side, one of those that use much CPU time and one of the others, but for those that need the
machine to themselves. In a virtual machine whose host takes its CPUs away (steal, proc_stat(5)) a stall is not as long
as it was meant to be: a wrong verdict is then no verdict, and the scenario is run again, MAXIMUM_ATTEMPTS times in all;
that is counted, and the last attempt is judged. A right verdict counts at once. What was wrong is kept in stalls/, as
is summary.json, with all verdicts.

Exit status: 0 when all verdicts are right, 1 when not.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

# They compete for CPUs, or for the disk, themselves.
ALONE = ["starved", "throttled", "under-load", "fsync", "paging", "cpu-kernel-copy"]
# Seconds for one: a scenario takes 10 at most.
TIMEOUT = "120"
MAXIMUM_ATTEMPTS = 5
# The same as in the tests.
STOLEN_LIMIT = 0.01
OUTPUT = pathlib.Path("stalls")
RIGHT = ("ok", "not-available")

ScenarioResult = collections.namedtuple("ScenarioResult", "scenario verdict row attempts seconds cpu_seconds")


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
        (stolen, all), begin = cpu_times(), time.monotonic()
        command = ["timeout", TIMEOUT, demo, "--quiet", "--scenario", scenario, "--output", folder, "--summary", summary]
        with open(folder / "output.txt", "w") as output:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        _, child.returncode, usage = os.wait4(child.pid, 0)
        seconds, cpu_seconds = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
        row = json.loads(summary.read_text())[0] if summary.exists() else {}
        verdict = row.get("verdict", f"no verdict, see {folder}/output.txt")
        is_right = verdict in RIGHT
        if is_right:
            shutil.rmtree(folder)
        now_stolen, now_all = cpu_times()
        is_stolen = now_stolen - stolen > STOLEN_LIMIT * (now_all - all)
        if is_right or not is_stolen:
            break
    return ScenarioResult(scenario, verdict, row, attempt, seconds, cpu_seconds)


def lanes(last_round, scenarios):
    """The scenarios in two parts that take as long, by the last round: those that use most of a CPU, and the others."""
    if not last_round:
        return scenarios[0::2], scenarios[1::2]
    ordered = sorted((verdict for verdict in last_round if verdict.scenario in scenarios),
                     key=lambda verdict: verdict.cpu_seconds / verdict.seconds)
    half, parts = sum(verdict.seconds for verdict in ordered) / 2, ([], [])
    for verdict in ordered:
        parts[half <= 0].append(verdict.scenario)
        half -= verdict.seconds
    return parts


def main():
    demo, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    listed = subprocess.run([demo, "--list"], capture_output=True, text=True, check=True).stdout
    scenarios = [line.split()[0] for line in listed.splitlines() if line.strip()]
    verdicts = []
    for round in range(rounds):
        parts = lanes(verdicts[-len(scenarios):], [name for name in scenarios if name not in ALONE])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for part in pool.map(lambda names: [run(demo, name, round) for name in names], parts):
                verdicts += part
        verdicts += [run(demo, name, round) for name in ALONE]
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
