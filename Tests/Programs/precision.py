#!/usr/bin/env python3
"""Judges what reports say without a mark (likely, possible, uncertain) by what is true of them.

    Tests/Programs/precision.py [--write SHARES] [--against SHARES] FOLDER...

Each FOLDER has reports, also in subfolders, and their truth: truth.ndjson, as `stallwatch-scenarios mix`, the published
packages and StallBench write it, or summary.json of the scenarios. A line of the truth has the report's id or file
name, and some of these; what it leaves out is not judged:

    kinds, lock      the kinds of cause, each of which is right; the kind of lock
    chain, image     the app's innermost functions, each with its caller, and the library that they are in
    culprits         without a chain: the functions that may be the culprit
    calls            a pattern for the calls and the functions of libraries that the report may name
    owners, places   the threads that own the locks, by id or name, first the one that is waited for; their functions
    holder, peers    a thread without a lock, and the processes, that the loop waits for
    target, times    what the call acts on, and the milliseconds that it may have asked for
    callout, thread, milliseconds, onCPU, ready      of the stalled turn

Prints the false claims and the shares. --write keeps the shares; with --against, it is a fault if one has fallen by
more than a tenth. Exit status: 0 if all claims are true and 98 % of the stalls have a report, 1 if not.
"""

import argparse
import collections
import json
import pathlib
import re
import sys

from checks import REPOSITORY

# Functions of the scenarios' program, and of mix.c, that are between a thread's first function and those of the truth.
CALLERS = re.compile(r"((Stall)?Mix\w*|DrivenLoop|MainLoop|LoopThread|LoopSource|Source0|DispatchQueue|NamedThread"
                     r"|ThreadLock|HolderActivity|Program|\w*Command)\b"
                     r"|(hold_(on_thread|second)|mix_hold|\w*_[Mm]ain\w*|main)$")
# The call in which a holder's function waits; none if it computes.
DOES = {"holder_nap": "(clock_)?nanosleep", "sleepTooLong": "(clock_)?nanosleep", "holder_wait": "futex",
        "holder_compute": "", "spinTheCPU": ""}
# Words of sentences that follow "in" and are no names.
PROSE = {"the", "all", "its", "a", "an", "this", "which", "waits", "closure", "static", "variable"}
# What is also true where the functions that tell the kinds apart have no names.
ALSO = {"swiftMutex": "futex", "dispatchSemaphore": "semaphore"}
# Builds of mix.c that show the names of exported functions only. Without debug information they count as dependencies,
# and the function to look at is the one that calls them.
STRIPPED = ("mix-stripped.so", "mix-bare.so")
PROGRAM = "stallwatch-scenarios"
SOURCES = {path.name: path for folder in ("Tests/ScenarioKit", "Tests/Samples/Cases/C", "Tests/Samples/RealPackages")
           for path in (REPOSITORY / folder).rglob("*.*") if path.suffix in (".swift", ".c", ".cpp")}


def base(function):
    """`Type.name` of a function as reports write it; of a closure, that of the function around it."""
    outer = re.sub(r"^.* (in|of) (?=\S)", "", function.split("@")[0])
    return re.sub(r"[(<].*", "", re.sub(r"\b(static|specialized) ", "", outer))


def is_one_of(function, names):
    return any(re.search(rf"(^|\.){re.escape(base(name))}($|\.)", base(function)) for name in names)


def lines_of(function, file):
    """The numbers of the lines of all functions with that name in a source file; none if the file is not known."""
    name, found = re.escape(base(function).split(".")[-1]), set()
    lines = SOURCES[file].read_text().splitlines() if file in SOURCES else []
    for first, line in enumerate(lines):
        if not re.search(rf"func {name}[(<]|^[A-Za-z].*[ *]{name}\(", line) or line.endswith(";"):
            continue
        end = re.match(" *", line)[0] + "}"
        last = first if line.endswith("}") else next((n for n in range(first, len(lines)) if lines[n] == end), first)
        found.update(range(first + 1, last + 2))
    return found


