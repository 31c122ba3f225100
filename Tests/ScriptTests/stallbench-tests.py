#!/usr/bin/env python3
"""Tests the scorer of Benchmarks/StallBench, and its runner with a driver and tools that are made up."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "Benchmarks/StallBench"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))

import adapterkit  # noqa: E402
import score  # noqa: E402


def stall(**values):
    return {"case": "mutex", "function": "save", "cause": "lock", "healthy": False, "start": 10.0, "end": 10.25,
            "stopped": 0, "early": 0, "longest": 0.25, "owner": 7, "owner name": "saver", **values}


def report(**values):
    return {"began": 10.001, "reported": 10.11, "function": "Store.save(_:)", "cause": "lock", "owner": 7,
            "duration": 0.24, **values}


def row(truth, incidents, **values):
    return {"tool": "one", "set": "thread", "status": "ok", "reason": "", "run": 0, "cpu": 0.5, "wall": 10, "load": 0,
            "truth": truth, "incidents": incidents, **values}


def results(*rows):
    return {"rows": list(rows), "threshold": 0.1, "runs": 1, "seed": 1, "date": "2026-01-01",
            "commands": {"one": "one -x"}, "machine": {"kernel": "6.1", "processors": 2}}


class TruthTests(unittest.TestCase):
    def test_an_owner_belongs_to_the_case_before_it(self):
        lines = [{"set": "thread", "pid": 1}, {"case": "a", "start": 1},
                 {"owner": 5, "owner name": "x", "owner function": "f"},
                 {"end": 2, "early": 0, "stopped": 0, "longest": 1}, {"case": "b", "start": 3}, {"end": 4}]
        self.assertEqual([(one["case"], one["owner"], one["end"]) for one in score.cases_of(lines)],
                         [("a", 5, 2), ("b", None, 4)])

    def test_a_case_without_an_end_is_left_out(self):
        self.assertEqual(score.cases_of([{"case": "a", "start": 1}]), [])


class JudgeTests(unittest.TestCase):
    def verdict(self, *incidents, **case):
        return score.judge(row([stall(**case)], incidents), 0.1)[0][0]

    def test_a_right_report_is_right_in_all(self):
        verdict = self.verdict(report())
        for metric in ("detected", "in time", "function", "cause", "owner"):
            self.assertTrue(verdict[metric], metric)
        self.assertAlmostEqual(verdict["error"], 0.01)
        self.assertAlmostEqual(verdict["delay"], 0.11)

    def test_a_late_report_is_not_in_time(self):
        self.assertFalse(self.verdict(report(reported=10.3))["in time"])

    def test_a_wrong_function_cause_and_owner_are_wrong(self):
        verdict = self.verdict(report(function="bench_step", cause="cpu", owner=8))
        self.assertEqual([verdict[metric] for metric in ("detected", "function", "cause", "owner")],
                         [True, False, False, False])

    def test_an_owner_may_be_named(self):
        self.assertTrue(self.verdict(report(owner="saver"))["owner"])

    def test_without_an_owner_none_is_judged(self):
        self.assertIsNone(self.verdict(report(), owner=None)["owner"])

    def test_without_a_report_nothing_is_right(self):
        self.assertFalse(self.verdict()["detected"])
        self.assertIsNone(self.verdict()["error"])

    def test_a_report_from_another_time_is_about_nothing(self):
        stalls, _, stray = score.judge(row([stall()], [report(began=12, reported=13)]), 0.1)
        self.assertEqual((stalls[0]["detected"], stray), (False, 1))

    def test_a_report_on_a_healthy_case_is_a_false_alarm(self):
        healthy = stall(healthy=True, longest=0.03)
        self.assertEqual(score.judge(row([healthy], [report()]), 0.1)[1], [{"case": "mutex", "alarm": True}])

    def test_a_healthy_case_that_the_machine_stretched_is_not_counted(self):
        self.assertEqual(score.judge(row([stall(healthy=True, longest=0.2)], [report()]), 0.1)[1], [])

    def test_names_lose_their_module_type_and_parameters(self):
        self.assertEqual([score.plain(name) for name in ("save", "Notes.Store.save(_:)", None)], ["save", "save", ""])


class IntervalTests(unittest.TestCase):
    def test_a_certain_share_still_has_an_interval(self):
        low, high = score.wilson(20, 20)
        self.assertAlmostEqual(high, 1)
        self.assertAlmostEqual(low, 0.839, places=3)

    def test_a_median_is_within_its_interval_and_the_same_each_time(self):
        values = [[1, 2, 3, 4, 100]]
        middle, low, high = score.median_of(values)
        self.assertTrue(low <= middle <= high)
        self.assertEqual(score.median_of(values), score.median_of(values))

    def test_rounds_that_differ_widen_each_interval(self):
        mean, low, high = score.mean_of_rounds([1, 2, 3])
        self.assertEqual((mean, round(high - low, 1)), (2, 7.0))
        alike, apart = [[True] * 15 + [False] * 5] * 3, [[True] * 20, [True] * 15 + [False] * 5, [True] * 10 + [False] * 10]
        self.assertEqual(score.share_of(alike)[0], score.share_of(apart)[0])
        self.assertGreater(score.share_of(alike)[1], score.share_of(apart)[1] + 10)
        self.assertGreater(score.median_of([[21, 22, 23]] * 3)[1],
                           score.median_of([[21] * 3, [22] * 3, [23] * 3])[1] + 1)

    def test_a_second_run_falls_within_nineteen_times_in_twenty(self):
        draw, rounds = random.Random(3), 3

        def run():
            return [[draw.random() < 0.9 for _ in range(70)] for _ in range(rounds)], \
                [[draw.expovariate(1) for _ in range(70)] for _ in range(rounds)]

        inside = {"share": 0, "median": 0}
        for _ in range(200):
            shares, times = run()
            more, later = run()
            for name, (_, low, high), (value, *_) in (
                    ("share", score.share_of(shares), score.share_of(more)),
                    ("median", score.median_of(times), score.median_of(later))):
                inside[name] += low <= value <= high
        self.assertGreater(min(inside.values()), 180, inside)

    def test_the_cpu_of_the_program_alone_is_subtracted(self):
        alone = row([], [], tool="none", cpu=0.2)
        summary = score.summarize(results(row([stall()], [report()]), alone), "one", ["thread"])
        self.assertAlmostEqual(summary["cpu"][0], 3)


class PageTests(unittest.TestCase):
    def test_a_tool_that_did_not_run_says_why(self):
        page = score.page(results(row([], [], status="hung", reason="did not end within 9 s")))
        self.assertIn("| one | hung: did not end within 9 s |", page)

    def test_losses_come_before_the_table(self):
        ours = row([stall()], [report(reported=10.4)], tool="stallwatch")
        page = score.page({**results(ours, row([stall()], [report()])), "commands": {"stallwatch": "s", "one": "one"}})
        self.assertLess(page.index("In time: StallWatch 0.0 %; one 100.0 %"), page.index("| tool |"))
        self.assertIn("Not in time: mutex.", page)

    def test_a_comparison_counts_what_is_outside(self):
        one = results(row([stall()] * 40, [report()]))
        other = results(row([stall()] * 40, []))
        self.assertIn("one, found: 0.0, not in", score.comparison(one, other))


def adapter(name):
    return adapterkit.load(BENCH / f"adapters/{name}.py")


def names(addresses, images):
    """Functions of the two images that the recorded outputs have."""
    known = {0x401150: "save", 0x401090: "main", 0x7f0000ee7de5: "clock_nanosleep"}
    return [known[address] if any(one[0] <= address < one[1] for one in images) else "?" for address in addresses]


ENVELOPES = """envelope 1013.500000000
{"event_id":"4c035723-8638-4c3a-923f-2ab9d08b4018"}
{"type":"event","length":700}
{"level":"error","exception":{"values":[{"type":"AppHang","value":"App hung for at least 1250 ms.","stacktrace":\
{"frames":[{"instruction_addr":"0x401090"},{"instruction_addr":"0x401150"},{"instruction_addr":"0x7f0000ee7de5"}]}}]},\
"debug_meta":{"images":[{"code_file":"/none/driver","image_addr":"0x400000","image_size":8192},\
{"code_file":"/none/libc.so.6","image_addr":"0x7f0000e00000","image_size":1968128}]}}
envelope 1020.000000000
{}
{"type":"client_report","length":2}
{}
""".replace("\\\n", "")

SAMPLES = """stall 10.001000 42
[SWIPR] VERS { "version": 1}
[SWIPR] VMAP {"path": "/none/driver", "architecture": "", "segmentSlide": "0x0", "segmentStartAddress": "0x400000", \
"segmentEndAddress": "0x402000"}
[SWIPR] VMAP {"path": "/none/libc.so.6", "architecture": "", "segmentSlide": "0x7f0000e00000", \
"segmentStartAddress": "0x7f0000e00000", "segmentEndAddress": "0x7f0000fe0800"}
[SWIPR] CONF { "sampleCount": 1, "microSecondsBetweenSamples": 0, "currentTimeSeconds": 1, \\
"currentTimeNanoseconds": 2, }
[SWIPR] SMPL {"pid": 41, "tid": 41, "name": "driver", "timeSec": 1, "timeNSec": 3}
[SWIPR] STCK {"ip": "0x401090", "sp": "0x7ffe0000"}
[SWIPR] STCK {"ip": "0x401090", "sp": "0x7ffe0000"}
[SWIPR] DONE
[SWIPR] SMPL {"pid": 41, "tid": 42, "name": "loop", "timeSec": 1, "timeNSec": 3}
[SWIPR] STCK {"ip": "0x7f0000ee7de5", "sp": "0x7ffe0100"}
[SWIPR] STCK {"ip": "0x7f0000ee7de5", "sp": "0x7ffe0100"}
[SWIPR] STCK {"ip": "0x401150", "sp": "0x7ffe0200"}
[SWIPR] DONE
sampled 10.110000
end 0.250000
stall 11.000000 42
""".replace("\\\n", "")


DYING = """#!/bin/sh
echo 'ProfileRecorder precondition failed: sampler.c:288: my_idx >= 0' >&2
touch "$(dirname "$0")/samples.txt"
kill -"$1" $$
"""


class CheckoutTests(unittest.TestCase):
    def test_a_hang_of_sentry_native_has_no_end(self):
        self.assertEqual(adapter("sentry-native").read(ENVELOPES, {"save", "main"}, names),
                         [{"began": 1012.25, "reported": 1013.5, "function": "save", "cause": "sleep",
                           "owner": None, "duration": None}])

    def test_a_sample_is_of_the_loop_and_one_that_did_not_come_is_no_report(self):
        self.assertEqual(adapter("swift-profile-recorder").read(SAMPLES, {"save", "main"}, names),
                         [{"began": 10.001, "reported": 10.11, "function": "save", "cause": "sleep", "owner": None,
                           "duration": 0.25}])

    def test_a_library_that_ends_the_program_has_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = pathlib.Path(folder, "driver")
            driver.write_text(DYING)
            driver.chmod(0o755)
            for signal, message in (("ABRT", "it ended the program: .*my_idx >= 0"), ("PIPE", "ended with -13")):
                job = types.SimpleNamespace(command=[driver, signal], output=folder, environment={})
                with self.assertRaisesRegex(RuntimeError, message):
                    adapter("swift-profile-recorder").run(job)

    def test_without_a_checkout_both_are_missing(self):
        job = types.SimpleNamespace(set="thread", tools={}, command=["/none/driver"])
        for name in ("sentry-native", "swift-profile-recorder"):
            self.assertEqual(adapter(name).needs(job), "no checkout given")
            job.tools[name] = "/none"
            self.assertIn("cannot be built", adapter(name).needs(job))

    def test_an_address_has_the_name_of_the_function_that_others_are_inlined_into(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = f"{folder}/a.c", f"{folder}/a.so"
            pathlib.Path(source).write_text(
                "static inline __attribute__((always_inline)) int inner(volatile int *at) { return *at + 1; }\n"
                "int outer(volatile int *at) { return inner(at) * 3; }\n")
            subprocess.run(["cc", "-O2", "-g", "-shared", "-fPIC", source, "-o", library], check=True)
            table = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
            place = next(int(line.split()[0], 16) for line in table.splitlines() if line.endswith(" outer"))
            images = [(0x10000, 0x20000, 0x10000, library)]
            self.assertEqual(adapterkit.functions_at([0x10000 + place, 0x30000, 0x10001], images),
                             ["outer", "?", "a.so"])


# Stalls once, and tells the truth about it.
DRIVER = """#!/usr/bin/env python3
import json, os, socket, time
truth = socket.socket(socket.AF_UNIX)
truth.connect(os.environ["STALLBENCH_TRUTH"])
tell = lambda **values: truth.sendall(json.dumps(values).encode() + b"\\n")
tell(case="mutex", function="save", cause="lock", healthy=False, start=time.monotonic())
time.sleep(0.6)
tell(end=time.monotonic(), early=0, stopped=0, longest=0.6)
tell(done=True)
"""
TOOLS = {
    "good": "import time\nfrom adapterkit import incident, start\ndef needs(job): pass\ndef run(job):\n"
            "    start(job).wait()\n    began = time.monotonic() - 0.4\n"
            "    return [incident(began, began + 0.1, 'save', 'lock', None, 0.1)]\n",
    "missing": "def needs(job): return 'needs a thing'\n",
    "crashing": "import os, signal\ndef needs(job): pass\ndef run(job): os.kill(os.getpid(), signal.SIGSEGV)\n",
    "idle": "def needs(job): pass\ndef run(job): return []\n",
    "raising": "def needs(job): pass\ndef run(job): raise ValueError('no such output')\n",
    "hanging": "import time\nfrom adapterkit import start\ndef needs(job): pass\n"
               "def run(job): start(job, ['sleep', '60']).wait()\n",
    "nosy": "import os, pathlib\nfrom adapterkit import start\ndef needs(job): pass\ndef run(job):\n"
            "    start(job).wait()\n    found = [str(path) for path in pathlib.Path('..').rglob('*')]\n"
            "    assert not any('truth' in path for path in found), found\n    return []\n",
}


class RunnerTests(unittest.TestCase):
    def test_tools_that_are_missing_crash_or_hang_get_rows_and_the_run_goes_on(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root)
            (folder / "driver-thread").write_text(DRIVER)
            (folder / "driver-thread").chmod(0o755)
            for name, text in TOOLS.items():
                (folder / f"{name}.py").write_text("COMMAND = 'x'\n" + text)
            command = [BENCH / "stallbench.py", folder, "--adapters", folder, "--sets", "thread", "--runs", "1",
                       "--limit", "6", "--tools", "hanging,crashing,raising,idle,missing,absent,nosy,good,none",
                       "--results", folder / "results.json", "--expect", "good"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = {one["tool"]: one for one in json.loads((folder / "results.json").read_text())["rows"]}
        self.assertEqual({tool: one["status"] for tool, one in rows.items()},
                         {"hanging": "hung", "crashing": "failed", "raising": "failed", "idle": "failed",
                          "missing": "missing", "absent": "failed", "nosy": "ok", "good": "ok", "none": "ok"})
        self.assertEqual(rows["missing"]["reason"], "needs a thing")
        self.assertIn("no such output", rows["raising"]["reason"])
        self.assertIn("the program did not run", rows["idle"]["reason"])
        self.assertIn("| hanging | hung: did not end within 6 s |", done.stdout)

    def test_a_tool_that_is_expected_to_find_all_and_does_not_is_an_error(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root)
            (folder / "driver-thread").write_text(DRIVER)
            (folder / "driver-thread").chmod(0o755)
            command = [BENCH / "stallbench.py", folder, "--sets", "thread", "--runs", "1", "--tools", "none",
                       "--expect", "none"]
            self.assertEqual(subprocess.run(command, capture_output=True, timeout=60).returncode, 1)


if __name__ == "__main__":
    unittest.main()
