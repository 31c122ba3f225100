import CoreFoundation
import Dispatch
import Foundation
import StallWatch

/// A timer that fires repeatedly until `stop`.
///
/// `@unchecked Sendable`: CFRunLoopTimerInvalidate takes the timer's own lock.
final class BusyTimer: @unchecked Sendable {
    private let timer: CFRunLoopTimer?

    /// A timer that runs `work` every `interval` seconds.
    init(on loop: DrivenLoop, every interval: Double = 0.001, _ work: @escaping @Sendable () -> Void = {}) {
        timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), interval, 0, 0) { _ in work() }
        CFRunLoopAddTimer(loop.runLoop, timer, loop.mode)
    }

    func stop() {
        CFRunLoopTimerInvalidate(timer)
    }
}
