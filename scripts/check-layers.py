#!/usr/bin/env python3
"""Checks which way the references in Sources/ point, how files are named, and how many a folder has.

    scripts/check-layers.py [--root DIRECTORY] [--layout new|old] [--count]

1. Modules. A file imports only those modules of Sources/ that MODULES allows for its own. At most one file imports a
   module of IMPORTED_ONCE. Modules without a folder in Sources/ (the system's, other packages') are ignored.
2. Folders. A file in a folder of Sources/StallWatch refers only to the folders that LAYOUTS allows for its own: it uses
   no name that another folder declares at the top level of a file (type, protocol, typealias, function, variable).
3. Names. A file that declares a type or an extension is named after one: `Name.swift` declares or extends `Name`,
   `Type+Topic.swift` extends `Type`. Files with nothing but functions and variables may have any name. NAME_EXCEPTIONS
   lists the others, each with its reason.
4. Sizes. A folder of Sources/ or Tests/ has at most MOST_FILES files, not counting those in its subfolders.

The script reads tokens; it does not compile. It does not see a member that an extension in a forbidden folder adds to a
type of an allowed one. A private name counts only in its own file. A name is no reference if it follows a dot, is an
argument's label or a type nested in the type around it, or if the file declares the same name.

--count prints how many references lead from folder to folder (a file that uses a name counts once), how many of them
are forbidden, and how many types are in a file of another name. `--layout old` checks the six folders before the split;
each of them was allowed to know only the next one.

Exit status: 0 without faults, 1 with faults, 2 for wrong arguments. With --count: 0.
"""

import argparse
import collections
import os
import pathlib
import re
import sys

# Which modules of Sources/ each module may import.
MODULES = {
    "LinuxSupport": {"CLinux"},
    "StallReports": set(),
    "StallSymbols": {"CLinux", "CSymbols", "LinuxSupport", "StallReports"},
    "StackCapture": {"CUnwind", "LinuxSupport"},
    "StallWatch": {"CLinux", "LinuxSupport", "StackCapture", "StallReports", "StallSymbols"},
    "StallWatchTesting": {"LinuxSupport", "StallReports", "StallSymbols", "StallWatch"},
    "StallWatchAgent": {"LinuxSupport", "StallReports", "StallWatch"},
    "TextOutput": set(),
    "StallWatchCLI": {"CCurl", "LinuxSupport", "StallReports", "StallSymbols", "TextOutput"},
    "stallwatch-demo": {"CDemo", "CStallWatch", "LinuxSupport", "StallReports", "StallWatch", "TextOutput"},
}
# Modules that at most one file imports.
IMPORTED_ONCE = {"CUnwind"}
# The folder of Sources/StallWatch that is compiled in place of the others, off Linux: the compiler checks its references.
COMPILED_ALONE = "Inert"
# The most files of a folder.
MOST_FILES = 25

# Which folders of Sources/StallWatch each folder may refer to. "." holds the files beside the folders.
LAYOUTS = {
    "new": {
        "Integrations": {"API", "Reporting", "Sinks", "Detection", "Diagnosis", "Loops"},
        "API": {"Reporting", "Sinks", "Detection", "Diagnosis", "Loops"},
        "Reporting": {"Sinks", "Detection", "Diagnosis", "Loops"},
        "Detection": {"Diagnosis", "Loops"},
        "Diagnosis": {"Loops"},
        "Loops": set(),
        "Sinks": set(),
    },
    "old": {
        "Loops": {"Detection"},
        "Detection": {"Capture"},
        "Capture": {"Diagnosis"},
        "Diagnosis": {"Symbolication"},
        "Symbolication": {"Reports"},
        "Reports": set(),
    },
}

# Files that are not named after a declaration (relative to Sources/), and why.
NAME_EXCEPTIONS = {}

TYPES = {"struct", "class", "enum", "protocol", "actor", "typealias"}
DECLARATIONS = TYPES | {"func", "let", "var", "case", "init", "extension", "import", "associatedtype", "macro"}
TOKEN = re.compile(r"`[^`]*`|[A-Za-z_$][\w$]*|#[a-z]+|\d[\w.]*|->|[^\s\w]", re.ASCII)


class Fault(Exception):
    """A file that cannot be read as Swift."""


