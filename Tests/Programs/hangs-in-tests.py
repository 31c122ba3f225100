#!/usr/bin/env python3
"""Runs the tests of Tests/Samples/StallsInTests that hang, and checks what `stallwatch test` says of each.

    Tests/Programs/hangs-in-tests.py --tool STALLWATCH

Each of the three tests hangs forever in another way. The text has to name the test, the function and the line that a
comment `// hangs: NAME` marks, and what only this hang has: the owners of the locks, the child process, or that no thread
has anything to do. The run has to end with status 124, and leave no process behind. A fourth test has the
trait .hangDump and ends by itself. The script also checks the statuses of commands that do not hang.

Six tests hang only where the task pool has one thread: with --pool 1 the text has to name each, its function and the line that a
comment `// blocks: NAME` marks. With --pool 2 they pass. 30 healthy cases pass with --pool 1, and nothing is said of them.

The trait of StallWatchTesting warns of a loop that no thread runs, in that test and in no other.

Most of a run is waiting, and none is judged by its time, so several run at a time.

The package and the tool have to be built (`make stalls-in-tests` does that). Exit status: 0 if everything is right, 1 if
not.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from checks import SAMPLE, Faults, marks

# A hang is found after five seconds; a busy machine may take much longer to start the tests.
MOST_SECONDS = 120
HUNG = 124
LANES = 3

faults = Faults()
check = faults.check
# The commands that run; with the lock none begins or ends.
running, lock, has_ended = set(), threading.Lock(), False


def place(mark):
    """Returns the pattern of `File.swift:line` of a mark."""
    return re.escape(marks("Tests", "hangs")[mark])


def tests(name):
    # Nothing is built, so that it does not matter who else uses the folder.
    return ["swift", "test", "--package-path", SAMPLE, "--skip-build", "--ignore-lock", "--filter", name]


def end_session(process):
    # Not only its group: the package manager starts the tests in one of their own, and they may hang for ever.
    subprocess.run(["pkill", "-KILL", "--session", str(process.pid)])


def end_all():
    """Ends what runs, in all lanes, and lets nothing else begin."""
    global has_ended
    with lock:
        has_ended = True
        for process in running:
            end_session(process)


def finish(words, errors=subprocess.PIPE):
    """Runs a command in a session of its own; one that takes too long is killed, which is a fault."""
    with lock:
        if has_ended:
            raise concurrent.futures.CancelledError
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        running.add(process)
    with process:
        try:
            texts = process.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            check(False, f"{' '.join(map(str, words))}: not finished after {MOST_SECONDS} s")
            end_session(process)
            texts = process.communicate()
    with lock:
        running.remove(process)
    return subprocess.CompletedProcess(words, process.returncode, *texts)


def run(tool, *command, options=()):
    begun = time.monotonic()
    return finish([tool, "test", *options, "--", *command]), time.monotonic() - begun


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


def check_pool(tool, suite, width, texts):
    done, seconds = run(tool, *tests(f"OneThreadTests.{suite}"), options=("--pool", str(width)))
    right = check(done.returncode == 0, f"{suite}: status {done.returncode}, expected 0")
    for text in texts:
        right &= check(done.stdout.count(text) == texts.count(text), f"{suite}: {text!r} is not in the output")
    right &= check("has not finished" not in done.stderr, f"{suite}: a hang is reported")
    if not right:
        print(f"--- {suite} ---\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
    print(f"{suite} with a pool of {width}: {'right' if right else 'WRONG'}, {seconds:.1f} s")


def check_slow(tool):
    """The trait .hangDump says what hangs, and the tests end by themselves."""
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


def check_not_run():
    """A timer of the main run loop, which Swift Testing does not run on Linux, is warned of."""
    def output_of(suite):
        command = [*tests(rf"^NotRunTests\.{suite}[./]"), "--disable-xctest", "--no-parallel"]
        return finish(command, errors=subprocess.STDOUT).stdout

    short = output_of("ShortTests")
    # A test that takes longer is warned of before its end.
    found = "when the test ended, and no thread ran the loop." in short or "No thread ran the loop, and a timer" in short
    if not check("recorded a warning" in short and found, "not run: no warning at the end of a test"):
        print(short)
    output = output_of("NotRunTests")
    passed = re.findall(r"Test (\S+\(\)) passed after", output)
    # Neither in the test before, nor for what a test has left. Swift Testing may print one that is of no test more than once.
    before, _, after = output.partition("bTimerOfTheMainRunLoopDoesNot() started")
    warnings = [part.count("recorded a warning") for part in (before, after.partition("cLaterTestIsSilent() started")[0], after)]
    said = "No thread ran the loop, and a timer of the default mode was due" in output
    right = warnings[0] == 0 < warnings[1] == warnings[2] and said and len(passed) == 3
    if not check(right, f"not run: {warnings} warnings, {passed}"):
        print(output)
    print(f"a loop that is not run: {'right' if right else 'WRONG'}")


def check_all(tool, lanes):
    owner = r"thread \d+( of a dispatch queue| \"[^\"]*\")?"
    wait = rf"{owner} is in a deadlock: waits in \S+ for the mutex, which {owner} holds\n +"
    deadlock = [
        wait + r"lockInOrder\(_:\).*" + place("deadlock"), wait + r"lockInOtherOrder\(_:\).*" + place("other"),
    ]
    continuation = [
        "No thread is in the app's code",
        r"1 task in HangingTests\.continuation\(\) at " + place("continuation") + " awaits a continuation",
    ]
    child = [r"Child process \d+: /bin/sleep 612, waits", r"waitForChild\(_:\).*" + place("child")]
    blocking = marks("Tests", "blocks")
    check(len(blocking) == 6, f"{len(blocking)} tests need a second thread, expected 6")
    # The longest first.
    runs = [lanes.submit(check_not_run)]
    for name, expected in [("deadlock", deadlock), ("continuation", continuation), ("child", child)]:
        runs.append(lanes.submit(check_hang, tool, name, *expected))
    for name, line in sorted(blocking.items()):
        expected = r"\w+\(_:(_:)?\).*" + re.escape(line)
        runs.append(lanes.submit(
            check_hang, tool, name, expected, suite="OneThreadTests.BlockingTests", pool=("--pool", "1")))
    runs.append(lanes.submit(check_pool, tool, "BlockingTests", 2, ["6 tests in 1 suite passed"]))
    runs.append(lanes.submit(
        check_pool, tool, "HealthyTests", 1, ["10 tests in 1 suite passed", *3 * ["tasks at once: 1\n"]]))
    runs.append(lanes.submit(check_slow, tool))
    for done in runs:
        done.result()
    # A process that was killed ends when it gets a processor.
    left = ["timeout", str(MOST_SECONDS), "sh", "-c", "while pgrep -f '^/bin/sleep 612'; do sleep 0.1; done"]
    check(subprocess.run(left, capture_output=True).returncode == 0, "processes are left behind")

    for command, status in [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                            (["/no/such/program"], 127), (["/etc/passwd"], 126)]:
        done, _ = run(tool, *command)
        check(done.returncode == status, f"{command}: status {done.returncode}, expected {status}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    lanes = concurrent.futures.ThreadPoolExecutor(LANES)
    try:
        check_all(tool, lanes)
    except BaseException:
        lanes.shutdown(wait=False, cancel_futures=True)
        end_all()
        print(*faults, sep="\n", file=sys.stderr)
        raise
    return faults.status("hangs in tests")


if __name__ == "__main__":
    sys.exit(main())
