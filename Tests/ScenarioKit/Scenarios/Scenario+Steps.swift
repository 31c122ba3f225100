import CoreFoundation
import Dispatch
import Foundation
import StallWatch
import Synchronization

extension Scenario {
    /// What apps do at the steps of a run loop's turn (docs/RunLoop.md).
    static let stepScenarios: [Scenario] = [
        observed(.entry, "entry", "at the entry of each run"),
        observed(.beforeTimers, "before-timers", "before the timers"),
        observed(.exit, "exit", "at the end of each run"),
        .quiet("observers-short", "the app's observers of all activities sleep for 2 ms each") { context in
            try await context.withLoop("worker", LoopThread.runBefore) { loop in
                let observer = CFRunLoopObserverCreateWithHandler(
                    nil, CFRunLoopActivity.allActivities.rawValue, true, 0
                ) { _, _ in sleepTooLong(for: .milliseconds(2)) }
                CFRunLoopAddObserver(loop.runLoop, observer, loop.mode)
                for _ in 0..<20 { _ = await loop.source0 {} }
                CFRunLoopObserverInvalidate(observer)
            }
        },
        .quiet("block-not-woken", "a performed block waits, because the loop is not woken for it") { context in
            try await context.withLoop("sleeper") { loop in
                CFRunLoopPerformBlock(loop.runLoop, loop.mode) {}
                await pause(context.threshold * 3)
            }
        },
        .quiet("source0-not-woken", "a signaled source0 waits, because the loop is not woken for it") { context in
            try await context.withLoop("sleeper") { loop in
                let source = Source0(on: loop.runLoop, mode: loop.mode) { _ in }
                source.signalWithoutWaking()
                await pause(context.threshold * 3)
                // The loop's last turn would leave the source, which refers to itself.
                _ = await loop.block { source.invalidate() }
            }
        },
        .stalling(
            "block-woken-late", "a performed block waits until a source wakes the loop, and sleeps", times: 2,
            .runLoop("sleeper", .performedBlock, in: "sleepTooLong(for:)")
        ) { context in
            try await context.withLoop("sleeper") { loop in
                let injected = DurationBox()
                CFRunLoopPerformBlock(loop.runLoop, loop.mode) {
                    injected.measure { sleepTooLong(for: context.stall) }
                }
                await pause(context.threshold * 2)
                _ = await loop.source0 {}
                return injected.value
            }
        },
        .stalling(
            "source0-woken-late", "a signaled source0 waits until a block wakes the loop, and sleeps", times: 2,
            .runLoop("sleeper", .source0, in: "sleepTooLong(for:)")
        ) { context in
            try await context.withLoop("sleeper") { loop in
                let injected = DurationBox()
                let source = Source0(on: loop.runLoop, mode: loop.mode) { source in
                    source.invalidate()
                    injected.measure { sleepTooLong(for: context.stall) }
                }
                source.signalWithoutWaking()
                await pause(context.threshold * 2)
                // A block of the next turn may still be run before the source.
                repeat { _ = await loop.block {} } while injected.value == .zero
                return injected.value
            }
        },
        .quiet("timer-tolerance", "a timer may be three thresholds late, which CoreFoundation does not keep") {
            context in
            let late = context.threshold * 3
            let tolerance = await withCheckedContinuation { (continuation: CheckedContinuation<Double, Never>) in
                let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { timer in
                    continuation.resume(returning: CFRunLoopTimerGetTolerance(timer))
                }
                CFRunLoopTimerSetTolerance(timer, late.seconds)
                CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopCommonModes)
            }
            // If it does, such a timer is late only after that.
            guard tolerance == 0 else { throw NoResult(sentence: "a timer has a tolerance of \(tolerance) s") }
        },
        .quiet("idle-work", "work is done in pieces of 5 ms, one before each wait of the loop, and events come first") {
            context in
            let events = await workWhenIdle(for: context.threshold * 3, each: .milliseconds(5))
            // A wait ends for one event, which may be the wake-up of the piece before.
            guard events.areServed, events.mostPieces <= 1 else {
                throw NoResult(sentence: "an event waited for \(events.mostPieces) pieces, or was not served")
            }
        },
        .stalling(
            "idle-work-goes-on", "work before a wait of the loop goes on, although input has come", times: 3,
            .main(.observer, in: "spinTheCPU(for:)", cause: "cpu").delaying(items: 1)
        ) { context in
            await DrivenLoop.main.observer(of: .beforeWaiting) {
                DispatchQueue.main.async {}
                spinTheCPU(for: context.stall)
            }
        },
        .quiet("results-before-waiting", "results are made elsewhere, and applied before a wait of the loop") {
            context in
            await Task.detached { spinTheCPU(for: context.threshold * 2) }.value
            _ = await DrivenLoop.main.observer(of: .beforeWaiting) { spinTheCPU(for: .milliseconds(2)) }
        },
    ]

    /// An observer of a thread's loop, which leaves and enters its run again for each source.
    private static func observed(_ activity: CFRunLoopActivity, _ name: String, _ summary: String) -> Scenario {
        .stalling(
            "observer-" + name, "the app's own observer sleeps \(summary)", times: 2,
            .runLoop("worker", .observer, in: "sleepTooLong(for:)")
        ) { context in
            try await context.withLoop("worker", LoopThread.runBefore) { loop in
                async let stall = loop.observer(of: activity) { sleepTooLong(for: context.stall) }
                // Ends the run that waits.
                _ = await loop.source0 {}
                return await stall
            }
        }
    }
}

/// Computes on the main loop for `duration` in all, a piece before each wait; after each the loop looks for events.
///
/// Returns the events that came within every tenth piece.
private func workWhenIdle(for duration: Duration, each: Duration) async -> IdleEvents {
    await withCheckedContinuation { continuation in
        let events = IdleEvents()
        let left = Atomic(Int(duration / each))
        let observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.beforeWaiting.rawValue, true, 0) {
            observer, _ in
            let rest = left.subtract(1, ordering: .relaxed).newValue
            // Before the computation, so that the kernel's timer has expired when the loop waits; five pieces follow.
            if rest % 10 == 5 { events.submit() }
            spinTheCPU(for: each)
            events.countPiece()
            if rest > 0 { return CFRunLoopWakeUp(CFRunLoopGetMain()) }
            CFRunLoopObserverInvalidate(observer)
            continuation.resume(returning: events)
        }
        CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopCommonModes)
        CFRunLoopWakeUp(CFRunLoopGetMain())
    }
}

/// Blocks of the main queue and timers of the main loop that come while it works, and for how many pieces of it they wait.
///
/// Only the main thread changes it.
private final class IdleEvents: Sendable {
    private let pieces = Atomic(0)
    private let waiting = Atomic(0)
    private let most = Atomic(0)

    var areServed: Bool { waiting.load(ordering: .relaxed) == 0 }
    /// The largest number of pieces that began after an event had come, and ended before it was served.
    var mostPieces: Int { most.load(ordering: .relaxed) }

    func countPiece() { pieces.add(1, ordering: .relaxed) }

    /// Submits a block, and a timer that is due, within a piece.
    func submit() {
        let before = pieces.load(ordering: .relaxed) + 1
        let serve: @Sendable () -> Void = { [self] in
            waiting.subtract(1, ordering: .relaxed)
            most.store(max(mostPieces, pieces.load(ordering: .relaxed) - before), ordering: .relaxed)
        }
        waiting.add(2, ordering: .relaxed)
        DispatchQueue.main.async { serve() }
        let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in serve() }
        CFRunLoopAddTimer(CFRunLoopGetMain(), timer, kCFRunLoopCommonModes)
    }
}
