"""StallWatch: `stallwatch run` for the loops that it knows, and a LoopProbe (plugins/stallwatch) for a loop of the
program's own. The adapter reads the reports as they appear."""
import datetime
import json
import os
import threading
import time

from adapterkit import incident, monotonic, start

COMMAND = "stallwatch run --threshold 100ms --output FOLDER -- PROGRAM; for the program's own loop its LoopProbe"
KINDS = {"deadlock": "lock", "cpuContention": "contention", "syscall": "kernel"}


def needs(job):
    if job.set == "python":
        return "knows no loop of Python's own"
    if not job.tools.get("stallwatch"):
        return "needs a build of stallwatch (--stallwatch)"
    if job.set == "thread" and not job.tools.get("plugin"):
        return "needs a build of plugins/stallwatch (--stallwatch-plugin)"
    return None


def run(job):
    reports = os.path.join(job.output, "reports")
    seen = {}
    done = threading.Event()

    def follow():
        is_over = False
        while not is_over:
            is_over = done.wait(0.02)
            for entry in os.scandir(reports) if os.path.isdir(reports) else ():
                if entry.name.endswith(".json"):
                    seen.setdefault(entry.name, time.monotonic())

    follower = threading.Thread(target=follow)
    follower.start()
    if job.set == "thread":
        os.makedirs(reports)
        program = start(job, STALLBENCH_PLUGIN=job.tools["plugin"], STALLBENCH_OUTPUT=reports)
    else:
        milliseconds = f"{round(job.threshold * 1000)}ms"
        program = start(job, [job.tools["stallwatch"], "run", "--threshold", milliseconds, "--output", reports, "--",
                              *job.command])
    program.wait()
    done.set()
    follower.join()
    incidents = []
    for name, at in seen.items():
        try:
            report = json.load(open(os.path.join(reports, name)))
        except (OSError, ValueError):
            continue
        if report.get("kind") == "stall":
            incidents.append(read(report, at))
    return incidents


def read(report, at):
    cause = report.get("cause", {})
    kind = KINDS.get(cause.get("kind"), cause.get("kind"))
    if kind == "cpu" and cause.get("kernelShare", 0) > 0.5:
        kind = "kernel"
    if (cause.get("systemCall") or {}).get("name") in ("wait4", "waitid"):
        kind = "child"
    culprit = report.get("culprit") or {}
    lock = cause.get("lock") or {}
    owner = (lock.get("owners") or [lock.get("owner")])[0] or {}
    owner = (owner.get("thread") or owner).get("id")
    began = datetime.datetime.fromisoformat(report["startedAt"].replace("Z", "+00:00")).timestamp()
    return incident(monotonic(began), at, culprit.get("function"), kind, owner,
                    report["durationMilliseconds"] / 1000)
