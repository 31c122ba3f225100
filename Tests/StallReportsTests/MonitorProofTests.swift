import TestSupport
import Testing

@testable import StallReports

/// What a proof says of a report of a stall that took 812.4 ms.
@Suite struct MonitorProofTests {
    private typealias Trial = MonitorProof.Trial

    private func trial(
        _ kind: MonitorProof.Kind, _ report: StallReport, milliseconds: Double = 812.4, asksNames: Bool = true
    ) -> Trial {
        var report = report
        if let function = report.frames[1].function {
            report.frames[1].function = function.replacing("KIND", with: kind.rawValue)
        }
        return Trial(kind, report, milliseconds: milliseconds, owner: 7, asksNames: asksNames)
    }

    /// A report with a whole stack, whose cause is `kind`.
    private func report(
        _ kind: StallReport.CauseKind?, change: (inout StallReport) -> Void = { _ in }
    ) throws -> StallReport {
        var report = try StallReport.literal()
        // Words repeat in it, so the mangled name does not have that of the function.
        report.frames[1].symbol = "$s10StallWatch9ProofLoop33_00LL04KINDb2InC0SbyF"
        report.frames[1].function = "ProofLoop.KINDInProof()"
        report.frames[2].symbol = "start_thread"
        report.cause = kind.map {
            StallReport.Cause(
                kind: $0, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 812,
                uncertaintyMilliseconds: 0)
        }
        change(&report)
        return report
    }

    private func lock(owner: Int32?, reason: String? = nil) -> StallReport.Lock {
        let owners = owner.map { [StallReport.LockOwner(thread: .init(id: $0), isRunning: false)] } ?? []
        var lock = StallReport.Lock(kind: .pthreadMutex, isDeadlock: false, owners: owners)
        lock.reason = reason
        return lock
    }

    private func call(_ target: String?) -> StallReport.SystemCall { .init(number: 0, name: "read", target: target) }

    @Test func `a report that says what happened is right`() throws {
        let trials = [
            trial(.sleep, try report(.sleep)),
            trial(.lock, try report(.lock) { $0.cause?.lock = lock(owner: 7) }),
            trial(.cpu, try report(.cpu)), trial(.cpu, try report(.throttled)),
            trial(.pipe, try report(.io) { $0.cause?.systemCall = call("pipe:[1]") }),
        ]
        #expect(trials.flatMap(\.faults) == [])
        #expect(trials[0].heldMicroseconds == 0 && trials[0].method == .read)
        #expect(trials[0].summary == "sleep: right, 0.4 ms after the threshold, captured by read")
        var proof = MonitorProof()
        proof.trials = trials
        #expect(proof.isWhole && proof.outcomes == [.read: .works()])
        #expect(proof.summary == "5 of 5 stalls were found as they were, at most 0.4 ms after the threshold")
    }

    @Test func `a proof that lacks a kind of stall is not whole`() {
        var proof = MonitorProof()
        #expect(!proof.isWhole)
        proof.trials = MonitorProof.Kind.allCases.map { Trial($0) }
        #expect(proof.isWhole)
        proof.trials.removeLast()
        #expect(!proof.isWhole)
    }

    @Test func `a wrong cause, owner or pipe is a fault`() throws {
        func faults(_ kind: MonitorProof.Kind, _ report: StallReport) -> [String] { trial(kind, report).faults }
        #expect(faults(.sleep, try report(nil)) == ["the cause is not known"])
        #expect(faults(.sleep, try report(.unknown)) == ["the cause is not known"])
        #expect(faults(.sleep, try report(.io)) == ["the cause is io"])
        #expect(
            faults(.lock, try report(.lock) { $0.cause?.lock = lock(owner: 8) }) == [
                "the lock's owner is not known: it is given as thread 8"
            ])
        #expect(
            faults(.lock, try report(.lock) { $0.cause?.lock = lock(owner: nil, reason: "its memory moved") }) == [
                "the lock's owner is not known: its memory moved"
            ])
        #expect(faults(.lock, try report(.lock)) == ["the lock's owner is not known"])
        #expect(faults(.pipe, try report(.io) { $0.cause?.systemCall = call(nil) }) == ["the pipe is not named"])
        #expect(faults(.pipe, try report(.io)) == ["the pipe is not named"])
    }

    @Test func `a delay is that of the first copy after the threshold`() throws {
        #expect(
            trial(.sleep, try report(.io)).summary
                == "sleep: the cause is io, found 0.4 ms after the threshold, captured by read")
        let early = trial(.sleep, try report(.sleep) { $0.samples[0].isEarly = true })
        #expect(early.delayMilliseconds == 0.2, "that of the watchdog")
    }

    @Test func `a stack that lacks something is a fault`() throws {
        func faults(_ asksNames: Bool = true, _ change: (inout StallReport) -> Void) throws -> [String] {
            trial(.sleep, try report(.sleep, change: change), asksNames: asksNames).faults
        }
        #expect(
            try faults {
                ($0.samples, $0.missingSamplesReason) = ([], "the turn had ended")
            } == [
                "there is no stack: the turn had ended"
            ])
        #expect(
            try faults {
                $0.samples[0].stack = nil
                $0.samples[0].reason = "the system refused"
            } == ["there is no stack: the system refused"])
        #expect(
            try faults {
                $0.samples[0].isComplete = false
                $0.samples[0].reason = "cut"
            } == ["the stack is incomplete: cut"])
        let nameless: (inout StallReport) -> Void = { report in
            (report.frames[1].symbol, report.frames[1].function) = (nil, nil)
            report.images[0].reason = "the file is stripped"
        }
        #expect(try faults(true, nameless) == ["its function has no name: the file is stripped"])
        #expect(try faults(false, nameless) == [])
        #expect(try faults { $0.frames[1].function = "main" } == ["its function is not on the stack"])
        #expect(try faults { $0.frames[1].isUncertain = true } == ["its function is not on the stack"])
    }

    @Test func `a wrong duration is a fault`() throws {
        #expect(
            trial(.sleep, try report(.sleep), milliseconds: 150).faults == [
                "it took 150.0 ms, and is reported with 812.4 ms"
            ])
        for wrong in [811, 814.0] {
            let faults = trial(.sleep, try report(.sleep), milliseconds: wrong).faults
            #expect(faults == ["it took \(wrong) ms, and is reported with 812.4 ms"])
        }
        #expect(trial(.sleep, try report(.sleep), milliseconds: 812).faults == [])
        #expect(trial(.sleep, try report(.sleep), milliseconds: 813).faults == [])
    }

    @Test func `the sentence names what is wrong`() {
        var held = Trial(.cpu)
        (held.delayMilliseconds, held.heldMicroseconds, held.method) = (0.614, 52.4, .ptrace)
        #expect(held.summary == "cpu: right, 0.6 ms after the threshold, captured by ptrace, held for 52 us")
        var proof = MonitorProof()
        (proof.trials, proof.faults) = ([held, Trial(.pipe, fault: "there is no report")], ["/reports is full"])
        #expect(!proof.isWhole)
        let found = "1 of 2 stalls were found as they were, at most 0.6 ms after the threshold"
        #expect(proof.summary == "\(found); pipe: there is no report; /reports is full")
        let none = MonitorProof(obstacle: "the monitor is paused: end the pause first")
        #expect(!none.isWhole && none.summary == "the monitor is paused: end the pause first")
    }
}
