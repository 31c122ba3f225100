"""A receiver of OTLP/HTTP on the loopback address, which decodes log records with opentelemetry-proto (PyPI)."""

import gzip
import http.server
import pathlib
import socket
import sys
import threading
import time

from checks import expect

PACKAGES = pathlib.Path(__file__).resolve().parents[2] / ".build" / "python-fleet"
sys.path.insert(0, str(PACKAGES))

try:
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
except ImportError as missing:
    print(f"{missing}: run scripts/install-python-packages.sh fleet")
    sys.exit(69)

# The longest wait for anything, in seconds.
PATIENCE = 180


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.02)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def records(body):
    """Returns (id, record) of each log record of a request."""
    request = logs_service_pb2.ExportLogsServiceRequest.FromString(body)
    found = []
    for resource in request.resource_logs:
        names = {pair.key for pair in resource.resource.attributes}
        expect({"service.name", "host.name", "process.pid"} <= names, f"the resource lacks attributes: {names}")
        for scope in resource.scope_logs:
            for record in scope.log_records:
                expect(record.event_name == "stallwatch.stall", f"event name '{record.event_name}'")
                values = {pair.key: pair.value for pair in record.attributes}
                found.append((values["log.record.uid"].string_value, record.SerializeToString(deterministic=True)))
    return found


class Server(http.server.ThreadingHTTPServer):
    """A server on the loopback address that passes each POST to `answer`."""

    daemon_threads = True
    # A dropped connection is part of the test.
    handle_error = lambda self, request, address: None

    def __init__(self, answer, tls=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.answer = answer
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        status, headers, answer = self.server.answer(self.path, dict(self.headers), body)
        if status is None:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass
