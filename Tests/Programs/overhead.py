#!/usr/bin/env python3
"""Compares what `stallwatch doctor` says a monitor has cost with what its program costs without a monitor.

    Tests/Programs/overhead.py --host PROGRAM --tool STALLWATCH [--pairs 5]

PROGRAM is stallwatch-test-host. In each pair it does the same work twice, 100 turns that sleep or compute: with a monitor
whose threshold they exceed, and with STALLWATCH=off. Its CPU is that of its threads before the tool asks; the helper of
each hold, a process that the cost leaves out, is printed by itself (wait4(2)). Its memory is what it shares with no other
process (smaps_rollup) after the work.

The cost that the monitor counts is compared with the difference of CPU in all pairs. It counts no memory: malloc(3) does not
tell whose a block is, and a page may have blocks of the program and of the monitor. So that difference is printed by itself,
with the least and the most of the pairs. Other work on the machine makes the difference useless. Exit status: 0 if the CPU
agrees within 5 % of the difference, 1 if not.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MOST_DEVIATION = 0.05


def used(pid):
    """The CPU time of a process's own threads, in seconds (MAKE_PROCESS_CPUCLOCK of the kernel)."""
    return time.clock_gettime((~pid << 3) | 2)


def private_memory(pid):
    """In KiB."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def run(arguments, is_monitored):
    """Returns (CPU in seconds, that of its helpers, memory in KiB, the monitor's cost or None) of one run."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("STALLWATCH")}
    if not is_monitored:
        environment["STALLWATCH"] = "off"
    with tempfile.TemporaryDirectory(prefix="stallwatch-overhead-") as directory:
        words = [arguments.host, "control", directory, "work"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            if "done\n" not in iter(process.stdout.readline, ""):
                sys.exit("The program has ended before its work was done.")
            # The report of the last turn gets its names.
            time.sleep(2)
            before, memory, cost = used(process.pid), private_memory(process.pid), None
            if is_monitored:
                doctor = [arguments.tool, "doctor", "--json", str(process.pid)]
                cost = json.loads(subprocess.run(doctor, stdout=subprocess.PIPE, check=True).stdout)["cost"]
        finally:
            asked = used(process.pid)
            process.kill()
        _, _, usage = os.wait4(process.pid, 0)
        # For its destructor: there is no child to wait for any more.
        process.returncode = 0
    return before, max(0, usage.ru_utime + usage.ru_stime - asked), memory, cost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    differences, claims, memories = [], [], []
    print("pair  with      without   difference  the monitor's  memory")
    for number in range(arguments.pairs):
        # The second of a pair may find a warm machine.
        order = [True, False] if number % 2 else [False, True]
        runs = {is_monitored: run(arguments, is_monitored) for is_monitored in order}
        (watched, helpers, memory, cost), (bare, _, bare_memory, _) = runs[True], runs[False]
        differences.append(watched - bare)
        claims.append(cost["cpuSeconds"])
        memories.append(memory - bare_memory)
        print(
            f"{number + 1:4}  {watched:6.3f} s  {bare:6.3f} s  {differences[-1]:8.3f} s  {claims[-1]:11.3f} s"
            f"  {memories[-1]:+} KiB ({cost['holds']} holds, {helpers:.3f} s of helpers)", flush=True)
    difference, claim = statistics.mean(differences), statistics.mean(claims)
    deviation = abs(claim - difference) / difference if difference > 0 else float("inf")
    agrees = deviation <= MOST_DEVIATION
    print(
        f"overhead: {claim:.3f} s of CPU by the monitor, {difference:.3f} s by the difference: {deviation:.1%} apart"
        f" ({'ok' if agrees else 'more than 5 %'}); private memory {statistics.median(memories):+.0f} KiB "
        f"({min(memories):+} to {max(memories):+}), of which the monitor counts none")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
