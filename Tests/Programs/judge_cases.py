"""The cases of run-cases.py: the script of each, and what is right.

A script runs in its own folder W. R is its folder of reports, B the folder of the programs, O that of the libraries, C
that of the sources, PROGRAMS that of this file, TOOL the tool, and CPU a processor that may be used.
"""

import collections
import re

from checks import Fault, equal, expect

MIB = 1 << 20
# What a monitor may need to end, and what a busy machine may add.
STOP_MILLISECONDS = 1_500
# The longest name in a sentence.
NAME_BYTES = 1_024
# The clock reads of the monitor and of the program.
DURATION_SLACK = 200
NAMESPACES = "unshare -pf --mount-proc true"
MEMORY = "awk '/MemAvailable/ && $2 < 3e6 { print \"needs 3 GB of memory\"; exit 1 }' /proc/meminfo"
ROOT = "test $(id -u) = 0 || { echo 'needs root'; false; }"


class Late(Fault):
    """Something that took too long, which a busy machine may cause, too."""


def in_time(condition, what):
    if not condition:
        raise Late(what)


def text(report):
    """Returns the summary of a report's cause."""
    return report.get("cause", {}).get("summary", "")


def stacks(report):
    """Returns the stacks of a report's samples: frames, the innermost first."""
    return [[report["frames"][number] for number in report["stacks"][sample["stack"]]] for sample in report["samples"]]


def has_names(report, *names):
    """Whether a stack has these functions next to each other, the innermost first."""
    for stack in stacks(report):
        found = [re.sub(r"^merged ", "", frame.get("function", "?")) for frame in stack]
        if any(found[at : at + len(names)] == list(names) for at in range(len(found))):
            return True
    return False


def says(report, *words):
    for word in words:
        expect(word in text(report), f"{word!r} is not in {text(report)!r}")


def ended(outcome, count, kind="stall"):
    """Checks that there are so many reports, all of stalls that have ended; returns them."""
    found = [(report["state"], report["kind"]) for report in outcome.reports]
    equal(found, [("ended", kind)] * count, "the list of reports")
    return outcome.reports


def stops(outcome, most=STOP_MILLISECONDS):
    took = float(re.search(r"stop(?:\(\))? (?:took )?([\d.]+) ms", outcome.output)[1])
    in_time(took <= most, f"stop() took {took} ms")


def counts(outcome, count):
    """Checks that all stalls were found and reported, and none was lost."""
    found = re.search(r"stalls (\d+) suppressed .*?(counts: \[.*?\])", outcome.output)
    equal(found.groups(), (str(count), "counts: [:]"), "the count of stalls")
    ended(outcome, count)


def one(check=lambda report: None):
    """One stall of case-host, of the right duration."""

    def judge(outcome):
        [report] = ended(outcome, 1)
        truth = float(re.findall(r"truth: \S+ ([\d.]+) ms", outcome.output)[-1])
        difference = report["durationMilliseconds"] - truth
        in_time(abs(difference) <= DURATION_SLACK, f"{report['durationMilliseconds']} ms instead of {truth} ms")
        stops(outcome)
        check(report)

    return judge


def spins(report):
    expect(has_names(report, "innermost_spin", "middle_spin", "spin"), f"no innermost_spin: {text(report)}")


def real_time(report):
    """The watchdog had no CPU meanwhile, unless the kernel gives usual threads a part of it."""
    reason = report.get("missingSamplesReason", "SCHED_FIFO")
    expect("SCHED_FIFO" in reason, f"the policy is not named: {reason}")


def bounded(outcome):
    """Names that double in length with each type."""
    ended(outcome, 1)
    [path] = outcome.files_in("reports")
    size, resident = path.stat().st_size, outcome.usage.ru_maxrss << 10
    expect(size <= 4 * MIB, f"a report of {size} bytes")
    expect(resident <= 200 * MIB, f"{resident // MIB} MiB resident")
    stops(outcome)


def short_names(report):
    culprit = report["culprit"]["function"].encode()
    expect(len(culprit) <= NAME_BYTES, f"a culprit of {len(culprit)} bytes")
    expect(len(text(report).encode()) <= 2 * NAME_BYTES, f"a summary of {len(text(report))} bytes")


def victims(outcome):
    found = re.search(r"victim: (\d)", outcome.output)[1]
    expect(found == "3", f"{found} of 3 stalls of the other loop")


