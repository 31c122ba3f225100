#!/usr/bin/env python3
"""Checks which way the references in Sources/ point, and that files are neither too long nor too small.

    scripts/check-layers.py [--root DIRECTORY]

1. Modules. A file imports only the modules of Sources/ that MODULES allows for its own. Modules without a folder in
   Sources/ (the system's, other packages') are ignored.
2. Folders. A file in a folder of Sources/StallWatch/Linux uses no name that a folder outside of FOLDERS[its own] declares
   at the top level of a file. The compiler checks the folder API: it compiles without Linux where the library is inert.
3. Sizes. A Swift file of Sources/ has at most MOST_LINES lines, and at most SMALL_SHARE of them have fewer than SMALL_LINES.

The script matches words outside of comments and strings; it does not compile. A word is no reference if it follows a dot,
is the label of an argument, or if the file declares the same name. So it does not see a *member* that an extension in a
forbidden folder adds to a type of an allowed one.

Exit status: 0 without faults, 1 with faults, 2 for wrong arguments.
"""

import argparse
import pathlib
import re
import sys

# Which modules of Sources/ each module may import.
MODULES = {
    "LinuxSupport": {"CLinux"},
    "StallReports": set(),
    "StallSymbols": {"CLinux", "CSymbols", "LinuxSupport", "StallReports"},
    "StackCapture": {"CUnwind", "LinuxSupport", "StallReports"},
    "StallWatch": {"CLinux", "LinuxSupport", "StackCapture", "StallReports", "StallSymbols"},
    "StallWatchTesting": {"LinuxSupport", "StallReports", "StallSymbols", "StallWatch"},
    "StallWatchAgent": {"LinuxSupport", "StallReports", "StallWatch"},
    "TextOutput": set(),
    "StallWatchCLI": {"LinuxSupport", "StackCapture", "StallReports", "StallSymbols", "TextOutput"},
    "stallwatch-demo": {"StallReports", "StallWatch", "TextOutput"},
}

# Which folders of Sources/StallWatch/Linux each folder may refer to, beside API.
LOWER = {"Sinks", "Detection", "Diagnosis", "Loops"}
FOLDERS = {
    "Monitor": LOWER | {"Reporting", "Health"},
    "Health": LOWER | {"Reporting"},
    "Reporting": LOWER,
    "Detection": {"Diagnosis", "Loops"},
    "Diagnosis": {"Loops"},
    "Loops": set(),
    "Sinks": set(),
}

# The folders of Sources/StallWatch that are compiled off Linux: the compiler checks their references.
EVERYWHERE = {"API"}

MOST_LINES = 400
SMALL_LINES = 40
SMALL_SHARE = 0.03

IMPORT = re.compile(r"^\s*(?:@\w+ )?(?:\w+ )?import (?:(?:struct|class|enum|protocol|func|var|let) )?(\w+)", re.MULTILINE)
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|#+"(?:"(?!#)|[^"])*"#+|"""(?P<long>.*?)"""|"(?P<short>(?:\\\((?:[^()"\n]|"[^"\n]*"|\([^()\n]*\))*\)|\\.|[^"\\\n])*)"',
    re.DOTALL,
)
INTERPOLATION = re.compile(r"\\\(((?:[^()\n]|\([^()\n]*\))*)\)")
KEYWORD = r"(?:struct|class|enum|protocol|actor|typealias|func|let|var)"
TOP = re.compile(rf"^(?:@[\w()]+ )*((?:[\w()]+ )*?){KEYWORD} `?(\w+)", re.MULTILINE)
DECLARED = re.compile(rf"\b(?:{KEYWORD}|case) `?(\w+)|(?<![\w.])([a-z]\w*)\s*:")
WORD = re.compile(r"(?<![\w.`])(?:StallWatch\.)?([A-Za-z_]\w*)\b(?!\s*:(?!:))")


def code(text):
    """Returns `text` without comments and without the text of strings. Interpolated code stays."""

    def interpolated(match):
        literal = match["long"] or match["short"] or ""
        return " ".join([" 0 "] + [re.sub(r'"[^"]*"', " 0 ", part) for part in INTERPOLATION.findall(literal)])

    return COMMENT_OR_STRING.sub(interpolated, text)


class File:
    """The imports, the declarations and the words of a file."""

    def __init__(self, path):
        text = path.read_text()
        source = code(text)
        self.lines = text.count("\n")
        self.imports = IMPORT.findall(source)
        names = [(modifiers.split(), name) for modifiers, name in TOP.findall(source)]
        self.top = {name for modifiers, name in names if not {"private", "fileprivate"} & set(modifiers)}
        self.own = {name for pair in DECLARED.findall(source) for name in pair if name}
        self.words = set(WORD.findall(source))


def read(root):
    """Returns the Swift files of the modules, by their path below Sources/."""
    sources = root / "Sources"
    paths = [path for module in MODULES for path in sorted((sources / module).rglob("*.swift"))]
    return {path.relative_to(sources): File(path) for path in paths}


def import_faults(root, files):
    modules = {path.name for path in (root / "Sources").iterdir() if path.is_dir()}
    for path, file in files.items():
        module = path.parts[0]
        for name in file.imports:
            if name in modules - MODULES[module] - {module}:
                yield f"Sources/{path}: error: {module} may not import {name}"


def folder_faults(files):
    declared, inside = {}, []
    for path, file in files.items():
        if path.parts[0] == "StallWatch" and path.parts[1] not in EVERYWHERE:
            if path.parts[1] != "Linux" or path.parts[2] not in FOLDERS:
                yield f"Sources/{path}: error: the file is outside the folders {', '.join(FOLDERS)}"
                continue
            inside.append((path.parts[2], path, file))
            declared.update({name: path.parts[2] for name in file.top})
    for folder, path, file in inside:
        for name in sorted(file.words - (file.own - file.top)):
            target = declared.get(name, folder)
            if target != folder and target not in FOLDERS[folder]:
                yield f"Sources/{path}: error: {folder} may not refer to {target}: {name}"


def size_faults(files):
    for path, file in files.items():
        if file.lines > MOST_LINES:
            yield f"Sources/{path}: error: the file has {file.lines} lines, the limit is {MOST_LINES}: find the second thought"
    small = [path for path, file in files.items() if file.lines < SMALL_LINES]
    if len(small) > SMALL_SHARE * len(files):
        names = ", ".join(map(str, small))
        yield f"Sources: error: {len(small)} of {len(files)} files have under {SMALL_LINES} lines: merge them with their only users: {names}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    files = read(root)
    faults = [*import_faults(root, files), *folder_faults(files), *size_faults(files)]
    if not files:
        faults.append(f"{root}/Sources: error: no Swift file in any module")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
