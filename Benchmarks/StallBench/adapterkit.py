#!/usr/bin/env python3
"""What all adapters share, and the process in which one runs.

    adapterkit.py ADAPTER.py|none JOB.json

An adapter is a Python file with

    COMMAND       the tool's command line, for the page
    needs(job)    returns what is missing, as a sentence, or None
    run(job)      runs job.command under the tool, and returns its incidents

A job is what the runner gives: `command` and `environment` of the driver, `heartbeat` (a file, see `watch`),
`threshold` in seconds, `output` (an empty folder), `loop_functions` (the driver's functions that wait between turns)
and `set`. The truth is not in it. An incident is what `incident` returns.

Without an adapter the program runs alone. Exit status: 0 if the incidents are in the folder's incidents.json, 69 if
something is missing, else the tool failed.
"""

import importlib.util
import json
import mmap
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import types

MISSING = 69
# How often a watchdog outside the process reads the heartbeat.
LOOK = 0.005

# What the innermost functions outside the program say about the cause. The adapters of all tools that print stacks
# alone use it, as a person would who reads them.
CAUSES = (
    ("child", r"wait4|\bdo_wait\b|waitpid|waitid|posix_spawn|do_system|\bsystem\b"),
    ("lock", r"mutex|rwlock|cond_(timed|clock)?wait|_cond_|futex|sem_(timed|clock)?wait|lll_lock|pthread_join"
             r"|pthread_clockjoin|new_sem|dispatch_(semaphore|group)|clockjoin"),
    ("sleep", r"nanosleep|usleep|\bsleep\b"),
    ("paging", r"userfault|page_fault"),
    ("io", r"read|recv|write|send|poll|select|epoll|fsync|accept|connect|fdatasync|pipe_|sock"),
    ("kernel", r"getrandom|\bstat\b|fstat|madvise|__xstat|syscall"),
)


def cause_of(functions):
    """Guesses the cause from functions outside the program, innermost first. None of them: the thread was computing."""
    for function in functions:
        for cause, pattern in CAUSES:
            if re.search(pattern, function):
                return cause
    return "cpu"


def incident(began, reported, function=None, cause=None, owner=None, duration=None):
    """One stall as a tool saw it. Times are in seconds on CLOCK_MONOTONIC; `owner` is a thread's number or name."""
    return dict(began=began, reported=reported, function=function, cause=cause, owner=owner, duration=duration)


def monotonic(wall):
    """Converts a wall clock time in seconds."""
    return wall - time.time() + time.monotonic()


def missing_program(*names):
    """A sentence about the programs that are not there, or None."""
    absent = [name for name in names if not shutil.which(name)]
    return f"needs {' and '.join(absent)}" if absent else None


def missing_root():
    return None if os.geteuid() == 0 else "needs root"


def program_functions(path):
    """The names of the program's own functions. One of Swift is there with its mangled name and with its base name."""
    text = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=False).stdout
    names = {words[2] for words in map(str.split, text.splitlines()) if len(words) == 3 and words[1] in "tT"}
    return names | {base_name(name) for name in names}


def base_name(name):
    """`sortNumbers` of `$s6driver11sortNumbersyys6UInt32VF`; another name stays as it is."""
    if not name.startswith("$s"):
        return name
    parts, at = [], 2
    while match := re.match(r"(\d+)", name[at:]):
        at += len(match[1])
        parts.append(name[at:at + int(match[1])])
        at += int(match[1])
    return parts[-1] if len(parts) > 1 else name


def blame(stack, own):
    """The function and the cause of a stack of names, innermost first: the innermost of the program's own functions,
    and what it called outside the program."""
    for index, name in enumerate(stack):
        if name in own:
            return base_name(name), cause_of(stack[:index])
    return (stack[0] if stack else None), (cause_of(stack) if stack else None)