class Judge:
    def __init__(self):
        self.false, self.claims, self.counts = [], collections.Counter(), collections.Counter()
        self.is_program_stripped = False

    def claim(self, what, right, said):
        self.claims[what] += 1
        if not right:
            self.false.append(f"{self.report['path']} ({self.truth.get('case', 'no name')}): {what}: {said}")

    def judge(self, report, truth):
        self.report, self.truth = report, truth
        self.is_stripped = truth.get("image", "none" if self.is_program_stripped else "") in (*STRIPPED, "none")
        cause = report.get("cause", {"confidence": "without a cause"})
        owners = cause.get("lock", {}).get("owners", [])
        self.counts.update(["reports", cause["confidence"]] + ["culprit"] * ("culprit" in report))
        self.counts.update((["owned"] + ["owner"] * bool(owners)) * bool(truth.get("owners")))
        self.judge_culprit()
        self.judge_turn(cause)
        if "owners" in truth:
            self.judge_owners(owners)
        if "chain" in truth:
            self.judge_stacks()
        if cause["confidence"] == "certain":
            self.judge_cause(cause)
            if "calls" in truth:
                self.judge_sentence(cause["summary"])

    def judge_culprit(self):
        culprit, chain = self.report.get("culprit"), self.truth.get("chain", [])
        wanted = self.truth.get("culprits") or chain[:None if self.is_stripped else 1]
        if not culprit or not wanted:
            return
        right = is_one_of(culprit["function"], wanted) or self.is_stripped and CALLERS.match(base(culprit["function"]))
        self.claim("culprit", right, f"{culprit['function']}, not {wanted}")
        lines = lines_of(culprit["function"], pathlib.Path(culprit.get("file", "")).name)
        if lines and "line" in culprit:
            self.claim("line", culprit["line"] in lines, f"{culprit['file']}:{culprit['line']}")

    def judge_turn(self, cause):
        report, truth = self.report, self.truth
        thread = report["loop"].get("thread", {}).get("id")
        for what, said in (("callout", report.get("callout")), ("thread", thread)):
            if truth.get(what) and said:
                self.claim(what, said == truth[what], f"{said}, not {truth[what]}")
        if report["state"] != "ended" or "milliseconds" not in truth:
            return
        earlier = report.get("startUncertaintyMilliseconds", 0)
        slack = max(5, truth["milliseconds"] / 20) + truth.get("ready", 0)
        longer = report["durationMilliseconds"] - truth["milliseconds"]
        self.claim("duration", -slack - earlier <= longer <= slack, f"{longer:.1f} ms more than it was")
        if "onCPU" in truth and "kind" in cause and not earlier:
            more = cause["onCPUMilliseconds"] - truth["onCPU"]
            self.claim("CPU time", abs(more) <= slack + cause["uncertaintyMilliseconds"], f"{more:.1f} ms more")

    def judge_cause(self, cause):
        truth, kinds = self.truth, " ".join(self.truth.get("kinds", [])).split()
        for time, kind in (("onCPU", "cpu"), ("ready", "cpuContention")):
            kinds += [kind] * (truth.get(time, 0) > 0.45 * truth.get("milliseconds", 1e9))
        if kinds:
            self.claim("cause", cause["kind"] in kinds, f"{cause['kind']}, not {kinds}")
        if truth.get("lock") and "lock" in cause:
            kinds = [truth["lock"]] + [ALSO.get(truth["lock"])] * self.is_program_stripped
            self.claim("lock", cause["lock"]["kind"] in kinds, f"{cause['lock']['kind']}, not {kinds}")
        for call in filter(None, (cause.get("systemCall"), cause.get("otherCall"))):
            self.judge_call(call, truth.get("calls", ".*"), truth.get("target"))

    def judge_owners(self, owners):
        # Of the scenarios only the first owner is known.
        for index, owner in enumerate(owners if "chain" in self.truth else owners[:1]):
            name, thread = self.truth["owners"][index:index + 1], owner["thread"]
            self.claim("owner", name and name[0] in (thread["id"], thread.get("name")), f"{thread}, not {name}")
            place = self.truth["places"][index:index + 1]
            if not name or not place:
                continue
            # One that is at the end of its wait may be said to have been blocked.
            time = owner.get("time", {"observedMilliseconds": 0, "onCPUMilliseconds": 0})
            is_running = owner["isRunning"] and time["onCPUMilliseconds"] * 2 >= time["observedMilliseconds"]
            self.claim("owner's state", not is_running or not DOES[place[0]], f"running in {place}")
            if "systemCall" in owner:
                self.judge_call(owner["systemCall"], DOES[place[0]], None)
            for depth, frame in enumerate(self.proven(owner.get("stack"))):
                is_caller = CALLERS.match(base(frame["function"])) and (depth > 0 or self.is_stripped)
                right = is_caller or depth == 0 and is_one_of(frame["function"], place)
                self.claim("owner's frame", right, f"{frame['function']} at {depth}, not of {place}")

    def judge_call(self, call, pattern, target):
        self.claim("call", re.fullmatch(pattern, call["name"]), f"{call['name']}, not {pattern}")
        said, times = call.get("target", ""), self.truth.get("times")
        if times and (time := re.fullmatch(r"([\d.]+) ms", said)):
            self.claim("time", any(abs(float(time[1]) - one) <= 3 for one in times), f"{said}, not {times}")
        elif said and target and said != "anon_inode:[eventpoll]":
            self.claim("target", said.removesuffix(" (deleted)") == target, f"{said}, not {target}")
        for peer in call.get("peers", []) if "peers" in self.truth else []:
            self.claim("peer", peer.get("pid") in self.truth["peers"], f"{peer}, not {self.truth['peers']}")
            if "thread" in peer and "holder" in self.truth:
                self.claim("peer's thread", peer["thread"]["id"] == self.truth["holder"], peer["thread"])

    def frames(self, stack):
        """The frames up to the first uncertain one."""
        for index in [] if stack is None else self.report["stacks"][stack]:
            if self.report["frames"][index].get("isUncertain"):
                return
            yield self.report["frames"][index]

    def proven(self, stack):
        """Those of the app that a developer has written."""
        return (frame for frame in self.frames(stack) if frame["isInApp"] and frame["kind"] == "code"
                and "function" in frame and not frame.get("isRuntimeFrame") and not frame.get("compilerGenerated"))

    def judge_stacks(self):
        chain, library = self.truth["chain"], self.truth.get("image")
        for sample in self.report["samples"]:
            # What the thread did right before and after its wait is not known.
            if not sample["isValid"] or not 5 <= sample["atMilliseconds"] <= self.report["durationMilliseconds"] - 5:
                continue
            stack, images = sample.get("stack"), self.report["images"]
            # The mix reads the thread's times within its turn.
            if any(frame["function"].startswith("cunwind_thread_") for frame in self.proven(stack)):
                continue
            for depth, frame in enumerate(self.proven(stack)):
                is_caller = CALLERS.match(base(frame["function"])) and (depth > 0 or library)
                right = is_caller or is_one_of(frame["function"], chain)
                self.claim("frame", right, f"{frame['function']} at {depth}, not of {chain}")
            if not library:
                continue
            inner = [frame.get("function") for frame in self.frames(stack)
                     if "image" in frame and images[frame["image"]]["name"] == library]
            right = len(inner) <= len(chain) and all(said in (None, true) for said, true in zip(inner, chain))
            self.claim("chain", right, f"{inner}, not {chain}")

    def judge_sentence(self, text):
        """Each name in the sentence is one of the truth's."""
        truth = self.truth
        names, places = truth.get("chain", []) + truth.get("places", []), truth.get("places", [])
        calls = "|".join([truth["calls"], "(clock_)?nanosleep", *filter(None, (DOES[place] for place in places))])
        threads = [*truth.get("owners", []), truth.get("holder"), truth.get("thread")]
        for thread, name in re.findall(r'(?<!stalled )\bthread (\d+)(?: "([^"]*)")?', text):
            self.claim("sentence", int(thread) in threads or name in threads, f"thread {thread} in: {text}")
        for process in re.findall(r"\b(?:pid|process) (\d+)", text) if "peers" in truth else []:
            self.claim("sentence", int(process) in truth["peers"], f"process {process} in: {text}")
        for file, line in re.findall(r"\(([\w+]+\.(?:swift|c)):(\d+)\)", text):
            right = self.is_stripped or any(int(line) in lines_of(name, file) for name in names)
            self.claim("sentence", right, f"{file}:{line} in: {text}")
        # Without paths, labels, processes and what the kernel calls its own functions.
        plain = re.sub(r'/\S+|"[^"]*"|\S+ \(pid|kernel function \w+', "", text)
        for word in re.findall(r"[A-Za-z_][\w.]*(?=[(<])|\b[a-z]+_\w+|(?<=\bin )[a-z]\w*", plain):
            right = word in PROSE or is_one_of(word, names) or CALLERS.match(word)
            self.claim("sentence", right or re.fullmatch(calls, word.strip("_")), f"{word} in: {text}")


