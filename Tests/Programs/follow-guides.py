#!/usr/bin/env python3
"""Follows the guides to the letter: each in a fresh folder beside a fresh clone, file by file and command by command.

    Tests/Programs/follow-guides.py [GUIDE...]

GUIDE is README, or the name of a page in docs/guides: AsyncMain, GLib, Server, StallsInTests, Fleet or Docker; by default all.
Prints what it left out of a page, and why. A block after a line that
names a file and ends with a colon is written to that file; the commands of each other sh block are run. Prints how many
commands and seconds it took until the first report was there, and until it was shown, and checks that the report blames
what the page says. As root, sudo is left out.

README: a new package gets its lines and its code, and a main loop that stalls; each command is timed.

StallsInTests: a package that has tests gets the lines and the tests of the page. A command that runs the tests has to fail,
except with the baseline. Then the steps of the page's workflow run, as on GitHub.

This installs the tool below /usr/local, where a copy is mounted for it only: it needs root.

Fleet: the page's made-up reports are queried. Without DuckDB's program, PyPI's library stands for it; without ClickHouse's
client, its queries are left out.

Docker is followed without Docker: the RUN lines of the first stage run here, with the program of AsyncMain; those of the
second one in a root file system that debootstrap makes (package debootstrap) with what Swift's slim images add to Debian's. The
program then runs as the user of the page in that root. This needs root.

Exit status: 0 if all is right, 1 if not, 64 for an unknown guide, 69 without root.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
# What the report of each guide has to show.
BLAMED = {
    "README": "workForTooLong()", "AsyncMain": "readTheCatalogue()", "GLib": "work_for_too_long", "Server": "readTheCatalogue()",
    "StallsInTests": "NoteStore.retry()", "Fleet": "the costliest group", "Docker": "readTheCatalogue()",
}
NEED_ROOT = {"StallsInTests", "Docker"}
LONGEST_SECONDS = 1800
# What Swift's slim images have beside Debian's minimal root.
SLIM_PACKAGES = "libcurl4,libxml2,tzdata,ca-certificates"


def blocks(page):
    """Yields (file or None, text): the file is named by the line before the block."""
    pattern = r"(?:^[^\n]*`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```"
    for file, language, text in re.findall(pattern, page, re.DOTALL | re.MULTILINE):
        if language == "sh":
            yield None, text
        elif file:
            yield file, text


def first_report(folder, begin, found):
    """Waits for a report and keeps the seconds since the beginning."""
    while not found and time.monotonic() - begin < LONGEST_SECONDS:
        if any((folder / "stalls").glob("stall-*.json")):
            found.append(time.monotonic() - begin)
        time.sleep(0.1)


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def with_tools(scratch):
    """Returns the environment of the guides' commands."""
    environment = dict(os.environ)
    if os.geteuid() == 0:
        script(scratch / "tools" / "sudo", '#!/bin/sh\nexec "$@"\n')
        environment["PATH"] = f"{scratch / 'tools'}:{environment['PATH']}"
    return environment


def follow(name, scratch):
    """Returns whether the guide leads to the right report."""
    folder = scratch / "notes"
    folder.mkdir()
    environment = with_tools(scratch)
    begin = time.monotonic()
    found = []
    threading.Thread(target=first_report, args=(folder, begin, found), daemon=True).start()
    commands, output = 0, ""
    for file, text in blocks((GUIDES / f"{name}.md").read_text()):
        if file:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
            continue
        commands += len(text.splitlines())
        # With job control, as in a terminal.
        step = subprocess.run(
            ["bash", "-emc", text], cwd=folder, env=environment, text=True, timeout=LONGEST_SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        output += step.stdout
        if step.returncode != 0:
            print(f"{name}: a command failed with status {step.returncode}:\n{text}\n{step.stdout[-4000:]}", file=sys.stderr)
            return False
    whole = time.monotonic() - begin
    shown = output[output.rfind(" stalled ") if " stalled " in output else 0 :]
    # A program that ends in order has seen the end of its stall.
    if not found or BLAMED[name] not in shown or "Its end was not observed" in shown:
        print(f"{name}: the report does not blame {BLAMED[name]}, or lacks the end:\n{output[-4000:]}", file=sys.stderr)
        return False
    print(f"{name}: {commands} commands; a report after {found[0]:.0f} s, shown after {whole:.0f} s, blames {BLAMED[name]}", flush=True)
    return True


def run(command, **options):
    """Returns the output of a command; raises an error with the output if it fails."""
    done = subprocess.run(
        command, text=True, timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, **options,
    )
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode} of {command}:\n{done.stdout[-4000:]}")
    return done.stdout


