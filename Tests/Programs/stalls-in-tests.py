#!/usr/bin/env python3
"""Runs the sample package Tests/Samples/StallsInTests and checks which of its tests fail, and where.

    Tests/Programs/stalls-in-tests.py [--rounds N] [--busy N] [--tool STALLWATCH]

20 tests have the trait .noStalls, and 8 of them stall. Exactly these 8 have to fail, each with one issue at the line that
a comment `// stalls: NAME` marks. --busy runs as many busy loops beside each round. A plain check with the wall clock
runs beside the trait: it compares the longest wait of the main queue with the same limit. The script counts how often it
is wrong about a test. It cannot see the starved pool, so that test does not count for it.

--tool also checks, once and without load: the XCTest form, the tests of the guide, tests that run at the same time,
and a baseline which the tool makes of the reports: it excuses the 4 stalls whose entries have not expired, and no other.

The package has to be built (`make stalls-in-tests` does that). Exit status: 0 if everything is right, 1 if not.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from checks import SAMPLE, marks

# The tests that stall, and the marks of their lines.
STALLING = {
    "syncRead()": "syncRead",
    "threadSleep()": "sleep",
    "lockHeldByBackgroundTask()": "lock",
    "semaphore()": "semaphore",
    "deadlock()": "deadlock",
    "starvedPool()": "pool",
    "slowJSON()": "json",
    "childProcess()": "child",
}
TESTS = 20
# The tests whose entries in the baseline have expired, and the functions that these entries name.
EXPIRED = {
    "syncRead()": "NoteStore.load(",
    "lockHeldByBackgroundTask()": "NoteStore.count(",
    "deadlock()": "Accounts.transfer(",
    "slowJSON()": "NoteStore.importNotes(",
}
# One test after another, without the XCTest form.
ONE_BY_ONE = ["--disable-xctest", "--no-parallel"]
# The limit of the tests on the main actor, in milliseconds.
LIMIT = 100
# A round takes five seconds on an idle machine.
MOST_SECONDS = 300


def run(target, *options, **environment):
    """Runs the tests of a target once and returns their output."""
    command = ["swift", "test", "--package-path", SAMPLE, "--skip-build", "--filter", rf"^{target}[./]", *options]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=MOST_SECONDS,
        env=os.environ | environment,
    )
    return done.stdout


def judge(output, expected, tests=TESTS):
    """Returns what is wrong with one round, a list of sentences."""
    issues = re.findall(r"Test (\S+) recorded an issue at ([^:\s]+:\d+):\d+", output)
    results = re.findall(r"Test (\S+\(\)) (passed|failed) after", output)
    faults = [f"{test} has an issue at {place}" for test, place in issues if expected.get(test) != place]
    for test, place in expected.items():
        count = issues.count((test, place))
        if count != 1:
            faults.append(f"{test} has {count} issues at {place}")
    for test, result in results:
        if (result == "failed") != (test in expected):
            faults.append(f"{test} {result}")
    if len(results) != tests:
        faults.append(f"{len(results)} of {tests} tests ended")
    return faults


def wrong_by_wall_clock(output):
    """Returns the tests about which the plain check is wrong, with its times."""
    times = {test: int(time) for test, time in re.findall(r"wall clock: (\S+) (\d+) ms", output)}
    return {
        test: time
        for test, time in times.items()
        if STALLING.get(test) != "pool" and (time >= LIMIT) != (test in STALLING)
    }


def check_xctest(places):
    """Returns what is wrong with the XCTest form."""
    output = run("NotesXCTests", "--disable-swift-testing")
    failures = re.findall(r"([^/\s]+:\d+): error: NotesXCTests\.(\w+) :", output)
    expected = [(places["sleep"], f"test{name}") for name in ("AsyncCodeThatSleepsOnTheMainActor", "BlockingCodeThatSleeps")]
    if sorted(failures, key=lambda failure: failure[1]) == expected and "Executed 4 tests" in output:
        return []
    return [f"XCTest: {failures}\n{output}"]


def check_guide(places):
    """Returns what is wrong with the tests of the guide."""
    output = run("GuideTests", *ONE_BY_ONE)
    faults = judge(output, {"triesAgain()": places["sleep"], "makesThumbnails()": places["pool"]}, tests=5)
    if f"Test mayTakeLong() recorded a warning at {places['sleep']}:" not in output:
        faults.append("no warning for the stall between the limits of mayTakeLong()")
    return [f"guide: {fault}\n{output}" for fault in faults]


def check_parallel(places):
    """Returns what is wrong with the tests that run at the same time: the stall is an issue of the run only."""
    output = run("ParallelTests", "--disable-xctest")
    issues = set(re.findall(r"Test (\S+) recorded an issue at ([^:\s]+:\d+):\d+", output))
    passed = re.findall(r"Test (\S+\(\)) passed after", output)
    is_run = "belongs to one of the tests that ran then (ParallelTests.doesNothing(), ParallelTests.startsATask())" in output
    if issues == {("«unknown»", places["sleep"])} and len(passed) == 3 and is_run and " 3 tests in 1 suite failed" in output:
        return []
    return [f"parallel: {issues}\n{output}"]


def check_baseline(tool, reports, expected):
    """Returns what is wrong with a baseline of all stalls, of which some have expired."""
    with tempfile.TemporaryDirectory() as directory:
        baseline = pathlib.Path(directory, "baseline.json")
        subprocess.run([tool, "baseline", "update", reports, "--file", baseline], check=True)
        document = json.loads(baseline.read_text())
        for entry in document["stalls"]:
            if any(function in entry.get("culprit", "") for function in EXPIRED.values()):
                entry["expires"] = "2020-01-31"
        baseline.write_text(json.dumps(document))
        output = run("NotesTests", *ONE_BY_ONE, STALLWATCH_BASELINE=str(baseline))
    faults = judge(output, {test: expected[test] for test in EXPIRED})
    expired = output.count("The baseline excused it until 2020-01-31.")
    if expired != len(EXPIRED):
        faults.append(f"{expired} of {len(EXPIRED)} issues name the day on which the baseline expired")
    return [f"baseline: {fault}" for fault in faults] + [output] * bool(faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--tool")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as reports:
        check_all(options, reports)


def check_all(options, reports):
    """Runs all rounds and checks, and ends the program with their status."""
    places = marks("Sources/Notes", "stalls")
    expected = {test: places[mark] for test, mark in STALLING.items()}
    right = 0
    wrong = collections.Counter()
    wrong_rounds = 0
    for number in range(1, options.rounds + 1):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
        try:
            output = run("NotesTests", *ONE_BY_ONE, "--attachments-path", reports)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        faults = judge(output, expected)
        right += not faults
        print(f"round {number}: {'right' if not faults else '; '.join(faults)}", flush=True)
        if faults:
            print(output, file=sys.stderr)
        mistakes = wrong_by_wall_clock(output)
        wrong.update(mistakes.keys())
        wrong_rounds += bool(mistakes)
        if mistakes:
            print("  the wall clock is wrong about " + ", ".join(f"{t} ({ms} ms)" for t, ms in mistakes.items()))
    print(f"right: {right} of {options.rounds} rounds, {len(expected)} of {TESTS} tests stall")
    checked = options.rounds * (TESTS - 1)
    print(
        f"the plain wall clock: wrong in {wrong_rounds} of {options.rounds} rounds, about {wrong.total()} of {checked}"
        f" tests ({', '.join(f'{test} {count} times' for test, count in wrong.most_common())})"
    )
    faults = []
    if options.tool:
        faults = check_xctest(places) + check_guide(places) + check_parallel(places)
        faults += check_baseline(options.tool, reports, expected)
        print("\n".join(faults) or "XCTest, the guide, parallel tests and the baseline: right")
    sys.exit(0 if right == options.rounds and not faults else 1)


main()