def start(job, command=None, **variables):
    """Starts the driver, or `command`, with the environment of the job."""
    with open(os.path.join(job.output, "program.log"), "wb") as log:
        return subprocess.Popen(command or job.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env={**os.environ, **job.environment, **variables})


def watch(job, on_stall):
    """A plain watchdog outside the process: runs the driver, reads the heartbeat that it publishes, and calls
    `on_stall(process, thread)` once in each turn that is over the threshold. It returns (function, cause, owner)."""
    program = start(job)
    incidents, seen, last = [], -1, None
    with open(job.heartbeat, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    while program.poll() is None:
        began, turns, process, thread = struct.unpack_from("=QQii", memory)
        now = time.monotonic()
        if last and (turns != seen or not began):
            last["duration"] = now - last["began"]
            last = None
        if began and turns != seen and now - began / 1e9 >= job.threshold:
            seen = turns
            answer = on_stall(process, thread)
            last = incident(began / 1e9, time.monotonic(), *answer)
            incidents.append(last)
        time.sleep(LOOK)
    return incidents


def watch_by_printing(job, command, part, mine, frame):
    """`watch` with a program that prints the stacks of all threads: `command(process)` is its command line, each thread's
    text follows `part`, begins with `mine(thread)` for the stalled one, and has its functions by `frame`. All three are
    regular expressions."""
    own = program_functions(job.command[0])

    def stack(process, thread):
        text = subprocess.run(command(process), capture_output=True, text=True, errors="replace", check=False,
                              env={"PATH": "/usr/local/bin:/usr/bin:/bin", "DEBUGINFOD_URLS": ""}).stdout
        for one in re.split(part, text, flags=re.MULTILINE)[1:]:
            if re.match(mine(thread), one):
                return (*blame(re.findall(frame, one, re.MULTILINE), own), None)
        return None, None, None

    return watch(job, stack)


def needs_debugger(job, name):
    """What a program that prints stacks of native functions needs, or None."""
    if job.set == "python":
        return "shows the interpreter's functions, not the program's"
    return missing_program(name, "nm")


def read_plugin(job):
    """The incidents in the report file of a plugin (plugins/plugin.h)."""
    own = program_functions(job.command[0])
    incidents, stack = [], []

    def finish():
        if incidents and stack:
            # The handler's own frames come first, up to the one that the kernel has made.
            at = next((i for i, (name, _) in enumerate(stack) if name == "signal"), -1)
            incidents[-1].update(zip(("function", "cause"), blame([name for name, _ in stack[at + 1:]], own)))
        stack.clear()

    path = pathlib.Path(job.output, "stalls.txt")
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        words = line.split()
        if words[:1] == ["stall"]:
            finish()
            incidents.append(incident(float(words[2]), float(words[1])))
        elif words[:1] == ["end"] and incidents:
            incidents[-1]["duration"] = float(words[2])
        elif match := re.match(r"(.*)\((\w*)([+-]\w+)?\)\s*\[", line):
            library = os.path.basename(match[1])
            name = match[2] or library
            # The C library's frame without a name is the return from the signal's handler.
            unnamed = not match[2] and library.startswith("libc.so")
            stack.append(("signal" if unnamed and len(stack) < 3 else name, library))
    finish()
    return incidents


def plugin_of(job, name):
    return os.path.join(os.path.dirname(job.command[0]), f"{name}.so")


def run_plugin(job, name):
    """Runs the driver with a plugin, and returns what it wrote."""
    start(job, STALLBENCH_PLUGIN=plugin_of(job, name)).wait()
    return read_plugin(job)


def run_library(job, name, file):
    """Runs the driver with a plugin that has another project's library, and returns the text of the plugin's file."""
    status = start(job, STALLBENCH_PLUGIN=plugin_of(job, name)).wait()
    # The last case of a set may abort or be killed. After another end cases are missing, which would not count.
    if status not in (0, -signal.SIGABRT, -signal.SIGKILL):
        raise RuntimeError(f"the program ended with {status}")
    return pathlib.Path(job.output, file).read_text(errors="replace")


def needs_checkout(job, name):
    """What a plugin with another project's library needs, or None."""
    if job.set == "python":
        return "is not for Python"
    if not job.tools.get(name):
        return "no checkout given"
    if not os.path.exists(plugin_of(job, name)):
        return "cannot be built from the checkout: driver/build.sh says why"
    return missing_program("addr2line", "nm")


def functions_at(addresses, images):
    """The functions at the addresses of a stack, innermost first; an address without a name has its file's.

    `images` are (start, end, slide, path) of what the process has mapped.
    """
    files, names = {}, ["?"] * len(addresses)
    for index, address in enumerate(addresses):
        for start_of, end, slide, path in images:
            if start_of <= address < end:
                # A return address may be in the next function.
                files.setdefault(path, []).append((index, address - slide - (index > 0)))
                names[index] = os.path.basename(path)
                break
    for path, places in files.items():
        words = ["addr2line", "-a", "-f", "-i", "-e", path, *(hex(place) for _, place in places)]
        text = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False).stdout
        for (index, _), part in zip(places, re.split(r"^0x", text, flags=re.MULTILINE)[1:]):
            # The last function is the one that the others are inlined into.
            name = part.splitlines()[1:][-2]
            names[index] = names[index] if name == "??" else name
    return names


