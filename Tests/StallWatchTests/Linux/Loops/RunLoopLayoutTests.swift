import CoreFoundation
import Foundation
import LinuxSupport
import StackCapture
import Synchronization
import Testing
import TestSupport

@testable import StallWatch

/// Reads run loops and the main queue of this process by the layouts that are learned here.
@Suite struct RunLoopLayoutTests {
    /// Runs `body` on a thread of its own, whose run loop ends with it, and returns its result.
    private func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    private static func address(_ loop: CFRunLoop) -> UInt64 {
        UInt64(UInt(bitPattern: Unmanaged.passUnretained(loop).toOpaque()))
    }

    @Test func `all due timers are read but the one whose callout goes on`() async throws {
        let read = await onThread { () -> (inside: [DueTimer]?, outside: [DueTimer]?) in
            RunLoopLayout.learn()
            let read = Mutex<[DueTimer]?>(nil)
            let now = CFAbsoluteTimeGetCurrent()
            guard let layout = RunLoopLayout.learned, let loop = CFRunLoopGetCurrent() else { return (nil, nil) }
            // The first one fires first, and looks.
            let first = CFRunLoopTimerCreateWithHandler(nil, now - 20, 0, 0, 0) { _ in
                let due = layout.dueTimers(
                    of: Self.address(CFRunLoopGetCurrent()), at: 100_000_000_000, wall: now, GuardedMemory())
                read.withLock { $0 = due }
                CFRunLoopStop(CFRunLoopGetCurrent())
            }
            let others = [(-8.0, 0.0), (-4, 3), (60, 0)].map { date, interval in
                CFRunLoopTimerCreateWithHandler(nil, now + date, interval, 0, 0) { _ in }
            }
            for timer in others + [first] { CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode) }
            let end = monotonicNow() + 60_000_000_000
            while read.withLock({ $0 == nil }), monotonicNow() < end {
                CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false)
            }
            let outside = layout.dueTimers(of: Self.address(loop), at: 0, GuardedMemory())
            for timer in others + [first] { CFRunLoopTimerInvalidate(timer) }
            return (read.withLock { $0 }, outside)
        }
        let inside = try #require(read.inside)
        #expect(inside.count == 2 && read.outside == [])
        // Dates are seconds in a Double: exact to some 100 ns.
        for (timer, age) in zip(inside, [8.0, 4]) {
            #expect(abs(Double(100_000_000_000 - timer.due) / 1e9 - age) < 1e-5)
        }
        #expect(inside.map(\.interval) == [0, 3_000_000_000])
    }

    @Test func `memory that is no run loop gives no timers`() async {
        struct Nowhere: MemoryReading {
            func bytes(at address: UInt64, count: Int) -> [UInt8]? { nil }
        }
        struct Noise: MemoryReading {
            func bytes(at address: UInt64, count: Int) -> [UInt8]? { [UInt8](repeating: 0x5a, count: count) }
        }
        let isNil = await onThread { () -> [Bool] in
            RunLoopLayout.learn()
            let layout = RunLoopLayout.learned
            return [
                layout != nil, layout?.dueTimers(of: 64, at: 0, Nowhere()) == nil,
                layout?.dueTimers(of: 64, at: 0, Noise()) == nil,
            ]
        }
        #expect(isNil == [true, true, true])
    }

    @Test func `the main queue's items can be counted`() {
        QueueItems.learn()
        #expect(QueueItems.countOfMainQueue(GuardedMemory()) != nil)
    }
}
