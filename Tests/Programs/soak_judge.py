"""Judges the reports of hostile-soak.py by the ledgers of its programs, which say how long each turn really was."""

import collections
import datetime
import json
import statistics

# In microseconds, as all times in the ledgers and below.
MILLISECOND, SECOND = 1_000, 1_000_000
THRESHOLD = 250 * MILLISECOND
# The watchdog may give a grace period of 50 ms, and is late itself.
MARGIN = 100 * MILLISECOND
# A queue's heartbeat is sent at a look, half a threshold after the item's begin at most, and is late after a threshold.
QUEUE_MARGIN = THRESHOLD + 2 * MARGIN
# Between the program's clock reads and the monitor's.
SLACK = 50 * MILLISECOND
DURATION_SLACK = 200 * MILLISECOND
# From a stall's begin to its report on disk, on a busy machine.
ON_DISK = 10 * SECOND
# What may come between the middle third and the last one: a few workers with their stacks, and an arena of malloc(3).
LEVELS = {"KB of memory": (16 << 10, 0.1), "descriptors": (8, 0), "threads": (8, 0)}


class Report:
    """What is judged of a report."""

    def __init__(self, fields):
        self.id, self.run, self.kind, self.state = fields["id"], fields["metadata"].get("run"), fields["kind"], fields["state"]
        self.loop, self.is_missed = fields["loop"]["label"], "missingSamplesReason" in fields
        began = datetime.datetime.fromisoformat(fields["startedAt"].replace("Z", "+00:00")).timestamp()
        self.began, self.duration = began * SECOND, fields["durationMilliseconds"] * MILLISECOND
        self.ended = self.began + self.duration

    def __str__(self):
        return f"{self.run}: {self.kind} of {self.loop}, {self.state}, {self.duration / MILLISECOND:.0f} ms ({self.id})"


def read_ledger(path):
    """Returns the turns and the begins of planned stalls, by loop, and the gaps."""
    turns, begins, gaps = collections.defaultdict(list), collections.defaultdict(list), []
    for line in path.read_bytes().splitlines():
        entry = json.loads(line)
        if "gapSince" in entry:
            gaps.append((entry["gapSince"], entry["ended"]))
        elif "ended" in entry:
            turns[entry["loop"]].append(entry)
        else:
            begins[entry["loop"]].append(entry["began"])
    return turns, begins, gaps


def overlap(first, second, slack=SLACK):
    return first[0] - slack <= second[1] and second[0] - slack <= first[1]


def span(report):
    return report.began, report.ended


def is_long(loop, turn):
    margin = QUEUE_MARGIN if loop.startswith("queue") else MARGIN
    return turn["ended"] - turn["began"] >= THRESHOLD + margin


def longest_within(report, turns):
    """Returns the turn of which most is within the report; None if there is none."""
    common = lambda turn: min(turn["ended"], report.ended) - max(turn["submitted"], report.began)
    return max((turn for turn in turns if common(turn) >= -SLACK), key=common, default=None)


def judge(run, reports, totals, faults):
    """Compares a run's reports with its ledger."""
    ledger, file = run.work / f"{run.name}.ledger", run.work / f"{run.name}.statistics"
    if not faults.check(ledger.exists(), f"{run.name} did not begin; see {run.name}.log"):
        return
    turns, begins, gaps = read_ledger(ledger)
    counted = json.loads(file.read_bytes()) if file.exists() else None
    faults.check((counted is None) == (run.killed_at is not None), f"{run.name}: its statistics are missing or strange")
    by_loop = collections.defaultdict(list)
    for report in reports:
        by_loop[report.loop].append(report)
    in_gap = lambda time: any(overlap(gap, time) for gap in gaps)

    lost, excused = [], 0
    for loop, turn in ((loop, turn) for loop in turns for turn in turns[loop] if is_long(loop, turn)):
        if run.killed_at and turn["began"] > run.killed_at - ON_DISK:
            continue
        totals["stalls"] += 1
        time = (turn["began"], turn["ended"])
        if any(overlap(span(report), time) for report in by_loop[loop]):
            continue
        if in_gap(time):
            excused += 1
        else:
            lost.append(f"{run.name}: {loop}, {(time[1] - time[0]) / MILLISECOND:.0f} ms, at {time[0]:.0f}")
    suppressed = sum(counted["suppressed"].values()) if counted else 0
    # They have no report of their own: more than eight on one loop between two looks.
    only_counted = counted["missed"] - sum(report.is_missed for report in reports) if counted else 0
    faults.check(len(lost) <= max(only_counted, 0), f"{run.name}: {len(lost)} stalls lost, and {only_counted} counted: {lost[:5]}")
    faults.check(not counted or excused == 0 or suppressed > 0, f"{run.name}: {excused} stalls in gaps are not counted")
    if counted:
        for name in ["reportsLost", "reportsRemoved", "failedWrites"]:
            faults.check(counted[name] == 0, f"{run.name}: {name} is {counted[name]}: {counted.get('lastWriteError')}")
    totals.update(missed=sum(report.is_missed for report in reports) + max(only_counted, 0), excused=excused)

    for report in reports:
        totals["reports"] += 1
        totals[report.state] += 1
        right = ["ended", "abandoned"] if run.killed_at else ["ended"]
        faults.check(report.state in right, f"{report}: a wrong state")
        turn = longest_within(report, turns[report.loop])
        if turn is None and in_gap(span(report)):
            totals["in gaps"] += 1
        elif turn is None:
            # Of a killed program the end of the last turn is not known.
            last = max(begins[report.loop], default=report.ended + SECOND)
            is_open = run.killed_at is not None and overlap((last, run.killed_at), span(report))
            faults.check(is_open, f"{report}: no turn was so long")
        elif report.loop.startswith("probe") and report.state == "ended" and not in_gap(span(report)):
            least, most = turn["ended"] - turn["began"], turn["ended"] - turn["submitted"]
            is_right = least - DURATION_SLACK <= report.duration <= most + DURATION_SLACK
            faults.check(is_right, f"{report}: it lasted {least / MILLISECOND:.0f} ms")


def judge_levels(run, faults):
    """Compares the medians of the last third of the time with those of the middle third."""
    third = len(run.readings) // 3
    for index, (name, (margin, share)) in enumerate(LEVELS.items()):
        before, after = (
            statistics.median(reading[index] for reading in part)
            for part in (run.readings[third:2 * third], run.readings[2 * third:]))
        print(f"{run.name}: {before:.0f} {name}, and {after:.0f} in the end")
        faults.check(after <= before * (1 + share) + margin, f"{run.name}: {after:.0f} {name}, and {before:.0f} before")
