#!/usr/bin/env python3
"""Runs the queries of Fleet/ on DuckDB and ClickHouse (PyPI's duckdb and chdb) and compares them with `stallwatch`.

    Tests/Programs/fleet-queries.py --tool STALLWATCH --scenarios STALLWATCH-SCENARIOS [--reports 100000] [--histories 20]
        [--seed 1] [--benchmark]

1. groups.sql over made-up reports as NDJSON: equal to `stallwatch top --json`, in every column.
2. regressions.sql and rates.sql over them: equal to `stallwatch diff --json` of the two versions; and
   new-fingerprints.sql: the groups whose `firstSeen` of `top --json` is on the last day.
3. groups.sql over 1,000 reports of which 100 are there twice: equal to `top --json` again, also over the table of reports
   that agents fill.
4. The dashboards in Fleet/grafana: the models of Grafana's own schema (PyPI's grafana-foundation-sdk) have every field,
   and every query of stalls.json runs over that table and returns rows. If promtool is there (Debian: prometheus), it
   reads every query of metrics.json, and runs the tests of the rules in Fleet/prometheus.
5. Made-up histories of 1 to 10,000 equal stalls, of which few have a report: `top`, `tree`, `diff`, `stats`, the page,
   collapsed stacks and the queries have the number and the time of all of them.

--benchmark does only the first step and prints the wall time and the largest memory of each program.

Exit status: 0 if all are equal, 1 if not, 69 if a package is missing.
"""

import argparse
import contextlib
import datetime
import itertools
import json
import math
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from checks import REPOSITORY, Fault, expect

sys.path.insert(0, str(REPOSITORY / ".build" / "python-fleet"))
try:
    import chdb.session
    import duckdb
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard
except ImportError as missing:
    print(f"{missing}: run scripts/install-python-packages.sh fleet")
    sys.exit(69)

FLEET = REPOSITORY / "Fleet"
VERSIONS = ("1.4.2", "1.5.0")
# The names in the queries, and in `top --json`.
COLUMNS = {
    "count": "count", "reports": "reports", "total_ms": "totalMilliseconds", "p50_ms": "p50Milliseconds",
    "p95_ms": "p95Milliseconds", "max_ms": "maxMilliseconds", "cause": "cause", "loop": "loop", "first_seen": "firstSeen",
    "last_seen": "lastSeen",
}

# Runs a program and prints its largest memory in KiB on standard error.
MEASURED = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
)


class DuckDB:
    name = "DuckDB"

    def __init__(self, directory, **variables):
        self.connection = duckdb.connect()
        for name, value in variables.items():
            self.connection.execute(f"SET VARIABLE {name} = '{value}'")

    def run(self, query):
        result = self.connection.execute((FLEET / "duckdb" / query).read_text())
        names = [column[0] for column in result.description]
        return [dict(zip(names, row)) for row in result.fetchall()]

    def load(self):
        self.run("stalls.sql")

    def close(self):
        self.connection.close()


class ClickHouse:
    name = "ClickHouse"
    numbers = itertools.count(1)

    def __init__(self, directory, **variables):
        self.session = chdb.session.Session(str(directory / f"clickhouse-{next(self.numbers)}"))
        for name, value in variables.items():
            self.session.query(f"SET param_{name} = '{value}'")
        self.session.query("SET output_format_json_quote_64bit_integers = 0")

    def run(self, query):
        return self.ask((FLEET / "clickhouse" / query).read_text())

    def ask(self, text):
        return [json.loads(line) for line in str(self.session.query(text, "JSONEachRow")).splitlines()]

    def load(self):
        self.session.query((FLEET / "clickhouse" / "stalls-ndjson.sql").read_text())

    def close(self):
        self.session.close()


ENGINES = [DuckDB, ClickHouse]


def loaded(directory, **variables):
    """Yields each engine's database of the files, one after the other."""
    for engine in ENGINES:
        with contextlib.closing(engine(directory, **variables)) as database:
            database.load()
            yield database


