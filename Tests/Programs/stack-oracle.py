#!/usr/bin/env python3
"""Compares captured stacks with what the threads know of their stacks, and with gdb.

    Tests/Programs/stack-oracle.py [--count 500] [--seed 1] [--kind NAME...] [--folder .build/stack-oracle]

Builds Tests/Support/StackOracle in many ways, each at a random level of optimization: without call frame information, by each
linker that is there, as a program, a library, or a library in a namespace of its own. Its threads sit at a random depth of
random functions in C, assembly and copied code. The engine captures each by read and by ptrace, with libunwind and with its
own unwinder, until there are COUNT captures. A fault is:

- a frame without the mark `is_uncertain` that is not the next one of the thread's true stack, or a mark that is lost outwards;
- a stack that counts as complete, which has no marked frame, and lacks a function that has called another one;
- a frame without the mark that gdb, with all debug information, contradicts before it comes to code without any;
- no larger share of frames without the mark once the engine has the section `.debug_frame` (kind `debug-frame`).

Prints by kind of build the captures, frames, frames without the mark, faults, complete and incomplete stacks; `holes`: incomplete
stacks that end at the thread's first function and lack frames outward of a mark; `gdb`: frames of gdb. Then each sort of fault,
and how to see it again.
Exit status: 0 without a fault, 1 with one, 69 when something is missing.
"""

import argparse
import bisect
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading

from checks import REPOSITORY

SOURCES = REPOSITORY / "Tests/Support/StackOracle"
THREADS = 8
SECONDS = 300
NONE = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
MOVED = "-Wl,-Ttext-segment=0x10000000"
# name: form, compiler, options. `strip` is a step after the linker; `file` gives `.debug_frame` to the engine.
KINDS = {
    "cfi-bfd": ("program", "gcc", ["-fuse-ld=bfd"]),
    "cfi-gold": ("library", "gcc", ["-fuse-ld=gold"]),
    "cfi-lld": ("program", "clang", ["-fuse-ld=lld"]),
    "cfi-mold": ("program", "gcc", ["-fuse-ld=mold"]),
    "bfd": ("program", "gcc", [*NONE, "-fuse-ld=bfd"]),
    "gold": ("program", "gcc", [*NONE, "-fuse-ld=gold"]),
    "lld": ("program", "clang", [*NONE, "-fuse-ld=lld"]),
    "mold": ("library", "clang", [*NONE, "-fuse-ld=mold"]),
    "stripped": ("program", "gcc", [*NONE, "-fomit-frame-pointer", "strip"]),
    "stripped-library": ("library", "clang", [*NONE, "-fomit-frame-pointer", "-fuse-ld=lld", "strip"]),
    "frame-pointers": ("library", "clang", [*NONE, "-fno-omit-frame-pointer", "-fuse-ld=lld"]),
    "no-table": ("library", "gcc", ["-Wl,--no-eh-frame-hdr", "strip"]),
    "fixed-address": ("program", "gcc", [*NONE, "-fno-pie", "-no-pie"]),
    "moved-bfd": ("library", "gcc", [*NONE, "-fuse-ld=bfd", MOVED]),
    "moved-gold": ("library", "gcc", ["-fuse-ld=gold", "-Wl,-Ttext=0x10000000"]),
    "moved-lld": ("library", "clang", [*NONE, "-fuse-ld=lld", "-Wl,--image-base=0x10000000"]),
    "one-segment": ("program", "clang", [*NONE, "-fuse-ld=lld", "-Wl,--no-rosegment"]),
    "dlmopen": ("namespace", "gcc", [*NONE, "strip"]),
    "dlmopen-moved": ("namespace", "gcc", ["-fuse-ld=bfd", MOVED]),
    "static": ("program", "gcc", [*NONE, "-static"]),
    "debug-frame": ("library", "gcc", [*NONE, "file"]),
    "debug-frame-clang": ("program", "clang", [*NONE, "-fuse-ld=lld", "file"]),
}
LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"]
EXTRAS = ["-g", "-fno-omit-frame-pointer", "-fomit-frame-pointer", "-fcf-protection=full", "-mno-red-zone",
          "-fstack-clash-protection", "-fstack-protector-all"]
COMPLETE = 0
# Held while threads are captured, of which some compute: two programs at a time would wait for each other's.
CAPTURING = threading.Lock()
COLUMNS = ["captures", "frames", "unmarked", "faults", "complete", "incomplete", "holes", "gdb"]


def output_of(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, text=True, capture_output=True, **options).stdout


def build_engine(folder):
    """Compiles the engine as a package does, and the host. Returns the object files."""
    folder.mkdir(parents=True, exist_ok=True)
    engine = REPOSITORY / "Sources/CUnwind"
    sources = [*sorted(engine.rglob("*.c")), SOURCES / "host.c"]
    output_of(CLANG, "-std=gnu11", "-O2", "-g", "-c", f"-I{engine}", f"-I{engine}/include", *sources, cwd=folder)
    output_of(CLANG, *(f"{source.stem}.o" for source in sources), "-o", "host", "-lpthread", "-ldl", cwd=folder)
    return [folder / f"{source.stem}.o" for source in sources]


