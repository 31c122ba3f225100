#!/usr/bin/env python3
"""Runs stall monitors on the drivers of StallBench, and scores what they say against the truth.

    driver/build.sh .build/stallbench && ./stallbench.py .build/stallbench --stallwatch PATH --results results.json
    ./stallbench.py .build/stallbench --list
    ./stallbench.py --score results.json [--page docs/StallBench.md] [--compare other.json]

Each tool runs each set of cases in a process of its own (adapterkit.py) whose folder has no truth in it. The driver
sends the truth through a socket to this process, which keeps it in memory until the adapter has ended. A tool that is
missing, fails or hangs gets a row that says so. Order and pauses of the cases come from the seed.

Exit status: 0 if the run is complete, whatever the tools did; with --expect 1 if one of the named tools failed or
missed a stall; 64 for a wrong argument.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import score
from adapterkit import monotonic

HERE = pathlib.Path(__file__).resolve().parent
SETS = ("glib-a", "glib-b", "thread", "cf", "swift", "python")
TOOLS = ("none", "stallwatch", "perf", "bpftrace", "gdb", "eu_stack", "seastar", "glommio", "watchdog",
         "sentry-native", "swift-profile-recorder", "py_spy", "python_faulthandler")
# The driver's functions in which a loop waits, or that call its wait.
LOOP_FUNCTIONS = ["poll_between_turns", "wait_for_events", "bench_run_loop", "main"]
# The causes of the truth, where StallWatch's reports have other words.
KINDS = {"contention": ["cpuContention"], "kernel": ["cpu", "syscall"], "child": ["syscall", "io"],
         "lock": ["lock", "deadlock"]}
THRESHOLD = 0.1
MISSING = 69


class Truth:
    """Reads what the driver sends, until all its connections are closed."""

    def __init__(self, path):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(8)
        self.lines = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.read, args=[connection], daemon=True).start()

    def read(self, connection):
        for line in connection.makefile(errors="replace"):
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                # The rest of a line of a process that was killed.
                continue

    def close(self):
        # What is in the socket's buffer is read first.
        time.sleep(0.1)
        self.server.close()
        return score.cases_of(self.lines)


def end_group(process):
    """Ends the process and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return process.wait()


def write_truth(folder, cases):
    """Says what is true of StallWatch's reports in a folder, for Tests/Programs/precision.py."""
    with open(folder / "truth.ndjson", "w") as lines:
        for path in folder.rglob("stall-*.json"):
            report = json.loads(path.read_text())
            began = datetime.datetime.fromisoformat(report["startedAt"].replace("Z", "+00:00")).timestamp()
            incident = {"began": monotonic(began), "duration": report["durationMilliseconds"] / 1000}
            for case in cases:
                if not case["healthy"] and score.overlaps(incident, case):
                    line = {"report": report["id"], "case": case["case"], "culprits": [case["function"]], "places": [],
                            "kinds": KINDS.get(case["cause"], [case["cause"]])}
                    line |= {"owners": [case["owner"]]} if case["owner"] else {}
                    lines.write(json.dumps(line) + "\n")
                    break


