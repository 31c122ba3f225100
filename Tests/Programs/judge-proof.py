#!/usr/bin/env python3
"""Says what a monitor has proved of itself in a run of `stallwatch-test-host main-stalls`.

    Tests/Programs/judge-proof.py NAME <OUTPUT

Exit status: 0 if the proof is whole, 1 if not, or if there is none.
"""

import json
import sys

# The stalls that a monitor causes (MonitorProof.Kind).
KINDS = ["cpu", "lock", "pipe", "sleep"]

# Other lines may have names in any encoding.
lines = sys.stdin.buffer.read().splitlines()
# The last one: a busy machine may disturb those before.
proof = next((json.loads(line[2:]) for line in reversed(lines) if line.startswith(b"P {")), None)
faults = ["there is no proof"] if proof is None else proof["faults"]
trials = [] if proof is None else proof["trials"]
faults += [f"{trial['kind']}: {fault}" for trial in trials for fault in trial["faults"]]
kinds = sorted(trial["kind"] for trial in trials)
if proof is not None and not faults and kinds != KINDS:
    faults = [f"it has stalls of the kinds {kinds}"]
print(f"{sys.argv[1]}: " + ("the monitor proves itself" if not faults else "not proved: " + "; ".join(faults)))
sys.exit(1 if faults else 0)
