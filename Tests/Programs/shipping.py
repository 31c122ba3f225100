#!/usr/bin/env python3
"""Ships made-up reports into a real collector while the collector and `stallwatch ship` are killed.

    Tests/Programs/shipping.py --tool STALLWATCH --demo STALLWATCH-DEMO
        [--reports 10000] [--collector-kills 10] [--ship-kills 5] [--seed 1] [--keep DIR]

The collector is rotel (PyPI). Between it and `ship` stands a relay that notes what the collector acknowledged, and kills:
the collector before a request reaches it, `ship` after the collector has acknowledged a request and before `ship` sees
that. Behind the collector a receiver decodes what it forwards. All listen on the loopback address.

Every report has to be acknowledged at least once, in the order of its directory; a duplicate has to be the same record
with the same id. Requests are decoded with opentelemetry-proto (PyPI). `ship` has to stay under 100 MB. Half of the kills
of the collector are SIGTERM, after which it forwards what it has; what it acknowledged within two seconds before a SIGKILL
it may lose.

Exit status: 0 if everything is right, 1 if not, 69 if a package is missing.
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from checks import Fault, expect
from otlp_receiver import PACKAGES, Server, free_port, records, wait_until

LARGEST_MEMORY = 100_000_000
# What a collector may lose: acknowledged less than this before kill -9, in seconds.
UNFORWARDED = 2


class Collector:
    """rotel, which forwards logs to the receiver."""

    def __init__(self, directory, receiver):
        self.directory, self.receiver = directory, receiver
        self.http, self.grpc = free_port(), free_port()
        self.process = None
        self.starts = 0
        self.is_up = False

    def start(self):
        self.starts += 1
        log = open(self.directory / "collector.log", "ab")
        self.process = subprocess.Popen(
            [PACKAGES / "rotel" / "rotel-agent", "start", "--otlp-http-endpoint", f"127.0.0.1:{self.http}",
             "--otlp-grpc-endpoint", f"127.0.0.1:{self.grpc}", "--exporter", "otlp", "--otlp-exporter-protocol", "http",
             "--otlp-exporter-endpoint", f"http://127.0.0.1:{self.receiver}", "--otlp-exporter-compression", "none",
             "--pid-file", self.directory / "collector.pid", "--log-file", self.directory / "collector.out"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def answers():
            expect(self.process.poll() is None, f"the collector ended with status {self.process.returncode}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.http)) == 0

        wait_until(answers, "the collector listens", 30)
        self.is_up = True

    def stop(self, number):
        self.is_up = False
        self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Ship:
    """`stallwatch ship`, which may be killed and started again."""

    def __init__(self, tool, directories, url, log):
        self.command = [tool, "ship", *directories, "--otlp", url]
        self.log = log
        self.process = None
        self.largest_memory = 0
        self.kills = 0

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.process = subprocess.Popen(self.command, stderr=self.log, stdin=subprocess.DEVNULL, env=environment)

    def note_memory(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                self.largest_memory = max(self.largest_memory, int(line.split()[1]) * 1024)

    def kill(self):
        self.note_memory()
        self.process.kill()
        self.process.wait()
        self.kills += 1


class Trial:
    """The relay's view: what was acknowledged when, and who is killed at which request."""

    def __init__(self, collector, generator):
        self.collector, self.generator = collector, generator
        self.ship = None
        self.lock = threading.Lock()
        self.requests = 0
        # Who is killed next, and from which request on.
        self.kills = []
        self.next_kill = 2
        # id: times and records, in the order of the first acknowledgement.
        self.acknowledged = collections.OrderedDict()
        self.forwarded = {}
        self.killed_at = []
        self.stops = 0
        self.faults = []
        self.is_over = False

    def relay(self, path, headers, body):
        try:
            with self.lock:
                return self.relay_alone(path, body)
        except Fault as fault:
            self.faults.append(str(fault))
            return 500, {}, b""

    def relay_alone(self, path, body):
        expect(path == "/v1/logs", f"the path is {path}")
        if self.is_over or not self.collector.is_up:
            return None, {}, b""
        self.requests += 1
        event = self.kills[0] if self.kills and self.requests >= self.next_kill else None
        if event == "collector":
            self.done_killing()
            number = signal.SIGTERM if self.stops % 2 else signal.SIGKILL
            self.stops += 1
            if number == signal.SIGKILL:
                self.killed_at.append(time.monotonic())
            self.collector.stop(number)
            # Away for some tries.
            threading.Timer(self.generator.uniform(0.2, 1.2), self.restart_collector).start()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=10)
            connection.request("POST", path, body, {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            text = answer.read()
        except OSError:
            return None, {}, b""
        if answer.status == 200:
            now = time.monotonic()
            for identifier, record in records(body):
                self.acknowledged.setdefault(identifier, []).append((now, record))
        if event == "ship" and answer.status == 200:
            self.done_killing()
            self.ship.kill()
            self.ship.start()
        return answer.status, {"Content-Type": answer.getheader("Content-Type", "")}, text

    def restart_collector(self):
        with self.lock:
            if not self.is_over:
                self.collector.start()

    def done_killing(self):
        self.kills.pop(0)
        self.next_kill = self.requests + 3

    def receive(self, path, headers, body):
        try:
            for identifier, record in records(body):
                self.forwarded[identifier] = record
        except Exception as fault:
            self.faults.append(f"what the collector forwarded: {fault}")
        return 200, {"Content-Type": "application/x-protobuf"}, b""


def check(arguments, directory):
    generator = random.Random(arguments.seed)
    stock = directory / "stock"
    subprocess.run(
        [arguments.demo, "generate", "--reports", str(arguments.reports), "--seed", str(arguments.seed), "--output", stock],
        check=True)
    names = sorted(os.listdir(stock))
    identifiers = {name: json.loads((stock / name).read_bytes())["id"] for name in names}
    folders = [directory / "a", directory / "b"]
    for folder in folders:
        folder.mkdir()

    trial = Trial(None, generator)
    receiver = Server(trial.receive)
    relay = Server(trial.relay)
    trial.collector = collector = Collector(directory, receiver.port)
    with open(directory / "ship.log", "ab") as log:
        trial.ship = ship = Ship(arguments.tool, folders, f"http://127.0.0.1:{relay.port}", log)
        kills = ["collector"] * arguments.collector_kills + ["ship"] * arguments.ship_kills
        generator.shuffle(kills)
        trial.kills = list(kills)
        collector.start()
        ship.start()
        began = time.monotonic()
        try:
            portions = max(3 * len(kills), 1)
            size = -(-len(names) // portions)
            for start in range(0, len(names), size):
                for index, name in enumerate(names[start : start + size]):
                    os.rename(stock / name, folders[index % 2] / name)
                expect(not trial.faults, "; ".join(trial.faults))
                # Not while it is being killed and started again.
                with trial.lock:
                    expect(ship.process.poll() is None, f"ship ended with status {ship.process.returncode}")
                if start == 0:
                    wait_until(lambda: trial.acknowledged, "a first report arrives")
                # Until most of them have arrived, so that there are as many requests as planned.
                wait_until(lambda: len(trial.acknowledged) >= start or not trial.kills, "the reports so far arrive")
            wait_until(lambda: len(trial.acknowledged) == len(names) or trial.faults, "all reports arrive")
            expect(not trial.faults, "; ".join(trial.faults))
            expect(not trial.kills, f"{len(trial.kills)} kills were not made: too few requests")
            seconds = time.monotonic() - began
            ship.note_memory()
            ship.process.send_signal(signal.SIGTERM)
            expect(ship.process.wait(30) == 0, f"ship ended with status {ship.process.returncode} after SIGTERM")
            with trial.lock:
                time.sleep(1.5)
                collector.stop(signal.SIGTERM)
        finally:
            with trial.lock:
                trial.is_over = True
                for process in [ship.process, collector.process]:
                    if process and process.poll() is None:
                        process.kill()
    judge(trial, ship, names, identifiers, folders, arguments, seconds)


def judge(trial, ship, names, identifiers, folders, arguments, seconds):
    expect(set(trial.acknowledged) == set(identifiers.values()), "other reports arrived than were written")
    for identifier, copies in trial.acknowledged.items():
        expect(len({record for _, record in copies}) == 1, f"the copies of {identifier} differ")
    place = {identifier: index for index, identifier in enumerate(trial.acknowledged)}
    for folder in folders:
        order = [place[identifiers[name]] for name in names if (folder / name).exists()]
        expect(order == sorted(order), f"the reports of {folder.name} arrived out of order")
    duplicates = sum(len(copies) - 1 for copies in trial.acknowledged.values())
    if arguments.ship_kills:
        expect(duplicates > 0, "no duplicates, so ship was not killed at the right time")
    expect(ship.kills == arguments.ship_kills, f"ship was killed {ship.kills} times")
    expect(trial.collector.starts == arguments.collector_kills + 1, f"the collector was started {trial.collector.starts} times")
    expect(ship.largest_memory < LARGEST_MEMORY, f"ship took {ship.largest_memory} bytes of memory")
    expect(set(trial.forwarded) <= set(place), "the collector forwarded unknown reports")
    lost = [identifier for identifier in place if identifier not in trial.forwarded]
    for identifier in lost:
        times = [time for time, _ in trial.acknowledged[identifier]]
        excused = any(0 <= killed - times[-1] <= UNFORWARDED for killed in trial.killed_at)
        expect(excused, f"the collector did not forward {identifier}, and was not killed after it")
    print(
        f"{len(names)} reports arrived in {seconds:.0f} s with {arguments.collector_kills} kills of the collector and "
        f"{arguments.ship_kills} of ship: {trial.requests} requests, {duplicates} duplicates, all with the same id and content; "
        f"ship took {ship.largest_memory / 1e6:.0f} MB at most. The collector forwarded all but {len(lost)}, which it had in "
        "memory at a kill -9.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--demo", required=True)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--collector-kills", type=int, default=10)
    parser.add_argument("--ship-kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="work in this directory, and leave it")
    arguments = parser.parse_args()
    directory = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-shipping-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        check(arguments, directory)
        return 0
    except Fault as fault:
        print(f"FAILED: {fault}")
        for name in ["ship.log", "collector.log"]:
            if (directory / name).exists():
                print(f"{name}:", *(directory / name).read_text(errors="replace").splitlines()[-15:], sep="\n  ")
        return 1
    finally:
        if not arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
