import Dispatch
package import Testing

/// Runs each test of a suite on a thread of its own.
///
/// The task pool has one thread for each processor, and a test that waits for a program keeps one from the other tests.
/// This is for a serialized suite of ordered tests that mostly wait: it runs beside all others.
package struct OwnThread: TestTrait, SuiteTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let thread = QueueExecutor()
        try await withTaskExecutorPreference(thread) { try await function() }
    }
}

extension Trait where Self == OwnThread {
    package static var ownThread: Self { Self() }
}

/// Runs a test's task on a thread of libdispatch, as the pool does, that no other task waits for.
private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "stallwatch-test")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
