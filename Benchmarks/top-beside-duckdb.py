#!/usr/bin/env python3
"""Measures `stallwatch top --json` beside the same query in DuckDB, over the same report files, in one run.

    Benchmarks/top-beside-duckdb.py [--reports 50000] [--rounds 3] [--keep DIR] [STALLWATCH]

Writes the reports to a temporary directory, then runs both in turn: DuckDB (PyPI: duckdb) in a process that has loaded it
before the clock starts, with the columns that it needs named in the query; stallwatch as a whole process. Both answer the
same question: for each fingerprint the stalls with their repeats, the reports, the total, the median, the 95th
percentile, the longest, and the cause and culprit of most of the time. The answers have to be equal.

STALLWATCH is the program; by default the release build in .build/release.

Exit status: 0 when the answers are equal, stallwatch takes at most twice DuckDB's time and less than 300 MB; 1 when not; 69
when DuckDB or the program is missing.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
LARGEST_RATIO = 2.0
LARGEST_MEMORY = 300_000_000
CAUSES = ["cpu", "lock", "io", "sleep", "syscall", "paging", "cpuContention"]

QUERY = """
with reports as materialized (
    select * from read_json('{files}', format = 'unstructured', columns = {{
        fingerprint: 'varchar', repeats: 'bigint', durationMilliseconds: 'double',
        cause: 'struct(kind varchar)', culprit: 'struct("function" varchar, file varchar, line bigint)'
    }})
),
causes as (
    select fingerprint, cause.kind as kind, sum(durationMilliseconds) as weight from reports group by all
),
culprits as (
    select fingerprint, culprit, sum(durationMilliseconds) as weight from reports group by all
),
numbers as (
    select fingerprint, count(*) + sum(repeats) as count, count(*) as reports, sum(durationMilliseconds) as total,
        quantile_disc(durationMilliseconds, 0.5) as p50, quantile_disc(durationMilliseconds, 0.95) as p95,
        max(durationMilliseconds) as longest
    from reports group by fingerprint
)
select numbers.*,
    (select arg_max(kind, weight) from causes where causes.fingerprint = numbers.fingerprint) as cause,
    (select arg_max(culprit, weight) from culprits where culprits.fingerprint = numbers.fingerprint) as culprit
from numbers
"""


def frame(generator, image, depth):
    is_in_app = image == 0
    described = {
        "function": f"Module{image}.Type{generator.randrange(40)}.method{generator.randrange(200)}(_:with:and:)",
        "image": image,
        "isInApp": is_in_app,
        "kind": "code",
        "offset": hex(0x10000 + generator.randrange(1 << 22)),
        "symbol": f"$s8Module{image}4Type{generator.randrange(40)}C6method_4with3andySi_S2itFTf4nnd_n{depth}",
    }
    if is_in_app:
        described |= {"column": 17, "file": f"Sources/Module/Type{depth}.swift", "line": generator.randrange(1, 900)}
    return described


def template(generator, number):
    """The text of a report of one kind, as the library writes it, with @words@ where reports of the kind differ."""
    frames = [frame(generator, generator.choice([0, 0, 1, 2, 3]), depth) for depth in range(generator.randrange(24, 60))]
    stack = list(range(len(frames)))
    sample = {
        "atMilliseconds": 250.4, "captureMicroseconds": 181.2, "heldMicroseconds": 0, "isComplete": True, "isValid": True,
        "method": "read", "stack": 0, "threadState": "blocked",
    }
    report = {
        "schemaVersion": 1, "id": "@id@", "kind": "stall", "state": "ended", "startedAt": "@startedAt@",
        "durationMilliseconds": "@duration@", "thresholdMilliseconds": 250, "callout": "timer", "repeats": "@repeats@",
        "fingerprint": f"{generator.getrandbits(64):016x}", "metadata": {"version": "1.4.2", "environment": "production"},
        "process": {
            "name": "notes", "pid": "@pid@", "startedAt": "2026-11-20T07:59:01.000000Z", "startTicks": 123456,
            "executable": "/opt/notes/bin/notes", "architecture": "x86_64", "kernel": "6.18.44", "hostname": "web-3",
            "operatingSystem": "Debian GNU/Linux 12 (bookworm)", "bootID": "5c9d0e2a-0000-4000-8000-000000000000",
        },
        "loop": {
            "label": generator.choice(["main", "storage", "network"]), "kind": "runLoop", "nesting": 0, "turn": 4711,
            "mode": "kCFRunLoopDefaultMode", "thread": {"id": 4700, "name": "notes"},
        },
        "cause": {
            "kind": "@cause@", "summary": "Blocked for 625 of 625 ms in pthread_mutex_lock.", "confidence": "certain",
            "onCPUMilliseconds": 0.109, "runQueueMilliseconds": 0.064, "blockedMilliseconds": 625.005,
            "uncertaintyMilliseconds": 0, "minorFaults": 3, "majorFaults": 0, "voluntarySwitches": 1,
            "involuntarySwitches": 2, "systemCall": {"number": 202, "name": "futex", "target": "0x7f1c2c0012a0"},
        },
        "culprit": {
            "function": f"NoteStore.save{number}(_:)", "image": "notes", "file": "Sources/Notes/NoteStore.swift",
            "line": "@line@",
        },
        "samples": [sample | {"atMilliseconds": 250.4 * 1.5**count} for count in range(generator.randrange(1, 6))],
        "stacks": [stack, stack[3:]],
        "frames": frames,
        "images": [
            {"name": name, "path": f"/usr/lib/{name}", "buildID": f"{generator.getrandbits(160):040x}", "isInApp": name == "notes",
             "baseAddress": "0x55d0c8a00000"}
            for name in ["notes", "libFoundation.so", "libc.so.6", "libdispatch.so"]
        ],
        "monitor": {
            "version": "0.1.0", "watchdogLateMilliseconds": 0.2, "captureMethods": ["read", "ptrace"],
            "suppressed": {"repeated": 5, "rateLimit": 1},
        },
    }
    text = json.dumps(report, indent=2, sort_keys=True, separators=(",", " : ")) + "\n"
    # These are numbers.
    for word in ["@duration@", "@repeats@", "@pid@", "@line@"]:
        text = text.replace(f'"{word}"', word)
    return text


def make_reports(directory, count):
    generator = random.Random(8)
    kinds = [template(generator, number) for number in range(400)]
    # A few kinds make most of the stalls, as in real programs.
    weights = [1 / (rank + 1) for rank in range(len(kinds))]
    size = 0
    for number, text in enumerate(generator.choices(kinds, weights, k=count)):
        second = number % 86400
        stamp = f"2026-11-21T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{number % 1000000:06}Z"
        identifier = f"01936c1e-7a52-7c3e-9d0e-{number:012x}"
        for word, value in [
            ("@id@", identifier), ("@startedAt@", stamp), ("@duration@", f"{generator.lognormvariate(6.5, 0.7):.3f}"),
            ("@repeats@", str(generator.choice([0, 0, 0, 1, 3, 7]))), ("@pid@", str(4700 + number % 5)),
            ("@cause@", generator.choice(CAUSES)), ("@line@", str(generator.randrange(80, 84))),
        ]:
            text = text.replace(word, value)
        name = f"stall-{stamp.replace('-', '').replace(':', '')}-{identifier[-12:]}.json"
        (directory / name).write_text(text)
        size += len(text)
    return size


def run_duckdb(connection, directory):
    began = time.perf_counter()
    rows = connection.execute(QUERY.format(files=f"{directory}/stall-*.json")).fetchall()
    return time.perf_counter() - began, rows


# The peak memory of a process survives execve(2), so stallwatch is started from a small process, which this one is not.
STARTER = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), file=sys.stderr)
"""


