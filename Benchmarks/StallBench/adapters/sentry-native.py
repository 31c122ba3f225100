"""The monitor of hangs in sentry-native, built from a checkout that is given (plugins/sentry-native.c). An event has
addresses of the hung thread's stack, which a server would turn into functions; here addr2line does."""
import json
import os
import re

from adapterkit import blame, functions_at, incident, needs_checkout, program_functions, run_library

COMMAND = ("the program with plugins/sentry-native.c: app_hang_timeout 100 ms, which the library raises to its least, "
           "1000 ms, and it looks every 500 ms")


def needs(job):
    return needs_checkout(job, "sentry-native")


def run(job):
    return read(run_library(job, "sentry-native", "envelopes.txt"), program_functions(job.command[0]))


def read(text, own, functions=functions_at):
    """The hangs in the plugin's file."""
    incidents, reported = [], 0.0
    for line in text.splitlines():
        if line.startswith("envelope "):
            reported = float(line.split()[1])
        elif line.startswith("{") and "exception" in (event := json.loads(line)):
            hang = event["exception"]["values"][0]
            addresses = [int(frame["instruction_addr"], 16) for frame in reversed(hang["stacktrace"]["frames"])]
            images = []
            for image in event["debug_meta"]["images"]:
                base, path = int(image["image_addr"], 16), image["code_file"]
                images.append((base, base + image["image_size"], base if is_moved(path) else 0, path))
            # It says for how long the thread hung when it looked, and not how long the hang was in the end.
            length = int(re.search(r"at least (\d+) ms", hang["value"])[1]) / 1000
            incidents.append(incident(reported - length, reported, *blame(functions(addresses, images), own)))
    return incidents


def is_moved(path):
    """Whether the addresses in an ELF file count from where it is loaded."""
    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        return file.read(18)[16:] == b"\x03\x00"
