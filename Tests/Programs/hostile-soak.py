#!/usr/bin/env python3
"""Watches loops of three programs for an hour that make it hard in every way, and checks that no stall is lost.

    Tests/Programs/hostile-soak.py --host PROGRAM [--minutes 60] [--keep DIRECTORY]

PROGRAM is stallwatch-test-host. Each of the three runs in a container (a PID namespace, where it is process 1) with 500
loops, threads with stacks of 64 KiB, real-time threads that come and go, a working directory that changes at random, and
stalls of seven kinds (Tests/Support/TestHost/SoakHost.swift). All write reports to one folder. A file system with a library
that they call hangs for 5 s now and then (hanging_fs.py). The third container is killed at random, and started again. Finished
reports are taken from the folder after a while, as an agent of a fleet does.

Each program writes how long its turns really were. Checked:
- every turn that is over the threshold by a margin has a report, or is counted: as missed, or as suppressed while the
  program got no CPU; of a killed program, every one that began 10 s before that or earlier
- no report without such a turn, and durations of probes' reports are right
- no program ends by itself, no output misses a report, and no write fails
- no report stays open: of killed programs they are abandoned, of others ended; and no other file is left
- memory, descriptors and threads are level: the last third of the time compared with the middle one, from ten minutes on

Needs root. Exit status: 0 if all is right, 1 if not, 69 if the system has no FUSE, no namespaces or no real-time threads.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import hanging_fs
from checks import REPOSITORY, Faults
from soak_judge import SECOND, Report, judge, judge_levels

CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 2
# Each ends with its parent.
CONTAINER = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
# The status of the program, too.
UNAVAILABLE = 69
HANG_SECONDS = 5
KILL_PAUSE = (20, 60)
# A finished report is final a while after its last change.
TAKE_SECONDS = 60
STOP_SECONDS = 120
LEVEL_MINUTES = 10

faults = Faults()


class Run:
    """One life of a program in a container, and what it left behind."""

    def __init__(self, name, arguments, work):
        self.name, self.work, self.readings, self.killed_at = name, work, [], None
        words = [arguments.host, "soak", name, work / "mount/libnap.so", work, work / "elsewhere", work / "mount", "/"]
        self.log = open(work / f"{name}.log", "wb")
        self.process = subprocess.Popen(
            [*CONTAINER, *words], cwd=work, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)

    def host(self):
        """The process id of the program; None until it runs."""
        try:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            return int(children[0]) if children and (self.work / f"{self.name}.ledger").exists() else None
        except OSError:
            return None

    def read_levels(self):
        host = self.host()
        try:
            status = pathlib.Path(f"/proc/{host}/status").read_text().split()
            number = lambda field: int(status[status.index(field) + 1])
            self.readings.append((number("VmRSS:"), len(os.listdir(f"/proc/{host}/fd")), number("Threads:")))
        except (OSError, ValueError):
            # It has not begun, or has just ended, which is found elsewhere.
            pass

    def kill(self):
        """Kills the program; returns once nothing of it is left."""
        if host := self.host():
            self.killed_at = time.time() * SECOND
            os.kill(host, signal.SIGKILL)
            self.process.wait(STOP_SECONDS)
        return self.killed_at is not None

    def stop(self):
        self.process.stdin.close()
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "none in time"
        faults.check(status == 0, f"{self.name}: status {status} at the end, expected 0; see {self.name}.log")


class Reports(dict):
    """The reports by id, which are taken from the folder when they are final."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def take(self, least_age):
        for path in self.folder.glob("stall-*.json"):
            try:
                if path.name.endswith(".newest.json") or path.stat().st_mtime > time.time() - least_age:
                    continue
                report = Report(json.loads(path.read_bytes()))
            except FileNotFoundError:
                continue
            except (ValueError, KeyError) as error:
                faults.check(False, f"{path.name} is no report: {error!r}")
                path.rename(path.with_suffix(".wrong"))
                continue
            if report.state != "ongoing":
                self[report.id] = report
                path.unlink()

    def left(self):
        return sorted(path.name for path in self.folder.iterdir() if path.suffix != ".wrong")


