// Stalls a run loop in functions that an optimizer leaves no frame of, and in some that it does.
import Foundation
import Safe
import TailCalls

/// C calls a thunk of it.
@_cdecl("exported_hash") @inline(never) public func exportedHash(_ rounds: Int) -> Int { doze(rounds &* 12) }
@_silgen_name("call_hash") func callHash(_ result: UnsafeMutablePointer<Int>)

// These have frames.

@inline(never) func napAndCount() {
    nap()
    results &+= 1
}
@inline(never) func waitTwice() -> Int { doze(60) &+ doze(60) }

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

/// Lets a thread hold the lock until the fourth stall has begun, and for a time.
func holdLock() {
    let held = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        pthread_mutex_lock(mutex)
        held.signal()
        while next < 4 { usleep(1_000) }
        usleep(120 &* unit)
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
    { results &+= Int(takeLock(mutex)) },
    { results &+= Int(countDown(10, 120_000)) },
    { results &+= hashPassword(10) &+ 1 },
    { results &+= (try? openVault(120)) ?? 0 },
    { results &+= load("abc") { time in doze(time) } },
    { results &+= twice(120) { time in Int(usleep(UInt32(truncatingIfNeeded: time &* 1_000))) } },
    {
        retry({ _ in nap() }, 1)
        results &+= 1
    },
    { results &+= Archive().compact() },
    { results &+= Archive.vacuum(11) },
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
    { results &+= openSafe(120) &+ 1 },
    {
        callHash(&results)
        results &+= 1
    },
]

pthread_mutex_init(mutex, nil)
holdLock()
while system("grep -qs stallwatch-dog /proc/$PPID/task/*/comm || ! sleep 0.1") != 0 {}
// The first one after the monitor has started: its watchdog is there now.
let timer = Timer(fire: Date(timeIntervalSinceNow: 1), interval: 0.02, repeats: true) { _ in
    guard next < stalls.count else { exit(results == 0 ? 1 : 0) }
    next += 1
    stalls[next - 1]()
}
RunLoop.main.add(timer, forMode: .default)
RunLoop.main.run()
