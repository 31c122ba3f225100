"""bpftrace: probes where a turn begins and ends, samples of the CPU and context switches; it prints a turn that is over
the threshold while it lasts. Its stacks follow frame pointers."""
import os
import re
import shlex
import subprocess

from adapterkit import blame, incident, missing_program, missing_root, program_functions

COMMAND = "bpftrace -B line -c PROGRAM -e SCRIPT (uprobes where turns begin and end, profile:hz:99, sched_switch)"

SCRIPT = """
uprobe:{program}:bench_turn_begin {{ @began = nsecs; @thread = tid; @told = 0; }}
uprobe:{program}:bench_turn_end {{
  if (@began && @told) {{ printf("end %llu %llu\\n", nsecs, nsecs - @began); }}
  @began = 0;
}}
tracepoint:sched:sched_switch /@began && tid == @thread/ {{ @stack = ustack(24); @out = 1; }}
profile:hz:99 /@began && tid == @thread/ {{ @stack = ustack(24); @out = 0; }}
interval:ms:20 /@began && !@told/ {{
  if (nsecs - @began > {threshold}) {{
    @told = 1;
    printf("stall %llu %llu %d\\n", nsecs, @began, @out);
    print(@stack);
  }}
}}
"""


def needs(job):
    if job.set == "python":
        return "is not for Python"
    if reason := missing_program("bpftrace", "nm") or missing_root():
        return reason
    # perf mounts it, so that this would depend on who runs first.
    is_mounted = any(os.path.isdir(f"/sys/kernel/{place}/events") for place in ("tracing", "debug/tracing"))
    return None if is_mounted else "needs tracefs: mount -t tracefs nodev /sys/kernel/tracing"


def run(job):
    script = SCRIPT.format(program=job.command[0], threshold=int(job.threshold * 1e9))
    path = os.path.join(job.output, "bpftrace.txt")
    with open(path, "wb") as output:
        # It starts the program when its probes are there.
        words = ["bpftrace", "-B", "line", "-c", shlex.join(job.command), "-e", script]
        start_tool = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output,
                                      stderr=open(os.path.join(job.output, "errors.txt"), "wb"),
                                      env={**os.environ, **job.environment})
        if start_tool.wait() != 0:
            errors = open(os.path.join(job.output, "errors.txt"), errors="replace").read()
            raise RuntimeError(" ".join(errors.split()) or f"it ended with {start_tool.returncode}")
    own = program_functions(job.command[0])
    incidents, stack = [], []

    def finish():
        if incidents and stack:
            incidents[-1].update(zip(("function", "cause"), blame(stack, own)))
        stack.clear()

    for line in open(path, errors="replace"):
        words = line.split()
        if words[:1] == ["stall"]:
            finish()
            incidents.append(incident(int(words[2]) / 1e9, int(words[1]) / 1e9))
        elif words[:1] == ["end"] and incidents:
            incidents[-1]["duration"] = int(words[2]) / 1e9
        elif match := re.match(r"\s+(\w[^\s+]*)\+\d+", line):
            stack.append(match[1])
    finish()
    return incidents
