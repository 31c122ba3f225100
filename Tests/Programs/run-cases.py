#!/usr/bin/env python3
"""Runs the programs of Tests/Samples/Cases, which once showed a fault, and checks that each is right now.

    Tests/Programs/run-cases.py --programs DIRECTORY --libraries DIRECTORY --tool STALLWATCH [NAME...]

Prints a line for each case: `ok`, `FAIL` with what is wrong, or that it was not run and why. With names, runs only
those cases. Four cases run at the same time, and those that disturb others alone. What was only late, as on a busy
machine, is run once more, alone.

The programs have to be built (`make run-cases` does that). Exit status: 0 if all that were run are right, 1 if not, 69
if none was run.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

from checks import REPOSITORY, Fault
from judge_cases import CASES, Late

AT_ONCE = 4
# The longest case takes 15 seconds.
MOST_SECONDS = 60


class Outcome:
    """What a case's script left: its status, what it printed and used, and its reports."""

    def __init__(self, folder, status, usage):
        self.folder, self.status, self.usage = folder, status, usage
        self.output = (folder / "output").read_text(errors="replace")
        self.reports = self.reports_in("reports")

    def reports_in(self, name):
        """Returns the reports of a folder in the order of their begins."""
        reports = [json.loads(path.read_bytes()) for path in (self.folder / name).glob("stall-*.json")]
        return sorted(reports, key=lambda report: report["startedAt"])

    def files_in(self, name):
        return [path for path in (self.folder / name).rglob("*") if path.is_file()]


def end_group(process):
    """Ends the script of a case, and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(case, folder, environment):
    """Runs a case in a folder of its own, which other users may write to."""
    (folder / "reports").mkdir(parents=True)
    folder.chmod(0o777)
    values = environment | {"W": str(folder), "R": str(folder / "reports")}
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", case.script], cwd=folder, env=values, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True)
        late = threading.Timer(MOST_SECONDS, end_group, [process])
        late.start()
        # Not yet reaped, so that no other process has its number.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        late.cancel()
        end_group(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Outcome(folder, process.returncode, usage)


@functools.cache
def lack(need):
    """Returns why a command that a case needs fails here; nothing if it does not."""
    done = subprocess.run(
        ["bash", "-c", need], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=10)
    lines = done.stdout.splitlines() or [f"status {done.returncode}"]
    return f"`{need}`: {lines[-1]}" if done.returncode else None


def judge(case, folder, environment):
    """Runs a case; returns its fault, or nothing."""
    try:
        outcome = run(case, folder, environment)
        if outcome.status != 0:
            raise Fault(f"status {outcome.status}: {outcome.output[-300:]!r}")
        case.judge(outcome)
    except Fault as fault:
        return fault
    except (LookupError, AttributeError, TypeError, ValueError, OSError) as error:
        return Fault(f"cannot be judged: {error!r}")
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--tool", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ.update(
        B=str(options.programs.resolve()), O=str(options.libraries.resolve()), TOOL=str(options.tool.resolve()),
        C=str(REPOSITORY / "Tests/Samples/Cases/C"), PROGRAMS=str(REPOSITORY / "Tests/Programs"),
        CPU=str(max(os.sched_getaffinity(0))))
    if not (options.libraries / "plain.so").exists():
        print(f"{options.libraries} has no plain.so: `make cases` builds it")
        sys.exit(69)
    cases = [case for case in CASES if not options.names or case.name in options.names]
    reasons = {case: next(filter(None, map(lack, case.needs)), None) for case in cases}
    able = [case for case in cases if not reasons[case]]
    failures = 0

    def show(case, fault, after=""):
        nonlocal failures
        failures += fault is not None
        print(f"FAIL {case.name}: {fault}{after}" if fault else f"ok   {case.name}{after}", flush=True)

    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        folder.chmod(0o755)
        again = []

        def run_once(case):
            fault = judge(case, folder / case.name, dict(os.environ))
            if isinstance(fault, Late):
                again.append((case, fault))
            else:
                show(case, fault)

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(run_once, [case for case in able if not case.is_alone]))
        for case in able:
            if case.is_alone:
                run_once(case)
        for case, fault in again:
            second = judge(case, folder / f"{case.name}-again", dict(os.environ))
            show(case, second, f" (run again, alone, after: {fault})")
    for case in cases:
        if reasons[case]:
            print(f"➜ Test {case.name} of run-cases.py not run: {reasons[case]}", flush=True)
    print(f"cases: {len(able) - failures} right, {failures} wrong, {len(cases) - len(able)} not run")
    sys.exit(1 if failures else 0 if able else 69)


main()
