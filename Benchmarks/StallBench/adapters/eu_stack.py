"""eu-stack of elfutils, started by a watchdog outside the process."""
import re
import subprocess

from adapterkit import blame, missing_program, program_functions, watch

COMMAND = "eu-stack -p PID, by a watchdog that reads the heartbeat"


def needs(job):
    if job.set == "python":
        return "shows the interpreter's functions, not the program's"
    return missing_program("eu-stack", "nm")


def run(job):
    own = program_functions(job.command[0])

    def stack(process, thread):
        text = subprocess.run(["eu-stack", "-p", str(process)], capture_output=True, text=True, errors="replace",
                              check=False, env={"PATH": "/usr/bin:/bin", "DEBUGINFOD_URLS": ""}).stdout
        for part in re.split(r"^TID ", text, flags=re.MULTILINE)[1:]:
            if part.startswith(f"{thread}:"):
                names = re.findall(r"^#\d+\s+0x\w+\s+(?:- 1\s+)?(\S+)", part, re.MULTILINE)
                return (*blame(names, own), None)
        return None, None, None

    return watch(job, stack)
