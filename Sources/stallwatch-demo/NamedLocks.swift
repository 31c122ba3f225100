import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

// Locks of every kind, held by threads with names. Each lets go by itself after a while.
//
// The functions that take a lock call what waits by themselves, look at what it returns, and are not inlined: so each is
// the innermost function of the app in a stack, whatever the optimizer does.

/// What a thread does with a lock that it holds.
enum Holding: String, Sendable, CaseIterable {
    case computing, sleeping, writing

    /// What a report says of it: `running`, or the system call that it waits in.
    var activity: String {
        switch self {
        case .computing: "running"
        // glibc's nanosleep(3) is made of this one.
        case .sleeping: "clock_nanosleep"
        case .writing: "write"
        }
    }

    /// Does it for `duration`.
    func run(for duration: Duration) {
        switch self {
        case .computing: spinTheCPU(for: duration)
        case .sleeping: sleepTooLong(for: duration)
        case .writing: writeSlowly(for: duration)
        }
    }

    /// Waits in write(2): a pipe that is full, until a thread reads it.
    private func writeSlowly(for duration: Duration) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        // What a pipe holds (pipe(7)).
        let capacity = 65_536
        let bytes = [UInt8](repeating: 0, count: capacity + 1)
        Thread.detachNewThread {
            sleepTooLong(for: duration)
            var buffer = [UInt8](repeating: 0, count: capacity + 1)
            var left = capacity + 1
            while left > 0 {
                let count = read(readEnd, &buffer, left)
                guard count > 0 else { break }
                left -= count
            }
            // Here, because the last byte may be written before it is read, and by then the number might be another file's.
            close(readEnd)
        }
        write(writeEnd, bytes, bytes.count)
        close(writeEnd)
    }
}

/// A lock that is taken and given back by threads of one's choice.
protocol ThreadLock: Sendable {
    func acquire()
    func release()
}

/// A thread with a name, which starts with `body` and is known to have come as far as `ready`.
enum NamedThread {
    /// Starts it and waits until it has called its argument.
    static func start(_ name: String, _ body: @escaping @Sendable (_ ready: @Sendable () -> Void) -> Void) {
        let isReady = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            nameThisThread(name)
            body { isReady.signal() }
        }
        isReady.wait()
    }

    static func nameThisThread(_ name: String) {
        // In effect at once, unlike Foundation's name.
        guard let file = fopen("/proc/thread-self/comm", "w") else { return }
        fputs(name, file)
        fclose(file)
    }
}

extension ThreadLock {
    /// Lets a thread named `name` hold the lock for `duration`, and returns when it has it.
    func hold(by name: String, _ holding: Holding, for duration: Duration) {
        NamedThread.start(name) { ready in
            acquire()
            ready()
            holding.run(for: duration)
            release()
        }
    }
}

/// A pthread mutex of any kind.
///
/// `@unchecked Sendable`: a pthread_mutex_t is made for being used by several threads, and its address never changes.
final class PthreadLock: ThreadLock, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

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

    /// Waits for `duration` at most.
    ///
    /// Returns whether it has the lock.
    @inline(never)
    func acquire(within duration: Duration) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        let nanoseconds = deadline.tv_nsec + Int(duration.milliseconds * 1_000_000)
        deadline.tv_sec += nanoseconds / 1_000_000_000
        deadline.tv_nsec = nanoseconds % 1_000_000_000
        return pthread_mutex_timedlock(mutex, &deadline) == 0
    }
}

/// A read-write lock; as a ``ThreadLock``, taken for writing.
///
/// `@unchecked Sendable`: as `PthreadLock`.
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
        // This makes the code unlike that of the mutex: the optimizer would share it, under the name of one of them.
        errno = error
        precondition(error == 0, "pthread_rwlock_wrlock fails only for a lock that is used wrongly")
    }

    @inline(never)
    func acquireForReading() {
        // EAGAIN: there are as many readers as the lock can count.
        while pthread_rwlock_rdlock(lock) == EAGAIN { sched_yield() }
    }

    func release() { pthread_rwlock_unlock(lock) }
}

/// C++'s mutex.
///
/// `@unchecked Sendable`: as `PthreadLock`.
final class CxxLock: ThreadLock, @unchecked Sendable {
    private let mutex = demo_cxx_make()

    deinit { demo_cxx_free(mutex) }

    func acquire() { demo_cxx_lock(mutex) }

    func release() { demo_cxx_unlock(mutex) }
}

/// Swift's own mutex.
final class SwiftLock: ThreadLock {
    private let mutex = Mutex(())

    @inline(never)
    func acquire() {
        mutex._unsafeLock()
        errno = 0
    }

    func release() { mutex._unsafeUnlock() }
}

/// One of Foundation's locks.
struct FoundationLock: ThreadLock {
    let lock: any NSLocking & Sendable

    @inline(never)
    func acquire() {
        lock.lock()
        errno = 0
    }

    func release() { lock.unlock() }
}

/// Locks that as many threads take in a circle: thread n has lock n and wants lock n + 1.
///
/// The stalled thread is number 0; the last one gives up after a while.
final class LockCircle: Sendable {
    private let locks: [PthreadLock]
    private let mayGoOn = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - count: The threads, with the stalled one.
    ///   - duration: After how long the last thread gives up.
    init(of count: Int, for duration: Duration) {
        locks = (0..<count).map { _ in PthreadLock() }
        for index in 1..<count {
            NamedThread.start("circle-\(index)") { [self] ready in
                locks[index].acquire()
                ready()
                mayGoOn.wait()
                if index < count - 1 {
                    locks[index + 1].acquire()
                    locks[index + 1].release()
                } else if locks[0].acquire(within: duration) {
                    locks[0].release()
                }
                locks[index].release()
            }
        }
    }

    /// Takes the first lock, lets the other threads want what they do not get, and wants the second lock.
    func close() {
        locks[0].acquire()
        for _ in 1..<locks.count { mayGoOn.signal() }
        locks[1].acquire()
        locks[1].release()
        locks[0].release()
    }
}
