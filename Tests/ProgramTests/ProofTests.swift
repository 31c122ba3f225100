import Foundation
import Glibc
import InMemoryLogging
import LinuxSupport
import Logging
import StallReports
import TestSupport
import Testing

@testable import StallWatch

/// A monitor proves itself in this process.
///
/// A machine that is short of CPU may disturb single proofs, and not all of them.
@Suite(.serialized, .ownThread) struct ProofTests {
    private let scratch = TemporaryDirectory.ofTest()

    private func withMonitor(
        _ outputs: [ReportOutput], provesAtStart: Bool = false, _ body: (StallMonitor) throws -> Void
    ) throws {
        // A proof wants names only, and the lines of the tests' file take seconds of CPU to read.
        let monitor = try StallMonitor(
            .init(
                outputs: outputs, detection: .init(provesAtStart: provesAtStart), symbols: .init(lookup: .names)),
            environment: .none)
        try monitor.start()
        defer { monitor.stop() }
        try body(monitor)
    }

    @Test func `a proof is whole, and leaves nothing behind`() throws {
        let reports = Collected<StallReport>()
        try withMonitor([.directory(scratch.path), .closure(reports.add)]) { monitor in
            var proofs: [MonitorProof] = []
            #expect(
                eventually {
                    proofs.append(monitor.prove())
                    return proofs.last?.isWhole == true
                }, "\(proofs.map(\.summary))")
            let held = proofs.last?.trials.first { $0.kind == .cpu }?.heldMicroseconds ?? 0
            #expect(held > 0, "a thread that computes has to be held")
            #expect(monitor.statistics.stalls == 0 && monitor.statistics.loops.isEmpty)
            #expect(monitor.checkHealth().loops.isEmpty)
        }
        #expect(reports.all.isEmpty && scratch.names.filter { !$0.hasPrefix(".") }.isEmpty)
    }

    @Test func `one proof is made at a time`() throws {
        func twoAtOnce(_ monitor: StallMonitor) -> [MonitorProof] {
            let proofs = Collected<MonitorProof>()
            let threads = (0..<2).compactMap { _ in
                try? WorkerThread(name: "proof") { proofs.add(monitor.prove()) }
            }
            for thread in threads { thread.join() }
            return proofs.all
        }
        try withMonitor([]) { monitor in
            // On a machine that is short of CPU the second may begin after the first.
            let isRefused = eventually {
                twoAtOnce(monitor).count { $0.summary.hasPrefix("another proof is under way") } == 1
            }
            #expect(isRefused)
            #expect(eventually { monitor.prove().trials.count == MonitorProof.Kind.allCases.count })
        }
    }

    /// Ten, because a monitor may start two threads and open four files once (`ProofHost`).
    ///
    /// `make proofs` makes 1,000, and judges memory, too.
    @Test(.timeLimit(.minutes(20))) func `proofs in a busy app hide no stall, and leave no thread and file`() throws {
        let result = try Command(
            program: Command.product("stallwatch-test-host"), arguments: ["proofs", scratch.path("reports"), "10"]
        ).run()
        #expect(result.reason == .exit && result.status == 0, "\(result.text)")
        print(result.output)
    }

    @Test func `a directory that takes no report is found out`() throws {
        let path = scratch.path("reports")
        try withMonitor([.directory(path)]) { monitor in
            // The output makes this file on a thread of its own.
            let isReady = eventually {
                (directoryEntries(path) ?? []).contains { $0.name.contains(MonitorLock.fileName) }
            }
            try #require(isReady)
            try FileManager.default.removeItem(atPath: path)
            _ = try scratch.write("reports", "a file")
            expectProof(of: monitor) { proof in !proof.isWhole && proof.faults.contains { $0.contains(path) } }
        }
    }

    /// Lets a monitor of this process prove itself until a proof is as wanted: on a busy machine one takes too long.
    private func expectProof(of monitor: StallMonitor, _ isWanted: (MonitorProof) -> Bool) {
        var last = ""
        let isFound = eventually {
            let proof = monitor.prove()
            last = proof.summary
            return isWanted(proof)
        }
        #expect(isFound, "\(last)")
    }

    /// Lets the monitor of another process prove itself until so many proofs in succession are as wanted: what a busy machine
    /// does passes.
    private func expectProofs(of host: TestHost, count wanted: Int = 2, _ isWanted: (MonitorProof) -> Bool) {
        var (count, last) = (0, "")
        let isFound = eventually(every: 100) {
            guard let result = try? Tool.shell("$TOOL doctor --prove --json \(host.pid)") else { return false }
            let proof = (try? Tool.decode(Tool.Diagnosis.self, result.output))?.proof
            last = proof?.summary ?? result.text
            count = proof.map(isWanted) == true ? count + 1 : 0
            return count == wanted
        }
        #expect(isFound, "\(last)")
    }

    /// The faults of each stall that is not as it was.
    private func faults(_ proof: MonitorProof) -> [MonitorProof.Kind: [String]] {
        let wrong = proof.trials.filter { !$0.faults.isEmpty }
        return Dictionary(wrong.map { ($0.kind, $0.faults) }) { $0 + $1 }
    }

    @Test(.enabled(if: Command.find("strip") != nil, "there is no strip(1)"))
    func `names that are missing are found out`() throws {
        let program = try scratch.program("host", from: Command.product("stallwatch-test-host"))
        try Command(program: "/usr/bin/env", arguments: ["strip", program]).succeed()
        let host = try TestHost(["control", scratch.path, "wait"], program: program)
        _ = host.firstLine()
        expectProofs(of: host) { proof in
            proof.trials.count == MonitorProof.Kind.allCases.count
                && proof.trials.allSatisfy { trial in
                    trial.faults.contains { $0.hasPrefix("its function has no name") }
                }
        }
    }

    /// Without this file a thread that waits for a lock shows neither the lock nor its owner; the others are found.
    @Test(.needsPtrace) func `owners that are hidden are found out`() throws {
        let posture = try #require(Posture.withoutFile.first { $0.missingFiles == ["syscall"] })
        let library = try Preload.hide.make(in: scratch)
        let host = try TestHost(
            ["control", scratch.path, "wait"], wrapper: posture.command(in: scratch.path, preloading: [library]))
        _ = host.firstLine()
        expectProofs(of: host) { proof in
            let found = faults(proof)
            return proof.trials.count == MonitorProof.Kind.allCases.count && Array(found.keys) == [.lock]
                && found[.lock]?.contains("the cause is not known") == true
        }
    }

    /// A thread that computes can only be captured by a stop or by a signal.
    @Test func `stops and signals that are refused are found out`() throws {
        let library = try Preload.forbid.make(in: scratch)
        let host = try TestHost(
            ["control", scratch.path, "wait"],
            wrapper: ["FORBID_CALLS=ptrace:1", "FORBID_SIGNALS=1", "LD_PRELOAD=\(library)"])
        _ = host.firstLine()
        expectProofs(of: host) { proof in
            let found = faults(proof)
            return proof.trials.count == MonitorProof.Kind.allCases.count && Array(found.keys) == [.cpu]
                && found[.cpu]?.contains { $0.hasPrefix("there is no stack") } == true
        }
    }

    /// A CPU cgroup of version 1, which only root may make.
    private static let group = "/sys/fs/cgroup/cpu/stallwatch-test-\(getpid())"
    private static let hasGroups = mkdir(group, 0o755) == 0 && rmdir(group) == 0

    @Test(.enabled(if: hasGroups, "a CPU cgroup of version 1 cannot be made"))
    func `a proof is whole with a fifth of a CPU`() throws {
        defer { rmdir(Self.group) }
        let enter =
            "mkdir $0 && echo 100000 >$0/cpu.cfs_period_us && echo 20000 >$0/cpu.cfs_quota_us && echo $$ >$0/tasks "
            + "&& exec \"$@\""
        let host = try TestHost(["control", scratch.path, "wait"], wrapper: ["sh", "-c", enter, Self.group])
        _ = host.firstLine()
        expectProofs(of: host, count: 1) { $0.isWhole }
        host.process.kill()
        _ = host.finish()
    }

    /// All durations of the monitor are multiples of 40 ms then.
    @Test func `a clock that is wrong is found out`() throws {
        let library = try Preload.coarseClock.make(in: scratch)
        let host = try TestHost(["control", scratch.path, "wait"], wrapper: ["LD_PRELOAD=\(library)"])
        _ = host.firstLine()
        expectProofs(of: host) { proof in
            proof.trials.contains { trial in trial.faults.contains { $0.hasPrefix("it took ") } }
        }
    }

    @Test func `an output that does not return is found out`() throws {
        let (gate, isStuck) = (Semaphore(), Semaphore())
        defer { gate.post() }
        let stuck = ReportOutput.closure { _ in
            isStuck.post()
            gate.wait(until: endOfPatience)
        }
        try withMonitor([stuck]) { monitor in
            let probe = LoopProbe(label: "probe")
            try monitor.watch(.probe(probe), threshold: .milliseconds(5))
            probe.beginTurn()
            usleep(50_000)
            probe.endTurn()
            #expect(isStuck.wait(until: endOfPatience))
            expectProof(of: monitor) { proof in
                proof.faults.contains { $0.hasPrefix("an output does not answer") }
            }
            gate.post()
        }
    }

    @Test func `a proof at the start is a line of the log, and in the health record`() throws {
        let log = InMemoryLogHandler()
        try withMonitor([.log(Logger(label: "test") { _ in log })], provesAtStart: true) { monitor in
            #expect(eventually { log.entries.contains { "\($0.message)".hasPrefix("proof: ") } })
            #expect(eventually { monitor.checkHealth().proof != nil })
        }
    }

    @Test func `what a monitor costs grows with what it does`() throws {
        try withMonitor([]) { monitor in
            let engine = try #require(monitor.engine as? LiveEngine)
            let before = engine.cost
            // A proof may fail here; its threads use CPU, and wait, in any case.
            _ = monitor.prove()
            let after = engine.cost
            #expect(after.cpuSeconds > before.cpuSeconds && after.wakeUps > before.wakeUps)
            #expect(after.seconds > before.seconds && after.processCPUSeconds > before.processCPUSeconds)
            #expect(after.threads >= 2 && after.openFiles > 0)
            #expect(after.longestHoldMicroseconds <= after.heldMicroseconds)
        }
    }
}
