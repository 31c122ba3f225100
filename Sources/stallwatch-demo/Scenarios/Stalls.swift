import Dispatch
import Foundation
import Glibc

// The functions that stall. Each makes the blocking call itself, so that it is the innermost function of the app. Only one is
// inlined. None ends with the blocking call, because an optimizer would turn that into a jump and remove the function from the
// stack.

/// Computes.
@inline(never)
func spinTheCPU(for duration: Duration) {
    // Only plain C calls: in a debug build another Swift function of the app would sometimes be the innermost one.
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let end = now.tv_sec &* 1_000_000_000 &+ now.tv_nsec &+ Int(duration.milliseconds * 1_000_000)
    var value: UInt64 = 1
    while now.tv_sec &* 1_000_000_000 &+ now.tv_nsec < end {
        var round = 0
        while round < 10_000 {
            // Knuth's linear congruential generator: each value depends on the one before.
            value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            round &+= 1
        }
        clock_gettime(CLOCK_MONOTONIC, &now)
    }
    // The use keeps the optimizer from removing the computation.
    errno = Int32(truncatingIfNeeded: value)
}

/// Sleeps in nanosleep(2).
@inline(never)
func sleepTooLong(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var left = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while nanosleep(&left, &rest) != 0, errno == EINTR { left = rest }
}

/// Sleeps until a point in time.
///
/// A release build has no frame for this function.
@inline(__always)
func sleepInTheCaller(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let nanoseconds = end.tv_nsec + Int(attoseconds / 1_000_000_000)
    end.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
    end.tv_nsec = nanoseconds % 1_000_000_000
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nil) == EINTR {}
}

/// Waits for a pthread mutex.
@inline(never)
func waitForTheLock(_ lock: HeldLock) {
    pthread_mutex_lock(lock.mutex)
    pthread_mutex_unlock(lock.mutex)
}

/// Waits for a byte in read(2).
@inline(never)
func readTheEmptyPipe(_ pipe: EmptyPipe) {
    var byte: UInt8 = 0
    while read(pipe.readEnd, &byte, 1) < 0, errno == EINTR {}
}

/// Waits in poll(2) without descriptors.
@inline(never)
func pollNothing(for duration: Duration) {
    let end = Date(timeIntervalSinceNow: duration.seconds)
    repeat {
        poll(nil, 0, Int32(clamping: Int(end.timeIntervalSinceNow * 1000) + 1))
    } while Date() < end
}

/// Sleeps in Thread.sleep.
@inline(never)
func sleepInFoundation(for duration: Duration) {
    let end = Date(timeIntervalSinceNow: duration.seconds)
    repeat { Thread.sleep(until: end) } while Date() < end
}

/// Waits for a dispatch semaphore that no thread signals.
@inline(never)
func waitForTheSemaphore(for duration: Duration) {
    let semaphore = DispatchSemaphore(value: 0)
    let end = DispatchTime.now() + duration.seconds
    while semaphore.wait(timeout: end) == .success {}
}

/// Waits for a condition that no thread signals.
@inline(never)
func waitForTheCondition(for duration: Duration) {
    let condition = NSCondition()
    let end = Date(timeIntervalSinceNow: duration.seconds)
    condition.lock()
    while condition.wait(until: end) {}
    condition.unlock()
}
