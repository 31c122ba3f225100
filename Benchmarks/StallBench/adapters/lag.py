"""A logger of the loop's lag: durations only."""
from adapterkit import run_plugin

COMMAND = "the program with plugins/lag.c"


def needs(job):
    return "has no hooks in Python" if job.set == "python" else None


def run(job):
    return run_plugin(job, "lag")
