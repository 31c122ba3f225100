import CCaptureCost
import CThrowCost
import Foundation
import Measuring
import StallWatch
import Synchronization

/// The time for which a capture holds a running thread, measured by that thread, and the time that the caller takes.
///
/// The held time is the longest gap between two clock reads of the thread, so it includes the delivery of the signal or
/// stop and the return.
enum CaptureCost {
    private static let ways: [(capture_way, String)] = [
        (CAPTURE_STOP, "StallWatch's stop"),
        (CAPTURE_SIGNAL, "StallWatch's signal"),
        (CAPTURE_READ, "StallWatch's read (thread blocked)"),
        (CAPTURE_PLAIN_SIGNAL_COPY, "a handler with memcpy of the stack"),
        (CAPTURE_BACKTRACE_IN_HANDLER, reference),
        (CAPTURE_NOTHING, "nothing: the machine by itself"),
    ]
    private static let reference = "a handler with backtrace(3)"

    /// Stacks of 64 KiB, captured in all ways.
    static var comparison: Comparison { comparison(kibibytes: 64, ways, count: 250) }

    /// Stacks of other depths, captured in the ways whose cost depends on the depth.
    static func comparison(kibibytes: Int) -> Comparison {
        comparison(
            kibibytes: kibibytes,
            ways.filter { [CAPTURE_STOP, CAPTURE_READ, CAPTURE_BACKTRACE_IN_HANDLER].contains($0.0) }, count: 75
        )
    }

    private static func comparison(kibibytes: Int, _ ways: [(capture_way, String)], count: Int) -> Comparison {
        Comparison(
            title: "Capture of a thread with a stack of \(kibibytes) KiB", quantities: ["held, ns", "caller, ns"],
            iterations: 4,
            ways: ways.map { way, name in
                .init(name) { try measure(way, name, bytes: kibibytes * 1024, count: count) }
            },
            reference: reference
        )
    }

    private static func measure(_ way: capture_way, _ name: String, bytes: Int, count: Int) throws -> [[Double]] {
        var held = [UInt64](repeating: 0, count: count)
        var whole = held
        let frames = capture_cost(way, bytes, count, &held, &whole)
        guard frames >= 0 else { throw CannotMeasure("\(name): a capture failed") }
        // A thread that is read is blocked already: it is not held. (`Double.init` alone would be the one of a bit pattern.)
        return [way == CAPTURE_READ ? [] : held.map { Double($0) }, whole.map { Double($0) }]
    }
}

extension capture_way: @retroactive Equatable {}

/// The cost of encoding a report as JSON, and of Foundation's JSONSerialization for the same values.
enum EncodingCost {
    static let count = 100

    static var comparison: Comparison {
        let report = Result { try reportOfAStall() }
        return Comparison(
            title: "A report as JSON, mean of \(count)", iterations: 15,
            ways: [
                .init("StallReport.jsonData()") {
                    let report = try report.get()
                    return meanNanoseconds(count) { precondition(!report.jsonData().isEmpty) }
                },
                .init("StallReport(jsonData:)") {
                    let bytes = try report.get().jsonData()
                    return meanNanoseconds(count) { precondition((try? StallReport(jsonData: bytes)) != nil) }
                },
                .init("JSONSerialization.data") {
                    let object = try JSONSerialization.jsonObject(with: Data(report.get().jsonData()))
                    return meanNanoseconds(count) {
                        let data = try? JSONSerialization.data(
                            withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
                        precondition(data?.isEmpty == false)
                    }
                },
            ],
            reference: "JSONSerialization.data"
        )
    }

    /// A report of a real stall of this program, with names and lines.
    private static func reportOfAStall() throws -> StallReport {
        let probe = LoopProbe(label: "measured")
        let found = Mutex<StallReport?>(nil)
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(20), outputs: [])
        configuration.onEvent = { if case .ended(let report) = $0 { found.withLock { $0 = report } } }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        probe.beginTurn()
        Thread.sleep(forTimeInterval: 0.2)
        probe.endTurn()
        // Delivers every report before it returns.
        monitor.stop()
        guard let report = found.withLock({ $0 }) else { throw CannotMeasure("no stall was reported") }
        return report
    }
}

/// The cost of a C++ exception in this program, which links StallWatch, and in a program that does not.
enum ExceptionCost {
    static let count: Int32 = 20_000

    static var comparison: Comparison {
        Comparison(
            title: "A C++ exception thrown and caught 10 frames further out, mean of \(count)", iterations: 51,
            ways: [.init("with StallWatch linked") { throw_cost(count) }, .init("without StallWatch", elsewhere)],
            reference: "without StallWatch"
        )
    }

    /// The same in the program `throw-cost`.
    private static func elsewhere() throws -> Double {
        let text = try output(of: sibling("throw-cost"), ["\(count)"])
        guard let cost = Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw CannotMeasure("throw-cost printed '\(text)'")
        }
        return cost
    }
}

/// The cost of a turn for a loop with a probe.
enum ProbeCost {
    static let turns = 500_000
    static let reference = "two clock_gettime(CLOCK_MONOTONIC)"

    static var comparison: Comparison {
        Comparison(
            title: "A turn of a loop with a probe, mean of \(turns)", iterations: 9,
            ways: [.init(reference, twoClockReads), .init("beginTurn() and endTurn()", probe)], reference: reference
        )
    }

    /// The time of two bare reads of the clock, in nanoseconds.
    static func twoClockReads() -> Double {
        var sum: UInt64 = 0
        let cost = meanNanoseconds(turns) { sum &+= now() &+ now() }
        // Used, so that the optimizer keeps the reads.
        precondition(sum != 0)
        return cost
    }

    private static func probe() throws -> Double {
        let probe = LoopProbe(label: "measured")
        let monitor = try StallMonitor(.init(outputs: []))
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        return meanNanoseconds(turns) {
            probe.beginTurn()
            probe.endTurn()
        }
    }
}
