#!/usr/bin/env python3
"""Tests Benchmarks/table.py with parts of what its two programs print."""

import pathlib
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "Benchmarks/table.py"

PRINTED = """Building
### Capture of a thread with a stack of 64 KiB

| Metric | p0 | p50 | p99 | Samples |
|:-------|---:|----:|----:|--------:|
| StallWatch's stop: held, ns (#) | 20000 | 22400 | 1.35e+05 | 1000 |
| StallWatch's stop: caller, ns (#) | 1 | 2 | 3 | 1000 |

## Four event loops and ten queues without work, 60 s

| thread | wake-ups | CPU, us | % of a CPU |
| --- | ---: | ---: | ---: |
| NIO-ELT-0-#0 | 1 | 10 | 0.000 |
| NIO-ELT-0-#1 | 2 | 10 | 0.000 |
| stallwatch-dog | 480 | 72000 | 0.120 |
"""


class Table(unittest.TestCase):
    def test_rows(self):
        result = subprocess.run([SCRIPT], input=PRINTED, capture_output=True, text=True, timeout=60)
        self.assertTrue(result.stdout.startswith(PRINTED))
        rows = result.stdout[len(PRINTED) :].splitlines()
        self.assertIn("| held by a stop, 64 KiB stack, p50 / p99 | 22 / 135 us | at most 10 / 40: not met |", rows)
        self.assertIn("| the same, the watchdog's CPU | 0.12 % | at most 0.05: not met |", rows)
        self.assertTrue(any(row.endswith("wake-ups of loops / watchdog | 3 / 480 | at most 0 / 480: not met |") for row in rows))
        self.assertEqual(result.returncode, 1)
        self.assertIn("Not measured: ", result.stderr)


if __name__ == "__main__":
    unittest.main()