def equal(left, right):
    if isinstance(left, datetime.datetime):
        left = left.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(left, str) and isinstance(right, str):
        # ClickHouse prints a time without T and Z.
        return left == right or left.replace(" ", "T") + "Z" == right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        # Sums depend on the order in the last digits; `top` rounds to microseconds.
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-3)
    return left == right


def compare_groups(engine, rows, top):
    expect(len(rows) == len(top["groups"]), f"{engine}: {len(rows)} groups, not {len(top['groups'])}")
    known = {group["fingerprint"]: group for group in top["groups"]}
    for row in rows:
        group = known[row["fingerprint"]]
        culprit = group.get("culprit", {})
        pairs = [(name, row[name], group[other]) for name, other in COLUMNS.items()]
        pairs += [(name, row[name] or None, culprit.get(name)) for name in ["function", "file", "line"]]
        for name, found, wanted in pairs:
            expect(equal(found, wanted), f"{engine}: {name} of {row['fingerprint']} is {found}, not {wanted}")
    totals = [row["total_ms"] for row in rows]
    expect(totals == sorted(totals, reverse=True), f"{engine}: the worst group is not the first one")
    for name, wanted in [("count", top["count"]), ("reports", top["reports"]), ("total_ms", top["totalMilliseconds"])]:
        found = sum(row[name] for row in rows)
        expect(equal(found, wanted), f"{engine}: the sum of {name} is {found}, not {wanted}")


def tool(arguments, *words):
    result = subprocess.run([arguments.tool, *words, "--json"], capture_output=True, text=True)
    expect(result.returncode == 0, f"{words[0]}: {result.stderr}")
    return json.loads(result.stdout)


def timed(what, action):
    began = time.monotonic()
    result = action()
    print(f"{what}: {time.monotonic() - began:.1f} s")
    return result


def generate(arguments, reports, file):
    subprocess.run(
        [arguments.scenarios, "generate", "--reports", str(reports), "--seed", str(arguments.seed), "--ndjson", file], check=True)
    return file


def check_groups(arguments, directory, file, top):
    expect(top["reports"] == arguments.reports, f"top read {top['reports']} reports")
    databases = loaded(directory, files=file)
    for engine in ENGINES:
        rows = timed(engine.name, lambda: next(databases).run("groups.sql"))
        compare_groups(engine.name, rows, top)
    databases.close()


def check_versions(arguments, directory, file, top):
    parts = [directory / f"{version}.ndjson" for version in VERSIONS]
    lines = file.read_bytes().splitlines(keepends=True)
    for version, part in zip(VERSIONS, parts):
        part.write_bytes(b"".join(line for line in lines if f'"version":"{version}"'.encode() in line))
    diff = tool(arguments, "diff", *parts)
    day = max(group["lastSeen"] for group in top["groups"])[:10]
    new = {group["fingerprint"] for group in top["groups"] if group["firstSeen"].startswith(day)}
    expect(new, "no group is new on the last day")
    kinds = {change["change"] for change in diff["changes"]}
    expect({"new", "worse", "same"} <= kinds, f"the reports have changes of too few kinds: {kinds}")
    known = {change["fingerprint"]: change for change in diff["changes"]}
    for database in loaded(directory, files=file, before_version=VERSIONS[0], after_version=VERSIONS[1], day=day):
        rows = database.run("regressions.sql")
        expect(len(rows) == len(known), f"{database.name}: {len(rows)} changes, not {len(known)}")
        for row in rows:
            change = known[row["fingerprint"]]
            word = change["change"] + ("?" if change["mayBeChance"] else "")
            expect(row["change"] == word, f"{database.name}: {row} but {change}")
            for side, name in [("before", "base"), ("after", "new")]:
                for column, field in [("count", "count"), ("ms_per_hour", "millisecondsPerHour"), ("median_ms", "medianMilliseconds")]:
                    found, wanted = row[f"{side}_{column}"], change[name][field]
                    expect(equal(found, wanted), f"{database.name}: {side}_{column} is {found}, not {wanted}")
        rates = database.run("rates.sql")
        for version, side in zip(VERSIONS, ["base", "new"]):
            mine = [row for row in rates if row["version"] == version]
            for column, field in [("hours", "hours"), ("total_ms", "totalMilliseconds"), ("count", "count")]:
                found = sum(row[column] for row in mine)
                expect(equal(found, diff[side][field]), f"{database.name}: {column} of {version} is {found}, not {diff[side][field]}")
            for row in mine:
                rate = row["total_ms"] / 1000 / row["hours"]
                expect(equal(row["stalled_seconds_per_hour"], rate), f"{database.name}: a rate is {row}")
        found = {row["fingerprint"] for row in database.run("new-fingerprints.sql")}
        expect(found == new, f"{database.name}: new on {day} are {found}, not {new}")
    print("the reports of two versions: regressions, rates and new fingerprints are equal")


