import Foundation
import Glibc

/// A pipe without data.
final class EmptyPipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    /// A pipe that a thread writes one byte to after `duration`.
    init(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        // If this fails because no descriptor is left, the read fails at once, and the scenario's result is `missed`.
        pipe(&ends)
        readEnd = ends[0]
        writeEnd = ends[1]
        Thread.detachNewThread { [self] in
            Thread.current.name = "pipe-writer"
            Thread.sleep(forTimeInterval: duration.seconds)
            write(writeEnd, "!", 1)
        }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }
}
