import ArgumentParser
import StallWatch

/// The shape of a program that runs as the demo's child: `stallwatch-demo --host SHAPE`.
enum HostShape: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// An async `@main`, in which the main actor moves from the main thread to workers of libdispatch.
    case asyncMain = "async-main"
    /// `dispatchMain()`.
    case dispatchMain = "dispatch-main"
    /// `RunLoop.main.run()`.
    case runForever = "run-forever"
    /// `RunLoop.main.run(mode:before:)` in a `while`.
    case runBefore = "run-before"
    /// A main run loop that turns a thousand times a second until standard input ends.
    case busy
    /// A main run loop and fifty others that wait until standard input ends.
    case waiting
    /// The same fifty, and each turns a hundred times a second.
    case turning
}

/// What a child tells its parent, as one line of JSON on standard output.
struct HostResult: Codable, Sendable {
    /// How long each injected stall took.
    var injectedMilliseconds: [Double]
    /// The names of its reports.
    var files: [String]
    var suppressed: SuppressionCounts
}
