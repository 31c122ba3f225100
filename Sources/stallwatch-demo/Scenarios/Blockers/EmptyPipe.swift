import Foundation
import Glibc

/// A pipe that has nothing to read.
final class EmptyPipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    /// A pipe that a thread writes one byte to after `duration`.
    init(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        // If it fails (no file descriptors left), reading fails at once, and the scenario's verdict is that nothing stalled.
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
