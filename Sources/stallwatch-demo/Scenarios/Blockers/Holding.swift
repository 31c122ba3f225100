import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// The activity of a thread that holds a lock.
enum Holding: String, Sendable, CaseIterable {
    case computing, sleeping, writing

    /// The activity in a report: `running`, or the name of the blocking system call.
    var activity: String {
        switch self {
        case .computing: "running"
        // glibc implements nanosleep(3) with this call.
        case .sleeping: "clock_nanosleep"
        case .writing: "write"
        }
    }

    /// Performs the activity for `duration`.
    func run(for duration: Duration) {
        switch self {
        case .computing: spinTheCPU(for: duration)
        case .sleeping: sleepTooLong(for: duration)
        case .writing: writeSlowly(for: duration)
        }
    }

    /// Waits in write(2) on a full pipe until a thread reads it.
    private func writeSlowly(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        // The capacity of a pipe (pipe(7)).
        let capacity = 65_536
        let bytes = [UInt8](repeating: 0, count: capacity + 1)
        Thread.detachNewThread {
            sleepTooLong(for: duration)
            var buffer = [UInt8](repeating: 0, count: capacity + 1)
            var left = capacity + 1
            while left > 0 {
                let count = read(readEnd, &buffer, left)
                guard count > 0 else { break }
                left -= count
            }
            // Closed by the reader: after the last write, a byte may still be unread, and a closed number may become another file's.
            close(readEnd)
        }
        write(writeEnd, bytes, bytes.count)
        close(writeEnd)
    }
}
