import CStalls
import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

// The functions that stall. Each makes the blocking call itself, so that it is the innermost function of the app. Only one is
// inlined. None ends with the blocking call, because an optimizer would turn that into a jump and remove the function from the
// stack.

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

@inline(never)
func sleepTooLong(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var left = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while nanosleep(&left, &rest) != 0, errno == EINTR { left = rest }
}

/// Returns what a clock will show after `duration`.
func deadline(of clock: clockid_t, after duration: Duration) -> timespec {
    var end = timespec()
    clock_gettime(clock, &end)
    let nanoseconds = end.tv_nsec + Int(duration / .nanoseconds(1))
    return timespec(
        tv_sec: end.tv_sec + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
}

/// Sleeps until a point in time; a release build has no frame for this function.
@inline(__always)
func sleepInTheCaller(for duration: Duration) {
    var end = deadline(of: CLOCK_MONOTONIC, after: duration)
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nil) == EINTR {}
}

@inline(never)
func waitForTheLock(_ lock: PthreadLock) {
    pthread_mutex_lock(lock.mutex)
    pthread_mutex_unlock(lock.mutex)
}

@inline(never)
func readTheEmptyPipe(_ pipe: BytePipe) {
    var byte: UInt8 = 0
    while read(pipe.readEnd, &byte, 1) < 0, errno == EINTR {}
}

@inline(never)
func pollNothing(for duration: Duration) {
    let end = Date(timeIntervalSinceNow: duration.seconds)
    repeat {
        poll(nil, 0, Int32(clamping: Int(end.timeIntervalSinceNow * 1000) + 1))
    } while Date() < end
}

@inline(never)
func sleepInFoundation(for duration: Duration) {
    let end = Date(timeIntervalSinceNow: duration.seconds)
    repeat { Thread.sleep(until: end) } while Date() < end
}

@inline(never)
func waitForTheSemaphore(for duration: Duration) {
    let semaphore = DispatchSemaphore(value: 0)
    let end = DispatchTime.now() + duration.seconds
    while semaphore.wait(timeout: end) == .success {}
}

@inline(never)
func waitForTheCondition(for duration: Duration) {
    let condition = NSCondition()
    let end = Date(timeIntervalSinceNow: duration.seconds)
    condition.lock()
    while condition.wait(until: end) {}
    condition.unlock()
}

extension Scenario {
    /// Stalls of the main run loop, in the four most common kinds of callout.
    static let stallingScenarios: [Scenario] = [
        .inMainLoop(
            "cpu-spin", "a timer computes", times: 3, .main(.timer, in: "spinTheCPU(for:)", cause: "cpu"), spinTheCPU),
        .inMainLoop(
            "inlined", "a timer sleeps in a function that the optimizer inlines",
            .main(.timer, in: "sleepInTheCaller(for:)", cause: "sleep")
        ) { sleepInTheCaller(for: $0) },
        .inMainLoop(
            "sleep", "a source0 sleeps", .main(.source0, in: "sleepTooLong(for:)", cause: "sleep"), sleepTooLong),
        .inMainLoop(
            "lock", "a main-queue block waits for a mutex that another thread holds", times: 2.5,
            .main(.mainQueue, in: "waitForTheLock(_:)", lock: .pthreadMutex, owner: "lock-holder"),
            with: { PthreadLock().held(by: "lock-holder", .sleeping, for: $0.stall) }
        ) { lock, _ in waitForTheLock(lock) },
        .inMainLoop(
            "pipe-read", "a performed block reads an empty pipe",
            .main(.performedBlock, in: "readTheEmptyPipe(_:)", cause: "io").waiting(for: .writer),
            with: { context in
                context.expectPeer(getpid())
                return BytePipe(emptyFor: context.stall)
            }
        ) { pipe, _ in readTheEmptyPipe(pipe) },
        .inMainLoop(
            "timer", "a timer waits in poll(2)", .main(.timer, in: "pollNothing(for:)", cause: "sleep"), pollNothing),
        .inMainLoop(
            "source0", "a source0 waits in Thread.sleep",
            .main(.source0, in: "sleepInFoundation(for:)", cause: "sleep"), sleepInFoundation),
        .inMainLoop(
            "main-queue", "a main-queue block waits for a dispatch semaphore",
            .main(.mainQueue, in: "waitForTheSemaphore(for:)", lock: .dispatchSemaphore), waitForTheSemaphore),
        .inMainLoop(
            "perform-block", "a performed block waits for an NSCondition",
            .main(.performedBlock, in: "waitForTheCondition(for:)", lock: .condition), waitForTheCondition),
    ]

