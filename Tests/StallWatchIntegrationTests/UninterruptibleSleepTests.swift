import CLinux
import CUnwindTestSupport
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import StallWatch

/// A thread that answers neither ptrace nor a signal: the parent of a vfork(2), whose child sleeps for 400 ms.
@Suite(.serialized) struct UninterruptibleSleepTests {
    @Test func theStackIsReadWhole() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let poser = try #require(cunwind_test_poser_start(CUNWIND_TEST_IN_VFORK, 3))
        let began = monotonicNow()
        let stack = try capture.capture(thread: cunwind_test_poser_tid(poser))
        let took = monotonicNow() - began
        #expect(cunwind_test_poser_stop(poser) > 0, "vfork did not return")
        #expect(stack.method == .read)
        #expect(stack.threadState == .uninterruptible)
        #expect(stack.isComplete, "\(stack.incompleteReason ?? "?")")
        #expect(stack.frames.filter { cunwind_test_poser_contains($0.lookupAddress) }.count >= 4)
        #expect(stack.heldNanoseconds == 0)
        // The wait itself goes on for several times as long.
        #expect(took < 100_000_000, "\(took) ns")
    }
    /// Each wait lasts some ten microseconds, less than a read takes, so most looks at the thread find that it has moved.
    @Test func aThreadInManyShortSleepsHasAStack() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let directory = try TemporaryDirectory()
        let syncing = try SyncingThread(path: directory.path("synced"))
        defer { syncing.stop() }
        var errors: [CaptureError] = []
        for _ in 0..<300 {
            usleep(.random(in: 0..<1000))
            do throws(CaptureError) { _ = try capture.capture(thread: syncing.id) } catch { errors.append(error) }
        }
        #expect(errors.isEmpty)
    }
}

/// Writes a block to a file, waits for the disk to have it, and does so again.
private final class SyncingThread: Sendable {
    private let kernelID = Atomic<Int32>(0)
    private let isOver = Atomic<Bool>(false)
    private let hasEnded = DispatchSemaphore(value: 0)

    init(path: String) throws {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        Thread.detachNewThread { [self] in
            kernelID.store(clinux_gettid(), ordering: .releasing)
            let block = [UInt8](repeating: 8, count: 4096)
            while !isOver.load(ordering: .acquiring) {
                pwrite(file, block, block.count, 0)
                fsync(file)
            }
            close(file)
            hasEnded.signal()
        }
        while kernelID.load(ordering: .acquiring) == 0 { sched_yield() }
    }

    var id: Int32 { kernelID.load(ordering: .relaxed) }

    func stop() {
        isOver.store(true, ordering: .releasing)
        hasEnded.wait()
    }
}