def check_duplicates(arguments, directory):
    file = generate(arguments, 1000, directory / "twice.ndjson")
    # As after a lost acknowledgment: an agent sends some lines twice.
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines + lines[:100]))
    top = tool(arguments, "top", file)
    for database in loaded(directory, files=file):
        compare_groups(database.name, database.run("groups.sql"), top)
        if database.name == ClickHouse.name:
            # The table that the agents of Fleet/agents fill.
            database.session.query("DROP TABLE stalls")
            database.run("stalls-reports.sql")
            database.session.query(f"INSERT INTO stall_reports SELECT * FROM file('{file}', LineAsString)")
            compare_groups("ClickHouse, collected", database.run("groups.sql"), top)
            panels = check_dashboard(database)
    print(f"1000 reports, 100 of them twice: groups are equal, {panels} queries of the dashboard have rows")


def compare_fields(file, known, place):
    """A field that Grafana's schema does not have is lost on the way through its models."""
    # The schema leaves open what a data source's query has.
    if place.endswith("rawSql"):
        return
    if isinstance(file, dict):
        for key, value in file.items():
            expect(key in known, f"dashboard: {place}.{key} is not in Grafana's schema")
            compare_fields(value, known[key], f"{place}.{key}")
    elif isinstance(file, list):
        expect(len(file) == len(known), f"dashboard: {place} has elements that are not in Grafana's schema")
        for index, pair in enumerate(zip(file, known)):
            compare_fields(*pair, f"{place}[{index}]")
    else:
        expect(file == known, f"dashboard: {place} is {file}, and {known} in Grafana's schema")