    /// A scenario in which `stall` stalls the main run loop for a time, in the callout that the report has to name.
    static func inMainLoop(
        _ name: String, _ summary: String, times: Double = 2, _ expected: ExpectedReport,
        _ stall: @escaping @Sendable (Duration) -> Void
    ) -> Scenario {
        inMainLoop(name, summary, times: times, expected, with: { _ in }) { _, duration in stall(duration) }
    }

    /// The same with something that `make` prepares before the stall, and that `end` ends after it.
    static func inMainLoop<Resource: Sendable>(
        _ name: String, _ summary: String, times: Double = 2, _ expected: ExpectedReport,
        with make: @escaping @Sendable (ScenarioContext) async throws -> Resource,
        end: @escaping @Sendable (Resource) -> Void = { _ in },
        _ stall: @escaping @Sendable (Resource, Duration) -> Void
    ) -> Scenario {
        .stalling(name, summary, times: times, expected) { context in
            let resource = try await make(context)
            defer { end(resource) }
            return switch expected.callout {
            case .timer?: await MainLoop.timer { stall(resource, context.stall) }
            case .source0?: await DrivenLoop.main.source0 { stall(resource, context.stall) }
            case .mainQueue?: await MainLoop.mainQueue { stall(resource, context.stall) }
            default: await DrivenLoop.main.block { stall(resource, context.stall) }
            }
        }
    }
}

// More functions that stall. The rules in Stalls.swift apply.

@inline(never)
func joinTheThread(for duration: Duration) {
    var thread = pthread_t()
    let argument = UnsafeMutableRawPointer(bitPattern: UInt(duration.milliseconds * 1000))
    let status = pthread_create(
        &thread, nil,
        { microseconds in
            usleep(UInt32(UInt(bitPattern: microseconds)))
            return nil
        }, argument
    )
    if status == 0 { pthread_join(thread, nil) }
    errno = status
}

@inline(never)
func waitForTheChild(for duration: Duration) {
    var child: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("\(duration.seconds)"), nil]
    let status = posix_spawnp(&child, "sleep", nil, nil, &arguments, nil)
    var result: Int32 = 0
    if status == 0 {
        while waitpid(child, &result, 0) < 0, errno == EINTR {}
    }
    for argument in arguments { free(argument) }
}

@inline(never)
func receiveFromTheSilentSocket(for duration: Duration) {
    var ends: [Int32] = [-1, -1]
    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
    var byte: UInt8 = 0
    let end = SuspendingClock.now + duration
    // The kernel counts this time in ticks. It ends too early after the host has held the CPU that counts them.
    while case let left = SuspendingClock.now.duration(to: end), left > .zero {
        let microseconds = max(Int(left.milliseconds * 1000), 1)
        var timeout = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        let received = recv(ends[0], &byte, 1, 0)
        guard received < 0, errno == EAGAIN else {
            let how = received < 0 ? String(cString: strerror(errno)) : "\(received) bytes"
            StandardError.write("the silent socket was not silent: \(how)\n")
            break
        }
    }
    for end in ends { close(end) }
}

@inline(never)
func waitForTheGroup(for duration: Duration) {
    let group = DispatchGroup()
    group.enter()
    let end = DispatchTime.now() + duration.seconds
    while group.wait(timeout: end) == .success {}
    group.leave()
}

@inline(never)
func allocateAndFree(for duration: Duration) {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let end = now.tv_sec &* 1_000_000_000 &+ now.tv_nsec &+ Int(duration.milliseconds * 1_000_000)
    var size = 16
    while now.tv_sec &* 1_000_000_000 &+ now.tv_nsec < end {
        if let block = malloc(size) {
            memset(block, 1, min(size, 256))
            free(block)
        }
        size = size > 1_000_000 ? 16 : size &+ size / 8
        clock_gettime(CLOCK_MONOTONIC, &now)
    }
    errno = 0
}

/// Calls `ready` and sleeps, both in a callback of the dynamic loader, which holds the loader's lock.
func sleepWithLoaderLock(for duration: Duration, ready: @escaping () -> Void = {}) {
    var work = {
        ready()
        sleepTooLong(for: duration)
    }
    withUnsafeMutablePointer(to: &work) {
        stalls_with_loader_lock({ $0?.assumingMemoryBound(to: (() -> Void).self).pointee() }, $0)
    }
}

/// The longest of several durations, measured on one thread and read on another.
final class DurationBox: Sendable {
    private let longest = Mutex(Duration.zero)

    var value: Duration { longest.withLock { $0 } }

    /// Runs `work` and keeps its duration if that is the longest so far.
    func measure(_ work: () -> Void) {
        let duration = SuspendingClock().measure(work)
        longest.withLock { $0 = max($0, duration) }
    }
}
