#!/usr/bin/env python3
"""Checks that what the documents name exists.

    scripts/check-documents.py [FILE...]

Without a file it reads the Markdown files under version control but the changelog, which speaks of the past. In code style and
in blocks for a shell it looks for

1. paths of this repository, and targets of `make` with their variables;
2. commands and options of `stallwatch`: each option has to be one of its command;
3. variables of the environment, `STALLWATCH_…`;
4. names: each part of `cause.lock.owners` or `StallMonitor.start()` has to be a word of the sources, the schema, the tests, the
   examples or Makefile; those of other projects are in ELSEWHERE.

Links lead to files, and those with a fragment to a heading. GitHub does not follow `doc:` links: scripts/build-documentation.sh makes
them of links to files of the catalog. Each row of the table in docs/Guarantees.md has a suite of tests: a link with its name to
its file. A table of measurements has rows of Benchmarks/RESULTS.md only, as README's.

Exit status: 0 without faults, 1 with faults.
"""

import pathlib
import re
import subprocess
import sys

# Names of the system and of other projects in code style, which no file of the sources contains.
ELSEWHERE = {"CLONE_NEWUSER", "NIOThreadPool", "PERFMON", "RuntimeDefault", "emptyDir", "libdw1t64", "nr_throttled"}
# The package that the guides have a reader make.
GUIDES = re.compile(r"(?:Sources/notes|Tests/NotesTests)/", re.IGNORECASE)

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELL = {"", "sh", "text", "yaml"}
MEASUREMENTS = re.compile(r"^\| measurement \|.*\n\|[ :|-]+\n((?:\|.*\n)+)", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_]\w*(?:\(\))?(?:\.[A-Za-z_]\w*)*(?:\([\w:]*\))?")


class Repository:
    """What there is to name."""

    def __init__(self, root):
        self.root = root
        # The checkout may belong to another user, as in some containers.
        list_files = ["git", "-c", "safe.directory=*", "ls-files"]
        files = subprocess.run(list_files, cwd=root, capture_output=True, text=True, check=True).stdout
        self.files = [path for path in files.splitlines() if (root / path).is_file()]
        self.documents = [path for path in self.files if path.endswith(".md") and path != "CHANGELOG.md"]
        self.top = {path.split("/")[0] for path in self.files if "/" in path}
        self.makefile = (root / "Makefile").read_text()
        self.results = (root / "Benchmarks/RESULTS.md").read_text().splitlines()
        self.commands = commands(root / "Sources/StallWatchCLI")
        self.words = set()
        for path in self.files:
            # The script and its test have the names that are missing.
            if not path.endswith((".md", ".png")) and "check-documents" not in path:
                self.words |= set(re.findall(r"[A-Za-z_]\w*", (root / path).read_text(errors="ignore")))
        self.words |= {name for path in self.files for name in re.findall(r"\w+", path)}


