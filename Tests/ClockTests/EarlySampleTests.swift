import CStalls
import CLinux
import LinuxSupport
import Foundation
import Glibc
import StallReports
import StallWatch
import Synchronization
import StackCapture
import TestSupport
import Testing

/// Stalls of two functions, one after the other: the report must tell how long each of them took.
@Suite(.serialized) struct EarlySampleTests {
    /// How a phase passes its time.
    enum Activity: String, CaseIterable {
        case cpu, sleep, lock
    }

    /// The largest error of a share.
    private static let tolerance = 0.05

    /// A report and the share of its duration that the first function took.
    private struct Measured: CustomStringConvertible {
        var report: StallReport
        var actual: Double
        var first: String

        /// The share of the first function according to the samples.
        var share: Double {
            var weight = 0.0
            for sample in report.samples {
                let functions = (sample.stack.map { report.stacks[$0] } ?? []).map { report.frames[$0].function }
                if functions.contains(first) { weight += sample.weightMilliseconds ?? 0 }
            }
            return weight / report.durationMilliseconds
        }

        var isExact: Bool { abs(share - actual) <= EarlySampleTests.tolerance }

        var description: String {
            "\(first) has \(share) and took \(actual) of \(report.durationMilliseconds) ms, \(report.samples.count) samples"
        }
    }

    @Test(arguments: Activity.allCases, [80, 20])
    func bothPhasesHaveTheirShare(activity: Activity, percent: Int) async throws {
        let measured = try await remeasured(
            { try stall(activity, 500 * percent / 100, 500 - 500 * percent / 100, threshold: 200) },
            until: \.isExact
        )
        print("\(activity) \(percent)/\(100 - percent): \(measured)")
        #expect(measured.isExact, "\(measured)")
        let weights = measured.report.samples.compactMap(\.weightMilliseconds)
        #expect(abs(weights.reduce(0, +) - measured.report.durationMilliseconds) < 0.1)
        #expect(measured.report.samples.contains { $0.isEarly == true })
        let culprit = try #require(measured.report.culprit)
        #expect((culprit.function == measured.first) == (percent == 80))
        #expect(abs((culprit.share ?? 0) - max(measured.actual, 1 - measured.actual)) <= Self.tolerance)
    }

    /// A load whose turns are mostly short, and sometimes nearly as long as the threshold.
    ///
    /// STALLWATCH_HEALTHY_SECONDS sets its length.
    @Test func `healthy turns are stopped at most once in a thousand`() throws {
        let seconds = ProcessInfo.processInfo.environment["STALLWATCH_HEALTHY_SECONDS"].flatMap(UInt64.init) ?? 8
        let probe = LoopProbe(label: "load")
        let monitor = try StallMonitor(.init(threshold: .milliseconds(500), outputs: []))
        try monitor.watch(.probe(probe))
        try monitor.start()
        let end = monotonicNow() + seconds * 1_000_000_000
        var turns: UInt64 = 0
        onOwnThread {
            while monotonicNow() < end {
                // One turn in 300 is older than an eighth of the threshold.
                firstComputes(until: monotonicNow() + (turns % 300 == 7 ? 100_000_000 : 500_000)) {
                    probe.beginTurn()
                }
                probe.endTurn()
                turns += 1
                usleep(100)
            }
        }
        monitor.stop()
        let loop = try #require(monitor.statistics.loops.first)
        print("\(loop.turns) healthy turns in \(seconds) s, \(loop.earlyStops) stopped early")
        #expect(loop.turns > 1_000)
        #expect(loop.earlyStops >= 1, "long turns are sampled")
        #expect(UInt64(loop.earlyStops) <= 1 + loop.turns / 1_000)
    }

    /// Each stop gives the CPU to the others, so stops again and again would keep the turn from ending.
    @Test func `a thread that competes for its CPU is hardly stopped`() throws {
        let probe = LoopProbe(label: "starved")
        let monitor = try StallMonitor(.init(threshold: .seconds(4), outputs: []))
        try monitor.watch(.probe(probe))
        try monitor.start()
        let rivals = Rivals(count: 4)
        var switches: [ThreadReading?] = []
        onOwnThread {
            stalls_pin_thread()
            switches.append(try? ThreadProbe(ofThisThread: .status).read())
            // From an eighth of the threshold on, a turn is checked at intervals of 8 % of its age.
            firstComputes(until: monotonicNow() + 2_500_000_000) { probe.beginTurn() }
            switches.append(try? ThreadProbe(ofThisThread: .status).read())
            probe.endTurn()
        }
        rivals.stop()
        monitor.stop()
        let counts = switches.compactMap(\.self)
        try #require(counts.count == 2)
        let preemptions = (counts[1].involuntarySwitches ?? 0) - (counts[0].involuntarySwitches ?? 0)
        let stops = (counts[1].voluntarySwitches ?? 0) - (counts[0].voluntarySwitches ?? 0)
        print("\(preemptions) times the thread lost its CPU to another, \(stops) times it was stopped or waited")
        #expect(preemptions >= 10, "the thread competes")
        #expect(stops <= 5)
    }

