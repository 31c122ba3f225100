#!/usr/bin/env python3
"""Gives names that mean something to terminals, pages, Markdown, XML and CI systems to every command of the tool.

    Tests/Programs/read-hostile-names.py TOOL REPORT NAMES

TOOL is the tool, REPORT a report with everything that a report can have, NAMES a JSON array of names. Each text in a
report that is free becomes one of the names; as many reports are made as the names need. Real readers then have to see
text only:

terminal        pyte (PyPI): output is drawn, and changes nothing but lines and colors
page            headless Chromium: no script but the page's own runs, and no element or attribute is foreign
Markdown        markdown-it-py (PyPI): no link, image, HTML or emphasis but the tool's own
XML             Python's expat; then the counts and times of JUnit, which have to add up
annotations     the grammar of GitHub's runner; no other output has a line that it would obey

Exit status: 0 if all checks pass, 1 if one fails (prints the fault), 64 for a wrong argument, 69 without a reader.
"""

import copy
import ctypes
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

from browser import check_silence, start
from checks import Fault, begin_again, equal, expect

try:
    import pyte
    from markdown_it import MarkdownIt
except ImportError as missing:
    begin_again(missing)

# Fields whose texts have a form.
FIXED = {
    "id", "startedAt", "offset", "baseAddress", "buildID", "fingerprint", "traceID", "spanID", "address",
    "waitsForAddress", "state",
}
# What output may do on a terminal besides drawing.
LINES = {"draw", "linefeed"}
COLORS = LINES | {"select_graphic_rendition"}
SCREEN = COLORS | {
    "carriage_return", "cursor_position", "cursor_to_line", "erase_in_display", "erase_in_line", "set_mode",
    "reset_mode", "save_cursor", "restore_cursor",
}
CONTROLS = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MARKDOWN = {
    "heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "fence", "table_open",
    "table_close", "thead_open", "thead_close", "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open",
    "th_close", "td_open", "td_close", "text", "code_inline", "strong_open", "strong_close", "softbreak",
    "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
}
PAGE_TAGS = {
    "HTML", "HEAD", "BODY", "META", "LINK", "TITLE", "STYLE", "SCRIPT", "H1", "H2", "H3", "P", "DIV", "SPAN", "A", "DL",
    "DT", "DD", "KBD", "DETAILS", "SUMMARY", "HEADER", "MAIN", "SECTION", "INPUT", "SELECT", "OPTION", "BUTTON", "CANVAS",
    "LABEL", "NOSCRIPT", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "OL", "UL", "LI", "CODE", "PRE", "STRONG", "SMALL",
    "OPTGROUP", "SVG", "I", "B", "EM",
}


def renamed(value, names, key=None):
    if isinstance(value, dict):
        keys = list(value)
        # Metadata and attributes have free keys, too.
        if key in ("metadata", "attributes"):
            return {next(names): next(names) for _ in range(3)}
        return {name: renamed(value[name], names, name) for name in keys}
    if isinstance(value, list):
        return [renamed(item, names, key) for item in value]
    return next(names) if isinstance(value, str) and key not in FIXED else value


def make_reports(base, names):
    """Returns as many reports as use each name once, and those reports' number."""
    taken = iter(names)
    count = 0

    def counted():
        nonlocal count
        for name in taken:
            count += 1
            yield name
        # The last report may need some more.
        while True:
            yield names[count % len(names)]

    source = counted()
    reports = []
    while count < len(names):
        report = renamed(copy.deepcopy(base), source)
        number = len(reports)
        report["id"] = f"019b0000-0000-7000-8000-{number:012d}"
        report["fingerprint"] = f"{number:016x}"
        report["startedAt"] = f"2026-11-21T08:{number // 60 % 60:02d}:{number % 60:02d}.000000Z"
        report["metadata"] = {next(source): next(source), next(source): next(source)}
        # The words of a name, but text that commands look for.
        report["kind"] = "stall"
        reports.append(report)
    return reports


class Recorder:
    """A screen that only notes what it is told to do."""

    def __init__(self):
        self.events = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.events.add(name)
        return lambda *arguments, **options: None


def check_terminal(output, allowed, what):
    text = output.decode("utf-8")
    recorder = object.__new__(Recorder)
    recorder.events = set()
    stream = pyte.Stream()
    # Attaching asks for every method.
    stream.attach(recorder)
    recorder.events.clear()
    stream.feed(text)
    events = recorder.events - {"debug"}
    expect(events <= allowed, f"{what}: a terminal is told to {events - allowed}")
    if allowed == LINES:
        found = CONTROLS.search(text)
        expect(not found, f"{what}: a control in {text[max(found.start() - 60, 0):found.end() + 20]!r}" if found else "")


