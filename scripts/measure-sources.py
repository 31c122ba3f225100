#!/usr/bin/env python3
"""Prints how large the project is, and how many files a reader opens to understand some.

    scripts/measure-sources.py [REVISION ...]

Prints a column for each revision. `.` is the working tree, which is measured without an argument.

- Lines: as `wc -l` counts them. *Sources* and *Tests* count Swift, C and the page. *All text* counts every tracked file of
  Sources, Tests and scripts, so moving a file between them changes nothing. *Code* leaves out blank lines and lines that
  hold only a comment or a Python docstring.
- A file *reaches* the files of its module that declare, at the top level, a name which it uses, and what these reach. The
  wider number also follows nested types and the imported modules of Sources/.
- Public declarations: lines with the word `public`; and documented symbols of the compiler's symbol graph, for the
  working tree if .build has the module.
"""

import importlib.util
import json
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".swift", ".c", ".h", ".cpp", ".js", ".css", ".html"}
HASH_COMMENTS = {".py", ".sh"}
# Readers begin at these files.
BEGINNINGS = ["TopCommand", "LoopSupervisor", "Reporter", "SinkSet", "ReportBuilder"]
COMMON_NAMES = ["State", "Loop", "Kind", "Field", "Frame"]
TYPE = re.compile(r"^( *)(?:@\w+ )*(?:[\w()]+ )*?(?:struct|class|enum|protocol|actor) `?(\w+)", re.MULTILINE)
OPENED = re.compile(r"^(?:@\w+ )*(?:[\w()]+ )*?(?:struct|class|enum|protocol|actor|extension) ([\w.]+)", re.MULTILINE)

spec = importlib.util.spec_from_file_location("layers", ROOT / "scripts/check-layers.py")
layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layers)


class Reach:
    """Which files declare the names that a file uses."""

    def __init__(self, root, files):
        self.files = files
        self.top, self.nested, self.uses = {}, {}, {}
        for path, file in self.files.items():
            source = layers.code((root / "Sources" / path).read_text())
            module = self.top.setdefault(path.parts[0], {})
            module.update({name: path for name in file.top})
            opened = {name.split(".")[0] for name in OPENED.findall(source)}
            inner = {name for indentation, name in TYPE.findall(source) if indentation}
            for outer in opened:
                self.nested.setdefault(outer, {}).update({name: path for name in inner})
            self.uses[path] = opened, set(re.findall(r"\b([A-Z]\w*)\.([A-Z]\w*)\b", source))

    def neighbors(self, path, wide):
        file, (opened, pairs) = self.files[path], self.uses[path]
        modules = [path.parts[0]] + (file.imports if wide else [])
        for name in file.words - (file.own - file.top):
            yield next((self.top[module][name] for module in modules if name in self.top.get(module, {})), None)
        if wide:
            for outer, inner in pairs | {(outer, word) for outer in opened for word in file.words}:
                yield self.nested.get(outer, {}).get(inner)

    def count(self, beginning, wide):
        found, left = {beginning}, [beginning]
        while left:
            for path in self.neighbors(left.pop(), wide):
                if path and path not in found:
                    found.add(path)
                    left.append(path)
        return f"{len(found)} files, {sum(self.files[path].lines for path in found)} lines"


def lines(paths):
    return sum(path.read_bytes().count(b"\n") for path in paths)


def code_lines(path):
    """Returns the number of lines that are neither blank nor only a comment."""
    count, end = 0, None
    blocks = {"/*": "*/", "<!--": "-->"} if path.suffix in CODE else {'"""': '"""'} if path.suffix == ".py" else {}
    marks = "//" if path.suffix in CODE else "#" if path.suffix in HASH_COMMENTS else None
    for line in path.read_text(errors="replace").splitlines():
        line = line.strip()
        if end:
            end = None if end in line else end
            continue
        begin = next((mark for mark in blocks if line.startswith(mark)), None)
        if begin:
            end = None if blocks[begin] in line[len(begin) :] else blocks[begin]
        elif line and not (marks and line.startswith(marks)):
            count += 1
    return count


