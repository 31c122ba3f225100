#!/usr/bin/env python3
"""Compares a Hummingbird server whose loops are all watched with the same server without a monitor, under wrk.

    Benchmarks/server-under-load.py [--pairs N] [--seconds S]

Builds Benchmarks/Server in release mode and runs wrk (Debian: wrk) against both in turns, each in a process of its own, N
times (10) for S seconds (10). Prints a table in Markdown: requests per second and the 99th percentile of the latency of
each pair, and the medians of the pairs' ratios. The server, wrk and the watchdog share the machine's processors.

Exit status: 0 when measured, 69 when wrk is missing or a server does not start.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

PACKAGE = pathlib.Path(__file__).resolve().parent / "Server"
PORT = 18_080
CONNECTIONS = 32


def build():
    # With another order of traits than before, the package manager compiles everything again.
    environment = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}
    command = ["swift", "build", "-c", "release", "--package-path", PACKAGE]
    subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
    place = subprocess.run([*command, "--show-bin-path"], check=True, capture_output=True, text=True, env=environment)
    return pathlib.Path(place.stdout.strip()) / "watched-server"


def wait_for(server):
    for _ in range(100):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/hello", timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    print("The server does not answer.", file=sys.stderr)
    sys.exit(69)


def milliseconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def measure(program, watched, seconds):
    """Returns the requests per second and the 99th percentile of the latency in milliseconds."""
    server = subprocess.Popen([program, str(PORT), watched], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(server)
        wrk = ["wrk", "-t", "1", "-c", str(CONNECTIONS), "--latency", f"http://127.0.0.1:{PORT}/hello", "-d"]
        # The first second is not measured.
        subprocess.run([*wrk, "1s"], check=True, capture_output=True)
        text = subprocess.run([*wrk, f"{seconds}s"], check=True, capture_output=True, text=True).stdout
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    if "Non-2xx" in text or "Socket errors" in text:
        print(f"Some requests failed:\n{text}", file=sys.stderr)
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1))
    return rate, milliseconds(re.search(r"99%\s+(\S+)", text).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        print("wrk is missing: sudo apt-get install wrk", file=sys.stderr)
        return 69
    program = build()
    print(f"## A Hummingbird server under wrk, {CONNECTIONS} connections, {options.seconds} s each\n")
    print("| pair | not watched, requests/s | watched | ratio | not watched, p99 ms | watched | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    rates, latencies = [], []
    for pair in range(options.pairs):
        # Which one is first changes from pair to pair.
        order = ["none", "all"] if pair % 2 == 0 else ["all", "none"]
        found = {watched: measure(program, watched, options.seconds) for watched in order}
        (rate, latency), (watched_rate, watched_latency) = found["none"], found["all"]
        rates.append(watched_rate / rate)
        latencies.append(watched_latency / latency)
        print(
            f"| {pair + 1} | {rate:.0f} | {watched_rate:.0f} | {rates[-1]:.3f} "
            f"| {latency:.2f} | {watched_latency:.2f} | {latencies[-1]:.3f} |",
            flush=True,
        )
    print(f"| median | | | {statistics.median(rates):.3f} | | | {statistics.median(latencies):.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
