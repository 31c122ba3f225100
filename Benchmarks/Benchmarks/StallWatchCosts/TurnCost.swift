import CoreFoundation
import Foundation
import Measuring
import StallWatch

/// The cost of a turn of a run loop, by the way in which the loop is observed.
enum TurnCost {
    static let turns = 20_000
    static let nobody = "not observed"
    static let observers = "two empty observers"
    static let monitor = "StallWatch"
    static let semaphore = "a semaphore signaled per activity"

    static var comparison: Comparison {
        Comparison(
            title: "A source0 turn of a run loop, mean of \(turns)", iterations: 15,
            ways: [
                .init(nobody, turn), .init(observers) { withEmptyObservers(turn) },
                .init(monitor) { try withMonitor(turn) }, .init(semaphore) { withSemaphore(turn) },
                .init(ProbeCost.reference, ProbeCost.twoClockReads),
            ],
            reference: observers,
            further: [
                (
                    "StallWatch's own part (over two empty observers) / two clock_gettime",
                    { costs in difference(costs, monitor, observers) / (costs[ProbeCost.reference] ?? 0) }
                ),
                (
                    "added by a semaphore per activity / by StallWatch",
                    { costs in difference(costs, semaphore, nobody) / difference(costs, monitor, nobody) }
                ),
            ]
        )
    }

    private static func difference(_ costs: [String: Double], _ one: String, _ other: String) -> Double {
        (costs[one] ?? 0) - (costs[other] ?? 0)
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
        let monitor = try StallMonitor(.init(outputs: []))
        try monitor.watch(.runLoop(.current, label: "measured"))
        try monitor.start()
        defer { monitor.stop() }
        return measure()
    }

    /// The design in most articles: each activity signals a semaphore, and a thread waits for it with a timeout of 50 ms.
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

    /// Runs the current run loop for the given number of turns, each of which runs one source.
    private static func turn() -> Double {
        let source = TurningSource(turns: turns)
        defer { source.remove() }
        let began = now()
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 3600, false)
        return Double(now() - began) / Double(turns)
    }
}

/// A source that signals itself in each turn, and stops the loop after the last one.
private final class TurningSource {
    private var left: Int
    private var source: CFRunLoopSource?

    init(turns: Int) {
        left = turns
        var context = CFRunLoopSourceContext()
        // The source is removed before this object is released.
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
