#!/usr/bin/env python3
"""Ships reports to collectors that are away, wrong or refuse, over real HTTP and TLS on the loopback address.

    Tests/Programs/shipping-faults.py --tool STALLWATCH --demo STALLWATCH-DEMO

Each case states what has to arrive, what has to be kept aside and with which reason, the exit status, and how often `ship`
may ask. Needs openssl for a certificate. Exit status: 0 if everything is right, 1 if not, 69 if a package is missing.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

from checks import Fault, expect
from otlp_receiver import Server, free_port, records, wait_until

TRY_AGAIN = 75
USAGE = 2


class Collector:
    """A collector that answers as a case wants, and keeps what it took."""

    def __init__(self, answer=None, **options):
        self.requests = []
        self.taken = []
        self.choose = answer or (lambda number, identifiers, headers: (200, {}, b""))
        self.server = Server(self.answer, **options)

    def answer(self, path, headers, body):
        expect(path == "/v1/logs", f"the path is {path}")
        identifiers = [identifier for identifier, _ in records(body)]
        self.requests.append((time.monotonic(), headers, identifiers))
        status, fields, text = self.choose(len(self.requests), identifiers, headers)
        if status == 200 and not text:
            self.taken += identifiers
        return status, fields, text


class Cases:
    def __init__(self, tool, demo, directory):
        self.tool, self.demo, self.directory = tool, demo, directory
        self.numbers = itertools.count(1)

    def folder(self, reports=20):
        number = next(self.numbers)
        folder = self.directory / f"case-{number}"
        subprocess.run(
            [self.demo, "generate", "--reports", str(reports), "--kinds", "3", "--seed", str(number), "--output", folder],
            check=True)
        return folder

    def command(self, folder, url, *options):
        return [self.tool, "ship", folder, "--otlp", url, *options]

    def environment(self, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return kept | variables

    def ship(self, folder, collector, *options, scheme="http", status=0, seconds=60, **variables):
        port = collector if isinstance(collector, int) else collector.server.port
        result = subprocess.run(
            self.command(folder, f"{scheme}://localhost:{port}", "--once", *options), capture_output=True, text=True,
            timeout=seconds, env=self.environment(**variables))
        expect(result.returncode == status, f"exit status {result.returncode}, not {status}: {result.stderr}")
        return result.stderr

    def aside(self, folder):
        rejected = folder / ".stallwatch-ship" / "rejected"
        reasons = [path.read_text() for path in rejected.glob("*.reason")] if rejected.exists() else []
        expect(len(reasons) == len(list(rejected.glob("*.json"))), "a report is kept aside without its reason")
        return reasons

    # MARK: the cases

    def unreachable(self):
        folder = self.folder()
        error = self.ship(folder, free_port(), status=TRY_AGAIN)
        expect("20 left for the next start" in error, error)
        expect(error.count("Trying again") == 1, f"each try is logged: {error}")
        collector = Collector()
        self.ship(folder, collector)
        expect(len(collector.taken) == 20, "they did not arrive later")

    def one_bad_report(self):
        folder = self.folder(200)
        bad = []

        def answer(number, identifiers, headers):
            bad.extend(identifiers[57:58] if number == 1 else [])
            return (400, {"Content-Type": "text/plain"}, b"bad record") if bad[0] in identifiers else (200, {}, b"")

        collector = Collector(answer)
        error = self.ship(folder, collector)
        expect("199 reports sent, 1 kept aside" in error, error)
        expect("HTTP status 400, bad record" in self.aside(folder)[0], "the reason is missing")
        expect(len(collector.requests) < 30, f"{len(collector.requests)} requests")
        expect(len(set(collector.taken)) == len(collector.taken) == 199, "the others did not arrive once")

    def too_large(self):
        collector = Collector(lambda number, identifiers, headers: (200 if len(identifiers) <= 30 else 413, {}, b""))
        expect("200 reports sent." in self.ship(self.folder(200), collector), "413 is not split")

    def busy(self):
        collector = Collector(lambda number, identifiers, headers: (
            (429, {"Retry-After": "2"}, b"") if number == 1 else (503, {}, b"") if number == 2 else (200, {}, b"")))
        self.ship(self.folder(), collector)
        times = [moment for moment, _, _ in collector.requests]
        expect(times[1] - times[0] >= 2, f"Retry-After is not waited for: {times[1] - times[0]:.2f} s")
        expect(len(collector.taken) == 20, "they did not arrive")

    def refused(self):
        folder = self.folder()
        for status, fields, text in [(401, {}, b"no key"), (404, {}, b""), (200, {"Content-Type": "text/html"}, b"<html>")]:
            shutil.rmtree(folder / ".stallwatch-ship", ignore_errors=True)
            collector = Collector(lambda number, identifiers, headers: (status, fields, text))
            error = self.ship(folder, collector, "--refused-for", "1s")
            expect("0 reports sent, 20 kept aside" in error, error)
            expect(len(collector.requests) <= 6, f"{len(collector.requests)} requests")
            expect(f"HTTP status {status}" in self.aside(folder)[0], "the reason is missing")
        # Once the reason is gone, what was kept aside can be sent.
        collector = Collector()
        self.ship(folder / ".stallwatch-ship" / "rejected", collector)
        expect(len(collector.taken) == 20, "what was kept aside cannot be sent")

    def partly_taken(self):
        # ExportLogsServiceResponse { partial_success { rejected_log_records: 1, error_message: "old" } }
        body = bytes([0x0A, 7, 0x08, 1, 0x12, 3]) + b"old"
        collector = Collector(lambda number, identifiers, headers: (200, {"Content-Type": "application/x-protobuf"}, body))
        folder = self.folder()
        error = self.ship(folder, collector)
        expect(len(collector.requests) == 1, "a partial success is sent again")
        expect("rejected 1 of 20: old" in self.aside(folder)[0], error)

    def headers_and_compression(self):
        collector = Collector()
        self.ship(
            self.folder(), collector, "--header", "x-tenant=7", OTEL_EXPORTER_OTLP_HEADERS="api-key=a%20b",
            OTEL_EXPORTER_OTLP_COMPRESSION="gzip")
        headers = collector.requests[0][1]
        expect(headers.get("Api-Key", headers.get("api-key")) == "a b", f"headers: {headers}")
        expect(headers.get("x-tenant") == "7" and headers["Content-Encoding"] == "gzip", f"headers: {headers}")
        expect(len(collector.taken) == 20, "they did not arrive")

    def silent(self):
        collector = Collector(lambda number, identifiers, headers: (time.sleep(3), (200, {}, b""))[1] if number == 1 else (200, {}, b""))
        began = time.monotonic()
        self.ship(self.folder(), collector, OTEL_EXPORTER_OTLP_TIMEOUT="500")
        expect(len(collector.requests) == 2, f"{len(collector.requests)} requests")
        expect(time.monotonic() - began < 10, "the timeout is not kept")

    def tls(self):
        key, certificate = self.directory / "key.pem", self.directory / "certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The server accepts only the client's own certificate.
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        collector = Collector(tls=context)
        mine = {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(certificate), "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(key)}
        known = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate)}
        folder = self.folder()
        self.ship(folder, collector, scheme="https", status=TRY_AGAIN, **mine)
        expect(not collector.requests, "an unknown certificate was trusted")
        self.ship(folder, collector, scheme="https", status=TRY_AGAIN, **known)
        expect(not collector.requests, "the server took a client without a certificate")
        self.ship(folder, collector, scheme="https", **mine, **known)
        expect(len(collector.taken) == 20, "they did not arrive over TLS")
        self.ship(folder, collector, scheme="https", status=1, OTEL_EXPORTER_OTLP_CERTIFICATE="/nowhere.pem")

    def a_signal_flushes(self):
        folder, more = self.folder(), self.folder()
        collector = Collector()
        process = subprocess.Popen(
            self.command(folder, f"http://localhost:{collector.server.port}"), stderr=subprocess.PIPE, text=True,
            env=self.environment())
        try:
            wait_until(lambda: len(collector.taken) == 20, "the first reports arrive", 30)
            for path in more.glob("stall-*.json"):
                path.rename(folder / path.name)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
        expect(process.returncode == 0 and "40 reports sent." in error, error)

    def the_directory_goes_away(self):
        folder = self.folder()
        collector = Collector()
        process = subprocess.Popen(
            self.command(folder, f"http://localhost:{collector.server.port}"), stderr=subprocess.PIPE, text=True,
            env=self.environment())
        try:
            wait_until(lambda: len(collector.taken) == 20, "the first reports arrive", 30)
            shutil.rmtree(folder)
            time.sleep(1.5)
            shutil.move(self.folder(), folder)
            wait_until(lambda: len(collector.taken) == 40, "the reports of the new directory arrive", 30)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
        expect("is gone" in error and "is back" in error, error)

    def a_second_ship(self):
        folder = self.folder()
        collector = Collector()
        process = subprocess.Popen(
            self.command(folder, f"http://localhost:{collector.server.port}"), stderr=subprocess.DEVNULL,
            env=self.environment())
        try:
            wait_until(lambda: len(collector.taken) == 20, "the first reports arrive", 30)
            expect("already follows" in self.ship(folder, collector, status=USAGE), "two may follow one directory")
        finally:
            process.kill()

    def a_directory_that_cannot_be_written(self):
        folder = self.folder()
        state = self.directory / "state"
        collector = Collector()
        self.ship(folder, collector, "--state", state)
        self.ship(folder, collector, "--state", state)
        expect(len(collector.taken) == 20, "the state is not found again")
        expect(not (folder / ".stallwatch-ship").exists(), "the report directory was written")


CASES = [
    Cases.unreachable, Cases.one_bad_report, Cases.too_large, Cases.busy, Cases.refused, Cases.partly_taken,
    Cases.headers_and_compression, Cases.silent, Cases.tls, Cases.a_signal_flushes, Cases.the_directory_goes_away,
    Cases.a_second_ship, Cases.a_directory_that_cannot_be_written,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--demo", required=True)
    arguments = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-faults-"))
    cases = Cases(arguments.tool, arguments.demo, directory)
    failures = 0
    try:
        # Most of a case is waiting.
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            runs = [(case, pool.submit(case, cases)) for case in CASES]
        for case, run in runs:
            try:
                run.result()
            except (Fault, subprocess.SubprocessError) as fault:
                failures += 1
                print(f"{case.__name__}: {fault}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"Shipping with faults: {len(CASES) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
