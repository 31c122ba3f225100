import CDemo
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// Threads that sit in calls which a signal would end with EINTR, while a monitor captures them there.
///
/// Each call is a turn of a loop that is over its threshold, so that each is captured, several times, and reported.
final class CallWitnesses: Sendable {
    /// What all threads have seen.
    struct Count: Equatable, Encodable, Sendable {
        var calls = 0
        /// Calls that returned EINTR.
        var interrupted = 0
        /// Calls that returned before their time.
        var early = 0
        /// Calls that returned another error.
        var failed = 0
        /// Calls that were reported as the stalls that they are.
        var reported = 0
        /// Calls that were reported with a stack.
        var captured = 0
        /// Calls that the monitor held back a report of, by its own count.
        var suppressed = 0
    }

    /// How long a call may take until it is captured.
    static let threshold = Duration.milliseconds(20)
    /// How long each call takes, in milliseconds.
    static let wait: UInt32 = 200
    /// How long each thread rests between two calls, in milliseconds.
    static let pause = 500...1500
    /// How much earlier than asked for recv(2) may return, in nanoseconds: the kernel's tick, of which a part may have passed
    /// already.
    static let earliness = 10_000_000

    private let monitor: StallMonitor
    private let count = Mutex(Count())
    private let isStopping = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    /// Its result is how many calls were reported, and how many of them with a stack.
    private let reader: Task<(reported: Int, captured: Int), Never>

    /// Starts them and their monitor.
    init(seed: UInt64) throws(DemoFailure) {
        var configuration = StallMonitor.Configuration(threshold: Self.threshold, reports: .none)
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

    /// One call.
    private func observe(_ kind: Int32, _ probe: LoopProbe) {
        probe.beginTurn()
        // Only recv(2) counts its time in ticks, which stand still while a host holds the CPU that counts them. So does
        // this clock (clock_gettime(2)), and what the one makes up for at once the other does as well.
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

    /// Ends and joins the threads and their monitor, and returns what they saw.
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

/// The time of a clock, in nanoseconds.
private func now(by clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

extension DispatchSemaphore {
    /// Waits for it on a thread of its own: no thread of Swift's pool is kept meanwhile.
    fileprivate func signalled() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                wait()
                continuation.resume()
            }
        }
    }
}
