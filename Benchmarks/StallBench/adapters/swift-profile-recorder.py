"""The sampler of swift-profile-recorder, built from a checkout that is given and asked for one sample by a watchdog in
the process (plugins/swift-profile-recorder.c). Its samples are addresses, found by frame pointers."""
import json
import pathlib

from adapterkit import blame, functions_at, incident, needs_checkout, program_functions, run_library

COMMAND = ("the program with plugins/swift-profile-recorder.c: swipr_request_sample(FILE, 1, 0), by a watchdog that "
           "reads when the turn began")


def needs(job):
    return needs_checkout(job, "swift-profile-recorder")


def run(job):
    text = run_library(job, "swift-profile-recorder", "samples.txt")
    # Its sampler ends the process when a thread answers too late; the cases after that are not run.
    for line in pathlib.Path(job.output, "program.log").read_text(errors="replace").splitlines():
        if "ProfileRecorder precondition failed" in line:
            raise RuntimeError(f"it ended the program: {line}")
    return read(text, program_functions(job.command[0]))


def read(text, own, functions=functions_at):
    """The stalls in the plugin's file. One without its sample was not reported."""
    incidents, stall, mappings, stack, loop, thread = [], {}, [], [], None, None
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["stall"]:
            stall, mappings, stack, loop = incident(float(words[1]), None), [], [], int(words[2])
        elif words[:1] == ["sampled"]:
            # The innermost address is there twice.
            function, cause = blame(functions(stack[1:], mappings), own)
            stall.update(reported=float(words[1]), function=function, cause=cause)
            incidents.append(stall)
        elif words[:1] == ["end"]:
            stall["duration"] = float(words[1])
        elif words[1:2] == ["VMAP"]:
            one = json.loads(line.partition("VMAP ")[2])
            mappings.append((*(int(one[f"segment{name}"], 16) for name in ("StartAddress", "EndAddress", "Slide")),
                             one["path"]))
        elif words[1:2] == ["SMPL"]:
            thread = json.loads(line.partition("SMPL ")[2])["tid"]
        elif words[1:2] == ["STCK"] and thread == loop:
            stack.append(int(json.loads(line.partition("STCK ")[2])["ip"], 16))
    return incidents
