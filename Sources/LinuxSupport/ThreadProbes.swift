internal import CLinux
import Glibc
import Synchronization

/// A short-lived thread on which a tool or a monitor tests what it can read about threads.
package enum ProbedThread {
    private final class Handshake: Sendable {
        let id = Atomic<Int32>(0)
        let isOver = Atomic<Bool>(false)
        let hasBegun = Semaphore()
        let end = Semaphore()
    }

    /// The limit on checks, a millisecond apart, of a thread that does not wait yet.
    private static let maximumChecks = 500
    /// The longest time that a thread computes, in nanoseconds: it may have the only CPU.
    private static let longestSpin: UInt64 = 200_000_000
    /// The longest wait for its beginning, and for its end, in nanoseconds: real-time threads may keep every CPU.
    private static let patience: UInt64 = 1_000_000_000

    /// Starts a thread that waits or computes and does not block `signal`, calls `body` with its id, and ends it.
    ///
    /// Without `isSettled`, a thread that waits may still be on its way to its wait. Throws if it gets no CPU.
    package static func run<Result>(
        isWaiting: Bool, isSettled: Bool = true, signal: Int32 = 0, _ body: (Int32) -> Result
    ) throws(SystemError) -> Result {
        let handshake = Handshake()
        let thread = try WorkerThread(name: "stallwatch-try") {
            unblock(signal)
            handshake.id.store(clinux_gettid(), ordering: .releasing)
            handshake.hasBegun.post()
            let end = isWaiting ? 0 : monotonicNow() &+ longestSpin
            while !handshake.isOver.load(ordering: .acquiring), monotonicNow() < end {}
            handshake.end.wait()
        }
        defer {
            handshake.isOver.store(true, ordering: .releasing)
            handshake.end.post()
            thread.finish(until: monotonicNow() &+ patience)
        }
        guard handshake.hasBegun.wait(until: monotonicNow() &+ patience) else {
            throw SystemError("a new thread gets no CPU: leave one to threads without a real-time policy")
        }
        let id = handshake.id.load(ordering: .acquiring)
        if isWaiting, isSettled { waitUntilBlocked(id) }
        return body(id)
    }

    /// Waits until two checks in a row find the thread asleep: it may wait for a page before it waits.
    private static func waitUntilBlocked(_ thread: Int32) {
        var asleep = 0
        for _ in 0..<maximumChecks {
            guard let stat = readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcStat.init) else { return }
            asleep = stat.letter == "S" ? asleep + 1 : 0
            if asleep == 2 { return }
            usleep(1_000)
        }
    }

    private static func unblock(_ signal: Int32) {
        guard signal > 0 else { return }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, signal)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }
}

/// Whether the calling process is dumpable: other processes of its user may read its memory and trace it.
package var isDumpable: Bool { clinux_is_dumpable() }
