import CoreFoundation
import Foundation
import Glibc
import StallWatch
import Synchronization

/// A busy app that stalls while its monitor proves itself: `proofs DIRECTORY COUNT`.
///
/// At the end it prints how many proofs failed, the stalls without a report, the reports that are of no stall of the app,
/// and its threads, descriptors and memory after the first proofs and at the end. Its exit status is 1 if a stall has no
/// report, a proof or a turn that was in time has one, something has grown, or most proofs failed. A busy machine may
/// disturb single ones.
final class ProofHost: Sendable {
    private struct Record {
        /// How often the timer has called the app.
        var calls = 0
        /// The turn that is under way, and those that took longer than the threshold.
        var turn: Turn?
        var longTurns: [Turn] = []
        /// The proofs that are whole, and those that were refused or took too long.
        var (whole, notMade) = (0, 0)
        /// What the first proof that is not whole says.
        var failure = ""
        var (before, after) = (Usage(), Usage())
        /// By how many KiB the memory grew while stalls and proofs, and while only stalls were made for as long.
        var (growth, usualGrowth) = (0, 0)
        /// Whether the app only does its usual work.
        var isQuiet = false
        var isOver = false
    }

    /// A turn of the main run loop, or its report; times are in microseconds since 1970.
    private struct Turn {
        var began = 0
        var ended = 0
        /// The middle of the app's stall; `nil` if it did not stall.
        var stall: Int?

        /// The time that a report has in common with the turn; 0 if it leaves out the middle of the stall.
        func overlap(_ report: Turn) -> Int {
            if let stall, stall < report.began || report.ended <= stall { return 0 }
            return max(min(ended, report.ended) - max(began, report.began), 0)
        }
    }

    private struct Usage {
        var (threads, descriptors, kilobytes) = (0, 0, 0)

        static func current() -> Usage {
            func entries(_ directory: String) -> Int {
                (try? FileManager.default.contentsOfDirectory(atPath: directory).count) ?? 0
            }
            var usage = Usage()
            (usage.threads, usage.descriptors) = (entries("/proc/self/task"), entries("/proc/self/fd"))
            // RssAnon of proc_pid_status(5) may lack some 100 KiB for each CPU.
            let data = FileHandle(forReadingAtPath: "/proc/self/smaps_rollup")?.readDataToEndOfFile() ?? Data()
            let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("Anonymous:") }
            usage.kilobytes = line?.split { $0 == " " || $0 == "\t" }.compactMap { Int($0) }.first ?? 0
            return usage
        }

