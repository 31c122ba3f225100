#!/usr/bin/env python3
"""Runs the sample package Tests/Samples/StallsInTests and checks which of its tests fail, and where.

    Tests/Programs/stalls-in-tests.py [--rounds N] [--busy N] [--parallel] [--tool STALLWATCH] [--overhead N]

20 tests have the trait .noStalls, and 8 of them stall. Exactly these 8 have to fail, each with one issue at the line that
a comment `// stalls: NAME` marks. --busy runs as many busy loops beside each round. A plain check with the wall clock
runs beside the trait: it compares the longest wait of the main queue with the same limit. The script counts how often it
is wrong about a test. It cannot see the starved pool, so that test does not count for it. --parallel runs the suites
at the same time; the wall clock is not judged then, because it cannot tell tests apart.

--tool also checks, once and without load: the XCTest form, the tests of the guide, tests that run at the same time,
and that a baseline which the tool makes of the 8 reports excuses all 8, until it has expired. --overhead times 1,000
empty tests with the trait and without, N times.

The package has to be built (`make stalls-in-tests` does that). Exit status: 0 if everything is right, 1 if not.
"""

import argparse
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "Tests/Samples/StallsInTests"
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
# Its tasks fill the pool twice. If the monitor's own task runs in between, these are two stalls at the same line.
MOST_ISSUES = {"starvedPool()": 2}
TESTS = 20
# The limit of the tests on the main actor, in milliseconds.
LIMIT = 100
# A round takes five seconds on an idle machine.
MOST_SECONDS = 300


def marked_lines():
    """Returns `File.swift:line` for each mark."""
    marks = {}
    for path in (PACKAGE / "Sources/Notes").glob("*.swift"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.search(r"// stalls: (\w+)$", line):
                marks[match[1]] = f"{path.name}:{number}"
    return marks


def run(target, *options, **environment):
    """Runs the tests of a target once and returns their output."""
    command = ["swift", "test", "--package-path", PACKAGE, "--skip-build", "--filter", rf"^{target}[./]", *options]
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
        if not 1 <= count <= MOST_ISSUES.get(test, 1):
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


def check_xctest(marks):
    """Returns what is wrong with the XCTest form."""
    output = run("NotesXCTests", "--disable-swift-testing")
    failures = re.findall(r"([^/\s]+:\d+): error: NotesXCTests\.(\w+) :", output)
    expected = [(marks["sleep"], f"test{name}") for name in ("AsyncCodeThatSleepsOnTheMainActor", "BlockingCodeThatSleeps")]
    if sorted(failures, key=lambda failure: failure[1]) == expected and "Executed 4 tests" in output:
        return []
    return [f"XCTest: {failures}\n{output}"]


def check_guide(marks):
    """Returns what is wrong with the tests of the guide."""
    output = run("GuideTests", "--disable-xctest", "--no-parallel")
    faults = judge(output, {"triesAgain()": marks["sleep"]}, tests=5)
    if f"Test mayTakeLong() recorded a warning at {marks['sleep']}:" not in output:
        faults.append("no warning for the stall between the limits of mayTakeLong()")
    return [f"guide: {fault}\n{output}" for fault in faults]


def check_parallel(marks):
    """Returns what is wrong with the tests that run at the same time: the stall is an issue of the run only."""
    output = run("ParallelTests", "--disable-xctest")
    issues = set(re.findall(r"Test (\S+) recorded an issue at ([^:\s]+:\d+):\d+", output))
    passed = re.findall(r"Test (\S+\(\)) passed after", output)
    is_run = "belongs to one of the tests that ran then (ParallelTests.doesNothing(), ParallelTests.startsATask())" in output
    if issues == {("«unknown»", marks["sleep"])} and len(passed) == 3 and is_run and " 3 tests in 1 suite failed" in output:
        return []
    return [f"parallel: {issues}\n{output}"]


def check_baseline(tool, expected):
    """Returns what is wrong with a baseline of all stalls."""
    with tempfile.TemporaryDirectory() as directory:
        reports, baseline = f"{directory}/reports", f"{directory}/baseline.json"
        os.mkdir(reports)
        options = ["--disable-xctest", "--no-parallel"]
        run("NotesTests", *options, "--attachments-path", reports)
        subprocess.run([tool, "baseline", "update", reports, "--file", baseline], check=True)
        faults = judge(run("NotesTests", *options, STALLWATCH_BASELINE=baseline), {})
        entries = pathlib.Path(baseline)
        entries.write_text(re.sub(r'"expires" : "[^"]*"', '"expires" : "2020-01-31"', entries.read_text()))
        output = run("NotesTests", *options, STALLWATCH_BASELINE=baseline)
        faults += judge(output, expected)
        excused = output.count("The baseline excused it until 2020-01-31.")
        if excused != len(expected):
            faults.append(f"{excused} of {len(expected)} issues name the day on which the baseline expired")
        return [f"baseline: {fault}" for fault in faults]


def measure_overhead(rounds):
    """Prints the time of 1,000 empty tests with the trait and without, the median of a few runs in turn."""
    times = {"WithTrait": [], "WithoutTrait": []}
    for _ in range(rounds):
        for suite, seconds in times.items():
            output = run(rf"EmptyTests\.{suite}", "--disable-xctest")
            seconds.append(float(re.search(rf"Suite {suite} passed after ([\d.]+) seconds", output)[1]))
    for suite, seconds in times.items():
        middle = statistics.median(seconds) * 1_000
        print(f"1,000 empty tests, {suite}: {middle:.0f} ms ({min(seconds) * 1_000:.0f} to {max(seconds) * 1_000:.0f} ms)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--tool")
    parser.add_argument("--overhead", type=int, default=0)
    options = parser.parse_args()
    marks = marked_lines()
    expected = {test: marks[mark] for test, mark in STALLING.items()}
    right = 0
    wrong = collections.Counter()
    wrong_rounds = 0
    for number in range(1, options.rounds + 1):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
        try:
            output = run("NotesTests", "--disable-xctest", *([] if options.parallel else ["--no-parallel"]))
        finally:
            for process in busy:
                process.kill()
                process.wait()
        faults = judge(output, expected)
        right += not faults
        print(f"round {number}: {'right' if not faults else '; '.join(faults)}", flush=True)
        if faults:
            print(output, file=sys.stderr)
        if not options.parallel:
            mistakes = wrong_by_wall_clock(output)
            wrong.update(mistakes.keys())
            wrong_rounds += bool(mistakes)
            if mistakes:
                print("  the wall clock is wrong about " + ", ".join(f"{t} ({ms} ms)" for t, ms in mistakes.items()))
    print(f"right: {right} of {options.rounds} rounds, {len(expected)} of {TESTS} tests stall")
    if not options.parallel:
        checked = options.rounds * (TESTS - 1)
        print(
            f"the plain wall clock: wrong in {wrong_rounds} of {options.rounds} rounds, about {wrong.total()} of {checked}"
            f" tests ({', '.join(f'{test} {count} times' for test, count in wrong.most_common())})"
        )
    if options.overhead:
        measure_overhead(options.overhead)
    faults = []
    if options.tool:
        faults = check_xctest(marks) + check_guide(marks) + check_parallel(marks) + check_baseline(options.tool, expected)
        print("\n".join(faults) or "XCTest, the guide, parallel tests and the baseline: right")
    sys.exit(0 if right == options.rounds and not faults else 1)


main()