def run_set(tool, case_set, seed, options):
    """One tool on one set: its status, what it reported, and the truth."""
    adapter = "none" if tool == "none" else str(options.adapters / f"{tool}.py")
    driver = options.programs / f"driver-{case_set.split('-')[0]}"
    row = {"tool": tool, "set": case_set, "status": "missing", "reason": "", "incidents": [], "truth": [], "cpu": 0.0,
           "wall": 0.0}
    if not driver.exists():
        return {**row, "reason": f"no {driver.name} on this machine"}
    # The truth's socket is not in the adapter's folder.
    with tempfile.TemporaryDirectory(prefix="stallbench-") as hidden, \
            tempfile.TemporaryDirectory(prefix="tool-") as folder:
        heartbeat = pathlib.Path(folder, "heartbeat")
        heartbeat.write_bytes(bytes(24))
        truth = Truth(f"{hidden}/truth")
        output = pathlib.Path(folder, "output")
        output.mkdir()
        command = [str(driver), case_set, str(seed)] + ([f",{options.cases},"] if options.cases else [])
        environment = {"STALLBENCH_TRUTH": f"{hidden}/truth", "STALLBENCH_HEARTBEAT": str(heartbeat),
                       "STALLBENCH_THRESHOLD": str(round(THRESHOLD * 1000)), "STALLBENCH_OUTPUT": str(output),
                       "STALLBENCH_FIRST_PAUSE": str(options.first_pause)}
        job = {"command": command, "environment": environment, "heartbeat": str(heartbeat), "threshold": THRESHOLD,
               "output": str(output), "loop_functions": LOOP_FUNCTIONS, "set": case_set, "tools": options.paths}
        pathlib.Path(folder, "job.json").write_text(json.dumps(job))
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        with open(f"{folder}/log", "w+", errors="replace") as log:
            process = subprocess.Popen([sys.executable, "-B", HERE / "adapterkit.py", adapter, f"{folder}/job.json"],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=output,
                                       start_new_session=True)
            try:
                status = process.wait(options.limit)
            except subprocess.TimeoutExpired:
                status = None
            end_group(process)
            log.seek(0)
            lines = log.read().strip().splitlines() or [""]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        row.update(wall=time.monotonic() - began, truth=truth.close(),
                   cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if options.keep:
            kept = options.keep / f"{tool}-{case_set}-{seed}"
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            if tool == "stallwatch":
                write_truth(kept, row["truth"])
        result = output / "incidents.json"
        if status == 0 and not row["truth"]:
            row.update(status="failed", reason=f"the program did not run: {lines[-1][:200]}")
        elif status == 0 and result.exists():
            answer = json.loads(result.read_text())
            row.update(status="ok", incidents=answer["incidents"], cpu=row["cpu"] - answer["own cpu"])
        elif status == MISSING:
            row.update(reason=lines[-1])
        elif status is None:
            row.update(status="hung", reason=f"did not end within {options.limit} s")
        else:
            row.update(status="failed", reason=lines[-1][:200])
    return row


def measure(options):
    """All runs of all tools. The order of the tools changes from run to run, so that the machine's moods do not fall on
    one."""
    rows = []
    for run in range(options.runs):
        tools = list(options.tools)
        random.Random(options.seed + run).shuffle(tools)
        for tool in tools:
            for case_set in options.sets:
                load = os.getloadavg()[0]
                row = run_set(tool, case_set, options.seed + run, options)
                rows.append({**row, "run": run, "load": load})
                found = sum(one["cause"] != "" for one in row["truth"])
                print(f"run {run + 1}: {tool} on {case_set}: {row['status']} {row['reason']} "
                      f"({len(row['incidents'])} incidents, {found} stalls, {row['wall']:.0f} s, load {load:.1f})",
                      flush=True)
    machine = {"kernel": platform.release().split("-")[0], "processors": os.cpu_count()}
    return {"rows": rows, "machine": machine, "seed": options.seed, "runs": options.runs, "threshold": THRESHOLD,
            "date": time.strftime("%Y-%m-%d"), "commands": {tool: command_of(tool, options) for tool in options.tools}}


def command_of(tool, options):
    """The command line that an adapter names."""
    if tool == "none":
        return "the program alone"
    program = ("import sys; sys.path.insert(0, sys.argv[1]); import adapterkit; "
               "print(adapterkit.load(sys.argv[2]).COMMAND)")
    answer = subprocess.run([sys.executable, "-B", "-c", program, HERE, options.adapters / f"{tool}.py"],
                            capture_output=True, text=True, timeout=20, check=False)
    return answer.stdout.strip() or "cannot be loaded"


def list_cases(programs):
    """Prints the cases of all drivers that are there."""
    for name in ("swift", "python"):
        driver = programs / f"driver-{name}"
        # The driver of Swift has the cases of C, too.
        driver = driver if driver.exists() else programs / "driver-thread"
        subprocess.run([driver, "--list"], check=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("programs", nargs="?", type=pathlib.Path, help="the folder that driver/build.sh has made")
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--cases", default="", help="names, with commas between them")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=120, help="seconds for one tool on one set")
    parser.add_argument("--first-pause", type=int, default=400,
                        help="milliseconds before the first case, for every tool: on a busy machine one begins later")
    parser.add_argument("--adapters", type=pathlib.Path, default=HERE / "adapters")
    parser.add_argument("--stallwatch", help="the tool, with its libraries beside it")
    parser.add_argument("--stallwatch-plugin", help="the library of plugins/stallwatch")
    parser.add_argument("--sentry-native", help="the checkout that driver/build.sh was given")
    parser.add_argument("--swift-profile-recorder", help="the checkout that driver/build.sh was given")
    parser.add_argument("--results", type=pathlib.Path, help="where to write everything that was measured")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the tools' own output")
    parser.add_argument("--score", type=pathlib.Path, help="score these results and measure nothing")
    parser.add_argument("--compare", type=pathlib.Path,
                        help="another run's results: how many of its numbers are in the intervals")
    parser.add_argument("--page", type=pathlib.Path, help="a page whose tables are replaced")
    parser.add_argument("--expect", default="", help="tools that have to find every stall")
    options = parser.parse_args()
    if not options.score and not options.programs:
        parser.exit(64, "stallbench: name the folder of the drivers\n")
    options.tools, options.sets = options.tools.split(","), options.sets.split(",")
    options.paths = {name: os.path.abspath(path) for name, path in
                     (("stallwatch", options.stallwatch), ("plugin", options.stallwatch_plugin),
                      ("sentry-native", options.sentry_native),
                      ("swift-profile-recorder", options.swift_profile_recorder)) if path}
    if options.programs:
        options.programs = options.programs.resolve()
    options.adapters = options.adapters.resolve()
    return options


def main():
    options = parse()
    if options.list:
        list_cases(options.programs)
        return 0
    results = json.loads(options.score.read_text()) if options.score else measure(options)
    if options.results:
        options.results.write_text(json.dumps(results))
    text = score.page(results)
    if options.compare:
        text += "\n" + score.comparison(results, json.loads(options.compare.read_text()))
    if options.page:
        begin, end = "<!-- begin of the run -->\n", "<!-- end of the run -->\n"
        before, rest = options.page.read_text().split(begin)
        options.page.write_text(before + begin + "\n" + text + "\n" + end + rest.split(end)[1])
    else:
        print(text)
    missed = [tool for tool in options.expect.split(",") if tool and not score.found_all(results, tool)]
    if missed:
        print(f"stallbench: {' and '.join(missed)} did not find every stall", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
