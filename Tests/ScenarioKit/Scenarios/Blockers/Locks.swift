import CStalls
import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// C++'s mutex.
///
/// `@unchecked Sendable`: for the same reasons as ``PthreadLock``.
final class CxxLock: ThreadLock, @unchecked Sendable {
    private let mutex = stalls_cxx_make()

    deinit { stalls_cxx_free(mutex) }

    func acquire() { stalls_cxx_lock(mutex) }

    func release() { stalls_cxx_unlock(mutex) }
}

struct FoundationLock: ThreadLock {
    let lock: any NSLocking & Sendable

    @inline(never)
    func acquire() {
        lock.lock()
        errno = 0
    }

    func release() { lock.unlock() }
}

/// A file that another descriptor of this process has locked for some time.
final class HeldFileLock: Sendable {
    let descriptor: Int32

    init(for duration: Duration, in directory: String) {
        let path = "\(directory)/stallwatch-lock-\(getpid())"
        let other = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        descriptor = open(path, O_RDWR | O_CLOEXEC)
        unlink(path)
        flock(other, LOCK_EX)
        NamedThread.start("file-holder", after: duration) { close(other) }
    }

    deinit { close(descriptor) }
}

/// The activity of a thread that holds a lock.
enum HolderActivity: String, Sendable, CaseIterable {
    case computing, sleeping, writing

    /// The activity in a report: `running`, or the name of the blocking system call.
    var activity: String {
        switch self {
        case .computing: "running"
        // glibc implements nanosleep(3) with this call.
        case .sleeping: "clock_nanosleep"
        case .writing: "write"
        }
    }

    func run(for duration: Duration) {
        switch self {
        case .computing: spinTheCPU(for: duration)
        case .sleeping: sleepTooLong(for: duration)
        case .writing: writeSlowly(for: duration)
        }
    }

    /// Waits in write(2) on a full pipe until a thread reads it.
    private func writeSlowly(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        // The capacity of a pipe is 65,536 bytes (pipe(7)).
        let bytes = [UInt8](repeating: 0, count: 65_537)
        Thread.detachNewThread {
            sleepTooLong(for: duration)
            // Closes the end, too: after the last write a byte may still be unread, and a closed number may become another
            // file's.
            stalls_read_all(readEnd)
        }
        write(writeEnd, bytes, bytes.count)
        close(writeEnd)
    }
}

/// A cycle of locks and as many threads: thread n owns lock n and wants lock n + 1.
///
/// Thread 0 is the stalled one. The last thread gives up after some time.
final class LockCircle: Sendable {
    private let locks: [PthreadLock]
    private let mayGoOn = DispatchSemaphore(value: 0)

    /// `count` includes the stalled thread; the last thread gives up after `duration`.
    init(of count: Int, for duration: Duration) {
        locks = (0..<count).map { _ in PthreadLock() }
        for index in 1..<count {
            NamedThread.start("circle-\(index)") { [self] ready in
                locks[index].acquire()
                ready()
                mayGoOn.wait()
                if index < count - 1 {
                    locks[index + 1].pass()
                } else if locks[0].acquire(within: duration) {
                    locks[0].release()
                }
                locks[index].release()
            }
        }
    }

    /// Takes the first lock, lets the other threads wait for theirs, and waits for the second lock.
    func close() {
        locks[0].acquire()
        for _ in 1..<locks.count { mayGoOn.signal() }
        locks[1].pass()
        locks[0].release()
    }
}

/// A pthread mutex of any kind.
///
/// `@unchecked Sendable`: several threads may use a pthread_mutex_t, and its address never changes.
final class PthreadLock: ThreadLock, @unchecked Sendable {
    let mutex: UnsafeMutablePointer<pthread_mutex_t>

    init(type: Int32 = Int32(PTHREAD_MUTEX_NORMAL), robust: Bool = false, inheriting: Bool = false) {
        mutex = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, type)
        if robust { pthread_mutexattr_setrobust(&attributes, Int32(PTHREAD_MUTEX_ROBUST)) }
        if inheriting { pthread_mutexattr_setprotocol(&attributes, Int32(PTHREAD_PRIO_INHERIT)) }
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inline(never)
    func acquire() {
        let error = pthread_mutex_lock(mutex)
        precondition(error == 0, "pthread_mutex_lock fails only for a mutex that is used wrongly")
    }

    func release() { pthread_mutex_unlock(mutex) }

    /// Waits for `duration` at most; returns whether the calling thread has the lock.
    @inline(never)
    func acquire(within duration: Duration) -> Bool {
        var end = deadline(of: CLOCK_REALTIME, after: duration)
        return pthread_mutex_timedlock(mutex, &end) == 0
    }
}

/// A read-write lock.
///
/// As a ``ThreadLock`` it is taken for writing.
///
/// `@unchecked Sendable`: for the same reasons as ``PthreadLock``.
final class ReadWriteLock: ThreadLock, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>

    init() {
        lock = .allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
    }

    deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    @inline(never)
    func acquire() {
        let error = pthread_rwlock_wrlock(lock)
        // Differs from the mutex's code on purpose: otherwise the optimizer would merge the two functions under one name.
        errno = error
        precondition(error == 0, "pthread_rwlock_wrlock fails only for a lock that is used wrongly")
    }

    @inline(never)
    func acquireForReading() {
        // EAGAIN: the lock cannot count another reader.
        while pthread_rwlock_rdlock(lock) == EAGAIN { sched_yield() }
    }

    func release() { pthread_rwlock_unlock(lock) }
}

final class SwiftLock: ThreadLock {
    private let mutex = Mutex(())

    @inline(never)
    func acquire() {
        mutex._unsafeLock()
        errno = 0
    }

    func release() { mutex._unsafeUnlock() }
}

// Locks of every kind, held by named threads for some time.
//
// A function that takes a lock makes the blocking call itself, reads its result, and is not inlined. So it is the innermost
// function of the app in a stack, whatever the optimizer does.

/// A lock that any thread can take and release.
protocol ThreadLock: Sendable {
    func acquire()
    func release()
}

extension ThreadLock {
    /// Waits for the lock, and gives it back.
    func pass() {
        acquire()
        release()
    }

    /// Makes a thread named `name` hold the lock for `duration`, and returns the lock once it does.
    func held(by name: String, _ holding: HolderActivity, for duration: Duration) -> Self {
        held(by: name, [(holding, duration)])
    }

    /// The same, in several ways one after another.
    func held(by name: String, _ parts: [(holding: HolderActivity, duration: Duration)]) -> Self {
        NamedThread.start(name) { ready in
            acquire()
            ready()
            for part in parts { part.holding.run(for: part.duration) }
            release()
        }
        return self
    }
}
