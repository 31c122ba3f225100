import CoreFoundation
import Foundation
import Measuring
import StallWatch

/// The CPU time and wake-ups of the watching thread while the watched loops wait.
enum IdleCost {
    static let seconds = 60.0

    static func table() throws -> Table {
        try watchingThreads(
            of: nil, seconds: seconds, title: "The watching thread while a run loop waits, \(Int(seconds)) s"
        )
    }

    /// Measures two loops at the same time: one is watched by StallWatch, the other by a semaphore signaled per activity.
    static func watchingThreads(of interval: Double?, seconds: Double, title: String) throws -> Table {
        let loops = (LoopThread(interval: interval), LoopThread(interval: interval))
        let monitor = try StallMonitor(.init(reports: .none))
        try monitor.watch(.runLoop(loops.0.runLoop, label: "measured"))
        try monitor.start()
        let watcher = SemaphoreWatcher()
        loops.1.observe(watcher.note)
        defer {
            monitor.stop()
            watcher.stop()
            loops.0.stop()
            loops.1.stop()
        }
        // Do not measure the start.
        sleep(2)
        let found = [
            ("StallWatch's watchdog", ThreadUse.thread(named: "stallwatch-dog")),
            ("StallWatch's reporter", ThreadUse.thread(named: "stallwatch-rep")),
            ("a semaphore signaled per activity", watcher.threadID),
        ]
        let names = found.map(\.0)
        let threads = found.compactMap(\.1)
        guard threads.count == names.count else { throw CannotMeasure("a watching thread is not there") }
        let before = threads.map { ThreadUse(of: $0) }
        Thread.sleep(forTimeInterval: seconds)
        let after = threads.map { ThreadUse(of: $0) }
        let rows = names.indices.map { index in
            let cpu = (after[index].nanosecondsOnCPU - before[index].nanosecondsOnCPU) / seconds / 1e9
            return (names[index], after[index].wakeUps - before[index].wakeUps, cpu)
        }
        let other = rows[2].2
        return Table(
            title: title, columns: ["thread", "wake-ups", "% of a core", "/ the semaphore's"],
            rows: rows.map { name, wakeUps, cpu in
                [name, wakeUps.digits(0), (cpu * 100).digits(4), other > 0 ? (cpu / other).digits(4) : ""]
            }
        )
    }
}

/// The CPU time and wake-ups of the watching thread while loops turn without stalls.
enum BusyCost {
    static let seconds = 30.0

    static func table() throws -> Table {
        try IdleCost.watchingThreads(
            of: 0.001, seconds: seconds,
            title: "The watching thread while a run loop turns 1,000 times a second, \(Int(seconds)) s"
        )
    }
}