def read_dashboard(name):
    """Returns a dashboard, with the queries of its panels by their titles."""
    dashboard = json.loads((FLEET / "grafana" / name).read_text())
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    compare_fields(dashboard, known, "$")
    queries = [
        (panel["title"], target.get("rawSql") or target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    return dashboard, queries


def check_metrics(directory):
    """Reads the dashboard of metrics, and tests the rules over them."""
    _, queries = read_dashboard("metrics.json")
    promtool = shutil.which("promtool")
    if not promtool:
        print("not run: the rules of Fleet/prometheus, because there is no promtool (Debian: prometheus)")
        return
    # promtool reads expressions in rules only.
    text = {"groups": [{"name": "dashboard", "rules": [
        {"record": f"panel{index}", "expr": re.sub(r"\$__\w+", "5m", query)} for index, (_, query) in enumerate(queries)]}]}
    dashboard = directory / "dashboard.rules.yml"
    dashboard.write_text(json.dumps(text))
    rules = FLEET / "prometheus"
    for words in [["check", "rules", dashboard], ["test", "rules", rules / "stallwatch.test.yml"]]:
        result = subprocess.run([promtool, *words], capture_output=True, text=True)
        expect(result.returncode == 0, f"promtool {words[0]}: {result.stdout}{result.stderr}")
    print(f"promtool: {len(queries)} queries of the dashboard of metrics are right, and the rules pass their tests")


def check_dashboard(database):
    """Runs the dashboard's queries, with the macros that Grafana's plugin for ClickHouse replaces."""
    dashboard, queries = read_dashboard("stalls.json")
    macros = [
        (r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN toDateTime('2026-10-31') AND toDateTime('2026-11-30')"),
        (r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(\1, INTERVAL 3600 second)"),
        (r"\$__fromTime", "toDateTime('2026-11-13')"), (r"\$__toTime", "toDateTime('2026-11-15')"),
        (r"\$\{(\w+):singlequote\}", lambda match: {"service": "'notes'", "version": "'1.4.2','1.5.0'", "host": "'web-1','web-2'"}[match[1]]),
    ]
    texts = queries + [(variable["name"], variable["query"]) for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    for title, query in texts:
        for macro, replacement in macros:
            query = re.sub(macro, replacement, query)
        expect("$" not in query, f"dashboard, {title}: an unknown macro in {query}")
        rows = database.ask(query)
        expect(rows, f"dashboard, {title}: no rows")
    return len(texts)


def check_history(arguments, folder, databases):
    """Compares what all commands and queries say of one history with what it was made of; returns its number of files."""
    truths = json.loads((folder / "truth.json").read_text())
    diff = tool(arguments, "diff", folder / "before", folder / "after")
    for side, name, version in [("before", "base", VERSIONS[0]), ("after", "new", VERSIONS[1])]:
        stalls, truth = folder / side, truths[side]
        count = sum(group["count"] for group in truth["groups"].values())
        total = sum(group["totalMilliseconds"] for group in truth["groups"].values())

        def same(what, found_count, found_total, count=count, total=total):
            expect(found_count == count, f"{what} of {stalls}: {found_count} stalls, not {count}")
            expect(math.isclose(found_total, total, rel_tol=1e-4), f"{what} of {stalls}: {found_total} ms, not {total}")

        def same_groups(what, rows):
            """`rows` are tuples: the fingerprint, the count, the total, the longest."""
            expect({row[0] for row in rows} == set(truth["groups"]), f"{what} of {stalls}: other groups")
            for fingerprint, found_count, found_total, longest in rows:
                group = truth["groups"][fingerprint]
                same(f"{what}, {fingerprint}", found_count, found_total, group["count"], group["totalMilliseconds"])
                expect(equal(longest, group["longestMilliseconds"]), f"{what} of {stalls}: the longest is {longest}")

        top = tool(arguments, "top", stalls)
        same("top", top["count"], top["totalMilliseconds"])
        same_groups("top", [(group["fingerprint"], group["count"], group["totalMilliseconds"], group["maxMilliseconds"]) for group in top["groups"]])
        tree = tool(arguments, "tree", stalls, "--minimum", "0")
        same("tree", tree["stalls"], tree["totalMilliseconds"])
        same("the tree's stacks", count, sum(node["selfMilliseconds"] for node in tree["nodes"]))
        same("diff", diff[name]["count"], diff[name]["totalMilliseconds"])
        for change in diff["changes"]:
            group = truth["groups"].get(change["fingerprint"], {"count": 0, "totalMilliseconds": 0})
            same("diff's change", change[name]["count"], change[name]["totalMilliseconds"], group["count"], group["totalMilliseconds"])
        stopped = truth["statistics"]
        stats = tool(arguments, "stats", stalls)
        seconds = sum(loop["stallSeconds"] for loop in stats["loops"])
        same("stats", stats["stalls"], seconds * 1000, stopped["count"], stopped["totalMilliseconds"])

        page = folder / "page.html"
        subprocess.run([arguments.tool, "html", stalls, "-o", page], check=True, capture_output=True)
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
        columns = data["stalls"]
        groups = {}
        for index, repeats, time, longest in zip(*(columns[each] for each in ["fingerprint", "repeats", "total", "greatest"])):
            counted, total_time, longest_time = groups.get(index, (0, 0, 0))
            groups[index] = (counted + 1 + repeats, total_time + time / 1000, max(longest_time, longest / 1000))
        same_groups("the page", [(data["strings"][index], *row) for index, row in groups.items()])
        collapsed = subprocess.run([arguments.tool, "export", stalls, "--format", "collapsed"], check=True, capture_output=True, text=True)
        same("collapsed stacks", count, sum(int(line.rsplit(" ", 1)[1]) for line in collapsed.stdout.splitlines()) / 1000)

        for database in databases(stalls):
            rows = database.run("groups.sql")
            same_groups(database.name, [(row["fingerprint"], row["count"], row["total_ms"], row["max_ms"]) for row in rows])
            rates = database.run("rates.sql")
            expect({row["version"] for row in rates} == {version}, f"{database.name}: other versions")
            same(f"{database.name}, rates", sum(row["count"] for row in rates), sum(row["total_ms"] for row in rates))
    return sum(1 for file in folder.rglob("stall-*.json"))


def check_histories(arguments, directory):
    files, stalls = 0, 0
    clickhouse = ClickHouse(directory, files="")

    def databases(folder):
        lines = directory / "lines.ndjson"
        lines.write_text("".join(json.dumps(json.loads(file.read_text())) + "\n" for file in sorted(folder.glob("stall-*.json"))))
        database = DuckDB(directory, files=lines)
        database.load()
        yield database
        clickhouse.session.query(f"SET param_files = '{lines}'")
        clickhouse.session.query("DROP TABLE IF EXISTS stalls")
        clickhouse.load()
        yield clickhouse

    for number in range(arguments.histories):
        folder = directory / f"history-{number}"
        repeats = round(10_000 ** (number / max(arguments.histories - 1, 1)))
        subprocess.run(
            [arguments.scenarios, "generate", "--repeating", "--reports", str(repeats), "--seed", str(number), "--output", folder], check=True)
        files += check_history(arguments, folder, databases)
        stalls += sum(group["count"] for side in json.loads((folder / "truth.json").read_text()).values() for group in side["groups"].values())
        shutil.rmtree(folder)
    clickhouse.close()
    print(f"{arguments.histories} histories: {stalls} stalls in {files} reports, counted alike everywhere")


def run_engine(name, file, output):
    """Answers the question in this process, and prints the process's largest memory in KiB."""
    database = next(engine for engine in ENGINES if engine.name == name)(output.parent, files=file)
    database.load()
    output.write_text(json.dumps(database.run("groups.sql"), default=str))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def benchmark(arguments, directory):
    """Times each program as a whole process, with its largest memory."""
    file, output = directory / "stalls.ndjson", directory / "output.json"
    timed(f"{arguments.reports} reports made", lambda: generate(arguments, arguments.reports, file))
    print(f"{file.stat().st_size / 1e9:.2f} GB of NDJSON, {file.stat().st_size // arguments.reports} bytes per report")
    began = time.monotonic()
    # From a small process: the largest memory of a child counts the process that it was forked from.
    run = subprocess.run([sys.executable, "-c", MEASURED, arguments.tool, "top", file, "--json"], check=True, capture_output=True)
    top, memory = json.loads(run.stdout), int(run.stderr)
    print(f"stallwatch top: {time.monotonic() - began:.1f} s, {memory / 1024:.0f} MiB at most")
    for name in (engine.name for engine in ENGINES):
        began = time.monotonic()
        memory = int(subprocess.run(
            [sys.executable, __file__, "--tool", arguments.tool, "--scenarios", arguments.scenarios, "--engine", name, file, output],
            check=True, capture_output=True, text=True).stdout)
        print(f"{name}: {time.monotonic() - began:.1f} s, {memory / 1024:.0f} MiB at most")
        rows = json.loads(output.read_text())
        for row in rows:
            for column in ["first_seen", "last_seen"]:
                # DuckDB's times have no fraction at a whole second.
                row[column] = row[column] if "." in row[column] else row[column] + ".000000"
        compare_groups(name, rows, top)
    print("all three are equal")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--scenarios", required=True)
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--engine", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        name, file, output = arguments.engine
        run_engine(name, file, pathlib.Path(output))
        return 0
    directory = pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-queries-"))
    try:
        if arguments.benchmark:
            benchmark(arguments, directory)
        else:
            check_duplicates(arguments, directory)
            check_metrics(directory)
            file = directory / "stalls.ndjson"
            timed(f"{arguments.reports} reports made", lambda: generate(arguments, arguments.reports, file))
            top = timed("stallwatch top", lambda: tool(arguments, "top", file))
            check_groups(arguments, directory, file, top)
            timed("two versions", lambda: check_versions(arguments, directory, file, top))
            timed("histories", lambda: check_histories(arguments, directory))
        return 0
    except Fault as fault:
        print(f"FAILED: {fault}")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