def prepare(work):
    """Makes the folders and the library, and mounts the file system; returns the process that serves it."""
    # What is mounted is seen here and in the containers only.
    if hanging_fs.libc.unshare(CLONE_NEWNS) != 0 or subprocess.run([*CONTAINER, "true"]).returncode != 0:
        print("namespaces are refused: run it as root")
        sys.exit(UNAVAILABLE)
    hanging_fs.mount(None, "/", None, MS_REC | MS_PRIVATE, None)
    for name in ["reports", "elsewhere", "mount", "source"]:
        (work / name).mkdir()
    source = REPOSITORY / "Tests/Support/Soak/nap.c"
    subprocess.run(["cc", "-g", "-O1", "-fPIC", "-shared", "-o", work / "source/libnap.so", source], check=True)
    with open(work / "file-system.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, hanging_fs.__file__, work / "mount", work / "source", str(HANG_SECONDS)], stdout=log, stderr=log)
    while server.poll() is None and not os.path.ismount(work / "mount"):
        time.sleep(0.05)
    return server


def soak(arguments, work, reports):
    """Runs the programs; returns every run."""
    start = lambda name: Run(name, arguments, work)
    stay, killed = [start("first"), start("second")], [start("third-0")]
    end = time.monotonic() + arguments.minutes * 60
    kill_at = time.monotonic() + random.uniform(*KILL_PAUSE)
    second = 0
    while time.monotonic() < end:
        time.sleep(1)
        second += 1
        for run in [*stay, killed[-1]]:
            if not faults.check(run.process.poll() is None, f"{run.name} ended by itself: {run.process.poll()}"):
                end = 0
        if second % 2 == 0:
            for run in stay:
                run.read_levels()
        if second % 10 == 0:
            reports.take(TAKE_SECONDS)
        if time.monotonic() >= kill_at and end and killed[-1].kill():
            killed.append(start(f"third-{len(killed)}"))
            kill_at = time.monotonic() + random.uniform(*KILL_PAUSE)
    for run in [*stay, killed[-1]]:
        run.stop()
    # It finds what the killed ones left.
    last = start("last")
    last.stop()
    return [*stay, *killed, last]


def check(arguments, work):
    reports = Reports(work / "reports")
    server = prepare(work)
    if server.poll() is not None:
        print((work / "file-system.log").read_text())
        return UNAVAILABLE
    runs = soak(arguments, work, reports)
    if any(run.process.returncode == UNAVAILABLE for run in runs):
        print((work / f"{runs[0].name}.log").read_text())
        return UNAVAILABLE
    faults.check(server.poll() is None, f"the file system has ended; see {work}/file-system.log")
    reports.take(0)
    faults.check(not reports.left(), f"left in the folder: {reports.left()[:5]}")
    totals = collections.Counter()
    for run in runs:
        text = (work / f"{run.name}.log").read_text(errors="replace")
        faults.check("FAILED" not in text, f"{run.name}.log: {text[:500]}")
        judge(run, [report for report in reports.values() if report.run == run.name], totals, faults)
    names = {run.name for run in runs}
    faults.check(all(report.run in names for report in reports.values()), "reports of an unknown program")
    kills = sum(run.killed_at is not None for run in runs)
    hangs = (work / "file-system.log").read_text().count("goes on")
    # Without these it shows nothing.
    faults.check(totals["stalls"] > 10 * arguments.minutes, f"only {totals['stalls']} stalls")
    faults.check(hangs >= arguments.minutes, f"the file system hung {hangs} times")
    faults.check(kills < 10 or totals["abandoned"] > 0, f"{kills} kills, and no report was abandoned")
    if arguments.minutes >= LEVEL_MINUTES:
        for run in runs[:2]:
            judge_levels(run, faults)
    print(
        f"{arguments.minutes} min, {kills} kills, {hangs} hangs: {totals['stalls']} stalls, {totals['reports']} reports "
        f"({totals['abandoned']} abandoned), {totals['missed']} missed and counted, {totals['excused']} not reported and "
        f"{totals['in gaps']} reported while the program got no CPU")
    return faults.status("hostile soak")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--keep", type=pathlib.Path, help="work in this directory, which must be empty, and leave it")
    arguments = parser.parse_args()
    work = (arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-soak-"))).resolve()
    work.mkdir(parents=True, exist_ok=True)
    status = 1
    try:
        status = check(arguments, work)
        return status
    finally:
        hanging_fs.libc.umount2(os.fsencode(work / "mount"), MNT_DETACH)
        if status == 0 and not arguments.keep:
            shutil.rmtree(work, ignore_errors=True)
        elif not arguments.keep:
            print(f"see {work}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