def private(scratch):
    """Returns the words before a command that make /usr/local a copy, which only such commands see."""
    copy = scratch / "local"
    if not copy.exists():
        run(["cp", "-a", "/usr/local", copy])
    return ["unshare", "--mount", "bash", "-ec", 'mount --bind "$0" /usr/local && exec "$@"', copy]


def step(line, status, folder, environment, before=()):
    """Runs a command, prints its seconds, and returns its output; raises an error if it does not end with the status."""
    begin = time.monotonic()
    done = subprocess.run(
        [*before, "bash", "-ec", line], cwd=folder, env=environment, text=True, timeout=LONGEST_SECONDS,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    print(f"  {time.monotonic() - begin:5.0f} s  {line.strip().splitlines()[-1]}", flush=True)
    if done.returncode != status:
        raise RuntimeError(f"status {done.returncode}, not {status}, of {line}:\n{done.stdout[-4000:]}")
    return done.stdout


def has(output, words, what):
    if words not in output:
        raise RuntimeError(f"{what} has no {words!r}:\n{output[-4000:]}")


def follow_readme(scratch):
    """The lines and the code of README in a new package, whose main loop stalls."""
    page = (ROOT / "README.md").read_text()
    start = page[page.index("## Start") : page.index("## What you get")]
    found = re.findall(r"^```(\w+)\n(.*?)^```", start, re.DOTALL | re.MULTILINE)
    manifest, code = [text for language, text in found if language == "swift"]
    package, product = manifest.splitlines()
    (scratch / "notes" / "Sources" / "notes").mkdir(parents=True)
    (scratch / "notes" / "Package.swift").write_text(
        "// swift-tools-version: 6.2\nimport PackageDescription\n\n"
        f'let package = Package(\n    name: "notes",\n    dependencies: [\n        {package}\n    ],\n'
        f'    targets: [.executableTarget(name: "notes", dependencies: [\n        {product}\n    ])]\n)\n')
    (scratch / "notes" / "Sources" / "notes" / "main.swift").write_text(
        f"import Foundation\n{code}\nfunc workForTooLong() {{ Thread.sleep(forTimeInterval: 1) }}\n"
        "DispatchQueue.main.asyncAfter(deadline: .now() + 1) { workForTooLong() }\n"
        "DispatchQueue.main.asyncAfter(deadline: .now() + 3) { exit(0) }\nRunLoop.main.run()\n")
    begin = time.monotonic()
    commands = [line for language, text in found if language == "sh" for line in text.splitlines()]
    output = [step(line, 0, scratch / "notes", with_tools(scratch)) for line in commands][-1]
    has(output, BLAMED["README"], "the report")
    print(f"README: {len(commands)} commands, {(time.monotonic() - begin) / 60:.1f} minutes to the first report", flush=True)


def follow_tests(scratch):
    """The lines and the tests of the page in a package that has a test target, and the workflow's steps."""
    page = (GUIDES / "StallsInTests.md").read_text()
    folder, environment, before = scratch / "package", with_tools(scratch), private(scratch)
    shutil.copytree(ROOT / "Tests/Samples/StallsInTests/Sources", folder / "Sources")
    manifest, *tests = re.findall(r"^```swift\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    package, product = manifest.splitlines()
    (folder / "Package.swift").write_text(
        "// swift-tools-version: 6.2\nimport PackageDescription\n\n"
        f'let package = Package(\n    name: "Notes",\n    dependencies: [\n        {package}\n    ],\n    targets: [\n'
        f'        .target(name: "Notes"),\n        .testTarget(name: "NotesTests", dependencies: [\n            "Notes",\n'
        f"            {product}\n        ]),\n    ]\n)\n")
    (folder / "Tests" / "NotesTests").mkdir(parents=True)
    (folder / "Tests" / "NotesTests" / "RetryTests.swift").write_text("import Notes\n" + "\n".join(tests))
    wanted = re.search(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1].splitlines()
    for file, text in blocks(page):
        for line in [] if file else text.splitlines():
            fails = "swift test" in line
            output = step(line, 1 if fails and "BASELINE" not in line else 0, folder, environment, before)
            if line == "swift test":
                for words in wanted:
                    pattern = re.sub(r"\d+", r"\\d+", re.escape(words.lstrip("✘↳ ")))
                    if not re.search(pattern, output):
                        raise RuntimeError(f"swift test does not say {words!r}:\n{output[-4000:]}")
            elif line.startswith("stallwatch show"):
                has(output, BLAMED["StallsInTests"], "the report")
    print("  left out: tests that hang, which `make stalls-in-tests` checks")
    follow_workflow((GUIDES / "stalls-in-tests.yml").read_text(), scratch, environment, before)
    print("StallsInTests: all commands of the page and of its workflow", flush=True)


def follow_workflow(text, scratch, environment, before):
    """Runs the steps of a workflow whose tests stall."""
    summary = scratch / "summary.md"
    environment = {**environment, "GITHUB_WORKSPACE": str(scratch), "GITHUB_STEP_SUMMARY": str(summary)}
    for part in re.split(r"^      - ", text, flags=re.MULTILINE)[1:]:
        used = re.search(r"^(?:        )?uses: (.+)$", part, re.MULTILINE)
        if used and used[1] == "./StallWatch":
            inputs = " ".join(f"{name}={value}" for name, value in re.findall(r"^          ([\w-]+): (.+)$", part, re.MULTILINE))
            runner = f"python3 {ROOT}/Tests/Programs/run-action.py {scratch}/StallWatch/action.yml {inputs}"
            # The tests stall, so the action fails.
            output = step(runner, 1, scratch, environment, before)
        elif used:
            print(f"  left out: {used[1]}, which only GitHub has")
        else:
            step(re.search(r"^        run: (.+)$", part, re.MULTILINE)[1], 0, scratch, environment, before)
    has(output, "file=package/Sources/Notes/NoteStore.swift,line=20", "the workflow's annotation")
    has(summary.read_text(), BLAMED["StallsInTests"], "the workflow's summary")


# DuckDB's program, as far as the page uses it.
DUCKDB = """#!/usr/bin/env python3
import sys
sys.path.insert(0, "{packages}")
import duckdb
database = duckdb.connect(sys.argv[1])
for command in sys.argv[3::2]:
    text = open(command.removeprefix(".read ")).read() if command.startswith(".read ") else command
    print(database.execute(text).fetchall())
"""


def follow_fleet(scratch):
    """The made-up reports of the page, queried."""
    page = (GUIDES / "Fleet.md").read_text()
    folder, environment = scratch / "StallWatch", with_tools(scratch)
    if not shutil.which("duckdb"):
        run([folder / "scripts" / "install-python-packages.sh", "fleet"])
        script(scratch / "tools" / "duckdb", DUCKDB.format(packages=folder / ".build" / "python-fleet"))
        print("  instead of DuckDB's program: PyPI's library")
    # What it is about comes last in the page.
    lines = [line for file, text in reversed(list(blocks(page))) if not file for line in text.splitlines()]
    queried = ""
    for line in lines:
        if line.startswith("clickhouse") and not shutil.which("clickhouse-client"):
            print(f"  left out, because there is no server of it (`make fleet-queries` runs its engine): {line}")
        else:
            output = step(line, 0, folder, environment)
            queried = output if line.startswith("duckdb") else queried
    print("  left out: Grafana's dashboard, which needs Grafana and a server of your own")
    # The build's lines come first, and may have braces of their own.
    output = step("swift run stallwatch top collected --json", 0, folder, environment)
    top = json.loads(output[re.search(r"^\{", output, re.MULTILINE).start() :])
    has(queried, top["groups"][0]["fingerprint"], "the query's result")
    print("Fleet: queried: the costliest group is that of top", flush=True)


def stages(dockerfile):
    """Returns the instructions of each stage, as (word, rest)."""
    found = []
    for line in re.sub(r"\\\n", " ", dockerfile).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            found.append([])
        elif word and not word.startswith("#"):
            found[-1].append((word, rest))
    return found


def follow_docker(scratch):
    """Returns whether the program of AsyncMain, built and run as the Dockerfile says, leaves the right report."""
    folder, root = scratch / "notes", scratch / "root"
    for file, text in blocks((GUIDES / "AsyncMain.md").read_text()):
        if file:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            # As the page says.
            (folder / file).write_text(text.replace('.directory("stalls")', '.directory("/var/lib/notes/stalls")'))
    run(["debootstrap", "--variant=minbase", f"--include={SLIM_PACKAGES}", "bookworm", root])
    for name in ["/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/ssl/certs", "/etc/resolv.conf"]:
        source = pathlib.Path(name)
        if source.is_dir():
            # The root's own links lead to files of this machine, which must not be overwritten.
            shutil.rmtree(root / name[1:], ignore_errors=True)
            shutil.copytree(source, root / name[1:], ignore_dangling_symlinks=True)
        elif source.exists():
            shutil.copy(source, root / name[1:])
    build, runtime = stages(re.search(r"```dockerfile\n(.*?)```", (GUIDES / "Docker.md").read_text(), re.DOTALL)[1])
    inside = ["chroot", root]
    begin = time.monotonic()
    for word, rest in build:
        if word == "RUN":
            run(["bash", "-ec", rest], cwd=folder)
    user, output = "root", ""
    for word, rest in runtime:
        if word == "RUN":
            run([*inside, "bash", "-ec", rest])
        elif word == "COPY":
            source, target = rest.removeprefix("--from=build ").split()
            shutil.copy(scratch / source.removeprefix("/src/"), root / target[1:])
        elif word == "USER":
            user = rest
        elif word == "CMD":
            mounts = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot --userspec="$1" "$0" "$2"'
            program = re.fullmatch(r'\["(.+)"\]', rest)[1]
            run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec", mounts, root, user, program])
    reports = root / "var/lib/notes/stalls"
    shown = run(["swift", "run", "-c", "release", "--package-path", scratch / "StallWatch", "stallwatch", "show", reports])
    lines = re.search(r"readTheCatalogue\(\)\s+App\.swift:\d+", shown)
    if BLAMED["Docker"] not in shown[shown.rfind(" stalled ") :] or not lines:
        print(f"Docker: the report does not blame {BLAMED['Docker']} with its line:\n{shown[-4000:]}", file=sys.stderr)
        return False
    print(f"Docker: shown after {time.monotonic() - begin:.0f} s, blames {lines[0]}, run as {user}", flush=True)
    return True


def main(names):
    unknown = [name for name in names if name not in BLAMED]
    if unknown:
        print(f"There is no guide {', '.join(unknown)} to follow: {', '.join(BLAMED)}.", file=sys.stderr)
        return 64
    if NEED_ROOT & set(names or BLAMED) and os.geteuid() != 0:
        print(f"{', '.join(sorted(NEED_ROOT))} need root: run this with sudo, or name the other guides.", file=sys.stderr)
        return 69
    # A background job of a shell ignores it, and so would what is started here, which it has to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    special = {"README": follow_readme, "StallsInTests": follow_tests, "Fleet": follow_fleet}
    results = []
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-guides-"))
    try:
        # One clone, so that the tool is built once: only the first guide waits for it after its first report.
        run(["git", "clone", "--quiet", ROOT, scratch / "StallWatch"])
        for name in names or BLAMED:
            if name in special:
                try:
                    special[name](scratch)
                    results.append(True)
                except (RuntimeError, subprocess.TimeoutExpired) as fault:
                    print(f"{name}: {fault}", file=sys.stderr)
                    results.append(False)
            else:
                results.append(follow_docker(scratch) if name == "Docker" else follow(name, scratch))
            shutil.rmtree(scratch / "notes", ignore_errors=True)
    finally:
        shutil.rmtree(scratch)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
