import ArgumentParser
import StallWatch

/// The shape of the demo's child: `stallwatch-demo --host SHAPE`.
enum HostShape: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// An async `@main`. The main actor moves from the main thread to workers of libdispatch.
    case asyncMain = "async-main"
    /// An async `@main` that stalls on the main thread before it suspends for the first time.
    case asyncMainAtOnce = "async-main-at-once"
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
    /// The same loops, and the fifty turn a hundred times a second.
    case turning
    /// Four event loops and ten queues without work, until standard input ends. Each byte of it makes one of them stall.
    case resting
}