def check_log(output, what):
    """Checks that no line of output is a command for GitHub's runner."""
    for line in re.split("[\r\n]", output.decode("utf-8")):
        expect(not line.strip().startswith("::") and "##[" not in line, f"{what}: a command: {line[:120]!r}")


def check_markdown(text, what):
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    every = [token for token in tokens] + [child for token in tokens for child in (token.children or [])]
    kinds = {token.type for token in every}
    if not kinds <= MARKDOWN:
        around = [token for token in tokens if any(child.type not in MARKDOWN for child in [token, *(token.children or [])])]
        raise Fault(f"{what}: {kinds - MARKDOWN} in {[token.content for token in around if token.content][:3]}")
    fenced = {line for token in tokens if token.type == "fence" for line in range(*token.map)}
    rows = [line for number, line in enumerate(text.split("\n")) if line.startswith("|") and number not in fenced]
    opened = [token.type for token in tokens]
    equal(opened.count("tr_open"), len(rows) - opened.count("table_open"), f"{what}: the number of rows")
    for row in rows:
        expect(CONTROLS.search(row) is None, f"{what}: a control in {row[:200]!r}")
    for token in every:
        if token.type == "text":
            # GitHub makes a link of these after Markdown's escapes are gone.
            mention = re.search(r"(?<![\w`/])@[A-Za-z0-9]", token.content)
            expect(not mention, f"{what}: a name is called: {token.content[:120]!r}")
    return every


def check_annotations(output, what):
    lines = output.decode("utf-8").splitlines()
    expect(0 < len(lines) <= 21, f"{what}: {len(lines)} annotations")
    for line in lines:
        match = re.fullmatch(r"::(error|warning|notice)(?: ([^:]*))?::(.*)", line)
        expect(match, f"{what}: no workflow command: {line[:200]!r}")
        names = [pair.split("=", 1)[0] for pair in match[2].split(",")]
        expect(set(names) <= {"file", "line", "title"}, f"{what}: unknown properties: {line[:200]!r}")
        expect(CONTROLS.search(line) is None, f"{what}: a control in {line[:200]!r}")


def check_junit(output, what):
    document = xml.etree.ElementTree.fromstring(output)
    tags = {element.tag for element in document.iter()}
    expect(tags <= {"testsuites", "testsuite", "testcase", "failure"}, f"{what}: {tags}")
    attributes = {name for element in document.iter() for name in element.attrib}
    expect(
        attributes <= {"name", "classname", "time", "tests", "failures", "errors", "skipped", "type", "message"},
        f"{what}: {attributes}",
    )
    cases = document.findall("testsuite/testcase")
    for name, found in [("tests", len(cases)), ("failures", len(document.findall("testsuite/testcase/failure")))]:
        equal(int(document.get(name)), found, f"{what}: the number of {name}")
    expect(abs(sum(float(case.get("time")) for case in cases) - float(document.get("time"))) < 0.01, f"{what}: the times")


def check_page(driver, path, use, what):
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(path.as_uri())
    use(driver)
    equal(driver.execute_script("return window.wasRun"), None, f"{what}: what a name's script has set")
    tags = set(driver.execute_script("return [...new Set([...document.querySelectorAll('*')].map((e) => e.tagName))]"))
    expect(tags <= PAGE_TAGS, f"{what}: foreign elements: {tags - PAGE_TAGS}")
    handlers = driver.execute_script(
        "return [...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames())"
        ".filter((name) => /^on/.test(name) || /[^a-z0-9-]/.test(name))")
    equal(handlers, [], f"{what}: foreign attributes")
    links = driver.execute_script("return [...document.querySelectorAll('a')].map((e) => e.protocol)")
    equal(set(links) - {"file:"}, set(), f"{what}: foreign links")
    policies = driver.execute_script(
        "return [...document.querySelectorAll('meta[http-equiv=Content-Security-Policy]')].map((e) => e.content)")
    expect(len(policies) == 1 and policies[0].startswith("default-src 'none'"), f"{what}: the policy is {policies}")
    check_silence(driver, path.as_uri())


