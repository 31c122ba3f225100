import CoreFoundation
import Foundation
import Glibc
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
        let monitor = try StallMonitor(.init(outputs: []))
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

/// The wake-ups of a program whose event loops and queues have no work.
enum RestCost {
    static let seconds = 60.0
    /// The time in which the event loops' waits are learned, and idle workers of libdispatch end.
    private static let settling = 10.0
    /// The threads that StallWatch causes to wake up, if any: its own, and those of the event loops.
    private static let names = ["stallwatch-dog", "NIO-ELT"]

    static func table() throws -> Table {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try sibling("resting-loops"))
        process.standardInput = FileHandle.nullDevice
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        let id = process.processIdentifier
        Thread.sleep(forTimeInterval: settling)
        let before = uses(of: id)
        Thread.sleep(forTimeInterval: seconds)
        let after = uses(of: id)
        guard before.count == 5, Set(before.keys) == Set(after.keys) else {
            throw CannotMeasure("the threads changed: \(before.keys.sorted()) and \(after.keys.sorted())")
        }
        return Table(
            title: "Four event loops and ten queues without work, \(Int(seconds)) s",
            columns: ["thread", "wake-ups", "CPU, us", "% of a CPU"],
            rows: after.sorted { $0.key < $1.key }.map { name, use in
                let earlier = before[name] ?? use
                let nanoseconds = use.nanosecondsOnCPU - earlier.nanosecondsOnCPU
                return [
                    name, (use.wakeUps - earlier.wakeUps).digits(0), (nanoseconds / 1_000).digits(0),
                    (nanoseconds / seconds / 1e7).digits(3),
                ]
            }
        )
    }

    /// The threads of interest by name.
    private static func uses(of process: Int32) -> [String: ThreadUse] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        var uses: [String: ThreadUse] = [:]
        for thread in all.compactMap({ Int32($0) }) {
            guard let comm = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/comm", encoding: .utf8) else {
                continue
            }
            let name = comm.trimmingCharacters(in: .newlines)
            if names.contains(where: name.hasPrefix) { uses[name] = ThreadUse(of: thread, in: "\(process)") }
        }
        return uses
    }
}
