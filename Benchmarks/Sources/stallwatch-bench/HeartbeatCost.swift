import Dispatch
import Foundation
import Glibc
import Measuring
import StallWatch
import Synchronization

/// The cost of watching a queue for the whole process, compared with a thread that submits a block and waits for it.
///
/// StallWatch sends a heartbeat only to a queue that has work. So both are measured with a queue without work and with one
/// that always has some.
enum HeartbeatCost {
    static let seconds = 20.0
    static let threshold = 0.020
    /// The number of looks, or of the thread's blocks: two per threshold.
    static let beats = seconds / (threshold / 2)

    static func table() throws -> Table {
        var rows: [[String]] = []
        for (name, hasWork) in [("without work", false), ("always with work", true)] {
            let nothing = measure(hasWork) { _ in Thread.sleep(forTimeInterval: seconds) }
            let ours = try measure(hasWork, watched)
            let other = measure(hasWork, ping)
            rows.append(row("StallWatch, a queue \(name)", ours - nothing, other - nothing))
            rows.append(row("a thread: async, wait on a semaphore, sleep", other - nothing, other - nothing))
        }
        return Table(
            title: "A serial queue watched at a threshold of 20 ms, \(Int(beats)) times: CPU of the whole process",
            columns: ["watched by", "us each time", "% of a core", "/ the thread's"], rows: rows
        )
    }

    private static func row(_ name: String, _ cost: Double, _ other: Double) -> [String] {
        let own = max(cost, 0)
        return [
            name, (own / beats / 1000).digits(1), (own / seconds / 1e7).digits(3), (own / max(other, 1)).digits(2),
        ]
    }

    private static func watched(_ queue: DispatchQueue) throws {
        let monitor = try StallMonitor(.init(outputs: []))
        try monitor.watch(.queue(queue, label: "measured"), threshold: .milliseconds(20))
        try monitor.start()
        defer { monitor.stop() }
        Thread.sleep(forTimeInterval: seconds)
    }

    private static func ping(_ queue: DispatchQueue) {
        let answered = DispatchSemaphore(value: 0)
        for _ in 0..<Int(beats) {
            queue.async { answered.signal() }
            _ = answered.wait(timeout: .now() + threshold)
            Thread.sleep(forTimeInterval: threshold / 2)
        }
    }

    /// Returns the CPU time of all threads in nanoseconds, while `body` watches a queue.
    private static func measure(_ hasWork: Bool, _ body: (DispatchQueue) throws -> Void) rethrows -> Double {
        let queue = DispatchQueue(label: "measured")
        let work = hasWork ? Work(queue) : nil
        defer { work?.end() }
        let before = processTime()
        try body(queue)
        return processTime() - before
    }

    /// Items that follow each other, and each sleep for a millisecond.
    private final class Work: Sendable {
        private let isOver = Atomic<Bool>(false)

        init(_ queue: DispatchQueue) { next(queue) }

        private func next(_ queue: DispatchQueue) {
            queue.async {
                usleep(1_000)
                if !self.isOver.load(ordering: .relaxed) { self.next(queue) }
            }
        }

        func end() { isOver.store(true, ordering: .relaxed) }
    }

    private static func processTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
}
