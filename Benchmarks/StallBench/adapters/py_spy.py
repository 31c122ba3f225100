"""py-spy, started by a watchdog outside the process: Python's frames, with the program stopped while it reads them."""
import re
import subprocess

from adapterkit import missing_program, watch

COMMAND = "py-spy dump --pid PID, by a watchdog that reads the heartbeat"
# The innermost frames that are not the program's say what it waits for.
CAUSES = {"threading.py": "lock", "subprocess.py": "child", "socket.py": "io"}


def needs(job):
    return missing_program("py-spy") if job.set == "python" else "is for Python"


def run(job):
    def stack(process, thread):
        text = subprocess.run(["py-spy", "dump", "--pid", str(process)], capture_output=True, text=True,
                              errors="replace", check=False).stdout
        # The first thread with Python frames of the loop; py-spy marks a thread that waits as idle.
        for part in re.split(r"^Thread ", text, flags=re.MULTILINE)[1:]:
            head = part.split("\n", 1)[0]
            frames = re.findall(r"^\s+(\S+) \((.+):(\d+)\)", part, re.MULTILINE)
            if not re.match(rf"{process} |.*MainThread", head):
                continue
            cause = None
            for function, file, _ in frames:
                name = file.rsplit("/", 1)[-1]
                if name.startswith("driver"):
                    return function, cause or ("cpu" if "active" in head else "sleep"), None
                cause = cause or CAUSES.get(name)
        return None, None, None

    return watch(job, stack)
