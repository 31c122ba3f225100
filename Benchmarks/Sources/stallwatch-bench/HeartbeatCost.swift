import Dispatch
import Foundation
import Glibc
import Measuring
import StallWatch

/// The cost of a queue's heartbeats for the whole process, compared with a thread that submits a block and waits for it.
enum HeartbeatCost {
    static let seconds = 20.0
    static let threshold = 0.020
    /// The number of heartbeats: two per threshold.
    static let beats = seconds / (threshold / 2)

    static func table() throws -> Table {
        let nothing = processTime { Thread.sleep(forTimeInterval: seconds) }
        let ours = try heartbeat()
        let other = ping()
        func row(_ name: String, _ cost: Double) -> [String] {
            let own = max(cost - nothing, 0)
            return [
                name, (own / beats / 1000).digits(1), (own / seconds / 1e7).digits(3),
                (own / max(other - nothing, 1)).digits(2),
            ]
        }
        return Table(
            title: "A serial queue watched at a threshold of 20 ms, \(Int(beats)) heartbeats: CPU of the whole process",
            columns: ["watched by", "us a heartbeat", "% of a core", "/ the thread's"],
            rows: [row("StallWatch", ours), row("a thread: async, wait on a semaphore, sleep", other)]
        )
    }

    private static func heartbeat() throws -> Double {
        let monitor = try StallMonitor(.init(reports: .none))
        let queue = DispatchQueue(label: "measured")
        try monitor.watch(.queue(queue, label: "measured", threshold: .milliseconds(20)))
        try monitor.start()
        defer { monitor.stop() }
        sleep(1)
        return processTime { Thread.sleep(forTimeInterval: seconds) }
    }

    private static func ping() -> Double {
        let queue = DispatchQueue(label: "measured")
        let answered = DispatchSemaphore(value: 0)
        return processTime {
            for _ in 0..<Int(beats) {
                queue.async { answered.signal() }
                _ = answered.wait(timeout: .now() + threshold)
                Thread.sleep(forTimeInterval: threshold / 2)
            }
        }
    }

    /// The CPU time of all threads during the measurement, in nanoseconds.
    private static func processTime(_ body: () -> Void) -> Double {
        func read() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
        }
        let before = read()
        body()
        return read() - before
    }
}
