import Dispatch
import Foundation
import Glibc

// The functions that stall. Each calls by itself what it waits in, so that it is the innermost function of the app; none but
// one is inlined; and none ends with that call, which an optimizer would make a jump of, with the function gone from the stack.

/// Computes.
@inline(never)
func spinTheCPU(for duration: Duration) {
    // Plain calls into C only: in a debug build, a Swift function of the app in between would be the innermost one at times.
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let end = now.tv_sec &* 1_000_000_000 &+ now.tv_nsec &+ Int(duration.milliseconds * 1_000_000)
    var value: UInt64 = 1
    while now.tv_sec &* 1_000_000_000 &+ now.tv_nsec < end {
        var round = 0
        while round < 10_000 {
            // Knuth's linear congruential generator: each value needs the one before.
            value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            round &+= 1
        }
        clock_gettime(CLOCK_MONOTONIC, &now)
    }
    // Used, so that it has to be computed.
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
/// In a release build there is no frame of its own for it.
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

/// Waits in poll(2) for nothing.
@inline(never)
func pollNothing(for duration: Duration) {
    let end = Date(timeIntervalSinceNow: duration.seconds)
    repeat {
        poll(nil, 0, Int32(clamping: Int(end.timeIntervalSinceNow * 1000) + 1))
    } while Date() < end
}

/// Sleeps as Foundation does it.
@inline(never)
func sleepInFoundation(for duration: Duration) {
    let end = Date(timeIntervalSinceNow: duration.seconds)
    repeat { Thread.sleep(until: end) } while Date() < end
}

/// Waits for a dispatch semaphore that nobody signals.
@inline(never)
func waitForTheSemaphore(for duration: Duration) {
    let semaphore = DispatchSemaphore(value: 0)
    let end = DispatchTime.now() + duration.seconds
    while semaphore.wait(timeout: end) == .success {}
}

/// Waits for a condition that nobody signals.
@inline(never)
func waitForTheCondition(for duration: Duration) {
    let condition = NSCondition()
    let end = Date(timeIntervalSinceNow: duration.seconds)
    condition.lock()
    while condition.wait(until: end) {}
    condition.unlock()
}
