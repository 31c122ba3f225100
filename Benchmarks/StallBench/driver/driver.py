#!/usr/bin/env python3
"""The driver in Python: an asyncio loop that stalls, with the same truth, heartbeat and plugins as the other drivers.

    driver.py --list | python SEED [,CASE,CASE,]
"""
import asyncio
import importlib.util
import inspect
import json
import mmap
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time

now = time.monotonic


class Driver:
    def __init__(self):
        self.truth = self.plugin = None
        self.heartbeat = bytearray(24)
        self.turns, self.began, self.longest = 0, 0.0, 0.0

    def start(self):
        if path := os.environ.get("STALLBENCH_TRUTH"):
            self.truth = socket.socket(socket.AF_UNIX)
            self.truth.connect(path)
        if path := os.environ.get("STALLBENCH_HEARTBEAT"):
            with open(path, "r+b") as file:
                self.heartbeat = mmap.mmap(file.fileno(), 0)
        if path := os.environ.get("STALLBENCH_PLUGIN"):
            spec = importlib.util.spec_from_file_location("plugin", path)
            self.plugin = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.plugin)
            self.plugin.plugin_start(float(os.environ["STALLBENCH_THRESHOLD"]) / 1e3, os.environ["STALLBENCH_OUTPUT"])
        self.tell(set="python", pid=os.getpid())

    def tell(self, **values):
        if self.truth:
            self.truth.sendall(json.dumps(values).encode() + b"\n")

    def begin_turn(self):
        self.turns += 1
        self.began = now()
        struct.pack_into("=QQii", self.heartbeat, 0, int(self.began * 1e9), self.turns, os.getpid(),
                         threading.get_native_id())
        if self.plugin:
            self.plugin.plugin_begin_turn()

    def end_turn(self):
        if self.began:
            self.longest = max(self.longest, now() - self.began)
            if self.plugin:
                self.plugin.plugin_end_turn()
        self.began = 0.0
        struct.pack_into("=Q", self.heartbeat, 0, 0)


driver = Driver()


def parse_rows(seconds):
    until, total = now() + seconds, 0
    while now() < until:
        total += sum(range(50))


def retry_later(seconds):
    time.sleep(seconds)


def save_document(seconds):
    lock, is_held = threading.Lock(), threading.Event()

    def keep_it():
        with lock:
            driver.tell(**{"owner": threading.get_native_id(), "owner name": "saver", "owner function": "keep_it"})
            is_held.set()
            time.sleep(seconds)

    threading.Thread(target=keep_it, name="saver").start()
    is_held.wait()
    with lock:
        pass


def receive_reply(seconds):
    one, other = socket.socketpair()
    threading.Timer(seconds, other.send, [b"x"]).start()
    one.recv(1)


def run_script(seconds):
    subprocess.run(["sleep", str(seconds)], check=True)


def wait_for_worker(seconds):
    worker = threading.Thread(target=time.sleep, args=[seconds])
    worker.start()
    worker.join()


def sort_rows(seconds):
    until = now() + seconds
    rows = list(range(2000))
    while time.monotonic() < until:
        rows.sort(key=lambda row: -row)


def draw_frame(seconds):
    parse_rows(seconds)


# name, function, cause, seconds, turns, pause; without a cause it is healthy.
CASES = [
    ("python-cpu", parse_rows, "cpu", 0.25, 1, 0),
    ("python-sort", sort_rows, "cpu", 0.4, 1, 0),
    ("python-short", retry_later, "sleep", 0.12, 1, 0),
    ("python-sleep", retry_later, "sleep", 1, 1, 0),
    ("python-lock", save_document, "lock", 0.25, 1, 0),
    ("python-join", wait_for_worker, "lock", 0.25, 1, 0),
    ("python-socket", receive_reply, "io", 0.25, 1, 0),
    ("python-child", run_script, "child", 0.25, 1, 0),
    ("python-game", draw_frame, "", 0.015, 35, 0.001),
    ("python-burst", draw_frame, "", 0.05, 4, 0.003),
]


def tell_begin(name, function, cause, seconds):
    driver.longest = 0.0
    driver.tell(case=name, function=function.__name__, file="driver.py", line=inspect.getsourcelines(function)[1],
                cause=cause, milliseconds=round(seconds * 1000), healthy=not cause, thread=threading.get_native_id(),
                start=now())


def tell_end():
    end = now()
    driver.tell(end=end, early=0, stopped=-1, longest=max(driver.longest, end - driver.began))


async def run(cases, generator):
    await asyncio.sleep(int(os.environ.get("STALLBENCH_FIRST_PAUSE", "400")) / 1e3)
    for name, function, cause, seconds, turns, pause in cases:
        for turn in range(turns):
            if cause or turn == 0:
                tell_begin(name, function, cause, seconds)
            function(seconds)
            if cause or turn == turns - 1:
                tell_end()
            await asyncio.sleep(pause if turn < turns - 1 else generator.uniform(0.08, 0.13))


class Selector(selectors.DefaultSelector):
    """Tells when the loop waits."""

    def select(self, timeout=None):
        driver.end_turn()
        ready = super().select(timeout)
        driver.begin_turn()
        return ready


def main():
    if sys.argv[1:] == ["--list"]:
        for name, function, cause, seconds, turns, _ in CASES:
            line = inspect.getsourcelines(function)[1]
            print(f"{'python':<7} {name:<20} {cause or 'healthy':<9} {seconds * 1000:4.0f} ms x {turns:<3} "
                  f"{function.__name__} at driver.py:{line}")
        return
    generator = random.Random(int(sys.argv[2]))
    cases = [case for case in CASES if len(sys.argv) < 4 or f",{case[0]}," in sys.argv[3]]
    generator.shuffle(cases)
    driver.start()
    loop = asyncio.SelectorEventLoop(Selector())
    loop.run_until_complete(run(cases, generator))
    driver.end_turn()
    driver.tell(done=True)


if __name__ == "__main__":
    main()
