import CUnwindTestSupport
import Foundation
import Glibc
import LinuxSupport
import StallWatch
import Testing
import TestSupport

@testable import stallwatch_scenarios

/// The watchdog's wake-ups and suppressed stalls, in a separate process.
@Suite(.serialized) struct DetectionTests {
    static let threshold = Duration.milliseconds(250)

    /// The watchdog of a program that has settled.
    struct Watchdog: Sendable {
        var wakeUps: Int?
        /// How long they were counted, in thresholds.
        var thresholds: Double
        var reports: [String]?
    }

    /// A measurement that is longer than the longest time between two looks at anything.
    ///
    /// It runs beside the tests until `RestTests`, which judge it: neither it nor they need a CPU for long.
    static let whileLoopsWait = Task {
        try await watchdog(.waiting, in: .seconds(12)) { $0 == 0 }
    }
    static let withPool = Task {
        try await watchdog(.waitingWithPool, in: .seconds(12), until: (1...2).contains)
    }
    private static let maximumWindows = 3
    static let steal = CPUSteal()

    init() {
        _ = (Self.steal, Self.whileLoopsWait, Self.withPool, Self.stopped)
        #if NIO
            _ = (RestTests.steal, RestTests.rest)
        #endif
    }

    /// Counts the watchdog's wake-ups in `duration`, once a program of that shape has settled: again where they are not as
    /// wanted, because each watch that a busy machine begins late is one.
    private static func watchdog(
        _ shape: HostShape, in duration: Duration, until isSettled: (Int) -> Bool = { _ in true }
    ) async throws -> Watchdog {
        try await withDirectory { directory in
            let child = try ChildProcess(
                shape, threshold: threshold, directory: directory, executable: Command.product("stallwatch-scenarios"))
            await child.waitForMonitor(within: .seconds(600))
            try await Task.sleep(for: .seconds(2))
            var counted: (wakeUps: Int?, thresholds: Double) = (nil, 0)
            for _ in 0..<maximumWindows where counted.wakeUps.map({ !isSettled($0) }) ?? true {
                let (began, before) = (ContinuousClock.now, child.wakeUps(ofThread: "stallwatch-dog"))
                try await Task.sleep(for: duration)
                let after = child.wakeUps(ofThread: "stallwatch-dog")
                let wakeUps = before.flatMap { before in after.map { $0 - before } }
                counted = (wakeUps, (ContinuousClock.now - began) / threshold)
            }
            return Watchdog(
                wakeUps: counted.wakeUps, thresholds: counted.thresholds, reports: try await child.result()?.files)
        }
    }

    /// The watchdog wakes up once per early age, an eighth of the threshold, earlier by the age of the oldest turn at a
    /// poll (here a millisecond).
    @Test func `turning loops wake the watchdog once per early age`() async throws {
        let watchdog = try await Self.watchdog(.turning, in: .seconds(4))
        let wakeUps = try #require(watchdog.wakeUps)
        print("50 turning loops: \(wakeUps) wake-ups in \(watchdog.thresholds) thresholds")
        #expect(wakeUps > 0)
        // A poll may be early by the age of a turn, and a turn may be checked because the machine is busy.
        #expect(Double(wakeUps) <= watchdog.thresholds * 8 * 1.05)
        #expect(watchdog.reports == [])
    }

