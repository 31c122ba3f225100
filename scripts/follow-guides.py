#!/usr/bin/env python3
"""Follows the guides to the letter: in a fresh folder beside a fresh clone, file by file and command by command.

    scripts/follow-guides.py [GUIDE...]

GUIDE is the name of a page in docs/guides, such as Server; by default AsyncMain, GLib and Server. A block after a line that
names a file and ends with a colon is written to that file; the commands of each other sh block are run. Prints how many
commands and seconds it took until the first report was there, and until it was shown, and checks that the report blames
what the page says. As root, sudo is left out.

Exit status: 0 if all is right, 1 if not, 64 for an unknown guide.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What the report of each guide has to show.
BLAMED = {"AsyncMain": "readTheCatalogue()", "GLib": "work_for_too_long", "Server": "readTheCatalogue()"}
LONGEST_SECONDS = 1800


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


def follow(name, scratch):
    """Returns whether the guide leads to the right report."""
    subprocess.run(["git", "clone", "--quiet", ROOT, scratch / "StallWatch"], check=True)
    folder = scratch / "notes"
    folder.mkdir()
    environment = dict(os.environ)
    if os.geteuid() == 0:
        tools = scratch / "tools"
        tools.mkdir()
        (tools / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (tools / "sudo").chmod(0o755)
        environment["PATH"] = f"{tools}:{environment['PATH']}"
    begin = time.monotonic()
    found = []
    threading.Thread(target=first_report, args=(folder, begin, found), daemon=True).start()
    commands, output = 0, ""
    for file, text in blocks((ROOT / "docs" / "guides" / f"{name}.md").read_text()):
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
    if not found or BLAMED[name] not in shown:
        print(f"{name}: the report does not blame {BLAMED[name]}:\n{output[-4000:]}", file=sys.stderr)
        return False
    print(f"{name}: {commands} commands; a report after {found[0]:.0f} s, shown after {whole:.0f} s, blames {BLAMED[name]}", flush=True)
    return True


def main(names):
    unknown = [name for name in names if name not in BLAMED]
    if unknown:
        print(f"There is no guide {', '.join(unknown)} to follow: {', '.join(BLAMED)}.", file=sys.stderr)
        return 64
    results = []
    for name in names or BLAMED:
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-guide-"))
        try:
            results.append(follow(name, scratch))
        finally:
            shutil.rmtree(scratch)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
