import CLinux
import Synchronization
import Testing

@testable import LinuxSupport
@testable import StackCapture

/// Two engines, as a watchdog and a profile have them, capture the same thread.
@Suite struct ConcurrentCaptureTests {
    private final class Shared: Sendable {
        let thread = Atomic<Int32>(0)
        let isOver = Atomic<Bool>(false)
    }

    /// A thread has one tracer at a time, and a second one is refused.
    ///
    /// That must not look like a system without ptrace, in which threads get signals.
    @Test func `engines that stop one thread stay with ptrace`() throws {
        let shared = Shared()
        let spinner = try WorkerThread(name: "spinner") {
            shared.thread.store(clinux_gettid(), ordering: .releasing)
            while !shared.isOver.load(ordering: .relaxed) {}
        }
        let engines = try (0..<2).map { _ in OneShotTransfer(ThreadCapture(engine: try CUnwindEngine())) }
        let results = Mutex<[(methods: [CapturedStack.Method], stacks: Int)]>([])
        let workers = try engines.map { engine in
            try WorkerThread(name: "capturer") {
                guard let capture = engine.take() else { return }
                while shared.thread.load(ordering: .acquiring) == 0 {}
                var stacks = 0
                for _ in 0..<400 {
                    let stack = try? capture.capture(thread: shared.thread.load(ordering: .acquiring))
                    if stack?.method == .ptrace { stacks += 1 }
                }
                results.withLock { $0.append((capture.methods, stacks)) }
            }
        }
        for worker in workers { worker.join() }
        shared.isOver.store(true, ordering: .relaxed)
        spinner.join()
        let all = results.withLock { $0 }
        #expect(all.count == 2)
        for (methods, stacks) in all {
            #expect(methods.contains(.ptrace) && !methods.contains(.signal))
            // A capture that waits longer for the other one than its bound fails, and says that the thread is busy.
            #expect(stacks >= 200, "\(stacks) of 400")
        }
    }
}
