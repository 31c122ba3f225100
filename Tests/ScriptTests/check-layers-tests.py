#!/usr/bin/env python3
"""Tests scripts/check-layers.py with small trees of sources."""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/check-layers.py"

# A tree without faults: one type per folder, in the order of the layers. Each test adds files to it.
CLEAN = {
    "StallWatch/Linux/Monitor/Monitor.swift": "public final class Monitor { let reporter = Reporter() }",
    "StallWatch/Linux/Reporting/Reporter.swift": "struct Reporter { var sink: Sink?; var watchdog: Watchdog? }",
    "StallWatch/Linux/Sinks/Sink.swift": "protocol Sink {}",
    "StallWatch/Linux/Detection/Watchdog.swift": "struct Watchdog { let cause = Cause(); let source: LoopSource? = nil }",
    "StallWatch/Linux/Diagnosis/Cause.swift": "struct Cause {}\nfunc splitTime(of source: LoopSource) {}",
    "StallWatch/Linux/Loops/LoopSource.swift": "import Glibc\nimport LinuxSupport\nstruct LoopSource {}",
    "LinuxSupport/Semaphore.swift": "internal import CLinux\npackage final class Semaphore {}",
    "StackCapture/Engine.swift": "import CUnwind\nstruct Engine {}",
    "CLinux/clinux.c": "",
    "CUnwind/unwind.c": "",
}


def run(files, lines=40):
    """Returns the script's exit status and output for the clean tree with `files` added, each at least as long as that."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**CLEAN, **files}.items():
            path = pathlib.Path(root) / "Sources" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n" * max(lines - text.count("\n"), 0))
        command = [SCRIPT, "--root", root]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return result.returncode, result.stdout + result.stderr


PROBE = "StallWatch/Linux/Loops/Probe.swift"
FOLDERS = "Monitor, Health, Reporting, Detection, Diagnosis, Loops, Sinks"
# What a text breaks, in the file PROBE or in the one that is named.
REFUSED = [
    ("struct Probe { var cause: Cause }", "Loops may not refer to Diagnosis: Cause"),
    ("struct Probe { init() { splitTime(of: x) } }", "Loops may not refer to Diagnosis: splitTime"),
    ("struct Probe { var split: Cause.Split }", "Loops may not refer to Diagnosis: Cause"),
    ("struct Probe { let a = StallWatch.splitTime }", "Loops may not refer to Diagnosis: splitTime"),
    ('struct Probe { let a = "x \\(Cause(b: 1)) y" }', "Loops may not refer to Diagnosis: Cause"),
    ("extension Reporter { var late: Bool { true } }", "Detection may not refer to Reporting: Reporter",
     "StallWatch/Linux/Detection/Reporter+Late.swift"),
    ("struct File { var dog: Watchdog }", "Sinks may not refer to Detection: Watchdog", "StallWatch/Linux/Sinks/File.swift"),
    ("struct Stray {}", f"the file is outside the folders {FOLDERS}", "StallWatch/Stray.swift"),
    ("struct Probe {}\n" + "// A line.\n" * 400, "the file has 401 lines, the limit is 400: find the second thought"),
    *[(f"{line}\nstruct Probe {{}}", "LinuxSupport may not import StallWatch", "LinuxSupport/Probe.swift")
      for line in ["import StallWatch", "internal import StallWatch", "@testable import StallWatch",
                   "#if X\n  import StallWatch\n#endif", "import struct StallWatch.Monitor"]],
]


class LayerTests(unittest.TestCase):
    def accepts(self, text, path=PROBE):
        self.assertEqual(run({path: text}), (0, ""))

    def test_a_clean_tree_passes(self):
        self.assertEqual(run({}), (0, ""))

    def test_each_fault_is_named(self):
        for text, fault, *path in REFUSED:
            path = path[0] if path else PROBE
            with self.subTest(text=text[:80], path=path):
                self.assertEqual(run({path: text}), (1, f"Sources/{path}: error: {fault}\n"))

    def test_the_folder_that_every_platform_compiles_is_accepted(self):
        self.accepts("public final class Monitor {}", path="StallWatch/API/Monitor.swift")

    def test_comments_and_strings_are_not_references(self):
        self.accepts(
            '// Cause\n/* Watchdog\n Monitor */\nstruct Probe { let a = "Cause \\" Sink"\n'
            'let b = """\n  Monitor "quoted"\n  """\nlet c = #"Cause " Monitor"# }'
        )

    def test_members_labels_and_names_of_the_file_are_not_references(self):
        self.accepts("struct Probe { func f(splitTime: Int) { g(splitTime: splitTime); x.Cause } }")
        self.accepts("struct Probe { enum Cause {}\n var cause: Cause }")
        self.accepts("struct Probe { func splitTime() {}\n func f() { splitTime() } }")

    def test_a_private_name_counts_only_in_its_file(self):
        status, output = run(
            {
                "StallWatch/Linux/Diagnosis/Split.swift": "struct Split {}\nprivate struct Part {}\nprivate func add() {}",
                "StallWatch/Linux/Loops/Probe.swift": "struct Probe { var part: Part; init() { add() } }",
            }
        )
        self.assertEqual((status, output), (0, ""))

    def test_a_name_with_a_private_setter_counts(self):
        status, output = run(
            {
                "StallWatch/Linux/Diagnosis/Split.swift": "struct Split {}\nprivate(set) var total = 0",
                "StallWatch/Linux/Loops/Probe.swift": "struct Probe { let a = total }",
            }
        )
        self.assertEqual(status, 1)
        self.assertIn("Loops may not refer to Diagnosis: total", output)

    def test_the_longest_file_is_accepted(self):
        self.accepts("struct Probe {}\n" + "// A line.\n" * 399)

    def test_more_small_files_than_the_share_are_refused(self):
        files = {f"StallReports/Report{number}.swift": f"struct Report{number} {{}}" for number in range(30)}
        self.assertEqual(run(files), (0, ""))
        status, output = run({name: text for name, text in files.items()}, lines=39)
        self.assertEqual(status, 1)
        self.assertIn("38 of 38 files have under 40 lines", output)


if __name__ == "__main__":
    unittest.main()
