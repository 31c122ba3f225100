"""gdb, started by a watchdog outside the process."""
from adapterkit import needs_debugger, watch_by_printing

COMMAND = "gdb -nx -batch -p PID -ex 'thread apply all bt 40', by a watchdog that reads the heartbeat"


def needs(job):
    return needs_debugger(job, "gdb")


def run(job):
    return watch_by_printing(job, lambda process: ["gdb", "-nx", "-batch", "-p", str(process),
                                                   "-ex", "thread apply all bt 40"],
                             r"^Thread ", lambda thread: rf".*\(LWP {thread}\)", r"^#\d+\s+(?:0x\w+ in )?([^\s(]+)")
