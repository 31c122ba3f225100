import Foundation
import TestSupport
import Testing

/// The system calls and allocations that a monitor adds to a turn, on the loop's thread.
@Suite(.serialized) struct TurnCostTests {
    /// The number of counted turns.
    static let turns = 2_000

    private struct Cost {
        var calls: Int
        var allocations: Int
        var text: String
    }

    /// Runs the turns and counts system calls and allocations.
    private func cost(_ kind: String, _ watching: String) throws -> Cost {
        let directory = try TemporaryDirectory()
        let counter = directory.path("count_calls")
        try Command(
            program: try #require(Command.find("clang")),
            arguments: [
                "-Wall", "-Wextra", Repository.support.appendingPathComponent("Trace/count_calls.c").path, "-o",
                counter,
            ]
        ).succeed()
        let text = try Command(
            program: counter,
            arguments: [try Command.product("stallwatch-test-host"), "turns", kind, "\(Self.turns)", watching],
            environment: ["LD_PRELOAD": try Preload.allocations.make(in: directory)]
        ).succeed()
        func number(_ name: String) -> Int? {
            text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }.flatMap { Int($0.dropFirst(2)) }
        }
        if let seen = number("T") { #expect(seen > Self.turns, "the turns were watched") }
        return Cost(calls: try #require(number("S")), allocations: try #require(number("A")), text: text)
    }

    @Test(arguments: ["source0", "timer"]) func aMonitorAddsNoCallAndNoAllocationToATurn(kind: String) throws {
        let bare = try cost(kind, "bare")
        let monitored = try cost(kind, "monitored")
        print(
            "\(Self.turns) \(kind) turns: \(bare.calls) calls, \(bare.allocations) allocations;",
            "monitored: \(monitored.calls), \(monitored.allocations)")
        // The tolerance covers the post that wakes a sleeping watchdog, at most once per threshold, and the varying
        // work of a run loop when timers are late.
        let others = Self.turns / 50
        #expect(monitored.calls - bare.calls < others, "\(bare.text)\(monitored.text)")
        #expect(monitored.allocations - bare.allocations < others)
    }

    /// The reference: one call and one allocation per turn are counted.
    @Test func callsAndAllocationsOfATurnAreCounted() throws {
        let bare = try cost("source0", "bare")
        let noisy = try cost("source0", "noisy")
        #expect(noisy.calls - bare.calls >= Self.turns)
        #expect(noisy.allocations - bare.allocations >= Self.turns)
    }
}