        /// The least of each, because threads end late.
        func least(_ other: Usage) -> Usage {
            var usage = Usage()
            usage.threads = min(threads, other.threads)
            usage.descriptors = min(descriptors, other.descriptors)
            usage.kilobytes = min(kilobytes, other.kilobytes)
            return usage
        }
    }

    /// The threshold, and the durations of a stall and of a usual turn, in milliseconds.
    private static let (threshold, stall, usual) = (100, 250, 20)
    private static let turnPause = 0.05
    private static let turnsPerStall = 10
    /// The first ones load what proofs need; free memory settles after some more.
    private var warmUp: Int { count < Self.many ? 3 : 10 }
    /// From so many proofs on most have to be whole, and memory is compared.
    ///
    /// The first half loads debug information for the names of the app's own reports; then the app stalls for as long
    /// without proofs, and then beside the other half.
    private static let many = 100
    /// How often the usage is read, and the time between, in microseconds.
    private static let (samples, samplePause) = (20, UInt32(100_000))
    /// What may be more at the end: what the monitor starts and opens once; and free memory between blocks, which is 2 KiB
    /// for each of 500 proofs (`make proofs` gives malloc one arena: a second one is a megabyte).
    private static let (moreThreads, moreDescriptors, moreKilobytes) = (2, 4, 1_024)

    private let directory: String
    private let count: Int
    private let record = Mutex(Record())

    init(_ arguments: ArraySlice<String>) {
        let words = Array(arguments)
        guard words.count == 2, let count = Int(words[1]) else { exit(64) }
        (directory, self.count) = (words[0], count)
    }

    func run() throws -> Never {
        let output = ReportOutput.directory(directory, quota: .init(reports: 1_000_000, bytes: 1 << 40))
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(Self.threshold), outputs: [output])
        configuration.repeats = .init(maximumReportsPerMinute: 10_000, reportsEveryRepeat: true)
        // Before and after the monitor's observers, so that its turns are parts of these.
        observe([.entry, .beforeSources, .afterWaiting], order: .min) { [self] in beginTurn() }
        let monitor = try StallMonitor.ofMainRunLoop(configuration)
        observe([.beforeWaiting, .exit], order: .max) { [self] in endTurn() }
        Deadlock.startThread("proofs") { [self] in prove(monitor) }
        let timer = Timer(timeInterval: Self.turnPause, repeats: true) { [self] _ in
            if record.withLock({ $0.isOver }) { return CFRunLoopStop(CFRunLoopGetMain()) }
            work()
        }
        RunLoop.main.add(timer, forMode: .default)
        CFRunLoopRun()
        monitor.settle()
        monitor.stop()
        let isRight = try judge()
        exit(isRight ? 0 : 1)
    }

    private func prove(_ monitor: StallMonitor) {
        for _ in 0..<warmUp { _ = monitor.prove() }
        let (before, began) = (usage(monitor), now())
        prove(monitor, count / 2)
        if count >= Self.many {
            let (middle, end) = (usage(monitor), 2 * now() - began)
            while now() < end { sleep(1) }
            let beside = usage(monitor)
            prove(monitor, count - count / 2)
            let growth = usage(monitor).kilobytes - beside.kilobytes
            record.withLock { ($0.growth, $0.usualGrowth) = (growth, beside.kilobytes - middle.kilobytes) }
        } else {
            prove(monitor, count - count / 2)
        }
        let after = usage(monitor)
        record.withLock { ($0.before, $0.after, $0.isOver) = (before, after, true) }
    }

    private func prove(_ monitor: StallMonitor, _ count: Int) {
        for _ in 0..<count {
            let proof = monitor.prove()
            record.withLock { record in
                if proof.isWhole { record.whole += 1 } else if record.failure.isEmpty { record.failure = proof.summary }
                if proof.trials.count != MonitorProof.Kind.allCases.count { record.notMade += 1 }
            }
        }
    }

    /// Lets the app stop stalling until its stalls are reported, and returns what the process uses then.
    private func usage(_ monitor: StallMonitor) -> Usage {
        let calls = record.withLock { record in
            record.isQuiet = true
            return record.calls
        }
        // One of them may have begun as a stall.
        while record.withLock({ $0.calls }) < calls + 2 { usleep(Self.samplePause) }
        monitor.settle()
        var usage = Usage.current()
        for _ in 1..<Self.samples {
            usleep(Self.samplePause)
            usage = usage.least(Usage.current())
        }
        record.withLock { $0.isQuiet = false }
        return usage
    }

    private func observe(_ activities: CFRunLoopActivity, order: CFIndex, _ note: @escaping @Sendable () -> Void) {
        let observer = CFRunLoopObserverCreateWithHandler(nil, activities.rawValue, true, order) { _, _ in note() }
        CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopDefaultMode)
    }

    private func beginTurn() {
        record.withLock { record in
            if record.turn == nil { record.turn = Turn(began: Self.wallClock()) }
        }
    }

    private func endTurn() {
        record.withLock { record in
            guard var turn = record.turn else { return }
            turn.ended = Self.wallClock()
            // The wall clock may be slower than the monitor's.
            if turn.ended - turn.began >= (Self.threshold - 1) * 1_000 { record.longTurns.append(turn) }
            record.turn = nil
        }
    }

    private static func wallClock() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    /// Usual work, or a stall: one that sleeps, and then one that computes.
    private func work() {
        let (number, isQuiet) = record.withLock { record in
            record.calls += 1
            return (record.calls, record.isQuiet)
        }
        guard number % Self.turnsPerStall == 0, !isQuiet else { return compute(milliseconds: Self.usual) }
        let middle = Self.wallClock() + Self.stall * 500
        record.withLock { $0.turn?.stall = middle }
        if number % (2 * Self.turnsPerStall) == 0 {
            compute(milliseconds: Self.stall)
        } else {
            usleep(UInt32(Self.stall) * 1_000)
        }
    }

    private func compute(milliseconds: Int) {
        let end = now() + UInt64(milliseconds) * 1_000_000
        while now() < end {}
    }

    /// Prints the results, and returns whether they are as they have to be.
    private func judge() throws -> Bool {
        let record = record.withLock { $0 }
        let names = try FileManager.default.contentsOfDirectory(atPath: directory).filter(StallReport.isFileName)
        let reports = try names.map { name in
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(name)"))
            let report = try StallReport(jsonData: Array(data))
            let began = Int(report.startedAt.microsecondsSince1970)
            let turn = Turn(began: began, ended: began + Int(report.durationMilliseconds * 1_000))
            return (isOfApp: report.loop.label == "main", isOfTurn: report.kind == .stall, turn: turn)
        }
        let turns = record.longTurns
        var (reported, wrong) = (Set<Int>(), 0)
        // A busy machine may delay the loop so that it is saturated, too.
        for report in reports where report.isOfApp && report.isOfTurn {
            let next = turns.indices.max { turns[$0].overlap(report.turn) < turns[$1].overlap(report.turn) }
            if let next, turns[next].overlap(report.turn) > 0, reported.insert(next).inserted { continue }
            wrong += 1
        }
        let stalls = turns.count { $0.stall != nil }
        let missing = turns.indices.count { turns[$0].stall != nil && !reported.contains($0) }
        let others = reports.count { !$0.isOfApp }
        let (before, after) = (record.before, record.after)
        let failed = count - record.whole
        tell("\(count) proofs, of which \(failed) failed and \(record.notMade) were not made \(record.failure)")
        tell(
            "\(stalls) stalls, \(missing) without a report; \(wrong) of \(reports.count) reports are of no late turn, "
                + "\(others) of other loops")
        tell(
            "threads \(before.threads) -> \(after.threads), descriptors \(before.descriptors) -> \(after.descriptors), "
                + "memory \(before.kilobytes) -> \(after.kilobytes) KiB, of which \(record.growth) beside the last proofs "
                + "and \(record.usualGrowth) without")
        // One of twenty may meet a machine without a CPU for it; of few, one.
        let areProved =
            record.notMade * 20 <= max(count, 20) && (count < Self.many ? record.whole > 0 : record.whole * 2 > count)
        return areProved && missing == 0 && wrong == 0 && others == 0 && stalls > 0
            && after.threads <= before.threads + Self.moreThreads
            && after.descriptors <= before.descriptors + Self.moreDescriptors
            && (count < Self.many || record.growth <= max(record.usualGrowth, 0) + Self.moreKilobytes)
    }
}