def code(text):
    """Returns `text` without comments and without the text of string literals. Interpolated code stays."""
    out, index, length = [], 0, len(text)
    # For each interpolation the number of open parentheses and the end of its string.
    interpolations = []
    while index < length:
        rest = text[index : index + 2]
        if rest == "//":
            index = text.find("\n", index)
            if index < 0:
                break
        elif rest == "/*":
            depth, index = 1, index + 2
            while depth and index < length:
                if text.startswith("/*", index):
                    depth, index = depth + 1, index + 2
                elif text.startswith("*/", index):
                    depth, index = depth - 1, index + 2
                else:
                    index += 1
        elif match := re.match(r'(#*)("""|")', text[index:]):
            index = string(text, index + match.end(), match[2] + match[1], out, interpolations)
        else:
            character = text[index]
            if interpolations and character in "()":
                interpolations[-1][0] += 1 if character == "(" else -1
                if interpolations[-1][0] == 0:
                    _, end = interpolations.pop()
                    out.append(")")
                    index = string(text, index + 1, end, out, interpolations)
                    continue
            out.append(character)
            index += 1
    return "".join(out)


def string(text, index, end, out, interpolations):
    """Skips a string literal from `index` on. Returns the index after `end`, or of the first interpolated token."""
    escape = "\\" + "#" * end.count("#")
    while index < len(text):
        if text.startswith(end, index):
            out.append(" 0 ")
            return index + len(end)
        if text.startswith(escape, index):
            index += len(escape)
            if text[index : index + 1] == "(":
                out.append("(")
                interpolations.append([1, end])
                return index + 1
        index += 1
    raise Fault("a string literal does not end")


class File:
    """The declarations of a file, and the names that it uses."""

    def __init__(self, path):
        self.path = path
        self.imports = []
        self.top = {}  # Declared at the top level and visible in other files: the keyword by name.
        self.types = collections.defaultdict(set)  # Nested types, by the name of the type around them.
        self.own = set()  # All names that the file declares, at any level.
        self.extended = set()
        self.uses = []  # (name, names of the types around it, the next token)
        self.read(TOKEN.findall(code(path.read_text())))

    def read(self, tokens):
        scopes = []  # For each open brace the type's name, or None.
        pending = None  # The type whose brace comes next.
        hidden = False  # Whether the current declaration is private.
        index = 0
        while index < len(tokens):
            token = tokens[index]
            before = tokens[index - 1] if index else ""
            after = tokens[index + 1] if index + 1 < len(tokens) else ""
            around = [name for name in scopes if name]
            if token == "{":
                scopes.append(pending)
                pending = None
            elif token == "}":
                if scopes:
                    scopes.pop()
            elif token in ("private", "fileprivate") and after != "(":
                hidden = True
            elif before != "." and token == "import" and not scopes:
                if after in TYPES | {"func", "var", "let"}:
                    index += 1
                self.imports.append(tokens[index + 1])
                index += 1
            elif before != "." and token == "extension":
                hidden = False
                # `extension [UInt8]` extends Array.
                pending = "Array" if after == "[" else after.strip("`")
                if after != "[":
                    self.uses.append((pending, around, ""))
                    index += 1
                self.extended.add(pending)
                while index + 2 < len(tokens) and tokens[index + 1] == ".":
                    index += 2
                    pending = tokens[index].strip("`")
                    self.extended.add(pending)
            elif before != "." and token in TYPES | {"func", "let", "var"} and is_name(after):
                name = after.strip("`")
                # `class func` and `class var` are members.
                if token != "class" or name not in ("func", "var", "let"):
                    self.declare(token, name, scopes, around, hidden)
                    if token in TYPES and token != "typealias":
                        pending = name
                    index += 1
                    hidden = False
            elif is_name(token):
                name = token.strip("`")
                qualified = before == "." and tokens[index - 2] if index > 1 else ""
                if before != ".":
                    self.uses.append((name, around, after))
                    # The file declares it: a parameter, an argument's label, a case or a capture.
                    if before == "case" or (after == ":" and not name[0].isupper()):
                        self.own.add(name)
                elif qualified in MODULES:
                    self.uses.append((name, [], "module"))
            index += 1

    def declare(self, keyword, name, scopes, around, hidden):
        if scopes:
            self.own.add(name)
            if keyword in TYPES and around:
                self.types[around[-1]].add(name)
        elif hidden:
            self.own.add(name)
        else:
            self.top[name] = keyword

    def top_types(self):
        return [name for name, keyword in self.top.items() if keyword in TYPES]


def is_name(token):
    return bool(re.match(r"[A-Za-z_`]", token)) and token != "_"


