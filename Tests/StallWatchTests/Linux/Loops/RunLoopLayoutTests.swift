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
            let (now, moment) = (CFAbsoluteTimeGetCurrent(), monotonicNow())
            guard let layout = RunLoopLayout.learned, let loop = CFRunLoopGetCurrent() else { return (nil, nil) }
            // The first one fires first, and looks.
            let first = CFRunLoopTimerCreateWithHandler(nil, now - 20, 0, 0, 0) { _ in
                let due = layout.dueTimers(
                    of: Self.address(CFRunLoopGetCurrent()), at: moment + 1_000_000_000_000, GuardedMemory())
                read.withLock { $0 = due }
                CFRunLoopStop(CFRunLoopGetCurrent())
            }
            let others = [(600.0, 0.0), (700, 3), (6_000, 0)].map { date, interval in
                CFRunLoopTimerCreateWithHandler(nil, now + date, interval, 0, 0) { _ in }
            }
            for timer in others + [first] { CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode) }
            let end = monotonicNow() + 60_000_000_000
            while read.withLock({ $0 == nil }), monotonicNow() < end {
                CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false)
            }
            let outside = layout.dueTimers(of: Self.address(loop), at: 0, GuardedMemory())
            for timer in others + [first] { CFRunLoopTimerInvalidate(timer) }
            return (read.withLock { $0?.map { DueTimer(due: $0.due - moment, interval: $0.interval) } }, outside)
        }
        let inside = try #require(read.inside)
        #expect(inside.count == 2 && read.outside == [])
        // The timers are made later than `moment`, on a machine that may be busy.
        for (timer, date) in zip(inside, [600.0, 700]) { #expect(abs(Double(timer.due) / 1e9 - date) < 60) }
        #expect(inside.map(\.interval) == [0, 3_000_000_000])
    }

    @Test func `a timer whose callout goes on takes no other one's place`() async {
        let count = await onThread { () -> Int? in
            RunLoopLayout.learn()
            let read = Mutex<Int?>(nil)
            let (now, moment) = (CFAbsoluteTimeGetCurrent(), monotonicNow())
            guard let layout = RunLoopLayout.learned, let loop = CFRunLoopGetCurrent() else { return nil }
            let first = CFRunLoopTimerCreateWithHandler(nil, now - 20, 0, 0, 0) { _ in
                let due = layout.dueTimers(
                    of: Self.address(CFRunLoopGetCurrent()), at: moment + 10_000_000_000_000, GuardedMemory())
                read.withLock { $0 = due?.count }
                CFRunLoopStop(CFRunLoopGetCurrent())
            }
            let others = (0...RunLoopLayout.maximumTimers).map { number in
                CFRunLoopTimerCreateWithHandler(nil, now + 600 + Double(number), 0, 0, 0) { _ in }
            }
            for timer in others + [first] { CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode) }
            let end = monotonicNow() + 60_000_000_000
            while read.withLock({ $0 == nil }), monotonicNow() < end {
                CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false)
            }
            for timer in others + [first] { CFRunLoopTimerInvalidate(timer) }
            return read.withLock { $0 }
        }
        #expect(count == RunLoopLayout.maximumTimers)
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
        #expect(QueueItems.ofMainQueue(GuardedMemory()) != nil)
    }
}