class Monitor:
    """Answers the tool as a monitor of this process would."""

    def __init__(self, directory, reports, names):
        self.pid = os.getpid()
        loops = [
            {
                "label": name, "thresholdMilliseconds": 250, "utilization": 0.5, "busySeconds": 5,
                "watchedSeconds": 10, "stalls": 1,
            }
            for name in names[:60]
        ]
        stalls = [
            {
                "id": report["id"], "loop": report["loop"]["label"], "startedAt": report["startedAt"],
                "durationMilliseconds": 300, "isOngoing": False, "kind": "stall", "function": names[index],
                "cause": names[index + 1], "sentence": names[index + 2],
            }
            for index, report in enumerate(reports[:20])
        ]
        executors = [{"kind": "actor", "name": name, "address": hex(16 * index)} for index, name in enumerate(names[:20])]
        tasks = [
            {
                "id": index + 1, "name": name, "state": "enqueued", "wait": "executor", "target": index % 20,
                "stack": index % len(reports[0]["stacks"]),
            } if index % 2 else {"id": index + 1, "name": name, "state": "suspended", "wait": "continuation"}
            for index, name in enumerate(names[:40])
        ]
        self.answers = {
            "tasks": {
                "report": reports[0],
                "tasks": {
                    "tasks": tasks, "executors": executors, "searchedBytes": 1, "readMilliseconds": 1,
                    "incompleteReason": names[0],
                },
            },
            "state": {"loops": loops}, "watch": {"loops": loops, "stalls": stalls}, "stacks": {"report": reports[0]},
        }
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{directory}/stallwatch-{self.pid}.socket")
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        # `ps` finds a monitor by the name of its thread (PR_SET_NAME).
        ctypes.CDLL(None).prctl(15, b"stallwatch-dog", 0, 0, 0)
        while True:
            connection, _ = self.listener.accept()
            with connection:
                words = connection.recv(4096).decode().split()
                answer = {"version": 1, "pid": self.pid} | self.answers[words[2]]
                connection.sendall(json.dumps(answer).encode() + b"\n")