def configuration_members(files, root):
    """Returns the number of public variables of the type Configuration of the library."""
    for path in files:
        text = (root / "Sources" / path).read_text()
        body = re.search(r"^( *)public struct Configuration\b.*?^\1}", text, re.MULTILINE | re.DOTALL)
        if path.parts[0] == "StallWatch" and body:
            return len(re.findall(rf"^{body[1]}    public (?:var|let) ", body[0], re.MULTILINE))
    return "-"


def public_symbols(root):
    """Returns the number of public symbols of StallReports that the last debug build of the working tree has."""
    modules = root / ".build/debug/Modules"
    if not (modules / "StallReports.swiftmodule").exists():
        return "-"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["swift-symbolgraph-extract", "-module-name", "StallReports", "-I", modules, "-minimum-access-level", "public",
             "-skip-inherited-docs", "-target", f"{platform.machine()}-unknown-linux-gnu", "-output-dir", folder], check=True, timeout=120)
        graphs = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.symbols.json")]
    # Every declaration is documented. What the compiler derives, such as `init(from:)`, is not.
    names = {symbol["identifier"]["precise"] for graph in graphs for symbol in graph["symbols"] if "docComment" in symbol}
    return sum("::SYNTHESIZED::" not in name for name in names)


def measure(root, tracked):
    # A file that git knows may be removed in the working tree.
    tracked = [name for name in tracked if (root / name).is_file()]
    files = layers.read(root)
    sizes = sorted(file.lines for file in files.values())
    text = [root / name for name in tracked if name.split("/")[0] in ("Sources", "Tests", "scripts")]
    code = [path for path in text if path.suffix in CODE]
    types = [
        name for path in files
        for _, name in TYPE.findall(layers.code((root / "Sources" / path).read_text())) if name in COMMON_NAMES
    ]
    reports = "".join(
        layers.code((root / "Sources" / path).read_text()) for path in files if path.parts[0] == "StallReports")
    yield "tracked files", len(tracked)
    yield "lines in Sources", lines(path for path in code if root / "Sources" in path.parents)
    yield "lines in Tests", lines(path for path in code if root / "Tests" in path.parents)
    yield "all text of Sources, Tests, scripts", lines(text)
    yield "… of it code", sum(code_lines(path) for path in text)
    yield "lines of Package.swift", lines([root / "Package.swift"])
    yield "Swift files in Sources", len(sizes)
    yield "… under 40 lines", f"{sum(size < 40 for size in sizes)} ({sum(size < 40 for size in sizes) / len(sizes):.1%})"
    yield "… median / p90 / longest", f"{statistics.median(sizes):.0f} / {sizes[int(len(sizes) * 0.9)]} / {sizes[-1]}"
    yield "Swift files in Tests", sum(name.startswith("Tests/") and name.endswith(".swift") for name in tracked)
    yield "members of Configuration", configuration_members(files, root)
    yield "public declarations of StallReports", len(re.findall(r"^.*\bpublic ", reports, re.MULTILINE))
    yield "… in the symbol graph", public_symbols(root)
    yield "types named " + ", ".join(COMMON_NAMES), f"{len(types)} ({', '.join(str(types.count(name)) for name in COMMON_NAMES)})"
    reach = Reach(root, files)
    for name in BEGINNINGS:
        for path in (path for path in reach.files if path.name == f"{name}.swift"):
            yield f"reached from {name}", reach.count(path, wide=False)
            yield f"… from {name}, with nested types and modules", reach.count(path, wide=True)


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def column(revision):
    if revision == ".":
        return list(measure(ROOT, git("ls-files").decode().splitlines()))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "x", "-C", folder], input=git("archive", revision), check=True)
        return list(measure(pathlib.Path(folder), git("ls-tree", "-r", "--name-only", revision).decode().splitlines()))


def main():
    revisions = sys.argv[1:] or ["."]
    columns = [dict(column(revision)) for revision in revisions]
    print(f"{'':50}" + "".join(f"{revision[:12]:>26}" for revision in revisions))
    for name in dict.fromkeys(name for values in columns for name in values):
        print(f"{name:50}" + "".join(f"{values.get(name, '-'):>26}" for values in columns))


main()
