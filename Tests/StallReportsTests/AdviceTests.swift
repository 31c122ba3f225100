import Foundation
import TestSupport
import Testing

@testable import StallReports

/// Each rule with a stall that it is right for, and with a near miss for which it has to be silent.
@Suite struct AdviceTests {
    @Test(arguments: cases.indices) func `a rule decides its stall and not the near miss`(index: Int) throws {
        let (rule, right, words, near, other) = Self.cases[index]
        let advice = try right.report().advice
        #expect(advice?.rule == rule)
        #expect(advice?.text.contains(words) == true, "\(advice?.text ?? "none")")
        #expect(advice?.text.utf8.count ?? 0 < 200)
        #expect(advice?.command == "stallwatch explain \(advice?.page.dropFirst(12).dropLast(3) ?? "")")
        #expect(try near.report().advice?.rule == other)
    }

    /// Stalls that look like those of a special rule, and have only a general one.
    private static let general: [(stall: Stall, rule: String)] = [
        // A worker that takes its own lock again: the main thread holds none.
        (
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .pthreadMutex), owner(11)], isDeadlock: true)), "circle"
        ),
        // Libraries that sleep between their tries.
        (
            Stall(
                kind: .sleep, call: call("clock_nanosleep"),
                inner: ["libc!clock_nanosleep", "libc!usleep", "libsqlite3!sqlite3_step"]), "polling"
        ),
        // Sockets of this machine.
        (Stall(call: call("sendto", "socket to /dev/log")), "stream"),
        (Stall(call: call("recvfrom", "socket to 127.0.0.1:5432")), "stream"),
        (Stall(call: call("connect", "127.0.0.53:53")), "call"),
        (Stall(call: call("read", "socket to [::1]:6379")), "stream"),
        (Stall(call: call("read", "socket to [::ffff:127.0.0.1]:80")), "stream"),
        (Stall(call: call("read", "socket:[7]")), "stream"),
        (Stall(call: call("recvmsg", "socket to @bus", [cat])), "stream"),
        // A FIFO whose writer is not known.
        (Stall(call: call("read", "/run/fifo", or: "the search ended")), "stream"),
    ]

    @Test(arguments: general.indices) func `what the app cannot do is not advised`(index: Int) throws {
        let (stall, rule) = Self.general[index]
        #expect(try stall.report().advice?.rule == rule)
    }

    @Test func `one who sleeps a little each time looks again and again`() throws {
        var report = try Stall(kind: .sleep, call: Self.call("clock_nanosleep", "1 ms")).report()
        report.cause?.blockedMilliseconds = 500
        report.cause?.voluntarySwitches = 400
        #expect(report.advice?.rule == "polling")
        #expect(report.advice?.text.contains("If load() (Store.swift:12) waits for something, be called") == true)
    }

    /// Some 400 kB of JSON: with a copy of the stack for each sample, 4 GB.
    @Test(.timeLimit(.minutes(10))) func `thousands of samples of a deep stack cost no more than one`() throws {
        var report = try Stall(kind: .cpu, inner: Array(repeating: "libpng!inflate_rows", count: 10_000)).report()
        report.samples = Array(repeating: report.samples[0], count: 2_000)
        for index in report.samples.indices { report.samples[index].threadState = .running }
        #expect(report.advice?.rule == "image")
        let sentence = report.cause?.sentence ?? ""
        report.cause?.summary = sentence
        let unnamed = report
        report.nameCause(since: unnamed)
        #expect(report.cause?.summary.contains("in inflate_rows, called by load()") == true)
    }

    @Test func `a sleep that the app's function calls has advice`() throws {
        let direct = Stall(
            kind: .sleep, call: Self.call("clock_nanosleep"),
            inner: ["libc!clock_nanosleep", "libFoundationEssentials!Thread.sleep"])
        #expect(try direct.report().advice?.rule == "sleep")
    }

    @Test func `a lack of CPU is named beside a cause that is only possible`() throws {
        var report = try Stall(kind: .cpu, confidence: .possible, onCPU: 288).report()
        report.cause?.blockedMilliseconds = 0
        #expect(report.advice?.rule == "look")
        report.cause?.runQueueMilliseconds = report.durationMilliseconds - 288
        #expect(report.advice?.text.contains("with a CPU, too, the turn takes 288 ms.") == true)
        report.cause?.onCPUMilliseconds = 100
        #expect(report.advice?.rule == "look", "the lack of CPU alone makes it a stall")
    }

    @Test(arguments: [(.globalQueue, "pool"), (.threadPool, "starvation")] as [(StallReport.LoopKind, String)])
    func `the threads of a global queue have a page of their own`(loop: StallReport.LoopKind, topic: String) throws {
        let advice = try Stall(kind: .lock, loop: loop, reportKind: .starvation).report().advice
        #expect(advice?.rule == "poolWaits" && advice?.command == "stallwatch explain \(topic)")
    }

    @Test func `this process may be among the writers that are left out`() throws {
        var call = Self.call("read", "pipe:[4]", [Self.cat])
        call.omittedPeers = 1
        #expect(try Stall(call: call).report().advice?.rule == "stream")
    }

    @Test func `the owner of one lock of several is not to blame`() throws {
        var report = try Stall(
            kind: .lock, lock: Self.lock(.pthreadMutex, [Self.owner(call: Self.call("nanosleep"))])
        ).report()
        #expect(report.heldUpBy != nil && report.advice?.rule == "ownerWaits")
        report.cause?.blockedMilliseconds = 500
        report.cause?.waitMilliseconds = 180
        #expect(report.heldUpBy == nil && report.advice?.rule == "held")
    }

    /// The path of a Unix socket is any text, also one without a slash.
    @Test(arguments: [
        ("app.sock", "call"), ("socket.d/app", "call"), ("host:80", "call"), ("10.0.0.2:80", "socket"),
        ("[2001:db8::1]:80", "socket"), ("127.0.0.1:80", "call"),
    ]) func `only an address with a port is in the network`(target: String, rule: String) throws {
        #expect(try Stall(kind: .io, call: Self.call("connect", target)).report().advice?.rule == rule)
    }

    @Test func `every rule has a case`() {
        #expect(Set(Self.cases.map(\.rule)).sorted() == AdviceRule.all.map(\.id).sorted())
    }

    @Test(arguments: (AdviceRule.all + [.look]).map(\.page)) func `the page of a rule exists`(page: String) throws {
        let text = try String(contentsOf: Repository.root.appendingPathComponent(page), encoding: .utf8)
        for part in ["## What it means", "## How to confirm it", "## Usual fixes", "```swift"] {
            #expect(text.contains(part), "\(page) has no \(part)")
        }
    }

    /// Whatever the cause, a guess is no reason to change code: the command that would tell is named.
    @Test(arguments: cases.indices) func `an uncertain stall names a command`(index: Int) throws {
        var stall = Self.cases[index].right
        // The rules for loops, operations and a thread that computes know more than a cause.
        guard stall.activity == nil, stall.reportKind != .overdue, Self.cases[index].rule != "pinnedComputing" else {
            return
        }
        stall.confidence = .possible
        let advice = try #require(try stall.report().advice)
        #expect(advice.rule == "look" && advice.text.contains(": stallwatch "), "\(advice)")
        stall.confidence = .certain
        stall.share = 0.4
        #expect(try stall.report().advice?.rule == "look")
    }

    @Test func `a report without a cause has no advice yet`() throws {
        var report = try Stall().report()
        report.cause = nil
        #expect(report.advice == nil)
    }

    @Test func `without a culprit only rules that need none decide`() throws {
        let independent = [
            "circle", "inversion", "ownerWaits", "ownerComputes", "contention", "quota", "paging", "saturation",
            "ready",
            "emptyMode", "resubmit", "mode", "notRun", "continuation", "taskCircle", "longSleep", "heldUp",
            "pinnedComputing",
        ]
        for (rule, stall, _, _, _) in Self.cases {
            var report = try stall.report()
            report.culprit = nil
            #expect((report.advice?.rule == rule) == independent.contains(rule), "\(rule)")
            #expect(report.advice != nil)
        }
    }

    @Test func `code that is only a small part of the time decides little`() throws {
        var report = try Stall(kind: .cpu, inner: ["libpng!inflate_rows"]).report()
        report.frames.append(contentsOf: report.frames.prefix(2))
        report.stacks.append([1, 2])
        report.samples.append(report.samples[0])
        report.samples[0].weightMilliseconds = 40
        report.samples[1].weightMilliseconds = 60
        report.samples[1].stack = 2
        #expect(report.advice?.rule == "compute")
        report.samples[0].weightMilliseconds = 70
        #expect(report.advice?.rule == "image")
    }
}
