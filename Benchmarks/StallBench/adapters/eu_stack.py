"""eu-stack of elfutils, started by a watchdog outside the process."""
from adapterkit import needs_debugger, watch_by_printing

COMMAND = "eu-stack -p PID, by a watchdog that reads the heartbeat"


def needs(job):
    return needs_debugger(job, "eu-stack")


def run(job):
    return watch_by_printing(job, lambda process: ["eu-stack", "-p", str(process)], r"^TID ",
                             lambda thread: rf"{thread}:", r"^#\d+\s+0x\w+\s+(?:- 1\s+)?(\S+)")