def idle_cost(outcome):
    """No CPU time while all loops are idle, after one pass; 5 % of a CPU while all of them turn."""

    def spent(line):
        found = re.search(rf"^{line}.*?: (.*)", outcome.output, re.MULTILINE)[1]
        return sum(int(ms) for ms in re.findall(r"stallwatch\S* (\d+) ms", found))

    idle, busy = spent("idle again"), spent("busy 5 s.* ms")
    in_time(idle <= 30, f"{idle} ms of CPU time in 3 idle seconds")
    in_time(busy <= 250, f"{busy} ms of CPU time in 5 busy seconds")
    expect("p0" in [report["loop"]["label"] for report in outcome.reports], "the stall of p0 has no report")
    # A turn of another loop may have waited for a processor.
    others = [f"{report['loop']['label']} {report['durationMilliseconds']} ms" for report in outcome.reports
              if report["loop"]["label"] != "p0"]
    in_time(not others, f"other stalls: {others}")


def hung_file_system(outcome):
    expect("file system hangs" in outcome.output, outcome.output[-300:])
    first, second = ended(outcome, 2)
    for report in (first, second):
        in_time(abs(report["durationMilliseconds"] - 600) <= DURATION_SLACK, f"{report['durationMilliseconds']} ms")
    expect(has_names(first, "runPlugin(_:)", "perform(_:)"), f"no names: {text(first)}")
    spins(second)
    stops(outcome)


def one_place(count, *folders):
    """All outputs are where they were at the start, and complete; nothing is anywhere else."""

    def judge(outcome):
        outcome.reports = outcome.reports_in("run/stalls")
        ended(outcome, count)
        found = sorted(path.name for path in outcome.files_in("run") if not path.name.startswith(("stall-", ".")))
        equal(found, ["lines.ndjson", "statistics.json"], "the list of outputs")
        lines = (outcome.folder / "run/lines.ndjson").read_text().splitlines()
        equal(len(lines), count, "the number of lines")
        for folder in folders:
            equal(outcome.files_in(folder), [], f"the list of files in {folder}")

    return judge


def two_containers(outcome):
    in_time("started in" in (outcome.folder / "then").read_text(), "the second one has not started in time")
    states = [report["state"] for report in outcome.reports_in("while")]
    expect(states and set(states) == {"ongoing"}, f"while both stall, reports are {states}")
    ended(outcome, 2)


def two_controls(outcome):
    equal(outcome.output.count("started in"), 2, "the number of monitors that started")
    equal(outcome.output.count("answer 0"), 2, "the number of monitors that answered")
    ended(outcome, 2)


def shared_mutex(report):
    says(report, "its owner is not known: processes share it")
    equal(report["cause"].get("kind"), "lock", "the cause")


def stranger(outcome):
    [report] = ended(outcome, 1)
    says(report, "poll(")
    expect("sleep" not in text(report) and "pid" not in text(report), f"a process is named: {text(report)!r}")


def sleeps(outcome):
    for report in ended(outcome, 3):
        expect(re.match(r"Slept for \d+ (of \d+ )?ms in clock_nanosleep\(600 ms\)\.$", text(report)), text(report))


def other_namespace(outcome):
    chains = ("innermost_nap", "middle_nap", "sleepy"), ("innermost_spin", "middle_spin", "spin")
    for report, names in zip(ended(outcome, 2), chains):
        complete = all(sample["isComplete"] for sample in report["samples"])
        expect(has_names(report, *names) or not complete, f"frames are left out: {text(report)}")


def swapped(outcome):
    first, second = ended(outcome, 2)
    expect(has_names(first, "render_shadows"), text(first))
    expect(not has_names(second, "render_shadows"), f"a function that is not in memory: {text(second)}")


def jit(report):
    marks = [frame.get("isUncertain", False) for stack in stacks(report) for frame in stack
             if frame.get("function") == "evaluate_regex_jit"]
    expect(True in marks, f"no uncertain evaluate_regex_jit: {text(report)}")


def coroutine(outcome):
    for report in ended(outcome, 2):
        expect(has_names(report, "mail::fetchInbox(int)"), text(report))


def target_busy(outcome):
    [report] = ended(outcome, 1)
    expect(has_names(report, "compressOnTarget()"), text(report))


def peers(outcome):
    unconnected, connected = ended(outcome, 2)
    says(unconnected, "sendto(")
    says(connected, "slow-logger")


def never_resumed(outcome):
    expect("it was resumed" in outcome.output, outcome.output[-300:])
    for report in outcome.reports:
        expect("never" not in text(report), text(report))


def whole_export(outcome):
    expect("status 0" in outcome.output, outcome.output[-300:])
    whole, read = ((outcome.folder / name).read_bytes() for name in ("whole", "read"))
    expect(len(whole) > 1 << 17, f"only {len(whole)} bytes to write")
    expect(whole == read, f"{len(read)} of {len(whole)} bytes arrived")


