import CoreFoundation
import Dispatch
import Foundation
import StallWatch
import Synchronization

/// What a turn of a run loop costs, by who follows it.
enum TurnCost {
    static let rounds = 9
    static let turns = 20_000

    static func table() throws -> Table {
        let ways: [(String, (() -> Double) throws -> Double)] = [
            ("nobody", { $0() }), ("two empty observers", withEmptyObservers), ("StallWatch", withMonitor),
            ("a semaphore signalled per activity", withSemaphore),
        ]
        var costs = [[Double]](repeating: [], count: ways.count)
        for _ in 0..<rounds {
            for (index, way) in ways.enumerated() { costs[index].append(try way.1(turn)) }
        }
        let medians = costs.map { Samples($0).median }
        var table = Table(
            title: "A source0 turn of a run loop, median of \(rounds) × \(turns)",
            columns: [
                "followed by", "ns a turn", "/ two empty observers", "added over nobody, ns", "added / StallWatch's",
            ]
        )
        for (way, median) in zip(ways, medians) {
            let added = median - medians[0]
            table.rows.append([
                way.0, median.digits(0), (median / medians[1]).digits(2), added.digits(0),
                (added / (medians[2] - medians[0])).digits(2),
            ])
        }
        let clock = ProbeCost.twoClockReads()
        table.rows.append([
            "StallWatch's own part (over two empty observers)", (medians[2] - medians[1]).digits(0), "", "",
            "\(((medians[2] - medians[1]) / clock).digits(2)) × two clock_gettime",
        ])
        return table
    }

    /// The activities between which StallWatch's two observers divide the turn.
    private static func withEmptyObservers(_ measure: () -> Double) -> Double {
        let begin: CFRunLoopActivity = [.entry, .beforeSources, .afterWaiting]
        let end: CFRunLoopActivity = [.beforeWaiting, .exit]
        let observers = [(begin, CFIndex.min), (end, CFIndex.max)].map { activities, order in
            CFRunLoopObserverCreate(nil, activities.rawValue, true, order, { _, _, _ in }, nil)
        }
        let runLoop = CFRunLoopGetCurrent()
        for observer in observers { CFRunLoopAddObserver(runLoop, observer, kCFRunLoopDefaultMode) }
        defer {
            for observer in observers { CFRunLoopRemoveObserver(runLoop, observer, kCFRunLoopDefaultMode) }
        }
        return measure()
    }

    private static func withMonitor(_ measure: () -> Double) throws -> Double {
        let monitor = try StallMonitor(.init(reports: .none))
        try monitor.watch(.runLoop(.current, label: "measured"))
        try monitor.start()
        defer { monitor.stop() }
        return measure()
    }

    /// The design of most articles: each activity signals a semaphore, for which a thread waits 50 ms at a time.
    private static func withSemaphore(_ measure: () -> Double) -> Double {
        let watcher = SemaphoreWatcher()
        let observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.allActivities.rawValue, true, 0) {
            watcher.note($1)
        }
        CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode)
        defer {
            CFRunLoopRemoveObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode)
            watcher.stop()
        }
        return measure()
    }

    /// Runs the current run loop for that many turns, each of which runs one source and no more.
    private static func turn() -> Double {
        let source = TurningSource(turns: turns)
        defer { source.remove() }
        let began = now()
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 3600, false)
        return Double(now() - began) / Double(turns)
    }
}

/// A source that signals itself in each turn, and stops the loop after the last.
private final class TurningSource {
    private var left: Int
    private var source: CFRunLoopSource?

    init(turns: Int) {
        left = turns
        var context = CFRunLoopSourceContext()
        // The source is removed before this object goes.
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.perform = { info in
            guard let info else { return }
            Unmanaged<TurningSource>.fromOpaque(info).takeUnretainedValue().turn()
        }
        source = CFRunLoopSourceCreate(nil, 0, &context)
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode)
        CFRunLoopSourceSignal(source)
    }

    func remove() {
        CFRunLoopSourceInvalidate(source)
    }

    private func turn() {
        left -= 1
        if left > 0 { CFRunLoopSourceSignal(source) } else { CFRunLoopStop(CFRunLoopGetCurrent()) }
    }
}

/// The other design's watchdog.
private final class SemaphoreWatcher: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let activity = Atomic<UInt>(0)
    private let stalls = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)

    init() {
        Thread.detachNewThread { self.watch() }
    }

    func note(_ activity: CFRunLoopActivity) {
        self.activity.store(UInt(activity.rawValue), ordering: .relaxed)
        semaphore.signal()
    }

    func stop() {
        isStopping.store(true, ordering: .relaxed)
        ended.wait()
    }

    private func watch() {
        let working = [CFRunLoopActivity.beforeSources, .afterWaiting].map { UInt($0.rawValue) }
        while !isStopping.load(ordering: .relaxed) {
            guard semaphore.wait(timeout: .now() + .milliseconds(50)) == .timedOut else { continue }
            if working.contains(activity.load(ordering: .relaxed)) { stalls.add(1, ordering: .relaxed) }
        }
        ended.signal()
    }
}
