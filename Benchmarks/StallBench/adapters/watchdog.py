"""A watchdog thread in the process that signals the loop's thread, as crash reporters have."""
from adapterkit import run_plugin

COMMAND = "the program with plugins/twins.c -DWATCHDOG"


def needs(job):
    return "is not for Python" if job.set == "python" else None


def run(job):
    return run_plugin(job, "watchdog")
