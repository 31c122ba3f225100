#!/usr/bin/env python3
"""Follows the guides to the letter: each in a fresh folder beside a fresh clone, file by file and command by command.

    Tests/Programs/follow-guides.py [GUIDE...]

GUIDE is the name of a page in docs/guides: AsyncMain, GLib, Server or Docker; by default all. A block after a line that
names a file and ends with a colon is written to that file; the commands of each other sh block are run. Prints how many
commands and seconds it took until the first report was there, and until it was shown, and checks that the report blames
what the page says. As root, sudo is left out.

Docker is followed without Docker: the RUN lines of the first stage run here, with the program of AsyncMain; those of the
second one in a root file system that debootstrap makes (package debootstrap) with what Swift's slim images add to Debian's. The
program then runs as the user of the page in that root. This needs root.

Exit status: 0 if all is right, 1 if not, 64 for an unknown guide, 69 without root.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the report of each guide has to show.
BLAMED = {
    "AsyncMain": "readTheCatalogue()", "GLib": "work_for_too_long", "Server": "readTheCatalogue()",
    "Docker": "readTheCatalogue()",
}
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


def follow(name, scratch):
    """Returns whether the guide leads to the right report."""
    folder = scratch / "notes"
    folder.mkdir()
    environment = dict(os.environ)
    if os.geteuid() == 0:
        tools = scratch / "tools"
        tools.mkdir(exist_ok=True)
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


def run(command, **options):
    """Returns the output of a command; raises an error with the output if it fails."""
    done = subprocess.run(
        command, text=True, timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, **options,
    )
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode} of {command}:\n{done.stdout[-4000:]}")
    return done.stdout


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
    pages = ROOT / "docs" / "guides"
    folder, root = scratch / "notes", scratch / "root"
    for file, text in blocks((pages / "AsyncMain.md").read_text()):
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
    build, runtime = stages(re.search(r"```dockerfile\n(.*?)```", (pages / "Docker.md").read_text(), re.DOTALL)[1])
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
            shutil.copy(folder / source.removeprefix("/src/"), root / target[1:])
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
    if "Docker" in (names or BLAMED) and os.geteuid() != 0:
        print("Docker needs root: run this with sudo, or name the other guides.", file=sys.stderr)
        return 69
    results = []
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="stallwatch-guides-"))
    try:
        # One clone, so that the tool is built once: only the first guide waits for it after its first report.
        run(["git", "clone", "--quiet", ROOT, scratch / "StallWatch"])
        for name in names or BLAMED:
            results.append(follow_docker(scratch) if name == "Docker" else follow(name, scratch))
            shutil.rmtree(scratch / "notes")
    finally:
        shutil.rmtree(scratch)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
