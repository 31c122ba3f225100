#!/usr/bin/env python3
"""Runs programs of Debian under `stallwatch run`, makes them stall, and checks their reports.

    Tests/Programs/run-programs.py --tool STALLWATCH

- yad, a GTK program, under Xvfb. It reads a line of three million characters, and computes its layout for a long time.
- A Python program with GObject, which sleeps in a callback. Python loads GLib after its start.
- The same program as a child of a shell (--children).

Each report has to name the right thread and cause, and have GLib's functions on its stack. Status and standard output have to
be those of a run without the tool. At last it measures by how much the tool delays a program, as medians of 20 runs each.

Needs the packages that `scripts/install-dependencies.sh run-programs` installs. Exit status: 0 if everything is right, 1 if
not.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from checks import REPOSITORY, Faults

# Longer than the threshold.
LONG = 0.6
THRESHOLD = "200ms"
# A run that takes longer hangs.
MOST_SECONDS = 60
RUNS = 20
MOST_DELAY_MILLISECONDS = 50
PYTHON = "/usr/bin/python3"

SLEEPER = f"""
import sys, time
from gi.repository import GLib
loop = GLib.MainLoop()
def wait():
    time.sleep({LONG})
    GLib.timeout_add(300, loop.quit)
GLib.timeout_add(500, wait)
loop.run()
print("done", sys.argv[1:])
sys.exit(5)
"""

faults = Faults()
check = faults.check


def run(words, feed=None, environment=None):
    """Returns (status, standard output, standard error). `feed` writes to the program's standard input."""
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **(environment or {})})
    try:
        if feed:
            feed(process.stdin)
        output, errors = process.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        faults.append(f"{words} did not end: {errors[-2000:]}")
    return process.returncode, output, errors


def compare(tool, name, words, expected, feed=None, environment=None, options=()):
    """Runs a program without the tool and with it, and checks the only report."""
    alone = run(words, feed, environment)
    with tempfile.TemporaryDirectory() as directory:
        watched = [tool, "run", "--threshold", THRESHOLD, "--output", directory, *options, "--", *words]
        status, output, errors = run(watched, feed, environment)
        reports = [json.loads(path.read_text()) for path in pathlib.Path(directory).glob("stall-*.json")]
    check((status, output) == alone[:2], f"{name}: {(status, output)}, and {alone[:2]} without the tool")
    check("see: stallwatch show " in errors, f"{name}: standard error is {errors!r}")
    right = 1 <= len(reports) <= expected.get("reports", 1)
    if not check(right, f"{name}: {len(reports)} reports, expected {expected.get('reports', 1)} at most"):
        return
    report = max(reports, key=lambda report: report["durationMilliseconds"])
    functions = [report["frames"][frame].get("function") or report["frames"][frame].get("symbol", "")
                 for stack in report["stacks"] for frame in stack]
    culprit = report.get("culprit", {}).get("function")
    print(f"{name}: {report['durationMilliseconds']:.0f} ms, {report['cause']['kind']}, culprit {culprit}, "
          f"{len(functions)} frames")
    check(report["loop"]["label"] == "glib", f"{name}: the loop is {report['loop']['label']}")
    check(report["loop"]["thread"]["id"] == report["process"]["pid"], f"{name}: the thread is not the main one")
    check(report["cause"]["kind"] in expected["causes"], f"{name}: the cause is {report['cause']['kind']}")
    source = report.get("context", {}).get("label", "")
    check(source.startswith("GSource "), f"{name}: the source is {source!r}")
    app = [frame.get("function") for frame in report["frames"] if frame["isInApp"]]
    check(not (expected.get("isScript") and app), f"{name}: frames of the interpreter are the app's: {app}")
    for function in expected["functions"]:
        check(any(function in name for name in functions), f"{name}: no frame of {function} in {functions}")


def feed_long_line(pipe):
    """Writes a line whose layout takes long, once the window is there."""
    time.sleep(1)
    pipe.write("word " * 600_000 + "\n")
    pipe.flush()
    time.sleep(1)


def measure(tool, name, words):
    """Prints by how much the tool delays a program, and checks it."""
    def milliseconds(words):
        begun = time.perf_counter()
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=MOST_SECONDS)
        return (time.perf_counter() - begun) * 1000

    with tempfile.TemporaryDirectory() as directory:
        watched = [tool, "run", "--output", directory, "--", *words]
        times = {"alone": [], "watched": []}
        # Alternately, so that a change of the machine's speed concerns both.
        for _ in range(RUNS):
            times["alone"].append(milliseconds(words))
            times["watched"].append(milliseconds(watched))
    alone, with_tool = (statistics.median(times[key]) for key in ("alone", "watched"))
    print(f"{name}: {alone:.1f} ms alone, {with_tool:.1f} ms watched, {with_tool - alone:+.1f} ms (medians of {RUNS})")
    check(with_tool - alone < MOST_DELAY_MILLISECONDS, f"{name}: {with_tool - alone:.1f} ms more")


def compile_programs(directory):
    """Returns the words that run programs which end their loops at once: in C with GLib, and in Swift."""
    sources = REPOSITORY / "Tests/Support/Run"
    options = subprocess.run(["pkg-config", "--cflags", "--libs", "glib-2.0"], capture_output=True, text=True, check=True)
    subprocess.run(
        ["clang", "-O1", sources / "glib_program.c", "-o", f"{directory}/glib", *options.stdout.split()], check=True)
    source = pathlib.Path(directory) / "main.swift"
    source.write_text("import Foundation\nDispatchQueue.main.async { exit(0) }\nRunLoop.main.run()\n")
    subprocess.run(["swiftc", "-O", source, "-o", f"{directory}/swift"], check=True)
    return [("C with GLib", [f"{directory}/glib", "quick"]), ("Swift with a run loop", [f"{directory}/swift"]),
            ("a program without a loop", ["true"])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    for program in ("Xvfb", "yad", PYTHON):
        if not shutil.which(program):
            raise SystemExit(f"{program} is missing: run scripts/install-dependencies.sh run-programs")

    loop = "g_main_loop_run"
    sleeping = {"causes": {"sleep"}, "functions": ["clock_nanosleep", "g_main_context_dispatch", loop],
                "isScript": True}
    with tempfile.TemporaryDirectory() as directory:
        script = pathlib.Path(directory) / "sleeper.py"
        script.write_text(SLEEPER)
        compare(tool, "Python", [PYTHON, str(script), "an argument"], sleeping)
        compare(tool, "a child", ["sh", "-c", f"{PYTHON} {script}; exit 4"], sleeping, options=["--children"])
        display = subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        try:
            environment = {"DISPLAY": f":{display.stdout.readline().strip()}", "NO_AT_BRIDGE": "1"}
            # It lays the text out in several turns.
            drawing = {"causes": {"cpu"}, "functions": ["gtk_main", "g_main_context_dispatch", loop], "reports": 5}
            words = ["yad", "--text-info", "--listen", "--timeout=4"]
            compare(tool, "GTK (yad)", words, drawing, feed_long_line, environment)
        finally:
            display.terminate()
            display.wait()
        for name, words in compile_programs(directory):
            measure(tool, name, words)
    return faults.status("programs")


if __name__ == "__main__":
    sys.exit(main())
