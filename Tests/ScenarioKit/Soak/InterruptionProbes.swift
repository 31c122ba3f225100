import CStalls
import CUnwindTestSupport
import CoreFoundation
import Dispatch
import Foundation
import Glibc
import LinuxSupport
import StallWatch
import Synchronization

/// Threads in system calls that a signal would end with EINTR, while a monitor captures them; each call is a turn over
/// the threshold of a loop, so the monitor captures it several times and reports it.
final class InterruptionProbes: Sendable {
    struct Count: Equatable, Encodable, Sendable {
        var calls = 0
        var interrupted = 0
        var early = 0
        var failed = 0
        var reported = 0
        var captured = 0
        /// Calls whose reports the monitor suppressed, by its own count.
        var suppressed = 0
    }

    /// The calls: none of them uses the wall clock, which a soak may change.
    private static let names: Set = [
        "nanosleep", "clock_nanosleep", "poll", "select", "epoll_wait", "sem_clockwait", "futex", "recv",
    ]

    static let threshold = Duration.milliseconds(20)
    /// The duration of each call, in milliseconds.
    static let wait: UInt32 = 200
    /// The pause between two calls of a thread, in milliseconds.
    static let pause = 500...1500
    /// How early recv(2) may return, in nanoseconds: one tick of the kernel, because a part of it may have passed already.
    static let earliness = 10_000_000

    /// How long the reports of the last calls may take, in nanoseconds.
    private static let patience: UInt64 = 60_000_000_000

    private let monitor: StallMonitor
    private let count = Mutex(Count())
    private let isStopping = Atomic<Bool>(false)
    /// One for each thread, which has it during a call.
    private let turns: [DispatchSemaphore]
    private let reader: Task<(reported: Int, captured: Int), Never>

    init(seed: UInt64) throws(ScenariosFailure) {
        var configuration = StallMonitor.Configuration(threshold: Self.threshold, outputs: [])
        configuration.repeats.reportsEveryRepeat = true
        configuration.repeats.maximumReportsPerMinute = 10_000
        let calls = (0..<cunwind_test_call_count()).map { ($0, String(cString: cunwind_test_call_at($0).name)) }
            .filter { Self.names.contains($0.1) }
        let probes = calls.map { LoopProbe(label: $0.1) }
        turns = calls.map { _ in DispatchSemaphore(value: 1) }
        do throws(StallWatchError) {
            monitor = try StallMonitor(configuration)
            for probe in probes { try monitor.watch(.probe(probe)) }
            try monitor.start()
        } catch {
            throw ScenariosFailure(error)
        }
        reader = Task { [monitor] in
            var count = (reported: 0, captured: 0)
            for await report in monitor.makeReports() {
                count.reported += 1
                if report.samples.contains(where: { $0.stack != nil }) { count.captured += 1 }
            }
            return count
        }
        for (index, ((call, _), probe)) in zip(calls, probes).enumerated() {
            Thread.detachNewThread { [self] in
                NamedThread.nameThisThread("in-" + probe.label)
                Interruption.unblockOtherSignals()
                var random = SplitMix64(seed: seed &+ UInt64(call))
                while !isStopping.load(ordering: .relaxed) {
                    turns[index].wait()
                    if !isStopping.load(ordering: .relaxed) { observe(call, probe) }
                    turns[index].signal()
                    usleep(UInt32(Int.random(in: Self.pause, using: &random)) * 1000)
                }
            }
        }
    }

    private func observe(_ call: Int, _ probe: LoopProbe) {
        probe.beginTurn()
        // Only recv(2) counts its time in ticks. They stop while a host holds the CPU that counts them, and catch up at once.
        // The coarse clock (clock_gettime(2)) does the same.
        let isInTicks = probe.label == "recv"
        let clock = isInTicks ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC
        let begin = now(by: clock)
        let error = cunwind_test_call_once(call, Self.wait)
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

    /// Performs `body` while no call is in progress, for which it waits as long as one call takes.
    ///
    /// A call has up to eleven descriptors of its own, as many as a loop that is watched.
    func betweenCalls<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        for turn in turns { turn.wait() }
        defer { for turn in turns { turn.signal() } }
        return try body()
    }

    /// Ends the calls, stops the monitor, and returns the counts.
    func stop() async -> Count {
        isStopping.store(true, ordering: .relaxed)
        betweenCalls {
            // A stop waits for the last reports for a second only.
            _ = monitor.settle(Self.names, until: monotonicNow() &+ Self.patience)
            monitor.stop()
        }
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

private func now(by clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Evicts the pages of the program's mapped files from memory, as the kernel does when memory is short.
///
/// The next code has to read them again, as on a machine that is out of memory. Needs Linux 5.4 and the right to write the
/// files.
enum ColdStart {
    /// Returns the read-only mappings of files in the text of /proc/self/maps (proc_pid_maps(5)).
    static func fileMappings(in maps: String) -> [Range<UInt64>] {
        maps.split(separator: "\n").compactMap { line in
            // 7f01c2000000-7f01c2021000 r-xp 00000000 08:02 173521   /usr/lib/libc.so.6
            let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
            guard fields.count == 6, fields[5].drop(while: { $0 == " " }).hasPrefix("/"), !fields[1].contains("w")
            else {
                return nil
            }
            let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
        }
    }

    /// Evicts the pages, and then makes the main loop turn once for each callout; returns whether the kernel can.
    ///
    /// So the time that the loop's own code takes to come back is no part of the stall that a scenario measures.
    static func prepare(_ turnOnce: @Sendable () async -> Void) async -> Bool {
        let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
        var isDone = false
        for mapping in fileMappings(in: maps)
        where stalls_page_out(mapping.lowerBound, mapping.upperBound - mapping.lowerBound) {
            isDone = true
        }
        await turnOnce()
        return isDone
    }

    /// Returns the number of page faults of the process that waited for a disk.
    static func majorFaults() -> Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Int(usage.ru_majflt)
    }
}