class Checks:
    def __init__(self, tool, work, pid):
        self.tool, self.work, self.pid = tool, work, pid
        self.colored = set()

    def run(self, *arguments, status=(0,), log=True, **environment):
        variables = {"PATH": os.environ["PATH"], "GITHUB_ACTIONS": "true", "HOME": str(self.work)} | environment
        done = subprocess.run(
            [self.tool, *map(str, arguments)], capture_output=True, cwd=self.work, env=variables, timeout=600)
        what = " ".join(map(str, arguments))
        expect(done.returncode in status, f"{what}: status {done.returncode}: {done.stderr[:300]!r}")
        check_terminal(done.stderr, LINES, f"{what}, errors")
        check_log(done.stderr, f"{what}, errors")
        if log:
            check_log(done.stdout, what)
        return done.stdout, what

    def text(self, *arguments, status=(0,)):
        output, what = self.run(*arguments, status=status)
        expect(output, f"{what}: no output")
        check_terminal(output, LINES, what)
        # Each command once in color, too: that adds the tool's own styles.
        if arguments[0] not in self.colored:
            self.colored.add(arguments[0])
            output, what = self.run(*arguments, "--color", "always", status=status)
            check_terminal(output, COLORS, what)

    def json(self, *arguments, status=(0,)):
        if "json" not in arguments:
            arguments += ("--json",)
        output, what = self.run(*arguments, status=status)
        for document in output.decode("utf-8").splitlines() if "tail" in arguments else [output]:
            json.loads(document)
        check_terminal(output, LINES, what)

    def formats(self, *arguments):
        output, what = self.run(*arguments, "--format", "markdown")
        check_markdown(output.decode("utf-8"), what)
        check_terminal(output, LINES, what)
        output, what = self.run(*arguments, "--format", "junit")
        check_junit(output, what)
        check_terminal(output, LINES, what)
        summary = self.work / "summary.md"
        summary.unlink(missing_ok=True)
        output, what = self.run(
            *arguments, "--format", "github", log=False, GITHUB_STEP_SUMMARY=str(summary), GITHUB_WORKSPACE="/src")
        check_annotations(output, what)
        check_terminal(output, LINES, what)
        check_markdown(summary.read_text(encoding="utf-8"), f"{what}, summary")

    def reports(self):
        every = ["reports", "--strict"]
        show = ["show", *every, "--limit", "1000", "--all-frames"]
        self.text(*show)
        self.text(*show[:-1])
        self.json("show", *every)
        self.formats("show", *every, "--limit", "1000")
        for group in ["fingerprint", "culprit", "cause", "loop", "caller", "context"]:
            self.text("top", *every, "--limit", "1000", "--by", group)
        self.json("top", *every)
        self.formats("top", *every, "--limit", "1000")
        for direction in ["--top-down", "--bottom-up"]:
            self.text("tree", *every, direction, "--minimum", "0", "--all-frames")
        self.json("tree", *every)
        self.text("diff", "before", "reports", "--strict")
        self.json("diff", "before", "reports")
        self.formats("diff", "before", "reports")
        self.text("stats", "statistics.json")
        self.json("stats", "statistics.json")
        self.text("symbolicate", "reports", "-o", "named")
        self.json("symbolicate", "reports", "-o", "named")
        self.text_without_color("symbolicate", "reports")
        self.text_without_color("baseline", "update", "reports", "--file", "baseline.json")
        self.text_without_color("top", "faulty", "reports", "--loop", "no such loop", status=(1,), is_silent=True)
        output, what = self.run("export", *every, "--format", "collapsed")
        check_terminal(output, LINES, what)
        output, what = self.run("export", *every, "--format", "firefox")
        json.loads(output)
        check_terminal(output, LINES, what)
        self.run("export", *every, "--format", "pprof", "-o", "export-pprof")
        self.follow()

    def text_without_color(self, *arguments, status=(0,), is_silent=False):
        output, what = self.run(*arguments, status=status)
        expect(output or is_silent, f"{what}: no output")
        check_terminal(output, LINES, what)

    def follow(self):
        for arguments in [["tail", "reports", "--all"], ["tail", "reports", "--all", "--json"]]:
            with open(self.work / "tail.out", "wb") as output:
                process = subprocess.Popen(
                    [self.tool, *arguments], stdout=output, stderr=subprocess.DEVNULL, cwd=self.work,
                    env={"GITHUB_ACTIONS": "true"})
                until = time.monotonic() + 60
                time.sleep(1)
                while os.stat(output.fileno()).st_size == 0 and time.monotonic() < until:
                    time.sleep(0.1)
                process.terminate()
                process.wait(60)
            text = (self.work / "tail.out").read_bytes()
            expect(text, f"{arguments}: no output")
            check_terminal(text, LINES, " ".join(arguments))

    def live(self):
        self.text("ps")
        self.text("state", self.pid)
        self.text("stacks", self.pid)
        self.text("tasks", self.pid)
        self.text("tasks", self.pid, "--tree")
        self.json("ps")
        self.json("state", self.pid)
        self.json("stacks", self.pid)
        self.json("tasks", self.pid)

    def watch(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(self.tool, [self.tool, "watch", str(self.pid)])
        output = b""
        end = time.monotonic() + 1.5
        has_quit = False
        while time.monotonic() < end + 60:
            if time.monotonic() > end and b"stalls" in output and not has_quit:
                os.write(terminal, b"q")
                has_quit = True
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    output += os.read(terminal, 65536)
                except OSError:
                    break
        # A tool that does not end must not hold the test.
        until = time.monotonic() + 60
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise Fault("watch: q does not end it")
            time.sleep(0.05)
        expect(b"stalls" in output, f"watch: {output[:200]!r}")
        check_terminal(output, SCREEN, "watch")

    def pages(self):
        self.run("html", "reports", "-o", "stalls.html")
        self.run("html", "before.ndjson", "reports.ndjson", "-o", "compared.html")
        driver = start()
        try:
            for name in ["stalls.html", "compared.html"]:
                check_page(driver, self.work / name, self.use_stalls, name)
        finally:
            driver.quit()

    @staticmethod
    def use_stalls(driver):
        # Each stall is shown in full and copied.
        texts = driver.execute_script(
            "return allStalls.map((stall) => { show(stall); return markdown(stall); })")
        expect(len(texts) > 50, f"the page has {len(texts)} stalls")
        for text in texts:
            check_markdown(text, "what the page copies")


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    tool = str(pathlib.Path(arguments[0]).resolve())
    base = json.loads(pathlib.Path(arguments[1]).read_text(encoding="utf-8").splitlines()[0])
    names = json.loads(pathlib.Path(arguments[2]).read_bytes())
    reports = make_reports(base, names)
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for folder in ["reports", "before", "faulty"]:
            (work / folder).mkdir()
        for number, report in enumerate(reports):
            name = "stall-" + report["startedAt"].replace("-", "").replace(":", "") + f"-{number:012d}.json"
            (work / "reports" / name).write_text(json.dumps(report))
            wrong = report | {"fingerprint": names[number], "kind": names[number + 1], "repeats": -1}
            (work / "faulty" / name).write_text(json.dumps(wrong))
        lines = [json.dumps(report) + "\n" for report in reports]
        (work / "reports.ndjson").write_text("".join(lines))
        (work / "before.ndjson").write_text("".join(lines[::3]))
        statistics = {
            "suppressed": dict.fromkeys(names[:5], 1), "lastWriteError": names[5], "loops": [
                {"label": name, "watchedSeconds": 10, "turns": 1, "latency": [{"belowMicroseconds": 9, "turns": 1}]}
                for name in names[:100]
            ],
        }
        (work / "statistics.json").write_text(json.dumps(statistics))
        checks = Checks(tool, work, os.getpid())
        Monitor(directory, reports, names)
        status = 0
        for check in [checks.reports, checks.live, checks.watch, checks.pages]:
            began = time.monotonic()
            try:
                check()
                print(f"{check.__name__}: {len(names)} names, {time.monotonic() - began:.1f} s")
            except (Fault, UnicodeDecodeError, ValueError, xml.etree.ElementTree.ParseError) as fault:
                print(f"{check.__name__}: {type(fault).__name__}: {str(fault)[:800]}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
