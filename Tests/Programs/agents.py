#!/usr/bin/env python3
"""Runs syslog-ng with Fleet/agents/syslog-ng.conf while it is killed, and checks that each report arrives.

    Tests/Programs/agents.py --generator PROGRAM [--reports 10000] [--kills 10] [--seed 1] [--keep DIRECTORY]

PROGRAM makes up reports (`PROGRAM generate --ndjson FILE`). One more has a megabyte. They are appended to an NDJSON file that
is rotated twice, by the same renames as the library's sink makes. The agent sends them to a server in this process. It is
killed (SIGKILL) while reports are written, and stays away for a while, also during a rotation; for some of the time the
server refuses, so that reports wait in the agent's disk buffer when it is killed.

Checked: every report arrives byte for byte, and nothing else; copies are equal, so they have the same id.

Where the system has no syslog-ng, because it and rsyslog exclude each other, Debian's packages are unpacked beside it.

Exit status: 0 if all arrive, 1 if not, 69 if there is no syslog-ng.
"""

import argparse
import http.server
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from checks import REPOSITORY, Fault, expect

CONFIGURATION = REPOSITORY / "Fleet/agents/syslog-ng.conf"
PACKAGES = ["syslog-ng-core", "syslog-ng-mod-http"]
ROTATIONS = 2
# How long the last reports may take, in seconds.
TIME_LIMIT = 120


def installed_agent(directory):
    """Returns the command of syslog-ng and its environment."""
    if shutil.which("syslog-ng"):
        return ["syslog-ng"], dict(os.environ)
    if not shutil.which("apt-get"):
        print("there is no syslog-ng, and no apt-get to download it")
        sys.exit(69)
    packages, root = directory / "packages", directory / "root"
    packages.mkdir()
    done = subprocess.run(["apt-get", "--quiet", "download", *PACKAGES], cwd=packages, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"syslog-ng cannot be downloaded: {' '.join(done.stderr.split())}")
        sys.exit(69)
    for package in packages.iterdir():
        subprocess.run(["dpkg", "--extract", package, root], check=True)
    libraries = root / "usr/lib/syslog-ng"
    modules = next(path for path in libraries.iterdir() if path.is_dir())
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{libraries}:{modules}")
    command = [str(root / "usr/sbin/syslog-ng"), f"--module-path={modules}"]
    # Without its libraries, which are packages of their own, it does not start.
    version = subprocess.run([command[0], "--version"], env=environment, capture_output=True, text=True)
    if version.returncode != 0:
        print(f"syslog-ng does not start: {' '.join(version.stderr.split())}")
        sys.exit(69)
    return command, environment


class Agent:
    """The agent, with its state in a directory that survives it."""

    def __init__(self, directory, url):
        self.state = directory / "state"
        self.state.mkdir()
        text = CONFIGURATION.read_text()
        for name, value in [("directory", directory / "stalls"), ("queue", self.state), ("url", url)]:
            text, count = re.subn(rf'(?m)^@define stalls_{name} ".*"$', f'@define stalls_{name} "{value}"', text)
            expect(count == 1, f"{CONFIGURATION} defines stalls_{name} {count} times")
        # The test does not wait as long as an operator can.
        text = text.replace("time-reopen(5)", "time-reopen(1)")
        (directory / "syslog-ng.conf").write_text(text)
        command, self.environment = installed_agent(directory)
        self.command = [
            *command, "--foreground", "--no-caps", "-f", directory / "syslog-ng.conf", "-R", self.state / "persist",
            "-p", self.state / "pid", "-c", self.state / "control",
        ]
        self.log = directory / "agent.log"
        self.process = None
        # How many bytes were in the disk buffer when the agent was killed, each time.
        self.waiting = []

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdout=log, stderr=log)

    def kill(self, buffered):
        size = lambda: sum(path.stat().st_size for path in self.state.glob("*.rqf"))
        while size() < buffered and self.process.poll() is None:
            time.sleep(0.05)
        expect(self.process.poll() is None, f"the agent ended by itself, with status {self.process.returncode}")
        self.process.kill()
        self.process.wait()
        self.waiting.append(size())

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Receiver:
    """A server that keeps the lines that are posted to it, with the number of times that each arrived."""

    def __init__(self):
        self.lines, self.requests, self.refused, self.refuses = {}, 0, 0, False
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                # The agent was killed in the middle.
                if len(body) < length:
                    raise ConnectionResetError
                self.send_response(receiver.take(body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.HTTPServer):
            def handle_error(self, *_):
                # A killed agent's connection is reset. Whatever else goes wrong is seen as a lost report.
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body):
        if self.refuses:
            self.refused += 1
            return 503
        self.requests += 1
        for line in body.split(b"\n"):
            self.lines[line] = self.lines.get(line, 0) + 1
        return 200