def contains(*words):
    def judge(outcome):
        for word in words:
            expect(word in outcome.output, f"no {word!r}: {outcome.output[-300:]!r}")

    return judge


def both(*judges):
    def judge(outcome):
        for part in judges:
            part(outcome)

    return judge


def on_stack(*names):
    def check(report):
        expect(has_names(report, *names), f"not {' ← '.join(names)}: {text(report)}")

    return check


def each(check, count):
    def judge(outcome):
        for report in ended(outcome, count):
            check(report)

    return judge


Case = collections.namedtuple("Case", "name script judge needs is_alone", defaults=[(), False])
AS_USER = "setpriv --reuid 65534 --regid 65534 --clear-groups"
NAP = "unshare -pf --mount-proc $B/case-host $R $O/misc.so:longnap"
MANY_REPORTS = """
$B/case-host $R $O/base.so:spin
python3 - "$R"/stall-*.json <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
with open("reports.ndjson", "w") as lines:
    for number in range(1000):
        report["id"] = f"00000000-0000-4000-8000-{number:012x}"
        report["loop"]["label"] = f"loop {number} " + "x" * 100
        print(json.dumps(report), file=lines)
END
$TOOL export reports.ndjson --format collapsed -o whole
"""

CASES = [
    # The program goes on.
    Case("real-time", "taskset -c $CPU chrt -f 50 $B/case-host $R $O/plain.so:spin", one(real_time),
         ("taskset -c $CPU chrt -f 50 true",), True),
    *(Case(f"stack-{size}", f"ulimit -s {size}; exec $B/case-host $R $O/plain.so:spin", one())
      for size in (192, 128, 64)),
    Case("stack-of-threads", "BH_STACK=64 $B/case-host $R +$O/misc.so:smallstack $O/plain.so:spin", one()),
    Case("stack-deep-name", "ulimit -s 256; exec $B/case-host $R $O/swift700.so:run", one()),
    Case("names-cpp", "$B/case-host $R $O/bomb20.so:run", bounded),
    Case("names-e22", "$B/case-app e22 $R", bounded),
    Case("names-e24", "$B/case-app e24 $R", bounded),
    Case("names-long", "$B/case-host $R $O/long700.so:run", one(short_names)),
    Case("pipes", "python3 $C/many.py 900 & sleep 2; $B/case-app pipes $R 60", victims, is_alone=True),
    Case("threads", "$B/case-app threads $R 4000", victims, is_alone=True),
    Case("probes-1000", "$B/case-app probes $R 1000 3", idle_cost, is_alone=True),
    Case("probes-4000", "$B/case-app probes $R 4000 3", idle_cost, is_alone=True),
    Case("stop-redaction", "$B/case-app redactmain $R", stops),
    Case("stop-big", "$B/case-app stopbig $R 2000", stops, (MEMORY,), True),
    Case("stop-job", "$B/case-app stopjob $R 2000 stacks $TOOL", stops, (MEMORY,), True),
    Case("file-system", """
unshare -m bash <<'END'
mkdir mount files; cp $O/plain.so files
python3 $PROGRAMS/hanging_fs.py mount files 0 & server=$!
until [ -e mount/plain.so ]; do sleep 0.1; done
BH_STOP=$server $B/case-host $R +$W/mount/plain.so:noop $O/misc.so:hold8 $W/mount/plain.so:spin $O/base.so:spin
status=$?
kill -9 $server
exit $status
END
""", hung_file_system, (ROOT, "unshare -m true", "test -w /dev/fuse || { echo 'no /dev/fuse'; false; }")),
    Case("directory", "mkdir run elsewhere; cd run; $B/case-app chdir stalls $W/elsewhere", one_place(2, "elsewhere")),
    Case("directory-in-a-stall", "mkdir run elsewhere; cd run; $B/case-app chdir stalls $W/elsewhere during",
         one_place(2, "elsewhere")),
    Case("directory-of-a-user", f"""
mkdir run; chmod 777 run; cp $B/case-app .; cd run
{AS_USER} $W/case-app chdir stalls /
""", one_place(2), (ROOT, f"{AS_USER} true")),
    Case("root-directory", "mkdir run elsewhere; cd run; $B/case-app chroot stalls $W/elsewhere",
         both(contains("chroot: 0"), one_place(2, "elsewhere")), (ROOT,)),
    Case("containers", f"{NAP} & sleep 1; {NAP} >second & sleep 1.6; cp -r $R while; cp second then; wait",
         two_containers, (NAMESPACES,)),
    Case("containers-control", f"""
mkdir sockets; export BH_CONTROL=$W/sockets
{NAP} & first=$!
{NAP} & second=$!
sleep 1.5
for parent in $first $second; do
    $TOOL stacks $(cat /proc/$parent/task/$parent/children) >answer; echo "answer $?"; tail -n 1 answer
done
wait
""", two_controls, (NAMESPACES,)),
    Case("descriptors", "$B/case-app closeall $R", contains("pipes damaged: 0 of 60")),
    Case("race", "$B/case-app race $R", contains("done 100")),
    Case("exit", "$B/case-app exitstall $R", lambda outcome: None),
    Case("clocks", "DELAY_EVERY=3 DELAY_MS=60 LD_PRELOAD=$O/delay.so $B/case-app plain $R 5 300",
         lambda outcome: counts(outcome, 5)),
    # The report is true. The longest ones come first.
    Case("operation", "$B/case-app ops $R 9", never_resumed),
    Case("pool", "$B/case-app pool $R", contains("Both threads of the pool are in waitForTheReply()"),
         ("test $(nproc) = 2 || { echo 'needs two processors'; false; }",)),
    *(Case(f"mutex-{kind or 'shared'}", f"""
unshare -pf $O/holder $W/lock 1600 {kind} &
until [ -s lock ]; do sleep 0.05; done
BH_SHM=$W/lock unshare -pf --mount-proc $B/case-host $R $O/pidns.so:wait_shared
""", each(shared_mutex, 1), (NAMESPACES,)) for kind in ("", "robust")),
    Case("fifo", """
mkdir f; mkfifo f/p
unshare -m sh -c 'mount -t tmpfs none f; mkfifo f/p; exec 9<>f/p; touch ready; exec sleep 5' &
until [ -e ready ]; do sleep 0.05; done
exec $B/case-app fifo $R f/p
""", stranger, ("unshare -m true", ROOT)),
    Case("sleep", "$B/case-host $R $O/onstack.so:bnap $O/jit.so:framed_nap $O/base.so:sleepy", sleeps),
    Case("base", "$B/case-host $R $O/base.so:spin", one(spins)),
    Case("namespaces", "BH_INNER=$O/plain.so $B/case-host $R $O/dlm.so:ns_sleepy $O/dlm.so:ns_spin", other_namespace),
    Case("path-of-bytes", r"""
inner=$W/$(printf 'lib\377.so'); cp $O/plain.so "$inner"
BH_INNER=$inner $B/case-host $R $O/dlm.so:ns_spin
""", one(spins)),
    Case("swapped", """
cp $O/hot1.so p.so; cp $O/hot2.so p2.so
BH_SWAP=p2.so:p.so $B/case-host $R $W/p.so:spin:close $O/misc.so:swap $W/p.so:spin:close
""", swapped),
    Case("no-type", "$B/case-host $R $O/notype.so:run", one(on_stack("mix_samples", "play_sound", "run"))),
    Case("jit-leaf", "$B/case-host $R $O/jit.so:leaf", one(jit)),
    Case("coroutine", "$B/case-host $R +$O/coro.so:start $O/coro.so:run $O/coro.so:run", coroutine),
    Case("target-suspended", "$B/case-app target-suspended $R", lambda outcome: counts(outcome, 0)),
    Case("target-busy", "$B/case-app target-busy $R", target_busy),
    Case("datagrams", "BH_SOCK=$W/s $B/case-host $R $O/peers.so:unconnected $O/peers.so:connected", peers),
    Case("lease", "BH_FILE=$W/f $B/case-host $R $O/peers.so:leased", one(lambda report: says(report, "file-server"))),
    # The tool writes everything.
    Case("export", MANY_REPORTS + """
python3 - $TOOL <<'END'
import os, subprocess, sys, time
reader, writer = os.pipe()
os.set_blocking(writer, False)
tool = subprocess.Popen([sys.argv[1], "export", "reports.ndjson", "--format", "collapsed"], stdout=writer)
os.close(writer)
with open("read", "wb") as file:
    time.sleep(0.5)
    while data := os.read(reader, 16384):
        file.write(data)
        time.sleep(0.02)
print("status", tool.wait())
END
""", whole_export),
    Case("left-over", """
$B/case-host $R $O/base.so:spin
touch .page.html.$$.tmp .page.html.$$.0.tmp; touch -d '1 hour ago' .page.html.1.tmp
exec $TOOL html $R -o page.html
""", lambda outcome: expect((outcome.folder / "page.html").stat().st_size > 1000, outcome.output[-300:])),
]