def run_stallwatch(program, directory):
    """Wall time, peak resident set in bytes, and the answer."""
    command = [sys.executable, "-S", "-c", STARTER, program, "top", "--json", directory]
    process = subprocess.run(command, capture_output=True, check=True)
    seconds, peak, status = process.stderr.split()[-3:]
    if int(status) != 0:
        sys.exit(f"{program} ended with status {int(status)}")
    return float(seconds), int(peak), json.loads(process.stdout)


def differences(rows, answer):
    """Returns the groups in which the two answers differ, in words."""
    groups = {group["fingerprint"]: group for group in answer["groups"]}
    found = [] if len(rows) == len(groups) else [f"{len(rows)} groups in DuckDB, {len(groups)} in stallwatch"]
    for fingerprint, count, reports, total, p50, p95, longest, cause, culprit in rows:
        group = groups.get(fingerprint)
        if group is None:
            found.append(f"{fingerprint} is missing")
            continue
        theirs = (count, reports, round(total, 3), p50, p95, longest, cause, culprit)
        ours = (
            group["count"], group["reports"], group["totalMilliseconds"], group["p50Milliseconds"],
            group["p95Milliseconds"], group["maxMilliseconds"], group["cause"],
            {key: group["culprit"][key] for key in ("function", "file", "line")},
        )
        # Sums of the same numbers in another order.
        if abs(ours[2] - theirs[2]) > 0.002 or ours[:2] + ours[3:] != theirs[:2] + theirs[3:]:
            found.append(f"{fingerprint}: {theirs} in DuckDB, {ours} in stallwatch")
    return found


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="write the reports to this directory, or use those that it has")
    parser.add_argument("program", nargs="?", default=str(REPOSITORY / ".build" / "release" / "stallwatch"))
    options = parser.parse_args()
    try:
        import duckdb
    except ImportError:
        print("DuckDB is missing: pip install duckdb", file=sys.stderr)
        return 69
    if not os.access(options.program, os.X_OK):
        print(f"{options.program} is missing: swift build -c release --product stallwatch", file=sys.stderr)
        return 69

    with tempfile.TemporaryDirectory(prefix="stallwatch-top-") as temporary:
        directory = pathlib.Path(options.keep or temporary)
        directory.mkdir(exist_ok=True)
        if not any(directory.iterdir()):
            size = make_reports(directory, options.reports)
            print(f"{options.reports} reports, {size / 1e6:.0f} MB")
        connection = duckdb.connect()
        theirs, ours, memory, wrong = [], [], 0, []
        for number in range(options.rounds):
            seconds, rows = run_duckdb(connection, directory)
            theirs.append(seconds)
            seconds, peak, answer = run_stallwatch(options.program, directory)
            ours.append(seconds)
            memory = max(memory, peak)
            wrong = wrong or differences(rows, answer)
            print(f"round {number + 1}: DuckDB {theirs[-1]:.2f} s, stallwatch {seconds:.2f} s, peak {peak / 1e6:.0f} MB")
    ratio = median(ours) / median(theirs)
    print(f"{len(rows)} groups in {answer['reports']} reports; DuckDB {duckdb.__version__}")
    print(f"stallwatch / DuckDB, medians: {ratio:.2f} (asked: at most {LARGEST_RATIO})")
    print(f"peak memory: {memory / 1e6:.0f} MB (asked: under {LARGEST_MEMORY / 1e6:.0f})")
    for difference in wrong[:10]:
        print(difference, file=sys.stderr)
    print("the answers are equal" if not wrong else f"{len(wrong)} groups differ")
    return 0 if not wrong and ratio <= LARGEST_RATIO and memory < LARGEST_MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
