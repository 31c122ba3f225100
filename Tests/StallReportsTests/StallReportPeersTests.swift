import TestSupport
import Testing

@testable import StallReports

@Suite struct StallReportPeersTests {
    private func sentence(
        _ kind: StallReport.CauseKind, _ call: StallReport.SystemCall, _ lock: StallReport.Lock? = nil
    )
        -> String
    {
        StallReport.Cause(
            kind: kind, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 500,
            uncertaintyMilliseconds: 0, systemCall: call, lock: lock
        ).sentence
    }

    private let holder = StallReport.Peer(
        role: .holder, pid: 812, name: "python3", state: "S", threads: 1, systemCall: "clock_nanosleep",
        waitChannel: "hrtimer_nanosleep", runningMilliseconds: 2_012)

    private func fileLock(reason: String? = nil) -> StallReport.Lock {
        StallReport.Lock(kind: .file, function: "flock", isDeadlock: false, owners: [], reason: reason)
    }

    @Test func `a file lock's holder is named with what it does`() {
        let call = StallReport.SystemCall(number: 73, name: "flock", target: "/run/db.lock", peers: [holder])
        #expect(
            sentence(.lock, call, fileLock())
                == "Blocked for 500 of 500 ms in flock(/run/db.lock); the lock is held by python3 (pid 812, running for 2 s), "
                + "which was in clock_nanosleep when it was looked at.")
    }

    @Test func `an unknown holder is said with the reason`() {
        let call = StallReport.SystemCall(number: 73, name: "flock", missingPeersReason: "it has no name")
        #expect(
            sentence(.lock, call, fileLock(reason: "it has no name"))
                == "Blocked for 500 of 500 ms in flock, for the file lock; its owner is not known: it has no name.")
        let read = StallReport.SystemCall(number: 0, name: "read", missingPeersReason: "it has no name")
        #expect(
            sentence(.io, read)
                == "Blocked for 500 of 500 ms in read; for which process it waits is not known: it has no name.")
    }

    @Test func `several processes are counted`() {
        let writer = StallReport.Peer(role: .writer, pid: 7, name: "cat", state: "S", waitChannel: "pipe_read")
        let call = StallReport.SystemCall(number: 0, name: "read", peers: [writer, holder], omittedPeers: 3)
        #expect(
            sentence(.io, call) == "Blocked for 500 of 500 ms in read; its writing end is open in cat (pid 7), "
                + "which waited in the kernel function pipe_read when it was looked at, and 4 more.")
        #expect(call.allPeersInWords.count == 3 && call.allPeersInWords.last == "3 more processes are left out")
    }

    @Test func `the process at the end of a chain of owners is named`() {
        let reader = StallReport.Peer(role: .reader, pid: 8, name: "less", state: "T", runningMilliseconds: 90_000_000)
        let owner = StallReport.LockOwner(
            thread: .init(id: 2, name: "printer"), isRunning: false,
            systemCall: .init(number: 1, name: "write", target: "pipe:[5]", peers: [reader]))
        let lock = StallReport.Lock(kind: .stdio, function: "puts", label: "stdout", isDeadlock: false, owners: [owner])
        #expect(
            sentence(.lock, .init(number: 202, name: "futex"), lock)
                == "Blocked for 500 of 500 ms in puts; the lock of the stream \"stdout\" is held by thread 2 \"printer\", "
                + "which is in write(pipe:[5]); its reading end is open in less (pid 8, running for 25 h), "
                + "which a signal had stopped when it was looked at."
        )
    }

    @Test(
        arguments: [
            (nil, "this process"),
            (
                StallReport.ThreadDescription(id: 9, name: "net"),
                "this process, whose thread 9 \"net\" was in recvfrom when it was looked at"
            ),
        ] as [(StallReport.ThreadDescription?, String)])
    func `this process is called so`(thread: StallReport.ThreadDescription?, words: String) {
        let peer = StallReport.Peer(
            role: .otherEnd, pid: 1, isThisProcess: true, thread: thread, systemCall: thread == nil ? nil : "recvfrom")
        #expect(peer.inWords == words)
    }

    @Test func `states and threads have words`() {
        func words(_ state: String, threads: Int = 1, call: String? = nil, reason: String? = nil) -> String {
            StallReport.Peer(
                role: .child, pid: 5, name: "make", state: state, threads: threads, systemCall: call,
                runningMilliseconds: 350, reason: reason
            ).inWords
        }
        #expect(words("R").hasSuffix("), which was on a CPU or ready to run when it was looked at"))
        #expect(words("t").hasSuffix("), which a debugger or tracer had stopped when it was looked at"))
        #expect(
            words("S", threads: 3, call: "futex")
                == "make (pid 5, running for 350 ms), whose main thread was in futex when it was looked at")
        #expect(words("Z") == "make (pid 5, running for 350 ms), which has ended, and its parent has not waited for it")
        #expect(
            words("S", reason: "the file is not readable")
                == "make (pid 5, running for 350 ms), the file is not readable")
        let young = StallReport.Peer(role: .holder, pid: 5, reason: "it may be another one")
        #expect(young.inWords == "a process (pid 5), it may be another one")
    }

    // MARK: - JSON

    private func report(_ peer: String) -> String {
        let call = #"{ "number": 73, "name": "flock", "omittedPeers": 1, "peers": [ \#(peer) ] }"#
        let cause = """
            "cause": {
              "kind": "lock", "summary": "", "confidence": "certain", "onCPUMilliseconds": 0, "runQueueMilliseconds": 0,
              "blockedMilliseconds": 812, "uncertaintyMilliseconds": 0, "minorFaults": 0, "majorFaults": 0,
              "voluntarySwitches": 1, "involuntarySwitches": 0, "systemCall": \(call)
            },
            "repeats": 0,
            """
        return reportLiteral.replacing("\"repeats\": 0,", with: cause, maxReplacements: 1)
    }

    @Test func `peers are read, and one without a role is refused`() throws {
        try #require(report("") != reportLiteral)
        let right = report(#"{ "role": "holder", "pid": 812, "name": "x", "runningMilliseconds": 5, "threads": 2 }"#)
        #expect(try StallReport(jsonData: Array(right.utf8)).cause?.callsWithPeers.first?.peers?.first?.pid == 812)
        #expect(throws: StallWatchError.self) { try StallReport(jsonData: Array(report(#"{ "pid": 1 }"#).utf8)) }
    }

    /// Nothing relies on these numbers: they are only shown.
    @Test func `a peer with odd numbers is put into words`() throws {
        for value in ["-1e308", "-5", "1e308"] {
            let odd = report(#"{ "role": "child", "pid": -1, "threads": -7, "runningMilliseconds": \#(value) }"#)
            let call = try StallReport(jsonData: Array(odd.utf8)).cause?.systemCall
            #expect(call?.peersInWords?.hasPrefix("the child is a process (pid -1") == true)
        }
    }

    @Test func `the files of peers are shortened`() throws {
        let peer = #"{ "role": "holder", "pid": 2, "systemCall": "read", "target": "/srv/data" }"#
        var report = try StallReport(jsonData: Array(report(peer).utf8))
        report.cause?.systemCall?.target = "/run/secret/lock"
        report.cause?.summary = "flock(/run/secret/lock); held by x in read(/srv/data)"
        report.shortenPaths(.fileNames)
        #expect(report.cause?.systemCall?.peers?.first?.target == "data")
        #expect(report.cause?.summary == "flock(lock); held by x in read(data)")
    }
}
