import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

// Locks of every kind, held by threads with names. Each lets go by itself after a while.
//
// The functions that take a lock call what waits by themselves, look at what it returns, and are not inlined: so each is
// the innermost function of the app in a stack, whatever the optimizer does.

/// What a thread does with a lock that it holds.
enum Holding: String, Sendable, CaseIterable {
    case computing, sleeping, writing

    /// What a report says of it: `running`, or the system call that it waits in.
    var activity: String {
        switch self {
        case .computing: "running"
        // glibc's nanosleep(3) is made of this one.
        case .sleeping: "clock_nanosleep"
        case .writing: "write"
        }
    }

    /// Does it for `duration`.
    func run(for duration: Duration) {
        switch self {
        case .computing: spinTheCPU(for: duration)
        case .sleeping: sleepTooLong(for: duration)
        case .writing: writeSlowly(for: duration)
        }
    }

    /// Waits in write(2): a pipe that is full, until a thread reads it.
    private func writeSlowly(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        // What a pipe holds (pipe(7)).
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
            // Here, because the last byte may be written before it is read, and by then the number might be another file's.
            close(readEnd)
        }
        write(writeEnd, bytes, bytes.count)
        close(writeEnd)
    }
}

/// A lock that is taken and given back by threads of one's choice.
protocol ThreadLock: Sendable {
    func acquire()
    func release()
}

extension ThreadLock {
    /// Lets a thread named `name` hold the lock for `duration`, and returns when it has it.
    func hold(by name: String, _ holding: Holding, for duration: Duration) {
        NamedThread.start(name) { ready in
            acquire()
            ready()
            holding.run(for: duration)
            release()
        }
    }
}
