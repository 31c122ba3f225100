import CDemo
import Dispatch
import Foundation
import Glibc

// More functions that stall. The rules in Stalls.swift apply.

/// Waits for the end of a thread.
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

/// Waits for a child process that sleeps.
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

/// Waits for a message that never arrives.
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

/// Waits for a queue with `sync`.
@inline(never)
func syncOnTheBusyQueue(_ queue: BusyQueue) {
    queue.queue.sync {}
    errno = 0
}

/// Waits for a group that no thread leaves.
@inline(never)
func waitForTheGroup(for duration: Duration) {
    let group = DispatchGroup()
    group.enter()
    let end = DispatchTime.now() + duration.seconds
    while group.wait(timeout: end) == .success {}
    group.leave()
}

/// Allocates and frees blocks of all sizes.
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

/// Sleeps in a callback of the dynamic loader, which holds the loader's lock.
func sleepWithLoaderLock(for duration: Duration) {
    var duration = duration
    demo_with_loader_lock({ sleepTooLong(for: $0?.load(as: Duration.self) ?? .zero) }, &duration)
}