def turns_of(events, job, own, end):
    """Splits what a profiler saw of one thread into turns, and returns those over the threshold as incidents.

    `events` are (time, kind, stack) in order; kind is "cpu" for a sample on a CPU, "out" and "in" for context switches,
    and a stack has names, innermost first. The loop waits between turns if it is switched out while its innermost
    function of the program is one of the job's loop functions. `end` is when the program ended.
    """
    incidents, turn, began = [], [], None
    for at, kind, stack in events:
        inside = next((name for name in stack if name in own), None)
        if kind == "out" and inside in job.loop_functions:
            if turn and at - began >= job.threshold:
                incidents.append(heaviest(turn, began, at, own))
            turn, began = [], None
        elif kind == "in" and began is None:
            began, turn = at, [(at, kind, stack)]
        elif began is not None:
            turn.append((at, kind, stack))
    if turn and end - began >= job.threshold:
        incidents.append(heaviest(turn, began, end, own))
    return incidents


def heaviest(turn, began, end, own):
    """The incident of a turn: the state that took the most time."""
    weights = {}
    for (at, kind, stack), after in zip(turn, [event[0] for event in turn[1:]] + [end]):
        if kind != "in" and stack:
            weights[blame(stack, own)] = weights.get(blame(stack, own), 0) + after - at
    function, cause = max(weights, key=weights.get, default=(None, None))
    return incident(began, None, function, cause, None, end - began)


def load(path):
    """The adapter in a file; without a file that of no tool."""
    if path == "none":
        return types.SimpleNamespace(COMMAND="the program alone", needs=lambda job: None,
                                     run=lambda job: start(job).wait() and [] or [])
    spec = importlib.util.spec_from_file_location("adapter", path)
    adapter = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("adapterkit", sys.modules[__name__])
    spec.loader.exec_module(adapter)
    return adapter


def main():
    adapter = load(sys.argv[1])
    job = types.SimpleNamespace(**json.loads(pathlib.Path(sys.argv[2]).read_text()))
    if reason := adapter.needs(job):
        print(reason)
        sys.exit(MISSING)
    incidents = adapter.run(job)
    for one in incidents:
        # A tool that reports when the program has ended.
        one["reported"] = one["reported"] or time.monotonic()
    # The adapter's own time is not the tool's.
    usage = resource.getrusage(resource.RUSAGE_SELF)
    result = {"incidents": incidents, "own cpu": usage.ru_utime + usage.ru_stime}
    pathlib.Path(job.output, "incidents.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