def kebab(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def commands(folder):
    """Returns the options of each command of the tool."""
    text = "\n".join(path.read_text() for path in sorted(folder.rglob("*.swift")))
    structs = dict(re.findall(r"^struct (\w+): [^\n{]+\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE))

    def options(name):
        found = set()
        for spelling, variable, value in re.findall(r"@(?:Option|Flag)\b(.*?)\bvar (\w+)([^\n]*)", structs[name], re.DOTALL):
            found |= {kebab(variable), *re.findall(r'customLong\("([\w-]+)"', spelling)}
            # A flag for each value of an enumeration.
            for kind in re.findall(r"\b\w+\.(\w+)\.\w+$", value):
                if f"{kind}: EnumerableFlag" in text:
                    for body in re.findall(rf"enum {kind}\b.*?\{{(.*?)\}}", text, re.DOTALL):
                        found |= set(re.findall(r'"([\w-]+)"', body))
        for group in re.findall(r"@OptionGroup(?:\([^)]*\))?\s+var \w+: (\w+)", structs[name]):
            found |= options(group)
        return found

    return {
        command: options(name) | {"help", "version"}
        for name, body in structs.items()
        for command in re.findall(r'commandName: "(\w+)"', body)[:1]
    }


def spans(text):
    """Returns each text in code style, and each line of a block for a shell, with the number of its line."""
    found = []
    for block in BLOCK.finditer(text):
        if block[1] in SHELL:
            number = text.count("\n", 0, block.start()) + 2
            joined = block[2].replace("\\\n", "  ")
            found += [(number + index, line.strip(), True) for index, line in enumerate(joined.splitlines())]
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    found += [(prose.count("\n", 0, code.start()) + 1, code[1], False) for code in CODE.finditer(prose)]
    return found


def command_faults(line, known):
    """Checks each call of the tool in a line, which may be a pipe."""
    for call in re.split(r"[|;]|&&", line):
        words = re.sub(r"\s#.*", "", call).replace("swift package stalls", "stallwatch").split()
        if "stallwatch" not in words[:1] and not re.search(r"run (?:.* )?stallwatch ", call):
            continue
        words = words[words.index("stallwatch") + 1 :]
        if not words or words[0].startswith("-"):
            words = ["top", *words]
        command = "update" if words[0] == "baseline" else words[0]
        if command not in known:
            if command.islower() and command.isalpha() and command != "help":
                yield f"stallwatch has no command {command}"
            continue
        for index, word in enumerate(words[1:], 1):
            # What follows is another program's.
            if word == "--" or (command in ("run", "test") and not any(each.startswith("-") for each in words[index - 1 : index + 1])):
                break
            option = re.fullmatch(r"--([a-z-]+)(?:=.*)?", word)
            if option and option[1] not in known[command]:
                yield f"stallwatch {command} has no option {word}"


def make_faults(line, makefile):
    for words in re.findall(r"(?:^|[;&|] *|\$ )make((?: +[\w=.\"-]+)+)", line):
        for word in words.split():
            variable = re.match(r"([A-Z_]+)=", word)
            if variable and not re.search(rf"\b{variable[1]}\b", makefile):
                yield f"the makefile uses no variable {variable[1]}"
            elif re.fullmatch(r"[a-z][a-z0-9-]*", word) and not re.search(rf"^{word}:", makefile, re.MULTILINE):
                yield f"the makefile has no target {word}"


def path_faults(line, repository):
    folders = "|".join(re.escape(name) for name in repository.top)
    for path in re.findall(rf"(?<![\w/.~-])((?:{folders})/[\w./*+-]*)", line):
        path = path.rstrip(".")
        # Capitals stand for a name: adapters/NAME.py.
        if GUIDES.match(path) or re.search(r"\b(?:NAME|FILE|FOLDER)\b", path):
            continue
        if not any(repository.root.glob(path.rstrip("/"))):
            yield f"there is no {path}"


def name_faults(code, repository):
    if not NAME.fullmatch(code):
        return
    for word in re.findall(r"[A-Za-z_]\w*", code):
        if word not in repository.words and word not in ELSEWHERE:
            yield f"no file has the name {word}"

def anchors(text):
    """The fragments of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def link_faults(repository, document, text):
    folder = (repository.root / document).parent
    for match in LINK.finditer(text):
        link = match[1]
        if re.match(r"https?:|mailto:|_|#?$", link):
            continue
        if link.startswith("doc:"):
            yield match.start(), f"{link}: GitHub does not follow it; write {link[4:]}.md"
            continue
        path, _, fragment = link.partition("#")
        target = folder / path if path else repository.root / document
        if not target.exists():
            yield match.start(), f"the link {link} leads nowhere"
        elif fragment and target.suffix == ".md" and fragment not in anchors(target.read_text()):
            yield match.start(), f"{link}: that page has no such heading"


def promise_faults(root):
    """The suites of tests in docs/Guarantees.md."""
    document = root / "docs/Guarantees.md"
    rows = re.findall(r"^\| (.*) \| (.*) \|$", document.read_text(), re.MULTILINE)[2:]
    if not rows:
        yield "there is no table of promises and tests"
    for promise, tests in rows:
        suites = re.findall(r"\[(\w+)\]\(([\w/+.]+)\)", tests)
        if not suites:
            yield f"no suite is named for: {promise}"
        for suite, path in suites:
            file = document.parent / path
            text = file.read_text() if file.is_file() else ""
            if not re.search(rf"\bstruct {suite}\b.*?@Test\b", text, re.DOTALL):
                yield f"{path} has no suite {suite} with a test"


def faults(repository, document):
    text = (repository.root / document).read_text()
    for number, line, is_block in spans(text):
        found = [*command_faults(line, repository.commands), *make_faults(line, repository.makefile), *path_faults(line, repository)]
        found += [f"no file has the variable {name}" for name in re.findall(r"\bSTALLWATCH_\w+", line) if name not in repository.words]
        if not is_block and not line.startswith("STALLWATCH_"):
            found += name_faults(line, repository)
        yield from ((document, number, fault) for fault in found)
    rows = [(table.start(), row) for table in MEASUREMENTS.finditer(text) for row in table[1].splitlines()]
    unknown = [(start, f"Benchmarks/RESULTS.md has no row {row}") for start, row in rows if row not in repository.results]
    for start, fault in [*link_faults(repository, document, text), *unknown]:
        yield document, text.count("\n", 0, start) + 1, fault


repository = Repository(pathlib.Path(__file__).resolve().parent.parent)
if sys.argv[1:]:
    found = [fault for path in sys.argv[1:] for fault in faults(repository, path)]
else:
    found = [fault for path in repository.documents for fault in faults(repository, path)]
    found += [("docs/Guarantees.md", 1, fault) for fault in promise_faults(repository.root)]
for document, number, fault in found:
    print(f"{document}:{number}: error: {fault}", file=sys.stderr)
sys.exit(1 if found else 0)
