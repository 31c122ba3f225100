#!/usr/bin/env python3
"""Puts faults into the product, one after the other, and says which tests find each.

    Tests/Programs/mutations.py [--copy DIRECTORY] [--only NAME]... [--all] [--check]

Each fault replaces one text of a file in Sources by another. The copy of the repository, in .build/mutations by default, is
made without build products and kept, so that the next run compiles less. For each fault the tests are built and run: the unit
tests, then the program tests, then those by the clock, up to the first group that finds it; with --all, every group. A fault
that the compiler refuses is a fault of this program.

--check only checks that each text is there exactly once. Prints a line for each fault, and the number that was found. Exit
status: 0 if at most one was not found, 1 if more were not, 2 if a fault does not fit the sources.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

from checks import REPOSITORY

# How long a group of tests may take: a fault may make one hang.
BOUND = "BOUND=10m"
# The same with a build, in seconds.
TIME_LIMIT = 3_600
# How long a test waits for what a fault may have taken away, in seconds.
PATIENCE = "20"
# A build that the compiler ends with an error.
NOT_BUILT = "not built"


@dataclass
class Fault:
    name: str
    path: str
    old: str
    new: str

    def fits(self, root):
        file = root / "Sources" / self.path
        return file.is_file() and file.read_text().count(self.old) == 1


FAULTS = [
    # Folders of StallWatch/Linux.
    Fault("a threshold is late by a nanosecond", "StallWatch/Linux/Detection/StallDetector.swift",
          "guard now >= start, now - start >= threshold else {", "guard now >= start, now - start > threshold else {"),
    Fault("a mutex's owner is the number of its users", "StallWatch/Linux/Diagnosis/LockLayouts.swift",
          "UInt32(bitPattern: fields[1]), fields[2], fields[3], fields[4])",
          "UInt32(bitPattern: fields[1]), fields[3], fields[2], fields[4])"),
    Fault("a loop that is always fed has one endless turn", "StallWatch/Linux/Loops/TurnRecorder.swift",
          "        beginTurn(at: now())\n        reachedSources.store(true, ordering: .relaxed)",
          "        reachedSources.store(true, ordering: .relaxed)"),
    Fault("repeats are reported one occurrence early", "StallWatch/Linux/Reporting/RepeatPolicy.swift",
          "while entry.due <= entry.seen { entry.due *= 2 }", "while entry.due < entry.seen { entry.due *= 2 }"),
    Fault("a new report keeps its temporary name", "StallWatch/Linux/Sinks/ReportDirectory.swift",
          "try AtomicFile.replace(name, in: directory, with: bytes, through: temporary)",
          "try AtomicFile.write(bytes, to: temporary, in: directory)"),
    Fault("a service with one healthy loop is never stalled", "StallWatch/Linux/Health/HealthSource.swift",
          "if states.contains(.stalled) { return .stalled }", "if states == [.stalled] { return .stalled }"),
    # The other modules.
    Fault("a wait that a signal interrupts is over", "CLinux/clinux.c",
          "} while (failed != 0 && errno == EINTR);", "} while (0);"),
    Fault("the crash handlers of Swift programs are taken back", "CPreload/run.c",
          "if (!has_swift) restore_crash_handlers(before);", "if (has_swift) restore_crash_handlers(before);"),
    Fault("the end of a turn in C begins one", "CStallWatch/include/CStallWatch.h",
          "void stallwatch_end_turn(void *STALLWATCH_NULLABLE handle);",
          'void stallwatch_end_turn(void *STALLWATCH_NULLABLE handle) __asm__("stallwatch_begin_turn");'),
    Fault("a function ends one byte late", "CSymbols/ranges.c",
          "if (address < range->high) return range;", "if (address <= range->high) return range;"),
    Fault("epoll_wait(2) is not known to return EINTR", "CUnwind/Methods/restarted_calls.c",
          "    {SYS_epoll_wait, false, 0},  // Not on aarch64.\n", ""),
    Fault("a file that is replaced is not renamed", "LinuxSupport/AtomicFile.swift",
          "guard renameat(place, pathBytes(path), place", "guard linkat(place, pathBytes(path), place"),
    Fault("a thread that has run counts as blocked since", "StackCapture/ThreadReading.swift",
          "slices == 0 ? runs != earlier.runs : slices != earlier.slices",
          "slices == 0 ? runs != earlier.runs : slices == earlier.slices"),
    Fault("a kind of lock has another name", "StallReports/StallReport+Cause.swift",
          'Self(rawValue: "pthreadMutex")', 'Self(rawValue: "mutex")'),
    Fault("a guessed frame is the culprit", "StallSymbols/Culprit.swift",
          "let proven = frames.filter { $0.isUncertain != true }", "let proven = frames"),
    Fault("the threshold of a program that runs unchanged is a thousand times as long", "StallWatchAgent/startRun.swift",
          "threshold: .nanoseconds(Int64(clamping: threshold)), loops: loops",
          "threshold: .microseconds(Int64(clamping: threshold)), loops: loops"),
    Fault("a group was last seen when it was first", "StallWatchCLI/Top/StallGroups.swift",
          "lastSeen = max(lastSeen, report.startedAt)", "lastSeen = min(firstSeen, report.startedAt)"),
    Fault("an issue that is excused fails a test of XCTest", "StallWatchTesting/Linux/StallCheck.swift",
          "guard !finding.isExcused, finding.severity == .error else { return }",
          "guard finding.severity == .error else { return }"),
    Fault("XML has a bare ampersand", "TextOutput/Escaping.swift", 'case "&": return "&amp;"', 'case "&": return nil'),
    Fault("the demo makes a freeze that it does not have", "stallwatch-demo/Demo.swift",
          "where !Freeze.all.contains(where: { $0.name == name })", "where !Freeze.all.contains(where: { $0.name != name })"),
]


def make(copy, *arguments):
    """Runs make in the copy; returns its status and output."""
    environment = dict(os.environ, STALLWATCH_TEST_PATIENCE=PATIENCE)
    try:
        done = subprocess.run(
            ["make", "--no-print-directory", BOUND, *arguments], cwd=copy, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as late:
        return 1, (late.stdout or b"").decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
    return done.returncode, done.stdout


def failed_tests(output):
    """Returns the names of the tests that failed, in the order in which they did."""
    found = re.findall(r"^✘ Test (.+?)(?: with \d+ test cases?)? failed after", output, re.MULTILINE)
    return list(dict.fromkeys(name for name in found if not name.startswith("run with ")))


def find(copy, runs_all):
    """Builds the copy and runs its tests; returns the tests that failed by group, or NOT_BUILT."""
    status, output = make(copy, "build-tests")
    if status != 0:
        print("\n".join(line for line in output.splitlines() if "error:" in line), file=sys.stderr)
        return NOT_BUILT
    found = {}
    for group in ["unit-tests", "program-tests", "clock-tests"]:
        status, output = make(copy, group)
        if status != 0:
            found[group] = failed_tests(output) or ["the tests did not end"]
            if not runs_all:
                break
            print(output.rpartition("== Failed")[2], file=sys.stderr)
    return found


def copy_repository(copy):
    """Brings the copy's files up to date and leaves its build products alone."""
    copy.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE).stdout
    names = set(filter(None, listed.decode().split("\0")))
    for folder in ["Sources", "Tests"]:
        for path in (copy / folder).rglob("*"):
            name = path.relative_to(copy)
            if path.is_file() and str(name) not in names and not any(part.startswith(".build") for part in name.parts):
                path.unlink()
    for name in sorted(names):
        source, target = REPOSITORY / name, copy / name
        if not source.is_file():
            continue
        # A file that is the same keeps its time, and is not compiled again.
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copy", type=pathlib.Path, default=REPOSITORY / ".build/mutations")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wrong = [fault for fault in FAULTS if not fault.fits(REPOSITORY)]
    for fault in wrong:
        print(f"{fault.path} does not have exactly one: {fault.old}. Change FAULTS in {__file__}.", file=sys.stderr)
    if wrong or arguments.check:
        return 2 if wrong else 0
    faults = [fault for fault in FAULTS if not arguments.only or fault.name in arguments.only]
    copy_repository(arguments.copy)
    if found := find(arguments.copy, True):
        print(f"Without a fault the tests are red: {found}", file=sys.stderr)
        return 2
    missed = []
    for fault in faults:
        began = time.monotonic()
        file = arguments.copy / "Sources" / fault.path
        whole = file.read_text()
        file.write_text(whole.replace(fault.old, fault.new))
        try:
            found = find(arguments.copy, arguments.all)
        finally:
            file.write_text(whole)
        if found == NOT_BUILT:
            print(f"{fault.name}: {NOT_BUILT}", file=sys.stderr)
            return 2
        if not found:
            missed.append(fault.name)
        groups = "; ".join(f"{group}: {', '.join(tests)}" for group, tests in found.items()) or "NOT FOUND"
        print(f"{fault.name} ({fault.path}, {time.monotonic() - began:.0f} s): {groups}", flush=True)
    print(f"{len(faults) - len(missed)} of {len(faults)} faults found")
    return 1 if len(missed) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
