#!/usr/bin/env python3
"""Says what a monitor has proved of itself in a run of `stallwatch-test-host main-stalls`.

    Tests/Programs/judge-proof.py NAME [LEAST_STALLS] <OUTPUT

OUTPUT ends with a line that the script has added, "exit" and the program's exit status. LEAST_STALLS is the number of stalls
that the monitor has to find before, 8 by default: all.

Exit status: 0 if the proof is whole, the stalls were found and the program ended by itself, 1 if not.
"""

import json
import sys

# The stalls that a monitor causes (MonitorProof.Kind).
KINDS = ["cpu", "lock", "pipe", "sleep"]

# Other lines may have names in any encoding.
lines = sys.stdin.buffer.read().splitlines()
# The last one: a busy machine may disturb those before.
last = max((number for number, line in enumerate(lines) if line.startswith(b"P {")), default=None)
proof = None if last is None else json.loads(lines[last][2:])
faults = ["there is no proof"] if proof is None else proof["faults"]
trials = [] if proof is None else proof["trials"]
faults += [f"{trial['kind']}: {fault}" for trial in trials for fault in trial["faults"]]
kinds = sorted(trial["kind"] for trial in trials)
if proof is not None and not faults and kinds != KINDS:
    faults = [f"it has stalls of the kinds {kinds}"]
least = int(sys.argv[2]) if len(sys.argv) > 2 else 8
counts = [int(line[2:]) for line in lines[last or 0 :] if line.startswith(b"S ") and line[2:].isdigit()]
stalls = counts[0] if counts else None
if stalls is None or stalls < least:
    faults.append(f"{'no' if stalls is None else stalls} stalls are counted at the end, of {least}")
if lines[-1:] != [b"exit 0"]:
    faults.append("the program has not ended with status 0: " + b" ".join(lines[-1:]).decode(errors="replace"))
print(f"{sys.argv[1]}: " + ("the monitor proves itself" if not faults else "not proved: " + "; ".join(faults)))
sys.exit(1 if faults else 0)
