"""No tool: what the other rows are compared with."""
from adapterkit import start

COMMAND = "the program alone"


def needs(job):
    return None


def run(job):
    start(job).wait()
    return []