class Run:
    """The functions, built in one way; what the host prints of its threads; and what gdb says of them."""

    def __init__(self, kind, seed, engine, folder):
        self.truth, self.captures, self.witness, self.blocked = {}, [], {}, set()
        form, compiler, options = KINDS[kind]
        choice = random.Random(f"{kind} {seed}")
        self.options = [*options, choice.choice(LEVELS), choice.choice(EXTRAS)]
        self.build(folder / kind, form == "program", CLANG if compiler == "clang" else compiler, engine)
        program, *loaded = {"program": [kind], "library": ["host", folder / kind],
                            "namespace": ["host", folder / kind, "namespace"]}[form]
        command = [folder / program, THREADS, choice.randrange(1 << 30), *loaded]
        environment = {**os.environ, "DEBUG_FRAME": f"{folder / kind}.frame"} if "file" in options else None
        with CAPTURING:
            host = subprocess.Popen(
                list(map(str, command)), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            bound = threading.Timer(SECONDS, host.kill)
            bound.start()
            try:
                for words in map(str.split, iter(host.stdout.readline, "ready\n")):
                    if not words:
                        raise RuntimeError(f"the host of {kind}, seed {seed}, ended with status {host.wait()}")
                    self.add(words[0], words[1:])
                if GDB:
                    self.ask_gdb(host.pid)
            finally:
                bound.cancel()
                host.kill()
                host.wait()

    def build(self, file, is_program, compiler, engine):
        options = ["-g", "-w", f"-I{SOURCES}", *(each for each in self.options if each not in ("strip", "file"))]
        options += engine if is_program else ["-fPIC", "-shared"]
        output_of(compiler, SOURCES / "chain.c", SOURCES / "assembly.S", *options, "-o", file, "-lpthread", "-ldl")
        symbols = [line.split() for line in output_of("nm", "--defined-only", file).splitlines()]
        self.symbols = sorted((int(words[0], 16), words[2]) for words in symbols if words[2].startswith(("asm_", "c_", "chain_")))
        if "file" in self.options:
            output_of("objcopy", "--dump-section", f".debug_frame={file}.frame", file)
        if "strip" in self.options:
            output_of("objcopy", "--only-keep-debug", file, f"{file}.debug")
            output_of("strip", file)
            output_of("objcopy", f"--add-gnu-debuglink={file}.debug", file)

    def add(self, word, words):
        if word == "code":
            self.low, self.high, place, *self.copy = map(int, words)
            self.bias = place - next(value for value, name in self.symbols if name == "chain_prepare")
        elif word == "capture":
            self.captures.append((words[0], int(words[1]), words[2], int(words[3]), []))
            self.blocked |= {(words[0], int(words[1]))} if words[2] == "read" else set()
        elif word == "frame":
            self.captures[-1][4].append(tuple(map(int, words)))
        elif word == "thread":
            self.entries = self.truth[int(words[0])] = []
        elif word == "entry":
            self.entries.append(tuple(map(int, words)))

    def ask_gdb(self, pid):
        script = REPOSITORY / "Tests/Support/Stacks/backtraces.py"
        command = [GDB, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", pid, "-x", script]
        ended = set()
        for line in output_of(*command, stdin=subprocess.DEVNULL, timeout=SECONDS).splitlines():
            word, thread, *rest = [*line.split(maxsplit=3), "", ""]
            if word not in ("frame", "unknown") or thread in ended:
                continue
            if word == "frame":
                self.witness.setdefault(int(thread), []).append(int(rest[0]))
            # Outward of code without information gdb guesses.
            if word == "unknown" or rest[1].startswith("asm_") or rest[1].endswith("@plt"):
                ended.add(thread)

    def name(self, address, is_exact=False):
        """The function of the chain at an address, or None. A return address may be the first one after its function."""
        place = address if is_exact else address - 1
        low, high, original = self.copy
        if low <= place < high:
            return "copied " + self.name(place - low + original, True)
        index = bisect.bisect_right(self.symbols, (place - self.bias, "~")) - 1
        return self.symbols[index][1].split(".")[0] if self.low <= place < self.high else None


def first_fault(run, entries, frames):
    """Follows frames without a mark, innermost first, along the true stack. Returns the first that is wrong, or None."""
    names, at, is_in_owner = [run.name(address, exact) for address, exact, *_ in frames], 0, False
    for index in range(len(entries) - 1, -1, -1):
        caller, owner = entries[index][0], run.name(entries[index][1], True)
        if not is_in_owner:
            # Inward of its own frame are functions of libraries that it has called, or short ones if it is the innermost.
            short = (f"{owner}_t",) if index == len(entries) - 1 else ()
            while at < len(frames) and (names[at] is None or names[at].startswith(short)):
                at += 1
            if at < len(frames) and names[at] != owner:
                return at, f"{owner} is missing"
            at += 1
        if at >= len(frames):
            return None
        if frames[at][0] != caller:
            return at, f"the caller of {owner} is not {run.name(caller) or 'in a library'}"
        is_in_owner = names[at] is not None
        at += 1
    return next(((index, "nothing calls the first function") for index in range(at, len(frames)) if names[index]), None)


def is_whole(end, frames):
    """Returns whether a report calls the stack complete (CapturedStack.isWhole)."""
    return end == COMPLETE and not any(frame[2] for frame in frames)


def faults_of(run, unwinder, thread, end, frames):
    """Yields what is wrong in a capture."""
    def called(frame):
        return run.name(*frame[:2]) or "a library"
    entries = run.truth[thread]
    sure = frames[:next((index for index, frame in enumerate(frames) if frame[2]), len(frames))]
    if not all(frame[2] for frame in frames[len(sure):]):
        yield "a frame outward of a guess has no mark"
    fault = first_fault(run, entries, sure)
    if fault:
        frame = sure[fault[0]]
        yield f"{fault[1]}, but {called(frame)} (source {frame[3]})"
    addresses = {frame[0] for frame in frames}
    if is_whole(end, frames) and any(entry[0] not in addresses for entry in entries):
        yield f"complete without all functions: the outermost is {called(frames[-1])}"
    witness, seen, known = run.witness.get(thread, []), [frame[0] for frame in sure], entries[-1][0]
    # A thread that computes has moved since: compare from the return address of its innermost function.
    if (unwinder, thread) not in run.blocked:
        witness, seen = ([] if known not in each else each[each.index(known):] for each in (witness, seen))
    different = next((pair for pair in zip(witness, seen) if pair[0] != pair[1]), None)
    if different and not fault:
        yield f"gdb has {called((different[0], 0))}, not {called((different[1], 0))}"


def main(pool):
    engine, seed, kinds = build_engine(ARGUMENTS.folder), ARGUMENTS.seed, ARGUMENTS.kind or list(KINDS)
    sums, before = ({kind: collections.Counter() for kind in kinds} for _ in range(2))
    faults = collections.defaultdict(list)
    while kinds and sum(each["captures"] for each in sums.values()) < ARGUMENTS.count:
        runs = {kind: pool.submit(Run, kind, seed, engine, ARGUMENTS.folder) for kind in kinds}
        for kind, begun in runs.items():
            try:
                run = begun.result()
            except (subprocess.CalledProcessError, FileNotFoundError) as error:
                print(f"➜ Test {kind} not run: {(getattr(error, 'stderr', '') or str(error)).strip().splitlines()[-1]}")
                kinds.remove(kind)
                del sums[kind]
                continue
            for unwinder, thread, method, end, frames in run.captures:
                found, addresses = list(faults_of(run, unwinder, thread, end, frames)), {frame[0] for frame in frames}
                lacks = any(entry[0] not in addresses for entry in run.truth[thread])
                (before if unwinder == "before" else sums)[kind].update(
                    captures=1, frames=len(frames), unmarked=sum(not frame[2] for frame in frames), faults=len(found),
                    complete=is_whole(end, frames), incomplete=not is_whole(end, frames), holes=end == COMPLETE and lacks,
                    gdb=len(run.witness.get(thread, [])))
                for text in found:
                    faults[text].append(f"--kind {kind} --seed {seed} ({' '.join(run.options)}), {method}, {unwinder}")
        seed += 1
    print(" " * 18 + "".join(f"{column:>11}" for column in COLUMNS))
    for kind, row in [*sums.items(), ("all", sum(sums.values(), collections.Counter()))]:
        print(f"{kind:18}" + "".join(f"{row[column]:11}" for column in COLUMNS))
    for kind, row in before.items():
        if row["captures"]:
            was, now = (each["unmarked"] / each["frames"] for each in (row, sums[kind]))
            print(f"{kind}: {now:.0%} of the frames have no mark, {was:.0%} before .debug_frame was read")
            if now <= was:
                faults["reading .debug_frame removes no mark"].append(f"--kind {kind}")
    for text, places in sorted(faults.items(), key=lambda each: -len(each[1])):
        print(f"{len(places)}: {text}\n    {places[0]}")
    if not GDB:
        print("➜ Test of stacks against gdb not run: it is not installed")
    sys.exit(1 if faults else 0 if kinds else 69)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", nargs="+", choices=KINDS)
    parser.add_argument("--folder", type=lambda path: pathlib.Path(path).resolve(), default=REPOSITORY / ".build/stack-oracle")
    ARGUMENTS = parser.parse_args()
    swift = shutil.which("swift")
    CLANG = shutil.which("clang", path=os.path.dirname(os.path.realpath(swift)) if swift else None) or shutil.which("clang")
    GDB = shutil.which("gdb")
    if not CLANG or os.uname().machine != "x86_64":
        print("the stack oracle needs clang and x86-64", file=sys.stderr)
        sys.exit(69)
    # Compilers take half of the time, and no file is that of two kinds.
    builds = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    try:
        main(builds)
    finally:
        # After an error no other kind is built.
        builds.shutdown(wait=False, cancel_futures=True)
