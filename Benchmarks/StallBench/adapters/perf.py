"""perf: samples of the CPU, and the context switches (off-CPU), each with a stack. The analysis comes after the
program."""
import os
import re
import subprocess

from adapterkit import missing_program, missing_root, program_functions, start, turns_of

RECORD = ["perf", "record", "-q", "--call-graph", "dwarf,8192", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock/freq=99/",
          "-e", "sched:sched_switch", "--switch-events"]
COMMAND = " ".join(RECORD + ["-- PROGRAM; perf script --no-inline"])


def needs(job):
    if job.set == "python":
        return "shows the interpreter's functions, not the program's"
    return missing_program("perf", "nm") or missing_root()


def run(job):
    data = os.path.join(job.output, "perf.data")
    program = start(job, [*RECORD, "-o", data, "--", *job.command])
    program.wait()
    words = ["perf", "script", "--no-inline", "-i", data, "--ns", "--show-switch-events",
             "-F", "tid,time,event,ip,sym,comm"]
    text = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False).stdout
    own = program_functions(job.command[0])
    threads = {}
    for part in text.split("\n\n"):
        for block in re.split(r"\n(?=\S)", part):
            lines = block.strip("\n").split("\n")
            if not (head := re.match(r"\s*(.+?)\s+(\d+)\s+(\d+\.\d+):\s+(\S+)", lines[0])):
                continue
            stack = [line.split(None, 1)[1].split("+")[0] for line in lines[1:] if len(line.split(None, 1)) == 2]
            kind = "cpu" if "cpu-clock" in lines[0] else "out" if "sched_switch" in lines[0] else \
                "in" if re.search(r"PERF_RECORD_SWITCH\w*\s+IN", lines[0]) else None
            if kind:
                threads.setdefault(int(head[2]), []).append((float(head[3]), kind, stack))
    # The loop's thread: the only one that waits in the loop's functions.
    incidents, end = [], max((events[-1][0] for events in threads.values()), default=0)
    for events in threads.values():
        if any(set(stack) & set(job.loop_functions) for _, _, stack in events):
            incidents += turns_of(events, job, own, end)
    return incidents
