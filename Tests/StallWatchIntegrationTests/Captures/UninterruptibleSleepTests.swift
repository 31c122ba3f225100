import CLinux
import CUnwindTestSupport
import Foundation
import Glibc
import Synchronization
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import stallwatch_demo

/// A thread that responds neither to ptrace nor to a signal: the parent of a vfork(2) whose child sleeps for 400 ms.
@Suite(.serialized) struct UninterruptibleSleepTests {
    @Test func aStackInUninterruptibleSleepIsRead() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let thread_state = try #require(cunwind_test_thread_start(CUNWIND_TEST_IN_VFORK, 3))
        let began = monotonicNow()
        let stack = try capture.capture(thread: cunwind_test_thread_tid(thread_state))
        let took = monotonicNow() - began
        #expect(cunwind_test_thread_stop(thread_state) > 0, "vfork did not return")
        #expect(stack.method == .read)
        #expect(stack.threadState == .uninterruptible)
        #expect(stack.isComplete, "\(stack.incompleteReason ?? "?")")
        #expect(stack.frames.filter { cunwind_test_thread_contains($0.lookupAddress) }.count >= 4)
        #expect(stack.heldNanoseconds == 0)
        // The wait itself takes several times as long.
        #expect(took < 100_000_000, "\(took) ns")
    }

    /// Each wait takes about 10 us, and the thread repeats it every 35 us.
    @Test func aThreadInManyShortSleepsHasAStack() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let syncing = SyncingThread(for: .seconds(3))
        defer { syncing.hasEnded.wait() }
        var errors: [CaptureError] = []
        for _ in 0..<300 {
            usleep(.random(in: 0..<1000))
            do throws(CaptureError) { _ = try capture.capture(thread: syncing.id) } catch { errors.append(error) }
        }
        #expect(errors.isEmpty)
    }
}

/// Repeatedly writes to a file and flushes it to disk.
private final class SyncingThread: Sendable {
    private let kernelID = Atomic<Int32>(0)
    let hasEnded = DispatchSemaphore(value: 0)

    init(for duration: Duration) {
        Thread.detachNewThread { [self] in
            kernelID.store(clinux_gettid(), ordering: .releasing)
            let file = ScratchFile(megabytes: 1)
            synchronize(file, for: duration)
            file.close()
            hasEnded.signal()
        }
        while kernelID.load(ordering: .acquiring) == 0 { sched_yield() }
    }

    var id: Int32 { kernelID.load(ordering: .relaxed) }
}
