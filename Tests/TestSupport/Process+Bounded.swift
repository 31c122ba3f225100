package import Foundation
import Glibc

extension Process {
    /// How long a program of a test may run: far longer than any does, on a machine that is busy with other things, too.
    package static let timeout: TimeInterval = 600

    /// Starts the program, and kills it if it still runs after `seconds`.
    ///
    /// So whoever waits for its end or reads its output to the end does not wait for ever: the test fails.
    package func run(atMost seconds: TimeInterval = timeout) throws {
        let ended = DispatchSemaphore(value: 0)
        terminationHandler = { _ in ended.signal() }
        try run()
        Thread.detachNewThread { [self] in
            if ended.wait(timeout: .now() + seconds) == .timedOut { kill() }
        }
    }

    /// Kills the program, unless it has ended, and leaves it to others to wait for that.
    ///
    /// Not with SIGTERM: it inherits the signal mask of a dispatch worker, which blocks that one.
    package func kill() {
        if isRunning { _ = Glibc.kill(processIdentifier, SIGKILL) }
    }
}
