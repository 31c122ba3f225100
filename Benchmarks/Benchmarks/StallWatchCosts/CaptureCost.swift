import CCaptureCost
import Measuring

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
