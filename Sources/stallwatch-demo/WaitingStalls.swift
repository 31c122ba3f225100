import Foundation
import Glibc

// Stalls in which the main thread waits.

func sleepTooLong(for duration: Duration) {
    Thread.sleep(forTimeInterval: duration.seconds)
}

func waitForLock(for duration: Duration) {
    let lock = PthreadLock()
    lock.hold(by: "lock-holder") { sleepTooLong(for: duration) }
    lock.acquire()
    lock.release()
}

func waitForEachOther(for duration: Duration) {
    let mine = PthreadLock()
    let other = PthreadLock()
    mine.acquire()
    other.hold(by: "rival") {
        mine.acquire()
        mine.release()
    }
    if other.acquire(within: duration) { other.release() }
    mine.release()
}

func flushFile(for duration: Duration) throws {
    let file = try ScratchFile(megabytes: 1)
    let block = [UInt8](repeating: 8, count: 4_096)
    let end = ContinuousClock.now + duration
    while ContinuousClock.now < end {
        pwrite(file.descriptor, block, block.count, 0)
        fsync(file.descriptor)
    }
}

func waitForChild(for duration: Duration) {
    _ = system("exec sleep \(duration.seconds)")
}

/// Connects to a socket whose queue of connections is full until another thread accepts one.
func connectToBusyServer(for duration: Duration) {
    let sockets = (0..<3).map { _ in socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) }
    let (server, first, second) = (sockets[0], sockets[1], sockets[2])
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // A name that begins with a zero leaves no file (unix(7)).
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\0stallwatch-demo-\(getpid())".utf8) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            bind(server, address, length)
            // A queue for one connection.
            listen(server, 0)
            connect(first, address, length)
            Thread.detachNewThread {
                sleepTooLong(for: duration)
                for _ in 0..<2 { close(accept(server, nil, nil)) }
            }
            connect(second, address, length)
        }
    }
    for socket in sockets { close(socket) }
}

/// A mutex of the C library, which knows its owner.
///
/// `@unchecked Sendable`: the pointer never changes, and the mutex is made for several threads.
final class PthreadLock: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    func acquire() { pthread_mutex_lock(mutex) }

    func release() { pthread_mutex_unlock(mutex) }

    func acquire(within duration: Duration) -> Bool {
        var end = timespec()
        clock_gettime(CLOCK_REALTIME, &end)
        let nanoseconds = end.tv_nsec + Int(duration / .nanoseconds(1))
        end.tv_sec += nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        return pthread_mutex_timedlock(mutex, &end) == 0
    }

    func hold(by name: String, _ work: @escaping @Sendable () -> Void) {
        let isHeld = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [self] in
            Thread.current.name = name
            acquire()
            isHeld.signal()
            work()
            release()
        }
        isHeld.wait()
    }
}
