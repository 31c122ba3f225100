#!/usr/bin/env python3
"""Runs the steps of action.yml as GitHub's runner does, but for those that use another action.

    Tests/Programs/run-action.py ACTION [INPUT=VALUE...]

ACTION is the file. Works in the current directory, which is the workspace, and in the runner's environment: GITHUB_PATH,
GITHUB_STEP_SUMMARY and the others that the steps use are set where they are not. Prints the output of each step after a
line `== NAME`, and its status after it.

Exit status: 0 if each step succeeded, 1 if one failed, 64 for a wrong argument or an action that this program cannot read.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap


def parts(text, indentation):
    """The members of a mapping, or the items of a list, whose keys stand at that indentation: {key: text below or beside}."""
    pattern = rf"^ {{{indentation}}}([\w-]+):(.*(?:\n(?:(?: {{{indentation + 1},}}| *#).*)?)*)"
    return {key: value for key, value in re.findall(pattern, text, re.MULTILINE)}


def scalar(value):
    """A value of one line, or a block after |."""
    first, _, rest = value.partition("\n")
    return textwrap.dedent(rest).rstrip("\n") + "\n" if first.strip() == "|" else first.strip()


def read(text):
    """The defaults of the inputs, and the steps as mappings of texts."""
    whole = parts(text, 0)
    defaults = {name: scalar(parts(value, 4)["default"]) for name, value in parts(whole["inputs"], 2).items()}
    steps = []
    for item in re.split(r"^    - ", parts(whole["runs"], 2)["steps"], flags=re.MULTILINE)[1:]:
        step = parts("      " + item, 6)
        unknown = set(step) - {"name", "if", "shell", "working-directory", "env", "run", "uses", "with"}
        if unknown or ("run" in step and scalar(step.get("shell", "")) != "bash"):
            raise ValueError(f"a step that this program cannot run: {item}")
        steps.append(step)
    return defaults, steps


def run(steps, inputs):
    """Runs the steps; returns whether each succeeded."""
    def filled(value):
        text = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], scalar(value))
        if "${{" in text:
            raise ValueError(f"an expression that this program does not know: {text}")
        return text

    succeeded = True
    for step in steps:
        name, condition = scalar(step["name"]), scalar(step.get("if", ""))
        if condition not in ("", "${{ !cancelled() }}"):
            raise ValueError(f"{name}: a condition that this program does not know: {condition}")
        print(f"== {name}", flush=True)
        if not condition and not succeeded:
            print("skipped, because a step before it failed", flush=True)
        elif "uses" in step:
            print(f"left out: {scalar(step['uses'])}, which only GitHub has", flush=True)
        else:
            environment = os.environ | {key: filled(value) for key, value in parts(step.get("env", ""), 8).items()}
            added = pathlib.Path(environment["GITHUB_PATH"]).read_text().split("\n")
            environment["PATH"] = ":".join([path for path in reversed(added) if path] + [environment["PATH"]])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scalar(step["run"])], stdin=subprocess.DEVNULL,
                cwd=filled(step.get("working-directory", ".")), env=environment)
            print(f"status {done.returncode}", flush=True)
            succeeded = succeeded and done.returncode == 0
    return succeeded


def main(arguments):
    if not arguments or not all("=" in argument for argument in arguments[1:]):
        print(__doc__, file=sys.stderr)
        return 64
    action = pathlib.Path(arguments[0]).resolve()
    given = dict(argument.split("=", 1) for argument in arguments[1:])
    try:
        defaults, steps = read(action.read_text())
        if set(given) - set(defaults):
            raise ValueError(f"the action has no input {', '.join(set(given) - set(defaults))}")
        with tempfile.TemporaryDirectory() as scratch:
            (pathlib.Path(scratch) / "path").touch()
            known = {
                "GITHUB_ACTION_PATH": str(action.parent), "GITHUB_PATH": f"{scratch}/path", "RUNNER_TEMP": scratch,
                "GITHUB_STEP_SUMMARY": f"{scratch}/summary", "GITHUB_WORKSPACE": os.getcwd(), "GITHUB_ACTIONS": "true",
                "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "example/notes", "GITHUB_SHA": "0123abc",
            }
            for name, value in known.items():
                os.environ.setdefault(name, value)
            return 0 if run(steps, defaults | given) else 1
    except (KeyError, ValueError) as fault:
        print(f"{action}: {fault}", file=sys.stderr)
        return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