    // MARK: - Two phases

    /// Stalls a probe's loop in two functions, and returns the report.
    private func stall(_ activity: Activity, _ first: Int, _ second: Int, threshold: Int) throws -> Measured {
        let directory = try TemporaryDirectory()
        let probe = LoopProbe(label: "phases")
        let monitor = try StallMonitor(
            .init(threshold: .milliseconds(threshold), outputs: [.directory(directory.path)]))
        try monitor.watch(.probe(probe))
        try monitor.start()
        let lock = TimedLock()
        var times: [UInt64] = []
        onOwnThread {
            func now() { times.append(monotonicNow()) }
            now()
            switch activity {
            case .cpu:
                firstComputes(until: times[0] + UInt64(first) * 1_000_000) { probe.beginTurn() }
                now()
                secondComputes(until: times[1] + UInt64(second) * 1_000_000)
            case .sleep:
                probe.beginTurn()
                firstSleeps(UInt32(first) * 1_000)
                now()
                secondSleeps(UInt32(second) * 1_000)
            case .lock:
                lock.hold(milliseconds: first)
                probe.beginTurn()
                times = [monotonicNow()]
                firstLocks(lock)
                lock.hold(milliseconds: second)
                now()
                secondLocks(lock)
            }
            now()
            probe.endTurn()
        }
        monitor.stop()
        let report = try #require(try directory.reports().first)
        let names = [Activity.cpu: "firstComputes(until:_:)", .sleep: "firstSleeps(_:)", .lock: "firstLocks(_:)"]
        let name = try #require(names[activity])
        return Measured(report: report, actual: Double(times[1] - times[0]) / Double(times[2] - times[0]), first: name)
    }
}

/// Runs `body` on a thread of its own, so that its stack has no frames of the test's own task.
private func onOwnThread(_ body: @escaping () -> Void) {
    // The caller waits until the thread has run it, so the two never use its variables at the same time.
    nonisolated(unsafe) let body = body
    let hasEnded = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        body()
        hasEnded.signal()
    }
    hasEnded.wait()
}

/// Threads that compute on the first CPU.
private final class Rivals: Sendable {
    private let isOver = Atomic<Bool>(false)

    init(count: Int) {
        for _ in 0..<count {
            Thread.detachNewThread { [self] in
                stalls_pin_thread()
                while !isOver.load(ordering: .relaxed) {}
            }
        }
    }

    func stop() { isOver.store(true, ordering: .relaxed) }
}

/// A mutex that another thread holds for a time.
///
/// `@unchecked Sendable`: several threads may use a pthread_mutex_t, and its address never changes.
private final class TimedLock: @unchecked Sendable {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Returns once another thread holds the lock.
    func hold(milliseconds: Int) {
        let isHeld = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [self] in
            pthread_mutex_lock(mutex)
            isHeld.signal()
            usleep(UInt32(milliseconds) * 1_000)
            pthread_mutex_unlock(mutex)
        }
        isHeld.wait()
    }
}

// Only plain C calls inside the loops: in a debug build another Swift function would sometimes be the innermost one.

@inline(never)
private func firstComputes(until end: UInt64, _ begin: () -> Void) {
    begin()
    var now = timespec()
    repeat {
        clock_gettime(CLOCK_MONOTONIC, &now)
    } while UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec) < end
}

@inline(never)
private func secondComputes(until end: UInt64) {
    var now = timespec()
    repeat {
        clock_gettime(CLOCK_MONOTONIC, &now)
    } while UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec) < end
}

@inline(never)
private func firstSleeps(_ microseconds: UInt32) {
    usleep(microseconds)
    errno = 0
}

@inline(never)
private func secondSleeps(_ microseconds: UInt32) {
    usleep(microseconds)
    errno = 0
}

@inline(never)
private func firstLocks(_ lock: TimedLock) {
    pthread_mutex_lock(lock.mutex)
    pthread_mutex_unlock(lock.mutex)
}

@inline(never)
private func secondLocks(_ lock: TimedLock) {
    pthread_mutex_lock(lock.mutex)
    pthread_mutex_unlock(lock.mutex)
}