    private static let stops = 4
    /// A busy program that is stopped again and again, beside the test that counts wake-ups.
    private static let stopped: Task<HostResult?, any Error> = Task {
        try await withDirectory { directory in
            let child = try ChildProcess(
                .busy, threshold: threshold, directory: directory,
                executable: Command.product("stallwatch-scenarios"))
            await child.waitForMonitor(within: .seconds(600))
            try await Task.sleep(for: .seconds(1))
            for _ in 0..<stops {
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...500)))
                // The stop lasts four thresholds: without the guard, each one would be reported as a stall. A shell
                // ends it, because this process may end meanwhile, after a test that does not wait for this task.
                let stop = "kill -STOP \(child.id); sleep \((threshold * 4).seconds); kill -CONT \(child.id)"
                _ = try await ChildProcess(["-c", stop], executable: "/bin/sh").finish(within: .seconds(60))
            }
            try await Task.sleep(for: .milliseconds(500))
            return try await child.result()
        }
    }

    @Test func aStoppedProcessIsCountedAndNotReported() async throws {
        let result = try #require(try await Self.stopped.value)
        #expect(result.files.isEmpty)
        // CPU steal stops the process, too, and a stop that it explains is counted as steal.
        Self.steal.excuses { #expect(result.suppressed[.processStopped] == Self.stops) }
    }

    /// The debugger stops one thread; the rest of the program, including the watchdog, continues.
    @Test(.needsPtrace) func aThreadStoppedByADebuggerIsNotReported() throws {
        let directory = try TemporaryDirectory()
        let host = try TestHost(["stalls", directory.path, "2000", "1", "2500", "2500"])
        #expect(host.firstLine().hasPrefix("B "))
        // A thread that is held before it sleeps has its whole sleep left afterwards, and that is a stall.
        let isAsleep = eventually { readSmallFile("/proc/\(host.pid)/wchan").map { $0.contains("nanosleep") } ?? false }
        try #require(isAsleep)
        // Hold the thread from before the threshold on. The rest of the turn is 1.5 s too short for a stall.
        #expect(cunwind_test_hold(host.pid, 2400, -1))
        let lines = host.finish()
        #expect(lines.suffix(2) == ["D 1", "S 0"])
        let causes = try directory.reports().map(\.cause)
        #expect(causes.isEmpty)
    }
}

/// The system calls and allocations that a monitor adds to a turn, on the loop's thread.
@Suite(.serialized, .needsPtrace) struct TurnCostTests {
    static let turns = 500

    private struct Cost {
        var calls: Int
        var allocations: Int
        var text: String
    }

    /// The reference of both tests.
    private static let bare = Result { try cost("source0", "bare") }

    /// What counts a program's system calls and allocations, compiled once.
    private struct Counters: Sendable {
        let directory: TemporaryDirectory
        let calls: String
        let allocations: String
    }

    private static let counters: Result<Counters, any Error> = Result {
        let directory = try TemporaryDirectory()
        let counter = directory.path("count_calls")
        try Command(
            program: try #require(Command.find("clang")),
            arguments: [
                "-Wall", "-Wextra", Repository.support.appendingPathComponent("Trace/count_calls.c").path, "-o",
                counter,
            ]
        ).succeed()
        return Counters(
            directory: directory, calls: counter, allocations: try Preload.allocations.make(in: directory))
    }

    private static func cost(_ kind: String, _ watching: String) throws -> Cost {
        let counters = try Self.counters.get()
        let text = try Command(
            program: counters.calls,
            arguments: [try Command.product("stallwatch-test-host"), "turns", kind, "\(turns)", watching],
            environment: ["LD_PRELOAD": counters.allocations]
        ).succeed()
        func number(_ name: String) -> Int? {
            text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }.flatMap { Int($0.dropFirst(2)) }
        }
        if let seen = number("T") { #expect(seen > turns, "the turns were watched") }
        return Cost(calls: try #require(number("S")), allocations: try #require(number("A")), text: text)
    }

    @Test(arguments: ["source0", "timer"]) func aMonitorAddsNoCallAndNoAllocationToATurn(kind: String) throws {
        let bare = try kind == "source0" ? Self.bare.get() : Self.cost(kind, "bare")
        let monitored = try Self.cost(kind, "monitored")
        print(
            "\(Self.turns) \(kind) turns: \(bare.calls) calls, \(bare.allocations) allocations;",
            "monitored: \(monitored.calls), \(monitored.allocations)")
        // The tolerance covers the post that wakes a sleeping watchdog, at most once per threshold, and the varying
        // work of a run loop when timers are late.
        let others = 40
        #expect(monitored.calls - bare.calls < others, "\(bare.text)\(monitored.text)")
        #expect(monitored.allocations - bare.allocations < others)
    }

    /// The reference: one call and one allocation per turn are counted.
    @Test func callsAndAllocationsOfATurnAreCounted() throws {
        let bare = try Self.bare.get()
        let noisy = try Self.cost("source0", "noisy")
        #expect(noisy.calls - bare.calls >= Self.turns)
        #expect(noisy.allocations - bare.allocations >= Self.turns)
    }
}