def truths(folder):
    """The lines of a folder's truth; of the scenarios, those of their summary."""
    if (file := folder / "truth.ndjson").exists():
        return [json.loads(line) for line in file.read_text().splitlines()]
    lines = []
    for entry in json.loads((folder / "summary.json").read_text()):
        expected, peer = entry.get("expected") or {}, entry["run"].get("peer")
        line = {"report": pathlib.Path(entry["report"] or "none").name, "case": entry["scenario"], "places": []}
        for key, said in (("kinds", "cause"), ("culprits", "function")):
            line |= {key: [expected[said]]} if said in expected else {}
        if "lock" in expected:
            line |= {"lock": expected["lock"], "owners": [expected["owner"]] if "owner" in expected else []}
        # A deadlock's report names all its owners, of which the scenario knows one.
        if expected.get("cause") == "deadlock":
            line.pop("owners", None)
        if peer:
            line["peers"] = [peer]
        if entry["report"] and entry["result"] != "inconclusive":
            lines.append(line)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--write", type=pathlib.Path, metavar="SHARES")
    parser.add_argument("--against", type=pathlib.Path, metavar="SHARES")
    options = parser.parse_args()
    judge, missing = Judge(), 0
    for folder in options.folders:
        reports = {}
        for path in folder.rglob("stall-*.json"):
            report = json.loads(path.read_text()) | {"path": path}
            reports |= {report["id"]: report, path.name: report}
        # Of the reports of one program.
        names = {frame["function"] for report in reports.values() for frame in report["frames"]
                 if report["images"][frame.get("image", 0)]["name"] == PROGRAM and "function" in frame}
        # Exported functions, as the mix measures with, keep their names.
        judge.is_program_stripped = bool(names) and not any(re.match("sleepTooLong|spinTheCPU", name) for name in names)
        for truth in truths(folder):
            if truth["report"] in reports:
                judge.judge(reports[truth["report"]], truth)
            else:
                missing += truth.get("isLong", True)
    counts, claims = judge.counts, judge.claims.total()
    shares = {name: counts[name] / max(counts["reports"], 1) for name in ("certain", "likely", "possible", "culprit")}
    shares["owner"] = counts["owner"] / max(counts["owned"], 1)
    for fault in judge.false:
        print(fault)
    print("claims:", ", ".join(f"{name} {number}" for name, number in judge.claims.most_common()))
    print("shares:", ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    print(f"{claims - len(judge.false)} of {claims} claims without a mark are true, in {counts['reports']} reports; "
          f"{missing} stalls have no report")
    before = json.loads(options.against.read_text()) if options.against else {}
    fallen = [name for name in ("certain", "culprit", "owner") if shares[name] < 0.9 * before.get(name, 0)]
    for name in fallen:
        print(f"fallen by more than a tenth: {name}, which was {before[name]:.1%}")
    if options.write:
        options.write.write_text(json.dumps(shares, indent=2) + "\n")
    sys.exit(1 if judge.false or fallen or not claims or missing > counts["reports"] / 50 else 0)


if __name__ == "__main__":
    main()
