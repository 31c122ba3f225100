import CLinux
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import LinuxSupport
@testable import StackCapture

@Suite struct CUnwindEngineTests {
    /// A thread that waits until the test ends it.
    private final class Waiting {
        private let gate = DispatchSemaphore(value: 0)
        private let thread: WorkerThread
        let id: Int32

        init() throws {
            let (gate, ready, id) = (gate, DispatchSemaphore(value: 0), IDBox())
            thread = try WorkerThread(name: "waiting") {
                id.value.store(clinux_gettid(), ordering: .relaxed)
                ready.signal()
                gate.wait()
            }
            ready.wait()
            self.id = id.value.load(ordering: .relaxed)
        }

        func end() {
            gate.signal()
            thread.join()
        }
    }

    private final class IDBox: Sendable {
        let value = Atomic<Int32>(0)
    }

    /// The number of files that the engine opens for each thread: syscall, status and schedstat.
    private static let filesEach = 3

    /// Returns the number of files of `threads` that the process has open.
    private func openFiles(of threads: Set<Int32>) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
            let parts = readLink("/proc/self/fd/\(name)")?.split(separator: "/") ?? []
            return parts.dropLast().last.flatMap { Int32($0) }.map(threads.contains) ?? false
        }
    }

    @Test func filesOfEndedThreadsAreClosed() throws {
        let engine = try CUnwindEngine()
        var seen: Set<Int32> = []
        for _ in 0..<(3 * CUnwindEngine.leastThreadsToTidy) {
            let thread = try Waiting()
            _ = try engine.status(of: thread.id)
            thread.end()
            seen.insert(thread.id)
            // The last ended thread may still exist in the kernel.
            #expect(try openFiles(of: seen) <= Self.filesEach * (CUnwindEngine.leastThreadsToTidy + 1))
        }
        #expect(try openFiles(of: seen) > 0)
    }

    @Test func filesOfLivingThreadsAreClosedAtTheLimit() throws {
        let engine = try CUnwindEngine()
        let threads = try (0..<(CUnwindEngine.maximumOpenThreads + 6)).map { _ in try Waiting() }
        for thread in threads { _ = try engine.status(of: thread.id) }
        #expect(try openFiles(of: Set(threads.map(\.id))) == Self.filesEach * 6)
        for thread in threads { thread.end() }
        #expect(throws: CaptureFailure.noSuchThread) { try engine.status(of: threads[0].id) }
    }

    @Test func `a capture of another thread leaves no file open`() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let threads = try (0..<62).map { _ in try Waiting() }
        capture.keepFiles(of: threads[0].id)
        for thread in threads { _ = try capture.capture(thread: thread.id) }
        #expect(try openFiles(of: Set(threads.map(\.id))) == Self.filesEach)
        for thread in threads { thread.end() }
    }
}