class Sink:
    """An NDJSON file that is rotated like the library's."""

    def __init__(self, path, maximum_bytes):
        self.path, self.maximum_bytes, self.size, self.rotations = path, maximum_bytes, 0, 0

    def append(self, line):
        if self.size > 0 and self.size + len(line) + 1 > self.maximum_bytes:
            for number in range(self.rotations, 0, -1):
                os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            os.rename(self.path, f"{self.path}.1")
            self.rotations, self.size = self.rotations + 1, 0
        with open(self.path, "ab", buffering=0) as file:
            file.write(line + b"\n")
        self.size += len(line) + 1


def made_up(arguments, directory):
    file = directory / "made-up.ndjson"
    subprocess.run(
        [arguments.generator, "generate", "--reports", str(arguments.reports), "--seed", str(arguments.seed), "--ndjson", file],
        check=True)
    lines = file.read_bytes().splitlines()
    file.unlink()
    large = json.loads(lines[0])
    large["id"] += "-large"
    large["metadata"] = {"text": "Ünï\\\"\t" * 100_000}
    lines.insert(len(lines) // 2, json.dumps(large, ensure_ascii=False, separators=(",", ":")).encode())
    expect(len(max(lines, key=len)) > 1_000_000, "no report has a megabyte")
    return lines


def write(lines, sink, agent, receiver, generator, kills):
    """Appends the lines, and kills the agent at some of them."""
    kill_at = set(generator.sample(range(len(lines) // 20, len(lines) * 19 // 20), kills))
    # One of them just before the first rotation, so that the agent is away during it.
    sizes = itertools.accumulate(len(line) + 1 for line in lines)
    rotation = next(index for index, size in enumerate(sizes) if size > sink.maximum_bytes)
    if kills and rotation - 5 not in kill_at:
        kill_at.remove(max(kill_at))
        kill_at.add(rotation - 5)
    number, start_at, receiver.refuses = 0, None, kills > 0
    for index, line in enumerate(lines):
        if index in kill_at:
            if start_at is not None:
                agent.start()
            # The server refuses from the start and before every other kill, until the agent runs again.
            receiver.refuses = number % 2 == 0
            time.sleep(generator.uniform(0.3, 1.5))
            agent.kill(buffered=0 if number else 100_001)
            number += 1
            start_at = index + generator.choice([10, len(lines) // 50])
        sink.append(line)
        if start_at is not None and index >= start_at:
            agent.start()
            start_at = None
            time.sleep(generator.uniform(0, 1))
            receiver.refuses = False
        if generator.random() < 0.02:
            time.sleep(0.02)
    if start_at is not None:
        agent.start()
    receiver.refuses = False


def check(arguments, directory):
    generator = random.Random(arguments.seed)
    lines = made_up(arguments, directory)
    expect(len(set(lines)) == len(lines), "two reports are equal")
    (directory / "stalls").mkdir()
    sink = Sink(directory / "stalls/stalls.ndjson", sum(len(line) + 1 for line in lines) * 2 // 5)
    receiver = Receiver()
    agent = Agent(directory, f"http://127.0.0.1:{receiver.server.server_address[1]}/")
    began = time.monotonic()
    try:
        agent.start()
        write(lines, sink, agent, receiver, generator, arguments.kills)
        wanted, deadline = set(lines), time.monotonic() + TIME_LIMIT
        while not wanted <= receiver.lines.keys() and time.monotonic() < deadline:
            expect(agent.process.poll() is None, "the agent ended by itself")
            time.sleep(0.2)
    finally:
        agent.stop()
        receiver.server.shutdown()
    lost, strange = wanted - receiver.lines.keys(), receiver.lines.keys() - wanted
    expect(not lost, f"{len(lost)} of {len(lines)} reports are lost: {sorted(lost)[0][:100] if lost else ''}")
    expect(not strange, f"{len(strange)} lines arrived that are no report: {sorted(strange)[0][:100] if strange else ''}")
    expect(sink.rotations == ROTATIONS, f"the file was rotated {sink.rotations} times")
    expect(len(agent.waiting) == arguments.kills, f"the agent was killed {len(agent.waiting)} times")
    if arguments.kills:
        expect(max(agent.waiting) > 100_000, f"no report waited in the disk buffer at a kill: {agent.waiting}")
    duplicates = sum(receiver.lines.values()) - len(lines)
    print(
        f"{len(lines)} reports, one of {len(max(lines, key=len))} bytes, arrived byte for byte in "
        f"{time.monotonic() - began:.0f} s with {len(agent.waiting)} kills and {sink.rotations} rotations: "
        f"{receiver.requests} requests, {receiver.refused} refused ones, {duplicates} duplicates; "
        f"up to {max(agent.waiting, default=0) / 1e6:.1f} MB in the disk buffer at a kill")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="work in this directory, and leave it")
    arguments = parser.parse_args()
    directory = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-agents-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        check(arguments, directory)
        return 0
    except Fault as fault:
        print(f"FAILED: {fault}")
        log = directory / "agent.log"
        if log.exists():
            print("agent.log:", *log.read_text(errors="replace").splitlines()[-15:], sep="\n  ")
        return 1
    finally:
        if not arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
