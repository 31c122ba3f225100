#!/usr/bin/env python3
"""Decodes what `stallwatch` writes for OpenTelemetry beside logs: profiles and metrics.

    Tests/Programs/otlp-data.py --tool STALLWATCH --demo STALLWATCH-DEMO

`export --format otlp-profiles` of made-up reports, some with a trace: every message decodes with opentelemetry-proto
(PyPI) without an unknown field, every index is inside its table, every table begins with an empty element, the weights
add up to the total of `top --json`, and samples of reports with a trace link to their span.

`ship --statistics`: the points have the numbers of the file.

Exit status: 0 if everything is right, 1 if not, 69 if a package is missing.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from checks import Fault, expect
from otlp_receiver import Server

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.profiles.v1development import profiles_pb2

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED = 7


def decoded(message, bytes):
    """Parses bytes that must have no field that the message does not have."""
    found = message.FromString(bytes)
    size = found.ByteSize()
    found.DiscardUnknownFields()
    expect(found.ByteSize() == size, f"{message.DESCRIPTOR.name} has unknown fields")
    return found


def check_profiles(arguments, directory):
    stalls = directory / "stalls"
    subprocess.run(
        [arguments.demo, "generate", "--reports", "100", "--kinds", "10", "--hosts", "2", "--output", stalls], check=True)
    for path in sorted(stalls.iterdir())[:TRACED]:
        report = json.loads(path.read_text())
        report["metadata"] |= {"trace_id": TRACE, "span_id": SPAN}
        path.write_text(json.dumps(report))
    output = subprocess.run(
        [arguments.tool, "export", stalls, "--format", "otlp-profiles"], check=True, capture_output=True).stdout
    top = json.loads(subprocess.run([arguments.tool, "top", stalls, "--json"], check=True, capture_output=True).stdout)
    data = decoded(profiles_pb2.ProfilesData, output)
    tables = data.dictionary
    for field in tables.DESCRIPTOR.fields:
        table = getattr(tables, field.name)
        expect(table[0] == ("" if field.name == "string_table" else type(table[0])()), f"{field.name}[0] is not empty")

    def inside(index, table, what):
        expect(0 <= index < len(table), f"{what} is {index}, and there are {len(table)}")
        return table[index]

    def string(index):
        return inside(index, tables.string_table, "a string")

    def attributes(indices):
        pairs = [inside(index, tables.attribute_table, "an attribute") for index in indices]
        return {string(pair.key_strindex): pair.value for pair in pairs}

    for function in tables.function_table[1:]:
        expect(string(function.name_strindex), "a function has no name")
        string(function.system_name_strindex), string(function.filename_strindex)
    for mapping in tables.mapping_table[1:]:
        expect(string(mapping.filename_strindex), "a mapping has no file")
        expect("process.executable.build_id.gnu" in attributes(mapping.attribute_indices), "a mapping has no build ID")
    for location in tables.location_table[1:]:
        inside(location.mapping_index, tables.mapping_table, "a mapping")
        expect(location.lines, "a location has no line")
        for line in location.lines:
            expect(line.function_index > 0, "a line has no function")
            inside(line.function_index, tables.function_table, "a function")
    total, linked, identifiers = 0, 0, set()
    culprits = {group["culprit"]["function"] for group in top["groups"]}
    seen = set()
    for resource in data.resource_profiles:
        names = {pair.key for pair in resource.resource.attributes}
        expect({"service.name", "process.pid"} <= names, f"the resource has {names}")
        for profile in resource.scope_profiles[0].profiles:
            expect(string(profile.sample_type.type_strindex) == "stalled", "the sample type is wrong")
            expect(string(profile.sample_type.unit_strindex) == "nanoseconds", "the unit is wrong")
            expect(len(profile.profile_id) == 16, "the profile has no id")
            identifiers.add(profile.profile_id)
            for sample in profile.samples:
                expect(len(sample.values) == len(sample.timestamps_unix_nano) == 1, "a sample has no single value")
                start = sample.timestamps_unix_nano[0] - profile.time_unix_nano
                expect(0 <= start and start + sample.values[0] <= profile.duration_nano, "a sample is outside of its profile")
                expect({"stallwatch.cause", "stallwatch.loop.label"} <= set(attributes(sample.attribute_indices)), "labels")
                stack = inside(sample.stack_index, tables.stack_table, "a stack")
                for index in stack.location_indices:
                    location = inside(index, tables.location_table, "a location")
                    seen |= {string(tables.function_table[line.function_index].name_strindex) for line in location.lines}
                link = inside(sample.link_index, tables.link_table, "a link")
                if sample.link_index:
                    expect((link.trace_id.hex(), link.span_id.hex()) == (TRACE, SPAN), "a link is wrong")
                    linked += 1
                total += sample.values[0]
    wanted = top["totalMilliseconds"] * 1e6
    # Each weight is a whole number of microseconds.
    expect(math.isclose(total, wanted, abs_tol=1e3 * 100), f"the weights add up to {total} ns, not {wanted}")
    expect(linked >= TRACED, f"{linked} samples have links")
    expect(len(identifiers) == len(data.resource_profiles) >= 2, "profiles share an id")
    expect(culprits <= seen, f"functions are missing: {culprits - seen}")
    print(f"otlp-profiles: {len(output)} bytes, {len(data.resource_profiles)} processes, {linked} samples with a span")


def check_metrics(arguments, directory):
    file = directory / "statistics.json"
    statistics = {
        "stalls": 3, "suppressed": {"repeated": 2, "debugger": 0}, "reportsDropped": 0, "reportsLost": 1,
        "loops": [
            {"label": "main", "watchedSeconds": 1800, "turns": 101, "busySeconds": 18.5, "stalls": 3, "stallSeconds": 1.5,
             "latency": [{"belowMicroseconds": 1000, "turns": 98}, {"belowMicroseconds": 500000, "turns": 2}, {"turns": 1}]},
            {"label": "storage", "watchedSeconds": 900, "turns": 0, "busySeconds": 0, "stalls": 0, "stallSeconds": 0, "latency": []},
        ],
    }
    file.write_text(json.dumps(statistics))
    (directory / "empty").mkdir()
    taken = []

    def answer(path, headers, body):
        expect(path == "/v1/metrics", f"the path is {path}")
        taken.append(decoded(metrics_service_pb2.ExportMetricsServiceRequest, body))
        return 200, {}, b""

    server = Server(answer)
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    subprocess.run(
        [arguments.tool, "ship", directory / "empty", "--once", "--statistics", file, "--otlp", f"http://127.0.0.1:{server.port}"],
        check=True, capture_output=True, env=environment | {"OTEL_SERVICE_NAME": "notes"})
    expect(len(taken) == 1, f"{len(taken)} requests")
    resource = taken[0].resource_metrics[0]
    shared = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    expect(shared["service.name"] == "notes" and shared["host.name"], f"the resource is {shared}")
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    for name, key in [("watched_time", "watchedSeconds"), ("turns", "turns"), ("busy_time", "busySeconds"),
                      ("stalls", "stalls"), ("stalled_time", "stallSeconds")]:
        data = metrics[f"stallwatch.loop.{name}"].sum
        expect(data.is_monotonic and data.aggregation_temporality == 2, f"{name} is not a cumulative sum")
        for point, loop in zip(data.data_points, statistics["loops"], strict=True):
            expect(point.attributes[0].value.string_value == loop["label"], f"{name} has another loop")
            value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
            expect(value == loop[key], f"{name} is {value}")
            expect(point.time_unix_nano - point.start_time_unix_nano == 1800 * 10**9, "the times are wrong")
            expect(point.time_unix_nano // 1000 == file.stat().st_mtime_ns // 1000, "the time is not the file's")
    histogram = metrics["stallwatch.loop.turn.duration"].histogram.data_points
    expect(list(histogram[0].bucket_counts) == [98, 2, 1], f"the buckets are {histogram[0].bucket_counts}")
    expect(list(histogram[0].explicit_bounds) == [0.001, 0.5], f"the bounds are {histogram[0].explicit_bounds}")
    expect((histogram[0].count, histogram[0].sum) == (101, 18.5), "the histogram's sum is wrong")
    expect(list(histogram[1].bucket_counts) == [0] and histogram[1].count == 0, "an idle loop has turns")
    suppressed = {point.attributes[0].value.string_value: point.as_int for point in metrics["stallwatch.suppressed"].sum.data_points}
    expect(suppressed == statistics["suppressed"], f"suppressed are {suppressed}")
    print(f"metrics: {len(metrics)} of {len(statistics['loops'])} loops are as in the statistics file")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--demo", required=True)
    arguments = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-otlp-"))
    try:
        check_profiles(arguments, directory)
        check_metrics(arguments, directory)
        return 0
    except Fault as fault:
        print(f"FAILED: {fault}")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