class Tree:
    """The sources below a directory."""

    def __init__(self, root):
        self.sources = root / "Sources"
        self.modules = {path.name for path in self.sources.iterdir() if path.is_dir()}
        self.files = {}
        for module in sorted(self.modules & MODULES.keys()):
            for path in sorted((self.sources / module).rglob("*.swift")):
                try:
                    self.files[path.relative_to(self.sources)] = File(path)
                except Fault as fault:
                    sys.exit(f"{path}: error: {fault}")
        self.nested = collections.defaultdict(set)
        for file in self.files.values():
            for parent, names in file.types.items():
                self.nested[parent] |= names

    def in_folders(self, folders):
        """Yields each file of these folders of Sources/StallWatch: (folder, path, file)."""
        for path, file in self.files.items():
            if path.parts[0] == "StallWatch":
                folder = path.parts[1] if len(path.parts) > 2 else "."
                if folder in folders:
                    yield folder, path, file

    def references(self, folders):
        """Yields each name of another folder that a file uses, once per file: (from, to, path, name)."""
        declared = {}
        for folder, path, file in self.in_folders(folders):
            for name, keyword in file.top.items():
                declared.setdefault(name, (folder, keyword))
        for folder, path, file in self.in_folders(folders):
            found = set()
            for name, around, after in file.uses:
                target, keyword = declared.get(name, (folder, ""))
                if target == folder or name in found:
                    continue
                if after != "module":
                    if name in file.own or any(name in self.nested[parent] for parent in around):
                        continue
                    # The label of an argument, or a name in a declaration.
                    if keyword in ("func", "let", "var") and after == ":":
                        continue
                found.add(name)
                yield folder, target, path, name

    def import_faults(self):
        importers = collections.defaultdict(list)
        for path, file in self.files.items():
            module = path.parts[0]
            for name in file.imports:
                importers[name].append(path)
                if name in self.modules and name != module and name not in MODULES[module]:
                    yield f"Sources/{path}: error: {module} may not import {name}"
        for name in sorted(IMPORTED_ONCE):
            for path in importers[name][1:]:
                yield f"Sources/{path}: error: {name} is imported by Sources/{importers[name][0]} already"

    def folder_faults(self, folders):
        if not any(True for _ in self.in_folders(folders)):
            yield f"{self.sources}/StallWatch: error: no file in any of the folders {', '.join(folders)}"
        for path in self.files:
            if path.parts[0] == "StallWatch" and (len(path.parts) < 3 or path.parts[1] not in [*folders, COMPILED_ALONE]):
                yield f"Sources/{path}: error: the file is outside the folders {', '.join(folders)}"
        for folder, target, path, name in self.references(folders):
            if target not in folders[folder]:
                yield f"Sources/{path}: error: {folder} may not refer to {target}: {name}"

    def name_faults(self):
        for path, file in self.files.items():
            stem, plus, _ = path.stem.partition("+")
            nested = {name for names in file.types.values() for name in names}
            fits = stem in file.extended or not plus and (stem in file.top or stem in nested)
            if (file.extended or file.top_types()) and not fits and str(path) not in NAME_EXCEPTIONS:
                yield f"Sources/{path}: error: the file {'does not extend' if plus else 'neither declares nor extends'} {stem}"
        for path in NAME_EXCEPTIONS:
            if pathlib.Path(path).parts[0] in self.modules and not (self.sources / path).exists():
                yield f"Sources/{path}: error: the file does not exist: remove it from NAME_EXCEPTIONS"


def size_faults(root):
    for top in ("Sources", "Tests"):
        for folder, subfolders, files in os.walk(root / top):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            if len(files) > MOST_FILES:
                name = pathlib.Path(folder).relative_to(root)
                yield f"{name}: error: the folder has {len(files)} files, the limit is {MOST_FILES}: split it by concept"


def print_counts(tree, folders):
    counts = collections.Counter((source, target) for source, target, _, _ in tree.references(folders))
    width = max(map(len, folders)) + 2
    print("from \\ to".ljust(width) + "".join(name.rjust(width) for name in folders))
    for source in folders:
        cells = ["·" if source == target else str(counts[source, target]) for target in folders]
        print(source.ljust(width) + "".join(cell.rjust(width) for cell in cells))
    forbidden = sum(count for (source, target), count in counts.items() if target not in folders[source])
    order = list(folders)
    backward = sum(count for (source, target), count in counts.items() if order.index(target) < order.index(source))
    total = sum(counts.values())
    print(f"{total} references, {forbidden} against the order, {backward} of these to a folder on the left.")
    types = [(path, name) for path, file in tree.files.items() for name in file.top_types()]
    elsewhere = sum(name not in path.stem.split("+") for path, name in types)
    print(f"{elsewhere} of {len(types)} types at the top level are in a file of another name.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--layout", choices=LAYOUTS, default="new")
    parser.add_argument("--count", action="store_true", help="print how many references lead from folder to folder")
    options = parser.parse_args()
    tree, folders = Tree(options.root), LAYOUTS[options.layout]
    if options.count:
        print_counts(tree, folders)
        return 0
    faults = [*tree.import_faults(), *tree.folder_faults(folders), *tree.name_faults(), *size_faults(options.root)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
