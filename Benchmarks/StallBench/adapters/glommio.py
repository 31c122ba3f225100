"""A twin of glommio's stall detector: timerfd, SIGUSR1, unwinding in the handler, a report when the turn ends."""
from adapterkit import run_plugin

COMMAND = "the program with plugins/twins.c -DGLOMMIO"


def needs(job):
    return "is not for Python" if job.set == "python" else None


def run(job):
    return run_plugin(job, "glommio")
