import CDemo
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// Threads in system calls that a signal would end with EINTR, while a monitor captures them.
///
/// Each call is a turn over the threshold of a loop, so the monitor captures it several times and reports it.
final class CallWitnesses: Sendable {
    /// The counts of all threads.
    struct Count: Equatable, Encodable, Sendable {
        var calls = 0
        /// Calls that returned EINTR.
        var interrupted = 0
        /// Calls that returned early.
        var early = 0
        /// Calls that returned another error.
        var failed = 0
        /// Calls with a report.
        var reported = 0
        /// Calls with a report that has a stack.
        var captured = 0
        /// Calls whose reports the monitor suppressed, by its own count.
        var suppressed = 0
    }

    /// The threshold of the calls' loops.
    static let threshold = Duration.milliseconds(20)
    /// The duration of each call, in milliseconds.
    static let wait: UInt32 = 200
    /// The pause between two calls of a thread, in milliseconds.
    static let pause = 500...1500
    /// How early recv(2) may return, in nanoseconds: one tick of the kernel, because a part of it may have passed already.
    static let earliness = 10_000_000

    private let monitor: StallMonitor
    private let count = Mutex(Count())
    private let isStopping = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    /// Counts the reports, and those with a stack.
    private let reader: Task<(reported: Int, captured: Int), Never>

    /// Starts the threads and their monitor.
    init(seed: UInt64) throws(DemoFailure) {
        var configuration = StallMonitor.Configuration(threshold: .fixed(Self.threshold), reports: .none)
        configuration.reportsEveryRepeat = true
        configuration.maximumReportsPerMinute = 10_000
        let kinds = 0..<DEMO_INTERRUPTIBLE_CALLS
        let probes = kinds.map { LoopProbe(label: String(cString: demo_interruptible_call_name($0))) }
        do throws(StallWatchError) {
            monitor = try StallMonitor(configuration)
            for probe in probes { try monitor.watch(.probe(probe)) }
            try monitor.start()
        } catch {
            throw DemoFailure(error)
        }
        reader = Task { [monitor] in
            var count = (reported: 0, captured: 0)
            for await report in monitor.reports {
                count.reported += 1
                if report.samples.contains(where: { $0.stack != nil }) { count.captured += 1 }
            }
            return count
        }
        for (kind, probe) in zip(kinds, probes) {
            Thread.detachNewThread { [self] in
                NamedThread.nameThisThread("in-" + probe.label)
                Interruption.unblockOtherSignals()
                var random = SplitMix64(seed: seed &+ UInt64(kind))
                while !isStopping.load(ordering: .relaxed) {
                    observe(kind, probe)
                    usleep(UInt32(Int.random(in: Self.pause, using: &random)) * 1000)
                }
                ended.signal()
            }
        }
    }

    /// Makes one call and counts its result.
    private func observe(_ kind: Int32, _ probe: LoopProbe) {
        probe.beginTurn()
        // Only recv(2) counts its time in ticks. They stop while a host holds the CPU that counts them, and catch up at once.
        // The coarse clock (clock_gettime(2)) does the same.
        let isInTicks = probe.label == "recv"
        let clock = isInTicks ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC
        let begin = now(by: clock)
        let error = demo_wait_interruptibly(kind, Self.wait)
        let elapsed = now(by: clock) - begin
        probe.endTurn()
        let isEarly = elapsed + (isInTicks ? Self.earliness : 0) < Int(Self.wait) * 1_000_000
        if error != 0 || isEarly {
            let how = error != 0 ? String(cString: strerror(error)) : "too early"
            StandardError.write("\(probe.label) ended after \(elapsed / 1_000_000) ms: \(how)\n")
        }
        count.withLock { count in
            count.calls += 1
            if error == EINTR {
                count.interrupted += 1
            } else if error != 0 {
                count.failed += 1
            } else if isEarly {
                count.early += 1
            }
        }
    }

    /// Ends and joins the threads, stops the monitor, and returns the counts.
    func stop() async -> Count {
        isStopping.store(true, ordering: .relaxed)
        for _ in 0..<DEMO_INTERRUPTIBLE_CALLS { await ended.signalled() }
        monitor.stop()
        let (reported, captured) = await reader.value
        let suppressed = SuppressionReason.allCases.reduce(0) { $0 + monitor.statistics.suppressed[$1] }
        return count.withLock { count in
            count.reported = reported
            count.captured = captured
            count.suppressed = suppressed
            return count
        }
    }
}

/// Returns the time of a clock in nanoseconds.
private func now(by clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

extension DispatchSemaphore {
    /// Waits on a new thread, so that no thread of Swift's pool is blocked.
    fileprivate func signalled() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                wait()
                continuation.resume()
            }
        }
    }
}
