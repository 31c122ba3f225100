"""faulthandler of Python's library: dump_traceback_later, armed at the begin of each turn and cancelled at its end.
This file is also the plugin that the driver in Python loads."""
import faulthandler
import os
import re
import time

from adapterkit import incident, start

COMMAND = "faulthandler.dump_traceback_later(0.1, file=FILE) in each turn"

log, seconds = None, 0.1


def plugin_start(threshold, output):
    global log, seconds
    log, seconds = open(os.path.join(output, "tracebacks.txt"), "w", buffering=1), threshold


def plugin_begin_turn():
    log.write(f"turn {time.monotonic()}\n")
    faulthandler.dump_traceback_later(seconds, file=log)


def plugin_end_turn():
    faulthandler.cancel_dump_traceback_later()
    log.write(f"end {time.monotonic()}\n")


def needs(job):
    return None if job.set == "python" else "is for Python"


def run(job):
    program = start(job, STALLBENCH_PLUGIN=__file__, PYTHONPATH=os.path.dirname(os.path.dirname(__file__)))
    path = os.path.join(job.output, "tracebacks.txt")
    reported, size = {}, 0
    # The dump has no time of its own: what counts is when it is in the file.
    while program.poll() is None:
        text = open(path).read() if os.path.exists(path) else ""
        for index in range(size, text.count("Timeout (")):
            reported[index] = time.monotonic()
        size = text.count("Timeout (")
        time.sleep(0.01)
    incidents = []
    for turn in open(path).read().split("turn ")[1:]:
        if "Timeout (" not in turn:
            continue
        began = float(turn.split("\n", 1)[0])
        # Threads come newest first, the main thread last; the innermost frame of the program's file is the function.
        frames = re.findall(r'File "(.+)", line \d+ in (\S+)', turn.rsplit("\nThread ", 1)[-1])
        function = next((name for file, name in frames if os.path.basename(file).startswith("driver")), None)
        innermost = os.path.basename(frames[0][0]) if frames else ""
        cause = {"threading.py": "lock", "subprocess.py": "child", "socket.py": "io"}.get(innermost)
        end = re.search(r"^end (\S+)", turn, re.MULTILINE)
        incidents.append(incident(began, reported.get(len(incidents)), function, cause, None,
                                  float(end[1]) - began if end else None))
    return incidents
