import Dispatch
import Measuring
import StallWatch
import Synchronization

/// The cost of an operation with a limit, beside a task-local value that is bound and not read.
enum OperationCost {
    static let count = 20_000
    private static let operation = "an operation with a limit"
    private static let binding = "an empty task-local binding"

    @TaskLocal private static var value = 0

    static var comparison: Comparison {
        Comparison(
            title: "An operation with a limit, mean of \(count)", iterations: 51,
            ways: [
                .init(operation) {
                    try withMonitor { monitor in { await monitor.withLimit(.seconds(60), "feed", nothing) } }
                },
                .init(binding) { inTask { await $value.withValue(1, operation: nothing) } },
            ],
            reference: binding,
            further: [
                ("an operation beyond a binding, us", { ($0[operation] ?? 0) / 1_000 - ($0[binding] ?? 0) / 1_000 })
            ]
        )
    }

    @Sendable private static func nothing() async {}

    private static func withMonitor(_ body: (StallMonitor) -> @Sendable () async -> Void) throws -> Double {
        let monitor = try StallMonitor(.init(outputs: []))
        try monitor.start()
        defer { monitor.stop() }
        return inTask(body(monitor))
    }

    /// Returns the mean time of a call in a task, in nanoseconds.
    private static func inTask(_ body: @escaping @Sendable () async -> Void) -> Double {
        let mean = Mutex(0.0)
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            // The first operation starts a thread.
            await body()
            let began = now()
            for _ in 0..<count { await body() }
            let end = now()
            mean.withLock { $0 = Double(end - began) / Double(count) }
            isDone.signal()
        }
        isDone.wait()
        return mean.withLock { $0 }
    }
}
