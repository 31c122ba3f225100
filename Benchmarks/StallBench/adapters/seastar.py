"""A twin of Seastar's stall detector: a timer on the CPU clock of the thread, unwinding in the signal handler."""
from adapterkit import run_plugin

COMMAND = "the program with plugins/twins.c -DSEASTAR"


def needs(job):
    return "is not for Python" if job.set == "python" else None


def run(job):
    return run_plugin(job, "seastar")
