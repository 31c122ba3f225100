#!/usr/bin/env python3
"""Runs the tests of Tests/Samples/StallsInTests that hang, and checks what `stallwatch test` says of each.

    Tests/Programs/hangs-in-tests.py --tool STALLWATCH

Each of the three tests hangs forever in another way. The text has to name the test, the function and the line that a
comment `// hangs: NAME` marks, and what only this hang has: the owners of the locks, the child process, or that no thread
has anything to do. The run has to end with status 124, and leave no process behind. A fourth test has the
trait .hangDump and ends by itself. The script also checks the statuses of commands that do not hang.

Six tests hang only where the task pool has one thread: with --pool 1 the text has to name each, its function and the line that a
comment `// blocks: NAME` marks. With --pool 2 they pass. 30 healthy cases pass with --pool 1, and nothing is said of them.

The package and the tool have to be built (`make stalls-in-tests` does that). Exit status: 0 if everything is right, 1 if
not.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from checks import SAMPLE, Faults, marks

# A hang is found after five seconds; a busy machine may take much longer to start the tests.
MOST_SECONDS = 120
HUNG = 124

faults = Faults()
check = faults.check


def place(mark):
    """Returns the pattern of `File.swift:line` of a mark."""
    return re.escape(marks("Tests", "hangs")[mark])


def tests(name):
    return ["swift", "test", "--package-path", SAMPLE, "--skip-build", "--filter", name]


def run(tool, *command, options=()):
    begun = time.monotonic()
    words = [tool, "test", *options, "--", *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            output, errors = process.communicate(timeout=MOST_SECONDS)
        except BaseException:
            # With the tests that it started, which may hang for ever.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    done = subprocess.CompletedProcess(words, process.returncode, output, errors)
    return done, time.monotonic() - begun


def check_hang(tool, name, *expected, suite="HangingTests.HangingTests", pool=()):
    with tempfile.TemporaryDirectory() as output:
        options = ("--after", "5s", "--fail", "--output", output, *pool)
        done, seconds = run(tool, *tests(f"{suite}/{name}"), options=options)
        if done.returncode == HUNG and "() has not finished" not in done.stderr:
            # The process got no processor before its test began, which is a hang, too.
            for report in pathlib.Path(output).rglob("*.json"):
                report.unlink()
            done, seconds = run(tool, *tests(f"{suite}/{name}"), options=options)
        reports = list(pathlib.Path(output).rglob("*.json"))
    right = check(done.returncode == HUNG, f"{name}: status {done.returncode}, expected {HUNG}")
    for text in (rf"{name}\(\) has not finished", *expected):
        right &= check(re.search(text, done.stderr), f"{name}: the text has no {text!r}")
    right &= check(len(reports) == 1, f"{name}: {len(reports)} reports, expected 1")
    if not right:
        print(f"--- {name} ---\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}")
    print(f"{name}: {'right' if right else 'WRONG'}, ended after {seconds:.1f} s")


def check_one_thread(tool):
    blocking = marks("Tests", "blocks")
    check(len(blocking) == 6, f"{len(blocking)} tests need a second thread, expected 6")
    for name, line in sorted(blocking.items()):
        place = r"\w+\(_:(_:)?\).*" + re.escape(line)
        check_hang(tool, name, place, suite="OneThreadTests.BlockingTests", pool=("--pool", "1"))
    for suite, width, texts in [
        ("BlockingTests", 2, ["6 tests in 1 suite passed"]),
        ("HealthyTests", 1, ["10 tests in 1 suite passed", *3 * ["tasks at once: 1\n"]]),
    ]:
        done, seconds = run(tool, *tests(f"OneThreadTests.{suite}"), options=("--pool", str(width)))
        right = check(done.returncode == 0, f"{suite}: status {done.returncode}, expected 0")
        for text in texts:
            right &= check(done.stdout.count(text) == texts.count(text), f"{suite}: {text!r} is not in the output")
        right &= check("has not finished" not in done.stderr, f"{suite}: a hang is reported")
        if not right:
            print(f"--- {suite} ---\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
        print(f"{suite} with a pool of {width}: {'right' if right else 'WRONG'}, {seconds:.1f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool

    owner = r"thread \d+( of a dispatch queue| \"[^\"]*\")?"
    wait = rf"{owner} is in a deadlock: waits in \S+ for the mutex, which {owner} holds\n +"
    check_hang(
        tool, "deadlock",
        wait + r"lockInOrder\(_:\).*" + place("deadlock"),
        wait + r"lockInOtherOrder\(_:\).*" + place("other"),
    )
    check_hang(
        tool, "continuation", "No thread is in the app's code",
        r"1 task in HangingTests\.continuation\(\) at " + place("continuation") + " awaits a continuation",
    )
    check_hang(
        tool, "child", r"Child process \d+: /bin/sleep 612, waits", r"waitForChild\(_:\).*" + place("child"),
    )
    check_one_thread(tool)
    # A process that was killed ends when it gets a processor.
    left = ["timeout", str(MOST_SECONDS), "sh", "-c", "while pgrep -f '^/bin/sleep 612'; do sleep 0.1; done"]
    check(subprocess.run(left, capture_output=True).returncode == 0, "processes are left behind")

    done, seconds = run(tool, *tests("SlowTests"), options=("--after", "60s"))
    text = rf"SlowTests.waitsForALongTime\(\) has not finished after (?:[1-9][\d.]* s|\d+ min)[\s\S]*{place('slow')}"
    chain = (
        rf"SlowTests.awaitsForALongTime\(\) has not finished after (?:[1-9][\d.]* s|\d+ min)[\s\S]*1 task in SlowTests.awaitsForALongTime\(\) at "
        rf"SlowTests.swift:\d+ awaits a task in awaitTheServer\(\) at {place('awaits')}, which awaits a continuation"
    )
    found = [re.search(pattern, done.stdout + done.stderr) for pattern in (text, chain)]
    if not check(done.returncode == 0 and all(found), "hangDump: its text is wrong or missing"):
        print(f"--- hangDump ---\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}")
    print(f"hangDump: ended after {seconds:.1f} s")

    for command, status in [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                            (["/no/such/program"], 127), (["/etc/passwd"], 126)]:
        done, _ = run(tool, *command)
        check(done.returncode == status, f"{command}: status {done.returncode}, expected {status}")
    return faults.status("hangs in tests")


if __name__ == "__main__":
    sys.exit(main())
