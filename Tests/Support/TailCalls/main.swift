// Stalls a run loop in functions that an optimizer leaves no frame of, and in some that it does.
import Foundation
import Vault

@inline(never) func nap() { usleep(120_000) }
@inline(never) func waitForEvents() -> Int32 { poll(nil, 0, 120) }
@inline(never) func readMessage(_ socket: Int32, _ buffer: UnsafeMutableRawPointer) -> Int { read(socket, buffer, 8) }
@inline(never) func takeLock(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) -> Int32 { pthread_mutex_lock(mutex) }

/// Recursion that becomes a loop, and then a jump.
@inline(never) func countDown(_ count: Int, _ time: UInt32) -> Int32 {
    count == 0 ? usleep(time) : countDown(count &- 1, time ^ 1)
}

@inline(never) func load(_ name: String, _ read: @convention(c) (Int) -> Int) -> Int { read(name.utf8.count &* 40) }
@inline(never) func twice(_ time: Int, _ body: (Int) -> Int) -> Int { body(time) }
@inline(never) func retry(_ body: (Int) -> Void, _ count: Int) { body(count) }

final class Store {
    var rows = 10
    @inline(never) func compact() -> Int { pause(rows &* 12) }
    @inline(never) static func vacuum(_ rows: Int) -> Int { pause(rows &* 11) }
}

// These have frames.

@inline(never) func napAndCount() {
    nap()
    results &+= 1
}
@inline(never) func waitTwice() -> Int { pause(60) &+ pause(60) }

nonisolated(unsafe) var results = 0
nonisolated(unsafe) let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
nonisolated(unsafe) let buffer = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
nonisolated(unsafe) var next = 0

/// A socket on which a read ends after a time.
func socket() -> Int32 {
    var pair: [Int32] = [0, 0]
    var time = timeval(tv_sec: 0, tv_usec: 120_000)
    socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &pair)
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    return pair[0]
}

/// Lets a thread hold the lock for a time.
func holdLock() {
    let held = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        pthread_mutex_lock(mutex)
        held.signal()
        usleep(120_000)
        pthread_mutex_unlock(mutex)
    }
    held.wait()
}

// Each stall is one closure, in the order of the test's list.
nonisolated(unsafe) let stalls: [() -> Void] = [
    {
        nap()
        results &+= 1
    },
    { results &+= Int(waitForEvents()) },
    { results &+= readMessage(socket(), buffer) },
    {
        holdLock()
        results &+= Int(takeLock(mutex))
    },
    { results &+= Int(countDown(10, 120_000)) },
    { results &+= hashPassword(10) &+ 1 },
    { results &+= (try? openVault(120)) ?? 0 },
    { results &+= load("abc") { time in pause(time) } },
    { results &+= twice(120) { time in Int(usleep(UInt32(truncatingIfNeeded: time &* 1_000))) } },
    {
        retry({ _ in nap() }, 1)
        results &+= 1
    },
    { results &+= Store().compact() },
    { results &+= Store.vacuum(11) },
    { results &+= importUsers(10) },
    { results &+= importGroups(11) },
    { results &+= indexAll("a", 10) },
    { results &+= searchAll(7, 11) },
    {
        restUsers()
        results &+= 1
    },
    {
        restGroups()
        results &+= 2
    },
    { results &+= Shelf().checksum },
    { results &+= Shelf().digest },
    {
        napAndCount()
        results &+= 2
    },
    { results &+= waitTwice() },
]

pthread_mutex_init(mutex, nil)
// The first one after the monitor has started.
let timer = Timer(fire: Date(timeIntervalSinceNow: 1), interval: 0.02, repeats: true) { _ in
    guard next < stalls.count else { exit(results == 0 ? 1 : 0) }
    next += 1
    stalls[next - 1]()
}
RunLoop.main.add(timer, forMode: .default)
RunLoop.main.run()
